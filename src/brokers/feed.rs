//! What a feed of quotes and candles is: its trait and its batches.
//!
//! Calls block and run on the feed's lane.

use std::time::Duration;

use jiff::Timestamp;

use crate::base::{Clock, Quote, Source, Symbol};
use crate::brokers::BrokerError;

/// A source of quotes that answers in batches.
///
/// Implementations own their rate limit, their circuit breaker and their plausibility checks, so
/// that no caller can spend more of the upstream's budget than the settings allow.
pub trait MarketFeed: Send + Sync {
    /// Who this is.
    fn source(&self) -> Source;

    /// Most instruments that one call carries now.
    fn batch_max(&self) -> usize;

    /// Whether a call would be let out now. Never blocks.
    fn readiness(&self) -> Readiness;

    /// One upstream call for at most [`batch_max`](Self::batch_max) symbols. Blocks for at most the
    /// settings' total deadline.
    ///
    /// # Errors
    /// [`BrokerError`]; nothing is returned of a batch that failed as a whole.
    fn quotes(&self, symbols: &[Symbol]) -> Result<Batch, BrokerError>;
}

/// The reply to one call, or what was pushed without one. A symbol in none of the lists was not
/// asked for: a feed that has fallen back to another route asks for fewer (see
/// [`MarketFeed::batch_max`]).
#[derive(Debug, Default)]
pub struct Batch {
    /// Plausible quotes, in no particular order, only of symbols that were asked for.
    pub quotes: Vec<Quote>,
    /// Symbols the upstream does not know (left out of its answer).
    pub unknown: Vec<Symbol>,
    /// Symbols with an implausible price: zero, in another currency, or too old.
    pub implausible: Vec<Symbol>,
    /// The newest price time among those that is too far ahead of our clock.
    pub ahead: Option<Timestamp>,
    /// How many are.
    pub ahead_count: u64,
    /// When the call went out and was answered.
    pub times: CallTimes,
    /// Most symbols that a call of the route that answered carries.
    pub symbols_max: usize,
    /// The answer carried the simulator's mark.
    pub simulated: bool,
    /// Nobody asked for it, so what it leaves out says nothing about the source.
    pub pushed: bool,
}

impl Batch {
    /// Notes a symbol whose price is implausible, and the price's time.
    pub(super) fn disbelieve(&mut self, symbol: Symbol, as_of: Option<Timestamp>) {
        let answered = self.times.answered;
        let ahead = as_of.filter(|at| Quote::is_ahead(*at, answered));
        self.ahead = self.ahead.max(ahead);
        self.ahead_count += u64::from(ahead.is_some());
        self.implausible.push(symbol);
    }
}

/// Hands a pushed batch to whoever decides; gives it back while the one before has not been taken.
pub type Push = Box<dyn Fn(Box<Batch>) -> Result<(), Box<Batch>> + Send>;

/// When a call went out and when its answer was there.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallTimes {
    pub asked: Timestamp,
    /// The same by the monotonic clock.
    pub asked_mono_ms: u64,
    pub answered: Timestamp,
}

impl CallTimes {
    /// The times of a call that goes out now; its answer is not there yet.
    pub(super) fn begin(clock: &Clock) -> Self {
        let asked = clock.now();
        Self { asked, asked_mono_ms: clock.monotonic_ms(), answered: asked }
    }

    /// The same times, answered now.
    pub(super) fn end(self, clock: &Clock) -> Self {
        Self { answered: clock.now(), ..self }
    }
}

/// Whether a feed can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Now.
    Ready,
    /// Not before this has passed: rate limit or penalty.
    Paced(Duration),
    /// Circuit open for this long after repeated failures.
    Open(Duration),
    /// Broker A without a token, or with one that is known to be dead.
    NoToken,
    /// Broker A's token is good but its plan carries no market data (PermissionException).
    NoPermission,
    /// Switched off by a setting.
    Off,
    /// Another node leads and asks for all.
    Follows,
}
