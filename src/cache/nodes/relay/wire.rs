//! The bytes of messages, without what signs them. Pure.
//!
//! On the server stands a signed value (`cache/valkey/installation.rs`), whose epoch and number are
//! the message's, or 0 and the time at which a node said what it wants. Its body, which is this:
//!
//! - message and head: version 1, told 8, age 8, node, snapshot, evening, count 4 and quotes, count
//!   4 and symbols
//! - a quote of a message: symbol, age 8, stored form
//! - wanted: version 1, node, count 4 and symbols
//!
//! Numbers are big-endian, times and ages in milliseconds; what has no fixed length stands behind
//! its length, of four bytes, or of one for names and symbols. Times are the server's, which all
//! nodes can ask. What does not end exactly, is over a limit, or makes no plausible quote is
//! refused as a whole: only a program that is not ours writes it.

use super::update::{Aged, Update};
use crate::base::{Epoch, Symbol};
use crate::cache::l2::codec;

/// The version of both messages. Nodes of another version do not understand each other.
const VERSION: u8 = 2;
/// Most quotes, and most unknown symbols, of a message: what a ticker gives and some more.
pub const SYMBOLS_MAX: usize = 10_000;
/// Most symbols that one node wants.
pub const WANTED_MAX: usize = 500;
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
pub(super) fn encode(update: &Update) -> Vec<u8> {
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
        put_bytes(&mut out, &codec::encode(&aged.quote));
    }
    put_symbols(&mut out, &update.unknown, SYMBOLS_MAX);
    out
}

/// The message of this epoch and number.
///
/// # Errors
/// [`Malformed`].
pub(super) fn decode(epoch: Epoch, seq: u64, bytes: &[u8]) -> Result<Update, Malformed> {
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
        let quote = codec::decode(key, reader.bytes(QUOTE_BYTES_MAX)?).ok_or(Malformed)?;
        update.quotes.push(Aged { quote, age_ms });
    }
    update.unknown = reader.symbols(SYMBOLS_MAX)?;
    reader.end()?;
    Ok(update)
}

/// What a node wants, as bytes.
pub(super) fn encode_wanted(node: &str, symbols: &[Symbol]) -> Vec<u8> {
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
