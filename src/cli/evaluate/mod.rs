//! `signals evaluate`: the performance of candlestick signals on a folder of candles.
//!
//! Main thread only; no settings, no log, no network. `candles` reads the folder, `report` computes
//! the figures. Bad rows and errors go to standard error, the result to standard output.

mod candles;
mod command;
mod report;
mod report_text;
mod rows;

pub(crate) use command::{command, run};
