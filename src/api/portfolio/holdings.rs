//! `GET /api/portfolio/holdings`: what is owned, row by row, in total, and across brokers.

use jiff::civil::Date;

use super::answer::MAKE_DEADLINE_MS;
use super::answer::Syncs;
use super::answer::Unmade;
use super::answer::answer;
use super::answer::iso;
use super::answer::on_lane;
use super::answer::parameter;
use super::answer::switch;
use super::answer::totals;
use super::live_prices::{Live, Prices};
use crate::api::call::Call;
use crate::api::json::{Object, write_object};
use crate::api::state::State;
use crate::base::{Broker, Cost, Holding};
use crate::cache::View;
use crate::http::document::coding::etag;
use crate::http::message::response::JSON;
use crate::http::{Problem, Response};
use crate::portfolio::{Merged, Valued, merged, summary, valued};
use crate::store::Portfolio;

/// Parks where the answer is not kept, and always with `live=true`.
pub fn holdings(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let broker = parameter(call, "broker", "This is a or b.", Broker::parse)?;
    let live = parameter(call, "live", "This is true or false.", switch)?.unwrap_or(false);
    let day = state.market_day(state.clock.now()).day;
    if !live {
        return answer(state, call, reply, View::Holdings { broker, day }, move |store, id| {
            written(&store.portfolio(id)?, broker, day, &[])
        });
    }
    let prices = Prices::of(state);
    let id = call.caller().id;
    let (etag, body) = on_lane(state, MAKE_DEADLINE_MS, move |store| {
        let mut portfolio = store.portfolio(id)?;
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
) -> Result<Vec<u8>, Unmade> {
    let shown = |of: Broker| broker.is_none_or(|broker| broker == of);
    let syncs = Syncs::of(portfolio, shown);
    let holdings = portfolio.holdings.iter().enumerate().filter(|(_, row)| shown(row.broker));
    let rows = valued(holdings.clone().map(|(_, row)| row))?;
    let live = holdings.map(|(at, _)| prices.get(at).and_then(Option::as_ref));
    let summary = summary(&rows, day)?;
    let merged = merged(&rows)?;
    let mut out = Vec::with_capacity(512 * (rows.len() + 1));
    write_object(&mut out, |object| {
        object.list("holdings", rows.iter().zip(live), |out, (row, live)| {
            write_object(out, |object| holding(object, row, live, &syncs));
        });
        object.object("summary", |object| {
            totals(object, &summary, day, &syncs);
            object.list("merged", &merged, |out, merged| {
                write_object(out, |object| instrument(object, merged));
            });
        });
    });
    Ok(out)
}

fn holding(object: &mut Object<'_>, row: &Valued<'_>, live: Option<&Live>, syncs: &Syncs) {
    let Valued { holding, valuation } = row;
    object.text("broker", holding.broker.as_str()).text("exchange", &holding.exchange);
    object.text("tradingsymbol", &holding.tradingsymbol);
    object.text_or_null("isin", holding.isin.as_deref());
    object.exact("quantity", valuation.quantity).exact("t1_quantity", holding.t1_quantity);
    object.exact("pledged_quantity", holding.pledged_quantity);
    object.exact("mtf_quantity", holding.mtf_quantity);
    object.exact("disputed_quantity", holding.disputed_quantity);
    object.money("average_price", holding.average_price());
    known_cost(object, holding.cost);
    object.money("last_price", holding.last_price);
    object.money("close_price", holding.close_price);
    object.money("invested", valuation.invested);
    object.money("current_value", valuation.current_value);
    object.money("pnl", valuation.pnl).money("pnl_pct", valuation.pnl_pct);
    object.money("broker_pnl", holding.broker_pnl);
    let as_of = holding.last_price.map(|_| iso(holding.as_of_ms));
    object.text_or_null("as_of", as_of.as_deref());
    object.text_or_null("synced_at", syncs.synced_at(holding.broker));
    if let Some(Live { quote, stale }) = live {
        if let Some(delay_s) = quote.delay_s {
            object.count("delay_s", delay_s as usize);
        }
        object.text("source", quote.source.as_str()).flag("stale", *stale);
    }
    object.flag("unresolved", holding.unresolved).flag("discrepancy", holding.discrepancy);
    object.flag("corporate_action", holding.mark.is_some());
    let simulated = live.is_some_and(|live| live.quote.simulated);
    object.mark("simulated", simulated || syncs.simulated(holding.broker));
}

/// What is known of the cost where that is not the cost of all shares.
fn known_cost(object: &mut Object<'_>, cost: Option<Cost>) {
    match cost {
        Some(Cost::Part { quantity, cost }) => object.object("known_cost", |object| {
            object.exact("quantity", quantity).money("cost", cost);
        }),
        _ => object.null("known_cost"),
    };
}

fn instrument(object: &mut Object<'_>, merged: &Merged<'_>) {
    object.text("isin", merged.isin).text("tradingsymbol", merged.tradingsymbol);
    object.exact("quantity", merged.quantity).money("average_price", merged.average_price);
    object.money("invested", merged.valuation.invested);
    object.money("current_value", merged.valuation.current_value);
    object.money("pnl", merged.valuation.pnl).money("pnl_pct", merged.valuation.pnl_pct);
    object.list("parts", &merged.parts, |out, part| {
        write_object(out, |object| {
            object.text("broker", part.holding.broker.as_str());
            object.text("exchange", &part.holding.exchange);
            object.text("tradingsymbol", &part.holding.tradingsymbol);
            object.exact("quantity", part.valuation.quantity);
            object.money("current_value", part.valuation.current_value);
        });
    });
}
