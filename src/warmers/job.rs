//! Jobs that a task of the scheduler sends to a lane, and the way back of what became of them.

use std::sync::Arc;

use crate::rt::{Lane, Refused};

/// What a job that gave no outcome is said to have failed with.
pub(crate) const LOST: &str = "the job was lost: its lane is full, it came too late or it panicked";

/// Tells the scheduler how the jobs of one task ended. Knows nothing of the scheduler's events: the
/// scheduler decides which event an outcome becomes.
pub(crate) struct Outcomes<T>(Arc<dyn Fn(Option<T>) + Send + Sync>);

impl<T> Clone for Outcomes<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> Outcomes<T> {
    /// Each outcome goes to `tell`, `None` where the job was lost.
    pub(crate) fn new(tell: impl Fn(Option<T>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// For tests without a scheduler.
    #[cfg(test)]
    pub(crate) fn ignored() -> Self {
        Self::new(|_| {})
    }

    /// Queues `job` on `lane`. Its outcome is told once, whatever happens: `None` if it panicked,
    /// was refused or was never run. The task must note that a job is under way before this call,
    /// because the outcome may arrive at once.
    ///
    /// # Errors
    /// When the lane's queue is full. The lost outcome is told all the same.
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
