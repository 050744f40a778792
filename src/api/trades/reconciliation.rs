//! `GET /api/trades/reconciliation`: the ledger against what the brokers hold, one security a row.

use crate::api::call::{Call, Handled};
use crate::api::state::State;
use crate::api::trades::answer::{Document, answer};
use crate::api::trades::book::Book;
use crate::api::trades::lots::{LIMIT_DEFAULT, LIMIT_MAX};
use crate::api::trades::paging::page_of;
use crate::base::Isin;
use crate::http::Response;
use crate::ledger::mends::Mend;
use crate::ledger::reasons::{Cause, Reason};
use crate::ledger::reconciliation::Proof;
use crate::views::trades::reconciliation::{
    CorrectionText, LedgerProof, MendView, PendingView, ProofView, WantedFiles,
};
use crate::views::values::{Day, Instant, Quantity, Simulated};

/// `GET /api/trades/reconciliation`.
pub(crate) fn reconciliation(
    state: &State,
    call: &Call<'_>,
    response: &mut Response<'_>,
) -> Handled {
    let page = page_of(call.query(), call.caller().id, LIMIT_DEFAULT, LIMIT_MAX)?;
    answer(state, call, response, move |book: &Book| {
        let proofs = &book.reconciliation.rows;
        let name = |row: &Proof| format!("{} {:?}", row.account.as_str(), row.security);
        let (shown, next_cursor) = page.of(proofs, name);
        let rows = shown.iter().map(|row| view(book, row)).collect();
        let complete = book.reconciliation.is_complete();
        Ok(Document::json(&LedgerProof {
            rows,
            complete,
            next_cursor,
        }))
    })
}

fn view<'a>(book: &Book, row: &'a Proof) -> ProofView<'a> {
    ProofView {
        account: row.account.as_str(),
        isin: row.security.isin_text(),
        isins: row.isins.iter().map(Isin::as_str).collect(),
        symbol: row.symbol.as_deref(),
        ledger: Quantity(row.ledger),
        synced: row.synced.map(Quantity),
        difference: row.difference().map(Quantity),
        pending: PendingView {
            bought: Quantity(row.pending.bought),
            sold: Quantity(row.pending.sold),
        },
        uncovered: Quantity(row.uncovered),
        conflicts: row.conflicts,
        proved: row.is_proved(),
        reasons: row.reasons.iter().copied().map(Reason::as_str).collect(),
        cause: row.cause.map(Cause::as_str),
        mends: row.mends.iter().map(mend).collect(),
        synced_at: row.synced_at_ms.map(Instant::of_ms),
        simulated: Simulated(book.is_simulated(&row.account)),
    }
}

fn mend(mend: &Mend) -> MendView<'_> {
    match mend {
        Mend::Correction(text) => MendView {
            correction: Some(CorrectionText(text)),
            import: None,
        },
        Mend::Import { from, to } => {
            let files = WantedFiles {
                from: from.map(Day),
                to: to.map(Day),
            };
            MendView {
                correction: None,
                import: Some(files),
            }
        }
    }
}
