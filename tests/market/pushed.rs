//! Quotes pushed by a source are checked like a poll's, although nobody requested them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bhav::app::assemble;
use bhav::base::{Clock, ManualClock, Quote, Source, Symbol};
use bhav::brokers::{Batch, CallTimes, Push};
use bhav::cache::{L1, Peek};
use bhav::config::Config;
use bhav::http::PublishedJson;
use bhav::ops::state_lock::InstanceLock;
use bhav::warmers::Warmers;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use sonic_rs::{JsonValueTrait, Value};

use crate::support::{TRADING, samples, until};

const LEADS: [&str; 3] = ["NSE:NIFTY 50", "NSE:NIFTY BANK", "BSE:SENSEX"];

/// The scheduler alone, on a clock that stands still, without a feed to poll.
struct Stage {
    warmers: Option<Warmers>,
    push: Push,
    clock: ManualClock,
    l1: Arc<L1>,
    snapshot: Arc<PublishedJson>,
    indices: Vec<String>,
    _state: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut config = Config {
            state_dir: state.path().into(),
            ..Config::default()
        };
        config.public.enabled = false;
        let clock = Clock::manual(TRADING.parse().unwrap());
        let lock = Arc::new(InstanceLock::of(&config.state_dir));
        let assembled = assemble(&config, &lock, &clock).unwrap();
        let (context, mailbox) = (assembled.context, assembled.mailbox);
        let reporter = assembled.reporter;
        let (l1, snapshot) = (Arc::clone(&context.l1), Arc::clone(&context.snapshot));
        let indices = context
            .indices
            .all()
            .map(|index| index.symbol.to_string())
            .collect();
        let push = mailbox.push(Source::BrokerA);
        let warmers = Some(Warmers::start(context, mailbox, reporter).unwrap());
        Self {
            warmers,
            push,
            clock,
            l1,
            snapshot,
            indices,
            _state: state,
        }
    }

    fn quote(&self, symbol: &str, price: &str, ago_s: i64) -> Quote {
        Quote {
            previous_close: "24000".parse().ok(),
            asked: self.clock.now(),
            simulated: true,
            ..samples::quote(symbol, price, self.ago(ago_s))
        }
    }

    fn ago(&self, seconds: i64) -> Timestamp {
        self.clock.now() - SignedDuration::from_secs(seconds)
    }

    fn batch(&self, quotes: Vec<Quote>) -> Box<Batch> {
        let now = self.clock.now();
        let asked_mono_ms = self.clock.monotonic_ms();
        let times = CallTimes {
            asked: now,
            asked_mono_ms,
            answered: now,
        };
        let (simulated, pushed) = (true, true);
        Box::new(Batch {
            quotes,
            times,
            symbols_max: 500,
            simulated,
            pushed,
            ..Batch::default()
        })
    }

    /// Pushes a batch as soon as the mailbox has room.
    fn push(&self, batch: Box<Batch>) {
        let mut left = Some(batch);
        until("room in the mailbox", || match (self.push)(left.take().unwrap()) {
            Ok(()) => Some(()),
            Err(refused) => {
                left = Some(refused);
                None
            }
        });
    }

    /// The cached quote, if it is fresh.
    fn held(&self, symbol: &str) -> Option<Quote> {
        match self.l1.peek(symbol, self.clock.monotonic_ms()) {
            Peek::Known {
                quote,
                stale: false,
                ..
            } => Some(quote),
            _ => None,
        }
    }

    fn price(&self, symbol: &str, price: &str) -> Quote {
        let price = price.parse().unwrap();
        until("the pushed price", || self.held(symbol).filter(|held| held.last_price == price))
    }

    fn shown(&self) -> Option<Value> {
        let published = self.snapshot.load();
        sonic_rs::from_slice(published.as_ref()?.json()).ok()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(warmers) = self.warmers.take() {
            warmers.stop();
        }
    }
}

#[test]
fn pushed_quotes_are_shown_with_their_time_their_source_and_the_simulators_mark() {
    let stage = Stage::new();
    let leads = LEADS.map(|lead| stage.quote(lead, "24100.05", 1)).into();
    stage.push(stage.batch(leads));
    let held = stage.price(LEADS[0], "24100.05");
    assert_eq!((held.as_of, held.source), (stage.ago(1), Source::BrokerA));
    assert!(held.simulated && held.delay_s.is_none());
    let shown = until("a snapshot", || stage.shown());
    let market = &shown["market"];
    assert_eq!(market["source"].as_str(), Some("broker_a"));
    assert_eq!(market["stale"].as_bool(), Some(false));
    assert_eq!(market["simulated"].as_bool(), Some(true));
}

#[test]
fn a_share_pushed_alone_is_taken_and_what_is_left_out_is_not_unknown() {
    let stage = Stage::new();
    stage.push(stage.batch(LEADS.map(|lead| stage.quote(lead, "24100", 1)).into()));
    stage.price(LEADS[1], "24100");
    let mut batch = stage.batch(vec![stage.quote("NSE:INFY", "24010.10", 1)]);
    batch.unknown = vec![Symbol::parse("NSE:TCS").unwrap()];
    stage.push(batch);
    stage.price("NSE:INFY", "24010.10");
    // A push is processed as a whole, so nothing more follows.
    stage.push(stage.batch(vec![stage.quote("NSE:WIPRO", "24020", 1)]));
    stage.price("NSE:WIPRO", "24020");
    assert!(stage.held(LEADS[0]).is_some());
}

#[test]
fn pushes_in_any_order_leave_the_newest_time() {
    let orders = [
        [3, 2, 1],
        [3, 1, 2],
        [2, 3, 1],
        [2, 1, 3],
        [1, 3, 2],
        [1, 2, 3],
    ];
    let stage = Stage::new();
    for (turn, order) in orders.into_iter().enumerate() {
        stage.clock.advance_ms(10_000);
        for ago_s in order {
            let price = format!("{}", 24_000 + 10 * turn as i64 - ago_s);
            let quotes = LEADS.map(|lead| stage.quote(lead, &price, ago_s)).into();
            stage.push(stage.batch(quotes));
        }
        // This batch is behind all of them.
        let marker = format!("{}.5", 24_000 + turn);
        stage.push(stage.batch(vec![stage.quote("NSE:INFY", &marker, 1)]));
        stage.price("NSE:INFY", &marker);
        let held = stage.held(LEADS[0]).unwrap();
        assert_eq!(held.as_of, stage.ago(1), "{order:?}");
        assert_eq!(held.last_price, (24_000 + 10 * turn as i64 - 1).into(), "{order:?}");
    }
}

/// Reads the quote of an index and then the snapshot, as fast as possible.
#[test]
fn the_snapshot_shows_an_index_before_its_quote_does() {
    const BATCHES: i64 = 300;
    let stage = Stage::new();
    let (l1, snapshot, ended) = (&stage.l1, &stage.snapshot, &AtomicBool::new(false));
    let now_mono_ms = stage.clock.monotonic_ms();
    let read = || {
        let mut pairs = Vec::new();
        while !ended.load(Ordering::Relaxed) {
            let Peek::Known { quote, .. } = l1.peek(LEADS[0], now_mono_ms) else {
                continue;
            };
            let published = snapshot.load();
            let Some(published) = published.as_ref() else {
                continue;
            };
            if pairs.last() != Some(&(quote.last_price, published.number())) {
                let json: Value = sonic_rs::from_slice(published.json()).unwrap();
                let shown = Decimal::try_from(json["index1_price"].as_f64().unwrap()).unwrap();
                assert!(shown >= quote.last_price, "{} and then {shown}", quote.last_price);
                pairs.push((quote.last_price, published.number()));
            }
        }
        pairs.len()
    };
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(read);
        for number in 0..BATCHES {
            let price = format!("{}", 24_000 + number);
            let quotes = stage
                .indices
                .iter()
                .map(|index| stage.quote(index, &price, 1));
            stage.push(stage.batch(quotes.collect()));
            until("the batch, or the reader's verdict", || {
                let held = stage.held(LEADS[0]).map(|held| held.last_price);
                (held == price.parse().ok() || reader.is_finished()).then_some(())
            });
            stage.clock.advance_ms(1_000);
        }
        ended.store(true, Ordering::Relaxed);
        reader.join()
    });
    assert!(seen.expect("the snapshot is not behind") > 1);
}
