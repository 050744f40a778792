//! `GET /api/portfolio/holdings`: what is owned, row by row, in total, and across brokers.

use jiff::civil::Date;
use rust_decimal::Decimal;

use super::answer::{Syncs, answer, compute, parameter, switch, totals};
use super::live_prices::{Live, Prices};
use crate::api::call::Call;
use crate::api::state::State;
use crate::base::{Broker, Cost, Holding};
use crate::cache::View;
use crate::http::document::coding::etag;
use crate::http::message::response::JSON;
use crate::http::{Problem, Response};
use crate::portfolio::{Merged, Overflow, Valued, day_change_pct, merged, share, summary, valued};
use crate::store::Portfolio;
use crate::views::holdings::{
    Holding as HoldingView, Holdings, HoldingsSummary, KnownCost, MergedHolding, MergedPart,
};
use crate::views::json;
use crate::views::values::{Delay, Instant, Money, Percent, Quantity, Simulated};

/// Parks where the answer is not kept, and always with `live=true`.
pub fn holdings(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let broker = parameter(call, "broker", "This is a or b.", Broker::parse)?;
    let live = parameter(call, "live", "This is true or false.", switch)?.unwrap_or(false);
    let day = state.market_day(state.clock.now()).day;
    if !live {
        let view = View::Holdings { broker, day };
        let write = move |portfolio: &Portfolio| written(portfolio, broker, day, &[]);
        return answer(state, call, reply, view, |store, id| store.portfolio(id), write);
    }
    let mut portfolio = state.store.portfolio(call.caller().id)?;
    let prices = Prices::of(state);
    let (etag, body) = compute(state, move || {
        let shown = |row: &Holding| broker.is_none_or(|broker| broker == row.broker);
        let live = prices.revalue(&mut portfolio.holdings, shown);
        let body = written(&portfolio, broker, day, &live)?;
        Ok((etag(&body), body))
    })?;
    let verdict = call.request.preconditions().judge(Some(etag.as_bytes()))?;
    reply.send_owned(
        verdict.status(),
        JSON,
        &[("ETag", &etag), ("Cache-Control", "no-store")],
        body,
    );
    Ok(())
}

fn written(
    portfolio: &Portfolio,
    broker: Option<Broker>,
    day: Option<Date>,
    prices: &[Option<Live>],
) -> Result<Vec<u8>, Problem> {
    let shown = |of: Broker| broker.is_none_or(|broker| broker == of);
    let syncs = Syncs::of(portfolio, shown);
    // Before any is left out: a row may have its previous close from the other broker's.
    let all = valued(&portfolio.holdings)?;
    let holdings = all.into_iter().enumerate().filter(|(_, row)| shown(row.holding.broker));
    let (places, rows): (Vec<usize>, Vec<Valued<'_>>) = holdings.unzip();
    let live = places.into_iter().map(|at| prices.get(at).and_then(Option::as_ref));
    let summary = summary(&rows, day)?;
    let merged = merged(&rows)?;
    let total = summary.total_current_value;
    let percentages = |parts: &[Valued<'_>], value: Option<Decimal>| {
        Ok::<_, Overflow>(Percentages {
            day_change: day_change_pct(parts, day)?.map(Percent),
            share: value.map(|value| share(value, total)).transpose()?.flatten().map(Percent),
        })
    };
    let mut holdings = Vec::with_capacity(rows.len());
    for (row, live) in rows.iter().zip(live) {
        let percentages = percentages(std::slice::from_ref(row), row.valuation.current_value)?;
        holdings.push(holding(row, percentages, live, &syncs));
    }
    let mut instruments = Vec::with_capacity(merged.len());
    for merged in &merged {
        let percentages = percentages(&merged.parts, merged.valuation.current_value)?;
        instruments.push(instrument(merged, percentages));
    }
    let totals = totals(&summary, day, &syncs);
    let view = Holdings { holdings, summary: HoldingsSummary { totals, merged: instruments } };
    let mut out = Vec::with_capacity(512 * (rows.len() + 1));
    json::write(&mut out, &view);
    Ok(out)
}

/// What of a row or an instrument is compared with the day before, and with the whole.
#[derive(Clone, Copy)]
struct Percentages {
    day_change: Option<Percent>,
    share: Option<Percent>,
}

fn holding<'a>(
    row: &Valued<'a>,
    percentages: Percentages,
    live: Option<&Live>,
    syncs: &Syncs,
) -> HoldingView<'a> {
    let Valued { holding, valuation } = row;
    let simulated = live.is_some_and(|live| live.quote.simulated);
    HoldingView {
        broker: holding.broker,
        exchange: &holding.exchange,
        tradingsymbol: &holding.tradingsymbol,
        isin: holding.isin.as_deref(),
        quantity: Quantity(valuation.quantity),
        t1_quantity: Quantity(holding.t1_quantity),
        pledged_quantity: Quantity(holding.pledged_quantity),
        mtf_quantity: Quantity(holding.mtf_quantity),
        disputed_quantity: Quantity(holding.disputed_quantity),
        average_price: holding.average_price().map(Money),
        known_cost: known_cost(holding.cost),
        last_price: holding.last_price.map(Money),
        close_price: valuation.previous_close.map(Money),
        invested: valuation.invested.map(Money),
        current_value: valuation.current_value.map(Money),
        pnl: valuation.pnl.map(Money),
        pnl_pct: valuation.pnl_pct.map(Percent),
        day_change_pct: percentages.day_change,
        share_pct: percentages.share,
        broker_pnl: holding.broker_pnl.map(Money),
        as_of: holding.last_price.map(|_| Instant::of_ms(holding.as_of_ms)),
        synced_at: syncs.synced_at(holding.broker),
        source: live.map(|live| live.quote.source),
        delay_s: live.and_then(|live| live.quote.delay_s).map(Delay),
        stale: live.map(|live| live.stale),
        unresolved: holding.unresolved,
        discrepancy: holding.discrepancy,
        corporate_action: holding.mark.is_some(),
        simulated: Simulated(simulated || syncs.simulated(holding.broker)),
    }
}

/// What is known of the cost where that is not the cost of all shares.
fn known_cost(cost: Option<Cost>) -> Option<KnownCost> {
    match cost {
        Some(Cost::Part { quantity, cost }) => {
            Some(KnownCost { quantity: Quantity(quantity), cost: Money(cost) })
        }
        _ => None,
    }
}

fn instrument<'a>(merged: &'a Merged<'a>, percentages: Percentages) -> MergedHolding<'a> {
    MergedHolding {
        isin: merged.isin,
        tradingsymbol: merged.tradingsymbol,
        quantity: Quantity(merged.quantity),
        average_price: merged.average_price.map(Money),
        invested: merged.valuation.invested.map(Money),
        current_value: merged.valuation.current_value.map(Money),
        pnl: merged.valuation.pnl.map(Money),
        pnl_pct: merged.valuation.pnl_pct.map(Percent),
        day_change_pct: percentages.day_change,
        share_pct: percentages.share,
        parts: merged.parts.iter().map(part).collect(),
    }
}

fn part<'a>(part: &Valued<'a>) -> MergedPart<'a> {
    MergedPart {
        broker: part.holding.broker,
        exchange: &part.holding.exchange,
        tradingsymbol: &part.holding.tradingsymbol,
        quantity: Quantity(part.valuation.quantity),
        current_value: part.valuation.current_value.map(Money),
    }
}
