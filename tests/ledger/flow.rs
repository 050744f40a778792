//! From a file to trades: previewed, confirmed, repeated, undone, and emptied.

use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::owner::{IMPORTS, Owner, TRADEBOOK, TRADES, counts, file};
use crate::market::figures::raw;
use crate::support::members;

#[test]
fn a_tradebook_is_previewed_confirmed_listed_and_undone() {
    let owner = Owner::new();
    let preview = owner.preview("a", &file(TRADEBOOK));
    assert_eq!(preview["kind"], "trades");
    assert_eq!(preview["format"], "zerodha_tradebook");
    assert_eq!((&preview["account"], &preview["person"]), (&"a".into(), &"self".into()));
    assert_eq!(counts(&preview), [19, 0, 0, 0, 0]);
    assert_eq!(preview["period"]["from"], "2018-10-04");
    // Nothing counts before it is confirmed.
    assert_eq!(owner.trades().len(), 0);
    let id = preview["id"].as_i64().unwrap();
    let confirmed = owner.confirm(id).with_status(200);
    assert_eq!(confirmed.json()["new"].as_u64(), Some(19));
    assert_eq!(owner.confirm(id).with_status(200).body, confirmed.body, "a second time");

    let trades = owner.trades();
    assert_eq!(trades.len(), 19);
    let dates: Vec<&str> = trades
        .iter()
        .map(|trade| trade["date"].as_str().unwrap())
        .collect();
    assert!(dates.is_sorted_by(|one, other| one >= other), "{dates:?}");
    let sold = trades
        .iter()
        .find(|trade| trade["trade_id"] == "51440918")
        .unwrap();
    assert_eq!(raw(&sonic_rs::to_string(sold).unwrap(), "price"), "2877.15");
    assert_eq!(sold["sources"][0]["import_id"].as_i64(), Some(id));
    assert_eq!(sold["sources"][0]["line"].as_u64(), Some(4));

    let again = owner.preview("a", &file(TRADEBOOK));
    assert_eq!(counts(&again), [0, 19, 0, 0, 0], "the same file");
    owner
        .confirm(again["id"].as_i64().unwrap())
        .with_status(200);
    let workbook = owner.preview("a", &file("zerodha-tradebook-console-a9.xlsx"));
    let [new, known, ..] = counts(&workbook);
    assert_eq!((new, known), (0, 19), "the same trades as a workbook");
    owner
        .confirm(workbook["id"].as_i64().unwrap())
        .with_status(200);
    let old = owner.preview("a", &file("zerodha-tradebook-old-template.csv"));
    assert_eq!(counts(&old), [0, 4, 0, 0, 0], "some of them, without an ISIN");
    assert_eq!(owner.trades().len(), 19);

    // The workbook still has them.
    assert_eq!(owner.undo(id).status, 204);
    assert_eq!(owner.trades().len(), 19);
    owner.undo(id).expect_problem(404, "import_not_found");
    owner.confirm(id).expect_problem(410, "import_gone");
    owner
        .undo(workbook["id"].as_i64().unwrap())
        .with_status(204);
    assert_eq!(owner.trades().len(), 0);
}

#[test]
fn files_of_each_kind_are_told_by_their_content() {
    let owner = Owner::new();
    for (name, format, kind, rows) in [
        (TRADEBOOK, "zerodha_tradebook", "trades", 19),
        ("zerodha-tradebook-fo.csv", "zerodha_tradebook", "trades", 3),
        ("zerodha-tradebook-old-template.csv", "zerodha_tradebook", "trades", 4),
        ("zerodha-tradebook-console-a9.xlsx", "zerodha_tradebook", "trades", 19),
        ("icici-tradebook.csv", "icici_tradebook", "trades", 3),
    ] {
        let preview = owner.preview("x", &file(name));
        assert_eq!((&preview["format"], &preview["kind"]), (&format.into(), &kind.into()));
        let [new, known, conflicts, ..] = counts(&preview);
        assert_eq!((new, known, conflicts), (rows, 0, 0), "{name}");
    }
    for (name, format) in [
        ("zerodha-taxpnl-2024_2025.zip", "zerodha_tax_report"),
        ("icici-capital-gains.xls", "icici_capital_gains"),
    ] {
        let preview = owner.preview("x", &file(name));
        assert_eq!((&preview["format"], &preview["kind"]), (&format.into(), &"tax_report".into()));
        let [new, ..] = counts(&preview);
        assert!(new > 0, "{name}");
        owner
            .confirm(preview["id"].as_i64().unwrap())
            .with_status(200);
    }
    assert_eq!(owner.trades().len(), 0, "a report is no trades");
    let imports = owner.get(IMPORTS).with_status(200).json();
    let states: Vec<&str> = imports["imports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|import| import["state"].as_str().unwrap())
        .collect();
    // Of the open previews the oldest went each time there would have been five.
    assert_eq!(states.iter().filter(|state| **state == "live").count(), 2, "{states:?}");
    assert_eq!(states.iter().filter(|state| **state == "preview").count(), 3, "{states:?}");
}

#[test]
fn a_page_goes_on_where_the_last_one_ended_and_filters_hold() {
    let owner = Owner::new();
    owner.import("a", &file(TRADEBOOK));
    let whole = owner.trades();
    let mut paged: Vec<Value> = Vec::new();
    let mut target = format!("{TRADES}?limit=4");
    loop {
        let page = owner.get(&target).with_status(200).json();
        assert_eq!(members(&page), ["trades", "next_cursor"]);
        paged.extend(page["trades"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        target = format!("{TRADES}?limit=4&cursor={cursor}");
    }
    assert_eq!(paged, whole);
    let found = |query: &str| {
        let page = owner
            .get(&format!("{TRADES}?{query}"))
            .with_status(200)
            .json();
        page["trades"].as_array().unwrap().len()
    };
    assert_eq!(found("symbol=reliance"), 4);
    assert_eq!(found("isin=INE009A01021&side=sell"), 1);
    assert_eq!(found("from=2024-06-13&to=2024-06-13"), 1);
    assert_eq!(found("account=b"), 0);
    for bad in [
        "limit=0",
        "limit=501",
        "from=2024-13-01",
        "side=both",
        "isin=X",
        "account=A",
    ] {
        owner
            .get(&format!("{TRADES}?{bad}"))
            .expect_problem(400, "validation_failed");
    }
    owner
        .get(&format!("{TRADES}?cursor=nonsense"))
        .expect_problem(400, "cursor_invalid");

    let csv = owner
        .get("/api/trades.csv?symbol=RELIANCE")
        .with_status(200);
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    let lines: Vec<&str> = csv.text().lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[1].starts_with("2024-08-21,10:58:30,a,RELIANCE,INE002A01018,NSE,EQ,EQ,sell,9,"));
}

#[test]
fn an_unchanged_ledger_is_304_and_a_changed_one_is_not() {
    let owner = Owner::new();
    let tag = |target: &str| owner.get(target).header("etag").unwrap().to_owned();
    let with_tag = |tag: &str| {
        let headers = format!("{}If-None-Match: {tag}\r\n", owner.auth);
        owner
            .service
            .client()
            .request("GET", TRADES, &headers)
            .status
    };
    let empty = tag(TRADES);
    let preview = owner.preview("a", &file(TRADEBOOK));
    assert_eq!(with_tag(&empty), 304, "a preview changes nothing");
    let id = preview["id"].as_i64().unwrap();
    owner.confirm(id).with_status(200);
    assert_eq!(with_tag(&empty), 200);
    let full = tag(TRADES);
    assert_eq!(with_tag(&full), 304);
    owner.undo(id).with_status(204);
    assert_eq!(with_tag(&full), 200);

    owner.import("a", &file(TRADEBOOK));
    let now = tag(TRADES);
    let delete = |lines: &str| {
        let headers = format!("{}{lines}", owner.auth);
        let body = r#"{"confirm":"delete all trades"}"#;
        owner
            .service
            .client()
            .send_json("DELETE", TRADES, &headers, body)
    };
    delete(&format!("If-Match: {full}\r\n")).expect_problem(412, "precondition_failed");
    assert_eq!(owner.trades().len(), 19);
    assert_eq!(delete(&format!("If-Match: {now}\r\n")).status, 204);
    assert_eq!(owner.trades().len(), 0);
}

#[test]
fn deleting_all_trades_needs_its_words_and_leaves_the_portfolio() {
    let owner = Owner::new();
    owner.import("a", &file(TRADEBOOK));
    let correction = r#"{"kind":"class","isin":"INF204KB17I5","class":"equity"}"#;
    owner
        .send("PUT", "/api/trades/corrections/gold", correction)
        .with_status(200);
    for body in ["{}", r#"{"confirm":"yes"}"#] {
        owner
            .send("DELETE", TRADES, body)
            .expect_problem(400, "validation_failed");
    }
    assert_eq!(owner.trades().len(), 19);
    owner
        .send("DELETE", TRADES, r#"{"confirm":"delete all trades"}"#)
        .with_status(204);
    assert_eq!(owner.trades().len(), 0);
    let corrections = owner.get("/api/trades/corrections").with_status(200).json();
    assert_eq!(corrections["corrections"].as_array().unwrap().len(), 0);
    let imports = owner.get(IMPORTS).with_status(200).json();
    assert_eq!(imports["imports"].as_array().unwrap().len(), 0);
}

#[test]
fn what_a_person_says_is_kept_replaced_and_deleted() {
    let owner = Owner::new();
    let path = "/api/trades/corrections/split.1";
    let split = |numerator: u32| {
        format!(
            r#"{{"kind":"split","isin":"INE040A01034","ex_date":"2024-08-24",
            "numerator":{numerator},"denominator":1}}"#
        )
    };
    let put = owner.send("PUT", path, &split(5)).with_status(200).json();
    assert_eq!(put["id"], "split.1");
    assert_eq!(put["correction"]["numerator"].as_u64(), Some(5));
    owner.send("PUT", path, &split(2)).with_status(200);
    let all = owner.get("/api/trades/corrections").with_status(200).json();
    assert_eq!(all["corrections"].as_array().unwrap().len(), 1);
    assert_eq!(all["corrections"][0]["correction"]["numerator"].as_u64(), Some(2));
    for bad in [
        "{}",
        r#"{"kind":"split"}"#,
        r#"{"kind":"dividend"}"#,
        &split(0),
    ] {
        owner
            .send("PUT", path, bad)
            .expect_problem(400, "validation_failed");
    }
    let long = format!("/api/trades/corrections/{}", "x".repeat(65));
    assert_eq!(owner.send("PUT", &long, &split(2)).status, 404);
    assert_eq!(owner.bare("DELETE", path).status, 204);
    owner
        .bare("DELETE", path)
        .expect_problem(404, "correction_not_found");

    let person = owner.send("PUT", "/api/trades/accounts/b", r#"{"person":"wife"}"#);
    assert_eq!(person.with_status(200).json()["person"], "wife");
    let preview = owner.preview("b", &file("icici-tradebook.csv"));
    assert_eq!(preview["person"], "wife");
    owner
        .send("PUT", "/api/trades/accounts/b", r#"{"person":"A B"}"#)
        .expect_problem(400, "validation_failed");
}

#[test]
fn two_rows_with_one_id_and_other_figures_wait_for_a_choice() {
    let owner = Owner::new();
    owner.import("a", &file(TRADEBOOK));
    let other = String::from_utf8(file(TRADEBOOK))
        .unwrap()
        .replace("2877.150000", "2900.000000");
    let preview = owner.preview("a", other.as_bytes());
    assert_eq!(counts(&preview), [0, 18, 1, 0, 0]);
    assert_eq!(preview["conflicts"][0]["line"].as_u64(), Some(4));
    owner
        .confirm(preview["id"].as_i64().unwrap())
        .with_status(200);
    let find = || {
        let trades = owner.trades();
        trades
            .into_iter()
            .find(|trade| trade["trade_id"] == "51440918")
            .unwrap()
    };
    let conflict = find();
    assert_eq!(conflict["mark"], "conflict");
    assert!(conflict["price"].is_null() && conflict["quantity"].is_null());
    let text = sonic_rs::to_string(&conflict["first"]).unwrap();
    assert_eq!(raw(&text, "price"), "2877.15");
    let path = format!("/api/trades/conflicts/{}", conflict["id"].as_str().unwrap());
    owner
        .send("PUT", &path, r#"{"keep":"both"}"#)
        .expect_problem(400, "validation_failed");
    owner
        .send("PUT", &path, r#"{"keep":"second"}"#)
        .with_status(204);
    let chosen = find();
    assert!(chosen["mark"].is_null());
    assert_eq!(raw(&sonic_rs::to_string(&chosen).unwrap(), "price"), "2900");
}
