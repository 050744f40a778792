//! The thread `lease` sends requests to the authorities and publishes the result in this process.
//! Each authority has a thread of its own, so that a stalled one does not delay the other.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::base::rng;
use crate::nodes::lead::{Lead, Term};
use crate::nodes::lease::{
    Answer, Ask, Authority, AuthorityError, LeaseState, LeaseTimes, Request, Which,
};
use crate::rt::threads::{Stop, Stoppable};

/// Interval at which the thread checks for due requests.
const LOOK: Duration = Duration::from_millis(50);

/// Requests that wait for one authority: one under way, one that is due, and two to give back.
const ASKS_MAX: usize = 8;

/// Longest wait for the authorities when the service stops; then the lease runs out by itself.
const RELEASE_WAIT: Duration = Duration::from_millis(1_000);

/// The inputs of the thread.
pub(crate) struct LeaseParts {
    pub times: LeaseTimes,
    /// The name of this node.
    pub node: String,
    /// The authority that counts epochs.
    pub row: Arc<dyn Authority>,
    pub claim: Option<Arc<dyn Authority>>,
    /// Written by this thread.
    pub lead: Lead,
    /// Time between the start of a lead and the first upstream call. The leader before may have
    /// made its last call at its very end.
    pub first_call_after_ms: u64,
}

/// Starts the thread and those of the authorities. Dropping it ends the leadership and gives it
/// back, so that another node need not wait for its end.
///
/// # Errors
/// A thread cannot be started.
pub(crate) fn start_lease(parts: LeaseParts) -> io::Result<Stoppable> {
    let (answer, answers) = bounded(2 * ASKS_MAX);
    let row = Line::start("lease-row", Which::Row, parts.row, answer.clone())?;
    let claim = parts
        .claim
        .map(|claim| Line::start("lease-claim", Which::Claim, claim, answer))
        .transpose()?;
    let worker = Worker {
        state: LeaseState::new(parts.times, &parts.node, claim.is_some()),
        row,
        claim,
        answers,
        lead: parts.lead,
        first_call_after_ms: parts.first_call_after_ms,
        began_mono_ms: None,
    };
    // The wait covers both authorities, one after the other.
    Stoppable::spawn("lease", 3 * RELEASE_WAIT, move |stop| worker.run(&stop))
}

/// The request's id, the authority, and its answer.
type Answered = (u64, Which, Answer);

/// The way to one authority. Dropping it waits for the requests that were sent.
struct Line {
    asks: Sender<Ask>,
    _thread: Stoppable,
}

impl Line {
    fn start(
        name: &str,
        which: Which,
        authority: Arc<dyn Authority>,
        answers: Sender<Answered>,
    ) -> io::Result<Self> {
        let (asks, asked) = bounded::<Ask>(ASKS_MAX);
        let _thread = Stoppable::spawn(name, RELEASE_WAIT, move |_| {
            while let Ok(ask) = asked.recv() {
                let answer = answer(&*authority, &ask.request);
                // This fails only if the thread `lease` no longer waits.
                let _ = answers.try_send((ask.id, which, answer));
            }
        })?;
        Ok(Self { asks, _thread })
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
            // No one waits for the answer to a release.
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
    state: LeaseState,
    row: Line,
    claim: Option<Line>,
    answers: Receiver<Answered>,
    lead: Lead,
    first_call_after_ms: u64,
    /// When this node began to lead; `None` while it follows.
    began_mono_ms: Option<u64>,
}

impl Worker {
    fn run(mut self, stop: &Stop) {
        loop {
            let now_mono_ms = self.lead.now_mono_ms();
            let asks = self.state.due(now_mono_ms, rng::bits());
            self.send(asks);
            if stop.wait(LOOK) {
                return self.let_go();
            }
            while let Ok((id, which, answer)) = self.answers.try_recv() {
                self.state
                    .answered(id, which, answer, self.lead.now_mono_ms());
            }
            if let Some(epoch) = self.lead.take_refused() {
                self.state
                    .refused(epoch, self.lead.now_mono_ms(), rng::bits());
            }
            self.tell(self.lead.now_mono_ms());
        }
    }

    fn send(&self, asks: Vec<Ask>) {
        for ask in asks {
            let line = match ask.which {
                Which::Row => Some(&self.row),
                Which::Claim => self.claim.as_ref(),
            };
            // An authority whose queue is full is stalled, and counts as not answering.
            if let Some(line) = line {
                let _ = line.asks.try_send(ask);
            }
        }
    }

    /// Publishes to the process whether this node leads.
    fn tell(&mut self, now_mono_ms: u64) {
        match self.state.leads(now_mono_ms) {
            Some((epoch, until_mono_ms)) => {
                let began_mono_ms = *self.began_mono_ms.get_or_insert(now_mono_ms);
                let asks_from_mono_ms = began_mono_ms + self.first_call_after_ms;
                self.lead.grant(Term {
                    epoch,
                    asks_from_mono_ms,
                    until_mono_ms,
                });
            }
            None => {
                self.began_mono_ms = None;
                self.lead.end();
            }
        }
    }

    /// Ends the lead. Calls under way end by themselves, well within the time that a new leader
    /// waits.
    fn let_go(mut self) {
        self.lead.end();
        let farewells = self.state.stop();
        self.send(farewells);
    }
}
