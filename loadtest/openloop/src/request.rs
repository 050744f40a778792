//! The bytes that are sent: rendered once, before the run.

use std::net::SocketAddr;

/// Renders a GET. The headers are what a simple API client sends: few enough for may_minihttp,
/// which closes the connection at the seventeenth.
pub fn render_get(target: SocketAddr, path: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {target}\r\nUser-Agent: openloop/0.1\r\n\
         Accept: application/json\r\nAccept-Language: en-IN,en;q=0.9\r\n\r\n"
    )
    .into_bytes()
}
