//! The schema: made and migrated in one transaction, under a lock of the transaction, so that
//! several nodes may start at once.

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::connection::Connection;
use crate::store::postgres::connection::Deadline;
use crate::store::postgres::transactions::Connections;
use crate::store::schema::{SERVER_MIGRATIONS, known_server_version};
use crate::store::{OpenError, StoreError};

type Result<T, E = OpenError> = std::result::Result<T, E>;

/// The lock's key: `bhav` in ASCII.
const LOCK_KEY: i64 = 0x6268_6176;

const BEGIN: &str = "BEGIN";
const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";
/// Whether a schema of ours exists, and whether tables of another program are in its place.
const LOOK: &str = "SELECT to_regclass('schema') IS NOT NULL, to_regclass('users') IS NOT NULL";
const VERSION: &str = "SELECT version, least_program FROM schema WHERE id = 1";
/// Whether the server is read-only, whether the user may make tables, and whether it may use the
/// existing ones.
const RIGHTS: &str = "SELECT current_setting('transaction_read_only') = 'on', \
    coalesce(has_schema_privilege(current_schema(), 'CREATE'), false), \
    coalesce((SELECT bool_and(has_table_privilege(oid, 'SELECT') \
    AND has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE') \
    AND has_table_privilege(oid, 'DELETE')) FROM pg_class \
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace), true)";
const NOTE: &str = "INSERT INTO schema (id, version, least_program) VALUES (1, $1, $2) \
    ON CONFLICT (id) DO UPDATE \
    SET version = excluded.version, least_program = excluded.least_program";

/// Whether the database is still where it got its ids. Asked first, since a read-only server
/// refuses even a statement that would change nothing.
const HAS_MOVED: &str = "SELECT place IS DISTINCT FROM own_place() FROM identity WHERE id = 1";
const MOVE: &str = "\
UPDATE identity SET
    database_id = replace(gen_random_uuid()::text, '-', ''),
    cluster_id = replace(gen_random_uuid()::text, '-', ''),
    secret_check = NULL,
    place = own_place()
WHERE id = 1 AND place IS DISTINCT FROM own_place()";

impl Connections {
    fn ask(
        &self,
        connection: &Connection,
        deadline: &Deadline,
        sql: &str,
    ) -> Result<Vec<Row>, StoreError> {
        let asked = connection.wait(deadline, connection.client.query_typed(sql, &[]));
        asked.map_err(|failure| self.condition.judge(failure))
    }

    /// Makes or migrates the schema if needed.
    ///
    /// # Errors
    /// [`OpenError`]. Then nothing was changed.
    pub(super) fn migrate_schema(
        &self,
        connection: &Connection,
        deadline: &Deadline,
    ) -> Result<()> {
        let client = &connection.client;
        let judge = |failure| OpenError::from(self.condition.judge(failure));
        let step = |sql: &str| {
            connection
                .wait(deadline, client.batch_execute(sql))
                .map_err(judge)
        };
        step(BEGIN)?;
        let lock = client.query_typed(LOCK, &[(&LOCK_KEY, Type::INT8)]);
        connection.wait(deadline, lock).map_err(judge)?;
        let found = self.version(connection, deadline)?;
        let pending = SERVER_MIGRATIONS
            .get(usize::try_from(found).unwrap_or(0)..)
            .unwrap_or_default();
        for (migration, _) in pending {
            step(&migration.for_server())?;
        }
        if let Some((_, least_program)) = pending.last() {
            let note = [known_server_version(), *least_program];
            let args = note
                .each_ref()
                .map(|value| (value as &(dyn ToSql + Sync), Type::INT8));
            let noted = connection.wait(deadline, client.execute_typed(NOTE, &args));
            noted.map_err(judge)?;
        }
        let moved = self.ask(connection, deadline, HAS_MOVED)?;
        let has_moved = moved.first().is_some_and(|row| row.get::<_, bool>(0));
        if has_moved {
            step(MOVE)?;
        }
        step("COMMIT")?;
        if has_moved {
            tracing::warn!(
                "the database was restored from a dump or copied: it has a new identity, and \
                 every login ends"
            );
        }
        if !pending.is_empty() {
            tracing::info!(
                from = found,
                to = known_server_version(),
                "the store has the current schema"
            );
        }
        Ok(())
    }

    /// The version of the schema; 0 if there is none. Refuses one that this program cannot work
    /// with.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(super) fn version(&self, connection: &Connection, deadline: &Deadline) -> Result<i64> {
        let looked = self.ask(connection, deadline, LOOK)?;
        let both = looked
            .first()
            .map(|row| (row.get::<_, bool>(0), row.get::<_, bool>(1)));
        match both.unwrap_or_default() {
            (true, _) => self.expect_known(connection, deadline),
            (false, true) => Err(OpenError::ForeignSchema {
                url: self.target.url.clone(),
            }),
            (false, false) => Ok(0),
        }
    }

    /// The version of the existing schema. Fails if it needs a newer program; a program that
    /// started later may have changed it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(super) fn expect_known(&self, connection: &Connection, deadline: &Deadline) -> Result<i64> {
        let rows = self.ask(connection, deadline, VERSION)?;
        let url = self.target.url.clone();
        let both = rows
            .first()
            .map(|row| (row.get::<_, i64>(0), row.get::<_, i64>(1)));
        let known = known_server_version();
        match both {
            None => Err(OpenError::ForeignSchema { url }),
            Some((found, needs)) if needs > known => Err(OpenError::NewerSchema {
                url,
                found,
                needs,
                known,
            }),
            Some((found, _)) => Ok(found),
        }
    }

    /// Refuses a server, or a user on it, that could not write a database of version `found`.
    ///
    /// # Errors
    /// [`OpenError::Store`].
    pub(super) fn expect_rights(
        &self,
        connection: &Connection,
        deadline: &Deadline,
        found: i64,
    ) -> Result<()> {
        let rows = self.ask(connection, deadline, RIGHTS)?;
        let right = |at| rows.first().is_some_and(|row| row.get::<_, bool>(at));
        let refused = match (right(0), right(1), right(2)) {
            (true, ..) => "the server takes no writes: is it a standby?",
            (_, false, _) if found < known_server_version() => {
                "the user may not make tables in the schema"
            }
            (.., false) => "the user may not use the tables in the schema",
            _ => return Ok(()),
        };
        Err(StoreError::Unavailable(refused.to_owned()).into())
    }
}
