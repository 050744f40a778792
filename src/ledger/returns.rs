//! What a person's shares returned a year: the rate of all flows and of each holding, and what the
//! same flows would have become in an index.
//!
//! Flows are purchases, rights, sales and buybacks with the charges that are known. What is not in
//! them is named: trades of a day, derivatives, dividends, and securities that are not proved.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::ledger::amount::{Amount, Sum};
use crate::ledger::lots::Ledger;
use crate::ledger::positions::{PartKind, Position};
use crate::ledger::reconciliation::{Persons, Reconciliation, person};
use crate::ledger::row::AccountName;
use crate::ledger::securities::Security;
use crate::ledger::xirr::{Flows, NoRate, Rate, xirr};

/// A price, and the date of which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatedPrice {
    pub price: Decimal,
    pub date: Date,
}

/// The latest price of an account's security.
pub(crate) type Prices<'a> = &'a dyn Fn(&Position) -> Option<DatedPrice>;

/// The close of an index on a date.
pub(crate) type IndexCloses<'a> = &'a dyn Fn(Date) -> Option<Decimal>;

/// What returns are computed of.
#[derive(Clone, Copy)]
pub(crate) struct ReturnSources<'a> {
    /// At the end of today.
    pub ledger: &'a Ledger,
    pub proof: &'a Reconciliation,
    pub persons: &'a Persons,
    pub prices: Prices<'a>,
    pub index: IndexCloses<'a>,
}

/// What came of the money of some flows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Return {
    pub rate: Rate,
    /// In percent of what was paid; `None` if nothing was.
    pub absolute_pct: Option<Amount>,
    pub purchases: Amount,
    pub sales: Amount,
    pub value: Amount,
}

/// What the same flows would have become.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Benchmark {
    /// `None` if a close is missing.
    pub rate: Option<Rate>,
    pub absolute_pct: Option<f64>,
    pub reason: Option<&'static str>,
}

/// One security that is held.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HoldingReturn {
    pub isin: Option<Isin>,
    pub symbol: Option<Arc<str>>,
    pub of: Return,
}

/// What is in no flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotInReturns {
    pub account: Option<AccountName>,
    pub isin: Option<Isin>,
    pub symbol: Option<Arc<str>>,
    pub reason: &'static str,
}

/// A person's returns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Returns {
    pub whole: Return,
    pub benchmark: Benchmark,
    pub left_out: Vec<NotInReturns>,
    pub holdings: Vec<HoldingReturn>,
}

const SHARES_LEFT: &str = "shares_left";
const NO_PRICE: &str = "no_price";
const NO_INDEX_PRICE: &str = "no_index_price";

/// The returns of `of_person`.
pub(crate) fn returns(sources: ReturnSources<'_>, of_person: &str) -> Returns {
    let cuts = cuts(sources, of_person);
    let mut money: BTreeMap<u32, Money> = BTreeMap::new();
    let ledger = sources.ledger;
    let counts = |place: u32| {
        let position = &ledger.positions[place as usize];
        person(sources.persons, &position.account) == of_person && !cuts.contains_key(&place)
    };
    for purchase in ledger
        .purchases
        .iter()
        .filter(|purchase| counts(purchase.position))
    {
        money
            .entry(purchase.position)
            .or_default()
            .pay(purchase.date, &purchase.paid);
    }
    for sale in ledger.sales.iter().filter(|sale| counts(sale.position)) {
        let delivered = |kind: PartKind| matches!(kind, PartKind::Delivery | PartKind::Buyback);
        for part in sale.parts.iter().filter(|part| delivered(part.kind)) {
            let charges = part.charges.clone().unwrap_or_default();
            let of = money.entry(sale.position).or_default();
            of.receive(sale.sold, &part.proceeds.minus(&charges));
        }
    }
    for (place, position) in ledger.positions.iter().enumerate() {
        let place = place as u32;
        if !position.lots.is_empty()
            && counts(place)
            && let Some(price) = (sources.prices)(position)
        {
            let value = Amount::product(price.price, position.quantity());
            money.entry(place).or_default().hold(price.date, &value);
        }
    }
    let mut whole = Money::default();
    for of in money.values() {
        whole.add(of);
    }
    Returns {
        benchmark: whole.benchmark(sources.index),
        whole: whole.returned(),
        left_out: left_out(sources, of_person, &cuts),
        holdings: holdings(sources, &money),
    }
}

/// The flows of some shares.
#[derive(Clone, Default)]
struct Money {
    purchases: Sum,
    sales: Sum,
    value: Sum,
    /// Without the value.
    flows: BTreeMap<Date, Sum>,
    valued: BTreeMap<Date, Sum>,
}

impl Money {
    fn pay(&mut self, date: Date, amount: &Amount) {
        self.purchases.add(amount);
        self.flows.entry(date).or_default().add(&amount.negated());
    }

    fn receive(&mut self, date: Date, amount: &Amount) {
        self.sales.add(amount);
        self.flows.entry(date).or_default().add(amount);
    }

    fn hold(&mut self, date: Date, value: &Amount) {
        self.value.add(value);
        self.valued.entry(date).or_default().add(value);
    }

    fn add(&mut self, other: &Self) {
        self.purchases.add(&other.purchases.total());
        self.sales.add(&other.sales.total());
        self.value.add(&other.value.total());
        for (date, sum) in &other.flows {
            self.flows.entry(*date).or_default().add(&sum.total());
        }
        for (date, sum) in &other.valued {
            self.valued.entry(*date).or_default().add(&sum.total());
        }
    }

    fn returned(&self) -> Return {
        let mut flows = Flows::new();
        for (date, sum) in self.flows.iter().chain(&self.valued) {
            *flows.entry(*date).or_default() += sum.total().to_f64();
        }
        let purchases = self.purchases.total();
        let sales = self.sales.total();
        let value = self.value.total();
        let gained = value.plus(&sales).minus(&purchases);
        let hundred = Amount::from(Decimal::ONE_HUNDRED);
        let absolute_pct = (!purchases.is_zero()).then(|| gained.times(&hundred).over(&purchases));
        Return {
            rate: xirr(&flows),
            absolute_pct,
            purchases,
            sales,
            value,
        }
    }

    /// The same money put into an index, and taken out of it, at each day's close.
    fn benchmark(&self, index: IndexCloses<'_>) -> Benchmark {
        let missing = Benchmark {
            rate: None,
            absolute_pct: None,
            reason: Some(NO_INDEX_PRICE),
        };
        let close = |date: Date| {
            let close = Amount::from(index(date)?).to_f64();
            (close > 0.0).then_some(close)
        };
        let mut units = 0.0;
        let mut flows = Flows::new();
        for (date, sum) in &self.flows {
            let Some(close) = close(*date) else {
                return missing;
            };
            let flow = sum.total().to_f64();
            units -= flow / close;
            flows.insert(*date, flow);
        }
        let last = self.valued.last_key_value().map(|(date, _)| *date);
        let Some(last) = last.or_else(|| flows.last_key_value().map(|(date, _)| *date)) else {
            return missing;
        };
        let Some(close) = close(last) else {
            return missing;
        };
        let value = units * close;
        *flows.entry(last).or_default() += value;
        let purchases = self.purchases.total().to_f64();
        let gained = value + self.sales.total().to_f64() - purchases;
        let absolute_pct = (purchases > 0.0).then_some(gained / purchases * 100.0);
        Benchmark {
            rate: Some(xirr(&flows)),
            absolute_pct,
            reason: None,
        }
    }
}

/// The securities that are held, over all accounts of the person.
fn holdings(sources: ReturnSources<'_>, money: &BTreeMap<u32, Money>) -> Vec<HoldingReturn> {
    let ledger = sources.ledger;
    let carried = carried(sources);
    let mut by_security: BTreeMap<&Security, (Money, bool, Option<Arc<str>>)> = BTreeMap::new();
    for (place, of) in money {
        let position = &ledger.positions[*place as usize];
        let (sum, is_held, symbol) = by_security.entry(&position.security).or_default();
        sum.add(of);
        *is_held |= !position.lots.is_empty();
        *symbol = symbol.take().or_else(|| position.symbol.clone());
    }
    let held = by_security
        .into_iter()
        .filter(|(_, (_, is_held, _))| *is_held);
    held.map(|(security, (money, _, symbol))| {
        let mut of = money.returned();
        if carried.contains(security) {
            of.rate = Rate::none(NoRate::CostCarried);
            of.absolute_pct = None;
        }
        HoldingReturn {
            isin: security.isin(),
            symbol,
            of,
        }
    })
    .collect()
}

/// Securities whose cost came from another one, or went to another one.
fn carried(sources: ReturnSources<'_>) -> BTreeSet<Security> {
    let ledger = sources.ledger;
    let places = ledger
        .carried()
        .flat_map(|carried| [carried.from, carried.into]);
    places
        .map(|place| ledger.positions[place as usize].security.clone())
        .collect()
}

/// The positions of a person that are in no flow, with the reason. What shares moved to, or what
/// they became, is out where they are: the price of one would be without the cost of the other.
fn cuts(sources: ReturnSources<'_>, of_person: &str) -> BTreeMap<u32, &'static str> {
    let ledger = sources.ledger;
    let others = of_others(sources, of_person);
    let mut cuts: BTreeMap<u32, &'static str> = BTreeMap::new();
    for (place, position) in ledger.positions.iter().enumerate() {
        let owner = person(sources.persons, &position.account);
        if owner != of_person || matches!(position.security, Security::Contract(_)) {
            continue;
        }
        let proof = sources.proof.row(&position.account, &position.security);
        let mut reasons = proof.into_iter().flat_map(|proof| &proof.reasons);
        let unproved = reasons
            .find(|reason| reason.cuts_security())
            .map(|reason| reason.as_str());
        let is_elsewhere = |to: &Option<AccountName>| {
            to.as_ref()
                .is_none_or(|to| person(sources.persons, to) != of_person)
        };
        let left = position.left_for.iter().any(is_elsewhere);
        let unpriced = !position.lots.is_empty() && (sources.prices)(position).is_none();
        let came = others.contains(&(place as u32));
        let reason = unproved
            .or((left || came).then_some(SHARES_LEFT))
            .or(unpriced.then_some(NO_PRICE));
        if let Some(reason) = reason {
            cuts.insert(place as u32, reason);
        }
    }
    spread(sources, of_person, &mut cuts);
    cuts
}

/// The positions into which another person's shares moved.
fn of_others(sources: ReturnSources<'_>, of_person: &str) -> BTreeSet<u32> {
    let ledger = sources.ledger;
    let others = ledger
        .positions
        .iter()
        .filter(|from| person(sources.persons, &from.account) != of_person);
    let moves = others.flat_map(|from| from.left_for.iter().flatten().map(move |to| (from, to)));
    moves
        .filter_map(|(from, to)| ledger.position(to, &from.security))
        .map(|place| place as u32)
        .collect()
}

/// Cuts what is bound to something that is cut, until nothing more is.
fn spread(sources: ReturnSources<'_>, of_person: &str, cuts: &mut BTreeMap<u32, &'static str>) {
    let bound = bound(sources, of_person);
    let mut open: Vec<u32> = cuts.keys().copied().collect();
    while let Some(place) = open.pop() {
        let reason = cuts[&place];
        for other in bound.get(&place).into_iter().flatten() {
            if let Entry::Vacant(free) = cuts.entry(*other) {
                free.insert(reason);
                open.push(*other);
            }
        }
    }
}

/// The positions that each position of a person gave shares to, or has shares from.
fn bound(sources: ReturnSources<'_>, of_person: &str) -> BTreeMap<u32, BTreeSet<u32>> {
    let ledger = sources.ledger;
    let is_own = |account: &AccountName| person(sources.persons, account) == of_person;
    let carried = ledger.carried();
    let mut pairs: Vec<(u32, u32)> = carried
        .map(|carried| (carried.from, carried.into))
        .collect();
    for (place, position) in ledger.positions.iter().enumerate() {
        for to in position.left_for.iter().flatten().filter(|to| is_own(to)) {
            let other = ledger.position(to, &position.security);
            pairs.extend(other.map(|other| (place as u32, other as u32)));
        }
    }
    let mut bound: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (one, other) in pairs {
        if is_own(&ledger.positions[one as usize].account) {
            bound.entry(one).or_default().insert(other);
            bound.entry(other).or_default().insert(one);
        }
    }
    bound
}

fn left_out(
    sources: ReturnSources<'_>,
    of_person: &str,
    cuts: &BTreeMap<u32, &'static str>,
) -> Vec<NotInReturns> {
    let ledger = sources.ledger;
    let of = |place: u32| &ledger.positions[place as usize];
    let traded: BTreeSet<u32> = ledger
        .purchases
        .iter()
        .map(|purchase| purchase.position)
        .chain(ledger.sales.iter().map(|sale| sale.position))
        .collect();
    let is_known = |place: u32| traded.contains(&place) || of(place).was_held;
    let mut rows: Vec<NotInReturns> = cuts
        .iter()
        .filter(|(place, _)| is_known(**place))
        .map(|(place, reason)| NotInReturns {
            account: Some(of(*place).account.clone()),
            isin: of(*place).isin(),
            symbol: of(*place).symbol.clone(),
            reason,
        })
        .collect();
    let is_of = |place: u32| person(sources.persons, &of(place).account) == of_person;
    let sales = ledger.sales.iter().filter(|sale| is_of(sale.position));
    let kinds: BTreeSet<PartKind> = sales
        .flat_map(|sale| &sale.parts)
        .map(|part| part.kind)
        .collect();
    let named = |reason: &'static str| NotInReturns {
        account: None,
        isin: None,
        symbol: None,
        reason,
    };
    for kind in [PartKind::Intraday, PartKind::Contract] {
        if kinds.contains(&kind) {
            rows.push(named(kind.as_str()));
        }
    }
    rows.push(named("dividends"));
    rows
}

#[cfg(test)]
#[path = "returns_tests.rs"]
mod tests;
