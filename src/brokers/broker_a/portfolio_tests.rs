//! Broker A's portfolio client against a real socket.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
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
        client: None,
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
        let synced = client.sync(&credentials()).result.unwrap();
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
            client.sync(&credentials()).result.unwrap();
        }
        let error = client.sync(&credentials()).result.unwrap_err();
        assert_eq!(error, SyncError::RateLimited(Duration::from_secs(1)));
        assert_eq!((seen().len(), client.counts().held_back), (9, 1), "nothing went out");
        let other = Credentials { api_key: "other".into(), ..credentials() };
        client.sync(&other).result.unwrap();
        clock.advance_ms(1_000);
        client.sync(&credentials()).result.unwrap();
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

/// Waits as told; a second is the least that is told.
fn rate_limited(seconds: u64) -> SyncError {
    SyncError::RateLimited(Duration::from_secs(seconds))
}

fn with(user: i64, key: &str) -> Credentials {
    Credentials { user, api_key: key.into(), ..credentials() }
}

#[test]
fn a_key_that_is_refused_rests_and_only_several_keys_make_everybody_rest() {
    serve(limited, |url, seen| {
        let (clock, client) = client(url, |_| {});
        let refused = |user, key: &str| client.sync(&with(user, key)).result.unwrap_err();
        assert_eq!(refused(1, "one"), rate_limited(30));
        assert_eq!((refused(1, "one"), refused(2, "one")), (rate_limited(30), rate_limited(30)));
        assert_eq!((seen().len(), client.counts().held_back), (1, 2), "the key rests");
        clock.advance_ms(1_000);
        assert_eq!(refused(2, "two"), rate_limited(30), "another key's first call");
        assert_eq!(seen().len(), 2);
        assert_eq!(refused(3, "three"), rate_limited(30), "and the third");
        assert_eq!(seen().len(), 3);
        assert_eq!(refused(4, "four"), rate_limited(30), "now all rest");
        assert_eq!((seen().len(), client.counts().held_back), (3, 3));
    });
}

#[test]
fn whoever_is_refused_is_told_the_whole_time_and_a_success_starts_over() {
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
        let mut calls = 0;
        for held_s in [1, 2, 4, 8] {
            calls += 1;
            assert_eq!(client.sync(&credentials()).result.unwrap_err(), rate_limited(held_s));
            clock.advance_ms(held_s as i64 * 1_000 - 1);
            let early = client.sync(&credentials()).result.unwrap_err();
            assert_eq!(early, SyncError::RateLimited(Duration::from_millis(1)));
            assert_eq!(seen().len(), calls, "held back to the end");
            clock.advance_ms(1);
        }
        refuses.store(false, SeqCst);
        client.sync(&credentials()).result.unwrap();
        clock.advance_ms(1_000);
        refuses.store(true, SeqCst);
        assert_eq!(client.sync(&credentials()).result.unwrap_err(), rate_limited(1));
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
        let wait = || match client.sync(&credentials()).result.unwrap_err() {
            SyncError::Unavailable { retry_after, .. } => retry_after.unwrap().as_millis(),
            other => panic!("{other}"),
        };
        assert_eq!(wait(), 1_000, "as the broker asked");
        let opened = wait();
        assert!((7_000..=9_000).contains(&opened), "{opened}");
        assert_eq!(wait(), opened);
    });
}

/// A login that the broker refuses, of a new account with a key of its own.
fn invented(number: i64, client: [u8; 4]) -> Credentials {
    let api_key = format!("key {number}").as_str().into();
    Credentials { user: 1_000 + number, client: Some(client.into()), api_key, ..credentials() }
}

/// Knows one app.
fn strict(request: &Seen, stream: &mut std::net::TcpStream) {
    if request.method == "POST" && !request.body.starts_with("api_key=api_key&") {
        refusing(request, stream);
    } else {
        official(request, stream);
    }
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
        let refused = seen().iter().filter(|seen| seen.body.contains("key%20")).count();
        assert_eq!(refused, 20, "within the minute, whatever accounts and keys");
    });
}

#[test]
fn strangers_from_everywhere_leave_half_to_those_who_have_synced() {
    serve(strict, |url, seen| {
        let (clock, client) = client(url, |_| {});
        client.sync(&credentials()).result.unwrap();
        clock.advance_ms(10_000);
        let (mut asked, mut held) = (0, 0);
        for number in 0..300_i64 {
            let from = [198, 51, (number >> 8) as u8, number as u8];
            match client.sync(&invented(number, from)).result.unwrap_err() {
                SyncError::CodeRefused(_) => asked += 1,
                SyncError::RateLimited(_) => held += 1,
                other => panic!("{other}"),
            }
        }
        // The last would need three calls, of which only two are left.
        assert_eq!((asked, held), (RATES_TOGETHER.calls_max / 2 - 2, 300 - 98));
        for _ in 0..3 {
            client.sync(&credentials()).result.unwrap();
        }
        assert_eq!(seen().len(), 3 + 98 + 9);
        clock.advance_ms(10_000);
        let next = client.sync(&invented(999, [203, 0, 113, 1])).result.unwrap_err();
        assert_eq!(next.kind(), SyncErrorKind::CodeRefused);
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
            client.sync(&credentials()).result.unwrap();
            let of_stranger = seen().iter().filter(|seen| seen.method == "POST").count();
            assert_eq!(of_stranger, REFUSED_MAX + round + 1, "all others were held back");
            clock.advance_ms(1_200);
        }
        clock.advance_ms(60_000);
        // Many strangers at once: the owner is known by now and keeps half of the key.
        for user in 100..120 {
            client.sync(&stranger_of(user)).result.unwrap_err();
        }
        client.sync(&credentials()).result.unwrap();
    });
}

/// Refused syncs of one user with one key within a minute.
const REFUSED_MAX: usize = 5;

fn stranger_of(user: i64) -> Credentials {
    Credentials { user, api_secret: "guess".into(), ..credentials() }
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
        let expected = SessionCounts { ended: 1, failed: 1, kept: 1, left: 1 };
        assert_eq!(client.session_counts(), expected);
        assert_eq!(over.load(SeqCst), 2);
        // A failure says nothing of syncs; and what a limit holds back is left.
        clock.advance_ms(1_000);
        for session in [sync(), sync(), sync()] {
            client.end(session);
        }
        assert_eq!((client.session_counts().left, over.load(SeqCst)), (3, 3));
        assert_eq!(client.counts().failed, 0);
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
            let other = Credentials { api_key: "other".into(), ..credentials() };
            let error = client.sync(&other).result.unwrap_err();
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
        assert_eq!(client.sync(&credentials()).result.unwrap_err(), SyncError::TimedOut);
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
        assert_eq!(client.sync(&credentials()).result.unwrap_err(), SyncError::TimedOut);
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
        let kind = |credentials: &Credentials| client.sync(credentials).result.unwrap_err().kind();
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
