//! Checks a vendor's daily candles before they are stored, and joins new candles to stored ones.
//! Pure.
//!
//! A history is ascending, has at most one candle for each trading date, and none of another date
//! or of a day that is not over. Faults are reported, never repaired: pattern functions accept
//! nonsense silently, and a vendor rewrites all earlier candles when a share is split.

use jiff::civil::Date;

use crate::base::Candle;
use crate::base::candle::CandleFault;

/// Sessions kept for a symbol: the window of confidence (504), its horizon, what the pattern
/// functions look back at, and two months more for outcomes that come late.
pub(crate) const SESSIONS_KEPT: usize = 570;

/// Sessions that a history may lack. The public provider leaves out about one in 600.
pub(crate) const HOLES_MAX: usize = 6;

/// Sessions before a suspected split whose volumes are compared with the day's.
const VOLUME_SESSIONS: usize = 20;

/// Largest distance, in percent, of an opening price from a simple fraction of the close before at
/// which the day still looks like a split.
///
/// Together with the check of volumes this found 98.9 % of the splits that were put into five years
/// of 50 large shares. The others coincided with a larger overnight move or an evening session. It
/// found none in the 61,135 days as they were.
const SPLIT_SLACK_PERCENT: i128 = 4;

/// Splits and bonuses that companies make, as new shares to old ones. The inverse ratios are
/// consolidations.
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

/// The day's volume, in shares after the split, may be up to this many times more or less than
/// usual. An undetected split spoils every signal of its share, while a false alarm costs one
/// fetch.
const VOLUME_TIMES_MAX: i128 = 12;

/// The dates that a history may have, both included. `to` is the last date whose official close is
/// past, so the candle of a running day is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from: Date,
    pub to: Date,
    /// Whether candles may be without volume, as those of an index are.
    pub untraded: bool,
}

/// A fault in a vendor's candles. The candle in question is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryFault {
    #[error("{date}: {fault}")]
    Impossible { date: Date, fault: CandleFault },
    /// Two different candles of one date are both left out. Of equal ones the first is kept.
    #[error("{date} comes twice")]
    Duplicate { date: Date },
    #[error("{date} comes after {after}")]
    OutOfOrder { date: Date, after: Date },
    /// Either the vendor is wrong, or the calendar lacks a special session.
    #[error("{date} is no trading date")]
    NotTradingDate { date: Date },
    #[error("{date} is not over")]
    Unfinished { date: Date },
}

/// Furthest from the close before, in thousandths of it, that a share opens. The pre-open's auction
/// finds its price within a tenth of it, and a tick is added by rounding.
///
/// A larger gap is a base price that the exchange adjusted, or a wrong candle. None of the 61,085
/// gaps of 50 large shares in five years is as large; the largest real one is 10.01 %. Falls of
/// 27 % and 28 % on one day were made in trading, after openings within the tenth.
const GAP_MAX_PERMILLE: i128 = 105;
/// A share without the pre-open's limit may open further away every other week. So the gap also has
/// to be this many times the middle one of the sessions before.
const GAP_TIMES_MIN: i128 = 8;
/// Gaps before the day that are looked at, and the fewest of them that tell anything.
const GAP_SESSIONS: usize = 60;
const GAP_SESSIONS_MIN: usize = 20;

/// Sessions after an unadjusted day in which a pattern may still look back over it.
pub(crate) const SPANNED_SESSIONS: usize = 15;

/// Furthest, in thousandths, that an adjusted candle's close is from the exchange's base price. A
/// vendor's close may be a last trade.
const BASE_SLACK_PERMILLE: i128 = 15;

/// A day that opens as after a corporate action, while the candles before it were not adjusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspected {
    pub date: Date,
    /// New shares for old ones of a split, a bonus or a consolidation: `(2, 1)` halves the price.
    /// `None` if the gap is no such ratio, as after a demerger.
    pub ratio: Option<(i64, i64)>,
}

/// The candles that passed the check, and the faults of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Candles that passed: ascending, with plausible prices, each of a trading date in the window.
    pub candles: Vec<Candle>,
    pub faults: Vec<HistoryFault>,
    /// Trading dates without a candle, from the first candle to the window's end, ascending.
    pub missing: Vec<Date>,
    /// Trading dates from the window's start to the first candle. There are some if the share was
    /// listed later.
    pub leading: usize,
    /// Rows without volume on days without a session. One vendor is known to send them; they are no
    /// fault.
    pub holiday_rows: usize,
    /// Candles before the window. They are no fault.
    pub outside: usize,
    pub suspected: Vec<Suspected>,
}

impl Checked {
    /// Whether there is no fault, no missing session and no suspected split.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty() && self.missing.is_empty() && self.suspected.is_empty()
    }
}

/// Checks `candles` as a vendor sent them. `dates` says whether the market has a session on a date,
/// special sessions included.
pub fn check(candles: &[Candle], window: Window, dates: &impl Fn(Date) -> bool) -> Checked {
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
                checked.faults.push(HistoryFault::OutOfOrder {
                    date,
                    after: last.date,
                });
            }
            _ => checked.candles.push(*candle),
        }
    }
    if let Some(first) = checked.candles.first().map(|candle| candle.date) {
        checked.leading = sessions(window.from, first, dates)
            .filter(|date| *date < first)
            .count();
        let has = |date: &Date| {
            checked
                .candles
                .binary_search_by_key(date, |c| c.date)
                .is_ok()
        };
        checked.missing = sessions(first, window.to, dates)
            .filter(|date| !has(date))
            .collect();
    } else {
        checked.leading = sessions(window.from, window.to, dates).count();
    }
    checked.suspected = suspected(&checked.candles);
    checked
}

/// The fault of a single candle, if it has one.
fn fault(candle: &Candle, window: Window, dates: &impl Fn(Date) -> bool) -> Option<HistoryFault> {
    let date = candle.date;
    if date > window.to {
        return Some(HistoryFault::Unfinished { date });
    }
    if !dates(date) {
        return Some(HistoryFault::NotTradingDate { date });
    }
    let fault = candle.check().err();
    let fault = fault.filter(|fault| !(window.untraded && *fault == CandleFault::Untraded));
    fault.map(|fault| HistoryFault::Impossible { date, fault })
}

/// Trading dates from `from` to `to`, both included.
fn sessions(from: Date, to: Date, dates: &impl Fn(Date) -> bool) -> impl Iterator<Item = Date> {
    from.series(jiff::Span::new().days(1))
        .take_while(move |date| *date <= to)
        .filter(|date| dates(*date))
}

/// The days that look like an unadjusted split, among ascending candles with plausible prices. A
/// real move may look the same. If a fresh fetch of the whole history repeats the prices, it was a
/// real move.
pub(crate) fn suspected(candles: &[Candle]) -> Vec<Suspected> {
    let mut volumes = Vec::with_capacity(VOLUME_SESSIONS);
    let pairs = candles.windows(2).enumerate();
    pairs
        .filter_map(|(at, pair)| {
            let date = pair[1].date;
            let ratio = simple_ratio(pair[1].open_e4, pair[0].close_e4).filter(|ratio| {
                volumes.clear();
                let before = &candles[(at + 1).saturating_sub(VOLUME_SESSIONS)..=at];
                volumes.extend(before.iter().map(|candle| candle.volume));
                volumes.sort_unstable();
                scaled(pair[1].volume, volumes[volumes.len() / 2], *ratio)
            });
            let is_suspected = ratio.is_some() || is_gap(&candles[..=at], pair[1].open_e4);
            is_suspected.then_some(Suspected { date, ratio })
        })
        .collect()
}

/// Whether an opening price is further from the last close of `before` than a share opens.
pub(crate) fn is_gap(before: &[Candle], open_e4: i64) -> bool {
    let permille = |open_e4: i64, close_e4: i64| {
        let apart = i128::from(open_e4) - i128::from(close_e4);
        apart.abs() * 1_000_000 / i128::from(close_e4).max(1)
    };
    let Some(last) = before.last() else {
        return false;
    };
    let gap = permille(open_e4, last.close_e4);
    if gap <= GAP_MAX_PERMILLE * 1_000 {
        return false;
    }
    let known = &before[before.len().saturating_sub(GAP_SESSIONS + 1)..];
    let pairs = known
        .windows(2)
        .map(|pair| permille(pair[1].open_e4, pair[0].close_e4));
    let mut gaps: Vec<i128> = pairs.collect();
    gaps.sort_unstable();
    gaps.len() < GAP_SESSIONS_MIN || gap >= gaps[gaps.len() / 2] * GAP_TIMES_MIN
}

/// Whether the candle `before` is not adjusted for the exchange's base price of the day after it,
/// although that day opens nearer to the base price than to the candle's close.
pub(crate) fn is_unadjusted(before: &Candle, day: &Candle, base_e4: i64) -> bool {
    let apart = |one: i64, other: i64| (i128::from(one) - i128::from(other)).abs();
    let is_near =
        apart(before.close_e4, base_e4) * 1_000 <= i128::from(base_e4) * BASE_SLACK_PERMILLE;
    !is_near && apart(day.open_e4, base_e4) < apart(day.open_e4, before.close_e4)
}

/// The split ratio after which a share that closed at `close` opens near `open`.
pub(crate) fn simple_ratio(open: i64, close: i64) -> Option<(i64, i64)> {
    let splits = SPLITS
        .into_iter()
        .flat_map(|(new, old)| [(new, old), (old, new)]);
    // Distance from the expected price, in ten-thousandths of it.
    let off = |(new, old): (i64, i64)| {
        let expected = i128::from(close) * i128::from(old);
        ((i128::from(open) * i128::from(new) - expected).abs() * 10_000) / expected.max(1)
    };
    let (nearest, ratio) = splits.map(|split| (off(split), split)).min()?;
    (nearest <= SPLIT_SLACK_PERCENT * 100).then_some(ratio)
}

/// Whether a day's volume is about the usual one, converted to shares after the split.
fn scaled(volume: i64, usual: i64, (new, old): (i64, i64)) -> bool {
    let (volume, usual) =
        (i128::from(volume) * i128::from(old), i128::from(usual) * i128::from(new));
    volume * VOLUME_TIMES_MAX >= usual && volume <= usual * VOLUME_TIMES_MAX
}

/// Why fresh candles cannot be joined to stored ones. The whole history has to be fetched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The vendor changed a price it had sent before, most likely for a split or a bonus.
    #[error("the vendor rewrote {date}")]
    Rewritten { date: Date },
    /// The vendor added a session that it had left out before.
    #[error("the vendor added {date} among older candles")]
    Inserted { date: Date },
    /// No date is in both, so a changed price would go unnoticed.
    #[error("no stored date is in what was fetched")]
    NoOverlap,
    #[error("{0:?} looks like a split or another corporate action")]
    Suspected(Suspected),
}

/// The candles that can be appended to the stored ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The sessions right after the last stored one, without a gap.
    pub append: Vec<Candle>,
    /// The first missing session that later candles follow. They are not appended before it is
    /// stored.
    pub waits_for: Option<Date>,
}

/// Joins `fresh` to `stored`, both ascending as [`check`] returns them.
///
/// On dates that both have, prices must be equal to the last digit. A corrected volume is no
/// conflict, and a stored date that the vendor no longer has stays. A first history is not joined
/// but stored as it was checked.
///
/// # Errors
/// [`Conflict`]. Then nothing may be appended.
pub fn merge(
    stored: &[Candle],
    fresh: &[Candle],
    dates: &impl Fn(Date) -> bool,
) -> Result<Merged, Conflict> {
    let Some(last) = stored.last() else {
        return Err(Conflict::NoOverlap);
    };
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
    let context = &stored[stored.len().saturating_sub(GAP_SESSIONS + 1)..];
    let joined: Vec<Candle> = context.iter().chain(&merged.append).copied().collect();
    let new = suspected(&joined)
        .into_iter()
        .find(|suspected| suspected.date > last.date);
    new.map_or(Ok(merged), |suspected| Err(Conflict::Suspected(suspected)))
}

fn same_prices(one: &Candle, other: &Candle) -> bool {
    let prices = |candle: &Candle| (candle.open_e4, candle.high_e4, candle.low_e4, candle.close_e4);
    prices(one) == prices(other)
}

/// The part of `newer` that follows `last` without a gap.
fn contiguous(last: Date, newer: &[Candle], dates: &impl Fn(Date) -> bool) -> Merged {
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
