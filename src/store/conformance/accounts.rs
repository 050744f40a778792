//! Users, their passwords and tokens.

use super::engine::{Engine, on_each_engine};
use super::samples::{DAY, fields, sync, user};
use crate::base::Broker;
use crate::store::{AccountId, LastRead, LoginNetwork, NewUser, StoreError};
use crate::store::{LOGIN_NETWORK_AGAIN_MS, LOGIN_NETWORKS_MAX};
use crate::views::account::ErasedRows;

on_each_engine! {
    a_user_is_created_once_changed_and_erased,
    each_account_begins_with_an_epoch_of_its_own,
    ending_all_tokens_gives_a_new_epoch_and_leaves_the_password,
    one_account_is_the_first_of_the_database,
    one_of_several_renews_the_incarnation_that_they_saw,
    the_newest_networks_of_an_account_are_kept_until_it_is_erased,
}

fn a_user_is_created_once_changed_and_erased<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let again = NewUser {
        email: "a@example.com".to_owned(),
        name: None,
        password_hash: String::new(),
        created_ms: 6,
    };
    assert_eq!(store.create_user(again).map(drop), Err(StoreError::EmailTaken));
    let found = store.user_by_email("a@example.com").unwrap().unwrap();
    assert_eq!((found.user.id, found.password_hash.as_str()), (id, "hash one"));
    assert!(found.token_epoch > 0);
    assert_eq!(store.user_by_id(id).unwrap().unwrap().user, found.user);
    assert!(!store.replace_hash(id, "another", "x").unwrap());
    assert!(store.replace_hash(id, "hash one", "hash two").unwrap());
    assert_eq!(store.change_password(id, "hash one", "x").unwrap(), None);
    let epoch = store
        .change_password(id, "hash two", "hash three")
        .unwrap()
        .unwrap();
    let next = store
        .change_password(id, "hash three", "hash four")
        .unwrap()
        .unwrap();
    let order = (found.token_epoch >> 32) + 1;
    assert_eq!((epoch >> 32, next >> 32), (order, order + 1), "they have an order");
    assert_ne!(epoch + (1 << 32), next, "and are no one else's");
    assert_eq!(store.auth_state().unwrap().epochs, [(id, next)]);
    sync(&store, id, Broker::A, 9, &["INFY"]);
    store
        .add_entry(id, fields(DAY, "NSE:INFY"), 9, None)
        .unwrap();
    store.revoke_token("one", 50).unwrap();
    store.revoke_token("two", 70).unwrap();
    let gone = ErasedRows {
        holdings: 1,
        positions: 2,
        pnl_snapshots: 1,
        journal_entries: 1,
    };
    assert_eq!(store.erase_user(id).unwrap(), Some(gone));
    assert_eq!(store.erase_user(id).unwrap(), None);
    assert!(store.user_by_id(id).unwrap().is_none());
    let state = store.auth_state().unwrap();
    assert_eq!((state.users, state.last_user, state.epochs), (vec![], id, vec![]));
    let again = user(&store, "a@example.com");
    assert_ne!(again, id, "an id is never used twice");
    let state = store.auth_state().unwrap();
    assert_eq!(state.users, [again]);
    let epoch = store.user_by_id(again).unwrap().unwrap().token_epoch;
    assert_eq!(state.epochs, [(again, epoch)]);
    assert_eq!(store.forget_revocations(55).unwrap(), 1);
    let state = store.auth_state().unwrap();
    assert_eq!(state.revoked_tokens, [("two".to_owned(), 70)]);
    assert_eq!(store.forget_revocations(70).unwrap(), 1);
    assert!(store.auth_state().unwrap().revoked_tokens.is_empty());
}

fn each_account_begins_with_an_epoch_of_its_own<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let epoch = |id| store.user_by_id(id).unwrap().unwrap().token_epoch;
    let one = epoch(user(&store, "a@example.com"));
    let other = epoch(user(&store, "b@example.com"));
    let new = NewUser {
        email: "c@example.com".to_owned(),
        name: None,
        password_hash: "hash".to_owned(),
        created_ms: 6,
    };
    let added = engine.users().add(&new).unwrap().unwrap();
    let third = epoch(added.id);
    assert!(one > 0 && other > 0 && third > 0);
    assert!(one != other && other != third && third != one);
}

fn one_of_several_renews_the_incarnation_that_they_saw<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let first = store.identity().unwrap();
    assert_eq!((first.incarnation.len(), first.cluster.len()), (32, 32));
    assert_ne!(first.incarnation, first.cluster);
    let read = store.auth_state().unwrap().read;
    let same = store.renew_incarnation(&first.incarnation, read).unwrap();
    assert_eq!(same, first, "it has not gone back");
    let lost = LastRead {
        number: read.number + 1,
        mark: Some(7),
    };
    let second = store.renew_incarnation(&first.incarnation, lost).unwrap();
    assert_ne!(second.incarnation, first.incarnation);
    assert_eq!(second.cluster, first.cluster, "it is the same cluster");
    let again = store.renew_incarnation(&first.incarnation, lost).unwrap();
    assert_eq!(again, second, "it is renewed already");
    assert_eq!(store.auth_state().unwrap().incarnation, second.incarnation);
    assert_eq!(store.changes_after(0).unwrap().incarnation, second.incarnation);
    let third = engine.users().renew_identity(false).unwrap();
    assert_eq!(store.identity().unwrap(), third);
    assert_ne!(third.incarnation, second.incarnation);
    assert_eq!(third.cluster, first.cluster);
    let copy = engine.users().renew_identity(true).unwrap();
    assert!(copy.incarnation != third.incarnation && copy.cluster != first.cluster);
    drop(store);
    assert_eq!(engine.open().identity().unwrap(), copy, "a start keeps it");
}

fn one_account_is_the_first_of_the_database<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let new = |number: usize| NewUser {
        email: format!("u{number}@example.com"),
        name: None,
        password_hash: "hash".to_owned(),
        created_ms: 5,
    };
    let made: Vec<_> = std::thread::scope(|scope| {
        let store = &store;
        let asks: Vec<_> = (0..6)
            .map(|n| scope.spawn(move || store.create_first_user(new(n))))
            .collect();
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    let first: Vec<_> = made.iter().filter_map(|made| made.as_ref().ok()).collect();
    assert_eq!((first.len(), first[0].user.id), (1, AccountId(1)), "{made:?}");
    let is_refused = |made: &&Result<_, _>| matches!(made, Err(StoreError::NotFirst));
    let refused = made.iter().filter(is_refused).count();
    assert_eq!(refused, 5, "{made:?}");
    assert_eq!(store.auth_state().unwrap().users, [AccountId(1)], "nothing else was written");
    store.erase_user(AccountId(1)).unwrap();
    assert_eq!(store.create_first_user(new(9)).err(), Some(StoreError::NotFirst));
    assert_eq!(user(&store, "b@example.com"), AccountId(2));
}

fn ending_all_tokens_gives_a_new_epoch_and_leaves_the_password<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let before = store.user_by_id(id).unwrap().unwrap();
    let epoch = store.end_tokens(id, false).unwrap().unwrap();
    let next = store.end_tokens(id, false).unwrap().unwrap();
    assert!(before.token_epoch < epoch && epoch < next);
    let after = store.user_by_id(id).unwrap().unwrap();
    assert_eq!((after.token_epoch, after.password_hash), (next, before.password_hash));
    assert_eq!(store.end_tokens(AccountId(9), false).unwrap(), None);
}

fn the_newest_networks_of_an_account_are_kept_until_it_is_erased<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let one = user(&store, "a@example.com");
    let two = user(&store, "b@example.com");
    let seen = |id, network: usize, seen_ms: i64| LoginNetwork {
        id,
        network: format!("{network:016x}"),
        seen_ms,
    };
    let all = (1..=LOGIN_NETWORKS_MAX + 2).map(|n| seen(one, n, 1_000 + n as i64));
    let gone = seen(AccountId(99), 1, 5_000);
    store
        .keep_login_networks(all.chain([seen(two, 1, 4_000), gone]).collect(), 10_000)
        .unwrap();
    let kept = |since_ms| store.login_networks(since_ms).unwrap();
    let found = kept(0);
    assert_eq!(found.len(), LOGIN_NETWORKS_MAX + 1);
    assert_eq!(found[0], ("b@example.com".to_owned(), seen(two, 1, 4_000)), "the newest first");
    assert_eq!(found[LOGIN_NETWORKS_MAX].1, seen(one, 3, 1_003), "the two oldest are gone");
    assert_eq!(kept(4_000).len(), 1);
    // Seen again within the day, and after a day.
    store
        .keep_login_networks(vec![seen(two, 1, 4_000 + LOGIN_NETWORK_AGAIN_MS)], 10_000)
        .unwrap();
    assert_eq!(kept(4_001), []);
    store
        .keep_login_networks(vec![seen(two, 1, 4_001 + LOGIN_NETWORK_AGAIN_MS)], 10_000)
        .unwrap();
    assert_eq!(kept(4_001).len(), 1);
    store.forget_login_networks(1_005).unwrap();
    assert_eq!(kept(0).last().unwrap().1, seen(one, 5, 1_005));
    store.erase_user(one).unwrap();
    assert_eq!(kept(0).len(), 1);
}
