//! Portfolios together with the shared feeds: holdings at live prices, their demand on the feeds,
//! and a sync by the person whose token the feed uses.

use bhav::base::Symbol;
use bhav::cache::pending::Class;
use sonic_rs::JsonValueTrait;

use super::user::{HOLDINGS, User, decimal, rows, written};
use crate::market::figures::shortest;
use crate::support::{Scene, until};

/// The case in docs/api.md: the server's token belongs to the same person, for another app.
#[test]
fn a_sync_with_an_app_of_the_users_own_leaves_the_shared_token_alive() {
    let user = User::new();
    let code = user.scene.request_token();
    let body =
        format!(r#"{{"api_key":"simkeya-1","api_secret":"simsecreta","request_token":"{code}"}}"#);
    let answer = user.service.post("/api/portfolio/sync", &user.auth, &body).with_status(200);
    assert!(!answer.text().contains("shared_token_may_have_ended"), "{}", answer.text());
    let rounds = || user.service.health()["feeds"]["broker_a"]["rounds"].as_u64().unwrap();
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
        rows(&json, "holdings").iter().all(|row| row["source"].is_str()).then_some(json)
    });
    assert_eq!(rows(&live, "holdings").len(), 12);
    assert_eq!(
        user.service.0.server().shared().service.state().pending.stats(Class::Held).symbols,
        0
    );
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
    pending.note_held(&(40..80).map(symbol).collect::<Vec<_>>()).unwrap();
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
        rows(&json, "holdings")[0]["source"].is_str().then_some(json)
    });
    let row = &live["holdings"][0];
    assert_eq!(row["source"].as_str(), Some("broker_a"));
    assert!(row["stale"].is_boolean());
    let pnl =
        decimal(row, "quantity") * (decimal(row, "last_price") - decimal(row, "average_price"));
    assert_eq!(written(&row["pnl"]), shortest(pnl));
}
