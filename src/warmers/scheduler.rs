//! The scheduler: owns every task, runs the tasks in order, and passes events to them.
//!
//! Each task decides what to do when it is run, and keeps its state to itself. Only the scheduler
//! decides the order of the tasks, and which comes first if several want the same feed. Runs on the
//! thread `warm`.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::base::{Clock, Source, Symbol};
use crate::cache::movers::{Listing, Moment};
use crate::nodes::lead::Fence;
use crate::nodes::relay::{Evening, Update};
use crate::ops::{Exit, log};
use crate::rt::{staged, threads};
use crate::store::{Epoch, StoreError};
use crate::views::states::Role;
use crate::warmers::close::due::Judges;
use crate::warmers::close::{CloseTask, TickState as CloseTick};
use crate::warmers::context::WarmerContext;
use crate::warmers::follow::{FollowTask, WantedTask};
use crate::warmers::instruments::InstrumentsTask;
use crate::warmers::mailbox::{Event, EventSender, Mailbox, MarketFiles, Placed};
use crate::warmers::persist;
use crate::warmers::persist::PersistTask;
use crate::warmers::publish::RelayPublisher;
use crate::warmers::quotes::apply::QuoteSinks;
use crate::warmers::quotes::feed_state::{Answer, FeedState};
use crate::warmers::quotes::feeds::PriceOrigin;
use crate::warmers::quotes::judged_close::{index_stands, judge};
use crate::warmers::quotes::market_phase::MarketPhase;
use crate::warmers::quotes::poll::QuotesTask;
use crate::warmers::quotes::snapshot::{SnapshotContext, SnapshotTask};
use crate::warmers::quotes::ticking::TickingTask;
use crate::warmers::runs::WarmerStats;
use crate::warmers::signals::{SignalsTask, TickState as SignalsTick};
use crate::warmers::store_check::StoreCheck;

/// Longest sleep: health, `Date` and staleness are checked this often.
const TICK_MS: u64 = 200;

/// Symbols that nobody waits for are forgotten after this.
const UNWANTED_MS: u64 = 60_000;

/// Makes and publishes the report, from the state of every task. The scheduler calls it once a
/// second, so it must not block.
pub type Reporter = Box<dyn Fn(&Scheduler) + Send>;

/// Owner of every task.
pub struct Scheduler {
    pub(crate) context: WarmerContext,
    events: EventSender,
    pub(crate) market: MarketPhase,
    pub(crate) quotes: QuotesTask,
    pub(crate) ticking: TickingTask,
    pub(crate) snapshot: SnapshotTask,
    pub(crate) close: CloseTask,
    pub(crate) signals: SignalsTask,
    pub(crate) instruments: InstrumentsTask,
    pub(crate) persist: PersistTask,
    publisher: RelayPublisher,
    wanted: WantedTask,
    follow: FollowTask,
    /// The epoch in which this node led at the last check, and whether it polled feeds then.
    led: Option<Epoch>,
    asked: bool,
    pub(crate) store_check: StoreCheck,
    pub(crate) stats: WarmerStats,
    report: Reporter,
    pub(crate) started_mono_ms: u64,
    /// The monotonic time of the tick, and where this node's prices come from since then.
    pub(crate) now_mono_ms: u64,
    pub(crate) standing: PriceOrigin,
    /// The second, by the wall clock, of the last health report.
    reported_s: i64,
    /// The signals task still works on the previous universe.
    universe_changed: bool,
}

impl Scheduler {
    /// Creates a scheduler that does nothing yet; [`restore`](Self::restore) and [`run`](Self::run)
    /// follow.
    pub(super) fn new(context: WarmerContext, events: &EventSender, report: Reporter) -> Self {
        let now_mono_ms = context.clock.monotonic_ms();
        let polled = events.outcomes_by_source(Event::Polled);
        let closes = events.outcomes_by_source(Event::ClosePrices);
        let follow = FollowTask::new(
            events.outcomes(|_| Event::WantPublished),
            events.outcomes(Event::List),
            now_mono_ms,
        );
        Self {
            market: MarketPhase::new(&context, now_mono_ms),
            quotes: QuotesTask::new(&context, polled, now_mono_ms),
            ticking: TickingTask::new(),
            snapshot: SnapshotTask::new(),
            close: CloseTask::new(closes, events.outcomes(Event::Close)),
            signals: signals_task(&context, events),
            instruments: InstrumentsTask::new(events.outcomes(Event::Instruments)),
            persist: PersistTask::new(events.outcomes(Event::Persisted), context.own_l2.clone()),
            publisher: RelayPublisher::new(events.outcomes(Event::Published)),
            wanted: WantedTask::default(),
            standing: PriceOrigin::now(&context, &follow, now_mono_ms),
            follow,
            led: None,
            // A single node takes over from nobody.
            asked: context.lead.role() == Role::Alone,
            store_check: StoreCheck::new(events.outcomes(|_| Event::StoreChecked)),
            stats: WarmerStats::new(Clock::system()),
            report,
            started_mono_ms: now_mono_ms,
            now_mono_ms,
            reported_s: 0,
            universe_changed: false,
            events: events.clone(),
            context,
        }
    }

    /// Restores the stored state. It is served at once, marked stale.
    pub(super) fn restore(&mut self) {
        let context = &self.context;
        persist::restore(context);
        self.signals.restore(context);
        self.tick();
    }

    /// Runs until [`Event::Stop`].
    pub(super) fn run(mut self, events: &Receiver<Event>) {
        loop {
            let clock = &self.context.clock;
            let sleep_ms = self.sleep_ms();
            let mut next = match staged::is_set() {
                true => staged::receive(events, Some(Duration::from_millis(sleep_ms))).ok(),
                false => clock.wait_ms(sleep_ms, |limit| events.recv_timeout(limit).ok()),
            };
            while let Some(event) = next {
                if !self.hear(event) {
                    let now_ms = self.context.clock.now_ms();
                    self.follow_leadership(self.context.clock.monotonic_ms());
                    self.persist.store_now(&*self.context.l2, now_ms);
                    return;
                }
                next = events.try_recv().ok();
            }
            self.tick();
        }
    }

    /// Passes an event to its task. False if the scheduler should end.
    fn hear(&mut self, event: Event) -> bool {
        self.stats.hear(&event, &self.context);
        let now_mono_ms = self.context.clock.monotonic_ms();
        match event {
            // A kick only wakes the scheduler. Dropping `place` frees the queue's single slot for
            // the next one.
            Event::Kick(place) => drop(place),
            Event::Polled(source, answer) => {
                self.ticking.polled(source, answer.as_deref(), now_mono_ms);
                let ended = self.take_quotes(|quotes, _, sinks| {
                    quotes.answered(source, answer, sinks, now_mono_ms)
                });
                self.stats.polled(&ended);
            }
            // A follower ignores ticks of its own: it receives prices from the leader.
            Event::Pushed(Source::BrokerA, _) if !self.context.lead.may_ask() => {}
            Event::Pushed(source, Placed { item: batch, .. }) => {
                let ticked_mono_ms = batch.times.asked_mono_ms;
                self.ticking.pushed(source, &batch, now_mono_ms);
                self.take_quotes(|quotes, _, sinks| {
                    quotes.pushed(source, *batch, sinks, now_mono_ms);
                });
                self.context.ticker.published(ticked_mono_ms);
            }
            Event::Heard(Placed { item: update, .. }) => self.take_update(*update, now_mono_ms),
            Event::Published(sent) => {
                if self.publisher.ended(sent) {
                    self.step_down();
                }
            }
            Event::WantPublished => self.follow.want_in_flight = false,
            Event::List(found) => self.follow.listed(found, &self.context),
            Event::Instruments(fetched) => {
                if let Some((list, tokens)) = self.instruments.ended(fetched) {
                    self.signals.histories.learn_tokens(tokens);
                    self.persist.add_instruments(&list);
                    self.context.instruments.store(Arc::new(list));
                }
            }
            Event::Persisted(written) => self.persist.ended(written),
            Event::ClosePrices(source, answer) => self.take_closes(source, answer, now_mono_ms),
            Event::Close(outcome) => {
                self.note_fence(
                    outcome
                        .as_deref()
                        .and_then(|outcome| outcome.as_ref().err()),
                );
                self.close
                    .ended(outcome, &self.context.known_closes, now_mono_ms);
            }
            Event::Candles(source, answer) => {
                self.signals.take_candles(source, answer, now_mono_ms);
            }
            Event::Signals(outcome) => {
                self.note_fence(
                    outcome
                        .as_deref()
                        .and_then(|outcome| outcome.as_ref().err()),
                );
                self.signals.ended(outcome, now_mono_ms);
            }
            Event::StoreChecked => self.store_check.in_flight = false,
            Event::Files(files) => self.take_files(*files),
            Event::Stop => return false,
        }
        true
    }

    /// Takes an update of the leader, unless this node leads in the same epoch or a later one.
    fn take_update(&mut self, update: Update, now_mono_ms: u64) {
        if let Some(own) = self.context.lead.epoch() {
            // A node that leads hears itself, and earlier leaders.
            if update.epoch <= own {
                return;
            }
            self.step_down();
        }
        self.take_quotes(|_, follow, sinks| follow.hear(update, sinks, now_mono_ms));
    }

    /// Takes a feed's answer about closing prices, after those far from their previous close are
    /// judged.
    fn take_closes(&mut self, source: Source, mut answer: Option<Box<Answer>>, now_mono_ms: u64) {
        let Self {
            context,
            close,
            quotes,
            ..
        } = self;
        if let Some(Ok(batch)) = answer.as_deref_mut() {
            let shown = |symbol: &Symbol| context.l1.held(symbol, now_mono_ms);
            quotes.evidence.weigh(source, batch, &shown, now_mono_ms);
        }
        let now = context.clock.now();
        let listed = context.instruments.load_full();
        let judges = Judges {
            index_stands: &|quotes| index_stands(context, quotes, now),
            judge: &|quote, stands| judge(context, quote, stands, now_mono_ms),
            derivatives_of: &|symbol| listed.derivatives_of(symbol),
        };
        close.take_prices(source, answer, quotes.feeds.of(source), &judges, now_mono_ms);
    }

    /// Ends this node's lead, because another has led since.
    fn step_down(&self) {
        tracing::warn!(
            "another node leads in a later epoch; this node follows and will stand for election \
             again"
        );
        self.context.lead.fenced(Fence::Relay);
        self.context.lead.refused();
    }

    /// Counts and logs a write that the store refused because another node has led since.
    fn note_fence(&self, error: Option<&StoreError>) {
        if error == Some(&StoreError::Deposed) {
            tracing::warn!("another node has led since; the evening's work here is dropped");
            self.context.lead.fenced(Fence::Store);
        }
    }

    /// Calls `take`, which judges quotes and stores them where requests read them.
    fn take_quotes<T>(
        &mut self,
        take: impl FnOnce(&mut QuotesTask, &mut FollowTask, &mut QuoteSinks<'_>) -> T,
    ) -> T {
        let Self {
            context,
            market,
            snapshot,
            persist,
            publisher,
            quotes,
            follow,
            signals,
            ..
        } = self;
        let beside = SnapshotContext {
            status: &market.status,
            signals: signals.shown(),
        };
        take(
            quotes,
            follow,
            &mut QuoteSinks {
                context,
                snapshot,
                persist,
                publisher,
                beside,
            },
        )
    }

    /// Checks whether this node leads, and switches the tasks accordingly.
    fn follow_leadership(&mut self, now_mono_ms: u64) {
        let Self {
            context,
            persist,
            publisher,
            ..
        } = self;
        let leads = context.lead.epoch();
        let asks = context.lead.may_ask();
        if let (Some(nodes), true) = (&context.nodes, leads != self.led) {
            match leads {
                Some(epoch) => {
                    tracing::info!(node = nodes.node, %epoch, "this node leads");
                    if let Some(shared) = &nodes.shared {
                        (shared.begin_term)(epoch);
                    }
                }
                None => tracing::warn!(node = nodes.node, "this node does not lead any more"),
            }
            publisher.set_epoch(leads);
            self.follow.begin(now_mono_ms);
        }
        let shares_cache = context
            .nodes
            .as_ref()
            .is_some_and(|nodes| nodes.shared.is_some());
        persist.set_writes_l2(!shares_cache || leads.is_some());
        if let Some(epoch) = leads {
            self.signals.epoch = epoch;
        }
        if asks && !self.asked {
            self.quotes.started_mono_ms = now_mono_ms;
            self.signals.begin_leading();
        }
        (self.led, self.asked) = (leads, asks);
    }

    /// Runs each task. The order is that of their claims on the feeds. The close comes before quote
    /// polls, which would otherwise take every call of a feed. Candles use the calls that both
    /// leave.
    fn tick(&mut self) {
        let now_mono_ms = self.context.clock.monotonic_ms();
        self.follow_leadership(now_mono_ms);
        let standing = PriceOrigin::now(&self.context, &self.follow, now_mono_ms);
        (self.now_mono_ms, self.standing) = (now_mono_ms, standing);
        let Self {
            context,
            market,
            quotes,
            ticking,
            ..
        } = self;
        ticking.poll(context, &market.status, &quotes.feeds.broker_a, now_mono_ms);
        market.follow(context, &mut quotes.feeds, ticking, standing, now_mono_ms);
        self.follow_universe();
        if standing == PriceOrigin::Asks {
            self.wanted
                .poll(&self.context, &mut self.publisher, now_mono_ms);
            self.poll_close(now_mono_ms);
            self.poll_signals(true, now_mono_ms);
            self.poll_quotes(standing, now_mono_ms);
            self.poll_signals(false, now_mono_ms);
            let (tokens, learned) = self.signals.histories.tokens();
            self.instruments
                .poll(&self.context, tokens, learned, now_mono_ms);
        } else {
            self.close.rest();
            let told = self.follow.evening.signals;
            self.signals.follow(&self.context, told, now_mono_ms);
            self.poll_quotes(standing, now_mono_ms);
            self.follow.poll(&self.context, now_mono_ms);
        }
        let signals = self.signals.shown();
        let beside = SnapshotContext {
            status: &self.market.status,
            signals,
        };
        let is_fresh = self.snapshot.publish(&self.context, beside, now_mono_ms);
        let evening = Evening::of(signals.as_of, &self.context.instruments.load());
        self.context.snapshot.make_asked(now_mono_ms);
        self.renew_movers(now_mono_ms);
        self.stats.snapshot(is_fresh);
        self.publisher.poll(&self.context, evening, now_mono_ms);
        self.persist.poll(&self.context, now_mono_ms);
        let exchange_ms = self.snapshot.age().map(|age| age.as_of.as_millisecond());
        self.store_check
            .poll(&self.context, exchange_ms, now_mono_ms);
        self.report_each_second();
        self.context
            .heartbeat
            .beat(now_mono_ms, self.snapshot.serving());
    }

    fn renew_movers(&self, now_mono_ms: u64) {
        let context = &self.context;
        for listing in Listing::ALL {
            let movers = context.movers.of(listing);
            if !movers.is_due(now_mono_ms) {
                continue;
            }
            movers.publish(&Moment {
                l1: &context.l1,
                pending: &context.pending,
                universe: &context.universe,
                instruments: &context.instruments.load(),
                sectors: &context.sectors.load(),
                listing,
                day: context.calendar.market_day(context.clock.now()).day,
                mono_ms: now_mono_ms,
            });
        }
    }

    /// Runs the close, which leaves every other call of a feed to polls, and all of them while
    /// requests wait.
    fn poll_close(&mut self, now_mono_ms: u64) {
        let tick = CloseTick {
            requests_wait: self.quotes.is_urgent(&self.context),
            now_mono_ms,
        };
        self.close.poll(&self.context, &self.quotes.feeds, tick);
    }

    fn poll_quotes(&mut self, standing: PriceOrigin, now_mono_ms: u64) {
        let close = &self.close.calls;
        let signals = &self.signals.calls;
        let taken = |source| {
            close.asks_now(source, now_mono_ms)
                || (source == Source::Public && signals.asks_now(source, now_mono_ms))
        };
        self.quotes
            .poll(&self.context, taken, standing, now_mono_ms);
    }

    fn poll_signals(&mut self, before_polls: bool, now_mono_ms: u64) {
        let tick = SignalsTick {
            requests_wait: self.quotes.is_urgent(&self.context),
            close_is_pricing: self.close.is_pricing(),
            public_is_asking: self
                .quotes
                .feeds
                .public
                .as_ref()
                .is_some_and(FeedState::is_asking),
            before_polls,
        };
        self.signals.poll(&self.context, tick, now_mono_ms);
    }

    fn report_each_second(&mut self) {
        let now_s = self.context.clock.now_ms() / 1_000;
        if now_s == self.reported_s {
            return;
        }
        self.reported_s = now_s;
        self.context.pending.expire(UNWANTED_MS);
        (self.report)(self);
    }

    fn sleep_ms(&self) -> u64 {
        // Only a feed that paces itself can become ready between two ticks. A price becomes stale
        // at an exact time.
        let feeds_ms = self.quotes.feeds.wait_ms().unwrap_or(TICK_MS);
        let now_mono_ms = self.context.clock.monotonic_ms();
        let published_ms = self.publisher.wait_ms(now_mono_ms);
        let movers_ms = self.context.movers.wait_ms(now_mono_ms);
        let shown_ms = self.snapshot.wait_ms(now_mono_ms).min(movers_ms);
        let waits_ms = [published_ms, shown_ms, self.signals.wait_ms(&self.context)];
        waits_ms
            .into_iter()
            .fold(feeds_ms, u64::min)
            .clamp(1, TICK_MS)
    }

    /// Uses the operator's new market files: the calendar at once, the universe as soon as
    /// [`follow_universe`] can.
    ///
    /// [`follow_universe`]: Self::follow_universe
    fn take_files(&mut self, files: MarketFiles) {
        self.context.calendar = files.calendar;
        if files.universe != self.context.universe {
            self.context.universe = files.universe;
            self.universe_changed = true;
        }
    }

    /// Switches to the new universe once no work on the old one is under way. The stored candles of
    /// each symbol stay, and those of the new universe are read again.
    fn follow_universe(&mut self) {
        if self.universe_changed && self.signals.is_idle() && !self.instruments.in_flight {
            self.universe_changed = false;
            self.signals = signals_task(&self.context, &self.events);
            let symbols = self.context.universe.symbols().len();
            tracing::info!(symbols, "symbol universe reloaded");
        }
    }
}

fn signals_task(context: &WarmerContext, events: &EventSender) -> SignalsTask {
    let candles = events.outcomes_by_source(Event::Candles);
    let universe = &context.universe;
    let indices = &context.indices;
    let chart_only_max = context.chart_only_max;
    SignalsTask::new(universe, indices, chart_only_max, candles, events.outcomes(Event::Signals))
}

// ---- Thread
//
// Starts and ends the scheduler's thread. A panic in it ends the process.

/// Longest wait for the last log line if a panic here ends the process.
const LOG_FLUSH_MAX: Duration = Duration::from_secs(1);

/// The running scheduler.
pub struct Warmers {
    events: EventSender,
    thread: Option<JoinHandle<()>>,
}

impl Warmers {
    /// Restores the second level's quotes and snapshot, both marked stale, then starts the
    /// scheduler. Blocks for the restore. Call it before listening, so that the first client is
    /// served.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(context: WarmerContext, mailbox: Mailbox, report: Reporter) -> io::Result<Self> {
        let (events, received) = mailbox.open();
        let mut scheduler = Scheduler::new(context, &events, report);
        scheduler.restore();
        let thread = threads::start("warm", move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| scheduler.run(&received))) {
                if staged::is_set() {
                    resume_unwind(panic);
                }
                // The published values would stop changing and still look fresh. After a restart
                // the service answers at once, with values from the second level that are marked
                // stale.
                tracing::error!(
                    "the thread that keeps all data fresh has panicked; the process ends"
                );
                log::flush(LOG_FLUSH_MAX);
                std::process::exit(Exit::Internal as i32);
            }
        })?;
        Ok(Self { events, thread })
    }

    /// Uses other market files: the universe once no work on the old one is under way.
    pub(crate) fn take_files(&self, files: MarketFiles) {
        self.events.send(Event::Files(Box::new(files)));
    }

    /// Ends the scheduler after it has written everything that is not stored yet.
    pub fn stop(mut self) {
        self.events.send(Event::Stop);
        if let Some(thread) = self.thread.take() {
            // A panic was caught, and ended the process.
            let _ = thread.join();
        }
    }
}
