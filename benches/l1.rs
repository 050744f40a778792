//! The join of 50 cached quotes for a live-prices request.
//!
//! `join_50` is one pin, 50 look-ups and the copy into a reused buffer; `refresh_50` is a warmer's
//! round for as many quotes; `restore_500` opens the second level's file and restores its quotes,
//! as every start does.

use std::hint::black_box;

use bhav::base::{Quote, Source, Symbol, json};
use bhav::cache::l2::codec;
use bhav::cache::{Kept, Kind, L1, SecondLevel, SqliteL2, Vouched};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

#[path = "../src/base/testing.rs"]
mod samples;

const SYMBOLS: usize = 50;
/// A cache as full as its default bound allows, so that look-ups miss the processor's caches as
/// often.
const HELD: usize = 10_000;
/// The time at which the source vouched for the quotes.
const NOW: Vouched = Vouched {
    mono_ms: 0,
    calls: 1,
};
/// Quotes in the second level at a start: broker A's batch.
const STORED: usize = 500;

fn quote(i: usize) -> Quote {
    Quote {
        previous_close: json::parse_decimal("1389.65"),
        asked: "2026-11-20T10:00:01Z".parse().expect("an instant"),
        ..samples::quote(
            &format!("NSE:SYMBOL{i:04}"),
            "1412.95",
            "2026-11-20T10:00:00Z".parse().expect("an instant"),
        )
    }
}

fn filled() -> L1 {
    let l1 = L1::new(HELD);
    for i in 0..HELD {
        assert_eq!(l1.insert(quote(i), NOW, 0), Kept::Taken);
    }
    l1
}

/// Symbols spread over the cache, as text, the way a request brings them.
fn asked() -> Vec<String> {
    (0..SYMBOLS)
        .map(|i| format!("NSE:SYMBOL{:04}", i * (HELD / SYMBOLS)))
        .collect()
}

fn join(l1: &L1, asked: &[String], out: &mut Vec<u8>) {
    out.clear();
    let view = l1.view(1_000);
    for symbol in asked {
        if !out.is_empty() {
            out.push(b',');
        }
        if let Some(hit) = view.get(symbol) {
            hit.write(out);
        }
    }
    drop(view);
    l1.count(asked.len() as u64, 0);
}

fn expected(asked: &[String]) -> Vec<u8> {
    let objects: Vec<String> = asked
        .iter()
        .map(|symbol| {
            format!(
                "{{\"symbol\":\"{symbol}\",\"last_price\":1412.95,\"change\":23.3,\
                 \"change_pct\":1.68,\"as_of\":\"2026-11-20T15:30:00+05:30\",\
                 \"source\":\"broker_a\",\"stale\":false}}"
            )
        })
        .collect();
    objects.join(",").into_bytes()
}

fn benches(criterion: &mut Criterion) {
    let l1 = filled();
    let asked = asked();
    let expected = expected(&asked);
    let mut out = Vec::with_capacity(expected.len());

    let mut group = criterion.benchmark_group("l1");
    group.throughput(Throughput::Bytes(expected.len() as u64));
    group.bench_function("join_50", |bencher| {
        bencher.iter(|| {
            join(black_box(&l1), black_box(&asked), &mut out);
            black_box(out.len())
        });
        assert_eq!(out, expected, "the bytes of the contract");
    });
    group.throughput(Throughput::Elements(SYMBOLS as u64));
    let round: Vec<Quote> = (0..SYMBOLS).map(quote).collect();
    group.bench_function("refresh_50", |bencher| {
        bencher.iter(|| {
            for quote in &round {
                let _ = l1.insert(quote.clone(), NOW, 0);
            }
        });
        assert_eq!(l1.stats().refused, 0);
    });
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("l2.sqlite");
    let stored: Vec<Quote> = (0..STORED).map(quote).collect();
    let l2 = SqliteL2::open(&path, HELD).expect("a new file");
    l2.store(Kind::Quote, &codec::records(&stored), 0)
        .expect("room for the quotes");
    drop(l2);
    group.throughput(Throughput::Elements(STORED as u64));
    group.bench_function("restore_500", |bencher| {
        bencher.iter(|| {
            let l1 = L1::new(HELD);
            let l2 = SqliteL2::open(&path, HELD).expect("the file stored above");
            let restored = codec::restore_quotes(&l1, &l2, quote(0).as_of, 0).expect("readable");
            assert_eq!(restored.quotes, STORED);
        });
    });
    group.finish();
}

criterion_group!(l1, benches);
criterion_main!(l1);
