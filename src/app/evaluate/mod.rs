//! `signals evaluate`: what candlestick signals were worth on a folder of candles.
//!
//! Main thread alone; no settings, no log, no network. `candles` reads the folder, `report` puts
//! the numbers together, `text` and `plot` show them. Bad rows and errors go to standard error, the
//! result to standard output.

mod outcomes;
mod report;
mod run;

pub use run::evaluate;
