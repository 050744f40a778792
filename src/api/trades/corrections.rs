//! `/api/trades/corrections` and `/api/trades/conflicts`: what a person says of the ledger.
//!
//! Each parks for the store.

use crate::api::body::Fields;
use crate::api::call::{Call, Handled};
use crate::api::conditional::expected;
use crate::api::replies::{KEPT, NO_STORE, reply_with, send_tagged};
use crate::api::state::State;
use crate::api::trades::answer::on_book;
use crate::api::trades::gathered::corrections as read_corrections;
use crate::api::trades::refusals::{conflict_not_found, correction_not_found, full};
use crate::base::Words;
use crate::http::document::coding::etag;
use crate::http::{Problem, Response};
use crate::ledger::corrections::{Action, Change, Correction, How, OpeningLot};
use crate::ledger::row::AccountName;
use crate::ledger::trades::Keep;
use crate::store::StoredCorrection;
pub(super) use crate::views::trades::corrections::CorrectionView;
use crate::views::trades::corrections::{Corrections as CorrectionsView, StatedCorrection};
use crate::views::values;
use crate::views::values::{Day, Exact, Quantity};

/// Longest id of a conflict, and of the word that is kept.
const WORD_CHARS_MAX: usize = 64;

/// `GET /api/trades/corrections`.
pub(crate) fn corrections(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let all = read_corrections(&state.store, call.caller().id)?;
    let corrections = all.iter().map(|(id, said)| stated(id, said)).collect();
    values::write(response.body(), &CorrectionsView { corrections });
    let tag = etag(response.written());
    send_tagged(call, &tag, &KEPT, response)
}

fn stated(id: &str, said: &Correction) -> StatedCorrection {
    StatedCorrection {
        id: id.to_owned(),
        correction: CorrectionView::of(said),
    }
}

/// `PUT /api/trades/corrections/{id}`.
pub(crate) fn put_correction(
    state: &State,
    call: &Call<'_>,
    response: &mut Response<'_>,
) -> Handled {
    // The members are read by the ledger, which knows those of each kind.
    Fields::of(call.request)?;
    let correction = Correction::parse(call.request.body).map_err(|fault| {
        let field = field_of(&fault).to_owned();
        Problem::new(400, "validation_failed", "The correction is not understood.")
            .field(field, fault)
    })?;
    state.admit_write(call.caller())?;
    let id = call.path_name();
    let stored = StoredCorrection {
        id: id.clone(),
        document: correction.to_json(),
    };
    let now_ms = state.clock.now_ms();
    let put = state
        .store
        .put_correction(call.caller().id, stored, expected(call.request), now_ms);
    put.map_err(full)?;
    reply_with(200, &stated(&id, &correction), response);
    Ok(())
}

/// The member that a fault is of, whose name most begin with.
fn field_of(fault: &str) -> &str {
    let word = fault.split(' ').next().unwrap_or_default();
    let is_name = |word: &str| {
        word.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    if word.len() > 1 && is_name(word) {
        word
    } else {
        "correction"
    }
}

/// `DELETE /api/trades/corrections/{id}`.
pub(crate) fn delete_correction(
    state: &State,
    call: &Call<'_>,
    response: &mut Response<'_>,
) -> Handled {
    state.admit_write(call.caller())?;
    let user = call.caller().id;
    let now_ms = state.clock.now_ms();
    let expected = expected(call.request);
    if !state
        .store
        .delete_correction(user, call.path_name(), expected, now_ms)?
    {
        return Err(correction_not_found());
    }
    response.send(204, "", &[NO_STORE]);
    Ok(())
}

/// `PUT /api/trades/conflicts/{id}`. Parks for the lane too, which knows the conflicts.
pub(crate) fn choose(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let mut fields = Fields::of(call.request)?;
    let word = fields.text("keep", WORD_CHARS_MAX);
    let keep = Keep::parse(&word);
    if keep.is_none() && !word.is_empty() {
        fields.fault("keep", "Either first or second.");
    }
    fields.done()?;
    let keep = keep.expect("one that is missing was noted as a fault");
    let id = call.path_name();
    let wanted = id.clone();
    let is_there = on_book(state, call.caller().id, move |book| Ok(book.has_conflict(&wanted)))?;
    if !is_there {
        return Err(conflict_not_found());
    }
    state.admit_write(call.caller())?;
    let now_ms = state.clock.now_ms();
    state
        .store
        .put_choice(call.caller().id, id, keep, now_ms)
        .map_err(full)?;
    response.send(204, "", &[NO_STORE]);
    Ok(())
}

impl CorrectionView {
    /// A correction as clients see it.
    pub(super) fn of(said: &Correction) -> Self {
        let name = |account: &AccountName| account.as_str().to_owned();
        let view = Self {
            kind: said.kind().as_str(),
            account: said.account().map(name),
            isin: said.isin().as_str().to_owned(),
            date: said.date().map(Day),
            ..Self::default()
        };
        match said {
            Correction::Action(action) => of_action(view, action),
            Correction::OpeningLot(lot) => of_lot(view, lot),
            Correction::Rights {
                quantity, price, ..
            }
            | Correction::Buyback {
                quantity, price, ..
            } => Self {
                quantity: Some(Quantity(*quantity)),
                price: Some(Exact(*price)),
                ..view
            },
            Correction::Transfer { to, quantity, .. } => Self {
                to: to.as_ref().map(name),
                quantity: Some(Quantity(*quantity)),
                ..view
            },
            Correction::FractionCash { cash, .. } => Self {
                cash: Some(Exact(*cash)),
                ..view
            },
            Correction::How { how, .. } => Self {
                how: Some(how.as_str()),
                ..view
            },
            Correction::Class { class, .. } => Self {
                class: Some(class.as_str()),
                ..view
            },
            Correction::Symbol { symbol, .. } => Self {
                symbol: Some(symbol.clone()),
                ..view
            },
            Correction::Fmv { price, .. } => Self {
                price: Some(Exact(*price)),
                ..view
            },
            Correction::FmvIndexed { .. } => view,
            Correction::Unproved { what, note, .. } => Self {
                what: Some(what.as_str()),
                note: note.clone(),
                ..view
            },
        }
    }
}

fn of_action(view: CorrectionView, action: &Action) -> CorrectionView {
    let ratio = action.change.ratio();
    let view = CorrectionView {
        new_isin: action
            .change
            .new_isin()
            .map(|isin| isin.as_str().to_owned()),
        ex_date: Some(Day(action.ex_date)),
        numerator: Some(ratio.numerator),
        denominator: Some(ratio.denominator),
        allotment_date: action.change.allotment_date().map(Day),
        ..view
    };
    match &action.change {
        Change::Split { .. } => view,
        Change::Merger { cash, .. } => CorrectionView {
            cash: cash.map(Exact),
            ..view
        },
        Change::Demerger { cost_percent, .. } => CorrectionView {
            cost_percent: Some(Exact(*cost_percent)),
            ..view
        },
        Change::Bonus { record_date, .. } => CorrectionView {
            record_date: record_date.map(Day),
            ..view
        },
    }
}

fn of_lot(view: CorrectionView, lot: &OpeningLot) -> CorrectionView {
    CorrectionView {
        entered: lot.entered.map(Day),
        quantity: Some(Quantity(lot.quantity)),
        cost: Some(Exact(lot.cost)),
        how: lot.how.map(How::as_str),
        ..view
    }
}
