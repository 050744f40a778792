//! Broker A's three quote calls. The reply is a map keyed by what was asked for; an instrument that
//! does not exist is left out of it. Connection threads run this.

use rust_decimal::Decimal;

use super::envelope::{error, success};
use crate::base::ist;
use crate::sim::exchange::day::Tick;
use crate::sim::exchange::noise::{self, rupees};
use crate::sim::exchange::universe::Instrument;
use crate::sim::server::answer::Answer;
use crate::sim::server::json::{Json, map};
use crate::sim::world::Call;

/// Most instruments of one `/quote` call.
const QUOTE_INSTRUMENTS_MAX: usize = 500;
/// Most instruments of one `/quote/ohlc` or `/quote/ltp` call.
const SHORT_QUOTE_INSTRUMENTS_MAX: usize = 1_000;
/// Price levels on each side of the book; empty ones are zeros.
const DEPTH: usize = 5;

/// Answers one of the three calls.
pub(crate) fn answer(call: &Call<'_>, route: &str) -> Answer {
    let pairs = call.request.query_pairs();
    let asked: Vec<&str> =
        pairs.iter().filter(|(name, _)| name == "i").map(|(_, value)| value.as_str()).collect();
    let instruments_max = match route {
        "broker_a.quote" => QUOTE_INSTRUMENTS_MAX,
        _ => SHORT_QUOTE_INSTRUMENTS_MAX,
    };
    if asked.is_empty() {
        return error(400, "InputException", "Missing `i`.");
    }
    if asked.len() > instruments_max {
        let text = format!("Too many instruments: at most {instruments_max}.");
        return error(400, "InputException", &text);
    }
    let mut quotes: Vec<(String, Json)> = Vec::with_capacity(asked.len());
    let mut seen = std::collections::HashSet::new();
    for key in asked {
        let Some(instrument) = call.world.universe.by_key(key) else { continue };
        if !seen.insert(key) {
            continue;
        }
        let tick = call.tick(instrument);
        let quote = match route {
            "broker_a.quote" => full(call, instrument, &tick),
            "broker_a.ohlc" => map([
                ("instrument_token", instrument.token.into()),
                ("last_price", rupees(tick.last).into()),
                ("ohlc", ohlc(&tick)),
            ]),
            _ => map([
                ("instrument_token", instrument.token.into()),
                ("last_price", rupees(tick.last).into()),
            ]),
        };
        quotes.push((key.to_owned(), quote));
    }
    // No order is promised, so the order asked for must not be relied on.
    quotes.sort_by_key(|(key, _)| noise::key(call.world.settings.seed, key));
    success(Json::Map(quotes))
}

fn ohlc(tick: &Tick) -> Json {
    map([
        ("open", rupees(tick.open).into()),
        ("high", rupees(tick.high).into()),
        ("low", rupees(tick.low).into()),
        ("close", rupees(tick.previous_close).into()),
    ])
}

fn full(call: &Call<'_>, instrument: &Instrument, tick: &Tick) -> Json {
    let time = ist::zoned(call.stamp(tick.as_of)).strftime("%Y-%m-%d %H:%M:%S").to_string();
    if instrument.is_index {
        return map([
            ("instrument_token", instrument.token.into()),
            ("timestamp", time.into()),
            ("last_trade_time", Json::Null),
            ("last_price", rupees(tick.last).into()),
            ("net_change", 0.into()),
            ("lower_circuit_limit", 0.into()),
            ("upper_circuit_limit", 0.into()),
            ("ohlc", ohlc(tick)),
        ]);
    }
    let key = noise::key(call.world.settings.seed, &instrument.key);
    let second = tick.as_of.as_second();
    let in_hours = tick.open > 0;
    let average = if in_hours { (tick.open + tick.high + tick.low + tick.last) / 4 } else { 0 };
    let band = |percent: i64| rupees(tick.previous_close * percent / 100);
    let level = |position: usize, side: i64| {
        if !in_hours {
            return map([("price", 0.into()), ("quantity", 0.into()), ("orders", 0.into())]);
        }
        let away = instrument.tick_paise * position as i64;
        let quantity = 1 + noise::pick(key, second * 10 + side * 5 + away, 5_000);
        map([
            ("price", rupees(tick.last + side * away).into()),
            ("quantity", quantity.into()),
            ("orders", (1 + quantity / 400).into()),
        ])
    };
    let buy: Vec<Json> = (1..=DEPTH).map(|position| level(position, -1)).collect();
    let sell: Vec<Json> = (0..DEPTH).map(|position| level(position, 1)).collect();
    map([
        ("instrument_token", instrument.token.into()),
        ("timestamp", time.as_str().into()),
        ("last_trade_time", time.as_str().into()),
        ("last_price", rupees(tick.last).into()),
        ("last_quantity", (1 + noise::pick(key, second, 90)).into()),
        ("buy_quantity", noise::pick(key, second + 1, 200_000).into()),
        ("sell_quantity", noise::pick(key, second + 2, 200_000).into()),
        ("volume", tick.volume.into()),
        ("average_price", Decimal::new(average, 2).into()),
        ("oi", 0.into()),
        ("oi_day_high", 0.into()),
        ("oi_day_low", 0.into()),
        // Documented as the change, seen as 0 with a real move.
        ("net_change", 0.into()),
        ("lower_circuit_limit", band(90).into()),
        ("upper_circuit_limit", band(110).into()),
        ("ohlc", ohlc(tick)),
        ("depth", map([("buy", Json::List(buy)), ("sell", Json::List(sell))])),
    ])
}
