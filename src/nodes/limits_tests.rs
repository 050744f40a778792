//! Limits over a real server.

use rustix::process::Signal;

use super::*;
use crate::base::Clock;
use crate::nodes::valkey::Address;
use crate::nodes::valkey::installation::tests::{SECRET, of};
use crate::nodes::valkey::testing::TestServer;

/// So slow that a test sees no bucket fill.
const SLOW: Rate = Rate::new(600_000, 3);

fn limits(server: &TestServer) -> SharedLimits {
    with_secret(&server.server(), SECRET)
}

fn with_secret(server: &Arc<Server>, secret: &str) -> SharedLimits {
    SharedLimits::new(server, &of("main", secret, None))
}

/// Asks until there is a verdict: a busy machine may take longer than the deadline.
fn verdict(limits: &SharedLimits, kind: &str, values: &[&str], rate: Rate) -> Asked {
    let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    let timer = Clock::system();
    loop {
        match limits.ask(kind, &values, rate, 1) {
            None => assert!(timer.monotonic_ms() < 20_000, "no verdict"),
            verdict => return verdict,
        }
        std::thread::yield_now();
    }
}

fn is_refused(verdict: Asked) -> bool {
    matches!(verdict, Some(Err(_)))
}

/// Nodes of other versions count in the same buckets.
#[test]
fn a_bucket_has_this_name() {
    let nobody = Server::new(Address::parse("unix:/nonexistent/s").unwrap(), None, None).unwrap();
    let limits = with_secret(&Arc::new(nobody), SECRET);
    let namespace_keys = limits.installation.namespace_keys().unwrap();
    assert_eq!(
        limits.bucket(&namespace_keys, "login", b"a@example.org"),
        "bhav:main:limit:ba5ff748e5e4e5dc04771cc18709670f"
    );
}

#[test]
fn all_nodes_together_get_the_burst() {
    let Some(server) = TestServer::start("all_nodes_together_get_the_burst") else {
        return;
    };
    let nodes = [limits(&server), limits(&server)];
    let mut admitted = 0;
    while verdict(&nodes[admitted % 2], "login", &["a@example.org"], SLOW) == Some(Ok(())) {
        admitted += 1;
    }
    // An attempt that was given up at its deadline may have been counted.
    let given_up: u64 = nodes.iter().map(|node| node.tally().unknown).sum();
    assert!(admitted <= 3 && admitted as u64 + given_up >= 3, "{admitted} {given_up}");
    let Some(Err(early)) = verdict(&nodes[0], "login", &["a@example.org"], SLOW) else {
        panic!("admitted");
    };
    assert!((1..=600_000).contains(&early.retry_after_ms), "{early:?}");
    for (kind, value) in [("login", "b@example.org"), ("broker", "a@example.org")] {
        assert_eq!(verdict(&nodes[1], kind, &[value], SLOW), Some(Ok(())));
    }
    nodes[1].forgive("login", b"a@example.org");
    assert_eq!(verdict(&nodes[0], "login", &["a@example.org"], SLOW), Some(Ok(())));
}

#[test]
fn an_attempt_that_one_bucket_refuses_is_counted_in_none() {
    let name = "an_attempt_that_one_bucket_refuses_is_counted_in_none";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let limits = limits(&server);
    while !is_refused(verdict(&limits, "login", &["full"], SLOW)) {}
    for _ in 0..10 {
        assert!(is_refused(verdict(&limits, "login", &["full", "other"], SLOW)));
    }
    assert_eq!(verdict(&limits, "login", &["other"], SLOW), Some(Ok(())));
}

#[test]
fn several_calls_at_once_are_counted_all_or_none() {
    let Some(server) = TestServer::start("several_calls_at_once_are_counted_all_or_none") else {
        return;
    };
    let limits = limits(&server);
    let rate = Rate::new(600_000, 10);
    let ask = |cost| loop {
        match limits.ask("broker-a", &[b"key"], rate, cost) {
            None => std::thread::yield_now(),
            verdict => return verdict,
        }
    };
    // An attempt without an answer may have been counted, so not all that are left are certain.
    while !is_refused(ask(4)) {}
    let Some(Err(early)) = ask(4) else {
        panic!("admitted")
    };
    assert!(early.retry_after_ms > 600_000, "two more have to come back: {early:?}");
}

#[test]
fn another_secret_has_other_buckets() {
    let Some(server) = TestServer::start("another_secret_has_other_buckets") else {
        return;
    };
    let limits = limits(&server);
    let bucket = || limits.bucket(&limits.installation.namespace_keys().unwrap(), "login", b"x");
    let before = bucket();
    assert_eq!(bucket(), before);
    limits
        .installation
        .secret
        .set(&"another key of all of those nodes".into(), None);
    assert_ne!(bucket(), before);
}

#[test]
fn a_bucket_fills_again_at_the_rate() {
    let Some(server) = TestServer::start("a_bucket_fills_again_at_the_rate") else {
        return;
    };
    let limits = limits(&server);
    let rate = Rate::every_ms(300);
    assert_eq!(verdict(&limits, "login", &["x"], rate), Some(Ok(())));
    let timer = Clock::system();
    while is_refused(verdict(&limits, "login", &["x"], rate)) {
        assert!(timer.monotonic_ms() < 20_000);
        std::thread::yield_now();
    }
}

#[test]
fn the_server_sees_neither_address_nor_e_mail() {
    let Some(server) = TestServer::start("the_server_sees_neither_address_nor_e_mail") else {
        return;
    };
    let limits = limits(&server);
    verdict(&limits, "login", &["a@example.org", "203.0.113.7"], SLOW);
    let timer = Clock::system();
    let mut connection = server
        .server()
        .connect(timer.monotonic_ms() + 5_000)
        .unwrap();
    connection.end_by(timer.monotonic_ms() + 5_000);
    let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    assert_eq!(keys.len(), 2, "{keys:?}");
    for key in &keys {
        let name = key.strip_prefix("bhav:main:limit:").unwrap();
        assert!(name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
        let left_ms: i64 = redis::cmd("PTTL").arg(key).query(&mut connection).unwrap();
        assert!((1..=600_000).contains(&left_ms), "{left_ms}");
    }
    // A guessed e-mail cannot be looked up without the key.
    let other = with_secret(&server.server(), "another key of all of those nodes");
    let namespace_keys = other.installation.namespace_keys().unwrap();
    keys.retain(|key| *key == other.bucket(&namespace_keys, "login", b"a@example.org"));
    assert!(keys.is_empty());
}

#[test]
fn without_the_server_there_is_no_verdict_and_hardly_a_wait() {
    let name = "without_the_server_there_is_no_verdict_and_hardly_a_wait";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let limits = limits(&server);
    let timer = Clock::system();
    verdict(&limits, "login", &["x"], SLOW);
    server.signal(Signal::STOP);
    let begun_ms = timer.monotonic_ms();
    assert_eq!(limits.ask("login", &[b"x"], SLOW, 1), None);
    let took_ms = timer.monotonic_ms() - begun_ms;
    assert!((50..1_500).contains(&took_ms), "{took_ms}");
    server.signal(Signal::CONT);
    let nobody = Server::new(Address::parse("unix:/nonexistent/s").unwrap(), None, None).unwrap();
    let limits = with_secret(&Arc::new(nobody), SECRET);
    for _ in 0..100 {
        assert_eq!(limits.ask("login", &[b"x"], SLOW, 1), None);
    }
    assert_eq!(
        limits.tally(),
        SharedTally {
            refused: 0,
            unknown: 100
        }
    );
}

#[test]
fn a_bucket_that_no_attempt_filled_locks_nobody_for_longer_than_the_limit_can() {
    let name = "a_bucket_that_no_attempt_filled_locks_nobody_for_longer_than_the_limit_can";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let limits = limits(&server);
    let rate = Rate::new(300, 2);
    let namespace_keys = limits.installation.namespace_keys().unwrap();
    let key = limits.bucket(&namespace_keys, "login", b"x");
    let timer = Clock::system();
    for invented in ["1e15", "99999999999999", "rumour", "inf", "-5"] {
        let mut connection = server
            .server()
            .connect(timer.monotonic_ms() + 5_000)
            .unwrap();
        connection.end_by(timer.monotonic_ms() + 5_000);
        redis::cmd("SET")
            .arg(&key)
            .arg(invented)
            .exec(&mut connection)
            .unwrap();
        let begun_ms = timer.monotonic_ms();
        while is_refused(verdict(&limits, "login", &["x"], rate)) {
            assert!(timer.monotonic_ms() - begun_ms < 10_000, "{invented}");
            std::thread::yield_now();
        }
    }
}
