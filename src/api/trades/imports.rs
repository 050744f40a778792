//! `/api/trades/imports`: confirmed, listed, undone. `DELETE /api/trades`: all of the ledger.
//!
//! Each parks for the store. What is dropped does not count from its first, small write on; its
//! rows are removed batch by batch before the answer.

use crate::api::body::Fields;
use crate::api::call::{Call, Handled};
use crate::api::conditional::expected;
use crate::api::replies::{KEPT, NO_STORE, reply_with, send_tagged};
use crate::api::state::State;
use crate::api::trades::answer::{key_with, tag_of, target_of};
use crate::api::trades::kept_books::BookKey;
use crate::api::trades::refusals::{import_gone, import_not_found};
use crate::http::document::coding::etag;
use crate::http::{Problem, Response};
use crate::store::{Confirmed, ImportState, LedgerVersions, Revision, StoredImport};
use crate::views::trades::imports::{
    ImportConfirmed, ImportPeriod, ImportView, Imports as ImportsView,
};
use crate::views::values;
use crate::views::values::{Day, Instant};

/// What deletes a whole ledger. Nobody sends it by mistake.
const CONFIRMATION: &str = "delete all trades";
const CONFIRMATION_CHARS_MAX: usize = 64;

/// `GET /api/trades/imports`.
pub(crate) fn imports(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    *response.body() = listed(state, call)?;
    let tag = etag(response.written());
    send_tagged(call, &tag, &KEPT, response)
}

/// Whether the list is in the state that a new import expects, if it expects any.
///
/// # Errors
/// 412.
pub(super) fn expect_state(state: &State, call: &Call<'_>) -> Result<(), Problem> {
    let expected = expected(call.request);
    if expected.is_any() {
        return Ok(());
    }
    let tag = etag(&listed(state, call)?);
    Ok(expected.compare(|| Revision(tag.trim_matches('"').to_owned()))?)
}

/// The list of imports.
fn listed(state: &State, call: &Call<'_>) -> Result<Vec<u8>, Problem> {
    let now_ms = state.clock.now_ms();
    let mut all = state.store.imports(call.caller().id)?;
    all.retain(|import| match import.state {
        ImportState::Live => true,
        ImportState::Preview => import.due_ms.is_some_and(|due_ms| due_ms > now_ms),
        ImportState::Loading | ImportState::Gone => false,
    });
    let imports = all.iter().rev().map(view).collect();
    Ok(values::to_vec(&ImportsView { imports }))
}

fn view(import: &StoredImport) -> ImportView<'_> {
    let StoredImport { counts, .. } = import;
    let is_preview = import.state == ImportState::Preview;
    let period = import.period_from.zip(import.period_to);
    ImportView {
        id: import.id,
        state: import.state.as_str(),
        kind: import.kind.as_str(),
        format: import.format.as_str(),
        account: import.account.as_str(),
        period: period.map(|(from, to)| ImportPeriod {
            from: Day(from),
            to: Day(to),
        }),
        rows: import.row_count,
        new: counts.new_count,
        known: counts.known_count,
        conflicts: counts.conflict_count,
        refused: counts.refused_count,
        created_at: Instant::of_ms(import.created_ms),
        expires_at: import.due_ms.filter(|_| is_preview).map(Instant::of_ms),
    }
}

fn import_id(call: &Call<'_>) -> i64 {
    call.path_id.expect("the path of the route has {id}")
}

/// `POST /api/trades/imports/{id}/confirm`. A second time it answers the same.
pub(crate) fn confirm(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    state.admit_write(call.caller())?;
    let id = import_id(call);
    let now_ms = state.clock.now_ms();
    match state.store.confirm_import(call.caller().id, id, now_ms)? {
        Confirmed::Unknown => Err(import_not_found()),
        Confirmed::Gone => Err(import_gone()),
        Confirmed::Live(counts) => {
            let view = ImportConfirmed {
                id,
                new: counts.new_count,
                known: counts.known_count,
                conflicts: counts.conflict_count,
                refused: counts.refused_count,
            };
            reply_with(200, &view, response);
            Ok(())
        }
    }
}

/// `DELETE /api/trades/imports/{id}`: drops a preview, undoes a live import.
pub(crate) fn undo(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    state.admit_write(call.caller())?;
    let now_ms = state.clock.now_ms();
    let dropped = state
        .store
        .drop_import(call.caller().id, import_id(call), now_ms)?;
    let import = dropped.ok_or_else(import_not_found)?;
    empty(state, &[import], now_ms);
    response.send(204, "", &[NO_STORE]);
    Ok(())
}

/// `DELETE /api/trades`. Its state is that of the list of trades.
pub(crate) fn delete_all(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let mut fields = Fields::of(call.request)?;
    let confirmed = fields.text("confirm", CONFIRMATION_CHARS_MAX);
    if !confirmed.is_empty() && confirmed != CONFIRMATION {
        fields.fault("confirm", format!("Exactly: {CONFIRMATION}"));
    }
    fields.done()?;
    state.admit_write(call.caller())?;
    let user = call.caller().id;
    let now_ms = state.clock.now_ms();
    let key = key_with(state, user, LedgerVersions::default());
    let target = target_of(call);
    let tag = move |versions| tag_of(BookKey { versions, ..key }, &target);
    let dropped = state
        .store
        .drop_ledger(user, expected(call.request), tag, now_ms)?;
    empty(state, &dropped, now_ms);
    response.send(204, "", &[NO_STORE]);
    Ok(())
}

/// Removes the rows of imports that are gone. Where the store does not take it, the sweep does
/// later what is left: they are gone all the same.
fn empty(state: &State, imports: &[StoredImport], now_ms: i64) {
    for import in imports {
        if let Err(error) = state.store.empty_import(import, now_ms) {
            tracing::debug!(%error, "rows of a dropped import are left for the sweep");
        }
    }
}
