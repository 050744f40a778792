//! The imports of syncs, of which an account has one a month: each sync adds its rows.
//!
//! Rows that are added count at once, batch by batch. A batch is written with what the import then
//! has, so that one which is lost with its process is brought again by the next sync.

use std::collections::BTreeSet;

use jiff::civil::Date;

use crate::ledger::row::Row;
use crate::store::account_id::AccountId;
use crate::store::arg::args;
use crate::store::errors::Result;
use crate::store::ledger::import_rows::{ROWS_PER_WRITE, add_rows};
use crate::store::ledger::imports::{
    ImportCounts, ImportState, NewImport, add, expect_import, expect_rows, one,
};
use crate::store::ledger::quarters::Quarters;
use crate::store::ledger::sayings;
use crate::store::ledger::versions::count_write;
use crate::store::open::Store;
use crate::store::portfolios;
use crate::store::tx::statements;
use crate::store::write::Write;

statements! {
    const GROW_IMPORT = "\
UPDATE ledger_imports
SET row_count = ?3, new_count = ?4, known_count = ?5, conflict_count = ?6, period_from = ?7,
    period_to = ?8, quarters = ?9
WHERE user_id = ?1 AND id = ?2";
}

/// A batch of what a sync adds to the import of its month.
pub(crate) struct SyncedBatch {
    /// The import and how many rows it had. `None` begins one.
    pub import: Option<(i64, usize)>,
    /// What identifies the import, and all that it has with this batch.
    pub whole: NewImport,
    pub quarters: BTreeSet<Date>,
    pub rows: Vec<Row>,
}

impl Store {
    /// Adds a batch of rows, which count from then on. Returns the import's id; `None` if it was
    /// undone meanwhile or has other rows.
    ///
    /// # Errors
    /// [`StoreError::TooMany`](crate::store::StoreError::TooMany) as for an import of a file.
    pub(crate) fn add_synced_rows(
        &self,
        user: AccountId,
        batch: SyncedBatch,
        rows_max: usize,
        now_ms: i64,
    ) -> Result<Option<i64>> {
        debug_assert!(batch.rows.len() <= ROWS_PER_WRITE);
        self.write(Write::page().of([user]), move |tx| {
            portfolios::expect_user(tx, user)?;
            expect_rows(tx, user, batch.rows.len(), rows_max)?;
            let SyncedBatch {
                import,
                whole,
                rows,
                quarters,
            } = &batch;
            let quarters = Quarters(quarters.clone());
            let (id, first) = match import {
                Some((id, count)) => {
                    let found = one(tx, user, *id)?;
                    let is_same = found.is_some_and(|found| {
                        found.state == ImportState::Live && found.row_count == *count
                    });
                    if !is_same {
                        return Ok(None);
                    }
                    (*id, *count)
                }
                None => {
                    expect_import(tx, user, &whole.account)?;
                    sayings::keep_account(tx, user, &whole.account)?;
                    (add(tx, user, whole, ImportState::Live, now_ms)?, 0)
                }
            };
            add_rows(tx, user, id, (first..).zip(rows))?;
            let ImportCounts {
                new_count,
                known_count,
                conflict_count,
                ..
            } = whole.counts;
            let from: Option<Date> = whole.period.map(|period| period.0);
            let to: Option<Date> = whole.period.map(|period| period.1);
            let count = whole.row_count;
            let grown = args![
                user,
                id,
                count,
                new_count,
                known_count,
                conflict_count,
                from,
                to,
                &quarters
            ];
            tx.run(GROW_IMPORT, &grown)?;
            count_write(tx, user, now_ms)?;
            Ok(Some(id))
        })
    }
}
