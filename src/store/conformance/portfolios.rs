//! Syncs: which rows they replace, which state they see, and how many rows they may bring.

use super::engine::{Engine, on_each_engine};
use super::samples::{DAY, MARK, dec, derived, holding, point, position, sold, sync, user};
use crate::base::{Account, Broker, Cost, Holding, PositionKind, Synced};
use crate::portfolio::{DayPoint, PointSource, SyncOutcome};
use crate::store::portfolios::ROWS_MAX;
use crate::store::{AccountId, Derive, NewPortfolio, Portfolio, StoreError, SyncState, Turn};
use crate::views::holdings::DeletedRows;

on_each_engine! {
    a_panic_while_deriving_costs_that_sync_alone,
    a_sync_of_nobody_is_refused_and_derives_nothing,
    a_sync_replaces_one_broker_s_rows_exactly_and_in_order,
    deriving_sees_what_stood_before_and_may_mark_what_comes,
    every_kind_of_cost_is_kept_to_the_digit,
    rows_of_another_person_are_refused_unless_that_is_meant,
    the_rows_of_a_sync_are_bounded,
}

fn a_sync_replaces_one_broker_s_rows_exactly_and_in_order<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    sync(&store, id, Broker::B, 10, &["ZEEL", "INFY"]);
    sync(&store, id, Broker::A, 20, &["TCS", "INFY", "ABB"]);
    sync(&store, id, Broker::A, 30, &["WIPRO", "INFY"]);
    drop(store);
    let store = engine.open();
    let found = store.portfolio(id).unwrap();
    let expected: Vec<Holding> = [
        (Broker::A, "WIPRO"),
        (Broker::A, "INFY"),
        (Broker::B, "ZEEL"),
        (Broker::B, "INFY"),
    ]
    .map(|(broker, ticker)| holding(broker, ticker, "10.50"))
    .into();
    assert_eq!(found.holdings, expected);
    assert_eq!(found.sold_holdings, [sold(Broker::A), sold(Broker::B)]);
    assert_eq!(found.holdings[0].average_price().unwrap().to_string(), "1412.9500");
    assert_eq!(found.positions[0], position(Broker::A, PositionKind::Net, "NIFTY26NOVFUT"));
    assert_eq!(found.positions[1].kind, PositionKind::Day);
    let at = |broker: Broker, synced_ms| SyncState {
        account: Account::at(broker),
        synced_ms,
        simulated: true,
        broker_user: Some(format!("USER-{}", broker.as_str())),
    };
    assert_eq!(found.syncs, [at(Broker::A, 30), at(Broker::B, 10)]);
    assert_eq!(store.points(id, DAY).unwrap(), [point(DAY, "120.5", PointSource::Sync)]);
    assert_eq!(store.points(id, DAY.tomorrow().unwrap()).unwrap(), []);
    let deleted = store.delete_portfolio(&Turn::alone(id)).unwrap();
    assert_eq!(
        deleted,
        DeletedRows {
            holdings: 4,
            positions: 4,
            pnl_snapshots: 1
        }
    );
    assert_eq!(store.portfolio(id).unwrap(), Portfolio::default());
}

fn rows_of_another_person_are_refused_unless_that_is_meant<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let bring = |broker_user: Option<&str>, ticker: &str, replaces_broker_user| {
        let broker_user = broker_user.map(str::to_owned);
        let holdings = vec![holding(Broker::A, ticker, "1")];
        let synced = Synced {
            holdings,
            broker_user,
            ..Synced::default()
        };
        let derive: Derive =
            Box::new(|_, synced| derived(point(DAY, "1", PointSource::Sync), synced));
        let broker = Broker::A;
        let new = NewPortfolio {
            replaces_broker_user,
            ..NewPortfolio::of(Account::at(broker), 1, synced, derive)
        };
        store.replace_portfolio(&Turn::alone(id), new)
    };
    let kept = || {
        let found = store.portfolio(id).unwrap();
        (found.holdings[0].tradingsymbol.clone(), found.syncs[0].broker_user.clone())
    };
    let named = |ticker: &str, user: &str| (ticker.to_owned(), Some(user.to_owned()));
    assert!(bring(None, "OLD", false).is_ok(), "as older programs kept it");
    assert!(bring(Some("ONE"), "INFY", false).is_ok());
    let refused = StoreError::OtherBrokerUser {
        kept: "ONE".to_owned(),
    };
    assert_eq!(bring(Some("TWO"), "EVIL", false), Err(refused));
    assert_eq!(kept(), named("INFY", "ONE"));
    assert!(bring(None, "TCS", false).is_ok(), "the broker does not say whose it is");
    assert_eq!(kept(), named("TCS", "ONE"));
    assert!(bring(Some("TWO"), "ITC", true).is_ok());
    assert_eq!(kept(), named("ITC", "TWO"));
    store.delete_portfolio(&Turn::alone(id)).unwrap();
    assert!(bring(Some("ONE"), "ABB", false).is_ok(), "nothing is replaced");
}

fn every_kind_of_cost_is_kept_to_the_digit<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let costs = [
        None,
        Some(Cost::PerShare(dec("305.55171266367426361868"))),
        Some(Cost::Total(dec("72584999.7250"))),
        Some(Cost::Part {
            quantity: dec("30"),
            cost: dec("7500.00"),
        }),
    ];
    let row = |cost| Holding {
        cost,
        mark: MARK,
        ..holding(Broker::B, "TCS", "40")
    };
    let holdings: Vec<Holding> = costs.into_iter().map(row).collect();
    let synced = Synced {
        holdings: holdings.clone(),
        ..Synced::default()
    };
    let older = || DayPoint {
        made_of: None,
        ..point(DAY, "1", PointSource::Sync)
    };
    let derive: Derive = Box::new(move |_, synced| derived(older(), synced));
    store
        .replace_portfolio(
            &Turn::alone(id),
            NewPortfolio::of(Account::at(Broker::B), 1, synced, derive),
        )
        .unwrap();
    drop(store);
    let store = engine.open();
    assert_eq!(store.portfolio(id).unwrap().holdings, holdings);
    assert_eq!(store.points(id, DAY).unwrap(), [older()], "as programs of before wrote it");
}

fn the_rows_of_a_sync_are_bounded<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let derive =
        || -> Derive { Box::new(|_, synced| derived(point(DAY, "1", PointSource::Sync), synced)) };
    let rows = vec![holding(Broker::A, "INFY", "1"); ROWS_MAX + 1];
    let synced = Synced {
        holdings: rows,
        ..Synced::default()
    };
    let limit = ROWS_MAX;
    assert_eq!(
        store.replace_portfolio(
            &Turn::alone(id),
            NewPortfolio::of(Account::at(Broker::A), 1, synced, derive())
        ),
        Err(StoreError::TooMany {
            what: "holdings",
            limit
        })
    );
    let rows = vec![position(Broker::A, PositionKind::Net, "X"); ROWS_MAX + 1];
    let synced = Synced {
        positions: rows,
        ..Synced::default()
    };
    assert_eq!(
        store.replace_portfolio(
            &Turn::alone(id),
            NewPortfolio::of(Account::at(Broker::A), 1, synced, derive())
        ),
        Err(StoreError::TooMany {
            what: "positions",
            limit
        })
    );
}

fn a_sync_of_nobody_is_refused_and_derives_nothing<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let derive: Derive = Box::new(|_, _| panic!("must not be asked"));
    let result = store.replace_portfolio(
        &Turn::alone(AccountId(7)),
        NewPortfolio::of(Account::at(Broker::A), 1, Synced::default(), derive),
    );
    assert_eq!(result, Err(StoreError::NoSuchUser));
}

fn deriving_sees_what_stood_before_and_may_mark_what_comes<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    sync(&store, id, Broker::B, 1, &["INFY"]);
    let stored = store.portfolio(id).unwrap();
    let synced = Synced {
        holdings: vec![holding(Broker::A, "TCS", "3")],
        ..Synced::default()
    };
    let sent = synced.clone();
    let derive: Derive = Box::new(move |before, synced| {
        assert_eq!((&before.portfolio, synced), (&stored, &sent));
        let mut derived = derived(point(DAY, "99", PointSource::Sync), synced);
        derived.holdings[0].mark = MARK;
        derived
    });
    let outcome = store
        .replace_portfolio(
            &Turn::alone(id),
            NewPortfolio::of(Account::at(Broker::A), 2, synced, derive),
        )
        .unwrap();
    assert_eq!(
        outcome,
        SyncOutcome {
            holdings: 1,
            ..SyncOutcome::default()
        }
    );
    let found = store.portfolio(id).unwrap();
    assert_eq!((found.holdings[0].mark, found.holdings.len()), (MARK, 2));
    assert_eq!(store.points(id, DAY).unwrap(), [point(DAY, "99", PointSource::Sync)]);
}

fn a_panic_while_deriving_costs_that_sync_alone<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    sync(&store, id, Broker::A, 1, &["INFY"]);
    let before = store.portfolio(id).unwrap();
    let derive: Derive = Box::new(|_, _| panic!("on purpose"));
    let told = store.replace_portfolio(
        &Turn::alone(id),
        NewPortfolio::of(Account::at(Broker::A), 2, Synced::default(), derive),
    );
    assert!(matches!(told, Err(StoreError::Unavailable(_))), "{told:?}");
    assert_eq!((store.portfolio(id).unwrap(), store.health().state.as_str()), (before, "ok"));
    sync(&store, id, Broker::A, 3, &["TCS"]);
}
