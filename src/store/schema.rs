//! The schema: the migrations of both engines that make it.

/// A step from one version of the schema to the next: a file below `sql`.
#[derive(Clone, Copy)]
pub(super) struct Migration {
    pub(super) path: &'static str,
    pub(super) sql: &'static str,
}

impl Migration {
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
