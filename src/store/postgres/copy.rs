//! Copies a database file to a server: everything or nothing, in one transaction, and compared cell
//! by cell before it is committed. Runs on a command's main thread; blocks.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection as File, OpenFlags};
use sha2::{Digest, Sha256};
use tokio_postgres::types::{ToSql, Type};

use super::connection::Connection;
use crate::base::Clock;
use crate::store::arg::Arg;
use crate::store::cells::Cells;
use crate::store::errors::{MaintenanceError, OpenError, StoreError};
use crate::store::postgres::transactions::Connections;
use crate::store::schema;
use crate::store::settings::{StoreSettings, StoreUrl};
use crate::store::sqlite::maintenance::CopiedTable;
use crate::store::tx::Failure;

type Result<T, E = MaintenanceError> = std::result::Result<T, E>;

/// Deadline of one step: the schema, a page of rows, or the commit of all.
const STEP_DEADLINE_MS: u64 = 60_000;
/// Rows sent, or read back, at a time: enough to make round trips negligible.
const ROWS: usize = 1_000;

const COLUMNS: &str = "SELECT column_name::text, data_type::text FROM information_schema.columns \
    WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position";

/// Copies the file at `path`. Nobody may write to it meanwhile.
///
/// # Errors
/// [`MaintenanceError`]. Then nothing was written to the server.
pub(crate) fn copy(
    path: &Path,
    url: &StoreUrl,
    settings: &StoreSettings,
) -> Result<Vec<CopiedTable>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let file = File::open_with_flags(path, flags).map_err(MaintenanceError::database(path))?;
    let server = Server::open(url, settings)?;
    server.control("BEGIN; LOCK TABLE users, signal_dates, candles")?;
    server.control(UNCOUNTED)?;
    let described = schema::copied().map(|table| server.table(table));
    let tables: Vec<Table> = described.collect::<Result<_, _>>()?;
    // Checked before the copy, which may take minutes.
    tables
        .iter()
        .try_for_each(|table| server.expect_empty(table))?;
    let copied = tables.iter().map(|table| server.copy(&file, path, table));
    let copied = copied.collect::<Result<_, _>>()?;
    server.count_on(&file)?;
    server.control(COUNTED_AGAIN)?;
    server.control("COMMIT")?;
    Ok(copied)
}

/// Copied accounts keep their ids and need no changes recorded: each node loads all accounts at its
/// start. Counting each would take quadratic time, since a row that one transaction changes again
/// and again keeps every version.
const UNCOUNTED: &str = "ALTER TABLE users DISABLE TRIGGER users_are_numbered; \
                         ALTER TABLE users DISABLE TRIGGER new_users_are_told; \
                         ALTER TABLE revoked_tokens DISABLE TRIGGER revoked_tokens_are_told";
const COUNTED_AGAIN: &str = "ALTER TABLE users ENABLE TRIGGER users_are_numbered; \
                             ALTER TABLE users ENABLE TRIGGER new_users_are_told; \
                             ALTER TABLE revoked_tokens ENABLE TRIGGER revoked_tokens_are_told";

/// A table of both engines.
struct Table {
    name: &'static str,
    key: &'static str,
    columns: Vec<(String, Kind)>,
}

/// The type of a column.
#[derive(Clone, Copy)]
enum Kind {
    Integer,
    Real,
    Boolean,
    Text,
}

impl Kind {
    fn array(self) -> Type {
        match self {
            Self::Integer => Type::INT8_ARRAY,
            Self::Real => Type::FLOAT8_ARRAY,
            Self::Boolean => Type::BOOL_ARRAY,
            Self::Text => Type::TEXT_ARRAY,
        }
    }
}

impl Table {
    fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    }

    /// Selects the rows in the order of their key, which compares text byte by byte on both sides.
    fn select(&self) -> String {
        format!("SELECT {} FROM {} ORDER BY {}", self.names(), self.name, self.key)
    }

    /// Inserts a page of rows; each column is given as an array.
    fn insert(&self) -> String {
        let arrays: Vec<String> = (1..=self.columns.len()).map(|n| format!("${n}")).collect();
        let name = self.name;
        let names = self.names();
        format!("INSERT INTO {name} ({names}) SELECT * FROM unnest({})", arrays.join(", "))
    }

    fn read(&self, row: &dyn Cells) -> Result<Vec<Arg<'static>>, Failure> {
        let cell = |(at, (_, kind)): (usize, &(String, Kind))| {
            Ok(match kind {
                Kind::Integer => Arg::Integer(row.integer(at)?),
                Kind::Real => Arg::Real(row.real(at)?),
                Kind::Boolean => Arg::Boolean(row.boolean(at)?),
                Kind::Text => Arg::from(row.text(at)?.map(str::to_owned)),
            })
        };
        self.columns.iter().enumerate().map(cell).collect()
    }
}

/// A hash over all cells of a table, in order.
#[derive(Default)]
struct Sum(Sha256);

impl Sum {
    fn add(&mut self, row: &[Arg<'_>]) {
        for arg in row {
            match arg {
                Arg::Integer(Some(value)) => self.bytes(b'i', &value.to_be_bytes()),
                Arg::Real(Some(value)) => self.bytes(b'r', &value.to_bits().to_be_bytes()),
                Arg::Boolean(Some(value)) => self.bytes(b'b', &[u8::from(*value)]),
                Arg::Text(Some(text)) => self.bytes(b't', text.as_bytes()),
                _ => self.bytes(b'0', &[]),
            }
        }
    }

    fn bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.0.update([kind]);
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }
}

/// The server, within one transaction.
struct Server {
    connections: Arc<Connections>,
    connection: Connection,
}

impl Server {
    fn open(url: &StoreUrl, settings: &StoreSettings) -> Result<Self> {
        let connections =
            Connections::new(url, settings, &Clock::system()).map_err(OpenError::from)?;
        let deadline = connections.deadline(STEP_DEADLINE_MS);
        let connection = connections.connected(&deadline)?;
        connections.migrate_through(&connection, &deadline)?;
        Ok(Self {
            connections,
            connection,
        })
    }

    fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        let deadline = self.connections.deadline(STEP_DEADLINE_MS);
        let done = self.connection.wait(&deadline, work);
        done.map_err(|failure| self.connections.condition.judge(failure))
    }

    fn control(&self, statements: &str) -> Result<(), StoreError> {
        self.wait(self.connection.client.batch_execute(statements))
    }

    /// The columns of a table, read from the server.
    fn table(&self, table: &'static schema::Table) -> Result<Table> {
        let schema::Table { name, key, .. } = *table;
        let args: [(&(dyn ToSql + Sync), Type); 1] = [(&name, Type::TEXT)];
        let mut columns = Vec::new();
        for row in self.wait(self.connection.client.query_typed(COLUMNS, &args))? {
            let kind = match row.get::<_, &str>(1) {
                "bigint" => Kind::Integer,
                "double precision" => Kind::Real,
                "boolean" => Kind::Boolean,
                "text" => Kind::Text,
                _ => return Err(StoreError::Damaged("a column of another type").into()),
            };
            columns.push((row.get(0), kind));
        }
        Ok(Table { name, key, columns })
    }

    fn expect_empty(&self, table: &Table) -> Result<()> {
        let any = format!("SELECT 1 FROM {} LIMIT 1", table.name);
        match self
            .wait(self.connection.client.query_typed(&any, &[]))?
            .is_empty()
        {
            true => Ok(()),
            false => {
                let url = self.connections.target.url.clone();
                Err(MaintenanceError::NotEmpty {
                    url,
                    table: table.name,
                })
            }
        }
    }

    /// Copies a table, and compares the server's rows with the file's.
    fn copy(&self, file: &File, path: &Path, table: &Table) -> Result<CopiedTable> {
        let mut sent = Sum::default();
        let mut rows = 0;
        let in_file = |source| MaintenanceError::database(path)(source);
        let mut statement = file.prepare(&table.select()).map_err(in_file)?;
        let mut found = statement.query([]).map_err(in_file)?;
        // Stored by column, as they are sent.
        let mut page: Vec<Vec<Arg<'_>>> = vec![Vec::with_capacity(ROWS); table.columns.len()];
        let insert = table.insert();
        loop {
            let row = found.next().map_err(in_file)?;
            let is_last = row.is_none();
            if let Some(row) = row {
                let row = table.read(row)?;
                expect_no_zero(&row, table, path)?;
                sent.add(&row);
                for (column, cell) in page.iter_mut().zip(row) {
                    column.push(cell);
                }
            }
            let is_full = page.first().is_some_and(|column| column.len() == ROWS);
            if is_full || is_last {
                rows += self.send(table, &insert, &page)?;
                page.iter_mut().for_each(Vec::clear);
            }
            if is_last {
                break;
            }
        }
        if self.sum_of(table)? != (rows, sent.0.finalize().to_vec()) {
            return Err(MaintenanceError::Differs(table.name));
        }
        Ok(CopiedTable {
            name: table.name,
            rows,
        })
    }

    fn send(&self, table: &Table, insert: &str, page: &[Vec<Arg<'_>>]) -> Result<u64, StoreError> {
        let mut args: Vec<(&(dyn ToSql + Sync), Type)> = Vec::with_capacity(page.len());
        for (column, (_, kind)) in page.iter().zip(&table.columns) {
            args.push((column, kind.array()));
        }
        self.wait(self.connection.client.execute_typed(insert, &args))
    }

    /// Number of rows on the server, and the sum of their cells.
    fn sum_of(&self, table: &Table) -> Result<(u64, Vec<u8>)> {
        self.control(&format!("DECLARE copied NO SCROLL CURSOR FOR {}", table.select()))?;
        let mut sum = Sum::default();
        let mut rows = 0;
        let next = format!("FETCH {ROWS} FROM copied");
        loop {
            let page = self.wait(self.connection.client.query_typed(&next, &[]))?;
            for row in &page {
                sum.add(&table.read(row)?);
            }
            rows += page.len() as u64;
            if page.len() < ROWS {
                break;
            }
        }
        self.control("CLOSE copied")?;
        Ok((rows, sum.0.finalize().to_vec()))
    }

    /// Continues the id sequences, so that no id is given again.
    fn count_on(&self, file: &File) -> Result<()> {
        let last = |name: &str| -> rusqlite::Result<i64> {
            const LAST: &str = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?1";
            file.query_row(LAST, [name], |row| row.get(0))
        };
        for table in schema::copied().filter(|table| table.is_counted) {
            let name = table.name;
            let last = last(name)?;
            self.control(&format!(
                "SELECT setval(pg_get_serial_sequence('{name}', 'id'), {}, {})",
                last.max(1),
                last > 0
            ))?;
        }
        let last = last("users")?;
        Ok(self.control(&format!("UPDATE last_user SET user_id = {last} WHERE id = 1"))?)
    }
}

/// The server takes no zero byte in text. This program writes none today.
fn expect_no_zero(row: &[Arg<'_>], table: &Table, path: &Path) -> Result<()> {
    let is_zero = |arg: &Arg<'_>| matches!(arg, Arg::Text(Some(text)) if text.contains('\0'));
    match row.iter().any(is_zero) {
        false => Ok(()),
        true => {
            let found = format!("a row of {} has a zero byte in its text", table.name);
            Err(MaintenanceError::Damaged {
                path: path.to_owned(),
                found,
            })
        }
    }
}
