//! `GET /api/trades/agreement`: the broker's own report against the ledger, line by line.

use jiff::civil::Date;

use crate::api::call::{Call, Handled};
use crate::api::query::parameter;
use crate::api::state::State;
use crate::api::trades::answer::{Document, answer};
use crate::api::trades::book::Book;
use crate::api::trades::gains::FY;
use crate::api::trades::lots::{LIMIT_DEFAULT, LIMIT_MAX};
use crate::api::trades::paging::page_of;
use crate::base::Isin;
use crate::http::Response;
use crate::ledger::amount::Amount;
use crate::ledger::financial_year::FinancialYear;
use crate::ledger::report_agreement::{AgreementLine, Figures, Note, Status, What};
use crate::ledger::row::AccountName;
use crate::views::trades::agreement::{AgreementLineView, AgreementView, FiguresOfSideView};
use crate::views::values::{Day, Money, Quantity, Simulated};

/// `GET /api/trades/agreement`. The head is always of everything.
pub(crate) fn agreement(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let fy = parameter(call.query(), "fy", FY, FinancialYear::parse)?;
    let account = parameter(call.query(), "account", "An account's name.", AccountName::parse)?;
    let page = page_of(call.query(), call.caller().id, LIMIT_DEFAULT, LIMIT_MAX)?;
    answer(state, call, response, move |book: &Book| {
        let fy = fy.unwrap_or_else(|| FinancialYear::of(book.today));
        let agreement = book.agreement(fy, account.as_ref());
        let name = |line: &AgreementLine| format!("{:?}", line.group);
        let (shown, next_cursor) = page.of(&agreement.lines, name);
        Ok(Document::json(&AgreementView {
            fy: fy.to_string(),
            agreed: agreement.count(Status::Agreed),
            differs: agreement.count(Status::Differs),
            only_report: agreement.count(Status::OnlyReport),
            only_ledger: agreement.count(Status::OnlyLedger),
            amount_agreed: money(&agreement.amount_agreed),
            amount_open: money(&agreement.amount_open),
            lines: shown.iter().map(|line| line_view(book, line)).collect(),
            next_cursor,
        }))
    })
}

fn line_view<'a>(book: &Book, line: &'a AgreementLine) -> AgreementLineView<'a> {
    let group = &line.group;
    let day = |day: Option<Date>| day.map(Day);
    AgreementLineView {
        account: group.account.as_str(),
        isin: line.isin.as_ref().map(Isin::as_str),
        symbol: line.symbol.as_deref(),
        acquired_on: day(group.acquired_on),
        sold: day(group.sold),
        status: line.status.as_str(),
        what: line.what.iter().copied().map(What::as_str).collect(),
        notes: line.notes.iter().copied().map(Note::as_str).collect(),
        report: line.report.as_ref().map(figures),
        ledger: line.ledger.as_ref().map(figures),
        simulated: Simulated(book.is_simulated(&group.account)),
    }
}

fn figures(of: &Figures) -> FiguresOfSideView {
    let maybe = |amount: &Option<Amount>| amount.as_ref().and_then(money);
    FiguresOfSideView {
        quantity: Quantity(of.quantity),
        cost: maybe(&of.cost),
        proceeds: maybe(&of.proceeds),
        gain: maybe(&of.gain),
        section: of.section,
    }
}

fn money(amount: &Amount) -> Option<Money> {
    amount.rounded().map(Money)
}
