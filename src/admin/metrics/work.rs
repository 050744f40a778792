//! Metric families of lanes, the store, the caches, reloads and backups. Runs on the lane `admin`.

use crate::admin::exposition::{Exposition, Kind, seconds};
use crate::admin::listener::Watched;
use crate::cache::l2::DISTRUSTED;
use crate::cache::pending::Class;
use crate::health::Readings;
use crate::rt::{COMMIT_SIZES, LaneStats, WAIT_BOUNDS_MS};

/// All store states, named as in `/api/health`.
const STORE_STATES: [&str; 7] =
    ["ok", "read_only", "full", "corrupt", "busy", "stuck", "unavailable"];

pub(super) fn write(text: &mut Exposition, watched: &Watched, own: LaneStats) {
    if let Some(readings) = watched.sources.readings.load_full() {
        operator(text, &readings);
    }
    let store = watched.edge.service.state().store.health();
    let mut lanes: Vec<(&str, LaneStats)> =
        watched.sources.lanes.iter().map(|lane| (lane.name(), lane.stats())).collect();
    lanes.push(("store-reader", store.readers));
    lanes.push(("admin", own));
    write_lanes(text, &lanes);
    text.family(Kind::Gauge, "bhav_store_state", "State of the database: 1 for the current state.")
        .state(&[], &STORE_STATES, store.state);
    text.gauge(
        "bhav_store_waiting_writes",
        "Writes queued for the store's writer thread.",
        store.writer.depth,
    );
    let mut writes = text.family(Kind::Counter, "bhav_store_writes_total", "Writes by result.");
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
        "Reads and writes that failed because the database was not available in time.",
        store.refused,
    );
    text.counter(
        "bhav_writes_throttled_total",
        "Changes refused by the per-minute limit of their user.",
        watched.edge.service.state().writes.refused(),
    );
    let bounds = COMMIT_SIZES.iter().map(|bound| *bound as f64);
    text.family(
        Kind::Histogram,
        "bhav_store_commit_writes",
        "Writes in one commit; the count is the number of commits.",
    )
    .histogram(&[], bounds, &store.writer.sizes, store.writer.committed as f64);
    let help = "Time from a request to the answer of a database on a server: a statement alone, or \
                a transaction; empty for a file.";
    let mut roundtrips = text.family(Kind::Histogram, "bhav_store_roundtrip_seconds", help);
    roundtrips.durations(&[], &store.roundtrips);
    exports(text, watched);
    caches(text, watched);
}

/// Results of an operator's reloads and backups.
fn operator(text: &mut Exposition, readings: &Readings) {
    text.gauge(
        "bhav_reload_refused",
        "Whether the last reload was refused, so that older settings are in force.",
        u8::from(readings.reload_refused),
    );
    text.gauge(
        "bhav_backup_failed",
        "Whether the last backup failed.",
        u8::from(readings.backup.is_some_and(|backup| backup.failed())),
    );
    if let Some(ms) = readings.backup.and_then(|backup| backup.succeeded_ms) {
        text.gauge(
            "bhav_backup_last_success_timestamp_seconds",
            "Time of the last successful backup, in seconds since the Unix epoch; absent before \
             the first.",
            seconds(ms.unsigned_abs()),
        );
    }
}

fn write_lanes(text: &mut Exposition, lanes: &[(&str, LaneStats)]) {
    let mut waiting =
        text.family(Kind::Gauge, "bhav_lane_waiting_jobs", "Jobs in the lane's queue.");
    for (lane, stats) in lanes {
        waiting.sample(&[("lane", lane)], stats.depth);
    }
    let mut running =
        text.family(Kind::Gauge, "bhav_lane_running_jobs", "Jobs running on the lane's threads.");
    for (lane, stats) in lanes {
        running.sample(&[("lane", lane)], stats.running);
    }
    let help = "Jobs by result; expired: not begun by their deadline.";
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
    let help = "Time that jobs waited in the queue, measured in whole milliseconds.";
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
        "Exports being made or sent to their clients.",
        exports.underway(),
    );
    text.counter(
        "bhav_exports_refused_total",
        "Exports refused because the user's previous one, or too many large ones, were under way.",
        exports.refused(),
    );
}

/// Caches whose look-ups are counted.
const CACHES: [&str; 5] = ["l1", "l2", "answers", "candles", "candles_compressed"];

fn caches(text: &mut Exposition, watched: &Watched) {
    let state = watched.edge.service.state();
    let sources = &watched.sources;
    let (l1, l2, responses) = (state.l1.stats(), sources.l2.stats(), sources.responses.stats());
    let [candles, compressed] = state.candles.stats();
    for (name, help, values) in [
        (
            "bhav_cache_hits_total",
            "Look-ups that found an entry.",
            [l1.hits, l2.hits, responses.hits, candles.hits, compressed.hits],
        ),
        (
            "bhav_cache_misses_total",
            "Look-ups that found no entry.",
            [l1.misses, l2.misses, responses.misses, candles.misses, compressed.misses],
        ),
        (
            "bhav_cache_evictions_total",
            "Entries evicted to make room.",
            [
                l1.evictions,
                l2.evictions,
                responses.evictions,
                candles.evictions,
                compressed.evictions,
            ],
        ),
    ] {
        let mut family = text.family(Kind::Counter, name, help);
        for (cache, value) in CACHES.into_iter().zip(values) {
            family.sample(&[("cache", cache)], value);
        }
    }
    let help = "Entries: quotes and unknown symbols (l1), records (l2), users (answers), symbols \
                (candles), documents (candles_compressed).";
    let mut entries = text.family(Kind::Gauge, "bhav_cache_entries", help);
    entries.sample(&[("cache", "l1")], l1.size);
    entries.sample(&[("cache", "l2")], l2.entries);
    entries.sample(&[("cache", "answers")], responses.users);
    entries.sample(&[("cache", "candles")], candles.entries);
    entries.sample(&[("cache", "candles_compressed")], compressed.entries);
    let help = "Size of the entries: approximate memory (l1, answers), or the file and its \
                write-ahead log (l2).";
    let mut bytes = text.family(Kind::Gauge, "bhav_cache_bytes", help);
    bytes.sample(&[("cache", "l1")], l1.bytes);
    bytes.sample(&[("cache", "l2")], l2.bytes);
    bytes.sample(&[("cache", "answers")], responses.bytes);
    text.counter(
        "bhav_cache_l2_errors_total",
        "Failed calls of the second cache level.",
        l2.errors,
    );
    let help = "What was not believed: on the server that nodes share, what was not signed with \
                this JWT_SECRET, is of another version, or was told again; and quotes of any \
                source that are ahead of this node's clock.";
    let mut distrusted = text.family(Kind::Counter, "bhav_distrusted_total", help);
    for (cause, count) in DISTRUSTED.iter().zip(l2.distrusted) {
        distrusted.sample(&[("reason", cause)], count);
    }
    distrusted.sample(&[("reason", "ahead")], l1.ahead);
    text.counter(
        "bhav_quotes_outdated_total",
        "Received quotes that were dropped because a newer one is cached.",
        l1.refused,
    );
    waiting(text, watched);
}

/// Requests that wait for uncached quotes.
fn waiting(text: &mut Exposition, watched: &Watched) {
    let state = watched.edge.service.state();
    let classes = Class::ALL.map(|class| (class.as_str(), state.pending.stats(class)));
    let help = "Requests that wait for uncached quotes.";
    let mut waiting = text.family(Kind::Gauge, "bhav_quote_waiting_requests", help);
    for (symbols, stats) in &classes {
        waiting.sample(&[("symbols", symbols)], stats.waiters);
    }
    let help = "Requests whose uncached quotes did not arrive.";
    let mut failed = text.family(Kind::Counter, "bhav_quote_waits_failed_total", help);
    for (symbols, stats) in &classes {
        failed.sample(&[("symbols", symbols), ("reason", "refused")], stats.refused);
        failed.sample(&[("symbols", symbols), ("reason", "timed_out")], stats.timed_out);
    }
    let help = "Pending symbols dropped because no request waited for them, or to make room.";
    let mut expired = text.family(Kind::Counter, "bhav_quote_symbols_expired_total", help);
    for (symbols, stats) in &classes {
        expired.sample(&[("symbols", symbols)], stats.expired);
    }
}
