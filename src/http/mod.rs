//! The HTTP/1.1 server, on may's coroutines. It knows no routes.
//!
//! `server` accepts connections, keeps the table of open ones and drains them. `connection` runs
//! one connection: reads, answers, writes. `message` parses requests and formats responses after
//! RFC 9110 and 9112. `document` holds documents and frames of streams serialised and compressed
//! ahead of time. The last two are pure. Everything runs on edge workers, except some OS threads:
//! the sweeper in `connection_table` wakes connections whose deadline has passed, `fan_out` decides
//! when streams send what has changed, and those of `stream_writer` send it.
//!
//! It calls the layers above only through [`Serve`]. It never blocks. All waits are may's, and no
//! buffer, lock or guard is held across one, except the buffers of a handler that waits for a lane.

pub mod connection;
pub mod document;
pub mod message;

pub mod server;
pub mod settings;

pub(crate) use crate::http::document::frames::{Frame, Frames, Group};
pub use crate::http::document::frames::{Framing, Taken};
pub use crate::http::document::prepared::Prepared;
pub(crate) use crate::http::message::conditional::{EntityTag, Named};
pub use crate::http::message::conditional::{Preconditions, Verdict};
pub use crate::http::message::problem::Problem;
#[cfg(test)]
pub(crate) use crate::http::message::problem::ProblemDocument;
pub(crate) use document::owned_body::OwnedBody;
pub(crate) use document::published::Made;
pub use document::published::{Published, PublishedJson};
pub(crate) use document::variants::{CachePolicy, Variants};
pub use message::head::Method;
pub use message::request::Request;
pub use message::response::Response;
pub(crate) use message::response::{StreamsFull, WantedStream};
pub use message::upload::Upload;
pub use server::acceptor::Server;
pub use server::listener::{ListenError, Listener};
pub(crate) use server::shared::Due;
pub use server::shared::Serve;
pub use settings::{BodyKind, BodyLimits};
