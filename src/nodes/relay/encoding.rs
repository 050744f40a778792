//!
//! The parts that are JSON. They are checked like outside input when they are read.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::base::{Source, Symbol, Words};
use crate::cache::l2::codec;
use crate::cache::{FreshnessRules, Limits, SourceRules};
use crate::nodes::relay::update::{
    Aged, Calls, Evening, MESSAGE_BYTES_MAX, RUNNING_MAX, RunningSignals, SYMBOLS_MAX, Update,
    WANTED_MAX,
};
use crate::signals::patterns::Key;
use crate::signals::{Direction, ListedSignal, ScanTime};
use crate::store::Epoch;

/// The version of both messages. Nodes of another version do not understand each other.
pub(super) const VERSION: u8 = 2;
/// Largest rules, and largest evening with a thousand signals of running candles.
const PART_BYTES_MAX: usize = 256 * 1024;
/// Longest encoded quote.
const QUOTE_BYTES_MAX: usize = 1_024;
/// Longest symbol and longest name of a node.
const NAME_BYTES_MAX: usize = 64;

/// A message as bytes. Quotes and symbols over a limit are left out: the next round asks for a
/// quote again that was not sent.
pub(crate) fn encode(update: &Update) -> Vec<u8> {
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
        put_bytes(&mut out, &codec::encode(&aged.quote));
    }
    put_symbols(&mut out, &update.unknown, SYMBOLS_MAX);
    out
}

/// The message of this epoch and number; `None` for bytes that are no message of ours.
pub(super) fn decode(epoch: Epoch, seq: u64, bytes: &[u8]) -> Option<Update> {
    let mut reader = Reader::of(bytes, MESSAGE_BYTES_MAX)?;
    let sent_ms = reader.u64()?;
    let age_ms = reader.u64()?;
    let node = reader.name()?.to_owned();
    let (rules, calls) = decode_rules(reader.bytes(PART_BYTES_MAX)?)?;
    let (evening, running) = decode_evening(reader.bytes(PART_BYTES_MAX)?)?;
    let mut quotes = Vec::new();
    for _ in 0..reader.count(SYMBOLS_MAX)? {
        let key = reader.name()?;
        let age_ms = reader.u64()?;
        let quote = codec::decode(key, reader.bytes(QUOTE_BYTES_MAX)?)?;
        quotes.push(Aged { quote, age_ms });
    }
    let unknown = reader.symbols(SYMBOLS_MAX)?;
    reader.end()?;
    let update = Update::new(rules, evening);
    Some(Update { epoch, seq, sent_ms, age_ms, node, calls, running, quotes, unknown, ..update })
}

/// The list of a node as bytes: the first [`WANTED_MAX`] symbols.
pub(crate) fn encode_wanted(node: &str, symbols: &[Symbol]) -> Vec<u8> {
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

/// Longest limit that a node sends. A longer one is another program's.
pub(super) const LIMIT_MS_MAX: u64 = 24 * 3_600_000;

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
pub(super) struct Signal {
    pub(super) symbol: String,
    pub(super) pattern: String,
    pub(super) direction: String,
    /// Confidence, share of hits by date, base rate.
    pub(super) shares: (f64, Option<f64>, f64),
    /// Prior dates, dates.
    pub(super) dates: (u32, u32),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) past: Option<(u32, u32)>,
    pub(super) simulated: bool,
}

/// The rules as bytes.
pub(super) fn encode_rules(Update { rules, calls, .. }: &Update) -> Vec<u8> {
    let pair = |limits: Limits| (limits.period_ms, limits.grace_ms);
    let sources = Source::ALL.map(|source| {
        let SourceRules { moving, resting, rests_for_ms, round } = rules.sources[source as usize];
        let moving_ms = pair(moving);
        let resting_ms = pair(resting);
        OfSource { moving_ms, resting_ms, rests_for_ms, calls: calls[source as usize], round }
    });
    let rules = Rules { sources, spoken_for_ms: rules.spoken_for_ms };
    sonic_rs::to_vec(&rules).expect("numbers always serialise")
}

/// The rules, and the calls by source; `None` if no program of ours wrote the bytes.
pub(super) fn decode_rules(bytes: &[u8]) -> Option<(FreshnessRules, Calls)> {
    let read: Rules = sonic_rs::from_slice(bytes).ok()?;
    let limits = |(period_ms, grace_ms): (u64, u64)| {
        let fits = period_ms.max(grace_ms) <= LIMIT_MS_MAX;
        fits.then_some(Limits { period_ms, grace_ms })
    };
    let of = |source: &OfSource| {
        let moving = limits(source.moving_ms)?;
        let resting = limits(source.resting_ms)?;
        let rests_for_ms = source.rests_for_ms;
        let round = source.round;
        Some(SourceRules { moving, resting, rests_for_ms, round })
    };
    let [first, second] = &read.sources;
    let sources = [of(first)?, of(second)?];
    let rules = FreshnessRules { sources, spoken_for_ms: read.spoken_for_ms };
    Some((rules, [first.calls, second.calls]))
}

/// Evening and running signals as bytes.
pub(super) fn encode_evening(Update { evening, running, .. }: &Update) -> Vec<u8> {
    let text = |date: Option<Date>| date.map(|date| date.to_string());
    let signals = text(evening.signals);
    let instruments = text(evening.instruments);
    let running = running.as_ref().map(|RunningSignals { look, for_ms, signals }| Shown {
        date: look.date.to_string(),
        at: look.at.to_string(),
        for_ms: *for_ms,
        signals: signals.iter().map(signal_out).collect(),
    });
    sonic_rs::to_vec(&InStore { signals, instruments, running }).expect("always serialises")
}

/// Evening and running signals from bytes; `None` if no program of ours wrote them.
pub(super) fn decode_evening(bytes: &[u8]) -> Option<(Evening, Option<RunningSignals>)> {
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
        look: ScanTime { date: shown.date.parse().ok()?, at },
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

pub(super) fn signal_in(told: Signal) -> Option<ListedSignal> {
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
