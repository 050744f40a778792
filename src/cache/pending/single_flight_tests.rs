//! Single-flight under overlapping requests, bounds, time-outs and races.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use may::go;

use super::*;
use crate::base::ManualClock;

/// A time-out that no test should reach.
const LONG_MS: u64 = 60_000;

fn symbols(names: &[&str]) -> Vec<Symbol> {
    names.iter().copied().map(symbol).collect()
}

fn symbol(name: &str) -> Symbol {
    Symbol::parse(&format!("NSE:{name}")).unwrap()
}

pub(super) fn numbered(numbers: impl IntoIterator<Item = usize>) -> Vec<Symbol> {
    numbers
        .into_iter()
        .map(|i| symbol(&format!("S{i}")))
        .collect()
}

fn clock() -> ManualClock {
    Clock::manual("2026-11-20T05:00:00Z".parse().unwrap())
}

fn bounded(waiters_max: usize, symbols_max: usize) -> SingleFlight {
    by_hand(&clock(), waiters_max, symbols_max)
}

fn by_hand(clock: &Clock, waiters_max: usize, symbols_max: usize) -> SingleFlight {
    let limits = Limits {
        waiters_max,
        symbols_max,
    };
    SingleFlight::new(limits, clock.clone(), Arc::new(|| {}))
}

pub(super) fn wide() -> SingleFlight {
    bounded(10_000, 2_000)
}

#[test]
fn overlapping_requests_share_one_fetch() {
    let flights = wide();
    let first = flights.join(&symbols(&["A", "B"])).unwrap();
    let second = flights.join(&symbols(&["B", "C", "C"])).unwrap();
    let batch = flights.take_pending(10);
    assert_eq!(batch.symbols(), symbols(&["A", "B", "C"]));
    let third = flights.join(&symbols(&["C"])).unwrap();
    assert!(flights.take_pending(10).symbols().is_empty(), "all are in flight");
    flights.settle(&symbols(&["A", "B"]));
    assert!(first.until(LONG_MS));
    assert!(!second.is_settled());
    drop(batch);
    assert!(second.until(LONG_MS) && third.until(LONG_MS));
    assert_eq!(flights.stats(), PendingStats::default());
}

#[test]
fn only_new_symbols_wake_the_scheduler() {
    let kicks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&kicks);
    let kick = Arc::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let limits = Limits {
        waiters_max: 10,
        symbols_max: 10,
    };
    let flights = SingleFlight::new(limits, clock().clone(), kick);
    let mut waits = Vec::new();
    for names in [["A", "B"], ["B", "A"], ["B", "C"]] {
        waits.push(flights.join(&symbols(&names)).unwrap());
    }
    assert_eq!(kicks.load(Ordering::Relaxed), 2);
    assert!(flights.join(&[]).unwrap().until(LONG_MS), "nothing to wait for");
}

#[test]
fn a_request_over_either_bound_registers_nothing() {
    let flights = bounded(2, 3);
    let held = flights.join(&symbols(&["A", "B"])).unwrap();
    assert_eq!(flights.join(&symbols(&["A", "C", "D"])).err(), Some(Busy::Symbols));
    let other = flights.join(&symbols(&["A"])).unwrap();
    assert_eq!(flights.join(&symbols(&["A"])).err(), Some(Busy::Waiters));
    let stats = flights.stats();
    assert_eq!((stats.waiters, stats.symbols, stats.refused), (2, 2, 2));
    drop((held, other));
    assert_eq!(flights.stats().waiters, 0);
}

#[test]
fn a_full_board_drops_symbols_nobody_waits_for() {
    let flights = bounded(10, 3);
    drop(flights.join(&symbols(&["A", "B"])).unwrap());
    let waiting = flights.join(&symbols(&["C"])).unwrap();
    let fresh = flights.join(&symbols(&["B", "D"])).unwrap();
    assert_eq!(flights.take_pending(10).symbols(), symbols(&["B", "C", "D"]));
    assert!(waiting.is_settled() && fresh.is_settled(), "dropping a batch settles it");
    assert_eq!(flights.stats().expired, 1);
}

#[test]
fn a_request_that_times_out_leaves_its_symbols_pending() {
    let flights = wide();
    assert!(!flights.join(&symbols(&["A"])).unwrap().until(1));
    let stats = flights.stats();
    assert_eq!((stats.waiters, stats.symbols, stats.timed_out), (0, 1, 1));
    assert_eq!(flights.take_pending(10).symbols(), symbols(&["A"]));
}

#[test]
fn symbols_nobody_waits_for_expire() {
    let clock = clock();
    let flights = by_hand(&clock, 10, 10);
    drop(flights.join(&symbols(&["A"])).unwrap());
    let waiting = flights.join(&symbols(&["B"])).unwrap();
    clock.advance_ms(999);
    flights.expire(1_000);
    assert_eq!(flights.stats().symbols, 2);
    clock.advance_ms(1);
    flights.expire(1_000);
    assert_eq!(flights.take_pending(10).symbols(), symbols(&["B"]));
    assert!(waiting.is_settled());
    assert_eq!(flights.stats().expired, 1);
}

#[test]
fn a_batch_put_back_is_taken_first() {
    let flights = wide();
    let first = flights.join(&symbols(&["A", "B", "C"])).unwrap();
    let batch = flights.take_pending(2);
    flights.settle(&symbols(&["A"]));
    batch.put_back();
    let batch = flights.take_pending(10);
    assert_eq!(batch.symbols(), symbols(&["B", "C"]));
    drop(batch);
    assert!(first.until(LONG_MS));
}

#[test]
fn a_late_batch_does_not_settle_symbols_registered_since() {
    let flights = wide();
    let first = flights.join(&symbols(&["A"])).unwrap();
    let late = flights.take_pending(10);
    flights.settle(&symbols(&["A"]));
    let second = flights.join(&symbols(&["A"])).unwrap();
    drop(late);
    assert!(first.is_settled() && !second.is_settled());
    flights.settle(&symbols(&["A"]));
    assert!(second.until(LONG_MS));
}

#[test]
fn a_dismissed_request_leaves_its_symbols_pending() {
    let flights = wide();
    let waiting = flights.join(&symbols(&["A", "B"])).unwrap();
    flights.dismiss();
    assert!(!waiting.until(LONG_MS), "nothing was settled");
    assert_eq!((flights.stats().waiters, flights.stats().symbols), (0, 2));
    let batch = flights.take_pending(10);
    assert_eq!(batch.symbols(), symbols(&["A", "B"]));
}

#[test]
fn a_panic_on_the_lane_wakes_every_request() {
    let flights = wide();
    let waiting = flights.join(&symbols(&["A"])).unwrap();
    let batch = flights.take_pending(10);
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        assert!(batch.symbols().is_empty(), "the upstream answered nonsense");
    }));
    assert!(died.is_err());
    assert!(waiting.until(LONG_MS));
}

#[test]
fn expire_wakes_a_request_whose_timer_was_lost() {
    let clock = clock();
    let flights = by_hand(&clock, 10, 10);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| flights.join(&symbols(&["A"])).unwrap().until(LONG_MS));
        let has_parked = || {
            let board = flights.0.board.lock();
            let deadline = |waiter: &Arc<Waiter>| waiter.deadline_mono_ms.load(Ordering::Relaxed);
            board
                .waiters
                .values()
                .any(|waiter| deadline(waiter) == LONG_MS)
        };
        while !has_parked() {
            std::thread::yield_now();
        }
        clock.advance_ms(LONG_MS as i64 + OVERDUE_MS as i64 + 1);
        flights.expire(LONG_MS * 2);
        assert!(!waiting.join().unwrap(), "not settled");
    });
    assert_eq!(flights.stats().timed_out, 1);
}

/// Fetches batches until `stop` is set, and checks that no symbol is in two of them at once.
fn serve_until(flights: &SingleFlight, stop: &AtomicBool) -> usize {
    let mut fetched = 0;
    let mut rounds = 0usize;
    while !stop.load(Ordering::Acquire) {
        let batch = flights.take_pending(37);
        let own: BTreeSet<&Symbol> = batch.symbols().iter().collect();
        assert_eq!(own.len(), batch.symbols().len());
        fetched += batch.symbols().len();
        // Every third batch fails over to the next feed.
        rounds += 1;
        if rounds.is_multiple_of(3) {
            batch.put_back();
        } else {
            drop(batch);
        }
        std::thread::yield_now();
    }
    fetched
}

#[test]
fn overlapping_threads_are_all_served() {
    let flights = wide();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let servers: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| serve_until(&flights, &stop)))
            .collect();
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let flights = &flights;
                scope.spawn(move || {
                    for round in 0..100 {
                        let wanted = numbered((0..20).map(|i| (client * 7 + round + i) % 60));
                        assert!(flights.join(&wanted).unwrap().until(LONG_MS), "round {round}");
                    }
                })
            })
            .collect();
        for client in clients {
            client.join().unwrap();
        }
        stop.store(true, Ordering::Release);
        for server in servers {
            assert!(server.join().unwrap() > 0);
        }
    });
    let stats = flights.stats();
    assert_eq!((stats.waiters, stats.symbols, stats.timed_out), (0, 0, 0));
}

#[test]
fn overlapping_coroutines_are_served_or_time_out() {
    const CLIENTS: usize = 200;
    let flights = wide();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve_until(&flights, &stop));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let flights = flights.clone();
                go!(move || {
                    let mut served = 0;
                    for round in 0..20 {
                        let wanted = numbered((0..50).map(|i| (client * 11 + round * 3 + i) % 400));
                        // Every fifth request has a short time-out, so that time-outs race with
                        // settling.
                        let timeout_ms = if round % 5 == 4 { 1 } else { LONG_MS };
                        let settled = flights.join(&wanted).unwrap().until(timeout_ms);
                        assert!(settled || timeout_ms == 1);
                        served += usize::from(settled);
                    }
                    served
                })
            })
            .collect();
        let served: usize = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum();
        assert!(served >= CLIENTS * 16);
        stop.store(true, Ordering::Release);
        assert!(server.join().unwrap() > 0);
    });
    assert_eq!(flights.stats().waiters, 0);
}

#[test]
fn a_thousand_requests_cost_one_fetch_a_symbol() {
    const CLIENTS: usize = 1_000;
    let flights = wide();
    let joined = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let flights = flights.clone();
            let joined = Arc::clone(&joined);
            go!(move || {
                let wanted = numbered((0..50).map(|i| (client * 8 + i) % 400));
                let wait = flights.join(&wanted).unwrap();
                joined.fetch_add(1, Ordering::Release);
                wait.until(LONG_MS)
            })
        })
        .collect();
    while joined.load(Ordering::Acquire) < CLIENTS {
        std::thread::yield_now();
    }
    let batch = flights.take_pending(500);
    assert_eq!(batch.symbols().len(), 400);
    assert!(flights.take_pending(500).symbols().is_empty());
    drop(batch);
    for client in clients {
        assert!(client.join().unwrap());
    }
    assert_eq!(flights.stats(), PendingStats::default());
}

#[test]
fn two_schedulers_never_take_the_same_symbol() {
    let flights = wide();
    let wait = flights.join(&numbered(0..1_000)).unwrap();
    let start = Barrier::new(2);
    let taken: Vec<Flight> = std::thread::scope(|scope| {
        let take = || {
            start.wait();
            (0..10)
                .map(|_| flights.take_pending(50))
                .collect::<Vec<_>>()
        };
        let threads = [scope.spawn(take), scope.spawn(take)];
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let distinct: BTreeSet<&Symbol> = taken.iter().flat_map(Flight::symbols).collect();
    assert_eq!(distinct.len(), 1_000);
    drop(taken);
    assert!(wait.is_settled());
}
