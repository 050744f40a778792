//! One subscription, from its opening to its end.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use parking_lot::Mutex;
use redis::{ConnectionLike, RedisResult, Script};

use crate::base::{BoundedMap, Clock, Symbol};
use crate::cache::l2;
use crate::nodes::authorities::FENCE_MS;
use crate::nodes::relay::traits;
use crate::nodes::relay::traits::{
    Aged, Listener, MESSAGE_BYTES_MAX, Published, Relay, RelayError, SYMBOLS_MAX, Told, Update,
};
use crate::nodes::valkey::{
    BackOff, Client, Connection, Deadlines, Distrust, Installation, Namespace, Opened, Room,
    Server, Signed, ValkeyError, script,
};
use crate::rt::threads;
use crate::store::Epoch;

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

    fn counters(&self) -> &Counters {
        &self.worker.shared.counters
    }

    /// Reads all that the server keeps; whether it was news.
    fn read(&mut self) -> Option<bool> {
        let (room, asked_mono_ms) = (&self.room, self.worker.now_mono_ms());
        let read = self.worker.reads.call(|to| read(room, to)).ok()?;
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
        let decoded = traits::decode_wanted(opened.body);
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
        let mut update = opened(&self.room, Signed::Message, message)?;
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

// ---- Follower
//
// The thread `relay`: subscribes, and again after a failure.

/// How often a waiting thread looks whether it may go on.
const LOOK: Duration = Duration::from_millis(100);
/// Longest that the end of the service waits for the thread.
const STOP_WAIT: Duration = Duration::from_millis(250);
/// Of the connection that reads what the server keeps.
const READ: Deadlines = Deadlines { connect_ms: 500, call_ms: 2_000 };

/// What the thread works with.
pub(crate) struct FollowerParts {
    pub server: Arc<Server>,
    pub installation: Arc<Installation>,
    pub listener: Box<dyn Listener>,
}

/// What the thread and its owner share.
pub(super) struct Shared {
    pub(super) counters: Counters,
    pub(super) board: Mutex<Board>,
    pub(super) timer: Clock,
}

/// State of the thread.
pub(super) struct Worker {
    pub(super) server: Arc<Server>,
    pub(super) installation: Arc<Installation>,
    pub(super) reads: Client,
    pub(super) listener: Box<dyn Listener>,
    pub(super) shared: Arc<Shared>,
    stop: Receiver<()>,
    /// Dropped with the thread, whatever ends it.
    _done: Sender<()>,
}

/// The running thread. Dropping it ends it.
pub struct Follower {
    shared: Arc<Shared>,
    running: Option<Sender<()>>,
    ended: Receiver<()>,
}

impl Follower {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(parts: FollowerParts) -> io::Result<Self> {
        let timer = parts.server.timer().clone();
        let board = Mutex::new(Board::new());
        let shared = Arc::new(Shared { counters: Counters::default(), board, timer });
        let (running, stop) = bounded(0);
        let (done, ended) = bounded(0);
        let worker = Worker {
            reads: Client::new(&parts.server, READ),
            installation: parts.installation,
            server: parts.server,
            listener: parts.listener,
            shared: Arc::clone(&shared),
            stop,
            _done: done,
        };
        threads::spawn("relay", move || worker.run())?;
        Ok(Self { shared, running: Some(running), ended })
    }

    /// What the nodes want now, each symbol once.
    pub(crate) fn wanted(&self) -> Vec<Symbol> {
        self.shared.board.lock().wanted(self.shared.timer.monotonic_ms())
    }

    /// For health and metrics.
    pub(crate) fn reading(&self) -> RelayReading {
        self.shared.counters.read(self.shared.timer.monotonic_ms())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.running.take());
        let _ = self.ended.recv_timeout(STOP_WAIT);
    }
}

impl Worker {
    fn run(self) {
        let mut back_off = BackOff::new();
        let mut sequence = Following::default();
        while !self.is_stopping() {
            self.shared.counters.set_state(State::Connecting);
            let (ended, spoke) = run(&self, &mut sequence);
            if ended == Ended::Stopped {
                return;
            }
            self.shared.counters.failures.fetch_add(1, Relaxed);
            if spoke {
                back_off.succeeded();
            }
            back_off.failed(self.now_mono_ms());
            self.shared.counters.set_state(State::Waiting);
            while back_off.wait_ms(self.now_mono_ms()) > 0 {
                if self.stop.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
            }
        }
    }

    pub(super) fn now_mono_ms(&self) -> u64 {
        self.shared.timer.monotonic_ms()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.try_recv() == Err(TryRecvError::Disconnected)
    }
}

// ---- Board
//
// What each node wants, as the leader knows it. Pure.

/// How long a node's list counts; it is repeated well within that.
pub(crate) const WANTED_TTL_MS: u64 = 5_000;
/// Most nodes whose lists are kept; of more, those that were heard longest ago are forgotten.
pub(crate) const NODES_MAX: usize = 64;

struct List {
    until_mono_ms: u64,
    /// By the server's clock.
    told_ms: u64,
    symbols: Vec<Symbol>,
}

/// The lists of all nodes.
pub(super) struct Board(BoundedMap<String, List>);

impl Board {
    pub(super) fn new() -> Self {
        Self(BoundedMap::new(NODES_MAX))
    }

    /// Replaces a node's list, unless that was told later; whether it did.
    pub(super) fn put(
        &mut self,
        node: String,
        symbols: Vec<Symbol>,
        told_ms: u64,
        now_mono_ms: u64,
    ) -> bool {
        if self.0.get(&node).is_some_and(|list| list.told_ms >= told_ms) {
            return false;
        }
        let list = List { until_mono_ms: now_mono_ms + WANTED_TTL_MS, told_ms, symbols };
        let worth = |list: &List| (list.until_mono_ms > now_mono_ms).then_some(list.until_mono_ms);
        self.0.insert(node, list, worth);
        true
    }

    /// What any node wants now, each once.
    pub(super) fn wanted(&mut self, now_mono_ms: u64) -> Vec<Symbol> {
        self.0.retain(|_, list| list.until_mono_ms > now_mono_ms);
        let all: HashSet<&Symbol> = self.0.values().flat_map(|list| &list.symbols).collect();
        all.into_iter().cloned().collect()
    }
}

// ---- Sequence
//
// Which message follows which, by epoch and number. Pure.

/// What a message is to who has heard those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The next.
    Next,
    /// Messages before it were missed.
    AfterGap,
    /// Heard already, or of a leader that was replaced.
    Old,
    /// Told later than what was heard, and with a lower number: numbers began anew.
    Anew,
}

/// What the whole state is to who has heard messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// Up to the message that was heard last.
    Known,
    New,
    /// It was told before what was heard: somebody put it back.
    Replayed,
}

/// The newest message that was heard: epoch, number, and when it was told by the server's clock.
#[derive(Debug, Default)]
pub(super) struct Sequence(Option<(Epoch, u64, u64)>);

impl Sequence {
    /// Judges a message and moves on to it, unless it is old.
    pub(super) fn hear(&mut self, epoch: Epoch, seq: u64, told_ms: u64) -> Place {
        let place = match self.0 {
            Some((last, number, heard_ms)) if (epoch, seq) <= (last, number) => {
                return if told_ms > heard_ms { Place::Anew } else { Place::Old };
            }
            Some((last, number, _)) if epoch == last && seq == number + 1 => Place::Next,
            // A new leader begins with all it has.
            Some((last, ..)) if epoch > last && seq == 1 => Place::Next,
            None if seq == 1 => Place::Next,
            _ => Place::AfterGap,
        };
        self.0 = Some((epoch, seq, told_ms));
        place
    }

    /// The whole state up to this message was read. One with a lower number counts if it was told
    /// later: the server forgot, or the database went back, and numbers began anew.
    pub(super) fn read(&mut self, epoch: Epoch, seq: u64, told_ms: u64) -> Kept {
        match self.0 {
            Some((last, number, _)) if (epoch, seq) == (last, number) => return Kept::Known,
            Some((last, number, heard_ms))
                if (epoch, seq) < (last, number) && told_ms <= heard_ms =>
            {
                return Kept::Replayed;
            }
            _ => {}
        }
        self.0 = Some((epoch, seq, told_ms));
        Kept::New
    }
}

// ---- State
//
// Reads all that the server keeps of the relay, in one consistent piece.

/// What was read.
pub(super) struct Read {
    /// `None` where nobody has published for long.
    pub(super) state: Option<Update>,
    /// The server's time.
    pub(super) server_ms: u64,
    /// What was not believed.
    pub(super) distrusted: Vec<(Distrust, Signed)>,
}

/// The server's time in seconds and microseconds, the newest message, quotes by symbol.
type Everything = ((u64, u64), Option<Vec<u8>>, Vec<(Vec<u8>, Vec<u8>)>);

/// Reads it.
pub(super) fn read(room: &Room, to: &mut dyn ConnectionLike) -> RedisResult<Read> {
    let mut pipe = redis::pipe();
    pipe.atomic().cmd("TIME");
    pipe.cmd("HGET").arg(room.keys.relay_state()).arg("head");
    pipe.cmd("HGETALL").arg(room.keys.relay_quotes());
    let ((seconds, micros), head, quotes): Everything = pipe.query(to)?;
    let server_ms = seconds * 1_000 + micros / 1_000;
    let mut read = Read { state: None, server_ms, distrusted: Vec::new() };
    let Some(head) = head else { return Ok(read) };
    let mut state = match opened(room, Signed::Head, &head) {
        Ok(state) => state,
        Err(cause) => {
            read.distrusted.push((cause, Signed::Head));
            return Ok(read);
        }
    };
    state.grow_older(server_ms.saturating_sub(state.told_ms));
    for (key, value) in quotes.iter().take(SYMBOLS_MAX) {
        match aged(room, key, value, server_ms) {
            Ok(aged) => state.quotes.push(aged),
            Err(cause) => read.distrusted.push((cause, Signed::Quote)),
        }
    }
    read.state = Some(state);
    Ok(read)
}

/// A message that a leader of ours signed.
pub(super) fn opened(room: &Room, kind: Signed, value: &[u8]) -> Result<Update, Distrust> {
    let opened = room.open(kind, b"", value).ok_or(Distrust::Forged)?;
    traits::decode(opened.epoch, opened.number, opened.body).map_err(|_| Distrust::Unreadable)
}

fn aged(room: &Room, key: &[u8], value: &[u8], server_ms: u64) -> Result<Aged, Distrust> {
    let opened = room.open(Signed::Quote, key, value).ok_or(Distrust::Forged)?;
    let key = std::str::from_utf8(key).ok();
    let quote = key.and_then(|key| l2::decode(key, opened.body)).ok_or(Distrust::Unreadable)?;
    // Nobody has vouched for it since the leader's start.
    let age_ms = match opened.number {
        0 => u64::MAX,
        vouched_ms => server_ms.saturating_sub(vouched_ms),
    };
    Ok(Aged { quote, age_ms })
}

// ---- Reading
//
// What health and metrics show of the relay.

/// What the thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Connecting,
    /// Subscribed; the leader speaks.
    Following,
    /// Subscribed, and nobody publishes.
    Silent,
    /// After a failure, before the next try.
    Waiting,
}

/// The words for what the thread does.
pub(crate) const RELAY_STATES: [&str; 4] = ["connecting", "following", "silent", "waiting"];

/// Counters since the start; `state` and `age_ms` are current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelayReading {
    pub state: &'static str,
    /// Since the leader was last heard; `None` before that.
    pub age_ms: Option<u64>,
    /// Epoch of the newest message.
    pub epoch: u64,
    /// The node that told it; `None` before the first.
    pub leader: Option<String>,
    pub messages: u64,
    /// Messages missed: numbers left out.
    pub gaps: u64,
    /// Messages heard twice, or of a leader that was replaced.
    pub old: u64,
    /// Times that all was read.
    pub loads: u64,
    /// Updates that waited because the one before was not taken yet.
    pub merged: u64,
    pub connects: u64,
    /// Connections that failed or broke.
    pub failures: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    state: AtomicU8,
    /// 0 is never.
    heard_mono_ms: AtomicU64,
    epoch: AtomicU64,
    leader: ArcSwapOption<String>,
    pub(super) messages: AtomicU64,
    pub(super) gaps: AtomicU64,
    pub(super) old: AtomicU64,
    pub(super) loads: AtomicU64,
    pub(super) merged: AtomicU64,
    pub(super) connects: AtomicU64,
    pub(super) failures: AtomicU64,
}

impl Counters {
    pub(super) fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    /// The leader of `epoch` told something at this time.
    pub(super) fn heard(&self, epoch: Epoch, leader: &str, told_mono_ms: u64) {
        self.heard_mono_ms.fetch_max(told_mono_ms.max(1), Relaxed);
        self.epoch.store(epoch.0, Relaxed);
        if self.leader.load().as_ref().is_none_or(|known| **known != leader) {
            self.leader.store(Some(Arc::new(leader.to_owned())));
        }
    }

    pub(super) fn read(&self, now_mono_ms: u64) -> RelayReading {
        let heard_mono_ms = self.heard_mono_ms.load(Relaxed);
        RelayReading {
            state: RELAY_STATES[usize::from(self.state.load(Relaxed)).min(3)],
            age_ms: (heard_mono_ms > 0).then(|| now_mono_ms.saturating_sub(heard_mono_ms)),
            epoch: self.epoch.load(Relaxed),
            leader: self.leader.load().as_ref().map(|leader| (**leader).clone()),
            messages: self.messages.load(Relaxed),
            gaps: self.gaps.load(Relaxed),
            old: self.old.load(Relaxed),
            loads: self.loads.load(Relaxed),
            merged: self.merged.load(Relaxed),
            connects: self.connects.load(Relaxed),
            failures: self.failures.load(Relaxed),
        }
    }
}

// ---- Teller
//
// Sends: what the leader publishes, fenced by its epoch, and what every node says.

/// What is late is worth little: the next round comes in a second.
const DEADLINES: Deadlines = Deadlines { connect_ms: 500, call_ms: 1_000 };

/// How long this node trusts what it made out of the server's clock.
const CLOCK_MS: u64 = 30_000;
/// Tries of a publication: the second, where this node's idea of the server's clock was off.
const TRIES_MAX: usize = 2;

/// What the publishing script says.
const FENCED: u64 = 0;
const TOLD: u64 = 1;

/// The server's clock as this node makes it out.
#[derive(Default)]
struct ServerClock {
    /// The server's time at the zero of our clock: not too late, so that nothing looks younger
    /// than it is.
    zero_ms: u64,
    /// When the server was last asked; `None` for never.
    asked_mono_ms: Option<u64>,
}

/// The relay over one server. Publications and the rest have connections of their own, so that
/// neither waits for the other.
pub struct ValkeyRelay {
    node: String,
    installation: Arc<Installation>,
    publications: Client,
    words: Client,
    publish: Script,
    timer: Clock,
    server_clock: Mutex<ServerClock>,
    /// The last number of the newest epoch.
    last: Mutex<(Epoch, u64)>,
    fenced: AtomicU64,
}

impl ValkeyRelay {
    /// Of the node of this name, which no other has.
    pub fn new(server: &Arc<Server>, installation: &Arc<Installation>, node: &str) -> Self {
        Self {
            node: node.to_owned(),
            installation: Arc::clone(installation),
            publications: Client::new(server, DEADLINES),
            words: Client::new(server, DEADLINES),
            publish: script(include_str!("../scripts/publish.lua")),
            timer: server.timer().clone(),
            server_clock: Mutex::default(),
            last: Mutex::default(),
            fenced: AtomicU64::new(0),
        }
    }

    /// Publications that were refused because of a newer leader.
    #[cfg(test)]
    pub(crate) fn fenced(&self) -> u64 {
        self.fenced.load(Relaxed)
    }

    /// A number that no message had. One whose fate is unknown is not used again: its followers
    /// notice the gap.
    pub(super) fn next_seq(&self, epoch: Epoch) -> u64 {
        let mut last = self.last.lock();
        *last = if last.0 == epoch { (epoch, last.1 + 1) } else { (epoch, 1) };
        last.1
    }

    /// Notes what the server's clock reads.
    fn note_server_ms(&self, server_ms: u64) {
        let now_mono_ms = self.timer.monotonic_ms();
        let zero_ms = server_ms.saturating_sub(now_mono_ms);
        *self.server_clock.lock() = ServerClock { zero_ms, asked_mono_ms: Some(now_mono_ms) };
    }

    /// The time by the server's clock, which it is asked for through `client` if it was not lately.
    fn server_ms(&self, client: &Client) -> Result<u64, ValkeyError> {
        let now_mono_ms = self.timer.monotonic_ms();
        let known = {
            let clock = self.server_clock.lock();
            let is_recent = clock.asked_mono_ms.is_some_and(|at| now_mono_ms - at < CLOCK_MS);
            is_recent.then(|| clock.zero_ms + now_mono_ms)
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let (seconds, micros): (u64, u64) = client.call(|to| redis::cmd("TIME").query(to))?;
        self.note_server_ms(seconds * 1_000 + micros / 1_000);
        Ok(self.server_clock.lock().zero_ms + self.timer.monotonic_ms())
    }

    /// Says something that is not kept.
    fn say(&self, channel: String, message: &[u8]) -> Result<(), RelayError> {
        let mut command = redis::cmd("PUBLISH");
        command.arg(channel).arg(message);
        self.words.call(|to| command.query::<u64>(to))?;
        Ok(())
    }

    /// Says something signed, with the time.
    fn say_signed(
        &self,
        kind: Signed,
        channel: impl FnOnce(&Room) -> String,
        body: &[u8],
    ) -> Result<(), RelayError> {
        let room = self.installation.room()?;
        let told_ms = self.server_ms(&self.words)?;
        self.say(channel(&room), &room.sign(kind, "", (Epoch::default(), told_ms), body))
    }

    /// Publishes once; what the script said.
    fn try_publish(&self, room: &Room, update: &mut Update) -> Result<u64, RelayError> {
        update.told_ms = self.server_ms(&self.publications)?;
        let place = (update.epoch, update.seq);
        let whole = room.sign(Signed::Message, "", place, &traits::encode(update));
        if whole.len() > MESSAGE_BYTES_MAX {
            return Err(RelayError::TooLarge { bytes: whole.len(), bytes_max: MESSAGE_BYTES_MAX });
        }
        let quotes = std::mem::take(&mut update.quotes);
        let head = room.sign(Signed::Head, "", place, &traits::encode(update));
        let mut script = self.publish.prepare_invoke();
        let keys = &room.keys;
        script.key(keys.fence()).key(keys.relay_state()).key(keys.relay_quotes());
        script.arg(update.epoch.0).arg(update.seq).arg(FENCE_MS).arg(SYMBOLS_MAX);
        script.arg(keys.relay_channel()).arg(update.told_ms).arg(whole).arg(head);
        for aged in quotes.iter().take(SYMBOLS_MAX) {
            let symbol = aged.quote.symbol.as_str();
            let place = (update.epoch, update.told_ms.saturating_sub(aged.age_ms));
            let stored = l2::encode(&aged.quote);
            script.arg(symbol).arg(room.sign(Signed::Quote, symbol, place, &stored));
        }
        update.quotes = quotes;
        let (outcome, server_ms): (u64, u64) = self.publications.call(|to| script.invoke(to))?;
        self.note_server_ms(server_ms);
        Ok(outcome)
    }
}

impl Relay for ValkeyRelay {
    fn publish(&self, epoch: Epoch, update: &Update) -> Result<Published, RelayError> {
        let room = self.installation.sure_room()?;
        let (seq, node) = (self.next_seq(epoch), self.node.clone());
        let mut update = Update { epoch, seq, node, ..update.clone() };
        for _ in 0..TRIES_MAX {
            match self.try_publish(&room, &mut update)? {
                TOLD => return Ok(Published::Told),
                FENCED => {
                    self.fenced.fetch_add(1, Relaxed);
                    return Ok(Published::Fenced);
                }
                _ => {}
            }
        }
        Err(RelayError::Clock)
    }

    fn want(&self, symbols: &[Symbol]) -> Result<(), RelayError> {
        let body = traits::encode_wanted(&self.node, symbols);
        self.say_signed(Signed::Wanted, |room| room.keys.wanted_channel(), &body)
    }

    fn pass_on(&self, sealed: &[u8]) -> Result<(), RelayError> {
        self.say(self.installation.room()?.keys.sealed_channel(), sealed)
    }

    fn tell_of_changes(&self) -> Result<(), RelayError> {
        self.say_signed(Signed::Changes, |room| room.keys.changes_channel(), b"")
    }
}

#[cfg(test)]
#[path = "relay_tests.rs"]
mod follower_tests;

#[cfg(test)]
mod board_tests {
    use super::*;

    fn symbols(names: &[&str]) -> Vec<Symbol> {
        names.iter().map(|name| Symbol::parse(&format!("NSE:{name}")).unwrap()).collect()
    }

    fn wanted(board: &mut Board, now_mono_ms: u64) -> Vec<String> {
        let mut wanted: Vec<String> =
            board.wanted(now_mono_ms).iter().map(ToString::to_string).collect();
        wanted.sort();
        wanted
    }

    #[test]
    fn lists_are_joined_replaced_and_forgotten() {
        let mut board = Board::new();
        assert!(board.put("a".into(), symbols(&["X", "Y"]), 10, 0));
        assert!(board.put("b".into(), symbols(&["Y", "Z"]), 20, 1_000));
        assert_eq!(wanted(&mut board, 1_000), ["NSE:X", "NSE:Y", "NSE:Z"]);
        assert!(board.put("b".into(), symbols(&["Z"]), 30, 2_000));
        assert!(!board.put("b".into(), symbols(&["Y"]), 20, 2_000), "told again");
        assert_eq!(wanted(&mut board, 4_999), ["NSE:X", "NSE:Y", "NSE:Z"]);
        assert_eq!(wanted(&mut board, 5_000), ["NSE:Z"]);
        assert!(wanted(&mut board, 7_000).is_empty());
    }

    #[test]
    fn invented_nodes_do_not_push_out_what_was_heard_last() {
        let mut board = Board::new();
        for n in 0..1_000 {
            board.put(format!("node{n}"), symbols(&[&format!("S{n}")]), n, n);
        }
        let wanted = wanted(&mut board, 1_000);
        assert_eq!(wanted.len(), NODES_MAX);
        assert!(wanted.contains(&"NSE:S999".to_owned()));
    }
}

#[cfg(test)]
mod sequence_tests {
    use super::*;

    #[test]
    fn gaps_repeats_and_new_leaders_are_told_apart() {
        let mut sequence = Sequence::default();
        for (epoch, seq, told_ms, expected) in [
            (3, 5, 50, Place::AfterGap),
            (3, 6, 60, Place::Next),
            (3, 6, 60, Place::Old),
            (3, 8, 80, Place::AfterGap),
            (3, 7, 70, Place::Old),
            (2, 90, 75, Place::Old),
            (4, 1, 90, Place::Next),
            (3, 9, 85, Place::Old),
            (6, 2, 100, Place::AfterGap),
            (2, 1, 110, Place::Anew),
        ] {
            assert_eq!(sequence.hear(Epoch(epoch), seq, told_ms), expected, "{epoch} {seq}");
        }
        assert_eq!(sequence.read(Epoch(6), 2, 100), Kept::Known);
        assert_eq!(sequence.read(Epoch(6), 4, 120), Kept::New);
        assert_eq!(sequence.hear(Epoch(6), 4, 120), Place::Old);
        assert_eq!(sequence.hear(Epoch(6), 5, 130), Place::Next);
        assert_eq!(Sequence::default().hear(Epoch(9), 1, 1), Place::Next, "the first of all");
    }

    #[test]
    fn a_state_that_is_put_back_is_told_from_numbers_that_began_anew() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.read(Epoch(51), 900, 1_000), Kept::New);
        assert_eq!(sequence.read(Epoch(51), 899, 990), Kept::Replayed);
        assert_eq!(sequence.read(Epoch(4), 1, 900), Kept::Replayed);
        assert_eq!(sequence.hear(Epoch(51), 901, 1_010), Place::Next, "nothing was lost by it");
        assert_eq!(sequence.read(Epoch(4), 1, 1_200), Kept::New);
        assert_eq!(sequence.hear(Epoch(4), 2, 1_250), Place::Next);
    }
}
