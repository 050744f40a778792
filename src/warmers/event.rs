//! What the scheduler hears, and how jobs on lanes report to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::Sender;

use crate::base::Source;
use crate::brokers::broker_a::Tokens;
use crate::brokers::{Batch, BrokerError};
use crate::market::{InstrumentList, MarketCalendar, Universe};
use crate::warmers::close;
use crate::warmers::signals;

/// Events that may wait for the scheduler. Each job under way sends one, kicks take one place
/// together, and the end one: there are never so many.
pub(super) const EVENTS_MAX: usize = 64;

/// What the scheduler hears.
pub enum Event {
    /// Requests miss symbols; their fetch should not wait for the next round.
    Kick(Kicked),
    /// An upstream call ended.
    Round(Box<Round>),
    /// The day's instrument list arrived, or did not.
    Instruments(Result<Box<(InstrumentList, Tokens)>, String>),
    /// A write to the second level ended.
    Persisted(Result<(), String>),
    /// A call for closing prices ended.
    ClosePrices(Box<Round>),
    /// A job of the evening's revaluation ended; `None` when it was lost.
    Close(Box<close::Outcome>),
    /// A call for daily candles ended.
    Candles(Box<signals::Fetched>),
    /// A job of the warmer of signals ended; `None` when it was lost.
    Signals(Box<signals::Outcome>),
    /// A probe of the store ended; what it saw, the store knows.
    StoreProbed,
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
/// requests must not fill the mailbox, or the outcome of a round would find no place.
pub struct Kicked(pub(super) Arc<AtomicBool>);

impl Drop for Kicked {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// One upstream call and what it brought.
pub struct Round {
    pub source: Source,
    /// `None` when the job was lost: refused by its lane, late, or panicked.
    pub outcome: Option<Result<Batch, BrokerError>>,
}

/// Tells the scheduler how a job ended, once, when dropped: also of one that panicked, was refused
/// or was never run, or its warmer would wait for it for ever.
pub(super) struct JobReport<T> {
    pub(super) events: Sender<Event>,
    pub(super) outcome: Option<T>,
    pub(super) as_event: fn(Option<T>) -> Event,
}

impl<T> Drop for JobReport<T> {
    fn drop(&mut self) {
        // Refused only when full, which the mailbox's bound rules out, or when the scheduler has
        // ended; then nobody waits for the outcome.
        let _ = self.events.try_send((self.as_event)(self.outcome.take()));
    }
}

/// What a job that gave no outcome is said to have failed with.
pub(super) fn lost<T>() -> Result<T, String> {
    Err("the job was lost: its lane is full, it came too late or it panicked".to_owned())
}
