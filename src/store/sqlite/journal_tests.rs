//! Bounds on the text of a journal and of a page.

use super::*;

/// An entry with `bytes` of text: the ticker, the two brackets of empty tags, and notes.
fn long(bytes: usize) -> JournalFields {
    let (strategy, tags) = (None, Vec::new());
    let notes = Some("n".repeat(bytes - "X[]".len()));
    JournalFields { strategy, notes, tags, ..fields(DAY, "X") }
}

fn text_bytes(store: &SqliteStore, id: AccountId) -> Result<usize, StoreError> {
    store.journal_size(id).map(|size| size.text_bytes)
}

#[test]
fn the_text_of_a_journal_is_bounded() {
    let (_dir, _, store) = fresh();
    let (id, other) = (user(&store, "a@example.com"), user(&store, "b@example.com"));
    let limit = journal::TEXT_BYTES_MAX;
    let full = StoreError::TooMany { what: "bytes of journal text", limit };
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
    assert!(store.delete_entry(id, last.id, Expected::default()).unwrap());
    store.replace_entry(id, rest.id, long(limit / 2), 2, Expected::default()).unwrap().unwrap();
    assert_eq!(store.replace_entry(other, half.id, long(10), 2, Expected::default()), Ok(None));
    assert_eq!((text_bytes(&store, id), text_bytes(&store, other)), (Ok(limit), Ok(11)));
    assert_eq!(store.journal_size(AccountId(99)), Err(StoreError::NoSuchUser));
}

#[test]
fn a_journal_over_its_bound_accepts_shorter_entries() {
    let (_dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    let entry = store.add_entry(id, long(100), 1, None).unwrap();
    let over = journal::TEXT_BYTES_MAX as i64 + 100;
    store
        .write(WRITE_DEADLINE_MS, move |file| {
            Ok(file.execute("UPDATE users SET journal_bytes = ?1", [over])?)
        })
        .unwrap();
    assert!(store.replace_entry(id, entry.id, long(101), 2, Expected::default()).is_err());
    store.replace_entry(id, entry.id, long(100), 2, Expected::default()).unwrap().unwrap();
    store.replace_entry(id, entry.id, long(99), 2, Expected::default()).unwrap().unwrap();
    assert_eq!(text_bytes(&store, id), Ok(over as usize - 1));
}

#[test]
fn a_page_of_long_entries_ends_early_with_more_set() {
    let (_dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    let max = journal::PAGE_BYTES_MAX;
    // Newest first: two entries that fill a page, one longer than a page, and one day with short
    // ones.
    let days = [(1, 10), (2, 10), (2, 20), (3, max + 1), (4, max / 2), (4, max / 2)];
    for (day, bytes) in days {
        let fields = JournalFields { traded_on: date(2026, 11, day), ..long(bytes) };
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
