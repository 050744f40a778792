//! Broker B's users, and the server's own session there.

use bhav::base::{Broker, PositionKind};
use bhav::brokers::SyncErrorKind;

use super::bench::Bench;

#[test]
fn a_sync_brings_one_holding_per_isin_and_positions() {
    let bench = Bench::running(|_| {});
    let synced = bench.broker_b.sync(&bench.user_of_b("USER02")).unwrap();
    assert!(synced.simulated);
    assert!(!synced.holdings.is_empty());
    assert!(synced.holdings.iter().all(|held| held.broker == Broker::B && held.unresolved));
    assert!(synced.holdings.iter().any(|held| !held.disputed_quantity.is_zero()));
    assert!(synced.positions.iter().all(|position| position.kind == PositionKind::Net));
    assert_eq!(synced.positions.len(), 2);
    assert_eq!(bench.broker_b.sync_counts().calls, 4);
}

#[test]
fn activation_makes_the_servers_own_session() {
    let bench = Bench::running(|_| {});
    let status = bench.broker_b.status();
    assert!(!status.initialized && !status.valid);
    let refused = bench.broker_b.activate("00000000").unwrap_err();
    assert_eq!(refused.kind(), SyncErrorKind::CodeRefused);
    assert!(!bench.broker_b.status().initialized);
    let status = bench.broker_b.activate(&bench.api_session("SERVER")).unwrap();
    assert!(status.initialized && status.valid);
    assert_eq!(status.expires_at, Some("2026-11-21T00:00:00+05:30".parse().unwrap()));
    bench.broker_b.activate("00000000").unwrap_err();
    assert!(bench.broker_b.status().valid, "a refused one leaves the good one alone");
}
