//! Test data for the unit tests of this module, and of modules that use its results.

use proptest::prelude::{Strategy, any};
use rust_decimal::Decimal;

use crate::base::{Account, Broker, Cost, Holding, MarketDay};

/// Friday 20 November 2026, trading.
pub(crate) fn friday() -> MarketDay {
    let date = "2026-11-20".parse().unwrap();
    MarketDay {
        today: date,
        session: date,
        day: Some(date),
        last_close: None,
        close_before_open: None,
        session_before: date.yesterday().ok(),
        stood_at: None,
    }
}

/// A holding of broker A on NSE whose last price equals its average.
pub(crate) fn holding(ticker: &str, quantity: i64, average: i64) -> Holding {
    Holding {
        account: Account::at(Broker::A),
        exchange: "NSE".into(),
        tradingsymbol: ticker.into(),
        isin: Some(format!("IN{ticker}")),
        settled_quantity: quantity.into(),
        t1_quantity: Decimal::ZERO,
        pledged_quantity: Decimal::ZERO,
        mtf_quantity: Decimal::ZERO,
        used_quantity: Decimal::ZERO,
        disputed_quantity: Decimal::ZERO,
        cost: Some(Cost::PerShare(average.into())),
        last_price: Some(average.into()),
        close_price: Some(average.into()),
        change_pct: None,
        as_of_ms: 1_795_000_000_000,
        broker_pnl: None,
        discrepancy: false,
        unresolved: false,
        mark: None,
    }
}

/// Prices as brokers write them: up to a lakh (100,000) rupees, with up to five decimal places.
pub(crate) fn price() -> impl Strategy<Value = Decimal> {
    (1_i64..10_000_000_000, 0_u32..=5).prop_map(|(digits, places)| {
        let price = Decimal::new(digits, places);
        if price > Decimal::from(100_000) {
            Decimal::new(digits, 5)
        } else {
            price
        }
    })
}

/// Any holding of a few instruments, so that some are equal, with some amounts unknown.
pub(crate) fn any_holding() -> impl Strategy<Value = Holding> {
    let maybe = || proptest::option::weighted(0.8, price());
    (
        0_usize..6,
        any::<bool>(),
        0_i64..1_000_000,
        0_i64..1_000,
        maybe(),
        maybe(),
        maybe(),
    )
        .prop_map(|(instrument, at_b, settled, t1, average, last, close)| {
            let ticker = ["INFY", "TCS", "SBIN", "ITC", "LT", "M&M"][instrument];
            let mut row = holding(ticker, settled, 1);
            row.account = Account::at(if at_b { Broker::B } else { Broker::A });
            row.t1_quantity = t1.into();
            row.cost = average.map(Cost::PerShare);
            (row.last_price, row.close_price) = (last, close);
            row
        })
}
