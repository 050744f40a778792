//! Candlestick signals, and how often signals of each kind came true. Pure.
//!
//! `history` checks candles, those of a day that is not over too, `patterns` finds signals in them,
//! and `confidence` derives each signal's confidence from past outcomes. `list` orders the signals
//! of a date. `track_record` summarises outcomes, with the standard errors of `blocks`. `backtest`
//! evaluates years of candles date by date, using only data known on each date. Nothing here reads
//! a file, a clock or the store. Runs on lane threads and in the command `signals evaluate`.

pub mod backtest;
pub(crate) mod blocks;
pub mod confidence;
pub mod history;
pub mod list;
pub mod patterns;
pub mod performance;
pub(crate) mod track_record;

pub(crate) use list::{DISCLAIMER, MEANING, PROVISIONAL_MEANING};
pub use list::{ListedSignal, ScanTime, SignalList};
pub use patterns::Direction;
pub(crate) use patterns::HORIZON_SESSIONS;
pub(crate) use track_record::{Fate, Reliability, Standing};
