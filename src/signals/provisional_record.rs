//! How signals of unfinished candles did: what became of them at the official close, and five
//! sessions later. Pure sums, never mixed with those of complete signals.

use jiff::civil::Date;
use serde::Serialize;

use super::list::four_places;
use super::track_record::{Brier, OfDirection, Outcomes, Standing, directions};
use super::wording::PROVISIONAL_MEANING;

/// What the finished candle said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The date's complete list is still to come.
    Pending,
    Confirmed,
    Vanished,
    /// It never came: candles could not be had until the next date was due.
    Unlisted,
}

/// Counts of one kind of them, real or simulated.
#[derive(Debug, Clone, Default)]
struct Kind {
    published: u64,
    confirmed: u64,
    vanished: u64,
    unlisted: u64,
    since: Option<Date>,
    outcomes: Outcomes,
}

/// Sums over their ledger, to be fed line by line.
#[derive(Debug, Clone, Default)]
pub struct ProvisionalRecord {
    real: Kind,
    simulated: Kind,
}

/// Part of the record's document.
#[derive(Serialize)]
pub(super) struct Part {
    /// First date with one.
    since: Option<String>,
    published: u64,
    confirmed: u64,
    vanished: u64,
    pending: u64,
    unlisted: u64,
    judged: u64,
    due: u64,
    never: u64,
    hits: u64,
    dates: u64,
    hit_rate: Option<f64>,
    mean_confidence: Option<f64>,
    brier: Brier,
    directions: [OfDirection; 2],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
    meaning: &'static str,
}

impl ProvisionalRecord {
    /// Counts one that was shown.
    pub fn count(&mut self, on: Date, simulated: bool, fate: Fate, standing: &Standing) {
        let kind = if simulated { &mut self.simulated } else { &mut self.real };
        kind.published += 1;
        kind.since = Some(kind.since.map_or(on, |since| since.min(on)));
        match fate {
            Fate::Pending => {}
            Fate::Confirmed => kind.confirmed += 1,
            Fate::Vanished => kind.vanished += 1,
            Fate::Unlisted => kind.unlisted += 1,
        }
        kind.outcomes.count(standing);
    }

    /// `None` where none was ever shown. Simulated ones only where there are no others.
    pub(super) fn part(&self) -> Option<Part> {
        let simulated = self.real.published == 0;
        let kind = if simulated { &self.simulated } else { &self.real };
        let Kind { published, confirmed, vanished, unlisted, since, outcomes } = kind;
        let Outcomes { never, done } = outcomes;
        let all = &done.all;
        (*published > 0).then(|| Part {
            since: since.map(|date| date.to_string()),
            published: *published,
            confirmed: *confirmed,
            vanished: *vanished,
            pending: published - confirmed - vanished - unlisted,
            unlisted: *unlisted,
            judged: all.signals,
            due: outcomes.due(*published),
            never: *never,
            hits: all.hits,
            dates: all.dates,
            hit_rate: all.hit_rate().map(four_places),
            mean_confidence: all.mean_confidence().map(four_places),
            brier: Brier::of(done),
            directions: directions(done),
            simulated,
            meaning: PROVISIONAL_MEANING,
        })
    }
}

#[cfg(test)]
mod tests {
    use sonic_rs::{JsonValueTrait, Value};

    use super::*;
    use crate::signals::Reliability;
    use crate::signals::backtest::Judged;
    use crate::signals::patterns::Key;

    const DAY: Date = Date::constant(2026, 11, 20);

    fn judged(confidence: f64, hit: bool) -> Judged {
        let key = Key::from_name("bullish_engulfing").unwrap();
        Judged { date: DAY, key, confidence, base_rate: 0.5, hit, same_day: None }
    }

    fn json(record: &Reliability) -> Value {
        sonic_rs::from_slice(&record.to_json(Some(DAY))).unwrap()
    }

    #[test]
    fn it_is_told_apart_and_only_where_there_is_something_to_tell() {
        let mut record = Reliability::default();
        record.count(DAY, false, &Standing::Judged(judged(0.54, true)));
        assert!(json(&record).get("provisional").is_none());
        let without = json(&record);
        let all = &mut record.provisional;
        let before = DAY.yesterday().unwrap();
        let one_before = Judged { date: before, ..judged(0.54, true) };
        all.count(before, false, Fate::Vanished, &Standing::Judged(one_before));
        all.count(DAY, false, Fate::Confirmed, &Standing::Judged(judged(0.54, false)));
        all.count(DAY, false, Fate::Vanished, &Standing::Due);
        all.count(DAY, false, Fate::Unlisted, &Standing::Never);
        all.count(DAY, false, Fate::Pending, &Standing::Due);
        all.count(DAY, true, Fate::Confirmed, &Standing::Judged(judged(0.9, true)));
        let with = json(&record);
        let part = &with["provisional"];
        let count = |name: &str| part[name].as_u64().unwrap();
        assert_eq!((count("published"), count("confirmed"), count("vanished")), (5, 1, 2));
        assert_eq!((count("pending"), count("unlisted")), (1, 1));
        assert_eq!((count("judged"), count("hits")), (2, 1));
        assert_eq!(part["hit_rate"].as_f64(), Some(0.5));
        assert!(part["brier"]["confidence"].is_null(), "two signals are no score");
        assert_eq!((count("dates"), count("due"), count("never")), (2, 2, 1));
        assert_eq!(part["since"], "2026-11-19");
        assert!(part.get("simulated").is_none());
        for name in ["published", "judged", "pending", "hit_rate", "brier", "reliability", "since"]
        {
            assert_eq!(with[name], without[name], "{name} of complete signals is their own");
        }
    }

    #[test]
    fn simulated_ones_stand_in_until_there_are_others_and_say_so() {
        let mut record = Reliability::default();
        record.provisional.count(DAY, true, Fate::Pending, &Standing::Due);
        assert_eq!(json(&record)["provisional"]["simulated"], true);
        assert!(json(&record)["provisional"]["hit_rate"].is_null());
        assert_eq!(json(&record)["published"].as_u64(), Some(0));
    }
}
