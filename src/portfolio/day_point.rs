//! One point of the trend: what a portfolio was worth on one date. Pure.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::overflow::Overflow;
use super::valuation::{Valued, price_date, summary, valued};
use crate::base::{Holding, MarketDay};

/// What wrote a point of the trend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointSource {
    Sync,
    Close,
}

impl PointSource {
    /// `sync` or `close`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Close => "close",
        }
    }

    /// The source with this name.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Sync, Self::Close].into_iter().find(|source| source.as_str() == word)
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
    /// Whether a split, a bonus or an unreliable average is suspected since the point before.
    pub suspect: bool,
}

/// The point of `day` for holdings of both brokers. `has_close` says which of them are priced at
/// the last close, even if the last trade was long before it.
///
/// # Errors
/// [`Overflow`].
pub fn point<'a>(
    day: &MarketDay,
    source: PointSource,
    holdings: impl IntoIterator<Item = &'a Holding>,
    has_close: impl Fn(&Holding) -> bool,
) -> Result<DayPoint, Overflow> {
    let rows = valued(holdings)?;
    let is_old = |holding: &Holding| {
        let before_close = |close: Timestamp| holding.as_of_ms < close.as_millisecond();
        price_date(holding).is_none_or(|date| date < day.session)
            || (day.last_close.is_some_and(before_close) && !has_close(holding))
    };
    let (mut carried, mut suspect) = (0, false);
    for Valued { holding, valuation } in &rows {
        carried += u32::from(valuation.current_value.is_some() && is_old(holding));
        suspect |= holding.discrepancy || holding.mark.is_some_and(|mark| mark.distorts(day.today));
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
    })
}
