//! The trait through which the HTTP server calls the service.

use std::net::IpAddr;
use std::sync::Arc;

use crate::base::settings;
use crate::http::message::request::Request;
use crate::http::message::response::Response;
use crate::rt::News;

/// Streams that are woken together: those that send only what every stream sends, or a part of
/// those that send more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group(u8);

impl Group {
    /// Number of groups. A set of them is a word, with a bit each.
    pub(crate) const COUNT: usize = 64;

    /// The streams that send only what every stream sends.
    pub(crate) const COMMON: Self = Self(0);

    /// The group of the streams with this content of their own. Contents are spread evenly.
    pub(crate) fn of_content(number: usize) -> Self {
        Self(1 + (number % (Self::COUNT - 1)) as u8)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) fn bit(self) -> u64 {
        1 << self.0
    }
}

/// Which streams may send something: those of [`Group::COMMON`], and all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub(crate) common: bool,
    pub(crate) others: bool,
}

/// A service that answers requests. Called on an edge worker, from a coroutine with 64 KiB of
/// stack.
pub trait Serve: Send + Sync + 'static {
    /// Number of kinds of requests (routes) in the statistics. They are numbered from 1, and
    /// [`Response::is_of_kind`] sets the kind of a request.
    fn kinds(&self) -> usize {
        0
    }

    /// Signals that the content of streams has changed; `None` if the service has no streams.
    fn news(&self) -> Option<News> {
        None
    }

    /// Updates the content of streams that no other thread updates, and calls `wake` for each group
    /// of streams that is `due` and has something new, as soon as it has it. Returns whether some
    /// streams send content that changes without news. The thread `fan-out` calls it, so it may
    /// take some milliseconds.
    fn refresh_streams(&self, due: Due, wake: &mut dyn FnMut(Group)) -> bool {
        if due.common {
            wake(Group::COMMON);
        }
        false
    }

    /// Header lines, each with its line end, for every response to a request from this origin,
    /// including refusals by the HTTP server. Called before [`Self::serve`]; must not park.
    fn lines_for(&self, _origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        None
    }

    /// Sends exactly one response through `reply`. May park (to wait for a lane); must not block.
    fn serve<'a>(&'a self, request: &Request<'_>, reply: &mut Response<'a>);
}

// ---- Settings
//
// Settings of the edge: addresses, limits and deadlines of connections and requests.

settings! {
    /// Settings of the HTTP server.
    pub struct HttpSettings {
        /// `127.0.0.1:8080`, `[::1]:8080` or `unix:PATH`. A socket passed by systemd takes
        /// precedence.
        pub listen: String = "127.0.0.1:8080".into(),
        /// Number of edge workers; 0 means one for each core.
        pub edge_threads: usize = 0,
        pub connections_max: usize = 10_000,
        /// By client network; 0 means no limit. The default is a tenth of `connections_max`, so
        /// that it takes ten networks to use all.
        pub connections_per_address_max: usize = 1_000,
        pub head_bytes_max: usize = 16 * 1024,
        pub headers_max: usize = 100,
        pub body_bytes_max: usize = 64 * 1024,
        pub head_timeout_ms: u64 = 10_000,
        pub body_timeout_ms: u64 = 20_000,
        pub idle_timeout_ms: u64 = 75_000,
        pub unread_output_bytes_max: usize = 256 * 1024,
        pub unread_output_timeout_ms: u64 = 30_000,
        pub drain_timeout_ms: u64 = 20_000,
        // Half of the connections.
        pub streams_max: usize = 5_000,
        /// By client network; 0 means no limit.
        pub streams_per_address_max: usize = 64,
        /// Different choices of symbols that streams show quotes of.
        // At most 40 KiB each.
        pub stream_choices_max: usize = 1_000,
        /// Shortest time between two frames of a stream.
        pub stream_interval_ms: u64 = 1_000,
        /// How long a stream lives; a tenth more or less, so that streams do not end together.
        pub stream_life_ms: u64 = 3_600_000,
        /// Proxies whose `X-Forwarded-For` counts.
        pub trusted_proxies: Vec<IpAddr> = Vec::new(),
        pub allowed_origins: Vec<String> = Vec::new(),
    }
}
