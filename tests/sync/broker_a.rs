//! Broker A's users.

use bhav::base::{Broker, PositionKind};

use super::bench::Bench;

#[test]
fn a_sync_brings_holdings_and_both_lists_of_positions() {
    let bench = Bench::running(|_| {});
    let synced = bench.broker_a.sync(&bench.user_of_a("USER01")).unwrap();
    assert!(synced.simulated);
    assert!(!synced.holdings.is_empty());
    assert!(synced.holdings.iter().all(|held| held.broker == Broker::A && held.isin.is_some()));
    assert!(synced.holdings.iter().any(|held| !held.t1_quantity.is_zero()));
    let kinds = |kind| synced.positions.iter().filter(|position| position.kind == kind).count();
    assert_eq!((kinds(PositionKind::Net), kinds(PositionKind::Day)), (3, 3));
    assert_eq!(bench.broker_a.sync_counts().calls, 3);
}
