//! Limits of broker A's syncs against a real socket: which callers they hold back, and for how
//! long.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use super::tests::{client, credentials, official, refusing, with};
use super::*;
use crate::brokers::testing::{Seen, answer, serve};
use crate::brokers::{BrokerErrorKind as Kind, Readiness};

fn limited(_: &Seen, stream: &mut std::net::TcpStream) {
    let body = br#"{"status":"error","message":"x","error_type":"NetworkException"}"#;
    answer(stream, 429, "Retry-After: 30\r\n", body);
}

/// The broker refused a call, and the error has this wait.
fn rate_limited(seconds: u64) -> BrokerError {
    BrokerError::new(NAME, Kind::RateLimited, "").after(Duration::from_secs(seconds))
}

/// No call was made, and the error has this wait.
fn held_back(wait: Duration) -> BrokerError {
    BrokerError::not_ready(NAME, Readiness::Paced(wait))
}

/// A login that the broker refuses, of a new account with a key of its own.
fn invented(number: i64, client: [u8; 4]) -> Credentials {
    let api_key = format!("key {number}").as_str().into();
    Credentials {
        user: 1_000 + number,
        client: Some(client.into()),
        api_key,
        ..credentials()
    }
}

/// A broker that knows one app.
fn strict(request: &Seen, stream: &mut std::net::TcpStream) {
    if request.method == "POST" && !request.body.starts_with("api_key=api_key&") {
        refusing(request, stream);
    } else {
        official(request, stream);
    }
}

/// Limit of one user's refused syncs within a minute.
const REFUSED_MAX: usize = 10;

fn stranger_of(user: i64) -> Credentials {
    Credentials {
        user,
        api_secret: "guess".into(),
        ..credentials()
    }
}

#[test]
fn a_key_has_ten_calls_a_second_and_others_are_not_held_up() {
    serve(official, |url, seen| {
        let (clock, client) = client(url, |_| {});
        for _ in 0..3 {
            client.sync(&credentials()).result.unwrap();
        }
        let error = client.sync(&credentials()).result.unwrap_err();
        assert_eq!(error, held_back(Duration::from_secs(1)));
        assert_eq!(
            (seen().len(), client.gate.counts.held_back.value()),
            (9, 1),
            "nothing went out"
        );
        let other = Credentials {
            api_key: "other".into(),
            ..credentials()
        };
        client.sync(&other).result.unwrap();
        clock.advance_ms(1_000);
        client.sync(&credentials()).result.unwrap();
    });
}

#[test]
fn a_refused_key_cools_down_and_keys_of_strangers_stop_nobody_else() {
    serve(limited, |url, seen| {
        let (clock, client) = client(url, |_| {});
        let refused = |user, key: &str| client.sync(&with(user, key)).result.unwrap_err();
        assert_eq!(refused(1, "one"), rate_limited(30));
        let held = || held_back(Duration::from_secs(30));
        assert_eq!((refused(1, "one"), refused(2, "one")), (held(), held()));
        assert_eq!(
            (seen().len(), client.gate.counts.held_back.value()),
            (1, 2),
            "the key cools down"
        );
        clock.advance_ms(1_000);
        assert_eq!(refused(2, "two"), rate_limited(30), "another key's first call");
        assert_eq!(seen().len(), 2);
        assert_eq!(refused(3, "three"), rate_limited(30), "and the third");
        assert_eq!(seen().len(), 3);
        assert_eq!(refused(4, "four"), rate_limited(30), "nobody synced with those before");
        assert_eq!((seen().len(), client.gate.counts.held_back.value()), (4, 2));
    });
}

#[test]
fn whoever_is_refused_is_told_the_whole_time() {
    let refuses = AtomicBool::new(true);
    let moody = |request: &Seen, stream: &mut std::net::TcpStream| {
        if refuses.load(SeqCst) {
            let body = br#"{"status":"error","message":"x","error_type":"NetworkException"}"#;
            answer(stream, 429, "Retry-After: 1\r\n", body);
        } else {
            official(request, stream);
        }
    };
    serve(moody, |url, seen| {
        let (clock, client) = client(url, |_| {});
        for calls in 1..4 {
            assert_eq!(client.sync(&credentials()).result.unwrap_err(), rate_limited(1));
            clock.advance_ms(999);
            let early = client.sync(&credentials()).result.unwrap_err();
            assert_eq!(early, held_back(Duration::from_millis(1)));
            assert_eq!(seen().len(), calls, "held back to the end");
            clock.advance_ms(1);
        }
        refuses.store(false, SeqCst);
        client.sync(&credentials()).result.unwrap();
    });
}

#[test]
fn an_open_circuit_is_told_with_the_failure_that_opened_it() {
    let broken = |_: &Seen, stream: &mut _| answer(stream, 503, "Retry-After: 1\r\n", b"<html>");
    serve(broken, |url, _| {
        let (_, client) = client(url, |upstream| {
            (upstream.breaker_failures, upstream.breaker_open_ms) = (2, 9_000);
            upstream.breaker_open_max_ms = 9_000;
        });
        let refusal = || client.sync(&credentials()).result.unwrap_err();
        let wait = |error: &BrokerError| error.retry_after().unwrap().as_millis();
        let first = refusal();
        assert_eq!((first.kind, wait(&first)), (Kind::Failed { status: 503 }, 1_000));
        let second = refusal();
        assert_eq!(second.kind, first.kind);
        assert!((7_000..=9_000).contains(&wait(&second)), "{second:?}");
        let open = Kind::NotReady(Readiness::Open(second.retry_after().unwrap()));
        assert_eq!(refusal().kind, open);
    });
}

#[test]
fn one_stranger_with_many_accounts_and_keys_uses_up_his_own_share() {
    serve(strict, |url, seen| {
        let (clock, client) = client(url, |_| {});
        for round in 0..6 {
            for number in 0..100 {
                let invented = invented(1_000 * round + number, [192, 0, 2, 1]);
                client.sync(&invented).result.unwrap_err();
            }
            client.sync(&credentials()).result.unwrap();
            clock.advance_ms(10_000);
        }
        let refused = seen()
            .iter()
            .filter(|seen| seen.body.contains("key%20"))
            .count();
        assert_eq!(refused, 20, "within the minute, whatever accounts and keys");
    });
}

#[test]
fn a_strangers_wrong_secrets_do_not_hold_the_owner_of_a_key_back() {
    let by_secret = |request: &Seen, stream: &mut std::net::TcpStream| {
        let good = "ff6a6d3d60c9d974df906ba6f787ac38300cfa68b41801b486ea1007e52e8942";
        if request.target == "/session/token" && !request.body.ends_with(good) {
            refusing(request, stream);
        } else {
            official(request, stream);
        }
    };
    serve(by_secret, |url, seen| {
        let (clock, client) = client(url, |_| {});
        for round in 0..10 {
            for _ in 0..10 {
                client.sync(&stranger_of(2)).result.unwrap_err();
            }
            clock.advance_ms(1_000);
            client.sync(&credentials()).result.unwrap();
            let sessions = seen().iter().filter(|seen| seen.method == "POST").count();
            assert!(sessions <= REFUSED_MAX + round + 1, "all others were held back");
            clock.advance_ms(1_200);
        }
    });
}
