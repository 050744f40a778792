//! Broker A's portfolio client against a real socket.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;
use crate::base::ManualClock;
use crate::brokers::testing::{Seen, answer, drip, serve};
use crate::brokers::{BrokerErrorKind, Readiness};

const HOLDINGS: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/holdings.json");
const POSITIONS: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/positions.json");
const SESSION: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/generate_session.json");

pub(super) fn credentials() -> Credentials {
    Credentials {
        user: 1,
        client: None,
        api_key: "api_key".into(),
        api_secret: "api_secret".into(),
        one_time_code: "request_token".into(),
    }
}

pub(super) fn client(
    url: &str,
    adjust: impl FnOnce(&mut UpstreamSettings),
) -> (ManualClock, Portfolios) {
    let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
    let mut upstream = UpstreamSettings::default();
    adjust(&mut upstream);
    let portfolios = Portfolios::new(url, &upstream, &clock);
    (clock, portfolios)
}

pub(super) fn official(request: &Seen, stream: &mut std::net::TcpStream) {
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
        let synced = client.sync(&credentials()).result.unwrap();
        assert_eq!((synced.holdings.len(), synced.positions.len()), (2, 6));
        assert!(!synced.simulated);
        assert!(
            synced
                .holdings
                .iter()
                .all(|held| held.as_of_ms == clock.now_ms())
        );
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

pub(super) fn refusing(_: &Seen, stream: &mut std::net::TcpStream) {
    let body = br#"{"status":"error","message":"x","error_type":"TokenException"}"#;
    answer(stream, 403, "", body);
}

pub(super) fn with(user: i64, key: &str) -> Credentials {
    Credentials {
        user,
        api_key: key.into(),
        ..credentials()
    }
}

#[test]
fn a_session_is_ended_on_the_syncs_own_connection_and_only_once_asked() {
    let over = AtomicUsize::new(0);
    let ending = |request: &Seen, stream: &mut std::net::TcpStream| {
        if request.method == "DELETE" {
            let good = over.fetch_add(1, SeqCst) == 0;
            let status = if good { 200 } else { 502 };
            answer(stream, status, "", br#"{"status":"success","data":true}"#);
        } else {
            official(request, stream);
        }
    };
    serve(ending, |url, seen| {
        let (clock, client) = client(url, |_| {});
        let sync = || {
            let attempt = client.sync(&with(1, "a key&"));
            assert!(attempt.result.is_ok());
            attempt.session.unwrap()
        };
        client.end(sync());
        let ended = seen().pop().unwrap();
        assert_eq!(ended.target, "/session/token?api_key=a%20key%26&access_token=XXXXXX");
        assert_eq!(ended.header("authorization"), Some("token a key&:XXXXXX"));
        assert_eq!(ended.header("x-kite-version"), Some("3"));
        client.end(sync());
        clock.advance_ms(1_000);
        sync().keep();
        drop(sync());
        let expected = [("ended", 1), ("failed", 1), ("left", 1), ("kept", 1)];
        assert_eq!(client.session_ends.by_word(), expected);
        assert_eq!(over.load(SeqCst), 2);
        // A failure does not count against syncs, and a session that a limit holds back is left
        // open.
        clock.advance_ms(1_000);
        for session in [sync(), sync(), sync()] {
            client.end(session);
        }
        assert_eq!((client.session_ends.of(SessionEnd::Left), over.load(SeqCst)), (3, 3));
        assert_eq!(client.gate.counts.failed.value(), 0);
    });
}

#[test]
fn a_sync_that_fails_half_way_gives_its_session_out() {
    let half = |request: &Seen, stream: &mut std::net::TcpStream| {
        if request.target == "/portfolio/holdings" {
            answer(stream, 502, "", b"<html></html>");
        } else {
            official(request, stream);
        }
    };
    serve(half, |url, _| {
        let (_, client) = client(url, |_| {});
        let attempt = client.sync(&credentials());
        assert!(attempt.result.is_err() && attempt.session.is_some());
    });
    serve(refusing, |url, _| {
        let (_, client) = client(url, |_| {});
        let attempt = client.sync(&credentials());
        assert!(attempt.result.is_err() && attempt.session.is_none());
    });
}

#[test]
fn failures_open_the_circuit_for_everybody_and_nonsense_does_not() {
    for (status, opens) in [(502, true), (200, false), (403, false)] {
        let broken = move |_: &Seen, stream: &mut _| answer(stream, status, "", b"<html></html>");
        serve(broken, |url, seen| {
            let (clock, client) = client(url, |_| {});
            for _ in 0..3 {
                client.sync(&credentials()).result.unwrap_err();
                clock.advance_ms(1_000);
            }
            let other = Credentials {
                api_key: "other".into(),
                ..credentials()
            };
            let error = client.sync(&other).result.unwrap_err();
            let held = matches!(error.kind, BrokerErrorKind::NotReady(Readiness::Open(_)));
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
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                .unwrap();
            drip(stream);
        }
    };
    serve(slow, |url, _| {
        let upstream = UpstreamSettings {
            sync_timeout_ms: 300,
            ..UpstreamSettings::default()
        };
        let client = Portfolios::new(url, &upstream, &clock);
        let started_ms = clock.monotonic_ms();
        let error = client.sync(&credentials()).result.unwrap_err();
        assert_eq!(error.kind, BrokerErrorKind::TimedOut);
        let took_ms = clock.monotonic_ms() - started_ms;
        assert!((250..upstream.read_timeout_ms / 2).contains(&took_ms), "{took_ms}");
    });
}

#[test]
fn calls_are_not_begun_when_the_budget_is_spent() {
    let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
    let hand = clock.share();
    let slow = move |request: &Seen, stream: &mut std::net::TcpStream| {
        hand.advance_ms(8_000);
        official(request, stream);
    };
    serve(slow, |url, seen| {
        let client = Portfolios::new(url, &UpstreamSettings::default(), &clock);
        let error = client.sync(&credentials()).result.unwrap_err();
        assert_eq!(error.kind, BrokerErrorKind::TimedOut);
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
        let error = client.sync(&given).result.unwrap_err();
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
        let kind = |credentials: &Credentials| client.sync(credentials).result.unwrap_err().kind;
        let long = "x".repeat(portfolio::CREDENTIAL_BYTES_MAX + 1);
        for bad in ["", &long] {
            let key = Credentials {
                api_key: bad.into(),
                ..credentials()
            };
            assert_eq!(kind(&key), BrokerErrorKind::KeyRefused);
            let secret = Credentials {
                api_secret: bad.into(),
                ..credentials()
            };
            assert_eq!(kind(&secret), BrokerErrorKind::KeyRefused);
            let code = Credentials {
                one_time_code: bad.into(),
                ..credentials()
            };
            assert_eq!(kind(&code), BrokerErrorKind::CodeRefused);
        }
        assert_eq!(seen().len(), 0);
        let unsendable = Credentials {
            api_key: "a\nb".into(),
            ..credentials()
        };
        assert_eq!(kind(&unsendable), BrokerErrorKind::KeyRefused);
    });
}
