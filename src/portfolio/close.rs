//! Writes the closing prices of a trading date into the rows of a portfolio. Pure.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::base_ratio::BaseRatio;
use crate::base::previous_close::{
    Known, Reason, Said, SessionOfPrice, base_ratio_of_percent, is_close_before,
};
use crate::base::{ActionSign, ClosingPrice, Holding, Mark, MarketDay, Symbol, previous_close};
use crate::portfolio::valuation::price_date;

/// A price at or below this share of the last known one, or at or above its inverse, looks like a
/// split, a bonus or a consolidation, if nothing is known of the exchange's base price: the common
/// ones at least halve or double the price. A bonus of 1:2 takes only a third off, which a very bad
/// month can do too.
const DROP_SUSPECT: Decimal = Decimal::from_parts(60, 0, 0, false, 2);
const RISE_SUSPECT: Decimal = Decimal::from_parts(167, 0, 0, false, 2);

/// Replaces the prices of the rows by the closing prices of `date`. Marks a row whose base price
/// was adjusted on that date, or whose price leaps, and ends marks whose time is over. Returns the
/// indices of the changed rows.
pub(crate) fn reprice(
    holdings: &mut [Holding],
    date: Date,
    close_of: impl Fn(&Symbol) -> Option<ClosingPrice>,
) -> Vec<usize> {
    let mut changed = Vec::new();
    for (index, row) in holdings.iter_mut().enumerate() {
        let Some(close) = row.symbol().and_then(|symbol| close_of(&symbol)) else {
            continue;
        };
        let before = (row.last_price, row.close_price, row.change_pct, row.as_of_ms, row.mark);
        row.mark = mark_at_close(row, date, &close);
        // The broker's previous close belongs to this date only if its price is of this date.
        let of_date = row.close_price.filter(|_| price_date(row) == Some(date));
        row.close_price = close.previous_close.or(of_date);
        row.change_pct = None;
        row.last_price = Some(close.price);
        row.as_of_ms = close.as_of_ms;
        if before != (row.last_price, row.close_price, row.change_pct, row.as_of_ms, row.mark) {
            changed.push(index);
        }
    }
    changed
}

fn mark_at_close(row: &Holding, date: Date, close: &ClosingPrice) -> Option<Mark> {
    let standing = row
        .mark
        .filter(|mark| mark.ratio.is_none() || mark.is_awaited(date));
    if standing.is_some_and(|mark| mark.ratio.is_some()) {
        return standing;
    }
    if let Some(ratio) = close.base_ratio {
        // A row of the date was judged when it came.
        let is_new = is_before_base(row, date);
        let mark = Mark {
            on: date,
            sign: ActionSign::BasePrice,
            ratio: Some(ratio),
        };
        return if is_new { Some(mark) } else { standing };
    }
    match row
        .last_price
        .is_some_and(|last| is_leap(last, close.price))
    {
        true => Some(Mark {
            on: date,
            sign: ActionSign::PriceLeap,
            ratio: None,
        }),
        false => standing,
    }
}

/// Closing prices that tell what a broker's prices are.
#[derive(Clone, Copy)]
pub(crate) struct StoredCloses<'a> {
    /// Of the trading date of which prices are now.
    pub of_date: &'a HashMap<Symbol, ClosingPrice>,
    /// Of the trading date before it.
    pub before: &'a HashMap<Symbol, ClosingPrice>,
}

/// Decides what the prices and previous closes are that a broker sent just now, and dates the
/// prices. Returns for each row the base price that the exchange adjusted, if it did.
///
/// While the market is closed, no price can be newer than the last close. In a pre-open, and at any
/// hour of a session in which the share has not traded, the price still is the close before.
pub(crate) fn date_prices(
    holdings: &mut [Holding],
    day: &MarketDay,
    closes: StoredCloses<'_>,
) -> Vec<Option<BaseRatio>> {
    let judged = |row: &mut Holding| {
        let symbol = row.symbol();
        let close = symbol
            .as_ref()
            .and_then(|symbol| closes.of_date.get(symbol))
            .copied();
        let before = symbol
            .as_ref()
            .and_then(|symbol| closes.before.get(symbol))
            .copied();
        match (day.last_close, day.close_before_open) {
            _ if day.stood_at.is_some() => judge_standing(row, day.stood_at?, close, before),
            (Some(at), _) => judge_closed(row, at, day, close, before),
            (None, Some(at)) => judge_pre_open(row, at, before),
            (None, None) => judge_running(row, before),
        }
    };
    holdings.iter_mut().map(judged).collect()
}

/// Of a trading date on which no index has moved: the price is of the session before.
fn judge_standing(
    row: &mut Holding,
    stood_at: Timestamp,
    close: Option<ClosingPrice>,
    before: Option<ClosingPrice>,
) -> Option<BaseRatio> {
    if close.is_none() && is_still(row, before) {
        stand_at(row, before?);
        return None;
    }
    row.as_of_ms = row.as_of_ms.min(stood_at.as_millisecond());
    judge(
        row,
        SessionOfPrice::Earlier,
        Known {
            close: before,
            ..Known::default()
        },
    );
    None
}

fn judge_closed(
    row: &mut Holding,
    last_close: Timestamp,
    day: &MarketDay,
    close: Option<ClosingPrice>,
    before: Option<ClosingPrice>,
) -> Option<BaseRatio> {
    row.as_of_ms = row.as_of_ms.min(last_close.as_millisecond());
    if close.is_none() && is_still(row, before) {
        stand_at(row, before?);
        return None;
    }
    // On the morning of the next session the broker's previous close may already be the last one.
    let is_next_morning = day.trading_date() < day.session;
    let of = if is_next_morning {
        SessionOfPrice::Earlier
    } else {
        SessionOfPrice::Over
    };
    let base = judge(
        row,
        of,
        Known {
            close,
            close_before: before,
            ..Known::default()
        },
    );
    close.map_or(base, |close| close.base_ratio)
}

fn judge_pre_open(
    row: &mut Holding,
    close_before_open: Timestamp,
    before: Option<ClosingPrice>,
) -> Option<BaseRatio> {
    let last = row.last_price?;
    let kept = before.filter(|close| close.price == last);
    let is_brokers_close =
        row.close_price == Some(last) || row.change_pct.is_some_and(|percent| percent.is_zero());
    // A base price shows before the first trade, beside the price before it or in its place.
    let base = before.and_then(|before| {
        // Before it is replaced, what the broker says is of the session before.
        before.previous_close.and_then(|_| base_of(row, &before))
    });
    if kept.is_some() || is_brokers_close {
        row.close_price = kept.and_then(|close| close.previous_close);
        row.change_pct = None;
        row.as_of_ms = kept.map_or(close_before_open.as_millisecond(), |close| close.as_of_ms);
    }
    base
}

fn judge_running(row: &mut Holding, before: Option<ClosingPrice>) -> Option<BaseRatio> {
    if is_still(row, before) {
        stand_at(row, before?);
        return None;
    }
    judge(
        row,
        SessionOfPrice::Running,
        Known {
            close_before: before,
            ..Known::default()
        },
    )
}

/// Puts the previous close of its session into the row. Returns the base price, if it is one.
fn judge(row: &mut Holding, of: SessionOfPrice, known: Known) -> Option<BaseRatio> {
    let Some(last_price) = row.last_price else {
        row.change_pct = None;
        row.close_price = row
            .close_price
            .filter(|previous| previous_close::is_believed_alone(*previous, of, known));
        return None;
    };
    if let (None, Some(percent)) = (row.close_price, row.change_pct) {
        return judge_percent(row, (last_price, percent), of, known);
    }
    let said = Said {
        last_price,
        previous_close: row.close_price,
    };
    let judged = previous_close::previous_close(said, of, known);
    row.close_price = judged.price;
    row.change_pct = None;
    match judged.reason {
        Reason::Base(ratio) => Some(ratio),
        _ => None,
    }
}

/// As [`judge`], of a row with the change in percent alone. It stays while it is believed.
fn judge_percent(
    row: &mut Holding,
    (last_price, percent): (Decimal, Decimal),
    of: SessionOfPrice,
    known: Known,
) -> Option<BaseRatio> {
    let base = known
        .close_before
        .and_then(|before| base_ratio_of_percent(last_price, percent, &before));
    let rolls = of == SessionOfPrice::Earlier || (of == SessionOfPrice::Over && percent.is_zero());
    if rolls {
        let said = Said {
            last_price,
            previous_close: Some(last_price),
        };
        row.close_price = previous_close::previous_close(said, of, known).price;
        row.change_pct = None;
        return None;
    }
    base
}

fn base_of(row: &Holding, before: &ClosingPrice) -> Option<BaseRatio> {
    match (row.close_price, row.last_price.zip(row.change_pct)) {
        (Some(previous), _) => previous_close::base_ratio(previous, before),
        (None, Some((last, percent))) => base_ratio_of_percent(last, percent, before),
        (None, None) => None,
    }
}

/// Whether the price is still the close `before`.
fn is_still(row: &Holding, before: Option<ClosingPrice>) -> bool {
    let said = row.last_price.map(|last_price| Said {
        last_price,
        previous_close: row.close_price,
    });
    let both = said.zip(before);
    both.is_some_and(|(said, before)| is_close_before(said, row.change_pct, &before))
}

fn stand_at(row: &mut Holding, close: ClosingPrice) {
    row.close_price = close.previous_close;
    row.change_pct = None;
    row.as_of_ms = close.as_of_ms;
}

/// Whether a price moved so far that only a corporate action explains it.
pub(super) fn is_leap(last: Decimal, now: Decimal) -> bool {
    last > Decimal::ZERO
        && now
            .checked_div(last)
            .is_none_or(|part| part <= DROP_SUSPECT || part >= RISE_SUSPECT)
}

/// Whether a row is of before the base price of `date`: its price is, and no shares have arrived on
/// that date.
pub(super) fn is_before_base(row: &Holding, date: Date) -> bool {
    let arrived = row
        .mark
        .is_some_and(|mark| mark.on == date && mark.ratio.is_none());
    !arrived && price_date(row).is_none_or(|of| of < date)
}

#[cfg(test)]
#[path = "close_tests.rs"]
mod tests;
