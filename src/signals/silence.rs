//! The silent dates of a symbol, on which its candles cannot be trusted, judged from a folder of
//! candles. Pure.
//!
//! Follows the rules by which the service judges a history that it fetched once: it keeps
//! [`SESSIONS_KEPT`] sessions, and a symbol gives no signal while more than [`HOLES_MAX`] of them
//! are missing or a split is suspected among them. Each date is judged from what lies before it, so
//! a later candle never silences an earlier date. A session is a date on which any symbol of the
//! folder traded.

use jiff::civil::Date;

use super::backtest::History;
use super::history::{HOLES_MAX, SESSIONS_KEPT, Suspected, suspected};

/// The faults of a symbol's candles and the dates that they silence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// Sessions between its first and its last candle without a candle.
    pub missing: usize,
    pub suspected: Vec<Suspected>,
    /// For each candle, whether its date is silent.
    pub silent: Vec<bool>,
}

impl Silence {
    /// Number of silent dates.
    pub fn dates(&self) -> usize {
        self.silent.iter().filter(|silent| **silent).count()
    }

    /// Whether there is no fault.
    pub fn is_clean(&self) -> bool {
        self.missing == 0 && self.suspected.is_empty()
    }
}

/// Judges `history` against the sessions of its universe, which are ascending and include its own.
pub fn judge(history: &History, sessions: &[Date]) -> Silence {
    let place = |date: Date| sessions.partition_point(|session| *session < date);
    let places: Vec<usize> = history.candles.iter().map(|candle| place(candle.date)).collect();
    let suspected = suspected(&history.candles);
    let splits: Vec<usize> = suspected.iter().map(|suspected| place(suspected.date)).collect();
    let mut first = 0;
    let silent = places.iter().enumerate().map(|(at, today)| {
        // Index of the first candle that is still kept.
        while today - places[first] >= SESSIONS_KEPT {
            first += 1;
        }
        let holes = (today - places[first]) - (at - first);
        let split = |split: &usize| *split <= *today && today - split < SESSIONS_KEPT;
        holes > HOLES_MAX || splits.iter().any(split)
    });
    let silent = silent.collect();
    let spanned = places.last().zip(places.first()).map_or(0, |(last, first)| last - first + 1);
    Silence { missing: spanned - places.len(), suspected, silent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Candle;
    use crate::base::candle::PRICE_E4;

    const COUNT: usize = 700;

    fn sessions() -> Vec<Date> {
        Date::constant(2020, 1, 1).series(jiff::Span::new().days(1)).take(COUNT).collect()
    }

    /// A share with a constant price, without the candles at `missing`, at half the price from
    /// `split`
    /// on.
    fn judged(missing: &[usize], split: Option<usize>) -> Silence {
        let (sessions, all) = (sessions(), 0..COUNT);
        let candle = |at: usize| {
            let parts = if split.is_some_and(|split| at >= split) { 2 } else { 1 };
            let price = 100 * PRICE_E4 / parts;
            Candle {
                date: sessions[at],
                open_e4: price,
                high_e4: price,
                low_e4: price,
                close_e4: price,
                volume: 1_000 * parts,
            }
        };
        let candles = all.filter(|at| !missing.contains(at)).map(candle).collect();
        judge(&History { symbol: "A".into(), candles }, &sessions)
    }

    fn silent(silence: &Silence) -> Vec<usize> {
        (0..silence.silent.len()).filter(|at| silence.silent[*at]).collect()
    }

    #[test]
    fn a_seventh_missing_session_silences_while_all_are_kept() {
        assert!(judged(&[], None).is_clean());
        let six = judged(&[10, 11, 12, 13, 14, 15], None);
        assert_eq!((six.missing, six.dates()), (6, 0));
        // Seven sessions are missing, 10 to 16. Dates are silent from 17 on, until the first of
        // these is no longer kept.
        let seven = judged(&[10, 11, 12, 13, 14, 15, 16], None);
        assert_eq!(seven.missing, 7);
        let dates: Vec<usize> = silent(&seven).iter().map(|at| at + 7).collect();
        let kept_until = 10 + SESSIONS_KEPT - 1;
        assert_eq!(dates, (17..=kept_until - 1).collect::<Vec<_>>());
        // A later gap changes no earlier date.
        let later = judged(&[10, 11, 12, 13, 14, 15, 600], None);
        assert_eq!(later.dates(), 0, "the older ones are kept no more");
    }

    #[test]
    fn a_suspected_split_silences_its_date_and_those_after() {
        let split = judged(&[], Some(50));
        assert_eq!(split.suspected.len(), 1);
        assert_eq!(silent(&split), (50..50 + SESSIONS_KEPT).collect::<Vec<_>>());
        assert!(!split.is_clean());
    }
}
