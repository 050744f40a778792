//! The routes under `/sim/control/`: switch faults on and off, read the counters, log people in and
//! out, give them shares, set prices, split and halt shares, roll previous closes over. Bodies are
//! small JSON documents;
//! anything that makes no sense is answered 400 with the reason.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::base::clock;
use crate::sim::exchange::day::SplitOrder;
use crate::sim::exchange::trading::TradingOrder;
use crate::sim::exchange::universe::Instrument;
use crate::sim::faults::FaultOrder;
use crate::sim::limits::Sent;
use crate::sim::server::message::{Answer, Request, map, price};
use crate::sim::sessions::Login;
use crate::sim::world::{ListingOrder, World};

/// Longest token or user id that is accepted.
const NAME_BYTES_MAX: usize = 128;
/// Most instruments of one call.
const INSTRUMENTS_MAX: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenBody {
    access_token: String,
    user_id: Option<String>,
    api_key: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct UserBody {
    user_id: Option<String>,
}

/// Symbols whose prices stand at broker A, though they move at the exchange.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StandOrder {
    symbols: Vec<String>,
}

/// Whether the brokers roll their previous closes over once a session is over.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RolloverBody {
    after_close: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchBody {
    symbols: Vec<String>,
}

/// Answers `METHOD /sim/control/{path}`.
pub(crate) fn answer(world: &World, request: &Request, path: &str) -> Answer {
    if let Some(refused) = refusal_of_page(request) {
        return refused;
    }
    let done =
        match (request.method.as_str(), path) {
            ("POST", "faults") => body(request).and_then(|order: FaultOrder| {
                world.faults.lock().add(order, world.clock.now())?;
                Ok(map([("faults", world.faults.lock().to_json())]))
            }),
            ("GET", "faults") => Ok(map([("faults", world.faults.lock().to_json())])),
            ("DELETE", "faults") => Ok(map([("cleared", world.faults.lock().clear().into())])),
            ("GET", "stats") => Ok(stats(world)),
            ("GET", "exchange") => exchange(world, request),
            ("POST", "ticker/watch") => body(request).and_then(|given| watch(world, &given)),
            ("GET", "ticker/sent") => Ok(sent(world)),
            ("POST", "broker_a/token") => body(request).and_then(|given| set_token(world, given)),
            ("POST", "broker_a/expire") => {
                Ok(map([("expired", world.broker_a.lock().expire_tokens().into())]))
            }
            ("POST", "broker_a/request_token") => user(request, &world.settings.broker_a.user_id)
                .map(|user| {
                    let token = world
                        .broker_a
                        .lock()
                        .issue_request_token(user, world.clock.now());
                    map([("request_token", token.into())])
                }),
            ("POST", "broker_b/api_session") => user(request, &world.settings.broker_b.user_id)
                .map(|user| {
                    let session = world
                        .broker_b
                        .lock()
                        .issue_api_session(user, world.clock.now());
                    map([("api_session", session.into())])
                }),
            ("POST", "broker_b/expire") => {
                let mut logins = world.broker_b.lock();
                logins.expire_codes();
                Ok(map([("expired", logins.expire_tokens().into())]))
            }
            (
                "POST",
                account @ ("broker_a/holdings" | "broker_a/positions" | "broker_a/trades"
                | "broker_b/holdings" | "broker_b/positions" | "broker_b/trades"),
            ) => set_account(world, request, account).map(rows),
            ("POST", "broker_a/instruments") => body(request).map(|order: ListingOrder| {
                let rows = order.insert.len();
                *world.listing.lock() = order;
                map([("inserted", rows.into())])
            }),
            ("POST", "broker_a/stand") => body(request).map(|order| stand(world, order)),
            ("POST", "rollover") => body(request).map(|order: RolloverBody| {
                world.rolls_over.store(order.after_close, Ordering::Relaxed);
                map([("after_close", order.after_close.into())])
            }),
            ("POST", "split") => body(request).and_then(|order| split(world, &order)),
            ("POST", "trading") => body(request).and_then(|order| trade(world, &order)),
            _ => return error(404, "no such control route, or not with this method"),
        };
    done.map_or_else(|reason| error(400, &reason), Answer::ok)
}

/// Refuses what the page of another site can send without being asked: a browser adds `Origin` or
/// `Sec-Fetch-Site`, and a page may send plain text anywhere. The simulator's own pages, at an
/// address and not at a name that leads here, may use the control. Programs send neither header.
fn refusal_of_page(request: &Request) -> Option<Answer> {
    if request.method == "GET" {
        return None;
    }
    let kind = request.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if ["text/plain", "multipart/form-data"]
        .iter()
        .any(|simple| kind.eq_ignore_ascii_case(simple))
    {
        return Some(error(415, "send the body as application/json"));
    }
    let host = request.header("host").unwrap_or_default();
    let name = host.parse::<SocketAddr>().map_or_else(
        |_| {
            host.rsplit_once(':')
                .map_or(host, |(name, _)| name)
                .to_ascii_lowercase()
        },
        |address| address.ip().to_string(),
    );
    let is_here = name == "localhost" || name.parse::<IpAddr>().is_ok();
    let own = format!("http://{host}");
    let is_foreign = |origin: &str| !(is_here && origin.eq_ignore_ascii_case(&own));
    let from_page = request.header("origin").is_some_and(is_foreign)
        || request
            .header("sec-fetch-site")
            .is_some_and(|site| !matches!(site, "same-origin" | "none"));
    from_page.then(|| error(403, "the page of another site may not use the control"))
}

fn error(status: u16, reason: &str) -> Answer {
    Answer::rejected(status, map([("error", reason.into())]))
}

fn body<T: DeserializeOwned>(request: &Request) -> Result<T, String> {
    sonic_rs::from_slice(&request.body).map_err(|error| {
        // The first line gives the reason, the others draw the position.
        format!("body: {}", error.to_string().lines().next().unwrap_or_default())
    })
}

/// The user named in the body, or `usual` where there is none.
fn user(request: &Request, usual: &str) -> Result<String, String> {
    let given = if request.body.is_empty() {
        UserBody::default()
    } else {
        body(request)?
    };
    given
        .user_id
        .map_or(Ok(usual.to_owned()), |user_id| named("user_id", user_id))
}

fn named(what: &str, text: String) -> Result<String, String> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX || text.contains(char::is_whitespace) {
        return Err(format!("{what}: 1 to {NAME_BYTES_MAX} bytes without white space"));
    }
    Ok(text)
}

fn set_token(world: &World, given: TokenBody) -> Result<Value, String> {
    let token = named("access_token", given.access_token)?;
    let usual = &world.settings.broker_a;
    let or_usual = |what, given: Option<String>, usual: &str| {
        given.map_or_else(|| Ok(usual.to_owned()), |text| named(what, text))
    };
    let user_id = or_usual("user_id", given.user_id, &usual.user_id)?;
    let api_key = or_usual("api_key", given.api_key, &usual.api_key)?;
    let login = Login {
        user_id,
        api_key,
        at: world.clock.now(),
    };
    let login = world.broker_a.lock().log_in(token, login);
    Ok(map([
        ("user_id", login.user_id.into()),
        ("login_time", clock::iso(login.at).into()),
    ]))
}

fn share<'a>(world: &'a World, symbol: &str) -> Result<&'a Instrument, String> {
    let named = world
        .universe
        .by_key(symbol)
        .filter(|named| !named.is_index);
    named.ok_or_else(|| format!("no share {symbol:?}"))
}

/// Sets what an account at a broker has, by the path of its control route. Returns the number of
/// rows.
fn set_account(world: &World, request: &Request, path: &str) -> Result<usize, String> {
    let accounts = || world.accounts.lock();
    match path {
        "broker_a/holdings" => body(request).and_then(|order| accounts().set_broker_a(order)),
        "broker_b/holdings" => body(request).and_then(|order| accounts().set_broker_b(order)),
        "broker_a/positions" => {
            body(request).and_then(|order| accounts().set_positions(false, order))
        }
        "broker_b/positions" => {
            body(request).and_then(|order| accounts().set_positions(true, order))
        }
        "broker_a/trades" => body(request).and_then(|order| accounts().set_trades(false, order)),
        _ => body(request).and_then(|order| accounts().set_trades(true, order)),
    }
}

fn rows(count: usize) -> Value {
    map([("rows", count.into())])
}

/// The symbols whose prices stand at broker A from now on; those that stood go on to, and others
/// move again.
fn stand(world: &World, order: StandOrder) -> Value {
    let mut stands = world.stands.lock();
    let before = std::mem::take(&mut *stands);
    for symbol in order.symbols {
        let since = before
            .get(&symbol)
            .copied()
            .unwrap_or_else(|| world.clock.now());
        stands.insert(symbol, since);
    }
    rows(stands.len())
}

/// Sets a price of a share or an index, or halts it.
fn trade(world: &World, order: &TradingOrder) -> Result<Value, String> {
    let symbol = &order.symbol;
    let named = world
        .universe
        .by_key(symbol)
        .ok_or_else(|| format!("no instrument {symbol:?}"))?;
    world.day.trade(named, order, world.clock.now())?;
    Ok(map([("symbol", named.key.as_str().into())]))
}

/// Splits every listing of the company that the order names.
fn split(world: &World, order: &SplitOrder) -> Result<Value, String> {
    let named = share(world, &order.symbol)?;
    let split = order.split(clock::zoned(world.clock.now()).date())?;
    let mut symbols = Vec::new();
    for instrument in world.universe.all() {
        let same_company = !named.isin.is_empty() && instrument.isin == named.isin;
        if same_company || instrument.token == named.token {
            world.day.split(instrument, split);
            symbols.push(instrument.key.as_str().into());
        }
    }
    Ok(map([("split", Value::Array(symbols))]))
}

/// The exchange's own ticks at an instant, whatever faults are set: last price, previous close and
/// time of each `i`.
fn exchange(world: &World, request: &Request) -> Result<Value, String> {
    let at = request.query_value("at").unwrap_or_default();
    let at: Timestamp = at
        .parse()
        .map_err(|_| "at: an instant with its offset".to_owned())?;
    let pairs = request.query_pairs();
    let asked = pairs
        .iter()
        .filter(|(name, _)| name == "i")
        .take(INSTRUMENTS_MAX);
    let ticks = asked.filter_map(|(_, key)| {
        let tick = world.day.tick(world.universe.by_key(key)?, at);
        let shown = json!({
            "last_price": price(tick.last), "previous_close": price(tick.previous_close),
            "as_of": clock::iso(tick.as_of),
        });
        Some((key.clone(), shown))
    });
    Ok(map([("at", clock::iso(at).into()), ("ticks", map(ticks))]))
}

/// Remembers the prices that broker A's WebSocket sends for these instruments. A test computes from
/// them how old a price is when it reaches a client of the service.
fn watch(world: &World, given: &WatchBody) -> Result<Value, String> {
    if given.symbols.len() > INSTRUMENTS_MAX {
        return Err(format!("symbols: at most {INSTRUMENTS_MAX}"));
    }
    let named = |symbol: &String| {
        let found = world
            .universe
            .by_key(symbol)
            .map(|instrument| instrument.token);
        found.ok_or_else(|| format!("no instrument {symbol:?}"))
    };
    let tokens = given
        .symbols
        .iter()
        .map(named)
        .collect::<Result<BTreeSet<i64>, _>>()?;
    let watched = tokens.len();
    world.tickers.lock().watch(tokens);
    Ok(map([("watched", watched.into())]))
}

fn sent(world: &World) -> Value {
    let sent: Vec<Sent> = world.tickers.lock().sent().copied().collect();
    let shown = sent.iter().filter_map(|sent| {
        Some(json!({
            "symbol": world.universe.by_token(sent.token)?.key, "last_price": price(sent.paise),
            "as_of": clock::iso(sent.as_of), "sent_ms": sent.at_ms,
        }))
    });
    map([("sent", Value::Array(shown.collect()))])
}

fn stats(world: &World) -> Value {
    let faults = world.faults.lock().to_json();
    let refused = world.refused_connections.load(Ordering::Relaxed);
    let tickers = world.tickers.lock();
    let stats = world.stats.lock();
    json!({
        "requests": stats.requests, "rejected": stats.rejected,
        "max_quote_calls_in_1s": stats.quote_calls_in_1s_max, "refused_connections": refused,
        "ticker_connections": tickers.connections(), "ticker_subscribed": tickers.subscribed,
        "faults": faults, "now": clock::iso(world.clock.now()), "now_ms": world.clock.now_ms(),
        "seed": world.settings.seed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(method: &str, headers: &[(&str, &str)]) -> Option<u16> {
        let host = ("Host", "127.0.0.1:8081");
        let given = headers.iter().any(|(name, _)| *name == "Host");
        let headers = headers.iter().chain((!given).then_some(&host));
        let headers = headers
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let request = Request::of(method, "/sim/control/faults", headers, b"{}".to_vec());
        refusal_of_page(&request).map(|answer| answer.status)
    }

    #[test]
    fn a_page_of_another_site_cannot_use_the_control_and_programs_can() {
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        for (method, headers, status) in [
            ("POST", &[][..], None),
            ("POST", &[("Content-Type", "application/json")], None),
            // curl -d
            ("POST", &[form], None),
            ("DELETE", &[], None),
            ("POST", &[("Origin", "http://127.0.0.1:8081"), form], None),
            (
                "POST",
                &[
                    ("Origin", "http://127.0.0.1:8081"),
                    ("Sec-Fetch-Site", "same-origin"),
                ],
                None,
            ),
            (
                "POST",
                &[
                    ("Host", "localhost:8081"),
                    ("Origin", "http://localhost:8081"),
                ],
                None,
            ),
            ("POST", &[("Host", "[::1]:8081"), ("Origin", "http://[::1]:8081")], None),
            ("POST", &[("Content-Type", "text/plain")], Some(415)),
            ("POST", &[("Content-Type", "Text/Plain; charset=utf-8")], Some(415)),
            ("POST", &[("Content-Type", "multipart/form-data; boundary=x")], Some(415)),
            ("POST", &[("Origin", "https://evil.example"), form], Some(403)),
            ("POST", &[("Origin", "null")], Some(403)),
            ("POST", &[("Origin", "http://127.0.0.1:8080")], Some(403)),
            ("POST", &[("Origin", "https://127.0.0.1:8081")], Some(403)),
            ("DELETE", &[("Origin", "https://evil.example")], Some(403)),
            ("POST", &[("Sec-Fetch-Site", "cross-site")], Some(403)),
            ("POST", &[("Sec-Fetch-Site", "same-site")], Some(403)),
            // A name of somebody else's that leads here.
            (
                "POST",
                &[
                    ("Host", "evil.example:8081"),
                    ("Origin", "http://evil.example:8081"),
                ],
                Some(403),
            ),
            ("GET", &[("Origin", "https://evil.example")], None),
        ] {
            assert_eq!(refused(method, headers), status, "{method} {headers:?}");
        }
    }
}
