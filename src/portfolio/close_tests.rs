//! The point of a close: sums, what is carried, what is suspect.

use proptest::prelude::{prop, prop_assert_eq, proptest};

use super::*;
use crate::base::Holding;
use crate::portfolio::testing::{any_holding, holding};

const CLOSE: &str = "2026-11-20T15:35:00+05:30";

fn close() -> Timestamp {
    CLOSE.parse().unwrap()
}

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

/// Synced a day earlier.
fn held(ticker: &str, quantity: &str, average: Option<&str>, last: Option<&str>) -> Holding {
    Holding {
        settled_quantity: decimal(quantity),
        average_price: average.map(decimal),
        last_price: last.map(decimal),
        as_of_ms: close().as_millisecond() - 86_400_000,
        ..holding(ticker, 0, 1)
    }
}

fn closes(symbol: &Symbol) -> Option<Decimal> {
    match symbol.as_str() {
        "NSE:INFY" => Some(decimal("1500.05")),
        "NSE:TCS" => Some(decimal("3000")),
        _ => None,
    }
}

fn at_close(rows: &[Holding]) -> Point {
    point_at_close(rows.to_vec(), close(), closes).unwrap()
}

#[test]
fn the_close_wins_and_what_has_none_is_carried() {
    let t1 = Holding { t1_quantity: decimal("2"), ..held("INFY", "1", Some("1400"), None) };
    let at = close().as_millisecond();
    let point = at_close(&[
        t1,
        held("TCS", "0.5", Some("2900.10"), Some("2950")),
        held("OTHER", "10", Some("5"), Some("7.5")),
        Holding { as_of_ms: at - 1, ..held("EARLIER", "1", Some("1"), Some("2")) },
        Holding { as_of_ms: at, ..held("LATER", "1", Some("1"), Some("2")) },
        Holding { unresolved: true, ..held("INFY", "1", Some("1"), Some("3")) },
        held("INFY", "1", None, Some("1500")),
        held("NOPRICE", "1", Some("1"), None),
    ]);
    let expected = Point {
        date: "2026-11-20".parse().unwrap(),
        total_invested: decimal("4200") + decimal("1450.05") + decimal("50") + decimal("3"),
        total_current_value: decimal("4500.15") + decimal("1500") + decimal("75") + decimal("7"),
        total_pnl: decimal("379.10"),
        left_out: 2,
        carried: 3,
        suspect: false,
    };
    assert_eq!(point, expected);
    assert_eq!(at_close(&[]).total_current_value, Decimal::ZERO);
}

#[test]
fn leaps_and_flags_are_suspect() {
    for (last, expected) in [
        ("3000", false),
        ("1796.40", true),
        ("1796.41", false),
        ("5000", true),
        ("4999", false),
        ("0", false),
    ] {
        let point = at_close(&[held("TCS", "1", Some("1"), Some(last))]);
        assert_eq!(point.suspect, expected, "{last}");
    }
    let plain = held("TCS", "1", Some("1"), Some("3000"));
    assert!(at_close(&[Holding { discrepancy: true, ..plain.clone() }]).suspect);
    let marked = Holding { corporate_action: true, ..plain };
    assert!(!at_close(std::slice::from_ref(&marked)).suspect, "the mark is of an earlier date");
    let today = Holding { as_of_ms: close().as_millisecond(), ..marked };
    assert!(at_close(&[today]).suspect);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let rows = vec![Holding { settled_quantity: Decimal::MAX, ..held("TCS", "0", None, None) }];
    assert_eq!(point_at_close(rows, close(), closes), Err(Overflow));
}

proptest! {
    #[test]
    fn the_parts_sum_to_the_whole(
        rows in prop::collection::vec(any_holding(), 0..20),
        split in 0_usize..20,
    ) {
        let (left, right) = rows.split_at(split.min(rows.len()));
        let (whole, left, right) = (at_close(&rows), at_close(left), at_close(right));
        prop_assert_eq!(left.total_invested + right.total_invested, whole.total_invested);
        prop_assert_eq!(
            left.total_current_value + right.total_current_value,
            whole.total_current_value
        );
        prop_assert_eq!(left.total_pnl + right.total_pnl, whole.total_pnl);
        prop_assert_eq!(whole.total_current_value - whole.total_invested, whole.total_pnl);
        prop_assert_eq!(left.left_out + right.left_out, whole.left_out);
        prop_assert_eq!(left.carried + right.carried, whole.carried);
        prop_assert_eq!(left.suspect || right.suspect, whole.suspect);
    }
}
