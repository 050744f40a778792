//! Derives from a sync the rows to write (the new ones marked and dated, the other broker's at the
//! last close), the day's point, and the outcome for the user.
//!
//! Pure: the same input gives the same result, so a store that has to repeat its transaction may
//! call it twice.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{
    Broker, ClosingPrice, Holding, MarketDay, Position, Symbol, Synced, clock, words,
};
use crate::portfolio::corporate_actions::{StoredCloses, date_prices, mark, reprice};
use crate::portfolio::outcome::{SyncOutcome, diff};
use crate::portfolio::valuation::{Overflow, Valued, price_date, summary, valued};

/// Rows that got other prices or marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repriced {
    /// All rows of the repriced brokers, in their stored order.
    pub holdings: Vec<Holding>,
    /// Indices of the changed rows, ascending.
    pub changed: Vec<usize>,
}

/// The stored rows of both brokers when a sync begins to write.
#[derive(Clone, Copy, Debug)]
pub struct Stood<'a> {
    /// The brokers that were synced before.
    pub brokers: Brokers,
    pub holdings: &'a [Holding],
    pub positions: &'a [Position],
    /// The stored closing prices of the last close.
    pub closes: &'a HashMap<Symbol, ClosingPrice>,
    /// Those of the trading date before that of which prices are now.
    pub closes_before: &'a HashMap<Symbol, ClosingPrice>,
}

/// The rows that a sync writes, and its outcome for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    pub point: DayPoint,
    /// The broker's new rows.
    pub holdings: Vec<Holding>,
    /// The other broker's rows.
    pub repriced: Repriced,
    pub outcome: SyncOutcome,
}

/// Marks the new rows of `broker`, puts both brokers' rows at the last close while it stands,
/// values the whole portfolio on that date, and compares the new rows with those they replace.
pub fn derive(broker: Broker, day: &MarketDay, stood: Stood<'_>, synced: &Synced) -> Derived {
    let (own, others): (Vec<&Holding>, Vec<&Holding>) =
        stood.holdings.iter().partition(|row| row.broker == broker);
    let mut holdings = synced.holdings.clone();
    let pairs = paired(&own, &holdings);
    let closes = StoredCloses { of_date: stood.closes, before: stood.closes_before };
    let bases = date_prices(&mut holdings, day, closes);
    mark(&own, &mut holdings, &pairs, &bases, day);
    let mut repriced =
        Repriced { holdings: others.into_iter().cloned().collect(), changed: Vec::new() };
    let close_of = |symbol: &Symbol| stood.closes.get(symbol).copied();
    if let Some(close) = day.last_close {
        let date = clock::zoned(close).date();
        reprice(&mut holdings, date, close_of);
        repriced.changed = reprice(&mut repriced.holdings, date, close_of);
    }
    let positions_before: Vec<&Position> =
        stood.positions.iter().filter(|row| row.broker == broker).collect();
    let diff = diff(&own, &holdings, &pairs);
    let mut outcome = SyncOutcome::new(&diff, &holdings, &positions_before, &synced.positions);
    let rows = repriced.holdings.iter().chain(&holdings);
    let has_close = |row: &Holding| row.symbol().is_some_and(|held| close_of(&held).is_some());
    let source = if is_at_close(day, rows.clone(), has_close) {
        PointSource::Close
    } else {
        PointSource::Sync
    };
    let brokers = stood.brokers.iter().chain([broker]).collect();
    let point = point(day, source, brokers, rows.clone(), has_close).unwrap_or_else(|overflow| {
        // The sync's own amounts were checked, so only a damaged row of the other broker can
        // overflow.
        outcome.unvalued = Some(overflow);
        unvalued(day.today, brokers, rows)
    });
    Derived { point, holdings, repriced, outcome }
}

/// Whether every price is today's closing price. Then the sync writes the point that the
/// revaluation would.
fn is_at_close<'a>(
    day: &MarketDay,
    holdings: impl Iterator<Item = &'a Holding>,
    has_close: impl Fn(&Holding) -> bool,
) -> bool {
    let is_evening = day.last_close.is_some_and(|close| clock::zoned(close).date() == day.today);
    let mut priced = holdings.filter(|row| row.last_price.is_some()).peekable();
    is_evening && priced.peek().is_some() && priced.all(has_close)
}

/// The point of a portfolio that cannot be valued.
pub(crate) fn unvalued<'a>(
    date: Date,
    brokers: Brokers,
    holdings: impl Iterator<Item = &'a Holding> + Clone,
) -> DayPoint {
    let discrepancies = count(holdings.clone().filter(|row| row.discrepancy).count());
    let holdings = count(holdings.count());
    DayPoint {
        date,
        total_invested: Decimal::ZERO,
        total_current_value: Decimal::ZERO,
        total_pnl: Decimal::ZERO,
        value_without_cost: Some(Decimal::ZERO),
        source: PointSource::Sync,
        left_out: holdings,
        carried: 0,
        suspect: true,
        made_of: Some(MadeOf { brokers, holdings, discrepancies }),
    }
}

// ---- Matching
//
// Matches each row of a sync with the row of the previous sync that it continues. Pure, linear in
// the rows.

/// By what two rows are of one share, the surest first.
#[derive(Clone, Copy)]
enum SameShare {
    Ticker,
    /// After a new ticker.
    IsinAndExchange,
    Isin,
}

/// What several rows of one share have in common with the rows that they continue, the surest
/// first. A broker may send them in any order.
#[derive(Clone, Copy)]
enum SameNumbers {
    QuantityAndCost,
    Quantity,
    Cost,
    None,
}

/// For each row of `after`, the index of the row of `before` that it continues. Rows are matched by
/// exchange and ticker first, then by ISIN; among rows of one share those with equal numbers first,
/// then in their order. No row of `before` is used twice.
pub(crate) fn paired(before: &[&Holding], after: &[Holding]) -> Vec<Option<usize>> {
    let mut free: Vec<bool> = vec![true; before.len()];
    let mut pairs = vec![None; after.len()];
    for share in [SameShare::Ticker, SameShare::IsinAndExchange, SameShare::Isin] {
        for numbers in [
            SameNumbers::QuantityAndCost,
            SameNumbers::Quantity,
            SameNumbers::Cost,
            SameNumbers::None,
        ] {
            let key = |row: &Holding| Some((share.of(row)?, numbers.of(row)));
            pair(before, after, key, &mut free, &mut pairs);
        }
    }
    pairs
}

impl SameShare {
    /// The names that have to be equal; `None` if the row has none.
    fn of(self, row: &Holding) -> Option<[String; 2]> {
        Some(match self {
            Self::Ticker => [row.exchange.clone(), row.tradingsymbol.clone()],
            Self::IsinAndExchange => [row.exchange.clone(), row.isin.clone()?],
            Self::Isin => [String::new(), row.isin.clone()?],
        })
    }
}

impl SameNumbers {
    /// The numbers that have to be equal.
    fn of(self, row: &Holding) -> (Option<Decimal>, Option<Decimal>) {
        let (quantity, cost) = (Some(row.quantity()), row.average_price());
        match self {
            Self::QuantityAndCost => (quantity, cost),
            Self::Quantity => (quantity, None),
            Self::Cost => (None, cost),
            Self::None => (None, None),
        }
    }
}

fn pair<K: std::hash::Hash + Eq>(
    before: &[&Holding],
    after: &[Holding],
    key: impl Fn(&Holding) -> Option<K>,
    free: &mut [bool],
    pairs: &mut [Option<usize>],
) {
    let mut known: HashMap<K, Vec<usize>> = HashMap::new();
    // In reverse, so that rows with equal keys are used in their order.
    for (at, row) in before.iter().enumerate().rev().filter(|(at, _)| free[*at]) {
        if let Some(key) = key(row) {
            known.entry(key).or_default().push(at);
        }
    }
    for (row, pair) in after.iter().zip(pairs).filter(|(_, pair)| pair.is_none()) {
        let found = key(row).and_then(|key| known.get_mut(&key)?.pop());
        if let Some(at) = found {
            free[at] = false;
            *pair = Some(at);
        }
    }
}

// ---- Day point
//
// One point of the trend: the value of a portfolio on one date. Pure.

words! {
    /// The origin of a point of the trend.
    pub enum PointSource {
        Sync = "sync",
        Close = "close",
    }
}

/// One point of the trend. Its date is in IST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayPoint {
    pub date: Date,
    pub total_invested: Decimal,
    pub total_current_value: Decimal,
    pub total_pnl: Decimal,
    /// The part of the value whose cost is unknown. `None` in points of an older schema, whose
    /// value leaves that part out.
    pub value_without_cost: Option<Decimal>,
    pub source: PointSource,
    /// Holdings without a cost or a price, which cost and profit leave out.
    pub left_out: u32,
    /// Holdings valued at a price that is older than this date's.
    pub carried: u32,
    /// Whether a split, a bonus or the like distorts the value.
    pub suspect: bool,
    /// `None` in points of an older schema, in which `suspect` also covers unreliable averages.
    pub made_of: Option<MadeOf>,
}

/// The composition of a point, by which it can be compared with the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeOf {
    pub brokers: Brokers,
    pub holdings: u32,
    /// Holdings whose average the broker calls unreliable.
    pub discrepancies: u32,
}

/// A set of brokers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brokers {
    a: bool,
    b: bool,
}

impl Brokers {
    /// Their letters: nothing, `a`, `b` or `ab`.
    pub(crate) fn as_str(self) -> &'static str {
        match (self.a, self.b) {
            (false, false) => "",
            (true, false) => "a",
            (false, true) => "b",
            (true, true) => "ab",
        }
    }

    /// Inverse of [`Self::as_str`]; `None` for any other text.
    pub(crate) fn parse(letters: &str) -> Option<Self> {
        let all = [(false, false), (true, false), (false, true), (true, true)];
        all.map(|(a, b)| Self { a, b }).into_iter().find(|some| some.as_str() == letters)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Broker> {
        Broker::ALL.into_iter().filter(move |broker| match broker {
            Broker::A => self.a,
            Broker::B => self.b,
        })
    }
}

impl FromIterator<Broker> for Brokers {
    fn from_iter<T: IntoIterator<Item = Broker>>(brokers: T) -> Self {
        brokers.into_iter().fold(Self::default(), |some, broker| match broker {
            Broker::A => Self { a: true, ..some },
            Broker::B => Self { b: true, ..some },
        })
    }
}

/// The point of `day` for the holdings of `brokers`. `has_close` tells which holdings are priced at
/// the last close, even if the last trade was long before it.
///
/// # Errors
/// [`Overflow`].
pub fn point<'a>(
    day: &MarketDay,
    source: PointSource,
    brokers: Brokers,
    holdings: impl IntoIterator<Item = &'a Holding>,
    has_close: impl Fn(&Holding) -> bool,
) -> Result<DayPoint, Overflow> {
    let rows = valued(holdings)?;
    let is_old = |holding: &Holding| {
        let before_close = |close: Timestamp| holding.as_of_ms < close.as_millisecond();
        price_date(holding).is_none_or(|date| date < day.session)
            || (day.last_close.is_some_and(before_close) && !has_close(holding))
    };
    let (mut carried, mut suspect, mut discrepancies) = (0, false, 0);
    for Valued { holding, valuation } in &rows {
        carried += u32::from(valuation.current_value.is_some() && is_old(holding));
        suspect |= holding.mark.is_some_and(|mark| mark.distorts(day.today));
        discrepancies += u32::from(holding.discrepancy);
    }
    let sum = summary(&rows, None)?;
    Ok(DayPoint {
        date: day.today,
        total_invested: sum.total_invested,
        total_current_value: sum.total_current_value,
        total_pnl: sum.total_pnl,
        value_without_cost: Some(sum.value_without_cost),
        source,
        left_out: sum.left_out,
        carried,
        suspect,
        made_of: Some(MadeOf { brokers, holdings: count(rows.len()), discrepancies }),
    })
}

/// A number of rows, in the type of a point.
pub(super) fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "sync_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "base_price_tests.rs"]
mod base_price_tests;
