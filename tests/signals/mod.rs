//! Signals: the evening's list, the record, provisional candles, and the command that evaluates.

mod candles;
mod candles_served;
mod evaluate;
mod evening;
mod provisional;
pub mod stage;
mod weeks;
