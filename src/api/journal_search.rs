//! The cursor of a journal page: the position where the page ended, as text for the client. Pure.
//!
//! A cursor is valid for one user and contains nothing that its page did not, so it needs no secret
//! and no key. It stays valid over restarts, key rotation and a move to another machine. Its
//! checksum covers the user too, so that another user's cursor or a changed one is refused. A
//! forged cursor reaches only the user's own entries.
//!
//! `GET /api/journal/search`: the matching entries, and the results of the pairs among them.
//!
//! Reads the whole journal, which has a limit, because pairs are matched over all of it: a sale of
//! this month may close a purchase of the last.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Span;
use jiff::civil::Date;
use rust_decimal::Decimal;
use sha2::{Digest, Sha256};

use crate::api::journal::{
    STRATEGY_CHARS_MAX, SYMBOL_CHARS_MAX, TAG_CHARS_MAX, entry_view, page_of,
};
use crate::api::portfolio::compute;
use crate::api::query::{invalid, one, parameter};
use crate::api::state::{Call, Handled, KEPT, State, send_tagged};
use crate::base::visible;
use crate::http::document::coding::etag;
use crate::http::{Problem, Response};
use crate::portfolio::closed_trades::{NotedTrade, closed_pairs, realised};
use crate::store::{AccountId, JournalCursor, JournalEntry, Side};
use crate::views::export::{FoundEntries, JournalSummary};
use crate::views::values;
use crate::views::values::{Money, Share};

/// The date as a number of days, the entry's id, the checksum.
const BYTES: usize = 4 + 8 + CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = 8;

/// The position as text for a URL.
pub(crate) fn seal(user: AccountId, position: JournalCursor) -> String {
    let days = days_of(position.traded_on);
    let mut bytes = [0; BYTES];
    bytes[..4].copy_from_slice(&days.to_be_bytes());
    bytes[4..12].copy_from_slice(&position.id.to_be_bytes());
    bytes[12..].copy_from_slice(&checksum(user, days, position.id));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position of the user's own cursor; `None` for any other text.
pub(super) fn open(user: AccountId, text: &str) -> Option<JournalCursor> {
    let mut bytes = [0; BYTES];
    let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
    let (days, rest) = bytes.split_first_chunk()?;
    let (id, sum) = rest.split_first_chunk::<8>()?;
    let days = i32::from_be_bytes(*days);
    let id = i64::from_be_bytes(*id);
    if length != BYTES || *sum != checksum(user, days, id) {
        return None;
    }
    let traded_on = Date::ZERO.checked_add(Span::new().try_days(days).ok()?).ok()?;
    Some(JournalCursor { traded_on, id })
}

fn checksum(user: AccountId, days: i32, id: i64) -> [u8; CHECKSUM_BYTES] {
    let mut hash = Sha256::new_with_prefix(b"journal cursor");
    hash.update(user.0.to_be_bytes());
    hash.update(days.to_be_bytes());
    hash.update(id.to_be_bytes());
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&hash.finalize()[..CHECKSUM_BYTES]);
    sum
}

fn days_of(date: Date) -> i32 {
    // Dates span 20,000 years: 7.3 million days.
    (date - Date::ZERO).get_days()
}

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
pub(super) fn search(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let user = call.caller().id;
    let (after, limit) = page_of(call)?;
    let filters = Filters::of(call.query())?;
    let entries = all_entries(state, user)?;
    let body = compute(state, move || Ok(found(user, &entries, &filters, after, limit)))?;
    reply.body().extend_from_slice(&body);
    send_tagged(call, &etag(&body), &KEPT, reply)
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
        self.symbol.as_deref().is_none_or(|part| entry.fields.symbol.contains(part))
    }

    fn is_in_time(&self, entry: &JournalEntry) -> bool {
        let day = entry.fields.traded_on;
        self.from.is_none_or(|from| day >= from) && self.to.is_none_or(|to| day <= to)
    }

    fn is_marked(&self, entry: &JournalEntry) -> bool {
        let strategy = folded(entry.fields.strategy.as_deref().unwrap_or_default());
        let named = self.strategy.as_deref().is_none_or(|wanted| strategy == wanted);
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
    if found.as_ref().is_some_and(|text| text.chars().count() > chars_max) {
        return Err(invalid(name, format!("At most {chars_max} characters.")));
    }
    Ok(found.filter(|text| !text.is_empty()))
}

/// A limit of the dates. Unlike an empty search text, an empty date is an error.
fn date(query: &[u8], name: &'static str) -> Result<Option<Date>, Problem> {
    parameter(query, name, "A date, YYYY-MM-DD.", |text| {
        text.trim().parse().ok().filter(|_| text.trim().len() == DATE_CHARS)
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
    let next = page
        .last()
        .filter(|_| rest.next().is_some())
        .map(|last| seal(user, JournalCursor { traded_on: last.fields.traded_on, id: last.id }));
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
        realised: realised(&trades, &counted).filter(|_| !counted.is_empty()).map(Money),
        fees: sum(kept.iter().map(|entry| Some(entry.fields.fees.unwrap_or_default()))).map(Money),
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

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_cursor_is_valid_only_unchanged_and_for_its_user() {
        let position = JournalCursor { traded_on: date(2026, 11, 20), id: i64::MAX };
        let text = seal(AccountId(1), position);
        assert_eq!(open(AccountId(1), &text), Some(position));
        let oldest = JournalCursor { traded_on: date(1990, 1, 1), id: 1 };
        assert_eq!(open(AccountId(1), &seal(AccountId(1), oldest)), Some(oldest));
        assert_eq!(open(AccountId(2), &text), None, "another's");
        for at in 0..text.len() {
            let mut forged = text.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert_eq!(open(AccountId(1), &forged), None, "{forged}");
        }
        for bad in ["", "A", "====", "....", "é", &text[1..], &text.repeat(2), &"A".repeat(27)] {
            assert_eq!(open(AccountId(1), bad), None, "{bad}");
        }
    }

    /// A cursor from another version or machine is valid here, since the format never changes.
    #[test]
    fn a_cursor_of_an_older_version_is_valid() {
        let position = JournalCursor { traded_on: date(2026, 11, 20), id: 42 };
        assert_eq!(seal(AccountId(7), position), "AAtL0QAAAAAAAAAqI73okUjV8n8");
    }
}
