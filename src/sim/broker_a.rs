//! Broker A's API: header strictness, the session calls, the profile and the instruments dump.
//! Quotes, candles and the portfolio stand in files of their own. Connection threads run this.

pub(crate) mod envelope;
pub(crate) mod history;
pub(crate) mod packets;
pub(crate) mod portfolio;
pub(crate) mod quotes;
pub(crate) mod ticker;

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::faults::kind::Kind;
use super::server::answer::{Answer, Content};
use super::server::json::{Json, map};
use super::sessions::Login;
use super::world::Call;
use crate::base::ist;

use envelope::{error, hex, success};

/// Exchanges whose dump can be asked for; the simulated day trades on the first two only.
const EXCHANGES: [&str; 7] = ["NSE", "BSE", "NFO", "BFO", "CDS", "BCD", "MCX"];

/// Answers a request at `route`; `rest` is what stands after the route's path.
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
        "broker_a.profile" => success(Json::Map(profile(&login.user_id, false))),
        "broker_a.quote" | "broker_a.ohlc" | "broker_a.ltp" => quotes::answer(call, route),
        "broker_a.historical" => history::answer(call, rest),
        "broker_a.instruments" => instruments(call, rest),
        "broker_a.holdings" => portfolio::holdings(call, &login.user_id),
        _ => portfolio::positions(call, &login.user_id),
    }
}

/// What a fault answers in place of a route.
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

/// Of each API key one budget for the three quote calls, one for candles, one for everything else.
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

/// As it stands in the header, the form or the query; empty where there is none.
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

/// Whoever the `Authorization: token <api_key>:<access_token>` header says, while that is valid.
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
    let time = ist::zoned(login.at).strftime("%Y-%m-%d %H:%M:%S").to_string();
    let mut members = profile(&login.user_id, true);
    for (name, value) in [
        ("api_key", api_key.into()),
        ("public_token", "simulatedpublictoken".into()),
        ("enctoken", "simulatedenctoken".into()),
        ("refresh_token", "".into()),
        ("silo", "".into()),
        ("access_token", access_token.into()),
        ("login_time", time.into()),
    ] {
        members.push((name.to_owned(), value));
    }
    Json::Map(members)
}

fn profile(user_id: &str, with_avatar: bool) -> Vec<(String, Json)> {
    let texts = |items: &[&str]| Json::List(items.iter().map(|&item| item.into()).collect());
    let avatar = if with_avatar { "abc".into() } else { Json::Null };
    let members = [
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
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
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
        let tick_size = super::exchange::noise::rupees(row.tick_paise);
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
    if matches!(exchange, "" | "NSE") {
        // Rows with a column too few exist in the real thing.
        csv.push_str("8190209,31993,SIMBROKEN,0.0,,0.0,0.05,1,EQ,NSE,NSE\n");
    }
    let content = Content::Gzipped("text/csv", csv.into_bytes());
    Answer { status: 200, content, rejected: false }
}

#[cfg(test)]
#[path = "broker_a_tests.rs"]
mod tests;
