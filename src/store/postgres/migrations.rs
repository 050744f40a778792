//! The schema: made and migrated in one transaction, under a lock of the transaction, so that
//! several nodes may start at once.

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::condition::Condition;
use super::connection::Connection;
use crate::store::postgres::connection::Deadline;
use crate::store::{OpenError, StoreError};

/// `bhav` in ASCII: the lock's key.
const LOCK_KEY: i64 = 0x6268_6176;

/// A migration. Append-only, like its file.
struct Migration {
    sql: &'static str,
    /// The least version that a program must know to work with the database afterwards. Raised only
    /// by what removes or renames something.
    least_program: i64,
}

const MIGRATIONS: &[Migration] = &[
    Migration { sql: include_str!("../../../sql/postgres/0001_store.sql"), least_program: 1 },
    Migration { sql: include_str!("../../../sql/postgres/0002_portfolios.sql"), least_program: 2 },
    Migration { sql: include_str!("../../../sql/postgres/0003_journal.sql"), least_program: 3 },
    Migration { sql: include_str!("../../../sql/postgres/0004_signals.sql"), least_program: 4 },
    Migration { sql: include_str!("../../../sql/postgres/0005_leases.sql"), least_program: 4 },
    Migration { sql: include_str!("../../../sql/postgres/0006_changes.sql"), least_program: 6 },
    Migration {
        sql: include_str!("../../../sql/postgres/0007_portfolio_versions.sql"),
        // One that does not count what it writes would leave other nodes with old responses.
        least_program: 7,
    },
    Migration { sql: include_str!("../../../sql/postgres/0008_turns.sql"), least_program: 7 },
    Migration { sql: include_str!("../../../sql/postgres/0009_incarnation.sql"), least_program: 7 },
    Migration {
        sql: include_str!("../../../sql/postgres/0010_login_networks.sql"),
        least_program: 7,
    },
    Migration { sql: include_str!("../../../sql/postgres/0011_figures.sql"), least_program: 7 },
    Migration { sql: include_str!("../../../sql/postgres/0012_leases.sql"), least_program: 7 },
];

const BEGIN: &str = "BEGIN";
const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";
/// Whether there is a schema of ours, and whether there are tables of somebody else in its place.
const LOOK: &str = "SELECT to_regclass('schema') IS NOT NULL, to_regclass('users') IS NOT NULL";
const VERSION: &str = "SELECT version, least_program FROM schema WHERE id = 1";
/// Whether the server takes no writes, whether the user may make tables, and whether it may use
/// those that are there.
const RIGHTS: &str = "SELECT current_setting('transaction_read_only') = 'on', \
    coalesce(has_schema_privilege(current_schema(), 'CREATE'), false), \
    coalesce((SELECT bool_and(has_table_privilege(oid, 'SELECT') \
    AND has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE') \
    AND has_table_privilege(oid, 'DELETE')) FROM pg_class \
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace), true)";
const NOTE: &str = "INSERT INTO schema (id, version, least_program) VALUES (1, $1, $2) \
    ON CONFLICT (id) DO UPDATE \
    SET version = excluded.version, least_program = excluded.least_program";

/// Whether the database is where it got its ids. Asked first, since a server that takes no writes
/// refuses even a statement that would change nothing.
const HAS_MOVED: &str = "SELECT place IS DISTINCT FROM own_place() FROM identity WHERE id = 1";
const MOVE: &str = include_str!("../../../sql/postgres/move_database.sql");

/// The version that this program writes.
pub(crate) fn known_version() -> i64 {
    MIGRATIONS.len() as i64
}

/// Makes or migrates the schema, if that is due.
///
/// # Errors
/// [`OpenError`]. Then nothing was changed.
pub(crate) fn run(
    connection: &Connection,
    deadline: &Deadline,
    url: &str,
    condition: &Condition,
) -> Result<(), OpenError> {
    let client = &connection.client;
    let judge = |failure| OpenError::from(condition.judge(failure));
    let step = |sql| connection.wait(deadline, client.batch_execute(sql)).map_err(judge);
    step(BEGIN)?;
    let lock = client.query_typed(LOCK, &[(&LOCK_KEY, Type::INT8)]);
    connection.wait(deadline, lock).map_err(judge)?;
    let found = version(connection, deadline, url, condition)?;
    let pending = MIGRATIONS.get(usize::try_from(found).unwrap_or(0)..).unwrap_or_default();
    for migration in pending {
        step(migration.sql)?;
    }
    if let Some(last) = pending.last() {
        let note = [known_version(), last.least_program];
        let args = note.each_ref().map(|value| (value as &(dyn ToSql + Sync), Type::INT8));
        let noted = connection.wait(deadline, client.execute_typed(NOTE, &args));
        noted.map_err(judge)?;
    }
    let moved = connection.wait(deadline, client.query_typed(HAS_MOVED, &[])).map_err(judge)?;
    let has_moved = moved.first().is_some_and(|row| row.get::<_, bool>(0));
    if has_moved {
        step(MOVE)?;
    }
    step("COMMIT")?;
    if has_moved {
        tracing::warn!(
            "the database was restored from a dump or copied: it has a new identity, and every \
             login ends"
        );
    }
    if !pending.is_empty() {
        tracing::info!(from = found, to = known_version(), "the store has the current schema");
    }
    Ok(())
}

/// The version of the schema; 0 if there is none. Refuses one that this program cannot work with.
///
/// # Errors
/// [`OpenError`].
pub(crate) fn version(
    connection: &Connection,
    deadline: &Deadline,
    url: &str,
    condition: &Condition,
) -> Result<i64, OpenError> {
    let client = &connection.client;
    let read = |sql| {
        let rows = connection.wait(deadline, client.query_typed(sql, &[]));
        rows.map_err(|failure| OpenError::from(condition.judge(failure)))
    };
    let looked = read(LOOK)?;
    let both = looked.first().map(|row| (row.get::<_, bool>(0), row.get::<_, bool>(1)));
    let (ours, users) = both.unwrap_or_default();
    if !ours {
        return match users {
            true => Err(OpenError::ForeignSchema { url: url.to_owned() }),
            false => Ok(0),
        };
    }
    let rows = read(VERSION)?;
    judged(&rows, url)
}

/// Fails where the schema was changed since the start, and needs a newer program now.
///
/// # Errors
/// [`OpenError`].
pub(crate) fn expect_known(
    connection: &Connection,
    deadline: &Deadline,
    url: &str,
    condition: &Condition,
) -> Result<(), OpenError> {
    let rows = connection.wait(deadline, connection.client.query_typed(VERSION, &[]));
    judged(&rows.map_err(|failure| condition.judge(failure))?, url).map(drop)
}

/// The version, if this program can work with it.
fn judged(rows: &[Row], url: &str) -> Result<i64, OpenError> {
    let both = rows.first().map(|row| (row.get::<_, i64>(0), row.get::<_, i64>(1)));
    let Some((found, needs)) = both else {
        return Err(OpenError::ForeignSchema { url: url.to_owned() });
    };
    let known = known_version();
    match needs > known {
        true => Err(OpenError::NewerSchema { url: url.to_owned(), found, needs, known }),
        false => Ok(found),
    }
}

/// Refuses a server, or a user on it, that could not write a database of version `found`.
///
/// # Errors
/// [`OpenError::Store`].
pub(crate) fn expect_rights(
    connection: &Connection,
    deadline: &Deadline,
    found: i64,
    condition: &Condition,
) -> Result<(), OpenError> {
    let asked = connection.wait(deadline, connection.client.query_typed(RIGHTS, &[]));
    let rows = asked.map_err(|failure| OpenError::from(condition.judge(failure)))?;
    let right = |at| rows.first().is_some_and(|row| row.get::<_, bool>(at));
    let refused = match (right(0), right(1), right(2)) {
        (true, ..) => "the server takes no writes: is it a standby?",
        (_, false, _) if found < known_version() => "the user may not make tables in the schema",
        (.., false) => "the user may not use the tables in the schema",
        _ => return Ok(()),
    };
    Err(StoreError::Unavailable(refused.to_owned()).into())
}
