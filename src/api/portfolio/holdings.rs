//! `GET /api/portfolio/holdings`: holdings by row, in total, and across brokers.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::api::call::{Call, Handled};
use crate::api::lane::compute;
use crate::api::portfolio::answer::{Syncs, answer, totals};
use crate::api::portfolio::moved_rows::Row;
use crate::api::query::{parameter, switch};
use crate::api::state::State;
use crate::base::{Account, Broker, Clock, Cost, Holding, Quote, Words, clock};
use crate::cache::demand::Demand;
use crate::cache::{L1, Peek, Pending, View};
use crate::http::document::coding::content_tag;
use crate::http::{CachePolicy, Problem, Response, Variants};
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
    let live = switch(call.query(), "live")?;
    let day = state.market_day(state.clock.now()).day;
    let since = since(call, live)?;
    if !live {
        let view = View::Holdings { broker, day };
        let lists = Lists::of(state);
        let write = move |portfolio: &Portfolio| written(portfolio, broker, day, &[], &lists);
        return answer(state, call, response, view, Store::portfolio, write);
    }
    let mut portfolio = state.store.portfolio(call.caller().id)?;
    let prices = Prices::of(state);
    let lists = Lists::of(state);
    let moved = Arc::clone(&state.portfolio.moved);
    let whose = (call.caller().id, broker);
    let now_mono_ms = state.clock.monotonic_ms();
    let answer = compute(&state.portfolio.lane, move || {
        let shown = |row: &Holding| broker.is_none_or(|broker| broker == row.account.broker());
        let live = prices.revalue(&mut portfolio.holdings, shown);
        viewed(&portfolio, broker, day, &live, &lists, |mut view| {
            let body = values::to_vec(&view);
            let tag = content_tag(&body);
            let rows = rows_of(&view);
            let moved = moved.note(whose, &tag, &rows, since.as_deref(), now_mono_ms);
            let (Some(moved), Some(since)) = (moved, &since) else {
                return Variants::tagged(&body, &tag, &LIVE);
            };
            keep_moved(&mut view, &moved);
            view.since = Some(since.clone());
            Variants::tagged(&values::to_vec(&view), &tag, &LIVE)
        })
    })?;
    let request = call.request;
    response.send_document(answer.select(request.accept_encoding(), request.preconditions())?);
    Ok(())
}

/// Live holdings are of an instant, and sent each few seconds.
const LIVE: CachePolicy = CachePolicy {
    cache_control: "no-store",
    vary: "Accept-Encoding, Authorization, Cookie",
    // A smaller body fits into one packet anyway.
    compressed_from_bytes: 1_024,
    ..CachePolicy::JSON
};

/// Longest tag that is taken; ours have 24 characters, and a coding's name.
const SINCE_CHARS_MAX: usize = 64;

/// The tag of the answer that the client has: its `ETag`, with quotes or without, also one that a
/// proxy has made weak. A compressed answer's tag ends with the coding.
fn since(call: &Call<'_>, live: bool) -> Result<Option<String>, Problem> {
    let read = |text: &str| {
        let tag = text.trim_start_matches("W/").trim_matches('"');
        let tag = tag.split('-').next().unwrap_or_default();
        let is_tag = !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (text.len() <= SINCE_CHARS_MAX && is_tag && live).then(|| tag.to_owned())
    };
    parameter(call.query(), "since", "The ETag of an earlier answer, with live=true.", read)
}

/// The rows of both lists, by what names them.
fn rows_of(view: &Holdings<'_>) -> Vec<Row> {
    let holdings = view.holdings.iter().map(|row| Row {
        name: format!(
            "{} {}:{} {}",
            row.broker,
            row.exchange,
            row.tradingsymbol,
            row.isin.unwrap_or_default()
        ),
        bytes: values::to_vec(row),
    });
    let merged = view.summary.merged.iter();
    let merged = merged.map(|row| Row {
        name: row.isin.to_owned(),
        bytes: values::to_vec(row),
    });
    holdings.chain(merged).collect()
}

/// Leaves the rows at these places of [`rows_of`].
fn keep_moved(view: &mut Holdings<'_>, moved: &HashSet<usize>) {
    let mut places = 0..;
    let mut is_moved = || places.next().is_some_and(|place| moved.contains(&place));
    view.holdings.retain(|_| is_moved());
    view.summary.merged.retain(|_| is_moved());
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
        Self {
            instruments,
            sectors,
        }
    }
}

fn written(
    portfolio: &Portfolio,
    broker: Option<Broker>,
    day: Option<Date>,
    prices: &[Option<Live>],
    lists: &Lists,
) -> Result<Vec<u8>, Problem> {
    viewed(portfolio, broker, day, prices, lists, |view| {
        let mut out = Vec::with_capacity(512 * (view.holdings.len() + 1));
        values::write(&mut out, &view);
        out
    })
}

/// Makes the document, and what is made of it.
fn viewed<Made>(
    portfolio: &Portfolio,
    broker: Option<Broker>,
    day: Option<Date>,
    prices: &[Option<Live>],
    Lists {
        instruments: names,
        sectors,
    }: &Lists,
    make: impl FnOnce(Holdings<'_>) -> Made,
) -> Result<Made, Problem> {
    let shown = |of: Account| broker.is_none_or(|broker| broker == of.broker());
    let syncs = Syncs::of(portfolio, shown);
    // All rows are valued, because a row may take its previous close from the other broker's row.
    let all = valued(&portfolio.holdings)?;
    let holdings = all
        .into_iter()
        .enumerate()
        .filter(|(_, row)| shown(row.holding.account));
    let (places, rows): (Vec<usize>, Vec<Valued<'_>>) = holdings.unzip();
    let live = places
        .into_iter()
        .map(|at| prices.get(at).and_then(Option::as_ref));
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
    let summary = HoldingsSummary {
        totals,
        merged: instruments,
        allocation,
    };
    Ok(make(Holdings {
        since: None,
        holdings,
        summary,
    }))
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
        let Some(value) = row.valuation.current_value else {
            continue;
        };
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
        Ok::<_, Overflow>(Slice {
            of,
            current_value: Money(sum),
            share_pct,
        })
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
        Some(Cost::Part { quantity, cost }) => Some(KnownCost {
            quantity: Quantity(quantity),
            cost: Money(cost),
        }),
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
            let Peek::Known { quote, stale, .. } = seen else {
                return None;
            };
            if row.last_price.is_some() && quote.as_of.as_millisecond() <= row.as_of_ms {
                return None;
            }
            let as_of_ms = quote.as_of.as_millisecond();
            // The broker's previous close applies only on its own date.
            let own = row
                .close_price
                .filter(|_| clock::date_of_ms(row.as_of_ms) == clock::date_of_ms(as_of_ms));
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
