//! `/api/watchlists`: the account's watch lists, read and replaced together.
//!
//! One PUT adds, renames, deletes and moves lists and symbols, whose order is that of the arrays. A
//! client that sends the state it has seen as `If-Match` never undoes another's change: it is told
//! so, reads anew, and makes its own change in what it finds.
//!
//! Each handler parks for the store once.

use crate::api::body::{Fields, has_twice};
use crate::api::call::{Call, Handled};
use crate::api::conditional::{etag_of, expected_with};
use crate::api::query::whole;
use crate::api::replies::{KEPT, reply_with, send_tagged};
use crate::api::state::State;
use crate::api::symbols::SYMBOLS_MAX;
use crate::base::Symbol;
use crate::base::symbol::SYMBOL_BYTES_MAX;
use crate::http::{Problem, Response};
use crate::views::account::{Watchlist, Watchlists};
use crate::views::values;

const LISTS: &str = "watchlists";
/// Lists of an account: more than fit side by side in a window. With [`SYMBOLS_MAX`] symbols in
/// each, so that one request or one stream has the prices of a list, all are some 30 KB, half of
/// what a body may have.
pub(super) const LISTS_MAX: usize = 10;
/// Longest name of a list: a line of a phone.
const NAME_CHARS_MAX: usize = 40;

/// `GET /api/watchlists`.
pub(super) fn read(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let found = state.store.watchlists(call.caller().id)?;
    let revision = found.revision();
    let view = Watchlists {
        watchlists: &found.lists,
        revision: &revision.0,
    };
    values::write(response.body(), &view);
    send_tagged(call, &etag_of(&revision), &KEPT, response)
}

/// `PUT /api/watchlists`. The answer has no `ETag`, because the ids of new lists are not in what
/// was sent (RFC 9110 9.3.4); its `revision` is what a client sends with its next change.
pub(super) fn replace(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let mut fields = Fields::of(call.request)?;
    let expected = expected_with(call.request, &mut fields);
    let lists = lists(fields)?;
    state.admit_write(call.caller())?;
    let user = call.caller().id;
    let replaced = state.store.replace_watchlists(user, lists, expected)?;
    let stored = replaced.ok_or_else(|| {
        Problem::new(404, "watchlist_not_found", "You have no watch list with one of these ids.")
    })?;
    let revision = stored.revision();
    let view = Watchlists {
        watchlists: &stored.lists,
        revision: &revision.0,
    };
    reply_with(200, &view, response);
    Ok(())
}

/// Reads and checks all lists. All faults are reported.
fn lists(mut fields: Fields<'_>) -> Result<Vec<Watchlist>, Problem> {
    let lists = fields.required(LISTS, |fields, name| fields.objects(name, LISTS_MAX, list));
    let lists = lists.unwrap_or_default();
    let given = |list: &&Watchlist| list.id != 0;
    if has_twice(lists.iter().filter(given).map(|list| list.id)) {
        fields.fault(LISTS, "Each id once.");
    }
    let names = lists.iter().filter(|list| !list.name.is_empty());
    if has_twice(names.map(|list| list.name.to_lowercase())) {
        fields.fault(LISTS, "Each name once, in capitals or not.");
    }
    fields.done()?;
    Ok(lists)
}

/// A list without an id is a new one.
fn list(fields: &mut Fields<'_>) -> Watchlist {
    let id = fields.raw("id").map(whole(1..=i64::MAX));
    if id == Some(None) {
        fields.fault("id", "This field must be a whole number above zero.");
    }
    let name = fields.name("name", NAME_CHARS_MAX);
    // What is left out by mistake would delete what is stored.
    if fields.raw("symbols").is_none() {
        fields.fault("symbols", "This field is required.");
    }
    let texts = fields.texts("symbols", SYMBOLS_MAX, SYMBOL_BYTES_MAX);
    let symbols: Option<Vec<Symbol>> = texts.iter().map(|text| Symbol::parse(text)).collect();
    if symbols.is_none() {
        let message = "Each is NSE: or BSE: and a ticker in capitals, such as NSE:INFY.";
        fields.fault("symbols", message);
    }
    if has_twice(texts.iter()) {
        fields.fault("symbols", "Each once.");
    }
    Watchlist {
        id: id.flatten().unwrap_or(0),
        name,
        symbols: symbols.unwrap_or_default(),
    }
}
