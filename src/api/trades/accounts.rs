//! `/api/trades/accounts`: demat accounts, and whose each is.

use std::collections::BTreeSet;

use crate::api::body::Fields;
use crate::api::call::{Call, Handled};
use crate::api::replies::reply_with;
use crate::api::state::State;
use crate::api::trades::answer::{Document, answer};
use crate::api::trades::book::Book;
use crate::api::trades::refusals::full;
use crate::api::trades::synced::{client_of, name_of};
use crate::http::{Problem, Response};
use crate::ledger::file::ClientId;
use crate::ledger::reconciliation::{Proof, person};
use crate::ledger::row::AccountName;
use crate::views::trades::accounts::{
    AccountPerson, AccountView, Accounts as AccountsView, ClientView,
};
use crate::views::values::Instant;

/// Longest name of a person.
const PERSON_CHARS_MAX: usize = 40;

/// `GET /api/trades/accounts`.
pub(crate) fn accounts(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    answer(state, call, response, |book: &Book| {
        let mut names: BTreeSet<AccountName> = book.persons.keys().cloned().collect();
        names.extend(book.imports.iter().map(|import| import.account.clone()));
        names.extend(
            book.portfolio
                .syncs
                .iter()
                .filter_map(|sync| name_of(sync.account)),
        );
        let accounts = names.iter().map(|name| view(book, name)).collect();
        Ok(Document::json(&AccountsView { accounts }))
    })
}

fn view<'a>(book: &'a Book, name: &'a AccountName) -> AccountView<'a> {
    let of_files = book.imports.iter().filter(|import| import.account == *name);
    let mut clients: BTreeSet<ClientId> = of_files
        .filter_map(|import| import.client.clone())
        .collect();
    let sync = book
        .portfolio
        .syncs
        .iter()
        .find(|sync| sync.account.as_str() == name.as_str());
    clients.extend(sync.and_then(client_of));
    let mut proofs = book
        .reconciliation
        .rows
        .iter()
        .filter(|row| row.account == *name);
    let client_ids = clients
        .into_iter()
        .map(|client| ClientView {
            kind: client.kind.as_str(),
            id: client.id,
        })
        .collect();
    AccountView {
        name: name.as_str(),
        person: person(&book.persons, name),
        client_ids,
        last_sync: sync.map(|sync| Instant::of_ms(sync.synced_ms)),
        proved: sync.is_some() && proofs.all(Proof::is_proved),
    }
}

/// `PUT /api/trades/accounts/{id}`, of which the id is the account's name.
pub(crate) fn set_person(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let mut fields = Fields::of(call.request)?;
    let text = fields.text("person", PERSON_CHARS_MAX);
    // Names of persons are words of the same form, since they stand in queries.
    let person = AccountName::parse(&text);
    if person.is_none() && !text.is_empty() {
        fields.fault("person", "1 to 40 of a-z, 0-9, _ and -.");
    }
    fields.done()?;
    let person = person.expect("one that is missing was noted as a fault");
    let name = AccountName::parse(&call.path_name()).ok_or_else(|| {
        let detail = "The account's name is 1 to 40 of a-z, 0-9, _ and -.";
        Problem::new(400, "validation_failed", detail).field("account", detail)
    })?;
    state.admit_write(call.caller())?;
    let now_ms = state.clock.now_ms();
    let user = call.caller().id;
    let person = person.as_str().to_owned();
    state
        .store
        .set_person(user, name.clone(), person.clone(), now_ms)
        .map_err(full)?;
    reply_with(
        200,
        &AccountPerson {
            name: name.as_str(),
            person: &person,
        },
        response,
    );
    Ok(())
}
