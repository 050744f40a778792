//! Faults that can be switched on: which are set, which of them hit a request, and what they do to
//! its answer. Plain values behind the world's lock, at most [`FAULTS_MAX`] of them.

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::clock;
use crate::sim::fault_kinds::{Kind, Upstream};
use crate::sim::server::message::{Answer, Content, Delivery, number};

/// Faults set at once; a test needs a handful.
const FAULTS_MAX: usize = 64;
/// Longest delay, far over every client's deadline.
const DELAY_MS_MAX: u64 = 600_000;
/// Fastest drip; more is not a drip.
const DRIP_BYTES_PER_S_MAX: u64 = 1_000_000;

/// Furthest that prices can lag or their times lie in the future: a day.
const BY_S_MAX: u64 = 86_400;

/// A fault as the control route takes it and shows it.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    kind: Kind,
    /// Goes with `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    /// Goes with `drip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_s: Option<u32>,
    /// Goes with `html_5xx` (502 if absent) and `redirect` (302 if absent).
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Goes with `lag` and `future_time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_s: Option<u32>,
    /// Number of requests that it hits; absent means until cleared.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// The target of `redirect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
}

/// A fault, and the route for which it is set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultOrder {
    /// `broker_a.quote`, `broker_a` or `*`.
    pub(super) route: String,
    pub(super) fault: Fault,
}

impl FaultOrder {
    /// Checks that the order makes sense.
    ///
    /// # Errors
    /// The mistake, in words for the person who sent the order.
    pub(super) fn check(&self) -> Result<(), String> {
        let Fault { kind, delay_ms, bytes_per_s, status, location, by_s, count } = &self.fault;
        if !is_route_or_group(&self.route) {
            return Err(format!(
                "unknown route {:?}; one of *, {}",
                self.route,
                names_and_groups().join(", ")
            ));
        }
        let name = kind.as_str();
        let own: &[&str] = match kind {
            Kind::Delay => &["delay_ms"],
            Kind::Drip => &["bytes_per_s"],
            Kind::Html5xx => &["status"],
            Kind::Redirect => &["status", "location"],
            Kind::Lag | Kind::FutureTime => &["by_s"],
            _ => &[],
        };
        let given = [
            ("delay_ms", delay_ms.is_some()),
            ("bytes_per_s", bytes_per_s.is_some()),
            ("status", status.is_some()),
            ("location", location.is_some()),
            ("by_s", by_s.is_some()),
        ];
        if let Some((field, _)) = given.iter().find(|(field, given)| *given && !own.contains(field))
        {
            return Err(format!("{field} does not go with {name}"));
        }
        let within = |number: Option<u64>, most| number.is_some_and(|n| (1..=most).contains(&n));
        // The value becomes part of a header, so it must not contain a line end.
        let written = |to: &String| to.bytes().all(|byte| byte.is_ascii_graphic());
        match kind {
            Kind::Delay if !within(*delay_ms, DELAY_MS_MAX) => {
                return Err(format!("delay needs delay_ms, 1 to {DELAY_MS_MAX}"));
            }
            Kind::Drip if !within(bytes_per_s.map(u64::from), DRIP_BYTES_PER_S_MAX) => {
                return Err(format!("drip needs bytes_per_s, 1 to {DRIP_BYTES_PER_S_MAX}"));
            }
            Kind::Html5xx if status.is_some_and(|status| !(500..=599).contains(&status)) => {
                return Err("status has to be 500 to 599".to_owned());
            }
            Kind::Redirect if status.is_some_and(|status| !(300..=399).contains(&status)) => {
                return Err("status has to be 300 to 399".to_owned());
            }
            Kind::Redirect if !location.as_ref().is_some_and(written) => {
                return Err("redirect needs a location, a URL".to_owned());
            }
            Kind::Lag | Kind::FutureTime if !within(by_s.map(u64::from), BY_S_MAX) => {
                return Err(format!("{name} needs by_s, 1 to {BY_S_MAX}"));
            }
            _ => {}
        }
        if *count == Some(0) {
            return Err("count has to be at least 1; leave it out for no end".to_owned());
        }
        let only_a = matches!(kind, Kind::NoPermission | Kind::BrokenRow | Kind::BadRequest)
            && self.route != "*";
        if only_a && !self.route.starts_with("broker_a") {
            return Err(format!("{name} exists at broker_a only"));
        }
        if *kind == Kind::ExpiredToken && self.route.starts_with("public") {
            return Err("expired_token exists at the brokers only".to_owned());
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Set {
    order: FaultOrder,
    set_at: Timestamp,
    remaining: Option<u64>,
}

/// The faults that are set.
#[derive(Debug, Default)]
pub(super) struct Faults {
    set: Vec<Set>,
}

/// The effects of all faults on one request.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) delivery: Delivery,
    pub(super) muted_at: Option<Timestamp>,
    /// Age of the prices shown, and how far their times are set ahead.
    pub(super) lag: SignedDuration,
    pub(super) ahead: SignedDuration,
    /// The first fault that answers in place of the route.
    pub(super) instead: Option<Instead>,
    rewrites: Vec<Kind>,
}

/// A fault that answers in place of a route.
#[derive(Debug)]
pub(super) struct Instead {
    pub(super) kind: Kind,
    pub(super) status: Option<u16>,
    pub(super) location: Option<String>,
}

impl Faults {
    /// Sets one more fault.
    ///
    /// # Errors
    /// The order makes no sense, or there are too many.
    pub(super) fn add(&mut self, order: FaultOrder, now: Timestamp) -> Result<(), String> {
        order.check()?;
        if self.set.len() >= FAULTS_MAX {
            return Err(format!("{FAULTS_MAX} faults are set already; clear them first"));
        }
        let remaining = order.fault.count;
        self.set.push(Set { order, set_at: now, remaining });
        Ok(())
    }

    /// Clears all faults. Returns how many there were.
    pub(super) fn clear(&mut self) -> usize {
        std::mem::take(&mut self.set).len()
    }

    /// The effects on a request at `route`. Counts the faults down.
    pub(super) fn hit(&mut self, route: &str, upstream: Upstream) -> Effects {
        let effects = self.standing(route, upstream);
        for set in &mut self.set {
            let hits = set.order.fault.kind.exists_at(upstream);
            if let Some(remaining) = set.remaining.as_mut()
                && hits
                && covers(&set.order.route, route)
            {
                *remaining -= 1;
            }
        }
        self.set.retain(|set| set.remaining != Some(0));
        effects
    }

    /// Same as [`hit`](Self::hit), without counting down.
    pub(super) fn standing(&self, route: &str, upstream: Upstream) -> Effects {
        let mut effects = Effects::default();
        for set in &self.set {
            let Fault { kind, delay_ms, bytes_per_s, status, by_s, .. } = set.order.fault;
            let by = SignedDuration::from_secs(by_s.unwrap_or_default().into());
            if !covers(&set.order.route, route) || !kind.exists_at(upstream) {
                continue;
            }
            match kind {
                Kind::Refuse => effects.delivery.refuse = true,
                Kind::Delay => effects.delivery.delay_ms += delay_ms.unwrap_or_default(),
                Kind::Drip => effects.delivery.bytes_per_s = bytes_per_s,
                Kind::Truncate => effects.delivery.truncate = true,
                Kind::MutePrice => {
                    let earlier = effects.muted_at.unwrap_or(set.set_at).min(set.set_at);
                    effects.muted_at = Some(earlier);
                }
                Kind::Lag => effects.lag += by,
                Kind::FutureTime => effects.ahead += by,
                Kind::RateLimit
                | Kind::BadRequest
                | Kind::ErrorIn200
                | Kind::Html5xx
                | Kind::Redirect
                | Kind::ExpiredToken
                | Kind::NoPermission => {
                    let location = set.order.fault.location.clone();
                    effects.instead.get_or_insert(Instead { kind, status, location });
                }
                _ => effects.rewrites.push(kind),
            }
        }
        effects
    }

    /// The faults as the control routes show them.
    pub(super) fn to_json(&self) -> Value {
        let shown = self.set.iter().map(|Set { order, set_at, remaining }| {
            let route = &order.route;
            let fault = &order.fault;
            json!({
                "route": route, "fault": fault, "remaining": remaining,
                "set_at": clock::iso(*set_at),
            })
        });
        shown.collect()
    }
}

impl Effects {
    /// Whether a fault of this kind changes what is sent.
    pub(super) fn has(&self, kind: Kind) -> bool {
        self.rewrites.contains(&kind)
    }

    /// Rewrites a finished answer.
    pub(super) fn rewrite(&self, answer: &mut Answer) {
        let json = match &mut answer.content {
            Content::Json(json) => json,
            Content::Gzipped(_, list) if self.has(Kind::BrokenRow) => {
                return list.extend_from_slice(BROKEN_ROW);
            }
            _ => return,
        };
        for kind in &self.rewrites {
            retain_members(json, &mut |name, value| match kind {
                Kind::MissingFields => !matters(name),
                Kind::ZeroPrice => {
                    zero_price(name, value);
                    true
                }
                Kind::TenfoldPrice => {
                    tenfold_price(name, value);
                    true
                }
                Kind::NanCandle | Kind::NanCandles | Kind::HalfHistory | Kind::LateCandle => {
                    rewrite(*kind, name, value);
                    true
                }
                _ => {
                    if !matches!(name, "status" | "Status" | "Error" | "error" | "symbol") {
                        match kind {
                            Kind::Nulls => null_leaves(value),
                            _ => wrong_type(value),
                        }
                    }
                    true
                }
            });
        }
    }
}

/// A row of broker A's list of instruments with a column too few.
const BROKEN_ROW: &[u8] = b"8190209,31993,SIMBROKEN,0.0,,0.0,0.05,1,EQ,NSE,NSE\n";

/// Whether an answer is useless without the member.
fn matters(name: &str) -> bool {
    matches!(
        name,
        "last_price"
            | "ohlc"
            | "regularMarketPrice"
            | "regularMarketTime"
            | "previousClose"
            | "chartPreviousClose"
            | "fulldayPrice"
            | "close"
            | "access_token"
            | "session_token"
            | "quantity"
            | "isin"
            | "stock_ISIN"
            | "candles"
    )
}

/// Calls `visit` on every member of every object, deepest first; a member is dropped if `visit`
/// returns false.
fn retain_members(json: &mut Value, visit: &mut dyn FnMut(&str, &mut Value) -> bool) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(|item| retain_members(item, visit)),
        Value::Object(members) => members.retain(|name, value| {
            retain_members(value, visit);
            visit(name, value)
        }),
        _ => {}
    }
}

fn zero_price(name: &str, value: &mut Value) {
    match (name, value) {
        ("last_price" | "regularMarketPrice" | "fulldayPrice", value) => *value = 0.into(),
        ("current_market_price" | "ltp", value) => *value = "0".into(),
        // The public provider's series. Elsewhere `close` is a number, the previous close.
        ("close", Value::Array(items)) => items.fill(0.into()),
        _ => {}
    }
}

fn tenfold_price(name: &str, value: &mut Value) {
    match (name, value) {
        ("last_price" | "regularMarketPrice" | "fulldayPrice", value) => tenfold(value),
        ("current_market_price" | "ltp", value) => tenfold(value),
        ("close", Value::Array(items)) => items.iter_mut().for_each(tenfold),
        _ => {}
    }
}

/// Ten times a number, or the number of a text.
fn tenfold(value: &mut Value) {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let Ok(price) = text.parse::<Decimal>() else { return };
    let price = price * Decimal::TEN;
    *value = if value.is_string() { price.to_string().into() } else { number(price) };
}

fn null_leaves(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(null_leaves),
        Value::Object(_) => {}
        leaf => *leaf = Value::Null,
    }
}

fn wrong_type(value: &mut Value) {
    match value {
        Value::Number(_) => *value = "not a number".into(),
        Value::String(_) => *value = false.into(),
        Value::Array(items) => items.iter_mut().for_each(wrong_type),
        _ => {}
    }
}

// ---- Candles
//
// Faults in the candles of an otherwise good answer, in either upstream's form: broker
// A's rows under `candles`, the public provider's parallel columns. Pure.

/// The public provider's columns; `timestamp` is not among them.
const COLUMNS: [&str; 5] = ["open", "high", "low", "close", "volume"];

/// Bad candles of one history, spread over it.
const NAN_CANDLES: usize = 9;

/// Rewrites one member of an answer, if it holds candles; `kind` is one of candles.
pub(crate) fn rewrite(kind: Kind, name: &str, value: &mut Value) {
    let Value::Array(items) = value else { return };
    let rows = name == "candles";
    let column = COLUMNS.contains(&name);
    match kind {
        // Only the middle candle is bad, as from a broken serialiser, so that a client could keep
        // the rest.
        Kind::NanCandle if rows || column => {
            let middle = items.len() / 2;
            match items.get_mut(middle) {
                Some(Value::Array(row)) => row.iter_mut().skip(1).for_each(not_a_number),
                Some(value) => not_a_number(value),
                None => {}
            }
        }
        Kind::NanCandles if rows || column => {
            let count = items.len();
            let parts = NAN_CANDLES + 1;
            for middle in (1..parts).map(|part| part * count / parts) {
                match items.get_mut(middle) {
                    Some(Value::Array(row)) => row.iter_mut().skip(1).for_each(not_a_number),
                    Some(value) => not_a_number(value),
                    None => {}
                }
            }
        }
        // Rows end halfway. Columns do too, but their times are complete.
        Kind::HalfHistory if rows || column => items.truncate(items.len() / 2),
        Kind::LateCandle if rows || column || name == "timestamp" => {
            items.pop();
        }
        _ => {}
    }
}

fn not_a_number(value: &mut Value) {
    *value = "NaN".into();
}

// ---- Routes
//
// The simulator's routes by name: a fault is set for one route, for those of an upstream, or for
// all. Pure.

/// The routes of the login pages.
pub(crate) const LOGIN_A: &str = "broker_a.login";
pub(crate) const LOGIN_B: &str = "broker_b.login";

/// Name and path of each route. A path that ends in a slash matches everything below it.
const ROUTES: [(&str, &str); 23] = [
    (LOGIN_A, "/a/connect/login"),
    ("broker_a.session", "/a/session/token"),
    ("broker_a.profile", "/a/user/profile"),
    ("broker_a.quote", "/a/quote"),
    ("broker_a.ohlc", "/a/quote/ohlc"),
    ("broker_a.ltp", "/a/quote/ltp"),
    ("broker_a.historical", "/a/instruments/historical/"),
    ("broker_a.instruments", "/a/instruments"),
    ("broker_a.instruments", "/a/instruments/"),
    ("broker_a.holdings", "/a/portfolio/holdings"),
    ("broker_a.positions", "/a/portfolio/positions"),
    ("broker_a.trades", "/a/trades"),
    ("broker_a.ticker", "/a/ticker"),
    (LOGIN_B, "/b/apiuser/login"),
    ("broker_b.customerdetails", "/b/customerdetails"),
    ("broker_b.dematholdings", "/b/dematholdings"),
    ("broker_b.portfolioholdings", "/b/portfolioholdings"),
    ("broker_b.portfoliopositions", "/b/portfoliopositions"),
    ("broker_b.trades", "/b/trades"),
    ("broker_b.master", "/b-master/"),
    ("public.spark", "/p/v7/finance/spark"),
    ("public.spark_v8", "/p/v8/finance/spark"),
    ("public.chart", "/p/v8/finance/chart/"),
];

const GROUPS: [&str; 3] = ["broker_a", "broker_b", "public"];

/// Every name a fault can be set for, apart from `*`.
pub(crate) fn names_and_groups() -> Vec<&'static str> {
    let mut names: Vec<_> = GROUPS.into_iter().chain(ROUTES.map(|(name, _)| name)).collect();
    names.dedup();
    names
}

/// Whether faults can be set for `name`.
pub(crate) fn is_route_or_group(name: &str) -> bool {
    name == "*" || names_and_groups().contains(&name)
}

/// Whether a fault set for `pattern` concerns `route`.
pub(crate) fn covers(pattern: &str, route: &str) -> bool {
    pattern == "*"
        || pattern == route
        || route.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'))
}

/// The route at `path`, and the remainder of the path. A path without the prefix of an upstream is
/// broker A's, because its vendor's client keeps nothing but the host of the root that it is given.
pub(crate) fn find(path: &str) -> Option<(&'static str, &str)> {
    let find = |start: &str| {
        ROUTES.iter().find_map(|&(name, at)| {
            let rest = path.strip_prefix(at.strip_prefix(start)?)?;
            (rest.is_empty() != at.ends_with('/')).then_some((name, rest))
        })
    };
    find("").or_else(|| find("/a"))
}

/// The upstream that a route belongs to.
pub(crate) fn upstream_of(route: &str) -> Upstream {
    match route.split('.').next() {
        Some("broker_a") => Upstream::BrokerA,
        Some("broker_b") => Upstream::BrokerB,
        _ => Upstream::Public,
    }
}

#[cfg(test)]
mod routes_tests {
    use super::*;

    #[test]
    fn finds_routes_by_their_whole_path() {
        for (path, expected) in [
            ("/a/quote", Some(("broker_a.quote", ""))),
            ("/a/quote/ohlc", Some(("broker_a.ohlc", ""))),
            ("/a/quotes", None),
            ("/a/instruments", Some(("broker_a.instruments", ""))),
            ("/a/instruments/NSE", Some(("broker_a.instruments", "NSE"))),
            ("/a/instruments/historical/1/day", Some(("broker_a.historical", "1/day"))),
            ("/p/v8/finance/chart/%5ENSEI", Some(("public.chart", "%5ENSEI"))),
            ("/b/", None),
            ("/", None),
            ("/quote", Some(("broker_a.quote", ""))),
            ("/instruments/NSE", Some(("broker_a.instruments", "NSE"))),
            ("/customerdetails", None),
        ] {
            assert_eq!(find(path), expected, "{path}");
        }
        assert!(covers("broker_a", "broker_a.quote") && covers("*", "public.spark"));
        assert!(
            !covers("broker_a.quote", "broker_a.ohlc")
                && !covers("public.spark", "public.spark_v8")
        );
    }
}
