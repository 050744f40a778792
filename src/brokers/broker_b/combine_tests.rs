//! Broker B's lists made one, tested.

use super::*;
use crate::brokers::number::Number;

fn number(text: &str) -> Number {
    Number((!text.is_empty()).then(|| text.parse().unwrap()))
}

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn demat(stock_code: &str, isin: &str, quantity: &str) -> DematRow {
    let isin = Some(isin.to_owned());
    DematRow { stock_code: stock_code.into(), isin, quantity: number(quantity) }
}

fn portfolio(stock_code: &str, quantity: &str, average: &str, last: &str) -> PortfolioRow {
    PortfolioRow {
        stock_code: stock_code.into(),
        exchange_code: Some("NSE".into()),
        quantity: number(quantity),
        average_price: number(average),
        current_market_price: number(last),
    }
}

fn traded(action: &str, quantity: &str, average: &str, ltp: &str) -> PositionRow {
    PositionRow {
        stock_code: "NIFTY".into(),
        exchange_code: Some("NFO".into()),
        product_type: Some("Options".into()),
        action: Some(action.into()),
        expiry_date: Some("27-Feb-2025".into()),
        strike_price: number("24800.0"),
        right: Some("Call".into()),
        quantity: number(quantity),
        average_price: number(average),
        ltp: number(ltp),
    }
}

#[test]
fn the_lists_join_by_code_and_the_larger_quantity_is_owned() {
    let held = holdings(
        &[
            demat("BOTH", "INE000000001", "10"),
            demat("PLEDGE", "INE000000002", "0"),
            demat("GIFT", "INE000000003", "4"),
            demat("GONE", "INE000000004", "0"),
        ],
        &[
            portfolio("BOTH", "10", "231.40", "266"),
            portfolio("PLEDGE", "7", "50", "0"),
            portfolio("GONE", "0", "12", "13"),
            portfolio("FRESH", "3", "0", "9.5"),
        ],
        5,
    )
    .unwrap();
    let seen: Vec<_> = held
        .iter()
        .map(|held| {
            let cost = held.average_price.map(|price| price.normalize().to_string());
            let (owned, disputed) = (held.quantity(), held.disputed_quantity);
            (held.tradingsymbol.as_str(), owned.to_string(), disputed.to_string(), cost)
        })
        .collect();
    let row = |code, owned: &str, disputed: &str, cost: Option<&str>| {
        (code, owned.to_owned(), disputed.to_owned(), cost.map(str::to_owned))
    };
    assert_eq!(
        seen,
        [
            row("BOTH", "10", "0", Some("231.4")),
            row("PLEDGE", "7", "7", Some("50")),
            row("GIFT", "4", "4", None),
            row("FRESH", "3", "3", None),
        ]
    );
    assert_eq!(held[0].last_price, Some(decimal("266")));
    assert_eq!((held[1].last_price, held[3].isin.as_deref()), (None, None));
    assert!(held.iter().all(|held| held.unresolved && held.as_of_ms == 5));
}

#[test]
fn two_codes_of_one_isin_are_one_holding_at_their_mean_cost() {
    let held = holdings(
        &[demat("OLD", "INE000000001", "10"), demat("NEW", "INE000000001", "30")],
        &[portfolio("OLD", "10", "100", "1"), portfolio("NEW", "30", "200", "1")],
        0,
    )
    .unwrap();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].quantity(), decimal("40"));
    assert_eq!(held[0].average_price, Some(decimal("175")));
    assert_eq!(held[0].disputed_quantity, decimal("0"));
}

#[test]
fn derivatives_among_the_holdings_are_left_out() {
    let mut row = portfolio("NIFTY", "50", "1", "1");
    row.exchange_code = Some("NFO".into());
    assert_eq!(holdings(&[], &[row], 0).unwrap(), []);
}

#[test]
fn rows_that_cannot_be_meant_spoil_the_whole() {
    for (code, quantity) in [("", "1"), ("A", ""), ("A", "-1"), (&"A".repeat(65), "1")] {
        holdings(&[demat(code, "INE000000001", quantity)], &[], 0).unwrap_err();
        holdings(&[], &[portfolio(code, quantity, "1", "1")], 0).unwrap_err();
    }
    let huge = Decimal::MAX.to_string();
    holdings(&[demat("A", "I", &huge), demat("A", "I", &huge)], &[], 0).unwrap_err();
    holdings(&[], &[portfolio("A", &huge, "2", "1")], 0).unwrap_err();
    positions(&[traded("NA", "5", "1", "1")]).unwrap_err();
    positions(&[traded("Buy", "", "1", "1")]).unwrap_err();
}

#[test]
fn positions_take_their_sign_from_the_action_and_their_profit_from_the_prices() {
    let rows = [
        traded("Buy", "75", "28.85", "29.95"),
        traded("SELL", "75", "28.85", "29.95"),
        traded("NA", "0", "0", "29.95"),
        traded("Buy", "75", "", "29.95"),
    ];
    let read = positions(&rows).unwrap();
    let quantities: Vec<_> = read.iter().map(|row| row.quantity.to_string()).collect();
    assert_eq!(quantities, ["75", "-75", "0", "75"]);
    let profits: Vec<_> = read.iter().map(|row| row.pnl).collect();
    assert_eq!(profits, [Some(decimal("82.5")), Some(decimal("-82.5")), None, None]);
    assert_eq!(read[0].tradingsymbol, "NIFTY 27-Feb-2025 24800 Call");
    assert_eq!((read[0].exchange.as_str(), read[0].unresolved), ("NFO", false));
    let mut share = traded("Buy", "1", "1", "1");
    (share.expiry_date, share.strike_price, share.right) = (None, number(""), Some("*".into()));
    let read = positions(&[share]).unwrap();
    assert_eq!((read[0].tradingsymbol.as_str(), read[0].unresolved), ("NIFTY", true));
}
