//! `GET /api/portfolio/live-prices`: joins quotes that are already serialised in L1 (the quote
//! cache in memory).
//!
//! The first pass answers from L1 without allocating. Symbols that L1 lacks are registered with the
//! scheduler, once for all requests, and the request parks for a bounded time. A second pass then
//! answers with the quotes that are there.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::Ordering;

use foldhash::quality::RandomState;

use crate::api::query;
use crate::api::query::{Decoded, invalid, one};
use crate::api::state::{Call, Handled, State, send_published, send_tagged};
use crate::base::Symbol;
use crate::base::limiter::network;
use crate::base::symbol::SYMBOL_BYTES_MAX;
use crate::cache::Hit;
use crate::cache::movers::Moment;
use crate::cache::pending::Wait;
use crate::http::document::coding::etag;
use crate::http::document::variants::{CachePolicy, JSON, PUBLIC};
use crate::http::{Problem, Response};
use crate::market::InstrumentList;
use crate::market::search::{QUERY_BYTES_MAX, Query, WORDS_MAX};
use crate::portfolio::Securities;
use crate::views::quotes::{FoundInstrument, SearchResults};
use crate::views::values::{self, Day};

/// Symbols per request (contract, section 8), counted as sent.
pub(super) const SYMBOLS_MAX: usize = 50;

/// `Retry-After` if an available feed did not answer in time.
const RETRY_AFTER_S: u64 = 5;

/// Headers of an answer that a request makes in place of a published document.
const OF_ALL_CODINGS: [(&str, &str); 2] =
    [("Cache-Control", CachePolicy::JSON.cache_control), ("Vary", CachePolicy::JSON.vary)];

const HEADERS: &[(&str, &str)] = &[("Cache-Control", "no-cache")];

/// Parks only for symbols without a fresh quote, for at most `miss_wait_ms`.
pub(super) fn read(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let query = call.query();
    let mut first = join(state, query, reply.body(), PassKind::First)?;
    if first.missing.is_empty() && first.cold.is_empty() {
        return finish(&first, call, reply);
    }
    let client = call.request.client_address().map(network);
    first.missing.append(&mut first.cold);
    let unsettled = fetch(state, client, &first.missing);
    let second = join(state, query, reply.body(), PassKind::AfterWait)?;
    if second.quotes == 0 && !second.missing.is_empty() && unsettled {
        return Err(unavailable(state.answer_in_ms.load(Ordering::Relaxed)));
    }
    finish(&second, call, reply)
}

/// Result of a pass over the symbols, besides the quotes, which are in the body.
#[derive(Default)]
struct Pass {
    quotes: usize,
    /// Every symbol without a quote, in the order of the request.
    unavailable: Vec<Symbol>,
    /// Symbols without an entry in L1. Symbols that L1 knows not to exist are not among them.
    missing: Vec<Symbol>,
    /// Symbols whose quote is stale and not refreshed, because no client requested them lately.
    cold: Vec<Symbol>,
}

/// The first or the second pass over the symbols.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PassKind {
    /// The request can still wait for missing and cold symbols.
    First,
    AfterWait,
}

/// Closes the array of quotes and sends.
fn finish(pass: &Pass, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let body = reply.written();
    body.extend_from_slice(b"],\"unavailable\":[");
    name(body, pass.unavailable.iter());
    body.extend_from_slice(b"]}");
    // The answer has no `ETag`: each combination of symbols would need its own, each time.
    let verdict = call.request.preconditions().judge(None)?;
    reply.send(verdict.status(), JSON, HEADERS);
    Ok(())
}

/// Walks the request's symbols in order and writes `{"quotes":[…` with those that L1 has. Never
/// inlined: the cache's pin is bound to the thread, and the caller may park between two passes.
#[inline(never)]
fn join(
    state: &State,
    query: &[u8],
    body: &mut Vec<u8>,
    pass_kind: PassKind,
) -> Result<Pass, Problem> {
    body.extend_from_slice(b"{\"quotes\":[");
    let view = state.l1.view(state.clock.monotonic_ms());
    let mut pass = Pass::default();
    let mut seen = Seen::default();
    each_symbol(query, |symbol| {
        if !seen.is_new(symbol) {
            return;
        }
        let hit = match pass_kind {
            PassKind::First => view.ask(symbol),
            PassKind::AfterWait => view.get(symbol),
        };
        if let Some(known @ Hit::Known { cold, .. }) = &hit {
            if *cold && pass_kind == PassKind::First {
                pass.cold.extend(Symbol::parse(symbol));
            }
            if pass.quotes > 0 {
                body.push(b',');
            }
            known.write(body);
            pass.quotes += 1;
        } else if let Some(symbol) = Symbol::parse(symbol) {
            pass.unavailable.push(symbol.clone());
            if hit.is_none() {
                pass.missing.push(symbol);
            }
        }
    })?;
    drop(view);
    let misses = pass.missing.len() + pass.cold.len();
    state.l1.count((seen.count - misses) as u64, misses as u64);
    Ok(pass)
}

/// Symbols that a feed may have.
pub(super) struct Fetchable {
    /// Symbols of the instrument list.
    pub(super) listed: Vec<Symbol>,
    /// Other symbols, of which a few are tried.
    pub(super) probed: Vec<Symbol>,
}

impl Fetchable {
    pub(super) fn among(state: &State, missing: &[Symbol]) -> Self {
        let list = state.instruments.load_full();
        let (listed, unlisted): (Vec<Symbol>, Vec<Symbol>) =
            missing.iter().cloned().partition(|symbol| list.contains(symbol.as_str()));
        // No list is complete: the embedded one has large shares only, and of broker A's a row may
        // be broken. What it lacks is tried within a small budget.
        Self { listed, probed: unlisted }
    }
}

/// Wait for missing symbols. It is 0 if no feed can answer in time; the symbols are still
/// registered for the next poll.
pub(super) fn wait_ms(state: &State) -> u64 {
    let answering = state.answer_in_ms.load(Ordering::Relaxed) == 0;
    if answering { state.miss_wait_ms } else { 0 }
}

/// Registers `missing` with the scheduler and parks. True if some were not settled in time.
fn fetch(state: &State, client: Option<IpAddr>, missing: &[Symbol]) -> bool {
    let Fetchable { listed, probed } = Fetchable::among(state, missing);
    if listed.is_empty() && probed.is_empty() {
        return false;
    }
    let wait_ms = wait_ms(state);
    let started_ms = state.clock.monotonic_ms();
    let left_ms = || {
        let spent_ms = state.clock.monotonic_ms().saturating_sub(started_ms);
        wait_ms.saturating_sub(spent_ms)
    };
    let settled = listed.is_empty()
        || match state.pending.join_listed(&listed) {
            Ok(wait) => park(wait, left_ms()),
            Err(busy) => {
                tracing::debug!(%busy, "request not queued for missing quotes");
                false
            }
        };
    let tried = probed.is_empty()
        || state.pending.join_unlisted(client, &probed).is_some_and(|wait| park(wait, left_ms()));
    !(settled && tried)
}

/// The 503 if nothing is cached and nothing was fetched. The symbols stay registered for the next
/// call.
fn unavailable(answer_in_ms: u64) -> Problem {
    let bare = "Nothing is cached for these symbols and no source";
    let (detail, retry_after_s) = match answer_in_ms {
        0 => (format!("{bare} has answered."), RETRY_AFTER_S),
        ms => {
            let s = ms.div_ceil(1_000);
            (format!("{bare} may be asked before {s} s have passed."), s)
        }
    };
    Problem::unavailable("quotes_unavailable", detail, retry_after_s)
}

fn park(wait: Wait, wait_ms: u64) -> bool {
    if wait_ms == 0 { wait.is_settled() } else { wait.until(wait_ms) }
}

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
fn each_symbol(query: &[u8], mut visit: impl FnMut(&str)) -> Result<(), Problem> {
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
    if count == 0 { Err(none_given()) } else { Ok(()) }
}

/// A symbol whose bytes are being decoded.
struct Partial {
    bytes: [u8; SYMBOL_BYTES_MAX],
    length: usize,
    bad: bool,
}

impl Default for Partial {
    fn default() -> Self {
        Self { bytes: [0; SYMBOL_BYTES_MAX], length: 0, bad: false }
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

fn none_given() -> Problem {
    let detail = "Give symbols=EXCHANGE:TICKER, several separated by commas.";
    Problem::new(400, "symbols_missing", detail).field("symbols", detail)
}

/// The symbols of this request so far, to drop duplicates. Only hashes are kept: for two different
/// symbols to be confused, 64 bits of a randomly seeded hash would have to be equal.
struct Seen {
    hasher: RandomState,
    hashes: [u64; SYMBOLS_MAX],
    count: usize,
}

impl Default for Seen {
    fn default() -> Self {
        Self { hasher: RandomState::default(), hashes: [0; SYMBOLS_MAX], count: 0 }
    }
}

impl Seen {
    fn is_new(&mut self, symbol: &str) -> bool {
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

// ---- Snapshot
//
// `GET /api/index/snapshot`: picks the prepared response and copies it out.

/// Never waits, and allocates nothing once there is data.
pub(crate) fn read_snapshot(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    if state.snapshot.is_outlived(call.request.arrived_mono_ms)
        && let Some(published) = state.snapshot.load().as_deref()
    {
        let json = aged(published.json());
        let tag = etag(&json);
        reply.body().extend_from_slice(&json);
        return send_tagged(call, &tag, &OF_ALL_CODINGS, reply);
    }
    if send_published(&state.snapshot, call, reply)? {
        return Ok(());
    }
    let detail = "No index data has arrived yet.";
    Err(Problem::unavailable("snapshot_not_ready", detail, 1))
}

/// The snapshot as it is when no price in it is fresh any more. In texts quotation marks are
/// escaped, so only the member is found.
fn aged(json: &[u8]) -> Vec<u8> {
    const FRESH: &[u8] = b"stale\":false";
    let mut aged = Vec::with_capacity(json.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(json, FRESH) {
        aged.extend_from_slice(&json[from..at]);
        aged.extend_from_slice(b"stale\":true");
        from = at + FRESH.len();
    }
    aged.extend_from_slice(&json[from..]);
    aged
}

// ---- Search
//
// `GET /api/market/search`: instruments by ticker, name or ISIN, from memory.

/// Most instruments listed.
pub(super) const RESULTS_MAX: usize = 20;

/// Never waits.
pub(crate) fn read_search(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let text = one(call.query(), "q")?.unwrap_or_default();
    let query = Query::parse(&text).ok_or_else(unusable)?;
    let list = state.instruments.load_full();
    let instruments = found(&list, &state.portfolio.securities.load(), &query);
    let count = instruments.len();
    let results = SearchResults { as_of: Day(list.as_of()), count, instruments };
    values::write(reply.body(), &results);
    send_tagged(call, &etag(reply.written()), &[("Cache-Control", PUBLIC)], reply)
}

fn found<'a>(
    list: &'a InstrumentList,
    securities: &Securities,
    query: &'a Query,
) -> Vec<FoundInstrument<'a>> {
    let shown = |symbol: &Symbol, name: Option<&'a str>| FoundInstrument {
        symbol: symbol.clone(),
        name: name.filter(|name| !name.is_empty()),
    };
    let named = list.search(query, RESULTS_MAX).into_iter();
    let mut found: Vec<_> = named.map(|row| shown(&row.symbol, Some(&*row.name))).collect();
    for listed in securities.with_isin(query.text()) {
        let symbol = Symbol::parse(&format!("{}:{}", listed.exchange, listed.ticker));
        let Some(symbol) = symbol.filter(|symbol| query.is_on(symbol.exchange())) else { continue };
        if found.len() < RESULTS_MAX && !found.iter().any(|earlier| earlier.symbol == symbol) {
            found.push(shown(&symbol, list.name_of(&symbol)));
        }
    }
    found
}

// ---- Movers
//
// `GET /api/market/movers`: copies the prepared response out, as for the snapshot.

/// Never waits: prices that are missing are asked for and come later. The first request in a minute
/// makes its own document.
pub(crate) fn read_movers(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    if send_published(state.movers.asked_for(), call, reply)? {
        return Ok(());
    }
    let universe = state.universe.load_full();
    let instruments = state.instruments.load_full();
    let moment = Moment {
        l1: &state.l1,
        pending: &state.pending,
        universe: &universe,
        instruments: &instruments,
        day: state.market_day(state.clock.now()).day,
        mono_ms: state.clock.monotonic_ms(),
    };
    let (json, _) = moment.document(true);
    let tag = etag(&json);
    reply.body().extend_from_slice(&json);
    send_tagged(call, &tag, &OF_ALL_CODINGS, reply)
}

fn unusable() -> Problem {
    let expected = format!(
        "A ticker, a name or an ISIN, with a letter or digit; at most {QUERY_BYTES_MAX} bytes and \
         {WORDS_MAX} words."
    );
    invalid("q", expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unavailable_answer_names_the_time_to_retry() {
        for (answer_in_ms, retry_after, said) in
            [(0, "5", "no source has answered."), (1_001, "2", "before 2 s have passed.")]
        {
            let problem = unavailable(answer_in_ms);
            assert!(problem.detail.ends_with(said), "{}", problem.detail);
            let header = problem.headers.iter().find(|(name, _)| *name == "Retry-After");
            assert_eq!(header.map(|(_, value)| value.as_ref()), Some(retry_after));
        }
    }
}
