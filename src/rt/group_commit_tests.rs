//! Tests of grouping, and of jobs and transactions that fail, on a ledger in memory.

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::*;

type CommitResult = Result<(), &'static str>;

/// A ledger of numbers in memory. A test decides when each commit ends, and whether it succeeds.
struct MemoryLedger {
    committed: Arc<Mutex<Vec<u32>>>,
    open: Vec<u32>,
    mark: usize,
    /// Each commit sends its number of jobs when it begins, then waits for the result to return. It
    /// succeeds once the sender of results is dropped.
    commits: Option<(Sender<usize>, Receiver<CommitResult>)>,
    /// The next `settle` fails: the transaction is lost.
    lose_transaction: bool,
}

impl Ledger for MemoryLedger {
    type Error = &'static str;

    fn begin(&mut self) -> Result<(), &'static str> {
        assert!(self.open.is_empty());
        Ok(())
    }

    fn mark(&mut self) -> Result<(), &'static str> {
        self.mark = self.open.len();
        Ok(())
    }

    fn settle(&mut self, keep: bool) -> Result<(), &'static str> {
        if std::mem::take(&mut self.lose_transaction) {
            return Err("lost");
        }
        if !keep {
            self.open.truncate(self.mark);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), &'static str> {
        if let Some((begun, results)) = &self.commits {
            begun.send(self.open.len()).ok();
            results.recv().unwrap_or(Ok(()))?;
        }
        self.committed.lock().append(&mut self.open);
        Ok(())
    }

    fn abandon(&mut self) {
        self.open.clear();
    }
}

struct Harness {
    batch: Batch<MemoryLedger>,
    committed: Arc<Mutex<Vec<u32>>>,
    /// Receives the size of each commit when it begins.
    begun: Receiver<usize>,
    /// Ends the commit that waits, with this result.
    commit_results: Sender<CommitResult>,
}

fn harness(queue_max: usize, batch_max: usize, clock: &Clock) -> Harness {
    let (begin, begun) = unbounded();
    let (commit_results, results) = unbounded();
    let committed = Arc::default();
    let ledger = MemoryLedger {
        committed: Arc::clone(&committed),
        open: Vec::new(),
        mark: 0,
        commits: Some((begin, results)),
        lose_transaction: false,
    };
    let spec = BatchSpec {
        name: "test-batch",
        queue_max,
        batch_max,
    };
    let batch = Batch::start(&spec, clock, ledger).unwrap();
    Harness {
        batch,
        committed,
        begun,
        commit_results,
    }
}

const DEADLINE_MS: u64 = 20_000;

impl Harness {
    fn submit(&self, number: u32) -> Ticket<Result<u32, &'static str>> {
        let job = move |ledger: &mut MemoryLedger| {
            ledger.open.push(number);
            Ok(number)
        };
        self.batch.submit(DEADLINE_MS, job).unwrap()
    }

    fn committed(&self) -> Vec<u32> {
        self.committed.lock().clone()
    }
}

#[test]
fn queued_jobs_are_committed_together_and_answered_after_the_commit() {
    let harness = harness(100, 100, &Clock::system());
    let first = harness.submit(0);
    assert_eq!(harness.begun.recv(), Ok(1), "alone, as no other job was queued");
    let (answer, answered) = unbounded();
    let waiter =
        crate::rt::threads::spawn("waiter", move || answer.send(first.wait()).unwrap()).unwrap();
    let rest: Vec<_> = (1..=20).map(|number| harness.submit(number)).collect();
    assert!(answered.is_empty(), "nothing is answered before its commit");
    harness.commit_results.send(Ok(())).unwrap();
    assert_eq!(answered.recv(), Ok(Ok(Ok(0))));
    waiter.join().unwrap();
    assert_eq!(harness.begun.recv(), Ok(20), "all queued jobs");
    assert_eq!(harness.committed(), [0]);
    harness.commit_results.send(Ok(())).unwrap();
    for (number, ticket) in (1..=20).zip(rest) {
        assert_eq!(ticket.wait(), Ok(Ok(number)));
    }
    assert_eq!(harness.committed(), (0..=20).collect::<Vec<_>>());
    let stats = harness.batch.stats();
    assert_eq!((stats.commits, stats.committed, stats.batch_max, stats.failed), (2, 21, 20, 0));
}

#[test]
fn a_batch_takes_at_most_batch_max_jobs() {
    let harness = harness(100, 3, &Clock::system());
    let first = harness.submit(0);
    assert_eq!(harness.begun.recv(), Ok(1));
    let rest: Vec<_> = (1..=5).map(|number| harness.submit(number)).collect();
    for _ in 0..3 {
        harness.commit_results.send(Ok(())).unwrap();
    }
    assert_eq!((harness.begun.recv(), harness.begun.recv()), (Ok(3), Ok(2)));
    assert!(first.wait().is_ok() && rest.into_iter().all(|ticket| ticket.wait().is_ok()));
    assert_eq!(harness.batch.stats().batch_max, 3);
}

#[test]
fn a_job_that_fails_or_panics_undoes_only_its_own_work() {
    let harness = harness(100, 100, &Clock::system());
    let first = harness.submit(0);
    harness.begun.recv().unwrap();
    let before = harness.submit(1);
    let fails = harness
        .batch
        .submit(DEADLINE_MS, |ledger: &mut MemoryLedger| -> Result<(), _> {
            ledger.open.push(66);
            Err("its own fault")
        });
    let panics = harness
        .batch
        .submit(DEADLINE_MS, |ledger: &mut MemoryLedger| -> Result<(), _> {
            ledger.open.push(77);
            panic!("on purpose")
        });
    let after = harness.submit(2);
    harness.commit_results.send(Ok(())).unwrap();
    harness.commit_results.send(Ok(())).unwrap();
    assert_eq!(fails.unwrap().wait(), Ok(Err("its own fault")));
    assert_eq!(panics.unwrap().wait(), Err(LaneError::Panicked));
    assert_eq!((before.wait(), after.wait(), first.wait()), (Ok(Ok(1)), Ok(Ok(2)), Ok(Ok(0))));
    assert_eq!(harness.committed(), [0, 1, 2]);
    let stats = harness.batch.stats();
    assert_eq!((stats.committed, stats.failed, stats.panicked), (3, 1, 1));
}

#[test]
fn a_failed_commit_fails_all_its_jobs_and_no_later_ones() {
    let harness = harness(100, 100, &Clock::system());
    let first = harness.submit(0);
    harness.begun.recv().unwrap();
    let second = harness.submit(1);
    let third = harness.submit(2);
    harness.commit_results.send(Ok(())).unwrap();
    harness.commit_results.send(Err("disk full")).unwrap();
    assert_eq!(first.wait(), Ok(Ok(0)));
    assert_eq!((second.wait(), third.wait()), (Ok(Err("disk full")), Ok(Err("disk full"))));
    let fourth = harness.submit(3);
    harness.commit_results.send(Ok(())).unwrap();
    assert_eq!(fourth.wait(), Ok(Ok(3)));
    assert_eq!(harness.committed(), [0, 3]);
    assert_eq!((harness.batch.stats().commits, harness.batch.stats().failed), (2, 2));
}

#[test]
fn a_transaction_lost_midway_fails_all_its_jobs() {
    let harness = harness(100, 100, &Clock::system());
    let first = harness.submit(0);
    harness.begun.recv().unwrap();
    let before = harness.submit(1);
    let loses = harness
        .batch
        .submit(DEADLINE_MS, |ledger: &mut MemoryLedger| {
            ledger.lose_transaction = true;
            Ok(())
        });
    let unrun = harness.submit(2);
    harness.commit_results.send(Ok(())).unwrap();
    assert_eq!(first.wait(), Ok(Ok(0)));
    assert_eq!(loses.unwrap().wait(), Ok(Err("lost")));
    assert_eq!((before.wait(), unrun.wait()), (Ok(Err("lost")), Ok(Err("lost"))));
    let next = harness.submit(3);
    harness.commit_results.send(Ok(())).unwrap();
    assert_eq!(next.wait(), Ok(Ok(3)));
    assert_eq!(harness.committed(), [0, 3]);
}

#[test]
fn a_full_queue_refuses_jobs_and_an_expired_job_never_runs() {
    let clock = Clock::manual("2026-11-20T04:00:00Z".parse().unwrap());
    let harness = harness(2, 100, &clock);
    let first = harness.submit(0);
    harness.begun.recv().unwrap();
    let late = harness
        .batch
        .submit(20, |_: &mut MemoryLedger| -> Result<(), _> { panic!("must not run") });
    let second = harness.submit(1);
    assert!(
        harness
            .batch
            .submit(20, |_: &mut MemoryLedger| Ok(()))
            .is_err()
    );
    assert_eq!(harness.batch.stats().depth, 2);
    clock.advance_ms(1_000);
    harness.commit_results.send(Ok(())).unwrap();
    harness.commit_results.send(Ok(())).unwrap();
    assert_eq!(late.unwrap().wait(), Err(LaneError::Late));
    assert_eq!((first.wait(), second.wait()), (Ok(Ok(0)), Ok(Ok(1))));
    let stats = harness.batch.stats();
    assert_eq!((stats.refused, stats.expired, stats.panicked), (1, 1, 0));
}

#[test]
fn a_coroutine_can_wait_for_a_job_and_closing_runs_the_queued_jobs() {
    let mut harness = harness(100, 100, &Clock::system());
    let (send, receive) = unbounded();
    let ticket = harness.submit(7);
    crate::rt::coroutines::spawn(move || send.send(ticket.wait()).unwrap()).unwrap();
    harness.begun.recv().unwrap();
    let last = harness.submit(8);
    // From now on every commit succeeds at once.
    harness.commit_results = unbounded().0;
    drop(harness.batch);
    assert_eq!(receive.recv().unwrap(), Ok(Ok(7)));
    assert_eq!(last.wait(), Ok(Ok(8)));
    assert_eq!(*harness.committed.lock(), [7, 8]);
}
