//! The one trait through which the edge calls upwards.

use std::sync::Arc;

use crate::http::message::request::Request;
use crate::http::message::response::Response;

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
