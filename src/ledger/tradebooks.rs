//! Files of trades: each format is a map of columns and what its cells mean.
//!
//! Columns are found by their names and never by their place.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::symbol::Exchange;
use crate::base::{Isin, Words};
use crate::ledger::cells;
use crate::ledger::file_format::{ClientId, ClientIdKind, FileFormat};
use crate::ledger::proposals::{FreeLine, FreeShares};
use crate::ledger::refusals::RefusedReason;
use crate::ledger::row::{Charges, Mark, Row, RowCharges, Segment, Side};
use crate::ledger::table::{Header, TableRow, columns, plain};

/// A fund's ISIN begins so.
const FUND: &str = "INF";

columns! {
    /// Broker A's tradebook in all its templates.
    struct Zerodha {
        symbol: needed ["symbol", "tradingsymbol", "symbolscrip", "scrip"],
        isin: optional ["isin"],
        date: needed ["tradedate"],
        exchange: needed ["exchange"],
        segment: optional ["segment"],
        series: optional ["series"],
        side: needed ["tradetype", "buysell", "transactiontype"],
        auction: optional ["auction"],
        quantity: needed ["quantity", "qty"],
        price: needed ["price"],
        trade_id: optional ["tradeid", "tradeno", "tradenumber"],
        order_id: optional ["orderid", "orderno", "ordernumber"],
        time: optional ["orderexecutiontime", "executiontime", "tradetime"],
        expiry: optional ["expirydate", "expiry"],
        client: optional ["clientid"],
    }
}

columns! {
    /// Broker B's list of all transactions: no ids and no times.
    struct Transactions {
        symbol: needed ["stocksymbol"],
        isin: needed ["isincode"],
        side: needed ["action"],
        quantity: needed ["quantity"],
        price: needed ["transactionprice"],
        brokerage: needed ["brokerage"],
        other: needed ["transactioncharges"],
        stamp_duty: needed ["stampduty"],
        stt: needed ["sttpaidnotpaid"],
        remarks: needed ["remarks"],
        date: needed ["transactiondate"],
        exchange: needed ["exchange"],
    }
}

columns! {
    /// Broker B's tradebook.
    struct Tradebook {
        date: needed ["date"],
        symbol: needed ["stock"],
        isin: optional ["isin", "isincode"],
        side: needed ["action"],
        quantity: needed ["qty"],
        price: needed ["price"],
        order_id: needed ["orderref"],
        demat: needed ["dpidclientdpid"],
        exchange: needed ["exchange"],
        stt: needed ["stt"],
        other: needed ["transactionandsebiturnovercharges"],
        stamp_duty: needed ["stampduty"],
        brokerage: needed ["brokerageservicetax"],
        all: needed ["brokerageincltaxes"],
    }
}

#[derive(Clone, Copy)]
enum Columns {
    Zerodha(Zerodha),
    Transactions(Transactions),
    Tradebook(Tradebook),
}

/// A table of trades, once its header is known.
pub(crate) struct TradeTable {
    columns: Columns,
    today: Date,
}

/// What one line says.
pub(crate) enum TradeLine {
    Trade(Row),
    /// A trade in a fund that is none of shares, since no tax was taken on it.
    OtherFund(Row, Isin),
    /// Shares that came or went without a price.
    Free(FreeLine),
}

impl TradeTable {
    /// The table of a header.
    pub(crate) fn find(header: &Header, today: Date) -> Option<Self> {
        let zerodha = || Zerodha::find(header).map(Columns::Zerodha);
        let transactions = || Transactions::find(header).map(Columns::Transactions);
        let tradebook = || Tradebook::find(header).map(Columns::Tradebook);
        let columns = zerodha().or_else(transactions).or_else(tradebook)?;
        Some(Self { columns, today })
    }

    pub(crate) fn format(&self) -> FileFormat {
        match self.columns {
            Columns::Zerodha(_) => FileFormat::ZerodhaTradebook,
            Columns::Transactions(_) => FileFormat::IciciTransactions,
            Columns::Tradebook(_) => FileFormat::IciciTradebook,
        }
    }

    /// The client that a line names.
    pub(crate) fn client(&self, row: &TableRow) -> Option<ClientId> {
        let id = |column| cells::stated(row, column).ok().flatten();
        match &self.columns {
            Columns::Zerodha(at) => ClientId::of(ClientIdKind::UserA, id(at.client)?),
            Columns::Tradebook(at) => ClientId::of(ClientIdKind::Demat, id(at.demat)?),
            Columns::Transactions(_) => None,
        }
    }

    pub(crate) fn read(&self, row: &TableRow) -> Result<TradeLine, RefusedReason> {
        match &self.columns {
            Columns::Zerodha(at) => at.read(row, self.today).map(TradeLine::Trade),
            Columns::Transactions(at) => at.read(row, self.today),
            Columns::Tradebook(at) => at.read(row, self.today),
        }
    }
}

fn side(row: &TableRow, column: Option<u32>) -> Result<Side, RefusedReason> {
    one_of(row, column, RefusedReason::SideUnknown)
}

fn exchange(row: &TableRow, column: Option<u32>) -> Result<Exchange, RefusedReason> {
    one_of(row, column, RefusedReason::OtherExchange)
}

/// The variant whose word stands there, in letters of any case.
fn one_of<W: Words>(
    row: &TableRow,
    column: Option<u32>,
    unknown: RefusedReason,
) -> Result<W, RefusedReason> {
    let word = cells::text(row, column)?.unwrap_or_default();
    let is_it = |variant: &W| word.eq_ignore_ascii_case(variant.word());
    W::EVERY.iter().copied().find(is_it).ok_or(unknown)
}

/// The exchange, and the segment where its name says that too: `NFO` is derivatives of the NSE.
fn market(
    row: &TableRow,
    column: Option<u32>,
) -> Result<(Exchange, Option<Segment>), RefusedReason> {
    let word = cells::text(row, column)?.unwrap_or_default();
    match word.to_ascii_uppercase().as_str() {
        "NFO" => Ok((Exchange::Nse, Some(Segment::Derivatives))),
        "BFO" => Ok((Exchange::Bse, Some(Segment::Derivatives))),
        "CDS" => Ok((Exchange::Nse, Some(Segment::Currency))),
        "BCD" => Ok((Exchange::Bse, Some(Segment::Currency))),
        _ => exchange(row, column).map(|exchange| (exchange, None)),
    }
}

fn segment(row: &TableRow, column: Option<u32>) -> Result<Option<Segment>, RefusedReason> {
    let Some(word) = cells::stated(row, column)? else {
        return Ok(None);
    };
    match word.to_ascii_uppercase().as_str() {
        "EQ" => Ok(Some(Segment::Equity)),
        "FO" | "F&O" | "NFO" | "BFO" => Ok(Some(Segment::Derivatives)),
        "CD" | "CDS" | "BCD" => Ok(Some(Segment::Currency)),
        "COM" => Ok(Some(Segment::Commodity)),
        _ => Err(RefusedReason::SegmentUnknown),
    }
}

fn auction(row: &TableRow, column: Option<u32>) -> Result<bool, RefusedReason> {
    let word = cells::stated(row, column)?.unwrap_or("false");
    match word.to_ascii_lowercase().as_str() {
        "false" | "0" => Ok(false),
        "true" | "1" => Ok(true),
        _ => Err(RefusedReason::AuctionUnknown),
    }
}

/// A charge. One that cannot be read is not known, and the trade stands without it.
fn charge(row: &TableRow, column: Option<u32>) -> Result<Option<Decimal>, RefusedReason> {
    match cells::amount(row, column) {
        Err(RefusedReason::AmountUnreadable | RefusedReason::CellError) => Ok(None),
        read => read,
    }
}

impl Zerodha {
    fn read(&self, row: &TableRow, today: Date) -> Result<Row, RefusedReason> {
        let (exchange, of_exchange) = market(row, self.exchange)?;
        let of_column = segment(row, self.segment)?;
        let expiry = cells::any_date(row, self.expiry);
        let expiry = expiry.map_err(|_| RefusedReason::ExpiryUnreadable)?;
        let of_expiry = expiry.map(|_| Segment::Derivatives);
        let segment = of_exchange
            .or(of_column)
            .or(of_expiry)
            .unwrap_or(Segment::Equity);
        Ok(Row {
            line: row.line,
            symbol: cells::symbol(row, self.symbol)?,
            isin: cells::isin(row, self.isin)?,
            exchange,
            segment,
            series: cells::word(row, self.series)?,
            date: cells::date(row, self.date, today)?,
            time: cells::time(row, self.time)?,
            side: side(row, self.side)?,
            quantity: cells::quantity(row, self.quantity)?,
            price: cells::price(row, self.price)?,
            trade_id: cells::id(row, self.trade_id)?,
            order_id: cells::id(row, self.order_id)?,
            product: None,
            auction: auction(row, self.auction)?,
            expiry,
            charges: RowCharges::default(),
            stt_paid: None,
            mark: None,
        })
    }
}

impl Transactions {
    fn read(&self, row: &TableRow, today: Date) -> Result<TradeLine, RefusedReason> {
        let date = cells::date(row, self.date, today)?;
        let side = side(row, self.side)?;
        let quantity = cells::quantity(row, self.quantity)?;
        let isin = cells::isin(row, self.isin)?;
        let remarks = plain(cells::text(row, self.remarks)?.unwrap_or_default());
        let is_free = cells::text(row, self.price)?.map(cells::decimal) == Some(Ok(Decimal::ZERO));
        let why = match () {
            () if remarks.contains("bonus") => Some(FreeShares::Bonus),
            () if remarks.contains("split") => Some(FreeShares::Split),
            () => is_free.then_some(FreeShares::Other),
        };
        if let Some(why) = why {
            let isin = isin.ok_or(RefusedReason::IsinMissing)?;
            return Ok(TradeLine::Free(FreeLine {
                line: row.line,
                isin,
                date,
                side,
                quantity,
                why,
            }));
        }
        let stt = plain(cells::stated(row, self.stt)?.unwrap_or_default());
        let stt_paid = match stt.as_str() {
            "sttpaid" | "paid" | "yes" => Some(true),
            "sttnotpaid" | "notpaid" | "no" => Some(false),
            _ => None,
        };
        let charges = Charges {
            brokerage: charge(row, self.brokerage)?,
            stt: None,
            stamp_duty: charge(row, self.stamp_duty)?,
            other: charge(row, self.other)?,
        };
        Ok(TradeLine::Trade(Row {
            line: row.line,
            symbol: cells::symbol(row, self.symbol)?,
            isin,
            exchange: exchange(row, self.exchange)?,
            segment: Segment::Equity,
            series: None,
            date,
            time: None,
            side,
            quantity,
            price: cells::price(row, self.price)?,
            trade_id: None,
            order_id: None,
            product: None,
            auction: false,
            expiry: None,
            charges: charges.into(),
            stt_paid,
            mark: None,
        }))
    }
}

impl Tradebook {
    fn read(&self, row: &TableRow, today: Date) -> Result<TradeLine, RefusedReason> {
        let stated = Charges {
            brokerage: charge(row, self.brokerage)?,
            stt: charge(row, self.stt)?,
            stamp_duty: charge(row, self.stamp_duty)?,
            other: charge(row, self.other)?,
        };
        let parts = [
            stated.brokerage,
            stated.stt,
            stated.stamp_duty,
            stated.other,
        ];
        let sum: Decimal = parts.into_iter().flatten().sum();
        let adds_up = parts.iter().all(Option::is_some)
            && charge(row, self.all)?.is_some_and(|all| all == sum);
        let is_margin_funded = cells::text(row, self.demat)? == Some("-");
        let mark = match () {
            () if !adds_up => Some(Mark::ChargesUnclear),
            () if is_margin_funded => Some(Mark::MarginFunded),
            () => None,
        };
        let isin = cells::isin(row, self.isin)?;
        let read = Row {
            line: row.line,
            symbol: cells::symbol(row, self.symbol)?,
            isin,
            exchange: exchange(row, self.exchange)?,
            segment: Segment::Equity,
            series: None,
            date: cells::date(row, self.date, today)?,
            time: None,
            side: side(row, self.side)?,
            quantity: cells::quantity(row, self.quantity)?,
            price: cells::price(row, self.price)?,
            trade_id: None,
            order_id: cells::id(row, self.order_id)?,
            product: None,
            auction: false,
            expiry: None,
            charges: if adds_up {
                stated.into()
            } else {
                RowCharges::default()
            },
            stt_paid: None,
            mark,
        };
        let is_untaxed = stated.stt == Some(Decimal::ZERO);
        match isin.filter(|isin| is_untaxed && isin.as_str().starts_with(FUND)) {
            Some(isin) => Ok(TradeLine::OtherFund(read, isin)),
            None => Ok(TradeLine::Trade(read)),
        }
    }
}
