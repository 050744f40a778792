//! Broker A's answer to a call for the trades of today, to rows. Pure.
//!
//! An answer is taken only if each of its rows can be read. Those of markets that the ledger does
//! not keep are counted.

use compact_str::CompactString;
use jiff::civil::DateTime;
use serde::Deserialize;

use crate::brokers::BrokerError;
use crate::brokers::broker_a::wire::{NAME, malformed};
use crate::brokers::feed::Number;
use crate::brokers::portfolio;
use crate::brokers::trades::{ReadTrades, counts, market};
use crate::ledger::row::{Row, RowCharges, Side};

/// Longest ticker or id.
const TEXT_BYTES_MAX: usize = 64;

/// What must be there is checked with the values.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WireTrade {
    trade_id: Option<String>,
    order_id: Option<String>,
    exchange: String,
    tradingsymbol: String,
    product: Option<String>,
    average_price: Number,
    quantity: Number,
    transaction_type: String,
    fill_timestamp: Option<String>,
    exchange_timestamp: Option<String>,
}

/// The rows of `GET /trades`, of which `data` is the list.
///
/// # Errors
/// [`Malformed`](crate::brokers::BrokerErrorKind::Malformed) when a row cannot be read.
pub(super) fn trades(data: &str) -> Result<ReadTrades, BrokerError> {
    let rows: Vec<WireTrade> = portfolio::rows(NAME, data)?;
    let mut read = ReadTrades::default();
    for (line, row) in (1_u32..).zip(rows) {
        if market(&row.exchange).is_none() {
            read.left_out += 1;
            continue;
        }
        let row = trade(line, row).ok_or_else(|| malformed("a trade that cannot be read"))?;
        read.rows.push(row);
    }
    Ok(read)
}

fn trade(line: u32, row: WireTrade) -> Option<Row> {
    let (exchange, segment) = market(&row.exchange)?;
    let side = match row.transaction_type.as_str() {
        "BUY" => Side::Buy,
        "SELL" => Side::Sell,
        _ => return None,
    };
    let at = row.fill_timestamp.or(row.exchange_timestamp)?;
    let at = DateTime::strptime("%Y-%m-%d %H:%M:%S", &at).ok()?;
    let figure = |number: Number| {
        number
            .0
            .filter(|number| counts(*number))
            .map(|number| number.normalize())
    };
    let text = |text: Option<String>| text.filter(|text| named(text)).map(CompactString::from);
    Some(Row {
        line,
        symbol: Some(row.tradingsymbol)
            .filter(|symbol| named(symbol))?
            .into(),
        isin: None,
        exchange,
        segment,
        series: None,
        date: at.date(),
        time: Some(at.time()),
        side,
        quantity: figure(row.quantity)?,
        price: figure(row.average_price)?,
        trade_id: text(row.trade_id),
        order_id: text(row.order_id),
        product: text(row.product),
        auction: false,
        expiry: None,
        charges: RowCharges::default(),
        stt_paid: None,
        mark: None,
    })
}

/// Whether this can be a name: not empty, not too long, no control characters.
fn named(text: &str) -> bool {
    (1..=TEXT_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use jiff::civil::{Date, Time};

    use super::*;
    use crate::base::Exchange;
    use crate::ledger::row::Segment;

    const TRADE: &str = r#"{"trade_id":"10000000","order_id":"200000000000000","exchange":"NSE",
        "tradingsymbol":"INFY","instrument_token":408065,"product":"CNC","average_price":420.65,
        "quantity":1,"transaction_type":"BUY","fill_timestamp":"2026-11-20 09:16:04",
        "order_timestamp":"09:16:04","exchange_timestamp":"2026-11-20 09:16:04"}"#;

    #[test]
    fn a_trade_of_today_is_a_row_without_an_isin() {
        let read = trades(&format!("[{TRADE}]")).unwrap();
        let expected = Row {
            line: 1,
            symbol: "INFY".into(),
            isin: None,
            exchange: Exchange::Nse,
            segment: Segment::Equity,
            series: None,
            date: Date::constant(2026, 11, 20),
            time: Some(Time::constant(9, 16, 4, 0)),
            side: Side::Buy,
            quantity: 1.into(),
            price: "420.65".parse().unwrap(),
            trade_id: Some("10000000".into()),
            order_id: Some("200000000000000".into()),
            product: Some("CNC".into()),
            auction: false,
            expiry: None,
            charges: RowCharges::default(),
            stt_paid: None,
            mark: None,
        };
        assert_eq!(
            read,
            ReadTrades {
                rows: vec![expected],
                left_out: 0
            }
        );
        assert_eq!(trades("null").unwrap(), ReadTrades::default());
    }

    #[test]
    fn commodities_are_counted_and_contracts_are_kept() {
        let of = |exchange: &str| TRADE.replace("NSE", exchange);
        let read = trades(&format!("[{},{},{}]", of("MCX"), of("NFO"), of("BSE"))).unwrap();
        let markets: Vec<_> = read
            .rows
            .iter()
            .map(|row| (row.line, row.segment))
            .collect();
        assert_eq!(markets, [(2, Segment::Derivatives), (3, Segment::Equity)]);
        assert_eq!(read.left_out, 1);
    }

    #[test]
    fn a_row_that_cannot_be_read_makes_the_answer_unreadable() {
        for (whole, broken) in [
            ("\"BUY\"", "\"HOLD\""),
            ("\"quantity\":1", "\"quantity\":0"),
            ("420.65", "-1"),
            ("\"INFY\"", "\"\""),
            ("2026-11-20 09:16:04", "soon"),
        ] {
            let answer = trades(&format!("[{}]", TRADE.replace(whole, broken)));
            assert!(answer.is_err(), "{broken}");
        }
    }
}
