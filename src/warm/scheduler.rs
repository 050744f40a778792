//! The scheduler's loop and the state that only it changes. Runs on the thread `warm`.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use super::feeds::FeedSlot;
use super::index;
use super::instruments::InstrumentsWarmer;
use super::persist::{self, Unstored};
use super::policy::Policy;
use super::{Event, Parts, Round, health, publish_flag};
use crate::base::{Source, ist};
use crate::brokers::{Batch, FeedError, MarketFeed};
use crate::cache::codec;
use crate::http::date::imf_fixdate;
use crate::market::{MarketStatus, Phase, Snapshot};

/// Longest sleep: health, `Date` and staleness are looked at this often.
const TICK_MS: u64 = 200;

/// After a phase change the new phase's limits on age wait until a round could be asked under it.
const SETTLE_MS: u64 = 5_000;

/// A broker A that has a token but has not answered yet holds the public provider back for this
/// long after the start.
const FIRST_ANSWER_MS: u64 = 1_500;

/// Symbols that nobody waits for any more are forgotten after this.
const UNWANTED_MS: u64 = 60_000;

/// Owner of all warm state.
pub struct Scheduler {
    pub parts: Parts,
    events: Sender<Event>,
    pub broker_a: FeedSlot,
    pub public: Option<FeedSlot>,
    pub instruments: InstrumentsWarmer,
    unstored: Unstored,
    status: MarketStatus,
    /// Monotonic time of the last phase change; the limits in force lag behind it a little.
    phase_since_mono_ms: u64,
    pub policy: Policy,
    /// What is published now.
    pub snapshot: Option<Snapshot>,
    /// Read back from the second level; stands until a feed has answered.
    restored: bool,
    pub persist_failure: Option<String>,
    started_mono_ms: u64,
    second: i64,
}

impl Scheduler {
    /// At rest; [`restore`](Self::restore) and [`run`](Self::run) follow.
    pub fn new(parts: Parts, events: Sender<Event>) -> Self {
        let broker_a: Arc<dyn MarketFeed> = parts.broker_a.clone();
        let broker_a = FeedSlot::new(broker_a, Arc::clone(&parts.broker_a_lane));
        let public = parts.public.clone().map(|public| {
            let feed: Arc<dyn MarketFeed> = public;
            FeedSlot::new(feed, Arc::clone(&parts.public_lane))
        });
        let status = parts.calendar.status(parts.clock.now());
        let now_mono_ms = parts.clock.monotonic_ms();
        let policy = Policy::of(&status, 0, parts.broker_a_interval_ms, parts.public_interval_ms);
        Self {
            events,
            broker_a,
            public,
            instruments: InstrumentsWarmer::default(),
            unstored: Unstored::default(),
            status,
            phase_since_mono_ms: now_mono_ms,
            policy,
            snapshot: None,
            restored: false,
            persist_failure: None,
            started_mono_ms: now_mono_ms,
            second: 0,
            parts,
        }
    }

    /// Brings back what the second level kept: served at once, marked stale.
    pub fn restore(&mut self) {
        let now_mono_ms = self.parts.clock.monotonic_ms();
        match codec::restore_quotes(&self.parts.l1, &*self.parts.l2, now_mono_ms) {
            Ok(count) => tracing::info!(quotes = count, "restored from the second cache level"),
            Err(error) => tracing::warn!(%error, "nothing restored"),
        }
        if let Some(list) = persist::stored_instruments(&*self.parts.l2) {
            self.parts.instruments.store(Arc::new(list));
        }
        if let Some(mut snapshot) = persist::stored_snapshot(&*self.parts.l2) {
            snapshot.remark(&self.status, true);
            self.parts.snapshot.publish(snapshot.to_json(), self.parts.clock.now_ms());
            self.snapshot = Some(snapshot);
            self.restored = true;
        }
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
        match event {
            Event::Kick => {}
            Event::Round(round) => self.take_in(*round),
            Event::Instruments(Ok(list)) => {
                self.unstored.instruments(&list);
                self.parts.instruments.store(Arc::new(list));
                self.instruments.ended(None);
            }
            Event::Instruments(Err(failure)) => self.instruments.ended(Some(failure)),
            Event::Persisted(done) => {
                self.unstored.in_flight = false;
                self.persist_failure = done.err();
            }
            Event::Stop => return false,
        }
        true
    }

    /// Everything that depends on the time.
    fn tick(&mut self) {
        let now_mono_ms = self.parts.clock.monotonic_ms();
        self.follow_market(now_mono_ms);
        self.ask_feeds(now_mono_ms);
        self.instruments.poll(&self.parts, now_mono_ms, &self.events);
        self.publish(now_mono_ms);
        self.unstored.flush(&self.parts, now_mono_ms, &self.events);
        let now_ms = self.parts.clock.now_ms();
        if now_ms / 1_000 != self.second {
            self.second = now_ms / 1_000;
            self.parts.snapshot.refresh_date(now_ms);
            self.parts.misses.expire(UNWANTED_MS);
            self.parts.probes.expire(UNWANTED_MS);
            self.parts.health.store(Some(Arc::new(health::build(self, &imf_fixdate(now_ms)))));
        }
    }

    fn follow_market(&mut self, now_mono_ms: u64) {
        let status = self.parts.calendar.status(self.parts.clock.now());
        if status.phase != self.status.phase {
            tracing::info!(phase = status.phase.as_str(), "market phase");
            self.phase_since_mono_ms = now_mono_ms;
            if status.phase == Phase::PostClose || status.phase == Phase::Closed {
                // What was received before the close is not the closing price.
                for source in [Source::BrokerA, Source::Public] {
                    self.parts.l1.set_fresh_since(source, now_mono_ms);
                }
            }
        }
        self.status = status;
        let stood_ms = now_mono_ms.saturating_sub(self.phase_since_mono_ms);
        let settled = stood_ms >= SETTLE_MS || self.started_mono_ms == self.phase_since_mono_ms;
        let next = Policy::of(
            &status,
            self.stood_by_calendar_ms(stood_ms),
            self.parts.broker_a_interval_ms,
            self.parts.public_interval_ms,
        );
        let mut policy = next;
        if !settled {
            policy.broker_a.stale_after_ms =
                policy.broker_a.stale_after_ms.max(self.policy.broker_a.stale_after_ms);
            policy.public.stale_after_ms =
                policy.public.stale_after_ms.max(self.policy.public.stale_after_ms);
        }
        if policy != self.policy {
            self.policy = policy;
            for source in [Source::BrokerA, Source::Public] {
                let stale_after_ms = policy.pace(source).stale_after_ms;
                self.parts.l1.set_stale_after(source, stale_after_ms);
            }
        }
    }

    /// How long the phase has stood; at start that is not known from our own clock, so the time of
    /// day stands in: the first minutes after 09:15 are the only ones that matter.
    fn stood_by_calendar_ms(&self, stood_ms: u64) -> i64 {
        if self.started_mono_ms != self.phase_since_mono_ms {
            return stood_ms as i64;
        }
        let now = ist::zoned(self.parts.clock.now());
        let since_midnight_s = i64::from(now.hour()) * 3_600 + i64::from(now.minute()) * 60;
        (since_midnight_s - (9 * 3_600 + 15 * 60)).max(0) * 1_000
    }

    fn ask_feeds(&mut self, now_mono_ms: u64) {
        let waits = self.somebody_waits();
        if self.broker_a.is_due(now_mono_ms, self.policy.broker_a, waits) {
            // After a failure those who wait are not tied to it again while another is free.
            let wait_ms = self.parts.cache_settings.miss_wait_ms;
            let on_trial = self.broker_a.failure.is_some()
                && self.public.as_ref().is_some_and(|public| public.can_answer_within(wait_ms));
            self.broker_a.ask(&self.parts, now_mono_ms, on_trial, &self.events);
        }
        let first_chance = now_mono_ms.saturating_sub(self.started_mono_ms) < FIRST_ANSWER_MS
            && self.broker_a.can_answer_within(FIRST_ANSWER_MS);
        let broker_a_serves = self.speaks(&self.broker_a, now_mono_ms) || first_chance;
        if let Some(public) = &mut self.public
            && !broker_a_serves
            && public.is_due(now_mono_ms, self.policy.public, waits)
        {
            public.ask(&self.parts, now_mono_ms, false, &self.events);
        }
        let wait_ms = self.parts.cache_settings.miss_wait_ms;
        let answering = self.slots().any(|slot| slot.in_flight || slot.can_answer_within(wait_ms));
        publish_flag(&self.parts.answering, answering);
        if !answering && waits {
            self.parts.misses.fail_all();
            self.parts.probes.fail_all();
        }
    }

    fn somebody_waits(&self) -> bool {
        self.parts.misses.stats().waiters + self.parts.probes.stats().waiters > 0
    }

    fn slots(&self) -> impl Iterator<Item = &FeedSlot> {
        std::iter::once(&self.broker_a).chain(&self.public)
    }

    /// Whether a feed's data is fresh and alive.
    pub fn speaks(&self, slot: &FeedSlot, now_mono_ms: u64) -> bool {
        let pace = self.policy.pace(slot.feed.source());
        index::speaks(slot, &self.parts.indices, pace, self.parts.clock.now(), now_mono_ms)
    }

    fn take_in(&mut self, round: Round) {
        let now_mono_ms = self.parts.clock.monotonic_ms();
        let Round { source, taken, outcome } = round;
        let slot = match source {
            Source::BrokerA => &mut self.broker_a,
            Source::Public => match &mut self.public {
                Some(public) => public,
                None => return,
            },
        };
        // Every round asks for the indices, so an answer without one believable price is no answer:
        // neither a sign of life, nor proof that what it leaves out does not exist.
        let outcome = outcome.map(|outcome| match outcome {
            Ok(batch) if batch.quotes.is_empty() => Err(FeedError::Malformed {
                source_name: source.as_str(),
                detail: "not one believable price".to_owned(),
            }),
            other => other,
        });
        slot.ended(outcome.as_ref(), now_mono_ms);
        match outcome {
            Some(Ok(batch)) => {
                self.keep(source, batch, now_mono_ms);
                // Dropping them settles: whoever waited finds its quotes in L1.
                drop(taken);
            }
            // The other feed may know, or this one next time.
            _ => taken.into_iter().for_each(crate::cache::Taken::put_back),
        }
    }

    fn keep(&mut self, source: Source, batch: Batch, now_mono_ms: u64) {
        let pace = self.policy.pace(source);
        let now = self.parts.clock.now();
        for quote in batch.quotes {
            let is_index = self.parts.indices.all().any(|index| index.symbol == quote.symbol);
            let aged = is_index && index::is_mute(quote.as_of, pace, now);
            if self.parts.l1.insert(quote.clone(), now_mono_ms, aged) {
                self.unstored.quote(&quote);
            }
            if is_index {
                let slot = match source {
                    Source::BrokerA => Some(&mut self.broker_a),
                    Source::Public => self.public.as_mut(),
                };
                if let Some(slot) = slot {
                    if quote.symbol == self.parts.indices.primary.symbol {
                        slot.indexed_mono_ms = Some(now_mono_ms);
                    }
                    slot.index_quotes.insert(quote.symbol.clone(), quote);
                }
            }
        }
        let until_mono_ms = now_mono_ms + self.parts.cache_settings.negative_ttl_ms;
        for symbol in batch.unknown {
            // One answer without an index does not make it unknown.
            if !self.parts.indices.all().any(|index| index.symbol == symbol) {
                self.parts.l1.insert_unknown(symbol, now_mono_ms, until_mono_ms);
            }
        }
        if !batch.implausible.is_empty() {
            tracing::debug!(source = source.as_str(), symbols = ?batch.implausible, "not believed");
        }
    }

    fn publish(&mut self, now_mono_ms: u64) {
        let now = self.parts.clock.now();
        let slots: Vec<&FeedSlot> = self.slots().collect();
        let indices = &self.parts.indices;
        let built = index::build(&slots, indices, &self.status, &self.policy, now, now_mono_ms);
        let next = match (built, &self.snapshot) {
            (Some(snapshot), _) => {
                self.restored = false;
                snapshot
            }
            (None, Some(held)) if self.restored => {
                let mut held = held.clone();
                held.remark(&self.status, true);
                held
            }
            (None, _) => return,
        };
        if self.snapshot.as_ref() != Some(&next) {
            self.parts.snapshot.publish(next.to_json(), self.parts.clock.now_ms());
            self.unstored.snapshot(&next);
            self.snapshot = Some(next);
        }
    }

    fn sleep_ms(&self) -> u64 {
        // Only a feed that paces itself can become ready between two ticks.
        self.slots().map(FeedSlot::wait_ms).min().unwrap_or(TICK_MS).clamp(1, TICK_MS)
    }

    /// Whether every feed there is has failed or cannot be asked.
    pub fn slots_failed(&self) -> bool {
        self.slots().all(|slot| slot.failure.is_some() || !slot.can_answer_within(u64::MAX))
    }

    /// The market's status as of the last tick.
    pub fn status(&self) -> &MarketStatus {
        &self.status
    }

    /// Milliseconds since the service started.
    pub fn uptime_ms(&self) -> u64 {
        self.parts.clock.monotonic_ms().saturating_sub(self.started_mono_ms)
    }
}
