//! The evening's revaluation while some prices are missing: the order of valuation, and carried
//! prices.

use bhav::portfolio::DayPoint;
use bhav::store::AccountId;
use sonic_rs::JsonValueTrait;

use super::close::{
    EVENING, FRIDAY, advance_to_finish, advance_to_health, close_point, decimal, friday, holding,
    infy, scene_by_hand, seed, store, synced_ms,
};
use crate::support::{Scene, Service, until};

#[test]
fn a_symbol_without_a_close_is_waited_for_and_then_carried() {
    let scene = scene_by_hand(EVENING);
    let unknown = holding("NSE:NOSUCH", "2", Some("5"), "7");
    let users = seed(&scene, vec![vec![infy("1").remove(0), unknown]]);
    let service = scene.start();
    advance_to_finish(&scene, &service, 60_000);
    let waited_ms =
        scene.clock.now_ms() - EVENING.parse::<jiff::Timestamp>().unwrap().as_millisecond();
    assert!(waited_ms >= 3 * 3_600_000, "{waited_ms}");
    let point = close_point(&service, users[0]).unwrap();
    assert_eq!(point.total_current_value, scene.said("NSE:INFY").0 + decimal("14"));
    assert_eq!((point.carried, point.left_out), (1, 0));
    let health = advance_to_health(&scene, &service, "paused");
    assert_eq!(health["close"]["missing"].as_u64(), Some(1));
}

/// Thursday, when trading in ITC is halted.
fn scene_with_a_halt() -> Scene {
    let scene = scene_by_hand("2026-11-19T11:00:00+05:30");
    scene.halt("NSE:ITC", true);
    scene
}

/// Advances the clock and logs the server in at broker A, as each day needs.
fn go_to(scene: &Scene, at: &str) -> jiff::Timestamp {
    let at: jiff::Timestamp = at.parse().unwrap();
    scene.advance_ms(at.as_millisecond() - scene.clock.now_ms());
    let login = r#"{"access_token":"simtokena"}"#;
    assert_eq!(scene.control("POST", "broker_a/token", login).status, 200);
    at
}

/// The first closing point of the user for which `holds` is true. The clock advances some seconds
/// at each check.
fn point_when(
    scene: &Scene,
    service: &Service,
    id: AccountId,
    holds: impl Fn(&DayPoint) -> bool,
) -> DayPoint {
    until("a point of the close", || {
        scene.advance_ms(1_000);
        close_point(service, id).filter(&holds)
    })
}

#[test]
fn one_share_without_a_price_holds_nobody_back_and_is_known_the_next_day() {
    let scene = scene_with_a_halt();
    let began = go_to(&scene, EVENING);
    let halted = holding("NSE:ITC", "2", Some("5"), "7");
    let users = seed(&scene, vec![infy("1"), vec![infy("1").remove(0), halted]]);
    let service = scene.start();
    let plain = point_when(&scene, &service, users[0], |_| true);
    let carried = point_when(&scene, &service, users[1], |_| true);
    let waited = scene.clock.now().duration_since(began);
    assert!(waited.as_mins() < 10, "{waited}");
    let close = scene.said("NSE:INFY").0;
    assert_eq!((plain.total_current_value, plain.carried), (close, 0));
    assert_eq!((carried.total_current_value, carried.carried), (close + decimal("14"), 1));
    // Health may be from a moment before the last price came.
    let health = until("one missing", || {
        let health = advance_to_health(&scene, &service, "ok");
        Some(health).filter(|health| health["close"]["missing"].as_u64() == Some(1))
    });
    assert_eq!(health["close"]["suspended"].as_u64(), Some(0));
    assert!(!store(&service).is_closed(friday()).unwrap(), "it may still come");
    advance_to_finish(&scene, &service, 60_000);
    service.stop();

    let began = go_to(&scene, "2026-11-23T15:50:00+05:30");
    let service = scene.start();
    let held = store(&service);
    until("Monday's run to finish", || {
        scene.advance_ms(1_000);
        held.is_closed("2026-11-23".parse().unwrap())
            .unwrap()
            .then_some(())
    });
    let waited = scene.clock.now().duration_since(began);
    assert!(waited.as_mins() < 10, "{waited}");
    let health = advance_to_health(&scene, &service, "paused");
    assert_eq!(health["close"]["suspended"].as_u64(), Some(1));
    let rows = held.portfolio(users[1]).unwrap().holdings;
    assert_eq!(rows[1].last_price, Some(decimal("7")), "its last price, of its own time");
    assert_eq!(rows[1].as_of_ms, synced_ms());
}

#[test]
fn who_waits_for_a_price_is_valued_again_when_it_comes() {
    let scene = scene_with_a_halt();
    go_to(&scene, EVENING);
    let itc = holding("NSE:ITC", "2", Some("300"), "420");
    let users = seed(&scene, vec![vec![infy("1").remove(0), itc]]);
    let service = scene.start();
    let infy = scene.said("NSE:INFY").0;
    let early = point_when(&scene, &service, users[0], |_| true);
    assert_eq!((early.total_current_value, early.carried), (infy + decimal("840"), 1));
    scene.halt("NSE:ITC", false);
    let late = point_when(&scene, &service, users[0], |point| point.carried == 0);
    let itc = scene.said("NSE:ITC").0;
    assert_eq!(late.total_current_value, infy + decimal("2") * itc);
    advance_to_finish(&scene, &service, 1_000);
    let waited = scene.clock.now().duration_since(EVENING.parse().unwrap());
    assert!(waited.as_hours() < 1, "{waited}: nothing is left to wait for");
}

/// Only the public provider serves the close and the candles.
#[test]
fn signals_do_not_wait_for_a_share_without_a_price() {
    let scene = scene_by_hand("2026-11-20T16:06:00+05:30");
    let unknown = holding("NSE:NOSUCH", "2", Some("5"), "7");
    seed(&scene, vec![vec![infy("1").remove(0), unknown]]);
    let mut config = scene.config();
    config.broker_a.access_token = None;
    let service = scene.start_with(&config);
    until("the signals of the date", || {
        scene.advance_ms(400);
        (service.get("/api/signals").json()["as_of"] == FRIDAY).then_some(())
    });
    let waited = scene
        .clock
        .now()
        .duration_since("2026-11-20T16:06:00+05:30".parse().unwrap());
    assert!(waited.as_hours() < 1, "{waited}");
}
