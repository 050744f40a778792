//! The thread that wakes streams when what they show has changed.
//!
//! Some of it changes without news: a price becomes stale because time passes. While streams show
//! such things the thread looks by itself, through [`Serve::refresh_streams`].
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
use crate::http::news::News;
use crate::http::serve::Serve;
use crate::rt::threads;

/// Streams woken in one slice.
const SLICE_STREAMS: usize = 64;

/// Pause between two slices: 10,000 streams are woken within 160 ms.
const SLICE_PAUSE: Duration = Duration::from_millis(1);

/// How often the thread looks whether the interval has passed, and for changes without news.
const LOOK: Duration = Duration::from_millis(50);

/// A batch of prices is told in pieces: the snapshot in its midst, the rest some milliseconds
/// later. While streams show both, the thread waits so long for all of it; otherwise the rest would
/// be sent an interval late.
const GATHER: Duration = Duration::from_millis(20);

/// How often the thread shows that it is alive while nothing changes.
const QUIET_LOOK: Duration = Duration::from_secs(1);

/// The running thread.
pub(crate) struct FanOut {
    news: News,
    /// Disconnected when the thread is to end.
    running: Sender<()>,
    thread: JoinHandle<()>,
}

impl FanOut {
    /// Wakes the streams of `shared` at each piece of `news`, at most once per
    /// `stream_interval_ms`. Changes in between are shown together.
    pub(crate) fn start<S: Serve>(shared: &Arc<Shared<S>>, news: News) -> io::Result<Self> {
        let (running, ended) = bounded(0);
        let (shared, heard) = (Arc::clone(shared), news.clone());
        // It counts as seen from its start on.
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
        // It only wakes and waits; if it ever panicked there is nothing left to do here.
        let _ = self.thread.join();
    }
}

/// The thread is to end.
struct Ended;

/// Waits for news or, while streams show what changes without, for a moment; then wakes the streams
/// if they show something new. Returns whether to look again without news.
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
    pause(shared, ended, if is_watching { GATHER } else { Duration::ZERO })?;
    let refreshed = shared.service.refresh_streams();
    if refreshed.changed {
        walk(shared, ended)?;
        shared.streams.stats.fan_out.record(0, stopwatch.elapsed_ns());
        rest(shared, ended, begun_ms)?;
    }
    Ok(refreshed.is_watching)
}

/// Wakes every stream, slice by slice.
fn walk<S>(shared: &Shared<S>, ended: &Receiver<()>) -> Result<(), Ended> {
    let mut from = Some(0);
    while let Some(first) = from {
        from = shared.slots.wake_streams(first, SLICE_STREAMS);
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
    use super::*;
    use crate::base::Clock;
    use crate::http::message::request::Request;
    use crate::http::message::response::Response;
    use crate::http::server::connection_table::ConnectionTable;
    use crate::http::settings::HttpSettings;

    struct Silent;

    impl Serve for Silent {
        fn serve<'a>(&'a self, _: &Request<'_>, _: &mut Response<'a>) {}
    }

    /// Looks again and again, for some seconds at most.
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
        stream.mark_stream();
        step();
        news.tell();
        until("it to take the news", || news.is_heard());
        // It rests for an interval.
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
