//! Pieces of connections that this service opens by itself: addresses of a name, what TLS trusts,
//! and a stream that is plain or within TLS.
//!
//! All of it blocks, so it is used on OS threads alone. Deadlines of reads and writes are those of
//! the socket that the caller gives.

mod names;
mod stream;
mod tls;

#[cfg(test)]
pub(crate) use names::NAMES_QUEUE_MAX;
pub(crate) use names::Names;
pub(crate) use stream::Stream;
#[cfg(feature = "engines")]
pub(crate) use tls::roots_of;
pub(crate) use tls::{trusting, web_roots};
