//! Statements, arguments and rows of SQLite.

use std::ops::ControlFlow;

use rusqlite::types::{FromSqlError, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter};

use crate::store::arg::Arg;
use crate::store::cells::Cells;
use crate::store::tx::{Failure, ReadRow, ReadRowOf, Sql, Tx};

impl Tx for Connection {
    fn query(&self, sql: Sql, args: &[Arg<'_>], read: ReadRow<'_>) -> Result<(), Failure> {
        let mut statement = self.prepare_cached(sql.sqlite)?;
        let mut rows = statement.query(params_from_iter(args))?;
        while let Some(row) = rows.next()? {
            if let ControlFlow::Break(()) = read(row)? {
                break;
            }
        }
        Ok(())
    }

    fn query_many(
        &self,
        sql: Sql,
        rows: &[Vec<Arg<'_>>],
        read: ReadRowOf<'_>,
    ) -> Result<(), Failure> {
        let mut statement = self.prepare_cached(sql.sqlite)?;
        for (number, args) in rows.iter().enumerate() {
            let mut rows = statement.query(params_from_iter(args))?;
            while let Some(row) = rows.next()? {
                read(number, row)?;
            }
        }
        Ok(())
    }

    fn run(&self, sql: Sql, args: &[Arg<'_>]) -> Result<u64, Failure> {
        Ok(self.prepare_cached(sql.sqlite)?.execute(params_from_iter(args))? as u64)
    }

    fn run_many(&self, sql: Sql, rows: &[Vec<Arg<'_>>]) -> Result<u64, Failure> {
        let mut statement = self.prepare_cached(sql.sqlite)?;
        let mut changed = 0;
        for args in rows {
            changed += statement.execute(params_from_iter(args))? as u64;
        }
        Ok(changed)
    }
}

impl ToSql for Arg<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Integer(value) => value.map(ValueRef::Integer),
            Self::Real(value) => value.map(ValueRef::Real),
            Self::Boolean(value) => value.map(|value| ValueRef::Integer(i64::from(value))),
            Self::Text(value) => value.as_ref().map(|text| ValueRef::Text(text.as_bytes())),
        };
        Ok(ToSqlOutput::Borrowed(value.unwrap_or(ValueRef::Null)))
    }
}

impl Cells for Row<'_> {
    fn integer(&self, at: usize) -> Result<Option<i64>, Failure> {
        Ok(self.get_ref(at)?.as_i64_or_null().map_err(wrong_type)?)
    }

    fn real(&self, at: usize) -> Result<Option<f64>, Failure> {
        Ok(self.get_ref(at)?.as_f64_or_null().map_err(wrong_type)?)
    }

    fn boolean(&self, at: usize) -> Result<Option<bool>, Failure> {
        Ok(self.integer(at)?.map(|value| value != 0))
    }

    fn text(&self, at: usize) -> Result<Option<&str>, Failure> {
        Ok(self.get_ref(at)?.as_str_or_null().map_err(wrong_type)?)
    }
}

fn wrong_type(error: FromSqlError) -> rusqlite::Error {
    error.into()
}
