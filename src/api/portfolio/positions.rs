//! `GET /api/portfolio/positions`: the brokers' two lists, each row named by its list.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::api::call::{Call, Handled};
use crate::api::portfolio::answer::{Syncs, answer};
use crate::api::query::{parameter, switch};
use crate::api::state::State;
use crate::base::{Account, Broker, Position, PositionKind, Words};
use crate::cache::View;
use crate::http::Response;
use crate::market::MarketCalendar;
use crate::store::{Portfolio, Store};
use crate::views::holdings::{
    Position as PositionView, PositionTotals, Positions, PositionsSummary, SyncTimes,
};
use crate::views::values;
use crate::views::values::{Day, Instant, Money, Quantity, Simulated};

/// Parks if the response is not cached.
pub(crate) fn positions(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let kind = parameter(call.query(), "type", "This is day or net.", PositionKind::parse)?;
    let closed = switch(call.query(), "include_closed")?;
    let calendar = state.calendar();
    let today = calendar.market_day(state.clock.now()).trading_date();
    let write = move |portfolio: &Portfolio| {
        let syncs = Syncs::of(portfolio, |_| true);
        Ok(positions_written(
            portfolio,
            kind,
            closed,
            &Dates {
                calendar: &calendar,
                today,
                syncs: &syncs,
            },
        ))
    };
    let view = View::Positions {
        kind,
        closed,
        today,
    };
    answer(state, call, response, view, Store::portfolio, write)
}

/// Trading dates of the brokers' lists of positions.
struct Dates<'a> {
    calendar: &'a MarketCalendar,
    /// Trading date of a sync at this moment.
    today: Date,
    syncs: &'a Syncs,
}

impl Dates<'_> {
    fn of(&self, synced_at: Option<Instant>) -> Option<Date> {
        synced_at.map(|at| self.calendar.market_day(at.0).trading_date())
    }

    fn is_earlier(&self, account: Account) -> bool {
        self.of(self.syncs.synced_at(account))
            .is_some_and(|date| date < self.today)
    }
}

fn positions_written(
    portfolio: &Portfolio,
    kind: Option<PositionKind>,
    closed: bool,
    dates: &Dates<'_>,
) -> Vec<u8> {
    let shown = portfolio
        .positions
        .iter()
        .filter(|row| closed || !row.quantity.is_zero());
    let rows = shown
        .clone()
        .filter(|row| kind.is_none_or(|kind| kind == row.kind));
    // Each list has its own total, because the same trades are in both.
    let of =
        |kind| positions_totals(shown.clone().filter(move |row| row.kind == kind), kind, dates);
    let view = Positions {
        positions: rows.map(|row| position(row, dates)).collect(),
        summary: PositionsSummary {
            day: of(PositionKind::Day),
            net: of(PositionKind::Net),
        },
    };
    let mut out = Vec::with_capacity(384 * (portfolio.positions.len() + 1));
    values::write(&mut out, &view);
    out
}

fn positions_totals<'a>(
    rows: impl Iterator<Item = &'a Position> + Clone,
    kind: PositionKind,
    dates: &Dates<'_>,
) -> PositionTotals {
    let count = rows.clone().count();
    let earlier = rows
        .clone()
        .filter(|row| dates.is_earlier(row.account))
        .count();
    let mut known = rows.filter_map(|row| row.pnl);
    let without_pnl = count - known.clone().count();
    // A sum is unknown if it does not fit, or if all of its parts are unknown.
    let pnl = known.try_fold(Decimal::ZERO, Decimal::checked_add);
    let pnl = pnl.filter(|_| count == 0 || without_pnl < count);
    let synced = |broker| {
        dates
            .syncs
            .synced_at(Account::at(broker))
            .filter(|_| has_list(broker, kind))
    };
    let synced_at = Broker::ALL
        .into_iter()
        .filter_map(synced)
        .min_by_key(|at| at.0);
    let synced = SyncTimes::of(synced);
    let date = dates.of(synced_at).map(Day);
    PositionTotals {
        count,
        pnl: pnl.map(Money),
        without_pnl,
        earlier,
        date,
        synced_at,
        synced,
    }
}

/// Whether the broker has a list of this kind.
fn has_list(broker: Broker, kind: PositionKind) -> bool {
    broker.has_day_positions() || kind == PositionKind::Net
}

fn position<'a>(row: &'a Position, dates: &Dates<'_>) -> PositionView<'a> {
    let synced_at = dates.syncs.synced_at(row.account);
    PositionView {
        broker: row.account.broker(),
        exchange: &row.exchange,
        tradingsymbol: &row.tradingsymbol,
        product: &row.product,
        r#type: row.kind,
        quantity: Quantity(row.quantity),
        average_price: row.average_price.map(Money),
        last_price: row.last_price.map(Money),
        close_price: row.close_price.map(Money),
        pnl: row.pnl.map(Money),
        realised: row.realised.map(Money),
        unrealised: row.unrealised.map(Money),
        multiplier: Quantity(row.multiplier),
        synced_at,
        date: dates.of(synced_at).map(Day),
        earlier: dates.is_earlier(row.account),
        unresolved: row.unresolved,
        simulated: Simulated(dates.syncs.simulated(row.account)),
    }
}
