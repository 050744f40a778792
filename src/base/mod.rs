//! The value types that all other modules share (symbol, quote, candle, holding, decimal), the
//! clock, randomness, the rate limiter, the bounded map, what makes one node lead, and the secret
//! that nodes share.
//!
//! Any thread may use them. Nothing here blocks, logs, or imports another module of the crate.

pub mod bounded_map;
pub mod broker;
pub mod call_window;
pub mod candle;
pub mod clock;
pub mod closing;
pub mod decimal;
pub mod epoch;
pub mod holding;
pub mod ist;
pub mod json;
pub mod leadership;
pub mod lease;
pub mod limiter;
pub mod network;
pub mod node_secret;
pub mod paths;
pub mod quote;
pub mod rng;
pub mod security;
pub mod symbol;
pub mod wipe;

pub use bounded_map::BoundedMap;
pub use broker::Broker;
pub use call_window::CallWindow;
pub use candle::Candle;
pub use clock::{Clock, ManualClock, Stopwatch};
pub use closing::{ClosingPrice, MarketDay};
pub use epoch::Epoch;
pub use holding::{ActionSign, Cost, Holding, Mark, Position, PositionKind, Synced, broker_user};
pub use leadership::{Leadership, Role, Term};
pub use node_secret::{NodeSecret, Secrets};
pub use quote::{Quote, Source};
pub use security::MasterRow;
pub use symbol::{Exchange, Symbol};
