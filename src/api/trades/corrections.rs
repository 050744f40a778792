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
use crate::base::{Isin, Words};
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
    StatedCorrection { id: id.to_owned(), correction: CorrectionView::of(said) }
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
    let stored = StoredCorrection { id: id.clone(), document: correction.to_json() };
    let now_ms = state.clock.now_ms();
    let put = state.store.put_correction(call.caller().id, stored, expected(call.request), now_ms);
    put.map_err(full)?;
    reply_with(200, &stated(&id, &correction), response);
    Ok(())
}

/// The member that a fault is of, whose name most begin with.
fn field_of(fault: &str) -> &str {
    let word = fault.split(' ').next().unwrap_or_default();
    let is_name = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if word.len() > 1 && is_name(word) { word } else { "correction" }
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
    if !state.store.delete_correction(user, call.path_name(), expected, now_ms)? {
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
    state.store.put_choice(call.caller().id, id, keep, now_ms).map_err(full)?;
    response.send(204, "", &[NO_STORE]);
    Ok(())
}

impl CorrectionView {
    /// A correction as clients see it.
    pub(super) fn of(said: &Correction) -> Self {
        let kind = said.kind().as_str();
        let isin = |isin: &Isin| isin.as_str().to_owned();
        let name = |account: &AccountName| Some(account.as_str().to_owned());
        let none = Self { kind, ..Self::default() };
        match said {
            Correction::Action(action) => of_action(none, action),
            Correction::OpeningLot(lot) => of_lot(none, lot),
            Correction::Rights { account, isin: of, date, quantity, price }
            | Correction::Buyback { account, isin: of, date, quantity, price } => Self {
                account: name(account),
                isin: isin(of),
                date: Some(Day(*date)),
                quantity: Some(Quantity(*quantity)),
                price: Some(Exact(*price)),
                ..none
            },
            Correction::Transfer { account, to, isin: of, date, quantity } => Self {
                account: name(account),
                to: to.as_ref().and_then(name),
                isin: isin(of),
                date: Some(Day(*date)),
                quantity: Some(Quantity(*quantity)),
                ..none
            },
            Correction::FractionCash { account, isin: of, date, cash } => Self {
                account: name(account),
                isin: isin(of),
                date: Some(Day(*date)),
                cash: Some(Exact(*cash)),
                ..none
            },
            Correction::How { account, isin: of, date, how } => Self {
                account: name(account),
                isin: isin(of),
                date: Some(Day(*date)),
                how: Some(how.as_str()),
                ..none
            },
            Correction::Class { isin: of, class } => {
                Self { isin: isin(of), class: Some(class.as_str()), ..none }
            }
            Correction::Symbol { account, symbol, isin: of } => Self {
                account: name(account),
                symbol: Some(symbol.clone()),
                isin: isin(of),
                ..none
            },
            Correction::Fmv { isin: of, price } => {
                Self { isin: isin(of), price: Some(Exact(*price)), ..none }
            }
            Correction::FmvIndexed { isin: of } => Self { isin: isin(of), ..none },
            Correction::Unproved { account, isin: of, date, what, note } => Self {
                account: account.as_ref().and_then(name),
                isin: isin(of),
                date: Some(Day(*date)),
                what: Some(what.as_str()),
                note: note.clone(),
                ..none
            },
        }
    }
}

fn of_action(none: CorrectionView, action: &Action) -> CorrectionView {
    let ratio = action.change.ratio();
    let view = CorrectionView {
        account: action.account.as_ref().map(|account| account.as_str().to_owned()),
        isin: action.isin.as_str().to_owned(),
        new_isin: action.change.new_isin().map(|isin| isin.as_str().to_owned()),
        ex_date: Some(Day(action.ex_date)),
        numerator: Some(ratio.numerator),
        denominator: Some(ratio.denominator),
        allotment_date: action.change.allotment_date().map(Day),
        ..none
    };
    match &action.change {
        Change::Split { .. } => view,
        Change::Merger { cash, .. } => CorrectionView { cash: cash.map(Exact), ..view },
        Change::Demerger { cost_percent, .. } => {
            CorrectionView { cost_percent: Some(Exact(*cost_percent)), ..view }
        }
        Change::Bonus { record_date, .. } => {
            CorrectionView { record_date: record_date.map(Day), ..view }
        }
    }
}

fn of_lot(none: CorrectionView, lot: &OpeningLot) -> CorrectionView {
    CorrectionView {
        account: Some(lot.account.as_str().to_owned()),
        isin: lot.isin.as_str().to_owned(),
        date: Some(Day(lot.date)),
        entered: lot.entered.map(Day),
        quantity: Some(Quantity(lot.quantity)),
        cost: Some(Exact(lot.cost)),
        how: lot.how.map(How::as_str),
        ..none
    }
}
