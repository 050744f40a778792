//! The part of an export that is of the trades ledger.
//!
//! Blocks for the store; for the lane `export`.

use crate::base::Isin;
use crate::http::Problem;
use crate::ledger::file::{Income, ReportLine};
use crate::ledger::row::{Mark, Row};
use crate::store::{AccountId, ImportState, LedgerAccount, Store, StoredImport};
use crate::views::export_ledger::{
    ExportedChoice, ExportedCorrection, ExportedImport, ExportedIncome, ExportedReportLine,
    ExportedRow,
};
use crate::views::trades::accounts::AccountPerson;
use crate::views::values::{Day, Exact, Instant};

/// Rows in one export. Further ones are at `/api/trades.csv`.
const ROWS_MAX: usize = 50_000;
/// Bytes of a row in JSON.
pub(super) const ROW_BYTES: usize = 640;

/// What is stored of a ledger.
pub(super) struct StoredLedger {
    accounts: Vec<LedgerAccount>,
    imports: Vec<StoredImport>,
    rows: Vec<(i64, Row)>,
    left_out: usize,
    report: Vec<(i64, ReportLine)>,
    income: Vec<(i64, Income)>,
    corrections: Vec<(String, String)>,
    choices: Vec<(String, &'static str)>,
}

impl StoredLedger {
    pub(super) fn read(store: &Store, user: AccountId) -> Result<Self, Problem> {
        let mut imports = store.imports(user)?;
        imports.retain(|import| import.state != ImportState::Loading);
        let mut found = Self {
            accounts: store.ledger_accounts(user)?,
            imports: Vec::new(),
            rows: Vec::new(),
            left_out: 0,
            report: Vec::new(),
            income: Vec::new(),
            corrections: Vec::new(),
            choices: Vec::new(),
        };
        for import in &imports {
            let id = import.id;
            // One import at a time, so that what is left out is not held together.
            let rows = store.import_rows(user, &[id])?.pop().unwrap_or_default();
            let room = ROWS_MAX - found.rows.len();
            found.left_out += rows.len().saturating_sub(room);
            found
                .rows
                .extend(rows.into_iter().take(room).map(|row| (id, row)));
            let report = store.reports(user, &[id])?.pop().unwrap_or_default();
            found
                .report
                .extend(report.lines.into_iter().map(|line| (id, line)));
            found
                .income
                .extend(report.income.into_iter().map(|row| (id, row)));
        }
        found.imports = imports;
        let corrections = store.corrections(user)?.into_iter();
        found.corrections = corrections.map(|said| (said.id, said.document)).collect();
        let choices = store.choices(user)?.into_iter();
        found.choices = choices
            .map(|(conflict, keep)| (conflict, keep.as_str()))
            .collect();
        Ok(found)
    }

    /// Rows of all lists.
    pub(super) fn count(&self) -> usize {
        self.imports.len()
            + self.rows.len()
            + self.report.len()
            + self.income.len()
            + self.corrections.len()
    }

    pub(super) fn accounts(&self) -> Vec<AccountPerson<'_>> {
        let accounts = self.accounts.iter();
        accounts
            .map(|known| AccountPerson {
                name: known.name.as_str(),
                person: &known.person,
            })
            .collect()
    }

    pub(super) fn imports(&self) -> Vec<ExportedImport<'_>> {
        self.imports.iter().map(import).collect()
    }

    pub(super) fn rows(&self) -> Vec<ExportedRow<'_>> {
        self.rows
            .iter()
            .map(|(import, row)| exported_row(*import, row))
            .collect()
    }

    /// Rows beyond those that are exported.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    pub(super) fn report(&self) -> Vec<ExportedReportLine<'_>> {
        self.report
            .iter()
            .map(|(import, line)| report_line(*import, line))
            .collect()
    }

    pub(super) fn income(&self) -> Vec<ExportedIncome<'_>> {
        let income = self.income.iter();
        income
            .map(|(import, row)| ExportedIncome {
                import_id: *import,
                line: row.line,
                symbol: &row.symbol,
                isin: row.isin.as_ref().map(Isin::as_str),
                ex_date: Day(row.ex_date),
                quantity: Exact(row.quantity),
                per_share: row.per_share.map(Exact),
                amount: Exact(row.amount),
            })
            .collect()
    }

    pub(super) fn corrections(&self) -> Vec<ExportedCorrection<'_>> {
        let corrections = self.corrections.iter();
        corrections
            .map(|(id, document)| ExportedCorrection { id, document })
            .collect()
    }

    pub(super) fn choices(&self) -> Vec<ExportedChoice<'_>> {
        let choices = self.choices.iter();
        choices
            .map(|(conflict, keep)| ExportedChoice { conflict, keep })
            .collect()
    }
}

fn import(import: &StoredImport) -> ExportedImport<'_> {
    let client = import.client.as_ref();
    ExportedImport {
        id: import.id,
        account: import.account.as_str(),
        state: import.state.as_str(),
        kind: import.kind.as_str(),
        format: import.format.as_str(),
        sha256: import.sha256.as_deref(),
        client_kind: client.map(|client| client.kind.as_str()),
        client_id: client.map(|client| client.id.as_str()),
        period_from: import.period_from.map(Day),
        period_to: import.period_to.map(Day),
        rows: import.row_count,
        new: import.counts.new_count,
        known: import.counts.known_count,
        conflicts: import.counts.conflict_count,
        refused: import.counts.refused_count,
        created_at: Instant::of_ms(import.created_ms),
    }
}

fn exported_row(import_id: i64, row: &Row) -> ExportedRow<'_> {
    ExportedRow {
        import_id,
        line: row.line,
        symbol: &row.symbol,
        isin: row.isin.as_ref().map(Isin::as_str),
        exchange: row.exchange.as_str(),
        segment: row.segment.as_str(),
        series: row.series.as_deref(),
        date: Day(row.date),
        time: row.time.map(|time| time.to_string()),
        side: row.side.as_str(),
        quantity: Exact(row.quantity),
        price: Exact(row.price),
        trade_id: row.trade_id.as_deref(),
        order_id: row.order_id.as_deref(),
        product: row.product.as_deref(),
        auction: row.auction,
        expiry: row.expiry.map(Day),
        brokerage: row.charges.brokerage.map(Exact),
        stt: row.charges.stt.map(Exact),
        stamp_duty: row.charges.stamp_duty.map(Exact),
        other_charges: row.charges.other.map(Exact),
        stt_paid: row.stt_paid,
        mark: row.mark.map(Mark::as_str),
    }
}

fn report_line(import_id: i64, line: &ReportLine) -> ExportedReportLine<'_> {
    ExportedReportLine {
        import_id,
        line: line.line,
        section: line.section.as_str(),
        symbol: &line.symbol,
        isin: line.isin.as_ref().map(Isin::as_str),
        acquired_on: line.acquired_on.map(Day),
        sold: line.sold.map(Day),
        quantity: Exact(line.quantity),
        cost: line.cost.map(Exact),
        cost_considered: line.cost_considered.map(Exact),
        proceeds: Exact(line.proceeds),
        gain: Exact(line.gain),
        taxable: line.taxable.map(Exact),
        fmv: line.fmv.map(Exact),
        turnover: line.turnover.map(Exact),
        brokerage: line.charges.brokerage.map(Exact),
        stt: line.charges.stt.map(Exact),
        stamp_duty: line.charges.stamp_duty.map(Exact),
        other_charges: line.charges.other.map(Exact),
        purchase_expenses: line.purchase_expenses.map(Exact),
        stt_paid: line.stt_paid,
    }
}
