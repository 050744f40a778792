//! The public provider's chart call and the series and `meta` block that the batch calls share.
//! Connection threads run this.

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::base::clock;
use crate::sim::exchange::day::{Bar, Tick};
use crate::sim::exchange::universe;
use crate::sim::exchange::universe::Instrument;
use crate::sim::server::message::{Answer, Request, map, price};
use crate::sim::world::{Call, World};

/// The range that a call may name; any other stretch of time is given by two periods.
const RANGE: &str = "1d";
/// The interval within a day, and its minutes.
const WITHIN_DAY: (&str, i64) = ("5m", 5);
/// The interval of one bar a day.
const DAILY: &str = "1d";
/// Dates of the deepest history.
const DATES_MAX: usize = 620;
/// One whole bar in this many is null.
const NULL_BAR_EVERY: i64 = 29;
/// One daily bar in this many is null.
const NULL_DAY_EVERY: i64 = 600;

/// The part of a series that a request asks for.
#[derive(Debug)]
pub(crate) struct Ask {
    /// Minutes of a bar; `None` is one bar a day.
    minutes: Option<i64>,
    /// Seconds from `period1` up to and without `period2`, instead of the current day.
    period: Option<(i64, i64)>,
}

impl Ask {
    /// Reads the query.
    ///
    /// # Errors
    /// The provider's own message about a bad parameter.
    pub(crate) fn of(request: &Request, usual_interval: &str) -> Result<Self, String> {
        let range = request
            .query_value("range")
            .unwrap_or_else(|| RANGE.to_owned());
        if range != RANGE {
            return Err(format!("Invalid input - range={range} is not supported."));
        }
        let interval = request.query_value("interval");
        let minutes = match interval.as_deref().unwrap_or(usual_interval) {
            name if name == WITHIN_DAY.0 => Some(WITHIN_DAY.1),
            DAILY => None,
            other => {
                return Err(format!("Invalid input - interval={other} is not supported."));
            }
        };
        let bound = |name| request.query_value(name).map(|text| text.parse::<i64>());
        let period = match (bound("period1"), bound("period2")) {
            (None, None) => None,
            (Some(Ok(from)), Some(Ok(to))) => Some((from, to)),
            _ => return Err("Invalid input - period1 and period2 go together".to_owned()),
        };
        Ok(Self { minutes, period })
    }

    fn interval(&self) -> &'static str {
        if self.minutes.is_some() {
            WITHIN_DAY.0
        } else {
            DAILY
        }
    }
}

/// The bars of one instrument, with the facts that the reply states about them.
#[derive(Debug)]
pub(crate) struct Series {
    /// Prices in paise.
    bars: Vec<Bar>,
    null_key: u64,
    /// Close of the session before the first one shown, in paise.
    pub(crate) close_before: i64,
    pub(crate) granularity_s: i64,
}

impl Series {
    /// The series of one instrument as of `at`.
    pub(crate) fn of(world: &World, instrument: &Instrument, ask: &Ask, at: Timestamp) -> Self {
        let day = &world.day;
        let last = day.tick(instrument, at);
        let first_s = ask.period.map_or(i64::MIN, |(from, _)| from);
        let mut dates: Vec<Date> = vec![last.date];
        let dates_max = if ask.period.is_some() { DATES_MAX } else { 1 };
        while dates.len() < dates_max {
            let before = day.sessions.before(dates[dates.len() - 1]);
            if day.sessions.regular_hours(before).1.as_second() < first_s {
                break;
            }
            dates.push(before);
        }
        dates.reverse();
        let mut bars = Vec::new();
        for &date in &dates {
            match ask.minutes {
                Some(minutes) => bars.extend(day.bars(instrument, date, minutes, at)),
                // The bar has the time of its last price, which is off the grid during the session.
                None if date == last.date => {
                    let start = last.as_of.min(day.sessions.regular_hours(date).1);
                    bars.extend((last.open > 0).then(|| last.bar(start)));
                }
                None => {
                    bars.push(day.day_bar(instrument, date));
                    bars.extend(holiday_row(world, &bars[bars.len() - 1], date));
                }
            }
        }
        if let Some((from, to)) = ask.period {
            bars.retain(|bar| (from..to).contains(&bar.start.as_second()));
        }
        let first = bars
            .first()
            .map_or(last.date, |bar| clock::zoned(bar.start).date());
        Self {
            bars,
            null_key: universe::key(world.settings.seed, &instrument.key),
            close_before: day.close(instrument, day.sessions.before(first)),
            granularity_s: ask.minutes.map_or(86_400, |minutes| minutes * 60),
        }
    }

    pub(crate) fn timestamps(&self) -> Value {
        Value::Array(
            self.bars
                .iter()
                .map(|bar| bar.start.as_second().into())
                .collect(),
        )
    }

    pub(crate) fn closes(&self) -> Value {
        self.column(|bar| noisy(bar.close))
    }

    /// One value per bar; some bars are null as a whole, the last one never is.
    fn column(&self, value: impl Fn(&Bar) -> Value) -> Value {
        let last = self.bars.len().saturating_sub(1);
        let column = self.bars.iter().enumerate().map(|(position, bar)| {
            let every = if self.granularity_s == 86_400 {
                NULL_DAY_EVERY
            } else {
                NULL_BAR_EVERY
            };
            let null = universe::pick(self.null_key, bar.start.as_second(), every) == 0;
            if null && position < last {
                Value::Null
            } else {
                value(bar)
            }
        });
        Value::Array(column.collect())
    }
}

/// The row that stands for a holiday on the day after `date`: its close again, nothing traded.
/// Saturdays and Sundays have none.
fn holiday_row(world: &World, before: &Bar, date: Date) -> Option<Bar> {
    let next = date.tomorrow().ok()?;
    let weekend = next.weekday().to_monday_zero_offset() >= 5;
    if weekend || world.day.sessions.trades_on(next) {
        return None;
    }
    let start = world.day.sessions.regular_hours(next).0;
    let close = before.close;
    Some(Bar {
        start,
        open: close,
        high: close,
        low: close,
        close,
        volume: 0,
    })
}

/// A price as this provider writes it in a series: as a 32-bit float with its noise.
fn noisy(paise: i64) -> Value {
    f64::from((paise as f64 / 100.0) as f32).into()
}

/// Answers the chart of one symbol.
pub(crate) fn chart_answer(call: &Call<'_>, symbol: &str) -> Answer {
    if symbol == GHOST {
        return chart(json!({"meta": ghost_meta(), "indicators": {"quote": [{}]}}));
    }
    let Some(instrument) = call.world.universe.by_public(symbol) else {
        return error(404, "chart", "Not Found", "No data found, symbol may be delisted");
    };
    let ask = match Ask::of(call.request, "1d") {
        Ok(ask) => ask,
        Err(text) => return error(400, "chart", "Bad Request", &text),
    };
    let at = delayed(call);
    let tick = call.world.day.tick(instrument, at);
    let series = Series::of(call.world, instrument, &ask, at);
    if let (Some((from, to)), true) = (ask.period, series.bars.is_empty()) {
        let text = format!("Data doesn't exist for startDate = {from}, endDate = {to}");
        return error(400, "chart", "Bad Request", &text);
    }
    let quote = map([
        ("open", series.column(|bar| noisy(bar.open))),
        ("high", series.column(|bar| noisy(bar.high))),
        ("low", series.column(|bar| noisy(bar.low))),
        ("close", series.closes()),
        ("volume", series.column(|bar| bar.volume.into())),
    ]);
    let mut indicators = map([("quote", vec![quote].into())]);
    if ask.minutes.is_none() {
        indicators["adjclose"] = vec![map([("adjclose", series.closes())])].into();
    }
    chart(map([
        ("meta", meta(call, instrument, &tick, &ask, &series)),
        ("timestamp", series.timestamps()),
        ("indicators", indicators),
    ]))
}

/// Long lists are put in with `map`, which moves them; `json!` would copy them at each level.
fn chart(result: Value) -> Answer {
    let chart = map([("result", vec![result].into()), ("error", Value::Null)]);
    Answer::ok(map([("chart", chart)]))
}

/// The shell that is left of a retired symbol: no price, no currency.
pub(crate) fn ghost_meta() -> Value {
    json!({
        "currency": null, "symbol": GHOST, "exchangeName": "YHD", "instrumentType": "MUTUALFUND",
        "regularMarketTime": 1_451_901_600, "gmtoffset": -18_000, "timezone": "EST",
    })
}

/// The `meta` block of one instrument.
pub(crate) fn meta(
    call: &Call<'_>,
    instrument: &Instrument,
    tick: &Tick,
    ask: &Ask,
    series: &Series,
) -> Value {
    let exchange = if instrument.exchange == "BSE" {
        ("BSE", "BSE")
    } else {
        ("NSI", "NSE")
    };
    let hours = call.world.day.sessions.regular_hours(tick.date);
    let period = |start: Timestamp, end: Timestamp| {
        json!({
            "timezone": "IST", "start": start.as_second(), "end": end.as_second(),
            "gmtoffset": clock::OFFSET_S,
        })
    };
    let year: Vec<i64> = {
        // A rough band of the year, from one close a month, is enough for a field that nobody
        // trades on.
        let mut date = tick.date;
        let closes = (0..12).map(|_| {
            date = date.checked_sub(jiff::Span::new().days(30)).unwrap_or(date);
            call.world.day.close(instrument, date)
        });
        closes.chain([tick.last]).collect()
    };
    let mut meta = json!({
        "currency": "INR", "symbol": instrument.public_symbol.as_deref().unwrap_or_default(),
        "exchangeName": exchange.0, "fullExchangeName": exchange.1,
        "instrumentType": if instrument.is_index { "INDEX" } else { "EQUITY" },
        "firstTradeDate": 820_467_900, "regularMarketTime": call.stamp(tick.as_of).as_second(),
        "hasPrePostMarketData": false, "gmtoffset": clock::OFFSET_S, "timezone": "IST",
        "exchangeTimezoneName": "Asia/Kolkata", "regularMarketPrice": price(tick.last),
        "fiftyTwoWeekHigh": year.iter().max().map(|&p| price(p)),
        "fiftyTwoWeekLow": year.iter().min().map(|&p| price(p)),
        "regularMarketDayHigh": price(tick.high.max(tick.last)),
        "regularMarketDayLow": price(if tick.low > 0 { tick.low } else { tick.last }),
        "regularMarketVolume": tick.volume, "longName": instrument.name,
        "shortName": instrument.name, "chartPreviousClose": price(series.close_before),
    });
    if ask.minutes.is_some() && ask.period.is_none() {
        meta["previousClose"] = price(tick.previous_close);
    }
    meta["scale"] = 3.into();
    meta["priceHint"] = 2.into();
    meta["currentTradingPeriod"] = json!({
        "pre": period(hours.0, hours.0), "regular": period(hours.0, hours.1),
        "post": period(hours.1, hours.1),
    });
    meta["dataGranularity"] = ask.interval().into();
    meta["range"] = RANGE.into();
    meta["validRanges"] = vec![RANGE].into();
    meta
}

/// A renamed share. The provider still answers for its old symbol, with a shell of an answer.
pub(crate) const GHOST: &str = "TATAMOTORS.NS";

/// The instant whose prices this provider shows: it is behind the exchange.
pub(crate) fn delayed(call: &Call<'_>) -> Timestamp {
    let behind = SignedDuration::from_secs(call.world.settings.public_delay_s);
    call.prices_at.checked_sub(behind).unwrap_or(call.prices_at)
}

/// `{"<root>":{"result":null,"error":{…}}}`.
pub(crate) fn error(status: u16, root: &str, code: &str, description: &str) -> Answer {
    let error = json!({"code": code, "description": description});
    Answer::rejected(status, json!({root: {"result": null, "error": error}}))
}
