//! `GET /api/market/search`: instruments by ticker, name or ISIN, or by whole symbols or several
//! ISINs, for their names; from memory.
//!
//! Runs on the edge. Never waits.

use crate::api::call::{Call, Handled};
use crate::api::query::{invalid, one, parameter};
use crate::api::replies::send_tagged;
use crate::api::state::State;
use crate::api::symbols::symbols;
use crate::base::{Isin, Symbol};
use crate::http::document::coding::etag;
use crate::http::document::variants::PUBLIC;
use crate::http::{Problem, Response};
use crate::market::InstrumentList;
use crate::market::search::{QUERY_BYTES_MAX, Query, WORDS_MAX};
use crate::portfolio::Securities;
use crate::views::quotes::{FoundInstrument, SearchResults};
use crate::views::values::Day;
use crate::views::values::write;

/// Most instruments listed.
const RESULTS_MAX: usize = 20;
/// Most ISINs of a request.
const ISINS_MAX: usize = 50;
const ISINS: &str = "At most 50 ISINs as INE002A01018, separated by commas.";

/// Never waits.
pub(crate) fn read(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let list = state.instruments.load_full();
    if let Some(text) = one(call.query(), "q")? {
        let query = Query::parse(&text).ok_or_else(unusable)?;
        let instruments = found(&list, &state.portfolio.securities.load(), &query);
        return send(&list, instruments, call, response);
    }
    if let Some(isins) = parameter(call.query(), "isins", ISINS, isins)? {
        let securities = state.portfolio.securities.load();
        let known = isins
            .iter()
            .filter_map(|isin| with_isin(&list, &securities, isin));
        return send(&list, known.collect(), call, response);
    }
    let wanted = symbols(call.query())?;
    let known = wanted
        .into_iter()
        .filter(|symbol| list.contains(symbol.as_str()));
    let named = known.map(|symbol| FoundInstrument {
        name: list.name_of(&symbol),
        symbol,
        isin: None,
    });
    send(&list, named.collect(), call, response)
}

fn isins(text: &str) -> Option<Vec<Isin>> {
    let isins: Option<Vec<Isin>> = text.split(',').map(Isin::parse).collect();
    isins.filter(|isins| isins.len() <= ISINS_MAX)
}

/// The share with this ISIN, on the NSE if it is listed there.
fn with_isin<'a>(
    list: &'a InstrumentList,
    securities: &Securities,
    isin: &'a Isin,
) -> Option<FoundInstrument<'a>> {
    let listed = securities.with_isin(isin.as_str());
    let listed = listed.min_by_key(|listed| listed.exchange != "NSE")?;
    let symbol = Symbol::parse(&format!("{}:{}", listed.exchange, listed.ticker))?;
    Some(FoundInstrument {
        name: list.name_of(&symbol),
        symbol,
        isin: Some(isin.as_str()),
    })
}

fn send(
    list: &InstrumentList,
    instruments: Vec<FoundInstrument<'_>>,
    call: &Call<'_>,
    response: &mut Response<'_>,
) -> Handled {
    let count = instruments.len();
    let results = SearchResults {
        as_of: Day(list.as_of()),
        count,
        instruments,
    };
    write(response.body(), &results);
    send_tagged(call, &etag(response.written()), &[("Cache-Control", PUBLIC)], response)
}

pub(super) fn found<'a>(
    list: &'a InstrumentList,
    securities: &Securities,
    query: &'a Query,
) -> Vec<FoundInstrument<'a>> {
    let shown = |symbol: &Symbol, name: Option<&'a str>| FoundInstrument {
        symbol: symbol.clone(),
        name: name.filter(|name| !name.is_empty()),
        isin: None,
    };
    let named = list.search(query, RESULTS_MAX).into_iter();
    let mut found: Vec<_> = named
        .map(|row| shown(&row.symbol, Some(&*row.name)))
        .collect();
    for listed in securities.with_isin(query.text()) {
        let symbol = Symbol::parse(&format!("{}:{}", listed.exchange, listed.ticker));
        let Some(symbol) = symbol.filter(|symbol| query.is_on(symbol.exchange())) else {
            continue;
        };
        if found.len() < RESULTS_MAX && !found.iter().any(|earlier| earlier.symbol == symbol) {
            found.push(shown(&symbol, list.name_of(&symbol)));
        }
    }
    found
}

pub(super) fn unusable() -> Problem {
    let expected = format!(
        "A ticker, a name or an ISIN, with a letter or digit; at most {QUERY_BYTES_MAX} bytes and \
         {WORDS_MAX} words."
    );
    invalid("q", expected)
}
