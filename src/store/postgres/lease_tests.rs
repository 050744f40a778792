//! The lease over a real server, and the writes that it fences.

use super::*;
use crate::base::Symbol;
use crate::store::StoreError;
use crate::store::postgres::conformance_tests::Schema;
use crate::store::postgres::test_server::{pooler, server};
use crate::store::turns::hold_lease;

const LEASE_MS: u64 = 60_000;
const DAY: jiff::civil::Date = jiff::civil::date(2026, 11, 20);

fn lease(schema: &Schema, lease_ms: u64) -> PostgresLease {
    let settings = StoreSettings::default();
    // The store makes the schema. A request of the lease is too short for that on a busy machine.
    schema.store().close();
    let lease = PostgresLease::new(schema.url(), &settings, lease_ms, &Clock::system()).unwrap();
    let clock = Clock::system();
    while let Err(error) = lease.look() {
        assert!(clock.monotonic_ms() < 20_000, "{error}");
        std::thread::yield_now();
    }
    lease
}

const fn holders() -> (&'static str, &'static str) {
    ("a/1", "b/2")
}

#[test]
fn one_holder_has_it_at_a_time_and_each_has_an_epoch_of_its_own() {
    // Through a pooler too, since nothing is kept in a session.
    for through in [server(), pooler()].into_iter().flatten() {
        let schema = Schema::through(through);
        let (lease, (a, b)) = (lease(&schema, LEASE_MS), holders());
        assert!(lease.look().unwrap().0);
        assert_eq!(lease.take(a, Epoch(0)).unwrap(), Some(Epoch(1)));
        assert!(!lease.look().unwrap().0);
        assert_eq!(lease.take(b, Epoch(9)).unwrap(), None);
        assert_eq!(lease.renew(b).unwrap(), None);
        assert_eq!(lease.renew(a).unwrap(), Some(Epoch(1)));
        lease.release(b).unwrap();
        assert!(!lease.look().unwrap().0, "not b's to release");
        lease.release(a).unwrap();
        assert_eq!(lease.renew(a).unwrap(), None, "too late");
        assert_eq!(lease.take(b, Epoch(0)).unwrap(), Some(Epoch(2)));
    }
}

#[test]
fn one_that_has_run_out_is_renewed_until_somebody_takes_it() {
    let Some(server) = server() else { return };
    let schema = Schema::through(server);
    let (short, (a, b)) = (lease(&schema, 0), holders());
    assert_eq!(short.take(a, Epoch(0)).unwrap(), Some(Epoch(1)));
    assert_eq!(short.renew(a).unwrap(), Some(Epoch(1)));
    assert_eq!(short.take(b, Epoch(0)).unwrap(), Some(Epoch(2)));
    assert_eq!(short.renew(a).unwrap(), None);
}

#[test]
fn a_leader_that_was_replaced_writes_nothing_in_the_evening() {
    let Some(server) = server() else { return };
    let schema = Schema::through(server);
    let (lease, store, (a, b)) = (lease(&schema, 0), schema.store(), holders());
    let Some(first) = lease.take(a, Epoch(0)).unwrap() else {
        panic!("refused")
    };
    let silent = || vec![Symbol::parse("NSE:M&M").unwrap()];
    store.keep_closes(first, DAY, &[]).unwrap();
    let Some(second) = lease.take(b, Epoch(0)).unwrap() else {
        panic!("refused")
    };
    for refused in [
        store.keep_closes(first, DAY, &[]),
        store.keep_points(first, DAY, Vec::new()),
        store.finish_close(first, DAY, 1, silent()),
        store.keep_outcomes(first, Vec::new()),
        store
            .publish_signals(first, DAY, 1, 1, Vec::new())
            .map(drop),
    ] {
        assert!(matches!(refused, Err(StoreError::Deposed)), "{refused:?}");
    }
    assert!(!store.is_closed(DAY).unwrap());
    store.finish_close(second, DAY, 1, silent()).unwrap();
    assert!(store.is_closed(DAY).unwrap());
    // A single node cannot be replaced.
    store
        .finish_close(Epoch::ALONE, DAY, 2, Vec::new())
        .unwrap();
    store.close();
}

#[test]
fn a_server_that_is_away_is_an_error_within_the_deadline() {
    let Some(server) = server() else { return };
    let role = server.fresh_role();
    let url = server.url(&role).replace("host=", "host=/nowhere");
    let settings = StoreSettings::default();
    let clock = Clock::system();
    let url = StoreUrl::parse(&url).unwrap();
    let lease = PostgresLease::new(&url, &settings, LEASE_MS, &clock).unwrap();
    lease.take(holders().0, Epoch(0)).unwrap_err();
}

#[test]
fn an_epoch_is_above_the_highest_that_is_known_of_unless_no_row_can_have_given_that() {
    let Some(server) = server() else { return };
    let schema = Schema::through(server);
    let (lease, (a, _)) = (lease(&schema, 0), holders());
    for (known, given) in [
        (0, 1),
        (51, 52),
        (3, 53),
        (1_000_000_000_000_000, 54),
        (u64::MAX, 55),
    ] {
        assert_eq!(lease.take(a, Epoch(known)).unwrap(), Some(Epoch(given)), "{known}");
    }
}

/// The last statement of the role's connections, as the server shows it.
fn last_statement(schema: &Schema) -> String {
    let ask = "SELECT state || ': ' || query FROM pg_stat_activity \
               WHERE usename = current_user AND pid <> pg_backend_pid() AND query <> ''";
    server().unwrap().execute(schema.role(), ask).unwrap()
}

#[test]
fn taking_and_renewing_are_one_statement_that_leaves_no_transaction_open() {
    let Some(server) = server() else { return };
    let schema = Schema::through(server);
    let (lease, (a, _)) = (lease(&schema, LEASE_MS), holders());
    lease.take(a, Epoch(0)).unwrap();
    let shown = last_statement(&schema);
    assert!(shown.starts_with("idle: ") && shown.contains("epoch ="), "{shown}");
    lease.renew(a).unwrap();
    let shown = last_statement(&schema);
    assert!(shown.starts_with("idle: ") && shown.contains("synchronous_commit"), "{shown}");
}

#[test]
fn a_node_that_is_stopped_while_it_holds_the_row_keeps_it_for_two_seconds() {
    let Some(server) = server() else { return };
    let schema = Schema::through(server);
    let (lease, clock, (a, b)) = (lease(&schema, 0), Clock::system(), holders());
    let Some(epoch) = lease.take(a, Epoch(0)).unwrap() else {
        panic!("refused")
    };
    let connections = Connections::new(schema.url(), &StoreSettings::default(), &clock).unwrap();
    let (held, told) = std::sync::mpsc::channel();
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let waits = std::sync::Mutex::new(waits);
    let deadline = connections.deadline(60_000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stopped = |tx: &dyn Tx| {
                hold_lease(tx, epoch)?;
                let _ = held.send(());
                // Simulates a stopped process, which sends nothing more.
                let _ = waits.lock().unwrap().recv();
                Ok(())
            };
            let purpose = Purpose::Write(Vec::new());
            let _ = connections.run(&purpose, &deadline, &stopped);
        });
        told.recv().unwrap();
        let begun_ms = clock.monotonic_ms();
        while !matches!(lease.take(b, Epoch(0)), Ok(Some(_))) {
            assert!(clock.monotonic_ms() - begun_ms < 20_000, "the row stays locked");
            std::thread::yield_now();
        }
        let took_ms = clock.monotonic_ms() - begun_ms;
        drop(go_on);
        assert!((1_000..4_500).contains(&took_ms), "{took_ms}");
    });
}
