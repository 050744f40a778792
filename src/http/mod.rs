//! Row 3: HTTP/1.1 on may. The edge of the product.
//!
//! `server` accepts, `conn` lives a connection's life, `turn` answers what has arrived, `unread`
//! bounds what nobody reads; `head`, `authority`, `chunked`, `conditional`, `direct`, `reply`,
//! `owned`, `prepared`, `variants`, `problem`, `date`, `negotiate` and `coding` are pure.
//! Everything runs on edge workers except the sweeper (`slots`), an OS thread that owns deadlines.
//!
//! This layer knows no route. It calls upward through [`Serve`] alone. It never blocks: the only
//! waits are may's, and no buffer set, lock or cache view is held over one except by a handler that
//! waits for a lane.

mod authority;
mod chunked;
pub mod coding;
mod conditional;
mod conn;
pub mod date;
mod direct;
pub mod head;
pub mod listen;
pub mod negotiate;
pub mod offline;
pub mod owned;
pub mod prepared;
pub mod problem;
pub mod reply;
pub mod request;
mod scratch;
pub mod server;
pub mod shared;
mod slots;
pub mod stats;
mod turn;
pub mod unread;
pub mod variants;

use std::sync::Arc;

/// What only the fuzzer reaches from outside.
#[doc(hidden)]
pub mod fuzzing {
    pub use super::chunked::{ChunkFault, Chunked};
}

pub use conditional::{EntityTag, Named, PreconditionFailed, Preconditions, Verdict};
pub use listen::{ListenError, Listener};
pub use owned::OwnedBody;
pub use prepared::Prepared;
pub use problem::Problem;
pub use reply::Reply;
pub use request::{Method, Peer, Request};
pub use server::Server;
pub use variants::{Manner, Variants};

/// What answers requests. Called on an edge worker, from a coroutine with 64 KiB of stack.
pub trait Serve: Send + Sync + 'static {
    /// How many kinds of requests are told apart in the statistics; they are numbered from 1, and
    /// [`Reply::is_of_kind`] names one.
    fn kinds(&self) -> usize {
        0
    }

    /// Header lines, each with its line end, that every answer to a request of this origin carries,
    /// refusals of this layer included. Asked before anything else; must not park.
    fn lines_for(&self, _origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        None
    }

    /// Sends exactly one response through `reply`. May park (a lane's ticket); must not block.
    fn serve<'a>(&'a self, request: &Request<'_>, reply: &mut Reply<'a>);
}
