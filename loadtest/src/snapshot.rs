//! The snapshot that every server sends.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::error::Error;
use crate::http;

/// Its path.
pub const PATH: &str = "/api/index/snapshot";

/// Headers that every server writes itself.
const OWN_HEADERS: [&str; 5] = ["date", "content-length", "connection", "server", "keep-alive"];

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
    pub fn of(address: SocketAddr) -> Result<Self, Error> {
        let answer = http::get(&format!("http://{address}{PATH}"), &[])?.expect(200)?;
        let mut headers = answer.headers;
        headers.retain(|(name, _)| !OWN_HEADERS.contains(&name.as_str()));
        headers.sort();
        let text = |_| Error::invalid("a snapshot that is no text");
        Ok(Self { headers, body: String::from_utf8(answer.body).map_err(text)? })
    }

    /// How many signals it shows.
    pub fn signals(&self) -> usize {
        let body = serde_json::from_str::<Value>(&self.body).unwrap_or_default();
        body["signals"].as_array().map_or(0, Vec::len)
    }

    /// One of the usual size, for measuring the peers without bhav.
    pub fn made_up() -> Self {
        let sectors = (1..=12).map(|number| {
            let (name, symbol) = (format!("Nifty Sector {number}"), format!("NSE:SECTOR {number}"));
            json!({"name": name, "symbol": symbol, "change_pct": 0.42})
        });
        let signals = (0..10).map(|rank| {
            json!({
                "symbol": "NSE:APOLLOHOSP", "pattern": "bullish_tasuki_gap",
                "direction": "bullish", "confidence": 0.5441 - f64::from(rank) / 100.0,
                "as_of": "2026-10-13", "horizon_sessions": 5, "samples": 146,
                "hit_rate": 0.623, "base_rate": 0.5115, "simulated": true,
            })
        });
        let body = json!({
            "index1_price": 24_812.35, "index1_change": 0.31,
            "bankindex_price": 55_104.9, "bankindex_change": -0.12,
            "index2_price": 81_207.4, "index2_change": 0.28,
            "signals": signals.collect::<Vec<_>>(), "signals_as_of": "2026-10-13",
            "sectors": sectors.collect::<Vec<_>>(),
            "market": {
                "is_open": true, "phase": "open", "as_of_ist": "2026-10-14T11:00:00+05:30",
                "next_transition_at": "2026-10-14T15:15:00+05:30", "stale": false,
                "source": "broker_a", "simulated": true,
            },
        });
        let headers = [
            ("cache-control", "public, no-cache"),
            ("content-type", "application/json"),
            ("etag", "\"5d41402abc4b2a76b9719d911017c592\""),
            ("vary", "Accept-Encoding"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { headers: headers.into(), body: body.to_string() }
    }
}
