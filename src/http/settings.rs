//! Settings of the edge: addresses, limits and deadlines of connections and requests, and what the
//! limits are for one client or one body.

use std::net::IpAddr;

use crate::base::{Network, settings};
use crate::http::message::request::Peer;

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
        /// Of a file. A tradebook of 300,000 lines has 30 MB.
        pub upload_bytes_max: usize = 32 * 1024 * 1024,
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
        /// Networks of the proxies whose `X-Forwarded-For` counts.
        pub trusted_proxies: Vec<Network> = Vec::new(),
        pub allowed_origins: Vec<String> = Vec::new(),
    }
}

/// Longest time in which a file has to arrive: 32 MiB at 4.5 megabits a second.
const UPLOAD_TIMEOUT_MS: u64 = 60_000;

/// How a request's body is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// As a part of the request, which the handler reads.
    Whole,
    /// As a file, once the service has admitted the request by its head.
    Upload,
}

/// Limits of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    pub kind: BodyKind,
    pub bytes_max: usize,
    /// The time in which the whole body has to arrive, from the end of its head on.
    pub timeout_ms: u64,
}

/// Limits of the places that connections or streams take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceLimits {
    pub all: usize,
    pub of_a_network: usize,
}

impl HttpSettings {
    /// Limits of the bodies for which nobody has chosen others.
    pub fn body_limits(&self) -> BodyLimits {
        BodyLimits {
            kind: BodyKind::Whole,
            bytes_max: self.body_bytes_max,
            timeout_ms: self.body_timeout_ms,
        }
    }

    /// Limits of a file.
    pub fn upload_limits(&self) -> BodyLimits {
        BodyLimits {
            kind: BodyKind::Upload,
            bytes_max: self.upload_bytes_max,
            timeout_ms: UPLOAD_TIMEOUT_MS,
        }
    }

    /// Limits of connections where the table has room for `cap`, and the address that one of `peer`
    /// counts for. At least a tenth of all is left to other networks.
    pub(super) fn connection_limits(
        &self,
        cap: usize,
        peer: Peer,
    ) -> (Option<IpAddr>, PlaceLimits) {
        let max = self.connections_per_address_max.min(cap - cap / 10);
        let address = match peer {
            Peer::Ip(address) if max > 0 && !peer.is_trusted(&self.trusted_proxies) => {
                Some(address)
            }
            _ => None,
        };
        // The table limits them all.
        (
            address,
            PlaceLimits {
                all: usize::MAX,
                of_a_network: max,
            },
        )
    }

    /// Limits of streams, and the address that one of a client at `address` counts for. Programs of
    /// this machine and trusted proxies are not limited by address. At least a tenth of all
    /// connections is left to requests.
    pub(super) fn stream_limits(&self, address: Option<IpAddr>) -> (Option<IpAddr>, PlaceLimits) {
        let is_limited = |address: &IpAddr| {
            self.streams_per_address_max > 0
                && !address.is_loopback()
                && !Network::any_contains(&self.trusted_proxies, *address)
        };
        let cap = self.connections_max;
        let all = self.streams_max.min(cap - cap / 10);
        let limits = PlaceLimits {
            all,
            of_a_network: self.streams_per_address_max,
        };
        (address.filter(is_limited), limits)
    }
}
