//! `GET /api/portfolio/holdings`: holdings by row, in total, and across brokers.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::api::call::{Call, Handled};
use crate::api::lane::compute;
use crate::api::portfolio::answer::{Syncs, answer, totals};
use crate::api::query::parameter;
use crate::api::replies::NO_STORE;
use crate::api::state::State;
use crate::base::{Account, Broker, Clock, Cost, Holding, Quote, Words, clock};
use crate::cache::demand::Demand;
use crate::cache::{L1, Peek, Pending, View};
use crate::http::document::coding::etag;
use crate::http::document::variants::JSON;
use crate::http::{Problem, Response};
use crate::market::{InstrumentList, Sectors};
use crate::portfolio::{
    Merged, Overflow, Owned, Valued, add, day_change, merged, owned, summary, valued,
};
use crate::store::{Portfolio, Store};
use crate::views::holdings::{
    Allocation, Holding as HoldingView, Holdings, HoldingsSummary, KnownCost, MergedHolding,
    MergedPart, Slice,
};
use crate::views::values;
use crate::views::values::{Day, Delay, Instant, Money, Percent, Quantity, Simulated};

/// Parks if the response is not cached, and always with `live=true`.
pub(crate) fn holdings(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let broker = parameter(call.query(), "broker", "This is a or b.", Broker::parse)?;
    let live = switch(call, "live")?;
    let day = state.market_day(state.clock.now()).day;
    if !live {
        let view = View::Holdings { broker, day };
        let lists = Lists::of(state);
        let write = move |portfolio: &Portfolio| written(portfolio, broker, day, &[], &lists);
        return answer(state, call, response, view, Store::portfolio, write);
    }
    let mut portfolio = state.store.portfolio(call.caller().id)?;
    let prices = Prices::of(state);
    let lists = Lists::of(state);
    let (etag, body) = compute(&state.portfolio.lane, move || {
        let shown = |row: &Holding| broker.is_none_or(|broker| broker == row.account.broker());
        let live = prices.revalue(&mut portfolio.holdings, shown);
        let body = written(&portfolio, broker, day, &live, &lists)?;
        Ok((etag(&body), body))
    })?;
    let verdict = call.request.preconditions().judge(Some(etag.as_bytes()))?;
    response.send_owned(verdict.status(), JSON, &[("ETag", &etag), NO_STORE], body);
    Ok(())
}

/// Information about companies.
struct Lists {
    instruments: Arc<InstrumentList>,
    sectors: Arc<Sectors>,
}

impl Lists {
    fn of(state: &State) -> Self {
        let instruments = state.instruments.load_full();
        let sectors = state.sectors.load_full();
        Self { instruments, sectors }
    }
}

/// A parameter that is off if it is absent.
pub(super) fn switch(call: &Call<'_>, name: &'static str) -> Result<bool, Problem> {
    let given = parameter(call.query(), name, "This is true or false.", |text| text.parse().ok())?;
    Ok(given.unwrap_or(false))
}

fn written(
    portfolio: &Portfolio,
    broker: Option<Broker>,
    day: Option<Date>,
    prices: &[Option<Live>],
    Lists { instruments: names, sectors }: &Lists,
) -> Result<Vec<u8>, Problem> {
    let shown = |of: Account| broker.is_none_or(|broker| broker == of.broker());
    let syncs = Syncs::of(portfolio, shown);
    // All rows are valued, because a row may take its previous close from the other broker's row.
    let all = valued(&portfolio.holdings)?;
    let holdings = all.into_iter().enumerate().filter(|(_, row)| shown(row.holding.account));
    let (places, rows): (Vec<usize>, Vec<Valued<'_>>) = holdings.unzip();
    let live = places.into_iter().map(|at| prices.get(at).and_then(Option::as_ref));
    let summary = summary(&rows, day)?;
    let merged = merged(&rows)?;
    let owned = owned(&rows)?;
    let beside = |parts: &[Valued<'_>]| {
        let change = day_change(parts, day)?;
        let first = parts[0].holding;
        let listed = || names.name_of(&first.symbol()?);
        let name = first.isin.as_deref().and_then(|isin| sectors.name_of(isin));
        Ok::<_, Overflow>(Beside {
            // Instrument lists have capitals, cut short.
            name: name.or_else(listed),
            day_pnl: change.map(|change| Money(change.amount)),
            day_change: change.and_then(|change| change.pct).map(Percent),
            share: owned.share_of(parts)?.map(Percent),
        })
    };
    let mut holdings = Vec::with_capacity(rows.len());
    for (row, live) in rows.iter().zip(live) {
        let beside = beside(std::slice::from_ref(row))?;
        holdings.push(holding(row, beside, live, &syncs));
    }
    let mut instruments = Vec::with_capacity(merged.len());
    for merged in &merged {
        let beside = beside(&merged.parts)?;
        instruments.push(instrument(merged, beside));
    }
    let allocation = Allocation {
        brokers: slices(&rows, owned, |holding| Some(holding.account.as_str()))?,
        sectors: slices(&rows, owned, |holding| sectors.of(holding.isin.as_deref()?))?,
        sectors_as_of: Day(sectors.as_of),
        sectors_source: &sectors.source,
    };
    let totals = totals(&summary, day, &syncs);
    let summary = HoldingsSummary { totals, merged: instruments, allocation };
    let view = Holdings { holdings, summary };
    let mut out = Vec::with_capacity(512 * (rows.len() + 1));
    values::write(&mut out, &view);
    Ok(out)
}

/// The values of the rows with a price, added up by `key`, with their parts of what is `owned`. The
/// largest sum comes first, and that of the rows without a key last.
fn slices<'a>(
    rows: &[Valued<'a>],
    owned: Owned,
    key: impl Fn(&'a Holding) -> Option<&'a str>,
) -> Result<Vec<Slice<'a>>, Overflow> {
    let mut sums: Vec<(Option<&str>, Decimal, Vec<Valued<'_>>)> = Vec::new();
    for row in rows {
        let Some(value) = row.valuation.current_value else { continue };
        let of = key(row.holding);
        match sums.iter_mut().find(|(known, ..)| *known == of) {
            Some((_, sum, parts)) => {
                add(sum, value)?;
                parts.push(*row);
            }
            None => sums.push((of, value, vec![*row])),
        }
    }
    sums.sort_by_key(|(of, sum, _)| (of.is_none(), std::cmp::Reverse(*sum)));
    let slice = |(of, sum, parts): (_, _, Vec<Valued<'_>>)| {
        let share_pct = owned.share_of(&parts)?.map(Percent);
        Ok::<_, Overflow>(Slice { of, current_value: Money(sum), share_pct })
    };
    sums.into_iter().map(slice).collect()
}

/// What a row or an instrument has besides its own amounts.
#[derive(Clone, Copy)]
struct Beside<'a> {
    name: Option<&'a str>,
    day_pnl: Option<Money>,
    day_change: Option<Percent>,
    share: Option<Percent>,
}

fn holding<'a>(
    row: &Valued<'a>,
    beside: Beside<'a>,
    live: Option<&Live>,
    syncs: &Syncs,
) -> HoldingView<'a> {
    let Valued { holding, valuation } = row;
    let simulated = live.is_some_and(|live| live.quote.simulated);
    HoldingView {
        broker: holding.account.broker(),
        exchange: &holding.exchange,
        tradingsymbol: &holding.tradingsymbol,
        name: beside.name,
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
        day_pnl: beside.day_pnl,
        day_change_pct: beside.day_change,
        share_pct: beside.share,
        broker_pnl: holding.broker_pnl.map(Money),
        as_of: holding.last_price.map(|_| Instant::of_ms(holding.as_of_ms)),
        synced_at: syncs.synced_at(holding.account),
        source: live.map(|live| live.quote.source),
        delay_s: live.and_then(|live| live.quote.delay_s).map(Delay),
        stale: live.map(|live| live.stale),
        unresolved: holding.unresolved,
        discrepancy: holding.discrepancy,
        corporate_action: holding.mark.is_some(),
        simulated: Simulated(simulated || syncs.simulated(holding.account)),
    }
}

/// The known part of the cost, if the cost of some shares is unknown.
fn known_cost(cost: Option<Cost>) -> Option<KnownCost> {
    match cost {
        Some(Cost::Part { quantity, cost }) => {
            Some(KnownCost { quantity: Quantity(quantity), cost: Money(cost) })
        }
        _ => None,
    }
}

fn instrument<'a>(merged: &'a Merged<'a>, beside: Beside<'a>) -> MergedHolding<'a> {
    MergedHolding {
        isin: merged.isin,
        tradingsymbol: merged.tradingsymbol,
        name: beside.name,
        quantity: Quantity(merged.quantity),
        average_price: merged.average_price.map(Money),
        invested: merged.valuation.invested.map(Money),
        current_value: merged.valuation.current_value.map(Money),
        pnl: merged.valuation.pnl.map(Money),
        pnl_pct: merged.valuation.pnl_pct.map(Percent),
        day_pnl: beside.day_pnl,
        day_change_pct: beside.day_change,
        share_pct: beside.share,
        parts: merged.parts.iter().map(part).collect(),
    }
}

fn part<'a>(part: &Valued<'a>) -> MergedPart<'a> {
    MergedPart {
        broker: part.holding.account.broker(),
        exchange: &part.holding.exchange,
        tradingsymbol: &part.holding.tradingsymbol,
        quantity: Quantity(part.valuation.quantity),
        current_value: part.valuation.current_value.map(Money),
    }
}

// ---- Live prices
//
// `live=true`: prices holdings from the quote cache and asks the feeds for the symbols missing
// from it.
//
// Runs on the portfolio lane and waits for no feed. A symbol that it asks for is fetched with one
// of the feed's next batches, so a request some seconds later has its price.

/// A quote that replaced the broker's price.
pub(crate) struct Live {
    pub(crate) quote: Quote,
    pub(crate) stale: bool,
}

/// The parts of the state that a job on the lane needs to price holdings.
pub(crate) struct Prices {
    l1: Arc<L1>,
    pending: Pending,
    clock: Clock,
}

impl Prices {
    /// The parts as of this moment.
    pub(crate) fn of(state: &State) -> Self {
        Self {
            l1: Arc::clone(&state.l1),
            pending: state.pending.clone(),
            clock: state.clock.clone(),
        }
    }

    /// Puts fresher prices into the rows that are `shown`. Returns one entry a row, `None` if the
    /// row keeps its own price.
    pub(crate) fn revalue(
        &self,
        holdings: &mut [Holding],
        shown: impl Fn(&Holding) -> bool,
    ) -> Vec<Option<Live>> {
        let now_mono_ms = self.clock.monotonic_ms();
        let mut demand = Demand::default();
        let live = holdings.iter_mut().map(|row| {
            let symbol = row.symbol().filter(|_| shown(row))?;
            let seen = self.l1.peek(symbol.as_str(), now_mono_ms);
            demand.note(symbol, &seen);
            let Peek::Known { quote, stale, .. } = seen else { return None };
            if row.last_price.is_some() && quote.as_of.as_millisecond() <= row.as_of_ms {
                return None;
            }
            let as_of_ms = quote.as_of.as_millisecond();
            // The broker's previous close applies only on its own date.
            let own = row.close_price.filter(|_| date_of(row.as_of_ms) == date_of(as_of_ms));
            row.last_price = Some(quote.last_price);
            row.close_price = quote.previous_close.or(own);
            row.change_pct = None;
            row.as_of_ms = as_of_ms;
            Some(Live { quote, stale })
        });
        let live = live.collect();
        demand.want(&self.l1, &self.pending, now_mono_ms);
        live
    }
}

/// The IST date of a time in Unix milliseconds.
fn date_of(ms: i64) -> Option<Date> {
    Timestamp::from_millisecond(ms).ok().map(|at| clock::zoned(at).date())
}
