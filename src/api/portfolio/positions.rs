//! `GET /api/portfolio/positions`: the brokers' two lists, each row named by its list.

use rust_decimal::Decimal;

use super::answer::Syncs;
use super::answer::Unmade;
use super::answer::answer;
use super::answer::parameter;
use super::answer::switch;
use crate::api::call::Call;
use crate::api::json::{Object, write_object};
use crate::api::state::State;
use crate::base::{Position, PositionKind};
use crate::cache::View;
use crate::http::{Problem, Response};
use crate::store::Portfolio;

/// Parks where the answer is not kept.
pub fn positions(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let kind = parameter(call, "type", "This is day or net.", PositionKind::parse)?;
    let closed = parameter(call, "include_closed", "This is true or false.", switch)?;
    let closed = closed.unwrap_or(false);
    answer(state, call, reply, View::Positions { kind, closed }, move |store, id| {
        Ok::<_, Unmade>(written(&store.portfolio(id)?, kind, closed))
    })
}

fn written(portfolio: &Portfolio, kind: Option<PositionKind>, closed: bool) -> Vec<u8> {
    let syncs = Syncs::of(portfolio, |_| true);
    let shown = portfolio.positions.iter().filter(|row| closed || !row.quantity.is_zero());
    let rows = shown.clone().filter(|row| kind.is_none_or(|kind| kind == row.kind));
    let mut out = Vec::with_capacity(384 * (portfolio.positions.len() + 1));
    write_object(&mut out, |object| {
        object.list("positions", rows, |out, row| {
            write_object(out, |object| position(object, row, &syncs));
        });
        // Of each list apart, whichever is asked for: the same trades stand in both.
        object.object("summary", |object| {
            for kind in [PositionKind::Day, PositionKind::Net] {
                let rows = shown.clone().filter(|row| row.kind == kind);
                object.object(kind.as_str(), |object| totals(object, rows));
            }
        });
    });
    out
}

fn totals<'a>(object: &mut Object<'_>, rows: impl Iterator<Item = &'a Position> + Clone) {
    let count = rows.clone().count();
    let mut known = rows.filter_map(|row| row.pnl);
    let without_pnl = count - known.clone().count();
    // A sum that does not fit is not known either; nor is one of which every part is unknown.
    let pnl = known.try_fold(Decimal::ZERO, Decimal::checked_add);
    let pnl = pnl.filter(|_| count == 0 || without_pnl < count);
    object.count("count", count).money("pnl", pnl).count("without_pnl", without_pnl);
}

fn position(object: &mut Object<'_>, row: &Position, syncs: &Syncs) {
    object.text("broker", row.broker.as_str()).text("exchange", &row.exchange);
    object.text("tradingsymbol", &row.tradingsymbol).text("product", &row.product);
    object.text("type", row.kind.as_str()).exact("quantity", row.quantity);
    object.money("average_price", row.average_price).money("last_price", row.last_price);
    object.money("close_price", row.close_price).money("pnl", row.pnl);
    object.money("realised", row.realised).money("unrealised", row.unrealised);
    object.exact("multiplier", row.multiplier);
    object.text_or_null("synced_at", syncs.synced_at(row.broker));
    object.flag("unresolved", row.unresolved);
    object.mark("simulated", syncs.simulated(row.broker));
}
