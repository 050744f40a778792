//! The public record: the outcomes of signals, and how often they were right. Run
//! by jobs of the lane `signals`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::civil::Date;

use crate::base::{Candle, Symbol};
use crate::market::MarketCalendar;
use crate::signals::backtest::Judged;
use crate::signals::confidence::Moves;
use crate::signals::patterns::Key;
use crate::signals::{HORIZON_SESSIONS, ListedSignal, Reliability, Standing};
use crate::store::{Epoch, LedgerEntry, SignalOutcome, Store, StoreError};

/// Ledger entries read in one query.
const LEDGER_PAGE: usize = 2_000;

/// After this many sessions a signal without an outcome will hardly get one. Its share has traded
/// on fewer than half of them, so it is suspended or gone.
const NEVER_AFTER_SESSIONS: usize = 2 * HORIZON_SESSIONS;

/// Candles of the symbols that may have new outcomes.
pub(crate) type Closes<'a> = HashMap<&'a str, &'a [Candle]>;

/// The inputs that decide whether an outcome is still to come.
#[derive(Clone)]
pub(crate) struct Expected {
    pub universe: Arc<HashSet<Symbol>>,
    pub calendar: Arc<MarketCalendar>,
    /// Epoch of the leader that writes outcomes.
    pub epoch: Epoch,
}

impl Expected {
    /// Whether the signal for `symbol` on `on` may still be judged, as of the last published date.
    fn is_due(&self, symbol: &Symbol, on: Date, has_candle: bool, as_of: Option<Date>) -> bool {
        let Some(as_of) = as_of.filter(|as_of| on <= *as_of) else {
            return true;
        };
        let mut date = Some(on);
        for _ in 0..NEVER_AFTER_SESSIONS {
            date = date.and_then(|date| self.calendar.next_trading_date(date));
        }
        let waits = date.is_none_or(|date| as_of < date);
        self.universe.contains(symbol) && has_candle && waits
    }
}

/// One pass over the ledger.
struct Walk<'a> {
    candles: &'a Closes<'a>,
    expected: &'a Expected,
    as_of: Option<Date>,
    /// The moves of all symbols between two dates.
    moves: HashMap<(Date, Date), Moves>,
}

/// Reads the ledger page by page, stores the outcomes that `candles` now show, and counts.
pub(super) fn walk(
    store: &Store,
    candles: &Closes<'_>,
    expected: &Expected,
) -> Result<Reliability, StoreError> {
    let mut record = Reliability::default();
    record.dates_published = store.published_dates()?;
    record.dates_missed = missed(&record.dates_published, &expected.calendar);
    let as_of = record.dates_published.last().copied();
    let mut walk = Walk {
        candles,
        expected,
        as_of,
        moves: HashMap::new(),
    };
    walk.count(store, &mut record)?;
    Ok(record)
}

/// Trading dates between the `published` dates (ascending) that were not published.
fn missed(published: &[Date], calendar: &MarketCalendar) -> Vec<Date> {
    let mut missed = Vec::new();
    for pair in published.windows(2) {
        let next = |date: &Date| calendar.next_trading_date(*date);
        let between = std::iter::successors(next(&pair[0]), next);
        missed.extend(between.take_while(|date| *date < pair[1]));
    }
    missed
}

impl Walk<'_> {
    /// The outcomes of a page are stored before the next page is read.
    fn count(&mut self, store: &Store, record: &mut Reliability) -> Result<(), StoreError> {
        let mut after = 0;
        loop {
            let page = store.ledger(after, LEDGER_PAGE)?;
            let is_whole = page.len() == LEDGER_PAGE;
            let mut outcomes = Vec::new();
            for entry in page {
                let (standing, new) = self.judge(&entry);
                record
                    .sums
                    .count(entry.on, entry.signal.simulated, &standing);
                after = entry.id;
                outcomes.extend(new.map(|outcome| (entry.id, outcome)));
            }
            if !outcomes.is_empty() {
                store.keep_outcomes(self.expected.epoch, outcomes)?;
            }
            if !is_whole {
                return Ok(());
            }
        }
    }

    /// The standing of a signal, and its outcome if that is new.
    fn judge(&mut self, entry: &LedgerEntry) -> (Standing, Option<SignalOutcome>) {
        let new = if entry.outcome.is_none() {
            self.outcome(entry)
        } else {
            None
        };
        (self.standing(entry, entry.outcome.or(new)), new)
    }

    /// The outcome of a signal, once `HORIZON_SESSIONS` more sessions of its symbol are there. Both
    /// closes come from the current history: after a split the ledger's closes are in other shares.
    fn outcome(&mut self, LedgerEntry { on, signal, .. }: &LedgerEntry) -> Option<SignalOutcome> {
        let candles = self.candles.get(signal.symbol.as_str())?;
        let at = place(candles, *on)?;
        let from = candles[at];
        let to = candles.get(at + HORIZON_SESSIONS)?;
        let direction = signal.direction;
        let moves = self.moves(from.date, to.date);
        Some(SignalOutcome {
            judged_on: to.date,
            from_close_e4: from.close_e4,
            to_close_e4: to.close_e4,
            hit: direction.is_hit(from.close_e4, to.close_e4),
            universe: Some((moves.all as u32, moves.moved(direction) as u32)),
        })
    }

    /// The moves of the trusted symbols that traded on both dates.
    fn moves(&mut self, from: Date, to: Date) -> Moves {
        *self.moves.entry((from, to)).or_insert_with(|| {
            let mut moves = Moves::default();
            for candles in self.candles.values() {
                if let (Some(from), Some(to)) = (place(candles, from), place(candles, to)) {
                    moves.count(candles[from].close_e4, candles[to].close_e4);
                }
            }
            moves
        })
    }

    /// The standing of a signal. A pattern that this program no longer knows is never judged.
    fn standing(&self, entry: &LedgerEntry, outcome: Option<SignalOutcome>) -> Standing {
        let LedgerEntry { on, has_candle, .. } = *entry;
        let ListedSignal {
            symbol,
            pattern,
            confidence,
            base_rate,
            ..
        } = &entry.signal;
        let confidence = *confidence;
        let base_rate = *base_rate;
        match (outcome, Key::from_name(pattern)) {
            (Some(SignalOutcome { hit, universe, .. }), Some(key)) => {
                let share = |(symbols, moved): (u32, u32)| f64::from(moved) / f64::from(symbols);
                let same_day = universe.filter(|(symbols, _)| *symbols > 0).map(share);
                Standing::Judged(Judged {
                    date: on,
                    key,
                    confidence,
                    base_rate,
                    hit,
                    same_day,
                })
            }
            (None, Some(_)) if self.expected.is_due(symbol, on, has_candle, self.as_of) => {
                Standing::Due
            }
            _ => Standing::Never,
        }
    }
}

fn place(candles: &[Candle], date: Date) -> Option<usize> {
    candles
        .binary_search_by_key(&date, |candle| candle.date)
        .ok()
}

#[cfg(test)]
#[path = "outcomes_tests.rs"]
mod tests;
