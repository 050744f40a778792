//! Broker A's three quote calls. The reply is a map with the keys of the request; an instrument
//! that does not exist is left out. Connection threads run this.

use serde_json::{Value, json};

use crate::sim::broker_a::responses::{error, stamp, success};
use crate::sim::exchange::day::Tick;
use crate::sim::exchange::universe;
use crate::sim::exchange::universe::Instrument;
use crate::sim::server::message::{Answer, map, price};
use crate::sim::world::Call;

/// Most instruments of one `/quote` call.
const QUOTE_INSTRUMENTS_MAX: usize = 500;
/// Most instruments of one `/quote/ohlc` or `/quote/ltp` call.
const SHORT_QUOTE_INSTRUMENTS_MAX: usize = 1_000;
/// Price levels on each side of the book; empty ones are zeros.
const DEPTH: usize = 5;

/// Answers one of the three calls.
pub(crate) fn quotes_answer(call: &Call<'_>, route: &str) -> Answer {
    let pairs = call.request.query_pairs();
    let asked: Vec<&str> = pairs
        .iter()
        .filter(|(name, _)| name == "i")
        .map(|(_, value)| value.as_str())
        .collect();
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
    let mut quotes: Vec<(String, Value)> = Vec::with_capacity(asked.len());
    let mut seen = std::collections::HashSet::new();
    for key in asked {
        let Some(instrument) = call.world.universe.by_key(key) else {
            continue;
        };
        let is_left_out = call
            .world
            .listing
            .lock()
            .unquoted
            .iter()
            .any(|symbol| symbol == key);
        if is_left_out || !seen.insert(key) {
            continue;
        }
        let tick = call.tick_at_broker_a(instrument);
        let quote = match route {
            "broker_a.quote" => full(call, instrument, &tick),
            "broker_a.ohlc" => json!({
                "instrument_token": instrument.token, "last_price": price(tick.last),
                "ohlc": ohlc(&tick),
            }),
            _ => json!({"instrument_token": instrument.token, "last_price": price(tick.last)}),
        };
        quotes.push((key.to_owned(), quote));
    }
    // The broker promises no order, so clients must not rely on that of the request.
    quotes.sort_by_key(|(key, _)| universe::key(call.world.settings.seed, key));
    success(map(quotes))
}

fn ohlc(tick: &Tick) -> Value {
    json!({
        "open": price(tick.open), "high": price(tick.high), "low": price(tick.low),
        "close": price(tick.previous_close),
    })
}

fn full(call: &Call<'_>, instrument: &Instrument, tick: &Tick) -> Value {
    let time = stamp(call.stamp(tick.as_of));
    if instrument.is_index {
        return json!({
            "instrument_token": instrument.token, "timestamp": time, "last_trade_time": null,
            "last_price": price(tick.last), "net_change": 0, "lower_circuit_limit": 0,
            "upper_circuit_limit": 0, "ohlc": ohlc(tick),
        });
    }
    let key = universe::key(call.world.settings.seed, &instrument.key);
    let second = tick.as_of.as_second();
    let in_hours = tick.open > 0;
    let average = if in_hours {
        (tick.open + tick.high + tick.low + tick.last) / 4
    } else {
        0
    };
    let band = |percent: i64| price(tick.base * percent / 100);
    let shown = |level: &Level| {
        let price = if in_hours {
            price(level.paise)
        } else {
            0.into()
        };
        let quantity = level.quantity.into();
        let orders = level.orders.into();
        map([("price", price), ("quantity", quantity), ("orders", orders)])
    };
    let book = book(call.world.settings.seed, instrument, tick);
    let [buy, sell]: [Vec<Value>; 2] = book.map(|side| side.iter().map(shown).collect());
    let mut full = json!({
        "instrument_token": instrument.token, "timestamp": time, "last_trade_time": time,
        "last_price": price(tick.last), "last_quantity": 1 + universe::pick(key, second, 90),
        "buy_quantity": universe::pick(key, second + 1, 200_000),
        "sell_quantity": universe::pick(key, second + 2, 200_000),
        "volume": tick.volume, "average_price": price(average),
        "oi": 0, "oi_day_high": 0, "oi_day_low": 0,
        // Documented as the change, observed as 0 after a real move.
        "net_change": 0,
        "lower_circuit_limit": band(90), "upper_circuit_limit": band(110), "ohlc": ohlc(tick),
    });
    full["depth"] = map([("buy", Value::Array(buy)), ("sell", Value::Array(sell))]);
    full
}

/// A price at which shares are offered or wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Level {
    pub(super) paise: i64,
    pub(super) quantity: i64,
    pub(super) orders: i64,
}

/// The buyers and the sellers of a share, the best first; zeros outside trading hours.
pub(super) fn book(seed: u64, instrument: &Instrument, tick: &Tick) -> [[Level; DEPTH]; 2] {
    let key = universe::key(seed, &instrument.key);
    let second = tick.as_of.as_second();
    let level = |position: usize, side: i64| {
        if tick.open == 0 {
            return Level::default();
        }
        let away = instrument.tick_paise * position as i64;
        let quantity = 1 + universe::pick(key, second * 10 + side * 5 + away, 5_000);
        Level {
            paise: tick.last + side * away,
            quantity,
            orders: 1 + quantity / 400,
        }
    };
    [
        std::array::from_fn(|position| level(position + 1, -1)),
        std::array::from_fn(|position| level(position, 1)),
    ]
}
