//! Group commit: one thread runs all waiting write jobs inside one transaction.
//!
//! A [`Batch`] is a named OS thread behind a bounded queue, and the only owner of its [`Ledger`],
//! the store that it writes to. The thread takes the queued jobs, up to a maximum, and begins a
//! transaction. It runs each job under its own savepoint, so that a job that fails undoes only its
//! own work. Then it commits once, and only then answers the jobs. Meanwhile the next jobs queue.
//! No job is answered as done before its commit.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;

use super::lanes::{
    Answer, LaneError, Refused, Ticket, Worker, join_within_grace, promise, start_worker,
};
use crate::base::Clock;
use crate::ops::histogram::bucket_of;
use crate::rt::staged;

/// A store with transactions and savepoints. Called on the batch's thread only.
pub trait Ledger: Send + 'static {
    type Error: Clone + Send + 'static;

    /// Opens a transaction.
    fn begin(&mut self) -> Result<(), Self::Error>;
    /// Sets a savepoint.
    fn mark(&mut self) -> Result<(), Self::Error>;
    /// Releases the savepoint and keeps what was done since, or rolls back to it. An error means
    /// that the whole transaction is lost.
    fn settle(&mut self, keep: bool) -> Result<(), Self::Error>;
    /// Commits everything since [`begin`](Self::begin). After an error nothing is committed, unless
    /// the error says that the outcome is unknown.
    fn commit(&mut self) -> Result<(), Self::Error>;
    /// Rolls back everything since [`begin`](Self::begin).
    fn abandon(&mut self);
}

/// Parameters of a batch.
#[derive(Debug, Clone)]
pub(crate) struct BatchSpec {
    /// Also the name of its thread.
    pub name: &'static str,
    /// Most jobs in the queue; one more is refused.
    pub queue_max: usize,
    /// Most jobs in one transaction.
    pub batch_max: usize,
}

/// Upper bounds of the buckets of commit sizes (jobs in a commit); one more bucket counts larger
/// commits.
pub(crate) const COMMIT_SIZES: [u64; 6] = [1, 4, 16, 64, 256, 1_024];

/// Counters of a batch since its start; `depth` and `busy_ms` are current values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchStats {
    /// Jobs in the queue.
    pub depth: usize,
    /// Commits of at least one job.
    pub commits: u64,
    /// Jobs committed.
    pub committed: u64,
    /// Jobs that failed by themselves or with their transaction.
    pub failed: u64,
    /// Most jobs in one commit so far.
    pub batch_max: u64,
    /// Number of commits by size, in the buckets of [`COMMIT_SIZES`]; not cumulative.
    pub sizes: [u64; COMMIT_SIZES.len() + 1],
    /// Jobs refused because the queue was full.
    pub refused: u64,
    /// Jobs dropped unrun because their deadline passed in the queue.
    pub expired: u64,
    pub panicked: u64,
    /// Time that the current batch has been running; `None` while idle.
    pub busy_ms: Option<u64>,
}

/// What a batch has done, and when the transaction under way began. Locked to count.
#[derive(Clone, Copy, Default)]
struct Progress {
    stats: BatchStats,
    busy_since_ms: Option<u64>,
}

/// A bounded queue of jobs and the thread that runs them on one ledger.
pub struct Batch<L: Ledger> {
    name: &'static str,
    clock: Clock,
    queue: Option<Sender<Queued<L>>>,
    progress: Arc<Mutex<Progress>>,
    threads: Vec<Worker>,
}

impl<L: Ledger> Batch<L> {
    /// Starts the thread, which owns `ledger` from then on.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(spec: &BatchSpec, clock: &Clock, ledger: L) -> io::Result<Self> {
        let (queue, jobs) = bounded(spec.queue_max);
        let progress = Arc::<Mutex<Progress>>::default();
        let mut writer = Writer {
            ledger,
            batch_max: spec.batch_max.max(1),
            clock: clock.clone(),
            progress: Arc::clone(&progress),
        };
        let thread = start_worker(spec.name, move || writer.run(&jobs))?;
        Ok(Self {
            name: spec.name,
            clock: clock.clone(),
            queue: Some(queue),
            progress,
            threads: thread.into_iter().collect(),
        })
    }

    /// Queues `job`. If it has not begun `deadline_ms` from now it never runs, and the ticket stops
    /// waiting after the same time. The ticket gets the job's result once that is committed, or the
    /// error of the transaction.
    ///
    /// # Errors
    /// [`Refused`], at once, if the queue is full.
    pub(crate) fn submit<T, F>(
        &self,
        deadline_ms: u64,
        job: F,
    ) -> Result<Ticket<Result<T, L::Error>>, Refused>
    where
        T: Send + 'static,
        F: FnOnce(&mut L) -> Result<T, L::Error> + Send + 'static,
    {
        let (answer, ticket) = promise(deadline_ms);
        let deadline_ms = self.clock.monotonic_ms() + deadline_ms;
        let work = Box::new(Job {
            job: Some(job),
            done: None,
            answer,
        });
        let refused = Refused { lane: self.name };
        let sent = self
            .queue
            .as_ref()
            .ok_or(refused)?
            .try_send(Queued { deadline_ms, work });
        if sent.is_err() {
            self.progress.lock().stats.refused += 1;
            return Err(refused);
        }
        Ok(ticket)
    }

    /// Current values of the counters.
    pub(crate) fn stats(&self) -> BatchStats {
        let Progress {
            stats,
            busy_since_ms,
        } = *self.progress.lock();
        let now_ms = self.clock.monotonic_ms();
        let busy_ms = busy_since_ms.map(|since_ms| now_ms.saturating_sub(since_ms));
        // The maximum if the thread ended by a panic.
        let has_ended = self.threads.iter().any(|(thread, _)| thread.is_finished());
        let busy_ms = if has_ended { Some(u64::MAX) } else { busy_ms };
        BatchStats {
            depth: self.queue.as_ref().map_or(0, Sender::len),
            busy_ms,
            ..stats
        }
    }
}

impl<L: Ledger> Drop for Batch<L> {
    /// Gives queued jobs a short time to finish.
    fn drop(&mut self) {
        self.queue = None;
        join_within_grace(&mut self.threads);
    }
}

/// The end of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JobEnd {
    Done,
    Failed,
    Panicked,
}

/// A job, whatever its result type.
trait Work<L: Ledger>: Send {
    fn run(&mut self, ledger: &mut L) -> JobEnd;
    /// Answers the waiter: the transaction's error if it failed, else the job's own result.
    fn answer(self: Box<Self>, transaction: Result<(), L::Error>);
    /// Reports to the waiter that the job was not run in time.
    fn expire(self: Box<Self>);
}

struct Queued<L: Ledger> {
    deadline_ms: u64,
    work: Box<dyn Work<L>>,
}

struct Job<T, E, F> {
    job: Option<F>,
    /// `None` after a panic.
    done: Option<Result<T, E>>,
    answer: Answer<Result<T, E>>,
}

impl<L, T, F> Work<L> for Job<T, L::Error, F>
where
    L: Ledger,
    T: Send,
    F: FnOnce(&mut L) -> Result<T, L::Error> + Send,
{
    fn run(&mut self, ledger: &mut L) -> JobEnd {
        let Some(job) = self.job.take() else {
            return JobEnd::Failed;
        };
        match catch_unwind(AssertUnwindSafe(|| job(ledger))) {
            Ok(done) => {
                let end = if done.is_ok() {
                    JobEnd::Done
                } else {
                    JobEnd::Failed
                };
                self.done = Some(done);
                end
            }
            Err(_) => JobEnd::Panicked,
        }
    }

    fn answer(self: Box<Self>, transaction: Result<(), L::Error>) {
        let result = match (self.done, transaction) {
            // The job's work was rolled back, so its own result is void.
            (_, Err(error)) => Ok(Err(error)),
            (None, Ok(())) => Err(LaneError::Panicked),
            (Some(done), Ok(())) => Ok(done),
        };
        self.answer.give(result);
    }

    fn expire(self: Box<Self>) {
        self.answer.give(Err(LaneError::Late));
    }
}

struct Writer<L: Ledger> {
    ledger: L,
    batch_max: usize,
    clock: Clock,
    progress: Arc<Mutex<Progress>>,
}

impl<L: Ledger> Writer<L> {
    fn run(&mut self, jobs: &Receiver<Queued<L>>) {
        let mut batch = Vec::with_capacity(self.batch_max);
        while let Ok(first) = staged::receive(jobs, None) {
            batch.push(first);
            while batch.len() < self.batch_max {
                match jobs.try_recv() {
                    Ok(next) => batch.push(next),
                    Err(_) => break,
                }
            }
            self.progress.lock().busy_since_ms = Some(self.clock.monotonic_ms());
            self.write(&mut batch);
            self.progress.lock().busy_since_ms = None;
        }
    }

    /// Runs the batch in one transaction. If the transaction is lost midway, the jobs that have not
    /// run yet fail with it.
    fn write(&mut self, batch: &mut Vec<Queued<L>>) {
        let now_ms = self.clock.monotonic_ms();
        let mut due = Vec::with_capacity(batch.len());
        for queued in batch.drain(..) {
            if now_ms > queued.deadline_ms {
                self.progress.lock().stats.expired += 1;
                queued.work.expire();
            } else {
                due.push((queued.work, JobEnd::Failed));
            }
        }
        if due.is_empty() {
            return;
        }
        let mut transaction = self.ledger.begin();
        if transaction.is_ok() {
            transaction = due.iter_mut().try_for_each(|(work, end)| {
                *end = Self::run_in_savepoint(&mut self.ledger, &mut **work)?;
                Ok(())
            });
            transaction = transaction.and_then(|()| self.ledger.commit());
            if transaction.is_err() {
                self.ledger.abandon();
            }
        }
        let jobs_ended = |how: JobEnd| due.iter().filter(|(_, end)| *end == how).count() as u64;
        let done = jobs_ended(JobEnd::Done);
        let panicked = jobs_ended(JobEnd::Panicked);
        let committed = if transaction.is_ok() { done } else { 0 };
        let mut progress = self.progress.lock();
        let stats = &mut progress.stats;
        stats.panicked += panicked;
        stats.committed += committed;
        stats.failed += due.len() as u64 - committed - panicked;
        stats.batch_max = stats.batch_max.max(committed);
        if committed > 0 {
            stats.commits += 1;
            stats.sizes[bucket_of(&COMMIT_SIZES, committed)] += 1;
        }
        // Before the answers, so that a caller that has its answer sees an idle writer.
        progress.busy_since_ms = None;
        drop(progress);
        for (work, _) in due {
            work.answer(transaction.clone());
        }
    }

    fn run_in_savepoint(ledger: &mut L, work: &mut dyn Work<L>) -> Result<JobEnd, L::Error> {
        ledger.mark()?;
        let end = work.run(ledger);
        ledger.settle(end == JobEnd::Done)?;
        Ok(end)
    }
}

#[cfg(test)]
#[path = "group_commit_tests.rs"]
mod tests;
