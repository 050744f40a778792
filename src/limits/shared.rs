//! Limits that hold over all nodes together. The node's own limiter is asked first, on the edge;
//! an attempt that it admits is counted with those of the other nodes on a lane that may block,
//! before the work that the limit protects.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::throttle::Throttled;
use crate::base::limiter::Rate;

/// Counts attempts of all nodes. Calls block for a bounded time, so they are for a lane.
pub trait SharedCounts: Send + Sync {
    /// Counts `cost` attempts in the bucket of every value, or none if any bucket refuses. Values
    /// of another `kind` have other buckets. While there is no answer in time the node's own
    /// limiter alone decides, and this admits.
    ///
    /// # Errors
    /// [`Throttled`].
    fn admit(
        &self,
        kind: &'static str,
        values: &[&[u8]],
        rate: Rate,
        cost: u64,
    ) -> Result<(), Throttled>;

    /// Forgets the attempts of a value.
    fn forgive(&self, kind: &'static str, value: &[u8]);

    /// What became of attempts since the start.
    fn tally(&self) -> SharedTally;
}

/// What became of attempts that were to be counted at all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedTally {
    /// All nodes together had admitted too many.
    pub refused: u64,
    /// There was no answer in time.
    pub unknown: u64,
}

/// An attempt that this node's limiter has admitted.
pub struct SharedAttempt {
    pub(super) counts: Arc<dyn SharedCounts>,
    pub(super) kind: &'static str,
    pub(super) rate: Rate,
    /// E-mails and addresses, in memory that is wiped, each with what the attempt costs there.
    pub(super) values: Vec<(Zeroizing<Vec<u8>>, u64)>,
}

impl SharedAttempt {
    /// Counts it with those of the other nodes. Blocks for a bounded time.
    ///
    /// # Errors
    /// [`Throttled`] if all nodes together have had their attempts.
    pub fn count(&self) -> Result<(), Throttled> {
        let of_cost =
            |is_one: bool| self.values.iter().filter(move |value| (value.1 == 1) == is_one);
        // What costs more is asked first, by itself: whoever is refused there takes nothing of what
        // is everybody's.
        for (value, cost) in of_cost(false) {
            self.counts.admit(self.kind, &[value], self.rate, *cost)?;
        }
        let values: Vec<&[u8]> = of_cost(true).map(|(value, _)| value.as_slice()).collect();
        self.counts.admit(self.kind, &values, self.rate, 1)
    }

    /// Forgets the attempts of all keys but the first, which is the client's address, after a
    /// correct password. Blocks as [`count`](Self::count) does.
    pub fn forgive_own(&self) {
        for (value, _) in self.values.iter().skip(1) {
            self.counts.forgive(self.kind, value);
        }
    }
}
