//! Reads a user's portfolio, computes the response on a lane, and keeps it.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::civil::Date;

use crate::api::call::{Call, Handled};
use crate::api::lane::compute;
use crate::api::state::State;
use crate::base::Account;
use crate::cache::{Responses, View};
use crate::http::{Problem, Response};
use crate::portfolio::Summary;
use crate::store::{AccountId, Portfolio, Store, StoreError};
use crate::views::holdings::{SyncTimes, Totals};
use crate::views::values::{Day, Instant, Money, Percent};

/// Sends `view` from the cache. A missing response is computed by `write` on the portfolio lane,
/// from the rows that `read` gets from the store; the request parks for both. The lane's threads
/// never wait for the store, so a slow disk does not delay requests whose rows are read. If there
/// are several nodes, each first asks the store whether its cached response is current. If the
/// store does not reply in time, that is an error; an old response is never sent.
pub(super) fn answer<Rows: Send + 'static>(
    state: &State,
    call: &Call<'_>,
    response: &mut Response<'_>,
    view: View,
    read: impl FnOnce(&Store, AccountId) -> Result<Rows, StoreError>,
    write: impl FnOnce(&Rows) -> Result<Vec<u8>, Problem> + Send + 'static,
) -> Handled {
    let id = call.caller().id;
    let responses = &state.portfolio.responses;
    if state.auth.is_shared() {
        // Another node may have written since the response was cached.
        responses.expect(id.0, state.store.portfolio_version(id)?);
    }
    let kept = responses.find(id.0, view, state.clock.monotonic_ms());
    let answer = match kept {
        Some(answer) => answer,
        None => {
            // Taken before the read, so that a later change invalidates the token.
            let token = responses.fill_token(id.0);
            let rows = read(&state.store, id)?;
            let responses = Arc::clone(responses);
            let clock = state.clock.clone();
            compute(&state.portfolio.lane, move || {
                let answer = Responses::make(&write(&rows)?);
                responses.keep(&token, view, &answer, clock.monotonic_ms());
                Ok(answer)
            })?
        }
    };
    let request = call.request;
    response.send_document(answer.select(request.accept_encoding(), request.preconditions())?);
    Ok(())
}

/// The last sync of each account: its time, and whether it was simulated.
pub(super) struct Syncs {
    by_account: HashMap<Account, (Instant, bool)>,
    oldest: Option<Instant>,
}

impl Syncs {
    /// The syncs of all accounts; `oldest` is the oldest that `shown` accepts.
    pub(super) fn of(portfolio: &Portfolio, shown: impl Fn(Account) -> bool) -> Self {
        let syncs = portfolio.syncs.iter();
        let shown = syncs.clone().filter(|sync| shown(sync.account));
        let oldest = shown.map(|sync| sync.synced_ms).min().map(Instant::of_ms);
        let by_account = syncs
            .map(|sync| (sync.account, (Instant::of_ms(sync.synced_ms), sync.simulated)))
            .collect();
        Self { by_account, oldest }
    }

    pub(super) fn synced_at(&self, account: Account) -> Option<Instant> {
        self.by_account.get(&account).map(|(at, _)| *at)
    }

    pub(super) fn simulated(&self, account: Account) -> bool {
        self.by_account
            .get(&account)
            .is_some_and(|(_, simulated)| *simulated)
    }
}

/// The totals, the number of holdings that each leaves out, and the age of the data. `day` is the
/// date of `day_pnl`.
pub(super) fn totals(summary: &Summary, day: Option<Date>, syncs: &Syncs) -> Totals {
    Totals {
        total_invested: Money(summary.total_invested),
        total_current_value: Money(summary.total_current_value),
        total_pnl: Money(summary.total_pnl),
        total_pnl_pct: summary.total_pnl_pct.map(Percent),
        day_pnl: summary.day_pnl.map(Money),
        day_pnl_pct: summary.day_pnl_pct.map(Percent),
        day: day.map(Day),
        without_cost: summary.without_cost,
        without_price: summary.without_price,
        without_day_price: summary.without_day_price,
        without_close: summary.without_close,
        value_without_cost: Money(summary.value_without_cost),
        pledged_only: summary.pledged_only,
        mtf_only: summary.mtf_only,
        synced_at: syncs.oldest,
        synced: SyncTimes::of(|broker| syncs.synced_at(Account::at(broker))),
        priced_from: summary.priced_from_ms.map(Instant::of_ms),
        priced_to: summary.priced_to_ms.map(Instant::of_ms),
    }
}
