//! The schema of PostgreSQL as its migrations, and the version that this program writes.

/// The migrations, append-only like their files, each with the lowest version that a program must
/// know to work with the database afterwards. Only a migration that removes or renames something
/// raises it.
pub(super) const MIGRATIONS: &[(&str, i64)] = &[
    (include_str!("../../../sql/postgres/0001_store.sql"), 1),
    (include_str!("../../../sql/postgres/0002_portfolios.sql"), 2),
    (include_str!("../../../sql/postgres/0003_journal.sql"), 3),
    (include_str!("../../../sql/postgres/0004_signals.sql"), 4),
    (include_str!("../../../sql/postgres/0005_leases.sql"), 4),
    (include_str!("../../../sql/postgres/0006_changes.sql"), 6),
    // Counts up with each write of what a user's finished responses show, so that other nodes see
    // that theirs are old. A program that does not count its writes would leave them with these.
    ("ALTER TABLE users ADD COLUMN portfolio_version bigint NOT NULL DEFAULT 0;", 7),
    (include_str!("../../../sql/postgres/0008_turns.sql"), 7),
    (include_str!("../../../sql/postgres/0009_incarnation.sql"), 7),
    (include_str!("../../../sql/postgres/0010_login_networks.sql"), 7),
    (include_str!("../../../sql/postgres/0011_figures.sql"), 7),
    (include_str!("../../../sql/postgres/0012_leases.sql"), 7),
    (include_str!("../../../sql/postgres/0013_api_keys.sql"), 7),
    (include_str!("../../../sql/postgres/0014_watchlists.sql"), 7),
    (include_str!("../../../sql/postgres/0015_base_prices.sql"), 7),
];

/// The version that this program writes.
pub(super) fn known_version() -> i64 {
    MIGRATIONS.len() as i64
}
