//! Broker B's users, and the server's own session there.

use std::collections::BTreeSet;
use std::time::Duration;

use bhav::base::{Broker, Clock, Holding, PositionKind};
use bhav::brokers::broker_b::master;
use bhav::brokers::{BrokerErrorKind, Credentials, PortfolioClient, Readiness};
use bhav::sim::SimSettings;

use super::bench::{Bench, EXPIRED, FAULTS};

#[test]
fn a_sync_brings_one_holding_per_isin_and_positions() {
    let bench = Bench::running(|_| {});
    let synced = bench
        .broker_b
        .sync(&bench.user_of_b("USER02"))
        .result
        .unwrap();
    assert!(synced.simulated);
    assert!(!synced.holdings.is_empty());
    assert!(
        synced
            .holdings
            .iter()
            .all(|held| held.account.broker() == Broker::B && held.unresolved)
    );
    assert!(
        synced
            .holdings
            .iter()
            .any(|held| !held.disputed_quantity.is_zero())
    );
    assert!(
        synced
            .positions
            .iter()
            .all(|position| position.kind == PositionKind::Net)
    );
    assert_eq!(synced.positions.len(), 2);
    assert_eq!(bench.broker_b.sync_counts().calls.value(), 4);
}

#[test]
fn activation_makes_the_servers_own_session() {
    let bench = Bench::running(|_| {});
    let now = "2026-11-20T11:00:00+05:30".parse().unwrap();
    let current = || bench.broker_b.token().status(now);
    let status = current();
    assert!(!status.initialized && !status.valid);
    let refused = bench.broker_b.activate("00000000").unwrap_err();
    assert_eq!(refused.kind, BrokerErrorKind::CodeRefused);
    assert!(!current().initialized);
    let status = bench
        .broker_b
        .activate(&bench.api_session("SERVER"))
        .unwrap();
    assert!(status.initialized && status.valid);
    assert_eq!(status.expires_at, Some("2026-11-21T00:00:00+05:30".parse().unwrap()));
    bench.broker_b.activate("00000000").unwrap_err();
    assert!(current().valid, "a refused one leaves the good one alone");
}

#[test]
fn each_fault_has_its_answer_on_each_call() {
    for call in [
        "customerdetails",
        "dematholdings",
        "portfolioholdings",
        "portfoliopositions",
    ] {
        for (fault, answer) in FAULTS {
            let exchange = call == "customerdetails";
            if fault.contains("no_permission") || (exchange && *fault == EXPIRED) {
                continue;
            }
            let bench = Bench::with_budget_for(*answer);
            let route = format!("broker_b.{call}");
            bench.break_with(&route, fault);
            let user = bench.user_of_b("USER02");
            let error = bench.broker_b.sync(&user).result.unwrap_err();
            // Broker B's limit belongs to the key.
            let expected = match *answer {
                BrokerErrorKind::RateLimited => BrokerErrorKind::KeySpent,
                other => other,
            };
            assert_eq!(error.kind, expected, "{route} {fault}: {error}");
        }
    }
}

#[test]
fn codes_keys_and_secrets_that_are_wrong_are_told_apart() {
    let bench = Bench::running(|_| {});
    let kind =
        |credentials: &Credentials| bench.broker_b.sync(credentials).result.unwrap_err().kind;
    let code = Credentials {
        one_time_code: "0".into(),
        ..bench.user_of_b("USER02")
    };
    assert_eq!(kind(&code), BrokerErrorKind::CodeRefused);
    let key = Credentials {
        api_key: "other".into(),
        ..bench.user_of_b("USER02")
    };
    assert_eq!(kind(&key), BrokerErrorKind::KeyRefused);
    let secret = Credentials {
        api_secret: "other".into(),
        ..bench.user_of_b("USER02")
    };
    assert_eq!(kind(&secret), BrokerErrorKind::KeyRefused);
}

#[test]
fn an_empty_account_in_all_its_shapes_is_a_success() {
    let mut settings = SimSettings {
        rate_limits: false,
        ..SimSettings::default()
    };
    settings.broker_b.empty_account = true;
    let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
    let bench = Bench::set(settings, &clock, |_| {});
    let synced = bench
        .broker_b
        .sync(&bench.user_of_b("USER02"))
        .result
        .unwrap();
    assert!(synced.holdings.is_empty() && synced.positions.is_empty() && synced.simulated);
}

#[test]
fn the_brokers_own_limit_is_met_by_ours_before() {
    let settings = SimSettings::default();
    assert!(settings.rate_limits);
    let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
    let bench = Bench::set(settings, &clock, |_| {});
    for _ in 0..25 {
        bench
            .broker_b
            .sync(&bench.user_of_b("USER02"))
            .result
            .unwrap();
    }
    let error = bench
        .broker_b
        .sync(&bench.user_of_b("USER02"))
        .result
        .unwrap_err();
    let held_back = Readiness::Paced(Duration::from_secs(60));
    assert_eq!(error.kind, BrokerErrorKind::NotReady(held_back));
    assert_eq!(bench.asked("broker_b.customerdetails"), 25);
    clock.advance_ms(60_000);
    bench
        .broker_b
        .sync(&bench.user_of_b("USER02"))
        .result
        .unwrap();
}

/// One person with an account at each broker: shared holdings match by ISIN, the master resolves
/// all codes but one, and pledged shares are disputed.
#[test]
fn both_brokers_and_the_master_fit_together() {
    let bench = Bench::running(|_| {});
    let of_a = bench
        .broker_a
        .sync(&bench.user_of_a("USER01"))
        .result
        .unwrap()
        .holdings;
    let of_b = bench
        .broker_b
        .sync(&bench.user_of_b("USER02"))
        .result
        .unwrap()
        .holdings;
    let shared = of_b
        .iter()
        .find(|held| held.isin.as_deref() == Some("INE002A01018"))
        .unwrap();
    assert_eq!(shared.tradingsymbol, "RELIND");
    assert!(
        of_a.iter()
            .any(|held| held.isin == shared.isin && held.tradingsymbol == "RELIANCE")
    );
    let packed = bench.fetch("/b-master/SecurityMaster.zip");
    let master = master::parse(&packed).unwrap();
    let unknown: Vec<&str> = of_b
        .iter()
        .filter(|held| {
            !master
                .rows
                .iter()
                .any(|row| row.short_code == held.tradingsymbol)
        })
        .map(|held| held.tradingsymbol.as_str())
        .collect();
    assert_eq!(unknown, ["SIMUNK"]);
    let reliance = master
        .rows
        .iter()
        .find(|row| row.short_code == "RELIND")
        .unwrap();
    assert_eq!((reliance.exchange, reliance.ticker.as_str()), ("NSE", "RELIANCE"));
    let pledged = |held: &&Holding| held.disputed_quantity == held.settled_quantity;
    assert!(of_b.iter().filter(pledged).count() >= 2, "one pledged, one not delivered");
}

/// Eight quarters a sync, from the newest, and a past one only once.
#[test]
fn trades_come_by_quarters_until_all_were_read() {
    let bench = Bench::running(|_| {});
    let session = bench
        .broker_b
        .sync(&bench.user_of_b("USER02"))
        .session
        .unwrap();
    let newest = session.trades(&BTreeSet::new());
    assert!(newest.error().is_none(), "{:?}", newest.error());
    assert_eq!((bench.asked("broker_b.trades"), newest.quarters().len()), (8, 7));
    assert!(newest.count() > 0);
    let older = session.trades(newest.quarters());
    assert_eq!((bench.asked("broker_b.trades"), older.quarters().len()), (16, 7));
    assert!(newest.quarters().is_disjoint(older.quarters()));
    let lines = |name: &str| {
        let text = String::from_utf8(bench.fetch(&format!("/files/b/USER02/{name}"))).unwrap();
        text.lines()
            .skip(1)
            .filter(|line| !line.contains("BONUS"))
            .count()
    };
    let filed = lines("all-transactions.csv") + lines("all-transactions-middle-year.csv");
    assert_eq!(newest.count() + older.count(), filed, "three years are less than 15 quarters");
}

#[test]
fn trades_that_fail_say_why_and_keep_what_came_before() {
    for (fault, answer) in FAULTS {
        if fault.contains("no_permission") {
            continue;
        }
        let bench = Bench::with_budget_for(*answer);
        let session = bench
            .broker_b
            .sync(&bench.user_of_b("USER02"))
            .session
            .unwrap();
        bench.break_with("broker_b.trades", fault);
        let trades = session.trades(&BTreeSet::new());
        let error = trades.error().unwrap();
        // Broker B's limit belongs to the key.
        let expected = match *answer {
            BrokerErrorKind::RateLimited => BrokerErrorKind::KeySpent,
            other => other,
        };
        let got = match error.kind {
            BrokerErrorKind::RateLimited => BrokerErrorKind::KeySpent,
            other => other,
        };
        assert_eq!(got, expected, "{fault}: {error}");
    }
    let bench = Bench::running(|_| {});
    let session = bench
        .broker_b
        .sync(&bench.user_of_b("USER02"))
        .session
        .unwrap();
    // The fourth quarter from the newest has a row that cannot be read.
    let row = |date: &str, quantity: u8| {
        format!(
            r#"{{"trade_date":"{date}","stock_code":"RELIND","action":"Buy",
                "quantity":"{quantity}","average_cost":"1200"}}"#
        )
    };
    let rows = format!("[{},{}]", row("05-May-2026", 3), row("05-Feb-2026", 0));
    bench.set_trades_of_b("USER02", &rows);
    let trades = session.trades(&BTreeSet::new());
    assert_eq!(trades.error().unwrap().kind, BrokerErrorKind::Malformed);
    assert_eq!(trades.count(), 1);
    assert_eq!(trades.quarters().len(), 2, "the present quarter is never read to its end");
}
