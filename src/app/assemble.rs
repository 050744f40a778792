//! Builds the subsystems from the settings and connects them. Nothing runs by itself yet. Main
//! thread, at start. Benches and tests without warmers or sockets also use this.

use std::io;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::admin::MetricSources;
use crate::api::{
    AdminSecrets, Administration, BrokerAccess, CorsInForce, EventStreams, KeptCandles,
    PortfolioState, SNAPSHOT_EVENT, State, TradesState, description,
};
use crate::app::securities;
use crate::app::start_error::StartError;
use crate::auth::throttle::Throttle;
use crate::auth::{Auth, ChangesParts};
use crate::base::{ByBroker, BySource, Clock, Source, clock};
use crate::brokers::{BrokerA, BrokerB, Public, SharedToken, login_at};
use crate::cache::l2::Absent;
use crate::cache::{L1, Pending, Responses, SecondLevel, SqliteL2};
use crate::config::Config;
use crate::config::composed::PACKAGE_STATE_DIR;
use crate::http::PublishedJson;
use crate::market::{
    FairValues, Index, IndexList, InstrumentList, MarketCalendar, Sectors, Universe,
};
use crate::nodes::Lead;
use crate::nodes::lease_thread::LeaseParts;
use crate::nodes::valkey::{Address, NodeSecret, Refusals};
use crate::ops::RefusalLines;
use crate::ops::state_lock::InstanceLock;
use crate::rt::{Lane, LaneSpec};
use crate::status;
use crate::store::Store;
use crate::store::settings::StoreSettings;
use crate::warmers::{Mailbox, Publication, Reporter, WarmerContext};
use crate::web::Site;

#[cfg(feature = "engines")]
use crate::nodes::second_level::ValkeyL2;
#[cfg(feature = "engines")]
use crate::nodes::valkey::{Installation, Server, ValkeySettings};

/// Most upstream jobs that wait per lane: the scheduler has one in flight per feed, besides the
/// daily list.
const UPSTREAM_QUEUE_MAX: usize = 64;
/// Most concurrent calls of the shared feed: a batch, a login, a daily list. Separate from users'
/// syncs, which may hang by the dozen.
const FEED_THREADS: usize = 3;
/// Most concurrent calls to the public provider: a batch of quotes and a symbol's candles. Neither
/// warmer makes a second call before its first has ended.
const PUBLIC_THREADS: usize = 2;
/// Most syncs of users that wait per broker: as many as eight threads complete in twice a usual
/// sync's time, so that the last one still meets its deadline.
const SYNC_QUEUE_MAX: usize = 64;
/// Threads that make users' documents, and documents that may wait. Each takes some milliseconds.
const PORTFOLIO_THREADS: usize = 2;
const PORTFOLIO_QUEUE_MAX: usize = 512;
/// Most exports that wait, one per user: some seconds' work of the one thread.
const EXPORT_QUEUE_MAX: usize = 32;
/// Most files and ledgers that wait: some seconds' work of the one thread, within their deadline.
const LEDGER_QUEUE_MAX: usize = 32;
/// Most waiting writes to the second level: one in flight at a time.
const CACHE_QUEUE_MAX: usize = 8;
/// Most waiting steps of the evening's revaluation: one at a time.
const CLOSE_QUEUE_MAX: usize = 1;

/// Most waiting jobs of the signals warmer: one at a time.
const SIGNALS_QUEUE_MAX: usize = 1;

/// The state of the edge, and the context of the scheduler.
pub struct Assembled {
    pub state: State,
    pub context: WarmerContext,
    pub mailbox: Mailbox,
    /// Makes the report that `state` and `metric_sources` read.
    pub reporter: Reporter,
    pub metric_sources: MetricSources,
    /// The secret from which keys other than those of tokens are derived.
    pub secret: Arc<NodeSecret>,
    /// The server of the settings, if they name one.
    #[cfg(feature = "engines")]
    pub(super) shared: Option<SharedServer>,
}

/// The server that nodes share, the namespace of this installation there, and the second cache
/// level on it.
#[cfg(feature = "engines")]
#[derive(Clone)]
pub(super) struct SharedServer {
    pub server: Arc<Server>,
    pub installation: Arc<Installation>,
    pub l2: Arc<ValkeyL2>,
}

/// Builds everything behind the listener. Opens the databases of an existing state directory, for
/// writing if its lock is held.
///
/// # Errors
/// [`StartError`].
pub fn assemble(
    config: &Config,
    lock: &Arc<InstanceLock>,
    clock: &Clock,
) -> Result<Assembled, StartError> {
    let calendar = Arc::new(MarketCalendar::load(config.market.calendar_file.as_deref())?);
    let indices = Arc::new(IndexList::load(config.market.indices_file.as_deref())?);
    warn_of_calendar(&calendar, clock);
    let store = Store::open(&config.state_dir, &store_settings(config), lock, clock)?;
    let store = Arc::new(store);
    let auth = Auth::start(&config.auth, &config.state_dir, Arc::clone(&store), clock)?;
    let auth = Arc::new(auth);
    let secret = Arc::new(match &config.auth.jwt_secret {
        Some(secret) => NodeSecret::with(secret.clone(), config.auth.jwt_previous_secrets.as_ref()),
        None => NodeSecret::new(auth.kept_key()),
    });
    let levels = second_level(config, lock, &store, &secret)?;
    #[cfg(feature = "engines")]
    let shared = levels.shared.clone();
    let (context, mailbox) = context(config, clock, calendar, indices, store, levels, &auth)?;
    let state = state(config, &context, auth)?;
    let metric_sources = metric_sources(config, &context, &state);
    let tokens = ByBroker::of(|broker| Arc::clone(state.brokers[broker].client.token()));
    let has_backup_timer = config.state_dir == Path::new(PACKAGE_STATE_DIR);
    let reporter =
        status::reporter(&state.health, &metric_sources.report, tokens, has_backup_timer);
    Ok(Assembled {
        state,
        context,
        mailbox,
        reporter,
        metric_sources,
        secret,
        #[cfg(feature = "engines")]
        shared,
    })
}

/// The store's settings, with the name of this node's connections at the server.
pub(super) fn store_settings(config: &Config) -> StoreSettings {
    StoreSettings {
        connection_name: config.nodes.connection_name(),
        ..config.store.clone()
    }
}

fn lane(
    clock: &Clock,
    name: &'static str,
    threads: usize,
    queue_max: usize,
) -> io::Result<Arc<Lane>> {
    Lane::start(
        &LaneSpec {
            name,
            threads,
            queue_max,
        },
        clock,
    )
    .map(Arc::new)
}

/// The lane of the signals, which yields to all others.
fn signals_lane(clock: &Clock) -> io::Result<Arc<Lane>> {
    let spec = LaneSpec {
        name: "signals",
        threads: 1,
        queue_max: SIGNALS_QUEUE_MAX,
    };
    Lane::start_lowered(&spec, clock).map(Arc::new)
}

fn context(
    config: &Config,
    clock: &Clock,
    calendar: Arc<MarketCalendar>,
    indices: Arc<IndexList>,
    store: Arc<Store>,
    levels: Levels,
    auth: &Arc<Auth>,
) -> Result<(WarmerContext, Mailbox), StartError> {
    let lane = |name, threads, queue_max| lane(clock, name, threads, queue_max);
    let token = Arc::new(SharedToken::from_settings(&config.broker_a, clock.now()));
    let broker_a =
        BrokerA::new(&config.broker_a, &config.upstream, clock.clone(), Arc::clone(&token))?;
    let public = public(config, clock, &indices)?;
    let l1 = L1::of(&config.cache, indices.all().map(|index| index.symbol.clone()));
    let mailbox = Mailbox::new();
    let leads = indices.leads().map(|lead| lead.symbol.clone()).into();
    let ticker = broker_a.start_ticker(leads, mailbox.push(Source::BrokerA))?;
    let context = WarmerContext {
        clock: clock.clone(),
        lead: Lead::alone(clock),
        nodes: None,
        calendar,
        indices,
        broker_a: Arc::new(broker_a),
        ticker,
        broker_a_lane: lane("broker-a-feed", FEED_THREADS, UPSTREAM_QUEUE_MAX)?,
        token,
        public: public.map(Arc::new),
        public_lane: lane("public", PUBLIC_THREADS, UPSTREAM_QUEUE_MAX)?,
        cache_lane: lane("cache", 1, CACHE_QUEUE_MAX)?,
        close_lane: lane("close", 1, CLOSE_QUEUE_MAX)?,
        signals_lane: signals_lane(clock)?,
        universe: Universe::load(config.market.universe_file.as_deref())?,
        sectors: sectors(config)?,
        chart_only_max: config.market.candles_beyond_max,
        at_hand: None,
        publication: Publication::default(),
        responses: Arc::new(Responses::new(config.cache.answers_bytes_max)),
        l1: Arc::new(l1),
        known_closes: Arc::default(),
        movers: Arc::default(),
        l2: levels.l2,
        own_l2: levels.own,
        refusals: levels.refusals,
        store,
        auth: Arc::clone(auth),
        crypto_lane: Arc::clone(auth.lane()),
        store_lane: lane("store-probe", 1, 1)?,
        pending: Pending::new(config.cache.waiters_max, clock, &mailbox.kick()),
        instruments: Arc::new(ArcSwap::from_pointee(InstrumentList::embedded())),
        snapshot: Arc::new(PublishedJson::as_event(SNAPSHOT_EVENT)),
        heartbeat: Arc::default(),
        reloads: Arc::default(),
        admin_failure: None,
        state_dir: config.state_dir.clone(),
        answer_in_ms: Arc::default(),
        cache_settings: config.cache.clone(),
        close: config.close.clone(),
        upstream: config.upstream.clone(),
        interval_ms: BySource([
            config.broker_a.quote_interval_ms,
            config.public.batch_interval_ms,
        ]),
    };
    Ok((context, mailbox))
}

fn sectors(config: &Config) -> Result<Arc<ArcSwap<Sectors>>, StartError> {
    let sectors = Sectors::load(config.market.sectors_file.as_deref())?;
    Ok(Arc::new(ArcSwap::from_pointee(sectors)))
}

/// The public provider, which knows the indices by symbols of its own; `None` if switched off.
fn public(
    config: &Config,
    clock: &Clock,
    indices: &IndexList,
) -> Result<Option<Public>, StartError> {
    if !config.public.enabled {
        return Ok(None);
    }
    let spelled = |index: &Index| {
        index
            .public
            .clone()
            .map(|public| (index.symbol.clone(), public))
    };
    let spellings = indices.all().filter_map(spelled).collect();
    let leads = indices.leads().map(|lead| lead.symbol.clone()).into();
    Ok(Some(Public::new(
        &config.public,
        &config.upstream,
        clock.clone(),
        spellings,
        leads,
    )?))
}

/// The clients of all brokers, each with lanes of its own.
fn brokers(config: &Config, context: &WarmerContext) -> Result<ByBroker<BrokerAccess>, StartError> {
    let lane = |name, threads| {
        let spec = LaneSpec {
            name,
            threads,
            queue_max: SYNC_QUEUE_MAX,
        };
        Lane::start(&spec, &context.clock).map(Arc::new)
    };
    let broker_b = BrokerB::new(&config.broker_b, &config.upstream, &context.clock)?;
    Ok(ByBroker([
        BrokerAccess {
            client: context.broker_a.clone(),
            lane: lane("broker-a", config.broker_a.lane_threads)?,
            sessions_lane: Some(lane("broker-a-sessions", 1)?),
        },
        BrokerAccess {
            client: Arc::new(broker_b),
            lane: lane("broker-b", config.broker_b.lane_threads)?,
            sessions_lane: None,
        },
    ]))
}

fn state(config: &Config, context: &WarmerContext, auth: Arc<Auth>) -> Result<State, StartError> {
    Ok(State {
        clock: context.clock.clone(),
        calendar: ArcSwap::new(Arc::clone(&context.calendar)),
        indices: Arc::clone(&context.indices),
        auth,
        store: Arc::clone(&context.store),
        snapshot: Arc::clone(&context.snapshot),
        event_streams: Arc::new(EventStreams::of(Arc::clone(&context.snapshot))),
        signals: Arc::clone(&context.publication.signals),
        signals_record: Arc::clone(&context.publication.record),
        signal_list: Arc::clone(&context.publication.list),
        candle_work: Arc::clone(&context.publication.candles),
        candles: KeptCandles::default(),
        l1: Arc::clone(&context.l1),
        movers: Arc::clone(&context.movers),
        pending: context.pending.clone(),
        instruments: Arc::clone(&context.instruments),
        universe: ArcSwap::from_pointee(context.universe.clone()),
        sectors: Arc::clone(&context.sectors),
        health: Arc::default(),
        broker_a: Arc::clone(&context.broker_a),
        brokers: brokers(config, context)?,
        administration: Administration::new(
            admin_secrets(config),
            &config.upstream,
            context.clock.clone(),
        ),
        writes: Throttle::new(config.store.writes_per_user_per_minute, context.clock.clone()),
        answer_in_ms: Arc::clone(&context.answer_in_ms),
        miss_wait_ms: config.cache.miss_wait_ms,
        cors: CorsInForce::new(&config.http.allowed_origins),
        portfolio: portfolio_state(config, context)?,
        trades: trades_state(config, context)?,
        refusal_lines: RefusalLines::default(),
        login_pages: Some(ByBroker::of(|broker| login_at(broker).page(config.own_app(broker).url))),
        site: config.web.on.then(Site::embedded),
        is_read_only: false,
        description: description(),
    })
}

/// The administrator's secrets from the settings.
pub(super) fn admin_secrets(config: &Config) -> AdminSecrets {
    ByBroker::of(|broker| config.own_app(broker).admin_secret.clone())
}

fn portfolio_state(config: &Config, context: &WarmerContext) -> Result<PortfolioState, StartError> {
    let spec = LaneSpec {
        name: "portfolio",
        threads: PORTFOLIO_THREADS,
        queue_max: PORTFOLIO_QUEUE_MAX,
    };
    let exports = LaneSpec {
        name: "export",
        threads: 1,
        queue_max: EXPORT_QUEUE_MAX,
    };
    Ok(PortfolioState::new(
        &context.clock,
        Arc::clone(&context.responses),
        securities::at_start(config),
        Arc::new(Lane::start(&spec, &context.clock)?),
        Arc::new(Lane::start_lowered(&exports, &context.clock)?),
        &config.upstream,
        config.broker_a.api_key.as_ref(),
    ))
}

fn trades_state(config: &Config, context: &WarmerContext) -> Result<TradesState, StartError> {
    let spec = LaneSpec {
        name: "ledger",
        threads: 1,
        queue_max: LEDGER_QUEUE_MAX,
    };
    let lane = Lane::start_lowered(&spec, &context.clock)?;
    let fair_values = FairValues::load(config.market.fmv_file.as_deref())?;
    Ok(TradesState::new(Arc::new(lane), fair_values, &config.store, &context.clock))
}

/// Sources of metrics and probes besides the edge's state.
fn metric_sources(config: &Config, context: &WarmerContext, state: &State) -> MetricSources {
    let of_brokers = state.brokers.0.iter();
    let of_brokers =
        of_brokers.flat_map(|access| std::iter::once(&access.lane).chain(&access.sessions_lane));
    let before = [
        &context.broker_a_lane,
        &context.public_lane,
        &context.cache_lane,
        &context.close_lane,
        &context.signals_lane,
        &context.crypto_lane,
        &context.store_lane,
    ];
    let after = [
        &state.portfolio.lane,
        &state.portfolio.export_lane,
        &state.trades.lane,
    ];
    let lanes = before.into_iter().chain(of_brokers).chain(after);
    MetricSources {
        clock: context.clock.clone(),
        state_dir: config.state_dir.clone(),
        lanes: lanes.map(Arc::clone).collect(),
        report: Arc::default(),
        responses: Arc::clone(&context.responses),
        l2: Arc::clone(&context.l2),
        public: context.public.clone(),
    }
}

/// The file, or the server of the settings together with the file.
fn second_level(
    config: &Config,
    lock: &InstanceLock,
    store: &Store,
    secret: &Arc<NodeSecret>,
) -> Result<Levels, StartError> {
    let file = second_level_on_disk(config, lock);
    match &config.valkey.url {
        Some(url) => shared_second_level(config, url, file, (store, secret)),
        None => Ok(Levels {
            l2: file,
            own: None,
            refusals: Arc::default(),
            #[cfg(feature = "engines")]
            shared: None,
        }),
    }
}

/// See [`WarmerContext`].
struct Levels {
    l2: Arc<dyn SecondLevel>,
    own: Option<Arc<dyn SecondLevel>>,
    refusals: Arc<Refusals>,
    #[cfg(feature = "engines")]
    shared: Option<SharedServer>,
}

/// Does not wait for the server: while it is away the service uses its memory.
#[cfg(feature = "engines")]
fn shared_second_level(
    config: &Config,
    url: &Address,
    file: Arc<dyn SecondLevel>,
    (store, secret): (&Store, &Arc<NodeSecret>),
) -> Result<Levels, StartError> {
    let ValkeySettings {
        password, ca_file, ..
    } = &config.valkey;
    let server = Server::new(url.clone(), password.clone(), ca_file.as_deref())?;
    let server = Arc::new(server.named(config.nodes.connection_name()));
    let refusals = Arc::clone(&server.refusals);
    let installation = Arc::new(match config.valkey.namespace.clone() {
        Some(namespace) => Installation::named(namespace, secret),
        None => Installation::of_database(store, &config.state_dir, secret),
    });
    let l2 = Arc::new(ValkeyL2::new(&server, &installation, config.cache.l2_records_max));
    let shared = SharedServer {
        server,
        installation,
        l2: Arc::clone(&l2),
    };
    Ok(Levels {
        l2,
        own: Some(file),
        refusals,
        shared: Some(shared),
    })
}

#[cfg(not(feature = "engines"))]
fn shared_second_level(
    _: &Config,
    url: &Address,
    _: Arc<dyn SecondLevel>,
    _: (&Store, &Arc<NodeSecret>),
) -> Result<Levels, StartError> {
    Err(StartError::NotBuiltIn {
        setting: "BHAV_CACHE_URL",
        value: url.to_string(),
    })
}

/// The file. Without it prices are served, but do not survive a restart.
fn second_level_on_disk(config: &Config, lock: &InstanceLock) -> Arc<dyn SecondLevel> {
    let path = config.state_dir.join("l2.sqlite");
    if let Err(error) = lock.hold() {
        tracing::error!(
            %error,
            path = %path.display(),
            "the last prices are not kept for a restart"
        );
        return Arc::new(Absent);
    }
    match SqliteL2::open(&path, config.cache.l2_records_max) {
        Ok(l2) => Arc::new(l2),
        Err(error) => {
            tracing::error!(
                %error,
                path = %path.display(),
                "the last prices are not kept for a restart"
            );
            Arc::new(Absent)
        }
    }
}

fn warn_of_calendar(calendar: &MarketCalendar, clock: &Clock) {
    let today = clock::zoned(clock.now()).date();
    match calendar.covered_until(today) {
        Some(last) => tracing::info!(%last, "calendar known to the end of this date"),
        None => tracing::error!(
            %today,
            "no calendar for today: no close is official; give BHAV_CALENDAR_FILE"
        ),
    }
    for (date, session) in calendar.unconfirmed_sessions(today) {
        tracing::warn!(%date, session = session.name, "hours not confirmed by the exchange");
    }
}

/// What joins a node to others: its parts that are yet to be started.
pub(super) struct MembershipParts {
    pub(super) lease: LeaseParts,
    pub(super) changes: ChangesParts,
}
