//! Quotes of chosen symbols, in streams together with the snapshot.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use super::stage::Stage;
use crate::support::wait::PATIENCE_MS;
use crate::support::{
    Client, Event, EventReader, PRICES, SNAPSHOT, STREAM, Scene, TRADING, bearer, until,
};

/// Longer than any test.
const EVER_MS: i64 = 3_600_000;

/// Every upstream answers long after any client has gone.
const HANGS: &str = r#"{"kind":"delay","delay_ms":600000}"#;

/// The data of an event `quotes`.
struct Told(Value);

impl Told {
    #[track_caller]
    fn of(event: &Event) -> Self {
        assert_eq!(event.name, "quotes", "{event:?}");
        Self(serde_json::from_str(&event.data).unwrap())
    }

    #[track_caller]
    fn next(reader: &mut EventReader) -> Self {
        Self::of(&reader.event_named("quotes"))
    }

    /// Symbol, price and whether it is stale.
    fn quotes(&self) -> Vec<(&str, u64, bool)> {
        let all = self.0["quotes"].as_array().unwrap().iter();
        all.map(|quote| {
            let price = quote["last_price"].as_f64().unwrap() as u64;
            (quote["symbol"].as_str().unwrap(), price, quote["stale"].as_bool().unwrap())
        })
        .collect()
    }

    fn names(&self, member: &str) -> Vec<&str> {
        self.0[member]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect()
    }

    fn unavailable(&self) -> Vec<&str> {
        self.names("unavailable")
    }

    fn pending(&self) -> Vec<&str> {
        self.names("pending")
    }
}

/// The first event for which `holds` is true.
#[track_caller]
fn told_where(reader: &mut EventReader, what: &str, holds: impl Fn(&Told) -> bool) -> Told {
    until(what, || {
        reader.look();
        let event = std::iter::from_fn(|| reader.ready()).find(|event| event.name == "quotes")?;
        Some(Told::of(&event)).filter(&holds)
    })
}

#[test]
fn all_come_at_once_and_then_only_those_that_have_changed() {
    let stage = Stage::running(|_| {});
    for (at, symbol) in ["NSE:AA", "NSE:BB", "BSE:AA"].into_iter().enumerate() {
        stage.quote(symbol, 100 + at, 1, EVER_MS);
    }
    let mut reader = stage.open_with("NSE:BB,BSE:AA,NSE:AA", "");
    let event = reader.event_named("quotes");
    let first = Told::of(&event);
    assert_eq!(
        first.quotes(),
        [
            ("NSE:BB", 101, false),
            ("BSE:AA", 102, false),
            ("NSE:AA", 100, false)
        ]
    );
    assert_eq!((first.unavailable(), first.pending()), (vec![], vec![]));
    assert_eq!(event.id, "", "quotes have no id");
    // Byte for byte as in live prices.
    let polled = stage.service.prices("NSE:BB,BSE:AA,NSE:AA");
    let quotes = polled.text().split_once(",\"unavailable\"").unwrap().0;
    assert!(event.data.starts_with(quotes), "{} {}", event.data, polled.text());
    for (second, symbol, price) in [(2, "BSE:AA", 7), (2, "NSE:BB", 8), (3, "BSE:AA", 9)] {
        stage.quote(symbol, price, second, EVER_MS);
        assert_eq!(Told::next(&mut reader).quotes(), [(symbol, price as u64, false)]);
    }
    // The same quote again, as from a poll, is no change. Then the snapshot alone is an event.
    stage.quote("NSE:BB", 8, 2, EVER_MS);
    let json = stage.publish(1, 10);
    assert_eq!(reader.event_named("snapshot").data, json);
    stage.quote("NSE:AA", 5, 2, EVER_MS);
    assert_eq!(Told::next(&mut reader).quotes(), [("NSE:AA", 5, false)]);
}

#[test]
fn symbols_are_read_as_live_prices_reads_them() {
    let stage = Stage::running(|_| {});
    let fifty: Vec<String> = (0..50).map(|at| format!("NSE:S{at}")).collect();
    fifty
        .iter()
        .for_each(|symbol| stage.quote(symbol, 1, 1, EVER_MS));
    stage.quote("NSE:M&M", 1, 1, EVER_MS);
    stage.quote("NSE:NIFTY X", 1, 1, EVER_MS);
    let mut reader =
        stage.open_with("NSE:M%26M,NSE:S1,NSE%3aM%26M&a=b&symbols=NSE:S1,NSE:NIFTY%20X", "");
    let told = Told::next(&mut reader);
    let names: Vec<_> = told
        .quotes()
        .into_iter()
        .map(|(symbol, ..)| symbol)
        .collect();
    assert_eq!(names, ["NSE:M&M", "NSE:S1", "NSE:NIFTY X"]);
    let told = Told::next(&mut stage.open_with(&fifty.join(","), ""));
    assert_eq!(told.quotes().len(), 50);
    let many = format!("{},NSE:S1", fifty.join(","));
    for (query, code) in [
        (format!("symbols={many}"), "too_many_symbols"),
        ("symbols=".into(), "symbols_missing"),
        ("a=b&%73ymbols".into(), "symbols_missing"),
        ("symbols=NSE:INFY,".into(), "symbol_malformed"),
        ("symbols=nse:infy".into(), "symbol_malformed"),
        ("symbols=NSE:M%2".into(), "symbol_malformed"),
    ] {
        let answer = stage.service.get(&format!("{STREAM}?{query}"));
        assert!(
            answer
                .expect_problem(400, code)
                .to_string()
                .contains("symbols"),
            "{query}"
        );
    }
}

#[test]
fn any_symbols_get_the_refusal_of_live_prices_or_a_stream() {
    let stage = Stage::running(|config| config.cache.miss_wait_ms = 1);
    let mut runner = TestRunner::new(Config {
        cases: 200,
        ..Config::default()
    });
    let symbols = "((NSE|BSE|X)?:?[A-Z&%,+=*-]{0,12},?){0,4}";
    let outcome = runner.run(&symbols, |symbols| {
        let mut client = stage.service.client();
        let stream = client.request("HEAD", &format!("{STREAM}?symbols={symbols}"), "");
        let polled = client.request("HEAD", &format!("{PRICES}{symbols}"), "");
        prop_assert_eq!(stream.status == 400, polled.status == 400, "{}", symbols);
        prop_assert!(matches!(stream.status, 200 | 400), "{}: {}", symbols, stream.status);
        Ok(())
    });
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!((stage.streams().open(), stage.choices().count()), (0, 0), "HEAD opens none");
}

#[test]
fn a_quote_that_becomes_stale_is_an_event_and_stays_so() {
    let stage = Stage::by_hand(|_| {});
    stage.quote("NSE:AA", 100, 1, 0);
    stage.quote("NSE:BB", 100, 1, EVER_MS);
    let mut readers = [
        stage.open_with("NSE:AA,NSE:BB", ""),
        stage.open_with("NSE:AA,NSE:BB", "Accept-Encoding: gzip\r\n"),
    ];
    for reader in &mut readers {
        let first = Told::next(reader);
        assert_eq!(first.quotes(), [("NSE:AA", 100, false), ("NSE:BB", 100, false)]);
    }
    stage.advance_until("the marks", 1_000, || {
        readers.iter_mut().for_each(EventReader::look);
        (stage.streams().stats.frames.value() == 4).then_some(())
    });
    for reader in &mut readers {
        assert_eq!(Told::next(reader).quotes(), [("NSE:AA", 100, true)]);
    }
    // No other event until the heartbeat.
    stage.advance_until("a beat each", 14_000, || {
        readers.iter_mut().for_each(EventReader::look);
        (stage.streams().stats.heartbeats.value() == 2).then_some(())
    });
    readers
        .iter_mut()
        .for_each(|reader| drop(reader.event_named("beat")));
    stage.quote("NSE:AA", 101, 2, EVER_MS);
    for reader in &mut readers {
        let event = stage.advance_until("the fresh one", 0, || {
            reader.look();
            reader.ready()
        });
        assert_eq!(Told::of(&event).quotes(), [("NSE:AA", 101, false)]);
    }
}

#[test]
fn many_changes_in_an_interval_are_two_frames_and_the_last_is_right() {
    let stage = Stage::by_hand(|_| {});
    stage.quote("NSE:AA", 1, 1, EVER_MS);
    stage.quote("NSE:BB", 1, 1, EVER_MS);
    let mut reader = stage.open_with("NSE:AA,NSE:BB", "");
    Told::next(&mut reader);
    (2..=100).for_each(|at| stage.quote("NSE:AA", at, at as i64, EVER_MS));
    let mut seen = Vec::new();
    stage.advance_until("the last change", 1_000, || {
        reader.look();
        while let Some(event) = reader.ready() {
            let told = Told::of(&event);
            assert_eq!(told.quotes().len(), 1, "the other one stands");
            seen.push(told.quotes()[0].1);
        }
        (seen.last() == Some(&100)).then_some(())
    });
    assert!(seen.len() <= 2 && seen.is_sorted(), "{seen:?}");
}

#[test]
fn a_snapshot_and_quotes_that_are_due_together_come_together() {
    let stage = Stage::by_hand(|_| {});
    stage.quote("NSE:AA", 1, 1, EVER_MS);
    stage.publish(0, 10);
    let mut reader = stage.open_with("NSE:AA", "");
    assert_eq!(reader.event_named("snapshot").id.len(), 24);
    Told::next(&mut reader);
    // The interval has begun. It ends when the clock advances.
    let stats = &stage.streams().stats;
    until("the first snapshot to be told", || stats.fan_out.read(0).count() == 1);
    let json = stage.publish(1, 10);
    stage.quote("NSE:AA", 2, 2, EVER_MS);
    let event = stage.advance_until("both", 900, || {
        reader.look();
        reader.ready()
    });
    assert_eq!(event.data, json);
    assert_eq!(reader.ready().map(|event| Told::of(&event).quotes()[0].1), Some(2), "one read");
    assert_eq!(stats.conflated.value(), 0);
}

#[test]
fn every_framing_and_coding_gives_the_same_quotes() {
    let stage = Stage::running(|_| {});
    let symbols: Vec<String> = (0..50).map(|at| format!("NSE:S{at}")).collect();
    symbols
        .iter()
        .for_each(|symbol| stage.quote(symbol, 1, 1, EVER_MS));
    let target = format!("{STREAM}?symbols={}", symbols.join(","));
    let mut readers = Vec::new();
    for version in ["1.0", "1.1"] {
        for coding in ["gzip", "identity"] {
            let request = format!(
                "GET {target} HTTP/{version}\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n"
            );
            readers.push(EventReader::ask(stage.service.client(), &request));
        }
    }
    readers
        .iter_mut()
        .for_each(|reader| assert_eq!(Told::next(reader).quotes().len(), 50));
    for number in 1..20 {
        let changed = number * 7 % 50;
        // If the service runs in between, these may be two events.
        stage.quote(&symbols[changed], number, 1 + number as i64, EVER_MS);
        let events: Vec<_> = readers
            .iter_mut()
            .map(|reader| reader.event_named("quotes"))
            .collect();
        assert!(events.iter().all(|event| *event == events[0]), "{number}: {events:?}");
        let symbol = symbols[changed].as_str();
        assert_eq!(Told::of(&events[0]).quotes(), [(symbol, number as u64, false)]);
    }
    assert_eq!(stage.choices().count(), 1, "made once for all");
}

#[test]
fn who_comes_back_gets_all_quotes_and_no_snapshot_that_it_has() {
    let stage = Stage::running(|_| {});
    stage.publish(1, 10);
    stage.quote("NSE:AA", 1, 1, EVER_MS);
    let tag = stage
        .service
        .get(SNAPSHOT)
        .header("etag")
        .unwrap()
        .trim_matches('"')
        .to_owned();
    let mut reader = stage.open_with("NSE:AA", &format!("Last-Event-ID: {tag}\r\n"));
    let event = reader.event_named("quotes");
    assert_eq!(Told::of(&event).quotes(), [("NSE:AA", 1, false)]);
    let json = stage.publish(2, 10);
    assert_eq!(reader.event_named("snapshot").data, json);
}

#[test]
fn missing_symbols_are_pending_until_their_quote_comes() {
    let (scene, service) = Scene::trading();
    service.await_instruments();
    scene.fault("*", HANGS);
    let target = format!("{STREAM}?symbols=NSE:INFY,NSE:NOSUCH,NSE:TCS");
    let mut reader = EventReader::open(&service, &target, "");
    let first = told_where(&mut reader, "the first", |_| true);
    let all = vec!["NSE:INFY", "NSE:NOSUCH", "NSE:TCS"];
    assert_eq!(
        (first.quotes(), first.pending()),
        (vec![], all),
        "what no list has is tried too"
    );
    assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    let mut quoted: Vec<String> = Vec::new();
    let mut unavailable: Vec<String> = Vec::new();
    until("both quotes, and that the third has none", || {
        reader.look();
        for event in std::iter::from_fn(|| reader.ready()).filter(|event| event.name == "quotes") {
            let told = Told::of(&event);
            quoted.extend(
                told.quotes()
                    .iter()
                    .map(|(symbol, ..)| (*symbol).to_owned()),
            );
            unavailable = told
                .unavailable()
                .iter()
                .map(|symbol| (*symbol).to_owned())
                .collect();
        }
        let both = quoted.contains(&"NSE:INFY".into()) && quoted.contains(&"NSE:TCS".into());
        (both && unavailable == ["NSE:NOSUCH"]).then_some(())
    });
}

#[test]
fn what_nobody_can_answer_becomes_unavailable_after_the_wait_of_live_prices() {
    let stage = Stage::by_hand_hanging(|config| config.cache.miss_wait_ms = 2_500);
    let mut reader = stage.open_with("NSE:INFY", "");
    assert_eq!(Told::next(&mut reader).pending(), ["NSE:INFY"]);
    stage.scene.advance_ms(2_300);
    (0..10).for_each(|_| reader.look());
    assert_eq!(reader.ready(), None, "it waits yet");
    let told = stage.advance_until("the end of the wait", 200, || {
        reader.look();
        reader.ready().map(|event| Told::of(&event))
    });
    assert_eq!((told.quotes(), told.pending()), (vec![], vec![]));
    assert_eq!(told.unavailable(), ["NSE:INFY"]);
    // The symbol gets a quote after all, without having been pending again.
    stage.quote("NSE:INFY", 5, 1, EVER_MS);
    let told = stage.advance_until("its quote", 1_000, || {
        reader.look();
        reader.ready().map(|event| Told::of(&event))
    });
    assert_eq!(told.quotes(), [("NSE:INFY", 5, false)]);
    assert_eq!((told.unavailable(), told.pending()), (vec![], vec![]));
}

#[test]
fn a_quote_that_the_cache_drops_is_told_and_asked_for_again() {
    let stage = Stage::by_hand_hanging(|config| config.cache.l1_entries_max = 1);
    stage.quote("NSE:INFY", 1, 1, EVER_MS);
    let mut reader = stage.open_with("NSE:INFY", "");
    assert_eq!(Told::next(&mut reader).quotes().len(), 1);
    stage.quote("NSE:TCS", 1, 1, EVER_MS);
    let mut next = |what| {
        stage.advance_until(what, 1_000, || {
            reader.look();
            reader.ready().map(|event| Told::of(&event))
        })
    };
    let told = next("its end");
    // Pending only while a feed may answer in time.
    assert_eq!(
        (told.quotes(), [told.pending(), told.unavailable()].concat()),
        (vec![], vec!["NSE:INFY"])
    );
    let pending = &stage.service.0.server().shared().service.state().pending;
    assert!(pending.is_waited_for());
    stage.quote("NSE:INFY", 2, 2, EVER_MS);
    let is_back = |told: &Told| told.quotes() == [("NSE:INFY", 2, false)];
    assert!((0..2).any(|_| is_back(&next("its return"))), "after at most one other event");
}

#[test]
fn an_open_stream_keeps_its_symbols_in_the_polls() {
    let (_scene, service) = Scene::trading_with(|config| {
        config.cache.demand_ttl_ms = 1_000;
        config.http.stream_interval_ms = 250;
    });
    service.fresh_snapshot();
    let mut reader = EventReader::open(&service, &format!("{STREAM}?symbols=NSE:INFY"), "");
    let mut times = std::collections::BTreeSet::new();
    let state = service.0.server().shared().service.state();
    let is_wanted = || {
        let wanted = state.l1.wanted(state.clock.monotonic_ms(), 1, usize::MAX);
        wanted.iter().any(|symbol| symbol.as_str() == "NSE:INFY")
    };
    // Far longer than demand lasts, without another request.
    let from_ms = state.clock.monotonic_ms();
    until("prices for five times the demand", || {
        reader.look();
        for event in std::iter::from_fn(|| reader.ready()).filter(|event| event.name == "quotes") {
            let told = Told::of(&event);
            for quote in told.0["quotes"].as_array().unwrap() {
                times.insert(quote["as_of"].as_str().unwrap().to_owned());
            }
        }
        (state.clock.monotonic_ms() > from_ms + 5_000 && times.len() >= 4).then_some(())
    });
    assert!(is_wanted());
    drop(reader);
    until("the end of the demand", || (!is_wanted()).then_some(()));
}

#[test]
fn a_price_of_another_source_is_an_event() {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a", r#"{"kind":"refuse"}"#);
    let service = scene.start();
    let mut reader = EventReader::open(&service, &format!("{STREAM}?symbols=NSE:INFY"), "");
    let is_of = |source: &'static str| {
        move |told: &Told| {
            told.0["quotes"]
                .as_array()
                .unwrap()
                .iter()
                .any(|q| q["source"] == source)
        }
    };
    told_where(&mut reader, "the public provider's", is_of("public"));
    assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    told_where(&mut reader, "broker A's", is_of("broker_a"));
}

/// A client with a small receive buffer in the kernel, which has requested these symbols.
fn narrow(stage: &Stage, symbols: &str) -> Client {
    let address = stage.service.0.address();
    let mut client = Client::unconnected(address).unwrap();
    client.socket.set_recv_buffer_size(4096).unwrap();
    client.knock(address).unwrap();
    client.write(format!("GET {STREAM}?symbols={symbols} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client
}

#[test]
fn a_reader_that_stops_gets_the_rest_of_one_write_and_then_all_quotes_as_they_are() {
    let stage = Stage::running(|_| {});
    let symbols: Vec<String> = (0..50).map(|at| format!("NSE:S{at}")).collect();
    let tell = |number: usize| {
        stage.publish(number, 40_000);
        symbols
            .iter()
            .for_each(|symbol| stage.quote(symbol, number, number as i64, EVER_MS));
    };
    tell(1);
    let client = narrow(&stage, &symbols.join(","));
    stage.await_open(1);
    let shared = stage.service.0.server().shared();
    let mut number = 1;
    until("output waits for the reader", || {
        number += 1;
        tell(number);
        shared.unread.bytes() > 0
    });
    let stuck = number;
    let last = stuck + 50;
    let frames = stage.streams().stats.frames.value();
    // Another reader shows when each state has been sent.
    let mut beside = stage.open_with(&symbols.join(","), "");
    for number in stuck + 1..=last {
        tell(number);
        until("the state to be shown", || {
            beside.look();
            let events: Vec<_> = std::iter::from_fn(|| beside.ready()).collect();
            events
                .iter()
                .filter(|event| event.name == "quotes")
                .any(|event| {
                    Told::of(event)
                        .quotes()
                        .iter()
                        .any(|quote| quote.1 == number as u64)
                })
        });
    }
    assert!(stage.streams().stats.frames.value() > frames);
    let mut reader = EventReader::over(client);
    let mut shown = std::collections::BTreeMap::new();
    let mut late = 0;
    while shown.len() < 50 || shown.values().any(|price| *price != last as u64) {
        let event = reader.event().unwrap();
        if event.name != "quotes" {
            continue;
        }
        let told = Told::of(&event);
        late += usize::from(told.quotes().iter().any(|quote| quote.1 > stuck as u64));
        for (symbol, price, _) in told.quotes() {
            let before = shown.insert(symbol.to_owned(), price);
            assert!(before.is_none_or(|before| before <= price), "never an older one");
        }
    }
    assert!(late <= 3, "{late} events of the fifty that it missed");
}

#[test]
fn a_stream_with_quotes_counts_as_two() {
    let stage = Stage::running(|config| {
        config.http.streams_max = 5;
        config.http.streams_per_address_max = 3;
        config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    let of = |address: &str| format!("X-Forwarded-For: {address}\r\n");
    let target = format!("{STREAM}?symbols=NSE:AA");
    let refused = |address: &str, target: &str| {
        let answer = stage.service.client().request("GET", target, &of(address));
        answer.expect_problem(503, "streams_full");
    };
    let _first = stage.open_with("NSE:AA", &of("203.0.113.9"));
    refused("203.0.113.9", &target);
    let single = stage.open(&of("203.0.113.9"));
    refused("203.0.113.9", STREAM);
    let _second = stage.open_with("NSE:AA", &of("203.0.113.10"));
    refused("203.0.113.11", STREAM);
    assert_eq!((stage.streams().open(), stage.streams().taken()), (3, 5));
    drop(single);
    stage.await_open(2);
    refused("203.0.113.11", &target);
    let _other = stage.open(&of("203.0.113.11"));
    assert_eq!(stage.choices().count(), 1);
}

#[test]
fn choices_of_symbols_are_bounded_and_end_with_their_last_stream() {
    let stage = Stage::running(|config| config.http.stream_choices_max = 2);
    let mut readers = vec![
        stage.open_with("NSE:AA,NSE:BB", ""),
        stage.open_with("NSE:AA,NSE:BB,NSE:AA", ""),
        stage.open_with("NSE:BB,NSE:AA", ""),
    ];
    assert_eq!(stage.choices().count(), 2, "the order is part of it, repetition is not");
    let other = format!("{STREAM}?symbols=NSE:CC");
    stage
        .service
        .get(&other)
        .expect_problem(503, "streams_full");
    assert_eq!((stage.choices().refused.value(), stage.streams().stats.refused.value()), (1, 1));
    assert_eq!(
        (stage.streams().open(), stage.streams().taken()),
        (3, 6),
        "none for the refused"
    );
    // Existing choices can be shared, and the snapshot alone needs none.
    readers.push(stage.open_with("NSE:BB,NSE:AA", ""));
    let _snapshot = stage.open("");
    drop(readers.pop());
    drop(readers.pop());
    until("a choice to end", || stage.choices().count() == 1);
    readers.push(EventReader::open(&stage.service, &other, ""));
    drop(readers);
    until("all to end", || stage.choices().count() == 0);
    stage.await_open(1);
}

#[test]
fn one_site_has_a_tenth_of_the_choices_and_strangers_leave_a_quarter_to_users() {
    let stage = Stage::running(|config| {
        config.http.stream_choices_max = 20;
        config.http.streams_per_address_max = 0;
        config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    let token = stage.service.register("a@b.example", "correct horse");
    let of = |address: &str| format!("X-Forwarded-For: {address}\r\n");
    let symbol = |number: usize| format!("NSE:S{number}");
    let refused = |number: usize, headers: &str| {
        let target = format!("{STREAM}?symbols={}", symbol(number));
        let answer = stage.service.client().request("GET", &target, headers);
        answer.expect_problem(503, "streams_full");
    };
    // From several addresses of one /24, or of one /48.
    let mut readers = vec![
        stage.open_with(&symbol(0), &of("203.0.113.1")),
        stage.open_with(&symbol(1), &of("203.0.113.2")),
        stage.open_with(&symbol(2), &of("2001:db8:7:1::1")),
        stage.open_with(&symbol(3), &of("2001:db8:7:2::1")),
    ];
    refused(4, &of("203.0.113.200"));
    refused(4, &of("2001:db8:7:ffff::1"));
    // An existing choice is shared.
    readers.push(stage.open_with(&symbol(0), &of("203.0.113.3")));
    assert_eq!(stage.choices().count(), 4);
    // Many sites of strangers leave the rest to users who are logged in.
    for number in 4..15 {
        readers.push(stage.open_with(&symbol(number), &of(&format!("198.51.{number}.1"))));
    }
    refused(15, &of("192.0.2.1"));
    for number in 15..17 {
        let headers = format!("{}{}", of("192.0.2.1"), bearer(&token));
        readers.push(stage.open_with(&symbol(number), &headers));
    }
    refused(17, &format!("{}{}", of("192.0.2.2"), bearer(&token)));
    refused(17, &format!("{}{}", of("192.0.3.2"), bearer("not a token")));
    assert_eq!(stage.choices().count(), 17);
    drop(readers);
    until("all to end", || stage.choices().count() == 0);
    drop(stage.open_with(&symbol(4), &of("203.0.113.200")));
}

#[test]
fn a_thousand_comings_and_goings_leave_no_choice() {
    let stage = Stage::running(|_| {});
    for number in 0..1_000 {
        let symbols = format!("NSE:S{},NSE:AA", number % 7);
        let mut client = stage.service.client();
        client.write(format!("GET {STREAM}?symbols={symbols} HTTP/1.1\r\nHost: a\r\n\r\n"));
        if number % 3 > 0 {
            client.head();
        }
        if number % 50 == 0 {
            stage.quote("NSE:AA", number, number as i64, EVER_MS);
        }
    }
    stage.await_open(0);
    until("all choices to end", || stage.choices().count() == 0);
    stage.await_nothing_held();
}

#[test]
fn a_server_that_stops_ends_streams_with_quotes_too() {
    let stage = Stage::running(|config| config.http.drain_timeout_ms = PATIENCE_MS);
    stage.quote("NSE:AA", 1, 1, EVER_MS);
    let mut readers: Vec<_> = (0..10).map(|_| stage.open_with("NSE:AA", "")).collect();
    readers
        .iter_mut()
        .for_each(|reader| drop(Told::next(reader)));
    let Stage {
        service,
        scene: _scene,
    } = stage;
    let stopping = bhav::rt::threads::spawn("stopping", move || service.stop()).unwrap();
    for reader in &mut readers {
        assert_eq!(reader.event(), None);
        assert!(reader.is_complete && reader.parser.retry != Some(3_000));
    }
    assert_eq!(stopping.join().unwrap(), 0, "none was cut off");
}
