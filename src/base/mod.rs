//! The value types that all other modules share (symbol, quote, candle, holding, decimal), the
//! clock, randomness, the rate limiter and the bounded map.
//!
//! Any thread may use them. Nothing here blocks, logs, or imports another module of the crate.

mod account;
pub(crate) mod base_ratio;
pub(crate) mod bounded_map;
mod broker;
pub mod candle;
pub mod clock;
mod closing_price;
pub(crate) mod hex;
pub mod holding;
mod isin;
pub mod json;
pub(crate) mod limiter;
pub mod network;
pub mod paths;
pub(crate) mod previous_close;
pub mod quote;
pub mod rng;
pub(crate) mod scopes;
pub(crate) mod settings;
pub(crate) mod span;
pub mod symbol;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod visible;
pub(crate) mod wipe;
pub(crate) mod words;

pub use crate::base::account::Account;
pub use crate::base::base_ratio::BaseRatio;
pub use crate::base::broker::{Broker, ByBroker};
pub(crate) use crate::base::closing_price::ClosingPrice;
pub(crate) use bounded_map::{BoundedMap, CallWindow};
pub use candle::Candle;
pub(crate) use clock::Stopwatch;
pub use clock::{Clock, ManualClock};
pub(crate) use holding::{ActionSign, Mark, MasterRow, Position, broker_user};
pub use holding::{Cost, Holding, MarketDay, PositionKind, SoldHolding, Synced};
pub(crate) use isin::Isin;
pub use network::{BadNetwork, Network};
pub(crate) use quote::BySource;
pub use quote::{DayRange, Quote, Source};
pub use scopes::{Scope, Scopes};
pub(crate) use settings::settings;
pub(crate) use symbol::Exchange;
pub use symbol::Symbol;
pub(crate) use words::{Words, words};
