//! Broker A's client against a real socket.

use super::*;
use crate::base::ManualClock;
use crate::brokers::testing::{Seen, answer, serve};

const QUOTE: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/quote.json");
const OHLC: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/ohlc.json");
const SESSION: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/generate_session.json");
const INSTRUMENTS: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/instruments_nse.csv");

struct Bench {
    clock: ManualClock,
    token: Arc<SharedToken>,
    broker: BrokerA,
}

/// A client on a clock that stands at `now` (UTC), with a token.
fn bench(url: &str, now: &str) -> Bench {
    let clock = Clock::manual(now.parse().unwrap());
    let token = Arc::new(SharedToken::default());
    token.set("token".into(), "key".into(), clock.now());
    let settings = BrokerASettings {
        url: url.into(),
        api_key: Some("api_key".into()),
        api_secret: Some("api_secret".into()),
        ..BrokerASettings::default()
    };
    let upstream = UpstreamSettings::default();
    let broker = BrokerA::new(&settings, &upstream, clock.clone(), token.clone()).unwrap();
    Bench {
        clock,
        token,
        broker,
    }
}

/// A quarter of an hour after the official sample's price.
const SAMPLE_DAY: &str = "2021-06-08T10:30:00Z";

fn symbols(names: &[&str]) -> Vec<Symbol> {
    names
        .iter()
        .map(|name| Symbol::parse(name).unwrap())
        .collect()
}

fn sent(low: &str, high: &str) -> (String, String) {
    (low.to_owned(), high.to_owned())
}

#[test]
fn a_batch_of_the_official_sample() {
    serve(
        |_, stream| answer(stream, 200, "X-Bhav-Simulator: 1\r\n", QUOTE),
        |url, seen| {
            let bench = bench(url, SAMPLE_DAY);
            let batch = bench
                .broker
                .quotes(&symbols(&["NSE:INFY", "NSE:M&M"]))
                .unwrap();
            assert_eq!(batch.unknown, symbols(&["NSE:M&M"]));
            assert!(batch.implausible.is_empty() && batch.simulated);
            let quote = &batch.quotes[0];
            assert_eq!(quote.last_price.to_string(), "1412.95");
            assert_eq!(quote.change().unwrap().to_string(), "23.30");
            let day = quote.day.unwrap();
            assert_eq!((day.low().to_string(), day.high().to_string()), sent("1395.55", "1421.75"));
            assert_eq!(quote.as_of.to_string(), "2021-06-08T10:15:56Z");
            assert_eq!(
                (quote.asked, quote.timed, quote.simulated),
                (bench.clock.now(), true, true)
            );
            let request = &seen()[0];
            assert_eq!(request.target, "/quote?i=NSE%3AINFY&i=NSE%3AM%26M");
            assert_eq!(request.header("authorization"), Some("token key:token"));
            assert_eq!(request.header("x-kite-version"), Some("3"));
            let reading = bench.broker.quotes.reading("quotes");
            assert_eq!((reading.calls(), reading.of("ok")), (1, 1));
        },
    );
}

#[test]
fn an_old_price_is_implausible() {
    serve(
        |_, stream| answer(stream, 200, "", QUOTE),
        |url, _| {
            let bench = bench(url, "2021-07-08T10:30:00Z");
            let batch = bench.broker.quotes(&symbols(&["NSE:INFY"])).unwrap();
            assert_eq!(batch.implausible, symbols(&["NSE:INFY"]));
        },
    );
}

#[test]
fn one_call_per_interval_whoever_asks() {
    serve(
        |_, stream| answer(stream, 200, "", QUOTE),
        |url, seen| {
            let bench = bench(url, SAMPLE_DAY);
            let infy = symbols(&["NSE:INFY"]);
            bench.broker.quotes(&infy).unwrap();
            let error = bench.broker.quotes(&infy).unwrap_err();
            assert!(
                matches!(error.kind, BrokerErrorKind::NotReady(Readiness::Paced(_))),
                "{error}"
            );
            assert_eq!(bench.broker.readiness(), Readiness::Paced(Duration::from_millis(1_050)));
            bench.clock.advance_ms(1_050);
            bench.broker.quotes(&infy).unwrap();
            assert_eq!(seen().len(), 2);
        },
    );
}

#[test]
fn a_refused_token_is_dead_at_once_and_a_new_one_works() {
    let respond = |request: &Seen, stream: &mut _| {
        if request.header("authorization") == Some("token key:new") {
            answer(stream, 200, "", QUOTE);
        } else {
            let body = br#"{"status":"error","message":"x","error_type":"TokenException"}"#;
            answer(stream, 403, "", body);
        }
    };
    serve(respond, |url, seen| {
        let bench = bench(url, SAMPLE_DAY);
        let infy = symbols(&["NSE:INFY"]);
        let error = bench.broker.quotes(&infy).unwrap_err();
        assert_eq!(error.kind, BrokerErrorKind::TokenDead, "{error}");
        assert!(!bench.token.status(bench.clock.now()).valid);
        bench.clock.advance_ms(5_000);
        assert_eq!(bench.broker.readiness(), Readiness::NoToken);
        bench.broker.quotes(&infy).unwrap_err();
        assert_eq!(seen().len(), 1, "a dead token is not tried again");
        bench
            .token
            .set("new".into(), "key".into(), bench.clock.now());
        assert_eq!(bench.broker.quotes(&infy).unwrap().quotes.len(), 1);
    });
}

#[test]
fn a_plan_without_market_data_is_a_state_of_its_own() {
    serve(
        |_, stream| {
            let body = br#"{"status":"error","message":"Insufficient permission for that call.",
                "error_type":"PermissionException"}"#;
            answer(stream, 403, "", body);
        },
        |url, seen| {
            let bench = bench(url, SAMPLE_DAY);
            bench.broker.quotes(&symbols(&["NSE:INFY"])).unwrap_err();
            assert_eq!(bench.broker.readiness(), Readiness::NoPermission);
            let status = bench.token.status(bench.clock.now());
            assert!(status.valid && status.no_permission);
            bench.clock.advance_ms(10 * 60_000);
            assert_eq!(bench.broker.readiness(), Readiness::Ready);
            assert_eq!(seen().len(), 1);
        },
    );
}

#[test]
fn failures_open_the_circuit_and_a_good_answer_closes_it() {
    let broken = std::sync::atomic::AtomicBool::new(true);
    let respond = |_: &Seen, stream: &mut _| {
        if broken.load(std::sync::atomic::Ordering::SeqCst) {
            answer(stream, 502, "Content-Type: text/html\r\n", b"<html>Bad Gateway</html>");
        } else {
            answer(stream, 200, "", QUOTE);
        }
    };
    serve(respond, |url, seen| {
        let bench = bench(url, SAMPLE_DAY);
        let infy = symbols(&["NSE:INFY"]);
        for _ in 0..3 {
            let error = bench.broker.quotes(&infy).unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::Failed { status: 502 }, "{error}");
            bench.clock.advance_ms(1_050);
        }
        let Readiness::Open(open) = bench.broker.readiness() else {
            panic!("not open")
        };
        bench.broker.quotes(&infy).unwrap_err();
        assert_eq!(seen().len(), 3, "nothing goes out while it is open");
        broken.store(false, std::sync::atomic::Ordering::SeqCst);
        bench.clock.advance_ms(open.as_millis() as i64);
        assert_eq!(bench.broker.quotes(&infy).unwrap().quotes.len(), 1);
        bench.clock.advance_ms(1_050);
        assert_eq!(bench.broker.readiness(), Readiness::Ready);
    });
}

#[test]
fn ohlc_serves_while_quote_answers_nonsense() {
    let respond = |request: &Seen, stream: &mut _| {
        let good = request.target.starts_with("/quote/ohlc?");
        answer(stream, 200, "", if good { OHLC } else { b"<html></html>" });
    };
    serve(respond, |url, _| {
        let bench = bench(url, SAMPLE_DAY);
        let infy = symbols(&["NSE:INFY"]);
        for _ in 0..2 {
            bench.broker.quotes(&infy).unwrap_err();
            bench.clock.advance_ms(1_050);
        }
        let batch = bench.broker.quotes(&infy).unwrap();
        assert_eq!(batch.quotes[0].last_price.to_string(), "1075");
        let day = batch.quotes[0].day.unwrap();
        assert_eq!((day.low().to_string(), day.high().to_string()), sent("1070.9", "1085.9"));
        assert!(!batch.quotes[0].timed, "ohlc has no time of its own");
    });
}

#[test]
fn five_hundred_symbols_go_in_one_call_and_no_more() {
    serve(
        |_, stream| answer(stream, 200, "", br#"{"status":"success","data":{}}"#),
        |url, seen| {
            let bench = bench(url, SAMPLE_DAY);
            let named = |n| Symbol::parse(&format!("NSE:LONG&NAME-{n:08}-BE")).unwrap();
            let most: Vec<_> = (0..500).map(named).collect();
            assert_eq!(bench.broker.quotes(&most).unwrap().unknown, most);
            assert_eq!(seen()[0].target.matches("i=NSE%3ALONG%26NAME-").count(), 500);
            bench.clock.advance_ms(1_050);
            let more: Vec<_> = (0..501).map(named).collect();
            bench.broker.quotes(&more).unwrap_err();
            assert_eq!(seen().len(), 1);
        },
    );
}

#[test]
fn activation_exchanges_the_request_token() {
    serve(
        |_, stream| answer(stream, 200, "", SESSION),
        |url, seen| {
            let bench = bench(url, "2021-01-01T10:46:00Z");
            bench.token.clear();
            let status = bench.broker.activate("request_token").unwrap();
            assert!(status.valid && status.initialized);
            assert_eq!(status.set_at.unwrap().to_string(), "2021-01-01T10:45:14Z");
            assert_eq!(status.expires_at.unwrap().to_string(), "2021-01-02T00:30:00Z");
            let request = &seen()[0];
            assert_eq!(
                (request.method.as_str(), request.target.as_str()),
                ("POST", "/session/token")
            );
            assert_eq!(
                request.body,
                "api_key=api_key&request_token=request_token&checksum=\
                 ff6a6d3d60c9d974df906ba6f787ac38300cfa68b41801b486ea1007e52e8942"
            );
            assert_eq!(request.header("authorization"), None);
            let token = bench.token.usable(bench.clock.now()).unwrap();
            assert_eq!(token.authorization().as_str(), "token api_key:XXXXXX");
        },
    );
}

#[test]
fn a_stale_login_time_does_not_make_a_fresh_token_expired() {
    serve(
        |_, stream| answer(stream, 200, "", SESSION),
        |url, _| {
            let bench = bench(url, SAMPLE_DAY);
            let status = bench.broker.activate("request_token").unwrap();
            assert!(status.valid);
            assert_eq!(status.set_at, Some(bench.clock.now()));
        },
    );
}

#[test]
fn a_request_token_that_is_refused_leaves_the_old_token_alone() {
    serve(
        |_, stream| {
            let body = br#"{"status":"error","message":"Invalid `checksum`.",
                "error_type":"TokenException"}"#;
            answer(stream, 403, "", body);
        },
        |url, _| {
            let bench = bench(url, SAMPLE_DAY);
            let error = bench.broker.activate("bad").unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::CodeRefused, "{error}");
            assert!(bench.token.status(bench.clock.now()).valid);
            let error = bench.broker.activate(&"x".repeat(1_000)).unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::CodeRefused, "{error}");
        },
    );
}

#[test]
fn the_instruments_file() {
    let respond = |request: &Seen, stream: &mut _| match request.target.as_str() {
        "/quote?i=NSE%3AINFY" => answer(
            stream,
            403,
            "",
            br#"{"status":"error","message":"x","error_type":"PermissionException"}"#,
        ),
        "/instruments/NSE" => answer(stream, 200, "Content-Type: text/csv\r\n", INSTRUMENTS),
        _ => answer(stream, 502, "Content-Type: text/html\r\n", b"<html></html>"),
    };
    serve(respond, |url, _| {
        let bench = bench(url, SAMPLE_DAY);
        bench.broker.quotes(&symbols(&["NSE:INFY"])).unwrap_err();
        assert_eq!(bench.broker.readiness(), Readiness::NoPermission, "which lists do not mind");
        let list = bench.broker.instruments(Exchange::Nse).unwrap();
        assert!(
            list.listed
                .iter()
                .any(|row| row.symbol.as_str() == "NSE:ADANIPORTS")
        );
        bench.clock.advance_ms(100);
        let error = bench.broker.instruments(Exchange::Bse).unwrap_err();
        assert_eq!(error.kind, BrokerErrorKind::Failed { status: 502 }, "{error}");
        assert_eq!(bench.broker.other.reading("other").calls(), 2);
    });
}

#[test]
fn urls_of_the_settings_are_checked() {
    for (url, good) in [
        ("https://api.kite.trade", true),
        ("http://127.0.0.1:9000/a/", true),
        ("api.kite.trade", false),
        ("https://", false),
        ("ftp://x", false),
        ("https://user@x", false),
        ("https://x?y", false),
    ] {
        assert_eq!(BadUrl::checked("s", url).is_ok(), good, "{url}");
    }
}

#[test]
fn daily_candles_have_a_pace_of_their_own() {
    let body = br#"{"status":"success","data":{"candles":[
        ["2021-06-07T00:00:00+0530",1390,1412.05,1388.6,1389.65,5000000],
        ["2021-06-08T00:00:00+0530",1396,1421.75,1395.55,1412.95,7360198]]}}"#;
    let respond = |request: &Seen, stream: &mut _| {
        let candles = request.target.starts_with("/instruments/historical/");
        answer(stream, 200, "X-Bhav-Simulator: 1\r\n", if candles { body } else { QUOTE });
    };
    serve(respond, |url, seen| {
        let bench = bench(url, SAMPLE_DAY);
        let from = jiff::civil::date(2019, 6, 9);
        let to = jiff::civil::date(2021, 6, 8);
        let candles = |broker: &BrokerA| broker.daily_candles(408_065, from, to);
        let read = candles(&bench.broker).unwrap();
        assert_eq!((read.candles.len(), read.simulated), (2, true));
        assert_eq!(read.candles[1].open_e4, 13_960_000);
        assert_eq!(
            seen()[0].target,
            "/instruments/historical/408065/day?from=2019-06-09+00:00:00&to=2021-06-08+23:59:59"
        );
        assert_eq!(seen()[0].header("authorization"), Some("token key:token"));
        assert!(matches!(bench.broker.candles_readiness(), Readiness::Paced(_)));
        candles(&bench.broker).unwrap_err();
        bench.broker.quotes(&symbols(&["NSE:INFY"])).unwrap();
        bench.clock.advance_ms(350);
        candles(&bench.broker).unwrap();
        assert_eq!(seen().len(), 3);
        assert_eq!(bench.broker.candles.reading("candles").calls(), 2);
        bench.clock.advance_ms(350);
        bench
            .broker
            .daily_candles(408_065, jiff::civil::date(2000, 1, 1), to)
            .unwrap_err();
        assert_eq!(seen().len(), 3, "too long a span is not asked for");
    });
}

#[test]
fn candles_need_a_plan_with_market_data() {
    serve(
        |_, stream| {
            let body = br#"{"status":"error","message":"x","error_type":"PermissionException"}"#;
            answer(stream, 403, "", body);
        },
        |url, seen| {
            let bench = bench(url, SAMPLE_DAY);
            let day = jiff::civil::date(2021, 6, 8);
            let error = bench.broker.daily_candles(1, day, day).unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::NotPermitted, "{error}");
            assert_eq!(bench.broker.readiness(), Readiness::NoPermission);
            assert_eq!(bench.broker.candles_readiness(), Readiness::NoPermission);
            bench.broker.daily_candles(1, day, day).unwrap_err();
            assert_eq!(seen().len(), 1);
        },
    );
}
