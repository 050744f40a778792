//! `GET /api/trades/gains` and `gains.csv`: a financial year's gains of one person.

use std::sync::Arc;

use crate::api::call::{Call, Handled};
use crate::api::query::parameter;
use crate::api::state::State;
use crate::api::trades::answer::{Document, answer};
use crate::api::trades::book::{Book, YearOfGains};
use crate::api::trades::csv::Csv;
use crate::api::trades::lots::{LIMIT_DEFAULT, LIMIT_MAX};
use crate::api::trades::paging::page_of;
use crate::base::Isin;
use crate::http::{Problem, Response};
use crate::ledger::amount::Amount;
use crate::ledger::financial_year::FinancialYear;
use crate::ledger::gains::{ByClass, LeftOut, PartGain, SaleGain, Totals as GainTotals, Window};
use crate::ledger::reasons::Reason;
use crate::ledger::reconciliation::USUAL_PERSON;
use crate::ledger::row::AccountName;
use crate::ledger::rules::Rule;
use crate::ledger::stated::Dividend;
use crate::views::trades::gains::{
    BuybackView, ByClassView, GainsView, IncomeView, LeftOutView, PartView, PeriodView, RuleView,
    SaleView, TotalsView, WindowView,
};
use crate::views::values::{Day, Exact, Money, Percent, Quantity, Simulated};

pub(super) const FY: &str = "A financial year as 2025-26.";
pub(super) const PERSON: &str = "A person's name of 1 to 40 of a-z, 0-9, _ and -.";
const CSV_COLUMNS: [&str; 19] = [
    "sold",
    "account",
    "isin",
    "symbol",
    "acquired_on",
    "entered",
    "how",
    "quantity",
    "proceeds",
    "charges",
    "cost",
    "fmv",
    "cost_considered",
    "gain",
    "class",
    "section",
    "rate_pct",
    "proved",
    "reasons",
];

/// Whose gains of which year.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    fy: Option<FinancialYear>,
    person: String,
}

fn wanted(query: &[u8]) -> Result<Wanted, Problem> {
    let fy = parameter(query, "fy", FY, FinancialYear::parse)?;
    Ok(Wanted {
        fy,
        person: person_in(query)?,
    })
}

/// Whose figures are asked for.
pub(super) fn person_in(query: &[u8]) -> Result<String, Problem> {
    let person = parameter(query, "person", PERSON, AccountName::parse)?;
    Ok(person.map_or(USUAL_PERSON.to_owned(), |name| name.as_str().to_owned()))
}

fn computed(book: &Book, wanted: &Wanted) -> Arc<YearOfGains> {
    let fy = wanted.fy.unwrap_or_else(|| FinancialYear::of(book.today));
    book.gains(fy, &wanted.person)
}

/// `GET /api/trades/gains`. The totals are always of everything.
pub(crate) fn gains(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let wanted = wanted(call.query())?;
    let page = page_of(call.query(), call.caller().id, LIMIT_DEFAULT, LIMIT_MAX)?;
    answer(state, call, response, move |book: &Book| {
        let year = computed(book, &wanted);
        let gains = &year.gains;
        let numbered: Vec<(usize, &SaleGain)> = gains.sales.iter().enumerate().collect();
        let name = |(at, sale): &(usize, &SaleGain)| {
            format!("{} {} {:?} {at}", sale.sold, sale.account.as_str(), sale.security)
        };
        let (shown, next_cursor) = page.of(&numbered, name);
        let stated = &year.stated;
        let dividends = maybe(stated.dividends.as_ref());
        Ok(Document::json(&GainsView {
            fy: gains.fy.to_string(),
            person: &gains.person,
            persons: gains.persons.iter().map(String::as_str).collect(),
            years: gains.years.iter().map(FinancialYear::to_string).collect(),
            sales: shown
                .iter()
                .map(|(_, sale)| sale_view(book, &year, sale))
                .collect(),
            totals: totals(&gains.totals, dividends),
            totals_stated: by_class(&stated.totals),
            left_out: gains.left_out.iter().map(left_out).collect(),
            income: stated.income.iter().map(income).collect(),
            charges: gains.charges.as_str(),
            rules: gains.rules.iter().map(|rule| rule_view(rule)).collect(),
            next_cursor,
        }))
    })
}

fn money(amount: &Amount) -> Option<Money> {
    amount.rounded().map(Money)
}

fn maybe(amount: Option<&Amount>) -> Option<Money> {
    amount.and_then(money)
}

fn sale_view<'a>(book: &Book, year: &YearOfGains, sale: &'a SaleGain) -> SaleView<'a> {
    SaleView {
        sold: Day(sale.sold),
        account: sale.account.as_str(),
        isin: sale.isin.as_ref().map(Isin::as_str),
        symbol: sale.symbol.as_deref(),
        quantity: Quantity(sale.quantity),
        proceeds: maybe(sale.proceeds.as_ref()),
        charges: maybe(sale.charges.as_ref()),
        cost: maybe(sale.cost.as_ref()),
        gain: maybe(sale.gain.as_ref()),
        uncovered: Quantity(sale.uncovered),
        proved: sale.is_proved(),
        agreed: year.agreement.of_sale(sale),
        lots: sale.parts.iter().map(part_view).collect(),
        simulated: Simulated(book.is_simulated(&sale.account)),
    }
}

fn part_view(part: &PartGain) -> PartView<'_> {
    PartView {
        acquired_on: Day(part.acquired_on),
        entered: Day(part.entered),
        how: part.how.as_str(),
        quantity: Quantity(part.quantity),
        proceeds: maybe(part.proceeds.as_ref()),
        charges: maybe(part.charges.as_ref()),
        cost: maybe(part.cost.as_ref()),
        fmv: maybe(part.fmv.as_ref()),
        cost_considered: maybe(part.cost_considered.as_ref()),
        gain: maybe(part.gain.as_ref()),
        class: part.class.as_str(),
        section: part.section,
        rate_pct: part.rate_pct.map(Percent),
        reasons: part.reasons.iter().copied().map(Reason::as_str).collect(),
    }
}

fn by_class(sums: &ByClass) -> ByClassView {
    ByClassView {
        short: money(&sums.short),
        long: money(&sums.long),
        intraday: money(&sums.intraday),
        fno: money(&sums.fno),
    }
}

fn totals(totals: &GainTotals, dividends: Option<Money>) -> TotalsView {
    let window = |window: &Window| WindowView {
        from: Day(window.from),
        to: Day(window.to),
        short: money(&window.short),
        long: money(&window.long),
        short_pct: window.short_pct.map(Percent),
        long_pct: window.long_pct.map(Percent),
    };
    let period = |period: &Window| PeriodView {
        to: Day(period.to),
        short: money(&period.short),
        long: money(&period.long),
    };
    TotalsView {
        short: money(&totals.gains.short),
        long: money(&totals.gains.long),
        intraday: money(&totals.gains.intraday),
        fno: money(&totals.gains.fno),
        fno_turnover: money(&totals.fno_turnover),
        losses: by_class(&totals.losses),
        buyback: BuybackView {
            exempt: money(&totals.buyback.exempt),
            deemed_dividend: money(&totals.buyback.deemed_dividend),
            short: money(&totals.buyback.short),
            long: money(&totals.buyback.long),
        },
        fractions: money(&totals.fractions),
        dividends,
        windows: totals.windows.iter().map(window).collect(),
        periods: totals.periods.iter().map(period).collect(),
    }
}

fn left_out(left: &LeftOut) -> LeftOutView<'_> {
    LeftOutView {
        account: left.account.as_str(),
        isin: left.isin.as_ref().map(Isin::as_str),
        symbol: left.symbol.as_deref(),
        reason: left.reason.as_str(),
        quantity: left.quantity.map(Quantity),
        proceeds: maybe(left.proceeds.as_ref()),
        ignored_loss: maybe(left.ignored_loss.as_ref()),
    }
}

fn rule_view(rule: &Rule) -> RuleView<'_> {
    RuleView {
        id: rule.id.as_str(),
        says: rule.says,
        section: rule.section,
        known_until: Day(rule.known_until),
        source: rule.source,
    }
}

fn income(of: &Dividend) -> IncomeView<'_> {
    IncomeView {
        account: of.account.as_str(),
        isin: of.isin.as_ref().map(Isin::as_str),
        symbol: &of.symbol,
        ex_date: Day(of.ex_date),
        quantity: Quantity(of.quantity),
        per_share: of.per_share.map(Exact),
        amount: Money(of.amount),
    }
}

/// `GET /api/trades/gains.csv`: a row for each part of a sale, and of one without a purchase.
pub(crate) fn csv(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let wanted = wanted(call.query())?;
    answer(state, call, response, move |book: &Book| {
        let year = computed(book, &wanted);
        let mut csv = Csv::with_columns(&CSV_COLUMNS);
        for sale in &year.gains.sales {
            for part in &sale.parts {
                add_part(&mut csv, sale, part);
            }
            if !sale.uncovered.is_zero() {
                add_uncovered(&mut csv, sale);
            }
        }
        Ok(Document::csv(csv.finished(), "gains.csv"))
    })
}

fn add_sale(csv: &mut Csv, sale: &SaleGain) {
    csv.text(&sale.sold.to_string());
    csv.text(sale.account.as_str());
    csv.text(sale.isin.as_ref().map_or("", Isin::as_str));
    csv.text(sale.symbol.as_deref().unwrap_or_default());
}

fn add_part(csv: &mut Csv, sale: &SaleGain, part: &PartGain) {
    add_sale(csv, sale);
    csv.text(&part.acquired_on.to_string());
    csv.text(&part.entered.to_string());
    csv.text(part.how.as_str());
    csv.number(Some(part.quantity));
    for amount in [
        &part.proceeds,
        &part.charges,
        &part.cost,
        &part.fmv,
        &part.cost_considered,
        &part.gain,
    ] {
        csv.number(amount.as_ref().and_then(Amount::rounded));
    }
    csv.text(part.class.as_str());
    csv.text(part.section.unwrap_or_default());
    csv.number(part.rate_pct);
    csv.text(if part.reasons.is_empty() {
        "true"
    } else {
        "false"
    });
    let reasons: Vec<&str> = part.reasons.iter().copied().map(Reason::as_str).collect();
    csv.text(&reasons.join(" "));
    csv.end_row();
}

/// What was sold without a purchase: its quantity alone is known.
fn add_uncovered(csv: &mut Csv, sale: &SaleGain) {
    add_sale(csv, sale);
    for _ in ["acquired_on", "entered", "how"] {
        csv.text("");
    }
    csv.number(Some(sale.uncovered));
    for _ in 0..9 {
        csv.number(None);
    }
    csv.text("false");
    csv.text(Reason::Uncovered.as_str());
    csv.end_row();
}
