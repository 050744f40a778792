//! The messages as JSON. They are checked like outside input when they are read.
//!
//! Pure. A quote has the form that the second level stores.

use std::borrow::Cow;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::base::{Quote, Source, Symbol};
use crate::cache::l2::codec::Stored;
use crate::cache::{FreshnessRules, Limits, SourceRules};
use crate::nodes::relay::update::{
    Aged, Calls, Evening, MESSAGE_BYTES_MAX, SYMBOLS_MAX, Update, WANTED_MAX,
};
use crate::store::Epoch;

/// The version of both messages. Nodes of another version do not understand each other.
pub(super) const VERSION: u8 = 3;
/// Longest name of a node.
const NAME_BYTES_MAX: usize = 64;
/// Longest list of wanted symbols.
const WANTED_BYTES_MAX: usize = WANTED_MAX * 80 + 256;
/// Longest limit that a node sends. A longer one is another program's.
pub(super) const LIMIT_MS_MAX: u64 = 24 * 3_600_000;

#[derive(Serialize, Deserialize)]
struct Message<'a> {
    version: u8,
    sent_ms: u64,
    age_ms: u64,
    node: Cow<'a, str>,
    sources: [OfSource; Source::ALL.len()],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spoken_for_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signals: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instruments: Option<String>,
    /// Symbol, age in milliseconds, and the rest of the quote.
    #[serde(borrow)]
    quotes: Vec<(Cow<'a, str>, u64, Stored<'a>)>,
    unknown: Vec<Cow<'a, str>>,
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
    /// Number of calls in which every symbol in demand is polled once.
    round: u8,
}

#[derive(Serialize, Deserialize)]
struct Wanted<'a> {
    version: u8,
    node: Cow<'a, str>,
    #[serde(borrow)]
    symbols: Vec<Cow<'a, str>>,
}

/// A message as bytes. Quotes and symbols over a limit are left out: the next round asks for a
/// quote again that was not sent.
pub(crate) fn encode(update: &Update) -> Vec<u8> {
    let text = |date: Option<Date>| date.map(|date| date.to_string());
    let Update {
        rules,
        calls,
        evening,
        ..
    } = update;
    let quote = |Aged { quote, age_ms }: &Aged| {
        (Cow::Owned(quote.symbol.to_string()), *age_ms, Stored::of(quote))
    };
    json(&Message {
        version: VERSION,
        sent_ms: update.sent_ms,
        age_ms: update.age_ms,
        node: name(&update.node),
        sources: Source::ALL.map(|source| of_source(rules, calls, source)),
        spoken_for_ms: rules.spoken_for_ms,
        signals: text(evening.signals),
        instruments: text(evening.instruments),
        quotes: update.quotes.iter().take(SYMBOLS_MAX).map(quote).collect(),
        unknown: names(&update.unknown, SYMBOLS_MAX),
    })
}

/// The message of this epoch and number; `None` for bytes that are no message of ours.
pub(super) fn decode(epoch: Epoch, seq: u64, bytes: &[u8]) -> Option<Update> {
    let read: Message<'_> = read(bytes, MESSAGE_BYTES_MAX)?;
    let fits = read.version == VERSION && is_name(&read.node);
    let fits = fits && read.quotes.len() <= SYMBOLS_MAX && read.unknown.len() <= SYMBOLS_MAX;
    fits.then_some(())?;
    let [first, second] = &read.sources;
    let sources = [rules_of(first)?, rules_of(second)?];
    let rules = FreshnessRules {
        sources,
        spoken_for_ms: read.spoken_for_ms,
    };
    let date = |text: &Option<String>| text.as_ref().map(|text| text.parse::<Date>()).transpose();
    let signals = date(&read.signals).ok()?;
    let evening = Evening {
        signals,
        instruments: date(&read.instruments).ok()?,
    };
    let aged = |(symbol, age_ms, stored): &(Cow<'_, str>, u64, Stored<'_>)| {
        let quote: Quote = stored.quote(symbol)?;
        Some(Aged {
            quote,
            age_ms: *age_ms,
        })
    };
    Some(Update {
        epoch,
        seq,
        sent_ms: read.sent_ms,
        age_ms: read.age_ms,
        node: read.node.to_string(),
        calls: [first.calls, second.calls],
        quotes: read.quotes.iter().map(aged).collect::<Option<_>>()?,
        unknown: symbols(&read.unknown)?,
        ..Update::new(rules, evening)
    })
}

/// The list of a node as bytes: the first [`WANTED_MAX`] symbols.
pub(crate) fn encode_wanted(node: &str, symbols: &[Symbol]) -> Vec<u8> {
    json(&Wanted {
        version: VERSION,
        node: name(node),
        symbols: names(symbols, WANTED_MAX),
    })
}

/// The node and its symbols.
pub(super) fn decode_wanted(bytes: &[u8]) -> Option<(String, Vec<Symbol>)> {
    let read: Wanted<'_> = read(bytes, WANTED_BYTES_MAX)?;
    let fits = read.version == VERSION && is_name(&read.node) && read.symbols.len() <= WANTED_MAX;
    fits.then_some(())?;
    Some((read.node.to_string(), symbols(&read.symbols)?))
}

fn json(message: &impl Serialize) -> Vec<u8> {
    sonic_rs::to_vec(message).expect("texts, numbers and lists always serialise")
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8], bytes_max: usize) -> Option<T> {
    let fits = bytes.len() <= bytes_max;
    fits.then(|| sonic_rs::from_slice(bytes).ok()).flatten()
}

/// The name of a node. A machine without one is one too.
fn name(node: &str) -> Cow<'_, str> {
    let mut end = node.len().min(NAME_BYTES_MAX);
    while !node.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Borrowed(if node.is_empty() { "-" } else { &node[..end] })
}

fn is_name(node: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&node.len())
}

fn names(symbols: &[Symbol], most: usize) -> Vec<Cow<'_, str>> {
    symbols
        .iter()
        .take(most)
        .map(|symbol| Cow::Borrowed(symbol.as_str()))
        .collect()
}

fn symbols(names: &[Cow<'_, str>]) -> Option<Vec<Symbol>> {
    names.iter().map(|name| Symbol::parse(name)).collect()
}

fn of_source(rules: &FreshnessRules, calls: &Calls, source: Source) -> OfSource {
    let pair = |limits: Limits| (limits.period_ms, limits.grace_ms);
    let SourceRules {
        moving,
        resting,
        rests_for_ms,
        round,
    } = rules.sources[source as usize];
    let calls = calls[source as usize];
    OfSource {
        moving_ms: pair(moving),
        resting_ms: pair(resting),
        rests_for_ms,
        calls,
        round,
    }
}

/// The rules of a source; `None` if no program of ours wrote them.
fn rules_of(source: &OfSource) -> Option<SourceRules> {
    let limits = |(period_ms, grace_ms): (u64, u64)| {
        let fits = period_ms.max(grace_ms) <= LIMIT_MS_MAX;
        fits.then_some(Limits {
            period_ms,
            grace_ms,
        })
    };
    Some(SourceRules {
        moving: limits(source.moving_ms)?,
        resting: limits(source.resting_ms)?,
        rests_for_ms: source.rests_for_ms,
        round: source.round,
    })
}
