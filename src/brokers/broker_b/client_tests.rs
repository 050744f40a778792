//! Broker B's client against a real socket.

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use super::*;
use crate::base::ManualClock;
use crate::brokers::testing::{Seen, answer, serve};
use crate::brokers::{BrokerErrorKind, Readiness};

const SESSION: &[u8] =
    br#"{"Success":{"session_token":"c2Vzc2lvbg==","idirect_userid":"X"},"Status":200}"#;
const DEMAT: &[u8] = br#"{"Success":[{"stock_code":"RELIND","stock_ISIN":"INE002A01018",
    "quantity":"3"}],"Status":200,"Error":null}"#;
const PORTFOLIO: &[u8] = br#"{"Success":[{"stock_code":"RELIND","exchange_code":"NSE",
    "quantity":"5","average_price":"231.40","current_market_price":"266"}],"Status":200}"#;
const NOTHING_THERE: &[u8] = br#"{"Success":null,"Status":200,"Error":"No Data Found"}"#;
const INTERMITTENT: &[u8] = br#"{"Success":null,"Status":500,"Error":"Invalid User Details"}"#;

fn credentials() -> Credentials {
    Credentials {
        user: 1,
        client: None,
        api_key: "a+key=".into(),
        api_secret: "EXAMPLE_SECRET".into(),
        one_time_code: "12345678".into(),
    }
}

fn client(url: &str) -> (ManualClock, BrokerB) {
    let clock = Clock::manual("2026-10-01T10:23:56.789Z".parse().unwrap());
    let settings = BrokerBSettings {
        url: url.into(),
        ..BrokerBSettings::default()
    };
    let client = BrokerB::new(&settings, &UpstreamSettings::default(), &clock).unwrap();
    (clock, client)
}

fn usual(request: &Seen, stream: &mut TcpStream) {
    let body = match request.target.as_str() {
        "/customerdetails" => SESSION,
        "/dematholdings" => DEMAT,
        "/portfolioholdings" => PORTFOLIO,
        _ => NOTHING_THERE,
    };
    answer(stream, 200, "", body);
}

#[test]
fn a_sync_signs_each_read_and_the_exchange_not() {
    serve(usual, |url, seen| {
        let (_, client) = client(url);
        let synced = client.sync(&credentials()).result.unwrap();
        assert_eq!(synced.holdings.len(), 1);
        assert_eq!(synced.holdings[0].quantity(), 5.into());
        assert_eq!(synced.holdings[0].disputed_quantity, 2.into());
        assert!(synced.positions.is_empty());
        let seen = seen();
        let asked: Vec<_> = seen
            .iter()
            .map(|s| (s.target.as_str(), s.body.as_str()))
            .collect();
        assert_eq!(
            asked,
            [
                ("/customerdetails", r#"{"SessionToken":"12345678","AppKey":"a+key="}"#),
                ("/dematholdings", "{}"),
                ("/portfolioholdings", r#"{"exchange_code":"NSE"}"#),
                ("/portfoliopositions", "{}"),
            ]
        );
        for request in &seen {
            assert_eq!(request.method, "GET");
            assert_eq!(request.header("content-type"), Some("application/json"));
        }
        for name in ["x-checksum", "x-timestamp", "x-appkey", "x-sessiontoken"] {
            assert_eq!(seen[0].header(name), None);
        }
        let read = &seen[1];
        assert_eq!(
            read.header("x-checksum"),
            Some("token c6cd10b3ed73c49fb1ee40dc3137cc1026a2876526001a1617b4335152a937ae")
        );
        assert_eq!(read.header("x-timestamp"), Some("2026-10-01T10:23:56.000Z"));
        assert_eq!(read.header("x-appkey"), Some("a+key="));
        assert_eq!(read.header("x-sessiontoken"), Some("c2Vzc2lvbg=="), "verbatim");
        assert_ne!(seen[2].header("x-checksum"), read.header("x-checksum"), "another body");
    });
}

#[test]
fn an_intermittent_refusal_is_tried_once_more_with_a_new_signature() {
    for (refusals, good) in [(1, true), (2, false)] {
        let asked = AtomicUsize::new(0);
        let clock = Clock::manual("2026-10-01T10:23:56Z".parse().unwrap());
        let hand = clock.share();
        let moody = |request: &Seen, stream: &mut TcpStream| {
            if request.target == "/dematholdings" && asked.fetch_add(1, SeqCst) < refusals {
                hand.advance_ms(1_000);
                answer(stream, 200, "", INTERMITTENT);
            } else {
                usual(request, stream);
            }
        };
        serve(moody, |url, seen| {
            let settings = BrokerBSettings {
                url: url.into(),
                ..BrokerBSettings::default()
            };
            let upstream = UpstreamSettings::default();
            let client = BrokerB::new(&settings, &upstream, &clock).unwrap();
            let result = client.sync(&credentials()).result;
            assert_eq!(result.as_ref().is_ok(), good);
            let tries: Vec<_> = seen()
                .into_iter()
                .filter(|s| s.target == "/dematholdings")
                .collect();
            assert_eq!(tries.len(), 2);
            assert_eq!(tries[1].header("x-timestamp"), Some("2026-10-01T10:23:57.000Z"));
            assert_ne!(tries[0].header("x-checksum"), tries[1].header("x-checksum"));
            if let Err(error) = result {
                assert_eq!(error.kind, BrokerErrorKind::CodeRefused);
            }
        });
    }
}

#[test]
fn an_empty_list_beside_a_full_one_is_asked_for_again_over_all_time() {
    let dated = |request: &Seen, stream: &mut TcpStream| {
        if request.target == "/portfolioholdings" && !request.body.contains("from_date") {
            answer(stream, 200, "", NOTHING_THERE);
        } else {
            usual(request, stream);
        }
    };
    serve(dated, |url, seen| {
        let (_, client) = client(url);
        let synced = client.sync(&credentials()).result.unwrap();
        assert!(synced.holdings[0].average_price().is_some());
        let seen = seen();
        assert_eq!(
            seen[3].body,
            "{\"exchange_code\":\"NSE\",\"from_date\":\"2000-01-01T06:00:00.000Z\",\
             \"to_date\":\"2026-10-01T23:59:59.000Z\"}"
        );
        assert_eq!(seen.len(), 5);
    });
}

#[test]
fn an_account_with_nothing_is_a_success_and_a_failure_is_not_nothing() {
    let nothing = |request: &Seen, stream: &mut TcpStream| {
        let session = request.target == "/customerdetails";
        answer(stream, 200, "", if session { SESSION } else { NOTHING_THERE });
    };
    serve(nothing, |url, seen| {
        let (_, client) = client(url);
        let synced = client.sync(&credentials()).result.unwrap();
        assert!(synced.holdings.is_empty() && synced.positions.is_empty());
        assert_eq!(seen().len(), 4);
    });
    for broken in [
        "/dematholdings",
        "/portfolioholdings",
        "/portfoliopositions",
    ] {
        let failing = |request: &Seen, stream: &mut TcpStream| {
            if request.target == broken {
                answer(stream, 200, "", br#"{"Success":null,"Status":500,"Error":"x"}"#);
            } else {
                nothing(request, stream);
            }
        };
        serve(failing, |url, _| {
            let (_, client) = client(url);
            let error = client.sync(&credentials()).result.unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::Failed { status: 200 }, "{broken}");
        });
    }
}

#[test]
fn the_limits_of_a_key_are_kept_by_minute_and_by_day() {
    serve(usual, |url, seen| {
        let (clock, client) = client(url);
        for _ in 0..25 {
            client.sync(&credentials()).result.unwrap();
        }
        let error = client.sync(&credentials()).result.unwrap_err();
        let minute = Readiness::Paced(Duration::from_secs(60));
        assert_eq!(error.kind, BrokerErrorKind::NotReady(minute));
        assert_eq!(seen().len(), 100);
        clock.advance_ms(60_000);
        client.sync(&credentials()).result.unwrap();
    });
    let day_is_over = |_: &Seen, stream: &mut TcpStream| {
        let body = br#"{"Status":5,"Error":"Limit exceed: API call per day: Try tomorrow"}"#;
        answer(stream, 401, "", body);
    };
    serve(day_is_over, |url, seen| {
        let (clock, client) = client(url);
        // 15:53:56.789 in India.
        let until_midnight = Duration::from_millis(((8 * 60 + 6) * 60 + 3) * 1_000 + 211);
        let error = client.sync(&credentials()).result.unwrap_err();
        assert_eq!(error.kind, BrokerErrorKind::KeySpent);
        assert_eq!(error.retry_after(), Some(until_midnight));
        clock.advance_ms(until_midnight.as_millis() as i64 - 1);
        let error = client.sync(&credentials()).result.unwrap_err();
        let last = Readiness::Paced(Duration::from_millis(1));
        assert_eq!(error.kind, BrokerErrorKind::NotReady(last));
        assert_eq!(seen().len(), 1);
        // The limit belongs to the key and does not hold back others.
        let other = Credentials {
            user: 2,
            api_key: "other".into(),
            ..credentials()
        };
        assert_eq!(client.sync(&other).result.unwrap_err().kind, BrokerErrorKind::KeySpent);
        assert_eq!(seen().len(), 2);
    });
}

#[test]
fn activation_needs_a_key_and_a_session_of_a_sane_length() {
    serve(usual, |url, seen| {
        let (clock, bare) = client(url);
        let off = BrokerErrorKind::NotReady(Readiness::Off);
        assert_eq!(bare.activate("1").unwrap_err().kind, off);
        let settings = BrokerBSettings {
            url: url.into(),
            api_key: Some("key".into()),
            api_secret: Some("secret".into()),
            ..BrokerBSettings::default()
        };
        let client = BrokerB::new(&settings, &UpstreamSettings::default(), &clock).unwrap();
        for bad in ["", &"1".repeat(CREDENTIAL_BYTES_MAX + 1)] {
            let error = client.activate(bad).unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::CodeRefused);
        }
        assert_eq!(seen().len(), 0);
        let status = client.activate("12345678").unwrap();
        assert!(status.valid);
        assert_eq!(status.expires_at, Some("2026-10-01T18:30:00Z".parse().unwrap()));
        clock.advance_ms(9 * 3_600_000);
        let status = client.token().status(clock.now());
        assert!(!status.valid && status.initialized);
    });
}
