//! The receiving side of the relay. The OS thread `relay` subscribes, and subscribes again after a
//! failure.
//!
//! A message carries the results of one round of a feed. The server keeps the same, by symbol, so a
//! node that missed messages reads everything once and then follows. Only the newest counts, so
//! nothing is queued. The thread checks the signature and the number of a message. It blocks by
//! deadlines, and passes messages to the closures of [`Inbox`], which must not block.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use redis::Script;

use crate::base::{BoundedMap, Clock, Symbol};
use crate::nodes::cluster::RelayReading;
use crate::nodes::relay::encoding::decode_wanted;
use crate::nodes::relay::kept::{opened, read_kept};
use crate::nodes::relay::update::{MESSAGE_BYTES_MAX, SYMBOLS_MAX, Update};
use crate::nodes::valkey::keys::{RELAY, RELAY_QUOTES};
use crate::nodes::valkey::{
    Client, Connection, Deadlines, Distrust, Installation, KeptKey, Namespace, NamespaceKeys,
    Opened, Server, Signed, script,
};
use crate::rt::outbound::BackOff;
use crate::rt::threads::{Stop, Stoppable};
use crate::store::Epoch;
use crate::views::states::RelayState as State;

/// Deadline for connecting, logging in and subscribing.
const OPEN_MS: u64 = 1_000;
/// Longest wait for a message: the end of the service and deadlines are checked this often.
const RECEIVE_MS: u64 = 100;
/// The leader sends each second. After this long without a message everything is read.
const SILENT_MS: u64 = 3_000;
/// A message that seems younger or older than this shows that our estimate of the server's clock,
/// or the network, is off; then everything is read.
const DOUBTFUL_MS: u64 = 3_000;
/// A message sent longer ago than this, by the server's clock, is a recording: a genuine one
/// arrives within the deadlines of both ends.
const REPLAYED_MS: u64 = 10_000;
/// Longest encrypted message.
const SEALED_BYTES_MAX: usize = 16 * 1024;
/// Interval at which a waiting thread checks whether it may go on.
const LOOK: Duration = Duration::from_millis(100);
/// Longest that the end of the service waits for the thread.
const STOP_WAIT: Duration = Duration::from_millis(250);
/// Deadlines of the connection that reads what the server keeps.
const READ: Deadlines = Deadlines {
    connect_ms: 500,
    call_ms: 2_000,
};

/// The rows of the reading script's keys.
const ROWS: [&KeptKey; 2] = [RELAY, RELAY_QUOTES];

/// Takes an update, or returns it while the one before waits. A returned update is passed again,
/// merged with later ones.
pub(crate) type Put = Box<dyn Fn(Box<Update>) -> Result<(), Box<Update>> + Send>;

/// The receivers of messages. None of these may block.
pub(crate) struct Inbox {
    pub update: Put,
    /// Encrypted bytes of another node.
    pub sealed: Box<dyn Fn(Vec<u8>) + Send>,
    /// The database has changes that have to be read. This node may have made them itself.
    pub changed: Box<dyn Fn() + Send>,
}

/// The running thread. Dropping it ends it.
pub(crate) struct Follower {
    shared: Arc<Shared>,
    _thread: Stoppable,
}

/// State that the thread and its owner share.
struct Shared {
    counters: Mutex<Counters>,
    board: Mutex<Board>,
    timer: Clock,
}

impl Follower {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(
        server: &Arc<Server>,
        installation: &Arc<Installation>,
        inbox: Inbox,
    ) -> io::Result<Self> {
        let timer = server.timer.clone();
        let board = Mutex::new(Board::new());
        let shared = Arc::new(Shared {
            counters: Mutex::default(),
            board,
            timer,
        });
        let server = Arc::clone(server);
        let installation = Arc::clone(installation);
        let reads = Client::new(&server, READ);
        let thread_shared = Arc::clone(&shared);
        let _thread = Stoppable::spawn("relay", STOP_WAIT, move |stop| {
            let read = script(include_str!("../scripts/read.lua"), &ROWS);
            let shared = thread_shared;
            Worker {
                server,
                installation,
                reads,
                read,
                inbox,
                shared,
                stop,
            }
            .run();
        })?;
        Ok(Self { shared, _thread })
    }

    /// The symbols that nodes want now, each once.
    pub(crate) fn wanted(&self) -> Vec<Symbol> {
        self.shared
            .board
            .lock()
            .wanted(self.shared.timer.monotonic_ms())
    }

    /// Counters for health and metrics.
    pub(crate) fn reading(&self) -> RelayReading {
        self.shared
            .counters
            .lock()
            .read(self.shared.timer.monotonic_ms())
    }
}

/// State of the thread.
struct Worker {
    server: Arc<Server>,
    installation: Arc<Installation>,
    reads: Client,
    read: Script,
    inbox: Inbox,
    shared: Arc<Shared>,
    stop: Stop,
}

impl Worker {
    fn run(self) {
        let mut back_off = BackOff::new();
        let mut following = Following::default();
        while !self.stop.is_set() {
            self.shared.counters.lock().reading.state = State::Connecting;
            let worked = self.subscribe(&mut following);
            if self.stop.is_set() {
                return;
            }
            if worked {
                back_off.succeeded();
            }
            back_off.failed(self.now_mono_ms(), 0);
            {
                let mut counters = self.shared.counters.lock();
                counters.reading.failures += 1;
                counters.reading.state = State::Waiting;
            }
            while back_off.wait_ms(self.now_mono_ms()) > 0 {
                if self.stop.wait(LOOK) {
                    return;
                }
            }
        }
    }

    /// Subscribes and receives until that fails or the service stops. Returns whether it worked at
    /// all.
    fn subscribe(&self, following: &mut Following) -> bool {
        let Ok(namespace_keys) = self.installation.namespace_keys() else {
            return false;
        };
        if following.namespace.as_ref() != Some(namespace_keys.namespace()) {
            *following = Following {
                namespace: Some(namespace_keys.namespace().clone()),
                ..Following::default()
            };
        }
        let channels = namespace_keys.keys.channels();
        let until_mono_ms = self.now_mono_ms() + OPEN_MS;
        let Ok(mut connection) = self.server.connect(until_mono_ms) else {
            return false;
        };
        connection.end_by(until_mono_ms);
        if let Err(error) = connection.subscribe(&channels) {
            self.server.note(&error);
            return false;
        }
        self.shared.counters.lock().reading.connects += 1;
        let mut session = Session {
            worker: self,
            following,
            namespace_keys,
            connection,
            channels,
            server_zero_ms: 0,
            received_mono_ms: 0,
            must_read: true,
        };
        let mut worked = false;
        while !self.stop.is_set() && session.pass().is_some() {
            worked = true;
        }
        worked
    }

    fn now_mono_ms(&self) -> u64 {
        self.shared.timer.monotonic_ms()
    }
}

/// State that outlives a subscription.
#[derive(Default)]
struct Following {
    /// The namespace of the messages that were received.
    namespace: Option<Namespace>,
    sequence: Sequence,
    /// An update that was not taken yet, and the time since which it waits.
    waits: Option<(Update, u64)>,
}

/// One subscription, from its opening to its end.
struct Session<'a> {
    worker: &'a Worker,
    following: &'a mut Following,
    namespace_keys: Arc<NamespaceKeys>,
    connection: Connection,
    channels: [String; 4],
    /// The server's time at the zero of our clock; not too early, so that nothing looks younger
    /// than it is.
    server_zero_ms: u64,
    /// Time of the last message of the leader, or of the last read of everything.
    received_mono_ms: u64,
    must_read: bool,
}

impl Session<'_> {
    /// One round: reads everything if that is due, then waits for a message. `None` when the
    /// subscription is of no use any more.
    fn pass(&mut self) -> Option<()> {
        let namespace_keys = self.worker.installation.namespace_keys().ok()?;
        if namespace_keys.namespace() != self.namespace_keys.namespace() {
            return None;
        }
        self.namespace_keys = namespace_keys;
        let now_mono_ms = self.worker.now_mono_ms();
        let silent = now_mono_ms.saturating_sub(self.received_mono_ms) >= SILENT_MS;
        if self.must_read || silent {
            let is_new = self.read()?;
            if is_new || silent {
                let state = if is_new {
                    State::Following
                } else {
                    State::Silent
                };
                self.counters().reading.state = state;
            }
            // The server has news that was not sent to this node: the subscription is dead.
            if silent && is_new && !std::mem::take(&mut self.must_read) {
                return None;
            }
            self.must_read = false;
        }
        self.hand_over();
        self.connection
            .end_by(self.worker.now_mono_ms() + RECEIVE_MS);
        if let Some((channel, message)) = self.connection.hear().ok()? {
            self.take(&channel, &message);
        }
        Some(())
    }

    /// The counters, locked. Nothing is called while they are.
    fn counters(&self) -> MutexGuard<'_, Counters> {
        self.worker.shared.counters.lock()
    }

    /// Reads all that the server keeps. Returns whether it was new.
    fn read(&mut self) -> Option<bool> {
        let namespace_keys = &self.namespace_keys;
        let asked_mono_ms = self.worker.now_mono_ms();
        let kept = self
            .worker
            .reads
            .call(|to| read_kept(&self.worker.read, namespace_keys, to))
            .ok()?;
        self.counters().reading.loads += 1;
        self.worker.reads.note_foreign(&ROWS, &kept.foreign);
        for (cause, what) in kept.distrusted {
            self.worker.installation.distrust(cause, what);
        }
        self.server_zero_ms = kept.server_ms.saturating_sub(asked_mono_ms);
        self.received_mono_ms = self.worker.now_mono_ms();
        let Some(state) = kept.state else {
            return Some(false);
        };
        let Some(is_new) = self
            .following
            .sequence
            .read(state.epoch, state.seq, state.sent_ms)
        else {
            self.worker
                .installation
                .distrust(Distrust::Replayed, Signed::Head);
            return Some(false);
        };
        if is_new {
            let age_ms = kept.server_ms.saturating_sub(state.sent_ms);
            let sent_mono_ms = self.received_mono_ms.saturating_sub(age_ms);
            self.counters()
                .received(state.epoch, &state.node, sent_mono_ms);
        }
        // After a gap the newest number is known already, but the quotes between are missing.
        if is_new || self.must_read {
            // A whole state contains all waiting updates.
            self.following.waits = Some((state, self.received_mono_ms));
        }
        Some(is_new)
    }

    fn take(&mut self, channel: &str, message: &[u8]) {
        let inbox = &self.worker.inbox;
        let taken = match self.channels.iter().position(|known| known == channel) {
            Some(0) => self
                .take_update(message)
                .map_err(|cause| (cause, Signed::Message)),
            Some(1) => self
                .take_wanted(message)
                .map_err(|cause| (cause, Signed::Wanted)),
            Some(2) if message.len() <= SEALED_BYTES_MAX => {
                (inbox.sealed)(message.to_vec());
                Ok(())
            }
            Some(3) => self
                .recent(Signed::Changes, message)
                .map(|_| (inbox.changed)())
                .map_err(|cause| (cause, Signed::Changes)),
            _ => Err((Distrust::Forged, Signed::Sealed)),
        };
        if let Err((cause, what)) = taken {
            self.worker.installation.distrust(cause, what);
        }
    }

    /// Opens a message that a node of ours signed a moment ago.
    fn recent<'m>(&self, kind: Signed, message: &'m [u8]) -> Result<Opened<'m>, Distrust> {
        let opened = self
            .namespace_keys
            .open(kind, b"", message)
            .ok_or(Distrust::Forged)?;
        self.expect_recent(opened.number)?;
        Ok(opened)
    }

    /// Refuses a message of another time, which is a recording.
    fn expect_recent(&self, sent_ms: u64) -> Result<(), Distrust> {
        let apart_ms = self.server_now_ms().abs_diff(sent_ms);
        if apart_ms <= REPLAYED_MS {
            Ok(())
        } else {
            Err(Distrust::Replayed)
        }
    }

    fn server_now_ms(&self) -> u64 {
        self.server_zero_ms + self.worker.now_mono_ms()
    }

    fn take_wanted(&self, message: &[u8]) -> Result<(), Distrust> {
        let opened = self.recent(Signed::Wanted, message)?;
        let (node, symbols) = decode_wanted(opened.body).ok_or(Distrust::Unreadable)?;
        let now_mono_ms = self.worker.now_mono_ms();
        let mut board = self.worker.shared.board.lock();
        let is_later = board.put(node, symbols, opened.number, now_mono_ms);
        if is_later {
            Ok(())
        } else {
            Err(Distrust::Replayed)
        }
    }

    fn take_update(&mut self, message: &[u8]) -> Result<(), Distrust> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(Distrust::Forged);
        }
        let mut update = opened(&self.namespace_keys, Signed::Message, message)?;
        let now_mono_ms = self.worker.now_mono_ms();
        self.counters().reading.messages += 1;
        if let Err(replayed) = self.expect_recent(update.sent_ms) {
            // A recording, or our estimate of the server's clock is off. Reading everything
            // corrects that.
            self.must_read |= now_mono_ms.saturating_sub(self.received_mono_ms) >= DOUBTFUL_MS / 2;
            return Err(replayed);
        }
        match self
            .following
            .sequence
            .receive(update.epoch, update.seq, update.sent_ms)
        {
            Place::Old => {
                self.counters().reading.old += 1;
                return Ok(());
            }
            Place::Anew => {
                self.must_read = true;
                return Ok(());
            }
            Place::Next => {}
            Place::AfterGap => {
                self.counters().reading.gaps += 1;
                self.must_read = true;
            }
        }
        self.received_mono_ms = now_mono_ms;
        self.counters().reading.state = State::Following;
        let server_now_ms = self.server_now_ms();
        let under_way_ms = server_now_ms.saturating_sub(update.sent_ms);
        let ahead_ms = update.sent_ms.saturating_sub(server_now_ms);
        self.must_read |= under_way_ms.max(ahead_ms) > DOUBTFUL_MS;
        let sent_mono_ms = now_mono_ms.saturating_sub(under_way_ms);
        self.counters()
            .received(update.epoch, &update.node, sent_mono_ms);
        update.grow_older(under_way_ms);
        self.keep(update);
        self.hand_over();
        Ok(())
    }

    /// Adds an update to the one that waits to be taken.
    fn keep(&mut self, update: Update) {
        let now_mono_ms = self.worker.now_mono_ms();
        let waits = match self.following.waits.take() {
            None => update,
            Some((mut waits, since_mono_ms)) => {
                self.counters().reading.merged += 1;
                waits.add(update, now_mono_ms.saturating_sub(since_mono_ms));
                if waits.quotes.len() > SYMBOLS_MAX {
                    // The server keeps no more either.
                    self.must_read = true;
                    waits.quotes.truncate(SYMBOLS_MAX);
                }
                waits
            }
        };
        self.following.waits = Some((waits, now_mono_ms));
    }

    /// Passes on the waiting update.
    fn hand_over(&mut self) {
        let Some((mut update, since_mono_ms)) = self.following.waits.take() else {
            return;
        };
        let now_mono_ms = self.worker.now_mono_ms();
        update.grow_older(now_mono_ms.saturating_sub(since_mono_ms));
        let refused = (self.worker.inbox.update)(Box::new(update)).err();
        self.following.waits = refused.map(|update| (*update, now_mono_ms));
    }
}

// ---- Board
//
// The symbols that each node wants, as the leader knows it. Pure.

/// Lifetime of a node's list, which is repeated well within it.
const WANTED_TTL_MS: u64 = 5_000;
/// Most nodes whose lists are kept. If there are more, the oldest lists are forgotten.
const NODES_MAX: usize = 64;

struct List {
    until_mono_ms: u64,
    /// Time of the message by the server's clock.
    sent_ms: u64,
    symbols: Vec<Symbol>,
}

/// The lists of all nodes.
struct Board(BoundedMap<String, List>);

impl Board {
    fn new() -> Self {
        Self(BoundedMap::new(NODES_MAX))
    }

    /// Replaces a node's list, unless that was sent later. Returns whether it did.
    fn put(&mut self, node: String, symbols: Vec<Symbol>, sent_ms: u64, now_mono_ms: u64) -> bool {
        if self
            .0
            .get(&node)
            .is_some_and(|list| list.sent_ms >= sent_ms)
        {
            return false;
        }
        let list = List {
            until_mono_ms: now_mono_ms + WANTED_TTL_MS,
            sent_ms,
            symbols,
        };
        let worth = |list: &List| (list.until_mono_ms > now_mono_ms).then_some(list.until_mono_ms);
        self.0.insert(node, list, worth);
        true
    }

    /// The symbols that any node wants now, each once.
    fn wanted(&mut self, now_mono_ms: u64) -> Vec<Symbol> {
        self.0.retain(|_, list| list.until_mono_ms > now_mono_ms);
        let all: HashSet<&Symbol> = self.0.values().flat_map(|list| &list.symbols).collect();
        all.into_iter().cloned().collect()
    }
}

// ---- Sequence
//
// The order of messages, by epoch and number. Pure.

/// The place of a message after those received before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Next,
    /// Messages before it were missed.
    AfterGap,
    /// Received already, or sent by a leader that was replaced.
    Old,
    /// Sent later than those before, and with a lower number: numbers began anew.
    Anew,
}

/// The newest message that was received: epoch, number, and when it was sent by the server's clock.
#[derive(Debug, Default)]
struct Sequence(Option<(Epoch, u64, u64)>);

impl Sequence {
    /// Places a message and moves on to it, unless it is old.
    fn receive(&mut self, epoch: Epoch, seq: u64, sent_ms: u64) -> Place {
        let place = match self.0 {
            Some((last, number, last_ms)) if (epoch, seq) <= (last, number) => {
                return if sent_ms > last_ms {
                    Place::Anew
                } else {
                    Place::Old
                };
            }
            Some((last, number, _)) if epoch == last && seq == number + 1 => Place::Next,
            // A new leader begins with all it has.
            Some((last, ..)) if epoch > last && seq == 1 => Place::Next,
            None if seq == 1 => Place::Next,
            _ => Place::AfterGap,
        };
        self.0 = Some((epoch, seq, sent_ms));
        place
    }

    /// Notes that the whole state up to this message was read. Returns whether it is new. A lower
    /// number is new if it was sent later: the server forgot, or the database went back, and
    /// numbers began anew. `None` if it was sent before the newest message, so somebody put it
    /// back.
    fn read(&mut self, epoch: Epoch, seq: u64, sent_ms: u64) -> Option<bool> {
        if let Some((last, number, last_ms)) = self.0 {
            if (epoch, seq) == (last, number) {
                return Some(false);
            }
            if (epoch, seq) < (last, number) && sent_ms <= last_ms {
                return None;
            }
        }
        self.0 = Some((epoch, seq, sent_ms));
        Some(true)
    }
}

// ---- Counters
//
// The relay in health and metrics.

/// The counters. The age of the last message is computed when they are read.
#[derive(Default)]
struct Counters {
    reading: RelayReading,
    received_mono_ms: Option<u64>,
}

impl Counters {
    /// The leader of `epoch` sent something at this time.
    fn received(&mut self, epoch: Epoch, leader: &str, sent_mono_ms: u64) {
        self.received_mono_ms = self.received_mono_ms.max(Some(sent_mono_ms));
        self.reading.leader = Some((leader.to_owned(), epoch));
    }

    fn read(&self, now_mono_ms: u64) -> RelayReading {
        let age_ms = self
            .received_mono_ms
            .map(|at_ms| now_mono_ms.saturating_sub(at_ms));
        RelayReading {
            age_ms,
            ..self.reading.clone()
        }
    }
}

#[cfg(test)]
#[path = "relay_tests.rs"]
mod follower_tests;

#[cfg(test)]
mod board_tests {
    use super::*;

    fn symbols(names: &[&str]) -> Vec<Symbol> {
        names
            .iter()
            .map(|name| Symbol::parse(&format!("NSE:{name}")).unwrap())
            .collect()
    }

    fn wanted(board: &mut Board, now_mono_ms: u64) -> Vec<String> {
        let mut wanted: Vec<String> = board
            .wanted(now_mono_ms)
            .iter()
            .map(ToString::to_string)
            .collect();
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
        for (epoch, seq, sent_ms, expected) in [
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
            assert_eq!(sequence.receive(Epoch(epoch), seq, sent_ms), expected, "{epoch} {seq}");
        }
        assert_eq!(sequence.read(Epoch(6), 2, 100), Some(false));
        assert_eq!(sequence.read(Epoch(6), 4, 120), Some(true));
        assert_eq!(sequence.receive(Epoch(6), 4, 120), Place::Old);
        assert_eq!(sequence.receive(Epoch(6), 5, 130), Place::Next);
        assert_eq!(Sequence::default().receive(Epoch(9), 1, 1), Place::Next, "the first of all");
    }

    #[test]
    fn a_state_that_is_put_back_is_told_from_numbers_that_began_anew() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.read(Epoch(51), 900, 1_000), Some(true));
        assert_eq!(sequence.read(Epoch(51), 899, 990), None);
        assert_eq!(sequence.read(Epoch(4), 1, 900), None);
        assert_eq!(sequence.receive(Epoch(51), 901, 1_010), Place::Next, "nothing was lost by it");
        assert_eq!(sequence.read(Epoch(4), 1, 1_200), Some(true));
        assert_eq!(sequence.receive(Epoch(4), 2, 1_250), Place::Next);
    }
}
