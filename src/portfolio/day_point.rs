//! One point of the trend: the value of a portfolio on one date. Pure.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{Account, Broker, ByBroker, Holding, MarketDay, words};
use crate::portfolio::valuation::{Overflow, Valued, price_date, summary, valued};

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
    pub accounts: Accounts,
    pub holdings: u32,
    /// Holdings whose average the broker calls unreliable.
    pub discrepancies: u32,
}

/// A set of a user's accounts at brokers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounts(ByBroker<bool>);

impl Accounts {
    /// Their letters: nothing, `a`, `b` or `ab`.
    pub(crate) fn as_str(self) -> &'static str {
        match self.0.0 {
            [false, false] => "",
            [true, false] => "a",
            [false, true] => "b",
            [true, true] => "ab",
        }
    }

    /// Inverse of [`Self::as_str`]; `None` for any other text.
    pub(crate) fn parse(letters: &str) -> Option<Self> {
        let all = [[false, false], [true, false], [false, true], [true, true]];
        all.map(|at| Self(ByBroker(at)))
            .into_iter()
            .find(|some| some.as_str() == letters)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Account> {
        Broker::ALL
            .into_iter()
            .filter(move |broker| self.0[*broker])
            .map(Account::at)
    }
}

impl FromIterator<Account> for Accounts {
    fn from_iter<T: IntoIterator<Item = Account>>(accounts: T) -> Self {
        let mut some = Self::default();
        for account in accounts {
            some.0[account.broker()] = true;
        }
        some
    }
}

/// The point of `day` for the holdings of `accounts`. `has_close` tells which of them are priced at
/// the last close, even if the last trade was long before it.
///
/// # Errors
/// [`Overflow`].
pub fn point<'a>(
    day: &MarketDay,
    source: PointSource,
    accounts: Accounts,
    holdings: impl IntoIterator<Item = &'a Holding>,
    has_close: impl Fn(&Holding) -> bool,
) -> Result<DayPoint, Overflow> {
    let rows = valued(holdings)?;
    let is_old = |holding: &Holding| {
        let before_close = |close: Timestamp| holding.as_of_ms < close.as_millisecond();
        price_date(holding).is_none_or(|date| date < day.session)
            || (day.last_close.is_some_and(before_close) && !has_close(holding))
    };
    let mut carried = 0;
    let mut suspect = false;
    let mut discrepancies = 0;
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
        made_of: Some(MadeOf {
            accounts,
            holdings: count(rows.len()),
            discrepancies,
        }),
    })
}

/// A number of rows, in the type of a point.
pub(super) fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}
