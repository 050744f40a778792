//! `GET /api/trades` and `/api/trades.csv`: the trades that fit, newest first.

use jiff::civil::Date;

use crate::api::call::{Call, Handled};
use crate::api::query::parameter;
use crate::api::state::State;
use crate::api::trades::answer::{Document, answer};
use crate::api::trades::book::Book;
use crate::api::trades::csv::Csv;
use crate::api::trades::paging::page_of;
use crate::api::trades::refusals::too_many_rows;
use crate::base::{Isin, Words};
use crate::http::{Problem, Response};
use crate::ledger::row::{AccountName, Mark, Side};
use crate::ledger::trades::{Conflict, Trade, Trades};
use crate::views::trades::imports::FiguresView;
use crate::views::trades::list::{ChargesView, TradeSource, TradeView, Trades as TradesView};
use crate::views::values::{Day, Exact, Quantity};

/// Trades on a page.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 500;
/// Rows of a CSV.
const CSV_ROWS_MAX: usize = 100_000;
/// Longest symbol that is looked for.
const SYMBOL_BYTES_MAX: usize = 64;

const CSV_COLUMNS: [&str; 20] = [
    "date",
    "time",
    "account",
    "symbol",
    "isin",
    "exchange",
    "segment",
    "series",
    "side",
    "quantity",
    "price",
    "product",
    "auction",
    "brokerage",
    "stt",
    "stamp_duty",
    "other_charges",
    "mark",
    "trade_id",
    "order_id",
];

pub(super) const DATE: &str = "A date as 2026-11-20.";

/// A date in its one form.
pub(super) fn date(text: &str) -> Option<Date> {
    text.parse()
        .ok()
        .filter(|date: &Date| date.to_string() == text)
}

/// What a trade has to be.
#[derive(Default)]
struct Filter {
    from: Option<Date>,
    to: Option<Date>,
    symbol: Option<String>,
    isin: Option<Isin>,
    account: Option<AccountName>,
    side: Option<Side>,
}

impl Filter {
    fn of(query: &[u8]) -> Result<Self, Problem> {
        let symbol = |text: &str| {
            (1..=SYMBOL_BYTES_MAX)
                .contains(&text.len())
                .then(|| text.to_ascii_uppercase())
        };
        Ok(Self {
            from: parameter(query, "from", DATE, date)?,
            to: parameter(query, "to", DATE, date)?,
            symbol: parameter(query, "symbol", "A symbol as in the file.", symbol)?,
            isin: parameter(query, "isin", "An ISIN as INE002A01018.", Isin::parse)?,
            account: parameter(query, "account", "An account's name.", AccountName::parse)?,
            side: parameter(query, "side", "Either buy or sell.", Side::parse)?,
        })
    }

    fn takes(&self, trade: &Trade) -> bool {
        let is_of = |isin: &Isin| trade.isin == Some(*isin) || trade.security.isin() == Some(*isin);
        self.from.is_none_or(|from| trade.date >= from)
            && self.to.is_none_or(|to| trade.date <= to)
            && self
                .symbol
                .as_ref()
                .is_none_or(|it| trade.symbol.eq_ignore_ascii_case(it))
            && self.isin.as_ref().is_none_or(is_of)
            && self
                .account
                .as_ref()
                .is_none_or(|account| trade.account == *account)
            && self.side.is_none_or(|side| trade.side == side)
    }
}

/// A trade, or two rows of one that differ.
#[derive(Clone, Copy)]
enum Item<'a> {
    Trade(&'a Trade),
    Conflict(&'a Conflict),
}

impl<'a> Item<'a> {
    fn trade(self) -> &'a Trade {
        match self {
            Self::Trade(trade) => trade,
            Self::Conflict(conflict) => &conflict.trade,
        }
    }

    fn id(self) -> String {
        match self {
            Self::Trade(trade) => trade.id(),
            Self::Conflict(conflict) => conflict.id.clone(),
        }
    }
}

/// The trades that fit, newest first.
fn found<'a>(trades: &'a Trades, filter: &Filter) -> Vec<Item<'a>> {
    let all = trades
        .all
        .iter()
        .filter(|trade| filter.takes(trade))
        .map(Item::Trade);
    let conflicts = trades
        .conflicts
        .iter()
        .filter(|conflict| filter.takes(&conflict.trade));
    let mut found: Vec<Item<'_>> = all.chain(conflicts.map(Item::Conflict)).collect();
    found.sort_by(|one, other| other.trade().cmp_in_time(one.trade()));
    found
}

/// `GET /api/trades`.
pub(crate) fn list(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let filter = Filter::of(call.query())?;
    let page = page_of(call.query(), call.caller().id, LIMIT_DEFAULT, LIMIT_MAX)?;
    answer(state, call, response, move |book: &Book| {
        let found = found(&book.trades, &filter);
        let (shown, next_cursor) = page.of(&found, |item| item.id());
        let trades = shown.iter().map(|item| view(&book.trades, *item)).collect();
        Ok(Document::json(&TradesView {
            trades,
            next_cursor,
        }))
    })
}

fn view<'a>(trades: &'a Trades, item: Item<'a>) -> TradeView<'a> {
    let trade = item.trade();
    let (mark, first, second) = match item {
        Item::Trade(_) => (trade.mark, None, None),
        Item::Conflict(Conflict { first, second, .. }) => (
            Some(Mark::Conflict),
            Some(FiguresView::of(*first)),
            Some(FiguresView::of(*second)),
        ),
    };
    let is_known = mark != Some(Mark::Conflict);
    TradeView {
        id: item.id(),
        account: trade.account.as_str(),
        date: Day(trade.date),
        time: trade.time.map(|time| time.to_string()),
        symbol: &trade.symbol,
        isin: trade.isin.as_ref().map(Isin::as_str),
        exchange: trade.exchange.as_str(),
        segment: trade.segment.as_str(),
        series: trade.series.as_deref(),
        side: trade.side.as_str(),
        quantity: is_known.then_some(Quantity(trade.quantity)),
        price: is_known.then_some(Exact(trade.price)),
        product: trade.product.as_deref(),
        auction: trade.auction,
        trade_id: trade.trade_id.as_deref(),
        order_id: trade.order_id.as_deref(),
        charges: ChargesView {
            brokerage: trade.charges.brokerage.map(Exact),
            stt: trade.charges.stt.map(Exact),
            stamp_duty: trade.charges.stamp_duty.map(Exact),
            other: trade.charges.other.map(Exact),
        },
        mark: mark.map(Mark::as_str),
        first,
        second,
        sources: trade
            .sources
            .iter()
            .filter_map(|source| {
                let import = trades.imports.get(source.import as usize)?;
                Some(TradeSource {
                    import_id: import.id.parse().ok()?,
                    format: &import.format,
                    line: source.line,
                })
            })
            .collect(),
    }
}

/// `GET /api/trades.csv`.
pub(crate) fn csv(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let filter = Filter::of(call.query())?;
    answer(state, call, response, move |book: &Book| {
        let found = found(&book.trades, &filter);
        if found.len() > CSV_ROWS_MAX {
            return Err(too_many_rows(CSV_ROWS_MAX));
        }
        let mut csv = Csv::with_columns(&CSV_COLUMNS);
        for item in found {
            add_row(&mut csv, item);
        }
        Ok(Document::csv(csv.finished(), "trades.csv"))
    })
}

fn add_row(csv: &mut Csv, item: Item<'_>) {
    let trade = item.trade();
    let is_known = matches!(item, Item::Trade(_));
    let mark = if is_known {
        trade.mark
    } else {
        Some(Mark::Conflict)
    };
    let charges = &trade.charges;
    csv.text(&trade.date.to_string());
    csv.text(&trade.time.map(|time| time.to_string()).unwrap_or_default());
    csv.text(trade.account.as_str());
    csv.text(&trade.symbol);
    csv.text(trade.isin.as_ref().map_or("", Isin::as_str));
    csv.text(trade.exchange.as_str());
    csv.text(trade.segment.as_str());
    csv.text(trade.series.as_deref().unwrap_or_default());
    csv.text(trade.side.as_str());
    csv.number(is_known.then_some(trade.quantity));
    csv.number(is_known.then_some(trade.price));
    csv.text(trade.product.as_deref().unwrap_or_default());
    csv.text(if trade.auction { "true" } else { "false" });
    for charge in [
        charges.brokerage,
        charges.stt,
        charges.stamp_duty,
        charges.other,
    ] {
        csv.number(charge);
    }
    csv.text(mark.map_or("", Mark::as_str));
    csv.text(trade.trade_id.as_deref().unwrap_or_default());
    csv.text(trade.order_id.as_deref().unwrap_or_default());
    csv.end_row();
}
