//! Messages there and back, and bytes that are none.

use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;
use crate::base::{DayRange, Source, testing};
use crate::cache::{Limits, SourceRules};
use crate::nodes::relay::encoding::{
    LIMIT_MS_MAX, Signal, VERSION, decode, decode_evening, decode_rules, decode_wanted, encode,
    encode_evening, encode_rules, encode_wanted, signal_in,
};
use crate::signals::Direction;
use crate::signals::patterns::Key;
use jiff::Timestamp;

pub(crate) fn quote(symbol: &str, paise: i64) -> Quote {
    Quote {
        last_price: Decimal::new(paise, 2),
        previous_close: Some(Decimal::new(paise + 5, 2)),
        asked: "2026-11-20T10:00:01Z".parse().unwrap(),
        ..testing::quote(symbol, "1", "2026-11-20T10:00:00.25Z".parse().unwrap())
    }
}

/// The update with the least content.
pub(crate) fn least() -> Update {
    let limits = Limits { period_ms: 1_000, grace_ms: 3_000 };
    let of = SourceRules { moving: limits, resting: limits, rests_for_ms: None, round: 1 };
    let rules = FreshnessRules { sources: [of, of], spoken_for_ms: None };
    Update { node: "-".to_owned(), ..Update::new(rules, Evening::default()) }
}

fn symbol() -> impl Strategy<Value = Symbol> {
    "(NSE|BSE):[A-Z][A-Z0-9&-]{0,15}".prop_filter_map("no symbol", |text| Symbol::parse(&text))
}

fn aged() -> impl Strategy<Value = Aged> {
    (symbol(), 1i64..1_000_000_000, any::<u64>(), 0i64..4_000_000_000, proptest::bool::ANY)
        .prop_map(|(symbol, paise, age_ms, second, simulated)| Aged {
            quote: Quote {
                symbol,
                as_of: Timestamp::from_second(second).unwrap(),
                simulated,
                day: DayRange::around(
                    Decimal::new(paise, 2),
                    Some(Decimal::new(paise.min(100), 2)),
                    Some(Decimal::new(paise + 5, 2)),
                ),
                ..quote("NSE:INFY", paise)
            },
            age_ms,
        })
}

fn limits() -> impl Strategy<Value = Limits> {
    (0..=LIMIT_MS_MAX, 0..=LIMIT_MS_MAX)
        .prop_map(|(period_ms, grace_ms)| Limits { period_ms, grace_ms })
}

fn source() -> impl Strategy<Value = SourceRules> {
    let rests_for_ms = proptest::option::of(any::<i64>());
    (limits(), limits(), rests_for_ms, any::<u8>()).prop_map(
        |(moving, resting, rests_for_ms, round)| SourceRules {
            moving,
            resting,
            rests_for_ms,
            round,
        },
    )
}

fn rules() -> impl Strategy<Value = FreshnessRules> {
    (source(), source(), proptest::option::of(any::<i64>())).prop_map(
        |(first, second, spoken_for_ms)| FreshnessRules { sources: [first, second], spoken_for_ms },
    )
}

fn signal() -> impl Strategy<Value = ListedSignal> {
    let share = || 0.0..=1.0f64;
    let shares = (share(), proptest::option::of(share()), share());
    let numbers = (any::<u32>(), any::<u32>(), proptest::option::of(any::<(u32, u32)>()));
    (shares, numbers, any::<(bool, bool)>()).prop_map(|(shares, numbers, marks)| {
        let key = Key::all().next().unwrap();
        ListedSignal {
            symbol: Symbol::parse("NSE:INFY").unwrap(),
            pattern: key.name().to_owned(),
            direction: if marks.0 { Direction::Bullish } else { Direction::Bearish },
            confidence: shares.0,
            prior_dates: numbers.0,
            samples: numbers.1,
            date_hit_rate: shares.1,
            past: numbers.2,
            base_rate: shares.2,
            simulated: marks.1,
            provisional: true,
        }
    })
}

fn date() -> impl Strategy<Value = Option<Date>> {
    proptest::option::of((1i8..=28).prop_map(|day| Date::new(2026, 11, day).unwrap()))
}

fn running() -> impl Strategy<Value = Option<RunningSignals>> {
    // Few enough that a test can cut the evening anywhere.
    let signals = proptest::collection::vec(signal(), 0..5);
    let running = (0i64..4_000_000_000_000, 0..=LIMIT_MS_MAX, signals).prop_map(
        |(at_ms, for_ms, signals)| {
            let at = Timestamp::from_millisecond(at_ms).unwrap();
            let look = ScanTime { date: Date::new(2026, 11, 20).unwrap(), at };
            RunningSignals { look, for_ms, signals }
        },
    );
    proptest::option::of(running)
}

fn update() -> impl Strategy<Value = Update> {
    let quotes = proptest::collection::vec(aged(), 0..20);
    let unknown = proptest::collection::vec(symbol(), 0..10);
    let head = (any::<(u64, u64, u64, u64)>(), "[a-z0-9-]{1,64}");
    let parts = (rules(), any::<Calls>(), date(), date(), running());
    (head, parts, quotes, unknown).prop_map(
        |(
            ((epoch, seq, sent_ms, age_ms), node),
            (rules, calls, signals, instruments, running),
            quotes,
            unknown,
        )| Update {
            epoch: Epoch(epoch),
            seq,
            sent_ms,
            node,
            age_ms,
            rules,
            calls,
            evening: Evening { signals, instruments },
            running,
            quotes,
            unknown,
        },
    )
}

/// Decodes with some epoch and number, which are not part of the bytes.
fn read(bytes: &[u8]) -> Option<Update> {
    decode(Epoch(7), 8, bytes)
}

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_written(update in update()) {
        prop_assert_eq!(decode(update.epoch, update.seq, &encode(&update)), Some(update));
    }

    #[test]
    fn a_cut_or_longer_message_is_refused(
        update in update(), at in any::<prop::sample::Index>(), more in 0u8..,
    ) {
        let mut bytes = encode(&update);
        prop_assert_eq!(read(&bytes[..at.index(bytes.len())]), None);
        bytes.push(more);
        prop_assert_eq!(read(&bytes), None);
    }

    #[test]
    fn cut_rules_and_a_cut_evening_are_refused(update in update()) {
        let rules = encode_rules(&update);
        let evening = encode_evening(&update);
        prop_assert_eq!(decode_rules(&rules), Some((update.rules, update.calls)));
        prop_assert!((0..rules.len()).all(|end| decode_rules(&rules[..end]).is_none()));
        prop_assert_eq!(decode_evening(&evening), Some((update.evening, update.running)));
        prop_assert!((0..evening.len()).all(|end| decode_evening(&evening[..end]).is_none()));
    }

    #[test]
    fn a_damaged_message_is_refused_or_is_another_of_ours(
        update in update(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut bytes = encode(&update);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(told) = read(&bytes) {
            prop_assert_eq!(read(&encode(&told)), Some(told));
        }
    }

    #[test]
    fn what_a_node_wants_is_read_as_it_was_written(
        node in "[a-z0-9-]{1,64}",
        some in prop::collection::vec(symbol(), 1..20),
        count in prop_oneof![0..20_usize, WANTED_MAX - 9..WANTED_MAX + 9],
    ) {
        let symbols: Vec<Symbol> = some.iter().cycle().take(count).cloned().collect();
        let read = decode_wanted(&encode_wanted(&node, &symbols)).unwrap();
        let kept = symbols.len().min(WANTED_MAX);
        prop_assert_eq!(read, (node, symbols[..kept].to_vec()));
    }

    #[test]
    fn no_bytes_are_taken_for_more_than_they_are(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let versioned = [&[VERSION][..], &bytes].concat();
        if let Some((node, symbols)) = decode_wanted(&versioned) {
            prop_assert_eq!(encode_wanted(&node, &symbols), versioned.clone());
        }
        prop_assert_eq!(read(&versioned), None);
    }
}

#[test]
fn messages_of_another_version_or_over_a_limit_are_refused() {
    let bytes = encode(&least());
    assert!(read(&bytes).is_some());
    let other = [&[VERSION + 1][..], &bytes[1..]].concat();
    assert_eq!(read(&other), None);
    assert_eq!(read(&[]), None);
    let many = vec![Aged { quote: quote("NSE:INFY", 100), age_ms: 0 }; SYMBOLS_MAX + 1];
    let encoded = encode(&Update { quotes: many, ..least() });
    assert_eq!(read(&encoded).unwrap().quotes.len(), SYMBOLS_MAX, "and fits the limit of bytes");
    // A count that promises more than there is, and more than may be.
    let at = bytes.len() - 8;
    for count in [1_u32, SYMBOLS_MAX as u32 + 1, u32::MAX] {
        let mut lying = bytes.clone();
        lying[at..at + 4].copy_from_slice(&count.to_be_bytes());
        assert_eq!(read(&lying), None, "{count}");
    }
}

#[test]
fn a_signal_that_no_look_can_find_is_refused() {
    let told = |pattern: &str, confidence: f64| Signal {
        symbol: "NSE:INFY".to_owned(),
        pattern: pattern.to_owned(),
        direction: "bullish".to_owned(),
        shares: (confidence, None, 0.5),
        dates: (20, 0),
        past: None,
        simulated: false,
    };
    let name = Key::all().next().unwrap().name();
    assert!(signal_in(told(name, 0.5)).is_some());
    assert!(signal_in(told(name, 1.5)).is_none() && signal_in(told("rumour", 0.5)).is_none());
}

#[test]
fn a_limit_that_no_setting_allows_is_refused() {
    let mut update = least();
    update.rules.sources[1].resting.grace_ms = LIMIT_MS_MAX + 1;
    assert_eq!(read(&encode(&update)), None);
    assert_eq!(decode_evening(b"\"rumour\""), None);
}

#[test]
fn a_later_message_replaces_what_waits_and_what_waits_grows_older() {
    let aged = |symbol, paise, age_ms| Aged { quote: quote(symbol, paise), age_ms };
    let mut waits = Update {
        seq: 1,
        quotes: vec![aged("NSE:A", 100, 10), aged("NSE:B", 200, 10)],
        unknown: vec![Symbol::parse("NSE:C").unwrap(), Symbol::parse("NSE:D").unwrap()],
        ..least()
    };
    let newer = Update {
        seq: 3,
        age_ms: 7,
        quotes: vec![aged("NSE:B", 201, 5), aged("NSE:C", 300, 5)],
        ..least()
    };
    waits.add(newer, 250);
    waits.quotes.sort_by(|a, b| a.quote.symbol.as_str().cmp(b.quote.symbol.as_str()));
    let expected = [aged("NSE:A", 100, 260), aged("NSE:B", 201, 5), aged("NSE:C", 300, 5)];
    assert_eq!(waits.quotes, expected);
    assert_eq!((waits.seq, waits.age_ms), (3, 7));
    assert_eq!(waits.unknown, [Symbol::parse("NSE:D").unwrap()], "the other is known by now");
}

#[test]
fn a_price_is_as_old_at_the_receiver_as_at_the_sender() {
    // The leader has run for a day, the follower for a second.
    let vouched = Vouched { mono_ms: 86_398_000, calls: 2 };
    let indices = IndexList::embedded();
    let share = quote("NSE:INFY", 150_010);
    let lead = Quote { symbol: indices.primary.symbol.clone(), ..share.clone() };
    let mut update = least();
    for quote in [&share, &lead] {
        update.add_quote(quote.clone(), vouched, 86_400_000);
    }
    update.add_quote(share.clone(), Vouched::NEVER, 86_400_000);
    let held = |calls| Vouched { mono_ms: -1_000, calls };
    assert_eq!(
        update.take_quotes(1_000, &indices),
        [(share.clone(), held(Vouched::IN_TURN)), (lead, held(2)), (share, Vouched::NEVER)]
    );
}

#[path = "pinned_tests.rs"]
mod pinned_tests;
