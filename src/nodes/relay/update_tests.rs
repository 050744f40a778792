//! Messages there and back, and bytes that are none.

use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;
use crate::base::{DayRange, Source, testing};
use crate::cache::{Limits, SourceRules};
use crate::nodes::relay::encoding::{
    LIMIT_MS_MAX, VERSION, decode, decode_wanted, encode, encode_wanted,
};
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
    let limits = Limits {
        period_ms: 1_000,
        grace_ms: 3_000,
    };
    let of = SourceRules {
        moving: limits,
        resting: limits,
        rests_for_ms: None,
        round: 1,
    };
    let rules = FreshnessRules {
        sources: [of, of],
        spoken_for_ms: None,
    };
    Update {
        node: "-".to_owned(),
        ..Update::new(rules, Evening::default())
    }
}

fn symbol() -> impl Strategy<Value = Symbol> {
    "(NSE|BSE):[A-Z][A-Z0-9&-]{0,15}".prop_filter_map("no symbol", |text| Symbol::parse(&text))
}

fn aged() -> impl Strategy<Value = Aged> {
    (
        symbol(),
        1i64..1_000_000_000,
        any::<u64>(),
        0i64..4_000_000_000,
        proptest::bool::ANY,
    )
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
    (0..=LIMIT_MS_MAX, 0..=LIMIT_MS_MAX).prop_map(|(period_ms, grace_ms)| Limits {
        period_ms,
        grace_ms,
    })
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
        |(first, second, spoken_for_ms)| FreshnessRules {
            sources: [first, second],
            spoken_for_ms,
        },
    )
}

fn date() -> impl Strategy<Value = Option<Date>> {
    proptest::option::of((1i8..=28).prop_map(|day| Date::new(2026, 11, day).unwrap()))
}

fn update() -> impl Strategy<Value = Update> {
    let quotes = proptest::collection::vec(aged(), 0..20);
    let unknown = proptest::collection::vec(symbol(), 0..10);
    let head = (any::<(u64, u64, u64, u64)>(), "[a-z0-9-]{1,64}");
    let parts = (rules(), any::<Calls>(), date(), date());
    (head, parts, quotes, unknown).prop_map(
        |(
            ((epoch, seq, sent_ms, age_ms), node),
            (rules, calls, signals, instruments),
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
            evening: Evening {
                signals,
                instruments,
            },
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
        update in update(), at in any::<prop::sample::Index>(), more in b'!'..,
    ) {
        let mut bytes = encode(&update);
        prop_assert_eq!(read(&bytes[..at.index(bytes.len())]), None);
        bytes.push(more);
        prop_assert_eq!(read(&bytes), None);
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
        let opened = [b"{\"version\":3,\"node\":\"a\",".as_slice(), &bytes].concat();
        for bytes in [bytes, opened] {
            prop_assert_eq!(decode_wanted(&bytes), None);
            prop_assert_eq!(read(&bytes), None);
        }
    }
}

#[test]
fn messages_of_another_version_or_over_a_limit_are_refused() {
    let bytes = encode(&least());
    assert!(read(&bytes).is_some());
    let text = std::str::from_utf8(&bytes).unwrap();
    let version = |number: u8| format!("\"version\":{number}");
    let other = text.replace(&version(VERSION), &version(VERSION + 1));
    assert_eq!(read(other.as_bytes()), None);
    assert_eq!(read(&[]), None);
    let nameless = text.replace("\"node\":\"-\"", "\"node\":\"\"");
    assert_eq!(read(nameless.as_bytes()), None);
    let many = vec![
        Aged {
            quote: quote("NSE:INFY", 100),
            age_ms: 0
        };
        SYMBOLS_MAX + 1
    ];
    let encoded = encode(&Update {
        quotes: many,
        ..least()
    });
    assert_eq!(read(&encoded).unwrap().quotes.len(), SYMBOLS_MAX, "and fits the limit of bytes");
    let names = vec!["\"NSE:A\""; SYMBOLS_MAX + 1].join(",");
    let too_many = text.replace("\"unknown\":[", &format!("\"unknown\":[{names}"));
    assert_eq!(read(too_many.as_bytes()), None);
}

#[test]
fn a_limit_that_no_setting_allows_is_refused() {
    let mut update = least();
    update.rules.sources[1].resting.grace_ms = LIMIT_MS_MAX + 1;
    assert_eq!(read(&encode(&update)), None);
}

/// A later version may say more without another number.
#[test]
fn a_member_that_this_version_does_not_know_is_passed_over() {
    let bytes = encode(&least());
    let text = std::str::from_utf8(&bytes).unwrap();
    let more = text.replacen('{', "{\"running\":{\"date\":\"2026-11-20\",\"for_ms\":7},", 1);
    assert_eq!(read(more.as_bytes()), read(&bytes));
}

#[test]
fn a_later_message_replaces_what_waits_and_what_waits_grows_older() {
    let aged = |symbol, paise, age_ms| Aged {
        quote: quote(symbol, paise),
        age_ms,
    };
    let mut waits = Update {
        seq: 1,
        quotes: vec![aged("NSE:A", 100, 10), aged("NSE:B", 200, 10)],
        unknown: vec![
            Symbol::parse("NSE:C").unwrap(),
            Symbol::parse("NSE:D").unwrap(),
        ],
        ..least()
    };
    let newer = Update {
        seq: 3,
        age_ms: 7,
        quotes: vec![aged("NSE:B", 201, 5), aged("NSE:C", 300, 5)],
        ..least()
    };
    waits.add(newer, 250);
    waits
        .quotes
        .sort_by(|a, b| a.quote.symbol.as_str().cmp(b.quote.symbol.as_str()));
    let expected = [
        aged("NSE:A", 100, 260),
        aged("NSE:B", 201, 5),
        aged("NSE:C", 300, 5),
    ];
    assert_eq!(waits.quotes, expected);
    assert_eq!((waits.seq, waits.age_ms), (3, 7));
    assert_eq!(waits.unknown, [Symbol::parse("NSE:D").unwrap()], "the other is known by now");
}

#[test]
fn a_price_is_as_old_at_the_receiver_as_at_the_sender() {
    // The leader has run for a day, the follower for a second.
    let vouched = Vouched {
        mono_ms: 86_398_000,
        calls: 2,
    };
    let indices = IndexList::embedded();
    let share = quote("NSE:INFY", 150_010);
    let lead = Quote {
        symbol: indices.primary.symbol.clone(),
        ..share.clone()
    };
    let mut update = least();
    for quote in [&share, &lead] {
        update.add_quote(quote.clone(), vouched, 86_400_000);
    }
    update.add_quote(share.clone(), Vouched::NEVER, 86_400_000);
    let held = |calls| Vouched {
        mono_ms: -1_000,
        calls,
    };
    assert_eq!(
        update.take_quotes(1_000, &indices),
        [
            (share.clone(), held(Vouched::IN_TURN)),
            (lead, held(2)),
            (share, Vouched::NEVER)
        ]
    );
}

#[path = "pinned_tests.rs"]
mod pinned_tests;
