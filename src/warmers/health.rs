//! The body of `GET /api/health`, made once a second by the scheduler: what is reported is what was
//! seen then, so asking never blocks on a broken part.

mod duties;
mod prices;
mod states;

use super::close::Counts;
use super::context::WarmerContext;
use super::scheduler::Scheduler;
use super::signals::Counts as SignalCounts;
use super::stats::Warmer;
use crate::base::Source;
use crate::cache::l2::L2Stats;
use crate::cache::pending::Class;
use crate::cache::responses::ResponsesStats;
use crate::health::readings::{FeedReadings, Readings, SnapshotReadings, WarmerReadings};
use crate::http::Prepared;
use crate::ops::version;
use crate::rt::{Lane, LaneStats};
use crate::views::health::{
    Feed, Health, HealthCacheAnswers, HealthCacheL1, HealthCacheL2, HealthClose, HealthFeeds,
    HealthSignals, HealthStore, HealthWarmers, LaneReport, WarmerState,
};
use crate::views::json;
use crate::views::values::{Day, Instant};
use duties::{admin_listener, backup, calendar_ends, clock, log_report, reload};
use prices::{feed, market};
use states::{index_state, instruments_state, quotes_state};

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
    (Prepared::new(http_status, &headers, &json::to_vec(&report)), vitals)
}

fn vitals(scheduler: &Scheduler, report: &Health) -> Readings {
    let feed = |source: Source, feed: &Feed| FeedReadings {
        source,
        state: feed.state,
        age_ms: feed.age_ms,
        delay_s: feed.delay_s.map(|delay| delay.0),
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
            state: state_of(&report.warmers, warmer).0,
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
        store: HealthStore { writes: store.writes, commits: store.commits, refused: store.refused },
        cache_l1: HealthCacheL1 {
            size: l1.size,
            hits: l1.hits,
            misses: l1.misses,
            evictions: l1.evictions,
            waiting: [Class::Listed, Class::Unlisted]
                .map(|class| parts.pending.stats(class).waiters)
                .iter()
                .sum(),
        },
        cache_answers: cache_answers(parts.answers.stats()),
        cache_l2: cache_l2(l2),
        warmers: HealthWarmers {
            index: WarmerState(index),
            quotes: WarmerState(quotes_state(scheduler, now_mono_ms)),
            instruments: WarmerState(instruments_state(scheduler)),
            persist: WarmerState(persist),
            close: WarmerState(close_state),
            signals: WarmerState(signals_state),
        },
        market: market(scheduler),
        feeds: HealthFeeds { broker_a, public },
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

fn state_of(warmers: &HealthWarmers, warmer: Warmer) -> WarmerState {
    match warmer {
        Warmer::Index => warmers.index,
        Warmer::Quotes => warmers.quotes,
        Warmer::Instruments => warmers.instruments,
        Warmer::Persist => warmers.persist,
        Warmer::Close => warmers.close,
        Warmer::Signals => warmers.signals,
    }
}

fn cache_answers(stats: ResponsesStats) -> HealthCacheAnswers {
    let ResponsesStats { users, bytes, hits, misses, evictions, refused } = stats;
    HealthCacheAnswers { users, bytes, hits, misses, evictions, refused }
}

fn cache_l2(stats: L2Stats) -> HealthCacheL2 {
    let L2Stats { backend, hits, misses, errors, .. } = stats;
    HealthCacheL2 { backend, hits, misses, errors }
}

fn close(counts: Counts) -> HealthClose {
    let Counts { date, priced, missing, suspended, cut_off, pages, points, carried } = counts;
    let date = date.map(Day);
    HealthClose { date, priced, missing, suspended, cut_off, pages, points, carried }
}

fn signals(counts: SignalCounts) -> HealthSignals {
    let SignalCounts { as_of, symbols, silenced, failed, signals, provisional } = counts;
    let looked_at = provisional.and_then(|provisional| provisional.at);
    HealthSignals {
        as_of: as_of.map(Day),
        symbols,
        silenced,
        failed,
        signals,
        provisional: provisional.map(|provisional| provisional.signals),
        provisional_at: looked_at.map(Instant),
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
