//! One subscription, from its opening to its end.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::follower::Worker;
use super::reading::State;
use super::sequence::{Kept, Place, Sequence};
use super::state;
use super::traits::Told;
use super::update::Update;
use super::wire::{self, MESSAGE_BYTES_MAX, SYMBOLS_MAX};
use crate::cache::valkey::{Connection, Distrust, Namespace, Opened, Room, Signed};

/// To connect, log in and subscribe.
const OPEN_MS: u64 = 1_000;
/// Longest wait for a message: the end of the service and deadlines are looked at this often.
const HEAR_MS: u64 = 100;
/// The leader speaks each second. After this long without a word everything is read.
const SILENT_MS: u64 = 3_000;
/// A message that is told to be younger or older than this shows that our estimate of the server's
/// clock, or what lies between, is off; then everything is read.
const DOUBTFUL_MS: u64 = 3_000;
/// What was told longer ago than this, by the server's clock, is told again by somebody else: a
/// message that comes at all comes within the deadlines of both ends.
const REPLAYED_MS: u64 = 10_000;
/// Longest sealed message.
const SEALED_BYTES_MAX: usize = 16 * 1024;

/// How a subscription ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The service stops.
    Stopped,
    Failed,
}

/// What is kept from one subscription to the next.
#[derive(Default)]
pub(super) struct Following {
    /// Of what was heard.
    namespace: Option<Namespace>,
    sequence: Sequence,
    /// An update that was not taken yet, whether it is a whole state, and since when it waits.
    waits: Option<(Update, bool, u64)>,
}

struct Session<'a> {
    worker: &'a Worker,
    following: &'a mut Following,
    room: Arc<Room>,
    connection: Connection,
    channels: [String; 4],
    /// The server's time at the zero of our clock; not too early, so that nothing looks younger
    /// than it is.
    server_zero_ms: u64,
    /// When the leader was last heard, or everything was read.
    heard_mono_ms: u64,
    must_read: bool,
}

/// Subscribes and hears until that fails. Whether it began to work at all comes with the end.
pub(super) fn run(worker: &Worker, following: &mut Following) -> (Ended, bool) {
    let Ok(room) = worker.installation.room() else { return (Ended::Failed, false) };
    if following.namespace.as_ref() != Some(room.namespace()) {
        *following =
            Following { namespace: Some(room.namespace().clone()), ..Following::default() };
    }
    let keys = &room.keys;
    let channels = [
        keys.relay_channel(),
        keys.wanted_channel(),
        keys.sealed_channel(),
        keys.changes_channel(),
    ];
    let until_mono_ms = worker.now_mono_ms() + OPEN_MS;
    let connection = worker.server.connect(until_mono_ms).ok().and_then(|mut connection| {
        connection.end_by(until_mono_ms);
        let subscribed = connection.subscribe(&channels);
        let noted = subscribed.inspect_err(|error| worker.server.note(error));
        noted.ok().map(|()| connection)
    });
    let Some(connection) = connection else { return (Ended::Failed, false) };
    worker.shared.counters.connects.fetch_add(1, Relaxed);
    let mut session = Session {
        worker,
        following,
        room,
        connection,
        channels,
        server_zero_ms: 0,
        heard_mono_ms: 0,
        must_read: true,
    };
    let mut spoke = false;
    loop {
        if worker.is_stopping() {
            return (Ended::Stopped, spoke);
        }
        if session.pass().is_none() {
            return (Ended::Failed, spoke);
        }
        spoke = true;
    }
}

impl Session<'_> {
    /// Looks once at everything; `None` when the subscription is of no use any more.
    fn pass(&mut self) -> Option<()> {
        let room = self.worker.installation.room().ok()?;
        if room.namespace() != self.room.namespace() {
            return None;
        }
        self.room = room;
        let now_mono_ms = self.worker.now_mono_ms();
        let silent = now_mono_ms.saturating_sub(self.heard_mono_ms) >= SILENT_MS;
        if self.must_read || silent {
            let is_new = self.read()?;
            if is_new || silent {
                let state = if is_new { State::Following } else { State::Silent };
                self.counters().set_state(state);
            }
            // The server has what we were not told: the subscription is dead.
            if silent && is_new && !std::mem::take(&mut self.must_read) {
                return None;
            }
            self.must_read = false;
        }
        self.hand_over();
        self.connection.end_by(self.worker.now_mono_ms() + HEAR_MS);
        let heard = self.connection.hear().ok()?;
        if let Some((channel, message)) = heard {
            self.take(&channel, &message);
        }
        Some(())
    }

    fn counters(&self) -> &super::reading::Counters {
        &self.worker.shared.counters
    }

    /// Reads all that the server keeps; whether it was news.
    fn read(&mut self) -> Option<bool> {
        let (room, asked_mono_ms) = (&self.room, self.worker.now_mono_ms());
        let read = self.worker.reads.call(|to| state::read(room, to)).ok()?;
        self.counters().loads.fetch_add(1, Relaxed);
        for (cause, what) in read.distrusted {
            self.worker.installation.distrust(cause, what);
        }
        self.server_zero_ms = read.server_ms.saturating_sub(asked_mono_ms);
        self.heard_mono_ms = self.worker.now_mono_ms();
        let mut is_new = false;
        if let Some(state) = read.state {
            let kept = self.following.sequence.read(state.epoch, state.seq, state.told_ms);
            if kept == Kept::Replayed {
                self.worker.installation.distrust(Distrust::Replayed, Signed::Head);
                return Some(false);
            }
            is_new = kept == Kept::New;
            if is_new {
                let age_ms = read.server_ms.saturating_sub(state.told_ms);
                let told_mono_ms = self.heard_mono_ms.saturating_sub(age_ms);
                self.counters().heard(state.epoch, &state.node, told_mono_ms);
            }
            // After a gap the number is known already, and the quotes between are not.
            if is_new || self.must_read {
                self.keep(state, true);
            }
        }
        Some(is_new)
    }

    fn take(&mut self, channel: &str, message: &[u8]) {
        let taken = match self.channels.iter().position(|known| known == channel) {
            Some(0) => self.take_update(message).map_err(|cause| (cause, Signed::Message)),
            Some(1) => self.take_wanted(message).map_err(|cause| (cause, Signed::Wanted)),
            Some(2) if message.len() <= SEALED_BYTES_MAX => {
                drop(self.worker.listener.hear(Told::Sealed(message.to_vec())));
                Ok(())
            }
            Some(3) => self
                .recent(Signed::Changes, message)
                .map(|_| drop(self.worker.listener.hear(Told::Changes)))
                .map_err(|cause| (cause, Signed::Changes)),
            _ => Err((Distrust::Forged, Signed::Sealed)),
        };
        if let Err((cause, what)) = taken {
            self.worker.installation.distrust(cause, what);
        }
    }

    /// What a node of ours signed a moment ago.
    fn recent<'m>(&self, kind: Signed, message: &'m [u8]) -> Result<Opened<'m>, Distrust> {
        let opened = self.room.open(kind, b"", message).ok_or(Distrust::Forged)?;
        self.expect_recent(opened.number)?;
        Ok(opened)
    }

    /// A message of another time is one that was recorded.
    fn expect_recent(&self, told_ms: u64) -> Result<(), Distrust> {
        let apart_ms = self.server_now_ms().abs_diff(told_ms);
        if apart_ms <= REPLAYED_MS { Ok(()) } else { Err(Distrust::Replayed) }
    }

    fn server_now_ms(&self) -> u64 {
        self.server_zero_ms + self.worker.now_mono_ms()
    }

    fn take_wanted(&mut self, message: &[u8]) -> Result<(), Distrust> {
        let opened = self.recent(Signed::Wanted, message)?;
        let decoded = wire::decode_wanted(opened.body);
        let (node, symbols) = decoded.map_err(|_| Distrust::Unreadable)?;
        let now_mono_ms = self.worker.now_mono_ms();
        let mut board = self.worker.shared.board.lock();
        let is_later = board.put(node, symbols, opened.number, now_mono_ms);
        if is_later { Ok(()) } else { Err(Distrust::Replayed) }
    }

    fn take_update(&mut self, message: &[u8]) -> Result<(), Distrust> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(Distrust::Forged);
        }
        let mut update = state::opened(&self.room, Signed::Message, message)?;
        let now_mono_ms = self.worker.now_mono_ms();
        self.counters().messages.fetch_add(1, Relaxed);
        if let Err(replayed) = self.expect_recent(update.told_ms) {
            // Or our estimate of the server's clock is off, which reading everything cures.
            self.must_read |= now_mono_ms.saturating_sub(self.heard_mono_ms) >= DOUBTFUL_MS / 2;
            return Err(replayed);
        }
        match self.following.sequence.hear(update.epoch, update.seq, update.told_ms) {
            Place::Old => {
                self.counters().old.fetch_add(1, Relaxed);
                return Ok(());
            }
            Place::Anew => {
                self.must_read = true;
                return Ok(());
            }
            Place::Next => {}
            Place::AfterGap => {
                self.counters().gaps.fetch_add(1, Relaxed);
                self.must_read = true;
            }
        }
        self.heard_mono_ms = now_mono_ms;
        self.counters().set_state(State::Following);
        let server_now_ms = self.server_now_ms();
        let under_way_ms = server_now_ms.saturating_sub(update.told_ms);
        let ahead_ms = update.told_ms.saturating_sub(server_now_ms);
        self.must_read |= under_way_ms.max(ahead_ms) > DOUBTFUL_MS;
        let told_mono_ms = now_mono_ms.saturating_sub(under_way_ms);
        self.counters().heard(update.epoch, &update.node, told_mono_ms);
        update.grow_older(under_way_ms);
        self.keep(update, false);
        self.hand_over();
        Ok(())
    }

    /// Adds to what waits to be taken.
    fn keep(&mut self, update: Update, is_state: bool) {
        let now_mono_ms = self.worker.now_mono_ms();
        self.following.waits = match self.following.waits.take() {
            Some((mut waits, was_state, since_mono_ms)) if !is_state => {
                self.counters().merged.fetch_add(1, Relaxed);
                waits.add(update, now_mono_ms.saturating_sub(since_mono_ms));
                if waits.quotes.len() > SYMBOLS_MAX {
                    // The server keeps no more either.
                    self.must_read = true;
                    waits.quotes.truncate(SYMBOLS_MAX);
                }
                Some((waits, was_state, now_mono_ms))
            }
            // A whole state has all that waits.
            _ => Some((update, is_state, now_mono_ms)),
        };
    }

    /// Gives what waits to the listener.
    fn hand_over(&mut self) {
        let Some((mut update, is_state, since_mono_ms)) = self.following.waits.take() else {
            return;
        };
        let now_mono_ms = self.worker.now_mono_ms();
        update.grow_older(now_mono_ms.saturating_sub(since_mono_ms));
        let told = if is_state { Told::State } else { Told::Update };
        match self.worker.listener.hear(told(Box::new(update))) {
            Ok(()) | Err(Told::Sealed(_) | Told::Changes) => {}
            Err(Told::Update(update) | Told::State(update)) => {
                self.following.waits = Some((*update, is_state, now_mono_ms));
            }
        }
    }
}
