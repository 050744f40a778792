//! `GET /api/portfolio/holdings`: what is owned, row by row, in total, and across brokers.

use super::live::{Live, Prices};
use super::{MAKE_DEADLINE_MS, Syncs, Unmade, answer, iso, on_lane, parameter, switch, totals};
use crate::api::json::{Object, write_object};
use crate::api::{Call, State};
use crate::base::{Broker, Holding};
use crate::cache::View;
use crate::http::reply::JSON;
use crate::http::{Problem, Reply};
use crate::portfolio::{Merged, Valued, merged, summary, valuation};
use crate::store::Portfolio;

/// Parks where the answer is not kept, and always with `live=true`.
pub fn holdings(state: &State, call: &Call<'_>, reply: &mut Reply<'_>) -> Result<(), Problem> {
    let broker = parameter(call, "broker", "This is a or b.", Broker::parse)?;
    let live = parameter(call, "live", "This is true or false.", switch)?.unwrap_or(false);
    if !live {
        return answer(state, call, reply, View::Holdings { broker }, move |store, id| {
            written(&store.portfolio(id)?, broker, &[])
        });
    }
    let prices = Prices::of(state);
    let id = call.caller().id;
    let body = on_lane(state, MAKE_DEADLINE_MS, move |store| {
        let mut portfolio = store.portfolio(id)?;
        let shown = |row: &Holding| broker.is_none_or(|broker| broker == row.broker);
        let live = prices.revalue(&mut portfolio.holdings, shown);
        written(&portfolio, broker, &live)
    })?;
    reply.body().extend_from_slice(&body);
    reply.send(200, JSON, &[("Cache-Control", "no-store")]);
    Ok(())
}

fn written(
    portfolio: &Portfolio,
    broker: Option<Broker>,
    prices: &[Option<Live>],
) -> Result<Vec<u8>, Unmade> {
    let shown = |of: Broker| broker.is_none_or(|broker| broker == of);
    let syncs = Syncs::of(portfolio, shown);
    let mut rows = Vec::with_capacity(portfolio.holdings.len());
    let mut live = Vec::with_capacity(portfolio.holdings.len());
    for (at, holding) in portfolio.holdings.iter().enumerate() {
        if shown(holding.broker) {
            rows.push(Valued { holding, valuation: valuation(holding)? });
            live.push(prices.get(at).and_then(Option::as_ref));
        }
    }
    let summary = summary(rows.iter().map(|row| &row.valuation))?;
    let merged = merged(&rows)?;
    let mut out = Vec::with_capacity(512 * (rows.len() + 1));
    write_object(&mut out, |object| {
        object.list("holdings", rows.iter().zip(live), |out, (row, live)| {
            write_object(out, |object| holding(object, row, live, &syncs));
        });
        object.object("summary", |object| {
            totals(object, &summary, &syncs);
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
    object.money("average_price", holding.average_price);
    object.money("last_price", holding.last_price);
    object.money("close_price", holding.close_price);
    object.money("pnl", valuation.pnl).money("pnl_pct", valuation.pnl_pct);
    object.money("broker_pnl", holding.broker_pnl);
    object.text("as_of", &iso(holding.as_of_ms));
    object.text_or_null("synced_at", syncs.synced_at(holding.broker));
    if let Some(Live { quote, stale }) = live {
        if let Some(delay_s) = quote.delay_s {
            object.count("delay_s", delay_s as usize);
        }
        object.text("source", quote.source.as_str()).flag("stale", *stale);
    }
    object.flag("unresolved", holding.unresolved).flag("discrepancy", holding.discrepancy);
    object.flag("corporate_action", holding.corporate_action);
    let simulated = live.is_some_and(|live| live.quote.simulated);
    object.mark("simulated", simulated || syncs.simulated(holding.broker));
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
        });
    });
}
