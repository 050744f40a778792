//! The bytes of what goes with prices: the rules by which they become stale, and what is in the
//! store. Compact JSON, checked like outside input when it is read.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::news::Evening;
use crate::base::Source;
use crate::cache::{FreshnessRules, Limits, SourceRules};

/// No limit of ours is longer; a longer one is another program's.
const LIMIT_MS_MAX: u64 = 24 * 3_600_000;

#[derive(Serialize, Deserialize)]
struct Rules {
    sources: [OfSource; Source::ALL.len()],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spoken_for_ms: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct OfSource {
    /// Period and grace.
    moving_ms: (u64, u64),
    resting_ms: (u64, u64),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rests_for_ms: Option<i64>,
    /// Calls that it takes to hear of every leading index.
    calls: u8,
}

#[derive(Serialize, Deserialize)]
struct InStore {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signals: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instruments: Option<String>,
}

/// By source, the calls after which it is asked again.
pub type Calls = [u8; Source::ALL.len()];

/// The rules as bytes.
pub fn encode_rules(rules: &FreshnessRules, calls: Calls) -> Vec<u8> {
    let pair = |limits: Limits| (limits.period_ms, limits.grace_ms);
    let sources = Source::ALL.map(|source| {
        let SourceRules { moving, resting, rests_for_ms } = rules.sources[source as usize];
        let (moving_ms, resting_ms) = (pair(moving), pair(resting));
        OfSource { moving_ms, resting_ms, rests_for_ms, calls: calls[source as usize] }
    });
    let rules = Rules { sources, spoken_for_ms: rules.spoken_for_ms };
    sonic_rs::to_vec(&rules).expect("numbers always serialise")
}

/// The rules, and the calls by source; `None` where no program of ours wrote the bytes.
pub fn decode_rules(bytes: &[u8]) -> Option<(FreshnessRules, Calls)> {
    let read: Rules = sonic_rs::from_slice(bytes).ok()?;
    let limits = |(period_ms, grace_ms): (u64, u64)| {
        let fits = period_ms.max(grace_ms) <= LIMIT_MS_MAX;
        fits.then_some(Limits { period_ms, grace_ms })
    };
    let of = |source: &OfSource| {
        let (moving, resting) = (limits(source.moving_ms)?, limits(source.resting_ms)?);
        Some(SourceRules { moving, resting, rests_for_ms: source.rests_for_ms })
    };
    let [first, second] = &read.sources;
    let sources = [of(first)?, of(second)?];
    let rules = FreshnessRules { sources, spoken_for_ms: read.spoken_for_ms };
    Some((rules, [first.calls, second.calls]))
}

/// What is in the store, as bytes.
pub fn encode_evening(evening: Evening) -> Vec<u8> {
    let text = |date: Option<Date>| date.map(|date| date.to_string());
    let (signals, instruments) = (text(evening.signals), text(evening.instruments));
    sonic_rs::to_vec(&InStore { signals, instruments }).expect("texts always serialise")
}

/// What is in the store; `None` where no program of ours wrote the bytes.
pub fn decode_evening(bytes: &[u8]) -> Option<Evening> {
    let InStore { signals, instruments } = sonic_rs::from_slice(bytes).ok()?;
    let date = |text: Option<String>| text.map(|text| text.parse::<Date>()).transpose().ok();
    Some(Evening { signals: date(signals)?, instruments: date(instruments)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits() -> impl Strategy<Value = Limits> {
        (0..=LIMIT_MS_MAX, 0..=LIMIT_MS_MAX)
            .prop_map(|(period_ms, grace_ms)| Limits { period_ms, grace_ms })
    }

    fn source() -> impl Strategy<Value = SourceRules> {
        (limits(), limits(), proptest::option::of(any::<i64>())).prop_map(
            |(moving, resting, rests_for_ms)| SourceRules { moving, resting, rests_for_ms },
        )
    }

    proptest! {
        #[test]
        fn rules_are_read_as_they_were_written(
            first in source(), second in source(),
            spoken_for_ms in proptest::option::of(any::<i64>()), calls: [u8; 2],
        ) {
            let rules = FreshnessRules { sources: [first, second], spoken_for_ms };
            let bytes = encode_rules(&rules, calls);
            prop_assert_eq!(decode_rules(&bytes), Some((rules, calls)));
            // Cut anywhere, they are refused.
            for end in 0..bytes.len() {
                prop_assert_eq!(decode_rules(&bytes[..end]), None);
            }
        }

        #[test]
        fn what_is_in_the_store_is_read_as_it_was_written(day in 1i8..=28, none: bool) {
            let date = Date::new(2026, 11, day).unwrap();
            let evening = Evening { signals: Some(date), instruments: (!none).then_some(date) };
            prop_assert_eq!(decode_evening(&encode_evening(evening)), Some(evening));
        }
    }

    #[test]
    fn a_limit_that_no_setting_allows_is_refused() {
        let limits = Limits { period_ms: 1_000, grace_ms: LIMIT_MS_MAX + 1 };
        let of = SourceRules { moving: limits, resting: limits, rests_for_ms: None };
        let rules = FreshnessRules { sources: [of, of], spoken_for_ms: None };
        assert_eq!(decode_rules(&encode_rules(&rules, [1, 1])), None);
        assert_eq!(decode_evening(b"\"rumour\""), None);
    }
}
