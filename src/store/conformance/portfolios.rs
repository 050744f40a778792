//! Syncs: what they replace, what they see, and how much they may bring.

use super::engine::Engine;
use super::samples::{DAY, MARK, dec, derived, holding, point, position, sync, user};
use crate::base::{Broker, Cost, Holding, PositionKind, Synced};
use crate::portfolio::{PointSource, SyncOutcome};
use crate::store::limits::ROWS_MAX;
use crate::store::{
    AccountId, Deleted, Derive, NewPortfolio, Portfolio, Store, StoreError, SyncState, Turn,
};

pub(crate) fn a_sync_replaces_one_broker_s_rows_exactly_and_in_order<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    sync(&store, id, Broker::B, 10, &["ZEEL", "INFY"]);
    sync(&store, id, Broker::A, 20, &["TCS", "INFY", "ABB"]);
    sync(&store, id, Broker::A, 30, &["WIPRO", "INFY"]);
    drop(store);
    let store = engine.open();
    let found = store.portfolio(id).unwrap();
    let expected: Vec<Holding> =
        [(Broker::A, "WIPRO"), (Broker::A, "INFY"), (Broker::B, "ZEEL"), (Broker::B, "INFY")]
            .map(|(broker, ticker)| holding(broker, ticker, "10.50"))
            .into();
    assert_eq!(found.holdings, expected);
    assert_eq!(found.holdings[0].average_price().unwrap().to_string(), "1412.9500");
    assert_eq!(found.positions[0], position(Broker::A, PositionKind::Net, "NIFTY26NOVFUT"));
    assert_eq!(found.positions[1].kind, PositionKind::Day);
    let at = |broker, synced_ms| SyncState { broker, synced_ms, simulated: true };
    assert_eq!(found.syncs, [at(Broker::A, 30), at(Broker::B, 10)]);
    assert_eq!(store.points(id, DAY).unwrap(), [point(DAY, "120.5", PointSource::Sync)]);
    assert_eq!(store.points(id, DAY.tomorrow().unwrap()).unwrap(), []);
    let deleted = store.delete_portfolio(&Turn::alone(id)).unwrap();
    assert_eq!(deleted, Deleted { holdings: 4, positions: 4, pnl_snapshots: 1 });
    assert_eq!(store.portfolio(id).unwrap(), Portfolio::default());
}

pub(crate) fn every_kind_of_cost_is_kept_to_the_digit<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let costs = [
        None,
        Some(Cost::PerShare(dec("305.55171266367426361868"))),
        Some(Cost::Total(dec("72584999.7250"))),
        Some(Cost::Part { quantity: dec("30"), cost: dec("7500.00") }),
    ];
    let row = |cost| Holding { cost, mark: MARK, ..holding(Broker::B, "TCS", "40") };
    let holdings: Vec<Holding> = costs.into_iter().map(row).collect();
    let synced = Synced { holdings: holdings.clone(), ..Synced::default() };
    let derive: Derive = Box::new(|_, synced| derived(point(DAY, "1", PointSource::Sync), synced));
    store
        .replace_portfolio(
            &Turn::alone(id),
            NewPortfolio { broker: Broker::B, synced_ms: 1, synced, closes_of: None, derive },
        )
        .unwrap();
    drop(store);
    let store = engine.open();
    assert_eq!(store.portfolio(id).unwrap().holdings, holdings);
}

pub(crate) fn the_rows_of_a_sync_are_bounded<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let derive =
        || -> Derive { Box::new(|_, synced| derived(point(DAY, "1", PointSource::Sync), synced)) };
    let rows = vec![holding(Broker::A, "INFY", "1"); ROWS_MAX + 1];
    let synced = Synced { holdings: rows, ..Synced::default() };
    let limit = ROWS_MAX;
    assert_eq!(
        store.replace_portfolio(
            &Turn::alone(id),
            NewPortfolio {
                broker: Broker::A,
                synced_ms: 1,
                synced,
                closes_of: None,
                derive: derive()
            }
        ),
        Err(StoreError::TooMany { what: "holdings", limit })
    );
    let rows = vec![position(Broker::A, PositionKind::Net, "X"); ROWS_MAX + 1];
    let synced = Synced { positions: rows, ..Synced::default() };
    assert_eq!(
        store.replace_portfolio(
            &Turn::alone(id),
            NewPortfolio {
                broker: Broker::A,
                synced_ms: 1,
                synced,
                closes_of: None,
                derive: derive()
            }
        ),
        Err(StoreError::TooMany { what: "positions", limit })
    );
}

pub(crate) fn a_sync_of_nobody_is_refused_and_derives_nothing<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let derive: Derive = Box::new(|_, _| panic!("must not be asked"));
    let result = store.replace_portfolio(
        &Turn::alone(AccountId(7)),
        NewPortfolio {
            broker: Broker::A,
            synced_ms: 1,
            synced: Synced::default(),
            closes_of: None,
            derive,
        },
    );
    assert_eq!(result, Err(StoreError::NoSuchUser));
}

pub(crate) fn deriving_sees_what_stood_before_and_may_mark_what_comes<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    sync(&store, id, Broker::B, 1, &["INFY"]);
    let stored = store.portfolio(id).unwrap();
    let synced = Synced { holdings: vec![holding(Broker::A, "TCS", "3")], ..Synced::default() };
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
            NewPortfolio { broker: Broker::A, synced_ms: 2, synced, closes_of: None, derive },
        )
        .unwrap();
    assert_eq!(outcome, SyncOutcome { holdings: 1, ..SyncOutcome::default() });
    let found = store.portfolio(id).unwrap();
    assert_eq!((found.holdings[0].mark, found.holdings.len()), (MARK, 2));
    assert_eq!(store.points(id, DAY).unwrap(), [point(DAY, "99", PointSource::Sync)]);
}

pub(crate) fn a_panic_while_deriving_costs_that_sync_alone<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    sync(&store, id, Broker::A, 1, &["INFY"]);
    let before = store.portfolio(id).unwrap();
    let derive: Derive = Box::new(|_, _| panic!("on purpose"));
    let told = store.replace_portfolio(
        &Turn::alone(id),
        NewPortfolio {
            broker: Broker::A,
            synced_ms: 2,
            synced: Synced::default(),
            closes_of: None,
            derive,
        },
    );
    assert!(matches!(told, Err(StoreError::Unavailable(_))), "{told:?}");
    assert_eq!((store.portfolio(id).unwrap(), store.health().state), (before, "ok"));
    sync(&store, id, Broker::A, 3, &["TCS"]);
}
