//! The threads `stream-N`, which write all streams: the newest frame whenever there is one, else
//! heartbeats.
//!
//! A connection whose request has begun a stream hands its socket over ([`Mailbox::hand_over`]),
//! and its coroutine ends: a stream only writes, so while it waits it needs no stack, only an entry
//! in its writer's table. At most one frame of a stream is being written, and the next one taken is
//! the newest at that time. A slow client misses frames and never gets old ones.
//!
//! A writer never waits for a client. It writes to [`SLICE_STREAMS`] streams and then pauses, so
//! that the edge's workers get their core at once: with 9,000 streams and a frame a second on two
//! busy cores the 99.9th percentile of other requests was 65 ms without pauses and 8 ms with them.

use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use zeroize::Zeroize;

use super::connection_table::{SlotGuard, Waker};
use super::handover::{Accepted, Mailbox, NewStream, Walk};
use super::listener::Socket;
use super::places::Place;
use super::shared::{Serve, Shared};
use crate::http::Group;
use crate::http::connection::backpressure::{Cut, Held};
use crate::http::document::frames::{Frame, Frames, Framing};
use crate::http::document::owned_body::OwnedBody;
use crate::rt::poll::{Bell, Poll, Report};
use crate::rt::{coroutines, threads};

/// Streams written to in one slice.
const SLICE_STREAMS: usize = 64;

/// Pause between two slices. Two writers write to 10,000 streams within 160 ms.
const SLICE_PAUSE: Duration = Duration::from_millis(1);

/// Bytes that the kernel may hold unsent for a stream. By default it accepts four megabytes, about
/// two thousand frames of a snapshot, before it reports that a client does not read.
const UNSENT_BYTES_MAX: u32 = 16 * 1024;

/// A peer that acknowledges nothing for this long counts as gone.
const DEAD_PEER: Duration = Duration::from_secs(60);

/// Time without a frame after which a heartbeat is sent. Proxies close a connection that is quiet
/// for a minute.
const HEARTBEAT_MS: u64 = 15_000;

/// Interval of the checks whether a client may see more, for streams to which that can happen.
const RIGHT_LOOK_MS: u64 = 500;

/// Maximum input of a client after its request. It is read and dropped; more ends the stream.
const DROPPED_BYTES_MAX: usize = 4 * 1024;

/// Clients of a stopping server reconnect after a delay in this range, not all at once.
const RETRY_MS: (u64, u64) = (500, 5_000);

/// The end of a chunked stream (RFC 9112 7.1).
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The numbers of the bells among the reports of a writer's [`Poll`].
const BELL: u64 = u64::MAX;
const LOOK_BELL: u64 = u64::MAX - 1;

/// The running threads.
pub(super) struct StreamWriters {
    threads: Vec<JoinHandle<()>>,
    mailboxes: Box<[Arc<Mailbox>]>,
}

impl StreamWriters {
    /// Starts a writer for each edge worker.
    pub(super) fn start<S: Serve>(shared: &Arc<Shared<S>>) -> io::Result<Self> {
        let writers: Vec<Writer<S>> = (0..coroutines::workers().max(1))
            .map(|_| Writer::new(shared))
            .collect::<Result<_, _>>()?;
        let mailboxes: Box<[_]> = writers
            .iter()
            .map(|writer| Arc::clone(&writer.mailbox))
            .collect();
        shared.mailboxes.set(mailboxes.clone());
        let mut started = Self {
            threads: Vec::new(),
            mailboxes,
        };
        for (number, writer) in writers.into_iter().enumerate() {
            match threads::spawn(&format!("stream-{number}"), move || writer.run()) {
                Ok(thread) => started.threads.push(thread),
                Err(error) => {
                    started.stop();
                    return Err(error);
                }
            }
        }
        Ok(started)
    }

    /// Ends the threads and closes the streams that are left.
    pub(super) fn stop(self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.close());
        for thread in self.threads {
            // A writer catches the panics of its streams. If it panicked itself, nothing is left to
            // do here.
            let _ = thread.join();
        }
    }
}

/// The reason why a stream ends.
#[derive(Debug)]
enum End {
    /// Its life is over, or its client may not see more.
    Old,
    /// The server stops.
    Drain,
    /// The client sent too much.
    Input,
    /// The client has closed the connection.
    Gone,
    /// The client was cut off.
    Cut(Cut),
}

struct Stream {
    accepted: Arc<Accepted>,
    /// Of its writer.
    look_bell: Arc<Bell>,
    frames: Box<dyn Frames>,
    framing: Framing,
    group: Group,
    /// Its index in the list of its group.
    at: u32,
    place: Place,
    _connection_place: Place,
    ends_at_ms: u64,
    heartbeat_at_ms: u64,
    dropped_bytes: usize,
    /// What the socket has not taken yet.
    rest: Option<Box<Rest>>,
}

/// The rest of a frame, or of two. Nothing else is sent meanwhile, which bounds a client's output.
struct Rest {
    first: OwnedBody,
    second: Option<OwnedBody>,
    /// Bytes of `first` that were sent.
    sent: usize,
    bytes: usize,
    held: Held,
}

struct Writer<S> {
    shared: Arc<Shared<S>>,
    mailbox: Arc<Mailbox>,
    poll: Poll,
    /// Each on the heap, so that the table of many streams that have ended is small.
    streams: Vec<Option<Box<Stream>>>,
    free: Vec<u32>,
    /// The streams of each group by their index in `streams`.
    groups: Vec<Vec<u32>>,
    arrived: Vec<NewStream>,
    /// Groups that are to be walked, a bit each.
    due: u64,
    /// Streams that have to act without news; see [`Mailbox::look_bell`].
    urgent: Vec<u32>,
    /// The group that is being walked, and how many of its streams are left.
    walking: Option<(usize, usize)>,
    walk: Option<Arc<Walk>>,
    /// Dropped input.
    room: Box<[u8]>,
}

impl<S: Serve> Writer<S> {
    fn new(shared: &Arc<Shared<S>>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mailbox = Mailbox::new(poll.bell(BELL)?, poll.bell(LOOK_BELL)?);
        Ok(Self {
            shared: Arc::clone(shared),
            mailbox: Arc::new(mailbox),
            poll,
            streams: Vec::new(),
            free: Vec::new(),
            groups: vec![Vec::new(); Group::COUNT],
            arrived: Vec::new(),
            due: 0,
            urgent: Vec::new(),
            walking: None,
            walk: None,
            room: vec![0; DROPPED_BYTES_MAX + 1].into(),
        })
    }

    fn run(mut self) {
        let mut reports: Vec<Report> = Vec::new();
        while !self.mailbox.is_closed() {
            self.poll
                .wait(self.is_busy().then_some(SLICE_PAUSE), &mut reports);
            for Report { number, has_input } in reports.drain(..) {
                match number {
                    BELL => {
                        let (arrived, due, walk) = self.mailbox.take();
                        self.arrived.extend(arrived);
                        self.due |= due;
                        self.walk = walk.or(self.walk.take());
                    }
                    LOOK_BELL => {
                        self.mailbox.look_bell.hear();
                        self.look();
                    }
                    number => self.react(number as u32, has_input),
                }
            }
            let left = self.take_in(SLICE_STREAMS);
            let left = self.hurry(left);
            self.walk(left);
        }
        self.mailbox.end();
    }

    fn is_busy(&self) -> bool {
        let walks = self.due != 0 || self.walking.is_some();
        walks || !self.arrived.is_empty() || !self.urgent.is_empty()
    }

    /// Takes in at most `most` of the streams that have arrived; returns how many fewer.
    fn take_in(&mut self, most: usize) -> usize {
        let count = self.arrived.len().min(most);
        for new in self.arrived.split_off(self.arrived.len() - count) {
            self.open(new);
        }
        most - count
    }

    fn open(&mut self, new: NewStream) {
        let NewStream {
            accepted,
            frames,
            framing,
            place,
            connection_place,
            dropped_bytes,
        } = new;
        let number = self.free.pop().unwrap_or(self.streams.len() as u32);
        if let Err(error) = self.poll.add(&accepted.socket, u64::from(number)) {
            self.free.push(number);
            tracing::warn!(%error, "a new stream could not be served and was closed");
            return;
        }
        let Accepted { socket, slot } = &*accepted;
        if let Err(error) = socket.limit_unsent(UNSENT_BYTES_MAX, DEAD_PEER) {
            tracing::debug!(%error, "cannot limit the unsent bytes of a stream");
        }
        let look_bell = Arc::clone(&self.mailbox.look_bell);
        slot.register(Waker::Thread(Arc::clone(&look_bell)));
        let now_ms = self.shared.slots.now_ms();
        let life_ms = self.shared.settings().stream_life_ms;
        let spread_life_ms = spread(slot.index, (life_ms * 9 / 10, life_ms * 11 / 10));
        let group = frames.group();
        let of_group = &mut self.groups[group.index()];
        let stream = Box::new(Stream {
            accepted,
            look_bell,
            frames,
            framing,
            group,
            at: of_group.len() as u32,
            place,
            _connection_place: connection_place,
            ends_at_ms: now_ms + spread_life_ms,
            heartbeat_at_ms: now_ms + HEARTBEAT_MS,
            dropped_bytes,
            rest: None,
        });
        of_group.push(number);
        match self.streams.get_mut(number as usize) {
            Some(free) => *free = Some(stream),
            None => self.streams.push(Some(stream)),
        }
        if dropped_bytes > DROPPED_BYTES_MAX {
            return self.end(number, &End::Input);
        }
        // The first frame. The next one comes with the next walk, however soon that is.
        self.update(number);
    }

    /// Finds the streams that have to act without news.
    fn look(&mut self) {
        let is_draining = self.shared.is_draining();
        let is_urgent = |stream: &Stream| {
            let is_cut = stream.rest.as_ref().is_some_and(|rest| rest.held.is_cut());
            is_draining || is_cut || stream.accepted.slot.is_expired()
        };
        self.urgent.clear();
        for (number, stream) in self.streams.iter().enumerate() {
            if stream.as_deref().is_some_and(is_urgent) {
                self.urgent.push(number as u32);
            }
        }
    }

    /// Lets at most `most` of those act; returns how many fewer.
    fn hurry(&mut self, most: usize) -> usize {
        let count = self.urgent.len().min(most);
        for number in self.urgent.split_off(self.urgent.len() - count) {
            self.update(number);
        }
        most - count
    }

    /// Walks on through the groups that are due, until `most` streams were written to.
    fn walk(&mut self, most: usize) {
        let mut left = most;
        while left > 0 {
            let Some((group, rest)) = self.walking.take().or_else(|| self.next_group()) else {
                self.walk = None;
                return;
            };
            // From the end: the list closes a gap with its last stream, which was visited before.
            let Some(at) = rest.min(self.groups[group].len()).checked_sub(1) else {
                continue;
            };
            self.walking = Some((group, at));
            left -= usize::from(self.update(self.groups[group][at]));
        }
    }

    /// The first group that is due. The first of all is that of streams without own content.
    fn next_group(&mut self) -> Option<(usize, usize)> {
        let group = (self.due != 0).then(|| self.due.trailing_zeros() as usize)?;
        self.due &= self.due - 1;
        Some((group, self.groups[group].len()))
    }

    /// Handles a report of a stream's socket.
    fn react(&mut self, number: u32, has_input: bool) {
        let Some(Some(stream)) = self.streams.get_mut(number as usize) else {
            return;
        };
        if has_input && let Some(end) = stream.drop_input(&mut self.room) {
            self.end(number, &end);
        } else if stream.rest.is_some() {
            self.update(number);
        }
    }

    /// Sends what is new on a stream, or ends it. Returns whether it has tried to write.
    fn update(&mut self, number: u32) -> bool {
        let Some(Some(stream)) = self.streams.get_mut(number as usize) else {
            return false;
        };
        let mut has_written = false;
        let update = || stream.update(&self.shared, &mut has_written);
        // A panic of one stream's content ends that stream alone. The panic hook has logged it.
        let end = catch_unwind(AssertUnwindSafe(update)).unwrap_or(Some(End::Gone));
        if let Some(end) = end {
            self.end(number, &end);
            return true;
        }
        has_written
    }

    fn end(&mut self, number: u32, end: &End) {
        let Some(stream) = self.streams[number as usize].take() else {
            return;
        };
        self.free.push(number);
        let of_group = &mut self.groups[stream.group.index()];
        of_group.swap_remove(stream.at as usize);
        if let Some(moved) = of_group.get(stream.at as usize)
            && let Some(moved) = &mut self.streams[*moved as usize]
        {
            moved.at = stream.at;
        }
        let stats = &self.shared.streams.stats;
        match end {
            End::Cut(why) => {
                match why {
                    Cut::Slow => stats.slow_cuts.increment(),
                    Cut::Crowded => stats.crowded_cuts.increment(),
                }
                let unread_bytes = stream.rest.as_ref().map_or(0, |rest| rest.bytes);
                self.shared.count_cut(*why, unread_bytes);
            }
            End::Input => stats.input_cuts.increment(),
            End::Gone => {}
            End::Old => stream.say_goodbye(None),
            End::Drain => {
                let retry_ms = spread(stream.accepted.slot.index, RETRY_MS);
                stream.say_goodbye(Some(retry_ms));
            }
        }
    }
}

impl Stream {
    /// Sends the rest of the last frame, then the newest one, as far as the socket takes them.
    /// Returns why the stream ends, if it does.
    fn update<S: Serve>(&mut self, shared: &Arc<Shared<S>>, has_written: &mut bool) -> Option<End> {
        let stats = &shared.streams.stats;
        loop {
            if let Some(rest) = &mut self.rest {
                *has_written = true;
                match rest.send(&self.accepted.socket, &self.accepted.slot, shared) {
                    Ok(true) => self.rest = None,
                    Ok(false) => return None,
                    Err(end) => return Some(end),
                }
                self.heartbeat_at_ms = shared.slots.now_ms() + HEARTBEAT_MS;
            }
            if shared.is_draining() {
                return Some(End::Drain);
            }
            let now_ms = shared.slots.now_ms();
            let has_ended = self.frames.has_ended();
            if now_ms >= self.ends_at_ms || has_ended == Some(true) {
                return Some(End::Old);
            }
            let (frame, second) = if let Some(taken) = self.frames.newest() {
                stats.frames.add(1 + u64::from(taken.second.is_some()));
                stats.conflated.add(taken.skipped);
                (taken.frame, taken.second)
            } else if now_ms >= self.heartbeat_at_ms {
                stats.heartbeats.increment();
                (self.frames.heartbeat(), None)
            } else {
                let look_at_ms = has_ended.map_or(u64::MAX, |_| now_ms + RIGHT_LOOK_MS);
                let at_ms = self.heartbeat_at_ms.min(self.ends_at_ms).min(look_at_ms);
                self.accepted.slot.set_deadline_at(at_ms);
                return None;
            };
            *has_written = true;
            if self.send(&frame, second.as_ref(), shared).is_err() {
                return Some(End::Gone);
            }
            self.heartbeat_at_ms = now_ms + HEARTBEAT_MS;
        }
    }

    /// Sends one or two frames in one write, and keeps what the socket does not take at once.
    fn send<S: Serve>(
        &mut self,
        frame: &Frame,
        second: Option<&Frame>,
        shared: &Arc<Shared<S>>,
    ) -> io::Result<()> {
        let behind = second.map_or(&[][..], |second| second.bytes(self.framing));
        let length = frame.length(self.framing);
        let bytes = length + behind.len();
        shared.streams.stats.bytes.add(bytes as u64);
        let sent = self
            .accepted
            .socket
            .write_both_ready(frame.bytes(self.framing), behind)?;
        if sent == bytes {
            return Ok(());
        }
        let second = second.map(|second| second.rest(self.framing, sent.saturating_sub(length)));
        let (first, second) = match (second, sent < length) {
            (Some(second), false) => (second, None),
            (second, _) => (frame.rest(self.framing, sent), second),
        };
        let now_ms = shared.slots.now_ms();
        self.accepted
            .slot
            .set_deadline_in(shared.settings().unread_output_timeout_ms);
        let waker = Waker::Thread(Arc::clone(&self.look_bell));
        let held = shared
            .unread
            .hold(self.accepted.slot.index, bytes - sent, now_ms, waker);
        self.rest = Some(Box::new(Rest {
            first,
            second,
            sent: 0,
            bytes: bytes - sent,
            held,
        }));
        Ok(())
    }

    /// Reads and drops what the client sends.
    fn drop_input(&mut self, room: &mut [u8]) -> Option<End> {
        loop {
            match self.accepted.socket.read(room) {
                Ok(0) => return Some(End::Gone),
                Ok(count) => {
                    // It may be a body.
                    room[..count].zeroize();
                    self.dropped_bytes += count;
                    if self.dropped_bytes > DROPPED_BYTES_MAX {
                        return Some(End::Input);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Some(End::Gone),
            }
        }
    }

    /// Ends the stream properly, if the socket takes the bytes at once.
    fn say_goodbye(self, retry_ms: Option<u64>) {
        let mut last = Vec::new();
        if let Some(retry_ms) = retry_ms {
            last.extend_from_slice(self.frames.farewell(retry_ms).bytes(self.framing));
        }
        if self.framing == Framing::Chunked {
            last.extend_from_slice(LAST_CHUNK);
        }
        let Self {
            accepted, place, ..
        } = self;
        // Released before the client sees the end, because it may reconnect at once.
        drop(place);
        if accepted.socket.write_ready(&last).is_ok() {
            accepted.socket.finish_writing();
        }
    }
}

impl Rest {
    /// Sends as much as the socket takes; whether that was all. A client must keep up with the pace
    /// of [`Held::is_kept_up_by`]. After its timeout a last write is tried, because the kernel
    /// reports late that a client has read.
    fn send<S: Serve>(
        &mut self,
        socket: &Socket,
        slot: &SlotGuard,
        shared: &Shared<S>,
    ) -> Result<bool, End> {
        loop {
            if self.held.is_cut() {
                return Err(End::Cut(Cut::Crowded));
            }
            let left = &self.first.bytes()[self.sent..];
            if left.is_empty() {
                let Some(second) = self.second.take() else {
                    return Ok(true);
                };
                (self.first, self.sent) = (second, 0);
                continue;
            }
            match socket.write(left) {
                Ok(count) => {
                    self.sent += count;
                    if self.held.is_kept_up_by(count, shared.slots.now_ms()) {
                        slot.set_deadline_in(shared.settings().unread_output_timeout_ms);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock && slot.is_expired() => {
                    return Err(End::Cut(Cut::Slow));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(End::Gone),
            }
        }
    }
}

/// A number between the two limits, far from those of neighbouring connections.
fn spread(connection: u32, (least, most): (u64, u64)) -> u64 {
    // Knuth's multiplicative hash: multiples of the golden ratio are spread evenly.
    let hash = u64::from(connection.wrapping_mul(2_654_435_769));
    least + (((most - least) * hash) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_evenly_over_the_whole_range() {
        let (least, most) = RETRY_MS;
        for count in [9, 100, 10_000] {
            let mut all: Vec<u64> = (0..count).map(|number| spread(number, RETRY_MS)).collect();
            all.sort_unstable();
            let gap = (most - least) / u64::from(count);
            let steps: Vec<u64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(all[0] >= least && all[all.len() - 1] <= most);
            assert!(steps.iter().all(|step| *step <= 3 * gap + 1), "{count}: {steps:?}");
        }
    }
}
