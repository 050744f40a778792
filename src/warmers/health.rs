//! The body of `GET /api/health`, made once a second by the scheduler: what is reported is what was
//! seen then, so asking never blocks on a broken part.

mod duties;
mod prices;
mod states;

use serde::Serialize;

use super::close::Counts;
use super::context::WarmerContext;
use super::scheduler::Scheduler;
use super::signals::Counts as SignalCounts;
use super::stats::Warmer;
use crate::base::{Source, ist};
use crate::cache::l2::L2Stats;
use crate::cache::pending::Class;
use crate::cache::responses::ResponsesStats;
use crate::health::readings::{FeedReadings, Readings, SnapshotReadings, WarmerReadings};
use crate::http::Prepared;
use crate::ops::version;
use crate::rt::{Lane, LaneStats};
use duties::{
    AdminListenerReport, BackupReport, ClockReport, LogReport, ReloadReport, admin_listener,
    backup, calendar_ends, clock, log_report, reload,
};
use prices::{Feed, Feeds, Market, feed, market};
use states::{index_state, instruments_state, quotes_state};

#[derive(Serialize)]
struct Health {
    status: &'static str,
    version: &'static str,
    uptime_s: u64,
    database: &'static str,
    signing_key: &'static str,
    store: StoreReport,
    cache_l1: CacheL1,
    cache_answers: CacheAnswers,
    cache_l2: CacheL2,
    warmers: Warmers,
    feeds: Feeds,
    market: Market,
    close: Close,
    signals: Signals,
    lanes: Vec<LaneReport>,
    log: LogReport,
    clock: ClockReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<BackupReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reload: Option<ReloadReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admin_listener: Option<AdminListenerReport>,
    disclaimer: &'static str,
}

#[derive(Serialize)]
struct StoreReport {
    writes: u64,
    commits: u64,
    refused: u64,
}

#[derive(Serialize)]
struct CacheL1 {
    size: usize,
    hits: u64,
    misses: u64,
    evictions: u64,
    waiting: usize,
}

/// Users' finished answers.
#[derive(Serialize)]
struct CacheAnswers {
    users: usize,
    bytes: usize,
    hits: u64,
    misses: u64,
    evictions: u64,
    refused: u64,
}

impl From<ResponsesStats> for CacheAnswers {
    fn from(stats: ResponsesStats) -> Self {
        let ResponsesStats { users, bytes, hits, misses, evictions, refused } = stats;
        Self { users, bytes, hits, misses, evictions, refused }
    }
}

#[derive(Serialize)]
struct CacheL2 {
    backend: &'static str,
    hits: u64,
    misses: u64,
    errors: u64,
}

#[derive(Serialize, Clone, Copy)]
struct Warmers {
    index: &'static str,
    quotes: &'static str,
    instruments: &'static str,
    persist: &'static str,
    close: &'static str,
    signals: &'static str,
}

impl Warmers {
    fn state(&self, warmer: Warmer) -> &'static str {
        match warmer {
            Warmer::Index => self.index,
            Warmer::Quotes => self.quotes,
            Warmer::Instruments => self.instruments,
            Warmer::Persist => self.persist,
            Warmer::Close => self.close,
            Warmer::Signals => self.signals,
        }
    }
}

/// The last revaluation at the close that this process took part in.
#[derive(Serialize)]
struct Close {
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    priced: usize,
    missing: usize,
    suspended: usize,
    cut_off: bool,
    pages: u64,
    points: u64,
    carried: u64,
}

/// The list that is shown, and how the universe's symbols do.
#[derive(Serialize)]
struct Signals {
    as_of: Option<String>,
    symbols: usize,
    /// Candles are suspect and being fetched anew.
    silenced: usize,
    /// No candle of the date that is due can be had.
    failed: usize,
    signals: usize,
    /// Those of running candles, and when these were last looked at; only where that is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    provisional: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provisional_at: Option<String>,
}

#[derive(Serialize)]
struct LaneReport {
    name: &'static str,
    depth: usize,
    running: u64,
    completed: u64,
    refused: u64,
    expired: u64,
    panicked: u64,
    wait_ms_max: u64,
}

/// Said wherever a person reads (contract, section 1).
const DISCLAIMER: &str = "Informational only, not investment advice. The operator is not \
     registered as an investment adviser or research analyst.";

/// The whole response for the present state, and the same as numbers.
pub fn build(scheduler: &Scheduler) -> (Prepared, Readings) {
    let report = report(scheduler);
    let vitals = vitals(scheduler, &report);
    let http_status = if report.status == "down" { 503 } else { 200 };
    let mut headers = vec![("Content-Type", "application/json"), ("Cache-Control", "no-store")];
    if http_status == 503 {
        headers.push(("Retry-After", "1"));
    }
    // Numbers and text always serialise.
    let body = sonic_rs::to_vec(&report).unwrap_or_default();
    (Prepared::new(http_status, &headers, &body), vitals)
}

fn vitals(scheduler: &Scheduler, report: &Health) -> Readings {
    let feed = |source: Source, feed: &Feed| FeedReadings {
        source,
        state: feed.state,
        age_ms: feed.age_ms,
        delay_s: feed.delay_s,
        rounds: feed.rounds,
        failures: feed.failures,
    };
    Readings {
        seen_mono_ms: scheduler.parts.clock.monotonic_ms(),
        status: report.status,
        phase: scheduler.status.phase,
        calendar_known: report.market.calendar_known,
        calendar_ends: calendar_ends(scheduler),
        backup: scheduler.store_probe.last_backup(),
        reload_refused: report.reload.is_some(),
        snapshot: scheduler.snapshot.as_ref().map(|held| SnapshotReadings {
            age: held.market.age,
            simulated: held.market.simulated,
        }),
        feeds: [
            feed(Source::BrokerA, &report.feeds.broker_a),
            feed(Source::Public, &report.feeds.public),
        ],
        warmers: Warmer::ALL.map(|warmer| WarmerReadings {
            name: warmer.as_str(),
            state: report.warmers.state(warmer),
            runs: scheduler.tally.of(warmer),
        }),
    }
}

fn report(scheduler: &Scheduler) -> Health {
    let parts = &scheduler.parts;
    let now_mono_ms = parts.clock.monotonic_ms();
    let l1 = parts.l1.stats();
    let l2 = parts.l2.stats();
    let store = parts.store.health();
    let index = index_state(scheduler);
    let persist = match (&scheduler.persist_failure, l2.backend) {
        (_, "none") => "paused",
        (Some(_), _) => "failing",
        (None, _) => "ok",
    };
    let broker_a = feed(scheduler, Some(&scheduler.broker_a), now_mono_ms);
    let public = feed(scheduler, scheduler.public.as_ref(), now_mono_ms);
    let close_state = scheduler.close.state(now_mono_ms);
    let signals_state = scheduler.signals.state(now_mono_ms);
    let evening_failed = close_state == "failing" || signals_state == "failing";
    // Without an app at broker A the public provider is what was asked for.
    let leading = if broker_a.state == "off" { public.state } else { broker_a.state };
    let status = match (index, leading, persist) {
        ("starting" | "failing", _, _) if scheduler.snapshot.is_none() => "down",
        ("ok", "ok", "ok") if l2.backend != "none" && store.state == "ok" && !evening_failed => {
            "ok"
        }
        _ => "degraded",
    };
    Health {
        status,
        version: version::VERSION,
        uptime_s: scheduler.uptime_ms() / 1_000,
        database: store.state,
        signing_key: parts.auth.key_state().as_str(),
        store: StoreReport { writes: store.writes, commits: store.commits, refused: store.refused },
        cache_l1: CacheL1 {
            size: l1.size,
            hits: l1.hits,
            misses: l1.misses,
            evictions: l1.evictions,
            waiting: [Class::Listed, Class::Unlisted]
                .map(|class| parts.pending.stats(class).waiters)
                .iter()
                .sum(),
        },
        cache_answers: parts.answers.stats().into(),
        cache_l2: cache_l2(l2),
        warmers: Warmers {
            index,
            quotes: quotes_state(scheduler, now_mono_ms),
            instruments: instruments_state(scheduler),
            persist,
            close: close_state,
            signals: signals_state,
        },
        market: market(scheduler),
        feeds: Feeds { broker_a, public },
        close: close(scheduler.close.counts),
        signals: signals(scheduler.signals.counts()),
        lanes: lanes(parts),
        log: log_report(),
        clock: clock(scheduler, now_mono_ms),
        backup: backup(scheduler),
        reload: reload(scheduler),
        admin_listener: admin_listener(scheduler),
        disclaimer: DISCLAIMER,
    }
}

fn cache_l2(stats: L2Stats) -> CacheL2 {
    let L2Stats { backend, hits, misses, errors, .. } = stats;
    CacheL2 { backend, hits, misses, errors }
}

fn close(counts: Counts) -> Close {
    let Counts { date, priced, missing, suspended, cut_off, pages, points, carried } = counts;
    let date = date.map(|date| date.to_string());
    Close { date, priced, missing, suspended, cut_off, pages, points, carried }
}

fn signals(counts: SignalCounts) -> Signals {
    let SignalCounts { as_of, symbols, silenced, failed, signals, provisional } = counts;
    let looked_at = provisional.and_then(|provisional| provisional.at);
    Signals {
        as_of: as_of.map(|date| date.to_string()),
        symbols,
        silenced,
        failed,
        signals,
        provisional: provisional.map(|provisional| provisional.signals),
        provisional_at: looked_at.map(ist::iso),
    }
}

fn lanes(parts: &WarmerContext) -> Vec<LaneReport> {
    let lanes = [
        &parts.broker_a_lane,
        &parts.public_lane,
        &parts.cache_lane,
        &parts.store_lane,
        &parts.close_lane,
        &parts.signals_lane,
        &parts.crypto_lane,
    ];
    lanes.map(|lane| lane_report(lane)).into()
}

fn lane_report(lane: &Lane) -> LaneReport {
    let LaneStats { depth, running, completed, refused, expired, panicked, wait_ms_max, .. } =
        lane.stats();
    LaneReport {
        name: lane.name(),
        depth,
        running,
        completed,
        refused,
        expired,
        panicked,
        wait_ms_max,
    }
}
