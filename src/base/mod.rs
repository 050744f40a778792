//! The nouns of the product and nothing that does I/O.
//!
//! Any thread may use anything here. Nothing here may block, log, or import another layer.

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
