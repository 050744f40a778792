//! The message of the leader, the list of symbols that a node wants, and the bytes of both. Pure.
//!
//! Prices are sent as the leader judged them: with the time since their source vouched for them,
//! and with the rules by which they become stale. Times are sent as durations, because each node
//! has a monotonic clock of its own. So every node shows the same bytes at the same time.
//!
//! The server keeps and passes on signed values (`nodes/valkey/installation.rs`). Their epoch and
//! number are the message's, or 0 and the time at which a node sent its list. The body is:
//!
//! - message and head: version 1, sent 8, age 8, node, rules, evening, count 4 and quotes, count 4
//!   and symbols
//! - a quote of a message: symbol, age 8, stored form
//! - wanted: version 1, node, count 4 and symbols
//!
//! Numbers are big-endian, times and ages in milliseconds. A part without a fixed length follows
//! its length, of four bytes, or of one for names and symbols. Rules and evening are compact JSON.
//! Bytes that do not end exactly, are over a limit, or make no plausible quote are refused as a
//! whole: only a program that is not ours writes them.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::base::{Quote, Source, Symbol, Words};
use crate::cache::{FreshnessRules, Limits, SourceRules, Vouched, l2};
use crate::market::{IndexList, InstrumentList, Origin};
use crate::signals::patterns::Key;
use crate::signals::{Direction, ListedSignal, Look, SignalList};
use crate::store::Epoch;

/// Most quotes, and most unknown symbols, of a message: what a ticker gives and some more.
pub(super) const SYMBOLS_MAX: usize = 10_000;
/// Most symbols that one node wants: one of broker A's batches.
pub(crate) const WANTED_MAX: usize = 500;
/// Largest message: that many quotes of some 250 bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most signals of running candles in a message: every pattern of a large universe is fewer.
const RUNNING_MAX: usize = 1_000;

/// The calls after which the leading indices are asked again, by source.
pub(super) type Calls = [u8; Source::ALL.len()];

/// The message of the leader: the content of one round, or of several together.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// Epoch of the leader. The publisher sets this and the next three fields.
    pub epoch: Epoch,
    /// The number of the message in its epoch, from 1.
    pub seq: u64,
    /// Time at which it was sent, in milliseconds by the server's clock.
    pub sent_ms: u64,
    /// The node that sends.
    pub node: String,
    /// Age of the update.
    pub age_ms: u64,
    pub rules: FreshnessRules,
    pub(super) calls: Calls,
    pub evening: Evening,
    /// `None` if the leader shows none.
    pub running: Option<RunningSignals>,
    /// The quotes of the snapshot, and those that were brought or confirmed since the last message.
    pub quotes: Vec<Aged>,
    /// Symbols that no source knows.
    pub unknown: Vec<Symbol>,
}

impl Update {
    /// An update without prices.
    pub fn new(rules: FreshnessRules, evening: Evening) -> Self {
        Self {
            epoch: Epoch::default(),
            seq: 0,
            sent_ms: 0,
            node: String::new(),
            age_ms: 0,
            rules,
            calls: [1; Source::ALL.len()],
            evening,
            running: None,
            quotes: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// Adds a quote as the leader holds it.
    pub fn add_quote(&mut self, quote: Quote, vouched: Vouched, now_mono_ms: u64) {
        let calls = &mut self.calls[quote.source as usize];
        *calls = vouched.calls.max(*calls);
        let age_ms = match vouched.mono_ms {
            never if never == Vouched::NEVER.mono_ms => Aged::NEVER_MS,
            mono_ms => (now_mono_ms as i64).saturating_sub(mono_ms).max(0).unsigned_abs(),
        };
        self.quotes.push(Aged { quote, age_ms });
    }

    /// The quotes for a node that receives this now. Messages state the calls of the leading
    /// indices only; all other symbols are polled in turn.
    pub(crate) fn take_quotes(
        &mut self,
        now_mono_ms: u64,
        indices: &IndexList,
    ) -> Vec<(Quote, Vouched)> {
        let calls = self.calls;
        let held = |Aged { quote, age_ms }: Aged| {
            let leads = indices.leads().iter().any(|lead| lead.symbol == quote.symbol);
            let vouched = i64::try_from(age_ms).map_or(Vouched::NEVER, |age_ms| Vouched {
                mono_ms: (now_mono_ms as i64).saturating_sub(age_ms),
                calls: if leads { calls[quote.source as usize] } else { Vouched::IN_TURN },
            });
            (quote, vouched)
        };
        std::mem::take(&mut self.quotes).into_iter().map(held).collect()
    }

    /// Merges a later update into this one, which has waited.
    pub(super) fn add(&mut self, mut newer: Self, waited_ms: u64) {
        self.grow_older(waited_ms);
        let waits = std::mem::take(&mut self.quotes).into_iter();
        let quotes: HashMap<Symbol, Aged> = waits
            .chain(std::mem::take(&mut newer.quotes))
            .map(|aged| (aged.quote.symbol.clone(), aged))
            .collect();
        let is_news = |symbol: &Symbol| !newer.unknown.contains(symbol);
        self.unknown.retain(|symbol| is_news(symbol) && !quotes.contains_key(symbol));
        newer.unknown.append(&mut self.unknown);
        *self = Self { quotes: quotes.into_values().collect(), ..newer };
    }

    /// Makes everything in it older by this time.
    pub(super) fn grow_older(&mut self, by_ms: u64) {
        self.age_ms = self.age_ms.saturating_add(by_ms);
        for aged in &mut self.quotes {
            aged.age_ms = aged.age_ms.saturating_add(by_ms);
        }
    }
}

/// A quote, and how long ago its source vouched for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Aged {
    pub quote: Quote,
    pub age_ms: u64,
}

impl Aged {
    /// Nobody has vouched for it since the leader's start.
    pub(super) const NEVER_MS: u64 = u64::MAX;
}

/// The state of the store and of the second level, from where every node reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evening {
    /// The date whose signals were published last.
    pub signals: Option<Date>,
    /// The date of broker A's list of instruments; `None` before the first.
    pub instruments: Option<Date>,
}

impl Evening {
    /// The state at this node.
    pub(crate) fn of(signals: Option<Date>, list: &InstrumentList) -> Self {
        let fetched = list.origin() == Origin::BrokerA;
        Self { signals, instruments: fetched.then(|| list.as_of()) }
    }
}

/// The signals of running candles, as the leader shows them.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningSignals {
    pub look: Look,
    /// Time for which they may be shown, because the candles grow old.
    pub for_ms: u64,
    pub signals: Vec<ListedSignal>,
}

impl RunningSignals {
    /// The running signals in `list`, which are shown until `until_mono_ms`.
    pub(crate) fn of(list: &SignalList, until_mono_ms: u64, now_mono_ms: u64) -> Option<Self> {
        let signals = list.signals.iter().filter(|signal| signal.provisional);
        Some(Self {
            look: list.look?,
            for_ms: until_mono_ms.saturating_sub(now_mono_ms),
            signals: signals.take(RUNNING_MAX).cloned().collect(),
        })
    }
}

// ---- Bytes

/// The version of both messages. Nodes of another version do not understand each other.
const VERSION: u8 = 2;
/// Largest rules, and largest evening with a thousand signals of running candles.
const PART_BYTES_MAX: usize = 256 * 1024;
/// Longest encoded quote.
const QUOTE_BYTES_MAX: usize = 1_024;
/// Longest symbol and longest name of a node.
const NAME_BYTES_MAX: usize = 64;

/// A message as bytes. Quotes and symbols over a limit are left out: the next round asks for a
/// quote again that was not sent.
pub(super) fn encode(update: &Update) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_u64(&mut out, update.sent_ms);
    put_u64(&mut out, update.age_ms);
    // A machine without a name is one too.
    put_name(&mut out, if update.node.is_empty() { "-" } else { &update.node });
    for part in [encode_rules(update), encode_evening(update)] {
        put_bytes(&mut out, if part.len() <= PART_BYTES_MAX { &part } else { &[] });
    }
    let count = update.quotes.len().min(SYMBOLS_MAX);
    put_u32(&mut out, count);
    for aged in &update.quotes[..count] {
        put_name(&mut out, aged.quote.symbol.as_str());
        put_u64(&mut out, aged.age_ms);
        put_bytes(&mut out, &l2::encode(&aged.quote));
    }
    put_symbols(&mut out, &update.unknown, SYMBOLS_MAX);
    out
}

/// The message of this epoch and number; `None` for bytes that are no message of ours.
pub(super) fn decode(epoch: Epoch, seq: u64, bytes: &[u8]) -> Option<Update> {
    let mut reader = Reader::of(bytes, MESSAGE_BYTES_MAX)?;
    let (sent_ms, age_ms, node) = (reader.u64()?, reader.u64()?, reader.name()?.to_owned());
    let (rules, calls) = decode_rules(reader.bytes(PART_BYTES_MAX)?)?;
    let (evening, running) = decode_evening(reader.bytes(PART_BYTES_MAX)?)?;
    let mut quotes = Vec::new();
    for _ in 0..reader.count(SYMBOLS_MAX)? {
        let key = reader.name()?;
        let age_ms = reader.u64()?;
        let quote = l2::decode(key, reader.bytes(QUOTE_BYTES_MAX)?)?;
        quotes.push(Aged { quote, age_ms });
    }
    let unknown = reader.symbols(SYMBOLS_MAX)?;
    reader.end()?;
    let update = Update::new(rules, evening);
    Some(Update { epoch, seq, sent_ms, age_ms, node, calls, running, quotes, unknown, ..update })
}

/// The list of a node as bytes: the first [`WANTED_MAX`] symbols.
pub(super) fn encode_wanted(node: &str, symbols: &[Symbol]) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_name(&mut out, node);
    put_symbols(&mut out, symbols, WANTED_MAX);
    out
}

/// The node and its symbols.
pub(super) fn decode_wanted(bytes: &[u8]) -> Option<(String, Vec<Symbol>)> {
    let mut reader = Reader::of(bytes, WANTED_MAX * (NAME_BYTES_MAX + 1) + 128)?;
    let node = reader.name()?.to_owned();
    let symbols = reader.symbols(WANTED_MAX)?;
    reader.end()?;
    Some((node, symbols))
}

fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// All lengths are below their limits, which are far below this type's.
fn put_u32(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    let name = &name.as_bytes()[..name.len().min(NAME_BYTES_MAX)];
    out.push(name.len() as u8);
    out.extend_from_slice(name);
}

fn put_symbols(out: &mut Vec<u8>, symbols: &[Symbol], most: usize) {
    let symbols = &symbols[..symbols.len().min(most)];
    put_u32(out, symbols.len());
    symbols.iter().for_each(|symbol| put_name(out, symbol.as_str()));
}

/// Reads the parts of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn of(bytes: &'a [u8], bytes_max: usize) -> Option<Self> {
        let (&version, rest) = bytes.split_first()?;
        (version == VERSION && bytes.len() <= bytes_max).then_some(Self(rest))
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_be_bytes)
    }

    fn count(&mut self, most: usize) -> Option<usize> {
        let count = u32::from_be_bytes(self.take(4)?.try_into().ok()?) as usize;
        (count <= most).then_some(count)
    }

    fn bytes(&mut self, most: usize) -> Option<&'a [u8]> {
        let count = self.count(most)?;
        self.take(count)
    }

    fn name(&mut self) -> Option<&'a str> {
        let length = usize::from(self.take(1)?[0]);
        let fits = (1..=NAME_BYTES_MAX).contains(&length);
        std::str::from_utf8(self.take(length).filter(|_| fits)?).ok()
    }

    fn symbols(&mut self, most: usize) -> Option<Vec<Symbol>> {
        let count = self.count(most)?;
        (0..count).map(|_| Symbol::parse(self.name()?)).collect()
    }

    fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

// ---- Rules and evening
//
// The parts that are JSON. They are checked like outside input when they are read.

/// Longest limit that a node sends. A longer one is another program's.
const LIMIT_MS_MAX: u64 = 24 * 3_600_000;

#[derive(Serialize, Deserialize)]
struct Rules {
    sources: [OfSource; Source::ALL.len()],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spoken_for_ms: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct OfSource {
    /// Period and grace.
    moving_ms: (u64, u64),
    resting_ms: (u64, u64),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rests_for_ms: Option<i64>,
    /// Number of calls after which every leading index was polled.
    calls: u8,
    /// Number of calls in which every symbol in demand is polled once. Earlier versions do not send
    /// it.
    #[serde(default)]
    round: u8,
}

#[derive(Serialize, Deserialize)]
struct InStore {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signals: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instruments: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    running: Option<Shown>,
}

#[derive(Serialize, Deserialize)]
struct Shown {
    date: String,
    at: String,
    for_ms: u64,
    signals: Vec<Signal>,
}

#[derive(Serialize, Deserialize)]
struct Signal {
    symbol: String,
    pattern: String,
    direction: String,
    /// Confidence, share of hits by date, base rate.
    shares: (f64, Option<f64>, f64),
    /// Prior dates, dates.
    dates: (u32, u32),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    past: Option<(u32, u32)>,
    simulated: bool,
}

/// The rules as bytes.
fn encode_rules(Update { rules, calls, .. }: &Update) -> Vec<u8> {
    let pair = |limits: Limits| (limits.period_ms, limits.grace_ms);
    let sources = Source::ALL.map(|source| {
        let SourceRules { moving, resting, rests_for_ms, round } = rules.sources[source as usize];
        let (moving_ms, resting_ms) = (pair(moving), pair(resting));
        OfSource { moving_ms, resting_ms, rests_for_ms, calls: calls[source as usize], round }
    });
    let rules = Rules { sources, spoken_for_ms: rules.spoken_for_ms };
    sonic_rs::to_vec(&rules).expect("numbers always serialise")
}

/// The rules, and the calls by source; `None` if no program of ours wrote the bytes.
fn decode_rules(bytes: &[u8]) -> Option<(FreshnessRules, Calls)> {
    let read: Rules = sonic_rs::from_slice(bytes).ok()?;
    let limits = |(period_ms, grace_ms): (u64, u64)| {
        let fits = period_ms.max(grace_ms) <= LIMIT_MS_MAX;
        fits.then_some(Limits { period_ms, grace_ms })
    };
    let of = |source: &OfSource| {
        let (moving, resting) = (limits(source.moving_ms)?, limits(source.resting_ms)?);
        let (rests_for_ms, round) = (source.rests_for_ms, source.round);
        Some(SourceRules { moving, resting, rests_for_ms, round })
    };
    let [first, second] = &read.sources;
    let sources = [of(first)?, of(second)?];
    let rules = FreshnessRules { sources, spoken_for_ms: read.spoken_for_ms };
    Some((rules, [first.calls, second.calls]))
}

/// Evening and running signals as bytes.
fn encode_evening(Update { evening, running, .. }: &Update) -> Vec<u8> {
    let text = |date: Option<Date>| date.map(|date| date.to_string());
    let (signals, instruments) = (text(evening.signals), text(evening.instruments));
    let running = running.as_ref().map(|RunningSignals { look, for_ms, signals }| Shown {
        date: look.date.to_string(),
        at: look.at.to_string(),
        for_ms: *for_ms,
        signals: signals.iter().map(signal_out).collect(),
    });
    sonic_rs::to_vec(&InStore { signals, instruments, running }).expect("always serialises")
}

/// Evening and running signals from bytes; `None` if no program of ours wrote them.
fn decode_evening(bytes: &[u8]) -> Option<(Evening, Option<RunningSignals>)> {
    let InStore { signals, instruments, running } = sonic_rs::from_slice(bytes).ok()?;
    let date = |text: Option<String>| text.map(|text| text.parse::<Date>()).transpose().ok();
    let evening = Evening { signals: date(signals)?, instruments: date(instruments)? };
    let running = match running {
        Some(shown) => Some(running_in(shown)?),
        None => None,
    };
    Some((evening, running))
}

fn running_in(shown: Shown) -> Option<RunningSignals> {
    let fits = shown.for_ms <= LIMIT_MS_MAX && shown.signals.len() <= RUNNING_MAX;
    let at: Timestamp = shown.at.parse().ok().filter(|_| fits)?;
    Some(RunningSignals {
        look: Look { date: shown.date.parse().ok()?, at },
        for_ms: shown.for_ms,
        signals: shown.signals.into_iter().map(signal_in).collect::<Option<_>>()?,
    })
}

fn signal_out(listed: &ListedSignal) -> Signal {
    Signal {
        symbol: listed.symbol.as_str().to_owned(),
        pattern: listed.pattern.clone(),
        direction: listed.direction.as_str().to_owned(),
        shares: (listed.confidence, listed.date_hit_rate, listed.base_rate),
        dates: (listed.prior_dates, listed.samples),
        past: listed.past,
        simulated: listed.simulated,
    }
}

fn signal_in(told: Signal) -> Option<ListedSignal> {
    let (confidence, date_hit_rate, base_rate) = told.shares;
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    let is_pattern = Key::all().any(|key| key.name() == told.pattern);
    let fits = is_share(confidence) && is_share(base_rate) && date_hit_rate.is_none_or(is_share);
    (fits && is_pattern).then_some(())?;
    Some(ListedSignal {
        symbol: Symbol::parse(&told.symbol)?,
        pattern: told.pattern,
        direction: Direction::parse(&told.direction)?,
        confidence,
        prior_dates: told.dates.0,
        samples: told.dates.1,
        date_hit_rate,
        past: told.past,
        base_rate,
        simulated: told.simulated,
        provisional: true,
    })
}

#[cfg(test)]
#[path = "update_tests.rs"]
pub(crate) mod tests;
