//! Messages there and back, and bytes that are none.

use jiff::Timestamp;
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;
use crate::base::{Quote, Source};

pub(in super::super) fn quote(symbol: &str, paise: i64) -> Quote {
    Quote {
        symbol: Symbol::parse(symbol).unwrap(),
        last_price: Decimal::new(paise, 2),
        previous_close: Some(Decimal::new(paise + 5, 2)),
        as_of: "2026-11-20T10:00:00.25Z".parse().unwrap(),
        timed: true,
        asked: "2026-11-20T10:00:01Z".parse().unwrap(),
        delay_s: None,
        source: Source::BrokerA,
        simulated: false,
    }
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
                ..quote("NSE:INFY", paise)
            },
            age_ms,
        })
}

pub(in super::super) fn update() -> impl Strategy<Value = Update> {
    let part = || proptest::collection::vec(any::<u8>(), 0..200);
    let quotes = proptest::collection::vec(aged(), 0..20);
    let unknown = proptest::collection::vec(symbol(), 0..10);
    let head = (any::<(u64, u64, u64, u64)>(), "[a-z0-9-]{1,64}");
    (head, part(), part(), quotes, unknown).prop_map(
        |(((epoch, seq, told_ms, age_ms), node), snapshot, evening, quotes, unknown)| Update {
            epoch: Epoch(epoch),
            seq,
            told_ms,
            node,
            age_ms,
            snapshot,
            evening,
            quotes,
            unknown,
        },
    )
}

/// Of any epoch and number, which stand before the bytes.
fn read(bytes: &[u8]) -> Result<Update, Malformed> {
    decode(Epoch(7), 8, bytes)
}

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_written(update in update()) {
        prop_assert_eq!(decode(update.epoch, update.seq, &encode(&update)), Ok(update));
    }

    #[test]
    fn a_cut_or_longer_message_is_refused(
        update in update(), at in any::<prop::sample::Index>(), more in 0u8..,
    ) {
        let mut bytes = encode(&update);
        prop_assert_eq!(read(&bytes[..at.index(bytes.len())]), Err(Malformed));
        bytes.push(more);
        prop_assert_eq!(read(&bytes), Err(Malformed));
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
        if let Ok(told) = read(&bytes) {
            prop_assert_eq!(read(&encode(&told)), Ok(told));
        }
    }

    #[test]
    fn what_a_node_wants_is_read_as_it_was_written(
        node in "[a-z0-9-]{1,64}", symbols in prop::collection::vec(symbol(), 0..520),
    ) {
        let read = decode_wanted(&encode_wanted(&node, &symbols)).unwrap();
        let kept = symbols.len().min(WANTED_MAX);
        prop_assert_eq!(read, (node, symbols[..kept].to_vec()));
    }

    #[test]
    fn no_bytes_are_taken_for_more_than_they_are(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let versioned = [&[VERSION][..], &bytes].concat();
        if let Ok((node, symbols)) = decode_wanted(&versioned) {
            prop_assert_eq!(encode_wanted(&node, &symbols), versioned.clone());
        }
        if let Ok(told) = read(&versioned) {
            prop_assert_eq!(read(&encode(&told)), Ok(told));
        }
    }
}

#[test]
fn messages_of_another_version_or_over_a_limit_are_refused() {
    let bytes = encode(&Update { seq: 1, ..Update::default() });
    assert!(read(&bytes).is_ok());
    let other = [&[VERSION + 1][..], &bytes[1..]].concat();
    assert_eq!(read(&other), Err(Malformed));
    assert_eq!(read(&[]), Err(Malformed));
    let many = vec![Aged { quote: quote("NSE:INFY", 100), age_ms: 0 }; SYMBOLS_MAX + 1];
    let encoded = encode(&Update { quotes: many, ..Update::default() });
    assert_eq!(read(&encoded).unwrap().quotes.len(), SYMBOLS_MAX, "and fits the limit of bytes");
    // A count that promises more than there is, and more than may be.
    let at = 1 + 16 + 2 + 8;
    for count in [1_u32, SYMBOLS_MAX as u32 + 1, u32::MAX] {
        let mut lying = bytes.clone();
        lying[at..at + 4].copy_from_slice(&count.to_be_bytes());
        assert_eq!(read(&lying), Err(Malformed), "{count}");
    }
    let large = Update { snapshot: vec![1; PART_BYTES_MAX + 1], ..Update::default() };
    assert!(read(&encode(&large)).unwrap().snapshot.is_empty());
}

#[test]
fn what_comes_later_replaces_what_waits_and_what_waits_grows_older() {
    let aged = |symbol, paise, age_ms| Aged { quote: quote(symbol, paise), age_ms };
    let mut waits = Update {
        seq: 1,
        snapshot: vec![1],
        quotes: vec![aged("NSE:A", 100, 10), aged("NSE:B", 200, 10)],
        unknown: vec![Symbol::parse("NSE:C").unwrap()],
        ..Update::default()
    };
    let newer = Update {
        seq: 3,
        quotes: vec![aged("NSE:B", 201, 5), aged("NSE:C", 300, 5)],
        ..Update::default()
    };
    waits.add(newer, 250);
    waits.quotes.sort_by(|a, b| a.quote.symbol.as_str().cmp(b.quote.symbol.as_str()));
    let expected = [aged("NSE:A", 100, 260), aged("NSE:B", 201, 5), aged("NSE:C", 300, 5)];
    assert_eq!(waits.quotes, expected);
    assert_eq!((waits.seq, waits.snapshot, waits.age_ms), (3, vec![1], 250));
    assert!(waits.unknown.is_empty(), "known by now");
}
