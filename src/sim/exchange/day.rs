//! The exchange day: every price as a pure function of seed, instrument and instant.
//!
//! Levels are parts per million around an instrument's base price, in whole numbers. A day's
//! closing level comes from noise over days; within the day a line from the opening level to the
//! closing one carries noise that is nought at both ends, so the close of a day is exactly what the
//! next trading date calls its previous close. Any thread; the only state is a bounded cache of the
//! minutes of a day, and one of daily bars for the whole process.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use jiff::civil::Date;
use parking_lot::Mutex;
use serde::Deserialize;

use crate::base::clock;
use crate::market::MarketCalendar;
use crate::market::calendar_entries::Hours;
use crate::market::data_file::DaySpan;
use crate::sim::exchange::minutes::{Minutes, close_of, day_number, instant, minutes_of, on_tick};
use crate::sim::exchange::scale::Scale;
use crate::sim::exchange::trading::{OrderedRange, Trading, TradingOrder};
use crate::sim::exchange::universe;
use crate::sim::exchange::universe::Instrument;

/// Longest run of days without trading that is searched; the longest real one is under a week.
const CLOSED_DAYS_MAX: usize = 30;
/// Minute lines kept: the embedded universe for two dates.
pub(crate) const CACHED_DAYS_MAX: usize = 1_000;
/// Daily bars kept: two years of thirty shares.
const BARS_MAX: usize = 16_384;

/// Daily bars of all simulators of the process, which mostly ask for the same ones. Once it is full
/// further bars are computed each time.
static BARS: LazyLock<Mutex<HashMap<BarOf, Bar>>> = LazyLock::new(Mutex::default);

/// The inputs of a daily bar: seed, token, its date and the trading date before, the split, and the
/// seconds of the open, of the end of the instrument's trading, and of the close.
type BarOf = (u64, i64, Date, Date, Scale, [i64; 3]);

/// The dates on which the exchange trades, and the calendar that says its hours. The caller gives
/// them, so that they agree with the service's calendar.
#[derive(Clone)]
pub struct Sessions {
    is_trading_date: Arc<dyn Fn(Date) -> bool + Send + Sync>,
    hours: Arc<MarketCalendar>,
}

/// The hours of simulators that are given only their dates.
static EMBEDDED: LazyLock<Arc<MarketCalendar>> =
    LazyLock::new(|| Arc::new(MarketCalendar::embedded()));

impl Sessions {
    /// Trades at the hours of the embedded calendar on the dates for which `is_trading_date`
    /// returns true.
    pub fn new(is_trading_date: impl Fn(Date) -> bool + Send + Sync + 'static) -> Self {
        Self {
            is_trading_date: Arc::new(is_trading_date),
            hours: Arc::clone(&EMBEDDED),
        }
    }

    /// The same dates, at the hours of `calendar`.
    pub fn at_hours_of(self, calendar: Arc<MarketCalendar>) -> Self {
        Self {
            hours: calendar,
            ..self
        }
    }

    /// The stretches of trading of `date`, in order.
    fn parts(&self, date: Date) -> &[Hours] {
        self.hours.hours(date)
    }

    /// When trading of `date` begins and when it ends, in seconds of the day.
    fn span(&self, date: Date) -> Span {
        match (self.parts(date).first(), self.parts(date).last()) {
            (Some(first), Some(last)) => Span {
                open_s: i64::from(first.continuous.start_s),
                close_s: i64::from(last.continuous.end_s),
            },
            _ => Span {
                open_s: OPEN_S,
                close_s: CLOSE_S,
            },
        }
    }

    /// When the auction of `date` begins and when its price is known, in seconds of the day, for an
    /// instrument that takes part in it.
    fn auction(&self, instrument: &Instrument, date: Date) -> Option<DaySpan> {
        let auction = self
            .parts(date)
            .last()?
            .closing
            .filter(|_| instrument.auction == 1)?;
        Some(auction.span)
    }

    /// The end of continuous trading for this instrument, in seconds of the day.
    fn continuous_end_s(&self, instrument: &Instrument, date: Date) -> i64 {
        let close_s = self.span(date).close_s;
        let auction = self.auction(instrument, date);
        auction.map_or(close_s, |auction| i64::from(auction.start_s).min(close_s))
    }

    /// The time of the day's last price, in seconds of the day.
    fn end_s(&self, instrument: &Instrument, date: Date) -> i64 {
        let auction = self.auction(instrument, date);
        auction.map_or(self.span(date).close_s, |auction| i64::from(auction.end_s))
    }

    /// The last second up to `second` in which the instrument was traded. Between two stretches of
    /// trading, and in an auction, prices stand still.
    fn traded_s(&self, instrument: &Instrument, date: Date, second: i64) -> i64 {
        // The level of the close is shown by the close alone.
        let last_s = self
            .continuous_end_s(instrument, date)
            .min(self.span(date).close_s - 1);
        let begun = self.parts(date).iter().rev();
        let mut begun = begun.filter(|part| i64::from(part.continuous.start_s) <= second);
        let end_s = begun
            .next()
            .map_or(last_s, |part| i64::from(part.continuous.end_s) - 1);
        match end_s < self.span(date).close_s - 1 {
            true => second.min(end_s),
            false => second.min(last_s),
        }
    }

    /// The first and the last instant of continuous trading on `date`, as stated by sources that
    /// ignore the auction.
    pub(crate) fn regular_hours(&self, date: Date) -> (Timestamp, Timestamp) {
        let Span { open_s, close_s } = self.span(date);
        (instant(date, open_s), instant(date, close_s))
    }

    /// Monday to Friday, no holidays.
    pub(crate) fn weekdays() -> Self {
        Self::new(|date| date.weekday().to_monday_zero_offset() < 5)
    }

    pub(crate) fn trades_on(&self, date: Date) -> bool {
        (self.is_trading_date)(date)
    }

    /// The last trading date before `date`.
    pub(crate) fn before(&self, date: Date) -> Date {
        let mut day = date;
        for _ in 0..CLOSED_DAYS_MAX {
            day = day.yesterday().unwrap_or(day);
            if self.trades_on(day) {
                return day;
            }
        }
        day
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

/// The state of one instrument at one instant. Prices in paise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) last: i64,
    /// Official close of the session before the one shown.
    pub(crate) previous_close: i64,
    /// The price that the day's limits follow: the previous close, or the open of a first day.
    pub(crate) base: i64,
    /// 0 before the open, as are high and low.
    pub(crate) open: i64,
    pub(crate) high: i64,
    pub(crate) low: i64,
    pub(crate) volume: i64,
    /// When the last price was made, in whole seconds.
    pub(crate) as_of: Timestamp,
    /// Number of the price within that second.
    pub(crate) part: i64,
    /// The trading date shown.
    pub(crate) date: Date,
}

impl Tick {
    /// The running bar of the day, as it would be stamped `start`.
    pub(crate) fn bar(&self, start: Timestamp) -> Bar {
        let Self {
            open,
            high,
            low,
            last: close,
            volume,
            ..
        } = *self;
        Bar {
            start,
            open,
            high,
            low,
            close,
            volume,
        }
    }
}

/// One bar. Prices in paise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) start: Timestamp,
    pub(crate) open: i64,
    pub(crate) high: i64,
    pub(crate) low: i64,
    pub(crate) close: i64,
    pub(crate) volume: i64,
}

/// The exchange.
#[derive(Debug)]
pub(crate) struct Day {
    seed: u64,
    pub(crate) sessions: Sessions,
    /// Number of moves of each price in a second.
    pub(crate) prices_per_s: i64,
    /// Most minute lines kept, each of an instrument and a date.
    pub(crate) cached_days_max: usize,
    minutes: Mutex<HashMap<(i64, Date), Arc<Minutes>>>,
    /// Splits by token, at most one for each instrument.
    splits: Mutex<HashMap<i64, Split>>,
    /// Orders by token.
    trading: Mutex<HashMap<i64, Trading>>,
}

impl Day {
    pub(crate) fn new(seed: u64, sessions: Sessions) -> Self {
        Self {
            seed,
            sessions,
            prices_per_s: 1,
            cached_days_max: CACHED_DAYS_MAX,
            minutes: Mutex::default(),
            splits: Mutex::default(),
            trading: Mutex::default(),
        }
    }

    /// Official close of a trading date.
    pub(crate) fn close(&self, instrument: &Instrument, date: Date) -> i64 {
        close_of(instrument, date, self.scale(instrument, date))
    }

    /// When the last price of `date` is made.
    pub(crate) fn end(&self, instrument: &Instrument, date: Date) -> Timestamp {
        instant(date, self.sessions.end_s(instrument, date))
    }

    /// The close before `date`, which exchanges state in shares of `date`.
    fn previous_close(&self, instrument: &Instrument, date: Date) -> i64 {
        close_of(instrument, self.sessions.before(date), self.scale(instrument, date))
    }

    /// Splits the shares of one instrument, in place of an earlier split.
    pub(crate) fn split(&self, instrument: &Instrument, split: Split) {
        self.splits.lock().insert(instrument.token, split);
        self.minutes.lock().clear();
    }

    fn scale(&self, instrument: &Instrument, date: Date) -> Scale {
        let splits = self.splits.lock();
        splits
            .get(&instrument.token)
            .map_or(Scale::ONE, |split| split.at(date))
    }

    /// Sets a price of one instrument, or halts its trading.
    ///
    /// # Errors
    /// The mistake, in words for the person who sent the order.
    pub(crate) fn trade(
        &self,
        instrument: &Instrument,
        order: &TradingOrder,
        now: Timestamp,
    ) -> Result<(), String> {
        self.trading
            .lock()
            .entry(instrument.token)
            .or_default()
            .order(order, now)
    }

    /// The tick shown at `at`.
    pub(crate) fn tick(&self, instrument: &Instrument, at: Timestamp) -> Tick {
        let Some(trading) = self.trading.lock().get(&instrument.token).cloned() else {
            return self.simulated(instrument, at);
        };
        let mut tick = self.simulated(instrument, trading.shown_at(at));
        if let Some(price) = trading.price_at(tick.as_of) {
            tick.last = price;
            // Before the open there is no range yet.
            if tick.open > 0 {
                (tick.high, tick.low) = (tick.high.max(price), tick.low.min(price));
            }
        }
        let before = self.sessions.before(tick.date);
        let closed = trading.price_at(instant(before, self.sessions.end_s(instrument, before)));
        let previous_close = trading.previous_close(tick.date).or(closed);
        tick.previous_close = previous_close.unwrap_or(tick.previous_close);
        tick.base = tick.previous_close;
        if let Some(OrderedRange { open, low, high }) = trading.range(tick.as_of) {
            tick.base = open;
            (tick.open, tick.low, tick.high) = (open, low, high);
        }
        tick
    }

    /// The tick at `at` by seed and splits alone, without orders of control routes.
    fn simulated(&self, instrument: &Instrument, at: Timestamp) -> Tick {
        let civil = clock::zoned(at).datetime();
        let date = civil.date();
        let second = second_of_day(at);
        if !self.sessions.trades_on(date) {
            return self.closed(instrument, self.sessions.before(date));
        }
        let span = self.sessions.span(date);
        if second < span.open_s {
            let before = self.sessions.before(date);
            let close = self.previous_close(instrument, date);
            let as_of = instant(before, self.sessions.end_s(instrument, before));
            return Tick {
                last: close,
                previous_close: close,
                base: close,
                open: 0,
                high: 0,
                low: 0,
                volume: 0,
                as_of,
                part: 0,
                date,
            };
        }
        if second >= self.sessions.end_s(instrument, date) {
            return self.closed(instrument, date);
        }
        let shown = self.sessions.traded_s(instrument, date, second);
        let since_open_s = shown - span.open_s;
        let minutes = self.minutes(instrument, date);
        // Prices stand still once an auction has begun.
        let part = if shown == second { self.part_of(at) } else { 0 };
        let price_at = |(second, part)| self.price_at(instrument, &minutes, date, second, part);
        let last = price_at((since_open_s, part));
        let minute = since_open_s / 60;
        let mut high = minutes.high[minute as usize];
        let mut low = minutes.low[minute as usize];
        let all = (minute * 60..=since_open_s)
            .flat_map(|second| (0..self.prices_per_s).map(move |part| (second, part)));
        for price in all
            .take_while(|&moment| moment <= (since_open_s, part))
            .map(price_at)
        {
            (high, low) = (high.max(price), low.min(price));
        }
        let previous_close = self.previous_close(instrument, date);
        Tick {
            last,
            previous_close,
            base: previous_close,
            open: minutes.price[0],
            high,
            low,
            volume: self.day_volume(instrument, date) * since_open_s / (span.minutes() * 60),
            as_of: instant(date, shown),
            part,
            date,
        }
    }

    /// The tick shown once the session of `date` is over.
    fn closed(&self, instrument: &Instrument, date: Date) -> Tick {
        let bar = self.whole(instrument, date, &self.minutes(instrument, date));
        let previous_close = self.previous_close(instrument, date);
        Tick {
            last: bar.close,
            previous_close,
            base: previous_close,
            open: bar.open,
            high: bar.high,
            low: bar.low,
            volume: bar.volume,
            as_of: instant(date, self.sessions.end_s(instrument, date)),
            part: 0,
            date,
        }
    }

    /// The finished bar of a whole trading date, stamped at the open. Its minutes are not cached,
    /// because callers ask for years of daily bars.
    pub(crate) fn day_bar(&self, instrument: &Instrument, date: Date) -> Bar {
        let before = self.sessions.before(date);
        let scale = self.scale(instrument, date);
        let span = self.sessions.span(date);
        let end_s = self.sessions.continuous_end_s(instrument, date);
        let of = (
            self.seed,
            instrument.token,
            date,
            before,
            scale,
            [span.open_s, end_s, span.close_s],
        );
        if let Some(bar) = BARS.lock().get(&of) {
            return bar.clone();
        }
        let minutes = minutes_of(instrument, date, before, scale, span.minutes());
        let bar = self.whole(instrument, date, &minutes);
        let mut bars = BARS.lock();
        if bars.len() < BARS_MAX {
            bars.insert(of, bar.clone());
        }
        bar
    }

    fn whole(&self, instrument: &Instrument, date: Date, minutes: &Minutes) -> Bar {
        let close = self.close(instrument, date);
        let open_s = self.sessions.span(date).open_s;
        let last = ((self.sessions.continuous_end_s(instrument, date) - open_s) / 60) as usize;
        Bar {
            start: instant(date, open_s),
            open: minutes.price[0],
            high: minutes.high[last].max(close),
            low: minutes.low[last].min(close),
            close,
            volume: self.day_volume(instrument, date),
        }
    }

    /// Bars of `length_minutes` of continuous trading on `date` that have begun by `until`.
    pub(crate) fn bars(
        &self,
        instrument: &Instrument,
        date: Date,
        length_minutes: i64,
        until: Timestamp,
    ) -> Vec<Bar> {
        let end = self.sessions.continuous_end_s(instrument, date);
        let seen = (until.as_second() - instant(date, 0).as_second()).min(end);
        let span = self.sessions.span(date);
        if seen < span.open_s || !self.sessions.trades_on(date) {
            return Vec::new();
        }
        let minutes = self.minutes(instrument, date);
        let volume = self.day_volume(instrument, date);
        let mut bars = Vec::new();
        let mut from = 0;
        while span.open_s + from * 60 < end && span.open_s + from * 60 <= seen {
            let to = (from + length_minutes).min((end - span.open_s) / 60);
            let upto = ((seen - span.open_s) / 60).min(to);
            let shown = &minutes.price[from as usize..=upto as usize];
            let mut close = minutes.price[upto as usize];
            let mut high = close;
            let mut low = close;
            for price in shown {
                (high, low) = (high.max(*price), low.min(*price));
            }
            if upto < to {
                // The running bar: seconds of the minute that is not over.
                for within in upto * 60..=seen - span.open_s {
                    close = self.price_at(instrument, &minutes, date, within, 0);
                    (high, low) = (high.max(close), low.min(close));
                }
            }
            bars.push(Bar {
                start: instant(date, span.open_s + from * 60),
                open: shown[0],
                high,
                low,
                close,
                volume: volume * (upto - from) / span.minutes(),
            });
            from = to;
        }
        bars
    }

    /// Number of the price within its second that is shown at `at`.
    fn part_of(&self, at: Timestamp) -> i64 {
        i64::from(at.subsec_millisecond()) * self.prices_per_s / 1_000
    }

    /// Price number `part` of the second `second` seconds after the open. It lies between the
    /// prices of the full minutes around it.
    fn price_at(
        &self,
        instrument: &Instrument,
        minutes: &Minutes,
        date: Date,
        second: i64,
        part: i64,
    ) -> i64 {
        let minute = second / 60;
        let within = second % 60;
        let from = minutes.price[minute as usize];
        if within == 0 && part == 0 {
            return from;
        }
        let to = minutes.price[minute as usize + 1];
        let key = universe::key(self.seed, "second") ^ instrument.token as u64;
        // The first price of a second is the same at every pace.
        let at = day_number(date) * 100_000 + second + part * 1_000_000_000_000;
        let along = (within * 1000 / 60 + universe::pick(key, at, 801) - 400).clamp(0, 1000);
        on_tick(from + (to - from) * along / 1000, instrument.tick_paise)
    }

    fn day_volume(&self, instrument: &Instrument, date: Date) -> i64 {
        if instrument.is_index {
            return 0;
        }
        let key = universe::key(self.seed, "volume") ^ instrument.token as u64;
        let usual = 400_000 + universe::pick(key, -1, 8_000_000);
        let volume = usual * (50 + universe::pick(key, day_number(date), 101)) / 100;
        self.scale(instrument, date).volume(volume)
    }

    fn minutes(&self, instrument: &Instrument, date: Date) -> Arc<Minutes> {
        let slot = (instrument.token, date);
        if let Some(minutes) = self.minutes.lock().get(&slot) {
            return minutes.clone();
        }
        let scale = self.scale(instrument, date);
        let before = self.sessions.before(date);
        let minutes = self.sessions.span(date).minutes();
        let made = Arc::new(minutes_of(instrument, date, before, scale, minutes));
        let mut cache = self.minutes.lock();
        if cache.len() >= self.cached_days_max {
            cache.clear();
        }
        cache.insert(slot, made.clone());
        made
    }
}

// ---- Hours
//
// The hours of the simulated exchange, and instants of its trading dates. Pure.

/// 09:15 IST, in seconds of the day: the open on dates of which the calendar has no hours.
const OPEN_S: i64 = 9 * 3600 + 15 * 60;
/// 15:30 IST: the end of trading on such dates.
const CLOSE_S: i64 = 15 * 3600 + 30 * 60;

/// The trading of one date, in seconds of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    open_s: i64,
    close_s: i64,
}

impl Span {
    /// Minutes from open to close.
    fn minutes(self) -> i64 {
        (self.close_s - self.open_s).max(60) / 60
    }
}

pub(crate) fn second_of_day(at: Timestamp) -> i64 {
    (at.as_second() + i64::from(clock::OFFSET_S)).rem_euclid(86_400)
}

// ---- Splits
//
// Shares that are split, given as a bonus or consolidated while the simulator runs. The history is
// rewritten, as by vendors, or not yet. Plain values.

/// Most shares given for one, or taken for one.
const SHARES_MAX: i64 = 100;

/// A split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Split {
    scale: Scale,
    /// Earlier dates keep their old prices; `None` once the whole history is rewritten.
    from: Option<Date>,
}

impl Split {
    /// The scale of the candle of `date`.
    pub(crate) fn at(self, date: Date) -> Scale {
        if self.from.is_none_or(|from| date >= from) {
            self.scale
        } else {
            Scale::ONE
        }
    }
}

/// A split as the control route takes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SplitOrder {
    /// `NSE:INFY`; the company's shares on the other exchange are split with it.
    pub(crate) symbol: String,
    new: i64,
    old: i64,
    /// Whether candles of earlier days are rewritten; true if absent.
    #[serde(default = "yes")]
    adjusted: bool,
}

fn yes() -> bool {
    true
}

impl SplitOrder {
    /// The split, if it makes sense.
    ///
    /// # Errors
    /// The mistake, in words for the person who sent the order.
    pub(crate) fn split(&self, today: Date) -> Result<Split, String> {
        let Self {
            new, old, adjusted, ..
        } = *self;
        let sound = (1..=SHARES_MAX).contains(&new) && (1..=SHARES_MAX).contains(&old);
        if !sound {
            return Err(format!("new and old have to be 1 to {SHARES_MAX}"));
        }
        let from = (!adjusted).then_some(today);
        Ok(Split {
            scale: Scale { new, old },
            from,
        })
    }
}

#[cfg(test)]
#[path = "day_tests.rs"]
mod tests;
