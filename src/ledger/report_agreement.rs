//! The broker's own report against the ledger: what both say of the same shares sold, and whether
//! that is equal.
//!
//! The report is an oracle beside the proof by quantities: it says nothing of what is held, but it
//! says which lot a sale took. Nothing here changes a gain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::base::words::words;
use crate::ledger::amount::{Amount, Sum};
use crate::ledger::financial_year::FinancialYear;
use crate::ledger::gains::{GainClass, PartGain, SaleGain, Sources, sales};
use crate::ledger::lots::Ledger;
use crate::ledger::reasons::Reason;
use crate::ledger::report_line::{ReportLine, ReportSection};
use crate::ledger::reported::{AccountReport, Group, Reported, reported};
use crate::ledger::row::AccountName;
use crate::ledger::rules::long_from;
use crate::ledger::securities::Security;

/// What a line of a report may be off by, since it is rounded.
const LINE_ROUNDING: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

words! {
    /// What became of a comparison.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum Status {
        Agreed = "agreed",
        Differs = "differs",
        OnlyReport = "only_report",
        OnlyLedger = "only_ledger",
    }

    /// In what a report and the ledger differ.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum What {
        Quantity = "quantity",
        Cost = "cost",
        Proceeds = "proceeds",
        /// Long or short.
        Term = "term",
        /// The value on 31 January 2018.
        Fmv = "fmv",
        /// Whether it is a share, or a buyback.
        Class = "class",
    }

    /// What is different and yet no difference.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum Note {
        /// The report calls long what was sold on the anniversary of its purchase.
        TermAtAnniversary = "term_at_anniversary",
        /// The report deducts expenses of the purchase beside a value of 31 January 2018.
        PurchaseExpenses = "purchase_expenses",
    }
}

/// What one side says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    pub quantity: Decimal,
    /// Without charges of the purchase. Of broker B it is the considered one.
    pub cost: Option<Amount>,
    pub proceeds: Option<Amount>,
    pub gain: Option<Amount>,
    /// The report's part in which it stands, or the ledger's word for what it is.
    pub section: &'static str,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgreementLine {
    pub group: Group,
    pub isin: Option<Isin>,
    pub symbol: Option<Arc<str>>,
    pub status: Status,
    pub what: Vec<What>,
    pub notes: Vec<Note>,
    pub report: Option<Figures>,
    pub ledger: Option<Figures>,
}

impl AgreementLine {
    /// The ledger's where it has one.
    fn gain(&self) -> Option<&Amount> {
        let of_ledger = self.ledger.as_ref().and_then(|ledger| ledger.gain.as_ref());
        of_ledger.or_else(|| self.report.as_ref()?.gain.as_ref())
    }
}

/// A year's reports against the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// In the order of time; lines without dates come first.
    pub lines: Vec<AgreementLine>,
    /// Gains of the lines that agree, and of all others.
    pub amount_agreed: Amount,
    pub amount_open: Amount,
    by_group: BTreeMap<Group, Status>,
    /// Sales of which a report has a line that the ledger has not.
    reported_alone: BTreeSet<(AccountName, Security, Date)>,
}

impl Agreement {
    pub(crate) fn count(&self, status: Status) -> usize {
        self.lines
            .iter()
            .filter(|line| line.status == status)
            .count()
    }

    /// Whether a report says the same of a sale of this year; `None` if none speaks of it.
    pub(crate) fn of_sale(&self, sale: &SaleGain) -> Option<bool> {
        let by_security = Group::of_security(&sale.account, &sale.security);
        let of_security = self.by_group.get(&by_security);
        let status = |part: &PartGain| {
            self.by_group
                .get(&Group::of_gain(sale, part))
                .or(of_security)
                .copied()
        };
        let found: Vec<Option<Status>> = sale.parts.iter().map(status).collect();
        let sold = (sale.account.clone(), sale.security.clone(), sale.sold);
        let compared = |status: Status| matches!(status, Status::Agreed | Status::Differs);
        let is_reported = found.iter().flatten().any(|status| compared(*status))
            || of_security.is_some()
            || self.reported_alone.contains(&sold);
        let is_equal =
            sale.uncovered.is_zero() && found.iter().all(|status| *status == Some(Status::Agreed));
        is_reported.then_some(is_equal)
    }
}

/// Compares reports with the sales of a financial year, of all accounts or of one.
pub(crate) fn agreement(
    sources: Sources<'_>,
    reports: &[AccountReport],
    fy: FinancialYear,
    account: Option<&AccountName>,
) -> Agreement {
    let is_asked = |name: &AccountName| account.is_none_or(|asked| asked == name);
    let sold = sales(sources, fy, &is_asked);
    let mut lines = reported(sources.ledger, reports);
    lines.retain(|of| is_asked(of.account) && of.line.sold.is_none_or(|sold| fy.contains(sold)));
    let mut groups: BTreeMap<Group, Members<'_>> = BTreeMap::new();
    for of in &lines {
        if let Some(group) = of.group() {
            groups.entry(group).or_default().lines.push(of);
        }
    }
    let sums = without_dates(sources.ledger, fy, &lines, &groups);
    for sale in &sold {
        let whole = Group::of_security(&sale.account, &sale.security);
        for part in &sale.parts {
            let by_lot = || Group::of_gain(sale, part);
            let group = if sums.contains_key(&whole) {
                whole.clone()
            } else {
                by_lot()
            };
            groups.entry(group).or_default().parts.push((sale, part));
        }
    }
    for (group, lines) in sums {
        groups.entry(group).or_default().lines = lines;
    }
    summed(
        groups
            .into_iter()
            .map(|(group, members)| members.compare(group))
            .collect(),
    )
}

fn summed(lines: Vec<AgreementLine>) -> Agreement {
    let sum = |is_agreed: bool| {
        let of = lines
            .iter()
            .filter(|line| (line.status == Status::Agreed) == is_agreed);
        of.filter_map(AgreementLine::gain).collect::<Sum>().total()
    };
    let alone = lines
        .iter()
        .filter(|line| line.status == Status::OnlyReport);
    let reported_alone = alone.filter_map(|line| {
        let Group {
            account,
            security,
            sold,
            ..
        } = line.group.clone();
        Some((account, security, sold?))
    });
    Agreement {
        amount_agreed: sum(true),
        amount_open: sum(false),
        by_group: lines
            .iter()
            .map(|line| (line.group.clone(), line.status))
            .collect(),
        reported_alone: reported_alone.collect(),
        lines,
    }
}

/// The lines without dates, of which only the sums of a security are compared.
///
/// Where another report of the security has dates, that one says the same and more. Such a report
/// does not name its year: what was sold in one other year, and not in this, is of that year.
fn without_dates<'a>(
    ledger: &Ledger,
    fy: FinancialYear,
    lines: &'a [Reported<'a>],
    dated: &BTreeMap<Group, Members<'_>>,
) -> BTreeMap<Group, Vec<&'a Reported<'a>>> {
    let with_dates: BTreeSet<(&AccountName, &Security)> = dated
        .keys()
        .map(|group| (&group.account, &group.security))
        .collect();
    let mut sums: BTreeMap<Group, Vec<&Reported<'_>>> = BTreeMap::new();
    for of in lines.iter().filter(|of| of.group().is_none()) {
        if !with_dates.contains(&(of.account, &of.security)) {
            sums.entry(Group::of_security(of.account, &of.security))
                .or_default()
                .push(of);
        }
    }
    if sums.is_empty() {
        return sums;
    }
    let by_year = sold_by_year(ledger);
    sums.retain(|group, lines| {
        let quantity: Decimal = lines.iter().map(|of| of.line.quantity).sum();
        let proceeds = sum(lines.iter().map(|of| Amount::from(of.line.proceeds)));
        let mut years = by_year
            .get(&(&group.account, &group.security))
            .into_iter()
            .flatten()
            .filter(|(_, (sold, received))| {
                *sold == quantity && is_near(received, &proceeds, lines.len())
            })
            .map(|(year, _)| *year)
            .peekable();
        years.peek().is_none() || years.any(|year| year == fy)
    });
    sums
}

type Sold = BTreeMap<FinancialYear, (Decimal, Amount)>;

fn sold_by_year(ledger: &Ledger) -> HashMap<(&AccountName, &Security), Sold> {
    let mut sums: HashMap<(&AccountName, &Security), Sold> = HashMap::new();
    for sale in &ledger.sales {
        let position = &ledger.positions[sale.position as usize];
        let of_position = sums
            .entry((&position.account, &position.security))
            .or_default();
        let of_year = of_position.entry(FinancialYear::of(sale.sold)).or_default();
        of_year.0 += sale.quantity;
        of_year.1 = of_year.1.plus(&sale.proceeds);
    }
    sums
}

/// Whether values are equal but for the rounding of so many lines.
fn is_near(left: &Amount, right: &Amount, lines: usize) -> bool {
    left.minus(right).abs() <= Amount::product(LINE_ROUNDING, lines.into())
}

fn sum(amounts: impl Iterator<Item = Amount>) -> Amount {
    let mut sum = Sum::default();
    for amount in amounts {
        sum.add(&amount);
    }
    sum.total()
}

/// The sum of amounts of which all are known.
fn known_sum(mut amounts: impl Iterator<Item = Option<Amount>>) -> Option<Amount> {
    let mut total = Sum::default();
    amounts.try_for_each(|amount| {
        total.add(&amount?);
        Some(())
    })?;
    Some(total.total())
}

/// What a security is taken for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Share,
    /// A fund, a bond and the like.
    Other,
    Buyback,
    Contract,
}

impl Kind {
    /// `None` of funds: a report has those of shares and others in one part.
    fn of_section(section: ReportSection) -> Option<Self> {
        match section {
            ReportSection::Long | ReportSection::Short | ReportSection::Intraday => {
                Some(Self::Share)
            }
            ReportSection::Buyback => Some(Self::Buyback),
            ReportSection::NonEquity => Some(Self::Other),
            ReportSection::Fund => None,
            ReportSection::Derivatives | ReportSection::Commodity | ReportSection::Currency => {
                Some(Self::Contract)
            }
        }
    }

    fn of_part(part: &PartGain) -> Self {
        match part.class {
            GainClass::Buyback => Self::Buyback,
            GainClass::Fno => Self::Contract,
            _ if part.reasons.iter().copied().any(Reason::is_of_class) => Self::Other,
            _ => Self::Share,
        }
    }
}

/// Lines of reports and parts of sales that are of the same shares sold.
#[derive(Default)]
struct Members<'a> {
    lines: Vec<&'a Reported<'a>>,
    parts: Vec<(&'a SaleGain, &'a PartGain)>,
}

impl Members<'_> {
    fn compare(&self, group: Group) -> AgreementLine {
        let considered = self.is_by_considered_cost();
        let report = self.reported(considered);
        let ledger = self.of_ledger(considered);
        let mut what = Vec::new();
        let mut notes = Vec::new();
        let status = match (&report, &ledger) {
            (Some(report), Some(ledger)) => {
                self.differences(&group, (report, ledger), &mut what, &mut notes);
                if considered && self.deducts_expenses_beside_value() {
                    notes.push(Note::PurchaseExpenses);
                }
                if what.is_empty() {
                    Status::Agreed
                } else {
                    Status::Differs
                }
            }
            (Some(_), None) => Status::OnlyReport,
            _ => Status::OnlyLedger,
        };
        let of_line = self
            .lines
            .first()
            .map(|of| Arc::from(of.line.symbol.as_str()));
        let of_sale = self.parts.first().and_then(|(sale, _)| sale.symbol.clone());
        let symbol = of_sale.or(of_line);
        let isin = group.security.isin();
        AgreementLine {
            group,
            isin,
            symbol,
            status,
            what,
            notes,
            report,
            ledger,
        }
    }

    fn lines(&self) -> impl Iterator<Item = &ReportLine> {
        self.lines.iter().map(|of| of.line)
    }

    fn parts(&self) -> impl Iterator<Item = &PartGain> {
        self.parts.iter().map(|(_, part)| *part)
    }

    /// Whether the report gives the cost after the rule of 31 January 2018, and the ledger knows
    /// it.
    fn is_by_considered_cost(&self) -> bool {
        !self.lines.is_empty()
            && self.lines().all(|line| line.cost_considered.is_some())
            && self.parts().all(|part| part.cost_considered.is_some())
    }

    fn reported(&self, considered: bool) -> Option<Figures> {
        let section = self.lines().next()?.section.as_str();
        let cost = |line: &ReportLine| {
            if considered {
                line.cost_considered
            } else {
                line.cost
            }
        };
        Some(Figures {
            quantity: self.lines().map(|line| line.quantity).sum(),
            cost: known_sum(self.lines().map(|line| cost(line).map(Amount::from))),
            proceeds: Some(sum(self.lines().map(|line| line.proceeds.into()))),
            gain: Some(sum(self.lines().map(|line| line.gain.into()))),
            section,
        })
    }

    fn of_ledger(&self, considered: bool) -> Option<Figures> {
        let section = self.parts().next()?.class.as_str();
        let cost = if considered {
            considered_cost
        } else {
            bare_cost
        };
        Some(Figures {
            quantity: self.parts().map(|part| part.quantity).sum(),
            cost: known_sum(self.parts().map(cost)),
            proceeds: known_sum(self.parts().map(|part| part.proceeds.clone())),
            gain: known_sum(self.parts().map(|part| part.gain.clone())),
            section,
        })
    }

    fn differences(
        &self,
        group: &Group,
        (report, ledger): (&Figures, &Figures),
        what: &mut Vec<What>,
        notes: &mut Vec<Note>,
    ) {
        let near = |left: &Option<Amount>, right: &Option<Amount>| match (left, right) {
            (Some(left), Some(right)) => is_near(left, right, self.lines.len()),
            _ => false,
        };
        if report.quantity != ledger.quantity {
            what.push(What::Quantity);
        }
        if !near(&report.cost, &ledger.cost) {
            what.push(What::Cost);
        }
        if !near(&report.proceeds, &ledger.proceeds) {
            what.push(What::Proceeds);
        }
        // Of lines without dates nothing else is one thing.
        let Some(sold) = group.sold else { return };
        let is_anniversary = group
            .acquired_on
            .is_some_and(|acquired_on| sold.tomorrow().ok() == Some(long_from(acquired_on)));
        let is_at_anniversary = match self.terms() {
            Some((true, false)) if is_anniversary => {
                notes.push(Note::TermAtAnniversary);
                true
            }
            Some((reported, computed)) if reported != computed => {
                what.push(What::Term);
                false
            }
            _ => false,
        };
        // The value is of long ones alone.
        if !is_at_anniversary {
            let reported = self.lines().filter_map(|line| line.fmv).map(Amount::from);
            let computed = self.parts().filter_map(|part| part.fmv.clone());
            if !is_near(&sum(reported), &sum(computed), self.lines.len()) {
                what.push(What::Fmv);
            }
        }
        let kinds = self
            .lines()
            .filter_map(|line| Kind::of_section(line.section));
        let of_ledger = self.parts().next().map(Kind::of_part);
        if kinds.into_iter().any(|kind| Some(kind) != of_ledger) {
            what.push(What::Class);
        }
    }

    /// Whether the report calls it long, and whether the ledger does, where both say a term.
    fn terms(&self) -> Option<(bool, bool)> {
        let computed = match self.parts().next()?.class {
            GainClass::Long => true,
            GainClass::Short => false,
            _ => return None,
        };
        let mut reported = self.lines().filter_map(|line| match line.section {
            ReportSection::Long => Some(true),
            ReportSection::Short => Some(false),
            _ => None,
        });
        let first = reported.next()?;
        // One that says both is wrong in any case.
        let said = if reported.any(|other| other != first) {
            !computed
        } else {
            first
        };
        Some((said, computed))
    }

    fn deducts_expenses_beside_value(&self) -> bool {
        let has_expenses = |line: &ReportLine| {
            line.purchase_expenses
                .is_some_and(|expenses| !expenses.is_zero())
        };
        self.lines().any(has_expenses)
            && self
                .parts()
                .any(|part| considered_cost(part) != bare_cost(part))
    }
}

/// What was paid, without charges.
fn bare_cost(part: &PartGain) -> Option<Amount> {
    let charges = part.purchase_charges.clone().unwrap_or_default();
    Some(part.cost.as_ref()?.minus(&charges))
}

/// What counts as cost, without charges.
fn considered_cost(part: &PartGain) -> Option<Amount> {
    let bare = bare_cost(part)?;
    part.cost_considered.as_ref()?;
    match part.fmv.clone().zip(part.proceeds.clone()) {
        Some((fmv, proceeds)) => Some(bare.max(fmv.min(proceeds))),
        None => Some(bare),
    }
}

#[cfg(test)]
#[path = "report_agreement_tests.rs"]
mod tests;
