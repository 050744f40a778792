//! Lines and dividends of a broker's own report, as it states them.

use std::ops::ControlFlow;

use crate::base::Words;
use crate::ledger::file::{Income, ReportLine, ReportSection};
use crate::ledger::row::Charges;
use crate::store::account_id::AccountId;
use crate::store::arg::{Arg, args};
use crate::store::cells::{Cells, stored_as_words};
use crate::store::columns::{at, columns, record, values};
use crate::store::errors::Result;
use crate::store::open::Store;
use crate::store::tx::{Failure, Tx, statements};
use crate::store::write::PAGE_DEADLINE_MS;

columns! {
    const LINE = [
        line, section, symbol, isin, acquired_on, sold_on, quantity, cost, cost_considered,
        proceeds, gain, taxable, fmv, turnover, brokerage, stt, stamp_duty, other_charges,
        purchase_expenses, stt_paid,
    ];
    const WRITTEN_LINE = [..LINE, user_id, import_id, ordinal];
    const INCOME = [line, symbol, isin, ex_date, quantity, per_share, amount];
    const WRITTEN_INCOME = [..INCOME, user_id, import_id, ordinal];
}

statements! {
    const ADD_REPORT_LINE = ["\
INSERT INTO ledger_report_lines (", WRITTEN_LINE.sql, ")
VALUES (", WRITTEN_LINE.parameters(1), ")"];
    const REPORT_LINES = ["\
SELECT ", LINE.sql, "
FROM ledger_report_lines WHERE user_id = ?1 AND import_id = ?2 ORDER BY ordinal"];
    const REMOVE_REPORT_LINES = "\
DELETE FROM ledger_report_lines
WHERE user_id = ?1 AND import_id = ?2 AND ordinal >= ?3 AND ordinal < ?4";
    const ADD_INCOME = ["\
INSERT INTO ledger_income (", WRITTEN_INCOME.sql, ")
VALUES (", WRITTEN_INCOME.parameters(1), ")"];
    const INCOME_ROWS = ["\
SELECT ", INCOME.sql, "
FROM ledger_income WHERE user_id = ?1 AND import_id = ?2 ORDER BY ordinal"];
    const REMOVE_INCOME = "\
DELETE FROM ledger_income
WHERE user_id = ?1 AND import_id = ?2 AND ordinal >= ?3 AND ordinal < ?4";
}

stored_as_words! {
    ReportSection: "a section of a report",
}

/// What reports state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredReport {
    pub lines: Vec<ReportLine>,
    pub income: Vec<Income>,
}

impl Store {
    /// What these imports of reports state. Blocks for all of it.
    pub(crate) fn reports(&self, user: AccountId, imports: &[i64]) -> Result<Vec<StoredReport>> {
        let imports = imports.to_vec();
        self.read(PAGE_DEADLINE_MS, move |tx| {
            let mut found: Vec<StoredReport> =
                imports.iter().map(|_| StoredReport::default()).collect();
            let which: Vec<_> = imports.iter().map(|import| args![user, *import]).collect();
            let which: Vec<&[Arg<'_>]> = which.iter().map(<[Arg<'_>; 2]>::as_slice).collect();
            tx.query(REPORT_LINES, &which, &mut |at, row| {
                found[at].lines.push(line(row)?);
                Ok(ControlFlow::Continue(()))
            })?;
            tx.query(INCOME_ROWS, &which, &mut |at, row| {
                found[at].income.push(record!(row of INCOME, Income [
                    line, symbol, isin, ex_date, quantity, per_share, amount,
                ]));
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(found)
        })
    }
}

pub(super) fn add_lines<'a>(
    tx: &dyn Tx,
    user: AccountId,
    import: i64,
    lines: impl Iterator<Item = (usize, &'a ReportLine)>,
) -> Result<(), Failure> {
    let rows = lines.map(|(ordinal, line)| {
        values!(WRITTEN_LINE {
            line: line.line,
            section: line.section,
            symbol: &line.symbol,
            isin: line.isin.as_ref(),
            acquired_on: line.acquired_on,
            sold_on: line.sold,
            quantity: line.quantity,
            cost: line.cost,
            cost_considered: line.cost_considered,
            proceeds: line.proceeds,
            gain: line.gain,
            taxable: line.taxable,
            fmv: line.fmv,
            turnover: line.turnover,
            brokerage: line.charges.brokerage,
            stt: line.charges.stt,
            stamp_duty: line.charges.stamp_duty,
            other_charges: line.charges.other,
            purchase_expenses: line.purchase_expenses,
            stt_paid: line.stt_paid,
            user_id: user,
            import_id: import,
            ordinal: ordinal,
        })
    });
    tx.run_each(ADD_REPORT_LINE, rows).map(drop)
}

pub(super) fn add_income<'a>(
    tx: &dyn Tx,
    user: AccountId,
    import: i64,
    rows: impl Iterator<Item = (usize, &'a Income)>,
) -> Result<(), Failure> {
    let rows = rows.map(|(ordinal, row)| {
        values!(WRITTEN_INCOME {
            line: row.line,
            symbol: &row.symbol,
            isin: row.isin.as_ref(),
            ex_date: row.ex_date,
            quantity: row.quantity,
            per_share: row.per_share,
            amount: row.amount,
            user_id: user,
            import_id: import,
            ordinal: ordinal,
        })
    });
    tx.run_each(ADD_INCOME, rows).map(drop)
}

fn line(row: &dyn Cells) -> Result<ReportLine, Failure> {
    let other = row.get(at!(LINE.other_charges))?;
    let charges = record!(row of LINE, Charges [brokerage, stt, stamp_duty] other);
    Ok(record!(row of LINE, ReportLine [
        line, section, symbol, isin, acquired_on, quantity, cost, cost_considered, proceeds, gain,
        taxable, fmv, turnover, purchase_expenses, stt_paid,
    ]
        sold: row.get(at!(LINE.sold_on))?,
        charges
    ))
}
