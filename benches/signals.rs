//! Cost of signals for 200 symbols with two years of candles: the newest bar, as in each refresh of
//! the day, with and without publishing it in all codings, and everything from the stored candles,
//! once a day. One core.

#![expect(clippy::unwrap_used, reason = "a bench stops at the first surprise")]

use std::hint::black_box;

use bhav::base::candle::PRICE_E4;
use bhav::base::{Candle, Clock, Source, Symbol};
use bhav::http::PublishedJson;
use bhav::signals::backtest::{History, Signal, Universe};
use bhav::signals::confidence::{PRIOR_DATES, WINDOW_DATES};
use bhav::signals::list::by_rank;
use bhav::signals::patterns::{Columns, Detector};
use bhav::signals::{ListedSignal, SignalList};
use bhav::store::Epoch;
use bhav::store::{NewHistory, Store};
use bhav::views::signals as views;
use criterion::{Criterion, criterion_group, criterion_main};
use jiff::civil::Date;

const SYMBOLS: usize = 200;

/// A seeded walk on a tick of 0.05, with about one signal a day.
fn history(number: usize) -> History {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let tick = PRICE_E4 / 20;
    let mut close = 500 * PRICE_E4;
    let mut date = Date::constant(2024, 1, 1);
    let candles = (0..WINDOW_DATES).map(|_| {
        let mut step = |most: i64| random.i64(-most..=most) * tick;
        let open = close + step(30);
        close = (open + step(150)).max(PRICE_E4);
        let high_e4 = open.max(close) + step(60).max(0);
        let low_e4 = (open.min(close) - step(60).max(0)).max(tick);
        date = date.tomorrow().unwrap();
        Candle {
            date,
            open_e4: open,
            high_e4,
            low_e4,
            close_e4: close,
            volume: 1_000,
        }
    });
    History {
        symbol: format!("S{number:03}"),
        candles: candles.collect(),
    }
}

fn symbol(name: &str) -> Symbol {
    Symbol::parse(&format!("NSE:{name}")).unwrap()
}

/// A database with the candles of `histories`.
fn stored(histories: &[History]) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_file(&folder.path().join("bhav.sqlite"), 1, &Clock::system()).unwrap();
    for history in histories {
        store
            .replace_candles(
                Epoch::ALONE,
                NewHistory {
                    symbol: symbol(&history.symbol),
                    source: Source::BrokerA,
                    simulated: false,
                    candles: history.candles.clone(),
                    suspicions: Vec::new(),
                },
            )
            .unwrap();
    }
    (folder, store)
}

/// Reads like the warmer: through the store's own reader thread, symbol by symbol.
fn read(store: &Store, histories: &[History]) -> Vec<History> {
    let of = |history: &History| {
        let candles = store.candles(&symbol(&history.symbol)).unwrap();
        History {
            symbol: history.symbol.clone(),
            candles,
        }
    };
    histories.iter().map(of).collect()
}

fn listed(signal: &Signal<'_>) -> ListedSignal {
    ListedSignal {
        symbol: symbol(signal.symbol),
        pattern: signal.key.name().to_owned(),
        direction: signal.key.direction(),
        confidence: signal.weight.confidence,
        prior_dates: PRIOR_DATES,
        samples: signal.weight.dates,
        date_hit_rate: signal.weight.date_hit_rate,
        past: Some((signal.weight.signals, signal.weight.hits)),
        base_rate: signal.weight.base_rate,
        simulated: false,
    }
}

fn signals(c: &mut Criterion) {
    let histories: Vec<History> = (0..SYMBOLS).map(history).collect();
    let universe = Universe::examine(&histories);
    let last = WINDOW_DATES - 1;
    let of_last = universe.signals_on(last);
    let found: usize = (0..WINDOW_DATES)
        .map(|date| universe.signals_on(date).len())
        .sum();
    let a_day = found as f64 / (SYMBOLS * WINDOW_DATES) as f64;
    assert!((0.5..2.0).contains(&a_day), "{a_day} signals per symbol and day");

    let columns: Vec<(&str, Columns)> = histories
        .iter()
        .map(|h| (h.symbol.as_str(), Columns::of(&h.candles)))
        .collect();
    let detector = Detector::default();
    let ranked = || {
        let mut signals = Vec::new();
        for (symbol, columns) in black_box(&columns) {
            signals.extend(detector.newest(columns).into_iter().map(|key| Signal {
                symbol,
                key,
                weight: universe.weigh(key, last),
            }));
        }
        signals.sort_by(by_rank);
        signals
    };
    let mut group = c.benchmark_group("signals of 200 symbols");
    group.bench_function("newest bar, confidence, ranking", |b| {
        b.iter(|| {
            let signals = ranked();
            assert_eq!(signals.len(), of_last.len());
            signals
        });
    });
    let slot = PublishedJson::new();
    let mut second = 0;
    group.bench_function("newest bar, confidence, ranking, publishing", |b| {
        b.iter(|| {
            let signals = ranked();
            let signals = signals.iter().map(listed).collect();
            let list = SignalList::of(universe.dates()[last], signals);
            let mut body = Vec::new();
            views::SignalList::of(&list, |_| true).write(&mut body);
            // Another second, so that nothing counts as unchanged.
            second += 1;
            body.extend_from_slice(format!(" {second}").as_bytes());
            slot.publish(body);
            views::ShownSignals::of(&list)
        });
    });
    assert_eq!(slot.changes(), second as u64);
    group.finish();
}

/// Once a day, from candles in memory and from those in the store.
fn rebuild(c: &mut Criterion) {
    let histories: Vec<History> = (0..SYMBOLS).map(history).collect();
    let last = WINDOW_DATES - 1;
    let found = Universe::examine(&histories).signals_on(last).len();
    let mut group = c.benchmark_group("daily rebuild of 200 symbols");
    group.sample_size(20);
    group.bench_function("all patterns and their record", |b| {
        b.iter(|| Universe::examine(black_box(&histories)));
    });
    let (_folder, store) = stored(&histories);
    group.bench_function("reading the stored candles", |b| {
        b.iter(|| {
            let read = read(&store, &histories);
            assert_eq!(read.iter().map(|h| h.candles.len()).sum::<usize>(), SYMBOLS * WINDOW_DATES);
            read
        });
    });
    group.bench_function("from the stored candles", |b| {
        b.iter(|| {
            let histories = read(&store, &histories);
            let universe = Universe::examine(&histories);
            assert_eq!(universe.signals_on(last).len(), found);
            universe
        });
    });
    group.finish();
}

criterion_group!(benches, signals, rebuild);
criterion_main!(benches);
