//! The thread that decides when streams send what has changed.
//!
//! A walk makes all streams that have something new send it. One may begin an interval after the
//! last one was due, by the clock itself, and begins at once when something changes after that.
//!
//! Some content changes without news: a price becomes stale because time passes. While streams send
//! such content, the thread checks it by itself through [`Serve::refresh_streams`].
//!
//! The streams themselves are with other threads (`stream_writer`), which it tells.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::handover::Walk;
use super::shared::Shared;
use crate::http::serve::Serve;
use crate::rt::{News, threads};

/// Interval of the checks for changes without news.
const LOOK: Duration = Duration::from_millis(50);

/// Longest wait for a batch of prices that is being stored. Streams send a batch as a whole,
/// because prices missed now would be sent an interval late. Storing one takes some milliseconds.
const BATCH_WAIT: Duration = Duration::from_millis(50);

/// Interval at which the thread reports that it is alive, and checks that the writers are.
const QUIET_LOOK_MS: u64 = 1_000;

/// One in so many parts of an interval by which the next walk is due earlier. A source whose
/// interval is the same would otherwise be waited for a little longer each time, once its clock is
/// faster or a walk was late, until a state is skipped.
const LEAD_PART: u64 = 50;

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
        let mut rounds =
            Rounds { shared, ended, news: heard, due_ms: 0, is_watching: false, probed_ms: 0 };
        let thread = threads::spawn("fan-out", move || while rounds.next().is_ok() {})?;
        Ok(Self { news, running, thread })
    }

    /// Ends the thread.
    pub(crate) fn stop(self) {
        drop(self.running);
        self.news.tell();
        // The thread only waits and wakes others. If it panicked, nothing is left to do here.
        let _ = self.thread.join();
    }
}

/// The thread must end.
struct Ended;

struct Rounds<S> {
    shared: Arc<Shared<S>>,
    ended: Receiver<()>,
    news: News,
    /// From when on the next walk may begin.
    due_ms: u64,
    /// Streams send content that changes without news.
    is_watching: bool,
    /// When the writers were last asked to show that they are alive.
    probed_ms: u64,
}

impl<S: Serve> Rounds<S> {
    /// Waits for news, or for [`LOOK`] while streams send content that changes without news. Then
    /// begins a walk if there is something new.
    fn next(&mut self) -> Result<(), Ended> {
        let quiet = Duration::from_millis(QUIET_LOOK_MS);
        let is_told = self.news.wait(if self.is_watching { LOOK } else { quiet });
        self.show_life();
        if !is_told && !self.is_watching {
            return self.pause(0);
        }
        while let left_ms @ 1.. = self.due_ms.saturating_sub(self.now_ms()) {
            self.pause(left_ms.min(QUIET_LOOK_MS))?;
        }
        self.pause(0)?;
        self.news.settle(BATCH_WAIT);
        // The refresh covers all that has been told until now.
        self.news.wait(Duration::ZERO);
        let begun_ms = self.now_ms();
        let stats = &self.shared.streams.stats;
        let (begun, mut walk) = (self.shared.slots.stopwatch(), None);
        self.is_watching = self.shared.service.refresh_streams(&mut |group| {
            let walk = walk.get_or_insert_with(|| Walk::new(stats, begun));
            self.shared.mailboxes.all().iter().for_each(|mailbox| mailbox.wake(group, walk));
        });
        if walk.is_some() {
            let interval_ms = self.shared.settings().stream_interval_ms;
            self.due_ms = next_due(self.due_ms, begun_ms, interval_ms);
        }
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        self.shared.slots.clock().monotonic_ms()
    }

    fn pause(&mut self, ms: u64) -> Result<(), Ended> {
        self.show_life();
        let ended = |limit| match self.ended.recv_timeout(limit) {
            Err(RecvTimeoutError::Timeout) => None,
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Some(Ended),
        };
        let ended = match ms {
            0 => ended(Duration::ZERO),
            ms => self.shared.slots.clock().wait_ms(ms, ended),
        };
        ended.map_or(Ok(()), Err)
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

/// When the walk after one that was due at `due_ms` and began at `begun_ms` is due: an interval
/// after it was due, so that one late walk makes no other late, but not within half an interval of
/// its beginning.
fn next_due(due_ms: u64, begun_ms: u64, interval_ms: u64) -> u64 {
    (due_ms + interval_ms - interval_ms / LEAD_PART).max(begun_ms + interval_ms / 2)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use super::*;
    use crate::base::Clock;
    use crate::http::Group;
    use crate::http::message::request::Request;
    use crate::http::message::response::Response;
    use crate::http::serve::HttpSettings;
    use crate::http::server::connection_table::ConnectionTable;
    use crate::http::server::stream_writer::StreamWriters;

    /// Wakes the groups that the test sets, and counts the calls.
    #[derive(Default)]
    struct Stage {
        groups: AtomicU64,
        asked: AtomicUsize,
    }

    impl Serve for Stage {
        fn serve<'a>(&'a self, _: &Request<'_>, _: &mut Response<'a>) {}

        fn refresh_streams(&self, wake: &mut dyn FnMut(Group)) -> bool {
            let groups = self.groups.load(Ordering::SeqCst);
            let all = [Group::COMMON, Group::of_content(0)];
            all.into_iter().filter(|group| groups & group.bit() != 0).for_each(wake);
            self.asked.fetch_add(1, Ordering::SeqCst);
            false
        }
    }

    /// A running thread and its writers, on a clock that stands still.
    fn on_stage(
        clock: &Clock,
        interval_ms: u64,
    ) -> (Arc<Shared<Stage>>, News, impl FnOnce() + use<>) {
        let settings = HttpSettings { stream_interval_ms: interval_ms, ..HttpSettings::default() };
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
        for (at_ms, sent_at_ms) in [(0, 0), (100, 980), (2_400, 2_400), (2_500, 2_940)] {
            let advance_to = |to_ms: i64| clock.advance_ms(to_ms - clock.monotonic_ms() as i64);
            let before = asked();
            advance_to(at_ms);
            news.tell();
            if sent_at_ms > at_ms {
                until("the news to be taken", || news.is_heard());
                advance_to(sent_at_ms - 1);
                let _ = never.recv_timeout(Duration::from_millis(20));
                assert_eq!(asked(), before, "{at_ms}");
                advance_to(sent_at_ms);
            }
            until("the walk", || asked() == before + 1);
        }
        stop();
    }

    #[test]
    fn a_source_of_the_same_interval_is_never_waited_for_long_and_nothing_of_it_is_skipped() {
        // Late by up to a quarter, once by more; and by a clock that is faster by a hundredth.
        for period_ms in [1_000, 990] {
            let (mut due_ms, mut waited_ms, mut gap_ms_min) = (0, 0, u64::MAX);
            let mut last_ms = 0;
            for number in 1..1_000 {
                let late_ms = if number == 500 { 900 } else { number * 7_919 % 250 };
                let at_ms = number * period_ms + late_ms;
                let begun_ms = at_ms.max(due_ms);
                assert!(begun_ms < (number + 1) * period_ms + 250, "{number} is skipped");
                let is_long_after = !(500..520).contains(&number);
                waited_ms = waited_ms.max(if is_long_after { begun_ms - at_ms } else { 0 });
                gap_ms_min = gap_ms_min.min(begun_ms - last_ms);
                due_ms = next_due(due_ms, begun_ms, 1_000);
                last_ms = begun_ms;
            }
            assert!(waited_ms < 250, "waited {waited_ms} ms");
            assert!(gap_ms_min >= 500, "{gap_ms_min} ms between two");
        }
        // One that is faster has one walk an interval.
        let (mut due_ms, mut walks) = (0, 0);
        for at_ms in (0..1_000_000).step_by(250) {
            if at_ms >= due_ms {
                walks += 1;
                due_ms = next_due(due_ms, at_ms, 1_000);
            }
        }
        assert!((990..=1_025).contains(&walks), "{walks} in a thousand intervals");
    }

    /// Polls the condition for some seconds at most.
    fn until(what: &str, holds: impl Fn() -> bool) {
        let (patience, never) = (Clock::system(), crossbeam_channel::never::<()>());
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
