//! What a sync tells, from rows made by hand.

use std::collections::HashMap;

use rust_decimal::Decimal;

use super::*;
use crate::base::{ActionSign, ClosingPrice, Cost, Mark, MarketDay, Symbol, Synced};
use crate::portfolio::{Derived, Repriced};
use crate::store::Portfolio;
use crate::views::json;
use crate::views::sync::SyncedBrokerA;

fn holding(ticker: &str, settled: i64, t1: i64, average: &str, last: &str) -> Holding {
    Holding {
        broker: Broker::A,
        exchange: "NSE".into(),
        tradingsymbol: ticker.into(),
        isin: Some(format!("IN{ticker}")),
        settled_quantity: settled.into(),
        t1_quantity: t1.into(),
        pledged_quantity: Decimal::ZERO,
        mtf_quantity: Decimal::ZERO,
        disputed_quantity: Decimal::ZERO,
        cost: average.parse().ok().map(Cost::PerShare),
        last_price: last.parse().ok(),
        close_price: None,
        // 20 November 2026, 11:00 IST.
        as_of_ms: 1_795_152_600_000,
        broker_pnl: None,
        discrepancy: false,
        unresolved: false,
        mark: None,
    }
}

/// Friday 20 November 2026, trading.
fn friday() -> MarketDay {
    let date = "2026-11-20".parse().unwrap();
    MarketDay { today: date, session: date, day: Some(date), last_close: None }
}

/// What a sync of broker A wrote, and its report.
struct Told {
    derived: Derived,
    report: String,
}

fn told(before: Vec<Holding>, after: Vec<Holding>) -> Told {
    told_on(&friday(), &HashMap::new(), before, after)
}

fn told_on(
    day: &MarketDay,
    closes: &HashMap<Symbol, ClosingPrice>,
    before: Vec<Holding>,
    after: Vec<Holding>,
) -> Told {
    let synced = Synced { holdings: after, ..Synced::default() };
    let derived = portfolio::derive(Broker::A, day, &before, closes, &synced);
    let before = Portfolio { holdings: before, ..Portfolio::default() };
    let replaced = Replaced { before, synced, derived };
    let now = SyncedNow { at: Instant::of_ms(0), warnings: Vec::new(), simulated: false };
    let counts = SyncedBrokerA { net_positions_count: 0 };
    let text = json::to_vec(&report(Broker::A, &replaced, counts, now));
    let text = String::from_utf8(text).unwrap();
    // What it begins with is other tests'.
    let (_, rest) = text.split_once("\"changes\":").unwrap();
    let report = format!("{{\"changes\":{rest}");
    Told { derived: replaced.derived, report }
}

/// Broker B's row was priced on Thursday; broker A's share has no closing price kept.
#[test]
fn while_a_close_stands_both_brokers_rows_are_at_it() {
    let last_close = "2026-11-20T15:35:00+05:30".parse().unwrap();
    let evening = MarketDay { last_close: Some(last_close), ..friday() };
    let at_ms = last_close.as_millisecond();
    let mut other = holding("ITC", 10, 0, "400", "410");
    (other.broker, other.as_of_ms) = (Broker::B, at_ms - 86_400_000);
    let mut own = holding("INFY", 1, 0, "1400", "1500");
    own.as_of_ms = at_ms + 3_600_000;
    let close = ClosingPrice {
        price: "420".parse().unwrap(),
        previous_close: "415".parse().ok(),
        as_of_ms: at_ms - 60_000,
    };
    let closes = HashMap::from([(Symbol::parse("NSE:ITC").unwrap(), close)]);
    let Told { derived, .. } = told_on(&evening, &closes, vec![other.clone()], vec![own.clone()]);
    assert_eq!(derived.point.total_current_value, "5700".parse().unwrap());
    assert_eq!(derived.point.carried, 0);
    let expected = Holding {
        last_price: Some(close.price),
        close_price: close.previous_close,
        as_of_ms: close.as_of_ms,
        ..other.clone()
    };
    assert_eq!(derived.repriced, Repriced { holdings: vec![expected], changed: vec![0] });
    assert_eq!(derived.holdings[0].as_of_ms, at_ms, "the price is no newer than the close");
    // Without the closing price the other row stays what it is, and is counted.
    let Told { derived, .. } = told_on(&evening, &HashMap::new(), vec![other.clone()], vec![own]);
    assert_eq!(derived.point.total_current_value, "5600".parse().unwrap());
    assert_eq!(derived.point.carried, 1);
    assert_eq!(derived.repriced, Repriced { holdings: vec![other], changed: vec![] });
}

#[test]
fn a_report_names_what_changed() {
    let mut other = holding("ITC", 7, 0, "400", "410");
    other.broker = Broker::B;
    let before =
        vec![holding("INFY", 10, 0, "1400", "1500"), holding("TCS", 1, 0, "3000", "3100"), other];
    let mut strange = holding("XYZABC", 2, 0, "", "10");
    strange.unresolved = true;
    let after = vec![holding("INFY", 12, 3, "1410.5", "1500"), strange];
    let Told { derived, report } = told(before, after);
    assert_eq!(
        report,
        "{\"changes\":{\"added_count\":1,\"added\":[{\"exchange\":\"NSE\",\
         \"tradingsymbol\":\"XYZABC\",\"isin\":\"INXYZABC\",\"quantity\":2}],\
         \"removed_count\":1,\"removed\":[{\"exchange\":\"NSE\",\"tradingsymbol\":\"TCS\",\
         \"isin\":\"INTCS\",\"quantity\":1}],\"changed_count\":1,\"changed\":[{\
         \"exchange\":\"NSE\",\"tradingsymbol\":\"INFY\",\"isin\":\"ININFY\",\
         \"quantity\":[10,15],\"average_price\":[1400,1410.5]}],\
         \"positions\":{\"day\":[0,0],\"net\":[0,0]}},\
         \"unresolved_count\":1,\"unresolved\":[\"XYZABC\"],\
         \"suspected_corporate_actions\":[],\
         \"reconciliation\":{\"broker_pnl\":null,\"our_pnl\":null,\"difference\":null,\
         \"reason\":\"no_broker_figure\"}}"
    );
    // The other broker's share is in the point, the one without a cost is not.
    let point = derived.point;
    assert_eq!(point.total_invested, "23957.5".parse().unwrap());
    assert_eq!((point.left_out, point.suspect, derived.counts.holdings), (1, false, 2));
}

#[test]
fn lists_are_bounded_and_counts_are_not() {
    let many = |count: usize| {
        let row = |number: usize| holding(&format!("S{number}"), 1, 0, "1", "1");
        (0..count).map(row).collect::<Vec<_>>()
    };
    let Told { report, .. } = told(Vec::new(), many(LISTED_MAX + 50));
    assert!(report.contains("\"added_count\":150"));
    assert_eq!(report.matches("\"quantity\":1}").count(), LISTED_MAX);
}

#[test]
fn a_split_is_marked_in_the_row_the_report_and_the_point() {
    let Told { derived, report } = told(
        vec![holding("INFY", 10, 0, "1500", "2000")],
        vec![holding("INFY", 50, 0, "300", "404")],
    );
    let mark = Mark { on: friday().today, sign: ActionSign::InverseRatios };
    assert!(derived.holdings[0].mark == Some(mark) && derived.point.suspect);
    assert!(report.contains("\"reason\":\"inverse_ratios\""), "{}", report);
}

#[test]
fn our_profit_stands_beside_the_brokers() {
    let reason = |settled, t1, theirs: &str| {
        let mut row = holding("INFY", settled, t1, "100", "110.005");
        row.broker_pnl = theirs.parse().ok();
        let Told { report, .. } = told(Vec::new(), vec![row]);
        let at = report.find("\"reconciliation\"").unwrap();
        report[at..].to_owned()
    };
    assert!(reason(10, 0, "100.05").contains("\"difference\":0,\"reason\":null"));
    assert!(reason(1, 0, "10").contains("\"reason\":\"rounding\""));
    assert!(reason(0, 10, "0").contains("\"difference\":100.05,\"reason\":\"t1_quantity\""));
    assert!(reason(10, 0, "55").contains("\"difference\":45.05,\"reason\":\"unexplained\""));
}

#[test]
fn a_portfolio_that_cannot_be_valued_is_a_point_that_says_so() {
    let mut damaged = holding("ITC", 1, 0, "1", "1");
    damaged.broker = Broker::B;
    damaged.settled_quantity = Decimal::MAX;
    damaged.last_price = Some(Decimal::MAX);
    let Told { derived, .. } = told(vec![damaged], vec![holding("INFY", 1, 0, "1", "1")]);
    assert_eq!((derived.point.left_out, derived.point.suspect), (2, true));
    assert_eq!(derived.point.total_invested, Decimal::ZERO);
}
