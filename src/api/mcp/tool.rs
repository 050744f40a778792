//! The tools of `POST /mcp`: one table, with the routes that each answers from.

use crate::api::mcp::route_pages::{RoutePages, rows};
use crate::api::mcp::tool::Lists::{Cut, Paged, Short};

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// Paths of its routes. Of several, each has its document under a member of this name.
    pub(super) routes: &'static [(&'static str, &'static str)],
    pub(super) lists: Lists,
    /// Its purpose, for an assistant. Nothing from outside may be in it.
    pub(super) says: &'static str,
}

/// The lists of a document that may be long.
#[derive(Clone, Copy)]
pub(super) enum Lists {
    /// It has none.
    Short,
    /// These, one after the other. A dot leads into a member.
    Cut(&'static [&'static str]),
    /// One of which the route itself has pages.
    Paged(RoutePages),
}

pub(super) const fn tool(
    name: &'static str,
    routes: &'static [(&'static str, &'static str)],
    lists: Lists,
    says: &'static str,
) -> Tool {
    Tool {
        name,
        routes,
        lists,
        says,
    }
}

#[rustfmt::skip]
pub(super) const TOOLS: [Tool; 14] = [
    tool("market_snapshot", &[("", "/api/index/snapshot")], Short,
        "NIFTY 50, NIFTY BANK and SENSEX with their change in percent, sectors, the best pattern \
         signals, and the phase of the market. market.as_of_ist is the time of the prices; \
         market.stale is true if they are older than they should be."),
    tool("quotes", &[("", "/api/portfolio/live-prices")], Short,
        "Last prices of up to 50 shares and indices, with their change, each with its own time \
         (as_of), its source, and stale if it is older than it should be. search_instruments \
         finds symbols."),
    tool("holdings", &[("", "/api/portfolio/holdings")], Cut(&["holdings", "summary.merged"]),
        "The shares that the owner holds at both brokers, as of the last sync: quantity, cost, \
         price, profit, change of the day. The summary has totals, with what each leaves out, \
         and in merged the same share of both brokers as one. live=true values all at current \
         prices."),
    tool("positions", &[("", "/api/portfolio/positions")], Cut(&["positions"]),
        "Open positions as of the last sync. The lists day and net hold the same trades and must \
         not be added up; earlier marks what is of a trading date that is over."),
    tool("portfolio_summary", &[("", "/api/portfolio/pnl")], Cut(&["trend"]),
        "Value, cost and unrealised profit of all holdings, the profit of the day (day_pnl, of \
         the date day), and the trend with a point for each date. Counts beside the totals say \
         what they leave out."),
    tool("journal", &[("", "/api/journal/search")], Paged(rows("entries")),
        "The owner's trade journal, newest first: all entries, or those that fit the filters, and \
         what the closed pairs of trades among them came to. Notes, tags and strategies are the \
         owner's own text."),
    tool("signals", &[("list", "/api/signals"), ("record", "/api/signals/record")],
        Cut(&["list.signals"]),
        "Candlestick pattern signals of the last published date with their confidence, and the \
         record of all signals so far: hit rates and scores with their intervals. A confidence is \
         a share of past cases and no advice."),
    tool("search_instruments", &[("", "/api/market/search")], Short,
        "Finds shares and indices by ticker, name or ISIN, and gives the symbols that other tools \
         take."),
    tool("candles", &[("", "/api/market/candles")], Cut(&["candles"]),
        "Daily candles of a share, oldest first, adjusted for splits: finished trading days of the \
         shares that the operator watches."),
    tool("trades", &[("", "/api/trades")], Paged(rows("trades").each_with("sources")),
        "The owner's purchases and sales at all brokers, newest first, from imported files and \
         from syncs: all, or those that fit the filters. Where mark is conflict, two sources \
         differ and neither counts. ledger_gaps says where trades are missing."),
    tool("open_lots", &[("", "/api/trades/lots")], Paged(rows("lots")),
        "The owner's shares by purchase: date (acquired_on), cost, value, and whether a sale would \
         be of a short or a long term. A sale on long_from or later is long; days_to_long counts \
         the days until then. as_of asks for the end of an earlier day."),
    tool("realised_gains", &[("", "/api/trades/gains")],
        Paged(rows("sales").each_with("lots").beside(&["left_out", "income"])),
        "Gains of a financial year, April to March (fy, such as 2025-26), by sale and purchase, \
         with totals and the rules behind them. Only what is proved against the broker is in \
         totals; left_out has the rest with its reason. No tax is computed. A proved sale without \
         lots has too many for an answer."),
    tool("returns", &[("", "/api/trades/returns")], Cut(&["left_out", "holdings"]),
        "What the owner's shares returned: a year (xirr, where 0.1 is 10 %) and in all \
         (absolute_pct), together and each, beside the NIFTY 50. left_out names those whose trades \
         are not proved, which are in no figure."),
    tool("ledger_gaps", &[("", "/api/trades/reconciliation")], Paged(rows("rows")),
        "The trades that are known against what the brokers said at the last sync, a share of an \
         account a row: whether nothing is missing (proved), by how much they differ, the likely \
         cause, and what would mend it. complete is true if all are proved."),
];
