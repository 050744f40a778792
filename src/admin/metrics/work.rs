//! Families of lanes, the store, the caches, and what commands did beside the service. Runs
//! on the admin lane.

use crate::admin::exposition::{Exposition, Kind, seconds};
use crate::admin::listener::Watched;
use crate::cache::pending::Class;
use crate::health::Readings;
use crate::rt::{COMMIT_SIZES, LaneStats, WAIT_BOUNDS_MS};

/// Every state of the store, as health names it.
const STORE_STATES: [&str; 6] = ["ok", "read_only", "full", "corrupt", "busy", "unavailable"];

pub(super) fn write(text: &mut Exposition, watched: &Watched, own: LaneStats) {
    if let Some(vitals) = watched.back.vitals.load_full() {
        operator(text, &vitals);
    }
    let store = watched.edge.service.state().store.health();
    let mut lanes: Vec<(&str, LaneStats)> =
        watched.back.lanes.iter().map(|lane| (lane.name(), lane.stats())).collect();
    lanes.push(("store-reader", store.readers));
    lanes.push(("admin", own));
    write_lanes(text, &lanes);
    text.family(Kind::Gauge, "bhav_store_state", "State of the database: 1 for the one it is in.")
        .state(&[], &STORE_STATES, store.state);
    text.gauge(
        "bhav_store_waiting_writes",
        "Writes that wait for the writing thread.",
        store.writer.depth,
    );
    let mut writes =
        text.family(Kind::Counter, "bhav_store_writes_total", "Writes by what became of them.");
    for (result, count) in [
        ("committed", store.writer.committed),
        ("failed", store.writer.failed),
        ("refused", store.writer.refused),
        ("expired", store.writer.expired),
        ("panicked", store.writer.panicked),
    ] {
        writes.sample(&[("result", result)], count);
    }
    text.counter(
        "bhav_store_refused_total",
        "Reads and writes refused or given up because the database could not be used in time.",
        store.refused,
    );
    text.counter(
        "bhav_writes_throttled_total",
        "Changes refused because their user had made too many within a minute.",
        watched.edge.service.state().writes.refused(),
    );
    let bounds = COMMIT_SIZES.iter().map(|bound| *bound as f64);
    text.family(
        Kind::Histogram,
        "bhav_store_commit_writes",
        "Writes that one commit carried; their number is the number of commits.",
    )
    .histogram(&[], bounds, &store.writer.sizes, store.writer.committed as f64);
    exports(text, watched);
    caches(text, watched);
}

/// What an operator's commands did beside the service.
fn operator(text: &mut Exposition, vitals: &Readings) {
    text.gauge(
        "bhav_reload_refused",
        "Whether the last reload was refused, so that older settings are in force.",
        u8::from(vitals.reload_refused),
    );
    text.gauge(
        "bhav_backup_failed",
        "Whether the last attempt at a backup failed.",
        u8::from(vitals.backup.is_some_and(|backup| backup.failed())),
    );
    if let Some(ms) = vitals.backup.and_then(|backup| backup.succeeded_ms) {
        text.gauge(
            "bhav_backup_last_success_timestamp_seconds",
            "When the last good backup was made, in seconds since the Unix epoch; not there before \
             the first.",
            seconds(ms.unsigned_abs()),
        );
    }
}

fn write_lanes(text: &mut Exposition, lanes: &[(&str, LaneStats)]) {
    let mut waiting =
        text.family(Kind::Gauge, "bhav_lane_waiting_jobs", "Jobs that wait for a thread.");
    for (lane, stats) in lanes {
        waiting.sample(&[("lane", lane)], stats.depth);
    }
    let mut running =
        text.family(Kind::Gauge, "bhav_lane_running_jobs", "Jobs that threads are at.");
    for (lane, stats) in lanes {
        running.sample(&[("lane", lane)], stats.running);
    }
    let help = "Jobs by what became of them; expired: not begun by their deadline.";
    let mut jobs = text.family(Kind::Counter, "bhav_lane_jobs_total", help);
    for (lane, stats) in lanes {
        for (result, count) in [
            ("completed", stats.completed),
            ("refused", stats.refused),
            ("expired", stats.expired),
            ("panicked", stats.panicked),
        ] {
            jobs.sample(&[("lane", lane), ("result", result)], count);
        }
    }
    let help = "Seconds that jobs waited for a thread, read in whole milliseconds.";
    let mut waits = text.family(Kind::Histogram, "bhav_lane_wait_seconds", help);
    for (lane, stats) in lanes {
        let bounds = WAIT_BOUNDS_MS.iter().map(|bound_ms| seconds(*bound_ms));
        waits.histogram(&[("lane", lane)], bounds, &stats.waits, seconds(stats.wait_ms_total));
    }
}

fn exports(text: &mut Exposition, watched: &Watched) {
    let exports = &watched.edge.service.state().portfolio.exports;
    text.gauge(
        "bhav_exports_underway",
        "Users' exports that are being made or written to their clients.",
        exports.underway(),
    );
    text.counter(
        "bhav_exports_refused_total",
        "Exports refused because the user's last one or too many long ones were under way.",
        exports.refused(),
    );
}

fn caches(text: &mut Exposition, watched: &Watched) {
    let state = watched.edge.service.state();
    let (l1, l2, answers) =
        (state.l1.stats(), watched.back.l2.stats(), watched.back.answers.stats());
    for (name, help, values) in [
        (
            "bhav_cache_hits_total",
            "Look-ups that found something.",
            [l1.hits, l2.hits, answers.hits],
        ),
        (
            "bhav_cache_misses_total",
            "Look-ups that found nothing.",
            [l1.misses, l2.misses, answers.misses],
        ),
        (
            "bhav_cache_evictions_total",
            "Entries dropped to make room.",
            [l1.evictions, l2.evictions, answers.evictions],
        ),
    ] {
        let mut family = text.family(Kind::Counter, name, help);
        for (cache, value) in ["l1", "l2", "answers"].into_iter().zip(values) {
            family.sample(&[("cache", cache)], value);
        }
    }
    let help = "Quotes and negative entries (l1), records (l2), users (answers).";
    let mut entries = text.family(Kind::Gauge, "bhav_cache_entries", help);
    entries.sample(&[("cache", "l1")], l1.size);
    entries.sample(&[("cache", "l2")], l2.entries);
    entries.sample(&[("cache", "answers")], answers.users);
    let help = "Bytes that entries hold: of memory, about (l1, answers), or of the file and its \
                log (l2).";
    let mut bytes = text.family(Kind::Gauge, "bhav_cache_bytes", help);
    bytes.sample(&[("cache", "l1")], l1.bytes);
    bytes.sample(&[("cache", "l2")], l2.bytes);
    bytes.sample(&[("cache", "answers")], answers.bytes);
    text.counter(
        "bhav_cache_l2_errors_total",
        "Failed calls of the second cache level.",
        l2.errors,
    );
    text.counter(
        "bhav_quotes_outdated_total",
        "Quotes that came and were not taken, because one of a later time is shown.",
        l1.refused,
    );
    waiting(text, watched);
}

/// Requests that wait for quotes which are not cached.
fn waiting(text: &mut Exposition, watched: &Watched) {
    let state = watched.edge.service.state();
    let classes = Class::ALL.map(|class| (class.as_str(), state.pending.stats(class)));
    let help = "Requests that wait for quotes which are not cached.";
    let mut waiting = text.family(Kind::Gauge, "bhav_quote_waiting_requests", help);
    for (symbols, stats) in &classes {
        waiting.sample(&[("symbols", symbols)], stats.waiters);
    }
    let help = "Requests for quotes that were not cached and did not come.";
    let mut failed = text.family(Kind::Counter, "bhav_quote_waits_failed_total", help);
    for (symbols, stats) in &classes {
        failed.sample(&[("symbols", symbols), ("reason", "refused")], stats.refused);
        failed.sample(&[("symbols", symbols), ("reason", "timed_out")], stats.timed_out);
    }
    let help = "Symbols given up because nobody waited for them any longer, or for lack of room.";
    let mut expired = text.family(Kind::Counter, "bhav_quote_symbols_expired_total", help);
    for (symbols, stats) in &classes {
        expired.sample(&[("symbols", symbols)], stats.expired);
    }
}
