//! Candlestick signals, and how often their kind came true. Pure.
//!
//! `history` and `silence` judge candles, `patterns` finds signals in them, `confidence` counts
//! outcomes date by date and derives each signal's confidence, `forming` looks at a day that is not
//! over, `performance` and `track_record` summarise outcomes with their errors, `backtest` walks
//! forward over years of candles and knows only the past of each date. Reads no file, clock or
//! store. Run by lanes and by the command `signals evaluate`.

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
