//! The thread `lease`: asks the authorities for the leadership, and tells this process what came of
//! it.
//!
//! What to ask and what an answer means is decided in [`base::lease`](crate::base::lease). Each
//! authority has a thread of its own, so that one that stalls does not hold up the other.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::base::lease::{
    Answer, Ask, Authority, AuthorityError, LeaseTimes, Request, Standing, Which,
};
use crate::base::{Clock, Leadership, Term, lease, rng};
use crate::rt::threads;

/// How often the thread looks what is due.
const LOOK: Duration = Duration::from_millis(50);

/// Requests that wait for one authority: one under way, one that is due, and two to give back.
const ASKS_MAX: usize = 8;

/// Longest wait for the authorities when the service stops; then the lease runs out by itself.
const RELEASE_WAIT: Duration = Duration::from_millis(1_000);

/// What the thread works with.
pub(crate) struct LeaseParts {
    pub times: LeaseTimes,
    /// What this node is called.
    pub node: String,
    /// Counts epochs.
    pub row: Arc<dyn Authority>,
    pub claim: Option<Arc<dyn Authority>>,
    /// Written by this thread.
    pub leadership: Arc<Leadership>,
    /// A new leader makes its first call so long after it began to lead: the one before may have
    /// made its last at its very end.
    pub first_call_after_ms: u64,
    /// The one by which the leadership is judged.
    pub clock: Clock,
}

/// The running thread.
pub(crate) struct Lease {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lease {
    /// Starts the thread and those of the authorities.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn start(parts: LeaseParts) -> io::Result<Self> {
        let (stop, stopped) = bounded(0);
        let (answer, answers) = bounded(2 * ASKS_MAX);
        let row = Line::start("lease-row", Which::Row, parts.row, answer.clone())?;
        let claim = parts
            .claim
            .map(|claim| Line::start("lease-claim", Which::Claim, claim, answer))
            .transpose()?;
        let worker = Worker {
            state: lease::LeaseState::new(parts.times, &parts.node, claim.is_some()),
            row,
            claim,
            answers,
            stopped,
            leadership: parts.leadership,
            first_call_after_ms: parts.first_call_after_ms,
            began_mono_ms: None,
            clock: parts.clock,
        };
        let thread = threads::spawn("lease", move || worker.run())?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Ends the leadership and gives it back, so that another node need not wait for its end.
    pub(crate) fn stop(mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An answer, and whose it is.
type Answered = (u64, Which, Answer);

/// The way to one authority.
struct Line {
    asks: Sender<Ask>,
    done: Receiver<()>,
}

impl Line {
    fn start(
        name: &str,
        which: Which,
        authority: Arc<dyn Authority>,
        answers: Sender<Answered>,
    ) -> io::Result<Self> {
        let (asks, asked) = bounded::<Ask>(ASKS_MAX);
        let (end, done) = bounded::<()>(0);
        threads::spawn(name, move || {
            // Dropped with the thread.
            let _end = end;
            while let Ok(ask) = asked.recv() {
                let answer = answer(&*authority, &ask.request);
                // Refused only where nobody waits any more.
                let _ = answers.try_send((ask.id, which, answer));
            }
        })?;
        Ok(Self { asks, done })
    }
}

fn answer(authority: &dyn Authority, request: &Request) -> Answer {
    let granted = |grant: Result<_, AuthorityError>| grant.map_or_else(failed, Answer::Grant);
    match request {
        Request::Look => authority.look().map_or_else(failed, Answer::Look),
        Request::Take { holder, epoch } => granted(authority.take(holder, *epoch)),
        Request::Renew { holder, epoch } => granted(authority.renew(holder, *epoch)),
        Request::Release { holder } => {
            if let Err(error) = authority.release(holder) {
                failed(error);
            }
            // Nobody waits for it.
            Answer::Failed
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as the end of a result")]
fn failed(error: AuthorityError) -> Answer {
    tracing::debug!(%error, "an authority of the lease did not answer");
    Answer::Failed
}

/// State of the thread.
struct Worker {
    state: lease::LeaseState,
    row: Line,
    claim: Option<Line>,
    answers: Receiver<Answered>,
    stopped: Receiver<()>,
    leadership: Arc<Leadership>,
    first_call_after_ms: u64,
    /// When this node began to lead; `None` while it follows.
    began_mono_ms: Option<u64>,
    clock: Clock,
}

impl Worker {
    fn run(mut self) {
        loop {
            let now_mono_ms = self.clock.monotonic_ms();
            let asks = self.state.due(now_mono_ms, rng::bits());
            self.send(asks);
            if self.stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected) {
                return self.let_go();
            }
            while let Ok((id, which, answer)) = self.answers.try_recv() {
                self.state.answered(id, which, answer, self.clock.monotonic_ms());
            }
            if let Some(epoch) = self.leadership.take_refused() {
                self.state.refused(epoch, self.clock.monotonic_ms(), rng::bits());
            }
            self.tell(self.clock.monotonic_ms());
        }
    }

    fn send(&self, asks: Vec<Ask>) {
        for ask in asks {
            let line = match ask.which {
                Which::Row => Some(&self.row),
                Which::Claim => self.claim.as_ref(),
            };
            // One that stalls so long that its line is full counts as not answering.
            if let Some(line) = line {
                let _ = line.asks.try_send(ask);
            }
        }
    }

    /// Tells this process what it may do.
    fn tell(&mut self, now_mono_ms: u64) {
        match self.state.standing(now_mono_ms) {
            Standing::Leader { epoch, until_mono_ms } => {
                let began_mono_ms = *self.began_mono_ms.get_or_insert(now_mono_ms);
                let asks_from_mono_ms = began_mono_ms + self.first_call_after_ms;
                self.leadership.grant(Term { epoch, asks_from_mono_ms, until_mono_ms });
            }
            Standing::Follower => {
                self.began_mono_ms = None;
                self.leadership.end();
            }
        }
    }

    /// Calls that are under way end by themselves, well within the time that a new leader waits.
    fn let_go(mut self) {
        self.leadership.end();
        let farewells = self.state.stop();
        self.send(farewells);
        let Self { row, claim, .. } = self;
        for line in [Some(row), claim].into_iter().flatten() {
            drop(line.asks);
            let _ = line.done.recv_timeout(RELEASE_WAIT);
        }
    }
}
