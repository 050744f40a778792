//! The state machine of one node. From the answers of its authorities it decides whether the node
//! leads, in which epoch, until when, and which requests to send next. Pure, except for the threads
//! at the end: the caller sends requests, and passes in answers and the monotonic time.
//!
//! The authorities are the *row*, which counts epochs, and in most clusters the *claim*. Taking
//! needs both, keeping needs either. No two nodes lead at once, whatever is late or lost:
//!
//! 1. A lease counts from before its request was sent, and ends a margin early. So a node that
//!    counts a lease has it at the authority.
//! 2. A node that begins to lead counts both leases at that moment. So no other node has one of
//!    them, and no other node leads.
//! 3. A leader counts one lease without a gap. After a gap only 2 makes it lead again.
//!
//! An authority that forgets its leases, as a server without a disk does, gives no new one until
//! those that it forgot have run out. A row may go back to an earlier state, if the database was
//! restored or its standby had not received the last commits. If that takes less than a lease, two
//! nodes may both act as leader for the rest of it. Their epochs differ, and writes of the lower
//! one are refused. No epoch is given twice: a node that takes the row asks for an epoch above the
//! highest that the claim's authority or the node itself has seen. A node that leads by its claim
//! alone takes a free row, and goes on in a new epoch.

use crate::store::Epoch;

/// An authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The authority that counts epochs.
    Row,
    /// The second authority.
    Claim,
}

/// A request to an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Look,
    Take { holder: Holder, epoch: Epoch },
    Renew { holder: Holder, epoch: Epoch },
    Release { holder: Holder },
}

/// A request to be sent now. Requests to different authorities are sent at the same time: one that
/// stalls must not eat the other's deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// Identifies the answer. Answers to a release are not waited for.
    pub id: u64,
    pub which: Which,
    pub request: Request,
}

/// The answer of an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Look(Look),
    Grant(Grant),
    /// No answer, or an error. The request may still take effect.
    Failed,
}

/// Durations of the lease protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseTimes {
    /// Length of the lease that the authorities give.
    pub lease_ms: u64,
    /// Time by which this node gives up early. It covers clocks that run at different speeds, and
    /// actions begun just before.
    pub margin_ms: u64,
    /// Interval of renewals.
    pub renew_ms: u64,
    /// Interval of tries to take the lease, plus up to a quarter at random.
    pub retry_ms: u64,
    /// Longest wait for an answer. A later one is ignored.
    pub answer_ms: u64,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self::of(5_000)
    }
}

impl LeaseTimes {
    /// Times for leases of this length.
    pub(crate) const fn of(lease_ms: u64) -> Self {
        let fifth = lease_ms / 5;
        Self {
            lease_ms,
            margin_ms: fifth,
            renew_ms: fifth,
            retry_ms: fifth,
            answer_ms: 2 * fifth,
        }
    }

    /// Longest that a holder acts on a lease after he asked for it.
    pub(crate) const fn acts_ms(&self) -> u64 {
        self.lease_ms.saturating_sub(self.margin_ms)
    }
}

/// One authority as this node sees it.
#[derive(Debug, Default)]
struct Held {
    /// Time at which this node gives the lease up; 0 without a lease.
    until_mono_ms: u64,
    /// The request under way, and when it was handed out.
    under_way: Option<(u64, u64)>,
    asked_mono_ms: u64,
}

#[derive(Debug)]
enum Stage {
    Follower,
    Looking,
    /// The claim was free when its authority was last asked.
    Free,
    TakingRow {
        holder: Holder,
    },
    Claiming {
        holder: Holder,
        epoch: Epoch,
    },
    Leader {
        holder: Holder,
        epoch: Epoch,
    },
    Stopped,
}

/// The state of one node.
#[derive(Debug)]
pub(crate) struct LeaseState {
    times: LeaseTimes,
    node: String,
    has_claim: bool,
    stage: Stage,
    row: Held,
    claim: Held,
    /// The row replied that this leader has lost it.
    has_lost_row: bool,
    not_before_mono_ms: u64,
    /// The highest epoch that this node knows of.
    highest: Epoch,
    asks: u64,
    /// Releases still to be sent.
    farewells: Vec<Ask>,
}

impl LeaseState {
    /// A follower. Without a claim the row alone decides.
    pub(crate) fn new(times: LeaseTimes, node: &str, has_claim: bool) -> Self {
        Self {
            times,
            node: node.to_owned(),
            has_claim,
            stage: Stage::Follower,
            row: Held::default(),
            claim: Held::default(),
            has_lost_row: false,
            not_before_mono_ms: 0,
            highest: Epoch::default(),
            asks: 0,
            farewells: Vec::new(),
        }
    }

    /// The epoch in which this node leads now, and the moment before which it may act as the
    /// leader, and never from it on. To be asked before every call, publication and write.
    pub(crate) fn leads(&self, now_mono_ms: u64) -> Option<(Epoch, u64)> {
        let until_mono_ms = self.row.until_mono_ms.max(self.claim.until_mono_ms);
        let Stage::Leader { epoch, .. } = &self.stage else {
            return None;
        };
        (now_mono_ms < until_mono_ms).then_some((*epoch, until_mono_ms))
    }

    /// The requests to send now. `random` spreads the tries of several nodes and distinguishes
    /// attempts. To be called some ten times a second.
    pub(crate) fn due(&mut self, now_mono_ms: u64, random: u64) -> Vec<Ask> {
        self.lapse(now_mono_ms);
        for which in [Which::Row, Which::Claim] {
            let under_way = self.lease(which).under_way;
            if let Some((id, asked_ms)) = under_way
                && now_mono_ms.saturating_sub(asked_ms) >= self.times.answer_ms
            {
                self.answered(id, which, Answer::Failed, now_mono_ms);
            }
        }
        let mut asks = std::mem::take(&mut self.farewells);
        asks.extend(self.step(now_mono_ms, random));
        if let Stage::Leader { holder, epoch } = &self.stage {
            let holder = holder.clone();
            let epoch = *epoch;
            let renew = Request::Renew {
                holder: holder.clone(),
                epoch,
            };
            // A row that another node holds is refused. A free one gives a new epoch.
            let row = if self.has_lost_row {
                Request::Take { holder, epoch }
            } else {
                renew.clone()
            };
            asks.extend(self.renewal(Which::Row, &row, now_mono_ms));
            if self.has_claim {
                asks.extend(self.renewal(Which::Claim, &renew, now_mono_ms));
            }
        }
        asks
    }

    /// The next step of a try to lead.
    fn step(&mut self, now_mono_ms: u64, random: u64) -> Option<Ask> {
        match &self.stage {
            Stage::Follower if now_mono_ms >= self.not_before_mono_ms => {
                self.rest(now_mono_ms, random);
                if self.has_claim {
                    self.stage = Stage::Looking;
                    return Some(self.ask(Which::Claim, Request::Look, now_mono_ms));
                }
                Some(self.take_row(now_mono_ms, random))
            }
            // The row is taken only now, because each grant raises the epoch, even if it is given
            // back.
            Stage::Free => Some(self.take_row(now_mono_ms, random)),
            Stage::Claiming { holder, epoch } if self.claim.under_way.is_none() => {
                let take = Request::Take {
                    holder: holder.clone(),
                    epoch: *epoch,
                };
                Some(self.ask(Which::Claim, take, now_mono_ms))
            }
            _ => None,
        }
    }

    fn take_row(&mut self, now_mono_ms: u64, random: u64) -> Ask {
        let holder = Holder::new(&self.node, random);
        self.stage = Stage::TakingRow {
            holder: holder.clone(),
        };
        self.ask(
            Which::Row,
            Request::Take {
                holder,
                epoch: self.highest,
            },
            now_mono_ms,
        )
    }

    /// Processes an answer. One that is no longer awaited is ignored.
    pub(crate) fn answered(&mut self, id: u64, which: Which, answer: Answer, now_mono_ms: u64) {
        // The lapse comes first: a renewal that arrives after the deadline restores nothing.
        self.lapse(now_mono_ms);
        let lease = self.lease(which);
        let Some((_, asked_ms)) = lease.under_way.take_if(|(waited_for, _)| *waited_for == id)
        else {
            return;
        };
        let until_mono_ms = asked_ms + self.times.acts_ms();
        match (std::mem::replace(&mut self.stage, Stage::Follower), which) {
            (Stage::Leader { holder, epoch }, _) => {
                let epoch = self.renewed(which, epoch, answer, until_mono_ms);
                self.stage = Stage::Leader { holder, epoch };
            }
            (Stage::Looking, Which::Claim) => {
                if let Answer::Look(Look { is_free, highest }) = answer {
                    self.highest = self.highest.max(highest);
                    if is_free {
                        self.stage = Stage::Free;
                    }
                }
            }
            (Stage::TakingRow { holder }, Which::Row) => {
                self.row_answered(holder, answer, until_mono_ms, now_mono_ms);
            }
            (Stage::Claiming { holder, epoch }, Which::Claim) => {
                if let Answer::Grant(Grant::Granted(_)) = answer {
                    self.claim.until_mono_ms = until_mono_ms;
                }
                self.lead_with_both(holder, epoch, now_mono_ms);
            }
            (stage, _) => self.stage = stage,
        }
    }

    fn row_answered(
        &mut self,
        holder: Holder,
        answer: Answer,
        until_mono_ms: u64,
        now_mono_ms: u64,
    ) {
        match answer {
            Answer::Grant(Grant::Granted(epoch)) => {
                self.row.until_mono_ms = until_mono_ms;
                if self.has_claim {
                    self.stage = Stage::Claiming { holder, epoch };
                } else {
                    self.lead_with_both(holder, epoch, now_mono_ms);
                }
            }
            // The refused request changed nothing.
            Answer::Grant(Grant::Refused) => {}
            Answer::Look(_) | Answer::Failed => self.give_back(&holder),
        }
    }

    /// Begins to lead if every required lease is counted at this moment.
    fn lead_with_both(&mut self, holder: Holder, epoch: Epoch, now_mono_ms: u64) {
        let has = |lease: &Held| now_mono_ms < lease.until_mono_ms;
        if has(&self.row) && (!self.has_claim || has(&self.claim)) {
            self.highest = self.highest.max(epoch);
            self.has_lost_row = false;
            self.stage = Stage::Leader { holder, epoch };
        } else {
            self.give_back(&holder);
        }
    }

    /// Processes the answer to a renewal. Returns the epoch from then on.
    fn renewed(&mut self, which: Which, epoch: Epoch, answer: Answer, until_mono_ms: u64) -> Epoch {
        let lease = match which {
            Which::Row => &mut self.row,
            Which::Claim => &mut self.claim,
        };
        match answer {
            Answer::Grant(Grant::Granted(granted)) if which == Which::Claim || granted >= epoch => {
                lease.until_mono_ms = lease.until_mono_ms.max(until_mono_ms);
                self.has_lost_row &= which == Which::Claim;
                self.highest = self.highest.max(granted);
                granted.max(epoch)
            }
            Answer::Grant(_) => {
                lease.until_mono_ms = 0;
                self.has_lost_row |= which == Which::Row;
                epoch
            }
            Answer::Look(_) | Answer::Failed => epoch,
        }
    }

    /// A message or write of this epoch was refused because of a newer leader. So this node does
    /// not lead, whatever its leases are. It tries again after a pause, like any other.
    pub(crate) fn refused(&mut self, refused: Epoch, now_mono_ms: u64, random: u64) {
        if let Stage::Leader { holder, epoch } = &self.stage
            && *epoch == refused
        {
            let holder = holder.clone();
            self.stage = Stage::Follower;
            self.rest(now_mono_ms, random);
            self.give_back(&holder);
        }
    }

    /// Lets a pause pass before the next try to lead.
    fn rest(&mut self, now_mono_ms: u64, random: u64) {
        let spread_ms = random % (self.times.retry_ms / 4).max(1);
        self.not_before_mono_ms = now_mono_ms + self.times.retry_ms + spread_ms;
    }

    /// Gives up at once and for good. Returns requests to be sent, so that another node need not
    /// wait for the lease to run out.
    pub(crate) fn stop(&mut self) -> Vec<Ask> {
        match std::mem::replace(&mut self.stage, Stage::Stopped) {
            Stage::TakingRow { holder }
            | Stage::Claiming { holder, .. }
            | Stage::Leader { holder, .. } => self.give_back(&holder),
            Stage::Follower | Stage::Looking | Stage::Free | Stage::Stopped => {}
        }
        std::mem::take(&mut self.farewells)
    }

    /// Ends the lead if its deadline has passed.
    fn lapse(&mut self, now_mono_ms: u64) {
        let is_over = self.leads(now_mono_ms).is_none();
        if let (Stage::Leader { holder, .. }, true) = (&self.stage, is_over) {
            let holder = holder.clone();
            self.stage = Stage::Follower;
            self.give_back(&holder);
        }
    }

    fn renewal(&mut self, which: Which, renew: &Request, now_mono_ms: u64) -> Option<Ask> {
        let renew_ms = self.times.renew_ms;
        let lease = self.lease(which);
        let since_ms = now_mono_ms.saturating_sub(lease.asked_mono_ms);
        let is_due = lease.under_way.is_none() && since_ms >= renew_ms;
        is_due.then(|| self.ask(which, renew.clone(), now_mono_ms))
    }

    fn ask(&mut self, which: Which, request: Request, now_mono_ms: u64) -> Ask {
        self.asks += 1;
        let id = self.asks;
        let lease = self.lease(which);
        (lease.under_way, lease.asked_mono_ms) = (Some((id, now_mono_ms)), now_mono_ms);
        Ask { id, which, request }
    }

    /// Forgets both leases, and releases those that the node may hold.
    fn give_back(&mut self, holder: &Holder) {
        for which in [Which::Row, Which::Claim] {
            let lease = self.lease(which);
            lease.until_mono_ms = 0;
            lease.under_way = None;
            if which == Which::Row || self.has_claim {
                self.asks += 1;
                let request = Request::Release {
                    holder: holder.clone(),
                };
                self.farewells.push(Ask {
                    id: self.asks,
                    which,
                    request,
                });
            }
        }
    }

    fn lease(&mut self, which: Which) -> &mut Held {
        match which {
            Which::Row => &mut self.row,
            Which::Claim => &mut self.claim,
        }
    }
}

// ---- Authority
//
// An authority that gives a lease to one holder at a time.

/// The holder of a lease: a node's name and random bits of one attempt.
///
/// Another attempt is another holder. A request of an attempt that was given up may still be on its
/// way and take effect later; it must neither renew nor release the lease of the next attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder(String);

impl Holder {
    /// Longest name of a node.
    pub(crate) const NODE_BYTES_MAX: usize = 64;
    /// Longest text of a holder.
    pub(crate) const BYTES_MAX: usize = Self::NODE_BYTES_MAX + 1 + 16;

    /// A holder that differs from all others, since `attempt` is random. A name over the limit is
    /// cut.
    pub fn new(node: &str, attempt: u64) -> Self {
        let plain = |letter: &char| letter.is_ascii_alphanumeric() || "-_.".contains(*letter);
        let node: String = node
            .chars()
            .filter(plain)
            .take(Self::NODE_BYTES_MAX)
            .collect();
        Self(format!("{node}/{attempt:016x}"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The answer to a request for the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The holder has the lease, for its full length from the moment of the answer at the
    /// authority.
    Granted(Epoch),
    /// Somebody else has it, or it cannot be given yet.
    Refused,
}

/// The state of an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether nobody has the lease.
    pub is_free: bool,
    /// The highest epoch that this authority has seen; 0 if it counts none.
    pub highest: Epoch,
}

/// An authority did not answer. The request may still take effect, even later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthorityError(pub String);

/// Gives one lease. Calls block, each for less than the margin between lease and local deadline.
pub trait Authority: Send + Sync {
    /// Whether the lease is free now. Changes nothing.
    ///
    /// # Errors
    /// [`AuthorityError`].
    fn look(&self) -> Result<Look, AuthorityError>;

    /// Takes the lease if nobody has it. The row grants an epoch above its last one and above
    /// `epoch`, the highest known one, because the row may have gone back. The claim keeps the
    /// given `epoch`, unless it has seen that or a higher one.
    ///
    /// # Errors
    /// [`AuthorityError`].
    fn take(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError>;

    /// Extends the lease of `holder`. A lease that has run out is given again unless another holder
    /// took it meanwhile.
    ///
    /// # Errors
    /// [`AuthorityError`].
    fn renew(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError>;

    /// Gives the lease back, if `holder` has it.
    ///
    /// # Errors
    /// [`AuthorityError`].
    fn release(&self, holder: &Holder) -> Result<(), AuthorityError>;
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "lease_model.rs"]
mod model;
