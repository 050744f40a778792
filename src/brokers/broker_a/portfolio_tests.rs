//! Broker A's portfolio client against a real socket.

use std::io::Write;
use std::time::Duration;

use super::*;
use crate::brokers::SyncErrorKind;
use crate::brokers::testing::{Seen, answer, drip, serve};

const HOLDINGS: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/holdings.json");
const POSITIONS: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/positions.json");
const SESSION: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/generate_session.json");

fn credentials() -> Credentials {
    Credentials {
        user: 1,
        api_key: "api_key".into(),
        api_secret: "api_secret".into(),
        one_time_code: "request_token".into(),
    }
}

fn client(url: &str, adjust: impl FnOnce(&mut UpstreamSettings)) -> (Clock, Portfolios) {
    let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
    let mut upstream = UpstreamSettings::default();
    adjust(&mut upstream);
    (clock.clone(), Portfolios::new(url, &upstream, &clock))
}

fn official(request: &Seen, stream: &mut std::net::TcpStream) {
    let body = match request.target.as_str() {
        "/session/token" => SESSION,
        "/portfolio/holdings" => HOLDINGS,
        "/portfolio/positions" => POSITIONS,
        other => panic!("{other}"),
    };
    answer(stream, 200, "", body);
}

#[test]
fn the_official_samples_through_a_sync() {
    serve(official, |url, seen| {
        let (clock, client) = client(url, |_| {});
        let synced = client.sync(&credentials()).unwrap();
        assert_eq!((synced.holdings.len(), synced.positions.len()), (2, 6));
        assert!(!synced.simulated);
        assert!(synced.holdings.iter().all(|held| held.as_of_ms == clock.now_ms()));
        let seen = seen();
        assert_eq!(
            (seen[0].method.as_str(), seen[0].body.as_str()),
            (
                "POST",
                "api_key=api_key&request_token=request_token&checksum=\
                 ff6a6d3d60c9d974df906ba6f787ac38300cfa68b41801b486ea1007e52e8942"
            )
        );
        assert_eq!(seen[0].header("authorization"), None);
        for read in &seen[1..] {
            assert_eq!(read.header("authorization"), Some("token api_key:XXXXXX"));
            assert_eq!(read.header("x-kite-version"), Some("3"));
        }
        assert_eq!(seen.len(), 3);
    });
}

#[test]
fn a_key_has_ten_calls_a_second_and_others_are_not_held_up() {
    serve(official, |url, seen| {
        let (clock, client) = client(url, |_| {});
        for _ in 0..3 {
            client.sync(&credentials()).unwrap();
        }
        let error = client.sync(&credentials()).unwrap_err();
        assert_eq!(error, SyncError::RateLimited(Duration::from_secs(1)));
        assert_eq!((seen().len(), client.counts().held_back), (9, 1), "nothing went out");
        let other = Credentials { api_key: "other".into(), ..credentials() };
        client.sync(&other).unwrap();
        clock.advance_ms(1_000);
        client.sync(&credentials()).unwrap();
    });
}

fn limited(_: &Seen, stream: &mut std::net::TcpStream) {
    let body = br#"{"status":"error","message":"x","error_type":"NetworkException"}"#;
    answer(stream, 429, "Retry-After: 30\r\n", body);
}

fn refusing(_: &Seen, stream: &mut std::net::TcpStream) {
    let body = br#"{"status":"error","message":"x","error_type":"TokenException"}"#;
    answer(stream, 403, "", body);
}

#[test]
fn a_broker_that_says_too_many_is_left_alone_by_all() {
    serve(limited, |url, seen| {
        let (clock, client) = client(url, |_| {});
        let half_a_minute = SyncError::RateLimited(Duration::from_secs(30));
        assert_eq!(client.sync(&credentials()).unwrap_err(), half_a_minute);
        assert_eq!(client.sync(&credentials()).unwrap_err(), half_a_minute);
        for (user, key) in [(1, "another"), (2, "api_key"), (3, "third")] {
            let other = Credentials { user, api_key: key.into(), ..credentials() };
            assert_eq!(client.sync(&other).unwrap_err(), half_a_minute);
        }
        assert_eq!((seen().len(), client.counts().held_back), (1, 4));
        clock.advance_ms(30_000);
        client.sync(&credentials()).unwrap_err();
        assert_eq!(seen().len(), 2);
        clock.advance_ms(30_000);
        let wait = client.sync(&credentials()).unwrap_err();
        assert_eq!(wait, half_a_minute, "who asks again when the broker refuses waits for longer");
        assert_eq!(seen().len(), 2);
        let other = Credentials { user: 2, ..credentials() };
        client.sync(&other).unwrap_err();
        assert_eq!(seen().len(), 3, "others do not");
    });
}

#[test]
fn all_syncs_together_have_a_limit_whatever_keys_are_invented() {
    serve(refusing, |url, seen| {
        let (clock, client) = client(url, |_| {});
        let mut number = 0;
        let mut invented = || {
            number += 1;
            let key = format!("key {number}");
            let other = Credentials { user: number, api_key: key.as_str().into(), ..credentials() };
            client.sync(&other).unwrap_err()
        };
        // The last would need three calls, of which only two are left.
        for _ in 0..RATES_TOGETHER.calls_max - 2 {
            assert_eq!(invented().kind(), SyncErrorKind::CodeRefused);
        }
        assert_eq!(invented(), SyncError::RateLimited(Duration::from_secs(10)));
        assert_eq!((seen().len(), client.counts().held_back), (198, 1));
        clock.advance_ms(10_000);
        assert_eq!(invented().kind(), SyncErrorKind::CodeRefused);
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
                client.sync(&stranger_of(2)).unwrap_err();
            }
            client.sync(&credentials()).unwrap();
            let of_stranger = seen().iter().filter(|seen| seen.method == "POST").count();
            assert_eq!(of_stranger, REFUSED_MAX + round + 1, "all others were held back");
            clock.advance_ms(1_200);
        }
        clock.advance_ms(60_000);
        // Many strangers at once: the owner is known by now and keeps half of the key.
        for user in 100..120 {
            client.sync(&stranger_of(user)).unwrap_err();
        }
        client.sync(&credentials()).unwrap();
    });
}

/// Refused syncs of one user with one key within a minute.
const REFUSED_MAX: usize = 5;

fn stranger_of(user: i64) -> Credentials {
    Credentials { user, api_secret: "guess".into(), ..credentials() }
}

#[test]
fn failures_open_the_circuit_for_everybody_and_nonsense_does_not() {
    for (status, opens) in [(502, true), (200, false), (403, false)] {
        let broken = move |_: &Seen, stream: &mut _| answer(stream, status, "", b"<html></html>");
        serve(broken, |url, seen| {
            let (clock, client) = client(url, |_| {});
            for _ in 0..3 {
                client.sync(&credentials()).unwrap_err();
                clock.advance_ms(1_000);
            }
            let other = Credentials { api_key: "other".into(), ..credentials() };
            let error = client.sync(&other).unwrap_err();
            let held = matches!(&error, SyncError::Unavailable { retry_after: Some(_), .. });
            assert_eq!((held, seen().len()), (opens, if opens { 3 } else { 4 }), "{status}");
        });
    }
}

#[test]
fn a_dripping_broker_ends_the_sync_within_its_budget() {
    let clock = Clock::system();
    let slow = |request: &Seen, stream: &mut std::net::TcpStream| {
        if request.target == "/session/token" {
            answer(stream, 200, "", SESSION);
        } else {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n").unwrap();
            drip(stream);
        }
    };
    serve(slow, |url, _| {
        let upstream = UpstreamSettings { sync_timeout_ms: 300, ..UpstreamSettings::default() };
        let client = Portfolios::new(url, &upstream, &clock);
        let started_ms = clock.monotonic_ms();
        assert_eq!(client.sync(&credentials()).unwrap_err(), SyncError::TimedOut);
        let took_ms = clock.monotonic_ms() - started_ms;
        assert!((250..upstream.read_timeout_ms / 2).contains(&took_ms), "{took_ms}");
    });
}

#[test]
fn calls_are_not_begun_when_the_budget_is_spent() {
    let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
    let hand = clock.clone();
    let slow = move |request: &Seen, stream: &mut std::net::TcpStream| {
        hand.advance_ms(8_000);
        official(request, stream);
    };
    serve(slow, |url, seen| {
        let client = Portfolios::new(url, &UpstreamSettings::default(), &clock);
        assert_eq!(client.sync(&credentials()).unwrap_err(), SyncError::TimedOut);
        assert_eq!(seen().len(), 2);
    });
}

#[test]
fn nothing_of_the_credentials_is_in_an_error() {
    let echo = |request: &Seen, stream: &mut _| {
        let said = request.body.replace('"', "");
        let body = format!(
            r#"{{"status":"error","message":"no: {said} api_secret","error_type":"{said}"}}"#
        );
        answer(stream, 500, "", body.as_bytes());
    };
    serve(echo, |url, _| {
        let (_, client) = client(url, |_| {});
        let given = credentials();
        let error = client.sync(&given).unwrap_err();
        let shown = format!("{error} {error:?} {given:?}");
        for secret in ["api_key=", "request_token", "ff6a6d3d"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    });
}

#[test]
fn credentials_that_cannot_be_meant_are_not_sent() {
    serve(official, |url, seen| {
        let (_, client) = client(url, |_| {});
        let kind = |credentials: &Credentials| client.sync(credentials).unwrap_err().kind();
        let long = "x".repeat(crate::brokers::portfolio::CREDENTIAL_BYTES_MAX + 1);
        for bad in ["", &long] {
            let key = Credentials { api_key: bad.into(), ..credentials() };
            assert_eq!(kind(&key), SyncErrorKind::KeyRefused);
            let secret = Credentials { api_secret: bad.into(), ..credentials() };
            assert_eq!(kind(&secret), SyncErrorKind::KeyRefused);
            let code = Credentials { one_time_code: bad.into(), ..credentials() };
            assert_eq!(kind(&code), SyncErrorKind::CodeRefused);
        }
        assert_eq!(seen().len(), 0);
        let unsendable = Credentials { api_key: "a\nb".into(), ..credentials() };
        assert_eq!(kind(&unsendable), SyncErrorKind::KeyRefused);
    });
}
