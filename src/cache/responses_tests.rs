//! Storing, invalidating and evicting responses, and that no stale one is found.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

use proptest::prelude::*;

use super::*;
use crate::http::Preconditions;
use crate::rt::threads::spawn;

const ALL: View = View::Holdings {
    broker: None,
    day: None,
};

fn answer(bytes: usize) -> Arc<Variants> {
    Responses::make(&b"1".repeat(bytes))
}

fn days(days: u16) -> View {
    View::Pnl {
        days,
        today: "2026-11-20".parse().unwrap(),
        day: None,
    }
}

#[test]
fn a_response_is_found_by_its_user_and_view_only() {
    let responses = Responses::new(1 << 20);
    let kept = answer(10);
    assert!(responses.find(1, ALL, 0).is_none());
    assert!(responses.keep(&responses.fill_token(1), ALL, &kept, 0));
    assert!(Arc::ptr_eq(&responses.find(1, ALL, 0).unwrap(), &kept));
    assert!(responses.find(2, ALL, 0).is_none());
    assert!(
        responses
            .find(
                1,
                View::Holdings {
                    broker: Some(Broker::A),
                    day: None
                },
                0
            )
            .is_none()
    );
    let stats = responses.stats();
    assert_eq!((stats.users, stats.hits, stats.misses), (1, 1, 3));
}

#[test]
fn a_token_taken_before_an_invalidation_stores_nothing() {
    let responses = Responses::new(1 << 20);
    let early = responses.fill_token(1);
    responses.invalidate(1);
    assert!(!responses.keep(&early, ALL, &answer(10), 0));
    let late = responses.fill_token(1);
    assert!(
        !responses.keep(&early, ALL, &answer(10), 0),
        "a newer token does not revive an older one"
    );
    assert!(responses.keep(&late, ALL, &answer(10), 0));
    responses.invalidate(1);
    assert!(responses.find(1, ALL, 0).is_none());
    assert!(!responses.keep(&late, ALL, &answer(10), 0));
    assert_eq!(responses.stats().refused, 3);
}

#[test]
fn only_responses_of_the_expected_version_are_kept() {
    let responses = Responses::new(1 << 20);
    let found = || responses.find(1, days(1), 0).is_some();
    responses.expect(1, 5);
    let token = responses.fill_token(1);
    assert!(responses.keep(&token, days(1), &answer(100), 0) && found());
    responses.expect(1, 5);
    assert!(found(), "nothing was written since");
    let late = responses.fill_token(1);
    responses.expect(1, 6);
    assert!(!found());
    assert!(!responses.keep(&late, days(1), &answer(100), 0), "it was read before");
    let token = responses.fill_token(1);
    assert!(responses.keep(&token, days(1), &answer(100), 0) && found());
    // A lower version: of a look-up that read it earlier, or of a restored database.
    responses.expect(1, 5);
    assert!(!found());
    // This node's own write.
    assert!(responses.keep(&responses.fill_token(1), days(1), &answer(100), 0) && found());
    responses.invalidate(1);
    responses.expect(1, 7);
    assert!(!found());
    assert_eq!(responses.stats().users, 1);
}

#[test]
fn a_response_expires() {
    let responses = Responses::new(1 << 20);
    responses.keep(&responses.fill_token(1), ALL, &answer(10), 5);
    assert!(responses.find(1, ALL, 4 + LIFE_MS).is_some());
    assert!(responses.find(1, ALL, 5 + LIFE_MS).is_none());
}

#[test]
fn views_of_a_user_are_bounded() {
    let responses = Responses::new(1 << 20);
    let token = responses.fill_token(1);
    for number in 0..=VIEWS_PER_USER_MAX as u16 {
        assert!(responses.keep(&token, days(number), &answer(10), 0));
    }
    assert!(responses.find(1, days(0), 0).is_none());
    assert!((1..=VIEWS_PER_USER_MAX as u16).all(|day| responses.find(1, days(day), 0).is_some()));
    let bytes = responses.stats().bytes;
    assert!(responses.keep(&token, days(7), &answer(10), 0));
    assert_eq!(responses.stats().bytes, bytes, "replaced, not added");
}

#[test]
fn bytes_are_bounded_and_evictions_counted() {
    let responses = Responses::new(1 << 20);
    for user in 0..2_000 {
        responses.keep(&responses.fill_token(user), ALL, &answer(900), 0);
    }
    let stats = responses.stats();
    assert!(stats.bytes <= 1 << 20 && stats.evictions > 0, "{stats:?}");
    assert_eq!(stats.users as u64 + stats.evictions, 2_000);
    for user in 0..2_000 {
        responses.invalidate(user);
    }
    assert_eq!((responses.stats().users, responses.stats().bytes), (0, 0));
    assert!(
        !responses.keep(&responses.fill_token(1), ALL, &large(1 << 20), 0),
        "larger than its share"
    );
}

/// Random digits, which do not compress well.
fn large(bytes: usize) -> Arc<Variants> {
    let mut random = fastrand::Rng::with_seed(1);
    let body: Vec<u8> = (0..bytes).map(|_| random.u8(b'0'..=b'9')).collect();
    Responses::make(&body)
}

#[test]
fn one_user_stays_within_its_shard_s_share() {
    let responses = Responses::new(16 * 8_192);
    let token = responses.fill_token(1);
    for number in 0..20 {
        assert!(responses.keep(&token, days(number), &answer(900), 0));
    }
    assert!(responses.stats().bytes <= 8_192);
    assert!(responses.find(1, days(19), 0).is_some());
}

#[test]
fn a_response_is_private_and_compressed_if_that_helps() {
    let body: Vec<u8> = br#"{"tradingsymbol":"INFY"}"#.repeat(100);
    let answer = Responses::make(&body);
    let full = answer.select(Some(b"br"), Preconditions::NONE).unwrap();
    let head = std::str::from_utf8(full.headers()).unwrap();
    assert!(head.contains("Cache-Control: private, no-cache\r\n"), "{head}");
    assert!(head.contains("Vary: Accept-Encoding, Authorization, Cookie\r\n"), "{head}");
    assert!(head.contains("Content-Encoding: br\r\n") && !head.contains("Date: "), "{head}");
    let small = Responses::make(b"{}");
    assert_eq!(
        small
            .select(Some(b"gzip, br"), Preconditions::NONE)
            .unwrap()
            .body(),
        b"{}"
    );
    assert_eq!(small.json(), b"{}");
}

/// Readers store responses made of the number that they read. The writer raises the number,
/// invalidates and then acknowledges it. No reader may find an older number after that.
#[test]
fn no_response_older_than_an_acknowledged_change_is_found() {
    let responses = Arc::new(Responses::new(1 << 20));
    let stored = Arc::new(AtomicU64::new(0));
    let acknowledged = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let responses = Arc::clone(&responses);
            let stored = Arc::clone(&stored);
            let acknowledged = Arc::clone(&acknowledged);
            let over = Arc::clone(&over);
            spawn("reads", move || {
                let mut reads = 0_u64;
                while !over.load(SeqCst) || reads == 0 {
                    let least = acknowledged.load(SeqCst);
                    let found = responses.find(1, ALL, 0).unwrap_or_else(|| {
                        let token = responses.fill_token(1);
                        let seen = stored.load(SeqCst);
                        let made = Responses::make(seen.to_string().as_bytes());
                        responses.keep(&token, ALL, &made, 0);
                        made
                    });
                    let seen: u64 = std::str::from_utf8(found.json()).unwrap().parse().unwrap();
                    assert!(seen >= least, "{seen} after {least} was acknowledged");
                    reads += 1;
                }
            })
            .unwrap()
        })
        .collect();
    for number in 1..=20_000 {
        stored.store(number, SeqCst);
        responses.invalidate(1);
        acknowledged.store(number, SeqCst);
    }
    over.store(true, SeqCst);
    readers
        .into_iter()
        .for_each(|reader| reader.join().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn sizes_add_up(
        steps in prop::collection::vec((0_i64..40, 0_u16..40, 0_usize..3_000, 0..8_u8), 1..300),
    ) {
        let responses = Responses::new(256 * 1_024);
        for (user, day, bytes, step) in steps {
            match step {
                0 => responses.invalidate(user),
                1 => drop(responses.find(user, days(day), 0)),
                _ => {
                    responses.keep(&responses.fill_token(user), days(day), &answer(bytes), 0);
                }
            }
            for shard in &responses.shards {
                let shard = shard.lock();
                prop_assert!(shard.bytes <= responses.shard_bytes_max());
                prop_assert_eq!(shard.keys.len(), shard.users.len());
                let held: usize = shard.users.values().map(|slot| slot.bytes).sum();
                prop_assert_eq!(shard.bytes, held);
                for (user, slot) in &shard.users {
                    prop_assert_eq!(shard.keys[slot.at], *user);
                    let kept: usize = slot.responses.iter().map(|kept| kept.answer.bytes()).sum();
                    prop_assert_eq!(slot.bytes, kept + USER_BYTES);
                    prop_assert!(slot.responses.len() <= VIEWS_PER_USER_MAX);
                }
            }
        }
    }
}
