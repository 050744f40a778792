//! A request's path through the edge without the kernel: parse, route, answer.
//!
//! Routing, the snapshot (fresh, 304, gzip) and 50 cached quotes, each with its answer asserted.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use bhav::api::{Api, State};
use bhav::app::assemble;
use bhav::base::{Clock, Quote, Source, Symbol, json};
use bhav::cache::{Kept, Vouched};
use bhav::config::Config;
use bhav::http::connection::exchange::Offline;
use bhav::http::document::negotiate::Coding;
use bhav::http::settings::HttpSettings;
use bhav::ops::Durations;
use bhav::ops::state_lock::InstanceLock;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

#[path = "../src/base/testing.rs"]
mod samples;

const SYMBOLS: usize = 50;

/// The real parts, with the requested data put in by hand.
fn state(clock: &Clock, state_dir: &Path) -> State {
    let config = Config {
        state_dir: state_dir.into(),
        ..Config::default()
    };
    let lock = Arc::new(InstanceLock::of(&config.state_dir));
    let state = assemble(&config, &lock, clock).unwrap().state;
    for number in 0..SYMBOLS {
        let quote = Quote {
            previous_close: json::parse_decimal("1389.65"),
            simulated: true,
            ..samples::quote(&format!("NSE:SIM{number:03}"), "1412.95", clock.now())
        };
        let vouched = Vouched {
            mono_ms: 0,
            calls: 1,
        };
        assert_eq!(state.l1.insert(quote, vouched, clock.monotonic_ms()), Kept::Taken);
    }
    let body = format!("{{\"index1_price\":25012.35,\"filler\":\"{}\"}}", "x".repeat(1_150));
    state.snapshot.publish(body.into_bytes());
    state
}

fn answers(criterion: &mut Criterion) {
    // A running clock: each request reads it twice, to measure its duration.
    let clock = Clock::starting_at("2026-11-20T05:30:00Z".parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let state = state(&clock, dir.path());
    let etag = {
        let published = state.snapshot.load();
        published
            .as_deref()
            .unwrap()
            .etag(Coding::Identity)
            .to_owned()
    };
    let symbols: Vec<String> = (0..SYMBOLS).map(|n| format!("NSE:SIM{n:03}")).collect();
    let quotes = format!("/api/portfolio/live-prices?symbols={}", symbols.join(","));
    let mut offline = Offline::new(&HttpSettings::default(), &clock, Api::new(state));
    let request = |method: &str, target: &str, lines: &str| {
        format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n").into_bytes()
    };
    let snapshot = "/api/index/snapshot";
    let not_modified = format!("If-None-Match: {etag}\r\n");
    let gzip = "Accept-Encoding: gzip, deflate\r\n";
    for (name, request, status, part) in [
        ("route, 404", request("GET", "/api/nothing", ""), "404", "not_found"),
        (
            "route, 405",
            request("DELETE", snapshot, ""),
            "405",
            "Allow: GET, HEAD, OPTIONS",
        ),
        ("snapshot", request("GET", snapshot, ""), "200", "\"index1_price\":25012.35"),
        ("snapshot, 304", request("GET", snapshot, &not_modified), "304", "ETag"),
        (
            "snapshot, gzip",
            request("GET", snapshot, gzip),
            "200",
            "Content-Encoding: gzip",
        ),
        ("50 quotes", request("GET", &quotes, ""), "200", "\"symbol\":\"NSE:SIM049\""),
    ] {
        let answer = offline.exchange(&request).to_vec();
        let text = String::from_utf8_lossy(&answer);
        assert!(
            text.starts_with(&format!("HTTP/1.1 {status} ")) && text.contains(part),
            "{text}"
        );
        let mut group = criterion.benchmark_group("dispatch");
        group.throughput(Throughput::Bytes((request.len() + answer.len()) as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| offline.exchange(black_box(&request)).len());
        });
        group.finish();
    }
}

/// Cost of metrics on a snapshot's path: the same with the machine's clock, as in service, and with
/// a clock in memory. Both count; the difference is the cost of reading the clock twice.
fn metrics(criterion: &mut Criterion) {
    let now = "2026-11-20T05:30:00Z".parse().unwrap();
    let request = b"GET /api/index/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut group = criterion.benchmark_group("metrics of a snapshot");
    for (name, clock) in [
        ("times taken", Clock::starting_at(now)),
        ("times not taken", Clock::manual(now).clone()),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let api = Api::new(state(&clock, dir.path()));
        let mut offline = Offline::new(&HttpSettings::default(), &clock, api);
        assert!(offline.exchange(request).starts_with(b"HTTP/1.1 200 "));
        group.bench_function(name, |bencher| {
            bencher.iter(|| offline.exchange(black_box(request)).len());
        });
    }
    let durations = Durations::new(1);
    group.bench_function("a duration counted", |bencher| {
        bencher.iter(|| durations.record(0, black_box(9_400)));
    });
    group.finish();
}

criterion_group!(benches, answers, metrics);
criterion_main!(benches);
