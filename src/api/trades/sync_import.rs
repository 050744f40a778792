//! The trades that a sync brings become rows of its month's import.
//!
//! The caller parks, within the user's turn. Rows are compared and written on the lane `ledger`.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::civil::Date;

use crate::api::state::State;
use crate::api::trades::gathered::Gathered;
use crate::api::trades::synced::{client_at, is_of_others, name_of};
use crate::base::{Account, Broker, clock};
use crate::brokers::SyncedTrades;
use crate::http::Problem;
use crate::ledger::file::{ClientId, FileFormat};
use crate::ledger::row::{AccountName, Row};
use crate::ledger::synced_rows::lacking;
use crate::ledger::trades::{ImportedRows, Preview, preview};
use crate::portfolio::Securities;
use crate::rt::LaneError;
use crate::store::{
    AccountId, ImportCounts, ImportState, NewImport, ROWS_PER_WRITE, Store, StoreError,
    StoredImport, SyncedBatch,
};
use crate::views::sync::TradesReason;

/// Whose trades a sync brought.
pub(in crate::api) struct SyncedBy {
    pub(in crate::api) user: AccountId,
    pub(in crate::api) broker: Broker,
    /// The broker's id of the person.
    pub(in crate::api) broker_user: Option<String>,
}

/// The first days of the past quarters that syncs with this broker have read. Parks for the store.
pub(in crate::api) fn known_quarters(
    state: &State,
    user: AccountId,
    broker: Broker,
) -> Result<BTreeSet<Date>, StoreError> {
    let mut imports = state.store.imports(user)?;
    imports.retain(|import| is_of_syncs(import, broker));
    Ok(imports
        .into_iter()
        .flat_map(|import| import.quarters)
        .collect())
}

fn is_of_syncs(import: &StoredImport, broker: Broker) -> bool {
    let is_account = import.account.as_str() == Account::at(broker).as_str();
    import.state == ImportState::Live && import.format == FileFormat::of_syncs(broker) && is_account
}

/// Adds what the ledger's imports of syncs lack. Returns how many trades are new to the ledger.
/// Parks for at most `deadline_ms`, and calls `beside` each `every_ms` meanwhile.
pub(in crate::api) fn add_synced(
    state: &State,
    by: SyncedBy,
    trades: SyncedTrades,
    deadline_ms: u64,
    every_ms: u64,
    beside: impl FnMut(),
) -> Result<usize, TradesReason> {
    let now = state.clock.now();
    let user = by.user.0;
    let client = by
        .broker_user
        .as_deref()
        .and_then(|id| client_at(by.broker, id));
    let account = name_of(Account::at(by.broker)).ok_or(TradesReason::LedgerUnavailable)?;
    let addition = Addition {
        store: Arc::clone(&state.store),
        listed: listed(state),
        by,
        account,
        client,
        today: clock::zoned(now).date(),
        now_ms: now.as_millisecond(),
        rows_max: state.trades.rows_max(),
    };
    let SyncedTrades { rows, quarters, .. } = trades;
    let submitted = state
        .trades
        .lane
        .submit(deadline_ms, move || addition.add(rows, quarters));
    let ticket = submitted.map_err(|_| TradesReason::LedgerUnavailable)?;
    match ticket.wait_beside(every_ms, beside) {
        Ok(Ok(added)) => Ok(added),
        Ok(Err(NotAdded::Reason(reason))) => Err(reason),
        Ok(Err(NotAdded::Cause(cause))) => {
            tracing::warn!(user, %cause, "trades of a sync not written");
            Err(TradesReason::LedgerUnavailable)
        }
        Err(LaneError::Late) => Err(TradesReason::Late),
        Err(LaneError::Closed | LaneError::Panicked) => Err(TradesReason::LedgerUnavailable),
    }
}

#[inline(never)]
fn listed(state: &State) -> Arc<Securities> {
    state.portfolio.securities.load_full()
}

/// Why nothing, or not all, was added.
enum NotAdded {
    Reason(TradesReason),
    /// For the log.
    Cause(String),
}

impl From<StoreError> for NotAdded {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::TooMany { .. } => Self::Reason(TradesReason::LedgerFull),
            other => Self::Cause(other.to_string()),
        }
    }
}

impl From<Problem> for NotAdded {
    fn from(problem: Problem) -> Self {
        Self::Cause(
            problem
                .cause
                .map_or_else(|| problem.code.to_owned(), String::from),
        )
    }
}

/// What is added, on the lane.
struct Addition {
    store: Arc<Store>,
    listed: Arc<Securities>,
    by: SyncedBy,
    account: AccountName,
    client: Option<ClientId>,
    today: Date,
    now_ms: i64,
    rows_max: usize,
}

/// The import of the month, and what it has.
struct Month {
    /// `None` where the month has none yet.
    import: Option<StoredImport>,
    rows: Vec<Row>,
}

impl Addition {
    /// Adds the rows and quarters that no import of syncs has.
    fn add(self, answer: Vec<Row>, mut quarters: BTreeSet<Date>) -> Result<usize, NotAdded> {
        let mut imports = self.store.imports(self.by.user)?;
        imports.retain(|import| import.state == ImportState::Live);
        imports.retain(|import| import.account == self.account);
        let clients = imports.iter().filter_map(|import| import.client.clone());
        if self
            .client
            .as_ref()
            .is_some_and(|client| is_of_others(client, clients))
        {
            return Err(NotAdded::Reason(TradesReason::AccountDiffers));
        }
        imports.retain(|import| is_of_syncs(import, self.by.broker));
        for import in &imports {
            quarters.retain(|first| !import.quarters.contains(first));
        }
        let ids: Vec<i64> = imports.iter().map(|import| import.id).collect();
        let mut rows = self.store.import_rows(self.by.user, &ids)?;
        let own = imports
            .iter()
            .rposition(|import| self.is_of_this_month(import));
        let month = Month {
            rows: own
                .map(|at| std::mem::take(&mut rows[at]))
                .unwrap_or_default(),
            import: own.map(|at| imports.swap_remove(at)),
        };
        let others: Vec<&[Row]> = rows.iter().map(Vec::as_slice).collect();
        let added = lacking(&others, &month.rows, answer);
        if added.is_empty() && quarters.is_empty() {
            return Ok(0);
        }
        let told = self.told(&month, &added)?;
        self.write(month, added, &quarters, &told)?;
        Ok(told.new.len())
    }

    fn is_of_this_month(&self, import: &StoredImport) -> bool {
        let begun = clock::date_of_ms(import.created_ms).map(Date::first_of_month);
        begun == Some(self.today.first_of_month())
    }

    /// What the added rows are to the ledger without them. Those of the same import are counted
    /// before them, where rows have no id.
    fn told(&self, month: &Month, added: &[Row]) -> Result<Preview, NotAdded> {
        if added.is_empty() {
            return Ok(Preview::default());
        }
        let gathered = Gathered::read(&self.store, self.by.user, &self.listed)?;
        let own = month.import.as_ref().map(|import| import.id.to_string());
        let mut live = gathered.imported();
        live.retain(|import| Some(import.import) != own.as_deref());
        let rows: Vec<Row> = month.rows.iter().chain(added).cloned().collect();
        let whole = ImportedRows {
            import: "",
            account: &self.account,
            format: FileFormat::of_syncs(self.by.broker).as_str(),
            rows: &rows,
        };
        let mut told = preview(&live, whole, gathered.known());
        let last = month.rows.len() as u32;
        told.new.retain(|line| *line > last);
        told.known.retain(|line| *line > last);
        told.conflicts.retain(|conflict| conflict.line > last);
        Ok(told)
    }

    /// Writes all rows, a batch at a time, and the quarters with the last.
    fn write(
        &self,
        month: Month,
        added: Vec<Row>,
        quarters: &BTreeSet<Date>,
        told: &Preview,
    ) -> Result<(), NotAdded> {
        let Month { import, rows } = month;
        let before = import
            .as_ref()
            .map(|import| import.counts)
            .unwrap_or_default();
        let mut read = import
            .as_ref()
            .map(|import| import.quarters.clone())
            .unwrap_or_default();
        let mut place = import.map(|import| (import.id, import.row_count));
        let mut whole = rows;
        let mut left = added.into_iter().peekable();
        loop {
            let batch: Vec<Row> = left.by_ref().take(ROWS_PER_WRITE).collect();
            whole.extend_from_slice(&batch);
            let is_last = left.peek().is_none();
            if is_last {
                read.extend(quarters);
            }
            let count = whole.len();
            let until = |lines: &[u32]| lines.partition_point(|line| *line as usize <= count);
            let conflicts = told.conflicts.iter();
            let conflicts = conflicts
                .filter(|conflict| conflict.line as usize <= count)
                .count();
            let counts = ImportCounts {
                new_count: before.new_count + until(&told.new),
                known_count: before.known_count + until(&told.known),
                conflict_count: before.conflict_count + conflicts,
                ..before
            };
            let batch = SyncedBatch {
                import: place,
                whole: self.import(&whole, counts),
                quarters: read.clone(),
                rows: batch,
            };
            let user = self.by.user;
            let id = self
                .store
                .add_synced_rows(user, batch, self.rows_max, self.now_ms)?;
            let undone = || NotAdded::Cause("its import was changed meanwhile".to_owned());
            place = Some((id.ok_or_else(undone)?, count));
            if is_last {
                return Ok(());
            }
        }
    }

    fn import(&self, rows: &[Row], counts: ImportCounts) -> NewImport {
        let format = FileFormat::of_syncs(self.by.broker);
        let from = rows.iter().map(|row| row.date).min();
        let to = rows.iter().map(|row| row.date).max();
        NewImport {
            account: self.account.clone(),
            kind: format.kind(),
            format,
            sha256: None,
            client: self.client.clone(),
            period: from.zip(to),
            row_count: rows.len(),
            counts,
        }
    }
}
