//! The journal: pages, bounds on its text and on a page of it, and concurrent writers.

use jiff::civil::date;

use super::engine::{Engine, on_each_engine};
use super::samples::{DAY, fields, user};
use crate::store::journal::{ENTRIES_MAX, PAGE_BYTES_MAX, TEXT_BYTES_MAX};
use crate::store::{AccountId, Expected, JournalFields, Store, StoreError};

on_each_engine! {
    a_closed_store_takes_nothing_and_keeps_everything,
    a_journal_over_its_bound_may_shrink,
    a_page_of_long_entries_ends_early_and_says_so,
    a_row_no_program_of_ours_wrote_is_said_to_be_damaged,
    the_journal_is_paged_newest_first_and_is_each_user_s_own,
    the_number_of_entries_is_bounded,
    the_text_of_a_journal_is_bounded,
    what_many_writers_at_once_were_told_is_true,
}

fn the_journal_is_paged_newest_first_and_is_each_user_s_own<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let one = user(&store, "a@example.com");
    let other = user(&store, "b@example.com");
    let mut expected = Vec::new();
    for (day, symbol) in [(3, "C"), (1, "A"), (3, "D"), (2, "B")] {
        let entry = store
            .add_entry(one, fields(date(2026, 11, day), symbol), 7, None)
            .unwrap();
        store
            .add_entry(other, fields(date(2026, 11, day), "not theirs"), 7, None)
            .unwrap();
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
        store
            .replace_entry(other, entry.id, fields(DAY, "X"), 9, Expected::default())
            .unwrap(),
        None
    );
    assert!(
        !store
            .delete_entry(other, entry.id, Expected::default())
            .unwrap()
    );
    let replaced = store
        .replace_entry(one, entry.id, fields(DAY, "X"), 9, Expected::default())
        .unwrap()
        .unwrap();
    assert_eq!((replaced.created_ms, replaced.updated_ms), (7, 9));
    assert_eq!(store.entry(one, entry.id).unwrap(), Some(replaced));
    assert!(
        store
            .delete_entry(one, entry.id, Expected::default())
            .unwrap()
    );
    assert_eq!(store.entries(one, None, 100).unwrap().entries.len(), 3);
    assert_eq!(
        store.add_entry(AccountId(99), fields(DAY, "X"), 1, None),
        Err(StoreError::NoSuchUser)
    );
}

/// An entry with `bytes` bytes of text: the ticker, two brackets of no tags, and a note.
fn long(bytes: usize) -> JournalFields {
    let strategy = None;
    let tags = Vec::new();
    let notes = Some("n".repeat(bytes - "X[]".len()));
    JournalFields {
        strategy,
        notes,
        tags,
        ..fields(DAY, "X")
    }
}

fn text_bytes(store: &Store, id: AccountId) -> Result<usize, StoreError> {
    store.journal_size(id).map(|size| size.text_bytes)
}

fn the_text_of_a_journal_is_bounded<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let other = user(&store, "b@example.com");
    let limit = TEXT_BYTES_MAX;
    let full = StoreError::TooMany {
        what: "bytes of journal text",
        limit,
    };
    let half = store.add_entry(id, long(limit / 2), 1, None).unwrap();
    let rest = store.add_entry(id, long(limit / 2 - 10), 1, None).unwrap();
    assert_eq!(store.add_entry(id, long(11), 1, None), Err(full.clone()));
    assert_eq!(
        store.replace_entry(id, rest.id, long(limit / 2 + 1), 2, Expected::default()),
        Err(full.clone())
    );
    assert_eq!(text_bytes(&store, id), Ok(limit - 10), "what was refused is not counted");
    assert_eq!(store.entry(id, rest.id).unwrap().unwrap(), rest);
    store.add_entry(other, long(11), 1, None).unwrap();
    let last = store.add_entry(id, long(10), 1, None).unwrap();
    assert_eq!(text_bytes(&store, id), Ok(limit));
    assert!(
        store
            .delete_entry(id, last.id, Expected::default())
            .unwrap()
    );
    store
        .replace_entry(id, rest.id, long(limit / 2), 2, Expected::default())
        .unwrap()
        .unwrap();
    assert_eq!(store.replace_entry(other, half.id, long(10), 2, Expected::default()), Ok(None));
    assert_eq!((text_bytes(&store, id), text_bytes(&store, other)), (Ok(limit), Ok(11)));
    assert_eq!(store.journal_size(AccountId(99)), Err(StoreError::NoSuchUser));
}

fn a_journal_over_its_bound_may_shrink<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let entry = store.add_entry(id, long(100), 1, None).unwrap();
    let over = TEXT_BYTES_MAX + 100;
    engine
        .execute(&format!("UPDATE users SET journal_bytes = {over}"))
        .unwrap();
    assert!(
        store
            .replace_entry(id, entry.id, long(101), 2, Expected::default())
            .is_err()
    );
    store
        .replace_entry(id, entry.id, long(100), 2, Expected::default())
        .unwrap()
        .unwrap();
    store
        .replace_entry(id, entry.id, long(99), 2, Expected::default())
        .unwrap()
        .unwrap();
    assert_eq!(text_bytes(&store, id), Ok(over - 1));
}

fn a_page_of_long_entries_ends_early_and_says_so<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let max = PAGE_BYTES_MAX;
    // Newest first: two that fill a page, one over it, and one day with short ones.
    let days = [
        (1, 10),
        (2, 10),
        (2, 20),
        (3, max + 1),
        (4, max / 2),
        (4, max / 2),
    ];
    for (day, bytes) in days {
        let fields = JournalFields {
            traded_on: date(2026, 11, day),
            ..long(bytes)
        };
        store.add_entry(id, fields, 1, None).unwrap();
    }
    let mut after = None;
    let mut pages = Vec::new();
    loop {
        let page = store.entries(id, after, 200).unwrap();
        pages.push(page.entries.len());
        after = page.next();
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, [2, 1, 3]);
    let second = store.entries(id, None, 1).unwrap();
    let rest = store.entries(id, second.next(), 200).unwrap();
    assert_eq!((rest.entries.len(), rest.more), (1, true), "of the cursor's own day");
}

fn what_many_writers_at_once_were_told_is_true<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let shared = &store;
    let ids: Vec<i64> = std::thread::scope(|scope| {
        let write = |n: i64| {
            let add = move |m| {
                shared
                    .add_entry(id, fields(DAY, "X"), n * 100 + m, None)
                    .unwrap()
                    .id
            };
            scope.spawn(move || (0..20).map(add).collect::<Vec<_>>())
        };
        let writers: Vec<_> = (0..16).map(write).collect();
        writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect()
    });
    drop(store);
    let store = engine.open();
    let stored = store.entries(id, None, 1_000).unwrap().entries;
    assert_eq!(stored.len(), 320);
    assert!(
        ids.iter()
            .all(|id| stored.iter().any(|entry| entry.id == *id))
    );
}

fn a_row_no_program_of_ours_wrote_is_said_to_be_damaged<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let entry = store
        .add_entry(id, fields(DAY, "NSE:INFY"), 1, None)
        .unwrap();
    for (column, value) in [("price", "ten"), ("traded_on", "today"), ("tags", "{")] {
        engine
            .execute(&format!("UPDATE journal SET {column} = '{value}'"))
            .unwrap();
        let found = store.entry(id, entry.id);
        assert!(matches!(found, Err(StoreError::Damaged(_))), "{column}: {found:?}");
    }
    assert_eq!(store.health().state.as_str(), "ok", "it is one row, not the database");
}

fn the_number_of_entries_is_bounded<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let limit = ENTRIES_MAX;
    engine
        .execute(&format!("UPDATE users SET journal_entries = {}", limit - 1))
        .unwrap();
    let last = store.add_entry(id, fields(DAY, "X"), 1, None).unwrap();
    let full = Err(StoreError::TooMany {
        what: "journal entries",
        limit,
    });
    assert_eq!(store.add_entry(id, fields(DAY, "X"), 1, None), full);
    assert!(
        store
            .delete_entry(id, last.id, Expected::default())
            .unwrap()
    );
    store.add_entry(id, fields(DAY, "X"), 1, None).unwrap();
}

fn a_closed_store_takes_nothing_and_keeps_everything<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let entry = store.add_entry(id, fields(DAY, "X"), 1, None).unwrap();
    store.close();
    let refused = |error: Option<StoreError>| {
        assert!(matches!(&error, Some(StoreError::Unavailable(_))), "{error:?}");
    };
    refused(store.add_entry(id, fields(DAY, "X"), 1, None).err());
    refused(store.user_by_id(id).err());
    store.probe();
    refused(store.user_by_id(id).err());
    drop(store);
    let store = engine.open();
    assert_eq!(store.entries(id, None, 10).unwrap().entries, [entry]);
}
