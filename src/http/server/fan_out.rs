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
    heard.wait(is_watching.then_some(LOOK));
    let begun_ms = shared.slots.now_ms();
    let stopwatch = shared.slots.stopwatch();
    pause(ended, if is_watching { GATHER } else { Duration::ZERO })?;
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
        pause(ended, SLICE_PAUSE)?;
    }
    Ok(())
}

/// Waits until an interval has passed since `begun_ms`.
fn rest<S>(shared: &Shared<S>, ended: &Receiver<()>, begun_ms: u64) -> Result<(), Ended> {
    let interval_ms = || shared.settings().stream_interval_ms;
    while shared.slots.now_ms() < begun_ms + interval_ms() {
        pause(ended, LOOK)?;
    }
    Ok(())
}

fn pause(ended: &Receiver<()>, pause: Duration) -> Result<(), Ended> {
    match ended.recv_timeout(pause) {
        Err(RecvTimeoutError::Timeout) => Ok(()),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => Err(Ended),
    }
}
