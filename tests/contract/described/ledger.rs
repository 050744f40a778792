//! The ledger's documents: files of each kind, conflicts, proposals, corrections of each kind.

use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::answers::sync_broker_b;
use super::checker::Checker;
use super::walk::Walk;
use crate::ledger::owner::{IMPORTS, TRADEBOOK, TRADES, file, fill_ledger};
use crate::support::{Answer, Scene};

const LOGIN: &str = r#"{"email":"walk@example.com","password":"nine green parrots"}"#;
/// A line that is refused, a bonus, and a purchase.
const TRANSACTIONS: &str = "\
Stock Symbol,Company Name,ISIN Code,Action,Quantity,Transaction Price,Brokerage,\
Transaction Charges,StampDuty,Segment,STT Paid/Not Paid,Remarks,Transaction Date,Exchange,
RELIND,Reliance,INE002A01018,Buy,10,1000,1,2,3,Rolling,STT Paid,,11-Jul-2017,NSE,
RELIND,Reliance,INE002A01018,Buy,10,0,0,0,0,Rolling,STT Paid,BONUS 1:1,07-Sep-2017,NSE,
RELIND,Reliance,INE002A01018,Buy,-1,5,0,0,0,Rolling,STT Paid,,08-Sep-2017,NSE,
";
/// One of each kind, with all its members.
const CORRECTIONS: &[&str] = &[
    r#"{"kind":"split","account":"a","isin":"INE040A01034","new_isin":"INE040A01042",
        "ex_date":"2024-08-24","numerator":1,"denominator":1}"#,
    r#"{"kind":"bonus","isin":"INE040A01034","ex_date":"2024-08-24","numerator":1,
        "denominator":2,"record_date":"2024-08-24","allotment_date":"2024-08-27"}"#,
    r#"{"kind":"merger","isin":"INE001A01036","new_isin":"INE040A01034","ex_date":"2023-07-13",
        "numerator":42,"denominator":25,"cash":10.5}"#,
    r#"{"kind":"demerger","isin":"INE155A01022","new_isin":"INE1TAE01010",
        "ex_date":"2025-10-14","numerator":1,"denominator":1,"cost_percent":31.15}"#,
    r#"{"kind":"rights","account":"a","isin":"INE040A01034","date":"2020-05-14","quantity":10,
        "price":100}"#,
    r#"{"kind":"opening_lot","account":"x","isin":"INE009A01021","date":"2015-03-02",
        "entered":"2022-05-04","quantity":10,"cost":5000,"how":"gift"}"#,
    r#"{"kind":"transfer","account":"x","to":"b","isin":"INE040A01034","date":"2020-05-14",
        "quantity":10}"#,
    r#"{"kind":"class","isin":"INF204KB17I5","class":"equity_fund"}"#,
    r#"{"kind":"symbol","account":"b","symbol":"RELIND","isin":"INE002A01018"}"#,
    r#"{"kind":"unproved","isin":"INE040A01034","date":"2020-05-14","what":"delisting",
        "note":"a note"}"#,
];

pub fn files_and_what_they_come_to(checker: &mut Checker) {
    let scene = Scene::at(crate::support::TRADING);
    let service = scene.start_with(&scene.config_without_tokens());
    let walk = &mut Walk::new(&service, checker);
    let new = walk.expect(201, "POST", "/api/auth/register", LOGIN);
    walk.enter(&new);
    sync_broker_b(walk, &scene);
    let id_of = |answer: &Answer| answer.json()["id"].as_i64().unwrap();
    let target = format!("{IMPORTS}?account=x");
    let preview = walk.upload(201, &target, TRANSACTIONS.as_bytes());
    let json = preview.json();
    assert_eq!(json["proposals"].as_array().unwrap().len(), 1, "{}", preview.text());
    assert_eq!(json["refused"].as_array().unwrap().len(), 1, "{}", preview.text());
    walk.upload(422, &target, b"nothing known");
    fill_ledger(&service, &walk.auth.clone());
    // The figures of the row that was not kept.
    let other = String::from_utf8(file(TRADEBOOK))
        .unwrap()
        .replace("1893.200000", "1.000000");
    let book = format!("{IMPORTS}?account=a");
    let preview = walk.upload(201, &book, other.as_bytes());
    assert!(!preview.json()["conflicts"].as_array().unwrap().is_empty());
    walk.expect(200, "POST", &format!("{IMPORTS}/{}/confirm", id_of(&preview)), "");
    walk.get(IMPORTS);
    walk.still_stands(IMPORTS);
    let trades = walk.get(TRADES).json();
    let mut trades = trades["trades"].as_array().unwrap().iter();
    let conflict = trades.find(|trade| trade["mark"] == "conflict").unwrap();
    let conflict = format!("/api/trades/conflicts/{}", conflict["id"].as_str().unwrap());
    walk.expect(204, "PUT", &conflict, r#"{"keep":"second"}"#);
    let demat = walk.upload(201, &format!("{IMPORTS}?account=b"), &file("icici-tradebook.csv"));
    walk.expect(200, "POST", &format!("{IMPORTS}/{}/confirm", id_of(&demat)), "");
    for (number, correction) in CORRECTIONS.iter().enumerate() {
        walk.expect(200, "PUT", &format!("/api/trades/corrections/c{number}"), correction);
    }
    walk.expect(200, "PUT", "/api/trades/accounts/b", r#"{"person":"self"}"#);
    for target in [
        "/api/trades/accounts",
        "/api/trades/corrections",
        "/api/trades/gains?fy=2024-25",
        "/api/trades/gains.csv?fy=2024-25",
        "/api/trades/agreement?fy=2024-25",
        "/api/trades/tax/2024-25/112a.csv",
        "/api/trades/lots",
        "/api/trades/reconciliation",
        "/api/trades/returns",
        "/api/trades.csv",
        TRADES,
    ] {
        walk.get(target);
        walk.still_stands(target);
    }
    walk.get("/api/portfolio/export");
    walk.expect(204, "DELETE", "/api/trades/corrections/c0", "");
    walk.expect(204, "DELETE", &format!("{IMPORTS}/{}", id_of(&demat)), "");
    walk.expect(204, "DELETE", TRADES, r#"{"confirm":"delete all trades"}"#);
}
