//! The broker's report beside the tradebook over HTTP: comparison, what the report alone says, and
//! the worksheet of the gains that are proved.

use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::owner::{DIVIDENDS, Owner, TRADEBOOK, file};
use crate::support::members;

const AGREEMENT: &str = "/api/trades/agreement?fy=2024-25";
const GAINS: &str = "/api/trades/gains?fy=2024-25";
const REPORT: &str = "zerodha-taxpnl-2024_2025.zip";

/// The number at a path, as it is written.
fn number(of: &Value, name: &str) -> f64 {
    of[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} of {of:?}"))
}

fn lines(of: &Value) -> Vec<String> {
    let line = |line: &Value| {
        format!("{} {}", line["symbol"].as_str().unwrap(), line["status"].as_str().unwrap())
    };
    of["lines"].as_array().unwrap().iter().map(line).collect()
}

fn stated(gains: &Value) -> Vec<String> {
    let left_out = gains["left_out"].as_array().unwrap().iter();
    let of = left_out.filter(|row| row["reason"] == "stated");
    of.map(|row| row["symbol"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_report_alone_is_stated_and_beside_a_tradebook_it_agrees() {
    let owner = Owner::new();
    owner.import("a", &file(REPORT));
    let alone = owner.get(AGREEMENT).with_status(200).json();
    assert_eq!(alone["only_report"].as_u64(), Some(6));
    let gains = owner.get(GAINS).with_status(200).json();
    assert_eq!(stated(&gains).len(), 6);
    let sums = &gains["totals_stated"];
    assert_eq!(members(sums), ["short", "long", "intraday", "fno"]);
    assert_eq!(number(sums, "long"), 13078.45);
    assert_eq!((number(sums, "intraday"), number(sums, "fno")), (129.75, 1070.0));
    assert_eq!(gains["years"][0], "2024-25");
    assert!(gains["totals"]["dividends"].is_null());

    owner.import("a", &file(TRADEBOOK));
    owner.import("a", &file("zerodha-tradebook-fo.csv"));
    let both = owner.get(AGREEMENT).with_status(200).json();
    assert_eq!(
        lines(&both),
        [
            "RELIANCE agreed",
            "RELIANCE agreed",
            "RELIANCE agreed",
            "INFY agreed",
            "NIFTY24SEP25100CE agreed",
            "NIFTY24SEP24700PE only_ledger",
            "EXAMPLEOLD only_report",
        ]
    );
    assert_eq!(number(&both, "amount_agreed"), 11478.2);
    assert_eq!(number(&both, "amount_open"), 2800.0);
    let gains = owner.get(GAINS).with_status(200).json();
    assert_eq!(stated(&gains), ["EXAMPLEOLD"]);
    assert_eq!(number(&gains["totals_stated"], "long"), 2800.0);
    let agreed: Vec<Option<bool>> = gains["sales"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sale| sale["agreed"].as_bool())
        .collect();
    assert_eq!(agreed, [Some(true), Some(true), Some(true), Some(true), None, None]);

    let page = owner
        .get(&format!("{AGREEMENT}&limit=4"))
        .with_status(200)
        .json();
    let next = page["next_cursor"].as_str().unwrap();
    let rest = owner
        .get(&format!("{AGREEMENT}&limit=4&cursor={next}"))
        .with_status(200)
        .json();
    assert_eq!([lines(&page), lines(&rest)].concat(), lines(&both));
    assert_eq!(rest["agreed"].as_u64(), Some(5));
    let other = owner
        .get(&format!("{AGREEMENT}&account=b"))
        .with_status(200)
        .json();
    assert_eq!(lines(&other).len(), 0);
    for bad in ["fy=2024", "account=A", "limit=0"] {
        let target = format!("/api/trades/agreement?{bad}");
        owner.get(&target).expect_problem(400, "validation_failed");
    }
}

#[test]
fn dividends_of_a_report_are_income() {
    let owner = Owner::new();
    owner.import("a", DIVIDENDS.as_bytes());
    let gains = owner.get(GAINS).with_status(200).json();
    assert_eq!(number(&gains["totals"], "dividends"), 200.0);
    assert_eq!(gains["income"][0]["ex_date"], "2024-05-31");
}

#[test]
fn a_report_offers_the_purchase_of_what_was_sold_without_one() {
    let owner = Owner::new();
    let book = String::from_utf8(file(TRADEBOOK)).unwrap();
    let without: Vec<&str> = book
        .lines()
        .filter(|line| !line.contains("2023-08-02"))
        .collect();
    owner.import("a", without.join("\n").as_bytes());
    owner.import("a", &file(REPORT));
    let proof = owner
        .get("/api/trades/reconciliation")
        .with_status(200)
        .json();
    let mut rows = proof["rows"].as_array().unwrap().iter();
    let row = rows.find(|row| row["symbol"] == "RELIANCE").unwrap();
    let offer = &row["mends"][0]["correction"];
    assert_eq!((&offer["kind"], &offer["date"]), (&"opening_lot".into(), &"2023-08-02".into()));
    assert_eq!(number(offer, "cost"), 14992.5);
    let text = sonic_rs::to_string(offer).unwrap();
    owner
        .send("PUT", "/api/trades/corrections/offered", &text)
        .with_status(200);
    let found = owner.get(AGREEMENT).with_status(200).json();
    assert_eq!(found["differs"].as_u64(), Some(0));
    assert_eq!(lines(&found)[..3], ["RELIANCE agreed"; 3]);
}

#[test]
fn the_worksheet_has_what_is_proved_and_counts_what_is_not() {
    let owner = Owner::new();
    let empty = owner
        .get("/api/trades/tax/2025-26/112a.csv")
        .with_status(200);
    assert_eq!(empty.header("content-type"), Some("text/csv; charset=utf-8"));
    assert_eq!(empty.header("x-left-out"), Some("0"));
    assert_eq!(empty.text().lines().count(), 1);
    owner
        .get("/api/trades/tax/2025-26/112a.csv?strict=true")
        .with_status(200);

    owner.import("a", &file(TRADEBOOK));
    owner.import("a", &file(REPORT));
    let target = "/api/trades/tax/2024-25/112a.csv";
    let sheet = owner.get(target).with_status(200);
    let sample = file("schedule-112a-2024-25.csv");
    let header = std::str::from_utf8(&sample)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    // Nothing of an account that was never synced is proved.
    assert_eq!(sheet.text(), format!("{header}\n"));
    assert_eq!(sheet.header("x-left-out"), Some("4"));
    owner
        .get(&format!("{target}?strict=true"))
        .expect_problem(409, "incomplete");
    owner
        .get(&format!("{target}?strict=maybe"))
        .expect_problem(400, "validation_failed");
    for year in ["2019-20", "2026-27"] {
        let target = format!("/api/trades/tax/{year}/112a.csv");
        owner.get(&target).expect_problem(409, "form_not_notified");
    }
    owner
        .get("/api/trades/tax/2024/112a.csv")
        .expect_problem(400, "validation_failed");
    owner
        .get("/api/trades/tax/2024-25/112b.csv")
        .expect_problem(404, "not_found");
}
