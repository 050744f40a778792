//! Candlestick signals, and how often signals of each kind came true. Pure.
//!
//! `history` and `silence` check candles, `patterns` finds signals in them, and `confidence`
//! derives each signal's confidence from past outcomes. `forming` looks at a day that is not over.
//! `performance` and `track_record` summarise outcomes with their standard errors. `backtest`
//! evaluates years of candles date by date, with only what was known on each date. Reads no file,
//! clock or store. Run on lane threads and by the command `signals evaluate`.

pub mod backtest;
pub mod blocks;
pub mod confidence;
mod direction;
pub mod forming;
pub mod history;
pub mod list;
pub mod patterns;
pub mod performance;
pub mod provisional_record;
pub mod silence;
pub mod track_record;
mod wording;

pub use direction::{Direction, HORIZON_SESSIONS};
pub use list::{ListedSignal, Look, SignalList};
pub use provisional_record::Fate;
pub use track_record::{Reliability, Standing};
pub use wording::{DISCLAIMER, MEANING, PROVISIONAL_MEANING};
