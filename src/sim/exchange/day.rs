//! The exchange day: every price as a pure function of seed, instrument and instant.
//!
//! Levels are parts per million around an instrument's base price, in whole numbers. A day's
//! closing level comes from noise over days; within the day a line from the opening level to the
//! closing one carries noise that is nought at both ends, so the close of a day is exactly what the
//! next trading date calls its previous close. Any thread; the only state is a bounded cache of the
//! minutes of a day.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use parking_lot::Mutex;

use super::hours::{
    DAY_MINUTES, OPEN_S, continuous_end_s, day_number, end_s, instant, second_of_day,
};
use super::minutes::{Minutes, close_of, minutes_of, on_tick};
use super::noise;
use super::splits::{Scale, Split};
use super::trading::{Trading, TradingOrder};
use super::universe::Instrument;
use crate::base::ist;

/// Longest run of days without trading that is looked through; the longest real one is under a
/// week.
const CLOSED_DAYS_MAX: usize = 30;
/// Minute lines kept: the embedded universe for two dates.
const CACHED_DAYS_MAX: usize = 1_000;

/// Which dates the exchange trades on, given by the caller so that it agrees with the service's
/// calendar.
#[derive(Clone)]
pub struct Sessions {
    is_trading_date: Arc<dyn Fn(Date) -> bool + Send + Sync>,
}

impl Sessions {
    /// Trades on the dates for which `is_trading_date` says so, at the regular hours.
    pub fn new(is_trading_date: impl Fn(Date) -> bool + Send + Sync + 'static) -> Self {
        Self { is_trading_date: Arc::new(is_trading_date) }
    }

    /// Monday to Friday, no holidays.
    pub fn weekdays() -> Self {
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

/// What the exchange shows for one instrument at one instant. Prices in paise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) last: i64,
    /// Official close of the session before the one shown.
    pub(crate) previous_close: i64,
    /// 0 before the open, as are high and low.
    pub(crate) open: i64,
    pub(crate) high: i64,
    pub(crate) low: i64,
    pub(crate) volume: i64,
    /// When the last price was made, in whole seconds.
    pub(crate) as_of: Timestamp,
    /// Which of the prices of that second it is.
    pub(crate) part: i64,
    /// The trading date shown.
    pub(crate) date: Date,
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
    sessions: Sessions,
    /// How often a second each price moves.
    prices_per_s: i64,
    cached_days_max: usize,
    minutes: Mutex<HashMap<(i64, Date), Arc<Minutes>>>,
    /// By token; at most one for each instrument.
    splits: Mutex<HashMap<i64, Split>>,
    /// By token.
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

    /// Each price moves so often a second.
    pub(crate) fn moving(self, prices_per_s: i64) -> Self {
        Self { prices_per_s: prices_per_s.max(1), ..self }
    }

    /// Keeps the minutes of so many instruments for two dates.
    pub(crate) fn with_room_for(self, instruments: usize) -> Self {
        Self { cached_days_max: CACHED_DAYS_MAX.max(2 * instruments), ..self }
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Official close of a trading date.
    pub(crate) fn close(&self, instrument: &Instrument, date: Date) -> i64 {
        close_of(instrument, date, self.scale(instrument, date))
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
        splits.get(&instrument.token).map_or(Scale::ONE, |split| split.at(date))
    }

    /// Sets a price of one instrument, or halts its trading.
    ///
    /// # Errors
    /// What is wrong, for the person who sent it.
    pub(crate) fn trade(
        &self,
        instrument: &Instrument,
        order: &TradingOrder,
        now: Timestamp,
    ) -> Result<(), String> {
        self.trading.lock().entry(instrument.token).or_default().order(order, now)
    }

    /// What is shown at `at`.
    pub(crate) fn tick(&self, instrument: &Instrument, at: Timestamp) -> Tick {
        let Some(trading) = self.trading.lock().get(&instrument.token).cloned() else {
            return self.simulated(instrument, at);
        };
        let mut tick = self.simulated(instrument, trading.shown_at(at));
        if let Some(price) = trading.price_at(tick.as_of) {
            tick.last = price;
            (tick.high, tick.low) = (tick.high.max(price), tick.low.min(price));
        }
        let before = self.sessions.before(tick.date);
        let closed = trading.price_at(instant(before, end_s(instrument, before)));
        let previous_close = trading.previous_close(tick.date).or(closed);
        tick.previous_close = previous_close.unwrap_or(tick.previous_close);
        tick
    }

    /// The same, as seed and splits make it.
    fn simulated(&self, instrument: &Instrument, at: Timestamp) -> Tick {
        let civil = ist::zoned(at).datetime();
        let (date, second) = (civil.date(), second_of_day(at));
        if !self.sessions.trades_on(date) {
            return self.closed(instrument, self.sessions.before(date));
        }
        if second < OPEN_S {
            let before = self.sessions.before(date);
            let close = self.previous_close(instrument, date);
            let as_of = instant(before, end_s(instrument, before));
            return Tick {
                last: close,
                previous_close: close,
                open: 0,
                high: 0,
                low: 0,
                volume: 0,
                as_of,
                part: 0,
                date,
            };
        }
        if second >= end_s(instrument, date) {
            return self.closed(instrument, date);
        }
        let shown = second.min(continuous_end_s(instrument, date));
        let minutes = self.minutes(instrument, date);
        // Prices stand still where an auction has begun.
        let part = if shown == second { self.part_of(at) } else { 0 };
        let price_at = |(second, part)| self.price_at(instrument, &minutes, date, second, part);
        let last = price_at((shown - OPEN_S, part));
        let minute = (shown - OPEN_S) / 60;
        let (mut high, mut low) = (minutes.high[minute as usize], minutes.low[minute as usize]);
        let all = (minute * 60..=shown - OPEN_S)
            .flat_map(|second| (0..self.prices_per_s).map(move |part| (second, part)));
        for price in all.take_while(|&moment| moment <= (shown - OPEN_S, part)).map(price_at) {
            (high, low) = (high.max(price), low.min(price));
        }
        Tick {
            last,
            previous_close: self.previous_close(instrument, date),
            open: minutes.price[0],
            high,
            low,
            volume: self.day_volume(instrument, date) * (shown - OPEN_S) / (DAY_MINUTES * 60),
            as_of: instant(date, shown),
            part,
            date,
        }
    }

    /// What is shown once the session of `date` is over.
    fn closed(&self, instrument: &Instrument, date: Date) -> Tick {
        let bar = self.whole(instrument, date, &self.minutes(instrument, date));
        Tick {
            last: bar.close,
            previous_close: self.previous_close(instrument, date),
            open: bar.open,
            high: bar.high,
            low: bar.low,
            volume: bar.volume,
            as_of: instant(date, end_s(instrument, date)),
            part: 0,
            date,
        }
    }

    /// The finished bar of a whole trading date, stamped at the open. Not cached: whoever asks for
    /// these asks for years of them.
    pub(crate) fn day_bar(&self, instrument: &Instrument, date: Date) -> Bar {
        let scale = self.scale(instrument, date);
        let minutes = minutes_of(instrument, date, self.sessions.before(date), scale);
        self.whole(instrument, date, &minutes)
    }

    fn whole(&self, instrument: &Instrument, date: Date, minutes: &Minutes) -> Bar {
        let close = self.close(instrument, date);
        let last = ((continuous_end_s(instrument, date) - OPEN_S) / 60) as usize;
        Bar {
            start: instant(date, OPEN_S),
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
        let end = continuous_end_s(instrument, date);
        let seen = (until.as_second() - instant(date, 0).as_second()).min(end);
        if seen < OPEN_S || !self.sessions.trades_on(date) {
            return Vec::new();
        }
        let minutes = self.minutes(instrument, date);
        let volume = self.day_volume(instrument, date);
        let mut bars = Vec::new();
        let mut from = 0;
        while OPEN_S + from * 60 < end && OPEN_S + from * 60 <= seen {
            let to = (from + length_minutes).min((end - OPEN_S) / 60);
            let upto = ((seen - OPEN_S) / 60).min(to);
            let span = &minutes.price[from as usize..=upto as usize];
            let mut close = minutes.price[upto as usize];
            let (mut high, mut low) = (close, close);
            for price in span {
                (high, low) = (high.max(*price), low.min(*price));
            }
            if upto < to {
                // The running bar: seconds of the minute that is not over.
                for within in upto * 60..=seen - OPEN_S {
                    close = self.price_at(instrument, &minutes, date, within, 0);
                    (high, low) = (high.max(close), low.min(close));
                }
            }
            bars.push(Bar {
                start: instant(date, OPEN_S + from * 60),
                open: span[0],
                high,
                low,
                close,
                volume: volume * (upto - from) / DAY_MINUTES,
            });
            from = to;
        }
        bars
    }

    /// Which of the prices of its second is shown at `at`.
    fn part_of(&self, at: Timestamp) -> i64 {
        i64::from(at.subsec_millisecond()) * self.prices_per_s / 1_000
    }

    /// Price number `part` of the second `second` seconds after the open: between the two full
    /// minutes around it.
    fn price_at(
        &self,
        instrument: &Instrument,
        minutes: &Minutes,
        date: Date,
        second: i64,
        part: i64,
    ) -> i64 {
        let (minute, within) = (second / 60, second % 60);
        let from = minutes.price[minute as usize];
        if within == 0 && part == 0 {
            return from;
        }
        let to = minutes.price[minute as usize + 1];
        let key = noise::key(self.seed, "second") ^ instrument.token as u64;
        // The first price of a second is the same at every pace.
        let at = day_number(date) * 100_000 + second + part * 1_000_000_000_000;
        let along = (within * 1000 / 60 + noise::pick(key, at, 801) - 400).clamp(0, 1000);
        on_tick(from + (to - from) * along / 1000, instrument.tick_paise)
    }

    fn day_volume(&self, instrument: &Instrument, date: Date) -> i64 {
        if instrument.is_index {
            return 0;
        }
        let key = noise::key(self.seed, "volume") ^ instrument.token as u64;
        let usual = 400_000 + noise::pick(key, -1, 8_000_000);
        let volume = usual * (50 + noise::pick(key, day_number(date), 101)) / 100;
        self.scale(instrument, date).volume(volume)
    }

    fn minutes(&self, instrument: &Instrument, date: Date) -> Arc<Minutes> {
        let slot = (instrument.token, date);
        if let Some(minutes) = self.minutes.lock().get(&slot) {
            return minutes.clone();
        }
        let scale = self.scale(instrument, date);
        let made = Arc::new(minutes_of(instrument, date, self.sessions.before(date), scale));
        let mut cache = self.minutes.lock();
        if cache.len() >= self.cached_days_max {
            cache.clear();
        }
        cache.insert(slot, made.clone());
        made
    }
}

#[cfg(test)]
#[path = "day_tests.rs"]
mod tests;
