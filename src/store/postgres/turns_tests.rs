//! Turns over a real server, and the writes that they fence.

use jiff::civil::date;

use super::conformance_tests::Schema;
use super::test_server::{pooler, server};
use crate::base::{Account, Broker, Synced};
use crate::portfolio::PointSource;
use crate::store::conformance::samples::{derived, point, sync, user};
use crate::store::{Derive, NewPortfolio, Store, StoreError, Turn};

/// An empty database, reached directly and through a pooler.
fn databases() -> impl Iterator<Item = Schema> {
    [server(), pooler()]
        .into_iter()
        .flatten()
        .map(Schema::through)
}

fn bring(store: &Store, turn: &Turn) -> Result<(), StoreError> {
    let on = date(2026, 11, 20);
    let derive: Derive =
        Box::new(move |_, synced| derived(point(on, "1", PointSource::Sync), synced));
    let synced = Synced::default();
    let new = NewPortfolio::of(Account::at(Broker::A), 9, synced, derive);
    store.replace_portfolio(turn, new).map(drop)
}

fn run_out(schema: &Schema) {
    schema
        .execute("UPDATE turns SET until = clock_timestamp() - interval '1 ms'")
        .unwrap();
}

#[test]
fn one_has_a_user_s_turn_at_a_time_and_each_has_a_higher_number() {
    for schema in databases() {
        let a = schema.store();
        let b = schema.store();
        let id = user(&a, "a@example.com");
        let other = user(&a, "b@example.com");
        let first = a.take_turn(id).unwrap().unwrap();
        assert_eq!((first.user, first.number), (id, 1));
        let lasts = "SELECT until - clock_timestamp() BETWEEN interval '10 s' AND interval '20 s'";
        schema
            .execute(&format!("DO $$ BEGIN ASSERT ({lasts} FROM turns); END $$"))
            .unwrap();
        assert_eq!(b.take_turn(id).unwrap(), None);
        assert_eq!(a.take_turn(id).unwrap(), None, "not even by the same node");
        assert!(b.take_turn(other).unwrap().is_some(), "each user has turns of their own");
        let stranger = Turn {
            holder: "stranger".into(),
            ..first.clone()
        };
        assert!(!b.extend_turn(&stranger).unwrap());
        b.end_turn(&stranger).unwrap();
        assert_eq!(b.take_turn(id).unwrap(), None, "only its holder ends it");
        assert!(a.extend_turn(&first).unwrap());
        a.end_turn(&first).unwrap();
        assert!(!a.extend_turn(&first).unwrap(), "it is over");
        let second = b.take_turn(id).unwrap().unwrap();
        assert_eq!(second.number, 2);
        a.end_turn(&first).unwrap();
        assert_eq!(a.take_turn(id).unwrap(), None, "an end that comes late ends nothing");
        [a, b].iter().for_each(Store::close);
    }
}

#[test]
fn of_many_who_ask_at_once_one_gets_it() {
    for schema in databases() {
        let store = schema.store();
        let id = user(&store, "a@example.com");
        for number in 1..6 {
            let turns: Vec<Turn> = std::thread::scope(|scope| {
                let asked: Vec<_> = (0..4)
                    .map(|_| scope.spawn(|| store.take_turn(id)))
                    .collect();
                let granted = asked
                    .into_iter()
                    .map(|thread| thread.join().unwrap().unwrap());
                granted.flatten().collect()
            });
            assert_eq!(turns.iter().map(|turn| turn.number).collect::<Vec<_>>(), [number]);
            store.end_turn(&turns[0]).unwrap();
        }
        store.close();
    }
}

#[test]
fn who_lost_the_turn_stores_and_deletes_nothing() {
    for schema in databases() {
        let a = schema.store();
        let b = schema.store();
        let id = user(&a, "a@example.com");
        sync(&a, id, Broker::B, 1, &["INFY"]);
        let first = a.take_turn(id).unwrap().unwrap();
        run_out(&schema);
        // A turn that ran out still holds until another node takes it.
        bring(&a, &first).unwrap();
        assert!(a.extend_turn(&first).unwrap());
        assert_eq!(b.take_turn(id).unwrap(), None);
        run_out(&schema);
        let second = b.take_turn(id).unwrap().unwrap();
        let before = a.portfolio(id).unwrap();
        assert_eq!(bring(&a, &first), Err(StoreError::TurnLost));
        assert_eq!(a.delete_portfolio(&first), Err(StoreError::TurnLost));
        assert!(!a.extend_turn(&first).unwrap());
        assert_eq!(a.portfolio(id).unwrap(), before);
        // Other writes to the portfolio, such as the evening's close, refuse no turn.
        let version = b.portfolio_version(id).unwrap();
        schema
            .execute("UPDATE users SET portfolio_version = portfolio_version + 1")
            .unwrap();
        assert!(b.portfolio_version(id).unwrap() > version);
        bring(&b, &second).unwrap();
        b.end_turn(&second).unwrap();
        assert_eq!(bring(&b, &second), Err(StoreError::TurnLost), "after its end too");
        [a, b].iter().for_each(Store::close);
    }
}

#[test]
fn a_turn_goes_with_its_user() {
    for schema in databases() {
        let store = schema.store();
        let id = user(&store, "a@example.com");
        let turn = store.take_turn(id).unwrap().unwrap();
        store.erase_user(id).unwrap();
        let left = "DO $$ BEGIN ASSERT NOT EXISTS (SELECT 1 FROM turns); END $$";
        schema.execute(left).unwrap();
        assert_eq!(bring(&store, &turn), Err(StoreError::NoSuchUser));
        assert_eq!(store.take_turn(id), Err(StoreError::NoSuchUser));
        assert!(!store.extend_turn(&turn).unwrap());
        store.end_turn(&turn).unwrap();
        store.close();
    }
}
