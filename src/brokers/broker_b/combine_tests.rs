//! Tests of combining broker B's lists.

use super::*;
use crate::brokers::feed::Number;

fn number(text: &str) -> Number {
    Number((!text.is_empty()).then(|| text.parse().unwrap()))
}

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn demat(stock_code: &str, isin: &str, quantity: &str) -> DematRow {
    let isin = Some(isin.to_owned());
    DematRow {
        stock_code: stock_code.into(),
        isin,
        quantity: number(quantity),
    }
}

fn portfolio(stock_code: &str, quantity: &str, average: &str, last: &str) -> PortfolioRow {
    PortfolioRow {
        stock_code: stock_code.into(),
        exchange_code: Some("NSE".into()),
        quantity: number(quantity),
        average_price: number(average),
        current_market_price: number(last),
        change_percentage: number(""),
    }
}

/// With two exchanges the row's percentage comes from the exchange of its price.
#[test]
fn the_day_s_change_in_percent_goes_with_the_price_and_nonsense_is_none() {
    let change = |percents: [&str; 2]| {
        let [nse, bse] = percents.map(|percent| PortfolioRow {
            change_percentage: number(percent),
            ..portfolio("INFTEC", "5", "1", "100")
        });
        let bse = PortfolioRow {
            exchange_code: Some("BSE".into()),
            ..bse
        };
        holdings(&[], &[bse, nse], 5).unwrap().remove(0).change_pct
    };
    for (given, expected) in [
        (["1.05", "7"], Some("1.05")),
        (["-2.5", ""], Some("-2.5")),
        (["0", "7"], Some("0")),
        (["", "7"], None),
        (["-100", ""], None),
        (["10000", ""], None),
    ] {
        assert_eq!(change(given), expected.map(decimal), "{given:?}");
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
            let cost = held
                .average_price()
                .map(|price| price.normalize().to_string());
            let owned = held.quantity();
            let disputed = held.disputed_quantity;
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
            row("FRESH", "3", "3", None),
            row("GIFT", "4", "4", None),
            row("PLEDGE", "7", "7", Some("50")),
        ]
    );
    assert_eq!(held[0].last_price, Some(decimal("266")));
    assert_eq!((held[3].last_price, held[1].isin.as_deref()), (None, None));
    assert!(
        held.iter()
            .all(|held| held.unresolved && held.as_of_ms == 5)
    );
}

#[test]
fn two_codes_of_one_isin_are_one_holding_at_their_mean_cost() {
    let held = holdings(
        &[
            demat("OLD", "INE000000001", "10"),
            demat("NEW", "INE000000001", "30"),
        ],
        &[
            portfolio("OLD", "10", "100", "1"),
            portfolio("NEW", "30", "200", "1"),
        ],
        0,
    )
    .unwrap();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].quantity(), decimal("40"));
    assert_eq!(held[0].cost, Some(Cost::Total(decimal("7000"))));
    assert_eq!(held[0].average_price(), Some(decimal("175")));
    assert_eq!(held[0].disputed_quantity, decimal("0"));
}

#[test]
fn a_code_under_its_old_and_its_new_isin_is_one_holding() {
    let old = demat("KOTMAH", "INE237A01028", "0");
    let new = demat("kotmah", "INE237A01036", "50");
    for rows in [[old.clone(), new.clone()], [new, old]] {
        let held = holdings(&rows, &[portfolio("KotMah", "50", "1800", "2000")], 0).unwrap();
        assert_eq!(held.len(), 1);
        assert_eq!(
            (held[0].quantity(), held[0].isin.as_deref()),
            (50.into(), Some("INE237A01036"))
        );
        assert_eq!(held[0].tradingsymbol, "KOTMAH");
        assert!(held[0].disputed_quantity.is_zero());
    }
}

#[test]
fn a_cost_of_some_shares_is_not_the_cost_of_all() {
    let of = |demat_quantity: &str, lots: &[PortfolioRow]| {
        let held = holdings(&[demat("A", "INE000000001", demat_quantity)], lots, 0).unwrap();
        (held[0].cost, held[0].average_price())
    };
    let part = Cost::Part {
        quantity: 30.into(),
        cost: 3_000.into(),
    };
    assert_eq!(of("40", &[portfolio("A", "30", "100", "1")]), (Some(part), None));
    let lots = [
        portfolio("A", "30", "100", "1"),
        portfolio("A", "10", "0", "1"),
    ];
    assert_eq!(of("40", &lots), (Some(part), None), "a lot without a cost");
    let whole = (Some(Cost::Total(3_000.into())), Some(100.into()));
    assert_eq!(of("30", &[portfolio("A", "30", "100", "1")]), whole);
    assert_eq!(
        of("0", &[portfolio("A", "30", "100", "1")]),
        whole,
        "pledged, and its cost known"
    );
    assert_eq!(of("40", &[portfolio("A", "0", "100", "1")]), (None, None));
}

#[test]
fn what_is_no_isin_joins_nothing() {
    let rows = [
        demat("A", "NA", "1"),
        demat("B", "na", "2"),
        demat("C", "-", "3"),
    ];
    let held = holdings(&rows, &[], 0).unwrap();
    assert_eq!(held.len(), 3);
    assert!(held.iter().all(|held| held.isin.is_none()));
}

proptest::proptest! {
    /// Few codes and ISINs, so that they meet.
    #[test]
    fn the_order_of_rows_does_not_matter(
        delivered in proptest::collection::vec((0_u8..4, 0_u8..4, 0_u32..50), 0..8),
        lots in proptest::collection::vec((0_u8..4, 0_u32..50, 0_u32..3, 0_u32..3, 0_u8..2), 0..8),
        seed in proptest::prelude::any::<u64>(),
    ) {
        let code = |number: u8| ["AA", "aa", "BB", "CC"][usize::from(number)];
        let mut demats: Vec<DematRow> = delivered
            .iter()
            .map(|(of, isin, quantity)| {
                demat(code(*of), &format!("INE00000000{isin}"), &quantity.to_string())
            })
            .collect();
        let mut rows: Vec<PortfolioRow> = lots
            .iter()
            .map(|(of, quantity, average, last, exchange)| {
                let quantity = quantity.to_string();
                let mut row =
                    portfolio(code(*of), &quantity, &average.to_string(), &last.to_string());
                row.exchange_code = Some(["NSE", "BSE"][usize::from(*exchange)].into());
                row
            })
            .collect();
        let before = holdings(&demats, &rows, 0).unwrap();
        let mut rng = fastrand::Rng::with_seed(seed);
        rng.shuffle(&mut demats);
        rng.shuffle(&mut rows);
        proptest::prop_assert_eq!(&holdings(&demats, &rows, 0).unwrap(), &before);
        // No share is lost, and none is in two rows.
        let mut codes: Vec<_> = before.iter().map(|held| held.tradingsymbol.clone()).collect();
        codes.dedup();
        proptest::prop_assert_eq!(codes.len(), before.len());
        let listed: u32 = delivered.iter().map(|(_, _, quantity)| quantity).sum();
        let owned: Decimal = before.iter().map(Holding::quantity).sum();
        proptest::prop_assert!(owned >= listed.into());
    }

    /// The costs of lots are added up exactly, however many there are.
    #[test]
    fn the_cost_of_lots_is_exact(
        lots in proptest::collection::vec((1_u32..5_000_000, 1_i64..100_000_000), 1..6),
    ) {
        let rows: Vec<PortfolioRow> = lots
            .iter()
            .map(|(quantity, mills)| {
                let average = Decimal::new(*mills, 3).to_string();
                portfolio("A", &quantity.to_string(), &average, "1")
            })
            .collect();
        let exact: i128 = lots.iter().map(|(q, mills)| i128::from(*q) * i128::from(*mills)).sum();
        let held = holdings(&[], &rows, 0).unwrap();
        let expected = Decimal::from_i128_with_scale(exact, 3);
        proptest::prop_assert_eq!(held[0].cost, Some(Cost::Total(expected)));
    }
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

/// Not every engine of the store accepts a zero byte in text.
#[test]
fn control_characters_in_the_words_of_a_position_refuse_the_list() {
    let good = traded("buy", "75", "1", "2");
    assert_eq!(positions(std::slice::from_ref(&good)).unwrap().len(), 1);
    let zero = || Some("a\0b".to_owned());
    for bad in [
        PositionRow {
            stock_code: "a\0b".to_owned(),
            ..good.clone()
        },
        PositionRow {
            exchange_code: zero(),
            ..good.clone()
        },
        PositionRow {
            product_type: zero(),
            ..good.clone()
        },
        PositionRow {
            expiry_date: zero(),
            ..good.clone()
        },
        PositionRow {
            right: zero(),
            ..good.clone()
        },
        PositionRow {
            product_type: Some("p".repeat(TEXT_BYTES_MAX + 1)),
            ..good.clone()
        },
    ] {
        assert!(positions(std::slice::from_ref(&bad)).is_err(), "{bad:?}");
    }
}
