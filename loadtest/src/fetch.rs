//! The driver's own requests: the snapshot that every peer must serve, quotes, the simulator.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use openloop::request::live_prices_path;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::StatusCode;

use crate::error::Error;

/// Path of the snapshot.
pub const SNAPSHOT_PATH: &str = "/api/index/snapshot";

/// Symbols that one live-prices request may carry.
pub const SYMBOLS_PER_REQUEST: usize = 50;

/// Deadline of each of the driver's requests.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// Pause between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Headers that every server writes itself.
const OWN_HEADERS: [&str; 5] = ["date", "content-length", "connection", "server", "keep-alive"];

/// A snapshot response: what the peers serve.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Header names and values, without those that every server writes itself.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Snapshot {
    /// How many signals it shows.
    pub fn signals(&self) -> usize {
        let body = serde_json::from_str::<Value>(&self.body).unwrap_or_default();
        body["signals"].as_array().map_or(0, Vec::len)
    }

    /// Refuses a peer whose answer has another body, or other headers beside its own.
    ///
    /// # Errors
    /// The peer's answer is not this one.
    pub fn expect_from(&self, peer: &str, address: SocketAddr) -> Result<(), Error> {
        let sorted = |snapshot: &Self| {
            let mut headers: Vec<(String, String)> = snapshot.headers.clone();
            headers.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
            headers.sort();
            headers
        };
        let served = snapshot(address)?;
        match served {
            Some(served) if served.body == self.body && sorted(&served) == sorted(self) => Ok(()),
            Some(served) => {
                let (wanted, got) = (sorted(self), sorted(&served));
                let same = if served.body == self.body { "the same" } else { "another" };
                let what = format!("{peer} serves {same} body, headers {got:?} for {wanted:?}");
                Err(Error::Invalid(what))
            }
            None => Err(Error::Invalid(format!("{peer} does not serve the snapshot"))),
        }
    }
}

/// The simulator's counts since it started.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct SimulatorStats {
    /// Requests that were served, by endpoint.
    #[serde(default)]
    pub requests: BTreeMap<String, u64>,
    /// Requests that were turned away, by reason.
    #[serde(default)]
    pub rejected: BTreeMap<String, u64>,
    /// Most calls to broker A's quote endpoints within any second.
    #[serde(default)]
    pub max_quote_calls_in_1s: u64,
    /// What its clock reads, in milliseconds since 1970.
    pub now_ms: i64,
}

#[derive(Deserialize)]
struct LivePrices {
    quotes: Vec<Value>,
}

fn agent() -> Agent {
    Agent::config_builder()
        .timeout_global(Some(REQUEST_DEADLINE))
        .http_status_as_error(false)
        .build()
        .into()
}

fn http_error(url: &str) -> impl Fn(ureq::Error) -> Error {
    move |source| Error::Http { url: url.to_owned(), source: Box::new(source) }
}

/// Asks for the snapshot once; `None` if the answer is not 200.
pub fn snapshot(address: SocketAddr) -> Result<Option<Snapshot>, Error> {
    let url = format!("http://{address}{SNAPSHOT_PATH}");
    let mut response = agent().get(&url).call().map_err(http_error(&url))?;
    if response.status() != StatusCode::OK {
        return Ok(None);
    }
    let headers = response
        .headers()
        .iter()
        .filter(|(name, _)| !OWN_HEADERS.contains(&name.as_str()))
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.to_string(), value)
        })
        .collect();
    let body = response.body_mut().read_to_string().map_err(http_error(&url))?;
    Ok(Some(Snapshot { headers, body }))
}

/// Asks for the snapshot until it shows signals.
pub fn wait_for_signals(address: SocketAddr, deadline: Duration) -> Result<Snapshot, Error> {
    let started = Instant::now();
    let mut seen = "no snapshot";
    while started.elapsed() < deadline {
        match snapshot(address) {
            Ok(Some(snapshot)) if snapshot.signals() > 0 => return Ok(snapshot),
            Ok(Some(_)) => seen = "a snapshot without signals",
            Ok(None) | Err(_) => {}
        }
        thread::sleep(RETRY_INTERVAL);
    }
    let waited_s = deadline.as_secs();
    Err(Error::Invalid(format!("{address} has {seen} after {waited_s} s; clients see signals")))
}

/// A snapshot of the usual size, for measuring the peers without bhav.
pub fn made_up_snapshot() -> Snapshot {
    let sectors: Vec<Value> = (1..=12)
        .map(|number| {
            let (name, symbol) = (format!("Nifty Sector {number}"), format!("NSE:SECTOR {number}"));
            json!({"name": name, "symbol": symbol, "change_pct": 0.42})
        })
        .collect();
    let signals: Vec<Value> = (0..10)
        .map(|rank| {
            json!({
                "symbol": "NSE:APOLLOHOSP", "pattern": "bullish_tasuki_gap",
                "direction": "bullish", "confidence": 0.5441 - f64::from(rank) / 100.0,
                "as_of": "2026-10-13", "horizon_sessions": 5, "samples": 146,
                "hit_rate": 0.623, "base_rate": 0.5115, "simulated": true,
            })
        })
        .collect();
    let body = json!({
        "index1_price": 24_812.35, "index1_change": 0.31,
        "bankindex_price": 55_104.9, "bankindex_change": -0.12,
        "index2_price": 81_207.4, "index2_change": 0.28,
        "signals": signals, "signals_as_of": "2026-10-13", "sectors": sectors,
        "market": {
            "is_open": true, "phase": "open", "as_of_ist": "2026-10-14T11:00:00+05:30",
            "next_transition_at": "2026-10-14T15:15:00+05:30", "stale": false,
            "source": "broker_a", "simulated": true,
        },
    });
    let headers = [
        ("Content-Type", "application/json"),
        ("ETag", "\"5d41402abc4b2a76b9719d911017c592\""),
        ("Cache-Control", "public, no-cache"),
        ("Vary", "Accept-Encoding"),
    ];
    Snapshot {
        headers: headers.map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec(),
        body: body.to_string(),
    }
}

/// How many of `symbols` live-prices has a quote for, asked in as many requests as it takes.
pub fn quotes_served(address: SocketAddr, symbols: &[String]) -> Result<usize, Error> {
    let mut served = 0;
    for chunk in symbols.chunks(SYMBOLS_PER_REQUEST) {
        let path = live_prices_path(chunk.iter().map(String::as_str));
        let url = format!("http://{address}{path}");
        let mut response = agent().get(&url).call().map_err(http_error(&url))?;
        if response.status() == StatusCode::OK {
            let answer: LivePrices = response.body_mut().read_json().map_err(http_error(&url))?;
            served += answer.quotes.len();
        }
    }
    Ok(served)
}

/// Asks for `symbols` until every one has a quote; returns how many have at the deadline.
pub fn wait_for_quotes(
    address: SocketAddr,
    symbols: &[String],
    deadline: Duration,
) -> Result<usize, Error> {
    let started = Instant::now();
    loop {
        let served = quotes_served(address, symbols)?;
        if served == symbols.len() || started.elapsed() > deadline {
            return Ok(served);
        }
        thread::sleep(RETRY_INTERVAL);
    }
}

/// Reads the simulator's counts.
pub fn simulator_stats(simulator: &str) -> Result<SimulatorStats, Error> {
    let url = format!("{simulator}/sim/control/stats");
    let mut response = agent().get(&url).call().map_err(http_error(&url))?;
    response.body_mut().read_json().map_err(http_error(&url))
}

/// Makes every upstream answer only after `delay_ms`.
pub fn hang_upstreams(simulator: &str, delay_ms: u64) -> Result<(), Error> {
    delay(simulator, "*", delay_ms)
}

/// Makes one of the simulator's routes answer only after `delay_ms`.
pub fn delay(simulator: &str, route: &str, delay_ms: u64) -> Result<(), Error> {
    let url = format!("{simulator}/sim/control/faults");
    let fault = json!({"route": route, "fault": {"kind": "delay", "delay_ms": delay_ms}});
    let response = agent().post(&url).send_json(&fault).map_err(http_error(&url))?;
    accepted(&url, response.status())
}

/// Takes every fault back.
pub fn clear_faults(simulator: &str) -> Result<(), Error> {
    let url = format!("{simulator}/sim/control/faults");
    let response = agent().delete(&url).call().map_err(http_error(&url))?;
    accepted(&url, response.status())
}

fn accepted(url: &str, status: StatusCode) -> Result<(), Error> {
    if status.is_success() {
        return Ok(());
    }
    Err(Error::Invalid(format!("{url} answered {status}")))
}

/// Ordinary shares of the main exchange from the simulator's copy of broker A's instrument list
/// (which is always compressed), as `NSE:TICKER`.
pub fn listed_symbols(simulator: &str, wanted: usize) -> Result<Vec<String>, Error> {
    #[derive(Deserialize)]
    struct Row {
        tradingsymbol: String,
        instrument_type: String,
        segment: String,
    }
    let url = format!("{simulator}/a/instruments/NSE");
    let mut response =
        agent().get(&url).header("X-Kite-Version", "3").call().map_err(http_error(&url))?;
    accepted(&url, response.status())?;
    let compressed = response.body_mut().read_to_vec().map_err(http_error(&url))?;
    // Rows that do not parse are the simulator's to have, as the real list has them.
    Ok(csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(GzDecoder::new(compressed.as_slice()))
        .deserialize()
        .filter_map(Result::ok)
        .filter(|row: &Row| row.instrument_type == "EQ" && row.segment == "NSE")
        .map(|row| format!("NSE:{}", row.tradingsymbol))
        .take(wanted)
        .collect())
}
