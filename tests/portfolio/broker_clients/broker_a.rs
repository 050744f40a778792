//! Broker A's users.

use std::collections::BTreeSet;

use bhav::base::{Broker, Clock, Holding, PositionKind};
use bhav::brokers::{BrokerErrorKind, Credentials, PortfolioClient};
use bhav::sim::SimSettings;

use super::bench::{Bench, EXPIRED, FAULTS};

#[test]
fn a_sync_brings_holdings_and_both_lists_of_positions() {
    let bench = Bench::running(|_| {});
    let synced = bench
        .broker_a
        .sync(&bench.user_of_a("USER01"))
        .result
        .unwrap();
    assert!(synced.simulated);
    assert!(!synced.holdings.is_empty());
    assert!(
        synced
            .holdings
            .iter()
            .all(|held| held.account.broker() == Broker::A && held.isin.is_some())
    );
    assert!(
        synced
            .holdings
            .iter()
            .any(|held| !held.t1_quantity.is_zero())
    );
    let kinds = |kind| {
        synced
            .positions
            .iter()
            .filter(|position| position.kind == kind)
            .count()
    };
    assert_eq!((kinds(PositionKind::Net), kinds(PositionKind::Day)), (3, 3));
    assert_eq!(bench.broker_a.sync_counts().calls.value(), 3);
}

#[test]
fn each_fault_has_its_answer_on_each_call() {
    for route in [
        "broker_a.session",
        "broker_a.holdings",
        "broker_a.positions",
    ] {
        for (fault, answer) in FAULTS {
            if *fault == EXPIRED && route == "broker_a.session" {
                continue;
            }
            let bench = Bench::with_budget_for(*answer);
            bench.break_with(route, fault);
            let user = bench.user_of_a("USER01");
            let error = bench.broker_a.sync(&user).result.unwrap_err();
            assert_eq!(error.kind, *answer, "{route} {fault}: {error}");
            assert_eq!(bench.asked(route), 1, "{fault}");
        }
    }
}

#[test]
fn codes_keys_and_secrets_that_are_wrong_are_told_apart() {
    let bench = Bench::running(|_| {});
    let kind =
        |credentials: &Credentials| bench.broker_a.sync(credentials).result.unwrap_err().kind;
    let used = bench.user_of_a("USER01");
    bench.broker_a.sync(&used).result.unwrap();
    assert_eq!(kind(&used), BrokerErrorKind::CodeRefused);
    let key = Credentials {
        api_key: "other".into(),
        ..bench.user_of_a("USER01")
    };
    assert_eq!(kind(&key), BrokerErrorKind::KeyRefused);
    let secret = Credentials {
        api_secret: "other".into(),
        ..bench.user_of_a("USER01")
    };
    assert_eq!(kind(&secret), BrokerErrorKind::KeyRefused);
}

#[test]
fn each_kind_of_row_is_there() {
    let bench = Bench::running(|_| {});
    let held = bench
        .broker_a
        .sync(&bench.user_of_a("USER01"))
        .result
        .unwrap()
        .holdings;
    let one = |what: &str, is: fn(&Holding) -> bool| {
        assert_eq!(held.iter().filter(|held| is(held)).count(), 1, "{what}");
    };
    one("pledged", |held| !held.pledged_quantity.is_zero());
    one("funded", |held| !held.mtf_quantity.is_zero());
    one("T1 alone", |held| {
        held.settled_quantity.is_zero() && !held.t1_quantity.is_zero()
    });
    one("without a cost", |held| held.cost.is_none());
    one("with a discrepancy", |held| held.discrepancy);
}

#[test]
fn a_price_of_zero_is_no_price() {
    let bench = Bench::running(|_| {});
    bench.break_with("broker_a.holdings", r#"{"kind":"zero_price"}"#);
    let held = bench
        .broker_a
        .sync(&bench.user_of_a("USER01"))
        .result
        .unwrap()
        .holdings;
    assert!(
        held.iter()
            .all(|held| held.last_price.is_none() && held.close_price.is_some())
    );
}

#[test]
fn different_users_have_different_shares_and_apps() {
    let bench = Bench::running(|_| {});
    let of = |user: &str, app: u32| {
        let key = format!("{}-{app}", bench.settings.broker_a.api_key);
        let login = Credentials {
            api_key: key.as_str().into(),
            ..bench.user_of_a(user)
        };
        bench.broker_a.sync(&login).result.unwrap().holdings
    };
    let first = of("USER01", 1);
    assert_ne!(first, of("USER02", 2));
    // More calls than one app's limit allows within a second.
    for app in 3..13 {
        assert_eq!(of("USER01", app).len(), first.len());
    }
}

#[test]
fn trades_of_today_come_with_the_session_of_a_sync() {
    let bench = Bench::running(|_| {});
    let session = bench
        .broker_a
        .sync(&bench.user_of_a("USER01"))
        .session
        .unwrap();
    let trades = session.trades(&BTreeSet::new());
    assert!(trades.error().is_none(), "{:?}", trades.error());
    assert_eq!((trades.count(), trades.quarters().len()), (2, 0));
    assert_eq!(bench.asked("broker_a.trades"), 1);
    session.end();
}

/// However often trades fail, the circuit of syncs stays closed.
#[test]
fn trades_that_fail_say_why_and_stop_no_sync() {
    for (fault, answer) in FAULTS {
        let bench = Bench::with_budget_for(*answer);
        let session = bench
            .broker_a
            .sync(&bench.user_of_a("USER01"))
            .session
            .unwrap();
        bench.break_with("broker_a.trades", fault);
        let trades = session.trades(&BTreeSet::new());
        let error = trades.error().unwrap();
        assert_eq!((error.kind, trades.count()), (*answer, 0), "{fault}: {error}");
    }
    let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
    let bench = Bench::set(SimSettings::default(), &clock, |_| {});
    bench.break_with("broker_a.trades", r#"{"kind":"html_5xx"}"#);
    let session = bench
        .broker_a
        .sync(&bench.user_of_a("USER01"))
        .session
        .unwrap();
    for _ in 0..30 {
        // A second lets the key make other calls.
        clock.advance_ms(1_000);
        let trades = session.trades(&BTreeSet::new());
        assert_eq!(trades.error().unwrap().kind, BrokerErrorKind::Failed { status: 502 });
    }
    bench
        .broker_a
        .sync(&bench.user_of_a("USER01"))
        .result
        .unwrap();
}
