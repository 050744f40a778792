//! Candlestick signals, and how often signals of each kind came true. Pure.
//!
//! `history` checks candles, `patterns` finds signals in them,
//! and `confidence` derives each signal's confidence from past outcomes. `list` orders the signals
//! of a date. `track_record` summarises outcomes, with the standard errors of `blocks`. `backtest`
//! evaluates years of candles date by date, using only data known on each date. Nothing here reads
//! a file, a clock or the store. Runs on lane threads, and in the example that evaluates candles.

pub mod backtest;
pub mod blocks;
pub mod confidence;
pub mod history;
pub mod list;
pub mod patterns;
pub mod performance;
pub(crate) mod track_record;

pub use list::{DISCLAIMER, ListedSignal, MEANING, SignalList};
pub use patterns::Direction;
pub(crate) use patterns::HORIZON_SESSIONS;
pub(crate) use track_record::{Reliability, Standing};
