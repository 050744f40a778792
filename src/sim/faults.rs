//! Faults that can be switched on: which are set, which of them hit a request, and what they do to
//! its answer. Plain values behind the world's lock, at most [`FAULTS_MAX`] of them.

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::clock;
use crate::sim::fault_kinds::{Kind, Upstream};
use crate::sim::routes::{covers, is_route_or_group, names_and_groups};
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

impl Fault {
    /// Checks that the members go with the kind, and their values.
    fn check(&self) -> Result<(), String> {
        let Self {
            kind,
            delay_ms,
            bytes_per_s,
            status,
            location,
            by_s,
            count: _,
        } = self;
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
        if let Some((field, _)) = given
            .iter()
            .find(|(field, given)| *given && !own.contains(field))
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
        Ok(())
    }
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
        if !is_route_or_group(&self.route) {
            return Err(format!(
                "unknown route {:?}; one of *, {}",
                self.route,
                names_and_groups().join(", ")
            ));
        }
        self.fault.check()?;
        let kind = self.fault.kind;
        if self.fault.count == Some(0) {
            return Err("count has to be at least 1; leave it out for no end".to_owned());
        }
        let only_a = matches!(kind, Kind::NoPermission | Kind::BrokenRow | Kind::BadRequest)
            && self.route != "*";
        if only_a && !self.route.starts_with("broker_a") {
            return Err(format!("{} exists at broker_a only", kind.as_str()));
        }
        if kind == Kind::ExpiredToken && self.route.starts_with("public") {
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
        self.set.push(Set {
            order,
            set_at: now,
            remaining,
        });
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
            let Fault {
                kind,
                delay_ms,
                bytes_per_s,
                status,
                by_s,
                ..
            } = set.order.fault;
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
                    effects.instead.get_or_insert(Instead {
                        kind,
                        status,
                        location,
                    });
                }
                _ => effects.rewrites.push(kind),
            }
        }
        effects
    }

    /// The faults as the control routes show them.
    pub(super) fn to_json(&self) -> Value {
        let shown = self.set.iter().map(
            |Set {
                 order,
                 set_at,
                 remaining,
             }| {
                let route = &order.route;
                let fault = &order.fault;
                json!({
                    "route": route, "fault": fault, "remaining": remaining,
                    "set_at": clock::iso(*set_at),
                })
            },
        );
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
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| retain_members(item, visit)),
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
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let Ok(price) = text.parse::<Decimal>() else {
        return;
    };
    let price = price * Decimal::TEN;
    *value = if value.is_string() {
        price.to_string().into()
    } else {
        number(price)
    };
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
