//! The body of `GET /api/health`, made once a second by the scheduler: what is reported is what was
//! seen then, so that asking never blocks on a broken subsystem.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::auth::ChangesReading;
use crate::base::{Clock, Source, clock};
use crate::brokers::broker_a::ticker::TickerReading;
use crate::brokers::{BrokerError, BrokerErrorKind, Readiness, SharedToken};
use crate::cache::l2::L2Stats;
use crate::cache::pending::Class;
use crate::cache::responses::ResponsesStats;
use crate::health::readings::{
    FeedReadings, NodeReadings, Readings, RelayReadings, Runs, SnapshotReadings, WarmerReadings,
};
use crate::http::Prepared;
use crate::market::{MarketStatus, Origin};
use crate::nodes::cluster::{RelayReading, SharedTokens, TokenEvent};
use crate::nodes::{Cluster, Fence};
use crate::ops::{exit, log};
use crate::rt::{Lane, LaneStats};
use crate::store::Epoch;
use crate::views::health::{
    Feed, FeedWord, Health, HealthAdminListener, HealthBackup, HealthCacheAnswers, HealthCacheL1,
    HealthCacheL2, HealthChanges, HealthClock, HealthClose, HealthFeeds, HealthLog, HealthMarket,
    HealthRelay, HealthReload, HealthSharedServer, HealthSignals, HealthStore, HealthTicker,
    HealthTokens, HealthWarmers, LaneReport, WarmerState,
};
use crate::views::values;
use crate::views::values::{Day, Delay, Instant, Mark};
use crate::warmers::close::{CloseTask, Counts};
use crate::warmers::context::WarmerContext;
use crate::warmers::instruments::InstrumentsTask;
use crate::warmers::mailbox::Event;
use crate::warmers::persist::{PersistTask, StoreCheck};
use crate::warmers::quotes::apply::SnapshotTask;
use crate::warmers::quotes::feed_state::{Ended, FeedState};
use crate::warmers::quotes::feeds::{Feeds, Standing};
use crate::warmers::quotes::ticking::TickingTask;
use crate::warmers::signals::{Counts as SignalCounts, SignalsTask};

/// Said wherever a person reads (contract, section 1).
const DISCLAIMER: &str = "Informational only, not investment advice. The operator is not \
     registered as an investment adviser or research analyst.";

/// What the report is made of: every task as it stands.
pub(super) struct Seen<'a> {
    pub context: &'a WarmerContext,
    pub status: &'a MarketStatus,
    pub feeds: &'a Feeds,
    pub ticking: &'a TickingTask,
    pub standing: Standing,
    pub snapshot: &'a SnapshotTask,
    pub close: &'a CloseTask,
    pub signals: &'a SignalsTask,
    pub instruments: &'a InstrumentsTask,
    pub persist: &'a PersistTask,
    pub store_check: &'a StoreCheck,
    pub stats: &'a WarmerStats,
    pub uptime_ms: u64,
    pub now_mono_ms: u64,
}

/// The whole response for the present state, and the same as numbers.
pub(super) fn build(seen: &Seen<'_>) -> (Prepared, Readings) {
    let report = report(seen);
    let readings = readings(seen, &report);
    let http_status = if report.status == "down" { 503 } else { 200 };
    let mut headers = vec![("Content-Type", "application/json"), ("Cache-Control", "no-store")];
    if http_status == 503 {
        headers.push(("Retry-After", "1"));
    }
    (Prepared::new(http_status, &headers, &values::to_vec(&report)), readings)
}

fn readings(seen: &Seen<'_>, report: &Health) -> Readings {
    let feed = |source: Source, feed: &Feed| FeedReadings {
        source,
        state: feed.state,
        age_ms: feed.age_ms,
        delay_s: feed.delay_s.map(|delay| delay.0),
        rounds: feed.rounds,
        failures: feed.failures,
    };
    Readings {
        seen_mono_ms: seen.now_mono_ms,
        status: report.status,
        phase: seen.status.phase,
        calendar_known: report.market.calendar_known,
        calendar_ends: calendar_ends(seen),
        backup: seen.store_check.last_backup(),
        reload_refused: report.reload.is_some(),
        snapshot: seen
            .snapshot
            .age()
            .map(|age| SnapshotReadings { age, simulated: seen.snapshot.is_simulated() }),
        feeds: [
            feed(Source::BrokerA, &report.feeds.broker_a),
            feed(Source::Public, &report.feeds.public),
        ],
        ticker: ticker_reading(seen),
        node: node_readings(seen),
        ticker_disagreements: seen.ticking.log().disagreements(),
        warmers: Warmer::ALL.map(|warmer| WarmerReadings {
            name: warmer.as_str(),
            state: state_of(&report.warmers, warmer).0,
            runs: seen.stats.of(warmer),
        }),
    }
}

fn report(seen: &Seen<'_>) -> Health {
    let context = seen.context;
    let l1 = context.l1.stats();
    let l2 = context.l2.stats();
    let store = context.store.health();
    let index = index_state(seen);
    let persist = persist_state(seen, l2.backend);
    let broker_a = feed_report(seen, Some(seen.feeds.broker_a()));
    let public = feed_report(seen, seen.feeds.public());
    let close_state = seen.close.state(seen.now_mono_ms);
    let signals_state = seen.signals.state(seen.now_mono_ms);
    let evening_failed = close_state == "failing" || signals_state == "failing";
    let stores_work = l2.backend != "none" && store.state == "ok" && knows_tokens(context);
    let shared_server = shared_server(context);
    let stores_work = stores_work && shared_server.is_none();
    let status = match (index, leading(seen, &broker_a, &public), persist) {
        ("starting" | "failing", _, _) if seen.snapshot.age().is_none() => "down",
        ("ok", FeedWord::Ok, "ok") if stores_work && !evening_failed => "ok",
        _ => "degraded",
    };
    let leadership = leadership(seen);
    Health {
        status,
        version: exit::VERSION,
        uptime_s: seen.uptime_ms / 1_000,
        node: context.cluster.as_ref().map(|cluster| cluster.node.clone()),
        role: context.lead.role().as_str(),
        epoch: leadership.as_ref().map(|(_, epoch)| *epoch),
        leader: leadership.map(|(leader, _)| leader),
        relay: relay(seen),
        changes: changes(context),
        database: store.state,
        signing_key: context.auth.key_state().as_str(),
        store: HealthStore { writes: store.writes, commits: store.commits, refused: store.refused },
        cache_l1: HealthCacheL1 {
            size: l1.size,
            hits: l1.hits,
            misses: l1.misses,
            evictions: l1.evictions,
            waiting: [Class::Listed, Class::Unlisted]
                .map(|class| context.pending.stats(class).waiters)
                .iter()
                .sum(),
        },
        cache_answers: cache_answers(context.responses.stats()),
        cache_l2: cache_l2(l2),
        warmers: HealthWarmers {
            index: WarmerState(index),
            quotes: WarmerState(quotes_state(seen)),
            instruments: WarmerState(instruments_state(seen)),
            persist: WarmerState(persist),
            close: WarmerState(close_state),
            signals: WarmerState(signals_state),
        },
        market: market(seen),
        feeds: HealthFeeds { broker_a, public },
        close: close(seen.close.counts()),
        signals: signals(seen.signals.counts()),
        lanes: lanes(context),
        log: log_report(),
        clock: clock(seen),
        backup: backup(seen),
        reload: reload(seen),
        admin_listener: admin_listener(seen),
        shared_server,
        exposed: context.reloads.exposed(),
        disclaimer: DISCLAIMER,
    }
}

/// `None` where the server that nodes share refuses nothing.
fn shared_server(context: &WarmerContext) -> Option<HealthSharedServer> {
    let refused = context.refusals.in_force();
    (!refused.is_empty()).then_some(HealthSharedServer { refused })
}

/// State of the feed that prices should come from. Without an app at broker A the public provider
/// is what was asked for; of a node that is told, freshness shows in the index.
fn leading(seen: &Seen<'_>, broker_a: &Feed, public: &Feed) -> FeedWord {
    match (is_told(seen), broker_a.state) {
        (true, _) => FeedWord::Ok,
        (false, FeedWord::Off) => public.state,
        (false, state) => state,
    }
}

fn persist_state(seen: &Seen<'_>, backend: &str) -> &'static str {
    match (seen.persist.is_failing(), backend) {
        (_, "none") => "paused",
        (true, _) => "failing",
        (false, _) => "ok",
    }
}

/// The epoch of a leader that is not alone.
fn leads_in(seen: &Seen<'_>) -> Option<u64> {
    let lead = &seen.context.lead;
    lead.epoch().filter(|epoch| *epoch != Epoch::ALONE).map(|epoch| epoch.0)
}

/// The node that leads, and its epoch: this one, or the one that it last heard.
fn leadership(seen: &Seen<'_>) -> Option<(String, u64)> {
    let cluster = seen.context.cluster.as_ref()?;
    match leads_in(seen) {
        Some(epoch) => Some((cluster.node.clone(), epoch)),
        None => cluster.relay_reading().leader.map(|(leader, epoch)| (leader, epoch.0)),
    }
}

fn relay(seen: &Seen<'_>) -> Option<HealthRelay> {
    let cluster = seen.context.cluster.as_ref()?;
    let RelayReading { state, age_ms, gaps, .. } = cluster.relay_reading();
    Some(HealthRelay { state, age_ms, gaps, tokens: tokens(seen, cluster) })
}

fn tokens(seen: &Seen<'_>, cluster: &Cluster) -> Option<HealthTokens> {
    let SharedTokens { counts, of_broker_a, of_broker_b } = cluster.tokens.as_ref()?;
    let now = seen.context.clock.now();
    let origin = |shared: &SharedToken| shared.valid(now).map_or("none", |t| t.origin().as_str());
    Some(HealthTokens {
        broker_a: origin(of_broker_a),
        broker_b: origin(of_broker_b),
        told: counts.of(TokenEvent::Told),
        taken: counts.of(TokenEvent::Taken),
        foreign: counts.of(TokenEvent::Foreign),
    })
}

fn changes(context: &WarmerContext) -> Option<HealthChanges> {
    let ChangesReading { applied, age_ms, .. } = context.auth.changes()?;
    Some(HealthChanges { applied, age_ms })
}

/// Whether this node still knows which tokens are revoked.
fn knows_tokens(context: &WarmerContext) -> bool {
    !context.auth.changes().is_some_and(|reading| reading.is_outdated)
}

fn node_readings(seen: &Seen<'_>) -> NodeReadings {
    let lead = &seen.context.lead;
    let relay = relay(seen).map_or_else(RelayReadings::default, |heard| RelayReadings {
        age_ms: heard.age_ms.or(Some(seen.uptime_ms)),
        gaps: heard.gaps,
    });
    let fenced = Fence::ALL.map(|fence| (fence.as_str(), lead.fenced_total(fence)));
    let counts = seen.context.cluster.as_ref().and_then(|cluster| cluster.tokens.as_ref());
    let counted = |event| counts.map_or(0, |tokens| tokens.counts.of(event));
    let limits = seen.context.cluster.as_ref().and_then(|cluster| cluster.limits.as_ref());
    NodeReadings {
        role: lead.role(),
        epoch: leads_in(seen),
        relay,
        changes_age_ms: seen.context.auth.changes().map(|reading| reading.age_ms),
        fenced,
        tokens: TokenEvent::ALL.map(|event| (event.as_str(), counted(event))),
        limits: limits.map(|limits| limits.tally()).unwrap_or_default(),
    }
}

/// Whether this node shows what another tells it.
fn is_told(seen: &Seen<'_>) -> bool {
    seen.standing == Standing::Relayed
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

fn clock(seen: &Seen<'_>) -> HealthClock {
    let ahead_of_exchange_ms = clock_ahead_ms(seen);
    HealthClock { ahead_of_exchange_ms, set: Mark(seen.context.clock.is_set()) }
}

fn admin_listener(seen: &Seen<'_>) -> Option<HealthAdminListener> {
    let failure = seen.context.admin_failure.clone()?;
    Some(HealthAdminListener { failure })
}

fn backup(seen: &Seen<'_>) -> Option<HealthBackup> {
    let record = seen.store_check.last_backup()?;
    let succeeded = record.succeeded_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    Some(HealthBackup { succeeded_ist: succeeded.map(Instant), failed: record.failed() })
}

fn reload(seen: &Seen<'_>) -> Option<HealthReload> {
    let refused_at = seen.context.reloads.refused_at()?;
    Some(HealthReload { refused_ist: Instant(refused_at) })
}

/// The last date of which the calendar knows whether the market trades.
fn calendar_until(seen: &Seen<'_>) -> Option<Date> {
    let today = clock::zoned(seen.context.clock.now()).date();
    seen.context.calendar.covered_until(today)
}

/// The midnight after it.
fn calendar_ends(seen: &Seen<'_>) -> Option<Timestamp> {
    let after = calendar_until(seen)?.tomorrow().ok()?;
    Some(clock::instant(after.at(0, 0, 0, 0)))
}

fn log_report() -> HealthLog {
    HealthLog { lines_dropped: log::lines_dropped(), writes_failed: log::writes_failed() }
}

/// The market, and what is shown of it.
fn market(seen: &Seen<'_>) -> HealthMarket {
    let instruments = seen.context.instruments.load();
    let age = seen.snapshot.age();
    HealthMarket {
        phase: seen.status.phase,
        calendar_known: seen.status.calendar_known,
        calendar_until: calendar_until(seen).map(Day),
        as_of_ist: age.map(|age| Instant(age.as_of)),
        delay_s: age.and_then(|age| age.delay_s).map(Delay),
        stale: age.map(|age| age.stale),
        source: age.map(|age| age.source),
        instruments: instruments.len(),
        instruments_origin: instruments.origin().as_str(),
    }
}

/// A feed, which may be switched off.
fn feed_report(seen: &Seen<'_>, feed: Option<&FeedState>) -> Feed {
    let Some(feed) = feed else {
        let (state, age_ms, delay_s, failure) = (FeedWord::Off, None, None, None);
        return Feed { state, age_ms, delay_s, rounds: 0, failures: 0, failure, ticker: None };
    };
    let succeeded_mono_ms = feed.succeeded_mono_ms();
    let (rounds, failures) = feed.counts();
    Feed {
        state: feed_state(seen, feed),
        age_ms: succeeded_mono_ms.map(|at| seen.now_mono_ms.saturating_sub(at)),
        delay_s: succeeded_mono_ms.and_then(|_| feed.time().delay_of_primary_s()).map(Delay),
        rounds,
        failures,
        failure: feed.failure().map(str::to_owned),
        ticker: ticker(seen, feed.source()),
    }
}

fn ticker(seen: &Seen<'_>, source: Source) -> Option<HealthTicker> {
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
        failure: reading.failure,
    })
}

/// What the ticker tells of itself, and whether what it brings is believed.
fn ticker_reading(seen: &Seen<'_>) -> TickerReading {
    TickerReading { live: seen.ticking.is_live(), ..seen.context.ticker.reading() }
}

/// How far the machine's clock is ahead of the exchange's. Nothing while some feed is healthy: one
/// that is not asked any more may still hold what it said of a clock that was put right since.
fn clock_ahead_ms(seen: &Seen<'_>) -> Option<i64> {
    if seen.feeds.any_healthy(seen.context.l1.freshness(), seen.now_mono_ms) {
        return None;
    }
    seen.feeds.iter().find_map(|feed| feed.clock_ahead_ms(seen.now_mono_ms))
}

fn index_state(seen: &Seen<'_>) -> &'static str {
    match seen.snapshot.age() {
        None if seen.feeds.all_failed() => "failing",
        None => "starting",
        Some(age) if age.stale => "stale",
        Some(_) => "ok",
    }
}

fn quotes_state(seen: &Seen<'_>) -> &'static str {
    let healthy = seen.feeds.any_healthy(seen.context.l1.freshness(), seen.now_mono_ms);
    match (healthy, seen.feeds.all_failed()) {
        (true, _) => "ok",
        _ if is_told(seen) => "ok",
        (false, true) => "failing",
        (false, false) if seen.feeds.have_answered() => "stale",
        (false, false) => "starting",
    }
}

fn instruments_state(seen: &Seen<'_>) -> &'static str {
    let fetched = seen.context.instruments.load().origin() == Origin::BrokerA;
    match (seen.instruments.is_failing(), fetched) {
        (true, _) => "failing",
        (false, true) => "ok",
        // The embedded list serves until a token brings the day's.
        (false, false) => "paused",
    }
}

/// The cause first, where one is known: what an operator would mend.
fn feed_state(seen: &Seen<'_>, feed: &FeedState) -> FeedWord {
    let (context, now_mono_ms) = (seen.context, seen.now_mono_ms);
    let now = context.clock.now();
    let token = context.token.status(now);
    let is_broker_a = feed.source() == Source::BrokerA;
    match feed.readiness() {
        Readiness::Off => return FeedWord::Off,
        Readiness::NoPermission => return FeedWord::NoPermission,
        Readiness::NoToken if token.initialized => return FeedWord::TokenDead,
        Readiness::NoToken if !context.broker_a.has_app() => return FeedWord::Off,
        Readiness::NoToken => return FeedWord::NoToken,
        Readiness::Open(_) => return FeedWord::Open,
        Readiness::Follows => return FeedWord::Relayed,
        _ if is_broker_a && token.no_permission => return FeedWord::NoPermission,
        Readiness::Paced(_) | Readiness::Ready => {}
    }
    if feed.is_timed_out(now_mono_ms) {
        return FeedWord::Hanging;
    }
    let freshness = context.l1.freshness();
    let stands_in = !seen.feeds.broker_a().is_healthy(freshness, now_mono_ms) && !is_told(seen);
    let in_use = is_broker_a || stands_in;
    let (polls, _) = feed.counts();
    match feed.failure() {
        // One failure may be chance. More are reported even while the prices are still fresh.
        Some(_) if feed.keeps_failing() => FeedWord::Failing,
        _ if feed.is_healthy(freshness, now_mono_ms) => FeedWord::Ok,
        Some(_) => FeedWord::Failing,
        // Nobody has asked it for a while, or ever.
        None if !in_use || polls == 0 => FeedWord::Standby,
        // After the bell one that is behind shows yesterday's close for as long as it is behind.
        None if feed.time().is_before_the_bell(&context.calendar, now) => FeedWord::Starting,
        None if feed.is_stalled(freshness, now_mono_ms) => FeedWord::Mute,
        None if feed.succeeded_mono_ms().is_none() => FeedWord::Starting,
        None => FeedWord::Stale,
    }
}

// ---- Stats
//
// Counts the warmers' runs: how many, how many failed, when the last one succeeded.
//
// State of the scheduler's thread, which alone counts; others read the copy that is made once a
// second with the health report. Decides nothing.

/// A warmer, as health names it.
///
/// A run is one attempt, counted when the scheduler hears of its end:
///
/// | warmer | a run is | and succeeds when |
/// |---|---|---|
/// | index | making the snapshot after a poll has ended | there is one, and it is not stale |
/// | quotes | a poll, of either feed | it brought every index asked for |
/// | instruments | a download of broker A's lists | both were read |
/// | persist | a write to the second level | it was stored |
/// | close | a call for closing prices, or a step on the store | it was answered, or done |
/// | signals | a call for candles, or a step on the store | it was answered, or done |
///
/// A poll or call that rate limit, circuit or token held back is none, nor is a write where there
/// is no second level. A job that was lost is a failure. What is done at start, before the
/// scheduler runs, is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Warmer {
    Index,
    Quotes,
    Instruments,
    Persist,
    Close,
    Signals,
}

impl Warmer {
    /// Every one, in the order of health.
    pub(super) const ALL: [Self; 6] =
        [Self::Index, Self::Quotes, Self::Instruments, Self::Persist, Self::Close, Self::Signals];

    /// The name that health and metrics use.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Quotes => "quotes",
            Self::Instruments => "instruments",
            Self::Persist => "persist",
            Self::Close => "close",
            Self::Signals => "signals",
        }
    }
}

/// All warmers' runs.
pub(crate) struct WarmerStats {
    machine: Clock,
    /// In the order of [`Warmer::ALL`].
    runs: [Runs; Warmer::ALL.len()],
    /// A poll ended since the snapshot was last made.
    poll_ended: bool,
}

impl WarmerStats {
    /// Nothing counted yet.
    pub(super) fn new(machine: Clock) -> Self {
        Self { machine, runs: Default::default(), poll_ended: false }
    }

    /// What is counted of one warmer.
    pub(super) fn of(&self, warmer: Warmer) -> Runs {
        self.runs[warmer as usize]
    }

    /// Counts the run whose end an event tells. Polls are counted after they were judged: see
    /// [`polled`](Self::polled).
    pub(super) fn hear(&mut self, event: &Event, context: &WarmerContext) {
        let (warmer, succeeded) = match event {
            Event::Instruments(fetched) => (Warmer::Instruments, Some(is_ok(fetched.as_deref()))),
            Event::Persisted(done) => {
                let is_there = context.l2.stats().backend != "none";
                (Warmer::Persist, is_there.then_some(is_ok(done.as_ref())))
            }
            Event::ClosePrices(_, answer) => (Warmer::Close, called(answer.as_deref())),
            Event::Close(outcome) => (Warmer::Close, Some(is_ok(outcome.as_deref()))),
            Event::Candles(_, answer) => (Warmer::Signals, called(answer.as_deref())),
            Event::Signals(outcome) => (Warmer::Signals, Some(is_ok(outcome.as_deref()))),
            Event::Polled(..)
            | Event::Kick(_)
            | Event::Pushed(..)
            | Event::Heard(_)
            | Event::Told(_)
            | Event::WantTold
            | Event::List(_)
            | Event::StoreChecked
            | Event::Files(_)
            | Event::Stop => return,
        };
        if let Some(succeeded) = succeeded {
            self.ended(warmer, succeeded);
        }
    }

    /// Counts a poll as it was judged.
    pub(super) fn polled(&mut self, ended: &Ended) {
        match ended {
            Ended::NotAsked => return,
            Ended::Succeeded => self.ended(Warmer::Quotes, true),
            Ended::Failed(_) | Ended::Refused(_) => self.ended(Warmer::Quotes, false),
        }
        self.poll_ended = true;
    }

    /// The snapshot was made anew, as in each tick; `fresh`: there is one that is not stale.
    pub(super) fn snapshot(&mut self, fresh: bool) {
        if std::mem::take(&mut self.poll_ended) {
            self.ended(Warmer::Index, fresh);
        }
    }

    fn ended(&mut self, warmer: Warmer, succeeded: bool) {
        let runs = &mut self.runs[warmer as usize];
        runs.runs += 1;
        if succeeded {
            runs.succeeded_ms = Some(self.machine.now_ms());
        } else {
            runs.failures += 1;
        }
    }
}

fn is_ok<T, E>(outcome: Option<&Result<T, E>>) -> bool {
    outcome.is_some_and(Result::is_ok)
}

/// Whether a call succeeded; `None` where it did not go out.
fn called<T>(outcome: Option<&Result<T, BrokerError>>) -> Option<bool> {
    match outcome {
        Some(Err(BrokerError { kind: BrokerErrorKind::NotReady(_), .. })) => None,
        Some(Ok(_)) => Some(true),
        Some(Err(_)) | None => Some(false),
    }
}

#[cfg(test)]
mod stats_tests {
    use super::*;
    use crate::base::ManualClock;
    use crate::brokers::Readiness;

    fn stats() -> (ManualClock, WarmerStats) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let stats = WarmerStats::new(clock.clone());
        (clock, stats)
    }

    #[test]
    fn places_are_those_of_the_list() {
        for (at, warmer) in Warmer::ALL.into_iter().enumerate() {
            assert_eq!(warmer as usize, at);
        }
    }

    #[test]
    fn a_failure_leaves_the_time_of_the_last_success() {
        let (clock, mut stats) = stats();
        assert_eq!(stats.of(Warmer::Quotes), Runs::default());
        stats.polled(&Ended::Failed("gone".into()));
        assert_eq!(stats.of(Warmer::Quotes).succeeded_ms, None);
        stats.polled(&Ended::Succeeded);
        let succeeded_ms = Some(clock.now_ms());
        clock.advance_ms(60_000);
        stats.polled(&Ended::Refused("no such symbol".into()));
        stats.polled(&Ended::NotAsked);
        assert_eq!(stats.of(Warmer::Quotes), Runs { runs: 3, failures: 2, succeeded_ms });
    }

    #[test]
    fn the_snapshot_counts_once_after_polls_and_by_itself_never() {
        let (_, mut stats) = stats();
        stats.snapshot(true);
        stats.polled(&Ended::NotAsked);
        stats.snapshot(true);
        assert_eq!(stats.of(Warmer::Index).runs, 0);
        stats.polled(&Ended::Failed("gone".into()));
        stats.polled(&Ended::Succeeded);
        stats.snapshot(false);
        stats.snapshot(false);
        stats.polled(&Ended::Failed("gone".into()));
        stats.snapshot(true);
        let Runs { runs, failures, succeeded_ms } = stats.of(Warmer::Index);
        assert_eq!((runs, failures, succeeded_ms.is_some()), (2, 1, true));
    }

    #[test]
    fn a_call_that_was_held_back_is_no_run() {
        let held = Err::<(), _>(BrokerError::not_ready("broker_a", Readiness::NoToken));
        assert_eq!(called(Some(&held)), None);
        assert_eq!(called(Some(&Ok(()))), Some(true));
        let refused = Err::<(), _>(BrokerError::new("broker_a", BrokerErrorKind::TokenDead, ""));
        assert_eq!(called(Some(&refused)), Some(false));
        assert_eq!(called::<()>(None), Some(false), "lost");
    }
}
