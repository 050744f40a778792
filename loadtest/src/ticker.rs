//! Prices that broker A pushes: how long they take to a reader of the stream.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, ensure};
use openloop::events::StreamParser;
use openloop::request::render_get;
use serde_json::{Value, json};

use crate::figures::Slice;
use crate::requests::live_prices_path;
use crate::servers::Server;
use crate::{http, wait};

/// As many instruments as one connection of the broker carries, each with two ticks a second.
pub const SETTINGS: [(&str, &str); 2] = [
    ("BHAV_SIM_MORE_SHARES", "2545"),
    ("BHAV_SIM_PRICES_PER_S", "2"),
];

/// Most that broker A lets one connection subscribe.
const SUBSCRIBED_MAX: usize = 3_000;

/// Longest wait until everything that is wanted is subscribed and ticks.
const SUBSCRIBED_DEADLINE: Duration = Duration::from_secs(60);

/// Shares of which the reader of the stream gets quotes.
const READ: usize = 20;

/// Longest wait of a read: how often the reader looks whether it is to end.
const READ_TIMEOUT: Duration = Duration::from_millis(200);

/// Name of bhav's histogram, and of its classes among the values of a slice.
const PUBLISHED_BUCKET: &str = "bhav_ticker_publish_seconds_bucket{le=\"";
const PUBLISHED: &str = "published within ";

/// Name of bhav's count of ticks, there and here.
const TICKS: &str = "bhav_ticker_ticks_total";

/// The counters of bhav's metrics that a slice keeps the growth of.
pub fn counts(metrics: &str) -> BTreeMap<String, f64> {
    let lines = metrics.lines().filter_map(|line| {
        let (name, count) = line.rsplit_once(' ')?;
        let count = count.parse().ok()?;
        if name == TICKS {
            return Some((TICKS.to_owned(), count));
        }
        let class = name.strip_prefix(PUBLISHED_BUCKET)?.strip_suffix("\"}")?;
        Some((format!("{PUBLISHED}{class}"), count))
    });
    lines.collect()
}

/// Ticks that the service received, a second.
pub fn ticks_per_s(slice: &Slice) -> f64 {
    slice.value(TICKS) / slice.value("seconds")
}

/// A quantile of the times from the first tick of a batch to when requests can read its prices, in
/// milliseconds: within its class in proportion.
pub fn published_ms(slice: &Slice, quantile: f64) -> f64 {
    let classes = slice.values(PUBLISHED).filter_map(|(class, count)| {
        let seconds = if class == "+Inf" {
            f64::INFINITY
        } else {
            class.parse().ok()?
        };
        Some((seconds, count))
    });
    let mut classes: Vec<(f64, f64)> = classes.collect();
    classes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let all = classes.last().map_or(0.0, |(_, count)| *count);
    let (mut below_s, mut below) = (0.0, 0.0);
    for (within_s, count) in classes {
        if all > 0.0 && count >= quantile * all {
            let share = (quantile * all - below) / (count - below).max(1.0);
            return (below_s + (within_s - below_s) * share) * 1_000.0;
        }
        (below_s, below) = (within_s, count);
    }
    f64::NAN
}

/// Waits until the service's ticker has everything and prices flow; not at all where it is off.
pub fn wait_until_subscribed(server: &Server, instruments: usize) -> Result<()> {
    let wanted = instruments.min(SUBSCRIBED_MAX) as u64;
    let ready = || {
        let health = http::get(&server.url("/api/health"), &[])?.json()?;
        let Some(ticker) = health.pointer("/feeds/broker_a/ticker") else {
            return Ok(Some(()));
        };
        let all = ticker["subscribed"].as_u64() >= Some(wanted);
        Ok((all && ticker["live"] == true).then_some(()))
    };
    let all = wait::until(SUBSCRIBED_DEADLINE, ready)?;
    all.context("not everything that is wanted is subscribed")
}

/// A quote as an event of the stream brought it.
struct Shown {
    key: Key,
    at_ms: f64,
}

/// Symbol, price in paise, time.
type Key = (String, i64, String);

/// A client that reads quotes of some shares from the stream and notes when each price came.
pub struct QuoteReader {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Shown>>>,
}

impl QuoteReader {
    /// Begins to read, and lets the simulator remember what it sends of the same shares.
    pub fn start(server: &Server, instruments: &[String]) -> Result<Self> {
        let step = (instruments.len() / READ).max(1);
        let symbols: Vec<&String> = instruments.iter().rev().step_by(step).take(READ).collect();
        let watched = json!({ "symbols": symbols });
        server
            .simulator()?
            .control("POST", "ticker/watch", Some(&watched))?;
        let path =
            live_prices_path(symbols).replace("/api/portfolio/live-prices", "/api/index/stream");
        let stream = TcpStream::connect(server.address).context("open a stream")?;
        stream
            .set_read_timeout(Some(READ_TIMEOUT))
            .context("open a stream")?;
        (&stream)
            .write_all(&render_get(server.address, &path))
            .context("ask for a stream")?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || read(&stream, || stopped.load(Ordering::Relaxed)));
        Ok(Self { stop, thread })
    }

    /// Ends, and gives how long prices took from the simulator to the reader.
    pub fn end(self, server: &Server) -> Result<BTreeMap<String, f64>> {
        self.stop.store(true, Ordering::Relaxed);
        let shown = self
            .thread
            .join()
            .map_err(|_| anyhow!("the reader panicked"))??;
        let sent = server.simulator()?.control("GET", "ticker/sent", None)?;
        Ok(delays(&shown, &first_sent(&sent)))
    }
}

fn read(mut stream: &TcpStream, stopped: impl Fn() -> bool) -> Result<Vec<Shown>> {
    let (mut parser, mut room) = (StreamParser::default(), vec![0; 64 * 1024]);
    let (mut shown, mut is_first) = (Vec::new(), true);
    while !stopped() {
        let count = match stream.read(&mut room) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            read => read.context("read a stream")?,
        };
        ensure!(count > 0, "the service has ended a stream");
        let at_ms = wall_ms();
        let fed = parser.feed(&room[..count], |event| {
            // The first one has all prices, whatever their age.
            if event.name == b"quotes" && !std::mem::take(&mut is_first) {
                let data: Value = serde_json::from_slice(event.data).unwrap_or_default();
                let keys = data["quotes"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(key);
                shown.extend(keys.map(|key| Shown { key, at_ms }));
            }
        });
        fed.context("a stream")?;
    }
    Ok(shown)
}

/// The simulator has its own copy of the wall clock's time, in whole milliseconds.
fn wall_ms() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64() * 1e3)
}

/// Of a quote in an event, or of a price in the simulator's memory.
fn key(quote: &Value) -> Option<Key> {
    let paise = (quote["last_price"].as_f64()? * 100.0).round() as i64;
    Some((quote["symbol"].as_str()?.to_owned(), paise, quote["as_of"].as_str()?.to_owned()))
}

/// When each price was sent first.
fn first_sent(sent: &Value) -> HashMap<Key, f64> {
    let mut first = HashMap::new();
    for price in sent["sent"].as_array().into_iter().flatten() {
        if let (Some(key), Some(at_ms)) = (key(price), price["sent_ms"].as_f64()) {
            first.entry(key).or_insert(at_ms);
        }
    }
    first
}

/// What a slice keeps. A price that a call brought sooner than the tick is not a tick's.
fn delays(shown: &[Shown], sent: &HashMap<Key, f64>) -> BTreeMap<String, f64> {
    let of_ticks = shown
        .iter()
        .filter_map(|shown| Some(shown.at_ms - sent.get(&shown.key)?));
    let mut delays: Vec<f64> = of_ticks.filter(|delay_ms| *delay_ms >= 0.0).collect();
    delays.sort_by(f64::total_cmp);
    let at = |quantile: f64| {
        let place = (quantile * delays.len() as f64) as usize;
        delays
            .get(place.min(delays.len().saturating_sub(1)))
            .copied()
            .unwrap_or(f64::NAN)
    };
    let values = [
        ("shown", shown.len() as f64),
        ("of ticks", delays.len() as f64),
        ("delay p50 ms", at(0.5)),
        ("delay p99 ms", at(0.99)),
        ("delay max ms", at(1.0)),
    ];
    values
        .map(|(name, value)| (format!("quotes {name}"), value))
        .into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Shown, counts, delays, first_sent, published_ms};
    use crate::figures::Slice;

    #[test]
    fn quantiles_of_publication_lie_within_their_classes() {
        let metrics = "# HELP bhav_ticker_publish_seconds x\n\
            bhav_ticker_publish_seconds_bucket{le=\"0.1\"} 10\n\
            bhav_ticker_publish_seconds_bucket{le=\"0.25\"} 90\n\
            bhav_ticker_publish_seconds_bucket{le=\"0.5\"} 100\n\
            bhav_ticker_publish_seconds_bucket{le=\"+Inf\"} 100\n\
            bhav_ticker_ticks_total 600\n";
        let slice = Slice {
            read: counts(metrics),
            ..Slice::default()
        };
        assert_eq!(slice.value("bhav_ticker_ticks_total"), 600.0);
        assert!((published_ms(&slice, 0.5) - 175.0).abs() < 1e-6);
        assert!((published_ms(&slice, 0.99) - 475.0).abs() < 1e-6);
        assert!(published_ms(&Slice::default(), 0.5).is_nan());
    }

    #[test]
    fn a_delay_counts_from_the_first_tick_with_the_price_and_none_from_a_call() {
        let price = |rupees: f64, as_of: &str, at: u64| {
            let symbol = "NSE:A";
            json!({"symbol": symbol, "last_price": rupees, "as_of": as_of, "sent_ms": at})
        };
        let sent = json!({"sent": [
            price(10.05, "t1", 1_000), price(10.05, "t1", 1_500), price(10.1, "t2", 2_000),
        ]});
        let shown = |paise, as_of: &str, at_ms| Shown {
            key: ("NSE:A".to_owned(), paise, as_of.to_owned()),
            at_ms,
        };
        let shown = [
            shown(1_005, "t1", 1_300.0),
            // A call was sooner, and one brought what no tick had.
            shown(1_010, "t2", 1_900.0),
            shown(1_015, "t3", 3_000.0),
        ];
        let found = delays(&shown, &first_sent(&sent));
        assert_eq!((found["quotes shown"], found["quotes of ticks"]), (3.0, 1.0));
        assert_eq!(found["quotes delay p99 ms"], 300.0);
    }
}
