//! The trait through which the HTTP server calls the service.

use std::sync::Arc;

use crate::http::News;
use crate::http::message::request::Request;
use crate::http::message::response::Response;

/// A service that answers requests. Called on an edge worker, from a coroutine with 64 KiB of
/// stack.
pub trait Serve: Send + Sync + 'static {
    /// Number of kinds of requests (routes) in the statistics. They are numbered from 1, and
    /// [`Response::is_of_kind`] sets the kind of a request.
    fn kinds(&self) -> usize {
        0
    }

    /// Tells that what streams show has changed; `None` if the service has no streams.
    fn news(&self) -> Option<News> {
        None
    }

    /// Header lines, each with its line end, for every response to a request from this origin,
    /// including refusals by the HTTP server. Called before [`Self::serve`]; must not park.
    fn lines_for(&self, _origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        None
    }

    /// Sends exactly one response through `reply`. May park (to wait for a lane); must not block.
    fn serve<'a>(&'a self, request: &Request<'_>, reply: &mut Response<'a>);
}
