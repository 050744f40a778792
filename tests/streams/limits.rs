//! Limits on the number of streams.

use bhav::http::settings::HttpSettings;

use super::stage::Stage;
use crate::support::scrape::Scrape;
use crate::support::{EventReader, SNAPSHOT, STREAM, Scene, until};

#[test]
fn one_more_than_the_limit_is_refused_and_others_are_unhurt() {
    let stage = Stage::running(|config| config.http.streams_max = 3);
    stage.publish(0, 10);
    let mut readers: Vec<_> = (0..3).map(|_| stage.open("")).collect();
    let answer = stage.service.get(STREAM);
    answer.expect_problem(503, "streams_full");
    assert_eq!(answer.header("retry-after"), Some("10"));
    assert_eq!(stage.service.get(SNAPSHOT).status, 200);
    assert_eq!(stage.service.client().request("HEAD", STREAM, "").status, 200);
    let json = stage.publish(1, 10);
    for reader in &mut readers {
        until("the change", || {
            reader.look();
            reader.ready().is_some_and(|event| event.data == json)
        });
    }
    assert_eq!(stage.streams().stats.refused.value(), 1);
    readers.pop();
    stage.await_open(2);
    readers.push(stage.open(""));
    // A reload lowers the limit. Open streams stay.
    let shared = stage.service.0.server().shared();
    let settings = HttpSettings {
        streams_max: 1,
        ..(*shared.settings()).clone()
    };
    shared.change_settings(&settings);
    stage
        .service
        .get(STREAM)
        .expect_problem(503, "streams_full");
    let json = stage.publish(2, 10);
    for reader in &mut readers {
        until("the change", || {
            reader.look();
            reader.ready().is_some_and(|event| event.data == json)
        });
    }
}

#[test]
fn streams_leave_a_tenth_of_the_connections_to_requests() {
    let stage = Stage::running(|config| {
        config.http.connections_max = 10;
        // This address would be allowed nine connections.
        config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    let readers: Vec<_> = (0..9).map(|_| stage.open("")).collect();
    stage
        .service
        .get(STREAM)
        .expect_problem(503, "streams_full");
    assert_eq!((readers.len(), stage.streams().open()), (9, 9));
}

#[test]
fn an_address_has_a_limit_of_its_own_and_this_machine_none() {
    let stage = Stage::running(|config| {
        config.http.streams_per_address_max = 2;
        config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    let of = |address: &str| format!("X-Forwarded-For: {address}\r\n");
    let mut readers: Vec<EventReader> = Vec::new();
    for _ in 0..2 {
        readers.push(stage.open(&of("203.0.113.9")));
        readers.push(stage.open(&of("2001:db8::1")));
    }
    for address in ["203.0.113.9", "2001:db8::2"] {
        let answer = stage.service.client().request("GET", STREAM, &of(address));
        answer.expect_problem(503, "streams_full");
    }
    readers.push(stage.open(&of("203.0.113.10")));
    readers.push(stage.open(&of("2001:db8:1::1")));
    readers.extend((0..5).map(|_| stage.open("")));
    assert_eq!(stage.streams().open(), 11);
    drop(readers);
    stage.await_open(0);
    stage.open(&of("203.0.113.9"));
}

#[test]
fn metrics_tell_of_streams() {
    let (_scene, service) = Scene::trading_on(Scene::watched);
    service.fresh_snapshot();
    let mut reader = EventReader::open(&service, STREAM, "");
    let mut quotes = EventReader::open(&service, &format!("{STREAM}?symbols=NSE:INFY"), "");
    quotes.event_named("snapshot");
    quotes.event_named("quotes");
    for _ in 0..2 {
        reader.event_named("snapshot");
    }
    let scrape = Scrape::of(&service);
    assert_eq!(scrape.value("bhav_streams_open{kind=\"snapshot\"}"), 1.0);
    assert_eq!(scrape.value("bhav_streams_open{kind=\"quotes\"}"), 1.0);
    assert_eq!(scrape.value("bhav_stream_choices"), 1.0);
    assert_eq!(scrape.value("bhav_stream_choices_limit"), 1_000.0);
    assert_eq!(scrape.value("bhav_streams_limit"), 5_000.0);
    assert!(scrape.value("bhav_stream_frames_total") >= 2.0);
    assert!(scrape.value("bhav_stream_sent_bytes_total") > 1_000.0);
    assert!(scrape.value("bhav_stream_fan_out_seconds_count") >= 1.0);
    for name in [
        "bhav_streams_refused_total",
        "bhav_stream_choices_refused_total",
        "bhav_stream_heartbeats_total",
        "bhav_stream_cut_total{reason=\"write\"}",
        "bhav_stream_cut_total{reason=\"crowded\"}",
        "bhav_stream_cut_total{reason=\"read\"}",
    ] {
        assert_eq!(scrape.value(name), 0.0, "{name}");
    }
}
