//! Judges candles that arrived and stores the plausible ones. Jobs of the lane `signals`, which
//! block. Nothing outlives a job but its result.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use crate::base::candle::price_e4;
use crate::base::{Candle, Source, clock};
use crate::cache::Peek;
use crate::market::MarketCalendar;
use crate::signals::history::{
    Checked, Conflict, HOLES_MAX, SPANNED_SESSIONS, Window, check, is_unadjusted, merge,
};
use crate::store::{CandleHistory, Epoch, NewHistory, SplitSuspicion, Store, StoreError};
use crate::warmers::context::WarmerContext;
use crate::warmers::quotes::known_closes::KnownCloses;
use crate::warmers::signals::fetch::{Arrived, window_from};

/// What `take_in` decided about the arrived candles.
pub(crate) struct Taken {
    pub at: usize,
    pub source: Source,
    /// The whole history was asked for.
    pub whole: bool,
    pub verdict: Verdict,
}

#[derive(Debug)]
pub(crate) enum Verdict {
    /// The candles were stored. `gap`: an earlier session is missing before newer ones.
    Stored { held: CandleHistory, gap: bool },
    /// The candles were refused and not stored: too many are missing or wrong.
    Patchy { missing: usize, faults: usize },
}

/// Judges candles that arrived and stores the plausible ones.
pub(crate) fn take_in(
    store: &Store,
    epoch: Epoch,
    calendar: &MarketCalendar,
    known: &KnownCloses,
    arrived: Arrived,
) -> Result<Taken, StoreError> {
    let at = arrived.at;
    let source = arrived.source;
    let whole = arrived.whole;
    known.note_candles(calendar, &arrived.symbol, &arrived.read.candles);
    let verdict = match &arrived.held {
        Some(held) if !arrived.whole => append(store, epoch, calendar, &arrived, held.clone())?,
        _ => replace(store, epoch, calendar, arrived)?,
    };
    Ok(Taken {
        at,
        source,
        whole,
        verdict,
    })
}

fn replace(
    store: &Store,
    epoch: Epoch,
    calendar: &MarketCalendar,
    arrived: Arrived,
) -> Result<Verdict, StoreError> {
    let Arrived {
        symbol,
        source,
        read,
        from,
        to,
        is_index,
        ..
    } = arrived;
    let window = Window {
        from,
        to,
        untraded: is_index,
    };
    let checked = check(&read.candles, window, &|date| calendar.is_trading_date(date));
    // The candle of the last date may come later.
    let holes = checked.missing.iter().filter(|date| **date != to).count();
    let untidy = arrived.strict && (holes > 0 || !checked.faults.is_empty());
    if checked.candles.is_empty() || holes > HOLES_MAX || untidy {
        return Ok(Verdict::Patchy {
            missing: holes,
            faults: checked.faults.len(),
        });
    }
    let before = arrived.held.map(|held| held.suspicions).unwrap_or_default();
    let suspicions = suspicions(&checked, &before, arrived.base_e4.map(|base| (to, base)));
    let last = checked.candles.last().map(|candle| candle.date);
    let simulated = read.simulated;
    let held = CandleHistory {
        symbol: symbol.clone(),
        source,
        simulated,
        refetch: false,
        last,
        suspicions: suspicions.clone(),
    };
    let candles = checked.candles;
    store.replace_candles(
        epoch,
        NewHistory {
            symbol,
            source,
            simulated,
            candles,
            suspicions,
        },
    )?;
    Ok(Verdict::Stored { held, gap: false })
}

/// The days before which the candles are not adjusted: those that look like it, and those whose
/// base price says so. `base`: the base price of a date, in ten-thousandths. A day on which nothing
/// was adjusted after all looks the same, so it silences its share for no longer than a pattern
/// looks back.
fn suspicions(
    checked: &Checked,
    before: &[SplitSuspicion],
    base: Option<(Date, i64)>,
) -> Vec<SplitSuspicion> {
    let candles = &checked.candles;
    let known = before
        .iter()
        .filter_map(|known| Some((known.date, known.base_e4?)));
    let bases: BTreeMap<Date, i64> = known.chain(base).collect();
    let is_unadjusted_at = |(date, base_e4): (&Date, &i64)| {
        let at = candles
            .binary_search_by_key(date, |candle| candle.date)
            .ok()?;
        let before = candles.get(at.checked_sub(1)?)?;
        is_unadjusted(before, &candles[at], *base_e4).then_some(*date)
    };
    let dates = checked.suspected.iter().map(|suspected| suspected.date);
    let dates: BTreeSet<Date> = dates
        .chain(bases.iter().filter_map(is_unadjusted_at))
        .collect();
    dates
        .into_iter()
        .map(|date| {
            let after = candles.len() - candles.partition_point(|candle| candle.date < date);
            let confirmed = after > SPANNED_SESSIONS;
            SplitSuspicion {
                date,
                confirmed,
                base_e4: bases.get(&date).copied(),
            }
        })
        .collect()
}

/// The previous close that the shown quote of the arrived candles' last date has: on the ex-date of
/// a corporate action the exchange's base price.
pub(crate) fn base_e4(context: &WarmerContext, arrived: &Arrived, now_mono_ms: u64) -> Option<i64> {
    let seen = context.l1.peek(arrived.symbol.as_str(), now_mono_ms);
    let Peek::Known { quote, .. } = seen else {
        return None;
    };
    let is_of_date = clock::zoned(quote.as_of).date() == arrived.to;
    price_e4(quote.previous_close.filter(|_| is_of_date)?)
}

/// Why candles without a conflict of their own are not appended.
const OTHER_CANDLES: &str = "another kind of source, or an adjusted base price";

/// Whether the last of the candles to append opens at a base price that those before are not
/// adjusted for.
fn opens_at_base(stored: &[Candle], append: &[Candle], arrived: &Arrived) -> bool {
    let Some(day) = append.last().filter(|day| day.date == arrived.to) else {
        return false;
    };
    let before = append
        .len()
        .checked_sub(2)
        .map_or(stored.last(), |at| append.get(at));
    before
        .zip(arrived.base_e4)
        .is_some_and(|(before, base)| is_unadjusted(before, day, base))
}

fn append(
    store: &Store,
    epoch: Epoch,
    calendar: &MarketCalendar,
    arrived: &Arrived,
    mut held: CandleHistory,
) -> Result<Verdict, StoreError> {
    let trades_on = |date: Date| calendar.is_trading_date(date);
    let window = Window {
        from: arrived.from,
        to: arrived.to,
        untraded: arrived.is_index,
    };
    let checked = check(&arrived.read.candles, window, &trades_on);
    let stored = store.candles(&arrived.symbol)?;
    let merged = match merge(&stored, &checked.candles, &trades_on) {
        Ok(merged)
            if arrived.read.simulated == held.simulated
                && !opens_at_base(&stored, &merged.append, arrived) =>
        {
            merged
        }
        conflict => {
            let suspected = match &conflict {
                Err(Conflict::Suspected(suspected)) => Some(suspected.date),
                Ok(merged) if opens_at_base(&stored, &merged.append, arrived) => Some(arrived.to),
                _ => None,
            };
            let why = conflict
                .err()
                .map_or(OTHER_CANDLES.into(), |c| c.to_string());
            tracing::warn!(
                symbol = %arrived.symbol,
                why,
                "daily candles do not fit the stored ones; all of them are fetched again"
            );
            let new = suspected.map(|date| SplitSuspicion {
                date,
                confirmed: false,
                base_e4: arrived.base_e4.filter(|_| date == arrived.to),
            });
            store.want_refetch(epoch, &arrived.symbol, new)?;
            held.suspicions.extend(new);
            held.refetch = true;
            return Ok(Verdict::Stored { held, gap: false });
        }
    };
    let gap = merged.waits_for.is_some();
    if let Some(last) = merged.append.last() {
        held.last = Some(last.date);
        let keep_from = window_from(calendar, last.date);
        store.append_candles(epoch, &arrived.symbol, merged.append, keep_from)?;
    }
    Ok(Verdict::Stored { held, gap })
}
