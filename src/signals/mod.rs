//! Candlestick signals, and how often signals of each kind came true. Pure.
//!
//! `history` and `silence` check candles, `patterns` finds signals in them, and `confidence`
//! derives each signal's confidence from past outcomes. `forming` evaluates a day that is not over.
//! `performance` and `track_record` summarise outcomes with their standard errors. `backtest`
//! evaluates years of candles date by date, using only data known on each date. Nothing here reads
//! a file, a clock or the store. Runs on lane threads and in the command `signals evaluate`.

pub mod backtest;
pub(crate) mod blocks;
pub mod confidence;
pub mod history;
pub mod list;
pub mod patterns;
pub(crate) mod track_record;

pub(crate) use list::{DISCLAIMER, HORIZON_SESSIONS, MEANING, PROVISIONAL_MEANING};
pub use list::{Direction, ListedSignal, Look, SignalList};
pub(crate) use track_record::{Fate, Reliability, Standing};
