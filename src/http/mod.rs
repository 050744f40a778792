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

use std::sync::Arc;

/// What only the fuzzer reaches from outside.
#[doc(hidden)]
pub mod fuzzing {
    pub use super::message::chunked::{ChunkFault, Chunked};
}

pub use document::owned::OwnedBody;
pub use document::prepared::Prepared;
pub use document::variants::{CachePolicy, Variants};
pub use message::conditional::{EntityTag, Named, PreconditionFailed, Preconditions, Verdict};
pub use message::problem::Problem;
pub use message::request::{Method, Peer, Request};
pub use message::response::Response;
pub use server::acceptor::Server;
pub use server::listener::{ListenError, Listener};

/// What answers requests. Called on an edge worker, from a coroutine with 64 KiB of stack.
pub trait Serve: Send + Sync + 'static {
    /// How many kinds of requests are told apart in the statistics; they are numbered from 1, and
    /// [`Response::is_of_kind`] names one.
    fn kinds(&self) -> usize {
        0
    }

    /// Header lines, each with its line end, that every answer to a request of this origin carries,
    /// refusals of this layer included. Asked before anything else; must not park.
    fn lines_for(&self, _origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        None
    }

    /// Sends exactly one response through `reply`. May park (a lane's ticket); must not block.
    fn serve<'a>(&'a self, request: &Request<'_>, reply: &mut Response<'a>);
}
pub mod connection;
pub mod document;
pub mod message;
pub mod server;
