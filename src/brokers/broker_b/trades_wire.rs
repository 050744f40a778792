//! Broker B's answer to a call for trades, to rows, and the body of that call. Pure.
//!
//! The broker states no ISIN, no id and no time, and one average an order. An answer is taken only
//! if each of its rows can be read.

use compact_str::CompactString;
use jiff::civil::Date;
use serde::Deserialize;

use crate::base::Exchange;
use crate::brokers::BrokerError;
use crate::brokers::broker_b::wire::malformed;
use crate::brokers::feed::Number;
use crate::brokers::trades::{Quarter, ReadTrades, counts};
use crate::ledger::row::{Charges, Mark, Row, Segment, Side};

/// Longest code or id.
const TEXT_BYTES_MAX: usize = 64;

/// A row of `trades`. Every value is text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TradeRow {
    trade_date: String,
    stock_code: String,
    action: String,
    quantity: Number,
    average_cost: Number,
    brokerage_amount: Number,
    product_type: Option<String>,
    exchange_code: Option<String>,
    order_id: Option<String>,
}

/// The body that asks for a quarter. The broker writes wall-clock times of India with a `Z`.
pub(super) fn body(quarter: Quarter) -> String {
    let Quarter { first, last } = quarter;
    format!(
        "{{\"from_date\":\"{first}T00:00:00.000Z\",\"to_date\":\"{last}T23:59:59.000Z\",\
         \"exchange_code\":\"NSE\"}}"
    )
}

/// The trades in shares. Those in contracts are counted: the broker lists them elsewhere.
///
/// # Errors
/// [`Malformed`](crate::brokers::BrokerErrorKind::Malformed) when a row cannot be read.
pub(super) fn trades(rows: Vec<TradeRow>) -> Result<ReadTrades, BrokerError> {
    let mut read = ReadTrades::default();
    for (line, row) in (1_u32..).zip(rows) {
        let product = row
            .product_type
            .as_deref()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let is_contract = product.contains("future") || product.contains("option");
        if is_contract
            || row
                .exchange_code
                .as_deref()
                .is_some_and(|exchange| exchange != "NSE")
        {
            read.left_out += 1;
            continue;
        }
        let trade = trade(line, row).ok_or_else(|| malformed("a trade that cannot be read"))?;
        read.rows.push(trade);
    }
    Ok(read)
}

fn trade(line: u32, row: TradeRow) -> Option<Row> {
    let side = match row.action.to_ascii_lowercase().as_str() {
        "buy" => Side::Buy,
        "sell" => Side::Sell,
        _ => return None,
    };
    let figure = |number: Number| {
        number
            .0
            .filter(|number| counts(*number))
            .map(|number| number.normalize())
    };
    let text = |text: Option<String>| text.filter(|text| named(text)).map(CompactString::from);
    let product = text(row.product_type);
    let is_funded = product
        .as_deref()
        .is_some_and(|it| it.eq_ignore_ascii_case("mtf"));
    Some(Row {
        line,
        symbol: Some(row.stock_code).filter(|code| named(code))?.into(),
        isin: None,
        exchange: Exchange::Nse,
        segment: Segment::Equity,
        series: None,
        date: Date::strptime("%d-%b-%Y", &row.trade_date).ok()?,
        time: None,
        side,
        quantity: figure(row.quantity)?,
        price: figure(row.average_cost)?,
        trade_id: None,
        order_id: text(row.order_id),
        product,
        auction: false,
        expiry: None,
        // `total_taxes` has the transaction tax within, which is never deducted.
        charges: Charges {
            brokerage: row.brokerage_amount.0,
            ..Charges::default()
        }
        .into(),
        stt_paid: None,
        mark: is_funded.then_some(Mark::MarginFunded),
    })
}

/// Whether this can be a name: not empty, not too long, no control characters.
fn named(text: &str) -> bool {
    (1..=TEXT_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<ReadTrades, BrokerError> {
        trades(sonic_rs::from_str(json).unwrap())
    }

    const TRADE: &str = r#"{"book_type":"Trade-Book","trade_date":"05-Feb-2025",
        "stock_code":"RELIND","action":"Buy","quantity":"10","average_cost":"1277.35",
        "brokerage_amount":"31.93","total_taxes":"13.9","product_type":"Cash",
        "exchange_code":"NSE","order_id":"20250205N300000001","segment":"Rolling",
        "settlement_code":"2025024","ltp":"0.00","expiry_date":null}"#;

    #[test]
    fn a_trade_has_its_brokerage_and_neither_id_nor_time() {
        let read = read(&format!("[{TRADE}]")).unwrap();
        let [row] = read.rows.as_slice() else {
            panic!("{read:?}")
        };
        assert_eq!((row.line, row.symbol.as_str(), row.side), (1, "RELIND", Side::Buy));
        assert_eq!((row.date, row.time), (Date::constant(2025, 2, 5), None));
        assert_eq!((row.quantity, row.price), (10.into(), "1277.35".parse().unwrap()));
        let brokerage = Some("31.93".parse().unwrap());
        assert_eq!(
            *row.charges,
            Charges {
                brokerage,
                ..Charges::default()
            }
        );
        assert_eq!((row.trade_id.as_deref(), row.isin), (None, None));
        assert_eq!(row.order_id.as_deref(), Some("20250205N300000001"));
    }

    #[test]
    fn contracts_are_counted_and_a_row_that_cannot_be_read_is_an_error() {
        let contract = TRADE.replace("\"Cash\"", "\"Options\"");
        let both = read(&format!("[{contract},{TRADE}]")).unwrap();
        assert_eq!((both.rows.len(), both.rows[0].line, both.left_out), (1, 2, 1));
        let funded = read(&format!("[{}]", TRADE.replace("\"Cash\"", "\"MTF\""))).unwrap();
        assert_eq!(funded.rows[0].mark, Some(Mark::MarginFunded));
        for (whole, broken) in [
            ("\"Buy\"", "\"Keep\""),
            ("\"10\"", "\"0\""),
            ("\"1277.35\"", "\"NA\""),
            ("05-Feb-2025", "2025-02-05"),
            ("\"RELIND\"", "\"\""),
        ] {
            assert!(read(&format!("[{}]", TRADE.replace(whole, broken))).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_quarter_is_asked_for_by_its_first_and_last_day() {
        let quarter = Quarter {
            first: Date::constant(2025, 1, 1),
            last: Date::constant(2025, 3, 31),
        };
        assert_eq!(
            body(quarter),
            "{\"from_date\":\"2025-01-01T00:00:00.000Z\",\
             \"to_date\":\"2025-03-31T23:59:59.000Z\",\"exchange_code\":\"NSE\"}"
        );
    }
}
