//! Statements, arguments and rows of PostgreSQL.

use std::cell::Cell;
use std::error::Error;

use bytes::BytesMut;
use futures_util::future::join3;
use futures_util::stream::{FuturesOrdered, TryStreamExt};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Column, Row};

use super::connection::Connection;
use crate::store::account_id::AccountId;
use crate::store::arg::Arg;
use crate::store::cells::{Cells, another_type};
use crate::store::postgres::connection::Deadline;
use crate::store::tx::{Failure, ReadRow, Sql, Tx};

/// Locks the users whose data a write compares, always in the same order.
const LOCK_USERS: &str = "SELECT id FROM users WHERE id = ANY($1) ORDER BY id FOR UPDATE";
/// Statements sent together: enough to hide the network, and few enough to bound what waits.
const PIPELINE_MAX: usize = 512;

/// Statements sent with the first statement of a transaction, at no extra round trip.
pub(crate) struct Opening {
    pub(crate) begin: String,
    /// Users to lock.
    pub(crate) users: Vec<AccountId>,
}

/// A transaction on a connection.
pub(crate) struct PostgresTx<'a> {
    connection: &'a Connection,
    deadline: &'a Deadline,
    /// `None` once it was sent, and if each statement is its own transaction.
    opening: Cell<Option<Opening>>,
    /// Whether a statement failed, which ends the transaction.
    failed: Cell<bool>,
}

type Typed<'a> = Vec<(&'a (dyn ToSql + Sync), Type)>;

impl<'a> PostgresTx<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        deadline: &'a Deadline,
        opening: Option<Opening>,
    ) -> Self {
        Self {
            connection,
            deadline,
            opening: Cell::new(opening),
            failed: Cell::new(false),
        }
    }

    /// Whether anything was sent.
    pub(crate) fn is_open(&self) -> bool {
        let opening = self.opening.take();
        let is_open = opening.is_none();
        self.opening.set(opening);
        is_open
    }

    /// Whether a statement failed. Then PostgreSQL would take a `COMMIT` for a rollback without
    /// reporting it.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.get()
    }

    fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        let client = &self.connection.client;
        let opening = self.opening.take();
        let done = self.connection.wait(self.deadline, async {
            let Some(Opening { begin, users }) = opening else {
                return work.await;
            };
            let users: Vec<i64> = users.into_iter().map(|id| id.0).collect();
            // Each future is sent when it is first polled, so in this order.
            let lock = async {
                match users.is_empty() {
                    true => Ok(Vec::new()),
                    false => {
                        client
                            .query_typed(LOCK_USERS, &[(&users, Type::INT8_ARRAY)])
                            .await
                    }
                }
            };
            let (begun, locked, done) = join3(client.batch_execute(&begin), lock, work).await;
            begun?;
            locked?;
            done
        });
        done.inspect_err(|_| self.failed.set(true))
    }
}

fn typed<'a>(args: &'a [Arg<'_>]) -> Typed<'a> {
    args.iter()
        .map(|arg| (arg as &(dyn ToSql + Sync), arg.kind()))
        .collect()
}

impl Tx for PostgresTx<'_> {
    fn query(&self, sql: Sql, rows: &[&[Arg<'_>]], read: ReadRow<'_>) -> Result<(), Failure> {
        let client = &self.connection.client;
        let sql = sql.for_postgres();
        for (chunk, rows) in rows.chunks(PIPELINE_MAX).enumerate() {
            let results: Vec<Vec<Row>> = self.wait(async {
                let each = rows.iter().map(|args| async {
                    let args = typed(args);
                    client.query_typed(&sql, &args).await
                });
                each.collect::<FuturesOrdered<_>>().try_collect().await
            })?;
            for (number, found) in results.iter().enumerate() {
                for row in found {
                    if read(chunk * PIPELINE_MAX + number, row)?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn execute(&self, sql: Sql, rows: &[&[Arg<'_>]]) -> Result<u64, Failure> {
        let client = &self.connection.client;
        let sql = sql.for_postgres();
        let mut changed = 0;
        for rows in rows.chunks(PIPELINE_MAX) {
            let each: Vec<u64> = self.wait(async {
                let each = rows.iter().map(|args| async {
                    let args = typed(args);
                    client.execute_typed(&sql, &args).await
                });
                each.collect::<FuturesOrdered<_>>().try_collect().await
            })?;
            changed += each.iter().sum::<u64>();
        }
        Ok(changed)
    }
}

impl Arg<'_> {
    /// The type of the column, also for a null argument.
    fn kind(&self) -> Type {
        match self {
            Self::Integer(_) => Type::INT8,
            Self::Real(_) => Type::FLOAT8,
            Self::Boolean(_) => Type::BOOL,
            Self::Text(_) => Type::TEXT,
        }
    }
}

impl ToSql for Arg<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Integer(value) => value.to_sql(kind, out),
            Self::Real(value) => value.to_sql(kind, out),
            Self::Boolean(value) => value.to_sql(kind, out),
            Self::Text(value) => value.as_deref().to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT8 | Type::FLOAT8 | Type::BOOL | Type::TEXT)
    }

    to_sql_checked!();
}

impl Cells for Row {
    fn integer(&self, at: usize) -> Result<Option<i64>, Failure> {
        // Results of some functions are narrower than our columns.
        match self.columns().get(at).map(Column::type_) {
            Some(&Type::INT4) => Ok(cell::<i32>(self, at)?.map(i64::from)),
            _ => cell(self, at),
        }
    }

    fn real(&self, at: usize) -> Result<Option<f64>, Failure> {
        cell(self, at)
    }

    fn boolean(&self, at: usize) -> Result<Option<bool>, Failure> {
        cell(self, at)
    }

    fn text(&self, at: usize) -> Result<Option<&str>, Failure> {
        cell(self, at)
    }
}

fn cell<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<Option<T>, Failure> {
    row.try_get(at).map_err(|_| another_type())
}
