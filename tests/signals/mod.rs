//! Signals: the evening's list, the record, and the example that evaluates.

mod candles;
mod candles_served;
mod evaluate;
#[path = "../../examples/evaluate-signals/evaluation/mod.rs"]
mod evaluation;
mod evening;
pub mod stage;
mod weeks;
