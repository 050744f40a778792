//! Corrections that the lines of a broker's report offer: the purchase of what was sold without
//! one, and the price of 31 January 2018 that gains lack.
//!
//! Only offers: nothing here is applied by itself.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::ledger::amount::Amount;
use crate::ledger::corrections::{Change, Correction, OpeningLot};
use crate::ledger::financial_year::FinancialYear;
use crate::ledger::gains::{Sources, sales};
use crate::ledger::lots::Ledger;
use crate::ledger::mends::Mend;
use crate::ledger::reasons::Reason;
use crate::ledger::reconciliation::Reconciliation;
use crate::ledger::report_line::ReportLine;
use crate::ledger::reported::{AccountReport, Group, Reported, reported};
use crate::ledger::row::AccountName;
use crate::ledger::rules::GRANDFATHERED_UNTIL;
use crate::ledger::securities::Security;

/// Decimals of a quantity and of a price in an offer.
const DECIMALS: u32 = 6;

/// What a report offers for a security of an account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offer {
    pub account: AccountName,
    pub security: Security,
    /// A correction as JSON.
    pub correction: String,
}

/// All that the reports offer, by account and security.
pub(crate) fn offers(sources: Sources<'_>, reports: &[AccountReport]) -> Vec<Offer> {
    if reports.is_empty() {
        return Vec::new();
    }
    let lines = reported(sources.ledger, reports);
    let mut groups: BTreeMap<Group, Vec<&Reported<'_>>> = BTreeMap::new();
    for of in &lines {
        let known = of.group().filter(|group| group.security.isin().is_some());
        if let Some(group) = known.filter(|group| !group.is_intraday) {
            groups.entry(group).or_default().push(of);
        }
    }
    let splits = Splits::of(sources);
    let mut offers = opening_lots(sources.ledger, &groups, &splits);
    offers.extend(fair_values(sources, &groups, &splits));
    offers
}

impl Reconciliation {
    /// Puts what reports offer before what mends without them.
    pub(crate) fn add_offers(&mut self, offers: Vec<Offer>) {
        for offer in offers.into_iter().rev() {
            let mut rows = self.rows.iter_mut();
            let of =
                rows.find(|row| row.account == offer.account && row.security == offer.security);
            if let Some(row) = of {
                row.mends.insert(0, Mend::Correction(offer.correction));
            }
        }
    }
}

/// Account, security and date of each sale that some purchase is missing of.
fn uncovered_sales(ledger: &Ledger) -> BTreeSet<(&AccountName, &Security, Date)> {
    let uncovered = ledger.sales.iter().filter(|sale| !sale.uncovered.is_zero());
    let place = uncovered.map(|sale| {
        let position = &ledger.positions[sale.position as usize];
        (&position.account, &position.security, sale.sold)
    });
    place.collect()
}

/// What the ledger's sales took of each group: the quantity, and its cost without charges.
fn taken_by_sales(ledger: &Ledger) -> BTreeMap<Group, (Decimal, Amount)> {
    let mut taken: BTreeMap<Group, (Decimal, Amount)> = BTreeMap::new();
    for sale in &ledger.sales {
        let position = &ledger.positions[sale.position as usize];
        for part in &sale.parts {
            let of_group = taken
                .entry(Group::of_part(position, sale, part))
                .or_default();
            let charges = part.lot.charges.clone().unwrap_or_default();
            of_group.0 += part.lot.quantity;
            of_group.1 = of_group.1.plus(&part.lot.cost).minus(&charges);
        }
    }
    taken
}

/// The purchases that reports know of what was sold without one.
fn opening_lots(
    ledger: &Ledger,
    groups: &BTreeMap<Group, Vec<&Reported<'_>>>,
    splits: &Splits<'_>,
) -> Vec<Offer> {
    let uncovered = uncovered_sales(ledger);
    let taken = taken_by_sales(ledger);
    let mut lots: BTreeMap<(AccountName, Security, Date), (Decimal, Amount)> = BTreeMap::new();
    let mut isins: BTreeMap<Security, Isin> = BTreeMap::new();
    for (group, lines) in groups {
        let Group {
            sold: Some(sold),
            acquired_on: Some(acquired_on),
            ..
        } = *group
        else {
            continue;
        };
        if !uncovered.contains(&(&group.account, &group.security, sold)) {
            continue;
        }
        let (had, paid) = taken.get(group).cloned().unwrap_or_default();
        let quantity = lines.iter().map(|of| of.line.quantity).sum::<Decimal>() - had;
        let costs: Option<Vec<Amount>> = lines.iter().map(|of| buy_value(of.line)).collect();
        let Some(costs) = costs.filter(|_| quantity > Decimal::ZERO) else {
            continue;
        };
        let cost = costs
            .iter()
            .fold(Amount::ZERO, |sum, cost| sum.plus(cost))
            .minus(&paid);
        let Some(newest) = group.security.isin().filter(|_| !cost.is_negative()) else {
            continue;
        };
        let bought = splits.before(&group.account, newest, (acquired_on, sold), quantity);
        let Some(bought) = bought else { continue };
        let place = (group.account.clone(), group.security.clone(), acquired_on);
        let lot = lots.entry(place).or_default();
        lot.0 += bought;
        lot.1 = lot.1.plus(&cost);
        isins.insert(group.security.clone(), newest);
    }
    let offer = |((account, security, date), (quantity, cost)): (_, (Decimal, Amount))| {
        let correction = Correction::OpeningLot(OpeningLot {
            account: AccountName::clone(&account),
            isin: *isins.get(&security)?,
            date,
            entered: None,
            quantity,
            cost: cost.rounded()?,
            how: None,
        });
        Some(Offer {
            account,
            security,
            correction: correction.to_json(),
        })
    };
    lots.into_iter().filter_map(offer).collect()
}

/// What was paid, without charges. A considered cost is that only without a value of 31 January
/// 2018.
fn buy_value(line: &ReportLine) -> Option<Amount> {
    let considered = line.cost_considered.filter(|_| line.fmv.is_none());
    line.cost.or(considered).map(Amount::from)
}

/// The prices of 31 January 2018 that reports know of parts which lack them.
fn fair_values(
    sources: Sources<'_>,
    groups: &BTreeMap<Group, Vec<&Reported<'_>>>,
    splits: &Splits<'_>,
) -> Vec<Offer> {
    let has_value = |lines: &Vec<&Reported<'_>>| lines.iter().all(|of| of.line.fmv.is_some());
    let with_value: BTreeMap<&Group, &Vec<&Reported<'_>>> = groups
        .iter()
        .filter(|(_, lines)| has_value(lines))
        .collect();
    let years: BTreeSet<FinancialYear> = with_value
        .keys()
        .filter_map(|group| group.sold)
        .map(FinancialYear::of)
        .collect();
    let mut offers: BTreeMap<(AccountName, Security), Offer> = BTreeMap::new();
    for year in years {
        for sale in sales(sources, year, &|_| true) {
            for part in &sale.parts {
                let group = Group::of_gain(&sale, part);
                let Some(lines) = with_value.get(&group) else {
                    continue;
                };
                let Some(newest) = sale.isin else { continue };
                if !part.reasons.contains(&Reason::FmvMissing) {
                    continue;
                }
                let value: Decimal = lines.iter().filter_map(|of| of.line.fmv).sum();
                let quantity: Decimal = lines.iter().map(|of| of.line.quantity).sum();
                let then = splits.before(
                    &sale.account,
                    newest,
                    (GRANDFATHERED_UNTIL, sale.sold),
                    quantity,
                );
                let price = then.and_then(|then| value.checked_div(then));
                let Some(price) = price.map(|price| price.round_dp(DECIMALS).normalize()) else {
                    continue;
                };
                let correction = Correction::Fmv {
                    isin: newest,
                    price,
                }
                .to_json();
                let place = (sale.account.clone(), sale.security.clone());
                let Group {
                    account, security, ..
                } = group;
                offers.entry(place).or_insert(Offer {
                    account,
                    security,
                    correction,
                });
            }
        }
    }
    offers.into_values().collect()
}

/// The splits that the person says.
struct Splits<'a> {
    sources: Sources<'a>,
}

impl<'a> Splits<'a> {
    fn of(sources: Sources<'a>) -> Self {
        Self { sources }
    }

    /// How many shares those that were sold were, before the splits since `after`.
    fn before(
        &self,
        account: &AccountName,
        newest: Isin,
        (after, sold): (Date, Date),
        quantity: Decimal,
    ) -> Option<Decimal> {
        let securities = &self.sources.ledger.securities;
        let mut then = Amount::from(quantity);
        for (_, correction) in self.sources.corrections {
            let Correction::Action(action) = correction else {
                continue;
            };
            let Change::Split { ratio, .. } = action.change else {
                continue;
            };
            let is_of = securities.newest(action.isin) == newest
                && action.account.as_ref().is_none_or(|of| of == account);
            if is_of && action.ex_date > after && action.ex_date <= sold {
                let held = Amount::from(Decimal::from(ratio.denominator));
                then = then
                    .times(&held)
                    .over(&Decimal::from(ratio.numerator).into());
            }
        }
        then.exact(DECIMALS)
    }
}

#[cfg(test)]
#[path = "report_offers_tests.rs"]
mod tests;
