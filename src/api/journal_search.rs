//! `GET /api/journal/search`: the matching entries, and the results of the pairs among them.
//!
//! Reads the whole journal, which has a limit, because pairs are matched over all of it: a sale of
//! this month may close a purchase of the last.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::api::call::{Call, Handled};
use crate::api::journal::{
    STRATEGY_CHARS_MAX, SYMBOL_CHARS_MAX, TAG_CHARS_MAX, entry_view, page_of,
};
use crate::api::journal_cursor::seal;
use crate::api::lane::compute;
use crate::api::query::{invalid, one, parameter};
use crate::api::replies::{KEPT, send_tagged};
use crate::api::state::State;
use crate::base::visible;
use crate::http::document::coding::etag;
use crate::http::{Problem, Response};
use crate::portfolio::closed_trades::{NotedTrade, closed_pairs, realised};
use crate::store::{AccountId, JournalCursor, JournalEntry, Side};
use crate::views::journal::{FoundEntries, JournalSummary};
use crate::views::values;
use crate::views::values::{Money, Share};

/// Length of a date such as 2026-11-20.
const DATE_CHARS: usize = 10;

/// Entries read at once. The store shortens a page of long ones.
const READ_AT_ONCE: usize = 1_000;

/// Conditions on an entry. A field that is not given accepts everything.
struct Filters {
    /// Part of the symbol.
    symbol: Option<String>,
    strategy: Option<String>,
    tag: Option<String>,
    from: Option<Date>,
    to: Option<Date>,
}

/// `GET /api/journal/search`. Parks for the store once for each thousand entries, and then for the
/// lane that computes.
pub(super) fn search(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let user = call.caller().id;
    let (after, limit) = page_of(call)?;
    let filters = Filters::of(call.query())?;
    let entries = all_entries(state, user)?;
    let body =
        compute(&state.portfolio.lane, move || Ok(found(user, &entries, &filters, after, limit)))?;
    response.body().extend_from_slice(&body);
    send_tagged(call, &etag(&body), &KEPT, response)
}

/// Newest first.
fn all_entries(state: &State, user: AccountId) -> Result<Vec<JournalEntry>, Problem> {
    let mut entries = Vec::new();
    let mut after = None;
    loop {
        let page = state.store.entries(user, after, READ_AT_ONCE)?;
        after = page.next();
        entries.extend(page.entries);
        if after.is_none() {
            return Ok(entries);
        }
    }
}

impl Filters {
    fn of(query: &[u8]) -> Result<Self, Problem> {
        Ok(Self {
            symbol: text(query, "symbol", SYMBOL_CHARS_MAX)?.map(|symbol| symbol.to_uppercase()),
            strategy: text(query, "strategy", STRATEGY_CHARS_MAX)?
                .map(|strategy| folded(&strategy)),
            tag: text(query, "tag", TAG_CHARS_MAX)?.map(|tag| folded(&tag)),
            from: date(query, "from")?,
            to: date(query, "to")?,
        })
    }

    fn is_of_symbol(&self, entry: &JournalEntry) -> bool {
        self.symbol
            .as_deref()
            .is_none_or(|part| entry.fields.symbol.contains(part))
    }

    fn is_in_time(&self, entry: &JournalEntry) -> bool {
        let day = entry.fields.traded_on;
        self.from.is_none_or(|from| day >= from) && self.to.is_none_or(|to| day <= to)
    }

    fn is_marked(&self, entry: &JournalEntry) -> bool {
        let strategy = folded(entry.fields.strategy.as_deref().unwrap_or_default());
        let named = self
            .strategy
            .as_deref()
            .is_none_or(|wanted| strategy == wanted);
        let tags = &entry.fields.tags;
        let tagged = |wanted: &str| tags.iter().any(|tag| folded(tag) == wanted);
        named && self.tag.as_deref().is_none_or(tagged)
    }

    fn keep(&self, entry: &JournalEntry) -> bool {
        self.is_of_symbol(entry) && self.is_in_time(entry) && self.is_marked(entry)
    }
}

/// A tag or strategy as it is compared: as people see it, in any case.
fn folded(text: &str) -> String {
    visible::name(text).to_lowercase()
}

fn text(query: &[u8], name: &'static str, chars_max: usize) -> Result<Option<String>, Problem> {
    let found = one(query, name)?.map(|text| text.trim().to_owned());
    if found
        .as_ref()
        .is_some_and(|text| text.chars().count() > chars_max)
    {
        return Err(invalid(name, format!("At most {chars_max} characters.")));
    }
    Ok(found.filter(|text| !text.is_empty()))
}

/// A limit of the dates. Unlike an empty search text, an empty date is an error.
fn date(query: &[u8], name: &'static str) -> Result<Option<Date>, Problem> {
    parameter(query, name, "A date, YYYY-MM-DD.", |text| {
        text.trim()
            .parse()
            .ok()
            .filter(|_| text.trim().len() == DATE_CHARS)
    })
}

fn found(
    user: AccountId,
    entries: &[JournalEntry],
    filters: &Filters,
    after: Option<JournalCursor>,
    limit: usize,
) -> Vec<u8> {
    let kept: Vec<_> = entries.iter().filter(|entry| filters.keep(entry)).collect();
    let comes_after = |entry: &&&JournalEntry| {
        let place = (entry.fields.traded_on, entry.id);
        after.is_none_or(|position| place < (position.traded_on, position.id))
    };
    let mut rest = kept.iter().filter(comes_after);
    let page: Vec<_> = rest.by_ref().take(limit).collect();
    let next = page.last().filter(|_| rest.next().is_some()).map(|last| {
        seal(
            user,
            JournalCursor {
                traded_on: last.fields.traded_on,
                id: last.id,
            },
        )
    });
    values::to_vec(&FoundEntries {
        entries: page.into_iter().map(|entry| entry_view(entry)).collect(),
        next_cursor: next,
        count: kept.len(),
        summary: summary(entries, filters, &kept),
    })
}

/// A pair counts if it was closed within the dates and either of its trades matches, because most
/// people note a strategy when they open a position.
fn summary(entries: &[JournalEntry], filters: &Filters, kept: &[&JournalEntry]) -> JournalSummary {
    let oldest_first: Vec<_> = entries.iter().rev().collect();
    let trades: Vec<_> = oldest_first.iter().map(|entry| trade(entry)).collect();
    let pairs = closed_pairs(&trades);
    let counted = pairs.into_iter().filter(|pair| {
        let opened = oldest_first[pair.opened_by];
        let closed = oldest_first[pair.closed_by];
        let marked = filters.is_marked(opened) || filters.is_marked(closed);
        filters.is_of_symbol(closed) && filters.is_in_time(closed) && marked
    });
    let counted: Vec<_> = counted.collect();
    let profits = counted.iter().filter_map(|pair| realised(&trades, [pair]));
    let wins = profits.filter(|profit| *profit > Decimal::ZERO).count();
    let share = wins as f64 / counted.len() as f64;
    JournalSummary {
        closed_pairs: counted.len(),
        wins,
        win_rate: (!counted.is_empty()).then(|| Share::of(share)),
        realised: realised(&trades, &counted)
            .filter(|_| !counted.is_empty())
            .map(Money),
        fees: sum(kept
            .iter()
            .map(|entry| Some(entry.fields.fees.unwrap_or_default())))
        .map(Money),
    }
}

fn trade(entry: &JournalEntry) -> NotedTrade<'_> {
    let fields = &entry.fields;
    NotedTrade {
        symbol: &fields.symbol,
        is_buy: fields.side == Side::Buy,
        quantity: fields.quantity,
        price: fields.price,
        fees: fields.fees.unwrap_or_default(),
    }
}

/// `None` if an amount is unknown, or the sum has too many digits.
fn sum(mut amounts: impl Iterator<Item = Option<Decimal>>) -> Option<Decimal> {
    amounts.try_fold(Decimal::ZERO, |sum, amount| sum.checked_add(amount?))
}
