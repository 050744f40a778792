//! Parts of connections that this service opens: addresses of a name, the roots that TLS trusts,
//! and a stream that is plain or within TLS.
//!
//! Everything blocks, so it is used only on OS threads. Deadlines of reads and writes are those of
//! the caller's socket.

mod stream;

#[cfg(test)]
pub(crate) use stream::NAMES_QUEUE_MAX;
#[cfg(feature = "engines")]
pub(crate) use stream::roots_of;
pub(crate) use stream::{Names, Stream, trusting, web_roots};
