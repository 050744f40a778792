//! Metric families of this node among several. Runs on the lane `admin`.

use crate::admin::exposition::{Exposition, Kind, seconds};
use crate::base::Role;
use crate::health::{NodeReadings, Readings, RelayReadings};

pub(super) fn write(text: &mut Exposition, readings: &Readings, since_ms: u64) {
    let NodeReadings { role, epoch, relay, changes_age_ms, fenced, tokens, limits } = readings.node;
    text.gauge(
        "bhav_leader",
        "Whether this node asks the brokers: 1 for a leader and for a node that is alone.",
        u8::from(role != Role::Follower),
    );
    text.gauge(
        "bhav_epoch",
        "The number of this node's leadership; 0 where it follows or is alone.",
        epoch.unwrap_or_default(),
    );
    let help = "What was refused because this node did not lead any more.";
    let mut refused = text.family(Kind::Counter, "bhav_fenced_total", help);
    for (place, count) in fenced {
        refused.sample(&[("where", place)], count);
    }
    let help = "What became of what nodes told each other about brokers' tokens of the day.";
    let mut words = text.family(Kind::Counter, "bhav_token_words_total", help);
    for (event, count) in tokens {
        words.sample(&[("outcome", event)], count);
    }
    let help = "Attempts that this node admitted and all nodes together refused, or for which \
                there was no answer in time, so that this node's own limit decided alone.";
    let mut attempts = text.family(Kind::Counter, "bhav_shared_limits_total", help);
    attempts.sample(&[("outcome", "refused")], limits.refused);
    attempts.sample(&[("outcome", "unknown")], limits.unknown);
    let RelayReadings { age_ms, gaps } = relay;
    text.counter("bhav_relay_gaps_total", "Gaps in what the leader told the other nodes.", gaps);
    let age_ms = age_ms.map_or(0, |age_ms| age_ms + since_ms);
    text.gauge(
        "bhav_relay_age_seconds",
        "Time since this node heard what the leader tells, or started; 0 where it is alone.",
        seconds(age_ms),
    );
    let age_ms = changes_age_ms.map_or(0, |age_ms| age_ms + since_ms);
    text.gauge(
        "bhav_changes_lag_seconds",
        "Time since this node read what changed of accounts and tokens; 0 where it is alone.",
        seconds(age_ms),
    );
}
