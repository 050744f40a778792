//! Ticks of a moment, the last of each instrument, and the batch that they become. The scheduler is
//! told four times a second, however often prices change.

use std::collections::HashMap;

use rust_decimal::Decimal;

use super::subscriptions::Subscriptions;
use crate::base::{Clock, Source, Symbol};
use crate::brokers::broker_a::ticks::Tick;
use crate::brokers::feed::{Batch, CallTimes};
use crate::brokers::quote_checks::{Claim, Kind};

/// How long ticks are gathered. As often as a snapshot is made anew: an index has a time of whole
/// seconds, and no share may look newer than the index beside it, so that both go together.
pub(super) const WINDOW_MS: u64 = 250;

/// After the scheduler refused a batch, since it had not taken the one before: about as long as it
/// works on one. What comes meanwhile goes with it.
const TRY_AGAIN_MS: u64 = 50;

/// Low byte of an index's token.
const INDEX_SEGMENT: u32 = 9;

/// The most symbols that a batch may have heard of: all that can be subscribed.
const SYMBOLS_MAX: usize = 3_000;

/// What has come since the last batch was taken.
#[derive(Default)]
pub(super) struct Window {
    ticks: HashMap<u32, Heard>,
    began: Option<CallTimes>,
    /// When a batch that was refused is tried again.
    again_mono_ms: Option<u64>,
    /// Previous closes as they were said while the market traded.
    closes: HashMap<u32, Decimal>,
}

/// A tick and when it came.
struct Heard {
    tick: Tick,
    at_mono_ms: u64,
}

impl Window {
    /// Takes a tick in; the newest of each instrument counts. One without a time says nothing of
    /// how old its price is, and a full one follows.
    pub(super) fn add(&mut self, tick: Tick, clock: &Clock) {
        if tick.at.is_some() {
            self.began.get_or_insert_with(|| CallTimes::begin(clock));
            self.ticks.insert(tick.token, Heard { tick, at_mono_ms: clock.monotonic_ms() });
        }
    }

    /// Milliseconds until the gathered ticks are due; `None` without any.
    pub(super) fn due_in_ms(&self, now_mono_ms: u64) -> Option<u64> {
        let began = self.began?;
        let due_mono_ms = self.again_mono_ms.unwrap_or(began.asked_mono_ms + WINDOW_MS);
        Some(due_mono_ms.saturating_sub(now_mono_ms))
    }

    /// Keeps what was gathered, which nobody takes now, for the next try. True: for the first time.
    pub(super) fn refused(&mut self, now_mono_ms: u64) -> bool {
        self.again_mono_ms.replace(now_mono_ms + TRY_AGAIN_MS).is_none()
    }

    /// Forgets what was gathered.
    pub(super) fn clear(&mut self) {
        self.ticks.clear();
        self.began = None;
        self.again_mono_ms = None;
    }

    /// The gathered ticks as a batch. `trades`: by the calendar, what the broker says of the close
    /// before is that of the session before; outside the session it is not known to be. `believed`
    /// hears of each tick that may be true, and when it came.
    pub(super) fn batch(
        &mut self,
        subscriptions: &Subscriptions,
        trades: bool,
        simulated: bool,
        clock: &Clock,
        mut believed: impl FnMut(&Symbol, u64),
    ) -> Option<Batch> {
        let times = self.began?.end(clock);
        let mut batch =
            Batch { times, symbols_max: SYMBOLS_MAX, simulated, pushed: true, ..Batch::default() };
        for Heard { tick, at_mono_ms } in self.ticks.values() {
            let Some(symbol) = subscriptions.symbol(tick.token) else { continue };
            if let (true, Some(day)) = (trades, tick.day) {
                self.closes.insert(tick.token, day.previous_close);
            }
            let Some(previous_close) = self.closes.get(&tick.token).copied() else { continue };
            let is_index = tick.token & 0xff == INDEX_SEGMENT;
            let kind = if is_index { Kind::of_index(symbol.ticker()) } else { Kind::Share };
            let claim = Claim {
                kind,
                last_price: tick.last_price,
                previous_close: Some(previous_close),
                as_of: tick.at,
            };
            match claim.quote(symbol, &times, Source::BrokerA, simulated) {
                Some(quote) => {
                    believed(symbol, *at_mono_ms);
                    batch.quotes.push(quote);
                }
                None => batch.disbelieve(symbol.clone(), tick.at),
            }
        }
        let is_empty = batch.quotes.is_empty() && batch.implausible.is_empty();
        (!is_empty).then_some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Symbol;
    use crate::brokers::broker_a::ticker::subscriptions::{KnownTokens, Wanted};
    use crate::brokers::broker_a::ticks::Day;

    const NIFTY: u32 = 256_265;
    const INFY: u32 = 408_065;

    fn subscribed() -> Subscriptions {
        let of = [("NSE:NIFTY 50", NIFTY), ("NSE:INFY", INFY)];
        let of = of.map(|(name, token)| (Symbol::parse(name).unwrap(), token));
        let (known, mut subscriptions) = (KnownTokens::default(), Subscriptions::default());
        known.learn(of.clone());
        let wanted = Wanted { shares: of.map(|(symbol, _)| symbol).into(), ..Wanted::default() };
        subscriptions.follow(&wanted, &known, 10, 0);
        subscriptions
    }

    fn tick(token: u32, paise: i64, close: i64, clock: &Clock) -> Tick {
        let zero = Decimal::ZERO;
        let previous_close = Decimal::new(close, 2);
        let day = Some(Day { open: zero, high: zero, low: zero, previous_close });
        Tick { token, last_price: Decimal::new(paise, 2), day, at: Some(clock.now()) }
    }

    #[test]
    fn the_newest_tick_of_each_instrument_is_in_the_batch_once_it_is_due() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let (subscriptions, mut window) = (subscribed(), Window::default());
        assert_eq!(window.due_in_ms(0), None);
        window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
        clock.advance_ms(100);
        window.add(tick(INFY, 140_005, 139_000, &clock), &clock);
        window.add(tick(NIFTY, 2_410_005, 2_400_000, &clock), &clock);
        window.add(tick(999, 1, 1, &clock), &clock);
        window.add(Tick { at: None, ..tick(NIFTY, 1, 1, &clock) }, &clock);
        assert_eq!(window.due_in_ms(clock.monotonic_ms()), Some(150));
        let batch = window.batch(&subscriptions, true, true, &clock, |_, _| {}).unwrap();
        assert!(batch.pushed && batch.simulated && batch.implausible.is_empty());
        assert_eq!(batch.times.asked_mono_ms, 0, "the moment of the first");
        let mut prices: Vec<String> =
            batch.quotes.iter().map(|quote| quote.last_price.to_string()).collect();
        prices.sort_unstable();
        assert_eq!(prices, ["1400.05", "24100.05"]);
        assert!(batch.quotes.iter().all(|quote| quote.timed && quote.simulated));
        window.clear();
        assert_eq!(window.due_in_ms(clock.monotonic_ms()), None);
    }

    #[test]
    fn a_refused_batch_is_tried_again_after_a_while_and_counted_once() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let (subscriptions, mut window) = (subscribed(), Window::default());
        window.add(tick(NIFTY, 2_410_000, 2_400_000, &clock), &clock);
        clock.advance_ms(1);
        window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
        let (mut made, mut counted) = (0, 0);
        // For ten seconds nobody takes it, while one instrument ticks on.
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
        // The next one is due as usual, and counted for itself.
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
        let (known, mut subscriptions) = (KnownTokens::default(), Subscriptions::default());
        known.learn(all.clone());
        let shares = all.iter().map(|(symbol, _)| symbol.clone()).collect();
        let wanted = Wanted { shares, ..Wanted::default() };
        subscriptions.follow(&wanted, &known, SYMBOLS_MAX, 0);
        let (mut window, mut room, mut batches) = (Window::default(), Vec::new(), 0);
        let timer = Clock::system();
        for half_second in 0..120 {
            for (_, token) in &all {
                window.add(tick(*token, 140_000 + half_second, 139_000, &clock), &clock);
            }
            clock.advance_ms(WINDOW_MS as i64);
            assert_eq!(window.due_in_ms(clock.monotonic_ms()), Some(0));
            let batch = window.batch(&subscriptions, true, true, &clock, |_, _| {}).unwrap();
            assert_eq!(batch.quotes.len(), SYMBOLS_MAX);
            batches += 1;
            window.clear();
            clock.advance_ms(500 - WINDOW_MS as i64);
            room.push((window.ticks.capacity(), window.closes.capacity()));
        }
        assert_eq!(room[1], *room.last().unwrap());
        assert!(room[1].0 < 3 * SYMBOLS_MAX && window.closes.len() == SYMBOLS_MAX);
        println!("{batches} batches within {} ms", timer.monotonic_ms());
        assert!(timer.monotonic_ms() < 60_000, "{} ms of a minute", timer.monotonic_ms());
    }

    #[test]
    fn what_cannot_be_true_is_implausible_with_its_time() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let (subscriptions, mut window) = (subscribed(), Window::default());
        let ahead = clock.now() + jiff::SignedDuration::from_mins(6);
        window.add(Tick { at: Some(ahead), ..tick(NIFTY, 2_410_000, 2_400_000, &clock) }, &clock);
        window.add(tick(INFY, 0, 139_000, &clock), &clock);
        let batch = window.batch(&subscriptions, true, false, &clock, |_, _| {}).unwrap();
        assert_eq!((batch.quotes.len(), batch.implausible.len()), (0, 2));
        assert_eq!(batch.ahead, Some(ahead));
        for far in [u32::MAX, 1 << 31] {
            window.clear();
            window.add(tick(INFY, i64::from(far), 139_000, &clock), &clock);
            let batch = window.batch(&subscriptions, true, false, &clock, |_, _| {}).unwrap();
            assert_eq!(batch.implausible.len(), 1, "{far}");
        }
    }

    #[test]
    fn after_the_session_the_close_of_the_session_before_stays() {
        let clock = Clock::manual("2026-11-20T16:05:00+05:30".parse().unwrap());
        let (subscriptions, mut window) = (subscribed(), Window::default());
        window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
        assert!(
            window.batch(&subscriptions, false, false, &clock, |_, _| {}).is_none(),
            "not known"
        );
        window.batch(&subscriptions, true, false, &clock, |_, _| {}).unwrap();
        window.clear();
        window.add(tick(INFY, 140_000, 140_000, &clock), &clock);
        let batch = window.batch(&subscriptions, false, false, &clock, |_, _| {}).unwrap();
        assert_eq!(batch.quotes[0].previous_close, Some(Decimal::new(139_000, 2)));
    }
}
