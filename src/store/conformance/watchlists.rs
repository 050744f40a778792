//! Watch lists: replaced together, with ids that are never given twice, and by preconditions.

use super::engine::{Engine, on_each_engine};
use super::samples::user;
use crate::base::Symbol;
use crate::store::watchlists::Watchlists;
use crate::store::{AccountId, Expected, States, StoreError};
use crate::views::account::Watchlist;

on_each_engine! {
    a_row_of_a_newer_version_is_refused_and_never_replaced,
    a_row_of_a_program_without_versions_is_read_and_written_anew,
    lists_are_replaced_together_and_are_each_account_s_own,
    of_two_who_saw_the_same_lists_one_replaces_them,
}

fn list(id: i64, name: &str, symbols: &[&str]) -> Watchlist {
    let symbols = symbols
        .iter()
        .map(|symbol| Symbol::parse(symbol).unwrap())
        .collect();
    Watchlist {
        id,
        name: name.to_owned(),
        symbols,
    }
}

fn lists_are_replaced_together_and_are_each_account_s_own<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let one = user(&store, "a@example.com");
    let other = user(&store, "b@example.com");
    assert_eq!(store.watchlists(one).unwrap(), Watchlists::default());
    let replace = |id, lists| {
        store
            .replace_watchlists(id, lists, Expected::default())
            .unwrap()
    };
    let shares = list(0, "Shares \u{20b9} \"1\"", &["NSE:M&M", "NSE:NIFTY 50", "BSE:SENSEX"]);
    let stored = replace(one, vec![shares.clone(), list(0, "Empty", &[])]).unwrap();
    let expected = [
        Watchlist {
            id: 1,
            ..shares.clone()
        },
        list(2, "Empty", &[]),
    ];
    assert_eq!(stored.lists, expected);
    assert_eq!(store.watchlists(one).unwrap(), stored);
    assert_eq!(store.watchlists(other).unwrap(), Watchlists::default());
    // Another order, one gone, one renamed and one new.
    let stored = replace(one, vec![list(0, "New", &["NSE:TCS"]), list(2, "Renamed", &[])]).unwrap();
    assert_eq!(stored.lists, [list(3, "New", &["NSE:TCS"]), list(2, "Renamed", &[])]);
    // The id of a list that is gone, and those of another account's lists.
    assert_eq!(replace(one, vec![list(1, "Gone", &[])]), None);
    assert_eq!(replace(other, vec![list(2, "Renamed", &[])]), None);
    assert_eq!(store.watchlists(one).unwrap(), stored);
    assert_eq!(replace(one, vec![]).unwrap().lists, []);
    assert_eq!(replace(one, vec![list(0, "A", &[])]).unwrap().lists[0].id, 4);
    drop(store);
    let store = engine.open();
    assert_eq!(store.watchlists(one).unwrap().lists, [list(4, "A", &[])]);
    assert!(store.erase_user(one).unwrap().is_some());
    assert_eq!(store.watchlists(one).unwrap(), Watchlists::default());
    let nobody = store.replace_watchlists(AccountId(99), vec![], Expected::default());
    assert_eq!(nobody, Err(StoreError::NoSuchUser));
    replace_by_hand::<E>(&engine, &store, other);
}

/// A row that no program of ours wrote.
fn replace_by_hand<E: Engine>(engine: &E, store: &crate::store::Store, id: AccountId) {
    store
        .replace_watchlists(id, vec![list(0, "A", &[])], Expected::default())
        .unwrap();
    for damaged in ["{", "[{\"id\":1,\"name\":\"A\",\"symbols\":[\"infy\"]}]"] {
        engine
            .execute(&format!("UPDATE watchlists SET lists = '{damaged}'"))
            .unwrap();
        assert_eq!(store.watchlists(id), Err(StoreError::Damaged("watch lists")), "{damaged}");
    }
}

fn of_two_who_saw_the_same_lists_one_replaces_them<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let seen = |lists: &Watchlists| {
        let these = States::These(vec![lists.revision()]);
        Expected {
            one_of: Some(these),
            none_of: None,
        }
    };
    let mut before = store.watchlists(id).unwrap();
    for round in 0..10 {
        let names = ["one", "other"].map(|name| format!("{name} {round}"));
        let replaced: Vec<_> = std::thread::scope(|scope| {
            let store = &store;
            let both = names.each_ref().map(|name| {
                let lists = vec![list(0, name, &[])];
                let expected = seen(&before);
                scope.spawn(move || store.replace_watchlists(id, lists, expected))
            });
            both.into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let refused = replaced
            .iter()
            .filter(|end| **end == Err(StoreError::NotAsExpected));
        assert_eq!(refused.count(), 1, "{replaced:?}");
        let stored = replaced.into_iter().find_map(Result::ok).flatten().unwrap();
        assert_eq!(store.watchlists(id).unwrap(), stored);
        before = stored;
    }
    // An unknown id is not looked for in lists that nobody has seen.
    let expected = seen(&Watchlists::default());
    let refused = store.replace_watchlists(id, vec![list(77, "A", &[])], expected);
    assert_eq!(refused, Err(StoreError::NotAsExpected));
}

/// As after a downgrade: the row may hold what this program would lose.
fn a_row_of_a_newer_version_is_refused_and_never_replaced<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let other = user(&store, "b@example.com");
    let replace = |id, name| {
        store
            .replace_watchlists(id, vec![list(0, name, &[])], Expected::default())
            .map(drop)
    };
    replace(id, "kept").unwrap();
    let newer = "version = 2, lists = '{\"sorted\":true}'";
    engine
        .execute(&format!("UPDATE watchlists SET {newer} WHERE user_id = {}", id.0))
        .unwrap();
    let refused = StoreError::NewerRow {
        what: "watch lists",
        found: 2,
        known: 1,
    };
    assert_eq!(store.watchlists(id), Err(refused.clone()));
    assert_eq!(replace(id, "lost"), Err(refused.clone()));
    let words = "the user's watch lists are stored in version 2 and this program knows 1: run the \
                 newer program";
    assert_eq!(refused.to_string(), words);
    assert_eq!(store.health().state.as_str(), "ok", "it is one row, not the database");
    replace(other, "another's").unwrap();
    // The newer program finds its row as it was, and so does this one after it.
    let older = "version = 1, lists = '[]'";
    let as_it_was = format!(
        "UPDATE watchlists SET {older} WHERE user_id = {} AND {}",
        id.0,
        "\
        version = 2 AND lists = '{\"sorted\":true}' AND last_id = 1"
    );
    engine.execute(&as_it_was).unwrap();
    assert_eq!(store.watchlists(id).unwrap().lists, []);
    replace(id, "again").unwrap();
    assert_eq!(store.watchlists(id).unwrap().lists, [list(2, "again", &[])]);
    assert!(store.erase_user(id).unwrap().is_some());
}

/// Nodes of before the versions may go on beside this program, on one database.
fn a_row_of_a_program_without_versions_is_read_and_written_anew<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let lists = r#"[{"id":7,"name":"of before","symbols":["NSE:M&M"]}]"#;
    // The statement of that program.
    let written = format!(
        "INSERT INTO watchlists (user_id, last_id, lists)
         SELECT id, 7, '{lists}' FROM users WHERE id = {}
         ON CONFLICT (user_id) DO UPDATE SET last_id = excluded.last_id, lists = excluded.lists",
        id.0
    );
    engine.execute(&written).unwrap();
    let kept = || list(7, "of before", &["NSE:M&M"]);
    assert_eq!(store.watchlists(id).unwrap().lists, [kept()]);
    let next = vec![kept(), list(0, "new", &[])];
    store
        .replace_watchlists(id, next, Expected::default())
        .unwrap()
        .unwrap();
    assert_eq!(store.watchlists(id).unwrap().lists, [kept(), list(8, "new", &[])]);
    // And it writes again.
    engine.execute(&written).unwrap();
    assert_eq!(store.watchlists(id).unwrap().lists, [kept()]);
}
