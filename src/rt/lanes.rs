//! Thread pools for blocking work. Everything that waits for a disk or an upstream, or computes for
//! long (password hashes), runs here and nowhere else.
//!
//! A [`Lane`] is a few named OS threads behind one bounded queue. Submitting a job never blocks: a
//! full queue refuses it at once. Every job has a deadline. If that passes while the job is queued,
//! the job never runs; its waiter stops waiting at the deadline in any case. A panic fails the job
//! and not the thread.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::Mutex;

use crate::base::Clock;
use crate::ops::histogram::bucket_of;
use crate::rt::moving::Parker;
use crate::rt::staged;
use crate::rt::threads::{lower_own_priority, start};

/// Time that a closing lane waits for running jobs.
const CLOSE_GRACE_MS: u64 = 500;

/// Upper bounds of the histogram of queueing times, in milliseconds; one more bucket counts longer
/// ones. They reach from no wait to the longest deadlines of jobs.
pub(crate) const WAIT_BOUNDS_MS: [u64; 10] = [1, 5, 10, 25, 100, 250, 1_000, 2_500, 10_000, 60_000];

/// Number of buckets: one for each bound, and one for longer times.
const WAIT_BUCKETS: usize = WAIT_BOUNDS_MS.len() + 1;

/// Parameters of a lane.
#[derive(Debug, Clone)]
pub struct LaneSpec {
    /// Also the prefix of its threads' names.
    pub name: &'static str,
    pub threads: usize,
    /// Most jobs in the queue; one more is refused.
    pub queue_max: usize,
}

/// The lane's queue is full, or the lane is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("lane {lane} is full")]
pub struct Refused {
    pub lane: &'static str,
}

/// Why a submitted job has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    #[error("the job did not end within its deadline")]
    Late,
    #[error("the job panicked")]
    Panicked,
    #[error("the lane closed before the job ran")]
    Closed,
}

/// Counters of one lane since its start; `depth` and `running` are current values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaneStats {
    /// Jobs in the queue.
    pub depth: usize,
    pub running: u64,
    pub completed: u64,
    /// Jobs refused because the queue was full.
    pub refused: u64,
    /// Jobs dropped unrun because their deadline passed in the queue.
    pub expired: u64,
    pub panicked: u64,
    /// Number of jobs by queueing time, in the buckets of [`WAIT_BOUNDS_MS`]; not cumulative.
    pub waits: [u64; WAIT_BUCKETS],
    /// Sum of all queueing times.
    pub wait_ms_total: u64,
    pub wait_ms_max: u64,
}

impl LaneStats {
    fn record_wait(&mut self, waited_ms: u64) {
        self.waits[bucket_of(&WAIT_BOUNDS_MS, waited_ms)] += 1;
        self.wait_ms_total += waited_ms;
        self.wait_ms_max = self.wait_ms_max.max(waited_ms);
    }
}

struct Job {
    queued_at_ms: u64,
    deadline_ms: u64,
    /// Called with true to run the job, with false to report to its waiter that it expired.
    body: Box<dyn FnOnce(bool) + Send>,
}

/// A pool of OS threads behind a bounded queue. Dropping it gives queued jobs a short time to
/// finish.
pub struct Lane {
    name: &'static str,
    clock: Clock,
    queue: Option<Sender<Job>>,
    /// Locked to count, never over a job.
    stats: Arc<Mutex<LaneStats>>,
    threads: Vec<Worker>,
}

impl Lane {
    /// Starts the lane's threads.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(spec: &LaneSpec, clock: &Clock) -> io::Result<Self> {
        Self::start_with_priority(spec, clock, false)
    }

    /// Starts the lane's threads with the lowest priority: for work that computes for long and must
    /// not keep the edge from a core.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub(crate) fn start_lowered(spec: &LaneSpec, clock: &Clock) -> io::Result<Self> {
        Self::start_with_priority(spec, clock, true)
    }

    fn start_with_priority(spec: &LaneSpec, clock: &Clock, lowered: bool) -> io::Result<Self> {
        let (queue, jobs) = bounded(spec.queue_max);
        let stats = Arc::<Mutex<LaneStats>>::default();
        let mut handles = Vec::with_capacity(spec.threads);
        for number in 0..spec.threads.max(1) {
            let jobs = jobs.clone();
            let stats = Arc::clone(&stats);
            let clock = clock.clone();
            let name = format!("{}-{number}", spec.name);
            handles.extend(start_worker(&name, move || {
                if lowered
                    && !staged::is_set()
                    && let Err(error) = lower_own_priority()
                {
                    tracing::warn!(%error, "cannot lower the priority of a lane's thread");
                }
                run_jobs(&jobs, &stats, &clock);
            })?);
        }
        let queue = Some(queue);
        let clock = clock.clone();
        Ok(Self {
            name: spec.name,
            clock,
            queue,
            stats,
            threads: handles,
        })
    }

    /// Queues `job`. The ticket waits for its result until `deadline_ms` from now; a job that is
    /// still queued then never runs.
    ///
    /// # Errors
    /// [`Refused`], at once, if the queue is full.
    pub fn submit<T, F>(&self, deadline_ms: u64, job: F) -> Result<Ticket<T>, Refused>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (answer, ticket) = promise(deadline_ms);
        let stats = Arc::clone(&self.stats);
        let queued_at_ms = self.clock.monotonic_ms();
        let body = Box::new(move |run: bool| {
            if !run {
                return answer.give(Err(LaneError::Late));
            }
            let ended = catch_unwind(AssertUnwindSafe(job));
            let ended = ended.inspect_err(|panic| staged::note_panic(&**panic));
            // Counted before the answer, so that the waiter does not find the job running.
            let mut counted = stats.lock();
            counted.running -= 1;
            counted.completed += u64::from(ended.is_ok());
            counted.panicked += u64::from(ended.is_err());
            drop(counted);
            answer.give(ended.map_err(|_| LaneError::Panicked));
        });
        let job = Job {
            queued_at_ms,
            deadline_ms: queued_at_ms + deadline_ms,
            body,
        };
        let refused = Refused { lane: self.name };
        if self.queue.as_ref().ok_or(refused)?.try_send(job).is_err() {
            self.stats.lock().refused += 1;
            return Err(refused);
        }
        Ok(ticket)
    }

    /// Current values of the counters.
    pub fn stats(&self) -> LaneStats {
        LaneStats {
            depth: self.queue.as_ref().map_or(0, Sender::len),
            ..*self.stats.lock()
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

impl Drop for Lane {
    /// Does not wait for threads that still run a job after the grace period: a process that stops
    /// must not wait for an upstream that hangs.
    fn drop(&mut self) {
        self.queue = None;
        join_within_grace(&mut self.threads);
    }
}

/// A thread, and the channel that closes when it ends.
pub(super) type Worker = (JoinHandle<()>, Receiver<()>);

/// Starts a thread that ends when its queue closes; `None` for a task of a stage.
pub(super) fn start_worker(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<Option<Worker>> {
    let (done, ended) = bounded::<()>(0);
    let thread = start(name, move || {
        let _done = done;
        body();
    })?;
    Ok(thread.map(|thread| (thread, ended)))
}

/// Joins threads whose queue is closed. Threads that still run after the grace period are detached.
pub(super) fn join_within_grace(workers: &mut Vec<Worker>) {
    let since_close = Clock::system();
    for (thread, ended) in workers.drain(..) {
        let left_ms = CLOSE_GRACE_MS.saturating_sub(since_close.monotonic_ms());
        let wait = ended.recv_timeout(Duration::from_millis(left_ms));
        if wait == Err(RecvTimeoutError::Disconnected) {
            // Cannot fail: the thread ended because its queue closed, and panics of jobs are
            // caught.
            let _ = thread.join();
        }
    }
}

fn run_jobs(jobs: &Receiver<Job>, stats: &Mutex<LaneStats>, clock: &Clock) {
    while let Ok(job) = staged::receive(jobs, None) {
        let now_ms = clock.monotonic_ms();
        let is_late = now_ms > job.deadline_ms;
        let mut counted = stats.lock();
        counted.record_wait(now_ms.saturating_sub(job.queued_at_ms));
        counted.expired += u64::from(is_late);
        counted.running += u64::from(!is_late);
        drop(counted);
        (job.body)(!is_late);
    }
}

enum Outcome<T> {
    Waiting(Option<Parker>),
    Done(Result<T, LaneError>),
    Taken,
}

type Slot<T> = Mutex<Outcome<T>>;

/// The two ends of one result: the lane's, which sets it, and the caller's, which waits for it.
pub(super) fn promise<T>(deadline_ms: u64) -> (Answer<T>, Ticket<T>) {
    let slot = Arc::new(Mutex::new(Outcome::Waiting(None)));
    (Answer(Arc::clone(&slot)), Ticket { slot, deadline_ms })
}

/// The lane's end of a result. Dropped without [`Answer::give`], it answers that the lane closed.
pub(super) struct Answer<T>(Arc<Slot<T>>);

impl<T> Answer<T> {
    pub(super) fn give(&self, result: Result<T, LaneError>) {
        let mut outcome = self.0.lock();
        let Outcome::Waiting(parker) = &mut *outcome else {
            return; // Already answered, or the waiter gave up.
        };
        let parker = parker.take();
        *outcome = Outcome::Done(result);
        drop(outcome);
        if let Some(parker) = parker {
            parker.unpark();
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        self.give(Err(LaneError::Closed));
    }
}

/// The caller's end of an accepted job.
pub struct Ticket<T> {
    slot: Arc<Slot<T>>,
    deadline_ms: u64,
}

impl<T> Ticket<T> {
    /// Parks the calling coroutine (or OS thread) until the job has ended or its deadline has
    /// passed. A job that runs past its deadline continues, and its result is dropped.
    ///
    /// # Errors
    /// [`LaneError`].
    pub fn wait(self) -> Result<T, LaneError> {
        self.wait_beside(u64::MAX, || ())
    }

    /// Same as [`wait`](Self::wait), and calls `beside` each `every_ms` meanwhile. The time that
    /// `beside` takes adds to the deadline.
    ///
    /// # Errors
    /// [`LaneError`].
    pub(crate) fn wait_beside(
        self,
        every_ms: u64,
        mut beside: impl FnMut(),
    ) -> Result<T, LaneError> {
        let parker = Parker::current();
        if let Outcome::Waiting(waiter) = &mut *self.slot.lock() {
            *waiter = Some(parker.clone());
        }
        let mut left_ms = self.deadline_ms;
        let mut in_time = true;
        loop {
            let taken = {
                let mut outcome = self.slot.lock();
                match &*outcome {
                    Outcome::Waiting(_) if in_time => None,
                    _ => Some(std::mem::replace(&mut *outcome, Outcome::Taken)),
                }
            };
            match taken {
                Some(Outcome::Done(result)) => return result,
                Some(_) => return Err(LaneError::Late),
                None => {}
            }
            let slice_ms = left_ms.min(every_ms);
            if !parker.park(slice_ms) {
                left_ms -= slice_ms;
                in_time = left_ms > 0;
                if in_time {
                    beside();
                }
            }
        }
    }
}

// ---- Outcomes
//
// Jobs whose outcomes are reported to a thread that does not wait for them, such as the scheduler.

/// The reported failure of a job that gave no outcome.
pub(crate) const LOST: &str = "the job was lost: its lane is full, it came too late or it panicked";

/// Reports how the jobs of one task ended. The owner decides what becomes of an outcome.
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
        let mut report = Report {
            outcomes: self.clone(),
            outcome: None,
        };
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
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crossbeam_channel::unbounded;

    fn lane(threads: usize, queue_max: usize) -> Lane {
        Lane::start(
            &LaneSpec {
                name: "test",
                threads,
                queue_max,
            },
            &Clock::system(),
        )
        .unwrap()
    }

    #[test]
    fn who_waits_may_do_something_beside_it_until_the_deadline() {
        let lane = lane(1, 4);
        let (open, gate) = unbounded::<()>();
        let calls = Arc::new(AtomicU64::new(0));
        let ticket = lane.submit(60_000, move || gate.recv()).unwrap();
        let mut open = Some(open);
        let waited = ticket.wait_beside(5, || {
            if calls.fetch_add(1, Ordering::SeqCst) == 2 {
                open = None;
            }
        });
        assert!(waited.unwrap().is_err(), "opened by the third call");
        assert!(calls.load(Ordering::SeqCst) >= 3);
        let (_open, gate) = unbounded::<()>();
        let before = calls.load(Ordering::SeqCst);
        let ticket = lane.submit(20, move || gate.recv()).unwrap();
        let late = ticket.wait_beside(5, || {
            calls.fetch_add(1, Ordering::SeqCst);
        });
        assert!(matches!(late, Err(LaneError::Late)));
        // Fewer on a busy machine, where 5 ms take longer.
        assert!(calls.load(Ordering::SeqCst) - before <= 3, "at 5, 10 and 15 ms");
    }

    #[test]
    fn a_thread_and_a_coroutine_can_wait_for_a_job() {
        let lane = Arc::new(lane(2, 4));
        assert_eq!(lane.submit(5_000, || 6 * 7).unwrap().wait(), Ok(42));
        let (send, receive) = unbounded();
        let inner = Arc::clone(&lane);
        crate::rt::coroutines::spawn(move || {
            send.send(inner.submit(5_000, || "from a lane").unwrap().wait())
                .unwrap();
        })
        .unwrap();
        assert_eq!(receive.recv().unwrap(), Ok("from a lane"));
    }

    #[test]
    fn a_full_queue_refuses_a_job_at_once_and_counts_it() {
        let lane = lane(1, 1);
        let (release, gate) = unbounded::<()>();
        let (started, running) = unbounded::<()>();
        let first = lane
            .submit(60_000, move || {
                started.send(()).unwrap();
                gate.recv().ok();
            })
            .unwrap();
        running.recv().unwrap();
        let second = lane.submit(60_000, || ()).unwrap();
        assert!(lane.submit(60_000, || ()).is_err());
        assert_eq!((lane.stats().refused, lane.stats().depth), (1, 1));
        drop(release);
        assert_eq!((first.wait(), second.wait()), (Ok(()), Ok(())));
    }

    #[test]
    fn who_has_the_answer_does_not_find_the_job_running() {
        /// Dropped when the answer is given, since nobody waits for it.
        struct Given(Arc<Mutex<LaneStats>>, Sender<(u64, u64)>);
        impl Drop for Given {
            fn drop(&mut self) {
                let LaneStats {
                    running, completed, ..
                } = *self.0.lock();
                self.1.send((running, completed)).unwrap();
            }
        }
        let lane = lane(1, 4);
        let (release, gate) = unbounded::<()>();
        let (send, seen) = unbounded();
        let given = Given(Arc::clone(&lane.stats), send);
        let ticket = lane.submit(5_000, move || {
            gate.recv().ok();
            given
        });
        drop(ticket);
        drop(release);
        assert_eq!(seen.recv().unwrap(), (0, 1));
    }

    #[test]
    fn a_panic_fails_the_job_and_leaves_the_thread_running() {
        let lane = lane(1, 4);
        let ticket = lane.submit(5_000, || panic!("on purpose")).unwrap();
        assert_eq!(ticket.wait(), Err::<(), _>(LaneError::Panicked));
        assert_eq!(lane.submit(5_000, || 1).unwrap().wait(), Ok(1));
        assert_eq!(lane.stats().panicked, 1);
    }

    #[test]
    fn a_job_past_its_deadline_answers_late_and_a_queued_one_never_runs() {
        let clock = Clock::manual("2026-11-20T04:00:00Z".parse().unwrap());
        let lane = Lane::start(
            &LaneSpec {
                name: "t",
                threads: 1,
                queue_max: 4,
            },
            &clock,
        )
        .unwrap();
        let (release, gate) = unbounded::<()>();
        let (started, running) = unbounded::<()>();
        let slow = lane
            .submit(20, move || {
                started.send(()).unwrap();
                gate.recv().ok();
            })
            .unwrap();
        running.recv().unwrap();
        let queued = lane.submit(20, || panic!("must not run")).unwrap();
        assert_eq!(slow.wait(), Err(LaneError::Late));
        clock.advance_ms(1_000);
        drop(release);
        assert_eq!(queued.wait(), Err::<(), _>(LaneError::Late));
        assert_eq!(lane.submit(5_000, || 1).unwrap().wait(), Ok(1));
        let stats = lane.stats();
        assert_eq!((stats.expired, stats.panicked), (1, 0));
        // Two jobs began without waiting; the expired one had waited a second.
        assert_eq!(stats.waits, [2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!((stats.wait_ms_total, stats.wait_ms_max), (1_000, 1_000));
    }

    #[test]
    fn a_wait_is_counted_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        assert!(WAIT_BOUNDS_MS.is_sorted_by(|low, high| low < high));
        let mut stats = LaneStats::default();
        stats.record_wait(0);
        for bound_ms in WAIT_BOUNDS_MS {
            stats.record_wait(bound_ms);
            stats.record_wait(bound_ms + 1);
        }
        assert_eq!(stats.waits, [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]);
    }

    #[test]
    fn a_closing_lane_does_not_wait_for_a_job_that_hangs() {
        let lane = lane(1, 1);
        let (release, gate) = unbounded::<()>();
        let (started, running) = unbounded::<()>();
        let hangs = lane.submit(60_000, move || {
            started.send(()).unwrap();
            gate.recv().ok();
        });
        running.recv().unwrap();
        let since_close = Clock::system();
        drop(lane);
        // Half a second, and more on a busy machine.
        assert!(since_close.monotonic_ms() < 4_000, "{} ms", since_close.monotonic_ms());
        drop(release);
        assert_eq!(hangs.unwrap().wait(), Ok(()));
    }

    #[test]
    fn many_coroutines_waiting_on_one_lane_all_get_their_results() {
        let lane = Arc::new(lane(2, 1_000));
        let (send, receive) = unbounded();
        for number in 0..500u64 {
            let lane = Arc::clone(&lane);
            let send = send.clone();
            crate::rt::coroutines::spawn(move || {
                send.send(lane.submit(30_000, move || number * 2).unwrap().wait())
                    .unwrap();
            })
            .unwrap();
        }
        let sum: u64 = (0..500).map(|_| receive.recv().unwrap().unwrap()).sum();
        assert_eq!(sum, 499 * 500);
        assert_eq!(lane.stats().completed, 500);
    }
}

#[cfg(test)]
mod outcomes_tests {
    use crossbeam_channel::unbounded;

    use super::*;

    #[test]
    fn an_outcome_is_told_once_also_of_a_job_that_panics_or_is_refused() {
        let spec = LaneSpec {
            name: "test",
            threads: 1,
            queue_max: 1,
        };
        let lane = Lane::start(&spec, &Clock::system()).unwrap();
        let (send, told) = unbounded();
        let outcomes = Outcomes::new(move |outcome: Option<u8>| send.send(outcome).unwrap());
        outcomes.submit(&lane, 10_000, || 7).unwrap();
        assert_eq!(told.recv().unwrap(), Some(7));
        outcomes
            .submit(&lane, 10_000, || panic!("on purpose"))
            .unwrap();
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
