//! One writer for many: waiting jobs are run one after the other inside one transaction.
//!
//! A [`Batch`] is one named OS thread behind a bounded queue, and the only owner of its [`Ledger`].
//! It takes what waits, up to a bound, begins, runs each job under a mark of its own so that one
//! that fails undoes its own work alone, and commits once; only then are the jobs answered. While
//! it commits, the next batch gathers. Nothing is answered as done that was not committed.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::lanes::{Answer, LaneError, Refused, Ticket, join_soon, promise};
use super::threads;
use crate::base::Clock;

/// What a batch writes to. Called on the batch's thread alone.
pub trait Ledger: Send + 'static {
    type Error: Clone + Send + 'static;

    /// Opens a transaction.
    fn begin(&mut self) -> Result<(), Self::Error>;
    /// Sets the mark to which [`settle`](Self::settle) goes back.
    fn mark(&mut self) -> Result<(), Self::Error>;
    /// Keeps what was done since the mark, or undoes it. An error says that the transaction is
    /// lost.
    fn settle(&mut self, keep: bool) -> Result<(), Self::Error>;
    /// Makes everything since [`begin`](Self::begin) lasting. After an error nothing of it is, or
    /// the error says that this is not known.
    fn commit(&mut self) -> Result<(), Self::Error>;
    /// Undoes everything since [`begin`](Self::begin).
    fn abandon(&mut self);
}

/// What a batch is made of.
#[derive(Debug, Clone)]
pub struct BatchSpec {
    /// Also the name of its thread.
    pub name: &'static str,
    /// Jobs that may wait; one more is refused.
    pub queue_max: usize,
    /// Jobs that one transaction carries at most.
    pub batch_max: usize,
}

/// Upper bounds of the sizes that commits are counted by; one more bucket takes larger ones.
pub const COMMIT_SIZES: [u64; 6] = [1, 4, 16, 64, 256, 1_024];

/// Counters of a batch; all since start except `depth`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchStats {
    pub depth: usize,
    /// Commits that carried at least one job.
    pub commits: u64,
    /// Jobs that were committed.
    pub committed: u64,
    /// Jobs that failed by themselves or with their transaction.
    pub failed: u64,
    /// Most jobs that one commit carried.
    pub batch_max: u64,
    /// Commits by how many jobs they carried, by [`COMMIT_SIZES`]; not cumulative.
    pub sizes: [u64; COMMIT_SIZES.len() + 1],
    pub refused: u64,
    /// Dropped unrun because their deadline passed in the queue.
    pub expired: u64,
    pub panicked: u64,
    /// How long the batch in work has been in work; `None` while idle.
    pub busy_ms: Option<u64>,
}

/// [`Counters::busy_since_ms`] while nothing is in work.
const IDLE: u64 = u64::MAX;

struct Counters {
    busy_since_ms: AtomicU64,
    commits: AtomicU64,
    committed: AtomicU64,
    failed: AtomicU64,
    batch_max: AtomicU64,
    sizes: [AtomicU64; COMMIT_SIZES.len() + 1],
    refused: AtomicU64,
    expired: AtomicU64,
    panicked: AtomicU64,
}

/// A bounded queue of jobs in front of one ledger.
pub struct Batch<L: Ledger> {
    name: &'static str,
    clock: Clock,
    queue: Option<Sender<Queued<L>>>,
    counters: Arc<Counters>,
    threads: Vec<JoinHandle<()>>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            busy_since_ms: AtomicU64::new(IDLE),
            commits: AtomicU64::default(),
            committed: AtomicU64::default(),
            failed: AtomicU64::default(),
            batch_max: AtomicU64::default(),
            sizes: std::array::from_fn(|_| AtomicU64::default()),
            refused: AtomicU64::default(),
            expired: AtomicU64::default(),
            panicked: AtomicU64::default(),
        }
    }
}

impl<L: Ledger> Batch<L> {
    /// Starts the thread, which owns `ledger` from then on.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(spec: &BatchSpec, clock: &Clock, ledger: L) -> io::Result<Self> {
        let (queue, jobs) = bounded(spec.queue_max);
        let counters = Arc::new(Counters::default());
        let mut writer = Writer {
            ledger,
            batch_max: spec.batch_max.max(1),
            clock: clock.clone(),
            counters: Arc::clone(&counters),
        };
        let thread = threads::spawn(spec.name, move || writer.run(&jobs))?;
        Ok(Self {
            name: spec.name,
            clock: clock.clone(),
            queue: Some(queue),
            counters,
            threads: vec![thread],
        })
    }

    /// Queues `job`; it must have begun `deadline_ms` from now, and the ticket waits as long. The
    /// answer is the job's own, once it is committed, or the error of the transaction.
    ///
    /// # Errors
    /// [`Refused`] at once when the queue is full.
    pub fn submit<T, F>(
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
        let work = Box::new(Job { job: Some(job), done: None, answer });
        let refused = Refused { lane: self.name };
        let sent = self.queue.as_ref().ok_or(refused)?.try_send(Queued { deadline_ms, work });
        if sent.is_err() {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
            return Err(refused);
        }
        Ok(ticket)
    }

    /// The counters now.
    pub fn stats(&self) -> BatchStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        BatchStats {
            depth: self.queue.as_ref().map_or(0, Sender::len),
            commits: read(&counters.commits),
            committed: read(&counters.committed),
            failed: read(&counters.failed),
            batch_max: read(&counters.batch_max),
            sizes: counters.sizes.each_ref().map(read),
            refused: read(&counters.refused),
            expired: read(&counters.expired),
            panicked: read(&counters.panicked),
            busy_ms: self.busy_ms(),
        }
    }

    /// A thread that ended by a panic never gets on again.
    fn busy_ms(&self) -> Option<u64> {
        if self.threads.iter().any(JoinHandle::is_finished) {
            return Some(u64::MAX);
        }
        let since_ms = self.counters.busy_since_ms.load(Ordering::Relaxed);
        (since_ms != IDLE).then(|| self.clock.monotonic_ms().saturating_sub(since_ms))
    }
}

impl<L: Ledger> Drop for Batch<L> {
    /// Lets what is queued finish, if that is quick.
    fn drop(&mut self) {
        self.queue = None;
        join_soon(&mut self.threads);
    }
}

/// How a job ended, as far as the transaction is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ran {
    Done,
    Failed,
    Panicked,
}

/// A job of any result.
trait Work<L: Ledger>: Send {
    fn run(&mut self, ledger: &mut L) -> Ran;
    /// Tells the waiter: with `fate` an error, that; else what the job itself gave.
    fn answer(self: Box<Self>, fate: Result<(), L::Error>);
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
    fn run(&mut self, ledger: &mut L) -> Ran {
        let Some(job) = self.job.take() else { return Ran::Failed };
        match catch_unwind(AssertUnwindSafe(|| job(ledger))) {
            Ok(done) => {
                let ran = if done.is_ok() { Ran::Done } else { Ran::Failed };
                self.done = Some(done);
                ran
            }
            Err(_) => Ran::Panicked,
        }
    }

    fn answer(self: Box<Self>, fate: Result<(), L::Error>) {
        let result = match (self.done, fate) {
            // What the job saw was undone, so its own answer says nothing.
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
    counters: Arc<Counters>,
}

impl<L: Ledger> Writer<L> {
    fn run(&mut self, jobs: &Receiver<Queued<L>>) {
        let mut batch = Vec::with_capacity(self.batch_max);
        while let Ok(first) = jobs.recv() {
            batch.push(first);
            while batch.len() < self.batch_max {
                match jobs.try_recv() {
                    Ok(next) => batch.push(next),
                    Err(_) => break,
                }
            }
            let now_ms = self.clock.monotonic_ms();
            self.counters.busy_since_ms.store(now_ms, Ordering::Relaxed);
            self.write(&mut batch);
            self.counters.busy_since_ms.store(IDLE, Ordering::Relaxed);
        }
    }

    /// One transaction; what it could not take because it was lost on the way fails with it.
    fn write(&mut self, batch: &mut Vec<Queued<L>>) {
        let now_ms = self.clock.monotonic_ms();
        let mut due = Vec::with_capacity(batch.len());
        for queued in batch.drain(..) {
            if now_ms > queued.deadline_ms {
                self.count(&self.counters.expired, 1);
                queued.work.expire();
            } else {
                due.push((queued.work, Ran::Failed));
            }
        }
        if due.is_empty() {
            return;
        }
        let mut fate = self.ledger.begin();
        if fate.is_ok() {
            fate = due.iter_mut().try_for_each(|(work, ran)| {
                *ran = Self::run_marked(&mut self.ledger, &mut **work)?;
                Ok(())
            });
            fate = fate.and_then(|()| self.ledger.commit());
            if fate.is_err() {
                self.ledger.abandon();
            }
        }
        let ended = |how: Ran| due.iter().filter(|(_, ran)| *ran == how).count() as u64;
        let (done, panicked) = (ended(Ran::Done), ended(Ran::Panicked));
        let committed = if fate.is_ok() { done } else { 0 };
        self.count(&self.counters.panicked, panicked);
        self.count(&self.counters.committed, committed);
        self.count(&self.counters.failed, due.len() as u64 - committed - panicked);
        self.count(&self.counters.commits, u64::from(committed > 0));
        self.counters.batch_max.fetch_max(committed, Ordering::Relaxed);
        if committed > 0 {
            let bucket = COMMIT_SIZES.iter().position(|bound| committed <= *bound);
            self.count(&self.counters.sizes[bucket.unwrap_or(COMMIT_SIZES.len())], 1);
        }
        // Before anybody hears of it: who has an answer finds the writer at rest.
        self.counters.busy_since_ms.store(IDLE, Ordering::Relaxed);
        for (work, _) in due {
            work.answer(fate.clone());
        }
    }

    fn run_marked(ledger: &mut L, work: &mut dyn Work<L>) -> Result<Ran, L::Error> {
        ledger.mark()?;
        let ran = work.run(ledger);
        ledger.settle(ran == Ran::Done)?;
        Ok(ran)
    }

    fn count(&self, counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "group_commit_tests.rs"]
mod tests;
