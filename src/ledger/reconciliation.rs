//! The ledger against what the broker says that it holds, for each account and security.
//!
//! Completeness is proved by quantities alone: if any trade were missing, the broker's quantity
//! would be another one. What does not agree has its reasons, and if it shows, its cause.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{Broker, Isin};
use crate::ledger::amount::Amount;
use crate::ledger::bonus_stripping::ignored_losses;
use crate::ledger::corrections::Correction;
use crate::ledger::effort::TooComplex;
use crate::ledger::lots::{Ledger, replay_of};
use crate::ledger::mends::{self, Difference, Gap, Mend};
use crate::ledger::positions::Position;
use crate::ledger::reasons::{Cause, Reason};
use crate::ledger::row::{AccountName, Side};
use crate::ledger::securities::Security;
use crate::ledger::trades::{Trade, Trades};

/// Days after which a trade has settled, if no calendar says it.
const SETTLED_AFTER_DAYS: i32 = 14;
/// The person of an account of which nobody said another.
pub(crate) const USUAL_PERSON: &str = "self";

/// When trades settle.
pub(crate) trait Settlement {
    /// The next trading day after `traded` on which trades settle. `None` outside the calendar.
    fn settlement_day(&self, traded: Date) -> Option<Date>;
}

/// What an account's latest sync said of one holding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyncedHolding {
    pub isin: Option<Isin>,
    pub symbol: String,
    /// All of the holding: settled, used, not yet delivered and margin-funded.
    pub owned: Decimal,
    /// Shares in pledge, which may be among the owned ones or beside them.
    pub pledged: Decimal,
    /// When quantity and price suggested a corporate action, if they did.
    pub action_seen: Option<Date>,
}

/// What an account's latest sync said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyncedAccount {
    pub account: AccountName,
    pub by: Broker,
    /// Unix milliseconds.
    pub at_ms: i64,
    /// IST.
    pub on: Date,
    /// The latest trading date that had begun.
    pub trading_date: Date,
    pub holdings: Vec<SyncedHolding>,
}

impl SyncedAccount {
    /// Whether the sync could not know of trades of this date.
    fn precedes(&self, traded: Date) -> bool {
        if self.by.lists_what_is_traded() {
            traded > self.trading_date
        } else {
            traded > self.on
        }
    }

    /// Whether the sync may or may not show trades of this date.
    fn may_lack(&self, traded: Date, calendar: &dyn Settlement) -> bool {
        if self.precedes(traded) {
            return false;
        }
        if self.by.lists_what_is_traded() {
            return traded == self.trading_date;
        }
        match calendar.settlement_day(traded) {
            Some(settles) => settles >= self.on,
            None => traded.saturating_add(days(SETTLED_AFTER_DAYS)) >= self.on,
        }
    }
}

fn days(count: i32) -> jiff::Span {
    jiff::Span::new().days(count)
}

/// Trades that a sync may or may not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    pub bought: Decimal,
    pub sold: Decimal,
}

/// An account's security.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    pub account: AccountName,
    pub security: Security,
    /// All that name the security.
    pub isins: Vec<Isin>,
    pub symbol: Option<Arc<str>>,
    /// Open lots without the pending trades.
    pub ledger: Decimal,
    /// `None` if the account was never synced.
    pub synced: Option<Decimal>,
    pub pending: Pending,
    pub uncovered: Decimal,
    pub conflicts: u32,
    /// None if it is proved.
    pub reasons: Vec<Reason>,
    pub cause: Option<Cause>,
    pub mends: Vec<Mend>,
    pub synced_at_ms: Option<i64>,
}

impl Proof {
    pub(crate) fn is_proved(&self) -> bool {
        self.reasons.is_empty()
    }

    /// What the broker has more than the ledger.
    pub(crate) fn difference(&self) -> Option<Decimal> {
        Some(self.synced? - self.ledger)
    }
}

/// The ledger of all accounts against their syncs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reconciliation {
    /// By account and security.
    pub rows: Vec<Proof>,
    /// Losses that the law ignores, by person and security.
    pub ignored_losses: BTreeMap<(String, Security), Amount>,
    synced: BTreeSet<AccountName>,
    /// Of each synced account the dates of its sales that are not yet shown for sure.
    not_yet_synced: BTreeSet<(AccountName, Date)>,
}

impl Reconciliation {
    pub(crate) fn is_complete(&self) -> bool {
        self.rows.iter().all(Proof::is_proved)
    }

    pub(crate) fn row(&self, account: &AccountName, security: &Security) -> Option<&Proof> {
        let key = (account, security);
        let at = self
            .rows
            .binary_search_by_key(&key, |row| (&row.account, &row.security))
            .ok()?;
        Some(&self.rows[at])
    }

    pub(crate) fn is_synced(&self, account: &AccountName) -> bool {
        self.synced.contains(account)
    }

    /// Whether a sale is pending, or later than the sync.
    pub(crate) fn is_not_yet_synced(&self, account: &AccountName, sold: Date) -> bool {
        self.not_yet_synced.contains(&(account.clone(), sold))
    }
}

/// The person of each account.
pub(crate) type Persons = BTreeMap<AccountName, String>;

pub(crate) fn person<'a>(persons: &'a Persons, account: &AccountName) -> &'a str {
    persons.get(account).map_or(USUAL_PERSON, String::as_str)
}

/// What is compared.
#[derive(Clone, Copy)]
pub(crate) struct Compared<'a> {
    pub trades: &'a Trades,
    pub corrections: &'a [(String, Correction)],
    /// Of all trades, at the end of today.
    pub ledger: &'a Ledger,
    pub persons: &'a Persons,
}

/// Compares each account's lots with its latest sync.
///
/// # Errors
/// The ledger without what a sync may lack is not computed.
pub(crate) fn reconcile(
    compared: Compared<'_>,
    synced: &[SyncedAccount],
    calendar: &dyn Settlement,
) -> Result<Reconciliation, TooComplex> {
    let ledger = compared.ledger;
    let mut accounts: BTreeSet<&AccountName> = ledger
        .positions
        .iter()
        .map(|position| &position.account)
        .collect();
    accounts.extend(synced.iter().map(|sync| &sync.account));
    let owner = |account: &AccountName| person(compared.persons, account).to_owned();
    let mut reconciliation = Reconciliation {
        ignored_losses: ignored_losses(&ledger.positions, &ledger.sales, &owner),
        ..Reconciliation::default()
    };
    for account in accounts {
        let sync = synced.iter().find(|sync| sync.account == *account);
        let rows = match sync {
            Some(sync) => account_rows(compared, sync, calendar)?,
            None => never_synced(compared, account),
        };
        reconciliation.rows.extend(rows);
        let Some(sync) = sync else { continue };
        reconciliation.synced.insert(account.clone());
        for sale in &ledger.sales {
            let is_of = ledger.positions[sale.position as usize].account == *account;
            if is_of && (sync.precedes(sale.sold) || sync.may_lack(sale.sold, calendar)) {
                reconciliation
                    .not_yet_synced
                    .insert((account.clone(), sale.sold));
            }
        }
    }
    for row in &mut reconciliation.rows {
        let key = (person(compared.persons, &row.account).to_owned(), row.security.clone());
        if reconciliation.ignored_losses.contains_key(&key) {
            row.reasons.push(Reason::BonusStripping);
        }
    }
    Ok(reconciliation)
}

fn never_synced(compared: Compared<'_>, account: &AccountName) -> Vec<Proof> {
    let ledger = compared.ledger;
    let facts = Facts::of(ledger);
    let of = ledger
        .positions
        .iter()
        .enumerate()
        .filter(|(place, position)| {
            position.account == *account && is_share(position) && facts.shown.contains(place)
        });
    of.map(|(place, position)| {
        let mut proof = proof(compared, place, position);
        proof.reasons.insert(0, Reason::NeverSynced);
        mend_ledger(&mut proof, place, &facts);
        proof
    })
    .collect()
}

/// What the ledger alone says of a position.
fn proof(compared: Compared<'_>, place: usize, position: &Position) -> Proof {
    let ledger = compared.ledger;
    let conflicts = ledger
        .conflicts
        .get(&(place as u32))
        .copied()
        .unwrap_or_default();
    let mut reasons = Vec::new();
    if !position.uncovered.is_zero() {
        reasons.push(Reason::Uncovered);
    }
    if conflicts > 0 {
        reasons.push(Reason::Conflict);
    }
    if position.isin().is_none() {
        reasons.push(Reason::IsinUnknown);
    }
    if ledger.unproved.contains(&(place as u32)) {
        reasons.push(Reason::ActionUnproved);
    }
    Proof {
        account: position.account.clone(),
        security: position.security.clone(),
        isins: position
            .isin()
            .map(|isin| ledger.securities.isins(isin))
            .unwrap_or_default(),
        symbol: position.symbol.clone(),
        ledger: position.quantity(),
        synced: None,
        pending: Pending::default(),
        uncovered: position.uncovered,
        conflicts,
        reasons,
        cause: None,
        mends: Vec::new(),
        synced_at_ms: None,
    }
}

fn is_share(position: &Position) -> bool {
    !matches!(position.security, Security::Contract(_))
}

/// What is looked up for each position.
struct Facts {
    /// Positions of which anything happened. An action makes one of its new security for each
    /// account, even if that held nothing.
    shown: BTreeSet<usize>,
    /// The first sale without a purchase.
    uncovered_on: BTreeMap<usize, Date>,
    /// The first trade.
    first_on: BTreeMap<usize, Date>,
}

impl Facts {
    fn of(ledger: &Ledger) -> Self {
        let mut shown = BTreeSet::new();
        let mut uncovered_on = BTreeMap::new();
        let mut first_on: BTreeMap<usize, Date> = BTreeMap::new();
        let mut traded = |place: usize, on: Date| {
            let first = first_on.entry(place).or_insert(on);
            *first = on.min(*first);
        };
        for sale in &ledger.sales {
            let place = sale.position as usize;
            shown.insert(place);
            traded(place, sale.sold);
            if !sale.uncovered.is_zero() {
                uncovered_on.entry(place).or_insert(sale.sold);
            }
        }
        for purchase in &ledger.purchases {
            let place = purchase.position as usize;
            shown.insert(place);
            traded(place, purchase.date);
        }
        shown.extend(ledger.conflicts.keys().map(|place| *place as usize));
        for (place, position) in ledger.positions.iter().enumerate() {
            let has_lots = position.was_held || !position.uncovered.is_zero();
            if has_lots || !position.left_for.is_empty() {
                shown.insert(place);
            }
        }
        Self {
            shown,
            uncovered_on,
            first_on,
        }
    }
}

/// Adds what mends that which the ledger alone shows.
fn mend_ledger(proof: &mut Proof, place: usize, facts: &Facts) {
    proof.cause = mends::cause_within(&proof.reasons);
    if !proof.uncovered.is_zero() {
        let first_on = facts.uncovered_on.get(&place).copied();
        let isin = proof.security.isin();
        proof
            .mends
            .extend(mends::of_uncovered(&proof.account, isin, proof.uncovered, first_on));
    }
    if let Security::Unknown(symbol) = &proof.security {
        proof.mends.push(mends::of_symbol(&proof.account, symbol));
    }
}

/// What a sync says of one security.
#[derive(Default)]
struct Held {
    owned: Decimal,
    pledged: Decimal,
    symbol: Option<Arc<str>>,
    action_seen: Option<Date>,
}

fn account_rows(
    compared: Compared<'_>,
    sync: &SyncedAccount,
    calendar: &dyn Settlement,
) -> Result<Vec<Proof>, TooComplex> {
    let ledger = compared.ledger;
    let mut held = held(ledger, sync);
    let action_seen: BTreeMap<Security, Date> = held
        .iter()
        .filter_map(|(security, of)| Some((security.clone(), of.action_seen?)))
        .collect();
    let pending = pending(compared, sync, calendar);
    let settled = settled(compared, sync, calendar);
    if let Some(why) = settled.as_ref().and_then(|settled| settled.too_complex) {
        return Err(why);
    }
    let facts = Facts::of(ledger);
    let gap = Gap::of(compared.trades, &sync.account, sync.on);
    let mut rows = Vec::new();
    for (place, position) in ledger.positions.iter().enumerate() {
        if position.account != sync.account || !is_share(position) {
            continue;
        }
        let of_sync = held.remove(&position.security);
        if of_sync.is_none() && !facts.shown.contains(&place) {
            continue;
        }
        let mut proof = proof(compared, place, position);
        if let Some(settled) = &settled {
            let before = settled.position(&position.account, &position.security);
            proof.ledger = before
                .map(|before| settled.positions[before].quantity())
                .unwrap_or_default();
        }
        proof.pending = pending.get(&(place as u32)).copied().unwrap_or_default();
        compare(&mut proof, sync, &of_sync.unwrap_or_default());
        rows.push((place, proof));
    }
    for (security, of_sync) in held {
        let position = Position::new(sync.account.clone(), security);
        let mut proof = proof(compared, usize::MAX, &position);
        compare(&mut proof, sync, &of_sync);
        rows.push((usize::MAX, proof));
    }
    rows.sort_by(|(_, left), (_, right)| left.security.cmp(&right.security));
    for (place, proof) in &mut rows {
        mend_ledger(proof, *place, &facts);
        mend_difference(proof, sync, action_seen.get(&proof.security).copied(), gap);
    }
    pair_new_isins(&mut rows, &facts, sync.on);
    Ok(rows.into_iter().map(|(_, proof)| proof).collect())
}

/// Adds what mends a quantity that the broker has and the ledger has not, or the other way.
fn mend_difference(proof: &mut Proof, sync: &SyncedAccount, action: Option<Date>, gap: Gap) {
    let Some(synced) = proof.synced.filter(|_| differs(proof)) else {
        return;
    };
    let difference = Difference {
        account: &proof.account,
        isin: proof.security.isin(),
        ledger: proof.ledger,
        synced,
        action_seen: action,
        synced_on: sync.on,
        gap,
    };
    let cause = difference.cause();
    let mends = difference.mends();
    proof.cause.get_or_insert(cause);
    proof.mends.extend(mends);
}

fn differs(proof: &Proof) -> bool {
    proof.reasons.contains(&Reason::QuantityDiffers)
}

/// A share that is gone and one of the same issuer of which as many more are held than were bought
/// are one after a split. It came before the first trade of the new one.
fn pair_new_isins(rows: &mut [(usize, Proof)], facts: &Facts, on: Date) {
    let is_gone = |row: &Proof| differs(row) && row.synced == Some(Decimal::ZERO);
    let has_come = |row: &Proof| {
        let is_held = row.synced.is_some_and(|synced| !synced.is_zero());
        is_held && (differs(row) || !row.uncovered.is_zero())
    };
    let places = |is: &dyn Fn(&Proof) -> bool| -> Vec<usize> {
        (0..rows.len()).filter(|at| is(&rows[*at].1)).collect()
    };
    let gone = places(&is_gone);
    let issuer_of = |row: &Proof| row.security.isin().and_then(mends::issuer);
    let mut come: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for new in places(&has_come) {
        if let Some(issuer) = issuer_of(&rows[new].1) {
            come.entry(issuer).or_default().push(new);
        }
    }
    for old in gone {
        let of_issuer = issuer_of(&rows[old].1).and_then(|issuer| come.get(&issuer));
        for new in of_issuer.into_iter().flatten() {
            let (place, held_now) = &rows[*new];
            let before = &rows[old].1;
            let isins = before.security.isin().zip(held_now.security.isin());
            let Some((from, to)) = isins else { continue };
            // What was sold of the new one without a purchase came from the old one too.
            let synced = held_now.synced.unwrap_or_default();
            let unbought = synced - held_now.ledger + held_now.uncovered;
            let ex_date = facts.first_on.get(place).copied().unwrap_or(on);
            let held = (from, before.ledger);
            let mend = mends::new_isin(&before.account, held, (to, unbought), ex_date);
            let Some(mend) = mend else { continue };
            for at in [old, *new] {
                let row = &mut rows[at].1;
                row.cause = Some(Cause::Split);
                row.mends.insert(0, mend.clone());
            }
        }
    }
}

/// The sync's holdings by security. One without an ISIN is found by its symbol.
fn held(ledger: &Ledger, sync: &SyncedAccount) -> BTreeMap<Security, Held> {
    let mut held: BTreeMap<Security, Held> = BTreeMap::new();
    for holding in &sync.holdings {
        let by_symbol = || {
            let mut of_symbol = ledger.positions.iter().filter(|position| {
                position.account == sync.account
                    && is_share(position)
                    && position.symbol.as_deref() == Some(&*holding.symbol)
            });
            let first = of_symbol.next()?;
            of_symbol.next().is_none().then(|| first.security.clone())
        };
        let security = match holding.isin {
            Some(isin) => Security::Known(ledger.securities.newest(isin)),
            None => {
                by_symbol().unwrap_or_else(|| Security::Unknown(holding.symbol.as_str().into()))
            }
        };
        let of = held.entry(security).or_default();
        of.owned += holding.owned;
        of.pledged += holding.pledged;
        of.symbol
            .get_or_insert_with(|| holding.symbol.as_str().into());
        of.action_seen = of.action_seen.max(holding.action_seen);
    }
    held
}

/// The trades from which on a sync may lack some, the newest first.
fn recent<'a>(
    compared: Compared<'a>,
    sync: &SyncedAccount,
) -> impl Iterator<Item = &'a Trade> + use<'a> {
    let earliest = sync.on.saturating_sub(days(SETTLED_AFTER_DAYS * 2));
    let newest_first = compared.trades.all.iter().rev();
    newest_first.take_while(move |trade| trade.date >= earliest)
}

/// The trades that the sync may or may not show, by position.
fn pending(
    compared: Compared<'_>,
    sync: &SyncedAccount,
    calendar: &dyn Settlement,
) -> BTreeMap<u32, Pending> {
    let mut pending: BTreeMap<u32, Pending> = BTreeMap::new();
    for trade in recent(compared, sync).filter(|trade| trade.account == sync.account) {
        if sync.may_lack(trade.date, calendar)
            && let Some(place) = compared.ledger.position(&trade.account, &trade.security)
        {
            let of = pending.entry(place as u32).or_default();
            match trade.side {
                Side::Buy => of.bought += trade.quantity,
                Side::Sell => of.sold += trade.quantity,
            }
        }
    }
    pending
}

/// The ledger at the sync without what it may lack; `None` if that is the ledger as it is.
fn settled(
    compared: Compared<'_>,
    sync: &SyncedAccount,
    calendar: &dyn Settlement,
) -> Option<Ledger> {
    let counts = |trade: &Trade| {
        trade.account != sync.account
            || !(sync.precedes(trade.date) || sync.may_lack(trade.date, calendar))
    };
    let is_other = recent(compared, sync).any(|trade| !counts(trade) || trade.date > sync.on)
        || compared
            .corrections
            .iter()
            .any(|(_, correction)| correction.last_date() > Some(sync.on));
    is_other.then(|| replay_of(compared.trades, compared.corrections, sync.on, &counts))
}

/// Puts into a proof what the sync says.
fn compare(proof: &mut Proof, sync: &SyncedAccount, held: &Held) {
    let pending = proof.pending;
    let before = proof.ledger;
    let expected = [
        before,
        before - pending.sold,
        before + pending.bought,
        before - pending.sold + pending.bought,
    ];
    // Pledged shares are among the owned ones or beside them.
    let readings = [held.owned, held.owned + held.pledged];
    let agreeing = readings
        .into_iter()
        .find(|reading| expected.contains(reading));
    proof.synced = Some(agreeing.unwrap_or(held.owned));
    proof.synced_at_ms = Some(sync.at_ms);
    if proof.symbol.is_none() {
        proof.symbol.clone_from(&held.symbol);
    }
    if agreeing.is_none() {
        proof.reasons.insert(0, Reason::QuantityDiffers);
    }
}

#[cfg(test)]
#[path = "reconciliation_tests.rs"]
mod tests;
