//! Settings of the edge: addresses, limits and deadlines of connections and requests.

use std::net::IpAddr;

/// Settings of the HTTP server.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// `127.0.0.1:8080`, `[::1]:8080` or `unix:PATH`. A socket passed by systemd takes precedence.
    pub listen: String,
    /// Number of edge workers; 0 means one for each core.
    pub edge_threads: usize,
    pub connections_max: usize,
    /// By client network; 0 means no limit. The default is a tenth of `connections_max`, so that it
    /// takes ten networks to use all.
    pub connections_per_address_max: usize,
    pub head_bytes_max: usize,
    pub headers_max: usize,
    pub body_bytes_max: usize,
    pub head_timeout_ms: u64,
    pub body_timeout_ms: u64,
    pub idle_timeout_ms: u64,
    pub unread_output_bytes_max: usize,
    pub unread_output_timeout_ms: u64,
    pub drain_timeout_ms: u64,
    pub streams_max: usize,
    /// By client network; 0 means no limit.
    pub streams_per_address_max: usize,
    /// Shortest time between two frames of a stream.
    pub stream_interval_ms: u64,
    /// How long a stream lives; a tenth more or less, so that streams do not end together.
    pub stream_life_ms: u64,
    /// Proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<IpAddr>,
    pub allowed_origins: Vec<String>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".into(),
            edge_threads: 0,
            connections_max: 10_000,
            connections_per_address_max: 1_000,
            head_bytes_max: 16 * 1024,
            headers_max: 100,
            body_bytes_max: 64 * 1024,
            head_timeout_ms: 10_000,
            body_timeout_ms: 20_000,
            idle_timeout_ms: 75_000,
            unread_output_bytes_max: 256 * 1024,
            unread_output_timeout_ms: 30_000,
            drain_timeout_ms: 20_000,
            // Half of the connections.
            streams_max: 5_000,
            streams_per_address_max: 64,
            stream_interval_ms: 1_000,
            stream_life_ms: 3_600_000,
            trusted_proxies: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}
