//! `GET /api/market/search`: instruments by ticker, name or ISIN, from memory.

use super::call::Call;
use super::query::{invalid, one};
use super::state::State;
use crate::base::Symbol;
use crate::http::document::coding::etag;
use crate::http::document::variants::PUBLIC;
use crate::http::message::response::JSON;
use crate::http::{Problem, Response};
use crate::market::InstrumentList;
use crate::market::search::{QUERY_BYTES_MAX, Query, WORDS_MAX};
use crate::portfolio::Securities;
use crate::views::json;
use crate::views::search::{FoundInstrument, SearchResults};
use crate::views::values::Day;

/// Most instruments listed.
const RESULTS_MAX: usize = 20;

/// Never waits.
pub fn read(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let text = one(call.request.query().unwrap_or_default(), "q")?.unwrap_or_default();
    let query = Query::parse(&text).ok_or_else(unusable)?;
    let list = state.instruments.load_full();
    let instruments = found(&list, &state.portfolio.securities(), &query);
    let count = instruments.len();
    let results = SearchResults { as_of: Day(list.as_of()), count, instruments };
    json::write(reply.body(), &results);
    let etag = etag(reply.written());
    let verdict = call.request.preconditions().judge(Some(etag.as_bytes()))?;
    reply.send(verdict.status(), JSON, &[("ETag", &etag), ("Cache-Control", PUBLIC)]);
    Ok(())
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

fn unusable() -> Problem {
    let expected = format!(
        "A ticker, a name or an ISIN, with a letter or digit; at most {QUERY_BYTES_MAX} bytes and \
         {WORDS_MAX} words."
    );
    invalid("q", expected)
}
