//! Floods of invented symbols, and one client that asks for an existing one.

use super::*;
use crate::base::ManualClock;

const MINUTE_MS: u64 = 60_000;
/// Unlisted symbols tried in each batch of the public provider.
const TRIED: usize = 2;

fn setting() -> (ManualClock, Unlisted) {
    let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
    let unlisted = Unlisted::new(clock.clone(), Arc::new(|| {}));
    (clock, unlisted)
}

fn symbol(name: &str) -> Symbol {
    Symbol::parse(&format!("NSE:{name}")).unwrap()
}

fn client(number: u8) -> Option<IpAddr> {
    Some(IpAddr::from([192, 0, 2, number]))
}

/// Makes symbols that nobody asked for before.
struct Inventor(usize);

impl Inventor {
    fn names(&mut self, count: usize) -> Vec<Symbol> {
        self.0 += count;
        (self.0 - count..self.0)
            .map(|number| symbol(&format!("X{number}")))
            .collect()
    }
}

/// Polls until `wanted` is tried, while each of `attackers` sends five requests a second.
fn rounds_until_tried(
    wanted: &Symbol,
    asker: Option<IpAddr>,
    attackers: &[Option<IpAddr>],
) -> usize {
    let (clock, unlisted) = setting();
    let mut inventor = Inventor(0);
    let mut flood = |clock: &ManualClock, unlisted: &Unlisted| {
        for attacker in attackers {
            drop(unlisted.join(*attacker, &inventor.names(50)));
        }
        clock.advance_ms(200);
    };
    for _ in 0..25 {
        flood(&clock, &unlisted);
    }
    for round in 1..1_000 {
        for _ in 0..15 {
            drop(unlisted.join(asker, std::slice::from_ref(wanted)));
            for _ in 0..5 {
                flood(&clock, &unlisted);
            }
            unlisted.0.flights.expire(MINUTE_MS);
        }
        let taken = unlisted.take_pending(TRIED);
        assert_eq!(taken.symbols().len(), TRIED, "no round is wasted");
        if taken.symbols().contains(wanted) {
            return round;
        }
        let places = unlisted.0.places.lock();
        assert!(
            places.entries.len() <= UNLISTED_MAX && places.asked_mono_ms.len() <= REMEMBERED_MAX
        );
    }
    panic!("never tried");
}

#[test]
fn a_symbol_asked_for_again_is_tried_next_despite_a_flood() {
    let wanted = symbol("HONEST");
    assert_eq!(rounds_until_tried(&wanted, client(1), &[client(2)]), 1);
    assert_eq!(rounds_until_tried(&wanted, client(1), &[client(1)]), 1, "the same network");
    let many: Vec<Option<IpAddr>> = (2..102).map(client).collect();
    assert_eq!(rounds_until_tried(&wanted, client(1), &many), 1, "more networks than places");
}

#[test]
fn networks_are_served_in_turn_also_when_they_repeat() {
    let (clock, unlisted) = setting();
    let mut inventor = Inventor(0);
    let repeated = inventor.names(PER_CLIENT_MAX);
    for _ in 0..3 {
        for names in repeated.chunks(PER_REQUEST_MAX) {
            drop(unlisted.join(client(2), names));
        }
        clock.advance_ms(SECOND_LOOK_MS as i64);
    }
    let honest = [symbol("H1"), symbol("H2")];
    drop(unlisted.join(client(1), &honest));
    clock.advance_ms(SECOND_LOOK_MS as i64);
    drop(unlisted.join(client(1), &honest));
    let mut tried = Vec::new();
    for _ in 0..3 {
        let taken = unlisted.take_pending(TRIED);
        tried.extend(taken.symbols().to_vec());
        drop(taken);
    }
    assert!(tried[..4].contains(&honest[0]) && tried[..4].contains(&honest[1]), "{tried:?}");
}

#[test]
fn places_are_bounded_per_request_and_per_network() {
    let (clock, unlisted) = setting();
    let mut inventor = Inventor(0);
    drop(unlisted.join(client(1), &inventor.names(50)));
    assert_eq!(unlisted.stats().symbols, PER_REQUEST_MAX);
    for _ in 0..10 {
        drop(unlisted.join(client(1), &inventor.names(50)));
    }
    assert_eq!(unlisted.stats().symbols, PER_CLIENT_MAX);
    assert_eq!(unlisted.stats().refused as usize, 11 * PER_REQUEST_MAX - PER_CLIENT_MAX);
    for number in 2..100 {
        drop(unlisted.join(client(number), &inventor.names(50)));
        assert!(unlisted.stats().symbols <= UNLISTED_MAX);
    }
    assert_eq!(unlisted.stats().symbols, UNLISTED_MAX);
    // A batch in flight keeps its places, and settling it frees them.
    let taken = unlisted.take_pending(UNLISTED_MAX);
    assert_eq!(taken.symbols().len(), UNLISTED_MAX);
    assert!(unlisted.join(client(200), &inventor.names(1)).is_none());
    drop(taken);
    assert!(unlisted.join(client(200), &inventor.names(1)).is_some());
    clock.advance_ms(MINUTE_MS as i64);
    unlisted.0.flights.expire(MINUTE_MS);
    assert_eq!(unlisted.stats().symbols, 0);
}

#[test]
fn a_waiter_is_woken_when_its_symbol_is_settled_or_crowded_out() {
    let (_, unlisted) = setting();
    let mut inventor = Inventor(0);
    let waits = unlisted.join(client(1), &inventor.names(1)).unwrap();
    for _ in 0..2 {
        drop(unlisted.join(client(1), &inventor.names(5)));
    }
    assert!(waits.is_settled(), "crowded out by its own network");
    let wanted = [symbol("HONEST")];
    let waits = unlisted.join(client(2), &wanted).unwrap();
    let taken = unlisted.take_pending(TRIED);
    assert!(taken.symbols().contains(&wanted[0]));
    taken.put_back();
    assert!(!waits.is_settled());
    let taken = unlisted.take_pending(UNLISTED_MAX);
    assert!(taken.symbols().contains(&wanted[0]));
    drop(taken);
    assert!(waits.is_settled());
}
