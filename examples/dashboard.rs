//! Polls the index snapshot as a dashboard does, and prints it whenever it has changed.
//!
//! ```sh
//! cargo run --example dashboard -- http://127.0.0.1:8080        # until interrupted
//! cargo run --example dashboard -- http://127.0.0.1:8080 10     # ten answers
//! ```
//!
//! It uses nothing of the service's own library, so it can be copied.

// A client has a terminal to print to and nothing else to do while it waits.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

use std::error::Error;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;
use ureq::Agent;

const PATH: &str = "/api/index/snapshot";
const POLL_EVERY: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait. A server may ask for more, but nobody watches a silent screen for longer.
const WAIT_MAX_S: u64 = 60;

/// The shown part of the snapshot. Unknown members are ignored: later versions add some.
#[derive(Deserialize)]
struct Snapshot<'a> {
    // Exact decimals: their digits are parsed directly, without a binary float.
    #[serde(borrow)]
    index1_price: &'a RawValue,
    /// Null if the source sent none. Every percentage may be null.
    #[serde(borrow)]
    index1_change: Option<&'a RawValue>,
    #[serde(borrow)]
    bankindex_price: &'a RawValue,
    #[serde(borrow)]
    index2_price: &'a RawValue,
    market: Market,
}

#[derive(Deserialize)]
struct Market {
    as_of_ist: String,
    phase: String,
    stale: bool,
    #[serde(default)]
    simulated: bool,
}

/// An error as the service writes it (RFC 9457). `code` is stable; `detail` is for a person.
#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
}

/// The result of one poll.
enum Polled {
    Changed {
        etag: String,
        body: String,
    },
    Unchanged,
    /// Not now: ask again after this many seconds.
    Later {
        code: String,
        seconds: u64,
    },
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let url = args
        .next()
        .unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
    let answers = args
        .next()
        .and_then(|count| count.parse().ok())
        .unwrap_or(u64::MAX);
    match watch(&url, answers) {
        Ok(unchanged) => {
            println!("{unchanged} answers were 304: nothing had changed");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads `answers` answers, and returns how many of them were 304.
fn watch(url: &str, answers: u64) -> Result<u64, Box<dyn Error>> {
    let config = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false);
    let agent = config.build().new_agent();
    let (mut last_etag, mut unchanged, mut left) = (None, 0, answers);
    loop {
        let wait = match poll(&agent, url, last_etag.as_deref())? {
            Polled::Changed { etag, body } => {
                show(&serde_json::from_str(&body)?)?;
                last_etag = Some(etag);
                left -= 1;
                POLL_EVERY
            }
            Polled::Unchanged => {
                unchanged += 1;
                left -= 1;
                POLL_EVERY
            }
            Polled::Later { code, seconds } => {
                eprintln!("waiting: {code}");
                Duration::from_secs(seconds.min(WAIT_MAX_S))
            }
        };
        if left == 0 {
            return Ok(unchanged);
        }
        thread::sleep(wait);
    }
}

/// Requests the snapshot unless it still has this tag. The HTTP client does compression and
/// keep-alive.
fn poll(agent: &Agent, url: &str, etag: Option<&str>) -> Result<Polled, Box<dyn Error>> {
    let mut request = agent.get(format!("{url}{PATH}"));
    if let Some(etag) = etag {
        request = request.header("If-None-Match", etag);
    }
    let mut response = request.call()?;
    let header = |name| {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    match response.status().as_u16() {
        304 => Ok(Polled::Unchanged),
        200 => {
            let etag = header("ETag")
                .ok_or("a snapshot without an ETag")?
                .to_owned();
            let body = response.body_mut().read_to_string()?;
            Ok(Polled::Changed { etag, body })
        }
        status => {
            let seconds = header("Retry-After").and_then(|seconds| seconds.parse().ok());
            let body = response.body_mut().read_to_string()?;
            let Problem { code, detail } = serde_json::from_str(&body)?;
            match seconds {
                Some(seconds) => Ok(Polled::Later { code, seconds }),
                None => Err(format!("{status} {code}: {detail}").into()),
            }
        }
    }
}

fn show(snapshot: &Snapshot<'_>) -> Result<(), rust_decimal::Error> {
    let exact = |number: &RawValue| Decimal::from_str_exact(number.get());
    let change = match snapshot.index1_change {
        Some(change) => format!("{:+} %", exact(change)?),
        None => "change unknown".to_owned(),
    };
    let nifty = exact(snapshot.index1_price)?;
    let (bank, sensex) = (exact(snapshot.bankindex_price)?, exact(snapshot.index2_price)?);
    let Market {
        as_of_ist,
        phase,
        stale,
        simulated,
    } = &snapshot.market;
    let old = if *stale { " OLD" } else { "" };
    let made_up = if *simulated { " simulated" } else { "" };
    println!("{as_of_ist} {phase}{old}{made_up}");
    println!("  NIFTY 50 {nifty:>10} ({change})  NIFTY BANK {bank:>10}  SENSEX {sensex:>10}");
    Ok(())
}
