//! Nouns of the product (symbol, quote, candle, holding, decimal) and seams for clock and chance.
//!
//! Any thread may use them. Nothing here blocks, logs, or imports another module of the crate.

pub mod broker;
pub mod candle;
pub mod clock;
pub mod closing;
pub mod decimal;
pub mod holding;
pub mod ist;
pub mod json;
pub mod network;
pub mod quote;
pub mod rng;
pub mod security;
pub mod symbol;
pub mod wipe;

pub use broker::Broker;
pub use candle::Candle;
pub use clock::Clock;
pub use closing::{ClosingPrice, MarketDay};
pub use holding::{ActionSign, Cost, Holding, Mark, Position, PositionKind, Synced};
pub use quote::{Quote, Source};
pub use security::MasterRow;
pub use symbol::{Exchange, Symbol};
