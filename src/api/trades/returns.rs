//! `GET /api/trades/returns`: what a person's shares returned a year.

use std::sync::Arc;

use crate::api::call::{Call, Handled};
use crate::api::query::parameter;
use crate::api::state::State;
use crate::api::trades::answer::{Document, answer};
use crate::api::trades::book::{Book, INDEX};
use crate::api::trades::gains::PERSON;
use crate::base::Isin;
use crate::http::Response;
use crate::ledger::amount::Amount;
use crate::ledger::reconciliation::USUAL_PERSON;
use crate::ledger::returns::{HoldingReturn, NotInReturns, Return, Returns};
use crate::ledger::row::AccountName;
use crate::ledger::xirr::{NoRate, Rate};
use crate::views::trades::returns::{
    BenchmarkView, HoldingReturnView, NotInReturnsView, ReturnsView,
};
use crate::views::values::{Money, Percent};

/// `GET /api/trades/returns`.
pub(crate) fn returns(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let person = parameter(call.query(), "person", PERSON, AccountName::parse)?;
    answer(state, call, response, move |book: &Book| {
        let person = person.as_ref().map_or(USUAL_PERSON, AccountName::as_str);
        Ok(Document::json(&view(&book.returns(person))))
    })
}

fn view(returns: &Returns) -> ReturnsView<'_> {
    let Return {
        rate,
        absolute_pct,
        purchases,
        sales,
        value,
    } = &returns.whole;
    let benchmark = &returns.benchmark;
    ReturnsView {
        xirr: rate.rate,
        xirr_reason: reason(rate),
        roots: rate.roots.as_deref(),
        absolute_pct: absolute_pct.as_ref().and_then(percent),
        purchases: purchases.rounded().map(Money),
        sales: sales.rounded().map(Money),
        value: value.rounded().map(Money),
        benchmark: BenchmarkView {
            name: INDEX,
            xirr: benchmark.rate.as_ref().and_then(|rate| rate.rate),
            absolute_pct: benchmark.absolute_pct.map(in_two_places),
            reason: benchmark
                .reason
                .or(benchmark.rate.as_ref().and_then(reason)),
        },
        left_out: returns.left_out.iter().map(left_out).collect(),
        holdings: returns.holdings.iter().map(holding).collect(),
    }
}

fn reason(rate: &Rate) -> Option<&'static str> {
    rate.reason.map(NoRate::as_str)
}

fn percent(amount: &Amount) -> Option<Percent> {
    amount.rounded().map(Percent)
}

/// Of an index: a statistic, no money.
fn in_two_places(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn left_out(left: &NotInReturns) -> NotInReturnsView<'_> {
    NotInReturnsView {
        account: left.account.as_ref().map(AccountName::as_str),
        isin: left.isin.as_ref().map(Isin::as_str),
        symbol: left.symbol.as_deref(),
        reason: left.reason,
    }
}

fn holding(holding: &HoldingReturn) -> HoldingReturnView<'_> {
    let HoldingReturn { isin, symbol, of } = holding;
    HoldingReturnView {
        isin: isin.as_ref().map(Isin::as_str),
        symbol: symbol.as_ref().map(Arc::as_ref),
        xirr: of.rate.rate,
        xirr_reason: reason(&of.rate),
        roots: of.rate.roots.as_deref(),
        absolute_pct: of.absolute_pct.as_ref().and_then(percent),
        purchases: of.purchases.rounded().map(Money),
        sales: of.sales.rounded().map(Money),
        value: of.value.rounded().map(Money),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holding_with_several_rates_names_them_as_the_whole_does() {
        let of = Return {
            rate: Rate {
                rate: None,
                reason: Some(NoRate::SeveralRoots),
                roots: Some(vec![-0.05, 4.24]),
            },
            absolute_pct: None,
            purchases: Amount::ZERO,
            sales: Amount::ZERO,
            value: Amount::ZERO,
        };
        let of_holding = HoldingReturn {
            isin: None,
            symbol: None,
            of,
        };
        let shown = holding(&of_holding);
        assert_eq!((shown.xirr, shown.xirr_reason), (None, Some("several_roots")));
        assert_eq!(shown.roots, Some(&[-0.05, 4.24][..]));
    }
}
