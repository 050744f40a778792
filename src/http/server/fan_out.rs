//! The thread that wakes streams when their content has changed.
//!
//! Some content changes without news: a price becomes stale because time passes. While streams send
//! such content, the thread checks it by itself through [`Serve::refresh_streams`].
//!
//! A worker runs all coroutines that are ready before it polls its sockets again. If all streams
//! were woken at once, every other client would wait until the last one has written. So they are
//! woken in slices with a pause between. With 9,000 streams and a frame a second on two busy cores,
//! the 99.9th percentile of other requests was 65 ms without slices and 8 ms with them.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::shared::Shared;
use crate::http::serve::{Refreshed, Serve, Shows};
use crate::rt::{News, threads};

/// Streams woken in one slice.
const SLICE_STREAMS: usize = 64;

/// Pause between two slices. 10,000 streams are woken within 160 ms.
const SLICE_PAUSE: Duration = Duration::from_millis(1);

/// Interval of the checks for changes without news, and for the end of the stream interval.
const LOOK: Duration = Duration::from_millis(50);

/// Longest wait for a batch of prices that is being stored. Streams send a batch as a whole,
/// because prices missed now would be sent an interval late. Storing one takes some milliseconds.
const BATCH_WAIT: Duration = Duration::from_millis(50);

/// Maximum number of refreshes in a row. Each is repeated if another batch began during it; after
/// the last one streams send what there is.
const LOOKS_MAX: usize = 3;

/// Interval at which the thread reports that it is alive while nothing changes.
const QUIET_LOOK: Duration = Duration::from_secs(1);

/// The running thread.
pub(crate) struct FanOut {
    news: News,
    /// Dropped to end the thread.
    running: Sender<()>,
    thread: JoinHandle<()>,
}

impl FanOut {
    /// Wakes the streams of `shared` at each piece of `news`, at most once per
    /// `stream_interval_ms`. Changes in between are sent together.
    pub(crate) fn start<S: Serve>(shared: &Arc<Shared<S>>, news: News) -> io::Result<Self> {
        let (running, ended) = bounded(0);
        let (shared, heard) = (Arc::clone(shared), news.clone());
        // The thread counts as alive from its start on.
        shared.streams.saw_fan_out(shared.slots.now_ms());
        let thread = threads::spawn("fan-out", move || {
            let mut is_watching = false;
            while let Ok(watching) = round(&shared, &ended, &heard, is_watching) {
                is_watching = watching;
            }
        })?;
        Ok(Self { news, running, thread })
    }

    /// Ends the thread.
    pub(crate) fn stop(self) {
        drop(self.running);
        self.news.tell();
        // The thread only waits and wakes streams. If it panicked, nothing is left to do here.
        let _ = self.thread.join();
    }
}

/// The thread must end.
struct Ended;

/// Waits for news, or for [`LOOK`] while streams send content that changes without news. Then wakes
/// the streams if they have something new. Returns whether the next round checks without news.
fn round<S: Serve>(
    shared: &Shared<S>,
    ended: &Receiver<()>,
    heard: &News,
    is_watching: bool,
) -> Result<bool, Ended> {
    let is_told = heard.wait(if is_watching { LOOK } else { QUIET_LOOK });
    shared.streams.saw_fan_out(shared.slots.now_ms());
    if !is_told && !is_watching {
        return Ok(false);
    }
    let begun_ms = shared.slots.now_ms();
    let stopwatch = shared.slots.stopwatch();
    pause(shared, ended, Duration::ZERO)?;
    let refreshed = refresh(shared, heard);
    if let Some(shown) = refreshed.changed {
        walk(shared, ended, shown)?;
        shared.streams.stats.fan_out.record(0, stopwatch.elapsed_ns());
        rest(shared, ended, begun_ms)?;
    }
    Ok(refreshed.is_watching)
}

/// Updates the content of streams, with all of a batch or nothing of it.
fn refresh<S: Serve>(shared: &Shared<S>, heard: &News) -> Refreshed {
    let mut changed = None;
    let mut look = || {
        heard.settle(BATCH_WAIT);
        let before = heard.begun();
        let found = shared.service.refresh_streams();
        // A change for all streams outweighs a change for some.
        changed = [changed, found.changed].into_iter().flatten().min();
        (Refreshed { changed, ..found }, heard.begun() == before)
    };
    let mut found = look();
    for _ in 1..LOOKS_MAX {
        if !found.1 {
            found = look();
        }
    }
    found.0
}

/// Wakes every stream that sends `shown`, slice by slice.
fn walk<S>(shared: &Shared<S>, ended: &Receiver<()>, shown: Shows) -> Result<(), Ended> {
    let mut from = Some(0);
    while let Some(first) = from {
        from = shared.slots.wake_streams(shown, first, SLICE_STREAMS);
        pause(shared, ended, SLICE_PAUSE)?;
    }
    Ok(())
}

/// Waits until an interval has passed since `begun_ms`.
fn rest<S>(shared: &Shared<S>, ended: &Receiver<()>, begun_ms: u64) -> Result<(), Ended> {
    let interval_ms = || shared.settings().stream_interval_ms;
    while shared.slots.now_ms() < begun_ms + interval_ms() {
        pause(shared, ended, LOOK)?;
    }
    Ok(())
}

fn pause<S>(shared: &Shared<S>, ended: &Receiver<()>, pause: Duration) -> Result<(), Ended> {
    shared.streams.saw_fan_out(shared.slots.now_ms());
    match ended.recv_timeout(pause) {
        Err(RecvTimeoutError::Timeout) => Ok(()),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => Err(Ended),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use crate::base::Clock;
    use crate::http::message::request::Request;
    use crate::http::message::response::Response;
    use crate::http::serve::HttpSettings;
    use crate::http::server::connection_table::ConnectionTable;

    struct Silent;

    impl Serve for Silent {
        fn serve<'a>(&'a self, _: &Request<'_>, _: &mut Response<'a>) {}
    }

    /// Reports the change that the test sets, and counts the calls.
    #[derive(Default)]
    struct Stage {
        is_common: AtomicBool,
        asked: AtomicUsize,
    }

    impl Serve for Stage {
        fn serve<'a>(&'a self, _: &Request<'_>, _: &mut Response<'a>) {}

        fn refresh_streams(&self) -> Refreshed {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let is_common = self.is_common.load(Ordering::SeqCst);
            let changed = if is_common { Shows::Common } else { Shows::Chosen };
            Refreshed { changed: Some(changed), is_watching: false }
        }
    }

    /// A running thread and a table whose time stands still, without a pause between changes.
    fn on_stage() -> (Arc<Shared<Stage>>, News, FanOut) {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let settings = HttpSettings { stream_interval_ms: 0, ..HttpSettings::default() };
        let slots = Arc::new(ConnectionTable::new(2, &clock));
        let shared = Arc::new(Shared::new(Stage::default(), &settings, slots));
        let news = News::default();
        let fan_out = FanOut::start(&shared, news.clone()).unwrap();
        (shared, news, fan_out)
    }

    #[test]
    fn who_does_not_show_what_has_changed_is_not_woken() {
        let (shared, news, fan_out) = on_stage();
        let [common, chosen] = [Shows::Common, Shows::Chosen].map(|shows| {
            let stream = shared.slots.acquire().unwrap();
            stream.mark_stream(shows);
            stream
        });
        let walks = || shared.streams.stats.fan_out.read(0).count();
        // The thread that wakes it waits.
        let held = common.hold_waker();
        news.tell();
        until("a walk past the one that is held", || walks() == 1);
        shared.service.is_common.store(true, Ordering::SeqCst);
        news.tell();
        until("a look", || shared.service.asked.load(Ordering::SeqCst) == 2);
        let _ = crossbeam_channel::never::<()>().recv_timeout(Duration::from_millis(50));
        assert_eq!(walks(), 1, "it waits at the one that is held");
        drop(held);
        until("the rest of the walk", || walks() == 2);
        // A stream with chosen content is woken for a common change too.
        let held = chosen.hold_waker();
        news.tell();
        until("a look", || shared.service.asked.load(Ordering::SeqCst) == 3);
        let _ = crossbeam_channel::never::<()>().recv_timeout(Duration::from_millis(50));
        assert_eq!(walks(), 2);
        drop(held);
        fan_out.stop();
    }

    #[test]
    fn a_batch_under_way_is_waited_for_and_looked_at_as_a_whole() {
        let (shared, news, fan_out) = on_stage();
        let asked = || shared.service.asked.load(Ordering::SeqCst);
        news.tell();
        until("a look", || asked() == 1);
        let gathering = news.gather();
        news.tell();
        let _ = crossbeam_channel::never::<()>().recv_timeout(Duration::from_millis(50));
        assert_eq!(asked(), 1, "more is to come");
        drop(gathering);
        until("a look at its end", || asked() == 2);
        // A batch that was reported before.
        news.tell();
        until("a look", || asked() == 3);
        fan_out.stop();
        assert_eq!(asked(), 3);
    }

    #[test]
    fn a_look_in_whose_midst_a_batch_began_is_done_again() {
        /// Publishes a batch during a refresh, at most as often as the last field says.
        struct Busy(News, AtomicUsize, AtomicUsize);
        impl Serve for Busy {
            fn serve<'a>(&'a self, _: &Request<'_>, _: &mut Response<'a>) {}

            fn refresh_streams(&self) -> Refreshed {
                self.1.fetch_add(1, Ordering::SeqCst);
                let left = self.2.load(Ordering::SeqCst);
                self.2.store(left.saturating_sub(1), Ordering::SeqCst);
                let gathering = (left > 0).then(|| self.0.gather());
                drop(gathering);
                let changed = (left == 1).then_some(Shows::Chosen);
                Refreshed { changed, is_watching: false }
            }
        }
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let slots = Arc::new(ConnectionTable::new(1, &clock));
        let news = News::default();
        for (batches, looks) in [(0, 1), (1, 2), (2, 3), (9, LOOKS_MAX)] {
            let (asked, left) = (AtomicUsize::new(0), AtomicUsize::new(batches));
            let busy = Busy(news.clone(), asked, left);
            let shared = Shared::new(busy, &HttpSettings::default(), Arc::clone(&slots));
            let found = refresh(&shared, &news);
            assert_eq!(shared.service.1.load(Ordering::SeqCst), looks, "{batches}");
            let is_seen = (1..=LOOKS_MAX).contains(&batches);
            assert_eq!(found.changed.is_some(), is_seen, "{batches}: what any of them found");
        }
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
    fn it_is_seen_while_nothing_changes_and_while_it_wakes_and_not_while_it_hangs() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let settings = HttpSettings { stream_interval_ms: 1, ..HttpSettings::default() };
        let slots = Arc::new(ConnectionTable::new(2, &clock));
        let shared = Arc::new(Shared::new(Silent, &settings, Arc::clone(&slots)));
        let sweeping = Arc::clone(&slots);
        let sweeper = threads::spawn("sweeper", move || sweeping.sweep()).unwrap();
        let news = News::default();
        let fan_out = FanOut::start(&shared, news.clone()).unwrap();
        let step = || {
            clock.advance_ms(60_000);
            until("the sweeper", || slots.now_ms() == clock.monotonic_ms());
        };
        let seen = || until("fan-out", || shared.streams.fan_out_mono_ms() == slots.now_ms());
        step();
        seen();
        let stream = slots.acquire().unwrap();
        stream.mark_stream(Shows::Common);
        step();
        news.tell();
        until("it to take the news", || news.is_heard());
        // The thread waits for an interval.
        step();
        seen();
        let held = stream.hold_waker();
        news.tell();
        until("it to take the news", || news.is_heard());
        step();
        let before_ms = shared.streams.fan_out_mono_ms();
        step();
        assert_eq!(shared.streams.fan_out_mono_ms(), before_ms);
        assert!(slots.now_ms() - before_ms >= 60_000);
        drop(held);
        seen();
        fan_out.stop();
        slots.stop();
        sweeper.join().unwrap();
    }
}
