//! `signals evaluate`: what candlestick signals were worth on a folder of candles.
//!
//! Main thread alone; no settings, no log, no network. `candles` reads the folder, `report` puts
//! the figures together. Bad rows and errors go to standard error, the result to standard output.

mod candles;
mod command;
mod report;

pub(crate) use command::{command, run};
