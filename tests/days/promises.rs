//! The promises about prices and calls, checked after every step against what the exchange itself
//! says.

use std::collections::{HashMap, HashSet, VecDeque};

use bhav::base::{ManualClock, Quote, Source, Symbol};
use bhav::cache::Peek;
use bhav::market::IndexList;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use sonic_rs::JsonValueTrait;

use super::dates::Hours;
use super::world::{Client, Node, World};

/// Broker A allows one quote call a second.
const CALLS_APART_MS: u64 = 1_000;
/// A price of a second is shown in whole seconds and travels for a fraction of one.
const SLACK_MS: i64 = 2_500;
/// Two polls and the grace of `docs/feeds.md`, by source.
const BROKER_A_MS: i64 = 2 * 1_050 + 1_500;
/// A round of the sectors and the watch list beside the leading indices.
const PUBLIC_MS: i64 = 9 * 15_000 + 7_000;
/// A source's delay below this is not shown, so an unmarked price of it may be as much older.
const DELAY_UNSHOWN_MS: i64 = 60_000;
/// How much earlier than its time a price may be that has no time of its own.
const UNTIMED_S_MAX: i64 = 3;
/// A killed process may not have kept yet what it showed within this time: a write's interval, and
/// the time that a write takes.
const UNKEPT: SignedDuration = SignedDuration::from_secs(3);
/// By then after its close a source that is asked at rest has been asked for it.
const SETTLES: SignedDuration = SignedDuration::from_secs(150);
/// A phase is shown within this time of its beginning.
const PHASE_SHOWN_MS: i64 = 3_000;
/// Times of the future are refused beyond this.
const AHEAD: SignedDuration = SignedDuration::from_secs(5);

/// What is remembered of a symbol.
struct Shown {
    as_of: Timestamp,
    price: Decimal,
    /// What was shown lately: since when, and its time. The first of them is kept.
    lately: VecDeque<(Timestamp, Timestamp)>,
}

impl Shown {
    fn note(&mut self, now: Timestamp, as_of: Timestamp, price: Decimal) {
        (self.as_of, self.price) = (as_of, price);
        self.lately.push_back((now, as_of));
        self.forget(now);
    }

    /// Forgets what was followed by something that is kept.
    fn forget(&mut self, now: Timestamp) {
        while self
            .lately
            .get(1)
            .is_some_and(|(since, _)| *since <= now - UNKEPT)
        {
            self.lately.pop_front();
        }
    }
}

pub struct Promises {
    clock: ManualClock,
    hours: Hours,
    /// As a service expects them that is not told of a change.
    hours_before: Hours,
    /// Whether nothing trades, of which the service does not know.
    is_holiday: bool,
    symbols: Vec<Symbol>,
    shown: HashMap<Symbol, Shown>,
    /// Whether prices of this source lagged since the process began.
    has_lagged: bool,
    /// Or stood. What has no time of its own is then taken for a price of the answer.
    has_stood: bool,
    /// Or had a time of the future. Prices that lag may then have a time that can be believed.
    is_ahead: bool,
    /// A share that is traded for the first time. Each source says another close before it.
    listed: Option<Symbol>,
    /// Shares that were halted since the process began. What stands is no older than its halt.
    halted: HashSet<Symbol>,
    called_mono_ms: Option<u64>,
    looked_mono_ms: u64,
    stored: u64,
    documents: u64,
    /// The primary index of the snapshot, and whether it is marked.
    document: Option<(Quote, bool)>,
    /// The phase that the snapshot shows.
    phase: String,
    client: Option<Client>,
    pub calls: u64,
    pub looks: u64,
    pub prices: u64,
}

impl Promises {
    /// Of the indices, the sectors and these.
    pub fn new(world: &World, date: Date, also: &[&str]) -> Self {
        let indices = IndexList::embedded();
        let mut symbols: Vec<Symbol> = indices.all().map(|index| index.symbol.clone()).collect();
        symbols.extend(also.iter().map(|symbol| Symbol::parse(symbol).unwrap()));
        Self {
            clock: world.clock.share(),
            hours: world.dates.hours(date),
            hours_before: world.dates.hours_before(date),
            is_holiday: world.dates.is_unknown_holiday(date),
            symbols,
            shown: HashMap::new(),
            has_lagged: false,
            has_stood: false,
            is_ahead: false,
            listed: None,
            halted: HashSet::new(),
            called_mono_ms: None,
            looked_mono_ms: 0,
            stored: 0,
            documents: 0,
            document: None,
            phase: String::new(),
            client: None,
            calls: 0,
            looks: 0,
            prices: 0,
        }
    }

    /// What is looked at from now on is of this date.
    pub fn go_to(&mut self, world: &World, date: Date) {
        self.hours = world.dates.hours(date);
        self.hours_before = world.dates.hours_before(date);
        self.is_holiday = world.dates.is_unknown_holiday(date);
    }

    /// A process begins, after a clean stop, a kill, or without what the one before kept.
    pub fn begin(&mut self, killed: bool, kept: bool) {
        let now = self.clock.now();
        if !kept {
            self.shown.clear();
        }
        if killed {
            self.shown.retain(|_, shown| {
                shown.forget(now);
                // The first price that was ever shown may not have been kept either.
                shown.lately.front().is_some_and(|(since, as_of)| {
                    shown.as_of = *as_of;
                    *since <= now - UNKEPT
                })
            });
        }
        for shown in self.shown.values_mut() {
            shown.price = Decimal::ZERO;
            shown.lately = VecDeque::from([(Timestamp::UNIX_EPOCH, shown.as_of)]);
        }
        (self.stored, self.documents) = (u64::MAX, 0);
        (self.document, self.client) = (None, None);
        (self.has_lagged, self.has_stood, self.is_ahead) = (false, false, false);
        self.halted.clear();
    }

    /// The trading of this share, if any, is halted.
    pub fn halted(&mut self, symbol: Option<&str>) {
        self.halted
            .extend(symbol.map(|symbol| Symbol::parse(symbol).unwrap()));
    }

    /// This share, if any, is traded for the first time.
    pub fn listed(&mut self, symbol: Option<&str>) {
        self.listed = symbol.map(|symbol| Symbol::parse(symbol).unwrap());
    }

    /// A fault is set, or still is when a process begins.
    pub fn set(&mut self, fault: &str) {
        let is = |kind: &str| fault.contains(kind);
        self.has_lagged |= is("lag");
        self.has_stood |= is("lag") || is("mute_price");
        self.is_ahead |= is("future_time");
    }

    /// A fault is set anew. A price that stands leaps to that of the moment, as one that lags.
    pub fn set_again(&mut self, fault: &str) {
        self.has_lagged |= fault.contains("mute_price");
    }

    /// After a step.
    pub fn look(&mut self, world: &World, node: &Node) {
        self.look_at_calls(world);
        let state = node.api.state();
        let now_mono_ms = self.clock.monotonic_ms();
        if self.looked_mono_ms == now_mono_ms && self.stored == state.l1.stored() {
            return;
        }
        (self.looked_mono_ms, self.stored) = (now_mono_ms, state.l1.stored());
        self.looks += 1;
        for at in 0..self.symbols.len() {
            let symbol = self.symbols[at].clone();
            if let Peek::Known {
                quote,
                stale,
                vouched,
                ..
            } = state.l1.peek(symbol.as_str(), now_mono_ms)
            {
                self.look_at_price(world, &quote, stale, vouched.mono_ms == i64::MIN);
            }
        }
        self.look_at_document(world, node);
    }

    fn look_at_calls(&mut self, world: &World) {
        for (path, at_mono_ms) in world.peer.take_asked() {
            world.note(&format!("{path} is called"));
            if !["/a/quote", "/a/quote/ohlc", "/a/quote/ltp"].contains(&path.as_str()) {
                continue;
            }
            self.calls += 1;
            let before = self.called_mono_ms.replace(at_mono_ms);
            let apart_ms = before.map_or(u64::MAX, |before| at_mono_ms - before);
            assert!(apart_ms >= CALLS_APART_MS, "two calls of broker A within {apart_ms} ms");
        }
    }

    /// `restored`: no source has vouched for it in this process, and how its time came about is not
    /// known any more.
    fn look_at_price(&mut self, world: &World, quote: &Quote, stale: bool, restored: bool) {
        let (symbol, now) = (quote.symbol.as_str(), self.clock.now());
        let shown = self.shown.get(&quote.symbol);
        if let Some(before) = shown {
            let at = before.as_of;
            assert!(quote.as_of >= at, "{symbol}: {} after {at} went back", quote.as_of);
        }
        assert!(quote.as_of <= now + AHEAD, "{symbol}: {} is of the future", quote.as_of);
        if shown
            .is_none_or(|before| (before.as_of, before.price) != (quote.as_of, quote.last_price))
        {
            self.prices += 1;
            world.note(&format!("{symbol} {} as of {}", quote.last_price, quote.as_of));
            if !restored {
                self.expect_true(world, quote);
            }
            let shown = self
                .shown
                .entry(quote.symbol.clone())
                .or_insert_with(|| Shown {
                    as_of: quote.as_of,
                    price: quote.last_price,
                    lately: VecDeque::new(),
                });
            shown.note(now, quote.as_of, quote.last_price);
        }
        if !stale {
            self.expect_young(world, quote);
        }
    }

    /// The price is what the exchange had at its time. Broker A's spare route names no times: an
    /// index gets that of the first answer with its price and shares get the index's, so such a
    /// price may be of a later second, and of no earlier one.
    fn expect_true(&self, world: &World, quote: &Quote) {
        // What stood in a halt has the index's time.
        let has_stood = self.has_stood || self.halted.contains(&quote.symbol);
        if !quote.timed && has_stood || self.has_lagged && self.is_ahead {
            return;
        }
        let age_s = self.clock.now().duration_since(quote.as_of).as_secs();
        let reach = if quote.timed {
            0..=0
        } else {
            -UNTIMED_S_MAX..=age_s
        };
        self.expect_own_previous_close(world, quote);
        let is_that_of = |by_s: i64| {
            let at = quote.as_of + SignedDuration::from_secs(by_s);
            world.peer.price(quote.symbol.as_str(), at) == Some(quote.last_price.round_dp(2))
        };
        assert!(reach.clone().any(is_that_of), "not its price in {reach:?} s: {quote:?}");
    }

    /// The previous close is that of the price's own session, or none.
    fn expect_own_previous_close(&self, world: &World, quote: &Quote) {
        let symbol = quote.symbol.as_str();
        // A time of the future is of no session.
        if self.listed.as_ref() == Some(&quote.symbol) || self.is_ahead {
            return;
        }
        let own = world.peer.previous_close(symbol, quote.as_of);
        let said = quote.previous_close.map(|close| close.round_dp(2));
        assert!(said.is_none() || said == own, "{symbol}: not {own:?} before it: {quote:?}");
    }

    /// An unmarked price is no older than its source allows, and after the close it is the close.
    fn expect_young(&self, world: &World, quote: &Quote) {
        let now = self.clock.now();
        let symbol = quote.symbol.as_str();
        let Hours {
            opening,
            freeze,
            closed,
        } = self.hours;
        // A service that is not told of other hours expects the usual ones.
        if !world.is_told.get() && now >= freeze.min(self.hours_before.freeze) {
            return;
        }
        if now >= opening && now < freeze {
            if self.halted.contains(&quote.symbol) {
                return;
            }
            let delay_ms = Self::delay(quote).as_millis() as i64;
            let unshown_ms = if self.has_lagged { DELAY_UNSHOWN_MS } else { 0 };
            let limit_ms = match quote.source {
                Source::BrokerA => BROKER_A_MS,
                Source::Public => PUBLIC_MS,
            };
            // Before the opening nothing could move.
            let age_ms = now.duration_since(quote.as_of.max(opening)).as_millis() as i64;
            let most_ms = limit_ms + delay_ms + unshown_ms + SLACK_MS;
            // A price that comes again without a time keeps its first one.
            let is_recent = || {
                let mut seconds = 0..=most_ms / 1_000;
                let price = Some(quote.last_price.round_dp(2));
                let at = |by_s| now - SignedDuration::from_secs(by_s);
                seconds.any(|by_s| world.peer.price(symbol, at(by_s)) == price)
            };
            assert!(
                age_ms <= most_ms || is_recent(),
                "{symbol}: unmarked at {age_ms} ms, {most_ms} at most: {quote:?}"
            );
        } else if now >= closed.max(quote.as_of) + Self::delay(quote) + SETTLES {
            assert!(!self.is_holiday, "{symbol} is unmarked on a holiday: {quote:?}");
            let close = world.peer.price(symbol, now);
            assert_eq!(
                Some(quote.last_price.round_dp(2)),
                close,
                "{symbol} is unmarked: {quote:?}"
            );
        }
    }

    fn delay(quote: &Quote) -> SignedDuration {
        SignedDuration::from_secs(quote.delay_s.unwrap_or(0).into())
    }

    /// The snapshot says of the primary index what is true of it.
    fn look_at_document(&mut self, world: &World, node: &Node) {
        let changes = node.api.state().snapshot.changes();
        if changes == 0 {
            return;
        }
        if changes != self.documents {
            self.documents = changes;
            let client = self.client.get_or_insert_with(|| node.client());
            let answer = client.ask("GET", "/api/index/snapshot", "", "");
            assert_eq!(answer.status, 200, "{}", answer.text());
            let json = answer.json();
            let (price, market) = (&json["index1_price"], &json["market"]);
            let source = market["source"].as_str().unwrap();
            let quote = Quote {
                symbol: self.symbols[0].clone(),
                last_price: sonic_rs::to_string(price).unwrap().parse().unwrap(),
                previous_close: None,
                day: None,
                as_of: market["as_of_ist"].as_str().unwrap().parse().unwrap(),
                timed: true,
                asked: Timestamp::UNIX_EPOCH,
                delay_s: market["delay_s"].as_u64().map(|delay_s| delay_s as u32),
                source: if source == "broker_a" {
                    Source::BrokerA
                } else {
                    Source::Public
                },
                simulated: true,
            };
            let phase = market["phase"].as_str().unwrap().to_owned();
            self.phase = phase;
            let before = self.document.as_ref().map(|(before, _)| before.as_of);
            assert!(before <= Some(quote.as_of), "the snapshot went back: {}", answer.text());
            self.document = Some((quote, market["stale"].as_bool().unwrap()));
        }
        if let Some(phases) = world.phases_within(PHASE_SHOWN_MS) {
            assert!(phases.contains(&self.phase.as_str()), "{} is not {phases:?}", self.phase);
        }
        if let Some((quote, false)) = &self.document {
            self.expect_young(world, quote);
        }
    }
}
