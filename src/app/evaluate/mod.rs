//! `signals evaluate`: what candlestick signals were worth on a folder of candles.
//!
//! Main thread alone; no settings, no log, no network. `candles` reads the folder, `report` puts
//! the numbers together, `text` and `plot` show them. Bad rows and errors go to standard error, the
//! result to standard output.

mod candles;
mod outcomes;
mod plot;
mod report;
mod rows;
mod run;
mod text;

pub use run::evaluate;
