//! The bytes of every message, as nodes of this version have always written them. An updated node
//! follows a leader that is not updated yet, and the other way round.

use super::*;
use crate::base::json::parse_decimal;
use crate::base::{DayRange, testing};

fn symbol(text: &str) -> Symbol {
    Symbol::parse(text).unwrap()
}

fn quote(name: &str, source: Source) -> Quote {
    Quote {
        previous_close: parse_decimal("1490.5"),
        asked: "2026-11-20T10:00:01Z".parse().unwrap(),
        delay_s: Some(900),
        source,
        simulated: true,
        ..testing::quote(name, "1500.10", "2026-11-20T10:00:00.25Z".parse().unwrap())
    }
}

/// A message with the fields that the publisher sets.
fn message() -> Update {
    let limits = |period_ms, grace_ms| Limits {
        period_ms,
        grace_ms,
    };
    let rules = |rests_for_ms, round| SourceRules {
        moving: limits(1_000, 3_000),
        resting: limits(60_000, 5_000),
        rests_for_ms,
        round,
    };
    let date = Date::new(2026, 11, 20).unwrap();
    let rules = FreshnessRules {
        sources: [rules(Some(-250), 4), rules(None, 1)],
        spoken_for_ms: Some(86_400_000),
    };
    let evening = Evening {
        signals: Some(date),
        instruments: None,
    };
    let mut update = Update {
        epoch: Epoch(7),
        seq: 42,
        sent_ms: 1_763_632_801_000,
        node: "node-1".to_owned(),
        age_ms: 40,
        unknown: vec![symbol("NSE:NONE"), symbol("BSE:NONE")],
        ..Update::new(rules, evening)
    };
    let vouched = |mono_ms, calls| Vouched { mono_ms, calls };
    update.add_quote(quote("NSE:INFY", Source::BrokerA), vouched(-1_250, 2), 0);
    update.add_quote(
        quote("BSE:M&M", Source::Public),
        Vouched {
            calls: 7,
            ..Vouched::NEVER
        },
        0,
    );
    update.add_quote(quote("NSE:SBIN", Source::BrokerA), vouched(5, 1), 0);
    update
}

fn assert_bytes(found: &[u8], expected: &[u8]) {
    assert_eq!(found.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
fn a_message_of_the_leader_has_these_bytes() {
    const HEAD: &[u8] =
        b"{\"version\":3,\"sent_ms\":1763632801000,\"age_ms\":40,\"node\":\"node-1\",\
        \"sources\":[{\"moving_ms\":[1000,3000],\"resting_ms\":[60000,5000],\"rests_for_ms\":-250,\
        \"calls\":2,\"round\":4},{\"moving_ms\":[1000,3000],\"resting_ms\":[60000,5000],\
        \"calls\":7,\"round\":1}],\"spoken_for_ms\":86400000,\"signals\":\"2026-11-20\",\
        \"quotes\":[";
    const QUOTES: &[u8] =
        b"[\"NSE:INFY\",1250,{\"last_price\":\"1500.10\",\"previous_close\":\"1490.5\",\"as_of\":\
        \"2026-11-20T10:00:00.25Z\",\"asked\":\"2026-11-20T10:00:01Z\",\"delay_s\":900,\"source\":\
        \"broker_a\",\"simulated\":true}],[\"BSE:M&M\",18446744073709551615,{\"last_price\":\
        \"1500.10\",\"previous_close\":\"1490.5\",\"as_of\":\"2026-11-20T10:00:00.25Z\",\"asked\":\
        \"2026-11-20T10:00:01Z\",\"delay_s\":900,\"source\":\"public\",\"simulated\":true}],\
        [\"NSE:SBIN\",0,{\"last_price\":\"1500.10\",\"previous_close\":\"1490.5\",\"as_of\":\
        \"2026-11-20T10:00:00.25Z\",\"asked\":\"2026-11-20T10:00:01Z\",\"delay_s\":900,\"source\":\
        \"broker_a\",\"simulated\":true}]";
    const UNKNOWN: &[u8] = b"],\"unknown\":[\"NSE:NONE\",\"BSE:NONE\"]}";
    assert_bytes(&encode(&message()), &[HEAD, QUOTES, UNKNOWN].concat());
    let head = Update {
        quotes: Vec::new(),
        ..message()
    };
    assert_bytes(&encode(&head), &[HEAD, UNKNOWN].concat());
}

/// A range stands beside the previous close. A node that does not know it yet reads the rest.
#[test]
fn the_range_of_the_day_is_one_more_member_of_a_quote() {
    let price = |text| parse_decimal(text);
    let day = DayRange::around(price("1500.10").unwrap(), price("1480"), price("1512.30"));
    let with = Quote {
        day,
        ..quote("NSE:INFY", Source::BrokerA)
    };
    let mut update = Update {
        quotes: Vec::new(),
        ..message()
    };
    update.add_quote(
        with.clone(),
        Vouched {
            mono_ms: 0,
            calls: 2,
        },
        0,
    );
    let bytes = encode(&update);
    let member = b"\"previous_close\":\"1490.5\",\"day\":[\"1480\",\"1512.30\"],\"as_of\":";
    assert!(memchr::memmem::find(&bytes, member).is_some(), "{}", bytes.escape_ascii());
    let read = |bytes: &[u8]| decode(Epoch(7), 42, bytes).unwrap().quotes[0].quote.clone();
    assert_eq!(read(&bytes), with);
    let at = memchr::memmem::find(&bytes, b"\"day\"").unwrap();
    let mut unknown = bytes;
    unknown[at..at + 5].copy_from_slice(b"\"any\"");
    assert_eq!(read(&unknown), Quote { day: None, ..with });
}

#[test]
fn the_least_that_a_leader_sends_has_these_bytes() {
    let Update { rules, .. } = message();
    let rules = FreshnessRules {
        spoken_for_ms: None,
        ..rules
    };
    let evening = Evening {
        signals: None,
        instruments: Date::new(2026, 11, 20).ok(),
    };
    let expected =
        b"{\"version\":3,\"sent_ms\":0,\"age_ms\":0,\"node\":\"-\",\"sources\":[{\"moving_ms\":\
        [1000,3000],\"resting_ms\":[60000,5000],\"rests_for_ms\":-250,\"calls\":1,\"round\":4},\
        {\"moving_ms\":[1000,3000],\"resting_ms\":[60000,5000],\"calls\":1,\"round\":1}],\
        \"instruments\":\"2026-11-20\",\"quotes\":[],\"unknown\":[]}";
    assert_bytes(&encode(&Update::new(rules, evening)), expected);
}

#[test]
fn what_a_node_wants_has_these_bytes() {
    let bytes = encode_wanted("node-2", &[symbol("NSE:INFY"), symbol("BSE:M&M")]);
    assert_bytes(
        &bytes,
        b"{\"version\":3,\"node\":\"node-2\",\"symbols\":[\"NSE:INFY\",\"BSE:M&M\"]}",
    );
}
