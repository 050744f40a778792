//! Whether daily candles can be believed before they are stored, and how new ones join old ones.
//! Pure.
//!
//! A history is ascending, has a candle at most per trading date, none of another date and none of
//! a day that is not over. What is wrong is named, never repaired: candlestick functions take
//! nonsense silently, and a vendor rewrites everything it sent before when a share is split.

use jiff::civil::Date;

use crate::base::Candle;
use crate::base::candle::CandleFault;

/// Sessions kept of a symbol: the window of confidence (504), its horizon, what the functions look
/// back at, and two months to spare for outcomes that come late.
pub const SESSIONS_KEPT: usize = 570;

/// Sessions that a whole history may lack: the public provider leaves out about one in 600.
pub const HOLES_MAX: usize = 6;

/// Sessions before a suspected split whose volumes are compared with the day's.
const VOLUME_SESSIONS: usize = 20;

/// How far, in percent, an opening price may be from a simple part of the close before and still
/// look like a split. With the volumes below this found 98.9 % of splits put into five years of 50
/// large shares (the rest met a larger overnight move or an evening session) and nothing in the
/// 61,135 days as they were.
const SPLIT_SLACK_PERCENT: i128 = 4;

/// Shares left over for one held before: splits and bonuses that companies make, as new to old.
/// Read the other way round they are consolidations.
const SPLITS: [(i64, i64); 15] = [
    (5, 4),
    (4, 3),
    (3, 2),
    (5, 3),
    (2, 1),
    (5, 2),
    (3, 1),
    (4, 1),
    (5, 1),
    (6, 1),
    (10, 1),
    (20, 1),
    (25, 1),
    (50, 1),
    (100, 1),
];

/// Volume of the day, in shares after the split, may be this many times more or less than usual. A
/// split that is not noticed spoils every signal of its share, one seen in vain costs a fetch.
const VOLUME_TIMES_MAX: i128 = 12;

/// What the calendar knows: whether the market has a session on a date, special ones included.
pub trait TradingDates {
    fn is_trading_date(&self, date: Date) -> bool;
}

impl<F: Fn(Date) -> bool> TradingDates for F {
    fn is_trading_date(&self, date: Date) -> bool {
        self(date)
    }
}

/// The dates a history may have, both included. `to` is the last date whose official close is past,
/// so that a running day's candle is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from: Date,
    pub to: Date,
}

/// What was wrong with what a vendor sent. The candle in question is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryFault {
    #[error("{date}: {fault}")]
    Impossible { date: Date, fault: CandleFault },
    /// Two that differ are both left out; of equal ones the first stays.
    #[error("{date} comes twice")]
    Duplicate { date: Date },
    #[error("{date} comes after {after}")]
    OutOfOrder { date: Date, after: Date },
    /// The vendor errs, or the calendar lacks a special session.
    #[error("{date} is no trading date")]
    NotTradingDate { date: Date },
    #[error("{date} is not over")]
    Unfinished { date: Date },
}

/// A day whose opening looks as if shares had been split, given as a bonus or consolidated, and the
/// candles before it not been adjusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspected {
    pub date: Date,
    /// Shares after the event for so many before: `(2, 1)` halves the price.
    pub ratio: (i64, i64),
}

/// What is left of a vendor's candles, and what was wrong with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Ascending, possible, each of a trading date of the window.
    pub candles: Vec<Candle>,
    pub faults: Vec<HistoryFault>,
    /// Trading dates between the first candle and the window's end that have none, ascending.
    pub missing: Vec<Date>,
    /// Trading dates from the window's start to the first candle: a share may be listed since.
    pub leading: usize,
    /// Untraded rows on days without a session, which one vendor is known to send; no fault.
    pub holiday_rows: usize,
    /// Candles before the window; no fault.
    pub outside: usize,
    pub suspected: Vec<Suspected>,
}

impl Checked {
    /// Nothing wrong, nothing missing, nothing suspected.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty() && self.missing.is_empty() && self.suspected.is_empty()
    }
}

/// Judges `candles` as a vendor sent them.
pub fn check(candles: &[Candle], window: Window, dates: &impl TradingDates) -> Checked {
    let mut checked = Checked::default();
    let mut twice: Option<Date> = None;
    for candle in candles {
        let date = candle.date;
        if date < window.from {
            checked.outside += 1;
            continue;
        }
        if let Some(fault) = fault(candle, window, dates) {
            let holiday = matches!(fault, HistoryFault::NotTradingDate { .. });
            if holiday && candle.check() == Err(CandleFault::Untraded) {
                checked.holiday_rows += 1;
            } else {
                checked.faults.push(fault);
            }
            continue;
        }
        match checked.candles.last() {
            _ if twice == Some(date) => checked.faults.push(HistoryFault::Duplicate { date }),
            Some(last) if last.date == date => {
                checked.faults.push(HistoryFault::Duplicate { date });
                if last != candle {
                    checked.candles.pop();
                    twice = Some(date);
                }
            }
            Some(last) if last.date > date => {
                checked.faults.push(HistoryFault::OutOfOrder { date, after: last.date });
            }
            _ => checked.candles.push(*candle),
        }
    }
    if let Some(first) = checked.candles.first().map(|candle| candle.date) {
        checked.leading = sessions(window.from, first, dates).filter(|date| *date < first).count();
        let has = |date: &Date| checked.candles.binary_search_by_key(date, |c| c.date).is_ok();
        checked.missing = sessions(first, window.to, dates).filter(|date| !has(date)).collect();
    } else {
        checked.leading = sessions(window.from, window.to, dates).count();
    }
    checked.suspected = suspected(&checked.candles);
    checked
}

/// What is wrong with a candle by itself.
fn fault(candle: &Candle, window: Window, dates: &impl TradingDates) -> Option<HistoryFault> {
    let date = candle.date;
    if date > window.to {
        return Some(HistoryFault::Unfinished { date });
    }
    if !dates.is_trading_date(date) {
        return Some(HistoryFault::NotTradingDate { date });
    }
    candle.check().err().map(|fault| HistoryFault::Impossible { date, fault })
}

/// Trading dates from `from` to `to`, both included.
fn sessions(from: Date, to: Date, dates: &impl TradingDates) -> impl Iterator<Item = Date> {
    from.series(jiff::Span::new().days(1))
        .take_while(move |date| *date <= to)
        .filter(|date| dates.is_trading_date(*date))
}

/// The days of ascending, possible candles that look like an unadjusted split. A real move may look
/// the same: that the vendor says so again after a fresh fetch of everything settles it.
pub fn suspected(candles: &[Candle]) -> Vec<Suspected> {
    let mut volumes = Vec::with_capacity(VOLUME_SESSIONS);
    let pairs = candles.windows(2).enumerate();
    pairs
        .filter_map(|(at, pair)| {
            let ratio = simple_ratio(pair[1].open_e4, pair[0].close_e4)?;
            volumes.clear();
            let before = &candles[(at + 1).saturating_sub(VOLUME_SESSIONS)..=at];
            volumes.extend(before.iter().map(|candle| candle.volume));
            volumes.sort_unstable();
            let usual = volumes[volumes.len() / 2];
            let date = pair[1].date;
            scaled(pair[1].volume, usual, ratio).then_some(Suspected { date, ratio })
        })
        .collect()
}

/// The split after which a share that closed at `close` opens near `open`.
pub fn simple_ratio(open: i64, close: i64) -> Option<(i64, i64)> {
    let splits = SPLITS.into_iter().flat_map(|(new, old)| [(new, old), (old, new)]);
    // How far off it is, in a ten-thousandth of the expected price.
    let off = |(new, old): (i64, i64)| {
        let expected = i128::from(close) * i128::from(old);
        ((i128::from(open) * i128::from(new) - expected).abs() * 10_000) / expected.max(1)
    };
    let (nearest, ratio) = splits.map(|split| (off(split), split)).min()?;
    (nearest <= SPLIT_SLACK_PERCENT * 100).then_some(ratio)
}

/// Whether a day's volume is about what the usual one comes to in shares after the split.
fn scaled(volume: i64, usual: i64, (new, old): (i64, i64)) -> bool {
    let (volume, usual) =
        (i128::from(volume) * i128::from(old), i128::from(usual) * i128::from(new));
    volume * VOLUME_TIMES_MAX >= usual && volume <= usual * VOLUME_TIMES_MAX
}

/// Why fresh candles cannot join stored ones: the whole history has to be fetched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The vendor now says something else: a split or bonus, most likely.
    #[error("the vendor rewrote {date}")]
    Rewritten { date: Date },
    /// The vendor found a session that it did not have.
    #[error("the vendor added {date} among older candles")]
    Inserted { date: Date },
    /// No date in common, so a rewriting would go unnoticed.
    #[error("no stored date is in what was fetched")]
    NoOverlap,
    #[error("{0:?} looks like a split")]
    Suspected(Suspected),
}

/// What joins the stored candles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The sessions right after the last stored one, without a gap.
    pub append: Vec<Candle>,
    /// The first session that is missing while later ones are there; they wait for it.
    pub waits_for: Option<Date>,
}

/// Joins `fresh` to `stored`, both ascending as [`check`] leaves them. Of dates in common the
/// prices have to be the same to the last digit; a corrected volume is no rewriting, and a stored
/// date that the vendor lost stays. A first history is not joined but stored as it was checked.
///
/// # Errors
/// [`Conflict`]; nothing may be appended then.
pub fn merge(
    stored: &[Candle],
    fresh: &[Candle],
    dates: &impl TradingDates,
) -> Result<Merged, Conflict> {
    let Some(last) = stored.last() else { return Err(Conflict::NoOverlap) };
    let mut overlaps = false;
    let older = fresh.partition_point(|candle| candle.date <= last.date);
    let (older, newer) = fresh.split_at(older);
    for candle in older.iter().filter(|candle| candle.date >= stored[0].date) {
        let date = candle.date;
        match stored.binary_search_by_key(&date, |candle| candle.date) {
            Err(_) => return Err(Conflict::Inserted { date }),
            Ok(at) if !same_prices(&stored[at], candle) => {
                return Err(Conflict::Rewritten { date });
            }
            Ok(_) => overlaps = true,
        }
    }
    if !overlaps {
        return Err(Conflict::NoOverlap);
    }
    let merged = contiguous(last.date, newer, dates);
    let context = &stored[stored.len().saturating_sub(VOLUME_SESSIONS)..];
    let joined: Vec<Candle> = context.iter().chain(&merged.append).copied().collect();
    let new = suspected(&joined).into_iter().find(|suspected| suspected.date > last.date);
    new.map_or(Ok(merged), |suspected| Err(Conflict::Suspected(suspected)))
}

fn same_prices(one: &Candle, other: &Candle) -> bool {
    let prices = |candle: &Candle| (candle.open_e4, candle.high_e4, candle.low_e4, candle.close_e4);
    prices(one) == prices(other)
}

/// The part of `newer` that follows `last` session by session.
fn contiguous(last: Date, newer: &[Candle], dates: &impl TradingDates) -> Merged {
    let mut merged = Merged::default();
    let mut last = last;
    for candle in newer {
        let next = sessions(last, candle.date, dates).find(|date| *date > last);
        if next.is_some_and(|next| next < candle.date) {
            merged.waits_for = next;
            break;
        }
        merged.append.push(*candle);
        last = candle.date;
    }
    merged
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
