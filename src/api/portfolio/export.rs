//! `GET /api/portfolio/export`: all of the user's data, as one document with every digit.
//!
//! Written on a lane of its own. Its only thread has the lowest priority, because an export takes a
//! core for a tenth of a second. The edge sends the document without copying it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::api::call::{Call, Handled};
use crate::api::journal::entry_view;
use crate::api::lane::on;
use crate::api::portfolio::export_limit::ExportPermit;
use crate::api::portfolio::exported_ledger::{ROW_BYTES, StoredLedger};
use crate::api::replies::NO_STORE;
use crate::api::state::State;
use crate::api::{keys, portfolio_errors};
use crate::auth::Auth;
use crate::base::{Account, Cost, Holding, Position, SoldHolding};
use crate::http::document::coding::etag;
use crate::http::document::variants::JSON;
use crate::http::{OwnedBody, Problem, Response, Verdict};
use crate::portfolio::DayPoint;
use crate::store::{AccountId, LoginNetwork, Store, StoreError, SyncState};
use crate::views::export::{
    Export, ExportedHolding, ExportedNetwork, ExportedPoint, ExportedPosition, ExportedSoldHolding,
    ExportedSync, ExportedUser,
};
use crate::views::values::{Day, Exact, Instant, Simulated};

/// Most entries read at once; the store also limits their bytes.
const PAGE: usize = 500;
/// The longest document. A full journal of line ends and quotation marks, each of which is two
/// bytes in JSON, is 16 MiB, all that is not text in 10,000 entries 3 MiB, and as many holdings and
/// positions as a user may have some 10 MiB; 50,000 rows of trades 30 MiB. Nobody has all of these.
const DOCUMENT_BYTES_MAX: usize = 48 * 1024 * 1024;
/// Bytes of an entry in JSON, without its text.
const ENTRY_BYTES: usize = 320;

const DISPOSITION: (&str, &str) =
    ("Content-Disposition", "attachment; filename=\"bhav-export.json\"");

/// Parks for the lane. A HEAD takes the same permit and does the same work, for the length.
pub(crate) fn export(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let id = call.caller().id;
    let portfolio = &state.portfolio;
    let permit = portfolio
        .exports
        .begin(id.0)
        .map_err(|_| portfolio_errors::export_in_progress())?;
    let exported_at = Instant(state.clock.now());
    let store = Arc::clone(&state.store);
    let auth = Arc::clone(&state.auth);
    // Only this lane waits for the store, so that it holds one page of a large journal at a time.
    let lane = &portfolio.export_lane;
    let busy = portfolio_errors::portfolio_busy;
    let wait_ms = portfolio.exports.wait_ms.load(Relaxed);
    let made = on(lane, wait_ms, busy, busy, move || {
        let document = written(&store, &auth, id, exported_at, &permit)?;
        Ok((etag(&document), document, permit))
    });
    let (etag, document, permit) = made?;
    let verdict = call.request.preconditions().judge(Some(etag.as_bytes()))?;
    if verdict == Verdict::NotModified {
        response.send(verdict.status(), "", &[("ETag", &etag), NO_STORE]);
        return Ok(());
    }
    let headers = [("ETag", &*etag), NO_STORE, DISPOSITION];
    response.send_owned(verdict.status(), JSON, &headers, OwnedBody::holding(document, permit));
    Ok(())
}

fn written(
    store: &Store,
    auth: &Auth,
    id: AccountId,
    exported_at: Instant,
    permit: &ExportPermit,
) -> Result<Vec<u8>, Problem> {
    let size = store.journal_size(id)?;
    let ledger = StoredLedger::read(store, id)?;
    permit.weigh(size.text_bytes + ledger.count() * ROW_BYTES)?;
    // The text alone is too long: nothing of it has to be written to know that.
    if size.text_bytes > DOCUMENT_BYTES_MAX {
        return Err(portfolio_errors::export_too_long());
    }
    let user = store.user_by_id(id)?.ok_or(StoreError::NoSuchUser)?.user;
    let portfolio = store.portfolio(id)?;
    let points = store.points(id, Date::MIN)?;
    let lists = store.watchlists(id)?.lists;
    let api_keys = auth.stored_keys(id)?;
    let networks = store.login_networks_of(id)?;
    let rows = portfolio.holdings.len() + portfolio.positions.len() + points.len() + api_keys.len();
    // Nearly always enough, so that the buffer does not grow by copying. Unused memory is never
    // touched.
    let room = size.text_bytes / 4 * 5
        + (size.entries + rows + 4) * ENTRY_BYTES
        + ledger.count() * ROW_BYTES;
    let mut out = Vec::with_capacity(room.min(DOCUMENT_BYTES_MAX));
    let document = Export {
        exported_at,
        user: ExportedUser {
            id: user.id.0,
            email: &user.email,
            name: user.name.as_deref(),
            created_at: Instant::of_ms(user.created_ms),
        },
        syncs: portfolio.syncs.iter().map(sync).collect(),
        holdings: portfolio.holdings.iter().map(holding).collect(),
        sold_holdings: portfolio.sold_holdings.iter().map(sold_holding).collect(),
        positions: portfolio.positions.iter().map(position).collect(),
        pnl_snapshots: points.iter().map(point).collect(),
        watchlists: &lists,
        api_keys: api_keys.iter().map(keys::of).collect(),
        known_networks: networks.iter().map(network).collect(),
        ledger_accounts: ledger.accounts(),
        ledger_imports: ledger.imports(),
        ledger_rows: ledger.rows(),
        ledger_rows_left_out: ledger.left_out(),
        ledger_report_lines: ledger.report(),
        ledger_income: ledger.income(),
        ledger_corrections: ledger.corrections(),
        ledger_choices: ledger.choices(),
        journal: Vec::new(),
    };
    document.open(&mut out);
    add_entries(store, id, &mut out)?;
    Export::close(&mut out);
    Ok(out)
}

/// Writes the whole journal, page by page.
fn add_entries(store: &Store, id: AccountId, out: &mut Vec<u8>) -> Result<(), Problem> {
    let mut after = None;
    loop {
        let page = store.entries(id, after, PAGE)?;
        page.entries
            .iter()
            .for_each(|entry| Export::add(out, &entry_view(entry)));
        if out.len() > DOCUMENT_BYTES_MAX {
            return Err(portfolio_errors::export_too_long());
        }
        after = page.next();
        if after.is_none() {
            return Ok(());
        }
    }
}

fn network(row: &LoginNetwork) -> ExportedNetwork<'_> {
    ExportedNetwork {
        network: &row.network,
        last_used_at: Instant::of_ms(row.seen_ms),
    }
}

fn sync(row: &SyncState) -> ExportedSync<'_> {
    ExportedSync {
        broker: row.account.broker(),
        broker_user: row.broker_user.as_deref(),
        synced_at: Instant::of_ms(row.synced_ms),
        simulated: Simulated(row.simulated),
    }
}

fn holding(row: &Holding) -> ExportedHolding<'_> {
    let (cost, costed_quantity) = cost(row);
    ExportedHolding {
        broker: row.account.broker(),
        exchange: &row.exchange,
        tradingsymbol: &row.tradingsymbol,
        isin: row.isin.as_deref(),
        settled_quantity: Exact(row.settled_quantity),
        t1_quantity: Exact(row.t1_quantity),
        pledged_quantity: Exact(row.pledged_quantity),
        mtf_quantity: Exact(row.mtf_quantity),
        used_quantity: Exact(row.used_quantity),
        disputed_quantity: Exact(row.disputed_quantity),
        average_price: row.average_price().map(Exact),
        cost: cost.map(Exact),
        costed_quantity: costed_quantity.map(Exact),
        last_price: row.last_price.map(Exact),
        close_price: row.close_price.map(Exact),
        change_pct: row.change_pct.map(Exact),
        broker_pnl: row.broker_pnl.map(Exact),
        as_of: Instant::of_ms(row.as_of_ms),
        unresolved: row.unresolved,
        discrepancy: row.discrepancy,
        corporate_action: row.mark.is_some(),
    }
}

fn sold_holding(row: &SoldHolding) -> ExportedSoldHolding<'_> {
    ExportedSoldHolding {
        broker: row.account.broker(),
        exchange: &row.exchange,
        tradingsymbol: &row.tradingsymbol,
        isin: row.isin.as_deref(),
        used_quantity: Exact(row.used_quantity),
    }
}

/// The cost as stored: of one share, or of a number of shares together.
fn cost(row: &Holding) -> (Option<Decimal>, Option<Decimal>) {
    match row.cost {
        Some(Cost::PerShare(average)) => {
            (row.quantity().checked_mul(average), Some(row.quantity()))
        }
        Some(Cost::Total(cost)) => (Some(cost), Some(row.quantity())),
        Some(Cost::Part { quantity, cost }) => (Some(cost), Some(quantity)),
        None => (None, None),
    }
}

fn position(row: &Position) -> ExportedPosition<'_> {
    ExportedPosition {
        broker: row.account.broker(),
        exchange: &row.exchange,
        tradingsymbol: &row.tradingsymbol,
        product: &row.product,
        r#type: row.kind,
        quantity: Exact(row.quantity),
        multiplier: Exact(row.multiplier),
        average_price: row.average_price.map(Exact),
        last_price: row.last_price.map(Exact),
        close_price: row.close_price.map(Exact),
        pnl: row.pnl.map(Exact),
        realised: row.realised.map(Exact),
        unrealised: row.unrealised.map(Exact),
        unresolved: row.unresolved,
    }
}

fn point(row: &DayPoint) -> ExportedPoint {
    ExportedPoint {
        date: Day(row.date),
        total_invested: Exact(row.total_invested),
        total_current_value: Exact(row.total_current_value),
        total_pnl: Exact(row.total_pnl),
        value_without_cost: row.value_without_cost.map(Exact),
        source: row.source,
        left_out: row.left_out,
        carried: row.carried,
        brokers: row
            .made_of
            .map(|made| made.accounts.iter().map(Account::broker).collect()),
        holdings: row.made_of.map(|made| made.holdings),
        suspect: row.suspect,
        discrepancies: row.made_of.map(|made| made.discrepancies),
    }
}
