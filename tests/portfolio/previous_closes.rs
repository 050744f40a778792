//! Previous closes over HTTP: base prices that the exchange adjusted, sources that say today's
//! close for yesterday's, and days without trading that the calendar does not know.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bhav::config::Config;
use rust_decimal::Decimal;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::close::{advance_to_finish, scene_by_hand, store};
use crate::support::upstream::{Said, Upstream};
use crate::support::{Client, SNAPSHOT, Scene, Service, bearer, until};

/// Advances the clock and logs the server in at broker A, as each day needs.
fn go_to(scene: &Scene, at: &str) {
    let at: jiff::Timestamp = at.parse().unwrap();
    scene.advance_ms(at.as_millisecond() - scene.clock.now_ms());
    let login = r#"{"access_token":"simtokena"}"#;
    assert_eq!(scene.control("POST", "broker_a/token", login).status, 200);
}

fn sync(scene: &Scene, service: &Service, auth: &str) -> Value {
    let code = scene.request_token();
    let keys = r#""api_key":"simkeya-1","api_secret":"simsecreta""#;
    let body = format!(r#"{{{keys},"request_token":"{code}"}}"#);
    scene
        .while_time_passes(|| service.post("/api/portfolio/sync", auth, &body))
        .json()
}

fn get(scene: &Scene, service: &Service, auth: &str, target: &str) -> Value {
    scene
        .while_time_passes(|| service.client().request("GET", target, auth))
        .json()
}

fn row(holdings: &Value, ticker: &str) -> Value {
    let rows = holdings["holdings"].as_array().unwrap().iter();
    rows.into_iter()
        .find(|row| row["tradingsymbol"] == ticker)
        .unwrap()
        .clone()
}

/// A share of which the user holds settled ones at a known cost.
fn held(holdings: &Value) -> String {
    let rows = holdings["holdings"].as_array().unwrap().iter();
    let mut rows = rows.filter(|row| row["average_price"].is_number());
    rows.next().unwrap()["tradingsymbol"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_bonus_marks_holding_and_trend_while_the_quantity_has_not_followed() {
    let scene = scene_by_hand("2026-11-20T14:00:00+05:30");
    let service = scene.start();
    let auth = bearer(&service.register("pf@example.com", "a long enough secret"));
    sync(&scene, &service, &auth);
    go_to(&scene, "2026-11-20T15:50:00+05:30");
    advance_to_finish(&scene, &service, 1_000);
    let holdings = get(&scene, &service, &auth, "/api/portfolio/holdings");
    let ticker = held(&holdings);
    assert_eq!(row(&holdings, &ticker)["corporate_action"], false);

    go_to(&scene, "2026-11-23T11:00:00+05:30");
    let bonus = format!(r#"{{"symbol":"NSE:{ticker}","new":4,"old":3}}"#);
    assert_eq!(scene.control("POST", "split", &bonus).status, 200);
    let report = sync(&scene, &service, &auth);
    let suspected = report["suspected_corporate_actions"].as_array().unwrap();
    let reasons: Vec<&str> = suspected
        .iter()
        .filter_map(|row| row["reason"].as_str())
        .collect();
    assert!(reasons.contains(&"base_price"), "{reasons:?}");
    let holdings = get(&scene, &service, &auth, "/api/portfolio/holdings");
    let rows = holdings["holdings"].as_array().unwrap().iter();
    let marked: Vec<_> = rows.filter(|row| row["corporate_action"] == true).collect();
    assert_eq!(marked.len(), 1, "no other row");
    assert_eq!(marked[0]["tradingsymbol"], ticker.as_str());
    let pnl = get(&scene, &service, &auth, "/api/portfolio/pnl?days=7");
    let trend = pnl["trend"].as_array().unwrap();
    let suspect: Vec<bool> = trend
        .iter()
        .map(|point| point["suspect"].as_bool().unwrap())
        .collect();
    assert_eq!(suspect, [false, true]);
}

/// The exchange is closed on Tuesday 24 November, and an operator's calendar has it open.
#[test]
fn a_day_without_trading_that_the_calendar_does_not_know_moves_nothing() {
    let scene = scene_by_hand("2026-11-23T14:00:00+05:30");
    let file = scene.state.path().join("calendar.toml");
    std::fs::write(&file, "[[trading_day]]\ndate = \"2026-11-24\"\nname = \"open\"\n").unwrap();
    let mut config: Config = scene.config();
    config.market.calendar_file = Some(file);
    let service = scene.start_with(&config);
    let auth = bearer(&service.register("pf@example.com", "a long enough secret"));
    sync(&scene, &service, &auth);
    go_to(&scene, "2026-11-23T15:50:00+05:30");
    let kept = store(&service);
    until("Monday's run to finish", || {
        scene.advance_ms(1_000);
        kept.is_closed("2026-11-23".parse().unwrap())
            .unwrap()
            .then_some(())
    });
    let before = get(&scene, &service, &auth, "/api/portfolio/pnl");
    assert_eq!(before["summary"]["day"], "2026-11-23");
    assert!(before["summary"]["day_pnl"].is_number(), "{before:?}");
    for now in ["2026-11-24T11:00:00+05:30", "2026-11-24T18:00:00+05:30"] {
        go_to(&scene, now);
        sync(&scene, &service, &auth);
        let pnl = get(&scene, &service, &auth, "/api/portfolio/pnl");
        assert_eq!(pnl["summary"]["day"], "2026-11-24", "{now}");
        assert!(pnl["summary"]["day_pnl"].is_null(), "{now}: {}", pnl["summary"]["day_pnl"]);
        let value =
            |pnl: &Value| sonic_rs::to_string(&pnl["summary"]["total_current_value"]).unwrap();
        assert_eq!(value(&pnl), value(&before), "{now}");
    }
}

/// Broker A between the service and the simulator. Once `rolled` is set, its previous closes are
/// its last prices.
fn rolling(scene: &Scene, rolled: &Arc<AtomicBool>) -> Upstream {
    let (address, rolled) = (scene.sim.addr().to_string(), Arc::clone(rolled));
    Upstream::start(move |asked| {
        let text = asked
            .head
            .split_once("\r\n")
            .map_or("", |(_, headers)| headers);
        let headers = text.lines().filter(|line| {
            let name = line
                .split(':')
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            name == "authorization" || name == "x-kite-version"
        });
        let headers: String = headers.map(|line| format!("{line}\r\n")).collect();
        let target = format!("/a{}", asked.target);
        let answer = Client::connect(&address).request("GET", &target, &headers);
        let mut body = answer.text().to_owned();
        if rolled.load(Ordering::SeqCst) && asked.target.starts_with("/quote") {
            let mut json: serde_json::Value = serde_json::from_str(&body).unwrap();
            let rows = json["data"]
                .as_object_mut()
                .into_iter()
                .flat_map(|rows| rows.values_mut());
            for row in rows {
                row["ohlc"]["close"] = row["last_price"].clone();
            }
            body = json.to_string();
        }
        Said {
            status: answer.status,
            ..Said::json(body)
        }
    })
}

#[test]
fn a_previous_close_that_rolls_over_in_the_evening_changes_nothing() {
    let scene = scene_by_hand("2026-11-20T15:00:00+05:30");
    let rolled = Arc::new(AtomicBool::new(false));
    let broker = rolling(&scene, &rolled);
    let mut config: Config = scene.config();
    config.broker_a.url = broker.url();
    let change = |service: &Service, symbol: &str| {
        let prices = format!("/api/portfolio/live-prices?symbols={symbol}");
        let answer = scene.while_time_passes(|| service.get(&prices));
        let quote = answer.json()["quotes"][0].clone();
        (quote["as_of"].as_str().unwrap().to_owned(), quote["change"].clone())
    };
    let right = |symbol: &str| {
        let (last, previous) = scene.said(symbol);
        (last - previous).round_dp(2).normalize()
    };
    let is_right = |found: &Value, symbol: &str| {
        let text = sonic_rs::to_string(found).unwrap();
        text.parse::<Decimal>()
            .is_ok_and(|found| found.normalize() == right(symbol))
    };
    let service = scene.start_with(&config);
    change(&service, "NSE:INFY");
    rolled.store(true, Ordering::SeqCst);
    let evening = |service: &Service| {
        for symbol in ["NSE:INFY", "NSE:NIFTY%2050"] {
            let name = symbol.replace("%20", " ");
            until("the closing price", || {
                scene.advance_ms(5_000);
                let (as_of, change) = change(service, symbol);
                (as_of.as_str() >= "2026-11-20T15:28")
                    .then_some(change)
                    .filter(|change| is_right(change, &name))
            });
        }
        let snapshot = scene.while_time_passes(|| service.get(SNAPSHOT)).json();
        let percent = snapshot["index1_change"].as_f64().unwrap();
        assert!(percent.abs() > 0.001, "{percent}");
    };
    go_to(&scene, "2026-11-20T16:20:00+05:30");
    evening(&service);
    service.stop();
    let service = scene.start_with(&config);
    evening(&service);
    // On the weekend too.
    go_to(&scene, "2026-11-21T12:00:00+05:30");
    evening(&service);
}
