//! Parts of connections that this service opens: addresses of a name, the roots that TLS trusts, a
//! socket with deadlines, and a stream that is plain or within TLS.
//!
//! Everything blocks, so it is used only on OS threads.

mod stream;

#[cfg(test)]
pub(crate) use stream::NAMES_QUEUE_MAX;
#[cfg(feature = "engines")]
pub(crate) use stream::roots_of;
pub(crate) use stream::{Names, Stream, Timed, is_wait, trusting, web_roots};
