//! What the scheduler hears, and the mailbox through which requests, jobs and the main thread reach
//! it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::base::Source;
use crate::cache::pending::Kick;
use crate::market::{MarketCalendar, Universe};
use crate::warmers::close::jobs as close_jobs;
use crate::warmers::instruments;
use crate::warmers::job::Outcomes;
use crate::warmers::persist;
use crate::warmers::quotes::poll;
use crate::warmers::signals::fetch;
use crate::warmers::signals::jobs as signal_jobs;

/// Events that may wait for the scheduler. Each job under way sends one, kicks take one place
/// together, and the end one: there are never so many.
const EVENTS_MAX: usize = 64;

/// What the scheduler hears. Outcomes of jobs are `None` where the job was lost.
pub(super) enum Event {
    /// Requests miss symbols; their fetch should not wait for the next poll.
    Kick(Kicked),
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

/// What an operator may change of the market while the service runs.
pub struct MarketFiles {
    pub calendar: Arc<MarketCalendar>,
    pub universe: Universe,
    /// Whether running candles are looked at.
    pub provisional_signals: bool,
}

/// The one kick in the mailbox. Dropped, heard or not, it makes room for the next: a burst of
/// requests must not fill the mailbox, or the outcome of a job would find no place.
pub(super) struct Kicked(Arc<AtomicBool>);

impl Drop for Kicked {
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
    pub fn new() -> Self {
        let (send, receive) = bounded(EVENTS_MAX);
        Self { send, receive, kicked: Arc::default() }
    }

    /// For the scheduler, which reads, and for the thread that ends it.
    pub(super) fn open(self) -> (EventSender, Receiver<Event>) {
        (EventSender(self.send), self.receive)
    }

    /// What a request calls on the edge when it starts to wait. Never blocks; while a kick waits to
    /// be heard another is not needed.
    pub fn kick(&self) -> Kick {
        let (send, kicked) = (self.send.clone(), Arc::clone(&self.kicked));
        Arc::new(move || {
            if kicked.swap(true, Ordering::SeqCst) {
                return;
            }
            match send.try_send(Event::Kick(Kicked(Arc::clone(&kicked)))) {
                Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
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
    /// Outcomes of one task's jobs, as the event that `as_event` makes of them.
    pub(super) fn outcomes<T: Send + 'static>(
        &self,
        as_event: impl Fn(Option<T>) -> Event + Send + Sync + 'static,
    ) -> Outcomes<T> {
        let send = self.0.clone();
        // Refused only when full, which the mailbox's bound rules out, or when the scheduler has
        // ended; then nobody waits for the outcome.
        Outcomes::new(move |outcome| drop(send.try_send(as_event(outcome))))
    }

    /// Waits for room in a full mailbox, which the scheduler drains. A scheduler that has ended
    /// has ended the process.
    pub(super) fn send(&self, event: Event) {
        let _ = self.0.send(event);
    }
}
