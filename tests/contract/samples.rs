//! The broker's own sample replies through a whole sync: our totals compared with theirs.

use rust_decimal::Decimal;
use sonic_rs::JsonValueTrait;

use crate::market::figures::{number, raw, shortest};
use crate::support::upstream::{Said, Upstream};
use crate::support::{Scene, bearer, say};

const SESSION: &str = include_str!("../fixtures/broker_a/generate_session.json");
const HOLDINGS: &str = include_str!("../fixtures/broker_a/holdings.json");
const POSITIONS: &str = include_str!("../fixtures/broker_a/positions.json");

/// Shares bought yesterday, which the broker counts separately from the settled ones.
const T1: u32 = 5;

/// Totals of holdings, and the profit of net positions.
#[derive(Debug, PartialEq, Eq)]
struct Totals {
    invested: String,
    value: String,
    pnl: String,
    positions_pnl: String,
}

fn decimal(text: &str) -> Decimal {
    bhav::base::json::parse_decimal(text).unwrap()
}

/// The texts of every number called `name`, in order.
fn all<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let member = format!("\"{name}\":");
    let found = text.match_indices(&member);
    found.map(|(at, _)| raw(&text[at..], name).trim()).collect()
}

/// Totals of the broker's reply: its quantities, and its own `pnl` of each row.
fn theirs(holdings: &str) -> Totals {
    // Each row's own members come before those of its margin-funded part.
    let rows: Vec<&str> = holdings.split("\"tradingsymbol\"").skip(1).collect();
    let of = |row: &str, name: &str| decimal(raw(row, name).trim());
    let total = |name: &str| -> Decimal {
        rows.iter()
            .map(|row| of(row, "quantity") * of(row, name))
            .sum()
    };
    let pnl: Decimal = rows.iter().map(|row| of(row, "pnl")).sum();
    let net = POSITIONS.split("\"day\"").next().unwrap();
    let positions_pnl: Decimal = all(net, "pnl").into_iter().map(decimal).sum();
    Totals {
        invested: shortest(total("average_price")),
        value: shortest(total("last_price")),
        pnl: shortest(pnl),
        positions_pnl: shortest(positions_pnl),
    }
}

/// The service's totals of the same reply, and its reason for a difference.
fn ours(holdings: &str) -> (Totals, String) {
    let holdings = holdings.to_owned();
    let upstream = Upstream::start(move |asked| {
        Said::json(match asked.target.as_str() {
            "/session/token" => SESSION.to_owned(),
            "/portfolio/holdings" => holdings.clone(),
            _ => POSITIONS.to_owned(),
        })
    });
    let (_scene, service) = Scene::trading_with(|config| {
        config.broker_a.url = upstream.url();
        config.broker_a.access_token = None;
    });
    let user = bearer(&service.register("samples@example.com", "a long enough secret"));
    let order = r#"{"api_key":"k","api_secret":"s","request_token":"t"}"#;
    let synced = service
        .post("/api/portfolio/sync", &user, order)
        .with_status(200);
    assert_eq!(number(synced.text(), "holdings_count"), 2.into());
    assert_eq!(
        number(synced.text(), "net_positions_count"),
        1.into(),
        "two of three are closed"
    );
    let get = |target: &str| service.client().request("GET", target, &user);
    let answer = get("/api/portfolio/holdings");
    let summary = answer.text().split("\"summary\":").nth(1).unwrap();
    let net = get("/api/portfolio/positions?type=net&include_closed=true");
    let (listed, summed) = net.text().split_once("\"net\":").unwrap();
    let listed = listed.split("\"summary\":").next().unwrap();
    let positions_pnl: Decimal = all(listed, "pnl").into_iter().map(decimal).sum();
    assert_eq!(raw(summed, "pnl"), shortest(positions_pnl));
    let pnl = get("/api/portfolio/pnl");
    assert_eq!(raw(pnl.text(), "total_pnl"), raw(summary, "total_pnl"));
    service.stop();
    let totals = Totals {
        invested: raw(summary, "total_invested").to_owned(),
        value: raw(summary, "total_current_value").to_owned(),
        pnl: raw(summary, "total_pnl").to_owned(),
        positions_pnl: shortest(positions_pnl),
    };
    let json = synced.json();
    (
        totals,
        json["reconciliation"]["reason"]
            .as_str()
            .unwrap_or("none")
            .to_owned(),
    )
}

fn show(what: &str, ours: &Totals, theirs: &Totals, reason: &str) {
    let mut said = format!("{what} (reason of a difference: {reason})\n");
    for (name, ours, theirs) in [
        ("invested", &ours.invested, &theirs.invested),
        ("current value", &ours.value, &theirs.value),
        ("profit", &ours.pnl, &theirs.pnl),
        ("profit of positions", &ours.positions_pnl, &theirs.positions_pnl),
    ] {
        said += &format!("  {name:<20} ours {ours:>10}  theirs {theirs:>10}\n");
    }
    say(&said);
}

#[test]
fn the_official_samples_come_to_the_brokers_own_totals() {
    let theirs = theirs(HOLDINGS);
    let (ours, reason) = ours(HOLDINGS);
    show("official samples", &ours, &theirs, &reason);
    assert_eq!(ours, theirs);
    assert_eq!((ours.pnl.as_str(), ours.invested.as_str()), ("-437.35", "12989.5"));
    // The broker writes floating-point numbers: -629.2999999999993 for -629.3.
    assert_eq!(reason, "rounding");
}

#[test]
fn shares_not_settled_yet_are_the_whole_difference() {
    let (before, sbin) = HOLDINGS.split_once("\"SBIN\"").unwrap();
    let t1 = format!("\"t1_quantity\": {T1}");
    let holdings = format!("{before}\"SBIN\"{}", sbin.replacen("\"t1_quantity\": 0", &t1, 1));
    assert_ne!(holdings, HOLDINGS);
    let theirs = theirs(&holdings);
    let (ours, reason) = ours(&holdings);
    show("the same with five T1 shares", &ours, &theirs, &reason);
    assert_eq!(reason, "t1_quantity");
    let (cost, price) = (decimal("801.78125"), decimal("762.45"));
    let more = Decimal::from(T1);
    let exact_cost = decimal("12989.5") + more * cost;
    assert_eq!(ours.invested, shortest(exact_cost));
    assert_eq!(decimal(&ours.value), decimal(&theirs.value) + more * price);
    assert_eq!(ours.pnl, shortest(decimal("-437.35") + more * (price - cost)));
    assert_eq!(ours.positions_pnl, theirs.positions_pnl);
}
