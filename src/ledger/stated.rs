//! What only the broker's report says: exits of which the ledger has no trade, and dividends.
//!
//! They are named and summed apart, so that who has a report alone sees its figures at once. They
//! are in no total of gains, and in no return.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet};
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::ledger::amount::{Amount, Sum};
use crate::ledger::financial_year::FinancialYear;
use crate::ledger::gains::{ByClass, Gains, LeftOut, Sources};
use crate::ledger::reasons::Reason;
use crate::ledger::reconciliation::person;
use crate::ledger::report_line::{Income, ReportSection};
use crate::ledger::reported::{AccountReport, NamedSecurities, Reported, reported};
use crate::ledger::row::AccountName;
use crate::ledger::securities::Security;
use crate::ledger::trades::Trades;

/// A dividend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dividend {
    pub account: AccountName,
    pub isin: Option<Isin>,
    pub symbol: Arc<str>,
    pub ex_date: Date,
    pub quantity: Decimal,
    pub per_share: Option<Decimal>,
    pub amount: Decimal,
}

/// What reports alone say of a person's financial year.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stated {
    /// A row for each line, in the order of time.
    pub left_out: Vec<LeftOut>,
    /// Sums of the gains of those lines, as the report states them.
    pub totals: ByClass,
    /// In the order of time.
    pub income: Vec<Dividend>,
    /// `None` if no report has a dividend of that year.
    pub dividends: Option<Amount>,
    /// Everyone of whom a report is, and the years of this one's reports.
    persons: BTreeSet<String>,
    years: BTreeSet<FinancialYear>,
}

/// What the reports of a person's accounts alone say of a financial year.
pub(crate) fn stated(
    sources: Sources<'_>,
    reports: &[AccountReport],
    fy: FinancialYear,
    of_person: &str,
) -> Stated {
    let of = |account: &AccountName| person(sources.persons, account) == of_person;
    let mut stated = Stated::default();
    let owners = reports
        .iter()
        .map(|report| person(sources.persons, &report.account).to_owned());
    stated.persons.extend(owners);
    let traded = Traded::of(sources.trades);
    let mut sums = Sums::default();
    let mut lines = reported(sources.ledger, reports);
    lines.sort_by_key(|of| of.line.sold);
    for line in lines.iter().filter(|line| of(line.account)) {
        let sold = line.line.sold;
        stated.years.extend(sold.map(FinancialYear::of));
        if sold.is_some_and(|sold| !fy.contains(sold)) || traded.explains(line) {
            continue;
        }
        stated.left_out.push(left_out(line));
        // A line without a date may be of another year: it is named, and not summed.
        if sold.is_some() {
            sums.add(line);
        }
    }
    stated.totals = sums.totals();
    let income = income(sources, reports);
    let mut income: Vec<Dividend> = income
        .into_iter()
        .filter(|of_one| of(&of_one.account))
        .collect();
    stated.years.extend(
        income
            .iter()
            .map(|of_one| FinancialYear::of(of_one.ex_date)),
    );
    income.retain(|of_one| fy.contains(of_one.ex_date));
    let amounts: Vec<Amount> = income.iter().map(|of_one| of_one.amount.into()).collect();
    stated.dividends = (!income.is_empty()).then(|| amounts.iter().collect::<Sum>().total());
    stated.income = income;
    stated
}

impl Gains {
    /// Adds what reports alone say to what is left out, and their persons and years to the lists.
    pub(crate) fn add_stated(&mut self, stated: &Stated) {
        self.left_out.extend(stated.left_out.iter().cloned());
        let persons = self.persons.iter().chain(&stated.persons).cloned();
        self.persons = persons.collect::<BTreeSet<_>>().into_iter().collect();
        let years = self.years.iter().chain(&stated.years).copied();
        self.years = years.collect::<BTreeSet<_>>().into_iter().collect();
    }
}

fn left_out(of: &Reported<'_>) -> LeftOut {
    LeftOut {
        account: of.account.clone(),
        security: of.security.clone(),
        isin: of.security.isin(),
        symbol: Some(Arc::from(of.line.symbol.as_str())),
        reason: Reason::Stated,
        quantity: Some(of.line.quantity),
        proceeds: Some(of.line.proceeds.into()),
        ignored_loss: None,
    }
}

/// On which days an account traded a security. Trades in conflict are trades.
struct Traded<'a> {
    on: HashSet<(&'a AccountName, &'a Security, Date)>,
    ever: HashSet<(&'a AccountName, &'a Security)>,
}

impl<'a> Traded<'a> {
    fn of(trades: &'a Trades) -> Self {
        let conflicting = trades.conflicts.iter().map(|conflict| &conflict.trade);
        let all = || trades.all.iter().chain(conflicting.clone());
        Self {
            on: all()
                .map(|trade| (&trade.account, &trade.security, trade.date))
                .collect(),
            ever: all()
                .map(|trade| (&trade.account, &trade.security))
                .collect(),
        }
    }

    /// Whether trades count in place of a line. Of one without a date that is any trade.
    fn explains(&self, of: &Reported<'_>) -> bool {
        match of.line.sold {
            Some(sold) => self.on.contains(&(of.account, &of.security, sold)),
            None => self.ever.contains(&(of.account, &of.security)),
        }
    }
}

#[derive(Default)]
struct Sums {
    short: Sum,
    long: Sum,
    intraday: Sum,
    fno: Sum,
}

impl Sums {
    /// Buybacks, and what is no share, are in no sum.
    fn add(&mut self, of: &Reported<'_>) {
        let sum = match of.line.section {
            ReportSection::Short => &mut self.short,
            ReportSection::Long => &mut self.long,
            ReportSection::Intraday => &mut self.intraday,
            ReportSection::Derivatives | ReportSection::Commodity | ReportSection::Currency => {
                &mut self.fno
            }
            ReportSection::Buyback | ReportSection::NonEquity | ReportSection::Fund => return,
        };
        sum.add(&of.line.gain.into());
    }

    fn totals(&self) -> ByClass {
        ByClass {
            short: self.short.total(),
            long: self.long.total(),
            intraday: self.intraday.total(),
            fno: self.fno.total(),
        }
    }
}

/// The dividends of all reports. Equal ones of several reports are the same.
fn income(sources: Sources<'_>, reports: &[AccountReport]) -> Vec<Dividend> {
    let named = NamedSecurities::of(sources.ledger, reports);
    let mut found: Vec<Dividend> = Vec::new();
    let mut known: HashMap<(AccountName, Security, Date, Decimal, Decimal), u32> = HashMap::new();
    for report in reports {
        let mut counts: HashMap<(Security, Date, Decimal, Decimal), u32> = HashMap::new();
        for income in &report.income {
            let security = named.security(&report.account, income.isin, &income.symbol, false);
            let content = (security.clone(), income.ex_date, income.quantity, income.amount);
            let count = counts.entry(content).or_default();
            *count += 1;
            let account = report.account.clone();
            let place = (account, security.clone(), income.ex_date, income.quantity, income.amount);
            let of_all = known.entry(place).or_default();
            if *count > *of_all {
                *of_all = *count;
                found.push(dividend(&report.account, &security, income));
            }
        }
    }
    found.sort_by(|left, right| {
        let key = |of: &Dividend| (of.ex_date, of.account.clone(), of.isin, of.symbol.clone());
        key(left)
            .cmp(&key(right))
            .then_with(|| left.amount.cmp(&right.amount))
    });
    found
}

fn dividend(account: &AccountName, security: &Security, income: &Income) -> Dividend {
    Dividend {
        account: account.clone(),
        isin: security.isin(),
        symbol: Arc::from(income.symbol.as_str()),
        ex_date: income.ex_date,
        quantity: income.quantity,
        per_share: income.per_share,
        amount: income.amount,
    }
}

#[cfg(test)]
#[path = "stated_tests.rs"]
mod tests;
