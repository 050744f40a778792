//! The scheduler's events, and the mailbox through which requests, jobs and the main thread send
//! them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::base::{BySource, Source};
use crate::brokers::{Batch, Push};
use crate::cache::pending::Kick;
use crate::market::{MarketCalendar, Universe};
use crate::nodes::relay::Update;
use crate::rt::lanes::Outcomes;
use crate::warmers::close::jobs as close_jobs;
use crate::warmers::quotes::feed_state as polled;
use crate::warmers::signals::fetch;
use crate::warmers::{follow, instruments, persist, publish, signals as signal_jobs};

/// Capacity of the mailbox. Each job under way sends one event. Kicks, the pushes of each source,
/// the leader's updates and the stop take one place each, so this is never reached.
const EVENTS_MAX: usize = 64;

/// An event for the scheduler. The outcome of a job is `None` if the job was lost.
pub(super) enum Event {
    /// Requests miss symbols, and their fetch should not wait for the next poll.
    Kick(Place),
    /// A source pushed quotes.
    Pushed(Source, Placed<Batch>),
    /// An update of the leader arrived.
    Heard(Placed<Update>),
    /// Sending a message to the followers ended.
    Published(Option<publish::Sent>),
    /// Sending this node's wanted symbols to the leader ended.
    WantPublished,
    /// A read of the leader's instrument list ended.
    List(Option<Box<follow::FoundList>>),
    /// A poll of a feed ended.
    Polled(Source, Option<Box<polled::Answer>>),
    /// The fetch of the day's instrument list ended.
    Instruments(Option<Box<instruments::Fetched>>),
    /// A write to the second level ended.
    Persisted(Option<persist::Written>),
    /// A call for closing prices ended.
    ClosePrices(Source, Option<Box<polled::Answer>>),
    /// A job of the evening's revaluation ended.
    Close(Option<Box<close_jobs::Outcome>>),
    /// A call for daily candles ended.
    Candles(Source, Option<Box<fetch::Answer>>),
    /// A job of the signals task ended.
    Signals(Option<Box<signal_jobs::done::Outcome>>),
    /// A check of the store ended. Its result is in the store's health.
    StoreChecked,
    /// The operator's market files were read again.
    Files(Box<MarketFiles>),
    Stop,
}

/// The market settings that an operator may change while the service runs.
pub(crate) struct MarketFiles {
    pub calendar: Arc<MarketCalendar>,
    pub universe: Universe,
}

/// The single place in the mailbox for events of one kind. Dropping it frees the place for the next
/// one, whether the event was handled or not. Without this limit a burst of requests or quotes
/// could fill the mailbox, and the outcome of a job would be lost.
pub(super) struct Place(Arc<AtomicBool>);

impl Place {
    /// `None` while an event of this kind is queued or being handled.
    fn take(taken: &Arc<AtomicBool>) -> Option<Self> {
        (!taken.swap(true, Ordering::SeqCst)).then(|| Self(Arc::clone(taken)))
    }
}

/// A pushed batch or an update of the leader, and its place.
pub(super) struct Placed<T> {
    pub item: Box<T>,
    _place: Place,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// The scheduler's mailbox. It exists before the scheduler runs, because pending symbols kick it.
pub struct Mailbox {
    send: Sender<Event>,
    receive: Receiver<Event>,
    kicked: Arc<AtomicBool>,
}

impl Mailbox {
    /// An empty mailbox.
    pub(crate) fn new() -> Self {
        let (send, receive) = bounded(EVENTS_MAX);
        Self {
            send,
            receive,
            kicked: Arc::default(),
        }
    }

    /// Splits the mailbox into its sender and the receiver for the scheduler.
    pub(super) fn open(self) -> (EventSender, Receiver<Event>) {
        (EventSender(self.send), self.receive)
    }

    /// The callback for a request that starts to wait on the edge. Never blocks. Does nothing while
    /// an earlier kick is queued.
    pub(crate) fn kick(&self) -> Kick {
        let send = self.send.clone();
        let kicked = Arc::clone(&self.kicked);
        Arc::new(move || {
            if let Some(place) = Place::take(&kicked) {
                // A refused event drops its place, which frees it.
                drop(send.try_send(Event::Kick(place)));
            }
        })
    }

    /// The relay's callback for an update of the leader; see [`slot`](Self::slot).
    pub(crate) fn relay(&self) -> impl Fn(Box<Update>) -> Result<(), Box<Update>> + Send + use<> {
        self.slot(Event::Heard, |refused| match refused {
            Event::Heard(update) => Some(update),
            _ => None,
        })
    }

    /// The callback for a source that pushes quotes; see [`slot`](Self::slot).
    pub fn push(&self, source: Source) -> Push {
        let as_event = move |batch| Event::Pushed(source, batch);
        Box::new(self.slot(as_event, |refused| match refused {
            Event::Pushed(_, batch) => Some(batch),
            _ => None,
        }))
    }

    /// A callback that queues one item at a time. Never blocks. Returns the item if the previous
    /// one is still queued or the scheduler has ended. `of_event` takes an item out of its event
    /// again.
    fn slot<T, A, O>(
        &self,
        as_event: A,
        of_event: O,
    ) -> impl Fn(Box<T>) -> Result<(), Box<T>> + use<T, A, O>
    where
        A: Fn(Placed<T>) -> Event,
        O: Fn(Event) -> Option<Placed<T>>,
    {
        let send = self.send.clone();
        let taken = Arc::<AtomicBool>::default();
        move |item| {
            let Some(place) = Place::take(&taken) else {
                return Err(item);
            };
            let refused = send
                .try_send(as_event(Placed {
                    item,
                    _place: place,
                }))
                .err();
            let returned = refused.and_then(|refused| of_event(refused.into_inner()));
            returned.map_or(Ok(()), |placed| Err(placed.item))
        }
    }
}

impl Default for Mailbox {
    fn default() -> Self {
        Self::new()
    }
}

/// Puts events in the scheduler's mailbox.
#[derive(Clone)]
pub(super) struct EventSender(Sender<Event>);

impl EventSender {
    /// A sender for the outcomes of one task's jobs. `as_event` turns each into an event.
    pub(super) fn outcomes<T: Send + 'static>(
        &self,
        as_event: impl Fn(Option<T>) -> Event + Send + Sync + 'static,
    ) -> Outcomes<T> {
        let send = self.0.clone();
        // Fails only if the mailbox is full, which its capacity rules out, or if the scheduler has
        // ended and nobody waits for the outcome.
        Outcomes::new(move |outcome| drop(send.try_send(as_event(outcome))))
    }

    /// A sender for the outcomes of one task's calls to each source.
    pub(super) fn outcomes_by_source<T: Send + 'static>(
        &self,
        as_event: fn(Source, Option<T>) -> Event,
    ) -> BySource<Outcomes<T>> {
        BySource(Source::ALL.map(|source| self.outcomes(move |done| as_event(source, done))))
    }

    /// Waits if the mailbox is full, until the scheduler has drained it. If the scheduler has
    /// ended, the process ends too.
    pub(super) fn send(&self, event: Event) {
        let _ = self.0.send(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_is_given_back_until_the_one_before_is_heard() {
        let mailbox = Mailbox::new();
        let push = mailbox.push(Source::BrokerA);
        let other = mailbox.push(Source::Public);
        let (_, events) = mailbox.open();
        let batch = |symbols_max| {
            Box::new(Batch {
                symbols_max,
                ..Batch::default()
            })
        };
        assert!(push(batch(1)).is_ok() && other(batch(2)).is_ok());
        assert_eq!(push(batch(3)).unwrap_err().symbols_max, 3);
        let heard = events.recv().unwrap();
        assert!(push(batch(4)).is_err(), "heard, but not dealt with");
        drop(heard);
        assert!(push(batch(5)).is_ok());
        drop(events);
        assert!(other(batch(6)).is_err(), "nobody hears any more");
    }
}
