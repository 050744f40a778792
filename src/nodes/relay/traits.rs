//! What the warmers see of the relay.

use std::collections::HashMap;

use crate::base::{Quote, Symbol};
use crate::cache::l2;
use crate::nodes::valkey::ValkeyError;
use crate::store::Epoch;

/// Why something was not told.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    #[error("{0}")]
    Server(#[from] ValkeyError),
    #[error("a message of {bytes} bytes is over the limit of {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("the server's clock leaps")]
    Clock,
}

/// What became of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// Told to all nodes, and kept for those that come later.
    Told,
    /// A newer leader has published: this node does not lead any more.
    Fenced,
}

/// Tells the other nodes. Calls block, by deadlines.
pub trait Relay: Send + Sync {
    /// Publishes what a round brought, as the leader of `epoch`. Numbers the messages itself, anew
    /// in each epoch. Where the outcome is unknown the number is not used again.
    ///
    /// # Errors
    /// [`RelayError`].
    fn publish(&self, epoch: Epoch, update: &Update) -> Result<Published, RelayError>;

    /// Tells the leader which symbols this node wants to be kept fresh; it remembers them for
    /// [`WANTED_TTL_MS`](super::session::WANTED_TTL_MS). Of more than [`WANTED_MAX`]
    /// only the first.
    ///
    /// # Errors
    /// [`RelayError`].
    fn want(&self, symbols: &[Symbol]) -> Result<(), RelayError>;

    /// Passes sealed bytes to all nodes that listen now. Nothing is kept.
    ///
    /// # Errors
    /// [`RelayError`].
    fn pass_on(&self, sealed: &[u8]) -> Result<(), RelayError>;

    /// Tells all nodes that listen now that the database has changes that they have to read.
    ///
    /// # Errors
    /// [`RelayError`].
    fn tell_of_changes(&self) -> Result<(), RelayError>;
}

/// What a node was told.
#[derive(Debug, PartialEq)]
pub enum Told {
    /// What a round brought.
    Update(Box<Update>),
    /// All that the server keeps: at the start, and after messages were missed.
    State(Box<Update>),
    /// Sealed bytes of another node.
    Sealed(Vec<u8>),
    /// The database has changes that have to be read. This node may have made them itself.
    Changes,
}

/// Hears on the thread `relay`. Must not block.
pub trait Listener: Send {
    /// Takes what was told, or gives an update back while the one before waits; it comes again,
    /// with what came meanwhile.
    ///
    /// # Errors
    /// What is not taken.
    fn hear(&self, told: Told) -> Result<(), Told>;
}

impl<F: Fn(Told) -> Result<(), Told> + Send> Listener for F {
    fn hear(&self, told: Told) -> Result<(), Told> {
        self(told)
    }
}

// ---- Update
//
// What the leader tells: quotes with their ages, and what goes with them.

/// A quote, and how long ago its source vouched for it. An age and no time, so that the nodes'
/// clocks do not matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Aged {
    pub quote: Quote,
    pub age_ms: u64,
}

/// What one round brought, or several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// Of the leader. Set by who publishes.
    pub epoch: Epoch,
    /// The number of the message in its epoch, from 1. Set by who publishes.
    pub seq: u64,
    /// When it was told, in milliseconds by the server's clock. Set by who publishes.
    pub told_ms: u64,
    /// The node that publishes. Set by who publishes.
    pub node: String,
    /// How long ago the leader's source vouched for the snapshot.
    pub age_ms: u64,
    /// The snapshot, in the form that its owner writes; empty if it is as before.
    pub snapshot: Vec<u8>,
    /// How far the evening's close and signals are, in the form that its owner writes; empty if it
    /// is as before.
    pub evening: Vec<u8>,
    pub quotes: Vec<Aged>,
    /// Symbols that the source does not know.
    pub unknown: Vec<Symbol>,
}

impl Update {
    /// Adds what came later; what is older by then is dropped.
    pub(crate) fn add(&mut self, newer: Self, waited_ms: u64) {
        self.grow_older(waited_ms);
        (self.epoch, self.seq, self.told_ms) = (newer.epoch, newer.seq, newer.told_ms);
        self.node = newer.node;
        if !newer.snapshot.is_empty() {
            (self.snapshot, self.age_ms) = (newer.snapshot, newer.age_ms);
        }
        if !newer.evening.is_empty() {
            self.evening = newer.evening;
        }
        let mut quotes: HashMap<Symbol, Aged> = HashMap::new();
        for aged in std::mem::take(&mut self.quotes).into_iter().chain(newer.quotes) {
            quotes.insert(aged.quote.symbol.clone(), aged);
        }
        let known = |symbol: &Symbol| quotes.contains_key(symbol);
        self.unknown.retain(|symbol| !newer.unknown.contains(symbol) && !known(symbol));
        self.unknown.extend(newer.unknown);
        self.quotes = quotes.into_values().collect();
    }

    /// Everything in it is older by so much.
    pub(crate) fn grow_older(&mut self, by_ms: u64) {
        self.age_ms = self.age_ms.saturating_add(by_ms);
        for aged in &mut self.quotes {
            aged.age_ms = aged.age_ms.saturating_add(by_ms);
        }
    }
}

// ---- Wire
//
// The bytes of messages, without what signs them. Pure.
//
// On the server stands a signed value (`cache/valkey/installation.rs`), whose epoch and number are
// the message's, or 0 and the time at which a node said what it wants. Its body, which is this:
//
// - message and head: version 1, told 8, age 8, node, snapshot, evening, count 4 and quotes, count
// 4 and symbols
// - a quote of a message: symbol, age 8, stored form
// - wanted: version 1, node, count 4 and symbols
//
// Numbers are big-endian, times and ages in milliseconds; what has no fixed length stands behind
// its length, of four bytes, or of one for names and symbols. Times are the server's, which all
// nodes can ask. What does not end exactly, is over a limit, or makes no plausible quote is
// refused as a whole: only a program that is not ours writes it.

/// The version of both messages. Nodes of another version do not understand each other.
const VERSION: u8 = 2;
/// Most quotes, and most unknown symbols, of a message: what a ticker gives and some more.
pub(crate) const SYMBOLS_MAX: usize = 10_000;
/// Most symbols that one node wants.
pub(crate) const WANTED_MAX: usize = 500;
/// Largest message: that many quotes of some 250 bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Largest snapshot, and largest state of the evening with a thousand signals of running candles.
const PART_BYTES_MAX: usize = 256 * 1024;
/// Longest encoded quote.
const QUOTE_BYTES_MAX: usize = 1_024;
/// Longest symbol and longest name of a node.
const NAME_BYTES_MAX: usize = 64;

/// Bytes that are no message of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a message of this version")]
pub struct Malformed;

/// A message as bytes. What is over a limit is left out: a quote that is not told is asked for by
/// the next round again.
pub(crate) fn encode(update: &Update) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_u64(&mut out, update.told_ms);
    put_u64(&mut out, update.age_ms);
    // A machine without a name is one too.
    put_name(&mut out, if update.node.is_empty() { "-" } else { &update.node });
    for part in [&update.snapshot, &update.evening] {
        let fits = part.len() <= PART_BYTES_MAX;
        put_bytes(&mut out, if fits { part } else { &[] });
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

/// The message of this epoch and number.
///
/// # Errors
/// [`Malformed`].
pub(crate) fn decode(epoch: Epoch, seq: u64, bytes: &[u8]) -> Result<Update, Malformed> {
    let mut reader = Reader::of(bytes, MESSAGE_BYTES_MAX)?;
    let mut update = Update {
        epoch,
        seq,
        told_ms: reader.u64()?,
        age_ms: reader.u64()?,
        node: reader.name()?.to_owned(),
        snapshot: reader.bytes(PART_BYTES_MAX)?.to_vec(),
        evening: reader.bytes(PART_BYTES_MAX)?.to_vec(),
        ..Update::default()
    };
    for _ in 0..reader.count(SYMBOLS_MAX)? {
        let key = reader.name()?;
        let age_ms = reader.u64()?;
        let quote = l2::decode(key, reader.bytes(QUOTE_BYTES_MAX)?).ok_or(Malformed)?;
        update.quotes.push(Aged { quote, age_ms });
    }
    update.unknown = reader.symbols(SYMBOLS_MAX)?;
    reader.end()?;
    Ok(update)
}

/// What a node wants, as bytes.
pub(crate) fn encode_wanted(node: &str, symbols: &[Symbol]) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_name(&mut out, node);
    put_symbols(&mut out, symbols, WANTED_MAX);
    out
}

/// # Errors
/// [`Malformed`].
pub(super) fn decode_wanted(bytes: &[u8]) -> Result<(String, Vec<Symbol>), Malformed> {
    let mut reader = Reader::of(bytes, WANTED_MAX * (NAME_BYTES_MAX + 1) + 128)?;
    let node = reader.name()?.to_owned();
    let symbols = reader.symbols(WANTED_MAX)?;
    reader.end()?;
    Ok((node, symbols))
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

/// Takes a message apart.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn of(bytes: &'a [u8], bytes_max: usize) -> Result<Self, Malformed> {
        match bytes.split_first() {
            Some((&VERSION, rest)) if bytes.len() <= bytes_max => Ok(Self(rest)),
            _ => Err(Malformed),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?;
        Ok(u64::from_be_bytes(bytes.try_into().map_err(|_| Malformed)?))
    }

    fn count(&mut self, most: usize) -> Result<usize, Malformed> {
        let bytes = self.take(4)?.try_into().map_err(|_| Malformed)?;
        let count = u32::from_be_bytes(bytes) as usize;
        if count <= most { Ok(count) } else { Err(Malformed) }
    }

    fn bytes(&mut self, most: usize) -> Result<&'a [u8], Malformed> {
        let count = self.count(most)?;
        self.take(count)
    }

    fn name(&mut self) -> Result<&'a str, Malformed> {
        let length = usize::from(self.take(1)?[0]);
        if length == 0 || length > NAME_BYTES_MAX {
            return Err(Malformed);
        }
        std::str::from_utf8(self.take(length)?).map_err(|_| Malformed)
    }

    fn symbols(&mut self, most: usize) -> Result<Vec<Symbol>, Malformed> {
        let count = self.count(most)?;
        (0..count).map(|_| Symbol::parse(self.name()?).ok_or(Malformed)).collect()
    }

    fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
pub(super) mod tests;
