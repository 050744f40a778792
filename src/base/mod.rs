//! The value types that all other modules share (symbol, quote, candle, holding, decimal), the
//! clock, randomness, the rate limiter, the bounded map, what makes one node lead, and the secret
//! that nodes share.
//!
//! Any thread may use them. Nothing here blocks, logs, or imports another module of the crate.

pub mod bounded_map;
pub mod candle;
pub mod clock;
pub mod holding;
pub mod json;
pub mod leadership;
pub mod lease;
pub mod limiter;
pub mod paths;
pub mod rng;
pub mod symbol;
pub mod wipe;

pub use bounded_map::{BoundedMap, CallWindow};
pub use candle::{Candle, Quote, Source};
pub use clock::{Clock, ManualClock, Stopwatch};
pub use holding::{
    ActionSign, Broker, ClosingPrice, Cost, Holding, Mark, MarketDay, MasterRow, Position,
    PositionKind, Synced, broker_user,
};
pub use leadership::{Epoch, Leadership, NodeSecret, Role, Secrets, Term};
pub use symbol::{Exchange, Symbol};
