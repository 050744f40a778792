//! HTTP/1.1 on may. The edge of the product.
//!
//! `server` accepts, `conn` lives a connection's life, `turn` answers what has arrived, `unread`
//! bounds what nobody reads; `head`, `authority`, `chunked`, `conditional`, `direct`, `reply`,
//! `owned`, `prepared`, `variants`, `problem`, `date`, `negotiate` and `coding` are pure.
//! Everything runs on edge workers except the sweeper (`slots`), an OS thread that owns deadlines.
//!
//! This layer knows no route. It calls upward through [`Serve`] alone. It never blocks: the only
//! waits are may's, and no buffer set, lock or cache view is held over one except by a handler that
//! waits for a lane.

pub mod connection;
pub mod document;
pub mod message;
mod serve;
pub mod server;

pub use document::owned::OwnedBody;
pub use document::prepared::Prepared;
pub use document::variants::{CachePolicy, Variants};
pub use message::conditional::{EntityTag, Named, PreconditionFailed, Preconditions, Verdict};
pub use message::problem::Problem;
pub use message::request::{Method, Peer, Request};
pub use message::response::Response;
pub use serve::Serve;
pub use server::acceptor::Server;
pub use server::listener::{ListenError, Listener};
