//! The public provider's client against a real socket.

use super::*;
use crate::base::ManualClock;
use crate::brokers::testing::{Seen, answer, serve};

const SPARK: &[u8] = include_bytes!("../../../tests/fixtures/public/spark_v7.json");
const CHART: &[u8] = include_bytes!("../../../tests/fixtures/public/chart_v8.json");

/// The afternoon of the samples.
const SAMPLE_DAY: &str = "2026-04-10T10:30:00Z";

fn symbols(names: &[&str]) -> Vec<Symbol> {
    names
        .iter()
        .map(|name| Symbol::parse(name).unwrap())
        .collect()
}

fn public(url: &str, change: impl FnOnce(&mut PublicSettings)) -> (ManualClock, Public) {
    let clock = Clock::manual(SAMPLE_DAY.parse().unwrap());
    let mut settings = PublicSettings {
        url: url.into(),
        ..PublicSettings::default()
    };
    change(&mut settings);
    let indices = HashMap::from([(Symbol::parse("NSE:NIFTY 50").unwrap(), "^NSEI".to_owned())]);
    let leads = indices.keys().cloned().collect();
    let upstream = UpstreamSettings::default();
    let public = Public::new(&settings, &upstream, clock.clone(), indices, leads);
    (clock, public.unwrap())
}

#[test]
fn a_batch_by_spark() {
    serve(
        |_, stream| answer(stream, 200, "X-Bhav-Simulator: 1\r\n", SPARK),
        |url, seen| {
            let (_, public) = public(url, |settings| settings.user_agent = "Agent/9".into());
            let asked = symbols(&[
                "NSE:NIFTY 50",
                "NSE:BEL",
                "NSE:BEL-BE",
                "NSE:M&M",
                "NSE:TATAMOTORS",
                "NSE:NIFTY BANK",
            ]);
            let batch = public.quotes(&asked).unwrap();
            let got: Vec<_> = batch
                .quotes
                .iter()
                .map(|quote| quote.symbol.as_str())
                .collect();
            assert_eq!(got, ["NSE:NIFTY 50", "NSE:BEL", "NSE:BEL-BE"]);
            assert_eq!(batch.unknown, symbols(&["NSE:M&M", "NSE:TATAMOTORS", "NSE:NIFTY BANK"]));
            let nifty = &batch.quotes[0];
            assert_eq!(nifty.change().unwrap().to_string(), "275.50");
            assert_eq!(nifty.as_of.to_string(), "2026-04-10T10:00:00Z");
            assert!(nifty.simulated && batch.simulated);
            let request = &seen()[0];
            assert_eq!(
                request.target,
                "/v7/finance/spark?symbols=BEL.NS,M%26M.NS,TATAMOTORS.NS,%5ENSEI\
                 &range=1d&interval=5m&_=1775817000000"
            );
            assert_eq!(request.header("user-agent"), Some("Agent/9"));
            assert_eq!(request.header("cache-control"), Some("no-cache"));
        },
    );
}

#[test]
fn paced_by_the_setting() {
    serve(
        |_, stream| answer(stream, 200, "", SPARK),
        |url, seen| {
            let (clock, public) = public(url, |_| {});
            public.quotes(&symbols(&["NSE:BEL"])).unwrap();
            public.quotes(&symbols(&["NSE:BEL"])).unwrap_err();
            assert_eq!(public.readiness(), Readiness::Paced(Duration::from_secs(15)));
            clock.advance_ms(15_000);
            public.quotes(&symbols(&["NSE:BEL"])).unwrap();
            assert_eq!(seen().len(), 2);
        },
    );
}

#[test]
fn too_many_requests_silences_it_for_a_minute_at_least() {
    serve(
        |_, stream| answer(stream, 429, "", b"Edge: Too Many Requests"),
        |url, seen| {
            let (clock, public) = public(url, |_| {});
            let error = public.quotes(&symbols(&["NSE:BEL"])).unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::RateLimited);
            assert!(error.retry_after() >= Some(Duration::from_secs(60)));
            clock.advance_ms(59_000);
            public.quotes(&symbols(&["NSE:BEL"])).unwrap_err();
            assert_eq!(seen().len(), 1);
        },
    );
}

#[test]
fn the_chart_serves_while_spark_is_gone() {
    let respond = |request: &Seen, stream: &mut _| {
        if request.target.starts_with("/v8/finance/chart/BEL.NS?") {
            answer(stream, 200, "", CHART);
        } else if request.target.starts_with("/v8/finance/chart/") {
            answer(stream, 404, "", br#"{"chart":{"result":null,"error":{"code":"Not Found"}}}"#);
        } else {
            answer(stream, 404, "", br#"{"message":"no such route"}"#);
        }
    };
    serve(respond, |url, seen| {
        let (clock, public) = public(url, |_| {});
        let asked = symbols(&["NSE:BEL", "NSE:INFY"]);
        for _ in 0..2 {
            assert_eq!(public.batch_max(), 20);
            public.quotes(&asked).unwrap_err();
            clock.advance_ms(15_000);
        }
        assert_eq!(public.batch_max(), 1);
        let batch = public.quotes(&asked).unwrap();
        assert_eq!(batch.quotes[0].symbol.as_str(), "NSE:BEL");
        assert!(batch.unknown.is_empty(), "the second symbol was not asked for");
        clock.advance_ms(15_000);
        assert_eq!(public.quotes(&asked[1..]).unwrap().unknown, asked[1..]);
        assert_eq!(seen().len(), 4);
        clock.advance_ms(10 * 60_000);
        assert_eq!(public.batch_max(), 20, "back to spark after a while");
    });
}

#[test]
fn an_empty_answer_is_believed_of_strangers_and_not_of_an_index() {
    serve(
        |_, stream| answer(stream, 200, "", br#"{"spark":{"result":[],"error":null}}"#),
        |url, _| {
            let (clock, public) = public(url, |_| {});
            let strangers = symbols(&["NSE:MADEUP"]);
            assert_eq!(public.quotes(&strangers).unwrap().unknown, strangers);
            clock.advance_ms(15_000);
            let error = public
                .quotes(&symbols(&["NSE:NIFTY 50", "NSE:MADEUP"]))
                .unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::Malformed, "{error}");
        },
    );
}

#[test]
fn what_it_cannot_have_costs_no_call() {
    serve(
        |_, stream| answer(stream, 200, "", SPARK),
        |url, seen| {
            let (_, public) = public(url, |_| {});
            let bonds = symbols(&["NSE:XYZ-N1"]);
            assert_eq!(public.quotes(&bonds).unwrap().unknown, bonds);
            assert_eq!(public.readiness(), Readiness::Ready);
            let crowd: Vec<_> = (0..21)
                .map(|n| Symbol::parse(&format!("NSE:A{n}")).unwrap())
                .collect();
            public.quotes(&crowd).unwrap_err();
            assert!(seen().is_empty());
        },
    );
}

#[test]
fn can_be_switched_off() {
    let (_, public) = public("http://127.0.0.1:1", |settings| settings.enabled = false);
    assert_eq!(public.readiness(), Readiness::Off);
    let error = public.quotes(&symbols(&["NSE:BEL"])).unwrap_err();
    assert_eq!(error.kind, BrokerErrorKind::NotReady(Readiness::Off), "{error}");
    let reading = &public.readings()[0];
    assert_eq!((reading.calls(), reading.held_back), (0, 1));
}

#[test]
fn daily_candles_share_the_slot_of_quotes() {
    let body = br#"{"chart":{"result":[{"meta":{"currency":"INR"},"timestamp":[1775706300],
        "indicators":{"quote":[{"open":[1],"high":[3.004999],"low":[1],"close":[2],"volume":[9]}]}
        }],"error":null}}"#;
    let respond = |request: &Seen, stream: &mut _| {
        let chart = request
            .target
            .starts_with("/v8/finance/chart/M%26M.NS?period1=1775586600");
        answer(stream, 200, "X-Bhav-Simulator: 1\r\n", if chart { body } else { SPARK });
    };
    serve(respond, |url, seen| {
        let (clock, public) = public(url, |_| {});
        let mahindra = &symbols(&["NSE:M&M"])[0];
        let from = jiff::civil::date(2026, 4, 8);
        let to = jiff::civil::date(2026, 4, 9);
        let read = public.daily_candles(mahindra, from, to).unwrap().unwrap();
        assert_eq!((read.candles.len(), read.simulated), (1, true));
        assert_eq!((read.candles[0].date, read.candles[0].high_e4), (to, 30_000));
        assert!(matches!(public.readiness(), Readiness::Paced(_)), "quotes have to wait");
        public.quotes(&symbols(&["NSE:BEL"])).unwrap_err();
        public.daily_candles(mahindra, from, to).unwrap_err();
        clock.advance_ms(15_000);
        public.quotes(&symbols(&["NSE:BEL"])).unwrap();
        assert_eq!(seen().len(), 2);
        let bond = &symbols(&["NSE:XYZ-N1"])[0];
        assert_eq!(public.daily_candles(bond, from, to).unwrap(), None, "costs no call");
        public.daily_candles(mahindra, to, from).unwrap_err();
        assert_eq!(seen().len(), 2);
    });
}
