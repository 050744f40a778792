//! Portfolios over HTTP: syncs of both brokers, and reads that are never older than an acknowledged
//! write.

use crate::market::figures::{number, raw, shortest};
use crate::support::{Answer, Client, Scene, Service, TRADING, bearer, members, until};
use rust_decimal::Decimal;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

pub const HOLDINGS: &str = "/api/portfolio/holdings";
pub const POSITIONS: &str = "/api/portfolio/positions";
const PNL: &str = "/api/portfolio/pnl";
pub const DATA: &str = "/api/portfolio/data";
/// The simulated account; both brokers know it, with the same shares.
const ACCOUNT: &str = "PF0001";

/// A started service and one user of it.
pub struct User {
    pub service: Service,
    pub scene: Scene,
    /// The header line with the token.
    pub auth: String,
}

impl User {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(set: impl FnOnce(&mut bhav::config::Config)) -> Self {
        let scene = Scene::at(TRADING);
        let mut config = scene.config();
        config.broker_b.url = scene.sim.broker_b_url();
        set(&mut config);
        let service = scene.start_with(&config);
        let auth = bearer(&service.register("pf@example.com", "a long enough secret"));
        Self {
            scene,
            service,
            auth,
        }
    }

    pub fn get(&self, target: &str) -> Answer {
        self.service.client().request("GET", target, &self.auth)
    }

    fn minted(&self, route: &str, name: &str, person: &str) -> String {
        let body = format!(r#"{{"user_id":"{person}"}}"#);
        self.scene.control("POST", route, &body).json()[name]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub fn sync(&self, broker: &str) -> Answer {
        let (route, body) = self.order(broker);
        self.service.post(route, &self.auth, &body)
    }

    /// Route and body of a sync that works.
    pub fn order(&self, broker: &str) -> (&'static str, String) {
        self.order_of(broker, ACCOUNT)
    }

    /// Same as [`order`](Self::order), with the code of another person at the broker.
    fn order_of(&self, broker: &str, person: &str) -> (&'static str, String) {
        if broker == "a" {
            let token = self.minted("broker_a/request_token", "request_token", person);
            let body = format!(
                r#"{{"api_key":"simkeya","api_secret":"simsecreta","request_token":"{token}"}}"#
            );
            return ("/api/portfolio/sync", body);
        }
        let session = self.minted("broker_b/api_session", "api_session", person);
        let body = format!(
            r#"{{"api_key":"sim+key=b&1","api_secret":"simsecretb","api_session":"{session}"}}"#
        );
        ("/api/portfolio/brokerb-sync", body)
    }

    pub fn synced(&self, broker: &str) -> Value {
        let answer = self.sync(broker);
        assert_eq!(answer.status, 200, "{}{}", answer.head(), answer.text());
        answer.json()
    }
}

pub fn decimal(row: &Value, name: &str) -> Decimal {
    written(&row[name]).parse().unwrap()
}

/// A number as it was written: two places survive the reader's floats.
pub fn written(value: &Value) -> String {
    assert!(value.is_number());
    sonic_rs::to_string(value).unwrap()
}

pub fn rows<'a>(json: &'a Value, name: &str) -> &'a [Value] {
    json[name].as_array().unwrap().as_slice()
}

#[test]
fn before_a_sync_there_is_nothing_and_nobody_else_sees_it() {
    let user = User::new();
    let holdings = user.get(HOLDINGS);
    assert_eq!(
        holdings.text(),
        "{\"holdings\":[],\"summary\":{\"total_invested\":0,\"total_current_value\":0,\
         \"total_pnl\":0,\"total_pnl_pct\":null,\"day_pnl\":null,\"day_pnl_pct\":null,\
         \"day\":\"2026-11-20\",\"without_cost\":0,\"without_price\":0,\
         \"without_day_price\":0,\"without_close\":0,\
         \"value_without_cost\":0,\"pledged_only\":0,\"mtf_only\":0,\"synced_at\":null,\
         \"synced\":{\"a\":null,\"b\":null},\"priced_from\":null,\"priced_to\":null,\
         \"merged\":[],\"allocation\":{\"brokers\":[],\"sectors\":[],\
         \"sectors_as_of\":\"2026-09-30\",\"sectors_source\":\"NIFTY 50\"}}}"
    );
    assert_eq!(
        user.get(POSITIONS).text(),
        "{\"positions\":[],\"summary\":{\"day\":{\"count\":0,\"pnl\":0,\"without_pnl\":0,\
         \"earlier\":0,\"date\":null,\"synced_at\":null,\"synced\":{\"a\":null,\"b\":null}},\
         \"net\":{\"count\":0,\"pnl\":0,\"without_pnl\":0,\
         \"earlier\":0,\"date\":null,\"synced_at\":null,\"synced\":{\"a\":null,\"b\":null}}}}"
    );
    let pnl = user.get(PNL).json();
    assert_eq!((pnl["days"].as_u64(), rows(&pnl, "trend").len()), (Some(30), 0));
    for target in [HOLDINGS, POSITIONS, PNL, "/api/portfolio/export"] {
        user.service
            .get(target)
            .expect_problem(401, "token_missing");
    }
    user.synced("a");
    let other = bearer(
        &user
            .service
            .register("other@example.com", "another long secret"),
    );
    let answer = user.service.client().request("GET", HOLDINGS, &other);
    assert!(rows(&answer.json(), "holdings").is_empty());
}

/// Checks the totals of both brokers' holdings, as text and as numbers.
fn expect_exact_totals(text: &str, json: &Value) {
    let holdings = rows(json, "holdings");
    assert_eq!(holdings.len(), 24);
    let (mut invested, mut value, mut without_cost) = (Decimal::ZERO, Decimal::ZERO, 0);
    let mut apart = Decimal::ZERO;
    for row in holdings {
        assert!(row["simulated"].as_bool().unwrap() && row["synced_at"].is_str());
        let quantity = decimal(row, "quantity");
        let price = decimal(row, "last_price");
        assert_eq!(written(&row["current_value"]), shortest(quantity * price));
        value += quantity * price;
        if row["pnl"].is_null() {
            assert!(row["invested"].is_null() && row["average_price"].is_null());
            without_cost += 1;
            apart += quantity * price;
            continue;
        }
        let cost = decimal(row, "average_price");
        assert_eq!(written(&row["invested"]), shortest(quantity * cost));
        assert_eq!(written(&row["pnl"]), shortest(quantity * (price - cost)));
        invested += quantity * cost;
    }
    assert_eq!(json["summary"]["without_cost"].as_u64(), Some(without_cost));
    // For shares that only broker B has, it sends the day's change in percent and no close.
    let no_close: Vec<_> = holdings
        .iter()
        .filter(|row| row["close_price"].is_null())
        .collect();
    assert!(!no_close.is_empty() && no_close.iter().all(|row| row["broker"] == "b"));
    assert!(holdings.iter().all(|row| row["day_change_pct"].is_number()));
    assert_eq!(json["summary"]["without_close"].as_u64(), Some(0));
    assert_eq!(raw(text, "total_invested"), shortest(invested));
    assert_eq!(raw(text, "total_current_value"), shortest(value));
    assert_eq!(raw(text, "total_pnl"), shortest(value - apart - invested));
    assert!(without_cost > 0);
    assert_eq!(raw(text, "value_without_cost"), shortest(apart));
}

#[test]
fn two_brokers_make_one_portfolio_to_the_paisa() {
    let user = User::new();
    let a = user.synced("a");
    assert_eq!((a["holdings_count"].as_u64(), a["broker"].as_str()), (Some(12), Some("a")));
    assert_eq!(a["net_positions_count"].as_u64(), Some(2), "one of three is closed");
    assert_eq!(a["changes"]["added_count"].as_u64(), Some(12));
    assert_eq!(a["simulated"].as_bool(), Some(true));
    assert_eq!(rows(&a, "warnings")[0]["code"].as_str(), Some("shared_token_may_have_ended"));
    // Like the broker, the simulator leaves T1 shares out of its own figure.
    assert_eq!(a["reconciliation"]["reason"].as_str(), Some("t1_quantity"));
    let b = user.synced("b");
    assert_eq!((b["holdings_count"].as_u64(), b["broker"].as_str()), (Some(12), Some("b")));
    assert!(b["positions_count"].is_u64() && b["net_positions_count"].is_null());
    assert_eq!(b["reconciliation"]["reason"].as_str(), Some("no_broker_figure"));

    let answer = user.get(HOLDINGS);
    let json = answer.json();
    expect_exact_totals(answer.text(), &json);
    // Both brokers' accounts hold the same shares. Shares with a known code have an ISIN at both.
    let merged = rows(&json["summary"], "merged");
    assert!(!merged.is_empty());
    for instrument in merged {
        let parts = rows(instrument, "parts");
        let whole: Decimal = parts.iter().map(|part| decimal(part, "quantity")).sum();
        assert_eq!(decimal(instrument, "quantity"), whole);
        assert!(parts.len() == 2 && parts[0]["broker"] != parts[1]["broker"]);
    }
    for broker in ["a", "b"] {
        let part = user.get(&format!("{HOLDINGS}?broker={broker}")).json();
        assert_eq!(rows(&part, "holdings").len(), 12);
        assert!(
            rows(&part, "holdings")
                .iter()
                .all(|row| row["broker"] == broker)
        );
    }
    let pnl = user.get(&format!("{PNL}?days=7"));
    let trend = pnl.json();
    assert_eq!(rows(&trend, "trend").len(), 1);
    assert_eq!(trend["trend"][0]["date"].as_str(), Some("2026-11-20"));
    assert_eq!(trend["trend"][0]["source"].as_str(), Some("sync"));
    assert_eq!(number(pnl.text(), "total_pnl"), number(answer.text(), "total_pnl"));
    assert_eq!(decimal(&trend["trend"][0], "total_pnl"), number(answer.text(), "total_pnl"));
    // The same totals, with the same counts of rows left out.
    assert_eq!(members(&trend["summary"]), members(&json["summary"])[..18]);
    for name in members(&trend["summary"]) {
        assert_eq!(trend["summary"][&name], json["summary"][&name], "{name}");
    }
}

#[test]
fn positions_are_filtered_and_closed_ones_hidden() {
    let user = User::new();
    user.synced("a");
    let count =
        |query: &str| rows(&user.get(&format!("{POSITIONS}{query}")).json(), "positions").len();
    assert_eq!(count("?type=net&include_closed=true"), 3);
    assert_eq!(count("?type=net"), 2);
    assert_eq!(count("?type=day"), 2);
    assert_eq!(count(""), 4);
    // The profit of a position sold again is realised, in whichever field the broker sends it.
    let json = user
        .get(&format!("{POSITIONS}?type=net&include_closed=true"))
        .json();
    for row in rows(&json, "positions") {
        let (pnl, none) = (decimal(row, "pnl"), Decimal::ZERO);
        let closed = decimal(row, "quantity").is_zero();
        let expected = if closed { (pnl, none) } else { (none, pnl) };
        assert_eq!((decimal(row, "realised"), decimal(row, "unrealised")), expected);
    }
}

#[test]
fn queries_that_mean_nothing_are_refused() {
    let user = User::new();
    for (target, field) in [
        ("/api/portfolio/holdings?broker=c", "broker"),
        ("/api/portfolio/holdings?live=yes", "live"),
        ("/api/portfolio/holdings?broker=a&broker=b", "broker"),
        ("/api/portfolio/positions?type=all", "type"),
        ("/api/portfolio/positions?include_closed=1", "include_closed"),
        ("/api/portfolio/pnl?days=0", "days"),
        ("/api/portfolio/pnl?days=366", "days"),
        ("/api/portfolio/pnl?days=%31.5", "days"),
    ] {
        let problem = user.get(target).expect_problem(400, "validation_failed");
        assert_eq!(problem["errors"][0]["field"].as_str(), Some(field), "{target}");
        let message = problem["errors"][0]["message"].as_str().unwrap();
        assert_eq!(message.starts_with("Give it once"), target.contains("a&b"), "{message}");
    }
    let answer = user
        .service
        .post("/api/portfolio/sync", &user.auth, r#"{"api_key":""}"#);
    let problem = answer.expect_problem(400, "validation_failed");
    assert_eq!(rows(&problem, "errors").len(), 3);
}

#[test]
fn an_unchanged_answer_is_kept_and_a_304() {
    let user = User::new();
    user.synced("a");
    let mut client = user.service.client();
    let ask = |client: &mut Client, headers: &str| {
        client.request("GET", HOLDINGS, &format!("{}{headers}", user.auth))
    };
    let first = ask(&mut client, "");
    assert_eq!(first.header("cache-control"), Some("private, no-cache"));
    assert_eq!(first.headers("date").len(), 1);
    let etag = first.header("etag").unwrap().to_owned();
    let second = ask(&mut client, "");
    assert_eq!((second.text(), second.header("etag")), (first.text(), Some(etag.as_str())));
    let unchanged = ask(&mut client, &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    let small = ask(&mut client, "Accept-Encoding: gzip\r\n");
    assert_eq!(small.header("content-encoding"), Some("gzip"));
    assert!(small.body.len() * 2 < first.body.len());
    let state = user.service.0.server().shared().service.state();
    let stats = state.portfolio.responses.stats();
    assert_eq!((stats.hits, stats.misses, stats.users), (3, 1, 1));
    assert_eq!(
        user.service
            .client()
            .request("DELETE", DATA, &user.auth)
            .status,
        200
    );
    let changed = ask(&mut client, &format!("If-None-Match: {etag}\r\n"));
    assert_eq!(changed.status, 200);
}

#[test]
fn each_refusal_of_a_broker_has_its_answer_and_changes_nothing() {
    let user = User::with(|config| {
        config.upstream.read_timeout_ms = 600;
        config.upstream.sync_timeout_ms = 1_200;
        config.upstream.breaker_failures = 1_000;
    });
    user.synced("a");
    let before = user.get(HOLDINGS);
    let refused = |body: &str, status, code| {
        user.service
            .post("/api/portfolio/sync", &user.auth, body)
            .expect_problem(status, code);
    };
    let body = |key: &str, secret: &str, token: &str| {
        format!(r#"{{"api_key":"{key}","api_secret":"{secret}","request_token":"{token}"}}"#)
    };
    refused(&body("simkeya", "simsecreta", "used"), 401, "broker_session_invalid");
    for (route, fault, status, code) in [
        ("broker_a.holdings", r#"{"kind":"refuse"}"#, 502, "broker_unavailable"),
        ("broker_a.holdings", r#"{"kind":"html_5xx"}"#, 502, "broker_unavailable"),
        ("broker_a.holdings", r#"{"kind":"wrong_types"}"#, 502, "broker_answer_invalid"),
        (
            "broker_a.positions",
            r#"{"kind":"missing_fields"}"#,
            502,
            "broker_answer_invalid",
        ),
        ("broker_a.holdings", r#"{"kind":"no_permission"}"#, 403, "broker_not_permitted"),
        (
            "broker_a.positions",
            r#"{"kind":"expired_token"}"#,
            401,
            "broker_session_invalid",
        ),
        (
            "broker_a.positions",
            r#"{"kind":"delay","delay_ms":5000}"#,
            504,
            "broker_timeout",
        ),
        ("broker_a.positions", r#"{"kind":"rate_limit"}"#, 429, "broker_rate_limited"),
    ] {
        user.scene.fault(route, fault);
        // The service's own limit per key is reached before the broker's.
        let answer = until("a turn under the key's limit", || {
            let limited = |answer: &Answer| answer.text().contains("calls_held_back");
            Some(user.sync("a")).filter(|answer| !limited(answer))
        });
        answer.expect_problem(status, code);
        assert_eq!(
            answer.header("retry-after").is_some(),
            matches!(code, "broker_rate_limited" | "broker_unavailable")
        );
        user.scene.control("DELETE", "faults", "");
    }
    let after = user.get(HOLDINGS);
    assert_eq!(after.text(), before.text());
}

#[test]
fn deletion_is_counted_and_everything_can_be_exported_before() {
    let user = User::new();
    user.synced("a");
    user.synced("b");
    let entry = r#"{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1.5,
        "price":1500.123456}"#;
    assert_eq!(user.service.post("/api/journal", &user.auth, entry).status, 201);
    let export = user.get("/api/portfolio/export");
    assert!(
        export
            .header("content-disposition")
            .unwrap()
            .starts_with("attachment")
    );
    assert_eq!(export.header("cache-control"), Some("no-store"));
    let json = export.json();
    assert_eq!(json["user"]["email"].as_str(), Some("pf@example.com"));
    for (name, count) in [
        ("syncs", 2),
        ("holdings", 24),
        ("pnl_snapshots", 1),
        ("journal", 1),
    ] {
        assert_eq!(rows(&json, name).len(), count, "{name}");
    }
    assert_eq!(written(&json["journal"][0]["price"]), "1500.123456");
    let positions = rows(&json, "positions").len() as u64;

    let answer = user
        .service
        .client()
        .request("DELETE", DATA, &user.auth)
        .json();
    assert!(answer["message"].is_str());
    assert_eq!(answer["deleted"]["holdings"].as_u64(), Some(24));
    assert_eq!(answer["deleted"]["positions"].as_u64(), Some(positions));
    assert_eq!(answer["deleted"]["pnl_snapshots"].as_u64(), Some(1));
    let json = user.get("/api/portfolio/export").json();
    for (name, count) in [
        ("syncs", 0),
        ("holdings", 0),
        ("positions", 0),
        ("journal", 1),
    ] {
        assert_eq!(rows(&json, name).len(), count, "{name}");
    }
}

/// A foreign page can put its own code into the way back. Its person is known once the code is
/// used, and then nothing is replaced unless the user confirms it.
#[test]
fn a_code_of_another_person_at_the_broker_replaces_nothing_unless_that_is_said() {
    let user = User::new();
    for broker in ["a", "b"] {
        let told = user.synced(broker);
        assert_eq!(told["broker_user"], ACCOUNT, "the report says whose portfolio it is");
        let target = format!("{HOLDINGS}?broker={broker}");
        let before = user.get(&target);
        // Each call has a key of its own, since a key may make few calls a second.
        let with_key = |number: u8, (route, body): (&'static str, String)| {
            let body = body.replace("simkeya", &format!("simkeya-{number}"));
            (route, body)
        };
        let (route, body) = with_key(1, user.order_of(broker, "ZX9998"));
        let refused = user.service.post(route, &user.auth, &body);
        refused.expect_problem(409, "broker_user_changed");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("Z***8") && detail.contains("P***1"), "{detail}");
        assert!(!detail.contains("ZX9998") && !detail.contains(ACCOUNT), "{detail}");
        assert_eq!(user.get(&target).text(), before.text(), "nothing was changed");
        let (_, body) = with_key(2, user.order(broker));
        assert_eq!(user.service.post(route, &user.auth, &body).status, 200);

        let (_, body) = with_key(3, user.order_of(broker, "ZX9998"));
        let body = body.replacen('{', "{\"replace_broker_user\":true,", 1);
        let replaced = user.service.post(route, &user.auth, &body).with_status(200);
        assert_eq!(replaced.json()["broker_user"], "ZX9998");
        let (_, body) = with_key(4, user.order(broker));
        let refused = user.service.post(route, &user.auth, &body);
        refused.expect_problem(409, "broker_user_changed");
    }
    let export = user.get("/api/portfolio/export").json();
    for sync in rows(&export, "syncs") {
        assert_eq!(sync["broker_user"], "ZX9998");
    }
    // An empty portfolio has nothing to replace.
    user.service
        .client()
        .request("DELETE", DATA, &user.auth)
        .with_status(200);
    let (route, body) = user.order("a");
    let body = body.replace("simkeya", "simkeya-5");
    assert_eq!(user.service.post(route, &user.auth, &body).status, 200);
}

/// Broker A calls one average of the demo's twelve holdings unreliable.
#[test]
fn a_doubtful_average_is_counted_and_makes_no_point_suspect() {
    let user = User::new();
    user.synced("a");
    let point = rows(&user.get(PNL).json(), "trend")[0].clone();
    assert_eq!(point["suspect"].as_bool(), Some(false), "no price has leapt");
    assert_eq!(point["discrepancies"].as_u64(), Some(1));
    assert_eq!(point["brokers"].as_array().unwrap().len(), 1);
    assert_eq!(point["holdings"].as_u64(), Some(12));
}
