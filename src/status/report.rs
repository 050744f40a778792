//! The report of each second: the health document, which is filled only here, and the further
//! values that metrics show.
//!
//! Made on the thread `warm` from the tasks' state and from counters. Reads memory only.

use std::cell::RefCell;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;

use crate::auth::{ApiKeys, ChangesReading, KeyRefusal};
use crate::base::limiter::SharedTally;
use crate::base::{ByBroker, Clock, Source, clock};
use crate::brokers::broker_a::ticker::TickerReading;
use crate::brokers::session::token::TokenStatus;
use crate::brokers::{Readiness, SharedToken};
use crate::cache::l2::L2Stats;
use crate::cache::pending::Class;
use crate::http::Prepared;
use crate::market::Origin;
use crate::nodes::Fence;
use crate::nodes::cluster::{RelayReading, SharedTokens, TokenEvent};
use crate::ops::{exit, log};
use crate::rt::LaneStats;
use crate::status::day::Day as LastDay;
use crate::status::troubles::{Beside, Since, TokenSeen, find_troubles};
use crate::store::Epoch;
use crate::views::health::{
    Feed, Health, HealthAdminListener, HealthBackup, HealthCacheL1, HealthCacheL2, HealthChanges,
    HealthClock, HealthFeeds, HealthKeys, HealthKeysRefused, HealthLog, HealthMarket, HealthRelay,
    HealthReload, HealthSharedServer, HealthStore, HealthTicker, HealthTokens, HealthWarmers,
    LaneReport,
};
use crate::views::states::{
    CacheBackend, FeedState, ServiceState, StoreState, TokenOrigin, Warmer, WarmerState,
};
use crate::views::values;
use crate::views::values::{Day, Delay, Instant, Mark};
use crate::warmers::{
    EvidenceReason, PolledFeed, PriceOrigin, Reporter, Runs, Scheduler, WarmerContext,
};

/// Part of every document that a person reads (contract, section 1).
const DISCLAIMER: &str = "Informational only, not investment advice. The operator is not \
     registered as an investment adviser or research analyst.";

/// The health document, and the further values that metrics show.
#[derive(Debug)]
pub struct Report {
    /// Monotonic time of the report: the scheduler's heartbeat.
    pub seen_mono_ms: u64,
    pub(crate) uptime_ms: u64,
    pub(crate) health: Health,
    /// Whether the published snapshot comes from the simulator.
    pub(crate) simulated: bool,
    /// State of broker A's WebSocket, also if it is switched off.
    pub(crate) ticker: TickerReading,
    /// Times that a tick and a poll of the same second differed.
    pub(crate) ticker_disagreements: u64,
    /// Prices far from their previous close, by what decided about them.
    pub(crate) far_prices: [(EvidenceReason, u64); EvidenceReason::ALL.len()],
    /// The epoch in which this node leads others; `None` while it follows or is alone.
    pub(crate) leads_in: Option<u64>,
    /// Times that a write or a message was refused because this node no longer led.
    pub(crate) fenced: [(Fence, u64); Fence::ALL.len()],
    /// Counts of messages about brokers' tokens, by result.
    pub(crate) tokens: [(TokenEvent, u64); TokenEvent::ALL.len()],
    /// Counts of attempts that all nodes limit together, by result.
    pub(crate) limits: SharedTally,
    pub(crate) runs: [(Warmer, Runs); Warmer::ALL.len()],
}

/// The scheduler calls this each second. It makes the report, and publishes it and its document.
/// `has_backup_timer`: a timer makes backups, as that of the package does.
pub(crate) fn reporter(
    document: &Arc<ArcSwapOption<Prepared>>,
    last: &Arc<ArcSwapOption<Report>>,
    tokens: ByBroker<Arc<SharedToken>>,
    has_backup_timer: bool,
) -> Reporter {
    let document = Arc::clone(document);
    let last = Arc::clone(last);
    let remembered = RefCell::new(Remembered::default());
    Box::new(move |seen| {
        let mut report = Report::of(seen);
        let now = seen.context.clock.now();
        let beside = Beside {
            tokens: ByBroker::of(|broker| token_seen(&tokens[broker].status(now), now)),
            service_now: Some(now),
            machine_now: Clock::system().now(),
            has_backup_timer,
        };
        remembered
            .borrow_mut()
            .complete(&mut report.health, &beside, now);
        document.store(Some(Arc::new(prepared(&report.health))));
        last.store(Some(Arc::new(report)));
    })
}

/// What one report has of those before.
#[derive(Default)]
struct Remembered {
    since: Since,
    day: LastDay,
}

impl Remembered {
    /// Adds to the document what is wrong, since when, and the last day.
    fn complete(&mut self, health: &mut Health, beside: &Beside, now: Timestamp) {
        let found = find_troubles(health, beside);
        health.troubles = Some(self.since.dated(found, now));
        self.day.add(health, now);
        health.day = self.day.view();
    }
}

fn token_seen(status: &TokenStatus, now: Timestamp) -> TokenSeen {
    let expires = status.expires_at.filter(|_| status.valid);
    TokenSeen {
        is_set: status.initialized,
        is_valid: status.valid,
        left_s: expires.map(|at| at.duration_since(now).as_secs()),
    }
}

/// The complete HTTP response.
fn prepared(health: &Health) -> Prepared {
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("Cache-Control", "no-store"),
    ];
    let is_down = health.status == ServiceState::Down;
    if is_down {
        headers.push(("Retry-After", "1"));
    }
    Prepared::new(if is_down { 503 } else { 200 }, &headers, &values::to_vec(health))
}

impl Report {
    fn of(seen: &Scheduler) -> Self {
        let shared = seen
            .context
            .nodes
            .as_ref()
            .and_then(|nodes| nodes.shared.as_ref());
        let token_count = |event| shared.map_or(0, |shared| shared.tokens.counts.of(event));
        Self {
            seen_mono_ms: seen.now_mono_ms,
            uptime_ms: uptime_ms(seen),
            health: health(seen),
            simulated: seen.snapshot.is_simulated(),
            ticker: ticker_reading(seen),
            ticker_disagreements: seen.ticking.log.disagreements,
            far_prices: seen.quotes.evidence.weighed(),
            leads_in: leads_in(seen),
            fenced: Fence::ALL.map(|fence| (fence, seen.context.lead.fenced_total(fence))),
            tokens: TokenEvent::ALL.map(|event| (event, token_count(event))),
            limits: shared
                .map(|shared| shared.limits.tally())
                .unwrap_or_default(),
            runs: Warmer::ALL.map(|warmer| (warmer, seen.stats.of(warmer))),
        }
    }
}

fn uptime_ms(seen: &Scheduler) -> u64 {
    seen.now_mono_ms.saturating_sub(seen.started_mono_ms)
}

fn health(seen: &Scheduler) -> Health {
    let context = &seen.context;
    let store = context.store.health();
    let writes = store.writer.committed;
    let commits = store.writer.commits;
    let cache_l2 = cache_l2(context);
    let warmers = warmers(seen, cache_l2.backend);
    let feeds = HealthFeeds {
        broker_a: feed(seen, Some(&seen.quotes.feeds.broker_a)),
        public: feed(seen, seen.quotes.feeds.public.as_ref()),
    };
    let stores_work = stores_work(context, cache_l2.backend, store.state);
    let (leader, epoch) = leadership(seen).unzip();
    Health {
        status: service_state(seen, &warmers, &feeds, stores_work),
        version: exit::VERSION.into(),
        uptime_s: uptime_ms(seen) / 1_000,
        node: context.nodes.as_ref().map(|nodes| nodes.node.clone()),
        role: context.lead.role(),
        epoch,
        leader,
        relay: relay(seen),
        changes: changes(context),
        database: store.state,
        signing_key: context.auth.key_state(),
        keys: keys(&context.auth.api_keys),
        store: HealthStore {
            writes,
            commits,
            refused: store.refused,
        },
        cache_l1: cache_l1(context),
        cache_answers: context.responses.stats(),
        cache_l2,
        warmers,
        market: market(seen),
        feeds,
        close: seen.close.counts.clone(),
        signals: seen.signals.counts(),
        lanes: lanes(context),
        log: HealthLog {
            lines_dropped: log::lines_dropped(),
            writes_failed: log::writes_failed(),
        },
        clock: HealthClock {
            ahead_of_exchange_ms: clock_ahead_ms(seen),
            set: Mark(context.clock.is_set()),
        },
        backup: backup(seen),
        reload: context.reloads.refused_at().map(|at| HealthReload {
            refused_ist: Instant(at),
        }),
        admin_listener: context
            .admin_failure
            .clone()
            .map(|failure| HealthAdminListener { failure }),
        shared_server: shared_server(context),
        exposed: context.reloads.exposed().to_vec(),
        disclaimer: DISCLAIMER.into(),
        // What the reporter adds.
        ..Health::default()
    }
}

/// Whether the database and the second cache level work, and the shared server refuses nothing.
fn stores_work(context: &WarmerContext, cache: CacheBackend, store: StoreState) -> bool {
    cache != CacheBackend::None
        && store == StoreState::Ok
        && !context
            .auth
            .changes()
            .is_some_and(|reading| reading.is_outdated)
        && context.refusals.in_force().is_empty()
}

fn cache_l1(context: &WarmerContext) -> HealthCacheL1 {
    let l1 = context.l1.stats();
    let waiting =
        [Class::Listed, Class::Unlisted].map(|class| context.pending.stats(class).waiters);
    HealthCacheL1 {
        size: l1.size,
        hits: l1.hits,
        misses: l1.misses,
        evictions: l1.evictions,
        waiting: waiting.iter().sum(),
    }
}

fn cache_l2(context: &WarmerContext) -> HealthCacheL2 {
    let L2Stats {
        backend,
        hits,
        misses,
        errors,
        ..
    } = context.l2.stats();
    HealthCacheL2 {
        backend,
        hits,
        misses,
        errors,
    }
}

fn changes(context: &WarmerContext) -> Option<HealthChanges> {
    let ChangesReading {
        applied, age_ms, ..
    } = context.auth.changes()?;
    Some(HealthChanges { applied, age_ms })
}

fn keys(keys: &ApiKeys) -> HealthKeys {
    let refused = |why| keys.refused.of(why);
    HealthKeys {
        kept: keys.kept(),
        used: keys.admitted.value(),
        refused: HealthKeysRefused {
            key_invalid: refused(KeyRefusal::Invalid),
            key_expired: refused(KeyRefusal::Expired),
            scope_missing: refused(KeyRefusal::Scope),
            login_required: refused(KeyRefusal::Login),
            too_many_requests: refused(KeyRefusal::Rate),
            key_in_query: refused(KeyRefusal::Query),
        },
    }
}

/// What an operator has to set right on the server that nodes share.
fn shared_server(context: &WarmerContext) -> Option<HealthSharedServer> {
    let refused = context.refusals.in_force();
    let foreign = context.refusals.foreign();
    (!refused.is_empty() || !foreign.is_empty()).then(|| HealthSharedServer {
        refused: refused.iter().map(ToString::to_string).collect(),
        foreign: foreign.into_iter().map(str::to_owned).collect(),
    })
}

fn service_state(
    seen: &Scheduler,
    warmers: &HealthWarmers,
    feeds: &HealthFeeds,
    stores_work: bool,
) -> ServiceState {
    use WarmerState::{Failing, Ok, Starting};
    let evening_failed = warmers.close == Failing || warmers.signals == Failing;
    match (warmers.index, leading(seen, feeds), warmers.persist) {
        (Starting | Failing, _, _) if seen.snapshot.age().is_none() => ServiceState::Down,
        (Ok, FeedState::Ok, Ok) if stores_work && !evening_failed => ServiceState::Ok,
        _ => ServiceState::Degraded,
    }
}

/// State of the feed that prices should come from. Without an app at broker A this is the public
/// provider. A node that receives its prices from the leader needs no feed; the index shows their
/// freshness.
fn leading(seen: &Scheduler, feeds: &HealthFeeds) -> FeedState {
    match (is_told(seen), feeds.broker_a.state) {
        (true, _) => FeedState::Ok,
        (false, FeedState::Off) => feeds.public.state,
        (false, state) => state,
    }
}

/// This node's epoch if it leads others; `None` for a single-node installation or a follower.
fn leads_in(seen: &Scheduler) -> Option<u64> {
    let epoch = seen.context.lead.epoch();
    epoch
        .filter(|epoch| *epoch != Epoch::ALONE)
        .map(|epoch| epoch.0)
}

/// The leader and its epoch: this node, or the leader of the last update received.
fn leadership(seen: &Scheduler) -> Option<(String, u64)> {
    let nodes = seen.context.nodes.as_ref()?;
    match leads_in(seen) {
        Some(epoch) => Some((nodes.node.clone(), epoch)),
        None => nodes
            .relay_reading()
            .leader
            .map(|(leader, epoch)| (leader, epoch.0)),
    }
}

fn relay(seen: &Scheduler) -> Option<HealthRelay> {
    let nodes = seen.context.nodes.as_ref()?;
    let now = seen.context.clock.now();
    let origin = |shared: &SharedToken| {
        shared
            .valid(now)
            .map_or(TokenOrigin::None, |token| token.origin)
    };
    let tokens = nodes.shared.as_ref().map(|shared| {
        let SharedTokens { counts, of } = &shared.tokens;
        HealthTokens {
            told: counts.of(TokenEvent::Told),
            taken: counts.of(TokenEvent::Taken),
            foreign: counts.of(TokenEvent::Foreign),
            ..HealthTokens::given_by(ByBroker::of(|broker| origin(&of[broker])))
        }
    });
    let RelayReading {
        state,
        age_ms,
        gaps,
        ..
    } = nodes.relay_reading();
    Some(HealthRelay {
        state,
        age_ms,
        gaps,
        tokens,
    })
}

/// Whether this node receives its prices from the leader.
fn is_told(seen: &Scheduler) -> bool {
    seen.standing == PriceOrigin::Relayed
}

fn lanes(context: &WarmerContext) -> Vec<LaneReport> {
    let lanes = [
        &context.broker_a_lane,
        &context.public_lane,
        &context.cache_lane,
        &context.store_lane,
        &context.close_lane,
        &context.signals_lane,
        &context.crypto_lane,
    ];
    let report = lanes.iter().map(|lane| {
        let name = lane.name().into();
        let LaneStats {
            depth,
            running,
            completed,
            refused,
            expired,
            panicked,
            wait_ms_max,
            ..
        } = lane.stats();
        LaneReport {
            name,
            depth,
            running,
            completed,
            refused,
            expired,
            panicked,
            wait_ms_max,
        }
    });
    report.collect()
}

fn backup(seen: &Scheduler) -> Option<HealthBackup> {
    let record = seen.store_check.last_backup()?;
    let succeeded = record
        .succeeded_ms
        .and_then(|ms| Timestamp::from_millisecond(ms).ok());
    Some(HealthBackup {
        succeeded_ist: succeeded.map(Instant),
        failed: record.failed(),
    })
}

/// The market's state, and the age of the snapshot.
fn market(seen: &Scheduler) -> HealthMarket {
    let context = &seen.context;
    let instruments = context.instruments.load();
    let age = seen.snapshot.age();
    let today = clock::zoned(context.clock.now()).date();
    HealthMarket {
        phase: seen.market.status.phase,
        calendar_known: seen.market.status.calendar_known,
        calendar_until: context.calendar.covered_until(today).map(Day),
        calendar_unknown: {
            let unknown = context.calendar.unknown_ahead(today);
            unknown.into_iter().map(Into::into).collect()
        },
        as_of_ist: age.map(|age| Instant(age.as_of)),
        delay_s: age.and_then(|age| age.delay_s).map(Delay),
        stale: age.map(|age| age.stale),
        source: age.map(|age| age.source),
        instruments: instruments.len(),
        instruments_origin: instruments.origin(),
        instruments_as_of: Day(instruments.as_of()),
        instruments_unread: seen.instruments.unread,
        instruments_failure: seen.instruments.failure.clone().map(Into::into),
    }
}

/// State of a feed; `None` is one that is switched off.
fn feed(seen: &Scheduler, feed: Option<&PolledFeed>) -> Feed {
    let Some(feed) = feed else {
        return Feed {
            state: FeedState::Off,
            ..Feed::default()
        };
    };
    let succeeded_mono_ms = feed.succeeded_mono_ms;
    Feed {
        state: feed_state(seen, feed),
        age_ms: succeeded_mono_ms.map(|at| seen.now_mono_ms.saturating_sub(at)),
        delay_s: succeeded_mono_ms
            .and_then(|_| feed.time.delay_of_primary_s())
            .map(Delay),
        rounds: feed.polls,
        failures: feed.failures,
        failure: feed.failure.clone(),
        ticker: ticker(seen, feed.source()),
    }
}

fn ticker(seen: &Scheduler, source: Source) -> Option<HealthTicker> {
    if source != Source::BrokerA || !seen.context.ticker.is_on() {
        return None;
    }
    let reading = ticker_reading(seen);
    Some(HealthTicker {
        state: reading.state,
        live: reading.live,
        age_ms: reading.age_ms,
        subscribed: reading.subscribed,
        ticks: reading.ticks,
        reconnects: reading.ended.iter().map(|(_, count)| count).sum(),
        failure: reading.failure.map(Into::into),
    })
}

/// The ticker's own reading, with `live` set by whether its ticks are trusted.
fn ticker_reading(seen: &Scheduler) -> TickerReading {
    TickerReading {
        live: seen.ticking.is_live,
        ..seen.context.ticker.reading()
    }
}

/// Milliseconds that the machine's clock is ahead of the exchange's. `None` while some feed is
/// healthy: a feed that is no longer polled may hold a reading from before the clock was corrected.
fn clock_ahead_ms(seen: &Scheduler) -> Option<i64> {
    if seen
        .quotes
        .feeds
        .any_healthy(seen.context.l1.freshness(), seen.now_mono_ms)
    {
        return None;
    }
    seen.quotes
        .feeds
        .iter()
        .find_map(|feed| feed.clock_ahead_ms(seen.now_mono_ms))
}

fn warmers(seen: &Scheduler, backend: CacheBackend) -> HealthWarmers {
    HealthWarmers {
        index: index_state(seen),
        quotes: quotes_state(seen),
        instruments: instruments_state(seen),
        persist: match (seen.persist.failure.is_some(), backend) {
            (_, CacheBackend::None) => WarmerState::Paused,
            (true, _) => WarmerState::Failing,
            (false, _) => WarmerState::Ok,
        },
        close: seen.close.state(seen.now_mono_ms),
        signals: seen.signals.state(seen.now_mono_ms),
    }
}

fn index_state(seen: &Scheduler) -> WarmerState {
    match seen.snapshot.age() {
        None if seen.quotes.feeds.all_failed() => WarmerState::Failing,
        None => WarmerState::Starting,
        Some(age) if age.stale => WarmerState::Stale,
        Some(_) => WarmerState::Ok,
    }
}

fn quotes_state(seen: &Scheduler) -> WarmerState {
    let healthy = seen
        .quotes
        .feeds
        .any_healthy(seen.context.l1.freshness(), seen.now_mono_ms);
    match (healthy || is_told(seen), seen.quotes.feeds.all_failed()) {
        (true, _) => WarmerState::Ok,
        (false, true) => WarmerState::Failing,
        (false, false) if seen.quotes.feeds.have_answered() => WarmerState::Stale,
        (false, false) => WarmerState::Starting,
    }
}

fn instruments_state(seen: &Scheduler) -> WarmerState {
    match (seen.instruments.failure.is_some(), seen.context.instruments.load().origin()) {
        (true, _) => WarmerState::Failing,
        (false, Origin::BrokerA) => WarmerState::Ok,
        // The embedded list is used until a token lets the service fetch today's.
        (false, Origin::Embedded) => WarmerState::Paused,
    }
}

/// The state of a feed whose last call failed.
fn failing(feed: &PolledFeed) -> FeedState {
    if feed.is_rate_limited {
        FeedState::RateLimited
    } else {
        FeedState::Failing
    }
}

/// A known cause comes before a symptom, because an operator fixes causes.
fn feed_state(seen: &Scheduler, feed: &PolledFeed) -> FeedState {
    let context = &seen.context;
    let now_mono_ms = seen.now_mono_ms;
    let now = context.clock.now();
    let token = context.token.status(now);
    let is_broker_a = feed.source() == Source::BrokerA;
    match feed.feed.readiness() {
        Readiness::Off => return FeedState::Off,
        Readiness::NoPermission => return FeedState::NoPermission,
        Readiness::NoToken if token.initialized => return FeedState::TokenDead,
        Readiness::NoToken if !context.broker_a.has_app() => return FeedState::Off,
        Readiness::NoToken => return FeedState::NoToken,
        Readiness::Open(_) => return FeedState::Open,
        Readiness::Follows => return FeedState::Relayed,
        _ if is_broker_a && token.no_permission => return FeedState::NoPermission,
        Readiness::Paced(_) | Readiness::Ready => {}
    }
    if feed.is_timed_out(now_mono_ms) {
        return FeedState::Hanging;
    }
    let freshness = context.l1.freshness();
    let stands_in = !seen
        .quotes
        .feeds
        .broker_a
        .is_healthy(freshness, now_mono_ms)
        && !is_told(seen);
    let in_use = is_broker_a || stands_in;
    match feed.failure {
        // A single failure may be chance. Repeated failures are reported even while the prices are
        // still fresh.
        Some(_) if feed.keeps_failing() => failing(feed),
        _ if feed.is_healthy(freshness, now_mono_ms) => FeedState::Ok,
        Some(_) => failing(feed),
        None if !in_use || feed.polls == 0 => FeedState::Standby,
        // After trading begins a delayed feed shows yesterday's close for as long as its delay.
        None if feed.time.is_before_the_bell(&context.calendar, now) => FeedState::Starting,
        None if feed.is_stalled(freshness, now_mono_ms) => FeedState::Mute,
        None if feed.succeeded_mono_ms.is_none() => FeedState::Starting,
        None => FeedState::Stale,
    }
}
