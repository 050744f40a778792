//! The past of a portfolio in a demo: what the trend, the journal and the watch lists would have if
//! the person had used the service for a year. All of it comes from the simulated exchange's own
//! days, by the code that the evening's revaluation uses. Pure.

use std::collections::HashMap;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use sonic_rs::Value;

use crate::base::{Account, Candle, ClosingPrice, Cost, Holding, Symbol};
use crate::market::MarketCalendar;
use crate::portfolio::{DayPoint, PointSource, point, reprice};
use crate::store::Portfolio;

/// Points of the trend before the day of the demo.
const POINTS: usize = 250;
/// The second broker came when this part of them was over, in percent.
const JOINED_AT: usize = 40;
/// A share was split two for one when this part was over, and its new shares came a day later.
const SPLIT_AT: usize = 72;
const SPLIT: i64 = 2;
/// Evening of a date: its close is final.
const EVENING: SignedDuration = SignedDuration::from_mins(45);

/// The sessions before `today`, oldest first.
pub(super) fn dates_before(calendar: &MarketCalendar, today: Date) -> Vec<Date> {
    let before = |date: &Date| calendar.previous_trading_date(*date);
    let mut dates: Vec<Date> = std::iter::successors(before(&today), before)
        .take(POINTS)
        .collect();
    dates.reverse();
    dates
}

/// Candles of the symbols that a portfolio holds.
pub(super) type Histories = HashMap<Symbol, Vec<Candle>>;

/// A point of each date: what is held today, revalued evening after evening. The second broker's
/// account is younger than the first one's; one share was split, so that a point is in doubt until
/// its new shares are there.
pub(super) fn points(
    portfolio: &Portfolio,
    histories: &Histories,
    dates: &[Date],
    calendar: &MarketCalendar,
) -> Vec<DayPoint> {
    let accounts: Vec<Account> = portfolio.syncs.iter().map(|sync| sync.account).collect();
    let Some(oldest) = accounts
        .iter()
        .copied()
        .min_by_key(|account| account.broker())
    else {
        return Vec::new();
    };
    let joined = dates.len() * JOINED_AT / 100;
    let split = dates.len() * SPLIT_AT / 100;
    let mut rows = portfolio.holdings.clone();
    let split_row = largest(&rows, oldest);
    for row in rows.iter_mut().filter(|row| row.symbol().is_some()) {
        row.mark = None;
        row.last_price = None;
    }
    if let Some(at) = split_row {
        in_shares_of_before(&mut rows[at]);
    }
    let mut made = Vec::with_capacity(dates.len());
    for (number, date) in dates.iter().copied().enumerate() {
        let Some(closed) = calendar.official_close(date) else {
            continue;
        };
        if let Some(at) = split_row.filter(|_| number == split + 1) {
            rows[at] = with_its_price(&portfolio.holdings[at], &rows[at]);
        }
        let split_symbol = split_row.and_then(|at| rows[at].symbol());
        let close_of = |symbol: &Symbol| {
            let is_before = number < split && split_symbol.as_ref() == Some(symbol);
            close(histories.get(symbol)?, date, closed, if is_before { SPLIT } else { 1 })
        };
        reprice(&mut rows, date, close_of);
        let is_there = |account: Account| account == oldest || number >= joined;
        let there = accounts
            .iter()
            .copied()
            .filter(|account| is_there(*account))
            .collect();
        let held = rows.iter().filter(|row| is_there(row.account));
        let has_close = |row: &Holding| row.symbol().is_some_and(|its| close_of(&its).is_some());
        let day = calendar.market_day(closed + EVENING);
        let source = if number == joined {
            PointSource::Sync
        } else {
            PointSource::Close
        };
        made.extend(point(&day, source, there, held, has_close));
    }
    made
}

/// The share whose split shows: the one of most value at the broker, of an even number.
fn largest(rows: &[Holding], account: Account) -> Option<usize> {
    let value = |row: &Holding| row.last_price.unwrap_or_default() * row.settled_quantity;
    let parts = Decimal::from(SPLIT);
    let is_even = |row: &Holding| (row.settled_quantity % parts).is_zero();
    let of_account = rows.iter().enumerate().filter(|(_, row)| {
        row.account == account
            && row.symbol().is_some()
            && row.t1_quantity.is_zero()
            && is_even(row)
    });
    of_account
        .max_by_key(|(_, row)| value(row))
        .map(|(at, _)| at)
}

/// The row as it was before the split; its cost is the same in all.
fn in_shares_of_before(row: &mut Holding) {
    let parts = Decimal::from(SPLIT);
    row.settled_quantity /= parts;
    if let Some(Cost::PerShare(average)) = &mut row.cost {
        *average *= parts;
    }
}

/// The row of today at the price of the date, as the broker sends it once the new shares are there.
fn with_its_price(today: &Holding, row: &Holding) -> Holding {
    let mut arrived = today.clone();
    arrived.mark = None;
    arrived.last_price = row.last_price;
    arrived.close_price = row.close_price;
    arrived.as_of_ms = row.as_of_ms;
    arrived
}

/// The official close of `date`, in shares of which `parts` became one each later.
fn close(candles: &[Candle], date: Date, at: Timestamp, parts: i64) -> Option<ClosingPrice> {
    let place = candles
        .binary_search_by_key(&date, |candle| candle.date)
        .ok()?;
    let price = |candle: &Candle| Decimal::new(candle.close_e4 * parts, 4);
    Some(ClosingPrice {
        price: price(&candles[place]),
        previous_close: place.checked_sub(1).map(|before| price(&candles[before])),
        as_of_ms: at.as_millisecond(),
        official: true,
        base_ratio: None,
    })
}

/// What a made-up trade was for.
const STRATEGIES: [(&str, &str); 4] = [
    ("breakout", "above a range of three weeks"),
    ("pullback", "back to the line it came from"),
    ("results", "before the quarter's results"),
    ("swing", "for a week or two"),
];
/// Sessions between two entries, and those that a position is held.
const ENTRY_EACH: usize = 12;
const HELD_FOR: [usize; 5] = [4, 9, 6, 15, 11];

/// Entries of a journal, oldest first: `pairs` shares bought and sold at the closes of these dates.
pub(super) fn entries(
    pairs: usize,
    dates: &[Date],
    histories: &[(Symbol, Vec<Candle>)],
) -> Vec<Value> {
    let mut entries = Vec::new();
    for number in 0..pairs {
        let Some((symbol, candles)) = histories.get(number % histories.len().max(1)) else {
            break;
        };
        let (strategy, why) = STRATEGIES[number % STRATEGIES.len()];
        let bought = number * ENTRY_EACH % dates.len().max(1);
        let sold = bought + HELD_FOR[number % HELD_FOR.len()];
        let quantity = 5 + 5 * (number % 4);
        for (side, at, notes) in [
            ("buy", bought, format!("Made-up entry: bought {why}.")),
            ("sell", sold, "Made-up entry: the pair is closed.".to_owned()),
        ] {
            let Some(date) = dates.get(at) else { continue };
            let Ok(place) = candles.binary_search_by_key(date, |candle| candle.date) else {
                continue;
            };
            let price = Decimal::new(candles[place].close_e4, 4)
                .round_dp(2)
                .to_string();
            entries.push((
                *date,
                sonic_rs::json!({
                    "traded_on": date.to_string(), "symbol": symbol.as_str(), "side": side,
                    "quantity": quantity, "price": price.parse::<f64>().unwrap_or_default(),
                    "fees": 20, "strategy": strategy, "notes": notes, "tags": ["made up", strategy],
                }),
            ));
        }
    }
    entries.sort_by_key(|(date, _)| *date);
    entries.into_iter().map(|(_, entry)| entry).collect()
}
