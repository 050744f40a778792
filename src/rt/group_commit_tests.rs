//! Grouping, and what becomes of a job that fails, on a ledger without a disk.

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::*;

type Verdict = Result<(), &'static str>;

/// Remembers what was committed; its commits can be held up and made to fail.
struct Paper {
    committed: Arc<parking_lot::Mutex<Vec<u32>>>,
    open: Vec<u32>,
    mark: usize,
    /// Each commit says that it has begun, then waits for a verdict, while there is somebody to
    /// give one.
    commits: Option<(Sender<usize>, Receiver<Verdict>)>,
    loses: bool,
}

impl Ledger for Paper {
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
        if std::mem::take(&mut self.loses) {
            return Err("lost");
        }
        if !keep {
            self.open.truncate(self.mark);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), &'static str> {
        if let Some((begun, verdict)) = &self.commits {
            begun.send(self.open.len()).ok();
            verdict.recv().unwrap_or(Ok(()))?;
        }
        self.committed.lock().append(&mut self.open);
        Ok(())
    }

    fn abandon(&mut self) {
        self.open.clear();
    }
}

struct Desk {
    batch: Batch<Paper>,
    committed: Arc<parking_lot::Mutex<Vec<u32>>>,
    begun: Receiver<usize>,
    verdicts: Sender<Verdict>,
}

fn desk(queue_max: usize, batch_max: usize, clock: &Clock) -> Desk {
    let (begin, begun) = unbounded();
    let (verdicts, verdict) = unbounded();
    let committed = Arc::default();
    let paper = Paper {
        committed: Arc::clone(&committed),
        open: Vec::new(),
        mark: 0,
        commits: Some((begin, verdict)),
        loses: false,
    };
    let spec = BatchSpec { name: "test-batch", queue_max, batch_max };
    let batch = Batch::start(&spec, clock, paper).unwrap();
    Desk { batch, committed, begun, verdicts }
}

const PATIENCE_MS: u64 = 20_000;

impl Desk {
    fn put(&self, number: u32) -> Ticket<Result<u32, &'static str>> {
        let job = move |paper: &mut Paper| {
            paper.open.push(number);
            Ok(number)
        };
        self.batch.submit(PATIENCE_MS, job).unwrap()
    }

    fn seen(&self) -> Vec<u32> {
        self.committed.lock().clone()
    }
}

#[test]
fn what_waits_is_committed_together_and_answered_after_that() {
    let desk = desk(100, 100, &Clock::system());
    let first = desk.put(0);
    assert_eq!(desk.begun.recv(), Ok(1), "alone, since nothing else waited");
    let (answer, answered) = unbounded();
    let waiter = threads::spawn("waiter", move || answer.send(first.wait()).unwrap()).unwrap();
    let rest: Vec<_> = (1..=20).map(|number| desk.put(number)).collect();
    assert!(answered.is_empty(), "nothing is answered before its commit");
    desk.verdicts.send(Ok(())).unwrap();
    assert_eq!(answered.recv(), Ok(Ok(Ok(0))));
    waiter.join().unwrap();
    assert_eq!(desk.begun.recv(), Ok(20), "all that waited");
    assert_eq!(desk.seen(), [0]);
    desk.verdicts.send(Ok(())).unwrap();
    for (number, ticket) in (1..=20).zip(rest) {
        assert_eq!(ticket.wait(), Ok(Ok(number)));
    }
    assert_eq!(desk.seen(), (0..=20).collect::<Vec<_>>());
    let stats = desk.batch.stats();
    assert_eq!((stats.commits, stats.committed, stats.batch_max, stats.failed), (2, 21, 20, 0));
}

#[test]
fn a_batch_has_a_bound() {
    let desk = desk(100, 3, &Clock::system());
    let first = desk.put(0);
    assert_eq!(desk.begun.recv(), Ok(1));
    let rest: Vec<_> = (1..=5).map(|number| desk.put(number)).collect();
    for _ in 0..3 {
        desk.verdicts.send(Ok(())).unwrap();
    }
    assert_eq!((desk.begun.recv(), desk.begun.recv()), (Ok(3), Ok(2)));
    assert!(first.wait().is_ok() && rest.into_iter().all(|ticket| ticket.wait().is_ok()));
    assert_eq!(desk.batch.stats().batch_max, 3);
}

#[test]
fn a_job_that_fails_or_panics_undoes_its_own_work_alone() {
    let desk = desk(100, 100, &Clock::system());
    let first = desk.put(0);
    desk.begun.recv().unwrap();
    let before = desk.put(1);
    let fails = desk.batch.submit(PATIENCE_MS, |paper: &mut Paper| -> Result<(), _> {
        paper.open.push(66);
        Err("its own fault")
    });
    let panics = desk.batch.submit(PATIENCE_MS, |paper: &mut Paper| -> Result<(), _> {
        paper.open.push(77);
        panic!("on purpose")
    });
    let after = desk.put(2);
    desk.verdicts.send(Ok(())).unwrap();
    desk.verdicts.send(Ok(())).unwrap();
    assert_eq!(fails.unwrap().wait(), Ok(Err("its own fault")));
    assert_eq!(panics.unwrap().wait(), Err(LaneError::Panicked));
    assert_eq!((before.wait(), after.wait(), first.wait()), (Ok(Ok(1)), Ok(Ok(2)), Ok(Ok(0))));
    assert_eq!(desk.seen(), [0, 1, 2]);
    let stats = desk.batch.stats();
    assert_eq!((stats.committed, stats.failed, stats.panicked), (3, 1, 1));
}

#[test]
fn a_commit_that_fails_fails_all_it_carried_and_nothing_after_it() {
    let desk = desk(100, 100, &Clock::system());
    let first = desk.put(0);
    desk.begun.recv().unwrap();
    let second = desk.put(1);
    let third = desk.put(2);
    desk.verdicts.send(Ok(())).unwrap();
    desk.verdicts.send(Err("disk full")).unwrap();
    assert_eq!(first.wait(), Ok(Ok(0)));
    assert_eq!((second.wait(), third.wait()), (Ok(Err("disk full")), Ok(Err("disk full"))));
    let fourth = desk.put(3);
    desk.verdicts.send(Ok(())).unwrap();
    assert_eq!(fourth.wait(), Ok(Ok(3)));
    assert_eq!(desk.seen(), [0, 3]);
    assert_eq!((desk.batch.stats().commits, desk.batch.stats().failed), (2, 2));
}

#[test]
fn a_transaction_that_is_lost_on_the_way_fails_its_jobs() {
    let desk = desk(100, 100, &Clock::system());
    let first = desk.put(0);
    desk.begun.recv().unwrap();
    let before = desk.put(1);
    let loses = desk.batch.submit(PATIENCE_MS, |paper: &mut Paper| {
        paper.loses = true;
        Ok(())
    });
    let unrun = desk.put(2);
    desk.verdicts.send(Ok(())).unwrap();
    assert_eq!(first.wait(), Ok(Ok(0)));
    assert_eq!(loses.unwrap().wait(), Ok(Err("lost")));
    assert_eq!((before.wait(), unrun.wait()), (Ok(Err("lost")), Ok(Err("lost"))));
    let next = desk.put(3);
    desk.verdicts.send(Ok(())).unwrap();
    assert_eq!(next.wait(), Ok(Ok(3)));
    assert_eq!(desk.seen(), [0, 3]);
}

#[test]
fn a_full_queue_refuses_and_a_job_past_its_deadline_never_runs() {
    let clock = Clock::manual("2026-11-20T04:00:00Z".parse().unwrap());
    let desk = desk(2, 100, &clock);
    let first = desk.put(0);
    desk.begun.recv().unwrap();
    let late = desk.batch.submit(20, |_: &mut Paper| -> Result<(), _> { panic!("must not run") });
    let second = desk.put(1);
    assert!(desk.batch.submit(20, |_: &mut Paper| Ok(())).is_err());
    assert_eq!(desk.batch.stats().depth, 2);
    clock.advance_ms(1_000);
    desk.verdicts.send(Ok(())).unwrap();
    desk.verdicts.send(Ok(())).unwrap();
    assert_eq!(late.unwrap().wait(), Err(LaneError::Late));
    assert_eq!((first.wait(), second.wait()), (Ok(Ok(0)), Ok(Ok(1))));
    let stats = desk.batch.stats();
    assert_eq!((stats.refused, stats.expired, stats.panicked), (1, 1, 0));
}

#[test]
fn a_coroutine_parks_on_a_batch_and_closing_runs_what_is_queued() {
    let mut desk = desk(100, 100, &Clock::system());
    let (send, receive) = unbounded();
    let ticket = desk.put(7);
    crate::rt::coroutines::spawn(move || send.send(ticket.wait()).unwrap()).unwrap();
    desk.begun.recv().unwrap();
    let last = desk.put(8);
    // Nobody holds the commits up any more.
    desk.verdicts = unbounded().0;
    drop(desk.batch);
    assert_eq!(receive.recv().unwrap(), Ok(Ok(7)));
    assert_eq!(last.wait(), Ok(Ok(8)));
    assert_eq!(*desk.committed.lock(), [7, 8]);
}
