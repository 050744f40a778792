//! A financial year's gains of one person: each sale with its parts, totals of what is proved, and
//! what is left out with its reason. No tax is computed.
//!
//! Amounts are exact here. They are rounded once, where they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::base::words::words;
use crate::ledger::amount::{Amount, Sum};
use crate::ledger::contracts::OpenContract;
use crate::ledger::corrections::{Correction, How};
use crate::ledger::financial_year::FinancialYear;
use crate::ledger::grandfathering::{Considered, FairValues, FmvList};
use crate::ledger::lots::Ledger;
use crate::ledger::positions::{Part, PartKind, Position, Sale};
use crate::ledger::reasons::Reason;
use crate::ledger::reconciliation::{Persons, Proof, Reconciliation, person};
use crate::ledger::row::{AccountName, Side};
use crate::ledger::rules::{
    BuybackRule, Figure, GRANDFATHERED_UNTIL, Rule, RuleId, STT_FROM, long_from,
};
use crate::ledger::securities::{Classes, Security};
use crate::ledger::trades::{Trade, Trades};

words! {
    /// What a part's gain is.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum GainClass {
        Short = "short",
        Long = "long",
        Intraday = "intraday",
        Fno = "fno",
        Buyback = "buyback",
    }

    /// How many sales have charges.
    pub(crate) enum ChargesKnown {
        All = "all",
        Some = "some",
        None = "none",
    }
}

/// What gains are computed of.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub trades: &'a Trades,
    pub corrections: &'a [(String, Correction)],
    pub ledger: &'a Ledger,
    pub proof: &'a Reconciliation,
    pub persons: &'a Persons,
    /// Highest prices of 31 January 2018, as they were printed then.
    pub fmv: FmvList<'a>,
}

/// A part of a sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartGain {
    pub acquired_on: Date,
    pub entered: Date,
    pub how: How,
    pub quantity: Decimal,
    /// `None` of a contract that expired.
    pub proceeds: Option<Amount>,
    pub charges: Option<Amount>,
    pub cost: Option<Amount>,
    /// Charges of the purchase, which are in the cost.
    pub purchase_charges: Option<Amount>,
    /// Value on 31 January 2018 of all the shares.
    pub fmv: Option<Amount>,
    pub cost_considered: Option<Amount>,
    pub gain: Option<Amount>,
    pub class: GainClass,
    pub section: Option<&'static str>,
    pub rate_pct: Option<Decimal>,
    /// All that cuts it, its security's too. None if it is proved.
    pub reasons: Vec<Reason>,
    /// Whether a buyback's gain is a long one.
    pub is_long: bool,
    buyback: Option<BuybackRule>,
}

/// A sale, or the closing of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SaleGain {
    pub sold: Date,
    pub account: AccountName,
    pub isin: Option<Isin>,
    pub symbol: Option<Arc<str>>,
    pub security: Security,
    pub quantity: Decimal,
    pub proceeds: Option<Amount>,
    pub charges: Option<Amount>,
    /// `None` if a part of it is not known.
    pub cost: Option<Amount>,
    pub gain: Option<Amount>,
    pub uncovered: Decimal,
    pub parts: Vec<PartGain>,
}

impl SaleGain {
    pub(crate) fn is_proved(&self) -> bool {
        self.uncovered.is_zero() && self.parts.iter().all(|part| part.reasons.is_empty())
    }
}

/// Sums of one class, of what is proved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByClass {
    pub short: Amount,
    pub long: Amount,
    pub intraday: Amount,
    pub fno: Amount,
}

/// A time of the year with its rates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub from: Date,
    pub to: Date,
    pub short: Amount,
    pub long: Amount,
    pub short_pct: Option<Decimal>,
    pub long_pct: Option<Decimal>,
}

/// Buybacks, apart from the other gains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BuybackTotals {
    /// Gains that are exempt.
    pub exempt: Amount,
    /// What was paid.
    pub deemed_dividend: Amount,
    pub short: Amount,
    pub long: Amount,
}

/// Sums of what is proved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub gains: ByClass,
    /// Sums of the negative parts.
    pub losses: ByClass,
    /// Sum of absolute results, as the broker counts it.
    pub fno_turnover: Amount,
    pub buyback: BuybackTotals,
    pub fractions: Amount,
    pub windows: Vec<Window>,
    /// The parts of the year by which gains are asked for.
    pub periods: Vec<Window>,
}

/// What is not in the totals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub account: AccountName,
    pub security: Security,
    pub isin: Option<Isin>,
    pub symbol: Option<Arc<str>>,
    pub reason: Reason,
    /// `None` of a conflict: neither of its figures counts.
    pub quantity: Option<Decimal>,
    pub proceeds: Option<Amount>,
    /// Of bonus stripping: the loss that the law ignores.
    pub ignored_loss: Option<Amount>,
}

/// A year's gains of one person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gains {
    pub fy: FinancialYear,
    pub person: String,
    /// All persons, and the years of this one's trades.
    pub persons: Vec<String>,
    pub years: Vec<FinancialYear>,
    /// In the order of time.
    pub sales: Vec<SaleGain>,
    pub totals: Totals,
    pub left_out: Vec<LeftOut>,
    pub charges: ChargesKnown,
    /// The rules that were used.
    pub rules: Vec<&'static Rule>,
}

/// The gains of `person` in a financial year.
pub(crate) fn gains(sources: Sources<'_>, fy: FinancialYear, of_person: &str) -> Gains {
    let computing = Computing::of(sources);
    let of = |account: &AccountName| person(sources.persons, account) == of_person;
    let sales = computing.sales(fy, &of);
    let with_charges = sales.iter().filter(|sale| sale.charges.is_some()).count();
    let charges = match with_charges {
        0 => ChargesKnown::None,
        all if all == sales.len() => ChargesKnown::All,
        _ => ChargesKnown::Some,
    };
    Gains {
        fy,
        person: of_person.to_owned(),
        persons: persons(sources),
        years: years(sources, of_person),
        totals: computing.totals(&sales, fy, of_person),
        left_out: computing.left_out(&sales, fy, of_person),
        charges,
        rules: used(&sales),
        sales,
    }
}

/// The sales in a financial year of those accounts that `of` takes, whoever's they are.
pub(crate) fn sales(
    sources: Sources<'_>,
    fy: FinancialYear,
    of: &dyn Fn(&AccountName) -> bool,
) -> Vec<SaleGain> {
    Computing::of(sources).sales(fy, of)
}

/// Everyone to whom an account belongs.
fn persons(sources: Sources<'_>) -> Vec<String> {
    let of_positions = sources
        .ledger
        .positions
        .iter()
        .map(|of| person(sources.persons, &of.account));
    let all: BTreeSet<&str> = of_positions
        .chain(sources.persons.values().map(String::as_str))
        .collect();
    all.into_iter().map(str::to_owned).collect()
}

/// The years in which a person traded or sold.
fn years(sources: Sources<'_>, of_person: &str) -> Vec<FinancialYear> {
    let of = |account: &AccountName| person(sources.persons, account) == of_person;
    let ledger = sources.ledger;
    let traded = sources.trades.all.iter().filter(|trade| of(&trade.account));
    let sold = ledger
        .sales
        .iter()
        .filter(|sale| of(&ledger.positions[sale.position as usize].account));
    let dates = traded
        .map(|trade| trade.date)
        .chain(sold.map(|sale| sale.sold));
    dates
        .map(FinancialYear::of)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// The rules that the parts of sales are under.
fn used(sales: &[SaleGain]) -> Vec<&'static Rule> {
    let mut used: BTreeSet<(RuleId, Option<Date>)> = BTreeSet::new();
    let mut rules = Vec::new();
    let mut add = |id: RuleId, date: Date| {
        let rule = Rule::on(id, date);
        rules.extend(rule.filter(|rule| used.insert((rule.id, rule.from))));
    };
    for sale in sales {
        for part in &sale.parts {
            let ids: &[RuleId] = match part.class {
                GainClass::Short => &[RuleId::ShortRate, RuleId::Term, RuleId::Fifo],
                GainClass::Long => &[
                    RuleId::LongRate,
                    RuleId::Exemption,
                    RuleId::Term,
                    RuleId::Fifo,
                ],
                GainClass::Intraday => &[RuleId::Speculation],
                GainClass::Buyback => &[RuleId::Buyback, RuleId::Term, RuleId::Fifo],
                GainClass::Fno => &[],
            };
            // Of what is no listed share no rate is said.
            let has_rate = part.rate_pct.is_some();
            let is_of_rate =
                |id: &RuleId| [RuleId::ShortRate, RuleId::LongRate, RuleId::Exemption].contains(id);
            for id in ids.iter().filter(|id| has_rate || !is_of_rate(id)) {
                add(*id, sale.sold);
            }
            if part.fmv.is_some() {
                add(RuleId::Grandfathering, sale.sold);
            }
            if part.reasons.contains(&Reason::BonusStripping) {
                add(RuleId::BonusStripping, sale.sold);
            }
        }
    }
    rules.sort_by_key(|rule| (rule.id, rule.from));
    rules
}

struct Computing<'a> {
    sources: Sources<'a>,
    classes: Classes,
    values: FairValues<'a>,
}

impl<'a> Computing<'a> {
    fn of(sources: Sources<'a>) -> Self {
        let securities = &sources.ledger.securities;
        Self {
            sources,
            classes: Classes::of(sources.corrections, securities),
            values: FairValues::of(sources.corrections, securities, sources.fmv),
        }
    }

    fn position(&self, place: u32) -> &'a Position {
        &self.sources.ledger.positions[place as usize]
    }

    /// The sales of a year and the contracts that expired in it, in the order of time.
    fn sales(&self, fy: FinancialYear, of: &dyn Fn(&AccountName) -> bool) -> Vec<SaleGain> {
        let ledger = self.sources.ledger;
        let mut sales: Vec<SaleGain> = ledger
            .sales
            .iter()
            .filter(|sale| fy.contains(sale.sold))
            .filter(|sale| of(&ledger.positions[sale.position as usize].account))
            .map(|sale| self.sale(sale))
            .collect();
        let expired = ledger
            .contracts
            .iter()
            .filter_map(|open| self.expired(open));
        sales.extend(expired.filter(|sale| fy.contains(sale.sold) && of(&sale.account)));
        sales.sort_by_key(|sale| sale.sold);
        sales
    }

    fn sale(&self, sale: &Sale) -> SaleGain {
        let position = self.position(sale.position);
        let of_sale = self.reasons_of_sale(sale, position);
        let isins = position
            .isin()
            .map(|isin| self.sources.ledger.securities.isins(isin))
            .unwrap_or_default();
        let parts: Vec<PartGain> = sale
            .parts
            .iter()
            .map(|part| self.part(sale, part, &isins, &of_sale))
            .collect();
        let all = |what: &dyn Fn(&PartGain) -> Option<Amount>| {
            let known: Option<Vec<Amount>> = parts.iter().map(what).collect();
            let known = known.filter(|_| sale.uncovered.is_zero())?;
            Some(known.iter().collect::<Sum>().total())
        };
        SaleGain {
            sold: sale.sold,
            account: position.account.clone(),
            isin: position.isin(),
            symbol: position.symbol.clone(),
            security: position.security.clone(),
            quantity: sale.quantity,
            proceeds: Some(sale.proceeds.clone()),
            charges: sale.charges.clone(),
            cost: all(&|part| part.cost.clone()),
            gain: all(&|part| part.gain.clone()),
            uncovered: sale.uncovered,
            parts,
        }
    }

    /// What cuts all parts of a sale: its security's reasons, its date, and what kind of security
    /// it is of.
    fn reasons_of_sale(&self, sale: &Sale, position: &Position) -> Vec<Reason> {
        let sources = self.sources;
        let proof = sources.proof.row(&position.account, &position.security);
        let mut reasons = proof.map(|proof| proof.reasons.clone()).unwrap_or_default();
        if matches!(position.security, Security::Contract(_)) {
            reasons.extend(self.reasons_of_contract(sale.position));
            return reasons;
        }
        if sources
            .proof
            .is_not_yet_synced(&position.account, sale.sold)
        {
            reasons.push(Reason::NotYetSynced);
        }
        reasons.extend(position.isin().and_then(|isin| self.classes.cut(isin)));
        reasons
    }

    /// No holding shows a contract, so what proves it is that its account is synced.
    fn reasons_of_contract(&self, place: u32) -> Vec<Reason> {
        let sources = self.sources;
        let mut reasons = Vec::new();
        if !sources.proof.is_synced(&self.position(place).account) {
            reasons.push(Reason::NeverSynced);
        }
        if sources.ledger.conflicts.contains_key(&place) {
            reasons.push(Reason::Conflict);
        }
        reasons
    }

    fn part(&self, sale: &Sale, part: &Part, isins: &[Isin], of_sale: &[Reason]) -> PartGain {
        let lot = &part.lot;
        let is_long = sale.sold >= long_from(lot.acquired_on);
        let class = match part.kind {
            PartKind::Intraday => GainClass::Intraday,
            PartKind::Contract => GainClass::Fno,
            PartKind::Buyback => GainClass::Buyback,
            PartKind::Delivery if is_long => GainClass::Long,
            PartKind::Delivery => GainClass::Short,
        };
        let mut reasons = of_sale.to_vec();
        let rule = self.rule(class, sale, &mut reasons);
        if part.kind == PartKind::Delivery {
            reasons.extend(self.stt_reasons(sale, part, is_long));
        }
        let buyback = rule.and_then(|rule| match rule.figure {
            Figure::Buyback(rule) => Some(rule),
            _ => None,
        });
        let considered = self.considered(sale, part, isins, (class, buyback), is_long);
        let considered = considered.map_err(|reason| reasons.push(reason)).ok();
        let charges = part.charges.clone().unwrap_or_default();
        let proceeds = match buyback {
            // The law takes what was paid as nothing, so that the cost is the loss.
            Some(BuybackRule::DeemedDividend) => Amount::ZERO,
            _ => part.proceeds.minus(&charges),
        };
        let gain = considered
            .as_ref()
            .map(|considered| proceeds.minus(&considered.cost));
        reasons.dedup();
        PartGain {
            acquired_on: lot.acquired_on,
            entered: lot.entered,
            how: lot.how,
            quantity: lot.quantity,
            proceeds: Some(part.proceeds.clone()),
            charges: part.charges.clone(),
            cost: Some(lot.cost.clone()),
            purchase_charges: lot.charges.clone(),
            fmv: considered
                .as_ref()
                .and_then(|considered| considered.fmv.clone()),
            cost_considered: considered.map(|considered| considered.cost),
            gain,
            class,
            section: rule.and_then(|rule| rule.section),
            rate_pct: rule.and_then(Rule::rate_pct),
            reasons,
            is_long,
            buyback,
        }
    }

    /// The rule that gives section and rate. Where none is known of that day, the part is cut.
    fn rule(
        &self,
        class: GainClass,
        sale: &Sale,
        reasons: &mut Vec<Reason>,
    ) -> Option<&'static Rule> {
        let id = match class {
            GainClass::Short => RuleId::ShortRate,
            GainClass::Long => RuleId::LongRate,
            GainClass::Intraday => RuleId::Speculation,
            GainClass::Buyback => RuleId::Buyback,
            GainClass::Fno => return None,
        };
        let position = self.position(sale.position);
        let is_share = position
            .isin()
            .is_none_or(|isin| self.classes.cut(isin).is_none());
        if matches!(class, GainClass::Short | GainClass::Long) && !is_share {
            return None;
        }
        let rule = Rule::on(id, sale.sold);
        if rule.is_none() {
            reasons.push(Reason::RuleUnknown);
        }
        rule
    }

    /// Both rates need the transaction tax on the sale; the long one on the purchase too, unless it
    /// is of a kind that was notified.
    fn stt_reasons(&self, sale: &Sale, part: &Part, is_long: bool) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let trade = sale.trade.map(|at| &self.sources.trades.all[at as usize]);
        if trade.is_some_and(Trade::is_untaxed) {
            reasons.push(Reason::SttOnSale);
        }
        let untaxed = matches!(part.lot.origin, How::OffMarket | How::Physical);
        if is_long && untaxed && part.lot.acquired_on >= STT_FROM {
            reasons.push(Reason::SttOnPurchase);
        }
        reasons
    }

    fn considered(
        &self,
        sale: &Sale,
        part: &Part,
        isins: &[Isin],
        (class, buyback): (GainClass, Option<BuybackRule>),
        is_long: bool,
    ) -> Result<Considered, Reason> {
        let lot = &part.lot;
        let is_capital = match class {
            GainClass::Long => true,
            GainClass::Buyback => is_long && buyback == Some(BuybackRule::CapitalGain),
            _ => false,
        };
        let position = self.position(sale.position);
        let newest = position
            .isin()
            .filter(|isin| self.classes.cut(*isin).is_none());
        let is_ruled = Rule::on(RuleId::Grandfathering, sale.sold).is_some();
        let is_old = lot.acquired_on <= GRANDFATHERED_UNTIL;
        match newest {
            Some(newest) if is_capital && is_old && is_ruled => self.values.considered(
                lot,
                (&position.account, isins),
                newest,
                (sale.sold, &part.proceeds),
            ),
            _ => Ok(Considered {
                fmv: None,
                cost: lot.cost.clone(),
            }),
        }
    }

    /// A contract that has expired and that no row closes.
    fn expired(&self, open: &OpenContract) -> Option<SaleGain> {
        let expiry = open
            .expiry
            .filter(|expiry| Some(*expiry) < self.sources.ledger.until)?;
        let position = self.position(open.position);
        let value = |side: Side| (open.side == side).then(|| open.value.clone());
        let charges = open.charges.clone();
        let sold = value(Side::Sell);
        let bought = value(Side::Buy);
        let mut reasons = self.reasons_of_contract(open.position);
        reasons.push(Reason::FnoExpired);
        let part = PartGain {
            acquired_on: open.opened,
            entered: open.opened,
            how: How::Market,
            quantity: open.quantity,
            charges: charges.clone().filter(|_| sold.is_some()),
            purchase_charges: charges.filter(|_| bought.is_some()),
            proceeds: sold.clone(),
            cost: bought.clone(),
            fmv: None,
            cost_considered: None,
            gain: None,
            class: GainClass::Fno,
            section: None,
            rate_pct: None,
            reasons,
            is_long: false,
            buyback: None,
        };
        Some(SaleGain {
            sold: expiry,
            account: position.account.clone(),
            isin: None,
            symbol: position.symbol.clone(),
            security: position.security.clone(),
            quantity: open.quantity,
            proceeds: sold,
            charges: part.charges.clone(),
            cost: bought,
            gain: None,
            uncovered: Decimal::ZERO,
            parts: vec![part],
        })
    }

    fn totals(&self, sales: &[SaleGain], fy: FinancialYear, of_person: &str) -> Totals {
        let mut adding = Adding::of(fy);
        for sale in sales {
            for part in sale.parts.iter().filter(|part| part.reasons.is_empty()) {
                adding.add(sale, part);
            }
        }
        let ledger = self.sources.ledger;
        let fractions = ledger.fractions.iter().filter(|cash| {
            let proof = self.sources.proof.row(&cash.account, &cash.security);
            // Of a security that nothing else is said of, the account's sync is the proof.
            let is_synced = || {
                let place = ledger.position(&cash.account, &cash.security);
                let is_unproved = place.is_some_and(|at| ledger.unproved.contains(&(at as u32)));
                self.sources.proof.is_synced(&cash.account) && !is_unproved
            };
            fy.contains(cash.date)
                && person(self.sources.persons, &cash.account) == of_person
                && proof.map_or_else(is_synced, Proof::is_proved)
                && cash
                    .security
                    .isin()
                    .is_none_or(|isin| self.classes.cut(isin).is_none())
        });
        let cash = fractions.map(|fraction| Amount::from(fraction.cash));
        let fractions = cash.fold(Amount::ZERO, |sum, cash| sum.plus(&cash));
        Totals {
            fractions,
            ..adding.totals()
        }
    }

    fn left_out(&self, sales: &[SaleGain], fy: FinancialYear, of_person: &str) -> Vec<LeftOut> {
        let mut left_out: BTreeMap<(AccountName, Security, Reason), LeftOut> = BTreeMap::new();
        for sale in sales {
            let row = |reason: Reason| LeftOut {
                account: sale.account.clone(),
                security: sale.security.clone(),
                isin: sale.isin,
                symbol: sale.symbol.clone(),
                reason,
                quantity: Some(Decimal::ZERO),
                proceeds: None,
                ignored_loss: None,
            };
            let mut add = |reason: Reason, quantity: Decimal, proceeds: Option<&Amount>| {
                let key = (sale.account.clone(), sale.security.clone(), reason);
                let of = left_out.entry(key).or_insert_with(|| row(reason));
                of.quantity = of.quantity.map(|sum| sum + quantity);
                if let Some(proceeds) = proceeds {
                    let sum = of.proceeds.take().unwrap_or_default();
                    of.proceeds = Some(sum.plus(proceeds));
                }
            };
            for part in &sale.parts {
                for reason in &part.reasons {
                    add(*reason, part.quantity, part.proceeds.as_ref());
                }
            }
            if !sale.uncovered.is_zero() {
                let all = sale.proceeds.clone().unwrap_or_default();
                let uncovered = all.part(sale.uncovered, sale.quantity);
                for reason in self.reasons_of_uncovered(sale) {
                    add(reason, sale.uncovered, Some(&uncovered));
                }
            }
        }
        self.add_conflicts(&mut left_out, fy, of_person);
        for ((account, security, reason), row) in &mut left_out {
            if *reason == Reason::BonusStripping {
                let key = (person(self.sources.persons, account).to_owned(), security.clone());
                row.ignored_loss = self.sources.proof.ignored_losses.get(&key).cloned();
            }
        }
        left_out.into_values().collect()
    }

    fn reasons_of_uncovered(&self, sale: &SaleGain) -> Vec<Reason> {
        let proof = self.sources.proof.row(&sale.account, &sale.security);
        let mut reasons = proof.map(|proof| proof.reasons.clone()).unwrap_or_default();
        if !reasons.contains(&Reason::Uncovered) {
            reasons.push(Reason::Uncovered);
        }
        reasons.extend(sale.isin.and_then(|isin| self.classes.cut(isin)));
        reasons
    }

    /// Sales of the year that are in conflict, of which nothing else may be left out.
    fn add_conflicts(
        &self,
        left_out: &mut BTreeMap<(AccountName, Security, Reason), LeftOut>,
        fy: FinancialYear,
        of_person: &str,
    ) {
        for conflict in &self.sources.trades.conflicts {
            let trade = &conflict.trade;
            let is_of = person(self.sources.persons, &trade.account) == of_person;
            if trade.side != Side::Sell || !fy.contains(trade.date) || !is_of {
                continue;
            }
            let key = (trade.account.clone(), trade.security.clone(), Reason::Conflict);
            left_out.entry(key).or_insert_with(|| LeftOut {
                account: trade.account.clone(),
                security: trade.security.clone(),
                isin: trade.security.isin(),
                symbol: Some(trade.symbol.clone()),
                reason: Reason::Conflict,
                quantity: None,
                proceeds: None,
                ignored_loss: None,
            });
        }
    }
}

/// Sums while they are added up.
#[derive(Default)]
struct Adding {
    gains: BTreeMap<GainClass, Sum>,
    losses: BTreeMap<GainClass, Sum>,
    turnover: Sum,
    exempt: Sum,
    dividend: Sum,
    buyback: BTreeMap<GainClass, Sum>,
    windows: Vec<(Window, BTreeMap<GainClass, Sum>)>,
    periods: Vec<(Window, BTreeMap<GainClass, Sum>)>,
}

impl Adding {
    fn of(fy: FinancialYear) -> Self {
        let ends = fy.period_ends();
        let mut from = fy.first();
        let mut periods = Vec::new();
        for to in ends {
            periods.push((window(from, to), BTreeMap::new()));
            from = to.tomorrow().unwrap_or(to);
        }
        let windows = windows(fy)
            .into_iter()
            .map(|window| (window, BTreeMap::new()))
            .collect();
        Self {
            windows,
            periods,
            ..Self::default()
        }
    }

    fn add(&mut self, sale: &SaleGain, part: &PartGain) {
        let Some(gain) = &part.gain else { return };
        if part.class == GainClass::Buyback {
            self.add_buyback(part, gain);
            return;
        }
        self.gains.entry(part.class).or_default().add(gain);
        if gain.is_negative() {
            self.losses.entry(part.class).or_default().add(gain);
        }
        if part.class == GainClass::Fno {
            // The broker counts results before charges.
            let charges = part.purchase_charges.clone().unwrap_or_default();
            let known = part.proceeds.as_ref().zip(part.cost.as_ref());
            if let Some((proceeds, cost)) = known {
                self.turnover
                    .add(&proceeds.minus(cost).plus(&charges).abs());
            }
        }
        if matches!(part.class, GainClass::Short | GainClass::Long) {
            for (window, sums) in self.windows.iter_mut().chain(&mut self.periods) {
                if (window.from..=window.to).contains(&sale.sold) {
                    sums.entry(part.class).or_default().add(gain);
                }
            }
        }
    }

    fn add_buyback(&mut self, part: &PartGain, gain: &Amount) {
        let term = if part.is_long {
            GainClass::Long
        } else {
            GainClass::Short
        };
        match part.buyback {
            Some(BuybackRule::Exempt) => self.exempt.add(gain),
            Some(BuybackRule::DeemedDividend) => {
                self.dividend
                    .add(&part.proceeds.clone().unwrap_or_default());
                self.buyback.entry(term).or_default().add(gain);
            }
            Some(BuybackRule::CapitalGain) => {
                self.buyback.entry(term).or_default().add(gain);
            }
            None => {}
        }
    }

    fn totals(self) -> Totals {
        let filled = |(window, sums): (Window, BTreeMap<GainClass, Sum>)| Window {
            short: total(&sums, GainClass::Short),
            long: total(&sums, GainClass::Long),
            ..window
        };
        Totals {
            gains: by_class(&self.gains),
            losses: by_class(&self.losses),
            fno_turnover: self.turnover.total(),
            buyback: BuybackTotals {
                exempt: self.exempt.total(),
                deemed_dividend: self.dividend.total(),
                short: total(&self.buyback, GainClass::Short),
                long: total(&self.buyback, GainClass::Long),
            },
            fractions: Amount::ZERO,
            windows: self.windows.into_iter().map(filled).collect(),
            periods: self.periods.into_iter().map(filled).collect(),
        }
    }
}

fn total(sums: &BTreeMap<GainClass, Sum>, class: GainClass) -> Amount {
    sums.get(&class).map(Sum::total).unwrap_or_default()
}

fn by_class(sums: &BTreeMap<GainClass, Sum>) -> ByClass {
    ByClass {
        short: total(sums, GainClass::Short),
        long: total(sums, GainClass::Long),
        intraday: total(sums, GainClass::Intraday),
        fno: total(sums, GainClass::Fno),
    }
}

fn window(from: Date, to: Date) -> Window {
    let rate = |id: RuleId| Rule::on(id, from).and_then(Rule::rate_pct);
    Window {
        from,
        to,
        short: Amount::ZERO,
        long: Amount::ZERO,
        short_pct: rate(RuleId::ShortRate),
        long_pct: rate(RuleId::LongRate),
    }
}

/// The times of a year with rates of their own.
fn windows(fy: FinancialYear) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    let mut from = fy.first();
    while from <= fy.last() {
        let ends = [RuleId::ShortRate, RuleId::LongRate]
            .into_iter()
            .filter_map(|id| Rule::on(id, from)?.to)
            .filter(|end| *end < fy.last());
        let to = ends.min().unwrap_or(fy.last());
        windows.push(window(from, to));
        from = to.tomorrow().unwrap_or(Date::MAX);
    }
    windows
}

#[cfg(test)]
#[path = "gains_tests.rs"]
mod tests;
