//! Decides which symbols broker A's ticker subscribes to, and how its ticks ease the polls of the
//! same source. On the scheduler's thread.

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use crate::base::{BoundedMap, Quote, Source, Symbol};
use crate::brokers::Batch;
use crate::brokers::broker_a::ticker::Wanted;
use crate::market::{MarketCalendar, MarketStatus, Phase};
use crate::warmers::context::WarmerContext;
use crate::warmers::quotes::feed_state::{Answer, FeedState};

/// The ticker connects this long before the first session of a date and disconnects this long after
/// the last: at 08:45 for a pre-open at 09:00.
const WAKES_BEFORE: SignedDuration = SignedDuration::from_mins(15);
const RESTS_AFTER: SignedDuration = SignedDuration::from_mins(30);

/// Prices that only slow polls confirmed count as fresh for this long after the ticks were seen to
/// have stopped, until a call could be made and answered.
const SETTLE_MS: u64 = 2_500;

/// Ticks flow while they have vouched for the leading indices within this time. Those tick each
/// second. Polls do not count here: late or disbelieved ticks are no reason to poll less.
const VOUCHED_MS: u64 = 4_000;

/// Owner of the ticker's subscription, and of how its ticks ease polls.
pub(crate) struct TickingTask {
    /// The second, by the wall clock, of the last update of the subscription.
    told_s: i64,
    /// Ticks flow and are believed.
    pub is_live: bool,
    /// When ticks were first seen to have stopped; `None` while they flow or before they ever did.
    stopped_mono_ms: Option<u64>,
    /// Number of polls that confirm every wanted symbol.
    calls: u64,
    /// The comparison of ticks with polls.
    pub log: TickLog,
}

/// The purpose of a source's polls now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Eased {
    /// The source's ticks flow, and polls only confirm them: the number of polls that confirm all.
    pub confirming: Option<u64>,
    /// Ticks flow, or did a moment ago: prices that no poll has confirmed since are not stale yet.
    pub limits: bool,
}

impl TickingTask {
    pub(crate) fn new() -> Self {
        Self { told_s: 0, is_live: false, stopped_mono_ms: None, calls: 1, log: TickLog::new() }
    }

    pub(crate) fn pushed(&mut self, source: Source, batch: &Batch, now_mono_ms: u64) {
        if source == Source::BrokerA {
            self.log.pushed(&batch.quotes, now_mono_ms);
        }
    }

    /// Compares a poll's quotes with the ticks, while ticks flow.
    pub(crate) fn polled(&mut self, source: Source, answer: Option<&Answer>, now_mono_ms: u64) {
        if let (Source::BrokerA, true, Some(Ok(batch))) = (source, self.is_live, answer) {
            self.log.polled(&batch.quotes, now_mono_ms);
        }
    }

    /// Checks whether ticks flow, and updates the subscription once a second.
    pub(crate) fn poll(
        &mut self,
        context: &WarmerContext,
        status: &MarketStatus,
        feed: &FeedState,
        now_mono_ms: u64,
    ) {
        let ticker = &context.ticker;
        let is_live = ticker.is_live() && feed.pushed_within(VOUCHED_MS, now_mono_ms);
        self.follow(is_live, now_mono_ms);
        let now = context.clock.now();
        if now.as_second() == self.told_s || !ticker.is_on() {
            return;
        }
        self.told_s = now.as_second();
        let indices: Vec<Symbol> =
            context.indices.all().map(|index| index.symbol.clone()).collect();
        let shares = context.l1.wanted(now_mono_ms, 1, ticker.symbols_max());
        let calls = (indices.len() + shares.len()).div_ceil(feed.feed.batch_max().max(1));
        self.calls = calls as u64;
        ticker.want(Wanted {
            // Only the leader's ticker runs.
            awake: context.lead.may_ask() && is_awake(&context.calendar, now),
            moves: status.phase == Phase::Open,
            trades: matches!(status.phase, Phase::PreOpen | Phase::Open | Phase::Closing),
            indices,
            shares,
            standing: self.log.standing(now_mono_ms),
        });
    }

    /// The settling time counts from when the stop was seen, so that a scheduler that did not run
    /// for a while still polls first.
    fn follow(&mut self, is_live: bool, now_mono_ms: u64) {
        match (self.is_live, is_live) {
            (true, false) => {
                self.stopped_mono_ms = Some(now_mono_ms);
                self.log.forget();
            }
            (_, true) => self.stopped_mono_ms = None,
            (false, false) => {}
        }
        self.is_live = is_live;
    }

    /// The effect of ticks on the polls of `source`.
    pub(crate) fn eased(&self, source: Source, now_mono_ms: u64) -> Eased {
        let lately = |at: u64| now_mono_ms.saturating_sub(at) <= SETTLE_MS;
        match source {
            Source::BrokerA => Eased {
                confirming: self.is_live.then_some(self.calls),
                limits: self.is_live || self.stopped_mono_ms.is_some_and(lately),
            },
            Source::Public => Eased::default(),
        }
    }
}

/// Whether some session runs, has just ended or is about to begin.
fn is_awake(calendar: &MarketCalendar, now: Timestamp) -> bool {
    let trades =
        |at: Timestamp| !matches!(calendar.status(at).phase, Phase::Closed | Phase::Holiday);
    let before = now.checked_sub(RESTS_AFTER).is_ok_and(trades);
    before || trades(now) || now.checked_add(WAKES_BEFORE).is_ok_and(trades)
}

// ---- Tick log
//
// Compares the last tick of each symbol with polls. Finds disagreements, and symbols whose ticks
// have stopped. Pure apart from the ticks that it remembers.

/// More symbols than one connection carries.
const SYMBOLS_MAX: usize = 4_096;

/// A symbol's ticks have stopped if there was none for this long while a poll returned a newer
/// price.
const STANDS_MS: u64 = 60_000;

/// Half a percent: a tick and a poll of the same second may differ by a trade, not by more.
const DIFFERENCE_MAX: Decimal = Decimal::from_parts(5, 0, 0, false, 3);

/// The last tick of each symbol.
pub(crate) struct TickLog {
    last: BoundedMap<Symbol, Last>,
    /// Times that a tick and a poll of the same second differed by more than half a percent.
    pub disagreements: u64,
}

struct Last {
    symbol: Symbol,
    price: Decimal,
    as_of: Timestamp,
    ticked_mono_ms: u64,
    /// A poll has returned a newer price since.
    is_behind: bool,
}

impl Last {
    fn of(quote: &Quote, ticked_mono_ms: u64) -> Self {
        let symbol = quote.symbol.clone();
        let price = quote.last_price;
        Self { symbol, price, as_of: quote.as_of, ticked_mono_ms, is_behind: false }
    }

    fn disagrees_with(&self, quote: &Quote) -> bool {
        let same_second = self.as_of.as_second() == quote.as_of.as_second();
        let difference = (self.price - quote.last_price).abs();
        same_second && difference > quote.last_price * DIFFERENCE_MAX
    }
}

impl TickLog {
    pub(crate) fn new() -> Self {
        Self { last: BoundedMap::evicting_in_batches(SYMBOLS_MAX), disagreements: 0 }
    }

    pub(crate) fn pushed(&mut self, quotes: &[Quote], now_mono_ms: u64) {
        for quote in quotes {
            self.put(Last::of(quote, now_mono_ms));
        }
    }

    /// Compares a poll's quotes. For a symbol that has not ticked yet the time counts from now on.
    pub(crate) fn polled(&mut self, quotes: &[Quote], now_mono_ms: u64) {
        for quote in quotes {
            let Some(last) = self.last.value_mut(&quote.symbol) else {
                self.put(Last::of(quote, now_mono_ms));
                continue;
            };
            self.disagreements += u64::from(last.disagrees_with(quote));
            last.is_behind |= quote.as_of > last.as_of;
        }
    }

    fn put(&mut self, last: Last) {
        self.last.insert(last.symbol.clone(), last, |last| Some(last.ticked_mono_ms));
    }

    /// Symbols whose ticks have stopped.
    pub(crate) fn standing(&self, now_mono_ms: u64) -> Vec<Symbol> {
        let stands = |last: &&Last| {
            last.is_behind && now_mono_ms.saturating_sub(last.ticked_mono_ms) >= STANDS_MS
        };
        self.last.values().filter(stands).map(|last| last.symbol.clone()).collect()
    }

    /// Forgets all ticks, because they have stopped altogether.
    pub(crate) fn forget(&mut self) {
        self.last.retain(|_, _| false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_awake_from_a_quarter_before_nine_until_half_an_hour_after_the_last_session() {
        let calendar = MarketCalendar::embedded();
        for (at, expected) in [
            ("2026-11-20T08:44:59+05:30", false),
            ("2026-11-20T08:45:00+05:30", true),
            ("2026-11-20T11:00:00+05:30", true),
            ("2026-11-20T15:45:00+05:30", true),
            ("2026-11-20T16:29:59+05:30", true),
            ("2026-11-20T16:31:00+05:30", false),
            ("2026-11-20T23:00:00+05:30", false),
            ("2026-11-21T11:00:00+05:30", false),
            ("2026-12-25T11:00:00+05:30", false),
        ] {
            assert_eq!(is_awake(&calendar, at.parse().unwrap()), expected, "{at}");
        }
    }

    #[test]
    fn limits_stay_wide_until_calls_could_be_made_counted_from_when_the_end_was_seen() {
        let mut ticking = TickingTask::new();
        let eased = |ticking: &TickingTask, at| {
            let eased = ticking.eased(Source::BrokerA, at);
            (eased.confirming.is_some(), eased.limits)
        };
        assert_eq!(eased(&ticking, 0), (false, false), "never flowed");
        ticking.follow(false, 0);
        assert_eq!(eased(&ticking, 1), (false, false));
        ticking.follow(true, 1_000);
        assert_eq!(eased(&ticking, 60_000), (true, true), "the scheduler did not run");
        ticking.follow(false, 60_000);
        ticking.follow(false, 60_200);
        assert_eq!(eased(&ticking, 62_500), (false, true));
        assert_eq!(eased(&ticking, 62_501), (false, false));
        ticking.follow(true, 63_000);
        assert_eq!(eased(&ticking, 63_000), (true, true));
        assert_eq!(ticking.eased(Source::Public, 63_000), Eased::default());
    }
}

#[cfg(test)]
mod tick_log_tests {
    use super::*;
    use crate::base::testing;

    fn quote(symbol: &str, price: &str, second: i64) -> Quote {
        testing::quote(symbol, price, Timestamp::from_second(1_795_155_307 + second).unwrap())
    }

    #[test]
    fn only_prices_of_the_same_second_that_differ_by_more_than_half_a_percent_disagree() {
        let mut log = TickLog::new();
        log.pushed(&[quote("NSE:INFY", "1000.00", 0)], 0);
        for (price, second, expected) in [
            ("1000.00", 0, 0),
            ("995.03", 0, 0),
            ("995.02", 0, 1),
            ("1005.02", 0, 1),
            ("1005.03", 0, 2),
            ("900.00", 1, 2),
            ("900.00", -1, 2),
            ("900.00", 0, 3),
        ] {
            log.polled(&[quote("NSE:INFY", price, second)], 0);
            assert_eq!(log.disagreements, expected, "{price} {second}");
        }
        log.polled(&[quote("NSE:TCS", "1.00", 0)], 0);
        assert_eq!(log.disagreements, 3, "never ticked");
    }

    #[test]
    fn a_symbol_stands_when_calls_bring_newer_prices_for_a_minute_without_a_tick() {
        let mut log = TickLog::new();
        log.pushed(&[quote("NSE:INFY", "1000.00", 0), quote("NSE:TCS", "3000.00", 0)], 1_000);
        log.polled(&[quote("NSE:INFY", "1001.00", 30), quote("NSE:TCS", "3000.00", 0)], 30_000);
        assert!(log.standing(60_999).is_empty());
        assert_eq!(log.standing(61_000), [Symbol::parse("NSE:INFY").unwrap()]);
        log.pushed(&[quote("NSE:INFY", "1002.00", 60)], 61_000);
        assert!(log.standing(200_000).is_empty(), "no call since");
        // Never ticked: the time counts from the first poll.
        log.polled(&[quote("NSE:SBIN", "800.00", 0)], 100_000);
        log.polled(&[quote("NSE:SBIN", "801.00", 10)], 110_000);
        assert!(log.standing(159_999).is_empty());
        assert_eq!(log.standing(160_000), [Symbol::parse("NSE:SBIN").unwrap()]);
        log.forget();
        assert!(log.standing(500_000).is_empty());
    }
}
