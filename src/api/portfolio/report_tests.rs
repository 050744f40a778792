//! The reply to a sync, from rows made by hand.

use std::collections::HashMap;

use rust_decimal::Decimal;

use super::*;
use crate::base::{Account, Broker, Cost, Holding, Synced};
use crate::portfolio::testing::friday;
use crate::portfolio::{self, Stood};
use crate::views::sync::NetPositions;
use crate::views::values;

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

/// The reply to a sync of broker A, without the members that it begins with.
fn told(before: &[Holding], after: Vec<Holding>) -> String {
    let synced = Synced {
        holdings: after,
        ..Synced::default()
    };
    let stood = Stood {
        accounts: [Account::at(Broker::A)].into_iter().collect(),
        holdings: before,
        positions: &[],
        closes: &HashMap::new(),
        closes_before: &HashMap::new(),
    };
    let derived = portfolio::derive(Account::at(Broker::A), &friday(), stood, &synced);
    let now = SyncedNow {
        at: Instant::of_ms(0),
        warnings: Vec::new(),
        trades: SyncedTradesView {
            added: Some(0),
            reason: None,
        },
        simulated: false,
        broker_user: None,
    };
    let counts = NetPositions {
        net_positions_count: 0,
    };
    let text = values::to_vec(&report(Broker::A, &derived.outcome, counts, now));
    let text = String::from_utf8(text).unwrap();
    let (_, rest) = text.split_once("\"changes\":").unwrap();
    format!("{{\"changes\":{rest}")
}

#[test]
fn a_report_names_what_changed() {
    let mut other = holding("ITC", 7, 0, "400", "410");
    other.account = Account::at(Broker::B);
    let before = vec![
        holding("INFY", 10, 0, "1400", "1500"),
        holding("TCS", 1, 0, "3000", "3100"),
        other,
    ];
    let mut strange = holding("XYZABC", 2, 0, "", "10");
    strange.unresolved = true;
    let after = vec![holding("INFY", 12, 3, "1410.5", "1500"), strange];
    let report = told(&before, after);
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
         \"reason\":\"no_broker_figure\"},\"trades\":{\"added\":0}}"
    );
}

#[test]
fn our_profit_stands_beside_the_brokers() {
    let reason = |settled, t1, theirs: &str| {
        let mut row = holding("INFY", settled, t1, "100", "110.005");
        row.broker_pnl = theirs.parse().ok();
        let report = told(&[], vec![row]);
        let at = report.find("\"reconciliation\"").unwrap();
        report[at..].to_owned()
    };
    assert!(reason(10, 0, "100.05").contains("\"difference\":0,\"reason\":null"));
    assert!(reason(1, 0, "10").contains("\"reason\":\"rounding\""));
    assert!(reason(0, 10, "0").contains("\"difference\":100.05,\"reason\":\"t1_quantity\""));
    assert!(reason(10, 0, "55").contains("\"difference\":45.05,\"reason\":\"unexplained\""));
}

#[test]
fn a_suspected_split_is_named_with_its_reason() {
    let before = vec![holding("INFY", 10, 0, "1500", "2000")];
    let report = told(&before, vec![holding("INFY", 50, 0, "300", "404")]);
    assert!(report.contains("\"reason\":\"inverse_ratios\""), "{report}");
}
