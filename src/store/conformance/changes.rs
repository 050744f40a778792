//! Changes of accounts and tokens, as other nodes read them.

use std::sync::atomic::{AtomicBool, Ordering};

use super::engine::{Engine, on_each_engine};
use super::samples::user;
use crate::store::{AccountId, CHANGES_KEPT, CHANGES_PAGE, Change, Continuity, LastRead, Store};

on_each_engine! {
    a_past_with_other_changes_of_the_same_numbers_is_told,
    a_reader_that_was_away_for_long_is_told_that_it_missed_some,
    changes_made_at_once_are_seen_in_order_and_none_is_missed,
    every_change_is_told_once_with_what_it_needs,
}

/// All changes after a number, page by page, and the number of the last.
fn read(store: &Store, after: i64) -> (Vec<Change>, i64) {
    let (all, last) = read_on(
        store,
        LastRead {
            number: after,
            mark: None,
        },
    );
    (all, last.number)
}

fn read_on(store: &Store, mut after: LastRead) -> (Vec<Change>, LastRead) {
    let mut all = Vec::new();
    loop {
        let page = store.changes_after(after.number).unwrap();
        assert_eq!(page.continuity(after), Continuity::Follows, "{page:?} after {after:?}");
        after = page.last(after);
        let is_last = page.rows.len() < CHANGES_PAGE;
        all.extend(page.rows.into_iter().map(|(_, change)| change));
        if is_last {
            return (all, after);
        }
    }
}

fn revoked(token_id: &str, expires_ms: i64) -> Change {
    Change::Revoked {
        token_id: token_id.into(),
        expires_ms,
    }
}

fn every_change_is_told_once_with_what_it_needs<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    assert_eq!(store.auth_state().unwrap().read, LastRead::default());
    assert_eq!(read(&store, 0), (vec![], 0));
    let one = user(&store, "a@x");
    let other = user(&store, "b@x");
    store.revoke_token("t", 50).unwrap();
    store.revoke_token("t", 70).unwrap();
    // A rehash of the password changes no token, so it is no change.
    assert!(store.replace_hash(one, "hash one", "hash two").unwrap());
    assert_eq!(store.change_password(one, "wrong", "x").unwrap(), None);
    let epoch = store
        .change_password(one, "hash two", "hash three")
        .unwrap()
        .unwrap();
    assert!(store.erase_user(other).unwrap().is_some());
    assert!(store.erase_user(other).unwrap().is_none());
    let epoch_at_first = |at: usize| match read(&store, 0).0[at] {
        Change::Account { epoch, .. } => epoch,
        _ => panic!("no account"),
    };
    let told = [
        Change::Account {
            id: one,
            epoch: epoch_at_first(0),
        },
        Change::Account {
            id: other,
            epoch: epoch_at_first(1),
        },
        revoked("t", 50),
        revoked("t", 70),
        Change::Account { id: one, epoch },
        Change::Erased { id: other },
    ];
    assert_eq!(read(&store, 0), (told.to_vec(), 6));
    assert_eq!(read(&store, 4), (told[4..].to_vec(), 6));
    let state = store.auth_state().unwrap();
    assert_eq!((state.read.number, state.users), (6, vec![one]));
    assert!(state.read.mark.is_some());
    assert_eq!(read_on(&store, state.read), (vec![], state.read));
    let first = LastRead {
        number: 1,
        mark: store.changes_after(1).unwrap().before,
    };
    assert_eq!(read_on(&store, first).1, state.read);
    drop(store);
    assert_eq!(engine.open().auth_state().unwrap().read, state.read, "they are counted on");
}

fn a_reader_that_was_away_for_long_is_told_that_it_missed_some<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@x");
    let page = CHANGES_PAGE as i64;
    let skipped = CHANGES_KEPT as i64 - page;
    // Simulates that many changes.
    engine
        .execute(&format!("UPDATE change_count SET made = made + {skipped}"))
        .unwrap();
    for number in 0..=page {
        store.revoke_token(&format!("t{number}"), number).unwrap();
    }
    let first = store.changes_after(skipped + 1).unwrap();
    assert_eq!((first.rows.len(), first.made), (CHANGES_PAGE, skipped + 2 + page));
    assert_eq!(first.rows[0], (skipped + 2, revoked("t0", 0)));
    store.forget_changes().unwrap();
    // The change of the account was deleted; all others are kept.
    let judged = |number: i64, mark: Option<i64>| {
        store
            .changes_after(number)
            .unwrap()
            .continuity(LastRead { number, mark })
    };
    assert_eq!(judged(0, None), Continuity::Missed);
    assert_eq!(judged(skipped, Some(7)), Continuity::Missed);
    assert_eq!(read(&store, skipped + 1).0.len(), CHANGES_PAGE + 1);
    // Simulates a database that was put in place of a newer one.
    let ahead = first.made + 1;
    assert_eq!(judged(ahead, None), Continuity::WentBack);
    assert_eq!(store.auth_state().unwrap().users, [id]);
}

fn a_past_with_other_changes_of_the_same_numbers_is_told<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let judged = |read: LastRead| store.changes_after(read.number).unwrap().continuity(read);
    store.revoke_token("one", 5).unwrap();
    let one = store.auth_state().unwrap().read;
    store.revoke_token("two", 5).unwrap();
    let two = store.auth_state().unwrap().read;
    assert_eq!((judged(one), judged(two)), (Continuity::Follows, Continuity::Follows));
    // Simulates a standby that lacks the last commit.
    engine
        .execute("DELETE FROM changes WHERE number = 2")
        .unwrap();
    engine
        .execute("DELETE FROM revoked_tokens WHERE token_id = 'two'")
        .unwrap();
    engine.execute("UPDATE change_count SET made = 1").unwrap();
    assert_eq!((judged(one), judged(two)), (Continuity::Follows, Continuity::WentBack));
    store.revoke_token("other", 5).unwrap();
    assert_eq!((judged(one), judged(two)), (Continuity::Follows, Continuity::WentBack));
    store.revoke_token("more", 5).unwrap();
    assert_eq!((judged(one), judged(two)), (Continuity::Follows, Continuity::WentBack));
}

fn changes_made_at_once_are_seen_in_order_and_none_is_missed<E: Engine>() {
    const WRITERS: i64 = 4;
    const EACH: i64 = 25;
    let engine = E::fresh();
    let store = engine.open();
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = Vec::new();
            let mut after = 0;
            loop {
                let is_last = done.load(Ordering::SeqCst);
                let (changes, last) = read(&store, after);
                after = last;
                seen.extend(changes);
                if is_last {
                    return seen;
                }
            }
        });
        let write = |writer: i64| {
            let store = &store;
            move || {
                for number in 0..EACH {
                    match number % 5 {
                        0 => drop(user(store, &format!("{writer}.{number}@x"))),
                        _ => store
                            .revoke_token(&format!("{writer}.{number}"), number)
                            .unwrap(),
                    }
                }
            }
        };
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(write(writer)))
            .collect();
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::SeqCst);
        reader.join().unwrap()
    });
    assert_eq!(seen.len() as i64, WRITERS * EACH);
    let ids: Vec<AccountId> = seen
        .iter()
        .filter_map(|change| match change {
            Change::Account { id, .. } => Some(*id),
            _ => None,
        })
        .collect();
    let mut all = store.auth_state().unwrap().users;
    all.sort();
    assert_eq!(ids, all, "in the order of their ids");
}
