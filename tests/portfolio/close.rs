//! The evening's revaluation: a point per user and trading date, at the simulator's closing prices.

use std::sync::Arc;

use crate::support::{Scene, Service, until};
use bhav::base::{Account, Broker, Clock, Cost, Holding, Synced, clock};
use bhav::portfolio::{DayPoint, Derived, MadeOf, PointSource, Repriced, SyncOutcome};
use bhav::sim::SimSettings;
use bhav::store::{AccountId, FILE_NAME, NewPortfolio, NewUser, Store, Turn};
use jiff::civil::Date;
use rust_decimal::Decimal;
use sonic_rs::JsonValueTrait;

/// A Friday, fifteen minutes after its closing auction.
pub const EVENING: &str = "2026-11-20T15:50:00+05:30";
pub const FRIDAY: &str = "2026-11-20";
/// The last sync of all users: the evening before.
const SYNCED: &str = "2026-11-19T18:00:00+05:30";
/// Threads that write the users of a test.
const SEEDERS: usize = 16;

pub fn friday() -> Date {
    FRIDAY.parse().unwrap()
}

pub fn synced_ms() -> i64 {
    SYNCED.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

pub fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

/// A scene on a clock that stands still until the test advances it.
pub fn scene_by_hand(now: &str) -> Scene {
    let clock = Clock::manual(now.parse().unwrap());
    Scene::by_hand(
        clock,
        SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        },
    )
}

pub fn holding(symbol: &str, quantity: &str, average: Option<&str>, last: &str) -> Holding {
    let (exchange, ticker) = symbol.split_once(':').unwrap();
    Holding {
        account: Account::at(Broker::A),
        exchange: exchange.into(),
        tradingsymbol: ticker.into(),
        isin: None,
        settled_quantity: decimal(quantity),
        t1_quantity: Decimal::ZERO,
        pledged_quantity: Decimal::ZERO,
        mtf_quantity: Decimal::ZERO,
        used_quantity: Decimal::ZERO,
        disputed_quantity: Decimal::ZERO,
        cost: average.map(|average| Cost::PerShare(decimal(average))),
        last_price: Some(decimal(last)),
        close_price: None,
        change_pct: None,
        as_of_ms: synced_ms(),
        broker_pnl: None,
        discrepancy: false,
        unresolved: false,
        mark: None,
    }
}

pub fn infy(quantity: &str) -> Vec<Holding> {
    vec![holding("NSE:INFY", quantity, Some("1400"), "1500")]
}

fn point(date: Date, source: PointSource) -> DayPoint {
    DayPoint {
        date,
        total_invested: Decimal::ONE,
        total_current_value: Decimal::TWO,
        total_pnl: Decimal::ONE,
        value_without_cost: Some(Decimal::ZERO),
        source,
        left_out: 0,
        carried: 0,
        suspect: false,
        made_of: None,
    }
}

fn made_of(holdings: u32) -> Option<MadeOf> {
    let accounts = [Account::at(Broker::A)].into_iter().collect();
    Some(MadeOf {
        accounts,
        holdings,
        discrepancies: 0,
    })
}

fn register(store: &Store, number: usize) -> AccountId {
    let email = format!("user{number}@example.com");
    let new = NewUser {
        email,
        name: None,
        password_hash: "none".into(),
        created_ms: 1,
    };
    store.create_user(new).unwrap().user.id
}

fn sync(store: &Store, id: AccountId, at_ms: i64, holdings: Vec<Holding>) {
    let date = clock::zoned(jiff::Timestamp::from_millisecond(at_ms).unwrap()).date();
    let derived = Derived {
        point: point(date, PointSource::Sync),
        holdings: holdings.clone(),
        repriced: Repriced::default(),
        outcome: SyncOutcome::default(),
    };
    let synced = Synced {
        holdings,
        ..Synced::default()
    };
    let derive = Box::new(move |_: &_, _: &_| derived.clone());
    store
        .replace_portfolio(
            &Turn::alone(id),
            NewPortfolio {
                account: Account::at(Broker::A),
                synced_ms: at_ms,
                synced,
                closes_of: None,
                closes_before_of: None,
                derive,
                replaces_broker_user: false,
                replaces_with_none: true,
            },
        )
        .unwrap();
}

/// Users with these holdings, in order, written before the service starts.
pub fn seed(scene: &Scene, portfolios: Vec<Vec<Holding>>) -> Vec<AccountId> {
    let store = open(scene);
    let users: Vec<AccountId> = (0..portfolios.len())
        .map(|number| register(&store, number))
        .collect();
    let pairs: Vec<(AccountId, Vec<Holding>)> = users.iter().copied().zip(portfolios).collect();
    seed_together(&store, &pairs);
    users
}

/// Written by several threads, so that commits are grouped.
fn seed_together(store: &Store, pairs: &[(AccountId, Vec<Holding>)]) {
    std::thread::scope(|scope| {
        for part in pairs.chunks(pairs.len().div_ceil(SEEDERS).max(1)) {
            scope.spawn(move || {
                part.iter()
                    .for_each(|(id, held)| sync(store, *id, synced_ms(), held.clone()));
            });
        }
    });
}

fn open(scene: &Scene) -> Store {
    Store::open_file(&scene.state.path().join(FILE_NAME), 1, &scene.clock).unwrap()
}

pub fn store(service: &Service) -> Arc<Store> {
    Arc::clone(&service.0.server().shared().service.state().store)
}

/// Waits until the run of the date has finished, on a clock that runs.
pub fn await_finish(service: &Service) {
    finish_after(service, || {});
}

/// Same as [`await_finish`], on a manual clock that advances by `step_ms` at each check.
pub fn advance_to_finish(scene: &Scene, service: &Service, step_ms: i64) {
    finish_after(service, || scene.advance_ms(step_ms));
}

fn finish_after(service: &Service, before_a_look: impl Fn()) {
    let store = store(service);
    until("the run to finish", || {
        before_a_look();
        store.is_closed(friday()).unwrap().then_some(())
    });
}

/// The first health document with this state of the warmer, on a clock that runs.
pub fn health_when(service: &Service, state: &str) -> sonic_rs::Value {
    health_after(service, state, || {})
}

/// Same as [`health_when`], on a manual clock that advances some seconds at each check.
pub fn advance_to_health(scene: &Scene, service: &Service, state: &str) -> sonic_rs::Value {
    health_after(service, state, || scene.advance_ms(5_000))
}

fn health_after(service: &Service, state: &str, before_a_look: impl Fn()) -> sonic_rs::Value {
    until(state, || {
        before_a_look();
        Some(service.health()).filter(|json| json["warmers"]["close"] == state)
    })
}

pub fn close_point(service: &Service, id: AccountId) -> Option<DayPoint> {
    let points = store(service).points(id, friday()).unwrap();
    assert!(points.iter().all(|point| point.date == friday()), "{points:?}");
    points.into_iter().next()
}

#[test]
fn every_portfolio_has_one_exact_point_of_the_close() {
    let scene = Scene::at(EVENING);
    let mut bought = holding("NSE:TCS", "0.5", Some("2900.105"), "3000");
    bought.t1_quantity = decimal("3");
    let mut short_code = holding("NSE:INFTEC", "7", Some("10"), "20.55");
    short_code.unresolved = true;
    let mixed = vec![
        holding("BSE:RELIANCE", "12", Some("1412.35"), "1500"),
        bought,
        short_code,
        holding("NSE:INFY", "4", None, "1500"),
    ];
    let split = vec![holding("NSE:INFY", "1", Some("1"), "3600")];
    let users = seed(&scene, vec![infy("10"), mixed, split]);
    let stranger = register(&open(&scene), 3);
    let service = scene.start();
    await_finish(&service);

    let close = |symbol| scene.said(symbol).0;
    let plain = close_point(&service, users[0]).unwrap();
    let invested = decimal("14000");
    let value = decimal("10") * close("NSE:INFY");
    let expected = DayPoint {
        total_invested: invested,
        total_current_value: value,
        total_pnl: value - invested,
        made_of: made_of(1),
        ..point(friday(), PointSource::Close)
    };
    assert_eq!(plain, expected);
    let invested = decimal("16948.20") + decimal("10150.3675") + decimal("70");
    let value = decimal("12") * close("BSE:RELIANCE")
        + decimal("3.5") * close("NSE:TCS")
        + decimal("143.85");
    // The four shares of unknown cost.
    let gift = decimal("4") * close("NSE:INFY");
    let expected = DayPoint {
        total_invested: invested,
        total_current_value: value + gift,
        total_pnl: value - invested,
        value_without_cost: Some(gift),
        left_out: 1,
        carried: 1,
        made_of: made_of(4),
        ..point(friday(), PointSource::Close)
    };
    assert_eq!(close_point(&service, users[1]).unwrap(), expected);
    assert!(close_point(&service, users[2]).unwrap().suspect, "half the price it had");
    assert_eq!(close_point(&service, stranger), None);
    // The point of the day before is unchanged.
    let thursday = "2026-11-19".parse().unwrap();
    assert_eq!(store(&service).points(users[0], thursday).unwrap().len(), 2);
    let health = health_when(&service, "paused");
    assert_eq!(health["close"]["points"].as_u64(), Some(3));
    assert_eq!(health["close"]["date"], FRIDAY);
    service.stop();

    // Only once: another start does not overwrite a later sync's point of that date.
    let late_ms = scene.clock.now_ms();
    sync(&open(&scene), users[0], late_ms, infy("11"));
    let service = scene.start();
    let health = health_when(&service, "paused");
    until("a look at the run", || {
        (service.health()["close"]["date"] == FRIDAY).then_some(())
    });
    assert_eq!(health["close"]["pages"].as_u64(), Some(0));
    assert_eq!(close_point(&service, users[0]).unwrap().source, PointSource::Sync);
}

#[test]
fn a_run_that_was_cut_off_goes_on_where_it_was() {
    const USERS: usize = 300;
    let scene = Scene::at(EVENING);
    let users = seed(&scene, vec![infy("10"); USERS]);
    let mut config = scene.config();
    config.close.page_users = 1;
    let service = scene.start_with(&config);
    let begun = store(&service);
    until("some users' points", || {
        (!begun.points(users[5], friday()).unwrap().is_empty()).then_some(())
    });
    drop(begun);
    service.stop();

    let held = open(&scene);
    assert!(
        !held.is_closed(friday()).unwrap(),
        "stopped after the end: more users are needed"
    );
    let rest = held
        .portfolios_to_close(friday(), AccountId(0), USERS)
        .unwrap()
        .portfolios;
    let done = USERS - rest.len();
    assert!((6..USERS).contains(&done), "{done}");
    // Would show if it was written again.
    sync(&held, users[0], scene.clock.now_ms(), infy("11"));
    drop(held);
    // Its prices were stored, so no feed is needed any more.
    scene.refuse_all();
    let service = scene.start_with(&config);
    await_finish(&service);
    assert_eq!(close_point(&service, users[0]).unwrap().source, PointSource::Sync);
    for id in &users[1..] {
        let point = close_point(&service, *id).unwrap();
        assert_eq!((point.source, point.carried), (PointSource::Close, 0), "{id:?}");
    }
    let health = health_when(&service, "paused");
    assert_eq!(health["close"]["points"].as_u64(), Some((USERS - done) as u64));
}

#[test]
fn prices_come_late_and_who_left_gets_no_point() {
    let scene = scene_by_hand(EVENING);
    let users = seed(&scene, vec![infy("1"), infy("2"), infy("3")]);
    scene.refuse_all();
    let service = scene.start();
    let store = store(&service);
    // Five minutes without a price.
    advance_to_health(&scene, &service, "stale");
    assert!(!store.is_closed(friday()).unwrap());
    store.delete_portfolio(&Turn::alone(users[0])).unwrap();
    store.erase_user(users[1]).unwrap();
    scene.control("DELETE", "faults", "");
    advance_to_finish(&scene, &service, 1_000);
    assert_eq!(close_point(&service, users[0]), None);
    assert_eq!(close_point(&service, users[1]), None);
    let value = decimal("3") * scene.said("NSE:INFY").0;
    assert_eq!(close_point(&service, users[2]).unwrap().total_current_value, value);
}

#[test]
fn the_public_provider_says_the_close_when_broker_a_cannot() {
    let scene = scene_by_hand("2026-11-20T16:03:30+05:30");
    let users = seed(&scene, vec![infy("1")]);
    scene.fault("broker_a", r#"{"kind":"refuse"}"#);
    let service = scene.start();
    advance_to_finish(&scene, &service, 1_000);
    // Its delay has passed.
    assert!(scene.clock.now() >= "2026-11-20T16:05:00+05:30".parse().unwrap());
    scene.control("DELETE", "faults", "");
    let point = close_point(&service, users[0]).unwrap();
    assert_eq!(point.total_current_value, scene.said("NSE:INFY").0);
    assert_eq!(point.carried, 0);
}

#[test]
fn without_any_price_the_date_is_given_up_when_the_next_begins() {
    let scene = scene_by_hand(EVENING);
    let users = seed(&scene, vec![infy("1")]);
    scene.refuse_all();
    let service = scene.start();
    advance_to_health(&scene, &service, "stale");
    // Up to Monday's pre-open. Meanwhile no price of Friday counts as another date's.
    let monday: jiff::Timestamp = "2026-11-23T09:00:00+05:30".parse().unwrap();
    scene.advance_ms(monday.as_millisecond() - scene.clock.now_ms());
    scene.control("DELETE", "faults", "");
    advance_to_health(&scene, &service, "failing");
    assert!(!store(&service).is_closed(friday()).unwrap());
    assert_eq!(close_point(&service, users[0]), None);
}

#[test]
fn a_weekend_makes_up_for_friday_and_nothing_else() {
    let scene = scene_by_hand("2026-11-22T12:00:00+05:30");
    let users = seed(&scene, vec![infy("1")]);
    let service = scene.start();
    advance_to_finish(&scene, &service, 1_000);
    let value = scene.said("NSE:INFY").0;
    assert_eq!(close_point(&service, users[0]).unwrap().total_current_value, value);
    advance_to_health(&scene, &service, "paused");
    // The rest of the Sunday, and the night.
    for _ in 0..18 {
        scene.advance_ms(3_600_000);
        advance_to_health(&scene, &service, "paused");
    }
    let thursday = "2026-11-19".parse().unwrap();
    assert_eq!(store(&service).points(users[0], thursday).unwrap().len(), 2);
}

#[test]
fn symbols_beyond_the_cap_are_carried() {
    let scene = Scene::at(EVENING);
    let two = vec![
        infy("1").remove(0),
        holding("NSE:TCS", "1", Some("3000"), "3000"),
    ];
    let users = seed(&scene, vec![two]);
    let mut config = scene.config();
    config.close.symbols_max = 1;
    let service = scene.start_with(&config);
    await_finish(&service);
    let point = close_point(&service, users[0]).unwrap();
    assert_eq!(point.carried, 1);
    assert_eq!(point.total_current_value, scene.said("NSE:INFY").0 + decimal("3000"));
    let health = health_when(&service, "paused");
    assert_eq!(health["close"]["cut_off"].as_bool(), Some(true));
}
