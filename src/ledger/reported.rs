//! What brokers' own reports state, brought to the ledger's terms: of which security a line is, and
//! with which parts of sales it is compared.
//!
//! Reports of one time may overlap. As rows without an id do, equal lines of one report count up,
//! and those of several are the same, so that reports meet and do not add up.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::ledger::file_format::FileFormat;
use crate::ledger::gains::{GainClass, PartGain, SaleGain};
use crate::ledger::lots::Ledger;
use crate::ledger::positions::{Part, PartKind, Position, Sale};
use crate::ledger::report_line::{Income, ReportLine, ReportSection};
use crate::ledger::row::AccountName;
use crate::ledger::securities::Security;

/// What one live import of a report states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountReport {
    pub account: AccountName,
    pub format: FileFormat,
    pub lines: Vec<ReportLine>,
    pub income: Vec<Income>,
}

/// A line of a report, and what it is of.
#[derive(Clone, Debug)]
pub(crate) struct Reported<'a> {
    pub account: &'a AccountName,
    pub format: FileFormat,
    pub security: Security,
    pub line: &'a ReportLine,
}

/// What is compared with each other: parts of sales, and lines of reports. Contracts go by their
/// closing date alone, and lines without dates by their security alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Group {
    pub sold: Option<Date>,
    pub account: AccountName,
    pub security: Security,
    pub acquired_on: Option<Date>,
    pub is_intraday: bool,
}

impl Group {
    /// Of all that an account sold of a security.
    pub(crate) fn of_security(account: &AccountName, security: &Security) -> Self {
        Self {
            sold: None,
            account: account.clone(),
            security: security.clone(),
            acquired_on: None,
            is_intraday: false,
        }
    }

    fn dated(
        account: &AccountName,
        security: &Security,
        (acquired_on, sold): (Date, Date),
        is_intraday: bool,
    ) -> Self {
        let is_contract = matches!(security, Security::Contract(_));
        Self {
            sold: Some(sold),
            acquired_on: (!is_contract).then_some(acquired_on),
            is_intraday: is_intraday && !is_contract,
            ..Self::of_security(account, security)
        }
    }

    /// Of a part of a sale, as gains have it.
    pub(crate) fn of_gain(sale: &SaleGain, part: &PartGain) -> Self {
        let is_intraday = part.class == GainClass::Intraday;
        Self::dated(&sale.account, &sale.security, (part.acquired_on, sale.sold), is_intraday)
    }

    /// Of a part of a sale, as lots have it.
    pub(crate) fn of_part(position: &Position, sale: &Sale, part: &Part) -> Self {
        let is_intraday = part.kind == PartKind::Intraday;
        let dates = (part.lot.acquired_on, sale.sold);
        Self::dated(&position.account, &position.security, dates, is_intraday)
    }
}

impl Reported<'_> {
    /// `None` without both dates.
    pub(crate) fn group(&self) -> Option<Group> {
        let dates = self.line.acquired_on.zip(self.line.sold)?;
        let is_intraday = self.line.section == ReportSection::Intraday;
        Some(Group::dated(self.account, &self.security, dates, is_intraday))
    }
}

/// Whether a section is of contracts, which have no ISIN.
fn is_of_contracts(section: ReportSection) -> bool {
    use ReportSection::{Commodity, Currency, Derivatives};
    matches!(section, Derivatives | Commodity | Currency)
}

/// What a line says beside its charges, which another download may state otherwise.
type Content = (
    AccountName,
    Security,
    (Option<Date>, Option<Date>),
    ReportSection,
    Decimal,
    (Option<Decimal>, Option<Decimal>),
    Decimal,
);

/// The lines of all reports, in an order that is not that of the imports.
pub(crate) fn reported<'a>(ledger: &Ledger, reports: &'a [AccountReport]) -> Vec<Reported<'a>> {
    let named = NamedSecurities::of(ledger, reports);
    let mut met: BTreeMap<(Content, u32), Reported<'a>> = BTreeMap::new();
    for report in reports {
        let mut counts: HashMap<Content, u32> = HashMap::new();
        for line in &report.lines {
            let is_contract = is_of_contracts(line.section);
            let security = named.security(&report.account, line.isin, &line.symbol, is_contract);
            let content = (
                report.account.clone(),
                security.clone(),
                (line.acquired_on, line.sold),
                line.section,
                line.quantity,
                (line.cost, line.cost_considered),
                line.proceeds,
            );
            let count = counts.entry(content.clone()).or_default();
            let place = (content, *count);
            *count += 1;
            let found = Reported {
                account: &report.account,
                format: report.format,
                security,
                line,
            };
            let known = met.entry(place).or_insert_with(|| found.clone());
            let rest = |of: &Reported<'_>| {
                (of.line.charges, of.line.fmv, of.line.gain, of.line.purchase_expenses)
            };
            if rest(&found) > rest(known) {
                *known = found;
            }
        }
    }
    met.into_values().collect()
}

/// What a report's name of a security means.
pub(crate) struct NamedSecurities<'a> {
    ledger: &'a Ledger,
    /// By account and symbol; `None` if it names several.
    by_symbol: HashMap<(&'a AccountName, &'a str), Option<&'a Security>>,
}

impl<'a> NamedSecurities<'a> {
    pub(crate) fn of(ledger: &'a Ledger, reports: &[AccountReport]) -> Self {
        let mut by_symbol: HashMap<(&AccountName, &str), Option<&Security>> = HashMap::new();
        let lines_lack = |report: &AccountReport| report.lines.iter().any(|of| of.isin.is_none());
        let income_lacks =
            |report: &AccountReport| report.income.iter().any(|of| of.isin.is_none());
        if reports
            .iter()
            .any(|report| lines_lack(report) || income_lacks(report))
        {
            for position in &ledger.positions {
                let Some(symbol) = position.symbol.as_deref() else {
                    continue;
                };
                if matches!(position.security, Security::Contract(_)) {
                    continue;
                }
                by_symbol
                    .entry((&position.account, symbol))
                    .and_modify(|found| *found = None)
                    .or_insert(Some(&position.security));
            }
        }
        Self { ledger, by_symbol }
    }

    /// The security of a line. Where the ledger knows the symbol alone, so does this.
    pub(crate) fn security(
        &self,
        account: &AccountName,
        isin: Option<Isin>,
        symbol: &str,
        is_contract: bool,
    ) -> Security {
        let name = || Arc::from(symbol);
        if is_contract {
            return Security::Contract(name());
        }
        let unknown = || Security::Unknown(name());
        let Some(isin) = isin else {
            let found = self.by_symbol.get(&(account, symbol)).copied().flatten();
            return found.cloned().unwrap_or_else(unknown);
        };
        let known = Security::Known(self.ledger.securities.newest(isin));
        let holds = |security: &Security| self.ledger.position(account, security).is_some();
        if !holds(&known) && holds(&unknown()) {
            unknown()
        } else {
            known
        }
    }
}
