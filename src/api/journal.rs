//! `/api/journal`: a user's own notes on trades. Deleting the portfolio does not delete them.
//!
//! Each handler parks for the store once. Every call passes the caller's id with the entry's, so
//! that another user's entry gives the same 404 as one that never existed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::civil::Date;
use jiff::{Span, Timestamp, ToSpan};
use rust_decimal::Decimal;
use sha2::{Digest, Sha256};

use crate::api::body::{Amount, Fields, invalid, one, parameter, whole};
use crate::api::portfolio::compute;
use crate::api::state::{
    Call, Handled, KEPT, NO_STORE, State, etag_of, expected, expected_with, reply_with, revision,
    send_tagged,
};
use crate::base::visible;
use crate::base::{Words, clock};
use crate::http::document::variants::{JSON, etag};
use crate::http::{Problem, Response};
use crate::portfolio::closed_trades::{NotedTrade, closed_pairs, realised};
use crate::store::{AccountId, ExpectedPage, JournalCursor, JournalEntry, JournalFields, Side};
use crate::views::account::Message;
use crate::views::export::{FoundEntries, JournalEntry as EntryView, JournalPage, JournalSummary};
use crate::views::values::{self, Day, Exact, Instant, Money, Share};

/// Entries on a page.
const LIMIT_DEFAULT: usize = 50;
pub(super) const LIMIT_MAX: usize = 200;

const SYMBOL_CHARS_MAX: usize = 48;
const STRATEGY_CHARS_MAX: usize = 100;
const NOTES_CHARS_MAX: usize = 4_000;
const TAGS_MAX: usize = 20;
const TAG_CHARS_MAX: usize = 40;

/// Large enough for any trade in rupees or units, and exact in the decimal type.
const PRICE: Amount = Amount { zero: true, whole_digits: 12, places: 6 };
const QUANTITY: Amount = Amount { zero: false, ..PRICE };

/// Earliest trading date. Catches a mistyped century.
const FIRST_DATE: Date = jiff::civil::date(1990, 1, 1);

/// `GET /api/journal`: a page, newest trading date first, then newest entry. Long entries make a
/// page shorter than was asked for; only the cursor shows whether there are more.
pub(super) fn list(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let id = call.caller().id;
    let (after, limit) = page_of(call)?;
    // The store bounds the page in bytes, so that hashing and writing it on the edge is quick.
    let page = state.store.entries(id, after, limit)?;
    let view = JournalPage {
        entries: page.entries.iter().map(entry_view).collect(),
        next_cursor: page.next().map(|position| seal(id, position)),
    };
    values::write(reply.body(), &view);
    send_tagged(call, &etag_of(&page.revision()), &KEPT, reply)
}

/// The page that the query asks for: its cursor and its limit.
fn page_of(call: &Call<'_>) -> Result<(Option<JournalCursor>, usize), Problem> {
    let expected = format!("A number from 1 to {LIMIT_MAX}.");
    let limit = parameter(call.query(), "limit", expected, whole(1..=LIMIT_MAX))?;
    let after = match one(call.query(), "cursor")? {
        Some(text) => Some(open(call.caller().id, &text).ok_or_else(cursor_invalid)?),
        None => None,
    };
    Ok((after, limit.unwrap_or(LIMIT_DEFAULT)))
}

/// `POST /api/journal`. Preconditions apply to the page that a GET of the same target would return.
pub(super) fn add(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let now = state.clock.now();
    let mut fields = Fields::of(call.request)?;
    // A new entry may be a copy of another, which has one.
    let _ = revision(&mut fields);
    let fields = read(fields, now)?;
    let expected = expected(call.request);
    let page = if expected.is_any() {
        None
    } else {
        let (after, limit) = page_of(call)?;
        Some(ExpectedPage { after, limit, expected })
    };
    state.admit_write(call.caller())?;
    let user = call.caller().id;
    let entry = state.store.add_entry(user, fields, now.as_millisecond(), page)?;
    values::write(reply.body(), &entry_view(&entry));
    let location = format!("/api/journal/{}", entry.id);
    let etag = etag_of(&entry.revision());
    reply.send(201, JSON, &[("Location", &location), ("ETag", &etag), NO_STORE]);
    Ok(())
}

/// `GET /api/journal/{id}`.
pub(super) fn show(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let found = state.store.entry(call.caller().id, entry_id(call))?;
    let entry = found.ok_or_else(entry_not_found)?;
    values::write(reply.body(), &entry_view(&entry));
    send_tagged(call, &etag_of(&entry.revision()), &KEPT, reply)
}

/// `PUT /api/journal/{id}`: replaces the whole entry, so fields that are left out are deleted. The
/// answer has no `ETag`, because the stored entry is not byte for byte what was sent (RFC 9110
/// 9.3.4).
pub(super) fn replace(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let now = state.clock.now();
    let mut fields = Fields::of(call.request)?;
    let expected = expected_with(call.request, &mut fields);
    let fields = read(fields, now)?;
    let (user, entry) = (call.caller().id, entry_id(call));
    let now_ms = now.as_millisecond();
    state.admit_write(call.caller())?;
    let replaced = state.store.replace_entry(user, entry, fields, now_ms, expected)?;
    let entry = replaced.ok_or_else(entry_not_found)?;
    reply_with(200, &entry_view(&entry), reply);
    Ok(())
}

/// `DELETE /api/journal/{id}`: 200 with a message, because every answer of this API is JSON.
pub(super) fn delete(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let (user, entry) = (call.caller().id, entry_id(call));
    state.admit_write(call.caller())?;
    if !state.store.delete_entry(user, entry, expected(call.request))? {
        return Err(entry_not_found());
    }
    reply_with(200, &Message { message: "The journal entry has been deleted." }, reply);
    Ok(())
}

fn entry_id(call: &Call<'_>) -> i64 {
    call.path_id.expect("the path of the route has {id}")
}

fn entry_not_found() -> Problem {
    Problem::new(404, "entry_not_found", "You have no journal entry of this id.")
}

fn cursor_invalid() -> Problem {
    let detail = "This is no next_cursor of a page of yours. Begin with the first page.";
    Problem::new(400, "cursor_invalid", detail)
}

/// Reads and checks an entry. All faults are reported.
fn read(mut fields: Fields<'_>, now: Timestamp) -> Result<JournalFields, Problem> {
    let traded_on = fields.required("traded_on", Fields::optional_date);
    let symbol = fields.text("symbol", SYMBOL_CHARS_MAX);
    let side = fields.text("side", SYMBOL_CHARS_MAX);
    let amount = |kind| move |f: &mut Fields<'_>, name| f.optional_decimal(name, kind);
    let quantity = fields.required("quantity", amount(QUANTITY));
    let price = fields.required("price", amount(PRICE));
    let fees = fields.optional_decimal("fees", PRICE);
    let strategy = fields.optional_text("strategy", STRATEGY_CHARS_MAX);
    let notes = fields.optional_text("notes", NOTES_CHARS_MAX);
    let tags = fields.texts("tags", TAGS_MAX, TAG_CHARS_MAX);
    // In time zones east of India today's trade is already dated tomorrow.
    let last = clock::zoned(now).date().saturating_add(1.day());
    if traded_on.is_some_and(|date| date < FIRST_DATE || date > last) {
        fields.fault("traded_on", format!("A date from {FIRST_DATE} to today."));
    }
    if !symbol.is_empty() && !is_symbol(&symbol) {
        let message = "Upper-case letters, digits, & - . _ : and single spaces between them.";
        fields.fault("symbol", message);
    }
    let parsed_side = Side::parse(&side);
    if parsed_side.is_none() && !side.is_empty() {
        fields.fault("side", "Either buy or sell.");
    }
    if strategy.as_deref().is_some_and(|text| text.chars().any(char::is_control)) {
        fields.fault("strategy", "No control characters.");
    }
    let in_notes = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if notes.as_deref().is_some_and(|text| text.contains(in_notes)) {
        fields.fault("notes", "No control characters but line ends and tabs.");
    }
    if tags.iter().any(|tag| tag.trim() != tag) {
        fields.fault("tags", "No spaces around a tag.");
    }
    let tags: Vec<String> = tags.iter().map(|tag| fields.seen("tags", tag)).collect();
    if (1..tags.len()).any(|at| tags[..at].contains(&tags[at])) {
        fields.fault("tags", "Each tag once.");
    }
    fields.done()?;
    let whole = traded_on.zip(parsed_side).zip(quantity.zip(price));
    let ((traded_on, side), (quantity, price)) =
        whole.expect("each that is missing was noted as a fault");
    let given = |text: &String| !text.is_empty();
    let (strategy, notes) = (strategy.filter(given), notes.filter(given));
    Ok(JournalFields { traded_on, symbol, side, quantity, price, fees, strategy, notes, tags })
}

/// A ticker with or without its exchange: `NSE:M&M`, `NIFTY 26NOV 25000 CE`.
fn is_symbol(text: &str) -> bool {
    let of_symbol = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "&-._:".contains(c);
    text.split(' ').all(|word| !word.is_empty() && word.chars().all(of_symbol))
}

/// An entry as clients see it. The user's numbers are not rounded.
pub(super) fn entry_view(entry: &JournalEntry) -> EntryView<'_> {
    let fields = &entry.fields;
    EntryView {
        id: entry.id,
        traded_on: Day(fields.traded_on),
        symbol: &fields.symbol,
        side: fields.side.as_str(),
        quantity: Exact(fields.quantity),
        price: Exact(fields.price),
        fees: fields.fees.map(Exact),
        strategy: fields.strategy.as_deref(),
        notes: fields.notes.as_deref(),
        tags: &fields.tags,
        created_at: Instant::of_ms(entry.created_ms),
        updated_at: Instant::of_ms(entry.updated_ms),
        revision: entry.revision().0,
    }
}

// ---- Cursor
//
// The cursor of a journal page: the position where the page ended, as text for the client. Pure.
//
// A cursor is valid for one user and contains nothing that its page did not, so it needs no secret
// and no key. It stays valid over restarts, key rotation and a move to another machine. Its
// checksum covers the user too, so that another user's cursor or a changed one is refused. A forged
// cursor reaches only the user's own entries.

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
    let (days, id) = (i32::from_be_bytes(*days), i64::from_be_bytes(*id));
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

// ---- Search
//
// `GET /api/journal/search`: the matching entries, and the results of the pairs among them.
//
// Reads the whole journal, which has a limit, because pairs are matched over all of it: a sale of
// this month may close a purchase of the last.

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
    let (mut entries, mut after) = (Vec::new(), None);
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
        let (opened, closed) = (oldest_first[pair.opened_by], oldest_first[pair.closed_by]);
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
#[path = "journal_tests.rs"]
mod tests;

#[cfg(test)]
mod cursor_tests {
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
