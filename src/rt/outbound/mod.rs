//! Parts of connections that this service opens: addresses of a name, the roots that TLS trusts, a
//! socket with deadlines, a stream that is plain or within TLS, and the wait before the next try.
//!
//! Everything blocks, so it is used only on OS threads.

mod back_off;
mod stream;
mod timed;

pub(crate) use back_off::BackOff;
#[cfg(test)]
pub(crate) use stream::NAMES_QUEUE_MAX;
#[cfg(feature = "engines")]
pub(crate) use stream::roots_of;
pub(crate) use stream::{Names, Stream, trusting, web_roots};
pub(crate) use timed::{Timed, is_wait};
