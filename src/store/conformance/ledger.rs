//! Imports of the trades ledger: whole or absent, confirmed once, dropped, swept, and within their
//! limits; and what a person says beside them.

use jiff::civil::date;

use super::engine::{Engine, on_each_engine};
use super::samples::user;
use crate::base::Isin;
use crate::base::symbol::Exchange;
use crate::ledger::file::{
    ClientId, ClientIdKind, FileFormat, FileKind, Income, ReportLine, ReportSection,
};
use crate::ledger::row::{AccountName, Charges, Mark, Row, Segment, Side};
use crate::ledger::trades::Keep;
use crate::store::{
    AccountId, Confirmed, Expected, ImportBatch, ImportCounts, ImportState, NewImport, Store,
    StoreError, StoredCorrection, SyncedBatch,
};

on_each_engine! {
    an_import_is_absent_until_it_is_whole_and_counts_once_it_is_confirmed,
    everything_a_row_says_comes_back,
    limits_are_those_of_a_user,
    syncs_of_a_month_grow_one_import,
    what_a_person_says_changes_the_version,
    what_a_person_says_goes_with_the_ledger,
    what_is_not_confirmed_is_swept,
}

const NOW_MS: i64 = 1_800_000_000_000;
const MINUTE_MS: i64 = 60_000;

fn account(name: &str) -> AccountName {
    AccountName::parse(name).unwrap()
}

fn new_import(rows: usize) -> NewImport {
    NewImport {
        account: account("a"),
        kind: FileKind::Trades,
        format: FileFormat::ZerodhaTradebook,
        sha256: Some("0f".repeat(32)),
        client: ClientId::of(ClientIdKind::UserA, "AB1234"),
        period: Some((date(2024, 1, 2), date(2024, 3, 4))),
        row_count: rows,
        counts: ImportCounts {
            new_count: rows,
            ..ImportCounts::default()
        },
    }
}

fn row(line: u32) -> Row {
    let text = "2024-01-02 buy 3 INFY 1893.200000001 INE009A01021 #1690947000098765432";
    crate::ledger::testing::row(line, text)
}

fn rows(count: u32) -> Vec<Row> {
    (1..=count).map(row).collect()
}

fn begin(store: &Store, user: AccountId, rows: usize) -> i64 {
    store
        .begin_import(user, new_import(rows), 10_000, NOW_MS)
        .unwrap()
}

/// A preview of so many rows.
fn preview(store: &Store, user: AccountId, count: u32) -> i64 {
    let import = begin(store, user, count as usize);
    let batch = ImportBatch::Trades(rows(count));
    assert!(store.add_import_rows(user, import, 0, batch).unwrap());
    let (_, dropped) = store.preview_import(user, import, NOW_MS).unwrap().unwrap();
    dropped
        .iter()
        .for_each(|import| store.empty_import(import, NOW_MS).unwrap());
    import
}

fn states(store: &Store, user: AccountId) -> Vec<(i64, ImportState)> {
    let all = store.imports(user).unwrap();
    all.iter().map(|import| (import.id, import.state)).collect()
}

fn counted(store: &Store, user: AccountId, import: i64) -> usize {
    store.import_rows(user, &[import]).unwrap()[0].len()
}

fn an_import_is_absent_until_it_is_whole_and_counts_once_it_is_confirmed<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let one = user(&store, "a@example.com");
    let other = user(&store, "b@example.com");
    let before = store.ledger_versions(one).unwrap();
    let import = begin(&store, one, 5);
    let part = |first: u32, last: u32| ImportBatch::Trades((first..=last).map(row).collect());
    assert!(store.add_import_rows(one, import, 0, part(1, 3)).unwrap());
    assert!(store.add_import_rows(one, import, 3, part(4, 5)).unwrap());
    assert!(!store.add_import_rows(other, import, 5, part(6, 6)).unwrap(), "another's");
    assert_eq!(store.confirm_import(one, import, NOW_MS).unwrap(), Confirmed::Unknown);
    let (expires_ms, dropped) = store.preview_import(one, import, NOW_MS).unwrap().unwrap();
    assert_eq!((expires_ms, dropped), (NOW_MS + 30 * MINUTE_MS, vec![]));
    assert!(!store.add_import_rows(one, import, 5, part(6, 6)).unwrap(), "it is whole");
    assert_eq!(store.preview_import(one, import, NOW_MS).unwrap(), None, "once");
    assert_eq!(store.ledger_versions(one).unwrap(), before, "a preview changes nothing");
    assert_eq!(store.confirm_import(other, import, NOW_MS).unwrap(), Confirmed::Unknown);
    let live = Confirmed::Live(ImportCounts {
        new_count: 5,
        ..ImportCounts::default()
    });
    assert_eq!(store.confirm_import(one, import, NOW_MS + 1).unwrap(), live);
    let after = store.ledger_versions(one).unwrap();
    assert!(after.ledger > before.ledger && after.portfolio == before.portfolio);
    assert_eq!(
        store
            .confirm_import(one, import, NOW_MS + 99 * MINUTE_MS)
            .unwrap(),
        live
    );
    assert_eq!(store.ledger_versions(one).unwrap(), after, "a second time changes nothing");
    assert_eq!(store.import_rows(one, &[import, 999]).unwrap(), [rows(5), vec![]]);
    assert_eq!(store.import_rows(other, &[import]).unwrap(), [vec![]]);

    assert_eq!(store.drop_import(other, import, NOW_MS).unwrap(), None);
    let dropped = store.drop_import(one, import, NOW_MS).unwrap().unwrap();
    assert_eq!(states(&store, one), [], "before its rows are gone");
    assert!(store.ledger_versions(one).unwrap().ledger > after.ledger);
    store.empty_import(&dropped, NOW_MS).unwrap();
    assert_eq!(counted(&store, one, import), 0);
    assert_eq!(store.drop_import(one, import, NOW_MS).unwrap(), None, "twice");
    assert_eq!(store.confirm_import(one, import, NOW_MS).unwrap(), Confirmed::Gone);
}

/// A row, a line of a report and a dividend that say all they can.
fn everything() -> (Row, ReportLine, Income) {
    let amount = |text: &str| text.parse().ok();
    let charges = Charges {
        brokerage: amount("0.01"),
        stt: amount("4.60"),
        stamp_duty: amount("0.000000001"),
        other: amount("1000000000000"),
    };
    let full = Row {
        isin: None,
        exchange: Exchange::Bse,
        segment: Segment::Derivatives,
        series: Some("X".into()),
        time: Some(jiff::civil::time(9, 15, 1, 0)),
        side: Side::Sell,
        trade_id: None,
        order_id: Some("1".into()),
        product: Some("CNC".into()),
        auction: true,
        expiry: Some(date(2024, 9, 26)),
        charges: charges.into(),
        stt_paid: Some(false),
        mark: Some(Mark::MarginFunded),
        ..row(7)
    };
    let line = ReportLine {
        line: 3,
        section: ReportSection::Long,
        symbol: "INFY".to_owned(),
        isin: Isin::parse("INE009A01021"),
        acquired_on: Some(date(2017, 1, 2)),
        sold: None,
        quantity: 10.into(),
        cost: amount("500"),
        cost_considered: None,
        proceeds: 1_500.into(),
        gain: "-0.5".parse().unwrap(),
        taxable: amount("600"),
        fmv: amount("900"),
        turnover: None,
        charges,
        purchase_expenses: amount("2"),
        stt_paid: Some(true),
    };
    let income = Income {
        line: 9,
        symbol: "INFY".to_owned(),
        isin: None,
        ex_date: date(2024, 5, 31),
        quantity: 10.into(),
        per_share: amount("20"),
        amount: 200.into(),
    };
    (full, line, income)
}

fn syncs_of_a_month_grow_one_import<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let one = user(&store, "a@example.com");
    let other = user(&store, "b@example.com");
    let batch = |import: Option<(i64, usize)>, first: u32, last: u32| {
        let whole = NewImport {
            format: FileFormat::SyncB,
            sha256: None,
            counts: ImportCounts {
                new_count: 1,
                known_count: last as usize - 1,
                ..counts(0)
            },
            ..new_import(last as usize)
        };
        let quarters = (first..=last)
            .map(|month| date(2024, month as i8, 1))
            .collect();
        SyncedBatch {
            import,
            whole,
            rows: (first..=last).map(row).collect(),
            quarters,
        }
    };
    let before = store.ledger_versions(one).unwrap();
    let add = |user, batch| store.add_synced_rows(user, batch, 6, NOW_MS).unwrap();
    let id = add(one, batch(None, 1, 3)).unwrap();
    let began = store.ledger_versions(one).unwrap();
    assert!(began.ledger > before.ledger, "it counts at once");
    assert_eq!(add(other, batch(Some((id, 3)), 4, 5)), None, "another's");
    assert_eq!(add(one, batch(Some((id, 2)), 4, 5)), None, "has other rows");
    assert_eq!(add(one, batch(Some((id, 3)), 4, 5)), Some(id));
    assert_eq!(store.import_rows(one, &[id]).unwrap(), [rows(5)]);
    let stored = store.imports(one).unwrap().pop().unwrap();
    assert_eq!((stored.state, stored.row_count, stored.due_ms), (ImportState::Live, 5, None));
    assert_eq!(
        stored.counts,
        ImportCounts {
            new_count: 1,
            known_count: 4,
            ..counts(0)
        }
    );
    assert_eq!(stored.quarters, [date(2024, 4, 1), date(2024, 5, 1)].into());
    let full = store.add_synced_rows(one, batch(Some((id, 5)), 6, 7), 6, NOW_MS);
    assert!(matches!(full, Err(StoreError::TooMany { limit: 6, .. })), "{full:?}");
    assert_eq!(store.ledger_accounts(one).unwrap().len(), 1);

    let dropped = store.drop_import(one, id, NOW_MS).unwrap().unwrap();
    assert_eq!(add(one, batch(Some((id, 5)), 6, 6)), None, "undone");
    store.empty_import(&dropped, NOW_MS).unwrap();
    assert_eq!(counted(&store, one, id), 0);
    assert_eq!(store.imports(one).unwrap(), []);
}

fn counts(new_count: usize) -> ImportCounts {
    ImportCounts {
        new_count,
        ..ImportCounts::default()
    }
}

fn everything_a_row_says_comes_back<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let user = user(&store, "a@example.com");
    let (full, line, income) = everything();
    let import = begin(&store, user, 4);
    let trades = vec![full, row(8)];
    for batch in [
        ImportBatch::Trades(trades.clone()),
        ImportBatch::Report(vec![line.clone()]),
        ImportBatch::Income(vec![income.clone()]),
    ] {
        assert!(store.add_import_rows(user, import, 0, batch).unwrap());
    }
    drop(store);
    let store = engine.open();
    assert_eq!(store.import_rows(user, &[import]).unwrap(), [trades]);
    let report = store.reports(user, &[import]).unwrap().pop().unwrap();
    assert_eq!((report.lines, report.income), (vec![line], vec![income]));
    store.preview_import(user, import, NOW_MS).unwrap().unwrap();
    let stored = store.imports(user).unwrap().pop().unwrap();
    let new = new_import(4);
    assert_eq!((stored.sha256, stored.client), (new.sha256, new.client));
    assert_eq!(stored.period_from.zip(stored.period_to), new.period);
    assert_eq!((stored.format, stored.kind, stored.counts), (new.format, new.kind, new.counts));
    // All three go with the import, and with the user.
    let dropped = store.drop_import(user, import, NOW_MS).unwrap().unwrap();
    store.empty_import(&dropped, NOW_MS).unwrap();
    let report = store.reports(user, &[import]).unwrap().pop().unwrap();
    assert_eq!((report.lines.len(), report.income.len()), (0, 0));
    let import = preview(&store, user, 3);
    assert!(store.erase_user(user).unwrap().is_some());
    assert_eq!(counted(&store, user, import), 0);
    assert_eq!(store.imports(user).unwrap(), []);
}

fn limits_are_those_of_a_user<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let one = user(&store, "a@example.com");
    let other = user(&store, "b@example.com");
    let too_many = |what, limit| Err(StoreError::TooMany { what, limit });
    let first = preview(&store, one, 6);
    let begun = |user, rows, max| store.begin_import(user, new_import(rows), max, NOW_MS);
    assert_eq!(begun(one, 5, 10), too_many("rows of imports", 10));
    begun(other, 10, 10).unwrap();
    let dropped = store.drop_import(one, first, NOW_MS).unwrap().unwrap();
    begun(one, 10, 10).unwrap();
    store.empty_import(&dropped, NOW_MS).unwrap();
    // The oldest of five previews goes.
    let third = user(&store, "c@example.com");
    let previews: Vec<i64> = (0..5).map(|_| preview(&store, third, 1)).collect();
    let expected: Vec<_> = previews[1..]
        .iter()
        .map(|id| (*id, ImportState::Preview))
        .collect();
    assert_eq!(states(&store, third), expected);
    assert_eq!(counted(&store, third, previews[0]), 0);
    assert_eq!(store.confirm_import(third, previews[0], NOW_MS).unwrap(), Confirmed::Gone);
    for number in 1..10 {
        store
            .set_person(third, account(&format!("n{number}")), "self".into(), NOW_MS)
            .unwrap();
    }
    let eleventh = store.set_person(third, account("n10"), "self".into(), NOW_MS);
    assert_eq!(
        eleventh,
        Err(StoreError::TooMany {
            what: "accounts",
            limit: 10
        })
    );
    let nobody = AccountId(99);
    assert_eq!(begun(nobody, 1, 10), Err(StoreError::NoSuchUser));
}

fn said(id: &str, document: &str) -> StoredCorrection {
    StoredCorrection {
        id: id.to_owned(),
        document: document.to_owned(),
    }
}

fn what_a_person_says_changes_the_version<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let one = user(&store, "a@example.com");
    let other = user(&store, "b@example.com");
    let mut version = store.ledger_versions(one).unwrap().ledger;
    let mut expect_change = |what: &str| {
        let now = store.ledger_versions(one).unwrap().ledger;
        assert!(std::mem::replace(&mut version, now) < now, "{what}");
    };
    let any = Expected::default;
    store
        .put_correction(one, said("b", "{}"), any(), NOW_MS)
        .unwrap();
    expect_change("a correction");
    store
        .put_correction(one, said("a", "[]"), any(), NOW_MS)
        .unwrap();
    expect_change("in the same millisecond");
    store
        .put_correction(one, said("b", "{1}"), any(), NOW_MS)
        .unwrap();
    expect_change("another in its place");
    assert_eq!(store.corrections(one).unwrap(), [said("a", "[]"), said("b", "{1}")]);
    assert_eq!(store.corrections(other).unwrap(), []);
    let only = any().and_only(said("a", "[]").revision());
    let refused = store.put_correction(one, said("b", "{}"), only.clone(), NOW_MS);
    assert_eq!(refused, Err(StoreError::NotAsExpected));
    let absent = store.put_correction(one, said("new", "{}"), only.clone(), NOW_MS);
    assert_eq!(absent, Err(StoreError::NotAsExpected), "nothing matches what is not there");
    assert!(
        store
            .delete_correction(one, "a".into(), only, NOW_MS)
            .unwrap()
    );
    expect_change("a correction deleted");
    assert!(
        !store
            .delete_correction(one, "a".into(), any(), NOW_MS)
            .unwrap()
    );
    assert!(
        !store
            .delete_correction(other, "b".into(), any(), NOW_MS)
            .unwrap()
    );

    store
        .put_choice(one, "c1".into(), Keep::First, NOW_MS)
        .unwrap();
    store
        .put_choice(one, "c1".into(), Keep::Second, NOW_MS)
        .unwrap();
    expect_change("a choice");
    assert_eq!(store.choices(one).unwrap().get("c1"), Some(&Keep::Second));
    store
        .set_person(one, account("a"), "wife".into(), NOW_MS)
        .unwrap();
    expect_change("a person");
    let import = preview(&store, one, 2);
    store.confirm_import(one, import, NOW_MS).unwrap();
    expect_change("an import");
    let accounts = store.ledger_accounts(one).unwrap();
    assert_eq!((accounts.len(), accounts[0].person.as_str()), (1, "wife"));
}

fn what_a_person_says_goes_with_the_ledger<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let one = user(&store, "a@example.com");
    let any = Expected::default;
    store
        .put_correction(one, said("b", "{1}"), any(), NOW_MS)
        .unwrap();
    store
        .put_choice(one, "c1".into(), Keep::Second, NOW_MS)
        .unwrap();
    store
        .set_person(one, account("a"), "wife".into(), NOW_MS)
        .unwrap();
    let import = preview(&store, one, 2);
    store.confirm_import(one, import, NOW_MS).unwrap();
    let versions = store.ledger_versions(one).unwrap();
    let of = move |now| crate::store::Revision(if now == versions { "now" } else { "?" }.into());
    let then = any().and_only(crate::store::Revision("then".into()));
    let refused = store.drop_ledger(one, then, of, NOW_MS);
    assert_eq!(refused, Err(StoreError::NotAsExpected));
    let now = any().and_only(crate::store::Revision("now".into()));
    let dropped = store.drop_ledger(one, now, of, NOW_MS).unwrap();
    assert!(store.ledger_versions(one).unwrap().ledger > versions.ledger);
    assert_eq!(dropped.len(), 1);
    store.empty_import(&dropped[0], NOW_MS).unwrap();
    assert_eq!(states(&store, one), []);
    assert_eq!(store.corrections(one).unwrap(), []);
    assert!(store.choices(one).unwrap().is_empty());
    assert_eq!(store.ledger_accounts(one).unwrap(), []);
    assert_eq!(counted(&store, one, import), 0);
}

fn what_is_not_confirmed_is_swept<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let user = user(&store, "a@example.com");
    let open = preview(&store, user, 3);
    let live = preview(&store, user, 3);
    store.confirm_import(user, live, NOW_MS).unwrap();
    // Its writer was killed after the first batch.
    let killed = begin(&store, user, 5_000);
    store
        .add_import_rows(user, killed, 0, ImportBatch::Trades(rows(2_000)))
        .unwrap();
    assert_eq!(store.sweep_imports(NOW_MS + MINUTE_MS).unwrap(), 0, "it may still be written");
    assert_eq!(store.sweep_imports(NOW_MS + 2 * MINUTE_MS).unwrap(), 1);
    assert_eq!(counted(&store, user, killed), 0);
    let expected = [(open, ImportState::Preview), (live, ImportState::Live)];
    assert_eq!(states(&store, user), expected);
    let then_ms = NOW_MS + 30 * MINUTE_MS;
    assert_eq!(store.confirm_import(user, open, then_ms).unwrap(), Confirmed::Gone, "expired");
    assert_eq!(store.sweep_imports(then_ms).unwrap(), 1);
    assert_eq!(counted(&store, user, open), 0);
    assert_eq!(store.confirm_import(user, open, then_ms).unwrap(), Confirmed::Gone);
    assert_eq!(store.sweep_imports(then_ms).unwrap(), 0);
    // After a day nothing is known of them.
    assert_eq!(store.sweep_imports(then_ms + 1_440 * MINUTE_MS).unwrap(), 2);
    assert_eq!(store.confirm_import(user, open, then_ms).unwrap(), Confirmed::Unknown);
    assert_eq!(states(&store, user), [(live, ImportState::Live)]);
    assert_eq!(counted(&store, user, live), 3);
}
