//! Candlestick signals and what they are worth. Pure.
//!
//! `history` and `silence` judge candles, `patterns` finds signals in them, `record` keeps count of
//! how they did, date by date, and gives each its confidence, `running` looks at a day that is not
//! over, `list` and `reliability` are what clients see, `evaluate` walks forward over years of
//! candles with nothing known but the past. All of it computes; nothing here reads a file, a clock
//! or a store. Run by warm lanes and by the `signals evaluate` command.

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
