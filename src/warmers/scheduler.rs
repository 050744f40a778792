//! The scheduler's loop and the state that only it changes. Runs on the thread `warm`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use super::close::CloseWarmer;
use super::context::WarmerContext;
use super::event::Event;
use super::instruments::InstrumentsWarmer;
use super::persist::{self, Unstored};
use super::quotes::feed_state::FeedState;
use super::quotes::policy::Pace;
use super::signals::{SignalsWarmer, Turn};
use super::stats::WarmerStats;
use super::store_check::StoreProbe;
use super::{health, quotes::poll};
use crate::base::{Clock, Source};
use crate::brokers::MarketFeed;
use crate::cache::l2::codec;
use crate::health::heartbeat::Serving;
use crate::market::{MarketStatus, Snapshot};
use crate::views::signals::ShownSignals;
use jiff::Timestamp;

/// Longest sleep: health, `Date` and staleness are looked at this often.
const TICK_MS: u64 = 200;

/// A broker A that has a token but has not answered yet holds the public provider back for this
/// long after the start.
const FIRST_ANSWER_MS: u64 = 1_500;

/// A standby that failed when it was last asked is asked again this rarely: an operator wants to
/// know whether anything stands behind broker A, and that it does again.
const STANDBY_RETRY_MS: u64 = 10_000;

/// What a client is told at most when no feed can be asked and nothing says when one can.
const ANSWER_IN_MS_MAX: u64 = 60_000;

/// Symbols that nobody waits for any more are forgotten after this.
const UNWANTED_MS: u64 = 60_000;

/// Owner of all warm state.
pub struct Scheduler {
    pub parts: WarmerContext,
    events: Sender<Event>,
    pub broker_a: FeedState,
    pub public: Option<FeedState>,
    pub instruments: InstrumentsWarmer,
    pub close: CloseWarmer,
    pub signals: SignalsWarmer,
    pub unstored: Unstored,
    pub store_probe: StoreProbe,
    pub tally: WarmerStats,
    pub status: MarketStatus,
    /// Monotonic time of the last phase change.
    pub phase_since_mono_ms: u64,
    /// By source: how often it is asked.
    pub paces: [Pace; Source::ALL.len()],
    /// By source: the official close, while the market rests and the source can be expected to say
    /// it.
    pub rests: [Option<Timestamp>; Source::ALL.len()],
    /// What is published now, and until when it stands if nothing comes.
    pub snapshot: Option<Snapshot>,
    /// The signals beside it.
    pub shown_signals: ShownSignals,
    pub stands_until_mono_ms: u64,
    pub persist_failure: Option<String>,
    started_mono_ms: u64,
    second: i64,
    /// The signals warmer still works on the universe before.
    pub universe_changed: bool,
}

impl Scheduler {
    /// At rest; [`restore`](Self::restore) and [`run`](Self::run) follow.
    pub fn new(parts: WarmerContext, events: Sender<Event>) -> Self {
        let broker_a: Arc<dyn MarketFeed> = parts.broker_a.clone();
        let broker_a = FeedState::new(broker_a, Arc::clone(&parts.broker_a_lane), &parts.indices);
        let public = parts.public.clone().map(|public| {
            let feed: Arc<dyn MarketFeed> = public;
            FeedState::new(feed, Arc::clone(&parts.public_lane), &parts.indices)
        });
        let status = parts.calendar.status(parts.clock.now());
        let now_mono_ms = parts.clock.monotonic_ms();
        let pace = |source| Pace::of(source, parts.interval_ms(source), false);
        Self {
            paces: Source::ALL.map(pace),
            rests: [None; Source::ALL.len()],
            events,
            broker_a,
            public,
            instruments: InstrumentsWarmer::default(),
            close: CloseWarmer::default(),
            signals: SignalsWarmer::new(&parts.universe),
            unstored: Unstored::default(),
            store_probe: StoreProbe::default(),
            tally: WarmerStats::new(Clock::system()),
            status,
            phase_since_mono_ms: now_mono_ms,
            snapshot: None,
            shown_signals: ShownSignals::none(),
            stands_until_mono_ms: u64::MAX,
            persist_failure: None,
            started_mono_ms: now_mono_ms,
            second: 0,
            universe_changed: false,
            parts,
        }
    }

    /// Brings back what the second level kept: served at once, marked stale.
    pub fn restore(&mut self) {
        let (now, now_mono_ms) = (self.parts.clock.now(), self.parts.clock.monotonic_ms());
        match codec::restore_quotes(&self.parts.l1, &*self.parts.l2, now, now_mono_ms) {
            Ok(codec::Restored { quotes, of_the_future }) => {
                tracing::info!(quotes, of_the_future, "restored from the second cache level");
            }
            Err(error) => tracing::warn!(%error, "nothing restored"),
        }
        if let Some(list) = persist::stored_instruments(&*self.parts.l2) {
            self.parts.instruments.store(Arc::new(list));
        }
        self.signals.restore(&self.parts);
        self.tick();
    }

    /// Works until [`Event::Stop`].
    pub fn run(mut self, events: &Receiver<Event>) {
        loop {
            let event = events.recv_timeout(Duration::from_millis(self.sleep_ms())).ok();
            let mut next = event;
            while let Some(event) = next {
                if !self.hear(event) {
                    let now_ms = self.parts.clock.now_ms();
                    self.unstored.store_now(&*self.parts.l2, now_ms);
                    return;
                }
                next = events.try_recv().ok();
            }
            self.tick();
        }
    }

    /// False at the end.
    fn hear(&mut self, event: Event) -> bool {
        self.tally.hear(&event, &self.parts);
        match event {
            // What it is about is asked in the tick that follows; dropping it lets the next in.
            Event::Kick(kicked) => drop(kicked),
            Event::Round(round) => self.take_in(*round),
            Event::Instruments(Ok(fetched)) => {
                let (list, tokens) = *fetched;
                self.signals.tokens = tokens;
                self.signals.tokens_learned = true;
                self.unstored.instruments(&list);
                self.parts.instruments.store(Arc::new(list));
                self.instruments.ended(None);
            }
            Event::Instruments(Err(failure)) => self.instruments.ended(Some(failure)),
            Event::Persisted(done) => {
                self.unstored.in_flight = false;
                self.persist_failure = done.err();
            }
            Event::ClosePrices(round) => {
                let now_mono_ms = self.parts.clock.monotonic_ms();
                let slot = match round.source {
                    Source::BrokerA => Some(&self.broker_a),
                    Source::Public => self.public.as_ref(),
                };
                self.close.take_prices(*round, slot, now_mono_ms);
            }
            Event::Close(outcome) => {
                self.close.ended(*outcome, self.parts.clock.monotonic_ms());
            }
            Event::Candles(fetched) => {
                self.signals.take(*fetched, self.parts.clock.monotonic_ms());
            }
            Event::Signals(outcome) => {
                self.signals.ended(*outcome, self.parts.clock.monotonic_ms());
            }
            Event::StoreProbed => self.store_probe.ended(),
            Event::Files(files) => self.take_files(*files),
            Event::Stop => return false,
        }
        true
    }

    /// Everything that depends on the time.
    fn tick(&mut self) {
        let now_mono_ms = self.parts.clock.monotonic_ms();
        self.follow_market(now_mono_ms);
        self.follow_universe();
        self.revalue(now_mono_ms);
        self.find_signals(true, now_mono_ms);
        self.ask_feeds(now_mono_ms);
        self.find_signals(false, now_mono_ms);
        let Self { parts, signals, instruments, events, .. } = self;
        let (tokens, learned) = (&signals.tokens, signals.tokens_learned);
        instruments.poll(parts, tokens, learned, now_mono_ms, events);
        self.publish(now_mono_ms);
        self.unstored.flush(&self.parts, now_mono_ms, &self.events);
        let exchange_ms = self.snapshot.as_ref().map(|held| held.market.age.as_of.as_millisecond());
        self.store_probe.poll(&self.parts, exchange_ms, now_mono_ms, &self.events);
        let now_ms = self.parts.clock.now_ms();
        if now_ms / 1_000 != self.second {
            self.second = now_ms / 1_000;
            self.parts.pending.expire(UNWANTED_MS);
            let (report, vitals) = health::build(self);
            self.parts.health.store(Some(Arc::new(report)));
            self.parts.vitals.store(Some(Arc::new(vitals)));
        }
        self.parts.pulse.beat(now_mono_ms, self.snapshot.as_ref().map(Serving::of));
    }

    fn ask_feeds(&mut self, now_mono_ms: u64) {
        self.take_back_from_hanging(now_mono_ms);
        let waits = self.somebody_waits();
        let pace = self.pace(Source::BrokerA);
        let in_turn = !self.close.asks_now(Source::BrokerA, now_mono_ms);
        // A call every second is broker A's to give; of the public provider's nobody who only holds
        // something takes one more.
        let wanted = !self.parts.pending.is_empty();
        if in_turn && self.broker_a.is_due(now_mono_ms, pace, wanted) {
            poll::ask(&mut self.broker_a, &self.parts, now_mono_ms, &self.events);
        }
        let first_chance = now_mono_ms.saturating_sub(self.started_mono_ms) < FIRST_ANSWER_MS
            && self.broker_a.askable_within(FIRST_ANSWER_MS);
        // Asked while broker A's data is still fresh, so that it has answered when that ends; and
        // sooner where somebody waits or nothing of this run is served yet.
        let urgent = self.somebody_waits() || !self.has_spoken();
        let broker_a_serves = (self.speaks(&self.broker_a, now_mono_ms) || first_chance)
            && !self.broker_a.falters(pace, now_mono_ms, urgent);
        let public_pace = self.pace(Source::Public);
        if let Some(public) = &mut self.public
            && (!broker_a_serves || public.failed_before(STANDBY_RETRY_MS, now_mono_ms))
            && !self.close.asks_now(Source::Public, now_mono_ms)
            && !self.signals.asks_now(Source::Public, now_mono_ms)
            && public.is_due(now_mono_ms, public_pace, waits)
        {
            poll::ask(public, &self.parts, now_mono_ms, &self.events);
        }
        let wait_ms = self.parts.cache_settings.miss_wait_ms;
        let can_answer = |slot: &FeedState| {
            slot.can_answer_within(wait_ms, self.pace(slot.feed.source()), now_mono_ms)
        };
        let answering = self.slots().any(can_answer);
        let answer_in_ms = if answering { 0 } else { self.askable_in_ms() };
        self.parts.answer_in_ms.store(answer_in_ms, Ordering::Relaxed);
        if !answering {
            self.parts.pending.dismiss();
        }
    }

    /// Comes before the rounds, which after the close would else take every slot of a feed; leaves
    /// them every other one, and all while somebody waits.
    fn revalue(&mut self, now_mono_ms: u64) {
        let waits = self.somebody_waits() || !self.has_spoken();
        let feeds: Vec<&FeedState> = std::iter::once(&self.broker_a).chain(&self.public).collect();
        self.close.poll(&self.parts, &feeds, waits, now_mono_ms, &self.events);
    }

    /// Candles and signals; they take what the close and the rounds leave.
    fn find_signals(&mut self, before_rounds: bool, now_mono_ms: u64) {
        let turn = Turn {
            somebody_waits: self.somebody_waits() || !self.has_spoken(),
            close_is_pricing: self.close.is_pricing(),
            public_is_asking: self.public.as_ref().is_some_and(FeedState::is_asking),
            before_rounds,
        };
        self.signals.poll(&self.parts, turn, now_mono_ms, &self.events);
    }

    /// Until some feed may be asked again, as far as is known now.
    fn askable_in_ms(&self) -> u64 {
        self.slots()
            .map(FeedState::wait_ms)
            .min()
            .unwrap_or(ANSWER_IN_MS_MAX)
            .clamp(1, ANSWER_IN_MS_MAX)
    }

    /// Whether symbols are pending, though those who asked may have left: they come back.
    fn somebody_waits(&self) -> bool {
        self.parts.pending.is_waited_for()
    }

    /// Whether some feed has answered in this run: until then all that is served was restored.
    fn has_spoken(&self) -> bool {
        self.slots().any(|slot| slot.succeeded_mono_ms.is_some())
    }

    /// How often a source is asked now.
    pub fn pace(&self, source: Source) -> Pace {
        self.paces[source as usize]
    }

    pub fn slots(&self) -> impl Iterator<Item = &FeedState> {
        std::iter::once(&self.broker_a).chain(&self.public)
    }

    pub fn slots_mut(&mut self) -> impl Iterator<Item = &mut FeedState> {
        std::iter::once(&mut self.broker_a).chain(&mut self.public)
    }

    pub fn slot_mut(&mut self, source: Source) -> Option<&mut FeedState> {
        self.slots_mut().find(|slot| slot.feed.source() == source)
    }

    pub fn slot(&self, source: Source) -> Option<&FeedState> {
        self.slots().find(|slot| slot.feed.source() == source)
    }

    /// Whether a feed's data is fresh and alive.
    pub fn speaks(&self, slot: &FeedState, now_mono_ms: u64) -> bool {
        slot.speaks(self.parts.l1.freshness(), now_mono_ms)
    }

    fn sleep_ms(&self) -> u64 {
        // Only a feed that paces itself can become ready between two ticks.
        let feeds_ms = self.slots().map(FeedState::wait_ms).min().unwrap_or(TICK_MS);
        // And a price goes stale in its own moment.
        let now_mono_ms = self.parts.clock.monotonic_ms();
        let stands_ms = self.stands_until_mono_ms.saturating_sub(now_mono_ms).saturating_add(1);
        feeds_ms.min(self.signals.wait_ms(&self.parts)).min(stands_ms).clamp(1, TICK_MS)
    }

    /// Whether every feed there is has failed or cannot be asked.
    pub fn slots_failed(&self) -> bool {
        self.slots().all(|slot| slot.failure.is_some() || !slot.askable_within(u64::MAX))
    }

    /// Milliseconds since the service started.
    pub fn uptime_ms(&self) -> u64 {
        self.parts.clock.monotonic_ms().saturating_sub(self.started_mono_ms)
    }
}
