//! Candles that can be had without a call, as those of a simulated exchange in the same process: a
//! new database gets them at once, with the lists of the last dates, which are then judged. The
//! scheduler's thread decides; the jobs run on the lane `signals`. Must never be used where there
//! is another source.

use std::sync::Arc;

use jiff::civil::Date;

use crate::base::Source;
use crate::market::MarketCalendar;
use crate::store::{Epoch, Store};
use crate::warmers::context::WarmerContext;
use crate::warmers::signals::arrivals::{Taken, Verdict, take_in};
use crate::warmers::signals::done::{Done, Outcome};
use crate::warmers::signals::fetch::{Arrived, window_from};
use crate::warmers::signals::histories::Histories;
use crate::warmers::signals::symbol::TrackedSymbol;

/// Lists that a new database gets, the due date's the last: their outcomes fill the record.
const DATES: usize = 60;

/// A job that reads and stores one symbol's candles.
pub(super) type Job = Box<dyn FnOnce(&Store) -> Outcome + Send>;

/// How far the candles at hand were taken.
#[derive(Debug, Default)]
pub(super) struct AtHand {
    /// How many of the tracked symbols were looked at.
    taken: usize,
}

impl AtHand {
    /// Whether some of which signals are made are still to be taken, so that no feed is asked.
    pub(super) fn is_left(&self, context: &WarmerContext, histories: &Histories) -> bool {
        context.at_hand.is_some() && self.taken < histories.len()
    }

    /// The job of the next symbol without candles. Each is taken once: what it lacks then, feeds
    /// are asked for. What is only drawn comes after the list, as it does of feeds.
    pub(super) fn next(
        &mut self,
        context: &WarmerContext,
        histories: &mut Histories,
        due: Option<Date>,
        listed: Option<Date>,
        epoch: Epoch,
    ) -> Option<Job> {
        let candles = context.at_hand.clone()?;
        let to = due?;
        let end = if listed.is_some() {
            histories.tracked.len()
        } else {
            histories.len()
        };
        let tracked = &mut histories.tracked;
        let left = tracked.get(self.taken..end).unwrap_or_default();
        let lacks = |one: &TrackedSymbol| one.history.is_none() && !one.in_flight;
        let Some(place) = left.iter().position(lacks) else {
            self.taken = self.taken.max(end);
            return None;
        };
        let at = self.taken + place;
        self.taken = at + 1;
        tracked[at].in_flight = true;
        let symbol = tracked[at].symbol.clone();
        let is_index = tracked[at].is_index;
        let from = window_from(&context.calendar, to);
        let calendar = Arc::clone(&context.calendar);
        let known = Arc::clone(&context.known_closes);
        Some(Box::new(move |store| {
            let source = Source::BrokerA;
            let Some(read) = candles(&symbol, from, to) else {
                let verdict = Verdict::Patchy {
                    missing: 0,
                    faults: 0,
                };
                return Ok(Done::Taken(Taken {
                    at,
                    source,
                    whole: true,
                    verdict,
                }));
            };
            let arrived = Arrived {
                at,
                symbol,
                source,
                read,
                whole: true,
                is_index,
                strict: false,
                from,
                to,
                held: None,
                base_e4: None,
            };
            take_in(store, epoch, &calendar, &known, arrived).map(Done::Taken)
        }))
    }
}

/// The dates whose lists are published once the candles of `date` are there: where they are at hand
/// the last ones too, of a database without any list.
pub(super) fn dates_to_publish(
    context: &WarmerContext,
    date: Date,
    listed: Option<Date>,
) -> Vec<Date> {
    let is_new = context.at_hand.is_some() && listed.is_none();
    last_dates(&context.calendar, date, if is_new { DATES } else { 1 })
}

/// As many trading dates as wanted up to `date`, ascending.
fn last_dates(calendar: &MarketCalendar, date: Date, most: usize) -> Vec<Date> {
    let before = |date: &Date| calendar.previous_trading_date(*date);
    let mut dates: Vec<Date> = std::iter::successors(Some(date), before)
        .take(most)
        .collect();
    dates.reverse();
    dates
}
