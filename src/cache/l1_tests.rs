//! What the first level keeps, what it refuses and what it forgets.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::base::decimal;
use jiff::{SignedDuration, Timestamp};

fn symbol(name: &str) -> Symbol {
    Symbol::parse(name).unwrap()
}

fn at(second: i64) -> Timestamp {
    let start: Timestamp = "2026-11-20T05:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(second)
}

/// A quote of NSE:INFY whose own time and time of receipt are `as_of_s`.
fn quote(source: Source, as_of_s: i64, price: &str) -> Quote {
    Quote {
        symbol: symbol("NSE:INFY"),
        last_price: decimal::parse(price).unwrap(),
        previous_close: decimal::parse("100"),
        as_of: at(as_of_s),
        received: at(as_of_s),
        source,
        simulated: false,
    }
}

fn named(name: &str) -> Quote {
    Quote { symbol: symbol(name), ..quote(Source::BrokerA, 0, "101") }
}

fn price(l1: &L1) -> String {
    l1.quote("NSE:INFY").unwrap().last_price.to_string()
}

fn stale(l1: &L1, name: &str, now_mono_ms: u64) -> Option<bool> {
    match l1.view(now_mono_ms).get(name) {
        Some(Hit::Known { stale, .. }) => Some(stale),
        _ => None,
    }
}

#[test]
fn one_view_serves_a_whole_join() {
    let l1 = L1::new(10);
    assert!(l1.insert(named("NSE:INFY"), 1_000, false));
    assert!(l1.insert(named("NSE:NIFTY 50"), 1_000, true));
    assert!(l1.insert_unknown(symbol("NSE:NOSUCH"), 1_000, 5_000));
    let mut out = Vec::new();
    let view = l1.view(1_500);
    assert!(view.get("NSE:INFY").unwrap().write(&mut out));
    out.push(b',');
    assert!(view.get("NSE:NIFTY 50").unwrap().write(&mut out));
    assert!(!view.get("NSE:NOSUCH").unwrap().write(&mut out));
    assert_eq!(view.get("NSE:TCS"), None);
    let tail = "\"last_price\":101,\"change\":1,\"change_pct\":1,\
                \"as_of\":\"2026-11-20T10:30:00+05:30\",\"source\":\"broker_a\"";
    assert_eq!(
        String::from_utf8(out).unwrap(),
        format!(
            "{{\"symbol\":\"NSE:INFY\",{tail},\"stale\":false}},\
             {{\"symbol\":\"NSE:NIFTY 50\",{tail},\"stale\":true}}"
        )
    );
}

#[test]
fn staleness_is_decided_when_read() {
    let l1 = L1::new(10);
    l1.set_stale_after(Source::BrokerA, 3_000);
    l1.insert(named("NSE:INFY"), 1_000, false);
    assert_eq!(stale(&l1, "NSE:INFY", 4_000), Some(false));
    assert_eq!(stale(&l1, "NSE:INFY", 4_001), Some(true));
    l1.set_stale_after(Source::BrokerA, u64::MAX);
    assert_eq!(stale(&l1, "NSE:INFY", 1 << 40), Some(false), "the phase allows any age");
    l1.insert(named("NSE:TCS"), 1_000, true);
    assert_eq!(stale(&l1, "NSE:TCS", 1_000), Some(true), "aged is stale whatever the phase");
}

#[test]
fn a_quote_that_waited_is_taken_once_the_better_one_is_stale() {
    let l1 = L1::new(10);
    l1.set_stale_after(Source::BrokerA, 3_000);
    l1.set_stale_after(Source::Public, 20_000);
    l1.insert(quote(Source::BrokerA, 10, "101"), 1_000, false);
    let waited = Quote { received: at(11), ..quote(Source::Public, 5, "102") };
    assert!(!l1.insert(waited.clone(), 2_000, false));
    assert!(!l1.insert_late(waited.clone(), 2_000, false, 4_000));
    assert!(l1.insert_late(waited, 2_000, false, 4_001));
    assert_eq!(stale(&l1, "NSE:INFY", 22_000), Some(false));
    assert_eq!(stale(&l1, "NSE:INFY", 22_001), Some(true), "counted from its receipt");
}

#[test]
fn after_the_close_only_what_came_after_it_is_fresh() {
    let l1 = L1::new(10);
    l1.insert(quote(Source::BrokerA, 10, "101"), 9_000, false);
    l1.insert(named("NSE:TCS"), 10_000, false);
    l1.set_stale_after(Source::BrokerA, u64::MAX);
    l1.set_fresh_since(Source::BrokerA, 10_000);
    assert_eq!(stale(&l1, "NSE:INFY", 1 << 40), Some(true));
    assert_eq!(stale(&l1, "NSE:TCS", 1 << 40), Some(false));
    assert!(l1.insert(quote(Source::Public, 12, "102"), 11_000, false), "it gives way");
}

#[test]
fn within_a_source_the_price_s_own_time_never_goes_back() {
    let l1 = L1::new(10);
    assert!(l1.insert(quote(Source::Public, 10, "101"), 1_000, false));
    let late = Quote { received: at(12), ..quote(Source::Public, 9, "99") };
    assert!(!l1.insert(late, 90_000, false));
    assert!(l1.insert(quote(Source::Public, 10, "102"), 2_000, false), "same time, heard later");
    assert!(!l1.insert(quote(Source::Public, 10, "103"), 1_500, false), "same time, heard before");
    assert!(l1.insert(quote(Source::Public, 11, "104"), 2_000, false));
    assert_eq!(price(&l1), "104");
    assert_eq!(l1.stats().refused, 2);
}

#[test]
fn broker_a_is_preferred_while_it_is_fresh() {
    let l1 = L1::new(10);
    l1.set_stale_after(Source::BrokerA, 3_000);
    assert!(l1.insert(quote(Source::Public, 10, "101"), 1_000, false));
    assert!(l1.insert(quote(Source::BrokerA, 9, "102"), 1_000, false), "broker A wins");
    assert!(!l1.insert(quote(Source::Public, 12, "103"), 4_000, false), "broker A is fresh");
    assert!(l1.insert(quote(Source::Public, 13, "104"), 4_001, false), "failover");
    assert!(!l1.insert(quote(Source::BrokerA, 14, "105"), 5_000, true), "aged against fresh");
    assert!(!l1.insert(quote(Source::BrokerA, 14, "105"), 4_000, false), "came late");
    assert!(l1.insert(quote(Source::BrokerA, 14, "106"), 5_000, false), "and back");
    assert_eq!(price(&l1), "106");
}

#[test]
fn a_wrong_time_does_not_block_an_entry() {
    let l1 = L1::new(10);
    assert!(l1.insert(quote(Source::BrokerA, 100_000, "101"), 1_000, false));
    assert!(
        l1.insert(quote(Source::BrokerA, 10, "102"), 2_000, false),
        "held one is of the future"
    );
    assert!(l1.insert(quote(Source::BrokerA, 20, "103"), 3_000, true));
    let fresh = Quote { received: at(30), ..quote(Source::BrokerA, 19, "104") };
    assert!(l1.insert(fresh, 4_000, false), "held one was aged");
    let aged = Quote { received: at(30), ..quote(Source::Public, 1, "105") };
    assert!(!l1.insert(aged, 1 << 40, true), "aged, and older than the stale one held");
    assert_eq!(price(&l1), "104");
}

#[test]
fn negative_entries_expire_and_give_way_to_quotes() {
    let l1 = L1::new(10);
    assert!(l1.insert_unknown(symbol("NSE:INFY"), 0, 1_000));
    assert_eq!(l1.view(999).get("NSE:INFY"), Some(Hit::Unknown));
    assert_eq!(l1.view(1_000).get("NSE:INFY"), None);
    assert_eq!(l1.quote("NSE:INFY"), None);
    assert!(l1.insert(named("NSE:INFY"), 500, false));
    assert!(!l1.insert_unknown(symbol("NSE:INFY"), 600, 9_000), "a known price is not erased");
    assert_eq!(stale(&l1, "NSE:INFY", 700), Some(false));
    assert_eq!(l1.stats().size, 1);
}

#[test]
fn wanted_lists_what_clients_asked_for_latest_first() {
    let l1 = L1::new(10);
    for (name, received_mono_ms) in [("NSE:A", 300), ("NSE:B", 100), ("NSE:C", 200), ("NSE:D", 0)] {
        l1.insert(named(name), received_mono_ms, false);
    }
    l1.insert_unknown(symbol("NSE:E"), 0, 1 << 40);
    for (name, now_mono_ms) in [("NSE:A", 10_000), ("NSE:B", 20_000), ("NSE:C", 20_900)] {
        assert!(l1.view(now_mono_ms).get(name).is_some());
    }
    assert_eq!(l1.view(20_000).get("NSE:E"), Some(Hit::Unknown));
    let names = |ttl_ms, max| -> Vec<String> {
        l1.wanted(21_000, ttl_ms, max).iter().map(ToString::to_string).collect()
    };
    assert_eq!(names(60_000, 10), ["NSE:B", "NSE:C", "NSE:A"]);
    assert_eq!(names(60_000, 1), ["NSE:B"]);
    assert_eq!(names(5_000, 10), ["NSE:B", "NSE:C"]);
    // A new quote keeps the demand.
    assert!(l1.insert(named("NSE:B"), 400, false));
    assert_eq!(names(5_000, 10), ["NSE:C", "NSE:B"]);
}

#[test]
fn the_bound_holds_and_evicts_what_nobody_asks_for() {
    let l1 = L1::new(64);
    for i in 0..64 {
        l1.insert(named(&format!("NSE:COLD{i}")), 1_000, false);
    }
    l1.insert(named("NSE:HOT"), 1_000, false);
    for i in 0..500u64 {
        let now_mono_ms = 2_000 + i * 1_000;
        assert_eq!(stale(&l1, "NSE:HOT", now_mono_ms), Some(now_mono_ms > 6_000), "round {i}");
        l1.insert(named(&format!("NSE:NEW{i}")), now_mono_ms, false);
        assert_eq!(l1.stats().size, 64);
    }
    assert_eq!(l1.stats().evictions, 501);
}

/// However entries come, change and go, what is counted is what is there.
#[test]
fn bytes_are_those_of_the_entries_that_are_held() {
    let l1 = L1::new(50);
    assert_eq!(l1.stats().bytes, 0);
    assert!(l1.insert(named("NSE:INFY"), 0, false));
    let one = l1.stats().bytes;
    assert!(one > 100 && one < 1_000, "{one}");
    // The same again, then with a longer price, then refused.
    assert!(l1.insert(named("NSE:INFY"), 1, false));
    assert_eq!(l1.stats().bytes, one);
    assert!(l1.insert(quote(Source::BrokerA, 1, "101.25"), 2, false));
    let longer = l1.stats().bytes;
    assert!(longer > one);
    let older = Quote { received: at(3), ..quote(Source::BrokerA, 0, "101.123456") };
    assert!(!l1.insert(older, 3, false));
    assert_eq!(l1.stats().bytes, longer);
    for number in 0..500 {
        let name = symbol(&format!("NSE:S{number}"));
        match number % 3 {
            0 => drop(l1.insert_unknown(name, number, number + 1)),
            _ => drop(l1.insert(named(name.as_str()), number, false)),
        }
    }
    assert_eq!(l1.stats().size, 50);
    let guard = l1.map.guard();
    let held = l1.map.iter(&guard).map(|(name, entry)| entry.bytes(name.as_str().len()));
    assert_eq!(l1.stats().bytes, held.sum::<usize>());
}

#[test]
fn made_up_symbols_do_not_drive_the_quotes_out() {
    let l1 = L1::new(200);
    for i in 0..100 {
        l1.insert(named(&format!("NSE:Q{i}")), 1_000, false);
    }
    for i in 0..5_000 {
        l1.insert_unknown(symbol(&format!("NSE:X{i}")), 100_000, 1 << 40);
    }
    let kept = (0..100).filter(|i| l1.quote(&format!("NSE:Q{i}")).is_some()).count();
    assert!(kept >= 95, "{kept} of 100 quotes left");
    assert_eq!(l1.stats().size, 200);
}

#[test]
fn counters_add_up() {
    let l1 = L1::new(10);
    l1.count(49, 1);
    l1.count(50, 0);
    let stats = l1.stats();
    assert_eq!((stats.hits, stats.misses), (99, 1));
}

#[test]
fn readers_see_whole_quotes_while_writers_replace_and_evict() {
    let l1 = L1::new(32);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = 0u64;
                    while !stop.load(Relaxed) || seen == 0 {
                        let view = l1.view(1_000);
                        for i in 0..48 {
                            let name = format!("NSE:S{i}");
                            let mut out = Vec::new();
                            if let Some(hit) = view.get(&name) {
                                assert!(hit.write(&mut out));
                                let text = std::str::from_utf8(&out).unwrap();
                                let head = format!("{{\"symbol\":\"{name}\",\"last_price\":");
                                assert!(text.starts_with(&head), "{text}");
                                assert!(text.ends_with("\"stale\":false}"), "{text}");
                                seen += 1;
                            }
                        }
                    }
                    seen
                })
            })
            .collect();
        for round in 0..2_000i64 {
            let mut next = quote(Source::BrokerA, round, "101.5");
            next.symbol = symbol(&format!("NSE:S{}", round % 48));
            l1.insert(next, 1_000, false);
        }
        stop.store(true, Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    assert_eq!(l1.stats().size, 32);
}
