//! An operator's changes next to an open store.

use super::engine::{Engine, on_each_engine};
use super::samples::user;
use crate::store::{AccountId, Change, NewUser, UserChange, UserDirectory};

on_each_engine! {
    a_disabled_user_changes_no_password_and_each_change_is_told,
    a_new_password_of_a_command_ends_older_tokens,
    users_come_by_pages_in_order_and_are_found_by_either_name,
}

fn users_come_by_pages_in_order_and_are_found_by_either_name<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let people = engine.users();
    let ids: Vec<_> = ["a@x", "b@x", "c@x"]
        .map(|email| user(&store, email))
        .into();
    let page = people.page(AccountId(0), 2).unwrap();
    assert_eq!(page.iter().map(|person| person.id).collect::<Vec<_>>(), ids[..2]);
    assert_eq!(page[0].email, "a@x");
    assert_eq!((page[0].created_ms, page[0].rows), (5, 0));
    assert_eq!((page[0].disabled_ms, page[0].synced_ms), (None, None));
    assert_eq!(people.page(page[1].id, 2).unwrap().len(), 1);
    assert_eq!(people.find("b@x").unwrap().unwrap().id, ids[1]);
    assert_eq!(people.find("3").unwrap().unwrap().id, ids[2]);
    for nobody in ["4", "0", "-1", "9223372036854775807", "d@x", ""] {
        assert_eq!(people.find(nobody).unwrap(), None, "{nobody}");
    }
}

fn a_disabled_user_changes_no_password_and_each_change_is_told<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let mut people = engine.users();
    let id = user(&store, "a@x");
    assert_eq!(
        people
            .change(AccountId(7), UserChange::Disable { now_ms: 9 })
            .unwrap(),
        None
    );
    assert_eq!(people.change(id, UserChange::Enable).unwrap(), None);
    let registered = store.auth_state().unwrap().read.number;
    let disabled = registered + 1;
    assert_eq!(
        people
            .change(id, UserChange::Disable { now_ms: 9 })
            .unwrap(),
        Some(disabled)
    );
    assert_eq!(
        people
            .change(id, UserChange::Disable { now_ms: 9 })
            .unwrap(),
        None
    );
    let secrets = store.user_by_id(id).unwrap().unwrap();
    assert!(secrets.disabled && secrets.token_epoch > 0);
    // Otherwise the user would get a token of a new epoch.
    assert_eq!(store.change_password(id, "hash one", "new").unwrap(), None);
    assert_eq!(store.auth_state().unwrap().epochs, [(id, secrets.token_epoch)]);

    let told = store.changes_after(registered).unwrap();
    let change = Change::Account {
        id,
        epoch: secrets.token_epoch,
    };
    assert_eq!((told.made, told.rows), (disabled, vec![(disabled, change)]));
    // If one service alone has the database, a command can wait for it.
    let before = people.noticed(disabled).unwrap();
    store.notice_changes(disabled).unwrap();
    store.notice_changes(registered).unwrap();
    assert_eq!(people.noticed(disabled).unwrap(), before.map(|noticed| !noticed));

    // Enabling an account revokes nothing, but its API keys are good again.
    assert_eq!(people.change(id, UserChange::Enable).unwrap(), Some(disabled + 1));
    let changed = store.change_password(id, "hash one", "new").unwrap();
    assert!(changed > Some(secrets.token_epoch), "{changed:?}");
    assert_eq!(people.change(id, UserChange::Delete).unwrap(), Some(disabled + 3));
    assert!(store.user_by_id(id).unwrap().is_none());
    let state = store.auth_state().unwrap();
    assert_eq!((state.users, state.last_user), (vec![], id));
    let told = store.changes_after(disabled + 2).unwrap();
    assert_eq!(told.rows, [(disabled + 3, Change::Erased { id })]);
    assert_eq!(people.change(id, UserChange::Delete).unwrap(), None);
}

fn a_new_password_of_a_command_ends_older_tokens<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let mut people = engine.users();
    let add = |people: &mut UserDirectory, email: &str| {
        let email = email.to_owned();
        let password_hash = "hash".to_owned();
        people
            .add(&NewUser {
                email,
                name: None,
                password_hash,
                created_ms: 5,
            })
            .unwrap()
    };
    let id = add(&mut people, "a@x").unwrap().id;
    assert!(add(&mut people, "a@x").is_none());
    let told = store.changes_after(0).unwrap();
    let epoch = store.user_by_id(id).unwrap().unwrap().token_epoch;
    assert_eq!(told.rows, [(1, Change::Account { id, epoch })]);
    let order = (epoch >> 32) + 1;
    let now = || {
        let secrets = store.user_by_id(id).unwrap().unwrap();
        (secrets.password_hash, secrets.disabled)
    };
    assert_eq!(people.set_password(id, "new", false).unwrap(), Some(2));
    assert_eq!(now(), ("new".to_owned(), false));
    let epochs = store.auth_state().unwrap().epochs;
    assert!(
        matches!(epochs[..], [(of, epoch)] if of == id && epoch >> 32 == order),
        "{epochs:?}"
    );
    assert_eq!(
        people
            .change(id, UserChange::Disable { now_ms: 9 })
            .unwrap(),
        Some(3)
    );
    assert_eq!(people.set_password(id, "newer", false).unwrap(), Some(3));
    assert_eq!(now(), ("newer".to_owned(), true));
    assert_eq!(people.set_password(AccountId(7), "new", false).unwrap(), None);
}
