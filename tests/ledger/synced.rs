//! What a sync says of the ledger.

use bhav::base::Clock;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::owner::{IMPORTS, Owner};
use crate::market::figures::raw;
use crate::support::bearer;
use crate::support::wait::at_once;

/// How long a sync waits for trades at most, in `api::portfolio::synced_trades`.
const TRADES_DEADLINE_MS: u64 = 10_000;
const PERSON: &str = "LG0001";
const HEADER: &str = "symbol,isin,trade_date,exchange,segment,series,trade_type,auction,quantity,\
    price,trade_id,order_id,order_execution_time\n";
const BOUGHT: &str = "INFY,INE009A01021,2025-03-03,NSE,EQ,EQ,buy,false,10.000000,1500.000000,\
    1001,2001,2025-03-03T10:00:00\n";
const SOLD: &str = "INFY,INE009A01021,2026-11-20,NSE,EQ,EQ,sell,false,3.000000,1600.000000,\
    1002,2002,2026-11-20T09:20:00\n";

const ALL_SOLD: &str = "INFY,INE009A01021,2026-11-20,NSE,EQ,EQ,sell,false,10.000000,1600.000000,\
    1003,2003,2026-11-20T09:20:00\n";

/// What the simulator's person holds at broker A.
fn holds_at_a(owner: &Owner, rows: &str) {
    let body = format!(r#"{{"user_id":"{PERSON}","rows":[{rows}]}}"#);
    assert_eq!(
        owner
            .scene
            .control("POST", "broker_a/holdings", &body)
            .status,
        200
    );
}

/// The row of the reconciliation of a symbol.
#[track_caller]
fn proof(owner: &Owner, symbol: &str) -> Value {
    let all = owner
        .get("/api/trades/reconciliation")
        .with_status(200)
        .json();
    let mut rows = all["rows"].as_array().unwrap().iter();
    rows.find(|row| row["symbol"] == symbol)
        .unwrap_or_else(|| panic!("{all:?}"))
        .clone()
}

/// Ledger, synced and pending sold quantity, and whether that is proved.
#[track_caller]
fn proved(owner: &Owner, symbol: &str) -> (String, String, String, bool) {
    let row = proof(owner, symbol);
    let text = sonic_rs::to_string(&row).unwrap();
    let sold = raw(&sonic_rs::to_string(&row["pending"]).unwrap(), "sold").to_owned();
    let [ledger, synced] = ["ledger", "synced"].map(|name| raw(&text, name).to_owned());
    (ledger, synced, sold, row["proved"].as_bool().unwrap())
}

#[test]
fn shares_sold_today_are_still_the_brokers_and_proved() {
    let owner = Owner::new();
    owner.import("a", format!("{HEADER}{BOUGHT}").as_bytes());
    holds_at_a(
        &owner,
        r#"{"symbol":"NSE:INFY","quantity":7,"sold":3,"average_paise":150000},
           {"symbol":"NSE:TCS","quantity":1,"average_paise":300000}"#,
    );
    owner.sync("a", PERSON).with_status(200);
    let row = |sold: &str| ("10".to_owned(), "10".to_owned(), sold.to_owned(), true);
    assert_eq!(proved(&owner, "INFY"), row("0"), "no trade of today is known");
    owner.import("a", format!("{HEADER}{SOLD}").as_bytes());
    assert_eq!(proved(&owner, "INFY"), row("3"));
    let export = owner.get("/api/portfolio/export").with_status(200).json();
    let mut holdings = export["holdings"].as_array().unwrap().iter();
    let infy = holdings.find(|row| row["tradingsymbol"] == "INFY").unwrap();
    assert_eq!(raw(&sonic_rs::to_string(infy).unwrap(), "used_quantity"), "3");
    assert_eq!(raw(&sonic_rs::to_string(infy).unwrap(), "settled_quantity"), "7");
}

#[test]
fn shares_that_were_all_sold_today_are_proved_before_their_sale_is_known() {
    let owner = Owner::new();
    owner.import("a", format!("{HEADER}{BOUGHT}").as_bytes());
    let other = r#"{"symbol":"NSE:TCS","quantity":1,"average_paise":300000}"#;
    let all_sold = r#"{"symbol":"NSE:INFY","quantity":0,"sold":10,"average_paise":150000}"#;
    holds_at_a(&owner, &format!("{all_sold},{other}"));
    owner
        .scene
        .fault("broker_a.trades", r#"{"kind":"html_5xx"}"#);
    assert_eq!(told(&owner, "a"), r#"{"reason":"broker_failed"}"#);
    let row =
        |synced: &str, sold: &str| ("10".to_owned(), synced.to_owned(), sold.to_owned(), true);
    assert_eq!(proved(&owner, "INFY"), row("10", "0"), "no trade of today is known");
    let held = owner.get("/api/portfolio/holdings").with_status(200).json();
    let held = held["holdings"].as_array().unwrap().iter();
    let names: Vec<&str> = held
        .filter_map(|row| row["tradingsymbol"].as_str())
        .collect();
    assert_eq!(names, ["TCS"], "it is no holding");
    let export = owner.get("/api/portfolio/export").with_status(200).json();
    let sold = sonic_rs::to_string(&export["sold_holdings"]).unwrap();
    let name = r#""broker":"a","exchange":"NSE","tradingsymbol":"INFY","isin":"INE009A01021""#;
    assert_eq!(sold, format!(r#"[{{{name},"used_quantity":10}}]"#));

    owner.scene.control("DELETE", "faults", "");
    owner.import("a", format!("{HEADER}{ALL_SOLD}").as_bytes());
    assert_eq!(proved(&owner, "INFY"), row("10", "10"), "the sale is still pending");
    // The broker leaves it out on the next day.
    holds_at_a(&owner, other);
    owner.sync("a", PERSON).with_status(200);
    assert_eq!(proved(&owner, "INFY"), row("0", "10"));
    let export = owner.get("/api/portfolio/export").with_status(200).json();
    assert!(export["sold_holdings"].as_array().unwrap().is_empty());

    holds_at_a(&owner, &format!("{all_sold},{other}"));
    owner.sync("a", PERSON).with_status(200);
    owner
        .service
        .client()
        .request("DELETE", "/api/portfolio/data", &owner.auth)
        .with_status(200);
    let export = owner.get("/api/portfolio/export").with_status(200).json();
    assert!(export["sold_holdings"].as_array().unwrap().is_empty(), "deleted with the rest");
}

/// Sets what the broker tells of trades.
fn trades_are(owner: &Owner, broker: &str, rows: &[String]) {
    let rows = rows.join(",");
    let body = format!(r#"{{"user_id":"{PERSON}","net":[{rows}]}}"#);
    let set = owner
        .scene
        .control("POST", &format!("broker_{broker}/trades"), &body);
    assert_eq!(set.status, 200, "{}", set.text());
}

/// A trade of today as broker A tells it.
fn of_today(id: u32, side: &str, quantity: u32, price: &str) -> String {
    format!(
        r#"{{"trade_id":"{id}","order_id":"{id}0","exchange":"NSE","tradingsymbol":"INFY",
        "instrument_token":1,"transaction_type":"{side}","product":"CNC","average_price":{price},
        "quantity":{quantity},"fill_timestamp":"2026-11-20 09:20:00"}}"#
    )
}

/// An order as broker B tells it.
fn order(number: u32, day: &str, quantity: u32) -> String {
    format!(
        r#"{{"trade_date":"{day}","stock_code":"RELIND","action":"Buy","quantity":"{quantity}",
        "average_cost":"1277.35","brokerage_amount":"31.93","total_taxes":"13.9",
        "product_type":"Cash","exchange_code":"NSE","order_id":"N{number}"}}"#
    )
}

/// What a sync says of the trades.
#[track_caller]
fn told(owner: &Owner, broker: &str) -> String {
    let report = owner.sync(broker, PERSON).with_status(200).json();
    sonic_rs::to_string(&report["trades"]).unwrap()
}

/// Format, state, rows and trades new to the ledger of each import, the newest first.
fn imports(owner: &Owner) -> Vec<(String, String, u64, u64)> {
    let all = owner.get(IMPORTS).with_status(200).json();
    let import = |import: &Value| {
        let [format, state] = ["format", "state"].map(|name| import[name].as_str().unwrap().into());
        let [rows, new] = ["rows", "new"].map(|name| import[name].as_u64().unwrap());
        (format, state, rows, new)
    };
    all["imports"]
        .as_array()
        .unwrap()
        .iter()
        .map(import)
        .collect()
}

fn live(format: &str, rows: u64, new: u64) -> (String, String, u64, u64) {
    (format.to_owned(), "live".to_owned(), rows, new)
}

fn undo_newest(owner: &Owner) {
    let all = owner.get(IMPORTS).with_status(200).json();
    owner
        .undo(all["imports"][0]["id"].as_i64().unwrap())
        .with_status(204);
}

#[test]
fn the_trades_of_today_are_one_import_a_month_and_come_once() {
    let owner = Owner::new();
    holds_at_a(&owner, r#"{"symbol":"NSE:INFY","quantity":7,"sold":3,"average_paise":150000}"#);
    trades_are(&owner, "a", &[]);
    assert_eq!(told(&owner, "a"), r#"{"added":0}"#);
    assert_eq!(imports(&owner), [], "no trades, no import");
    let first = of_today(1002, "SELL", 3, "1600");
    trades_are(&owner, "a", std::slice::from_ref(&first));
    assert_eq!(told(&owner, "a"), r#"{"added":1}"#);
    assert_eq!(told(&owner, "a"), r#"{"added":0}"#);
    let both = [first, of_today(1003, "BUY", 1, "1590.5")];
    trades_are(&owner, "a", &both);
    assert_eq!(told(&owner, "a"), r#"{"added":1}"#);
    assert_eq!(imports(&owner), [live("sync_a", 2, 2)]);
    let trades = owner.trades();
    let isins: Vec<_> = trades.iter().map(|trade| trade["isin"].as_str()).collect();
    assert_eq!(isins, [Some("INE009A01021"); 2], "that of the holding");

    undo_newest(&owner);
    assert_eq!(owner.trades().len(), 0);
    assert_eq!(told(&owner, "a"), r#"{"added":2}"#, "the broker still tells them");
    assert_eq!(imports(&owner), [live("sync_a", 2, 2)]);
}

#[test]
fn a_trade_of_a_file_and_of_a_sync_is_one_and_has_what_both_say() {
    let owner = Owner::new();
    owner.import("a", format!("{HEADER}{BOUGHT}{SOLD}").as_bytes());
    holds_at_a(&owner, r#"{"symbol":"NSE:INFY","quantity":7,"sold":3,"average_paise":150000}"#);
    trades_are(&owner, "a", &[of_today(1002, "SELL", 3, "1600")]);
    assert_eq!(told(&owner, "a"), r#"{"added":0}"#, "the file has it");
    assert_eq!(imports(&owner), [live("sync_a", 1, 0), live("zerodha_tradebook", 2, 2)]);
    let trades = owner.trades();
    assert_eq!(trades.len(), 2);
    assert_eq!(trades[0]["product"], "CNC", "the file has none");
    assert_eq!(trades[0]["sources"].as_array().unwrap().len(), 2);
    assert!(proved(&owner, "INFY").3);
    // The other way round.
    let other = Owner::new();
    holds_at_a(&other, r#"{"symbol":"NSE:INFY","quantity":7,"sold":3,"average_paise":150000}"#);
    trades_are(&other, "a", &[of_today(1002, "SELL", 3, "1600")]);
    assert_eq!(told(&other, "a"), r#"{"added":1}"#);
    other.import("a", format!("{HEADER}{BOUGHT}{SOLD}").as_bytes());
    assert_eq!(other.trades().len(), 2);
}

#[test]
fn a_past_quarter_of_broker_b_is_asked_for_once() {
    let owner = Owner::new();
    let calls = || {
        owner.scene.stats()["requests"]["broker_b.trades"]
            .as_u64()
            .unwrap_or(0)
    };
    let past = order(1, "05-Feb-2026", 10);
    trades_are(&owner, "b", &[past.clone(), order(2, "19-Nov-2026", 4)]);
    assert_eq!(told(&owner, "b"), r#"{"added":2}"#);
    assert_eq!(calls(), 8);
    assert_eq!(imports(&owner), [live("sync_b", 2, 2)]);
    // The second order was being filled, and the quarter of the others was read to its end.
    trades_are(&owner, "b", &[past, order(2, "19-Nov-2026", 6), order(3, "06-Feb-2026", 1)]);
    assert_eq!(told(&owner, "b"), r#"{"added":0}"#, "the same order");
    assert_eq!(calls(), 16, "the present quarter and seven older ones");
    let quantities = |owner: &Owner| -> Vec<String> {
        let trades = owner.trades();
        let texts = trades
            .iter()
            .map(|trade| sonic_rs::to_string(trade).unwrap());
        texts
            .map(|text| raw(&text, "quantity").to_owned())
            .collect()
    };
    assert_eq!(quantities(&owner), ["6", "10"]);
    undo_newest(&owner);
    assert_eq!(
        told(&owner, "b"),
        r#"{"added":3}"#,
        "with the import its quarters are forgotten"
    );
    assert_eq!(quantities(&owner), ["6", "1", "10"]);
}

#[test]
fn a_sync_whose_trades_fail_is_whole_and_says_why() {
    let owner = Owner::new();
    holds_at_a(&owner, r#"{"symbol":"NSE:INFY","quantity":7,"average_paise":150000}"#);
    owner
        .scene
        .fault("broker_a.trades", r#"{"kind":"wrong_types","count":1}"#);
    assert_eq!(told(&owner, "a"), r#"{"reason":"broker_failed"}"#);
    let holdings = owner.get("/api/portfolio/holdings").with_status(200).json();
    assert_eq!(holdings["holdings"].as_array().unwrap().len(), 1);
    assert_eq!(imports(&owner), []);
    // What came before the failure stands, and the quarters after it are asked for again.
    let rows = [order(1, "05-Feb-2026", 10), order(2, "19-Nov-2026", 4)];
    trades_are(&owner, "b", &[rows[0].replace("Buy", "Keep"), rows[1].clone()]);
    assert_eq!(told(&owner, "b"), r#"{"added":1,"reason":"broker_failed"}"#);
    trades_are(&owner, "b", &rows);
    assert_eq!(told(&owner, "b"), r#"{"added":1}"#);
}

#[test]
fn a_sync_whose_trades_hang_is_whole_after_its_deadline_and_keeps_nobody_else() {
    let owner = Owner::new();
    owner.service.fresh_snapshot();
    holds_at_a(&owner, r#"{"symbol":"NSE:INFY","quantity":7,"average_paise":150000}"#);
    for broker in ["a", "b"] {
        let fault = format!("broker_{broker}.trades");
        owner
            .scene
            .fault(&fault, r#"{"kind":"delay","delay_ms":600000}"#);
    }
    at_once(["a", "b"], |broker| {
        let clock = Clock::system();
        let report = told(&owner, broker);
        let took_ms = clock.monotonic_ms();
        assert!(report.contains(r#""reason":"#) && !report.contains("added"), "{report}");
        assert!(took_ms < 2 * TRADES_DEADLINE_MS, "broker {broker}: {took_ms} ms");
    });
    let holdings = owner.get("/api/portfolio/holdings").with_status(200).json();
    assert!(
        holdings["holdings"]
            .as_array()
            .is_some_and(|rows| !rows.is_empty()),
        "{holdings:?}"
    );
    assert_eq!(imports(&owner), []);
    // What hung keeps neither prices nor the next sync.
    owner.service.fresh_snapshot();
    owner.scene.control("DELETE", "faults", "");
    trades_are(&owner, "a", &[of_today(1002, "SELL", 3, "1600")]);
    assert_eq!(told(&owner, "a"), r#"{"added":1}"#);
}

#[test]
fn trades_of_another_client_than_the_accounts_are_not_mixed_in() {
    let owner = Owner::new();
    let book = format!("Client ID,ZZ9999\n{HEADER}{BOUGHT}");
    owner.import("a", book.as_bytes());
    trades_are(&owner, "a", &[of_today(1002, "SELL", 3, "1600")]);
    assert_eq!(told(&owner, "a"), r#"{"reason":"account_differs"}"#);
    assert_eq!(imports(&owner), [live("zerodha_tradebook", 1, 1)]);
    undo_newest(&owner);
    assert_eq!(told(&owner, "a"), r#"{"added":1}"#);
    // The number of an account at broker B is no user's id.
    told(&owner, "b");
    let report = super::owner::file("icici-capital-gains.xls");
    owner.upload("b", &report).with_status(201);
}

#[test]
fn a_full_ledger_takes_no_trades_of_a_sync() {
    let owner = Owner::with(|config| config.store.ledger_rows_max = 1);
    trades_are(&owner, "a", &[of_today(1, "BUY", 3, "1600"), of_today(2, "BUY", 3, "1600")]);
    assert_eq!(told(&owner, "a"), r#"{"reason":"ledger_full"}"#);
    assert_eq!(imports(&owner), []);
}

#[test]
fn the_trades_of_a_sync_are_its_users_alone() {
    let owner = Owner::new();
    trades_are(&owner, "a", &[of_today(1002, "SELL", 3, "1600")]);
    assert_eq!(told(&owner, "a"), r#"{"added":1}"#);
    let auth = bearer(
        &owner
            .service
            .register("other@example.com", "a long enough secret"),
    );
    let ask = |target: &str| {
        owner
            .service
            .client()
            .request("GET", target, &auth)
            .with_status(200)
    };
    assert_eq!(
        ask("/api/trades").json()["trades"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    assert_eq!(ask(IMPORTS).json()["imports"].as_array().unwrap().len(), 0);
    // The same person at the broker, whose trades are another user's too.
    let other = Owner { auth, ..owner };
    assert_eq!(told(&other, "a"), r#"{"added":1}"#);
    assert_eq!(imports(&other), [live("sync_a", 1, 1)]);
}
