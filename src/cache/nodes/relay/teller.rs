//! Sends: what the leader publishes, fenced by its epoch, and what every node says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use redis::Script;

use super::traits::{Published, Relay, RelayError};
use super::update::Update;
use super::wire::{self, MESSAGE_BYTES_MAX, SYMBOLS_MAX};
use crate::base::{Clock, Epoch, Symbol};
use crate::cache::l2::codec;
use crate::cache::nodes::claim::FENCE_MS;
use crate::cache::valkey::{
    Client, Deadlines, Installation, Room, Server, Signed, ValkeyError, script,
};

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
            publish: script(include_str!("publish.lua")),
            timer: server.timer().clone(),
            server_clock: Mutex::default(),
            last: Mutex::default(),
            fenced: AtomicU64::new(0),
        }
    }

    /// Publications that were refused because of a newer leader.
    pub fn fenced(&self) -> u64 {
        self.fenced.load(Relaxed)
    }

    /// Calls that failed.
    pub fn errors(&self) -> u64 {
        self.publications.stats().errors + self.words.stats().errors
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
        let whole = room.sign(Signed::Message, "", place, &wire::encode(update));
        if whole.len() > MESSAGE_BYTES_MAX {
            return Err(RelayError::TooLarge { bytes: whole.len(), bytes_max: MESSAGE_BYTES_MAX });
        }
        let quotes = std::mem::take(&mut update.quotes);
        let head = room.sign(Signed::Head, "", place, &wire::encode(update));
        let mut script = self.publish.prepare_invoke();
        let keys = &room.keys;
        script.key(keys.fence()).key(keys.relay_state()).key(keys.relay_quotes());
        script.arg(update.epoch.0).arg(update.seq).arg(FENCE_MS).arg(SYMBOLS_MAX);
        script.arg(keys.relay_channel()).arg(update.told_ms).arg(whole).arg(head);
        for aged in quotes.iter().take(SYMBOLS_MAX) {
            let symbol = aged.quote.symbol.as_str();
            let place = (update.epoch, update.told_ms.saturating_sub(aged.age_ms));
            let stored = codec::encode(&aged.quote);
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
        let body = wire::encode_wanted(&self.node, symbols);
        self.say_signed(Signed::Wanted, |room| room.keys.wanted_channel(), &body)
    }

    fn pass_on(&self, sealed: &[u8]) -> Result<(), RelayError> {
        self.say(self.installation.room()?.keys.sealed_channel(), sealed)
    }

    fn tell_of_changes(&self) -> Result<(), RelayError> {
        self.say_signed(Signed::Changes, |room| room.keys.changes_channel(), b"")
    }
}
