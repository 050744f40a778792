//! One replay of trades and corrections: the open lots of each account and what each sale took.
//!
//! Days pass in order. On a day the corporate actions come first, then what came without a trade,
//! then trades: what was bought and sold on one exchange is netted, purchases enter, sales take.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashMap, HashMapExt};
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::base::symbol::Exchange;
use crate::ledger::amount::Amount;
use crate::ledger::bonus_stripping::Bonus;
use crate::ledger::contracts::{Contracts, OpenContract};
use crate::ledger::corrections::{Action, Change, Correction, How};
use crate::ledger::day_order::{ACTION_PLACE_MAX, Event, events};
use crate::ledger::day_trades::{Day, Line};
use crate::ledger::effort::{Effort, TooComplex};
use crate::ledger::positions::{Lot, LotSource, Part, PartKind, Position, Purchase, Sale};
use crate::ledger::row::{AccountName, Segment, Side};
use crate::ledger::securities::{Securities, Security};
use crate::ledger::shares;
use crate::ledger::trades::{Trade, Trades};

/// Money in place of a fraction of a share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FractionCash {
    pub account: AccountName,
    pub security: Security,
    pub date: Date,
    pub cash: Decimal,
}

/// What trades and corrections make until the end of a day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub until: Option<Date>,
    pub securities: Securities,
    /// By account and security. Some hold nothing.
    pub positions: Vec<Position>,
    /// In the order of time.
    pub sales: Vec<Sale>,
    pub purchases: Vec<Purchase>,
    pub fractions: Vec<FractionCash>,
    pub contracts: Vec<OpenContract>,
    /// Trades of a security that was bought on one exchange and sold on the other on one day, as
    /// indices in `Trades::all`.
    pub checks: BTreeSet<u32>,
    /// Positions of which two rows with one id differ.
    pub conflicts: BTreeMap<u32, u32>,
    /// Positions of which something happened that is never computed, and those that have shares of
    /// such a one, or what its shares became, from then on.
    pub unproved: BTreeSet<u32>,
    /// In the order of time.
    pub moves: Vec<Move>,
    /// Why the replay ended early: what is here is no ledger then.
    pub too_complex: Option<TooComplex>,
}

impl Ledger {
    /// The moves by mergers and demergers: from one security of an account to another.
    pub(crate) fn carried(&self) -> impl Iterator<Item = Move> {
        let security = |place: u32| &self.positions[place as usize].security;
        let moves = self.moves.iter().copied();
        moves.filter(move |one| security(one.from) != security(one.into))
    }

    pub(crate) fn position(&self, account: &AccountName, security: &Security) -> Option<usize> {
        let key = (account, security);
        self.positions
            .binary_search_by_key(&key, |of| (&of.account, &of.security))
            .ok()
    }
}

/// Shares that went from one position to another: transferred to another account, or carried by a
/// merger or demerger to another security of the same account, if only with the cost of a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub on: Date,
    pub from: u32,
    pub into: u32,
}

/// The ledger at the end of `until`.
pub(crate) fn replay(trades: &Trades, corrections: &[(String, Correction)], until: Date) -> Ledger {
    replay_of(trades, corrections, until, &|_| true)
}

/// The ledger at the end of `until` of those trades alone that `counts` takes.
pub(crate) fn replay_of(
    trades: &Trades,
    corrections: &[(String, Correction)],
    until: Date,
    counts: &dyn Fn(&Trade) -> bool,
) -> Ledger {
    let mut replay = Replay::new(trades, corrections, until);
    let mut next_trade = 0;
    let mut next_event = 0;
    loop {
        let of_trade = trades.all.get(next_trade).map(|trade| trade.date);
        let of_event = replay.events.get(next_event).map(|event| event.date);
        let of_allotment = replay.allotments.first_key_value().map(|(date, _)| *date);
        let day = [of_trade, of_event, of_allotment]
            .into_iter()
            .flatten()
            .min();
        let Some(day) = day.filter(|day| *day <= until) else {
            break;
        };
        if replay.effort.passed().is_some() {
            break;
        }
        let events_end = next_event
            + replay.events[next_event..]
                .iter()
                .take_while(|event| event.date == day)
                .count();
        replay.day_of_corrections(day, next_event..events_end);
        let mut group = Vec::new();
        while let Some(trade) = trades.all.get(next_trade).filter(|trade| trade.date == day) {
            if counts(trade) {
                group.push((replay.position_of_trade[next_trade], next_trade as u32));
            }
            next_trade += 1;
        }
        // Stable, so that the trades of a position stay in the order of time.
        group.sort_by_key(|(position, _)| *position);
        for trades in group.chunk_by(|left, right| left.0 == right.0) {
            replay.day_of_trades(trades);
        }
        replay.buybacks(day, next_event..events_end);
        next_event = events_end;
    }
    replay.end()
}

/// Lots that an action gave and that enter later.
struct Allotment {
    position: u32,
    lot: Lot,
}

/// Shares that move from one position to another, or out of the ledger.
struct Transfer<'a> {
    from: u32,
    to: Option<&'a AccountName>,
    into: Option<u32>,
    quantity: Decimal,
}

struct Replay<'a> {
    trades: &'a Trades,
    corrections: &'a [(String, Correction)],
    ledger: Ledger,
    position_of_trade: Vec<u32>,
    events: Vec<Event>,
    allotments: BTreeMap<Date, Vec<Allotment>>,
    contracts: Contracts,
    hows: HashMap<(&'a AccountName, Isin, Date), How>,
    bonuses: HashMap<Isin, Vec<Bonus>>,
    /// Of each security that has an ISIN.
    places: HashMap<Isin, Vec<u32>>,
    /// Positions of which something is never computed, each with the first such date.
    unproved_since: BTreeMap<u32, Date>,
    effort: Effort,
}

impl<'a> Replay<'a> {
    fn new(trades: &'a Trades, corrections: &'a [(String, Correction)], until: Date) -> Self {
        let securities = Securities::of(corrections.iter().map(|(_, correction)| correction));
        let positions = positions(trades, corrections, &securities);
        let places: HashMap<(&AccountName, &Security), u32> = positions
            .iter()
            .enumerate()
            .map(|(at, position)| ((&position.account, &position.security), at as u32))
            .collect();
        let place = |trade: &Trade| places[&(&trade.account, &trade.security)];
        let position_of_trade: Vec<u32> = trades.all.iter().map(place).collect();
        let mut conflicts = BTreeMap::new();
        for conflict in trades
            .conflicts
            .iter()
            .filter(|conflict| conflict.trade.date <= until)
        {
            *conflicts.entry(place(&conflict.trade)).or_default() += 1;
        }
        let mut hows = HashMap::new();
        let mut bonuses: HashMap<Isin, Vec<Bonus>> = HashMap::new();
        for (at, (_, correction)) in corrections.iter().enumerate() {
            if let Correction::How {
                account,
                isin,
                date,
                how,
            } = correction
            {
                hows.insert((account, securities.newest(*isin), *date), *how);
            }
            if let Some((isin, bonus)) = Bonus::of(at as u32, correction) {
                bonuses
                    .entry(securities.newest(isin))
                    .or_default()
                    .push(bonus);
            }
        }
        let mut ledger = Ledger {
            until: Some(until),
            conflicts,
            ..Ledger::default()
        };
        drop(places);
        let mut places: HashMap<Isin, Vec<u32>> = HashMap::new();
        for (at, position) in positions.iter().enumerate() {
            if let Some(isin) = position.isin() {
                places.entry(isin).or_default().push(at as u32);
            }
        }
        let effort = Effort::of(corrections, &securities);
        ledger.positions = positions;
        ledger.securities = securities;
        Self {
            trades,
            corrections,
            ledger,
            position_of_trade,
            events: events(corrections),
            allotments: BTreeMap::new(),
            contracts: Contracts::default(),
            hows,
            bonuses,
            places,
            unproved_since: BTreeMap::new(),
            effort,
        }
    }

    /// The positions of a security, of all accounts.
    fn places_of(&self, isin: Isin) -> Vec<u32> {
        let newest = self.ledger.securities.newest(isin);
        self.places.get(&newest).cloned().unwrap_or_default()
    }

    fn place(&self, account: &AccountName, isin: Isin) -> Option<u32> {
        let security = Security::Known(self.ledger.securities.newest(isin));
        self.ledger
            .position(account, &security)
            .map(|place| place as u32)
    }

    fn position(&mut self, place: u32) -> &mut Position {
        &mut self.ledger.positions[place as usize]
    }

    /// What corrections do before the day's trades.
    fn day_of_corrections(&mut self, day: Date, events: std::ops::Range<usize>) {
        let corrections = self.corrections;
        let mut transfers = Vec::new();
        let mut due = false;
        for at in events {
            let Event {
                correction: index,
                place,
                ..
            } = self.events[at];
            if place > ACTION_PLACE_MAX && !due {
                self.allot(day);
                due = true;
            }
            match &corrections[index as usize].1 {
                Correction::Action(action) => self.act(index, action),
                Correction::Rights {
                    account,
                    isin,
                    date,
                    quantity,
                    price,
                } => {
                    let cost = Amount::product(*quantity, *price);
                    let lot = corrected_lot(*date, *date, How::Rights, *quantity, cost, index);
                    self.enter_bought(account, *isin, lot);
                }
                Correction::OpeningLot(opening) => {
                    let isin = self.ledger.securities.newest(opening.isin);
                    let said = self
                        .hows
                        .get(&(&opening.account, isin, opening.date))
                        .copied();
                    let how = opening.how.or(said).unwrap_or(How::Market);
                    let cost = Amount::from(opening.cost);
                    let entered = opening.entered.unwrap_or(opening.date);
                    let lot =
                        corrected_lot(opening.date, entered, how, opening.quantity, cost, index);
                    self.enter_bought(&opening.account, opening.isin, lot);
                }
                Correction::Transfer {
                    account,
                    to,
                    isin,
                    quantity,
                    ..
                } => {
                    if let Some(from) = self.place(account, *isin) {
                        let into = to.as_ref().and_then(|to| self.place(to, *isin));
                        let to = to.as_ref();
                        transfers.push(Transfer {
                            from,
                            to,
                            into,
                            quantity: *quantity,
                        });
                    }
                }
                _ => {}
            }
        }
        if !due {
            self.allot(day);
        }
        self.transfers(day, transfers);
    }

    /// Moves a day's shares. One account may pass on what another one gave it on the same day, so
    /// of several transfers those come first whose shares are there.
    fn transfers(&mut self, day: Date, mut open: Vec<Transfer<'a>>) {
        let mut held: HashMap<u32, Decimal> = HashMap::new();
        for transfer in &open {
            for place in [Some(transfer.from), transfer.into].into_iter().flatten() {
                let quantity = self.ledger.positions[place as usize].quantity();
                held.insert(place, quantity);
            }
        }
        let mut moved: BTreeMap<u32, Vec<Lot>> = BTreeMap::new();
        while !open.is_empty() {
            let is_there = |transfer: &Transfer<'_>| transfer.quantity <= held[&transfer.from];
            let next = open.iter().position(is_there).unwrap_or_default();
            let Transfer {
                from,
                to,
                into,
                quantity,
            } = open.remove(next);
            let there = quantity.min(held[&from]);
            held.entry(from).and_modify(|held| *held -= there);
            if let Some(lots) = moved.remove(&from) {
                self.enter_moved(from, lots);
            }
            let position = &mut self.ledger.positions[from as usize];
            let (taken, _) = position.take(quantity);
            position.left_for.push(to.cloned());
            taken.iter().for_each(|lot| self.effort.change(&lot.cost));
            if let Some(into) = into {
                held.entry(into).and_modify(|held| *held += there);
                if !taken.is_empty() {
                    self.ledger.moves.push(Move {
                        on: day,
                        from,
                        into,
                    });
                }
                let entered = taken.into_iter().map(|lot| Lot {
                    entered: day,
                    ..lot
                });
                moved.entry(into).or_default().extend(entered);
            }
        }
        for (place, lots) in moved {
            self.enter_moved(place, lots);
        }
    }

    fn enter_bought(&mut self, account: &AccountName, isin: Isin, lot: Lot) {
        let Some(place) = self.place(account, isin) else {
            return;
        };
        self.ledger.purchases.push(Purchase {
            position: place,
            date: lot.acquired_on,
            paid: lot.cost.clone(),
        });
        self.position(place).enter(lot);
    }

    /// Lots that moved on one day enter by the date of their purchase, their price and quantity.
    fn enter_moved(&mut self, place: u32, mut lots: Vec<Lot>) {
        lots.sort_by(|left, right| {
            let price = |lot: &Lot| lot.cost.over(&Amount::from(lot.quantity));
            left.acquired_on
                .cmp(&right.acquired_on)
                .then_with(|| price(left).cmp(&price(right)))
                .then_with(|| left.quantity.cmp(&right.quantity))
        });
        lots.into_iter()
            .for_each(|lot| self.position(place).enter(lot));
    }

    /// The lots that enter on this day by actions of before.
    fn allot(&mut self, day: Date) {
        for allotment in self.allotments.remove(&day).unwrap_or_default() {
            self.position(allotment.position).enter(allotment.lot);
        }
    }

    /// Carries an action out for each account that it is of.
    fn act(&mut self, index: u32, action: &Action) {
        for place in self.places_of(action.isin) {
            let account = self.ledger.positions[place as usize].account.clone();
            if action.account.as_ref().is_some_and(|name| *name != account) {
                continue;
            }
            if self.effort.passed().is_some() {
                return;
            }
            match &action.change {
                Change::Split { .. } => self.split(place, action),
                Change::Bonus { .. } => self.bonus(index, place, action),
                Change::Merger { new_isin, cash, .. } => {
                    let new = self.place(&account, *new_isin).filter(|new| *new != place);
                    if let Some(new) = new {
                        self.carry(index, (place, new), action, None);
                    }
                    if cash.is_some() {
                        // What its shares became follows them.
                        self.mark_unproved(place, action.ex_date);
                    }
                }
                Change::Demerger {
                    new_isin,
                    cost_percent,
                    ..
                } => {
                    let new = self.place(&account, *new_isin).filter(|new| *new != place);
                    if let Some(new) = new {
                        self.carry(index, (place, new), action, Some(*cost_percent));
                    }
                }
            }
        }
    }

    fn split(&mut self, place: u32, action: &Action) {
        let ratio = action.change.ratio();
        if ratio.is_even() {
            return;
        }
        let position = &mut self.ledger.positions[place as usize];
        let held: Vec<(Decimal, Amount)> = position
            .lots
            .iter()
            .map(|lot| (lot.quantity, lot.cost.clone()))
            .collect();
        held.iter().for_each(|(_, cost)| self.effort.change(cost));
        let given = shares::given(&held, ratio);
        for (lot, (quantity, cost)) in position.lots.iter_mut().zip(given.lots) {
            lot.quantity = quantity;
            lot.cost = cost;
        }
        position.lots.retain(|lot| !lot.quantity.is_zero());
        position.cost_of_fractions = position.cost_of_fractions.plus(&given.cost_of_fractions);
    }

    fn bonus(&mut self, index: u32, place: u32, action: &Action) {
        // What an action of this day gave was not held the day before.
        let lots = self.position(place).lots.iter();
        let held = lots
            .filter(|lot| lot.entered < action.ex_date)
            .map(|lot| lot.quantity)
            .sum();
        let quantity = shares::whole(held, action.change.ratio());
        if quantity.is_zero() {
            return;
        }
        let allotted = action.change.allotment_date().unwrap_or(action.ex_date);
        let bonus = Some(index);
        let lot = corrected_lot(allotted, allotted, How::Bonus, quantity, Amount::ZERO, index);
        self.enter_on(allotted, action.ex_date, place, Lot { bonus, ..lot });
    }

    fn enter_on(&mut self, allotted: Date, today: Date, position: u32, lot: Lot) {
        if allotted <= today {
            self.position(position).enter(lot);
        } else {
            self.allotments
                .entry(allotted)
                .or_default()
                .push(Allotment { position, lot });
        }
    }

    /// New shares of another security for the lots of `places.0`: all their cost goes with them, or
    /// a percentage of it.
    fn carry(
        &mut self,
        index: u32,
        (place, new): (u32, u32),
        action: &Action,
        cost_percent: Option<Decimal>,
    ) {
        let share = |cost: &Amount| match cost_percent {
            Some(percent) => cost.part(percent, Decimal::ONE_HUNDRED),
            None => cost.clone(),
        };
        let position = &mut self.ledger.positions[place as usize];
        let moved: Vec<(Decimal, Amount)> = position
            .lots
            .iter()
            .map(|lot| (lot.quantity, share(&lot.cost)))
            .collect();
        moved.iter().for_each(|(_, cost)| self.effort.change(cost));
        if !moved.is_empty() {
            self.ledger.moves.push(Move {
                on: action.ex_date,
                from: place,
                into: new,
            });
        }
        let given = shares::given(&moved, action.change.ratio());
        let mut kept = position.lots.clone();
        if cost_percent.is_some() {
            for (lot, (_, cost)) in position.lots.iter_mut().zip(&moved) {
                lot.cost = lot.cost.minus(cost);
                let moved = lot.charges.as_ref().map(share);
                lot.charges = lot
                    .charges
                    .take()
                    .zip(moved)
                    .map(|(all, part)| all.minus(&part));
            }
        } else {
            position.lots.clear();
        }
        let target = self.position(new);
        target.cost_of_fractions = target.cost_of_fractions.plus(&given.cost_of_fractions);
        let allotted = action.change.allotment_date().unwrap_or(action.ex_date);
        let how = if cost_percent.is_some() {
            How::Demerger
        } else {
            How::Merger
        };
        for (lot, (quantity, cost)) in kept.drain(..).zip(given.lots) {
            if quantity.is_zero() {
                continue;
            }
            let lot = Lot {
                entered: allotted,
                how,
                quantity,
                cost,
                charges: lot.charges.as_ref().map(share),
                source: LotSource::Correction(index),
                carried: true,
                bonus: None,
                ..lot
            };
            self.enter_on(allotted, action.ex_date, new, lot);
        }
    }

    /// The trades of one position on one day.
    fn day_of_trades(&mut self, group: &[(u32, u32)]) {
        let place = group[0].0;
        let trades: Vec<(u32, &'a Trade)> = group
            .iter()
            .map(|(_, at)| (*at, &self.trades.all[*at as usize]))
            .collect();
        if let Some((_, last)) = trades.last() {
            self.position(place).symbol = Some(last.symbol.clone());
        }
        if trades[0].1.segment != Segment::Equity {
            for (at, trade) in trades {
                let sale = self.contracts.trade(place, at, trade);
                self.ledger.sales.extend(sale);
            }
            return;
        }
        let mut day = Day::of(&trades);
        for exchange in Exchange::ALL {
            day.net(exchange);
        }
        self.ledger.checks.extend(day.delivered_across());
        for line in &mut day.lines {
            if line.trade.side == Side::Buy && !line.left.is_zero() {
                self.buy(place, line);
            }
        }
        for line in day.lines {
            if line.trade.side == Side::Sell {
                self.sell(place, line);
            }
        }
    }

    fn buy(&mut self, place: u32, line: &Line<'a>) {
        let trade = line.trade;
        let isin = trade.security.isin();
        let said = isin.and_then(|isin| self.hows.get(&(&trade.account, isin, trade.date)));
        let usual = if trade.is_untaxed() {
            How::OffMarket
        } else {
            How::Market
        };
        let how = said.copied().unwrap_or(usual);
        let lot = Lot {
            how,
            origin: how,
            ..line.lot(line.left)
        };
        let paid = lot.cost.clone();
        self.ledger.purchases.push(Purchase {
            position: place,
            date: trade.date,
            paid,
        });
        self.position(place).enter(lot);
    }

    fn sell(&mut self, place: u32, line: Line<'a>) {
        // One day may have all sales of a ledger.
        if self.effort.passed().is_some() {
            return;
        }
        let trade = line.trade;
        let (taken, uncovered) = self.position(place).take(line.left);
        let mut parts = line.parts;
        // Most sales have one part, and growing would make room for four.
        parts.reserve_exact(taken.len());
        for lot in taken {
            self.effort.take(&lot.cost);
            let proceeds = Amount::product(trade.price, lot.quantity);
            let charges = line.charges.as_ref();
            let charges = charges.map(|all| all.part(lot.quantity, trade.quantity));
            let kind = PartKind::Delivery;
            let beside_bonus = self.beside_bonus(place, &lot, trade.date);
            parts.push(Part {
                kind,
                lot,
                proceeds,
                charges,
                beside_bonus,
            });
        }
        self.ledger.sales.push(Sale {
            position: place,
            sold: trade.date,
            quantity: trade.quantity,
            proceeds: Amount::product(trade.price, trade.quantity),
            charges: line.charges,
            trade: Some(line.at),
            uncovered,
            parts,
        });
    }

    /// Accounts that hold shares of a bonus whose stripping the sale of this lot may be.
    fn beside_bonus(&mut self, place: u32, lot: &Lot, sold: Date) -> Vec<(u32, AccountName)> {
        let security = &self.ledger.positions[place as usize].security;
        let bonuses = security.isin().and_then(|isin| self.bonuses.get(&isin));
        let mut found = Vec::new();
        let mut looked_at = 0;
        for bonus in bonuses
            .into_iter()
            .flatten()
            .filter(|bonus| bonus.may_strip(lot, sold))
        {
            let is_of = |lot: &Lot| lot.bonus == Some(bonus.correction);
            let places = security.isin().and_then(|isin| self.places.get(&isin));
            let all = places.into_iter().flatten();
            let positions = all.map(|place| &self.ledger.positions[*place as usize]);
            looked_at += positions.clone().map(|of| of.lots.len()).sum::<usize>();
            let holds = positions.filter(|position| position.lots.iter().any(is_of));
            let awaits = self
                .allotments
                .values()
                .flatten()
                .filter(|allotment| is_of(&allotment.lot))
                .map(|allotment| &self.ledger.positions[allotment.position as usize]);
            let accounts: BTreeSet<&AccountName> = holds
                .chain(awaits)
                .map(|position| &position.account)
                .collect();
            found.extend(
                accounts
                    .into_iter()
                    .map(|name| (bonus.correction, name.clone())),
            );
        }
        self.effort.look(looked_at);
        self.effort.find(found.len());
        found
    }

    /// What the company bought back, after the day's trades.
    fn buybacks(&mut self, day: Date, events: std::ops::Range<usize>) {
        let corrections = self.corrections;
        for at in events {
            let correction = &corrections[self.events[at].correction as usize].1;
            let Correction::Buyback {
                account,
                isin,
                quantity,
                price,
                ..
            } = correction
            else {
                continue;
            };
            let Some(place) = self.place(account, *isin) else {
                continue;
            };
            let (taken, uncovered) = self.position(place).take(*quantity);
            let part = |lot: Lot| Part {
                kind: PartKind::Buyback,
                proceeds: Amount::product(*price, lot.quantity),
                lot,
                charges: None,
                beside_bonus: Vec::new(),
            };
            self.ledger.sales.push(Sale {
                position: place,
                sold: day,
                quantity: *quantity,
                proceeds: Amount::product(*price, *quantity),
                charges: None,
                trade: None,
                uncovered,
                parts: taken.into_iter().map(part).collect(),
            });
        }
    }

    /// From this date on no figure of the position is known.
    fn mark_unproved(&mut self, place: u32, on: Date) {
        let since = self.unproved_since.entry(place).or_insert(on);
        *since = on.min(*since);
    }

    /// Marks where shares of unproved positions went later.
    fn follow_unproved(&mut self) {
        for at in 0..self.ledger.moves.len() {
            let Move { on, from, into } = self.ledger.moves[at];
            let since = self.unproved_since.get(&from);
            if since.is_some_and(|since| *since <= on) {
                self.mark_unproved(into, on);
            }
        }
    }

    fn end(mut self) -> Ledger {
        let until = self.ledger.until.unwrap_or_default();
        for (_, correction) in self.corrections {
            match correction {
                Correction::FractionCash {
                    account,
                    isin,
                    date,
                    cash,
                } if *date <= until => {
                    self.ledger.fractions.push(FractionCash {
                        account: account.clone(),
                        security: Security::Known(self.ledger.securities.newest(*isin)),
                        date: *date,
                        cash: *cash,
                    });
                }
                Correction::Unproved {
                    account,
                    isin,
                    date,
                    ..
                } if *date <= until => {
                    for place in self.places_of(*isin) {
                        let of = &self.ledger.positions[place as usize].account;
                        if account.as_ref().is_none_or(|name| name == of) {
                            self.mark_unproved(place, *date);
                        }
                    }
                }
                _ => {}
            }
        }
        self.follow_unproved();
        self.ledger.unproved = self.unproved_since.into_keys().collect();
        self.ledger.fractions.sort_by(|left, right| {
            let key = |cash: &FractionCash| (cash.date, cash.cash);
            key(left)
                .cmp(&key(right))
                .then_with(|| left.account.cmp(&right.account))
                .then_with(|| left.security.cmp(&right.security))
        });
        self.ledger.contracts = self.contracts.end();
        self.ledger.too_complex = self.effort.passed();
        self.ledger
    }
}

fn corrected_lot(
    acquired_on: Date,
    entered: Date,
    how: How,
    quantity: Decimal,
    cost: Amount,
    correction: u32,
) -> Lot {
    Lot {
        acquired_on,
        entered,
        how,
        origin: how,
        quantity,
        cost,
        charges: None,
        source: LotSource::Correction(correction),
        carried: false,
        bonus: None,
    }
}

/// An empty position of each account and security that anything is said of.
fn positions(
    trades: &Trades,
    corrections: &[(String, Correction)],
    securities: &Securities,
) -> Vec<Position> {
    let mut seen: HashMap<(&AccountName, &Security), ()> = HashMap::new();
    let conflicting = trades.conflicts.iter().map(|conflict| &conflict.trade);
    for trade in trades.all.iter().chain(conflicting) {
        seen.entry((&trade.account, &trade.security)).or_default();
    }
    let mut keys: BTreeSet<(AccountName, Security)> = seen
        .into_keys()
        .map(|(account, security)| (account.clone(), security.clone()))
        .collect();
    let known = |isin: Isin| Security::Known(securities.newest(isin));
    for (_, correction) in corrections {
        match correction {
            Correction::Rights { account, isin, .. }
            | Correction::Buyback { account, isin, .. }
            | Correction::FractionCash { account, isin, .. } => {
                keys.insert((account.clone(), known(*isin)));
            }
            Correction::OpeningLot(lot) => {
                keys.insert((lot.account.clone(), known(lot.isin)));
            }
            Correction::Transfer {
                account, to, isin, ..
            } => {
                for account in [Some(account), to.as_ref()].into_iter().flatten() {
                    keys.insert((account.clone(), known(*isin)));
                }
            }
            _ => {}
        }
    }
    let mut becomes: HashMap<Security, Vec<Security>> = HashMap::new();
    for (_, correction) in corrections {
        let Correction::Action(action) = correction else {
            continue;
        };
        let Some(new) = action.change.new_isin() else {
            continue;
        };
        becomes
            .entry(known(action.isin))
            .or_default()
            .push(known(new));
    }
    // A merged share may be merged again, so this goes on until nothing is new.
    let mut open: Vec<(AccountName, Security)> = keys.iter().cloned().collect();
    while let Some((account, security)) = open.pop() {
        for new in becomes.get(&security).into_iter().flatten() {
            let key = (account.clone(), new.clone());
            if keys.insert(key.clone()) {
                open.push(key);
            }
        }
    }
    keys.into_iter()
        .map(|(account, security)| Position::new(account, security))
        .collect()
}

#[cfg(test)]
#[path = "lots_model.rs"]
mod model;

#[cfg(test)]
#[path = "lots_tests.rs"]
mod tests;
