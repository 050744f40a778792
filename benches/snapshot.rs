//! Cost of a snapshot: picking the answer (per request) and making it (per refresh).

#![expect(clippy::unwrap_used, reason = "a bench stops at the first surprise")]

use std::hint::black_box;

use bhav::base::{Quote, Source, Symbol, clock, json};
use bhav::http::{Preconditions, PublishedJson};
use bhav::market::{IndexList, MarketCalendar, Priced, Prices, Snapshot, SnapshotInputs};
use bhav::views;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jiff::Timestamp;

#[path = "../src/base/testing.rs"]
mod samples;

fn now() -> Timestamp {
    clock::instant("2026-11-20T11:00:00".parse().unwrap())
}

fn prices(indices: &IndexList) -> Prices {
    let quote = |index: &bhav::market::Index| Quote {
        previous_close: json::parse_decimal("24200.1"),
        ..samples::quote(index.symbol.as_str(), "24321.85", now())
    };
    let priced = |index| Priced {
        quote: quote(index),
        stale: false,
    };
    indices
        .all()
        .map(|index| (index.symbol.clone(), priced(index)))
        .collect()
}

fn json() -> Vec<u8> {
    let indices = IndexList::embedded();
    let prices = prices(&indices);
    let status = MarketCalendar::embedded().status(now());
    let inputs = SnapshotInputs {
        indices: &indices,
        prices: &prices,
        status: &status,
    };
    written(&Snapshot::build(&inputs).unwrap())
}

fn written(snapshot: &Snapshot) -> Vec<u8> {
    views::snapshot::Snapshot::of(snapshot, &views::signals::ShownSignals::none()).to_json()
}

/// Name, `Accept-Encoding`, `If-None-Match`, status of the answer.
type Case<'a> = (&'static str, Option<&'a [u8]>, Option<&'a [u8]>, u16);

fn select(c: &mut Criterion) {
    let slot = PublishedJson::new();
    slot.publish(json());
    let published = slot.load();
    let published = published.as_ref().unwrap();
    let etag = published.select(Some(b"br"), Preconditions::NONE).unwrap();
    let etag = String::from_utf8(etag.headers().to_vec()).unwrap();
    let etag = etag
        .split("ETag: ")
        .nth(1)
        .unwrap()
        .split("\r\n")
        .next()
        .unwrap()
        .to_owned();
    let plain = published
        .select(None, Preconditions::NONE)
        .unwrap()
        .body()
        .len();
    let cases: [Case<'_>; 5] = [
        ("no header", None, None, 200),
        ("browser", Some(b"gzip, deflate, br, zstd"), None, 200),
        ("weights", Some(b"br;q=0.9, gzip;q=1.0, *;q=0.1"), None, 200),
        ("not modified", Some(b"gzip, deflate, br"), Some(etag.as_bytes()), 304),
        ("five tags", Some(b"br"), Some(br#""a", "b", "c", "d", W/"e""#), 200),
    ];
    let mut group = c.benchmark_group("snapshot select");
    for (name, accept, tags, status) in cases {
        let tags = tags.map_or(Preconditions::NONE, Preconditions::if_none_match);
        let answer = published.select(accept, tags).unwrap();
        assert!(
            answer
                .bytes()
                .starts_with(format!("HTTP/1.1 {status} ").as_bytes()),
            "{name}"
        );
        assert_eq!(answer.body().len() == plain, accept.is_none(), "{name}");
        group.throughput(Throughput::Bytes(answer.bytes().len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                slot.load()
                    .as_ref()
                    .unwrap()
                    .select(black_box(accept), black_box(tags))
                    .unwrap()
                    .bytes()
                    .len()
            });
        });
    }
    group.finish();
}

fn make(c: &mut Criterion) {
    let indices = IndexList::embedded();
    let prices = prices(&indices);
    let calendar = MarketCalendar::embedded();
    let body = json();
    assert!(body.starts_with(b"{\"index1_price\":24321.85,\"index1_change\":0.5,"));
    let mut group = c.benchmark_group("snapshot make");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("build and write", |b| {
        b.iter(|| {
            let status = calendar.status(black_box(now()));
            let inputs = SnapshotInputs {
                indices: &indices,
                prices: &prices,
                status: &status,
            };
            let made = written(&Snapshot::build(&inputs).unwrap());
            assert_eq!(made.len(), body.len());
            made
        });
    });
    let slot = PublishedJson::new();
    let mut second = 0;
    group.bench_function("publish a change", |b| {
        b.iter(|| {
            second += 1;
            let changed = [&body[..], format!(" {second}").as_bytes()].concat();
            slot.publish(changed);
        });
    });
    assert_eq!(slot.changes(), second as u64);
    group.finish();
}

criterion_group!(benches, select, make);
criterion_main!(benches);
