//! Broker A's API: header strictness, session calls, profile, instruments dump, candles and quotes.
//! The portfolio and the ticker have files of their own. Connection threads run this.

use std::fmt::Write;

use jiff::ToSpan;
use jiff::civil::Weekday;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::base::clock;
use crate::base::hex::hex;
use crate::sim::broker_a::history::history_answer;
use crate::sim::broker_a::portfolio;
use crate::sim::broker_a::quotes::quotes_answer;
use crate::sim::broker_a::responses::{error, stamp, success};
use crate::sim::exchange::universe::rupees;
use crate::sim::fault_kinds::Kind;
use crate::sim::server::message::{Answer, Content};
use crate::sim::sessions::Login;
use crate::sim::trades;
use crate::sim::world::{Call, ListingOrder, is_or_follows};

/// Exchanges whose dump can be requested; the simulated day trades on the first two only.
const EXCHANGES: [&str; 7] = ["NSE", "BSE", "NFO", "BFO", "CDS", "BCD", "MCX"];

/// Answers a request at `route`; `rest` is the remainder of its path.
pub(crate) fn answer(call: &Call<'_>, route: &str, rest: &str) -> Answer {
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
        "broker_a.profile" => success(profile(&login.user_id, &Value::Null)),
        "broker_a.quote" | "broker_a.ohlc" | "broker_a.ltp" => quotes_answer(call, route),
        "broker_a.historical" => history_answer(call, rest),
        "broker_a.instruments" => instruments(call, rest),
        "broker_a.trades" => success(trades::of_today(call, &login.user_id)),
        "broker_a.holdings" => success(portfolio::holdings(call, &login.user_id)),
        _ => success(portfolio::positions(call, &login.user_id)),
    }
}

/// The answer of a fault in place of a route.
pub(crate) fn fault(kind: Kind) -> Answer {
    match kind {
        Kind::BadRequest => error(400, "InputException", "Invalid request."),
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
    if !is_or_follows(&call.world.settings.broker_a.api_key, api_key) {
        return None;
    }
    call.world
        .broker_a
        .lock()
        .user_of(api_key, access_token, call.now)
        .cloned()
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
            let names = ["api_key", "request_token", "checksum"];
            let [api_key, request_token, checksum] = names.map(|name| value(&form, name));
            if [&api_key, &request_token, &checksum]
                .iter()
                .any(|text| text.is_empty())
            {
                return error(400, "InputException", "Missing `api_key`, token or `checksum`.");
            }
            if !is_or_follows(&app.api_key, &api_key) {
                return error(403, "TokenException", "Invalid `api_key`.");
            }
            if checksum != checksum_of(&api_key, request_token.as_bytes(), &app.api_secret) {
                return error(403, "TokenException", "Invalid `checksum`.");
            }
            let redeemed = call.world.broker_a.lock().redeem_request_token(
                &request_token,
                api_key.clone(),
                call.now,
            );
            let Some((access_token, login)) = redeemed else {
                return error(403, "TokenException", "Token is invalid or has expired.");
            };
            success(opened(&api_key, &access_token, &login))
        }
        "DELETE" => {
            let query = call.request.query_pairs();
            let api_key = value(&query, "api_key");
            let token = value(&query, "access_token");
            let ended = call.world.broker_a.lock().log_out(&api_key, &token);
            if !ended {
                return error(403, "TokenException", "Incorrect `api_key` or `access_token`.");
            }
            success(true.into())
        }
        _ => error(405, "GeneralException", "Invalid HTTP method."),
    }
}

/// The profile with the session that was opened.
fn opened(api_key: &str, access_token: &str, login: &Login) -> Value {
    let mut opened = profile(&login.user_id, &"abc".into());
    for (name, value) in [
        ("api_key", api_key),
        ("public_token", "simulatedpublictoken"),
        ("enctoken", "simulatedenctoken"),
        ("refresh_token", ""),
        ("silo", ""),
        ("access_token", access_token),
        ("login_time", &stamp(login.at)),
    ] {
        opened[name] = value.into();
    }
    opened
}

fn profile(user_id: &str, avatar: &Value) -> Value {
    json!({
        "user_id": user_id, "user_type": "individual", "email": "simulated@example.com",
        "user_name": "Simulated Investor", "user_shortname": "Simulated", "broker": "ZERODHA",
        "exchanges": ["BFO", "MCX", "NSE", "CDS", "BSE", "BCD", "MF", "NFO"],
        "products": ["CNC", "NRML", "MIS", "BO", "CO"],
        "order_types": ["MARKET", "LIMIT", "SL", "SL-M"],
        "avatar_url": avatar, "meta": {"demat_consent": "physical"},
    })
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
    let order = call.world.listing.lock();
    let listed = call.world.universe.all().iter();
    let listed = listed.filter(|row| exchange.is_empty() || row.exchange == exchange);
    let listed = listed.filter(|row| !order.without.contains(&row.key));
    for (number, row) in listed
        .take(order.rows_max.unwrap_or(usize::MAX))
        .enumerate()
    {
        for (_, inserted) in order.insert.iter().filter(|(at, _)| *at == number) {
            csv.push_str(inserted);
            csv.push('\n');
        }
        let name = if row.name.contains(',') {
            format!("\"{}\"", row.name)
        } else {
            row.name.clone()
        };
        let (segment, lot_size) = if row.is_index {
            ("INDICES", 0)
        } else {
            (row.exchange.as_str(), 1)
        };
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
        add_derivatives(&mut csv, call, &order);
    }
    let content = Content::Gzipped("text/csv", csv.into_bytes());
    Answer {
        status: 200,
        content,
        rejected: false,
    }
}

/// Rows of contracts: a future and an option of each share that takes part in the closing auction,
/// because it has derivatives, and of an index. They expire on the last Tuesday of a month.
fn add_derivatives(csv: &mut String, call: &Call<'_>, order: &ListingOrder) {
    let today = clock::zoned(call.now).date();
    let expiry = [today, today.last_of_month().saturating_add(1.day())]
        .map(|month| {
            month
                .nth_weekday_of_month(-1, Weekday::Tuesday)
                .unwrap_or(today)
        })
        .into_iter()
        .find(|expiry| *expiry >= today)
        .unwrap_or(today);
    let month = expiry.strftime("%y%b").to_string().to_uppercase();
    let shares = call.world.universe.all().iter();
    let shares = shares.filter(|row| row.exchange == "NSE" && !row.is_index && row.auction == 1);
    let names = std::iter::once("NIFTY").chain(shares.map(|row| row.symbol.as_str()));
    let names = names.filter(|name| !order.without.contains(&format!("NFO:{name}")));
    for (number, name) in (40_000..).zip(names) {
        for (contract, suffix, kind, segment, strike) in [
            (2 * number, "FUT", "FUT", "NFO-FUT", "0.0"),
            (2 * number + 1, "1000CE", "CE", "NFO-OPT", "1000.0"),
        ] {
            let token = contract * 256 + 2;
            let _ = writeln!(
                csv,
                "{token},{contract},{name}{month}{suffix},{name},0.0,{expiry},{strike},0.05,50,\
                 {kind},{segment},NFO"
            );
        }
    }
}

// ---- Envelope
//
// The form of broker A's answers, and the hexadecimal of its checksums.

/// Lower-case hex SHA-256 over the parts with nothing between them.
pub(crate) fn checksum_of(first: &str, second: &[u8], third: &str) -> String {
    hex(&Sha256::digest([first.as_bytes(), second, third.as_bytes()].concat()))
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
