//! `GET /api/portfolio/live-prices`: joins quotes that are already serialised in L1 (the quote
//! cache in memory).
//!
//! The first pass answers from L1 without allocating. Symbols that L1 lacks are registered with the
//! scheduler, once for all requests, and the request parks for a bounded time. A second pass then
//! answers with the quotes that are there.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use crate::api::call::{Call, Handled};
use crate::api::quote_source::Fetchable;
use crate::api::state::State;
use crate::api::symbols::{Seen, each_symbol, name};
use crate::base::Symbol;
use crate::base::limiter::network;
use crate::cache::Hit;
use crate::cache::pending::Wait;
use crate::http::document::variants::JSON;
use crate::http::{Problem, Response};

/// `Retry-After` if an available feed did not answer in time.
const RETRY_AFTER_S: u64 = 5;

const HEADERS: &[(&str, &str)] = &[("Cache-Control", "no-cache")];

/// Parks only for symbols without a fresh quote, for at most `miss_wait_ms`.
pub(super) fn read(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let query = call.query();
    let mut first = join(state, query, response.body(), PassKind::First)?;
    if first.missing.is_empty() && first.cold.is_empty() {
        return finish(&first, call, response);
    }
    let client = call.request.client_address().map(network);
    first.missing.append(&mut first.cold);
    let unsettled = fetch(state, client, &first.missing);
    let second = join(state, query, response.body(), PassKind::AfterWait)?;
    if second.quotes == 0 && !second.missing.is_empty() && unsettled {
        return Err(unavailable(state.answer_in_ms.load(Ordering::Relaxed)));
    }
    finish(&second, call, response)
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
fn finish(pass: &Pass, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let body = response.written();
    body.extend_from_slice(b"],\"unavailable\":[");
    name(body, pass.unavailable.iter());
    body.extend_from_slice(b"]}");
    // The answer has no `ETag`: each combination of symbols would need its own, each time.
    let verdict = call.request.preconditions().judge(None)?;
    response.send(verdict.status(), JSON, HEADERS);
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

/// Registers `missing` with the scheduler and parks. True if some were not settled in time.
fn fetch(state: &State, client: Option<IpAddr>, missing: &[Symbol]) -> bool {
    let Fetchable { listed, probed } = Fetchable::among(&state.instruments, missing);
    if listed.is_empty() && probed.is_empty() {
        return false;
    }
    let wait_ms = state.miss_wait_ms();
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
        || state
            .pending
            .join_unlisted(client, &probed)
            .is_some_and(|wait| park(wait, left_ms()));
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
    if wait_ms == 0 {
        wait.is_settled()
    } else {
        wait.until(wait_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unavailable_answer_names_the_time_to_retry() {
        for (answer_in_ms, retry_after, said) in [
            (0, "5", "no source has answered."),
            (1_001, "2", "before 2 s have passed."),
        ] {
            let problem = unavailable(answer_in_ms);
            assert!(problem.detail.ends_with(said), "{}", problem.detail);
            let header = problem
                .headers
                .iter()
                .find(|(name, _)| *name == "Retry-After");
            assert_eq!(header.map(|(_, value)| value.as_ref()), Some(retry_after));
        }
    }
}
