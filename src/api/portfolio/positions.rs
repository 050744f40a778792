//! `GET /api/portfolio/positions`: the brokers' two lists, each row named by its list.

use rust_decimal::Decimal;

use super::answer::{Syncs, answer, parameter, switch};
use crate::api::call::Call;
use crate::api::state::State;
use crate::base::{Position, PositionKind};
use crate::cache::View;
use crate::http::{Problem, Response};
use crate::store::Portfolio;
use crate::views::json;
use crate::views::positions::{
    Position as PositionView, PositionTotals, Positions, PositionsSummary,
};
use crate::views::values::{Money, Quantity, Simulated};

/// Parks where the answer is not kept.
pub fn positions(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let kind = parameter(call, "type", "This is day or net.", PositionKind::parse)?;
    let closed = parameter(call, "include_closed", "This is true or false.", switch)?;
    let closed = closed.unwrap_or(false);
    let write = move |portfolio: &Portfolio| Ok(written(portfolio, kind, closed));
    let view = View::Positions { kind, closed };
    answer(state, call, reply, view, |store, id| store.portfolio(id), write)
}

fn written(portfolio: &Portfolio, kind: Option<PositionKind>, closed: bool) -> Vec<u8> {
    let syncs = Syncs::of(portfolio, |_| true);
    let shown = portfolio.positions.iter().filter(|row| closed || !row.quantity.is_zero());
    let rows = shown.clone().filter(|row| kind.is_none_or(|kind| kind == row.kind));
    // Of each list apart, whichever is asked for: the same trades stand in both.
    let of = |kind| totals(shown.clone().filter(move |row| row.kind == kind));
    let view = Positions {
        positions: rows.map(|row| position(row, &syncs)).collect(),
        summary: PositionsSummary { day: of(PositionKind::Day), net: of(PositionKind::Net) },
    };
    let mut out = Vec::with_capacity(384 * (portfolio.positions.len() + 1));
    json::write(&mut out, &view);
    out
}

fn totals<'a>(rows: impl Iterator<Item = &'a Position> + Clone) -> PositionTotals {
    let count = rows.clone().count();
    let mut known = rows.filter_map(|row| row.pnl);
    let without_pnl = count - known.clone().count();
    // A sum that does not fit is not known either; nor is one of which every part is unknown.
    let pnl = known.try_fold(Decimal::ZERO, Decimal::checked_add);
    let pnl = pnl.filter(|_| count == 0 || without_pnl < count);
    PositionTotals { count, pnl: pnl.map(Money), without_pnl }
}

fn position<'a>(row: &'a Position, syncs: &Syncs) -> PositionView<'a> {
    PositionView {
        broker: row.broker,
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
        synced_at: syncs.synced_at(row.broker),
        unresolved: row.unresolved,
        simulated: Simulated(syncs.simulated(row.broker)),
    }
}
