//! Measures a feed's clock by the timestamps of its indices: how far the feed is delayed by its
//! nature, and up to when it vouches for its prices. Only state and rules, on the scheduler's
//! thread.
//!
//! In continuous trading an index moves every second, so its timestamp shows how far its source has
//! come. Each exchange has a *witness*: the first of the leading indices that is listed there.
//! Shares are judged by the witness of their exchange, indices by their own timestamp.

use jiff::{SignedDuration, Timestamp};

use crate::base::{BySource, Exchange, Quote, Source, Symbol, clock};
use crate::brokers::CallTimes;
use crate::cache::Vouched;
use crate::market::{MarketCalendar, Phase, Trading};

/// Exchange times have whole seconds.
const STAMP_MS: i64 = 1_000;

/// Once trading has stopped, the last price may be this much older than the end of trading. The
/// closing price may come this much after the close is final.
const FROZEN_MS: i64 = 60_000;

/// The last price before an auction may come this much after trading has stopped.
const SETTLED_MS: i64 = 5_000;

/// A source is waited for with its closing price no longer than this beyond its nature, however far
/// behind it was measured. It is then not yet taken to be settled (`CLOSE_MARGIN`).
const CLOSE_BEHIND_MS_MAX: i64 = 10 * 60_000;

/// A timestamp may be this much, plus 10 % of the measured delay, ahead of the source's clock.
/// Sources with a long delay are less exact.
const AHEAD_MAX_MS: i64 = 5_000;

/// If our wall clock moves this much against the monotonic clock, it was set or the machine slept.
const CLOCK_MOVED_MS: i64 = 2_000;

/// The measured delay is the minimum of the running spell of this length and the one before. So an
/// added lag counts as delay only after a spell, and a timestamp that is suddenly far ahead is not
/// believed for as long.
const SPELL_MS: u64 = 5 * 60_000;

/// A shorter delay is not shown: the source's own pace and a busy network explain it.
const DELAY_SHOWN_MIN_MS: i64 = 60_000;

/// Number of latest steps of an index's timestamp, of which the smallest counts.
const STEPS: usize = 4;

/// Longest step that counts as the source's nature.
const STEP_MAX_MS: i64 = 60_000;

/// Properties of a source that need no measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nature {
    /// Delay behind the exchange, until it is measured.
    behind_ms: i64,
    /// Longest delay that is believed. Beyond it the source or our clock is wrong. Leaves room for
    /// clocks that are minutes apart.
    behind_max_ms: i64,
    /// Its index counts as moving if it moved within this time.
    lately_ms: u64,
}

/// Broker A is in real time; the public provider is a quarter of an hour late.
const NATURES: BySource<Nature> = BySource([
    Nature {
        behind_ms: 0,
        behind_max_ms: 5 * 60_000,
        lately_ms: 30_000,
    },
    Nature {
        behind_ms: 15 * 60_000,
        behind_max_ms: 40 * 60_000,
        lately_ms: 10 * 60_000,
    },
]);

/// The measured clock of one feed.
pub(crate) struct FeedTime {
    nature: Nature,
    /// The primary index's witness comes first.
    witnesses: Vec<Witness>,
}

struct Witness {
    symbol: Symbol,
    offset: Offset,
    /// Timestamp of its last answer.
    as_of: Option<Timestamp>,
}

impl FeedTime {
    /// The clock of a feed whose `leads` are ordered by importance.
    pub(crate) fn new(source: Source, leads: &[Symbol]) -> Self {
        let nature = NATURES[source];
        let mut witnesses: Vec<Witness> = Vec::new();
        for lead in leads {
            if witnesses
                .iter()
                .all(|known| known.symbol.exchange() != lead.exchange())
            {
                let offset = Offset::new(nature);
                witnesses.push(Witness {
                    symbol: lead.clone(),
                    offset,
                    as_of: None,
                });
            }
        }
        Self { nature, witnesses }
    }

    /// The witness of an exchange, or the primary one.
    fn witness(&self, exchange: Exchange) -> Option<&Witness> {
        let own = self
            .witnesses
            .iter()
            .find(|witness| witness.symbol.exchange() == exchange);
        own.or(self.witnesses.first())
    }

    fn behind_ms(&self, exchange: Exchange) -> i64 {
        self.witness(exchange)
            .map_or(self.nature.behind_ms, |witness| witness.offset.behind_ms())
    }

    /// Delay of the source by its nature; `None` if it has none.
    pub(crate) fn delay_s(&self, exchange: Exchange) -> Option<u32> {
        let behind_ms = self.behind_ms(exchange);
        let shown = behind_ms >= DELAY_SHOWN_MIN_MS;
        shown.then(|| u32::try_from((behind_ms + 500) / 1_000).unwrap_or(u32::MAX))
    }

    /// The delay at the primary index's exchange.
    pub(crate) fn delay_of_primary_s(&self) -> Option<u32> {
        self.delay_s(self.witnesses.first()?.symbol.exchange())
    }

    /// Time for which the source leaves the primary index unchanged, beyond the one-second
    /// resolution of its timestamps.
    pub(crate) fn step_ms(&self) -> u64 {
        self.witnesses
            .first()
            .map_or(0, |witness| witness.offset.step_ms())
    }

    /// The latest time at which a price without a timestamp can have been made, by `whose` hours:
    /// the time of the call by the source's clock, or the end of trading if trading had stopped.
    pub(crate) fn latest(
        &self,
        exchange: Exchange,
        whose: Trading,
        times: &CallTimes,
        calendar: &MarketCalendar,
    ) -> Timestamp {
        let known = before(times.asked, self.behind_ms(exchange));
        let at = calendar.last_move_of(whose, known).unwrap_or(known);
        Timestamp::from_second(at.as_second()).unwrap_or(at)
    }

    /// The time of a share's price without a timestamp, by `whose` hours: that of its exchange's
    /// index, which shows how far the source has come. Once the index rests it shows that no more,
    /// and shares without an auction trade on.
    pub(crate) fn share_as_of(
        &self,
        exchange: Exchange,
        whose: Trading,
        times: &CallTimes,
        calendar: &MarketCalendar,
    ) -> Timestamp {
        let latest = self.latest(exchange, whose, times, calendar);
        match self.witness_as_of(exchange) {
            Some(index) if whose == Trading::WithAuction => index.min(latest),
            Some(index) if !self.has_come_to_rest(index, exchange, times, calendar) => {
                index.min(latest)
            }
            _ => latest,
        }
    }

    /// Whether no index price can be made at the moment that the source had come to, and its index
    /// with this timestamp has missed none.
    fn has_come_to_rest(
        &self,
        index: Timestamp,
        exchange: Exchange,
        times: &CallTimes,
        calendar: &MarketCalendar,
    ) -> bool {
        self.rests(exchange, times, calendar)
            && self.late_ms(calendar, index, times.asked, self.behind_ms(exchange)) == 0
    }

    /// Whether an index price without a timestamp is older than `held`, from which it differs:
    /// `held` was made by the last move of prices, so a source that says something else has not
    /// seen that move, or does not see it any more.
    pub(crate) fn is_outdated_by(
        &self,
        held: &Quote,
        times: &CallTimes,
        calendar: &MarketCalendar,
    ) -> bool {
        let exchange = held.symbol.exchange();
        let known = before(times.asked, self.behind_ms(exchange));
        if let Some(close) = calendar.last_close(known) {
            return calendar
                .closing_prices_from(close.date)
                .is_some_and(|from| held.as_of >= from);
        }
        // While an auction is prepared prices stand. Its own price ends that.
        let date = clock::zoned(known).date();
        let is_before_auction = calendar
            .closing_prices_from(date)
            .is_some_and(|from| known < from);
        let stopped = calendar
            .last_move(known)
            .filter(|at| *at < known && is_before_auction);
        stopped.is_some_and(|stopped| {
            let settled = stopped + SignedDuration::from_millis(SETTLED_MS);
            held.as_of >= before(stopped, FROZEN_MS) && held.asked >= settled
        })
    }

    /// Whether no index price can be made at the moment that the source had come to.
    pub(crate) fn rests(
        &self,
        exchange: Exchange,
        times: &CallTimes,
        calendar: &MarketCalendar,
    ) -> bool {
        let known = before(times.asked, self.behind_ms(exchange));
        calendar.last_move(known).is_some_and(|moved| moved < known)
    }

    /// The timestamp of the witness's last answer.
    pub(crate) fn witness_as_of(&self, exchange: Exchange) -> Option<Timestamp> {
        self.witness(exchange)?.as_of
    }

    /// Whether a timestamp can be true: not much later than the source's clock.
    pub(crate) fn believes(&self, quote: &Quote, times: &CallTimes) -> bool {
        let witness = self
            .witness(quote.symbol.exchange())
            .filter(|_| quote.timed);
        witness.is_none_or(|witness| witness.offset.believes(quote.as_of, times))
    }

    /// Runs before an answer is judged. A witness that has been ahead of its measured clock for a
    /// whole spell is right, and the measurement is dropped.
    pub(crate) fn weigh(&mut self, quote: &Quote, times: &CallTimes) {
        let witness = self
            .witnesses
            .iter_mut()
            .find(|known| known.symbol == quote.symbol);
        if let Some(witness) = witness.filter(|_| quote.timed) {
            witness.offset.weigh(quote.as_of, times);
        }
    }

    /// Notes the timestamp of a leading index, if it is a witness.
    pub(crate) fn heed(&mut self, quote: &Quote, times: &CallTimes, calendar: &MarketCalendar) {
        let witness = self
            .witnesses
            .iter_mut()
            .find(|known| known.symbol == quote.symbol);
        let Some(witness) = witness else { return };
        witness.as_of = Some(quote.as_of);
        if quote.timed {
            witness.offset.observe(quote.as_of, times, calendar);
        }
    }

    /// Up to when the source vouches for an index with this timestamp.
    pub(crate) fn index_vouched(
        &self,
        quote: &Quote,
        times: &CallTimes,
        calls: u8,
        calendar: &MarketCalendar,
    ) -> Vouched {
        let behind_ms = self.behind_ms(quote.symbol.exchange());
        vouched(times, self.late_ms(calendar, quote.as_of, times.asked, behind_ms), calls)
    }

    /// Up to when the source vouches for a share: by the witness of its exchange, and by its own
    /// timestamp, which may stand for `stands_ms_max` of trading by `whose` hours.
    pub(crate) fn share_vouched(
        &self,
        quote: &Quote,
        whose: Trading,
        stands_ms_max: i64,
        times: &CallTimes,
        calendar: &MarketCalendar,
    ) -> Vouched {
        let exchange = quote.symbol.exchange();
        let behind_ms = self.behind_ms(exchange);
        let known = before(times.asked, behind_ms);
        let index = self.witness_as_of(exchange);
        let rests = |at: &Timestamp| self.has_come_to_rest(*at, exchange, times, calendar);
        let come_to = index
            .filter(|at| !rests(at))
            .map_or(known, |at| at.min(known));
        let stood = calendar.trading_of_between(whose, quote.as_of, come_to);
        // From then on nobody vouches for the price, in trading or after it.
        let own_ms = match stood.as_millis() as i64 > stands_ms_max {
            true => known.duration_since(quote.as_of).as_millis() as i64 - stands_ms_max,
            false => 0,
        };
        let of_index_ms =
            index.map_or(0, |as_of| self.late_ms(calendar, as_of, times.asked, behind_ms));
        let late_ms = own_ms.max(of_index_ms);
        vouched(times, late_ms, Vouched::IN_TURN)
    }

    /// Milliseconds by which an index with the timestamp `as_of` is late, for a source that is
    /// `behind_ms` behind and was asked at `asked`: by the trading or by the close that it missed.
    fn late_ms(
        &self,
        calendar: &MarketCalendar,
        as_of: Timestamp,
        asked: Timestamp,
        behind_ms: i64,
    ) -> i64 {
        let close_behind_ms = behind_ms.min(self.nature.behind_ms + CLOSE_BEHIND_MS_MAX);
        missed_trading_ms(calendar, as_of, asked, behind_ms).max(missed_close_ms(
            calendar,
            as_of,
            before(asked, close_behind_ms),
        ))
    }

    /// Whether the market has begun to trade, but by the source's clock it has not.
    pub(crate) fn is_before_the_bell(&self, calendar: &MarketCalendar, now: Timestamp) -> bool {
        let behind_ms = self
            .witnesses
            .first()
            .map_or(0, |witness| witness.offset.behind_ms());
        let began = calendar.trading_began(now);
        let moves = calendar.status(now).phase == Phase::Open;
        moves && began.is_some_and(|began| before(now, behind_ms) < began)
    }

    /// Milliseconds that our clock is ahead of the timestamps of a source whose prices move; `None`
    /// if its nature explains the difference.
    pub(crate) fn clock_ahead_ms(&self, now_mono_ms: u64) -> Option<i64> {
        let offset = &self.witnesses.first()?.offset;
        let (_, behind_ms) = offset.last?;
        let since_ms = now_mono_ms.saturating_sub(offset.advanced_mono_ms?);
        let wrong = behind_ms > self.nature.behind_max_ms && since_ms <= self.nature.lately_ms;
        wrong.then_some(behind_ms)
    }
}

fn before(at: Timestamp, ms: i64) -> Timestamp {
    at.checked_sub(SignedDuration::from_millis(ms))
        .unwrap_or(at)
}

fn vouched(times: &CallTimes, late_ms: i64, calls: u8) -> Vouched {
    let asked_ms = i64::try_from(times.asked_mono_ms).unwrap_or(i64::MAX);
    Vouched {
        mono_ms: asked_ms.saturating_sub(late_ms),
        calls,
    }
}

/// Trading time that an index with the timestamp `as_of` has missed, for a source that is
/// `behind_ms` behind and was asked at `asked`. A delayed source still shows yesterday's close
/// after the bell, but that is no price of an open market.
fn missed_trading_ms(
    calendar: &MarketCalendar,
    as_of: Timestamp,
    asked: Timestamp,
    behind_ms: i64,
) -> i64 {
    let began = calendar.trading_began(asked).filter(|began| as_of < *began);
    let known = before(asked, behind_ms);
    let missed = match began {
        Some(began) => calendar.trading_between(began, asked),
        None => calendar.trading_between(as_of, known),
    };
    let moves = began.is_some() || calendar.status(known).phase == Phase::Open;
    let slack_ms = if moves { STAMP_MS } else { FROZEN_MS };
    (missed.as_millis() as i64 - slack_ms).max(0)
}

/// Time since the last close that is final by a source's clock, if the timestamp `as_of` proves
/// that the source's price is not the closing one. Nothing is traded continuously between an
/// index's last price and its close, so a source that froze before the auction misses no trading.
fn missed_close_ms(calendar: &MarketCalendar, as_of: Timestamp, known: Timestamp) -> i64 {
    let close = calendar
        .final_close(known)
        .filter(|close| as_of < close.prices_from);
    let since_ms = close.map_or(0, |close| known.duration_since(close.at).as_millis() as i64);
    if since_ms > FROZEN_MS { since_ms } else { 0 }
}

/// The measured delay of a source's timestamps behind our clock.
struct Offset {
    nature: Nature,
    /// Difference of the wall clock and the monotonic clock at the last answer.
    clock_ms: Option<i64>,
    /// Minimum delay in the running spell and in the one before.
    least_ms: [Option<i64>; 2],
    spell_began_mono_ms: u64,
    /// The last timestamp that differed from the one before, and its delay.
    last: Option<(Timestamp, i64)>,
    /// Some later answer had the same timestamp.
    stood: bool,
    /// When the timestamp last advanced.
    advanced_mono_ms: Option<u64>,
    /// Since when the timestamp has been further ahead than is believed.
    doubted_mono_ms: Option<u64>,
    /// Ring buffer of the last `STEPS` advances of the timestamp; 0 if it had not stood before.
    steps_ms: [i64; STEPS],
    advances: usize,
}

impl Offset {
    fn new(nature: Nature) -> Self {
        Self {
            nature,
            clock_ms: None,
            least_ms: [None; 2],
            spell_began_mono_ms: 0,
            last: None,
            stood: false,
            advanced_mono_ms: None,
            doubted_mono_ms: None,
            steps_ms: [0; STEPS],
            advances: 0,
        }
    }

    fn is_measured(&self) -> bool {
        self.advances > 0 && self.least_ms[0].is_some()
    }

    /// A source that was late and is now as quick as its nature says is believed at once.
    fn believes(&self, as_of: Timestamp, times: &CallTimes) -> bool {
        let behind_ms = self.behind_ms().min(self.nature.behind_ms);
        let ahead = as_of.duration_since(before(times.answered, behind_ms));
        let ahead_max_ms = AHEAD_MAX_MS + behind_ms.max(0) / 10;
        !self.is_measured() || ahead <= SignedDuration::from_millis(ahead_max_ms)
    }

    fn weigh(&mut self, as_of: Timestamp, times: &CallTimes) {
        if self.believes(as_of, times) {
            self.doubted_mono_ms = None;
            return;
        }
        let since = *self.doubted_mono_ms.get_or_insert(times.asked_mono_ms);
        if times.asked_mono_ms.saturating_sub(since) > SPELL_MS {
            *self = Self::new(self.nature);
        }
    }

    fn behind_ms(&self) -> i64 {
        self.least_ms
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(self.nature.behind_ms)
    }

    fn step_ms(&self) -> u64 {
        if self.advances < STEPS {
            return 0;
        }
        let least_ms = self.steps_ms.into_iter().min().unwrap_or(0);
        (least_ms - STAMP_MS).clamp(0, STEP_MAX_MS).unsigned_abs()
    }

    fn observe(&mut self, as_of: Timestamp, times: &CallTimes, calendar: &MarketCalendar) {
        let mono_ms = i64::try_from(times.asked_mono_ms).unwrap_or(i64::MAX);
        let clock_ms = times.asked.as_millisecond() - mono_ms;
        if self
            .clock_ms
            .is_some_and(|known_ms| (clock_ms - known_ms).abs() > CLOCK_MOVED_MS)
        {
            *self = Self::new(self.nature);
        }
        self.clock_ms = Some(clock_ms);
        let of_this_session = calendar
            .trading_began(times.asked)
            .is_some_and(|at| as_of >= at);
        if !of_this_session || calendar.status(as_of).phase != Phase::Open {
            (self.last, self.stood) = (None, false);
            return;
        }
        let behind_ms = times.answered.as_millisecond() - as_of.as_millisecond();
        match self.last {
            Some((last, _)) if as_of == last => {
                self.stood = true;
                return;
            }
            // The first timestamp was wrong, or the timestamps were in the future and are right
            // again.
            Some((last, _))
                if as_of < last && (!self.is_measured() || self.behind_ms() < -AHEAD_MAX_MS) =>
            {
                let clock_ms = self.clock_ms;
                *self = Self {
                    clock_ms,
                    ..Self::new(self.nature)
                };
            }
            // Another machine of the source answers and is further behind. It tells nothing until
            // it has caught up.
            Some((last, _)) if as_of < last => return,
            Some((last, _)) => {
                self.note(behind_ms, times.asked_mono_ms);
                let step_ms = as_of.duration_since(last).as_millis() as i64;
                self.steps_ms[self.advances % STEPS] = if self.stood { step_ms } else { 0 };
                self.advances += 1;
                self.advanced_mono_ms = Some(times.asked_mono_ms);
            }
            // A source that is less delayed than its nature says shows it with the first answer.
            None if behind_ms < self.behind_ms() => {
                self.note(behind_ms.max(0), times.asked_mono_ms);
            }
            None => {}
        }
        (self.last, self.stood) = (Some((as_of, behind_ms)), false);
    }

    fn note(&mut self, behind_ms: i64, mono_ms: u64) {
        if behind_ms > self.nature.behind_max_ms {
            return;
        }
        let [running, _] = self.least_ms;
        if running.is_some() && mono_ms.saturating_sub(self.spell_began_mono_ms) > SPELL_MS {
            self.least_ms = [Some(behind_ms), running];
            self.spell_began_mono_ms = mono_ms;
        } else if let Some(least_ms) = running {
            self.least_ms[0] = Some(least_ms.min(behind_ms));
        } else {
            self.least_ms[0] = Some(behind_ms);
            self.spell_began_mono_ms = mono_ms;
        }
    }
}

#[cfg(test)]
#[path = "feed_time_tests.rs"]
mod tests;
