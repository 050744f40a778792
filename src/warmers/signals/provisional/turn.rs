//! When running candles are asked for, looked at, and what they showed is taken back. Runs on the
//! scheduler's thread.

use crossbeam_channel::Sender;
use jiff::civil::Date;

use super::jobs::{self, LookOrder, PrepareOrder};
use crate::base::{Source, ist};
use crate::brokers::{BrokerError, BrokerErrorKind, MarketFeed, Readiness};
use crate::signals::Look;
use crate::store::SignalStore;
use crate::warmers::context::WarmerContext;
use crate::warmers::event::Event;
use crate::warmers::signals::SignalsWarmer;
use crate::warmers::signals::fetch::{Asked, Fetched, Purpose, of_readiness, text_of};
use crate::warmers::signals::sessions::{overlap_from, running_date};
use crate::warmers::signals::symbol::Availability;

impl SignalsWarmer {
    /// Follows the switch, the session, and its rotations.
    pub(crate) fn follow_session(&mut self, parts: &WarmerContext, now_mono_ms: u64) {
        let session = self.session(parts);
        self.provisional.follow(parts.provisional_signals, session);
        self.rotate(parts, now_mono_ms);
    }

    /// The session whose running candles are to be looked at: all before it is published.
    fn session(&self, parts: &WarmerContext) -> Option<Date> {
        let date = running_date(&parts.calendar, parts.clock.now())?;
        let before = parts.calendar.previous_trading_date(date)?;
        let published = self.target == Some(before) && self.shown.top.as_of == Some(before);
        (parts.provisional_signals && published).then_some(date)
    }

    /// The next call for a running candle, where nothing of the sessions before is to be fetched.
    pub(crate) fn next_running(
        &mut self,
        parts: &WarmerContext,
        source: Source,
        date: Date,
        now_mono_ms: u64,
    ) -> Option<Asked> {
        let to = self.provisional.date()?;
        let at = self.provisional.next(source)?;
        if !self.tracked.iter().all(|tracked| tracked.is_settled(date)) {
            return None;
        }
        self.provisional.asked(at, now_mono_ms);
        let from = overlap_from(&parts.calendar, date);
        Some(Asked { at, purpose: Purpose::Running, from, to })
    }

    fn rotate(&mut self, parts: &WarmerContext, now_mono_ms: u64) {
        let under_way = self.broker_a.asks_running() || self.public.asks_running();
        let serves = |source| {
            let readiness = match source {
                Source::BrokerA => parts.broker_a.candles_readiness(),
                Source::Public => match &parts.public {
                    Some(public) => public.readiness(),
                    None => Readiness::Off,
                },
            };
            of_readiness(readiness) != Availability::Absent
        };
        self.provisional.rotate(serves, under_way, now_mono_ms);
    }

    /// A symbol whose call fails is left out of this rotation, and what it said before grows old.
    pub(crate) fn take_running(
        &mut self,
        at: usize,
        date: Date,
        fetched: Fetched,
        now_mono_ms: u64,
    ) {
        let Fetched { source, outcome } = fetched;
        let current = self.provisional.date() == Some(date);
        match outcome {
            Some(Ok(read)) => {
                self.call_mut(source).failure = None;
                if current {
                    self.provisional.said(at, read, now_mono_ms);
                }
            }
            Some(Err(BrokerError { kind: BrokerErrorKind::NotReady(_), .. })) if current => {
                self.provisional.not_asked(at);
            }
            Some(Err(BrokerError {
                kind: BrokerErrorKind::NotReady(_) | BrokerErrorKind::Refused,
                ..
            })) => {}
            failed => {
                let text = text_of(failed.and_then(Result::err).as_ref());
                self.rest(source, at, text, now_mono_ms);
            }
        }
    }

    /// Prepares a session, or looks at its candles, if either is to be done.
    pub(crate) fn look(&mut self, parts: &WarmerContext, now_mono_ms: u64, events: &Sender<Event>) {
        if let (true, Some(settled)) = (self.provisional.wants_preparing(), self.target) {
            let order = self.prepare_order(settled);
            let job = move |store: &dyn SignalStore| jobs::prepare(store, order);
            self.submit(parts, events, job);
        } else if let Some(order) = self.look_order(parts, now_mono_ms) {
            self.provisional.set_to_look(false);
            self.provisional.looked_at = Some(order.look.at);
            self.submit(parts, events, move |store| Ok(jobs::look(store, &order)));
        }
    }

    /// Takes back what running candles showed, where that must not stand any longer and no newer
    /// look can take its place; the store need not work for that.
    pub(crate) fn withdraws(
        &mut self,
        parts: &WarmerContext,
        now_mono_ms: u64,
        events: &Sender<Event>,
    ) -> bool {
        let Some(standing) = self.shown.provisional else { return false };
        let today = ist::zoned(parts.clock.now()).date();
        let too_old = now_mono_ms >= standing.until_mono_ms || standing.look.date != today;
        if self.provisional.is_on() && !too_old {
            return false;
        }
        let can_look = self.loaded && now_mono_ms >= self.retry_mono_ms;
        self.provisional.set_to_look(true);
        if can_look && self.look_order(parts, now_mono_ms).is_some_and(|o| !o.said.is_empty()) {
            return false;
        }
        let shelf = parts.shelf.clone();
        self.submit(parts, events, move |_| Ok(jobs::withdraw(&shelf)));
        true
    }

    fn prepare_order(&self, settled: Date) -> PrepareOrder {
        let symbols = self.tracked.iter().map(|tracked| {
            let held = tracked.history.as_ref().filter(|_| !tracked.is_silenced())?;
            Some((tracked.symbol.clone(), held.source, held.simulated))
        });
        PrepareOrder { settled, symbols: symbols.collect() }
    }

    fn look_order(&self, parts: &WarmerContext, now_mono_ms: u64) -> Option<LookOrder> {
        let (date, prepared) = (self.provisional.date()?, self.provisional.to_look()?);
        let (said, until_mono_ms) = self.provisional.fresh(now_mono_ms);
        Some(LookOrder {
            look: Look { date, at: parts.clock.now() },
            prepared,
            said,
            expected: self.expected(parts),
            until_mono_ms,
            now_ms: parts.clock.now_ms(),
            shelf: parts.shelf.clone(),
        })
    }
}
