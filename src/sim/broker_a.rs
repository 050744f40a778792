//! Broker A's API: header strictness, session calls, profile, instruments dump, candles and quotes.
//! The portfolio and the ticker have files of their own. Connection threads run this.

use std::fmt::Write;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use rust_decimal::Decimal;
use sha2::{Digest, Sha256};

use crate::base::clock;
use crate::sim::exchange::day::{Bar, Tick, regular_hours};
use crate::sim::exchange::universe;
use crate::sim::exchange::universe::{Instrument, rupees};
use crate::sim::faults::Kind;
use crate::sim::server::message::{Answer, Content, Json, map};
use crate::sim::sessions::Login;
use crate::sim::world::Call;

pub(crate) mod portfolio;
pub(crate) mod ticker;

/// Exchanges whose dump can be requested; the simulated day trades on the first two only.
const EXCHANGES: [&str; 7] = ["NSE", "BSE", "NFO", "BFO", "CDS", "BCD", "MCX"];

/// Answers a request at `route`; `rest` is the remainder of its path.
pub(super) fn answer(call: &Call<'_>, route: &str, rest: &str) -> Answer {
    if call.request.header("x-kite-version") != Some("3") {
        return error(400, "InputException", "Missing or unknown `X-Kite-Version`.");
    }
    if !within_limit(call, route) {
        return error(429, "NetworkException", "Too many requests");
    }
    if route == "broker_a.session" {
        return session(call);
    }
    if call.request.method != "GET" {
        return error(405, "GeneralException", "Invalid HTTP method.");
    }
    if route == "broker_a.instruments" && call.request.header("authorization").is_none() {
        return instruments(call, rest);
    }
    let Some(login) = login(call) else {
        return error(403, "TokenException", "Incorrect `api_key` or `access_token`.");
    };
    let market_data = matches!(
        route,
        "broker_a.quote" | "broker_a.ohlc" | "broker_a.ltp" | "broker_a.historical"
    );
    if market_data && !call.world.settings.broker_a.market_data {
        return error(403, "PermissionException", "Insufficient permission for that call.");
    }
    match route {
        "broker_a.profile" => success(map(profile(&login.user_id, false))),
        "broker_a.quote" | "broker_a.ohlc" | "broker_a.ltp" => quotes_answer(call, route),
        "broker_a.historical" => history_answer(call, rest),
        "broker_a.instruments" => instruments(call, rest),
        "broker_a.holdings" => portfolio::holdings(call, &login.user_id),
        _ => portfolio::positions(call, &login.user_id),
    }
}

/// The answer of a fault in place of a route.
pub(super) fn fault(kind: Kind) -> Answer {
    match kind {
        Kind::RateLimit => error(429, "NetworkException", "Too many requests"),
        Kind::ExpiredToken => {
            error(403, "TokenException", "Incorrect `api_key` or `access_token`.")
        }
        Kind::NoPermission => {
            error(403, "PermissionException", "Insufficient permission for that call.")
        }
        _ => error(200, "GeneralException", "Something went wrong. Please try again."),
    }
}

/// Each API key has one budget for the three quote calls, one for candles and one for all other
/// calls.
fn within_limit(call: &Call<'_>, route: &str) -> bool {
    call.within_limit(|limits, now_ms| {
        let of_key = limits.of(&api_key(call));
        let window = match route {
            "broker_a.quote" | "broker_a.ohlc" | "broker_a.ltp" => &mut of_key.quotes,
            "broker_a.historical" => &mut of_key.candles,
            _ => &mut of_key.broker_a,
        };
        window.admit(now_ms)
    })
}

/// The API key in the header, the form or the query; empty if there is none.
fn api_key(call: &Call<'_>) -> String {
    let header = call.request.header("authorization");
    if let Some((api_key, _)) = header.and_then(|it| it.strip_prefix("token ")?.split_once(':')) {
        return api_key.to_owned();
    }
    let mut pairs = call.request.form_pairs().unwrap_or_default();
    pairs.extend(call.request.query_pairs());
    let named = pairs.into_iter().find(|(name, _)| name == "api_key");
    named.map(|(_, api_key)| api_key).unwrap_or_default()
}

/// The login of the header `Authorization: token <api_key>:<access_token>`, while it is valid.
fn login(call: &Call<'_>) -> Option<Login> {
    let header = call.request.header("authorization")?;
    let (api_key, access_token) = header.strip_prefix("token ")?.split_once(':')?;
    if !call.world.settings.broker_a.knows(api_key) {
        return None;
    }
    call.world.broker_a.lock().user_of(api_key, access_token, call.now).cloned()
}

/// `POST` exchanges a request token, `DELETE` ends an access token.
fn session(call: &Call<'_>) -> Answer {
    let app = &call.world.settings.broker_a;
    let value = |pairs: &[(String, String)], name: &str| {
        let found = pairs.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    match call.request.method.as_str() {
        "POST" => {
            let Some(form) = call.request.form_pairs() else {
                return error(400, "InputException", "The body has to be a form.");
            };
            let request_token = value(&form, "request_token");
            let checksum = value(&form, "checksum");
            if value(&form, "api_key").is_empty() || request_token.is_empty() || checksum.is_empty()
            {
                return error(400, "InputException", "Missing `api_key`, token or `checksum`.");
            }
            let api_key = value(&form, "api_key");
            if !app.knows(&api_key) {
                return error(403, "TokenException", "Invalid `api_key`.");
            }
            if checksum != checksum_of(&api_key, &request_token, &app.api_secret) {
                return error(403, "TokenException", "Invalid `checksum`.");
            }
            let redeemed =
                call.world.broker_a.lock().redeem(&request_token, api_key.clone(), call.now);
            let Some((access_token, login)) = redeemed else {
                return error(403, "TokenException", "Token is invalid or has expired.");
            };
            success(opened(&api_key, access_token, &login))
        }
        "DELETE" => {
            let query = call.request.query_pairs();
            let (api_key, token) = (value(&query, "api_key"), value(&query, "access_token"));
            let ended = call.world.broker_a.lock().log_out(&api_key, &token);
            if !ended {
                return error(403, "TokenException", "Incorrect `api_key` or `access_token`.");
            }
            success(true.into())
        }
        _ => error(405, "GeneralException", "Invalid HTTP method."),
    }
}

/// Lower-case hex SHA-256 over the three values with nothing between them.
fn checksum_of(api_key: &str, request_token: &str, api_secret: &str) -> String {
    hex(&Sha256::new()
        .chain_update(api_key)
        .chain_update(request_token)
        .chain_update(api_secret)
        .finalize())
}

fn opened(api_key: &str, access_token: String, login: &Login) -> Json {
    let time = clock::zoned(login.at).strftime("%Y-%m-%d %H:%M:%S").to_string();
    let session = [
        ("api_key", api_key.into()),
        ("public_token", "simulatedpublictoken".into()),
        ("enctoken", "simulatedenctoken".into()),
        ("refresh_token", "".into()),
        ("silo", "".into()),
        ("access_token", access_token.into()),
        ("login_time", time.into()),
    ];
    map(profile(&login.user_id, true).into_iter().chain(session))
}

fn profile(user_id: &str, with_avatar: bool) -> [(&'static str, Json); 11] {
    let texts = |items: &[&str]| Json::List(items.iter().map(|&item| item.into()).collect());
    let avatar = if with_avatar { "abc".into() } else { Json::Null };
    [
        ("user_id", user_id.into()),
        ("user_type", "individual".into()),
        ("email", "simulated@example.com".into()),
        ("user_name", "Simulated Investor".into()),
        ("user_shortname", "Simulated".into()),
        ("broker", "ZERODHA".into()),
        ("exchanges", texts(&["BFO", "MCX", "NSE", "CDS", "BSE", "BCD", "MF", "NFO"])),
        ("products", texts(&["CNC", "NRML", "MIS", "BO", "CO"])),
        ("order_types", texts(&["MARKET", "LIMIT", "SL", "SL-M"])),
        ("avatar_url", avatar),
        ("meta", map([("demat_consent", "physical".into())])),
    ]
}

/// The dump of all exchanges, or of one. Always compressed.
fn instruments(call: &Call<'_>, exchange: &str) -> Answer {
    if !exchange.is_empty() && !EXCHANGES.contains(&exchange) {
        return error(400, "InputException", "Invalid `exchange`.");
    }
    let mut csv = String::from(
        "instrument_token,exchange_token,tradingsymbol,name,last_price,expiry,strike,tick_size,\
         lot_size,instrument_type,segment,exchange\n",
    );
    let listed = call.world.universe.all().iter();
    for row in listed.filter(|row| exchange.is_empty() || row.exchange == exchange) {
        let name =
            if row.name.contains(',') { format!("\"{}\"", row.name) } else { row.name.clone() };
        let (segment, lot_size) =
            if row.is_index { ("INDICES", 0) } else { (row.exchange.as_str(), 1) };
        let tick_size = rupees(row.tick_paise);
        let _ = writeln!(
            csv,
            "{},{},{},{name},0.0,,0.0,{tick_size},{lot_size},EQ,{segment},{}",
            row.token,
            row.exchange_token(),
            row.symbol,
            row.exchange
        );
    }
    if matches!(exchange, "" | "NFO") {
        csv.push_str("11931906,46609,SIM26DECFUT,SIM,0.0,2026-12-29,0.0,0.1,50,FUT,NFO-FUT,NFO\n");
    }
    let content = Content::Gzipped("text/csv", csv.into_bytes());
    Answer { status: 200, content, rejected: false }
}

// ---- Envelope
//
// The form of broker A's answers, and the hexadecimal of its checksums.

/// `{"status":"success","data":…}`.
pub(crate) fn success(data: Json) -> Answer {
    Answer::ok(map([("status", "success".into()), ("data", data)]))
}

/// `{"status":"error",…}`.
pub(crate) fn error(status: u16, error_type: &str, message: &str) -> Answer {
    let body = map([
        ("status", "error".into()),
        ("message", message.into()),
        ("data", Json::Null),
        ("error_type", error_type.into()),
    ]);
    Answer::rejected(status, body)
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}"); // writing to a String cannot fail
        out
    })
}

// ---- History
//
// Broker A's candles. Connection threads run this.

/// Intervals, their minutes (`None` is a day) and the most days one call may span.
const INTERVALS: [(&str, Option<i64>, i64); 8] = [
    ("minute", Some(1), 60),
    ("3minute", Some(3), 100),
    ("5minute", Some(5), 100),
    ("10minute", Some(10), 100),
    ("15minute", Some(15), 200),
    ("30minute", Some(30), 200),
    ("60minute", Some(60), 400),
    ("day", None, 2_000),
];

/// Answers `/instruments/historical/{token}/{interval}`; `rest` is `{token}/{interval}`.
pub(crate) fn history_answer(call: &Call<'_>, rest: &str) -> Answer {
    let bad = |text: &str| error(400, "InputException", text);
    let Some((token, interval)) = rest.split_once('/') else {
        return bad("Invalid path.");
    };
    let known = INTERVALS.iter().find(|(name, ..)| *name == interval);
    let Some(&(_, minutes, span_days_max)) = known else {
        return bad("Invalid `interval`.");
    };
    let instrument = token.parse().ok().and_then(|token| call.world.universe.by_token(token));
    let Some(instrument) = instrument else {
        return bad("Invalid `instrument_token`.");
    };
    let bound = |name| call.request.query_value(name).and_then(|text| parsed(&text));
    let (Some(from), Some(to)) = (bound("from"), bound("to")) else {
        return bad("Invalid `from` or `to`.");
    };
    if from > to {
        return bad("`from` is after `to`.");
    }
    let days = (to.date() - from.date()).get_days();
    if i64::from(days) > span_days_max {
        return bad(&format!("interval exceeds max limit: {span_days_max} days"));
    }
    let oi = call.request.query_value("oi").as_deref() == Some("1");
    let (from, to) = (clock::instant(from), clock::instant(to));
    let mut candles = Vec::new();
    let mut date: Date = clock::zoned(from).date();
    let last = call.tick(instrument);
    let end = clock::zoned(to).date().min(last.date);
    while date <= end {
        if call.world.day.sessions().trades_on(date) {
            let bars = match minutes {
                Some(minutes) => call.world.day.bars(instrument, date, minutes, call.prices_at),
                None if date == last.date && last.open == 0 => Vec::new(),
                None if date == last.date => vec![Bar {
                    start: regular_hours(date).0,
                    open: last.open,
                    high: last.high,
                    low: last.low,
                    close: last.last,
                    volume: last.volume,
                }],
                None => vec![call.world.day.day_bar(instrument, date)],
            };
            // A day's candle is selected by its date, the others by their start.
            let shown = bars.iter().map(|bar| (stamp(bar, minutes), bar));
            candles.extend(
                shown
                    .filter(|(start, _)| (from..=to).contains(start))
                    .map(|(start, bar)| candle(start, bar, oi)),
            );
        }
        let Ok(next) = date.tomorrow() else { break };
        date = next;
    }
    success(map([("candles", Json::List(candles))]))
}

/// `yyyy-mm-dd hh:mm:ss`, or a date alone.
fn parsed(text: &str) -> Option<DateTime> {
    let whole = DateTime::strptime("%Y-%m-%d %H:%M:%S", text);
    whole.or_else(|_| Date::strptime("%Y-%m-%d", text).map(|date| date.at(0, 0, 0, 0))).ok()
}

/// A candle's start; a day's is midnight.
fn stamp(bar: &Bar, minutes: Option<i64>) -> Timestamp {
    if minutes.is_some() {
        return bar.start;
    }
    clock::instant(clock::zoned(bar.start).date().at(0, 0, 0, 0))
}

fn candle(start: Timestamp, bar: &Bar, oi: bool) -> Json {
    // The offset has no colon.
    let start = clock::zoned(start).strftime("%Y-%m-%dT%H:%M:%S+0530").to_string();
    let mut candle: Vec<Json> = vec![start.into()];
    candle.extend([bar.open, bar.high, bar.low, bar.close].map(|price| rupees(price).into()));
    candle.push(bar.volume.into());
    if oi {
        candle.push(0.into());
    }
    Json::List(candle)
}

// ---- Quotes
//
// Broker A's three quote calls. The reply is a map with the keys of the request; an instrument that
// does not exist is left out. Connection threads run this.

/// Most instruments of one `/quote` call.
const QUOTE_INSTRUMENTS_MAX: usize = 500;
/// Most instruments of one `/quote/ohlc` or `/quote/ltp` call.
const SHORT_QUOTE_INSTRUMENTS_MAX: usize = 1_000;
/// Price levels on each side of the book; empty ones are zeros.
const DEPTH: usize = 5;

/// Answers one of the three calls.
pub(crate) fn quotes_answer(call: &Call<'_>, route: &str) -> Answer {
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
    // The broker promises no order, so clients must not rely on that of the request.
    quotes.sort_by_key(|(key, _)| universe::key(call.world.settings.seed, key));
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
    let time = clock::zoned(call.stamp(tick.as_of)).strftime("%Y-%m-%d %H:%M:%S").to_string();
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
    let key = universe::key(call.world.settings.seed, &instrument.key);
    let second = tick.as_of.as_second();
    let in_hours = tick.open > 0;
    let average = if in_hours { (tick.open + tick.high + tick.low + tick.last) / 4 } else { 0 };
    let band = |percent: i64| rupees(tick.previous_close * percent / 100);
    let shown = |level: &Level| {
        let price = if in_hours { rupees(level.paise).into() } else { 0.into() };
        let (quantity, orders) = (level.quantity.into(), level.orders.into());
        map([("price", price), ("quantity", quantity), ("orders", orders)])
    };
    let book = book(call.world.settings.seed, instrument, tick);
    let [buy, sell]: [Vec<Json>; 2] = book.map(|side| side.iter().map(shown).collect());
    map([
        ("instrument_token", instrument.token.into()),
        ("timestamp", time.as_str().into()),
        ("last_trade_time", time.as_str().into()),
        ("last_price", rupees(tick.last).into()),
        ("last_quantity", (1 + universe::pick(key, second, 90)).into()),
        ("buy_quantity", universe::pick(key, second + 1, 200_000).into()),
        ("sell_quantity", universe::pick(key, second + 2, 200_000).into()),
        ("volume", tick.volume.into()),
        ("average_price", Decimal::new(average, 2).into()),
        ("oi", 0.into()),
        ("oi_day_high", 0.into()),
        ("oi_day_low", 0.into()),
        // Documented as the change, observed as 0 after a real move.
        ("net_change", 0.into()),
        ("lower_circuit_limit", band(90).into()),
        ("upper_circuit_limit", band(110).into()),
        ("ohlc", ohlc(tick)),
        ("depth", map([("buy", Json::List(buy)), ("sell", Json::List(sell))])),
    ])
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
        Level { paise: tick.last + side * away, quantity, orders: 1 + quantity / 400 }
    };
    [
        std::array::from_fn(|position| level(position + 1, -1)),
        std::array::from_fn(|position| level(position, 1)),
    ]
}

#[cfg(test)]
#[path = "broker_a_tests.rs"]
mod tests;
