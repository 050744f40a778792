//! The thread that decides when streams send what has changed.
//!
//! A walk makes all streams that have something new send it. The next one is due nine tenths of an
//! interval after the last, by the clock itself, and begins at once when something changes after
//! that. A change that came before waits until then, and a little longer for the next change: the
//! source changes each second, and what comes beside that should not delay it by a second.
//!
//! Streams with content of their own have walks of their own, since such content changes at other
//! times.
//!
//! Some content changes without news: a price becomes stale because time passes. While streams send
//! such content, the thread checks it by itself through [`Serve::refresh_streams`].
//!
//! The streams themselves are with other threads (`stream_writer`), which it tells.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};

use super::handover::Walk;
use super::shared::{Due, Serve, Shared};
use crate::http::Group;
use crate::rt::{News, threads};

/// Interval of the checks for changes without news.
const LOOK_MS: u64 = 50;

/// Longest wait for a batch of prices that is being stored. Streams send a batch as a whole,
/// because prices missed now would be sent an interval late. Storing one takes some milliseconds.
const BATCH_WAIT: Duration = Duration::from_millis(50);

/// Interval at which the thread reports that it is alive, and checks that the writers are.
const QUIET_LOOK_MS: u64 = 1_000;

/// The running thread.
pub(crate) struct FanOut {
    news: News,
    /// Dropped to end the thread.
    running: Sender<()>,
    thread: JoinHandle<()>,
}

impl FanOut {
    /// Lets the streams of `shared` send what is new at each piece of `news`, about once per
    /// `stream_interval_ms` at most. Changes in between are sent together.
    pub(crate) fn start<S: Serve>(shared: &Arc<Shared<S>>, news: News) -> io::Result<Self> {
        let (running, ended) = bounded(0);
        let shared = Arc::clone(shared);
        // The thread counts as alive from its start on.
        shared.streams.saw_fan_out(shared.slots.now_ms());
        let heard = news.clone();
        let mut rounds = Rounds {
            shared,
            ended,
            news: heard,
            common: Walks::default(),
            others: Walks::default(),
            is_watching: false,
            probed_ms: 0,
        };
        let thread = threads::spawn("fan-out", move || while rounds.next().is_ok() {})?;
        Ok(Self {
            news,
            running,
            thread,
        })
    }

    /// Ends the thread.
    pub(crate) fn stop(self) {
        drop(self.running);
        self.news.tell();
        // The thread only waits and wakes others. If it panicked, nothing is left to do here.
        let _ = self.thread.join();
    }
}

/// The walks over one kind of streams.
#[derive(Debug, Default)]
struct Walks {
    /// From when on a change begins a walk at once.
    due_ms: u64,
    /// Something may have changed that was not sent yet.
    is_pending: bool,
    /// It had changed before the walk was due.
    has_waited: bool,
}

impl Walks {
    /// Notes that something may have changed.
    fn hear(&mut self, now_ms: u64) {
        self.is_pending = true;
        self.has_waited = now_ms < self.due_ms;
    }

    /// When the walk begins, if nothing else changes before.
    fn begins_ms(&self, interval_ms: u64) -> Option<u64> {
        let grace_ms = if self.has_waited { interval_ms / 5 } else { 0 };
        self.is_pending.then_some(self.due_ms + grace_ms)
    }

    /// Notes that what has changed until now was sent, if anything `was_sent`. What had waited was
    /// due before, so that waiting for another change makes no later walk late.
    fn end(&mut self, now_ms: u64, interval_ms: u64, was_sent: bool) {
        if was_sent {
            let begun_ms = if self.has_waited { self.due_ms } else { now_ms };
            self.due_ms = begun_ms + interval_ms - interval_ms / 10;
        }
        (self.is_pending, self.has_waited) = (false, false);
    }
}

/// The thread must end.
struct Ended;

struct Rounds<S> {
    shared: Arc<Shared<S>>,
    ended: Receiver<()>,
    news: News,
    common: Walks,
    others: Walks,
    /// Streams send content that changes without news.
    is_watching: bool,
    /// When the writers were last asked to show that they are alive.
    probed_ms: u64,
}

impl<S: Serve> Rounds<S> {
    /// Waits for news, for the next walk, or for a look at content that changes without news. Then
    /// begins a walk if there is something new.
    fn next(&mut self) -> Result<(), Ended> {
        let interval_ms = self.shared.settings().stream_interval_ms;
        let now_ms = self.now_ms();
        let walks = [&self.common, &self.others].map(|walks| walks.begins_ms(interval_ms));
        let walk_ms = walks
            .into_iter()
            .flatten()
            .map(|at_ms| at_ms.saturating_sub(now_ms))
            .min();
        let look_ms = if self.is_watching {
            LOOK_MS
        } else {
            QUIET_LOOK_MS
        };
        let wait_ms = walk_ms.map_or(look_ms, |walk_ms| walk_ms.min(look_ms));
        let hear = |limit| self.news.wait(limit).then_some(());
        let is_told = match wait_ms {
            0 => hear(Duration::ZERO),
            wait_ms => self.shared.slots.clock.wait_ms(wait_ms, hear),
        };
        self.show_life();
        if self.ended.try_recv() == Err(TryRecvError::Disconnected) {
            return Err(Ended);
        }
        let now_ms = self.now_ms();
        if is_told.is_some() {
            self.common.hear(now_ms);
            self.others.hear(now_ms);
        } else if self.is_watching && !self.others.is_pending && now_ms >= self.others.due_ms {
            self.others.hear(now_ms);
        }
        let is_due = |walks: &Walks| {
            walks
                .begins_ms(interval_ms)
                .is_some_and(|at_ms| now_ms >= at_ms)
        };
        let due = Due {
            common: is_due(&self.common),
            others: is_due(&self.others),
        };
        if due.common || due.others {
            self.walk(due, interval_ms);
        }
        Ok(())
    }

    /// Makes the streams that are due send what is new.
    fn walk(&mut self, due: Due, interval_ms: u64) {
        self.news.settle(BATCH_WAIT);
        let now_ms = self.now_ms();
        // All that has been told until now is covered for those that are due.
        if self.news.wait(Duration::ZERO) {
            let others = [
                (due.common, &mut self.common),
                (due.others, &mut self.others),
            ];
            others
                .into_iter()
                .filter(|(is_due, _)| !is_due)
                .for_each(|(_, walks)| walks.hear(now_ms));
        }
        let stats = &self.shared.streams.stats;
        let begun = self.shared.slots.clock.stopwatch();
        let mut walk = None;
        let mut is_common = false;
        self.is_watching = self.shared.service.refresh_streams(due, &mut |group| {
            is_common |= group == Group::COMMON;
            let walk = walk.get_or_insert_with(|| Walk::new(stats, begun));
            self.shared
                .mailboxes
                .all()
                .iter()
                .for_each(|mailbox| mailbox.wake(group, walk));
        });
        if due.common {
            self.common.end(now_ms, interval_ms, is_common);
        }
        if due.others {
            // What is new for all is new for them.
            self.others.end(now_ms, interval_ms, walk.is_some());
        }
    }

    fn now_ms(&self) -> u64 {
        self.shared.slots.clock.monotonic_ms()
    }

    /// Shows that this thread is alive, unless a writer has left its bell unheard since it was last
    /// seen here.
    fn show_life(&mut self) {
        let writers = self.shared.mailboxes.all();
        if writers.iter().any(|writer| writer.is_behind()) {
            return;
        }
        let now_ms = self.shared.slots.now_ms();
        self.shared.streams.saw_fan_out(now_ms);
        if now_ms >= self.probed_ms + QUIET_LOOK_MS {
            self.probed_ms = now_ms;
            writers.iter().for_each(|writer| writer.probe());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use super::*;
    use crate::base::Clock;
    use crate::http::message::request::Request;
    use crate::http::message::response::Response;
    use crate::http::server::connection_table::ConnectionTable;
    use crate::http::server::stream_writer::StreamWriters;
    use crate::http::settings::HttpSettings;

    /// Wakes the groups that the test sets, and counts the calls.
    #[derive(Default)]
    struct Stage {
        groups: AtomicU64,
        asked: AtomicUsize,
    }

    impl Serve for Stage {
        fn serve<'a>(&'a self, _: &Request<'_>, _: &mut Response<'a>) {}

        fn refresh_streams(&self, due: Due, wake: &mut dyn FnMut(Group)) -> bool {
            let groups = self.groups.load(Ordering::SeqCst);
            let all = [Group::COMMON, Group::of_content(0)];
            all.into_iter()
                .filter(|group| groups & group.bit() != 0)
                .for_each(wake);
            self.asked.fetch_add(1, Ordering::SeqCst);
            assert_eq!(due.common, due.others, "both are told and sent together here");
            false
        }
    }

    /// A running thread and its writers, on a clock that stands still.
    fn on_stage(
        clock: &Clock,
        interval_ms: u64,
    ) -> (Arc<Shared<Stage>>, News, impl FnOnce() + use<>) {
        let settings = HttpSettings {
            stream_interval_ms: interval_ms,
            ..HttpSettings::default()
        };
        let slots = Arc::new(ConnectionTable::new(2, clock));
        let shared = Arc::new(Shared::new(Stage::default(), &settings, slots));
        let writers = StreamWriters::start(&shared).unwrap();
        let news = News::default();
        let fan_out = FanOut::start(&shared, news.clone()).unwrap();
        let stop = || {
            fan_out.stop();
            writers.stop();
        };
        (shared, news, stop)
    }

    fn clock() -> crate::base::ManualClock {
        Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap())
    }

    #[test]
    fn a_walk_is_made_where_something_is_new_and_a_batch_under_way_is_waited_for() {
        let clock = clock();
        let (shared, news, stop) = on_stage(&clock, 0);
        let asked = || shared.service.asked.load(Ordering::SeqCst);
        let walks = || shared.streams.stats.fan_out.read(0).count();
        news.tell();
        until("a look", || asked() == 1);
        assert_eq!(walks(), 0, "nothing is new");
        shared.service.groups.store(0b11, Ordering::SeqCst);
        let gathering = news.gather();
        news.tell();
        let _ = crossbeam_channel::never::<()>().recv_timeout(Duration::from_millis(50));
        assert_eq!(asked(), 1, "more is to come");
        drop(gathering);
        until("a walk over both groups", || walks() == 1);
        assert_eq!(asked(), 2);
        stop();
    }

    #[test]
    fn a_change_after_the_time_is_sent_at_once_and_one_before_it_when_it_comes() {
        let clock = clock();
        let (shared, news, stop) = on_stage(&clock, 1_000);
        shared.service.groups.store(1, Ordering::SeqCst);
        let asked = || shared.service.asked.load(Ordering::SeqCst);
        let never = crossbeam_channel::never::<()>();
        for (at_ms, sent_at_ms) in [(0, 0), (100, 1_100), (2_400, 2_400), (2_500, 3_500)] {
            let advance_to = |to_ms: i64| clock.advance_ms(to_ms - clock.monotonic_ms() as i64);
            let before = asked();
            advance_to(at_ms);
            news.tell();
            if sent_at_ms > at_ms {
                until("the news to be taken", || news.is_heard());
                // The thread looks at the clock only after that.
                let _ = never.recv_timeout(Duration::from_millis(20));
                advance_to(sent_at_ms - 1);
                let _ = never.recv_timeout(Duration::from_millis(20));
                assert_eq!(asked(), before, "{at_ms}");
                advance_to(sent_at_ms);
            }
            until("the walk", || asked() == before + 1);
        }
        // A second change after the time ends the wait of the first.
        let before = asked();
        for at_ms in [4_000, 4_250] {
            until("the news to be taken", || news.is_heard());
            let _ = never.recv_timeout(Duration::from_millis(20));
            assert_eq!(asked(), before);
            clock.advance_ms(at_ms - clock.monotonic_ms() as i64);
            news.tell();
        }
        until("the walk", || asked() == before + 1);
        stop();
    }

    /// When each of these changes is sent, by itself or together with later ones.
    fn sent(changes: &[u64]) -> Vec<u64> {
        let mut walks = Walks::default();
        let mut sent = Vec::new();
        let mut waiting = 0;
        let mut send = |walks: &mut Walks, waiting: &mut usize, at_ms| {
            walks.end(at_ms, 1_000, true);
            sent.extend(std::iter::repeat_n(at_ms, std::mem::take(waiting)));
        };
        for at_ms in changes {
            if let Some(begins_ms) = walks.begins_ms(1_000).filter(|begins_ms| begins_ms < at_ms) {
                send(&mut walks, &mut waiting, begins_ms);
            }
            walks.hear(*at_ms);
            waiting += 1;
            if walks
                .begins_ms(1_000)
                .is_some_and(|begins_ms| begins_ms <= *at_ms)
            {
                send(&mut walks, &mut waiting, *at_ms);
            }
        }
        sent
    }

    #[test]
    fn a_source_of_the_same_interval_is_not_waited_for_and_nothing_of_it_is_skipped() {
        for period_ms in [950, 990, 1_000, 1_050] {
            // Each a little late, and one by half a second.
            let late_ms = |number| {
                if number == 500 {
                    500
                } else {
                    number * 7_919 % 45
                }
            };
            let changes: Vec<u64> = (1..1_000)
                .map(|number| number * period_ms + late_ms(number))
                .collect();
            let sent = sent(&changes);
            assert!(sent.is_sorted_by(|one, next| one < next), "each by itself: {period_ms}");
            for (at, (change_ms, sent_ms)) in changes.iter().zip(&sent).enumerate() {
                let is_soon_after = (498..515).contains(&at);
                assert!(sent_ms - change_ms <= if is_soon_after { 700 } else { 0 }, "{at}");
            }
        }
    }

    #[test]
    fn what_changes_beside_a_source_waits_for_it_and_does_not_delay_it() {
        // Each fifth second something changes in between.
        let mut changes = Vec::new();
        for second in 1..500 {
            changes.push(second * 1_000 + second * 7_919 % 45);
            changes.extend((second % 5 == 0).then_some(second * 1_000 + second * 131 % 800 + 60));
        }
        let sent = sent(&changes);
        for (change_ms, sent_ms) in changes.iter().zip(&sent) {
            let is_of_source = change_ms % 1_000 < 45;
            assert!(sent_ms - change_ms <= if is_of_source { 0 } else { 1_000 }, "{change_ms}");
        }
        let mut walks = sent;
        walks.dedup();
        assert!(walks.is_sorted_by(|one, next| next - one >= 900));
    }

    #[test]
    fn a_source_that_changes_all_the_time_has_one_walk_an_interval() {
        for period_ms in [10, 100, 250, 300, 499] {
            let changes: Vec<u64> = (0..1_000_000 / period_ms)
                .map(|at| at * period_ms)
                .collect();
            let mut walks = sent(&changes);
            walks.dedup();
            assert!((820..=1_115).contains(&walks.len()), "{} at {period_ms}", walks.len());
            assert!(walks.is_sorted_by(|one, next| next - one >= 900));
        }
    }

    /// Polls the condition for some seconds at most.
    fn until(what: &str, holds: impl Fn() -> bool) {
        let patience = Clock::system();
        let never = crossbeam_channel::never::<()>();
        while !holds() {
            assert!(patience.monotonic_ms() < 20_000, "{what}");
            let _ = never.recv_timeout(Duration::from_millis(1));
        }
    }

    #[test]
    fn it_is_seen_while_nothing_changes_and_while_it_waits_and_not_while_a_writer_hangs() {
        let clock = clock();
        let (shared, news, stop) = on_stage(&clock, 1_000_000);
        shared.service.groups.store(1, Ordering::SeqCst);
        let slots = Arc::clone(&shared.slots);
        let sweeper = threads::spawn("sweeper", move || slots.sweep()).unwrap();
        let step = || {
            clock.advance_ms(60_000);
            until("the sweeper", || shared.slots.now_ms() == clock.monotonic_ms());
        };
        let seen = || {
            until("fan-out", || shared.streams.fan_out_mono_ms() == shared.slots.now_ms());
        };
        step();
        seen();
        for _ in 0..2 {
            // After the first it waits for an interval.
            news.tell();
            until("it to take the news", || news.is_heard());
        }
        step();
        seen();
        let held = shared.mailboxes.all()[0].hold();
        step();
        until("the writer to be found hanging", || {
            let before_ms = shared.streams.fan_out_mono_ms();
            step();
            step();
            shared.streams.fan_out_mono_ms() == before_ms
        });
        let before_ms = shared.streams.fan_out_mono_ms();
        step();
        assert_eq!(shared.streams.fan_out_mono_ms(), before_ms);
        drop(held);
        seen();
        stop();
        shared.slots.stop();
        sweeper.join().unwrap();
    }
}
