//! `GET /api/market/candles`: the newest stored daily candles of a symbol.
//!
//! Answered from memory. A symbol that is missing, or was read too long ago, is read from the store
//! once, serialised on the portfolio lane, and kept. For clients that accept it the document is
//! compressed there once, and kept too.

use std::sync::Arc;

use jiff::civil::Date;

use crate::api::call::{Call, Handled};
use crate::api::kept_candles::Found;
use crate::api::lane::compute;
use crate::api::query::{invalid, one, parameter, whole};
use crate::api::replies::send_tagged;
use crate::api::state::State;
use crate::base::{Symbol, clock};
use crate::http::document::coding::etag;
use crate::http::document::negotiate::{Coding, preferred_coding};
use crate::http::document::variants::PUBLIC;
use crate::http::{CachePolicy, Problem, Response, Variants};
use crate::views::candles::{CandlesDocument, CandlesHead};
use crate::views::states::DataState;
use crate::views::values::{Mark, Simulated};

/// About a year of sessions.
const DAYS_DEFAULT: usize = 250;
/// Slightly more than the sessions that are stored of a symbol.
pub(super) const DAYS_MAX: usize = 600;

/// `Retry-After` while other symbols are being read.
const BUSY_RETRY_S: u64 = 1;

const POLICY: CachePolicy = CachePolicy {
    // A smaller body fits into one packet anyway.
    compressed_from_bytes: COMPRESSED_FROM_BYTES,
    ..CachePolicy::JSON
};

const COMPRESSED_FROM_BYTES: usize = 1_024;

/// Parks for a symbol that is not in memory, or was not compressed yet.
pub(super) fn read(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let (symbol, days) = asked(call.query())?;
    let Some(document) = document(state, &symbol)? else {
        return without(state, &symbol, call, response);
    };
    let request = call.request;
    if preferred_coding(request.accept_encoding()) != Coding::Identity
        && let Some(compressed) = compressed(state, &symbol, &document, days)
    {
        let chosen = compressed.select(request.accept_encoding(), request.preconditions())?;
        response.send_document(chosen);
        return Ok(());
    }
    document.write(days, response.body());
    let etag = format!("\"{}\"", document.tag(days));
    send_tagged(call, &etag, &[("Cache-Control", PUBLIC), ("Vary", POLICY.vary)], response)
}

/// The document with the newest `days` candles in all codings. `None` if it is small or the lane is
/// busy; it is then sent uncompressed.
fn compressed(
    state: &State,
    symbol: &Symbol,
    document: &Arc<CandlesDocument>,
    days: usize,
) -> Option<Arc<Variants>> {
    if document.bytes(days) < COMPRESSED_FROM_BYTES {
        return None;
    }
    let kept = &state.candles;
    let count = document.count(days);
    let tag = document.tag(days);
    if let Some(compressed) = kept.find_compressed(symbol, count, &tag) {
        return Some(compressed);
    }
    let _permit = kept.permit()?;
    let document = Arc::clone(document);
    let made = compute(&state.portfolio.lane, move || {
        let mut json = Vec::with_capacity(document.bytes(days) + 256);
        document.write(days, &mut json);
        Ok(Arc::new(Variants::tagged(&json, &document.tag(days), &POLICY)))
    });
    let compressed = made.ok()?;
    kept.keep_compressed(symbol, count, &compressed);
    Some(compressed)
}

/// The candles of `symbol`; `None` if none are stored.
fn document(state: &State, symbol: &Symbol) -> Result<Option<Arc<CandlesDocument>>, Problem> {
    let kept = &state.candles;
    let now_mono_ms = state.clock.monotonic_ms();
    let (older, permit) = match kept.find(symbol, now_mono_ms) {
        Found::Fresh(document) => return Ok(document),
        Found::Old(older, permit) => (Some(older), permit),
        Found::Absent(permit) => (None, permit),
    };
    let Some(_permit) = permit else {
        return older.ok_or_else(busy);
    };
    match made(state, symbol) {
        Ok(document) => {
            kept.keep(symbol, document.clone(), state.clock.monotonic_ms());
            Ok(document)
        }
        // Candles change once a day, so the old ones are most likely current.
        Err(problem) => older.ok_or(problem),
    }
}

fn made(state: &State, symbol: &Symbol) -> Result<Option<Arc<CandlesDocument>>, Problem> {
    let Some(stored) = state.store.candle_history(symbol, DAYS_MAX)? else {
        return Ok(None);
    };
    let last = stored.candles.last().map(|candle| candle.date);
    let suspect = stored.suspect || is_behind(state, last);
    let symbol = symbol.clone();
    compute(&state.portfolio.lane, move || {
        let head = CandlesHead {
            symbol: &symbol,
            state: DataState::Ready,
            detail: None,
            progress: None,
            source: Some(stored.source),
            simulated: Simulated(stored.simulated),
            suspect: Mark(suspect),
        };
        Ok(Some(Arc::new(CandlesDocument::of(&head, &stored.candles))))
    })
}

/// Whether candles that end on `last` lack more than the session that closed last. Its own candle
/// comes in the course of the evening.
fn is_behind(state: &State, last: Option<Date>) -> bool {
    let calendar = state.calendar();
    let now = state.clock.now();
    let today = clock::zoned(now).date();
    let closed = match calendar.official_close(today) {
        Some(close) if close <= now => Some(today),
        _ => calendar.previous_trading_date(today),
    };
    let before = closed.and_then(|closed| calendar.previous_trading_date(closed));
    before.is_some_and(|before| last < Some(before))
}

fn asked(query: &[u8]) -> Result<(Symbol, usize), Problem> {
    let symbol = one(query, "symbol")?.and_then(|text| Symbol::parse(&text));
    let symbol = symbol.ok_or_else(|| invalid("symbol", "EXCHANGE:TICKER, such as NSE:INFY."))?;
    let expected = format!("A whole number from 1 to {DAYS_MAX}.");
    let days = parameter(query, "days", expected, whole(1..=DAYS_MAX))?;
    Ok((symbol, days.unwrap_or(DAYS_DEFAULT)))
}

/// Answers for a symbol without candles: whether they are being fetched. 404 if no list has it.
fn without(
    state: &State,
    symbol: &Symbol,
    call: &Call<'_>,
    response: &mut Response<'_>,
) -> Handled {
    let work = state.candle_work.load();
    let its = work.state_of(symbol);
    if its == DataState::None && !is_listed(state, symbol) {
        let detail = "No list of instruments has this symbol.";
        return Err(Problem::new(404, "candles_not_found", detail));
    }
    let detail = work
        .detail
        .as_deref()
        .filter(|_| its == DataState::Unreachable);
    let progress = work.progress.filter(|_| its == DataState::Loading);
    let head = CandlesHead::without(symbol, its, detail, progress);
    CandlesDocument::of(&head, &[]).write(DAYS_MAX, response.body());
    let tag = etag(response.written());
    send_tagged(call, &tag, &[("Cache-Control", PUBLIC), ("Vary", POLICY.vary)], response)
}

/// Whether some list has the symbol: of instruments, of indices, or of what signals are made of.
fn is_listed(state: &State, symbol: &Symbol) -> bool {
    state.instruments.load().contains(symbol.as_str())
        || state.indices.all().any(|index| index.symbol == *symbol)
        || state.universe.load().symbols().contains(symbol)
}

fn busy() -> Problem {
    let detail = "Candles of too many symbols are being read.";
    Problem::unavailable("candles_busy", detail, BUSY_RETRY_S)
}
