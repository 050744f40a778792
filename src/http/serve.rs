//! The trait through which the HTTP server calls the service.

use std::sync::Arc;

use crate::http::message::request::Request;
use crate::http::message::response::Response;
use crate::rt::News;

/// What a stream shows. Who shows more is woken for what shows less as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shows {
    /// What every stream does.
    Common = 1,
    /// Also what its client has chosen.
    Chosen = 2,
}

/// What [`Serve::refresh_streams`] has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refreshed {
    /// Streams that show this have something new, and are to be woken.
    pub changed: Option<Shows>,
    /// Some streams show what changes without news.
    pub is_watching: bool,
}

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

    /// Makes anew what streams show, as far as nobody else does. Called on the thread `fan-out`
    /// before it wakes the streams, so it may take some milliseconds.
    fn refresh_streams(&self) -> Refreshed {
        Refreshed { changed: Some(Shows::Common), is_watching: false }
    }

    /// Header lines, each with its line end, for every response to a request from this origin,
    /// including refusals by the HTTP server. Called before [`Self::serve`]; must not park.
    fn lines_for(&self, _origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        None
    }

    /// Sends exactly one response through `reply`. May park (to wait for a lane); must not block.
    fn serve<'a>(&'a self, request: &Request<'_>, reply: &mut Response<'a>);
}
