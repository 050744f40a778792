//! The rows of imports: written in batches, removed in batches, read all at once. Those of trades
//! are here, those of a broker's report in `report_rows`.
//!
//! The columns `entered` and `how` stay null, and nothing reads them: no source that is read says
//! when or how shares came into an account. That a purchase was off the market follows from
//! `stt_paid`, and the rest is said by corrections.

use std::ops::ControlFlow;

use jiff::civil::Time;

use crate::base::symbol::Exchange;
use crate::base::{Isin, Words};
use crate::ledger::file::{Income, ReportLine};
use crate::ledger::row::{Charges, Mark, Row, RowCharges, Segment, Side};
use crate::store::account_id::AccountId;
use crate::store::arg::{Arg, Argument, args};
use crate::store::cells::{Cells, Nullable, parsed, stored_as_words};
use crate::store::columns::{at, columns, record, values};
use crate::store::errors::Result;
use crate::store::ledger::report_rows::{self, REMOVE_INCOME, REMOVE_REPORT_LINES};
use crate::store::open::Store;
use crate::store::tx::{Failure, Tx, statements};
use crate::store::write::{PAGE_DEADLINE_MS, Write};

/// Rows of one write. It takes some 20 ms, so that others wait no longer for the writer.
pub(crate) const ROWS_PER_WRITE: usize = 2_000;

columns! {
    const ROW = [
        line, symbol, isin, exchange, segment, series, traded_on, traded_at, side, quantity, price,
        trade_id, order_id, product, auction, expiry, brokerage, stt, stamp_duty, other_charges,
        stt_paid, mark,
    ];
    const WRITTEN_ROW = [..ROW, user_id, import_id, ordinal];
}

statements! {
    const IS_LOADING =
        "SELECT 1 FROM ledger_imports WHERE user_id = ?1 AND id = ?2 AND state = 'loading'";
    const ADD_ROW =
        ["\
INSERT INTO ledger_rows (", WRITTEN_ROW.sql, ")
VALUES (", WRITTEN_ROW.parameters(1), ")"];
    const ROWS = ["\
SELECT ", ROW.sql, "
FROM ledger_rows WHERE user_id = ?1 AND import_id = ?2 ORDER BY ordinal"];
    const ROW_COUNT = "SELECT row_count FROM ledger_imports WHERE user_id = ?1 AND id = ?2";
    const REMOVE_ROWS = "\
DELETE FROM ledger_rows WHERE user_id = ?1 AND import_id = ?2 AND ordinal >= ?3 AND ordinal < ?4";
}

stored_as_words! {
    Exchange: "an exchange",
    Mark: "a mark of a row",
    Segment: "a segment",
    Side: "a side of a row",
}

/// A batch of what an import brings.
pub(crate) enum ImportBatch {
    Trades(Vec<Row>),
    Report(Vec<ReportLine>),
    Income(Vec<Income>),
}

impl ImportBatch {
    fn len(&self) -> usize {
        match self {
            Self::Trades(rows) => rows.len(),
            Self::Report(lines) => lines.len(),
            Self::Income(rows) => rows.len(),
        }
    }
}

impl Nullable for Isin {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        parsed(row, at, Self::parse, "an ISIN")
    }
}

impl<'a> Argument<'a> for &'a Isin {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::from(value.map(Isin::as_str))
    }
}

impl Nullable for Time {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        parsed(row, at, |text| text.parse().ok(), "a time")
    }
}

impl<'a> Argument<'a> for Time {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::from(value.map(|time| time.to_string()))
    }
}

impl Store {
    /// Writes a batch of an import's rows, the first of which has this number. False if the import
    /// was swept meanwhile.
    pub(crate) fn add_import_rows(
        &self,
        user: AccountId,
        import: i64,
        first: usize,
        batch: ImportBatch,
    ) -> Result<bool> {
        debug_assert!(batch.len() <= ROWS_PER_WRITE);
        self.write(Write::page().of([user]), move |tx| {
            if tx
                .first(IS_LOADING, &args![user, import], |_| Ok(()))?
                .is_none()
            {
                return Ok(false);
            }
            match &batch {
                ImportBatch::Trades(rows) => {
                    add_rows(tx, user, import, (first..).zip(rows))?;
                }
                ImportBatch::Report(lines) => {
                    report_rows::add_lines(tx, user, import, (first..).zip(lines))?;
                }
                ImportBatch::Income(rows) => {
                    report_rows::add_income(tx, user, import, (first..).zip(rows))?;
                }
            }
            Ok(true)
        })
    }

    /// The rows of these imports, in the order of both. Blocks for all of them.
    pub(crate) fn import_rows(&self, user: AccountId, imports: &[i64]) -> Result<Vec<Vec<Row>>> {
        let imports = imports.to_vec();
        self.read(PAGE_DEADLINE_MS, move |tx| {
            let mut found: Vec<Vec<Row>> = Vec::with_capacity(imports.len());
            for import in &imports {
                // The room at once: growing would need it twice.
                let count: Option<usize> =
                    tx.first(ROW_COUNT, &args![user, *import], |row| row.get(0))?;
                found.push(Vec::with_capacity(count.unwrap_or_default()));
            }
            let which: Vec<_> = imports.iter().map(|import| args![user, *import]).collect();
            let which: Vec<&[Arg<'_>]> = which.iter().map(<[Arg<'_>; 2]>::as_slice).collect();
            tx.query(ROWS, &which, &mut |at, row| {
                found[at].push(read(row)?);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(found)
        })
    }

    /// Removes the rows of an import, which has `count` of them, batch by batch.
    pub(super) fn remove_import_rows(
        &self,
        user: AccountId,
        import: i64,
        count: usize,
    ) -> Result<()> {
        for first in (0..count).step_by(ROWS_PER_WRITE) {
            self.write(Write::page(), move |tx| {
                for sql in [REMOVE_ROWS, REMOVE_REPORT_LINES, REMOVE_INCOME] {
                    tx.run(sql, &args![user, import, first, first + ROWS_PER_WRITE])?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Adds rows to an import, each with its number.
pub(super) fn add_rows<'a>(
    tx: &dyn Tx,
    user: AccountId,
    import: i64,
    rows: impl Iterator<Item = (usize, &'a Row)>,
) -> Result<(), Failure> {
    tx.run_each(ADD_ROW, rows.map(|(at, row)| row_args(user, import, at, row)))
        .map(drop)
}

fn row_args(user: AccountId, import: i64, ordinal: usize, row: &Row) -> [Arg<'_>; 25] {
    values!(WRITTEN_ROW {
        line: row.line,
        symbol: &row.symbol,
        isin: row.isin.as_ref(),
        exchange: row.exchange,
        segment: row.segment,
        series: row.series.as_ref(),
        traded_on: row.date,
        traded_at: row.time,
        side: row.side,
        quantity: row.quantity,
        price: row.price,
        trade_id: row.trade_id.as_ref(),
        order_id: row.order_id.as_ref(),
        product: row.product.as_ref(),
        auction: row.auction,
        expiry: row.expiry,
        brokerage: row.charges.brokerage,
        stt: row.charges.stt,
        stamp_duty: row.charges.stamp_duty,
        other_charges: row.charges.other,
        stt_paid: row.stt_paid,
        mark: row.mark,
        user_id: user,
        import_id: import,
        ordinal: ordinal,
    })
}

fn read(row: &dyn Cells) -> Result<Row, Failure> {
    let other = row.get(at!(ROW.other_charges))?;
    let charges = record!(row of ROW, Charges [brokerage, stt, stamp_duty] other);
    let charges = RowCharges::from(charges);
    Ok(record!(row of ROW, Row [
        line, symbol, isin, exchange, segment, series, side, quantity, price, trade_id, order_id,
        product, auction, expiry, stt_paid, mark,
    ]
        date: row.get(at!(ROW.traded_on))?,
        time: row.get(at!(ROW.traded_at))?,
        charges
    ))
}
