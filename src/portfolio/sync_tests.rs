//! Rows and outcome of a sync, from hand-made rows and from random ones.

use proptest::prelude::*;

use super::*;
use crate::base::{Account, ActionSign, Broker, Cost, Mark};
use crate::portfolio::outcome::LISTED_MAX;
use crate::portfolio::testing::{any_holding, friday};
use crate::portfolio::valuation::Overflow;

fn holding(ticker: &str, settled: i64, t1: i64, average: &str, last: &str) -> Holding {
    Holding {
        account: Account::at(Broker::A),
        exchange: "NSE".into(),
        tradingsymbol: ticker.into(),
        isin: Some(format!("IN{ticker}")),
        settled_quantity: settled.into(),
        t1_quantity: t1.into(),
        pledged_quantity: Decimal::ZERO,
        mtf_quantity: Decimal::ZERO,
        used_quantity: Decimal::ZERO,
        disputed_quantity: Decimal::ZERO,
        cost: average.parse().ok().map(Cost::PerShare),
        last_price: last.parse().ok(),
        close_price: None,
        change_pct: None,
        // 20 November 2026, 11:00 IST.
        as_of_ms: 1_795_152_600_000,
        broker_pnl: None,
        discrepancy: false,
        unresolved: false,
        mark: None,
    }
}

fn decimal(whole: i64) -> Decimal {
    whole.into()
}

/// The result of a sync of broker A that replaces `before` by `after`.
fn synced_on(
    day: &MarketDay,
    closes: &HashMap<Symbol, ClosingPrice>,
    before: &[Holding],
    after: Vec<Holding>,
) -> Derived {
    let accounts = before.iter().map(|row| row.account).collect();
    let before_that = HashMap::new();
    let closes_before = &before_that;
    let stood = Stood {
        accounts,
        holdings: before,
        positions: &[],
        closes,
        closes_before,
    };
    let synced = Synced {
        holdings: after,
        ..Synced::default()
    };
    derive(Account::at(Broker::A), day, stood, &synced)
}

fn synced(before: &[Holding], after: Vec<Holding>) -> Derived {
    synced_on(&friday(), &HashMap::new(), before, after)
}

/// Friday, after the close.
fn evening() -> MarketDay {
    MarketDay {
        last_close: "2026-11-20T15:35:00+05:30".parse().ok(),
        ..friday()
    }
}

/// Broker B's row, priced the day before, and broker A's, priced an hour after the close.
fn rows_of_both(evening: &MarketDay) -> [Holding; 2] {
    let at_ms = evening.last_close.unwrap().as_millisecond();
    let mut other = holding("ITC", 10, 0, "400", "410");
    other.account = Account::at(Broker::B);
    other.as_of_ms = at_ms - 86_400_000;
    let mut own = holding("INFY", 1, 0, "1400", "1500");
    own.as_of_ms = at_ms + 3_600_000;
    [other, own]
}

/// Broker B's row was priced on Thursday. Broker A's share has no stored closing price.
#[test]
fn while_a_close_stands_both_brokers_rows_are_at_it() {
    let evening = evening();
    let [other, own] = rows_of_both(&evening);
    let at_ms = evening.last_close.unwrap().as_millisecond();
    let close = ClosingPrice {
        price: "420".parse().unwrap(),
        previous_close: "415".parse().ok(),
        as_of_ms: at_ms - 60_000,
        official: true,
        base_ratio: None,
    };
    let closes = HashMap::from([(Symbol::parse("NSE:ITC").unwrap(), close)]);
    let derived = synced_on(&evening, &closes, std::slice::from_ref(&other), vec![own.clone()]);
    assert_eq!(derived.point.total_current_value, "5700".parse().unwrap());
    assert_eq!(derived.point.carried, 0);
    let expected = Holding {
        last_price: Some(close.price),
        close_price: close.previous_close,
        change_pct: None,
        as_of_ms: close.as_of_ms,
        ..other.clone()
    };
    assert_eq!(
        derived.repriced,
        Repriced {
            holdings: vec![expected],
            changed: vec![0]
        }
    );
    assert_eq!(derived.holdings[0].as_of_ms, at_ms, "the price is no newer than the close");
    assert_eq!(derived.point.source, PointSource::Sync, "INFY is at the broker's word");
    let of_own = (
        Symbol::parse("NSE:INFY").unwrap(),
        ClosingPrice {
            price: decimal(1500),
            ..close
        },
    );
    let all: HashMap<_, _> = closes
        .iter()
        .map(|(held, close)| (held.clone(), *close))
        .chain([of_own])
        .collect();
    let stood = [other.clone()];
    let at_close = |day: &MarketDay| synced_on(day, &all, &stood, vec![own.clone()]).point.source;
    assert_eq!(at_close(&evening), PointSource::Close, "every price is the closing price");
    let saturday = MarketDay {
        today: evening.today.tomorrow().unwrap(),
        ..evening
    };
    assert_eq!(at_close(&saturday), PointSource::Sync, "that date had no close");
    assert_eq!(synced_on(&evening, &all, &[], Vec::new()).point.source, PointSource::Sync);
}

#[test]
fn without_a_closing_price_the_other_row_stays_as_it_is_and_is_counted() {
    let evening = evening();
    let [other, own] = rows_of_both(&evening);
    let derived = synced_on(&evening, &HashMap::new(), std::slice::from_ref(&other), vec![own]);
    assert_eq!(derived.point.total_current_value, "5600".parse().unwrap());
    assert_eq!(derived.point.carried, 1);
    assert_eq!(
        derived.repriced,
        Repriced {
            holdings: vec![other],
            changed: vec![]
        }
    );
}

#[test]
fn the_other_brokers_shares_are_in_the_point_and_those_without_a_cost_are_not() {
    let mut other = holding("ITC", 7, 0, "400", "410");
    other.account = Account::at(Broker::B);
    let before = vec![holding("TCS", 1, 0, "3000", "3100"), other];
    let after = vec![
        holding("INFY", 12, 3, "1410.5", "1500"),
        holding("XYZ", 2, 0, "", "10"),
    ];
    let Derived { point, outcome, .. } = synced(&before, after);
    assert_eq!(point.total_invested, "23957.5".parse().unwrap());
    assert_eq!((point.left_out, point.suspect, outcome.holdings), (1, false, 2));
    let made = point.made_of.unwrap();
    assert_eq!((made.accounts.as_str(), made.holdings), ("ab", 3));
}

#[test]
fn a_split_is_marked_in_the_row_the_outcome_and_the_point() {
    let before = vec![holding("INFY", 10, 0, "1500", "2000")];
    let derived = synced(&before, vec![holding("INFY", 50, 0, "300", "404")]);
    let mark = Mark {
        on: friday().today,
        sign: ActionSign::InverseRatios,
        ratio: None,
    };
    assert!(derived.holdings[0].mark == Some(mark) && derived.point.suspect);
    assert_eq!(derived.outcome.suspected.rows[0].1.as_str(), "inverse_ratios");
}

#[test]
fn a_portfolio_that_cannot_be_valued_is_a_point_that_says_so_and_an_outcome_that_tells() {
    let mut damaged = holding("ITC", 1, 0, "1", "1");
    damaged.account = Account::at(Broker::B);
    damaged.settled_quantity = Decimal::MAX;
    damaged.last_price = Some(Decimal::MAX);
    let Derived { point, outcome, .. } = synced(&[damaged], vec![holding("INFY", 1, 0, "1", "1")]);
    assert_eq!((point.left_out, point.suspect), (2, true));
    assert_eq!(point.total_invested, Decimal::ZERO);
    assert_eq!(outcome.unvalued, Some(Overflow));
    assert_eq!(synced(&[], Vec::new()).outcome.unvalued, None);
}

/// The largest sync: every list of the outcome is full, and none exceeds its limit.
#[test]
fn an_outcome_names_at_most_a_hundred_rows_of_each_kind_and_counts_all() {
    let rows = |names: std::ops::Range<usize>, quantity: i64| {
        let row = |number: usize| holding(&format!("S{number}"), quantity, 0, "100", "100");
        names.map(row).collect::<Vec<_>>()
    };
    // Gone, halved and doubled, and new.
    let before = rows(0..4_000, 10);
    let mut after = rows(1_000..2_500, 5);
    after.extend(rows(2_500..4_000, 20));
    after.extend(rows(4_000..6_000, 1));
    for row in &mut after[3_000..] {
        (row.unresolved, row.discrepancy) = (true, true);
    }
    let outcome = synced(&before, after).outcome;
    let counts = [
        outcome.removed.count,
        outcome.changed.count,
        outcome.added.count,
    ];
    assert_eq!((outcome.holdings, counts), (5_000, [1_000, 3_000, 2_000]));
    assert_eq!((outcome.unresolved.count, outcome.suspected.count), (2_000, 2_000));
    let SyncOutcome {
        added,
        removed,
        changed,
        unresolved,
        suspected,
        ..
    } = outcome;
    let named = [added.rows.len(), removed.rows.len(), changed.rows.len()];
    assert_eq!(named, [LISTED_MAX; 3]);
    assert_eq!([unresolved.rows.len(), suspected.rows.len()], [LISTED_MAX; 2]);
    assert_eq!(added.rows[0].tradingsymbol, "S4000", "the first of them");
}

proptest! {
    /// A store that has to repeat its transaction calls `derive` again.
    #[test]
    fn deriving_twice_gives_the_same_and_every_row_is_accounted_for(
        before in prop::collection::vec(any_holding(), 0..12),
        after in prop::collection::vec(any_holding(), 0..12),
    ) {
        let own = before.iter().filter(|row| row.account == Account::at(Broker::A)).count();
        let first = synced(&before, after.clone());
        prop_assert_eq!(&first, &synced(&before, after.clone()));
        let outcome = first.outcome;
        let stayed = after.len() - outcome.added.count;
        prop_assert_eq!(own - outcome.removed.count, stayed);
        prop_assert!(outcome.changed.count <= stayed);
        prop_assert_eq!(outcome.holdings, first.holdings.len());
    }
}
