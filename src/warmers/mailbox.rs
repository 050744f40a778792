//! The scheduler's events, and the mailbox through which requests, jobs and the main thread send
//! them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::base::Source;
use crate::brokers::{Batch, Push};
use crate::cache::pending::Kick;
use crate::market::{MarketCalendar, Universe};
use crate::nodes::relay::Update;
use crate::rt::{Lane, Refused};
use crate::warmers::close::prices as close_jobs;
use crate::warmers::quotes::poll;
use crate::warmers::signals::fetch;
use crate::warmers::{follow, instruments, persist, signals as signal_jobs, tell};

/// Capacity of the mailbox. Each job under way sends one event. Kicks, the pushes of each source,
/// the leader's updates and the stop take one place each, so this is never reached.
const EVENTS_MAX: usize = 64;

/// An event for the scheduler. The outcome of a job is `None` if the job was lost.
pub(super) enum Event {
    /// Requests miss symbols, and their fetch should not wait for the next poll.
    Kick(Place),
    /// A source pushed quotes.
    Pushed(Source, Pushed),
    /// An update of the leader arrived.
    Heard(Heard),
    /// Sending a message to the followers ended.
    Told(Option<tell::Sent>),
    /// Sending this node's wanted symbols to the leader ended.
    WantTold,
    /// A read of the leader's instrument list ended.
    List(Option<Box<follow::FoundList>>),
    /// A poll of a feed ended.
    Polled(Source, Option<Box<poll::Answer>>),
    /// The fetch of the day's instrument list ended.
    Instruments(Option<Box<instruments::Fetched>>),
    /// A write to the second level ended.
    Persisted(Option<persist::Written>),
    /// A call for closing prices ended.
    ClosePrices(Source, Option<Box<poll::Answer>>),
    /// A job of the evening's revaluation ended.
    Close(Option<Box<close_jobs::Outcome>>),
    /// A call for daily candles ended.
    Candles(Source, Option<Box<fetch::Answer>>),
    /// A job of the signals task ended.
    Signals(Option<Box<signal_jobs::Outcome>>),
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
    /// Whether running candles are searched for signals.
    pub provisional_signals: bool,
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

/// A pushed batch, and its place.
pub(super) struct Pushed {
    pub batch: Box<Batch>,
    _place: Place,
}

/// An update of the leader, and its place.
pub(super) struct Heard {
    pub update: Box<Update>,
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
        Self { send, receive, kicked: Arc::default() }
    }

    /// Splits the mailbox into its sender and the receiver for the scheduler.
    pub(super) fn open(self) -> (EventSender, Receiver<Event>) {
        (EventSender(self.send), self.receive)
    }

    /// The callback for a request that starts to wait on the edge. Never blocks. Does nothing while
    /// an earlier kick is queued.
    pub(crate) fn kick(&self) -> Kick {
        let (send, kicked) = (self.send.clone(), Arc::clone(&self.kicked));
        Arc::new(move || {
            if let Some(place) = Place::take(&kicked) {
                // A refused event drops its place, which frees it.
                drop(send.try_send(Event::Kick(place)));
            }
        })
    }

    /// The relay's callback for an update of the leader. Never blocks. Returns the update if the
    /// previous one is still queued or the scheduler has ended.
    pub(crate) fn relay(&self) -> impl Fn(Box<Update>) -> Result<(), Box<Update>> + Send + use<> {
        let (send, taken) = (self.send.clone(), Arc::<AtomicBool>::default());
        move |update| {
            let Some(place) = Place::take(&taken) else { return Err(update) };
            match send.try_send(Event::Heard(Heard { update, _place: place })) {
                Err(
                    TrySendError::Full(Event::Heard(heard))
                    | TrySendError::Disconnected(Event::Heard(heard)),
                ) => Err(heard.update),
                _ => Ok(()),
            }
        }
    }

    /// The callback for a source that pushes quotes. Never blocks. Returns the batch if the
    /// previous one is still queued or the scheduler has ended.
    pub fn push(&self, source: Source) -> Push {
        let (send, taken) = (self.send.clone(), Arc::<AtomicBool>::default());
        Box::new(move |batch| {
            let Some(place) = Place::take(&taken) else { return Err(batch) };
            let event = Event::Pushed(source, Pushed { batch, _place: place });
            match send.try_send(event) {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(refused) | TrySendError::Disconnected(refused)) => {
                    match refused {
                        Event::Pushed(_, pushed) => Err(pushed.batch),
                        _ => Ok(()),
                    }
                }
            }
        })
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

    /// Waits if the mailbox is full, until the scheduler has drained it. If the scheduler has
    /// ended, the process ends too.
    pub(super) fn send(&self, event: Event) {
        let _ = self.0.send(event);
    }
}

// ---- Job
//
// Jobs that a task of the scheduler sends to a lane, and how their outcomes return.

/// The reported failure of a job that gave no outcome.
pub(crate) const LOST: &str = "the job was lost: its lane is full, it came too late or it panicked";

/// Reports to the scheduler how the jobs of one task ended. The scheduler decides which event an
/// outcome becomes.
pub(crate) struct Outcomes<T>(Arc<dyn Fn(Option<T>) + Send + Sync>);

impl<T> Clone for Outcomes<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> Outcomes<T> {
    /// Passes each outcome to `tell`; `None` if the job was lost.
    pub(crate) fn new(tell: impl Fn(Option<T>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Drops every outcome, in tests without a scheduler.
    #[cfg(test)]
    pub(crate) fn ignored() -> Self {
        Self::new(|_| {})
    }

    /// Queues `job` on `lane`. Its outcome is reported exactly once: `None` if the job panicked,
    /// was refused or never ran. The task must note that a job is under way before this call,
    /// because the outcome may arrive at once.
    ///
    /// # Errors
    /// If the lane's queue is full. The lost outcome is reported as well.
    pub(crate) fn submit(
        &self,
        lane: &Lane,
        deadline_ms: u64,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(), Refused> {
        let mut report = Report { outcomes: self.clone(), outcome: None };
        let submitted = lane.submit(deadline_ms, move || {
            report.outcome = Some(job());
            drop(report);
        });
        submitted.map(drop)
    }
}

/// Reports when dropped, so that a task never waits for a lost job.
struct Report<T> {
    outcomes: Outcomes<T>,
    outcome: Option<T>,
}

impl<T> Drop for Report<T> {
    fn drop(&mut self) {
        (self.outcomes.0)(self.outcome.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_is_given_back_until_the_one_before_is_heard() {
        let mailbox = Mailbox::new();
        let (push, other) = (mailbox.push(Source::BrokerA), mailbox.push(Source::Public));
        let (_, events) = mailbox.open();
        let batch = |symbols_max| Box::new(Batch { symbols_max, ..Batch::default() });
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

#[cfg(test)]
mod job_tests {
    use crossbeam_channel::unbounded;

    use super::*;
    use crate::base::Clock;
    use crate::rt::LaneSpec;

    #[test]
    fn an_outcome_is_told_once_also_of_a_job_that_panics_or_is_refused() {
        let spec = LaneSpec { name: "test", threads: 1, queue_max: 1 };
        let lane = Lane::start(&spec, &Clock::system()).unwrap();
        let (send, told) = unbounded();
        let outcomes = Outcomes::new(move |outcome: Option<u8>| send.send(outcome).unwrap());
        outcomes.submit(&lane, 10_000, || 7).unwrap();
        assert_eq!(told.recv().unwrap(), Some(7));
        outcomes.submit(&lane, 10_000, || panic!("on purpose")).unwrap();
        assert_eq!(told.recv().unwrap(), None);
        // One job occupies the thread, the next the queue.
        let (began, has_begun) = unbounded();
        let (release, released) = unbounded::<()>();
        let waits = move || {
            began.send(()).unwrap();
            released.recv().unwrap();
            1
        };
        outcomes.submit(&lane, 10_000, waits).unwrap();
        has_begun.recv().unwrap();
        outcomes.submit(&lane, 10_000, || 2).unwrap();
        assert!(outcomes.submit(&lane, 10_000, || 3).is_err());
        assert_eq!(told.recv().unwrap(), None, "refused");
        release.send(()).unwrap();
        assert_eq!([told.recv().unwrap(), told.recv().unwrap()], [Some(1), Some(2)]);
        assert!(told.is_empty());
    }
}
