//! Every method of the store on a real file.

use std::path::PathBuf;

use jiff::civil::date;
use rust_decimal::Decimal;
use tempfile::TempDir;

use super::*;
use crate::base::{ActionSign, Cost, Holding, Mark, Position, PositionKind};
use crate::portfolio::{Derived, PointSource, Repriced, SyncOutcome};
use crate::store::sqlite::care::PROBE_WRITE;
use crate::store::sqlite::columns;
use crate::store::{Side, SyncState};

fn clock() -> Clock {
    Clock::system()
}

fn fresh() -> (TempDir, PathBuf, SqliteStore) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let store = SqliteStore::open(&path, 2, &clock()).unwrap();
    (dir, path, store)
}

fn user(store: &SqliteStore, email: &str) -> AccountId {
    let user = NewUser {
        email: email.to_owned(),
        name: Some("A. Person".to_owned()),
        password_hash: "hash one".to_owned(),
        created_ms: 5,
    };
    store.create_user(user).unwrap().id
}

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn holding(broker: Broker, ticker: &str, quantity: &str) -> Holding {
    Holding {
        broker,
        exchange: "NSE".to_owned(),
        tradingsymbol: ticker.to_owned(),
        isin: Some("INE009A01021".to_owned()),
        settled_quantity: dec(quantity),
        t1_quantity: dec("1"),
        pledged_quantity: dec("0"),
        mtf_quantity: dec("0"),
        disputed_quantity: dec("2"),
        cost: Some(Cost::PerShare(dec("1412.9500"))),
        last_price: None,
        close_price: Some(dec("0.10")),
        as_of_ms: 77,
        broker_pnl: Some(dec("-12.345")),
        discrepancy: true,
        unresolved: false,
        mark: None,
    }
}

fn position(broker: Broker, kind: PositionKind, ticker: &str) -> Position {
    Position {
        broker,
        kind,
        exchange: "NFO".to_owned(),
        tradingsymbol: ticker.to_owned(),
        product: "NRML".to_owned(),
        quantity: dec("-75"),
        multiplier: dec("1"),
        average_price: Some(dec("101.05")),
        last_price: Some(dec("99.9")),
        close_price: None,
        pnl: Some(dec("86.25")),
        realised: None,
        unrealised: Some(dec("86.25")),
        unresolved: true,
    }
}

fn point(on: Date, value: &str, source: PointSource) -> DayPoint {
    DayPoint {
        date: on,
        total_invested: dec("100.00"),
        total_current_value: dec(value),
        total_pnl: dec(value) - dec("100.00"),
        value_without_cost: Some(dec("0.50")),
        source,
        left_out: 1,
        carried: 2,
        suspect: true,
    }
}

/// Writes the rows unchanged.
fn derived(point: DayPoint, synced: &Synced) -> Derived {
    let holdings = synced.holdings.clone();
    let outcome = SyncOutcome { holdings: holdings.len(), ..SyncOutcome::default() };
    Derived { point, holdings, repriced: Repriced::default(), outcome }
}

const DAY: Date = date(2026, 11, 20);
const MARK: Option<Mark> = Some(Mark { on: DAY, sign: ActionSign::PriceLeap });

fn sync(store: &SqliteStore, id: AccountId, broker: Broker, at_ms: i64, tickers: &[&str]) {
    let synced = Synced {
        holdings: tickers.iter().map(|ticker| holding(broker, ticker, "10.50")).collect(),
        positions: vec![
            position(broker, PositionKind::Net, "NIFTY26NOVFUT"),
            position(broker, PositionKind::Day, "NIFTY26NOVFUT"),
        ],
        simulated: true,
    };
    let derive: Derive =
        Box::new(|_, synced| derived(point(DAY, "120.5", PointSource::Sync), synced));
    store.replace_portfolio(id, broker, at_ms, synced, None, derive).unwrap();
}

fn fields(on: Date, symbol: &str) -> JournalFields {
    JournalFields {
        traded_on: on,
        symbol: symbol.to_owned(),
        side: Side::Buy,
        quantity: dec("10"),
        price: dec("99.50"),
        fees: None,
        strategy: Some("swing".to_owned()),
        notes: None,
        tags: vec!["a \"quoted\" tag".to_owned(), "b".to_owned()],
    }
}

#[test]
fn a_user_is_created_once_changed_and_erased() {
    let (_dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    let again = NewUser {
        email: "a@example.com".to_owned(),
        name: None,
        password_hash: String::new(),
        created_ms: 6,
    };
    assert_eq!(store.create_user(again), Err(StoreError::EmailTaken));
    let found = store.user_by_email("a@example.com").unwrap().unwrap();
    assert_eq!(
        (found.user.id, found.password_hash.as_str(), found.token_epoch),
        (id, "hash one", 0)
    );
    assert_eq!(store.user_by_id(id).unwrap().unwrap().user, found.user);
    assert!(!store.replace_hash(id, "another", "x").unwrap());
    assert!(store.replace_hash(id, "hash one", "hash two").unwrap());
    assert_eq!(store.change_password(id, "hash one", "x").unwrap(), None);
    let epoch = store.change_password(id, "hash two", "hash three").unwrap().unwrap();
    let next = store.change_password(id, "hash three", "hash four").unwrap().unwrap();
    assert_eq!((epoch >> 32, next >> 32), (1, 2), "they have an order");
    assert_ne!(epoch + (1 << 32), next, "and are no one else's");
    assert_eq!(store.auth_state().unwrap().epochs, [(id, next)]);
    sync(&store, id, Broker::A, 9, &["INFY"]);
    store.add_entry(id, fields(DAY, "NSE:INFY"), 9, None).unwrap();
    store.revoke_token("one", 50).unwrap();
    store.revoke_token("two", 70).unwrap();
    let erased = store.erase_user(id).unwrap();
    assert!(erased.user);
    assert_eq!((erased.portfolio.holdings, erased.portfolio.positions), (1, 2));
    assert_eq!((erased.portfolio.pnl_snapshots, erased.journal_entries), (1, 1));
    assert_eq!(store.erase_user(id).unwrap(), Erased::default());
    assert!(store.user_by_id(id).unwrap().is_none());
    let state = store.auth_state().unwrap();
    assert_eq!((state.users, state.last_user, state.epochs), (vec![], id, vec![]));
    let again = user(&store, "a@example.com");
    assert_ne!(again, id, "an id is never used twice");
    assert_eq!(store.auth_state().unwrap().users, [again]);
    assert_eq!(store.forget_revocations(55).unwrap(), 1);
    let state = store.auth_state().unwrap();
    assert_eq!(state.revoked_tokens, [("two".to_owned(), 70)]);
    assert_eq!(store.forget_revocations(70).unwrap(), 1);
    assert!(store.auth_state().unwrap().revoked_tokens.is_empty());
}

#[test]
fn a_sync_replaces_one_broker_s_rows_exactly_and_in_order() {
    let (_dir, path, store) = fresh();
    let id = user(&store, "a@example.com");
    sync(&store, id, Broker::B, 10, &["ZEEL", "INFY"]);
    sync(&store, id, Broker::A, 20, &["TCS", "INFY", "ABB"]);
    sync(&store, id, Broker::A, 30, &["WIPRO", "INFY"]);
    drop(store);
    let store = SqliteStore::open(&path, 2, &clock()).unwrap();
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
    let deleted = store.delete_portfolio(id).unwrap();
    assert_eq!(deleted, Deleted { holdings: 4, positions: 4, pnl_snapshots: 1 });
    assert_eq!(store.portfolio(id).unwrap(), Portfolio::default());
}

#[test]
fn every_kind_of_cost_is_stored_exactly() {
    let (_dir, path, store) = fresh();
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
    store.replace_portfolio(id, Broker::B, 1, synced, None, derive).unwrap();
    drop(store);
    let store = SqliteStore::open(&path, 1, &clock()).unwrap();
    assert_eq!(store.portfolio(id).unwrap().holdings, holdings);
}

#[test]
fn a_journal_is_paged_newest_first_and_separate_for_each_user() {
    let (_dir, _, store) = fresh();
    let (one, other) = (user(&store, "a@example.com"), user(&store, "b@example.com"));
    let mut expected = Vec::new();
    for (day, symbol) in [(3, "C"), (1, "A"), (3, "D"), (2, "B")] {
        let entry = store.add_entry(one, fields(date(2026, 11, day), symbol), 7, None).unwrap();
        store.add_entry(other, fields(date(2026, 11, day), "not theirs"), 7, None).unwrap();
        expected.push(entry);
    }
    expected.sort_by_key(|entry| std::cmp::Reverse((entry.fields.traded_on, entry.id)));
    assert_eq!(store.entries(one, None, 100).unwrap().entries, expected);
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let page = store.entries(one, after, 1).unwrap();
        after = page.next();
        assert_eq!(page.entries.len(), 1);
        paged.extend(page.entries);
        if after.is_none() {
            break;
        }
    }
    assert_eq!(paged, expected);
    let entry = expected[0].clone();
    assert_eq!(store.entry(one, entry.id).unwrap(), Some(entry.clone()));
    assert_eq!(store.entry(other, entry.id).unwrap(), None);
    assert_eq!(
        store.replace_entry(other, entry.id, fields(DAY, "X"), 9, Expected::default()).unwrap(),
        None
    );
    assert!(!store.delete_entry(other, entry.id, Expected::default()).unwrap());
    let replaced = store
        .replace_entry(one, entry.id, fields(DAY, "X"), 9, Expected::default())
        .unwrap()
        .unwrap();
    assert_eq!((replaced.created_ms, replaced.updated_ms), (7, 9));
    assert_eq!(store.entry(one, entry.id).unwrap(), Some(replaced));
    assert!(store.delete_entry(one, entry.id, Expected::default()).unwrap());
    assert_eq!(store.entries(one, None, 100).unwrap().entries.len(), 3);
    assert_eq!(
        store.add_entry(AccountId(99), fields(DAY, "X"), 1, None),
        Err(StoreError::NoSuchUser)
    );
}

#[test]
fn rows_and_entries_over_their_bounds_are_refused() {
    let (_dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    let derive =
        || -> Derive { Box::new(|_, synced| derived(point(DAY, "1", PointSource::Sync), synced)) };
    let rows = vec![holding(Broker::A, "INFY", "1"); portfolios::ROWS_MAX + 1];
    let synced = Synced { holdings: rows, ..Synced::default() };
    let limit = portfolios::ROWS_MAX;
    assert_eq!(
        store.replace_portfolio(id, Broker::A, 1, synced, None, derive()),
        Err(StoreError::TooMany { what: "holdings", limit })
    );
    let rows = vec![position(Broker::A, PositionKind::Net, "X"); portfolios::ROWS_MAX + 1];
    let synced = Synced { positions: rows, ..Synced::default() };
    assert_eq!(
        store.replace_portfolio(id, Broker::A, 1, synced, None, derive()),
        Err(StoreError::TooMany { what: "positions", limit })
    );
    let limit = journal::ENTRIES_MAX;
    store
        .write(WRITE_DEADLINE_MS, move |file| {
            Ok(file.execute("UPDATE users SET journal_entries = ?1", [limit as i64 - 1])?)
        })
        .unwrap();
    let last = store.add_entry(id, fields(DAY, "X"), 1, None).unwrap();
    let full = Err(StoreError::TooMany { what: "journal entries", limit });
    assert_eq!(store.add_entry(id, fields(DAY, "X"), 1, None), full);
    assert!(store.delete_entry(id, last.id, Expected::default()).unwrap());
    store.add_entry(id, fields(DAY, "X"), 1, None).unwrap();
}

#[test]
fn a_sync_for_an_unknown_user_is_refused_before_deriving() {
    let (_dir, _, store) = fresh();
    let derive: Derive = Box::new(|_, _| panic!("must not be asked"));
    let result =
        store.replace_portfolio(AccountId(7), Broker::A, 1, Synced::default(), None, derive);
    assert_eq!(result, Err(StoreError::NoSuchUser));
}

#[test]
fn deriving_sees_the_stored_rows_and_may_mark_new_ones() {
    let (_dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    sync(&store, id, Broker::B, 1, &["INFY"]);
    let stood = store.portfolio(id).unwrap();
    let synced = Synced { holdings: vec![holding(Broker::A, "TCS", "3")], ..Synced::default() };
    let sent = synced.clone();
    let derive: Derive = Box::new(move |before, synced| {
        assert_eq!((&before.portfolio, synced), (&stood, &sent));
        let mut derived = derived(point(DAY, "99", PointSource::Sync), synced);
        derived.holdings[0].mark = MARK;
        derived
    });
    let outcome = store.replace_portfolio(id, Broker::A, 2, synced, None, derive).unwrap();
    assert_eq!(outcome, SyncOutcome { holdings: 1, ..SyncOutcome::default() });
    let found = store.portfolio(id).unwrap();
    assert_eq!((found.holdings[0].mark, found.holdings.len()), (MARK, 2));
    assert_eq!(store.points(id, DAY).unwrap(), [point(DAY, "99", PointSource::Sync)]);
}

#[test]
fn a_blocked_writer_makes_writes_late_and_then_busy() {
    let (_dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    let (release, gate) = crossbeam_channel::unbounded::<()>();
    let (started, running) = crossbeam_channel::unbounded::<()>();
    let held = store
        .writer
        .submit(WRITE_DEADLINE_MS, move |_: &mut SqliteLedger| {
            started.send(()).ok();
            gate.recv().ok();
            Ok(())
        })
        .unwrap();
    running.recv().unwrap();
    let count = |file: &Connection| columns::run(file, PROBE_WRITE, []);
    assert_eq!(store.write(20, count), Err(StoreError::Late));
    assert!(store.user_by_id(id).unwrap().is_some(), "readers do not wait for it");
    let queued = |_| store.writer.submit(WRITE_DEADLINE_MS, |_: &mut SqliteLedger| Ok(()));
    let waiting = (1..WRITES_WAITING_MAX).map(queued).collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(store.revoke_token("one", 5), Err(StoreError::Busy));
    assert_eq!(store.health().refused, 2);
    assert_eq!(store.health().state, "ok", "the file is not at fault");
    drop(release);
    assert_eq!(held.wait(), Ok(Ok(())));
    assert!(waiting.into_iter().all(|ticket| ticket.wait() == Ok(Ok(()))));
    store.revoke_token("one", 5).unwrap();
}

#[test]
fn a_commit_carries_one_write_if_so_configured() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreSettings { writes_per_commit_max: 1, ..StoreSettings::default() };
    let store = SqliteStore::open_with(&dir.path().join(FILE_NAME), &settings, None, &clock());
    let store = store.unwrap();
    let shared = &store;
    std::thread::scope(|scope| {
        for n in 0..8 {
            scope.spawn(move || shared.revoke_token(&n.to_string(), 5).unwrap());
        }
    });
    let health = store.health();
    assert_eq!((health.writes, health.commits), (8, 8));
}

#[test]
fn concurrent_writes_share_commits_and_get_their_own_results() {
    let (_dir, path, store) = fresh();
    let id = user(&store, "a@example.com");
    let before = store.health();
    let shared = &store;
    let ids: Vec<i64> = std::thread::scope(|scope| {
        let write = |n: i64| {
            let add =
                move |m| shared.add_entry(id, fields(DAY, "X"), n * 100 + m, None).unwrap().id;
            scope.spawn(move || (0..20).map(add).collect::<Vec<_>>())
        };
        let writers: Vec<_> = (0..16).map(write).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let health = store.health();
    assert_eq!(health.writes - before.writes, 320);
    assert!(health.commits - before.commits < 320, "commits are shared: {health:?}");
    drop(store);
    let store = SqliteStore::open(&path, 1, &clock()).unwrap();
    let stored = store.entries(id, None, 1_000).unwrap().entries;
    assert_eq!(stored.len(), 320);
    assert!(ids.iter().all(|id| stored.iter().any(|entry| entry.id == *id)));
}

#[path = "closes_tests.rs"]
mod close_run;
#[path = "faults_tests.rs"]
mod faults;
#[path = "journal_tests.rs"]
mod journal_bounds;
#[path = "model_tests.rs"]
mod model;
#[path = "statements_tests.rs"]
mod statements;
