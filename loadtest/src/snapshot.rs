//! The snapshot that every server sends.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::http;

/// Its path.
pub const PATH: &str = "/api/index/snapshot";

/// Headers that every server writes itself.
const OWN_HEADERS: [&str; 5] = [
    "date",
    "content-length",
    "connection",
    "server",
    "keep-alive",
];

/// A snapshot response: what the peers serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Header names and values in order, without those that every server writes itself.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Snapshot {
    /// Asks a server once.
    pub fn of(address: SocketAddr) -> Result<Self> {
        let answer = http::get(&format!("http://{address}{PATH}"), &[])?.expect(200)?;
        let mut headers = answer.headers;
        headers.retain(|(name, _)| !OWN_HEADERS.contains(&name.as_str()));
        headers.sort();
        let body = String::from_utf8(answer.body).context("a snapshot that is no text")?;
        Ok(Self { headers, body })
    }

    /// How many signals it shows.
    pub fn signals(&self) -> usize {
        let body = serde_json::from_str::<Value>(&self.body).unwrap_or_default();
        body["signals"].as_array().map_or(0, Vec::len)
    }
}
