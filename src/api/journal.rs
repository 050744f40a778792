//! `/api/journal`: a user's own notes on trades. Deleting the portfolio does not delete them.
//!
//! Each handler parks for the store once. Every call passes the caller's id with the entry's, so
//! that another user's entry gives the same 404 as one that never existed.

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};

use crate::api::body::{Amount, Fields};
use crate::api::call::{Call, Handled};
use crate::api::conditional::{etag_of, expected, expected_with, revision};
use crate::api::journal_cursor::{open, seal};
use crate::api::query::{one, parameter, whole};
use crate::api::replies::{KEPT, NO_STORE, reply_with, send_tagged};
use crate::api::state::State;
use crate::base::{Words, clock};
use crate::http::document::variants::JSON;
use crate::http::{Problem, Response};
use crate::store::{ExpectedPage, JournalCursor, JournalEntry, JournalFields, Side};
use crate::views::account::Message;
use crate::views::journal::{JournalEntry as EntryView, JournalPage};
use crate::views::values;
use crate::views::values::{Day, Exact, Instant};

/// Entries on a page.
const LIMIT_DEFAULT: usize = 50;
pub(super) const LIMIT_MAX: usize = 200;

pub(super) const SYMBOL_CHARS_MAX: usize = 48;
pub(super) const STRATEGY_CHARS_MAX: usize = 100;
const NOTES_CHARS_MAX: usize = 4_000;
const TAGS_MAX: usize = 20;
pub(super) const TAG_CHARS_MAX: usize = 40;

/// Large enough for any trade in rupees or units, and exact in the decimal type.
const PRICE: Amount = Amount {
    zero: true,
    whole_digits: 12,
    places: 6,
};
const QUANTITY: Amount = Amount {
    zero: false,
    ..PRICE
};

/// Earliest trading date. Catches a mistyped century.
const FIRST_DATE: Date = jiff::civil::date(1990, 1, 1);

/// `GET /api/journal`: a page, newest trading date first, then newest entry. Long entries make a
/// page shorter than was asked for; only the cursor shows whether there are more.
pub(super) fn list(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let id = call.caller().id;
    let (after, limit) = page_of(call)?;
    // The store bounds the page in bytes, so that hashing and writing it on the edge is quick.
    let page = state.store.entries(id, after, limit)?;
    let view = JournalPage {
        entries: page.entries.iter().map(entry_view).collect(),
        next_cursor: page.next().map(|position| seal(id, position)),
    };
    values::write(response.body(), &view);
    send_tagged(call, &etag_of(&page.revision()), &KEPT, response)
}

/// The page that the query asks for: its cursor and its limit.
pub(super) fn page_of(call: &Call<'_>) -> Result<(Option<JournalCursor>, usize), Problem> {
    let expected = format!("A number from 1 to {LIMIT_MAX}.");
    let limit = parameter(call.query(), "limit", expected, whole(1..=LIMIT_MAX))?;
    let after = match one(call.query(), "cursor")? {
        Some(text) => Some(open(call.caller().id, &text).ok_or_else(cursor_invalid)?),
        None => None,
    };
    Ok((after, limit.unwrap_or(LIMIT_DEFAULT)))
}

/// `POST /api/journal`. Preconditions apply to the page that a GET of the same target would return.
pub(super) fn add(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
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
        Some(ExpectedPage {
            after,
            limit,
            expected,
        })
    };
    state.admit_write(call.caller())?;
    let user = call.caller().id;
    let entry = state
        .store
        .add_entry(user, fields, now.as_millisecond(), page)?;
    values::write(response.body(), &entry_view(&entry));
    let location = format!("/api/journal/{}", entry.id);
    let etag = etag_of(&entry.revision());
    response.send(201, JSON, &[("Location", &location), ("ETag", &etag), NO_STORE]);
    Ok(())
}

/// `GET /api/journal/{id}`.
pub(super) fn show(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let found = state.store.entry(call.caller().id, entry_id(call))?;
    let entry = found.ok_or_else(entry_not_found)?;
    values::write(response.body(), &entry_view(&entry));
    send_tagged(call, &etag_of(&entry.revision()), &KEPT, response)
}

/// `PUT /api/journal/{id}`: replaces the whole entry, so fields that are left out are deleted. The
/// answer has no `ETag`, because the stored entry is not byte for byte what was sent (RFC 9110
/// 9.3.4).
pub(super) fn replace(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let now = state.clock.now();
    let mut fields = Fields::of(call.request)?;
    let expected = expected_with(call.request, &mut fields);
    let fields = read(fields, now)?;
    let user = call.caller().id;
    let entry = entry_id(call);
    let now_ms = now.as_millisecond();
    state.admit_write(call.caller())?;
    let replaced = state
        .store
        .replace_entry(user, entry, fields, now_ms, expected)?;
    let entry = replaced.ok_or_else(entry_not_found)?;
    reply_with(200, &entry_view(&entry), response);
    Ok(())
}

/// `DELETE /api/journal/{id}`: 200 with a message, because every answer of this API is JSON.
pub(super) fn delete(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let user = call.caller().id;
    let entry = entry_id(call);
    state.admit_write(call.caller())?;
    if !state
        .store
        .delete_entry(user, entry, expected(call.request))?
    {
        return Err(entry_not_found());
    }
    reply_with(
        200,
        &Message {
            message: "The journal entry has been deleted.",
        },
        response,
    );
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
    if strategy
        .as_deref()
        .is_some_and(|text| text.chars().any(char::is_control))
    {
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
    let strategy = strategy.filter(given);
    let notes = notes.filter(given);
    Ok(JournalFields {
        traded_on,
        symbol,
        side,
        quantity,
        price,
        fees,
        strategy,
        notes,
        tags,
    })
}

/// A ticker with or without its exchange: `NSE:M&M`, `NIFTY 26NOV 25000 CE`.
fn is_symbol(text: &str) -> bool {
    let of_symbol = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "&-._:".contains(c);
    text.split(' ')
        .all(|word| !word.is_empty() && word.chars().all(of_symbol))
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

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
