//! Tests of the quotes that L1 keeps, refuses and evicts.

use std::sync::atomic::AtomicBool;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::base::{json, testing};
use crate::cache::freshness::CacheSettings;

fn symbol(name: &str) -> Symbol {
    Symbol::parse(name).unwrap()
}

fn at(second: i64) -> Timestamp {
    let start: Timestamp = "2026-11-20T05:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(second)
}

/// A quote of NSE:INFY with the time `as_of_s`.
fn quote(source: Source, as_of_s: i64, price: &str) -> Quote {
    Quote {
        previous_close: json::parse_decimal("100"),
        source,
        ..testing::quote("NSE:INFY", price, at(as_of_s))
    }
}

fn named(name: &str) -> Quote {
    Quote {
        symbol: symbol(name),
        ..quote(Source::BrokerA, 0, "101")
    }
}

fn vouched(mono_ms: u64) -> Vouched {
    Vouched {
        mono_ms: mono_ms as i64,
        calls: 1,
    }
}

/// A cache in which broker A's quotes are stale after 3 s and the public provider's after 20 s.
fn cache(entries_max: usize) -> L1 {
    let l1 = L1::new(entries_max);
    for (source, grace_ms) in [(Source::BrokerA, 3_000), (Source::Public, 20_000)] {
        let limits = Limits {
            period_ms: 0,
            grace_ms,
        };
        l1.freshness().set_limits(source, limits, limits);
    }
    l1
}

/// Inserts a quote that its source vouches for as of `now_mono_ms`.
fn insert(l1: &L1, quote: Quote, now_mono_ms: u64) -> bool {
    l1.insert(quote, vouched(now_mono_ms), now_mono_ms) == Kept::Taken
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
fn a_view_finds_every_symbol_of_a_request() {
    let l1 = L1::new(10);
    assert!(insert(&l1, named("NSE:INFY"), 1_000));
    assert_eq!(l1.insert(named("NSE:NIFTY 50"), Vouched::NEVER, 1_000), Kept::Taken);
    assert!(l1.insert_unknown(symbol("NSE:NOSUCH"), 1_000, 5_000));
    let mut out = Vec::new();
    let view = l1.view(1_500);
    assert!(view.get("NSE:INFY").unwrap().write(&mut out));
    out.push(b',');
    assert!(view.get("NSE:NIFTY 50").unwrap().write(&mut out));
    assert!(!view.get("NSE:NOSUCH").unwrap().write(&mut out));
    assert_eq!(view.get("NSE:TCS"), None);
    let tail = "\"last_price\":101,\"change\":1,\"change_pct\":1,\
                \"day_low\":null,\"day_high\":null,\
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
fn a_quote_becomes_stale_at_the_time_of_reading() {
    let l1 = cache(10);
    insert(&l1, named("NSE:INFY"), 1_000);
    assert_eq!(stale(&l1, "NSE:INFY", 4_000), Some(false));
    assert_eq!(stale(&l1, "NSE:INFY", 4_001), Some(true));
    // A late answer vouches for the moment at which the source was asked.
    l1.insert(named("NSE:TCS"), vouched(1_000), 4_500);
    assert_eq!(stale(&l1, "NSE:TCS", 4_500), Some(true));
    l1.insert(named("NSE:WIPRO"), Vouched::NEVER, 0);
    assert_eq!(stale(&l1, "NSE:WIPRO", 0), Some(true), "kept over a restart");
}

#[test]
fn a_quote_with_a_later_time_replaces_any_source() {
    let l1 = cache(10);
    assert!(insert(&l1, quote(Source::BrokerA, 10, "101"), 1_000));
    for (source, as_of_s, taken) in [
        (Source::Public, 9, false),
        // Broker A's quote is stale by now, but still has the later time.
        (Source::Public, 9, false),
        (Source::Public, 11, true),
        (Source::BrokerA, 10, false),
        (Source::BrokerA, 12, true),
        (Source::BrokerA, 11, false),
        (Source::Public, 13, true),
    ] {
        let new = quote(source, as_of_s, "102.5");
        assert_eq!(insert(&l1, new, 90_000), taken, "{source:?} {as_of_s}");
    }
    assert_eq!(l1.quote("NSE:INFY").unwrap().as_of, at(13));
    let held = Quote {
        as_of: at(20),
        ..quote(Source::BrokerA, 0, "101")
    };
    l1.insert(held, Vouched::NEVER, 91_000);
    assert!(!insert(&l1, quote(Source::Public, 19, "102"), 91_000), "nor after a restart");
}

#[test]
fn at_equal_times_fresh_quotes_win_and_then_broker_a() {
    let l1 = cache(10);
    assert!(insert(&l1, quote(Source::Public, 10, "101"), 1_000));
    assert!(insert(&l1, quote(Source::BrokerA, 10, "102"), 2_000));
    assert!(!insert(&l1, quote(Source::Public, 10, "103"), 5_000));
    assert!(insert(&l1, quote(Source::Public, 10, "104"), 5_001), "broker A's is stale");
    assert_eq!(
        l1.insert(quote(Source::BrokerA, 10, "105"), vouched(1_000), 5_002),
        Kept::Refused
    );
    assert!(insert(&l1, quote(Source::BrokerA, 10, "106"), 6_000));
    assert!(insert(&l1, quote(Source::BrokerA, 10, "107"), 7_000), "asked later");
    assert_eq!(
        l1.insert(quote(Source::BrokerA, 10, "108"), vouched(6_500), 7_500),
        Kept::Refused
    );
    assert_eq!(price(&l1), "107");
}

#[test]
fn the_same_price_with_an_earlier_time_confirms_the_quote() {
    let l1 = cache(10);
    insert(&l1, quote(Source::BrokerA, 10, "101"), 1_000);
    let earlier = quote(Source::BrokerA, 8, "101");
    assert_eq!(l1.insert(earlier.clone(), vouched(3_000), 3_000), Kept::Confirmed);
    assert_eq!(stale(&l1, "NSE:INFY", 6_000), Some(false));
    assert_eq!(l1.quote("NSE:INFY").unwrap().as_of, at(10));
    let other = Quote {
        last_price: json::parse_decimal("99").unwrap(),
        ..earlier
    };
    assert_eq!(l1.insert(other, vouched(6_000), 6_000), Kept::Refused);
    let delayed = quote(Source::Public, 8, "101");
    assert_eq!(l1.insert(delayed, vouched(6_000), 6_000), Kept::Refused, "another's word");
    assert_eq!(stale(&l1, "NSE:INFY", 6_001), Some(true));
    assert_eq!(l1.stats().refused, 2);
}

#[test]
fn a_stale_quote_without_demand_is_cold_until_waited_for() {
    let l1 = L1::of(
        &CacheSettings {
            demand_ttl_ms: 10_000,
            ..CacheSettings::default()
        },
        [],
    );
    let limits = Limits {
        period_ms: 0,
        grace_ms: 3_000,
    };
    l1.freshness().set_limits(Source::BrokerA, limits, limits);
    let cold = |now_mono_ms, has_waited| {
        let view = l1.view(now_mono_ms);
        let hit = if has_waited {
            view.get("NSE:INFY")
        } else {
            view.ask("NSE:INFY")
        };
        matches!(hit, Some(Hit::Known { cold: true, .. }))
    };
    insert(&l1, named("NSE:INFY"), 1_000);
    assert!(!cold(4_000, false), "fresh");
    assert!(!cold(4_500, false) && !cold(14_000, false), "stale, and in demand since 4.0 s");
    assert!(cold(25_000, false) && cold(25_000, false), "others wait too");
    assert!(cold(25_500, true));
    assert!(!cold(26_000, false), "waited for lately");
}

#[test]
fn pinned_symbols_are_never_evicted() {
    let settings = CacheSettings {
        l1_entries_max: 8,
        ..CacheSettings::default()
    };
    let l1 = L1::of(&settings, [symbol("NSE:NIFTY 50"), symbol("BSE:SENSEX")]);
    insert(&l1, named("NSE:NIFTY 50"), 0);
    for number in 0..100 {
        insert(&l1, named(&format!("NSE:S{number}")), 1_000 + number);
        assert!(l1.stats().size <= 8);
    }
    insert(&l1, named("BSE:SENSEX"), 0);
    for number in 100..200 {
        insert(&l1, named(&format!("NSE:S{number}")), 1_000 + number);
        assert!(l1.stats().size <= 8);
    }
    assert!(l1.quote("NSE:NIFTY 50").is_some() && l1.quote("BSE:SENSEX").is_some());
}

#[test]
fn negative_entries_expire_and_give_way_to_quotes() {
    let l1 = L1::new(10);
    assert!(l1.insert_unknown(symbol("NSE:INFY"), 0, 1_000));
    assert_eq!(l1.view(999).get("NSE:INFY"), Some(Hit::Unknown));
    assert_eq!(l1.view(1_000).get("NSE:INFY"), None);
    assert_eq!(l1.quote("NSE:INFY"), None);
    assert!(insert(&l1, named("NSE:INFY"), 500));
    assert!(
        !l1.insert_unknown(symbol("NSE:INFY"), 600, 9_000),
        "a known price is not erased"
    );
    assert_eq!(stale(&l1, "NSE:INFY", 700), Some(false));
    assert_eq!(l1.stats().size, 1);
}

#[test]
fn wanted_lists_symbols_asked_for_last_first() {
    for (demand_ttl_ms, max, wanted) in [
        (60_000, 10, &["NSE:B", "NSE:C", "NSE:A"][..]),
        (60_000, 1, &["NSE:B"]),
        (5_000, 10, &["NSE:B", "NSE:C"]),
    ] {
        let l1 = L1::of(
            &CacheSettings {
                demand_ttl_ms,
                ..CacheSettings::default()
            },
            [],
        );
        for (name, mono_ms) in [("NSE:A", 300), ("NSE:B", 100), ("NSE:C", 200), ("NSE:D", 0)] {
            insert(&l1, named(name), mono_ms);
        }
        l1.insert_unknown(symbol("NSE:E"), 0, 1 << 40);
        for (name, now_mono_ms) in [("NSE:A", 10_000), ("NSE:B", 20_000), ("NSE:C", 20_900)] {
            assert!(l1.view(now_mono_ms).get(name).is_some());
        }
        assert_eq!(l1.view(20_000).get("NSE:E"), Some(Hit::Unknown));
        let names = || -> Vec<String> {
            l1.wanted(21_000, 1, max)
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert_eq!(names(), wanted);
        // A new quote of a symbol still counts as asked for.
        assert!(insert(&l1, named("NSE:B"), 400));
        assert_eq!(names().len(), wanted.len());
        assert_eq!(names().iter().any(|name| name == "NSE:B"), max > 1);
    }
}

#[test]
fn a_full_cache_evicts_symbols_nobody_asks_for() {
    let l1 = cache(64);
    for i in 0..64 {
        insert(&l1, named(&format!("NSE:COLD{i}")), 1_000);
    }
    insert(&l1, named("NSE:HOT"), 1_000);
    for i in 0..500u64 {
        let now_mono_ms = 2_000 + i * 1_000;
        assert_eq!(stale(&l1, "NSE:HOT", now_mono_ms), Some(now_mono_ms > 4_000), "round {i}");
        insert(&l1, named(&format!("NSE:NEW{i}")), now_mono_ms);
        assert_eq!(l1.stats().size, 64);
    }
    assert_eq!(l1.stats().evictions, 501);
}

/// After any inserts, replacements and evictions the byte count equals the entries held.
#[test]
fn the_byte_count_equals_the_entries_held() {
    let l1 = L1::new(50);
    assert_eq!(l1.stats().bytes, 0);
    assert!(insert(&l1, named("NSE:INFY"), 0));
    let one = l1.stats().bytes;
    assert!(one > 100 && one < 1_000, "{one}");
    // The same quote again, then one with a longer price, then one that is refused.
    assert!(insert(&l1, named("NSE:INFY"), 1));
    assert_eq!(l1.stats().bytes, one);
    assert!(insert(&l1, quote(Source::BrokerA, 1, "101.25"), 2));
    let longer = l1.stats().bytes;
    assert!(longer > one);
    assert!(!insert(&l1, quote(Source::BrokerA, 0, "101.123456"), 3));
    assert_eq!(l1.stats().bytes, longer);
    for number in 0..500 {
        let name = symbol(&format!("NSE:S{number}"));
        match number % 3 {
            0 => drop(l1.insert_unknown(name, number, number + 1)),
            _ => drop(insert(&l1, named(name.as_str()), number)),
        }
    }
    assert_eq!(l1.stats().size, 50);
    let guard = l1.map.guard();
    let held = l1
        .map
        .iter(&guard)
        .map(|(name, entry)| entry.bytes(name.as_str().len()));
    assert_eq!(l1.stats().bytes, held.sum::<usize>());
}

#[test]
fn invented_symbols_do_not_evict_quotes() {
    let l1 = L1::new(200);
    for i in 0..100 {
        insert(&l1, named(&format!("NSE:Q{i}")), 1_000);
    }
    for i in 0..5_000 {
        l1.insert_unknown(symbol(&format!("NSE:X{i}")), 100_000, 1 << 40);
    }
    let kept = (0..100)
        .filter(|i| l1.quote(&format!("NSE:Q{i}")).is_some())
        .count();
    assert!(kept >= 95, "{kept} of 100 quotes left");
    assert_eq!(l1.stats().size, 200);
}

#[test]
fn hits_and_misses_are_counted() {
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
            insert(&l1, next, 1_000);
        }
        stop.store(true, Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    assert_eq!(l1.stats().size, 32);
}

#[test]
fn symbols_asked_for_within_the_same_time_come_in_turn() {
    let l1 = L1::new(10);
    for (name, vouched_mono_ms, asked_mono_ms) in [
        ("NSE:A", 300, 20_000),
        ("NSE:B", 100, 10_000),
        ("NSE:C", 200, 15_000),
    ] {
        insert(&l1, named(name), vouched_mono_ms);
        l1.touch(name, asked_mono_ms);
    }
    let names = |alike_s| -> Vec<String> {
        l1.wanted(21_000, alike_s, 9)
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(names(1), ["NSE:A", "NSE:C", "NSE:B"]);
    assert_eq!(names(15), ["NSE:B", "NSE:C", "NSE:A"]);
}
