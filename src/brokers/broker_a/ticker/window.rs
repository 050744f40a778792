//! Gathers the last tick of each instrument and makes a batch of them. The scheduler gets four
//! batches a second at most, however often prices change.

use std::collections::HashMap;

use jiff::civil::Date;

use crate::base::clock::zoned;
use crate::base::{Clock, Source, Symbol};
use crate::brokers::broker_a::ticker::subscriptions::Subscriptions;
use crate::brokers::broker_a::ticker::ticks::{Day, Tick};
use crate::brokers::feed::Batch;
use crate::brokers::quote_checks::CallTimes;
use crate::brokers::quote_checks::{Claim, Kind};

/// Time for which ticks are gathered, the interval of snapshots. Index times are whole seconds, and
/// no share may look newer than the index next to it, so both are published together.
pub(super) const WINDOW_MS: u64 = 250;

/// Wait before a refused batch is pushed again, about the time that the scheduler works on one. It
/// refuses a batch while it has not taken the one before. Later ticks join the refused batch.
const TRY_AGAIN_MS: u64 = 50;

/// Low byte of an index's token.
const INDEX_SEGMENT: u32 = 9;

/// Most symbols of a batch: all that can be subscribed.
const SYMBOLS_MAX: usize = 3_000;

/// Ticks since the last batch was taken.
#[derive(Default)]
pub(super) struct Window {
    /// The newest tick of each instrument, with its time of arrival.
    ticks: HashMap<u32, (Tick, u64)>,
    began: Option<CallTimes>,
    /// Time of the next try of a refused batch.
    again_mono_ms: Option<u64>,
    /// The session of each instrument as it was received last while the market traded, and its
    /// date.
    days: HashMap<u32, (Day, Option<Date>)>,
}

impl Window {
    /// Adds a tick; the newest of each instrument counts. A tick without a time is dropped, because
    /// the age of its price is unknown and a full one follows.
    pub(super) fn add(&mut self, tick: Tick, clock: &Clock) {
        if tick.at.is_some() {
            self.began.get_or_insert_with(|| CallTimes::begin(clock));
            self.ticks.insert(tick.token, (tick, clock.monotonic_ms()));
        }
    }

    /// Milliseconds until the gathered ticks are due; `None` without any.
    pub(super) fn due_in_ms(&self, now_mono_ms: u64) -> Option<u64> {
        let began = self.began?;
        let due_mono_ms = self
            .again_mono_ms
            .unwrap_or(began.asked_mono_ms + WINDOW_MS);
        Some(due_mono_ms.saturating_sub(now_mono_ms))
    }

    /// Keeps the gathered ticks for another try after the scheduler refused them. True at the first
    /// refusal.
    pub(super) fn refused(&mut self, now_mono_ms: u64) -> bool {
        self.again_mono_ms
            .replace(now_mono_ms + TRY_AGAIN_MS)
            .is_none()
    }

    /// Drops the gathered ticks.
    pub(super) fn clear(&mut self) {
        self.ticks.clear();
        self.began = None;
        self.again_mono_ms = None;
    }

    /// The gathered ticks as a batch. `trades`: the market trades by the calendar, so the broker's
    /// previous close is that of the session before, and its range is the session's. At other times
    /// neither is certain, and those received before stay. `believed` gets each plausible tick's
    /// symbol and time of arrival.
    pub(super) fn batch(
        &mut self,
        subscriptions: &Subscriptions,
        trades: bool,
        simulated: bool,
        clock: &Clock,
        mut believed: impl FnMut(&Symbol, u64),
    ) -> Option<Batch> {
        let times = self.began?.end(clock);
        let mut batch = Batch {
            times,
            symbols_max: SYMBOLS_MAX,
            simulated,
            pushed: true,
            ..Batch::default()
        };
        for (tick, at_mono_ms) in self.ticks.values() {
            let Some(symbol) = subscriptions.symbol(tick.token) else {
                continue;
            };
            let date = tick.at.map(|at| zoned(at).date());
            if let (true, Some(day)) = (trades, tick.day) {
                self.days.insert(tick.token, (day, date));
            }
            let Some((day, of)) = self.days.get(&tick.token).copied() else {
                continue;
            };
            let own = Some(day).filter(|_| of == date);
            let kind = Kind::of(symbol, tick.token & 0xff == INDEX_SEGMENT);
            let claim = Claim {
                last_price: tick.last_price,
                previous_close: Some(day.previous_close),
                open: own.map(|day| day.open),
                low: own.map(|day| day.low),
                high: own.map(|day| day.high),
                limits: None,
                as_of: tick.at,
            };
            let count = batch.quotes.len();
            batch.add(kind, symbol, Source::BrokerA, &claim);
            if batch.quotes.len() > count {
                believed(symbol, *at_mono_ms);
            }
        }
        let is_empty =
            batch.quotes.is_empty() && batch.unproven.is_empty() && batch.implausible.is_empty();
        (!is_empty).then_some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Symbol;
    use crate::brokers::broker_a::ticker::subscriptions::{KnownTokens, Wanted};
    use crate::brokers::broker_a::ticker::ticks::Day;
    use rust_decimal::Decimal;

    const NIFTY: u32 = 256_265;
    const INFY: u32 = 408_065;

    fn subscribed() -> Subscriptions {
        let of = [("NSE:NIFTY 50", NIFTY), ("NSE:INFY", INFY)];
        let of = of.map(|(name, token)| (Symbol::parse(name).unwrap(), token));
        let known = KnownTokens::default();
        let mut subscriptions = Subscriptions::default();
        known.learn(of.clone());
        let wanted = Wanted {
            shares: of.map(|(symbol, _)| symbol).into(),
            ..Wanted::default()
        };
        subscriptions.follow(&wanted, &known, 10, 0);
        subscriptions
    }

    fn tick(token: u32, paise: i64, close: i64, clock: &Clock) -> Tick {
        let zero = Decimal::ZERO;
        let previous_close = Decimal::new(close, 2);
        let day = Some(Day {
            open: zero,
            high: zero,
            low: zero,
            previous_close,
        });
        Tick {
            token,
            last_price: Decimal::new(paise, 2),
            day,
            at: Some(clock.now()),
        }
    }

    #[test]
    fn the_newest_tick_of_each_instrument_is_in_the_batch_once_it_is_due() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let subscriptions = subscribed();
        let mut window = Window::default();
        assert_eq!(window.due_in_ms(0), None);
        window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
        clock.advance_ms(100);
        window.add(tick(INFY, 140_005, 139_000, &clock), &clock);
        window.add(tick(NIFTY, 2_410_005, 2_400_000, &clock), &clock);
        window.add(tick(999, 1, 1, &clock), &clock);
        window.add(
            Tick {
                at: None,
                ..tick(NIFTY, 1, 1, &clock)
            },
            &clock,
        );
        assert_eq!(window.due_in_ms(clock.monotonic_ms()), Some(150));
        let batch = window
            .batch(&subscriptions, true, true, &clock, |_, _| {})
            .unwrap();
        assert!(batch.pushed && batch.simulated && batch.implausible.is_empty());
        assert_eq!(batch.times.asked_mono_ms, 0, "the moment of the first");
        let mut prices: Vec<String> = batch
            .quotes
            .iter()
            .map(|quote| quote.last_price.to_string())
            .collect();
        prices.sort_unstable();
        assert_eq!(prices, ["1400.05", "24100.05"]);
        assert!(
            batch
                .quotes
                .iter()
                .all(|quote| quote.timed && quote.simulated)
        );
        window.clear();
        assert_eq!(window.due_in_ms(clock.monotonic_ms()), None);
    }

    #[test]
    fn a_refused_batch_is_tried_again_after_a_while_and_counted_once() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let subscriptions = subscribed();
        let mut window = Window::default();
        window.add(tick(NIFTY, 2_410_000, 2_400_000, &clock), &clock);
        clock.advance_ms(1);
        window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
        let mut made = 0;
        let mut counted = 0;
        // The scheduler refuses it for ten seconds, while one instrument ticks on.
        for _ in 0..10_000 {
            let now_mono_ms = clock.monotonic_ms();
            if window.due_in_ms(now_mono_ms) == Some(0) {
                let mut heard = Vec::new();
                let batch = window
                    .batch(&subscriptions, true, true, &clock, |symbol, at_mono_ms| {
                        heard.push((symbol.ticker().to_owned(), at_mono_ms));
                    })
                    .unwrap();
                assert_eq!((batch.quotes.len(), batch.times.asked_mono_ms), (2, 0));
                heard.sort_unstable();
                assert_eq!(heard[1], ("NIFTY 50".to_owned(), 0), "it does not tick");
                assert!(heard[0].1 + 10 > now_mono_ms, "{heard:?} at {now_mono_ms}");
                made += 1;
                counted += usize::from(window.refused(now_mono_ms));
                assert_eq!(window.due_in_ms(now_mono_ms), Some(TRY_AGAIN_MS));
            }
            clock.advance_ms(1);
            if clock.monotonic_ms().is_multiple_of(10) {
                window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
            }
        }
        assert_eq!((made, counted), (1 + (10_000 - WINDOW_MS) / TRY_AGAIN_MS, 1));
        window.clear();
        assert_eq!(window.due_in_ms(clock.monotonic_ms()), None);
        // The next batch is due as usual, and counts separately.
        window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
        assert_eq!(window.due_in_ms(clock.monotonic_ms()), Some(WINDOW_MS));
        assert!(window.refused(clock.monotonic_ms() + WINDOW_MS));
    }

    /// The longer run, with the service around it, is a measurement of the load test.
    #[test]
    #[expect(clippy::print_stdout, reason = "what was measured")]
    fn a_minute_of_three_thousand_symbols_takes_no_more_room_than_its_first_second() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let all = (0..SYMBOLS_MAX as u32)
            .map(|number| (Symbol::parse(&format!("NSE:S{number}")).unwrap(), (number << 8) | 1));
        let all: Vec<_> = all.collect();
        let known = KnownTokens::default();
        let mut subscriptions = Subscriptions::default();
        known.learn(all.clone());
        let shares = all.iter().map(|(symbol, _)| symbol.clone()).collect();
        let wanted = Wanted {
            shares,
            ..Wanted::default()
        };
        subscriptions.follow(&wanted, &known, SYMBOLS_MAX, 0);
        let mut window = Window::default();
        let mut room = Vec::new();
        let mut batches = 0;
        let timer = Clock::system();
        for half_second in 0..120 {
            for (_, token) in &all {
                window.add(tick(*token, 140_000 + half_second, 139_000, &clock), &clock);
            }
            clock.advance_ms(WINDOW_MS as i64);
            assert_eq!(window.due_in_ms(clock.monotonic_ms()), Some(0));
            let batch = window
                .batch(&subscriptions, true, true, &clock, |_, _| {})
                .unwrap();
            assert_eq!(batch.quotes.len(), SYMBOLS_MAX);
            batches += 1;
            window.clear();
            clock.advance_ms(500 - WINDOW_MS as i64);
            room.push((window.ticks.capacity(), window.days.capacity()));
        }
        assert_eq!(room[1], *room.last().unwrap());
        assert!(room[1].0 < 3 * SYMBOLS_MAX && window.days.len() == SYMBOLS_MAX);
        println!("{batches} batches within {} ms", timer.monotonic_ms());
        assert!(timer.monotonic_ms() < 60_000, "{} ms of a minute", timer.monotonic_ms());
    }

    #[test]
    fn what_cannot_be_true_is_implausible_with_its_time() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let subscriptions = subscribed();
        let mut window = Window::default();
        let ahead = clock.now() + jiff::SignedDuration::from_mins(6);
        window.add(
            Tick {
                at: Some(ahead),
                ..tick(NIFTY, 2_410_000, 2_400_000, &clock)
            },
            &clock,
        );
        window.add(tick(INFY, 0, 139_000, &clock), &clock);
        let batch = window
            .batch(&subscriptions, true, false, &clock, |_, _| {})
            .unwrap();
        assert_eq!((batch.quotes.len(), batch.implausible.len()), (0, 2));
        assert_eq!(batch.ahead, Some(ahead));
        for far in [u32::MAX, 1 << 31] {
            window.clear();
            window.add(tick(INFY, i64::from(far), 139_000, &clock), &clock);
            let believed = |_: &Symbol, _| panic!("{far} counts as a tick");
            let batch = window
                .batch(&subscriptions, true, false, &clock, believed)
                .unwrap();
            assert_eq!((batch.quotes.len(), batch.unproven.len()), (0, 1), "{far}");
        }
    }

    #[test]
    fn after_the_session_the_close_of_the_session_before_stays() {
        let clock = Clock::manual("2026-11-20T16:05:00+05:30".parse().unwrap());
        let subscriptions = subscribed();
        let mut window = Window::default();
        window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
        assert!(
            window
                .batch(&subscriptions, false, false, &clock, |_, _| {})
                .is_none(),
            "not known"
        );
        window
            .batch(&subscriptions, true, false, &clock, |_, _| {})
            .unwrap();
        window.clear();
        window.add(tick(INFY, 140_000, 140_000, &clock), &clock);
        let batch = window
            .batch(&subscriptions, false, false, &clock, |_, _| {})
            .unwrap();
        assert_eq!(batch.quotes[0].previous_close, Some(Decimal::new(139_000, 2)));
    }

    #[test]
    fn the_range_is_that_of_the_session_and_none_of_the_session_before() {
        let clock = Clock::manual("2026-11-20T15:29:00+05:30".parse().unwrap());
        let subscriptions = subscribed();
        let mut window = Window::default();
        let paise = |paise| Decimal::new(paise, 2);
        let mut range = |trades, (low, last, high)| {
            let plain = tick(INFY, last, 139_000, &clock);
            let day = plain.day.map(|day| Day {
                low: paise(low),
                high: paise(high),
                ..day
            });
            window.clear();
            window.add(Tick { day, ..plain }, &clock);
            let batch = window
                .batch(&subscriptions, trades, false, &clock, |_, _| {})
                .unwrap();
            batch.quotes[0].day.map(|day| (day.low(), day.high()))
        };
        let session = Some((paise(138_000), paise(141_000)));
        assert_eq!(range(true, (138_000, 140_000, 141_000)), session);
        assert_eq!(range(true, (140_001, 140_000, 141_000)), None, "above the price");
        assert_eq!(range(true, (0, 140_000, 0)), None, "before the first trade");
        assert_eq!(range(true, (138_000, 140_000, 141_000)), session);
        clock.advance_ms(3_600_000);
        // What the broker sends after the session is not certain.
        assert_eq!(range(false, (1, 140_000, 150_000)), session);
        assert_eq!(range(false, (1, 141_001, 150_000)), None);
        clock.advance_ms(17 * 3_600_000);
        assert_eq!(range(false, (138_000, 140_000, 141_000)), None, "of the date before");
    }
}
