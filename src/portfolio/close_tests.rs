//! Closing prices in rows: which prices are replaced, which are kept, which leap, and the day's
//! point.

use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::base::{Account, Broker, Cost, MarketDay};
use crate::portfolio::testing::{any_holding, friday, holding};
use crate::portfolio::valuation::Overflow;
use crate::portfolio::{DayPoint, MadeOf, PointSource, point, summary, valued};

const CLOSE: &str = "2026-11-20T15:35:00+05:30";
const DAY_MS: i64 = 86_400_000;

fn close() -> Timestamp {
    CLOSE.parse().unwrap()
}

fn date() -> Date {
    "2026-11-20".parse().unwrap()
}

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

/// A holding that was synced a day earlier.
fn held(ticker: &str, quantity: &str, average: Option<&str>, last: Option<&str>) -> Holding {
    Holding {
        settled_quantity: decimal(quantity),
        cost: average.map(|average| Cost::PerShare(decimal(average))),
        last_price: last.map(decimal),
        as_of_ms: close().as_millisecond() - DAY_MS,
        ..holding(ticker, 0, 1)
    }
}

fn closes(symbol: &Symbol) -> Option<ClosingPrice> {
    let at = |price: &str, previous: Option<&str>| ClosingPrice {
        price: decimal(price),
        previous_close: previous.map(decimal),
        as_of_ms: close().as_millisecond() - 60_000,
        official: true,
        base_ratio: None,
    };
    match symbol.as_str() {
        "NSE:INFY" => Some(at("1500.05", Some("1490"))),
        "NSE:TCS" => Some(at("3000", None)),
        _ => None,
    }
}

fn repriced(rows: &[Holding]) -> Vec<Holding> {
    let mut rows = rows.to_vec();
    reprice(&mut rows, date(), closes);
    rows
}

fn closed_day() -> MarketDay {
    MarketDay {
        today: date(),
        session: date(),
        day: Some(date()),
        last_close: Some(close()),
        close_before_open: None,
        session_before: date().yesterday().ok(),
        stood_at: None,
    }
}

fn at_close(rows: &[Holding]) -> Result<DayPoint, Overflow> {
    let rows = repriced(rows);
    let day = closed_day();
    let brokers = rows.iter().map(|row| row.account).collect();
    point(&day, PointSource::Close, brokers, &rows, |row| {
        row.symbol().and_then(|symbol| closes(&symbol)).is_some()
    })
}

#[test]
fn repricing_writes_price_previous_close_and_time_alone() {
    let before = [
        held("INFY", "1", Some("1400"), Some("1480")),
        held("TCS", "1", Some("1400"), Some("2950")),
        Holding {
            as_of_ms: close().as_millisecond() - 3_600_000,
            ..held("TCS", "1", None, None)
        },
        held("OTHER", "1", Some("1400"), Some("2950")),
        Holding {
            unresolved: true,
            ..held("INFY", "1", Some("1"), Some("3"))
        },
    ];
    let mut rows = before.to_vec();
    assert_eq!(reprice(&mut rows, date(), closes), [0, 1, 2]);
    let as_of_ms = close().as_millisecond() - 60_000;
    let expect = |row: &Holding, price: &str, previous: Option<&str>| Holding {
        last_price: Some(decimal(price)),
        close_price: previous.map(decimal),
        as_of_ms,
        ..row.clone()
    };
    assert_eq!(rows[0], expect(&before[0], "1500.05", Some("1490")));
    assert_eq!(rows[1], expect(&before[1], "3000", None), "Thursday's is no previous close now");
    assert_eq!(rows[2], expect(&before[2], "3000", Some("1")), "the broker's own, of this date");
    assert_eq!(rows[3..], before[3..]);
    assert_eq!(reprice(&mut rows, date(), closes), [0_usize; 0], "once");
}

/// The rows as they are dated on `day`, with the stored closes of the session before.
fn dated(rows: &mut [Holding], day: &MarketDay) {
    let before = ["NSE:INFY", "NSE:TCS"].map(|name| Symbol::parse(name).unwrap());
    let before = before
        .into_iter()
        .filter_map(|name| Some((name.clone(), closes(&name)?)));
    let of_date = HashMap::new();
    let before = before.collect();
    date_prices(
        rows,
        day,
        StoredCloses {
            of_date: &of_date,
            before: &before,
        },
    );
}

#[test]
fn a_broker_price_sent_after_the_close_is_dated_to_the_close() {
    let at = close().as_millisecond();
    let mut rows = [holding("ITC", 1, 1), holding("SBIN", 1, 1)];
    (rows[0].as_of_ms, rows[1].as_of_ms) = (at + DAY_MS, at - 1);
    (rows[0].close_price, rows[1].close_price) = (Some(decimal("1.25")), Some(decimal("0.9")));
    let evening = MarketDay {
        last_close: Some(close()),
        ..friday()
    };
    dated(&mut rows, &evening);
    assert_eq!((rows[0].as_of_ms, rows[1].as_of_ms), (at, at - 1));
    assert!(rows.iter().all(|row| row.close_price.is_some()));
    // On Monday before the open the broker's previous close may be Friday's.
    dated(
        &mut rows,
        &MarketDay {
            session: "2026-11-23".parse().unwrap(),
            ..evening
        },
    );
    assert!(rows.iter().all(|row| row.close_price.is_none()));
}

/// Between 09:00 and 09:15 a broker's last price is the previous close, until the pre-open's
/// matching has found another.
/// Broker A sends no price of a share, and its previous close has become the session's own close.
#[test]
fn a_previous_close_without_a_price_is_not_believed_after_the_close() {
    let open = MarketDay {
        last_close: None,
        ..closed_day()
    };
    let close_before = |price: &str| ClosingPrice {
        price: decimal(price),
        previous_close: None,
        as_of_ms: close().as_millisecond() - DAY_MS,
        official: true,
        base_ratio: None,
    };
    for (day, before, expected) in [
        (&closed_day(), None, None),
        (&closed_day(), Some("393.65"), None),
        (&closed_day(), Some("391.4"), Some("391.4")),
        (&open, None, Some("391.4")),
    ] {
        let symbol = Symbol::parse("NSE:TCS").unwrap();
        let before = before.map(|price| (symbol, close_before(price)));
        let mut rows = [Holding {
            close_price: Some(decimal("391.4")),
            as_of_ms: close().as_millisecond(),
            ..held("TCS", "57", Some("1000"), None)
        }];
        let closes = StoredCloses {
            of_date: &HashMap::new(),
            before: &before.clone().into_iter().collect(),
        };
        date_prices(&mut rows, day, closes);
        assert_eq!(rows[0].close_price, expected.map(decimal), "{before:?}");
        reprice(&mut rows, date(), self::closes);
        let known = expected.map(decimal);
        assert_eq!((rows[0].last_price, rows[0].close_price), (Some(decimal("3000")), known));
    }
}

#[test]
fn a_pre_open_price_that_is_the_previous_close_is_dated_to_it() {
    let at_ms = close().as_millisecond() + DAY_MS;
    let row = |ticker: &str, last: &str, close: Option<&str>, percent: Option<&str>| Holding {
        close_price: close.map(decimal),
        change_pct: percent.map(decimal),
        as_of_ms: at_ms,
        ..held(ticker, "1", None, Some(last))
    };
    let rows = [
        row("INFY", "1500.05", Some("1500.05"), None),
        // The broker's previous close has not rolled yet, and it names another for TCS.
        row("INFY", "1500.05", Some("1490"), None),
        row("TCS", "3001", Some("3000"), None),
        row("OTHER", "7", Some("7"), None),
        row("OTHER", "7", None, Some("0.00")),
        row("OTHER", "7", None, Some("0.01")),
        row("OTHER", "7", None, None),
        Holding {
            last_price: None,
            ..row("OTHER", "7", Some("7"), None)
        },
    ];
    let mut dated = rows.to_vec();
    let monday = MarketDay {
        close_before_open: Some(close()),
        ..friday()
    };
    self::dated(&mut dated, &monday);
    let kept_ms = close().as_millisecond() - 60_000;
    let as_of: Vec<i64> = dated.iter().map(|row| row.as_of_ms).collect();
    let close_ms = close().as_millisecond();
    assert_eq!(
        as_of,
        [
            kept_ms, kept_ms, at_ms, close_ms, close_ms, at_ms, at_ms, at_ms
        ]
    );
    assert_eq!(dated[0].close_price, Some(decimal("1490")), "that of the close's own date");
    assert_eq!(dated[1].close_price, Some(decimal("1490")));
    assert_eq!((dated[3].close_price, dated[4].change_pct), (None, None), "not known");
    for unmoved in [2, 5, 6, 7] {
        assert_eq!(dated[unmoved], rows[unmoved]);
    }
}

#[test]
fn a_row_without_a_closing_price_is_carried() {
    let t1 = Holding {
        t1_quantity: decimal("2"),
        ..held("INFY", "1", Some("1400"), None)
    };
    let at = close().as_millisecond();
    let point = at_close(&[
        t1,
        held("TCS", "0.5", Some("2900.10"), Some("2950")),
        held("OTHER", "10", Some("5"), Some("7.5")),
        Holding {
            as_of_ms: at - 1,
            ..held("EARLIER", "1", Some("1"), Some("2"))
        },
        Holding {
            as_of_ms: at,
            ..held("LATER", "1", Some("1"), Some("2"))
        },
        Holding {
            unresolved: true,
            ..held("INFY", "1", Some("1"), Some("3"))
        },
        held("INFY", "1", None, Some("1500")),
        held("NOPRICE", "1", Some("1"), None),
    ]);
    let known = decimal("4500.15") + decimal("1500") + decimal("75") + decimal("7");
    let expected = DayPoint {
        date: date(),
        total_invested: decimal("4200") + decimal("1450.05") + decimal("50") + decimal("3"),
        total_current_value: known + decimal("1500.05"),
        total_pnl: decimal("379.10"),
        value_without_cost: Some(decimal("1500.05")),
        source: PointSource::Close,
        left_out: 2,
        carried: 3,
        suspect: false,
        made_of: Some(MadeOf {
            accounts: [Account::at(Broker::A)].into_iter().collect(),
            holdings: 8,
            discrepancies: 0,
        }),
    };
    assert_eq!(point.unwrap(), expected);
    assert_eq!(at_close(&[]).unwrap().total_current_value, Decimal::ZERO);
}

#[test]
fn a_leap_makes_the_point_suspect_and_a_discrepancy_is_counted_apart() {
    for (last, expected) in [
        ("3000", false),
        ("1796.40", true),
        ("1796.41", false),
        ("5000", true),
        ("4999", false),
        ("0", false),
    ] {
        let row = held("TCS", "1", Some("1"), Some(last));
        assert_eq!(at_close(std::slice::from_ref(&row)).unwrap().suspect, expected, "{last}");
        let mark = expected.then_some(Mark {
            on: date(),
            sign: ActionSign::PriceLeap,
            ratio: None,
        });
        let mut rows = repriced(&[row]);
        assert_eq!(rows[0].mark, mark, "{last}");
        // Repricing a second time finds no leap, and the mark stays.
        reprice(&mut rows, date(), closes);
        assert_eq!(rows[0].mark, mark, "{last}");
    }
    let doubted = Holding {
        discrepancy: true,
        ..held("TCS", "1", Some("1"), Some("3000"))
    };
    let point = at_close(&[doubted.clone(), doubted, held("INFY", "1", None, None)]).unwrap();
    assert_eq!((point.suspect, point.made_of.unwrap().discrepancies), (false, 2));
}

#[test]
fn an_amount_that_overflows_is_an_error() {
    let rows = [Holding {
        settled_quantity: Decimal::MAX,
        ..held("TCS", "0", None, None)
    }];
    assert_eq!(at_close(&rows), Err(Overflow));
}

proptest! {
    /// The summary of the repriced rows equals the point.
    #[test]
    fn a_summary_of_repriced_rows_equals_the_point(
        rows in prop::collection::vec(any_holding(), 0..20),
    ) {
        let point = at_close(&rows).unwrap();
        let rows = repriced(&rows);
        let sum = summary(&valued(&rows).unwrap(), Some(date())).unwrap();
        prop_assert_eq!(sum.total_current_value, point.total_current_value);
        prop_assert_eq!(sum.total_invested, point.total_invested);
        prop_assert_eq!(sum.total_pnl, point.total_pnl);
        prop_assert_eq!(Some(sum.value_without_cost), point.value_without_cost);
        prop_assert_eq!(sum.left_out, point.left_out);
        let close_ms = close().as_millisecond();
        let old = rows.iter().filter(|row| row.last_price.is_some());
        let old = old.filter(|row| row.as_of_ms < close_ms - 60_000).count();
        prop_assert_eq!(point.carried as usize, old);
    }

    #[test]
    fn points_of_two_parts_sum_to_the_point_of_all_rows(
        rows in prop::collection::vec(any_holding(), 0..20),
        split in 0_usize..20,
    ) {
        let (left, right) = rows.split_at(split.min(rows.len()));
        let [whole, left, right] = [&rows[..], left, right].map(|rows| at_close(rows).unwrap());
        prop_assert_eq!(left.total_invested + right.total_invested, whole.total_invested);
        prop_assert_eq!(
            left.total_current_value + right.total_current_value,
            whole.total_current_value
        );
        prop_assert_eq!(left.total_pnl + right.total_pnl, whole.total_pnl);
        let value_with_cost = whole.total_current_value - whole.value_without_cost.unwrap();
        prop_assert_eq!(value_with_cost - whole.total_invested, whole.total_pnl);
        prop_assert_eq!(left.left_out + right.left_out, whole.left_out);
        prop_assert_eq!(left.carried + right.carried, whole.carried);
        prop_assert!((left.suspect || right.suspect) == whole.suspect);
    }
}
