//! API keys, and what of them every node is told.

use super::engine::{Engine, on_each_engine};
use super::samples::user;
use crate::base::Scope;
use crate::store::api_keys::KEYS_MAX;
use crate::store::{AccountId, Change, ENDED_LISTED_MS, KeyUse, StoreError, StoredKey, UserChange};

on_each_engine! {
    a_key_is_kept_until_it_is_removed_and_each_change_is_told,
    an_account_s_keys_are_bounded,
    keys_end_with_tokens_passwords_incarnations_and_users_where_they_are_meant,
}

fn key(number: u64, user: AccountId) -> StoredKey {
    StoredKey {
        id: format!("{number:011}"),
        user,
        name: "a \u{20b9} widget".to_owned(),
        scopes: [Scope::JournalWrite, Scope::MarketRead]
            .into_iter()
            .collect(),
        hash: format!("{number:064x}"),
        created_ms: 5,
        expires_ms: None,
        used_ms: None,
        used_from: None,
    }
}

fn a_key_is_kept_until_it_is_removed_and_each_change_is_told<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let mut people = engine.users();
    let one = user(&store, "a@x");
    let other = user(&store, "b@x");
    let registered = store.auth_state().unwrap().read.number;
    let epoch = |id| store.user_by_id(id).unwrap().unwrap().token_epoch;
    let told = |after| {
        let rows = store.changes_after(after).unwrap().rows;
        rows.into_iter()
            .map(|(_, change)| change)
            .collect::<Vec<_>>()
    };
    let account = |id| Change::Account {
        id,
        epoch: epoch(id),
    };
    store.add_key(key(1, one), 9).unwrap();
    store.add_key(key(2, one), 9).unwrap();
    store.add_key(key(3, other), 9).unwrap();
    assert!(store.add_key(key(3, one), 9).is_err(), "an id is given once");
    assert_eq!(told(registered), [account(one), account(one), account(other)]);
    let read = store.keys_of(vec![one]).unwrap();
    assert_eq!((read.number, read.keys.len()), (registered + 3, 2));
    assert_eq!(read.keys[0], key(1, one));
    assert_eq!(store.auth_state().unwrap().keys.len(), 3);

    // A use is no change.
    expect_latest_use_kept(&store, one);
    assert_eq!(told(registered + 3), []);

    // A disabled user's are not good meanwhile.
    people
        .change(one, UserChange::Disable { now_ms: 9 })
        .unwrap()
        .unwrap();
    assert_eq!(store.keys_of(vec![one, other]).unwrap().keys.len(), 1);
    people.change(one, UserChange::Enable).unwrap().unwrap();
    assert_eq!(store.keys_of(vec![one, other]).unwrap().keys.len(), 3);
    assert_eq!(told(registered + 3), [account(one), account(one)]);

    assert!(!store.remove_key(other, &key(1, one).id).unwrap(), "it is another's");
    assert!(store.remove_key(one, &key(1, one).id).unwrap());
    assert!(!store.remove_key(one, &key(1, one).id).unwrap());
    assert_eq!(told(registered + 5), [account(one)]);
    let listed: Vec<_> = people.keys("", 9).unwrap();
    assert_eq!(
        listed
            .iter()
            .map(|key| key.email.as_str())
            .collect::<Vec<_>>(),
        ["a@x", "b@x"]
    );
    assert_eq!(people.keys(&listed[0].key.id, 9).unwrap(), listed[1..]);
    assert_eq!(people.revoke_key(&key(2, one).id).unwrap(), Some(registered + 7));
    assert_eq!(people.revoke_key(&key(2, one).id).unwrap(), None);
}

fn keys_end_with_tokens_passwords_incarnations_and_users_where_they_are_meant<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let mut people = engine.users();
    let one = user(&store, "a@x");
    let other = user(&store, "b@x");
    store.add_key(key(3, other), 9).unwrap();
    store.end_tokens(other, false).unwrap();
    assert_eq!(store.keys_of(vec![other]).unwrap().keys.len(), 1);
    store.end_tokens(other, true).unwrap();
    assert_eq!(store.keys_of(vec![other]).unwrap().keys, []);
    store.add_key(key(4, other), 9).unwrap();
    people.set_password(other, "new", false).unwrap();
    assert_eq!(store.keys_of(vec![other]).unwrap().keys.len(), 1);
    people.set_password(other, "newer", true).unwrap();
    assert_eq!(store.keys_of(vec![other]).unwrap().keys, []);

    // Those of another incarnation are good for nothing, and those of an erased user are gone.
    store.add_key(key(5, one), 9).unwrap();
    let before = store.auth_state().unwrap().read.number;
    people.renew_identity(false).unwrap();
    assert_eq!(store.keys_of(vec![one]).unwrap().keys, []);
    assert!(!people.keys("", 9).unwrap()[0].is_current);
    store.erase_user(one).unwrap();
    assert_eq!(people.keys("", 9).unwrap(), []);
    let told: Vec<_> = store.changes_after(before).unwrap().rows;
    let told: Vec<_> = told.into_iter().map(|(_, change)| change).collect();
    assert_eq!(told, [Change::Erased { id: one }]);
    assert!(store.add_key(key(6, one), 9).is_err(), "of nobody");
}

fn expect_latest_use_kept(store: &crate::store::Store, user: AccountId) {
    for used_ms in [120_000, 60_000] {
        let used_from = Some(format!("{used_ms}/24"));
        store
            .note_key_uses(vec![KeyUse {
                id: key(1, user).id,
                used_ms,
                used_from,
            }])
            .unwrap();
    }
    let used = &store.keys_of(vec![user]).unwrap().keys[0];
    assert_eq!((used.used_ms, used.used_from.as_deref()), (Some(120_000), Some("120000/24")));
}

fn an_account_s_keys_are_bounded<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@x");
    for number in 0..KEYS_MAX as u64 {
        store.add_key(key(number, id), 9).unwrap();
    }
    let more = |key: StoredKey, now_ms| match store.add_key(key, now_ms) {
        Err(StoreError::TooMany { limit, .. }) => limit,
        other => panic!("{other:?}"),
    };
    assert_eq!(more(key(900, id), 9), KEYS_MAX);
    store.remove_key(id, &key(0, id).id).unwrap();
    // Expired ones do not count as good, and are forgotten in the end.
    let expired = |number| StoredKey {
        expires_ms: Some(50),
        ..key(number, id)
    };
    for number in 100..181 {
        store.add_key(expired(number), 60).unwrap();
    }
    assert_eq!(more(expired(901), 60), 100);
    store.add_key(expired(902), 50 + ENDED_LISTED_MS).unwrap();
    assert_eq!(store.keys_of(vec![id]).unwrap().keys.len(), KEYS_MAX);
}
