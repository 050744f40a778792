//! A stage: the threads of a service as tasks of one OS thread, on a clock that moves only when all
//! of them wait. The same seed gives the same run, event by event.
//!
//! For the seeded days of `tests/days`; no thread of a running service is ever on one. What the
//! thread that has set a stage starts (a lane, a batch, the scheduler) becomes a task of it. Tasks
//! run one at a time until they wait here. A round lets each look whether its wait is over, in an
//! order drawn from the seed. A round in which none went on moves the clock to the next deadline.
//! No lock may be held over a wait: whoever takes it next would hang, since there is one thread.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvError, RecvTimeoutError, TryRecvError};
use generator::{Generator, Gn};

use crate::base::{ManualClock, rng};

/// Stack of a task in words of eight bytes. Only touched pages use memory.
const STACK_WORDS: usize = 0x4_0000;

/// Rounds without a step of the clock after which the tasks are taken to wake each other for ever.
const ROUNDS_MAX: u32 = 100_000;

/// How many threads have a stage. While it is 0, asking for one costs the look at this.
static STAGES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STAGE: RefCell<Option<Rc<Inner>>> = const { RefCell::new(None) };
}

/// The stage of the thread that has set it. Dropping it ends its tasks.
pub struct Stage(Rc<Inner>);

type Task = Generator<'static, (), ()>;

struct Inner {
    clock: ManualClock,
    order: RefCell<fastrand::Rng>,
    tasks: RefCell<Vec<Task>>,
    /// Started since the round began.
    begun: RefCell<Vec<Task>>,
    /// What each of them does, by its number. They take it here, since it need not be fit for
    /// another thread, which `generator` asks for.
    bodies: RefCell<HashMap<u64, Box<dyn FnOnce()>>>,
    started: Cell<u64>,
    /// The first deadline of those that wait.
    due_mono_ms: Cell<u64>,
    /// Whether a wait has ended in this round.
    went_on: Cell<bool>,
    /// Since the clock last moved.
    rounds: Cell<u32>,
    /// Every wait ends by unwinding.
    is_killed: Cell<bool>,
    panic: RefCell<Option<String>>,
}

/// What unwinds the tasks of a stage that was killed.
struct Killed;

impl Stage {
    /// Sets the stage of the calling thread.
    ///
    /// # Panics
    /// If the thread has one.
    pub fn set(clock: &ManualClock, seed: u64) -> Self {
        let inner = Rc::new(Inner {
            clock: clock.share(),
            order: RefCell::new(rng::seeded(seed)),
            tasks: RefCell::default(),
            begun: RefCell::default(),
            bodies: RefCell::default(),
            started: Cell::new(0),
            due_mono_ms: Cell::new(u64::MAX),
            went_on: Cell::new(false),
            rounds: Cell::new(0),
            is_killed: Cell::new(false),
            panic: RefCell::default(),
        });
        STAGE.with(|stage| {
            assert!(stage.borrow().is_none(), "one stage a thread");
            *stage.borrow_mut() = Some(Rc::clone(&inner));
        });
        STAGES.fetch_add(1, Ordering::SeqCst);
        Self(inner)
    }

    /// Starts a task.
    pub fn spawn(&self, body: impl FnOnce() + 'static) {
        self.0.spawn(body);
    }

    /// Runs the tasks until the clock shows this. `look` is called after every round and every step
    /// of the clock, and says whether to go on; a panic of a task goes on here.
    pub fn run_until(&self, until_mono_ms: u64, mut look: impl FnMut() -> bool) {
        while self.0.step(until_mono_ms) && look() {}
    }

    /// Ends every task where it waits, as the end of a process does, but for what unwinding drops.
    pub fn kill(&self) {
        let inner = &self.0;
        inner.is_killed.set(true);
        inner.begun.borrow_mut().clear();
        drop(inner.bodies.take());
        while !inner.tasks.borrow().is_empty() {
            inner.round();
        }
        inner.is_killed.set(false);
    }

    /// How many tasks have not ended.
    pub fn tasks(&self) -> usize {
        self.0.tasks.borrow().len() + self.0.begun.borrow().len()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A thread that unwinds leaves the tasks as they are: they would unwind within it.
        if !std::thread::panicking() {
            self.kill();
        }
        STAGE.with(|stage| stage.borrow_mut().take());
        STAGES.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Inner {
    fn now_mono_ms(&self) -> u64 {
        self.clock.monotonic_ms()
    }

    fn spawn(&self, body: impl FnOnce() + 'static) {
        let number = self.started.replace(self.started.get() + 1);
        self.bodies.borrow_mut().insert(number, Box::new(body));
        self.begun
            .borrow_mut()
            .push(Gn::new_opt(STACK_WORDS, move || {
                let stage = current().expect("tasks run on their stage");
                // None where the stage was killed before.
                let body = stage.bodies.borrow_mut().remove(&number);
                drop(stage);
                let Some(body) = body else { return };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(body))
                    && !panic.is::<Killed>()
                {
                    resume_unwind(panic);
                }
            }));
    }

    /// Runs each task until it blocks again.
    fn round(&self) {
        self.went_on.set(false);
        self.due_mono_ms.set(u64::MAX);
        let mut tasks = self.tasks.borrow_mut();
        let mut begun = self.begun.borrow_mut();
        self.went_on.set(!begun.is_empty());
        tasks.append(&mut begun);
        drop(begun);
        self.order.borrow_mut().shuffle(&mut tasks);
        for task in tasks.iter_mut() {
            task.resume();
        }
        tasks.retain(|task| !task.is_done());
        drop(tasks);
        let panic = self.panic.borrow_mut().take();
        assert!(panic.is_none(), "a task panicked: {}", panic.unwrap_or_default());
    }

    /// A round and, where none went on, a step of the clock. False once the clock shows this.
    fn step(&self, until_mono_ms: u64) -> bool {
        self.round();
        if self.went_on.get() || !self.begun.borrow().is_empty() {
            self.rounds.set(self.rounds.get() + 1);
            assert!(self.rounds.get() < ROUNDS_MAX, "the tasks of a stage do not come to rest");
            return true;
        }
        self.rounds.set(0);
        let now_mono_ms = self.now_mono_ms();
        if now_mono_ms >= until_mono_ms {
            return false;
        }
        let next_mono_ms = self
            .due_mono_ms
            .get()
            .max(now_mono_ms + 1)
            .min(until_mono_ms);
        self.clock.advance_ms((next_mono_ms - now_mono_ms) as i64);
        true
    }

    /// See [`wait`].
    fn wait(&self, limit: Option<Duration>, mut is_over: impl FnMut() -> bool) -> bool {
        let limit_ms = |limit: Duration| limit.as_nanos().div_ceil(1_000_000) as u64;
        let due_mono_ms =
            limit.map_or(u64::MAX, |limit| self.now_mono_ms().saturating_add(limit_ms(limit)));
        let is_task = generator::is_generator();
        let mut has_waited = false;
        let ended = loop {
            let unwinds = std::thread::panicking();
            // First: tasks that tell each other that jobs were lost would never come to an end.
            if self.is_killed.get() && !unwinds {
                resume_unwind(Box::new(Killed));
            }
            if is_over() {
                break true;
            }
            if self.now_mono_ms() >= due_mono_ms || unwinds {
                break false;
            }
            if is_task {
                self.due_mono_ms
                    .set(self.due_mono_ms.get().min(due_mono_ms));
                has_waited = true;
                #[expect(deprecated, reason = "whoever waits does not know the task it is in")]
                generator::yield_with(());
            } else {
                self.step(due_mono_ms);
            }
        };
        if has_waited {
            self.went_on.set(true);
        }
        ended
    }
}

/// Whether the calling thread has a stage.
pub(crate) fn is_set() -> bool {
    current().is_some()
}

fn current() -> Option<Rc<Inner>> {
    if STAGES.load(Ordering::Relaxed) == 0 {
        return None;
    }
    STAGE.with(|stage| stage.borrow().clone())
}

/// Hands `body` to the stage; back where there is none.
pub(super) fn spawn<F: FnOnce() + 'static>(body: F) -> Result<(), F> {
    match current() {
        Some(stage) => {
            stage.spawn(body);
            Ok(())
        }
        None => Err(body),
    }
}

/// Waits until `is_over`, at most for `limit`; false if it is not over then. On a stage only.
pub(crate) fn wait(limit: Option<Duration>, is_over: impl FnMut() -> bool) -> bool {
    current().expect("a stage is set").wait(limit, is_over)
}

/// Lets the others run for so long. On a stage only.
pub fn pause(ms: u64) {
    wait(Some(Duration::from_millis(ms)), || false);
}

/// Takes the next message; waits for it as `limit` says.
pub(crate) fn receive<T>(
    from: &Receiver<T>,
    limit: Option<Duration>,
) -> Result<T, RecvTimeoutError> {
    let Some(stage) = current() else {
        return match limit {
            Some(limit) => from.recv_timeout(limit),
            None => from
                .recv()
                .map_err(|RecvError| RecvTimeoutError::Disconnected),
        };
    };
    let mut got = Err(TryRecvError::Empty);
    stage.wait(limit, || {
        got = from.try_recv();
        !matches!(got, Err(TryRecvError::Empty))
    });
    got.map_err(|error| match error {
        TryRecvError::Empty => RecvTimeoutError::Timeout,
        TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
    })
}

/// Notes a panic that a task has caught. On a stage it ends the run: a lane goes on after a job
/// that panicked, and a day should not.
pub(super) fn note_panic(panic: &(dyn Any + Send)) {
    let Some(stage) = current() else { return };
    if panic.is::<Killed>() {
        return;
    }
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("not a text");
    *stage.panic.borrow_mut() = Some(text.to_owned());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::Clock;
    use crate::rt::moving::Parker;
    use crate::rt::{Lane, LaneSpec};

    fn stage(seed: u64) -> (ManualClock, Stage) {
        let clock = Clock::manual("2026-11-20T04:00:00Z".parse().unwrap());
        let stage = Stage::set(&clock, seed);
        (clock, stage)
    }

    /// In which order three tasks come to the end of their waits.
    fn order(seed: u64) -> Vec<(u64, u64)> {
        let (clock, stage) = stage(seed);
        let ends = Rc::new(RefCell::new(Vec::new()));
        for number in 0..3 {
            let ends = Rc::clone(&ends);
            let clock = clock.clone();
            stage.spawn(move || {
                for round in 0..10 {
                    pause(50 + round * number);
                    ends.borrow_mut().push((clock.monotonic_ms(), number));
                }
            });
        }
        stage.run_until(10_000, || true);
        assert_eq!((stage.tasks(), clock.monotonic_ms()), (0, 10_000));
        ends.take()
    }

    #[test]
    fn a_seed_gives_the_same_order_again_and_another_one_another() {
        let orders: Vec<_> = (1..9).map(order).collect();
        assert_eq!(orders[0], order(1));
        assert!(orders.iter().any(|other| *other != orders[0]));
        assert!(
            orders
                .iter()
                .all(|order| order.is_sorted_by_key(|(at_ms, _)| *at_ms))
        );
    }

    #[test]
    fn a_lane_answers_on_a_stage_and_its_deadline_is_the_clocks() {
        let (clock, _stage) = stage(1);
        let spec = LaneSpec {
            name: "test",
            threads: 1,
            queue_max: 4,
        };
        let lane = Lane::start(&spec, &clock).unwrap();
        assert_eq!(lane.submit(5_000, || 6 * 7).unwrap().wait(), Ok(42));
        let slow = lane.submit(300, || pause(1_000)).unwrap();
        assert!(slow.wait().is_err());
        assert_eq!(clock.monotonic_ms(), 300);
        assert_eq!(lane.submit(5_000, || 1).unwrap().wait(), Ok(1));
        assert_eq!(clock.monotonic_ms(), 1_000);
    }

    #[test]
    #[should_panic(expected = "a task panicked: on purpose")]
    fn a_job_that_panics_ends_the_run() {
        let (clock, stage) = stage(1);
        let spec = LaneSpec {
            name: "test",
            threads: 1,
            queue_max: 4,
        };
        let lane = Lane::start(&spec, &clock).unwrap();
        drop(lane.submit(5_000, || panic!("on purpose")).unwrap());
        stage.run_until(10, || true);
    }

    #[test]
    fn a_killed_stage_drops_what_its_tasks_hold_and_can_be_used_again() {
        let (_, stage) = stage(1);
        let held = Arc::new(());
        for _ in 0..3 {
            let held = Arc::clone(&held);
            stage.spawn(move || {
                let parker = Parker::current();
                while !parker.park(1_000) {}
                drop(held);
            });
        }
        stage.run_until(5_000, || true);
        assert_eq!((stage.tasks(), Arc::strong_count(&held)), (3, 4));
        stage.kill();
        assert_eq!((stage.tasks(), Arc::strong_count(&held)), (0, 1));
        stage.spawn(move || pause(10));
        stage.run_until(6_000, || true);
        assert_eq!(stage.tasks(), 0);
    }
}
