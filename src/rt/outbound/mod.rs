//! Pieces of connections that this service opens by itself: addresses of a name, what TLS trusts,
//! and a stream that is plain or within TLS.
//!
//! All of it blocks, so it is used on OS threads alone. Deadlines of reads and writes are those of
//! the socket that the caller gives.

mod stream;

#[cfg(test)]
pub(crate) use stream::NAMES_QUEUE_MAX;
#[cfg(feature = "engines")]
pub(crate) use stream::roots_of;
pub(crate) use stream::{Names, Stream, trusting, web_roots};
