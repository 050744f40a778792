//! The schema: its tables, each with what is done with it, and the migrations of both engines that
//! make it.

use std::borrow::Cow;

/// A table. The copy to a server, and the tests of export, erasure and copy, follow this account.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    /// The columns of its key, in whose order rows are copied and compared.
    pub key: &'static str,
    /// Whether its ids are counted, so that none is given again.
    pub is_counted: bool,
    /// Of a table whose rows belong to a user.
    pub owned: Option<Owned>,
    /// Why it is not copied to a server.
    pub not_copied: Option<&'static str>,
    /// Whether databases on a server alone have it.
    pub is_of_server: bool,
}

/// What a user has in a table.
#[derive(Debug)]
pub struct Owned {
    /// The column of the user's id. It refers to `users`, and rows go with the user's.
    pub column: &'static str,
    pub exported: Exported,
    /// Of a table that is no record of the user: why its rows stay when the account is erased.
    pub kept: Option<&'static str>,
}

/// Where the export of a user's data has a table.
#[derive(Debug)]
pub enum Exported {
    /// In this member. Its columns named here are left out, as secrets.
    As(&'static str, &'static [&'static str]),
    /// Not at all, for this reason.
    LeftOut(&'static str),
}

impl Table {
    const fn new(name: &'static str, key: &'static str) -> Self {
        let is_counted = false;
        let is_of_server = false;
        Self {
            name,
            key,
            is_counted,
            owned: None,
            not_copied: None,
            is_of_server,
        }
    }

    const fn counted(self) -> Self {
        Self {
            is_counted: true,
            ..self
        }
    }

    const fn of(self, column: &'static str, exported: Exported) -> Self {
        Self {
            owned: Some(Owned {
                column,
                exported,
                kept: None,
            }),
            ..self
        }
    }

    const fn kept(self, reason: &'static str) -> Self {
        match self.owned {
            Some(owned) => Self {
                owned: Some(Owned {
                    kept: Some(reason),
                    ..owned
                }),
                ..self
            },
            None => self,
        }
    }

    const fn not_copied(self, reason: &'static str) -> Self {
        Self {
            not_copied: Some(reason),
            ..self
        }
    }

    const fn of_server(self) -> Self {
        Self {
            is_of_server: true,
            ..self
        }
    }
}

const USER: &str = "user_id";

/// Every table of a database. One comes after those it refers to.
pub const TABLES: &[Table] = &[
    Table::new("users", "id").of("id", Exported::As("user", &["password_hash"])),
    Table::new("revoked_tokens", "token_id"),
    Table::new("login_networks", "user_id, network").of(USER, exported("known_networks")),
    Table::new("syncs", "user_id, broker").of(USER, exported("syncs")),
    Table::new("holdings", "user_id, broker, ordinal").of(USER, exported("holdings")),
    Table::new("sold_holdings", "user_id, broker, ordinal").of(USER, exported("sold_holdings")),
    Table::new("positions", "user_id, broker, ordinal").of(USER, exported("positions")),
    Table::new("points", "user_id, date").of(USER, exported("pnl_snapshots")),
    Table::new("closes", "date, symbol"),
    Table::new("close_runs", "date"),
    Table::new("closed_portfolios", "user_id").of(USER, left_out(CLOSED)),
    Table::new("silent_symbols", "symbol"),
    Table::new("journal", "id")
        .counted()
        .of(USER, exported("journal")),
    Table::new("watchlists", "user_id").of(USER, exported("watchlists")),
    Table::new("ledger_accounts", "user_id, name").of(USER, exported("ledger_accounts")),
    Table::new("ledger_imports", "id")
        .counted()
        .of(USER, exported("ledger_imports")),
    Table::new("ledger_rows", "user_id, import_id, ordinal").of(USER, exported("ledger_rows")),
    Table::new("ledger_report_lines", "user_id, import_id, ordinal")
        .of(USER, exported("ledger_report_lines")),
    Table::new("ledger_income", "user_id, import_id, ordinal").of(USER, exported("ledger_income")),
    Table::new("ledger_corrections", "user_id, id").of(USER, exported("ledger_corrections")),
    Table::new("ledger_choices", "user_id, conflict").of(USER, exported("ledger_choices")),
    Table::new("candles", "symbol, date"),
    Table::new("candle_histories", "symbol"),
    Table::new("split_suspicions", "symbol, date"),
    Table::new("signal_dates", "date"),
    Table::new("signal_ledger", "id").counted(),
    Table::new("signal_outcomes", "ledger_id"),
    Table::new("api_keys", "id")
        .of(USER, Exported::As("api_keys", &["hash"]))
        .not_copied("keys are good in one database alone"),
    Table::new("changes", "number")
        .of(USER, left_out(CHANGES))
        .kept(CHANGES)
        .not_copied(CHANGES),
    Table::new("change_count", "id").not_copied(CHANGES),
    Table::new("identity", "id").not_copied("a copy is another database: earlier tokens end"),
    Table::new("probe", "id").not_copied("of it the last write alone is known"),
    Table::new("schema", "id").of_server(),
    Table::new("last_user", "id").of_server(),
    Table::new("leases", "role").of_server(),
    Table::new("turns", "user_id")
        .of(USER, left_out(TURNS))
        .of_server(),
];

/// The tables that are copied to a server. The id of the database is not, so earlier tokens end.
#[cfg(feature = "engines")]
pub(super) fn copied() -> impl Iterator<Item = &'static Table> {
    TABLES
        .iter()
        .filter(|table| table.not_copied.is_none() && !table.is_of_server)
}

const CLOSED: &str = "the date up to which the evening's close has valued; of the user only the id";
const CHANGES: &str =
    "numbers of changes, by which nodes of one database learn of them; of the user only the id";
const TURNS: &str = "which node may change the portfolio; of the user only the id";

const fn exported(member: &'static str) -> Exported {
    Exported::As(member, &[])
}

const fn left_out(reason: &'static str) -> Exported {
    Exported::LeftOut(reason)
}

/// A step from one version of the schema to the next: a file below `sql`. One in `sql/both` is of
/// both engines, written with a file's types, and `BOOLEAN`.
#[derive(Clone, Copy)]
pub(super) struct Migration {
    pub(super) path: &'static str,
    pub(super) sql: &'static str,
}

/// Words of a migration of both engines, and a server's in their place: numbers of 64 bits, text
/// that is compared byte by byte. Append-only, as the migrations are.
#[cfg(feature = "engines")]
const WORDS_OF_A_SERVER: [(&str, &str); 7] = [
    (
        " INTEGER PRIMARY KEY AUTOINCREMENT",
        " bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
    ),
    (" INTEGER", " bigint"),
    (" REAL", " double precision"),
    (" BOOLEAN", " boolean"),
    (" TEXT", " text COLLATE \"C\""),
    (") STRICT, WITHOUT ROWID;", ");"),
    (") STRICT;", ");"),
];

impl Migration {
    fn is_of_both(&self) -> bool {
        self.path.starts_with("sql/both/")
    }

    /// What is run on a file.
    pub(super) fn for_file(&self) -> Cow<'static, str> {
        match self.is_of_both() {
            true => self.sql.replace(" BOOLEAN", " INTEGER").into(),
            false => self.sql.into(),
        }
    }

    /// What is run on a server.
    #[cfg(feature = "engines")]
    pub(super) fn for_server(&self) -> Cow<'static, str> {
        if !self.is_of_both() {
            return self.sql.into();
        }
        let replace = |sql: String, (word, of_server): &(&str, &str)| sql.replace(word, of_server);
        WORDS_OF_A_SERVER
            .iter()
            .fold(self.sql.to_owned(), replace)
            .into()
    }

    /// The name of its file, such as `0001_accounts`.
    pub(super) fn name(&self) -> &'static str {
        let file = self.path.rsplit('/').next().unwrap_or(self.path);
        file.trim_end_matches(".sql")
    }
}

macro_rules! migration {
    ($path:literal) => {
        Migration {
            path: $path,
            sql: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)),
        }
    };
}

/// The migrations of a file in order, append-only: what was released is never edited. The version
/// of a file is the number of migrations it has.
pub(super) const FILE_MIGRATIONS: &[Migration] = &[
    migration!("sql/store/0001_accounts.sql"),
    migration!("sql/store/0002_portfolios.sql"),
    migration!("sql/store/0003_closes.sql"),
    migration!("sql/store/0004_journal.sql"),
    migration!("sql/store/0005_signals.sql"),
    migration!("sql/store/0006_disabled_users.sql"),
    migration!("sql/store/0007_provisional_signals.sql"),
    migration!("sql/store/0008_journal_bytes.sql"),
    migration!("sql/store/0009_identity.sql"),
    migration!("sql/store/0010_closing_prices.sql"),
    migration!("sql/store/0011_signal_books.sql"),
    migration!("sql/store/0012_changes.sql"),
    migration!("sql/store/0013_portfolio_versions.sql"),
    migration!("sql/store/0014_incarnation.sql"),
    migration!("sql/store/0015_login_networks.sql"),
    migration!("sql/store/0016_figures.sql"),
    migration!("sql/store/0017_api_keys.sql"),
    migration!("sql/store/0018_watchlists.sql"),
    migration!("sql/store/0019_base_prices.sql"),
    migration!("sql/both/0020_watchlist_versions.sql"),
    migration!("sql/both/0021_no_provisional_signals.sql"),
    migration!("sql/both/0022_ledger.sql"),
    migration!("sql/both/0023_used_quantity.sql"),
    migration!("sql/both/0024_synced_quarters.sql"),
    migration!("sql/both/0025_sold_holdings.sql"),
];

/// Those of a server, append-only too, each with the lowest version that a program must know to
/// work with the database afterwards. Only a migration that removes or renames something raises it.
#[cfg(feature = "engines")]
pub(super) const SERVER_MIGRATIONS: &[(Migration, i64)] = &[
    (migration!("sql/postgres/0001_store.sql"), 1),
    (migration!("sql/postgres/0002_portfolios.sql"), 2),
    (migration!("sql/postgres/0003_journal.sql"), 3),
    (migration!("sql/postgres/0004_signals.sql"), 4),
    (migration!("sql/postgres/0005_leases.sql"), 4),
    (migration!("sql/postgres/0006_changes.sql"), 6),
    (migration!("sql/postgres/0007_portfolio_versions.sql"), 7),
    (migration!("sql/postgres/0008_turns.sql"), 7),
    (migration!("sql/postgres/0009_incarnation.sql"), 7),
    (migration!("sql/postgres/0010_login_networks.sql"), 7),
    (migration!("sql/postgres/0011_figures.sql"), 7),
    (migration!("sql/postgres/0012_leases.sql"), 7),
    (migration!("sql/postgres/0013_api_keys.sql"), 7),
    (migration!("sql/postgres/0014_watchlists.sql"), 7),
    (migration!("sql/postgres/0015_base_prices.sql"), 7),
    (migration!("sql/both/0020_watchlist_versions.sql"), 7),
    (migration!("sql/both/0021_no_provisional_signals.sql"), 17),
    (migration!("sql/both/0022_ledger.sql"), 17),
    (migration!("sql/both/0023_used_quantity.sql"), 17),
    (migration!("sql/both/0024_synced_quarters.sql"), 17),
    (migration!("sql/both/0025_sold_holdings.sql"), 17),
];

/// The version of a file that this program writes.
pub(super) fn known_file_version() -> i64 {
    FILE_MIGRATIONS.len() as i64
}

/// The version of a server's schema that this program writes.
#[cfg(feature = "engines")]
pub(super) fn known_server_version() -> i64 {
    SERVER_MIGRATIONS.len() as i64
}

#[cfg(all(test, feature = "engines"))]
mod tests {
    use super::*;

    #[test]
    fn a_migration_of_both_engines_has_the_types_of_each() {
        let sql = "\
-- Of words such as INTEGER.
CREATE TABLE few (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name TEXT,
    part REAL NOT NULL,
    good BOOLEAN NOT NULL DEFAULT FALSE
) STRICT;
CREATE TABLE pairs (a TEXT, b INTEGER, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID;
";
        let both = Migration {
            path: "sql/both/0099_few.sql",
            sql,
        };
        let file = rusqlite::Connection::open_in_memory().unwrap();
        let users = "CREATE TABLE users (id INTEGER PRIMARY KEY); INSERT INTO users VALUES (1);";
        file.execute_batch(users).unwrap();
        file.execute_batch(&both.for_file()).unwrap();
        file.execute("INSERT INTO few (part) VALUES (0.5)", [])
            .unwrap_err();
        file.execute("INSERT INTO few (user_id, part) VALUES (1, 0.5)", [])
            .unwrap();
        let expected = "\
-- Of words such as bigint.
CREATE TABLE few (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name text COLLATE \"C\",
    part double precision NOT NULL,
    good boolean NOT NULL DEFAULT FALSE
);
CREATE TABLE pairs (a text COLLATE \"C\", b bigint, PRIMARY KEY (a, b));
";
        assert_eq!(both.for_server(), expected);
        let of_one = Migration {
            path: "sql/store/0001_few.sql",
            sql,
        };
        assert_eq!((of_one.for_file().as_ref(), of_one.for_server().as_ref()), (sql, sql));
    }
}
