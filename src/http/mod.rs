//! HTTP/1.1 on may's coroutines: the edge of the product. Knows no route.
//!
//! `server` accepts connections, keeps the table of the open ones and drains them. `connection`
//! runs one connection: reads, answers what has arrived, writes. `message` is requests and
//! responses as RFC 9110 and 9112 have them, `document` what is serialised and compressed ahead;
//! both are pure. Everything runs on edge workers but for the sweeper in `connection_table`, an OS
//! thread that ends what is late.
//!
//! Calls upwards through [`Serve`] alone. Never blocks. The only waits are may's, and no buffer,
//! lock or cache view is held over one, except by a handler that waits for a lane.

pub mod connection;
pub mod document;
pub mod message;
mod serve;
pub mod server;
pub mod settings;

pub use document::owned::OwnedBody;
pub use document::prepared::Prepared;
pub use document::published::{Made, PublishedJson};
pub use document::variants::{CachePolicy, Variants};
pub use message::conditional::{EntityTag, Named, PreconditionFailed, Preconditions, Verdict};
pub use message::problem::Problem;
#[cfg(test)]
pub(crate) use message::problem::ProblemDocument;
pub use message::request::{Method, Peer, Request};
pub use message::response::Response;
pub use serve::Serve;
pub use server::acceptor::Server;
pub use server::listener::{ListenError, Listener};
