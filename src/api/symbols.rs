//! The symbols of a request's query, and how an answer names symbols. Pure, and without allocating
//! where quotes are read.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use crate::api::query;
use crate::api::query::Decoded;
use crate::base::Symbol;
use crate::base::symbol::SYMBOL_BYTES_MAX;
use crate::http::Problem;

/// Symbols per request (contract, section 8), counted as sent.
pub(super) const SYMBOLS_MAX: usize = 50;

/// The symbols of the query in order, each once.
pub(super) fn symbols(query: &[u8]) -> Result<Vec<Symbol>, Problem> {
    let mut symbols = Vec::new();
    let mut seen = Seen::default();
    each_symbol(query, |symbol| {
        if seen.is_new(symbol) {
            symbols.extend(Symbol::parse(symbol));
        }
    })?;
    Ok(symbols)
}

/// Appends the names as the elements of a JSON array.
pub(super) fn name<'a>(out: &mut Vec<u8>, symbols: impl Iterator<Item = &'a Symbol>) {
    for (at, symbol) in symbols.enumerate() {
        out.extend_from_slice(if at == 0 { b"\"" } else { b",\"" });
        out.extend_from_slice(symbol.as_str().as_bytes());
        out.push(b'"');
    }
}

/// Calls `visit` with each symbol of the query, in order. A malformed symbol is an error.
pub(super) fn each_symbol(query: &[u8], mut visit: impl FnMut(&str)) -> Result<(), Problem> {
    let mut count = 0;
    for value in query::values(query, b"symbols") {
        let mut symbol = Partial::default();
        for byte in Decoded(value) {
            match byte {
                Ok(b',') => {
                    count += 1;
                    visit(symbol.finished(count)?);
                    symbol = Partial::default();
                }
                Ok(byte) => symbol.push(byte),
                Err(_) => symbol.bad = true,
            }
        }
        count += 1;
        if value.is_empty() {
            return Err(none_given());
        }
        visit(symbol.finished(count)?);
    }
    if count == 0 {
        Err(none_given())
    } else {
        Ok(())
    }
}

/// A symbol whose bytes are being decoded.
pub(super) struct Partial {
    bytes: [u8; SYMBOL_BYTES_MAX],
    length: usize,
    bad: bool,
}

impl Default for Partial {
    fn default() -> Self {
        Self {
            bytes: [0; SYMBOL_BYTES_MAX],
            length: 0,
            bad: false,
        }
    }
}

impl Partial {
    fn push(&mut self, byte: u8) {
        match self.bytes.get_mut(self.length) {
            Some(slot) => *slot = byte,
            None => self.bad = true,
        }
        self.length += usize::from(!self.bad);
    }

    /// The symbol, if it is well-formed and not over the limit.
    fn finished(&self, count: usize) -> Result<&str, Problem> {
        if count > SYMBOLS_MAX {
            let detail = format!("At most {SYMBOLS_MAX} symbols can be asked for at once.");
            let problem = Problem::new(400, "too_many_symbols", detail.clone());
            return Err(problem.field("symbols", detail));
        }
        let bytes = &self.bytes[..self.length];
        let text = (!self.bad && crate::base::symbol::well_formed(bytes))
            .then(|| std::str::from_utf8(bytes).ok())
            .flatten();
        text.ok_or_else(|| {
            let message = format!(
                "Symbol {count} is not NSE: or BSE: and a ticker in capitals, such as NSE:INFY or \
                 BSE:SENSEX, percent-encoded."
            );
            Problem::new(400, "symbol_malformed", message.clone()).field("symbols", message)
        })
    }
}

pub(super) fn none_given() -> Problem {
    let detail = "Give symbols=EXCHANGE:TICKER, several separated by commas.";
    Problem::new(400, "symbols_missing", detail).field("symbols", detail)
}

/// The symbols of this request so far, to drop duplicates. Only hashes are kept: for two different
/// symbols to be confused, 64 bits of a randomly seeded hash would have to be equal.
pub(super) struct Seen {
    hasher: RandomState,
    hashes: [u64; SYMBOLS_MAX],
    pub(super) count: usize,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            hasher: RandomState::default(),
            hashes: [0; SYMBOLS_MAX],
            count: 0,
        }
    }
}

impl Seen {
    pub(super) fn is_new(&mut self, symbol: &str) -> bool {
        let hash = self.hasher.hash_one(symbol);
        if self.hashes[..self.count].contains(&hash) {
            return false;
        }
        // The array is large enough: a symbol over the limit is refused before it is visited.
        self.hashes[self.count] = hash;
        self.count += 1;
        true
    }
}
