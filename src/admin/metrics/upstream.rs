//! Metric families of upstream calls, broker sessions, feeds, warmers and the snapshot. Runs on the
//! lane `admin`.

use crate::admin::exposition::{Exposition, Kind, Seconds, seconds};
use crate::admin::listener;
use crate::admin::listener::Watched;
use crate::brokers::ClassReading;
use crate::brokers::broker_a::ticker::{TICKER_STATES, TickerReading};
use crate::brokers::session::token::TokenStatus;
use crate::health::{NodeReadings, Readings, RelayReadings, WARMER_STATES, WarmerReadings};
use crate::nodes::lead::Role;
use crate::views::health::FeedWord;

const CIRCUIT_STATES: [&str; 3] = ["closed", "open", "half_open"];
const PHASES: [&str; 6] = ["pre_open", "open", "closing", "post_close", "closed", "holiday"];
pub(super) fn write(text: &mut Exposition, watched: &Watched) {
    let state = watched.edge.service.state();
    let mut classes = vec![("broker_a", state.broker_a.readings())];
    classes.push(("broker_b", state.broker_b.readings()));
    if let Some(public) = &watched.sources.public {
        classes.push(("public", public.readings()));
    }
    calls(text, watched, &classes);
    let now = watched.sources.clock.now();
    tokens(
        text,
        now,
        &[("broker_a", state.broker_a_token.status(now)), ("broker_b", state.broker_b.status())],
    );
    if let Some(readings) = watched.sources.readings.load_full() {
        scheduler(text, watched, &readings);
    }
}

fn calls(text: &mut Exposition, watched: &Watched, classes: &[(&str, Vec<ClassReading>)]) {
    let each = || classes.iter().flat_map(|(name, of)| of.iter().map(move |class| (*name, class)));
    let help = "Requests sent to upstreams, by outcome.";
    let mut calls = text.family(Kind::Counter, "bhav_upstream_calls_total", help);
    for (upstream, class) in each() {
        for (outcome, count) in &class.outcomes {
            let labels = [("upstream", upstream), ("class", class.class), ("outcome", *outcome)];
            calls.sample(&labels, count);
        }
    }
    let help = "Requests not sent because of pacing, a penalty, an open circuit breaker, a missing \
                token, or a limit of a key or of all syncs.";
    let mut held = text.family(Kind::Counter, "bhav_upstream_held_back_total", help);
    for (upstream, class) in each() {
        held.sample(&[("upstream", upstream), ("class", class.class)], class.held_back);
    }
    text.counter(
        "bhav_sync_throttled_total",
        "Syncs refused by the rate limit of their user.",
        watched.edge.service.state().portfolio.attempts.refused(),
    );
    let help = "Sessions that syncs opened at broker A: ended by a logout, logout failed, left \
                because no logout could be sent, kept because they belong to the server's own app.";
    let mut sessions = text.family(Kind::Counter, "bhav_sync_sessions_total", help);
    let counts = watched.edge.service.state().broker_a.session_counts();
    for (outcome, count) in [
        ("ended", counts.ended),
        ("failed", counts.failed),
        ("left", counts.left),
        ("kept", counts.kept),
    ] {
        sessions.sample(&[("outcome", outcome)], count);
    }
    let help = "State of the circuit breaker: 1 for the current state.";
    let mut circuits = text.family(Kind::Gauge, "bhav_upstream_circuit_state", help);
    for (upstream, class) in each() {
        let labels = [("upstream", upstream), ("class", class.class)];
        circuits.state(&labels, &CIRCUIT_STATES, class.circuit);
    }
}

fn tokens(text: &mut Exposition, now: jiff::Timestamp, tokens: &[(&str, TokenStatus)]) {
    let help = "Whether the server's own session at the broker is usable: set, not expired, not \
                refused.";
    let mut valid = text.family(Kind::Gauge, "bhav_token_valid", help);
    for (broker, status) in tokens {
        valid.sample(&[("broker", broker)], u8::from(status.valid));
    }
    let help = "Time until the session expires; 0 if it is not valid.";
    let mut left = text.family(Kind::Gauge, "bhav_token_time_left_seconds", help);
    for (broker, status) in tokens {
        let until = status.expires_at.filter(|_| status.valid);
        let left_s = until.map_or(0.0, |until| now.duration_until(until).as_secs_f64());
        left.sample(&[("broker", broker)], left_s.max(0.0));
    }
}

fn scheduler(text: &mut Exposition, watched: &Watched, readings: &Readings) {
    let clock = &watched.sources.clock;
    // Ages in the readings are as of when they were taken.
    let since_ms = clock.monotonic_ms().saturating_sub(readings.seen_mono_ms);
    write_nodes(text, readings, since_ms);
    let help = "Time since the last successful call of the feed was sent; +Inf before the first.";
    let mut ages = text.family(Kind::Gauge, "bhav_feed_age_seconds", help);
    for feed in &readings.feeds {
        let age = feed.age_ms.map(|age_ms| seconds(age_ms + since_ms));
        ages.sample(&[("source", feed.source.as_str())], Seconds(age));
    }
    let help = "The feed's usual delay behind the exchange, as measured; 0 for a real-time feed.";
    let mut delays = text.family(Kind::Gauge, "bhav_feed_delay_seconds", help);
    for feed in &readings.feeds {
        delays.sample(&[("source", feed.source.as_str())], feed.delay_s.unwrap_or(0));
    }
    let mut states =
        text.family(Kind::Gauge, "bhav_feed_state", "State of the feed: 1 for the current state.");
    let words = FeedWord::ALL.map(FeedWord::as_str);
    for feed in &readings.feeds {
        states.state(&[("source", feed.source.as_str())], &words, feed.state.as_str());
    }
    let mut rounds = text.family(Kind::Counter, "bhav_feed_rounds_total", "Polls of the feed.");
    for feed in &readings.feeds {
        rounds.sample(&[("source", feed.source.as_str())], feed.rounds);
    }
    let help = "Polls that did not return every requested index.";
    let mut failures = text.family(Kind::Counter, "bhav_feed_failures_total", help);
    for feed in &readings.feeds {
        failures.sample(&[("source", feed.source.as_str())], feed.failures);
    }
    ticker(text, &readings.ticker, since_ms);
    text.counter(
        "bhav_ticker_disagrees_total",
        "Prices of which a tick and a quote call of the same second differed by more than 0.5 %.",
        readings.ticker_disagreements,
    );
    warmers(text, &readings.warmers);
    if let Some(age_ms) = listener::heartbeat_age_ms(watched) {
        let help = "Time since the scheduler last reported, which it does every second.";
        text.gauge("bhav_scheduler_heartbeat_age_seconds", help, seconds(age_ms));
    }
    snapshot(text, watched, readings);
}

fn ticker(text: &mut Exposition, ticker: &TickerReading, since_ms: u64) {
    text.family(
        Kind::Gauge,
        "bhav_ticker_state",
        "State of broker A's WebSocket: 1 for the current state.",
    )
    .state(&[], &TICKER_STATES, ticker.state);
    text.gauge(
        "bhav_ticker_up",
        "Whether every leading index has ticked within seconds and the ticks are believed.",
        u8::from(ticker.live),
    );
    text.gauge(
        "bhav_ticker_age_seconds",
        "Time since the last tick; +Inf before the first.",
        Seconds(ticker.age_ms.map(|age_ms| seconds(age_ms + since_ms))),
    );
    text.gauge(
        "bhav_ticker_subscribed",
        "Instruments subscribed on broker A's WebSocket.",
        ticker.subscribed,
    );
    for (name, help, count) in [
        ("bhav_ticker_ticks_total", "Ticks received.", ticker.ticks),
        ("bhav_ticker_frames_total", "Messages received.", ticker.frames),
        ("bhav_ticker_bytes_total", "Bytes of binary messages received.", ticker.bytes),
        (
            "bhav_ticker_windows_merged_total",
            "Batches of ticks that waited because the scheduler had not taken the one before.",
            ticker.merged,
        ),
    ] {
        text.counter(name, help, count);
    }
    text.family(
        Kind::Histogram,
        "bhav_ticker_publish_seconds",
        "Time from the first tick of a batch to when requests can read its prices.",
    )
    .durations(&[], &ticker.published);
    let help = "Connections that ended or could not be opened, by reason.";
    let mut ended = text.family(Kind::Counter, "bhav_ticker_reconnects_total", help);
    for (reason, count) in &ticker.ended {
        ended.sample(&[("reason", *reason)], count);
    }
    let help = "Messages and packets that were not taken, by fault.";
    let mut bad = text.family(Kind::Counter, "bhav_ticker_bad_total", help);
    for (reason, count) in &ticker.bad {
        bad.sample(&[("reason", *reason)], count);
    }
}

fn warmers(text: &mut Exposition, warmers: &[WarmerReadings]) {
    let help = "State of the warmer (background task): 1 for the current state.";
    let mut states = text.family(Kind::Gauge, "bhav_warmer_state", help);
    for warmer in warmers {
        states.state(&[("warmer", warmer.name)], &WARMER_STATES, warmer.state);
    }
    let help = "Finished runs of the warmer: polls, downloads, calls, writes, steps.";
    let mut runs = text.family(Kind::Counter, "bhav_warmer_runs_total", help);
    for warmer in warmers {
        runs.sample(&[("warmer", warmer.name)], warmer.runs.runs);
    }
    let help = "Failed runs of the warmer.";
    let mut failures = text.family(Kind::Counter, "bhav_warmer_failures_total", help);
    for warmer in warmers {
        failures.sample(&[("warmer", warmer.name)], warmer.runs.failures);
    }
    let succeeded = || {
        let each = warmers.iter();
        each.filter_map(|warmer| Some((warmer.name, warmer.runs.succeeded_ms?)))
    };
    // Write no family without samples.
    if succeeded().next().is_none() {
        return;
    }
    let help = "Time of the last successful run, in seconds since the Unix epoch; absent before \
                the first.";
    let mut times = text.family(Kind::Gauge, "bhav_warmer_last_success_timestamp_seconds", help);
    for (name, succeeded_ms) in succeeded() {
        times.sample(&[("warmer", name)], seconds(succeeded_ms.unsigned_abs()));
    }
}

fn snapshot(text: &mut Exposition, watched: &Watched, readings: &Readings) {
    let age = readings.snapshot.map(|snapshot| {
        let age = snapshot.age.as_of.duration_until(watched.sources.clock.now());
        age.as_secs_f64().max(0.0)
    });
    text.gauge(
        "bhav_snapshot_age_seconds",
        "Age of the primary index's price; +Inf before the first. Grows while the market is \
         closed.",
        Seconds(age),
    );
    text.gauge(
        "bhav_snapshot_simulated",
        "Whether any value of the snapshot came from the simulator.",
        u8::from(readings.snapshot.is_some_and(|snapshot| snapshot.simulated)),
    );
    text.gauge(
        "bhav_snapshot_published",
        "Whether there is a snapshot to serve.",
        u8::from(readings.snapshot.is_some()),
    );
    text.gauge(
        "bhav_snapshot_stale",
        "Whether the snapshot is marked as stale; 1 before the first.",
        u8::from(readings.snapshot.is_none_or(|snapshot| snapshot.age.stale)),
    );
    text.family(Kind::Gauge, "bhav_market_phase", "Market phase: 1 for the current phase.").state(
        &[],
        &PHASES,
        readings.phase.as_str(),
    );
    text.gauge(
        "bhav_market_calendar_known",
        "Whether the holiday calendar covers this year; if not, the market counts as closed.",
        u8::from(readings.calendar_known),
    );
    if let Some(ends) = readings.calendar_ends {
        text.gauge(
            "bhav_market_calendar_end_timestamp_seconds",
            "End of the last year that the holiday calendar covers, in seconds since the Unix \
             epoch; absent if it does not cover this year.",
            ends.as_second(),
        );
    }
}

// ---- Nodes
//
// Metric families of this node among several. Runs on the lane `admin`.

pub(super) fn write_nodes(text: &mut Exposition, readings: &Readings, since_ms: u64) {
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
