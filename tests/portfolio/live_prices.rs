//! Portfolios together with the shared feeds: holdings at live prices, their demand on the feeds,
//! and a sync by the person whose token the feed uses.

use bhav::base::Symbol;
use bhav::cache::pending::Class;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::user::{HOLDINGS, User, decimal, rows, written};
use crate::market::figures::shortest;
use crate::support::{Answer, Scene, until};

/// The case in docs/api.md: the server's token belongs to the same person, for another app.
#[test]
fn a_sync_with_an_app_of_the_users_own_leaves_the_shared_token_alive() {
    let user = User::new();
    let code = user.scene.request_token();
    let body =
        format!(r#"{{"api_key":"simkeya-1","api_secret":"simsecreta","request_token":"{code}"}}"#);
    let answer = user
        .service
        .post("/api/portfolio/sync", &user.auth, &body)
        .with_status(200);
    assert!(!answer.text().contains("shared_token_may_have_ended"), "{}", answer.text());
    let rounds = || {
        user.service.health()["feeds"]["broker_a"]["rounds"]
            .as_u64()
            .unwrap()
    };
    let before = rounds();
    until("rounds that began after the sync", || (rounds() > before + 2).then_some(()));
    assert_eq!(user.service.get("/brokera/status").json()["valid"].as_bool(), Some(true));
    let snapshot = user.service.fresh_snapshot().json();
    assert_eq!(snapshot["market"]["source"].as_str(), Some("broker_a"));
}

#[test]
fn live_holdings_have_what_nobody_asked_prices_for_fetched() {
    let user = User::new();
    user.service.await_instruments();
    user.synced("a");
    let live = until("a live price for every holding", || {
        let json = user.get(&format!("{HOLDINGS}?live=true")).json();
        rows(&json, "holdings")
            .iter()
            .all(|row| row["source"].is_str())
            .then_some(json)
    });
    assert_eq!(rows(&live, "holdings").len(), 12);
    assert_eq!(
        user.service
            .0
            .server()
            .shared()
            .service
            .state()
            .pending
            .stats(Class::Held)
            .symbols,
        0
    );
}

/// A page left open is sent what moved, and nothing of it twice.
#[test]
fn since_an_answer_only_rows_that_moved_are_sent_with_all_sums() {
    let user = User::new();
    user.service.await_instruments();
    user.synced("a");
    user.synced("b");
    let live = format!("{HOLDINGS}?live=true");
    let tag_of = |answer: &Answer| answer.header("etag").unwrap().to_owned();
    let since = |tag: &str| user.get(&format!("{live}&since={}", tag.replace('"', "%22")));
    let named = |row: &Value, members: &[&str]| {
        members
            .iter()
            .map(|member| row[*member].to_string())
            .collect::<String>()
    };
    let names: &dyn Fn(&Value) -> String =
        &|row| named(row, &["broker", "exchange", "tradingsymbol", "isin"]);
    let isins: &dyn Fn(&Value) -> String = &|row| named(row, &["isin"]);
    // Put together from its parts, an answer is the whole of that moment.
    until("rows that moved, and the whole of the same moment", || {
        let before = user.get(&live);
        let moved = since(&tag_of(&before));
        let whole = user.get(&live);
        let part = moved.json();
        if tag_of(&moved) != tag_of(&whole) || part["since"].as_str().is_none() {
            return None; // a price came in between
        }
        let before = before.json();
        let whole = whole.json();
        for (list, named) in [("holdings", names), ("merged", isins)] {
            let of = |json: &Value| match list {
                "merged" => json["summary"]["merged"].as_array().unwrap().to_vec(),
                _ => json["holdings"].as_array().unwrap().to_vec(),
            };
            let news = of(&part);
            let now = |row: &Value| {
                news.iter()
                    .find(|new| named(new) == named(row))
                    .unwrap_or(row)
                    .clone()
            };
            let together: Vec<Value> = of(&before).iter().map(now).collect();
            assert_eq!(together, of(&whole), "{list}");
        }
        assert_eq!(part["summary"]["total_pnl"], whole["summary"]["total_pnl"]);
        let sent = rows(&part, "holdings").len();
        // Here all prices move. That a row which stands is not sent is tested beside `MovedRows`.
        (sent > 0).then_some(())
    });
    for (query, tag) in [("live=true", "nonsense"), ("live=true", "W/\"00-br\"")] {
        let answer = user.get(&format!("{HOLDINGS}?{query}&since={}", tag.replace('"', "%22")));
        let json = answer.with_status(200).json();
        assert!(json["since"].is_null() && rows(&json, "holdings").len() > 20, "{tag}");
    }
    for query in [
        "since=x",
        "live=false&since=x",
        "live=true&since=",
        "live=true&since=%2B",
    ] {
        user.get(&format!("{HOLDINGS}?{query}"))
            .expect_problem(400, "validation_failed");
    }
}

#[test]
fn what_somebody_holds_takes_a_small_part_of_the_public_calls() {
    let (scene, service) = Scene::trading_with(|config| config.broker_a.access_token = None);
    service.fresh_snapshot();
    let calls = || {
        let stats = scene.stats();
        ["public.spark", "public.spark_v8", "public.chart"]
            .map(|route| stats["requests"][route].as_u64().unwrap_or(0))
            .iter()
            .sum::<u64>()
    };
    let symbol = |number| Symbol::parse(&format!("NSE:HELD{number}")).unwrap();
    let symbols: Vec<_> = (0..40).map(symbol).collect();
    let pending = &service.0.server().shared().service.state().pending;
    let before = calls();
    pending.note_held(&symbols).unwrap();
    until("all of them tried", || {
        let left = pending.stats(Class::Held).symbols as u64;
        // Five a call, and one call may have begun before they were counted.
        assert!(40 - left <= 5 * (calls() - before + 1), "{left} left");
        (left == 0).then_some(())
    });
    // A waiting client is not queued behind them.
    pending
        .note_held(&(40..80).map(symbol).collect::<Vec<_>>())
        .unwrap();
    assert_eq!(service.prices("NSE:INFY").quoted(), ["NSE:INFY"]);
}

#[test]
fn live_prices_take_the_place_of_older_ones_and_say_so() {
    let user = User::new();
    user.synced("a");
    let stored = user.get(HOLDINGS).json();
    let names: Vec<String> = rows(&stored, "holdings")
        .iter()
        .map(|row| format!("NSE:{}", row["tradingsymbol"].as_str().unwrap()).replace('&', "%26"))
        .collect();
    user.service.await_instruments();
    let first = &names[0];
    let live = until("a quote younger than the sync", || {
        assert_eq!(user.service.prices(first).status, 200);
        let live = user.get(&format!("{HOLDINGS}?live=true"));
        assert_eq!(live.header("cache-control"), Some("no-store"));
        let json = live.json();
        rows(&json, "holdings")[0]["source"]
            .is_str()
            .then_some(json)
    });
    let row = &live["holdings"][0];
    assert_eq!(row["source"].as_str(), Some("broker_a"));
    assert!(row["stale"].is_boolean());
    let pnl =
        decimal(row, "quantity") * (decimal(row, "last_price") - decimal(row, "average_price"));
    assert_eq!(written(&row["pnl"]), shortest(pnl));
}
