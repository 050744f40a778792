//! A database file copied to a server is the same database, to the digit.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::Connection as File;
use tempfile::TempDir;

use super::conformance_tests::Schema;
use super::copy::copy;
use super::test_server::{Server, server};
use crate::base::{Broker, Clock};
use crate::store::conformance::samples::{DAY, fields, sync, user};
use crate::store::conformance::signals::signal;
use crate::store::schema::TABLES;
use crate::store::settings::StoreSettings;
use crate::store::{AccountId, Epoch, LoginNetwork, MaintenanceError, SignalOutcome, Store};
use crate::views::account::Watchlist;

/// A file with rows in most tables, whose highest ids were deleted.
fn filled(path: &Path) {
    let store = Store::open_file(path, 1, &Clock::system()).unwrap();
    let ids = ["a@example.com", "B@example.com", "c@example.com"].map(|name| user(&store, name));
    sync(&store, ids[0], Broker::A, 10, &["TCS", "M&M", "3MINDIA"]);
    sync(&store, ids[0], Broker::B, 11, &["INFY"]);
    sync(&store, ids[1], Broker::A, 12, &["ABB"]);
    for number in 0..1_200 {
        store
            .add_entry(ids[0], fields(DAY, "NSE:INFY"), number, None)
            .unwrap();
    }
    let last = store
        .add_entry(ids[1], fields(DAY, "X\u{10ffff}"), 1, None)
        .unwrap();
    store
        .delete_entry(ids[1], last.id, crate::store::Expected::default())
        .unwrap();
    store
        .change_password(ids[0], "hash one", "hash two")
        .unwrap()
        .unwrap();
    store.revoke_token("a token", 99).unwrap();
    let network = LoginNetwork {
        id: ids[1],
        network: "0123456789abcdef".into(),
        seen_ms: 7,
    };
    store.keep_login_networks(vec![network], 10_000).unwrap();
    let lists = vec![Watchlist {
        id: 0,
        name: "Shares".into(),
        symbols: Vec::new(),
    }];
    store
        .replace_watchlists(ids[0], lists, crate::store::Expected::default())
        .unwrap();
    store.erase_user(ids[2]).unwrap();
    store
        .publish_signals(Epoch::ALONE, DAY, 1, 5, vec![signal(1, Some(0.1)), signal(2, None)])
        .unwrap();
    let outcome = SignalOutcome {
        judged_on: DAY,
        from_close_e4: 1,
        to_close_e4: i64::MAX,
        hit: true,
        universe: None,
    };
    store
        .keep_outcomes(Epoch::ALONE, vec![(1, outcome)])
        .unwrap();
    store
        .finish_close(Epoch::ALONE, DAY, 5, vec![crate::base::Symbol::parse("NSE:M&M").unwrap()])
        .unwrap();
    store.close();
}

fn expect_equal(one: &Store, other: &Store) {
    for id in [1, 2].map(AccountId) {
        assert_eq!(one.portfolio(id).unwrap(), other.portfolio(id).unwrap());
        assert_eq!(one.points(id, DAY).unwrap(), other.points(id, DAY).unwrap());
        assert_eq!(
            one.entries(id, None, 5_000).unwrap().entries,
            other.entries(id, None, 5_000).unwrap().entries
        );
        assert_eq!(one.watchlists(id).unwrap(), other.watchlists(id).unwrap());
        assert_eq!(one.journal_size(id).unwrap(), other.journal_size(id).unwrap());
        let hash = |store: &Store| store.user_by_id(id).unwrap().unwrap().password_hash;
        assert_eq!(hash(one), hash(other));
    }
    assert_eq!(one.login_networks(0).unwrap(), other.login_networks(0).unwrap());
    assert_eq!(one.login_networks(0).unwrap().len(), 1);
    assert_eq!(one.ledger(0, 10).unwrap(), other.ledger(0, 10).unwrap());
    assert_eq!(one.silent_symbols(None, 9).unwrap(), other.silent_symbols(None, 9).unwrap());
    let mut one = one.auth_state().unwrap();
    let mut other = other.auth_state().unwrap();
    one.users.sort();
    other.users.sort();
    assert_eq!((&one.users, &one.epochs), (&other.users, &other.epochs));
    assert_eq!((&one.revoked_tokens, one.last_user), (&other.revoked_tokens, other.last_user));
    assert_ne!(one.incarnation, other.incarnation, "tokens of before end");
}

#[test]
fn a_copy_is_the_same_and_goes_on_counting() {
    let Some(server) = server() else { return };
    let directory = tempfile::tempdir().unwrap();
    let schema = Schema::through(server);
    let path = directory.path().join("bhav.sqlite");
    filled(&path);
    let settings = StoreSettings::default();
    let copied = copy(&path, schema.url(), &settings).unwrap();
    let rows = |name: &str| copied.iter().find(|table| table.name == name).unwrap().rows;
    assert_eq!((rows("users"), rows("journal"), rows("holdings")), (2, 1_200, 5));
    let file = Store::open_file(&path, 1, &Clock::system()).unwrap();
    let store = schema.store();
    expect_equal(&file, &store);
    // The next row has the same id on both sides.
    let next = |store: &Store| {
        let entry = store
            .add_entry(AccountId(2), fields(DAY, "X"), 1, None)
            .unwrap();
        entry.id
    };
    assert_eq!(next(&store), next(&file));
    assert_eq!(store.changes_after(0).unwrap().rows, [], "nobody is told of what was copied");
    assert_eq!(user(&store, "d@example.com"), user(&file, "d@example.com"));
    store.revoke_token("later", 70).unwrap();
    assert_eq!(store.changes_after(0).unwrap().rows.len(), 2, "of later ones everybody is");
    let refused = copy(&path, schema.url(), &settings).unwrap_err();
    assert!(
        matches!(refused, MaintenanceError::NotEmpty { table: "users", .. }),
        "{refused}"
    );
}

#[test]
fn a_copy_that_cannot_be_complete_leaves_nothing() {
    let Some(server) = server() else { return };
    let directory = tempfile::tempdir().unwrap();
    let schema = Schema::through(server);
    let path = directory.path().join("bhav.sqlite");
    filled(&path);
    let file = File::open(&path).unwrap();
    file.execute_batch("UPDATE journal SET notes = 'a' || char(0) || 'b' WHERE id = 700")
        .unwrap();
    let refused = copy(&path, schema.url(), &StoreSettings::default()).unwrap_err();
    assert!(refused.to_string().contains("zero byte"), "{refused}");
    // A server that alters its input is noticed before the commit.
    file.execute_batch("UPDATE journal SET notes = NULL WHERE id = 700")
        .unwrap();
    schema
        .execute(
            "CREATE FUNCTION alter_one() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN NEW.price = '99.5'; RETURN NEW; END $$; \
             CREATE TRIGGER alters BEFORE INSERT ON journal FOR EACH ROW WHEN (NEW.id = 900) \
             EXECUTE FUNCTION alter_one()",
        )
        .unwrap();
    let refused = copy(&path, schema.url(), &StoreSettings::default()).unwrap_err();
    assert!(matches!(refused, MaintenanceError::Differs("journal")), "{refused}");
    schema.execute("DROP TRIGGER alters ON journal").unwrap();
    assert_eq!(schema.store().auth_state().unwrap().users, []);
    copy(&path, schema.url(), &StoreSettings::default()).unwrap();
}

/// A new database of each engine.
struct Engines {
    file: File,
    server: &'static Server,
    schema: Schema,
    _directory: TempDir,
}

impl Engines {
    fn new() -> Option<Self> {
        let server = server()?;
        let directory = tempfile::tempdir().unwrap();
        let schema = Schema::through(server);
        let path = directory.path().join("bhav.sqlite");
        drop(Store::open_file(&path, 1, &Clock::system()).unwrap());
        drop(schema.store());
        Some(Self {
            file: File::open(&path).unwrap(),
            server,
            schema,
            _directory: directory,
        })
    }

    /// The texts that a query of the file finds.
    fn in_file(&self, sql: &str) -> BTreeSet<String> {
        let mut statement = self.file.prepare(sql).unwrap();
        statement
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    }

    /// The texts that a query of the server finds.
    fn on_server(&self, sql: &str) -> BTreeSet<String> {
        let found = self.server.execute(self.schema.role(), sql).unwrap();
        found.lines().map(str::to_owned).collect()
    }
}

/// The schemas are written twice. This test finds a column that only one has.
#[test]
fn both_engines_have_the_same_tables_and_columns() {
    let Some(engines) = Engines::new() else {
        return;
    };
    let sql = "SELECT m.name || '.' || c.name || CASE c.\"notnull\" OR c.pk WHEN 0 THEN '?' \
        ELSE '' END FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' \
        AND m.name NOT LIKE 'sqlite_%'";
    let in_file = engines.in_file(sql);
    let sql = "SELECT table_name || '.' || column_name || CASE is_nullable WHEN 'YES' THEN '?' \
        ELSE '' END FROM information_schema.columns WHERE table_schema = current_schema()";
    let on_server = engines.on_server(sql);
    let of_server = |table: &str| TABLES.iter().any(|it| it.is_of_server && it.name == table);
    let own = |name: &&String| {
        let table = name.split('.').next().unwrap();
        let of_one = [
            "identity.erasures",
            "identity.erasures_cleaned",
            "identity.moved_ms?",
            "identity.moved_to?",
            "identity.place?",
        ];
        !of_one.contains(&name.as_str()) && !of_server(table)
    };
    let differ: Vec<_> = in_file
        .symmetric_difference(&on_server)
        .filter(own)
        .collect();
    assert!(differ.is_empty(), "{differ:?}");
    let tables: BTreeSet<&str> = on_server
        .iter()
        .filter_map(|name| name.split('.').next())
        .collect();
    let known: BTreeSet<&str> = TABLES.iter().map(|table| table.name).collect();
    assert_eq!(tables, known, "each table is a row of `TABLES`");
}

/// On both engines, rows go with their user by the foreign key, or stay for a reason.
#[test]
fn what_a_user_has_goes_with_the_user() {
    let Some(engines) = Engines::new() else {
        return;
    };
    let sql = "SELECT m.name || '.' || f.\"from\" FROM sqlite_schema m, \
        pragma_foreign_key_list(m.name) f WHERE f.\"table\" = 'users' AND f.on_delete = 'CASCADE'";
    let in_file = engines.in_file(sql);
    let sql = "SELECT conrelid::regclass || '.' || a.attname FROM pg_constraint \
        JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = conkey[1] \
        WHERE contype = 'f' AND confrelid = 'users'::regclass AND confdeltype = 'c'";
    let on_server = engines.on_server(sql);
    let owned = |of_server: bool| -> BTreeSet<String> {
        let rows = TABLES
            .iter()
            .filter(|table| of_server || !table.is_of_server);
        rows.filter(|table| table.name != "users")
            .filter_map(|table| Some((table.name, table.owned.as_ref()?)))
            .filter(|(_, owned)| owned.kept.is_none())
            .map(|(name, owned)| format!("{name}.{}", owned.column))
            .collect()
    };
    assert_eq!(in_file, owned(false), "in a file");
    assert_eq!(on_server, owned(true), "on a server");
}
