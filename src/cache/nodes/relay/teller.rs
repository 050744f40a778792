//! Sends: what the leader publishes, fenced by its epoch, and what every node says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use redis::Script;

use super::traits::{Published, Relay, RelayError};
use super::update::Update;
use super::wire::{self, MESSAGE_BYTES_MAX, SYMBOLS_MAX};
use crate::base::{Epoch, Symbol};
use crate::cache::l2::codec;
use crate::cache::nodes::claim::FENCE_MS;
use crate::cache::valkey::{Client, Deadlines, Keys, Namespace, Server};

/// What is late is worth little: the next round comes in a second.
const DEADLINES: Deadlines = Deadlines { connect_ms: 500, call_ms: 1_000 };

/// The relay over one server. Publications and the rest have connections of their own, so that
/// neither waits for the other.
pub struct ValkeyRelay {
    node: String,
    keys: Keys,
    publications: Client,
    words: Client,
    publish: Script,
    /// The last number of the newest epoch.
    last: Mutex<(Epoch, u64)>,
    fenced: AtomicU64,
}

impl ValkeyRelay {
    /// Of the node of this name, which no other has.
    pub fn new(server: &Arc<Server>, namespace: &Namespace, node: &str) -> Self {
        Self {
            node: node.to_owned(),
            keys: Keys::of(namespace),
            publications: Client::new(server, DEADLINES),
            words: Client::new(server, DEADLINES),
            publish: Script::new(include_str!("publish.lua")),
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

    fn say(&self, channel: String, message: &[u8]) -> Result<(), RelayError> {
        let mut command = redis::cmd("PUBLISH");
        command.arg(channel).arg(message);
        self.words.call(|to| command.query::<u64>(to))?;
        Ok(())
    }
}

impl Relay for ValkeyRelay {
    fn publish(&self, epoch: Epoch, update: &Update) -> Result<Published, RelayError> {
        let seq = self.next_seq(epoch);
        let mut head = Update { epoch, seq, ..update.clone() };
        let whole = wire::encode(&head);
        let quotes = std::mem::take(&mut head.quotes);
        if whole.len() > MESSAGE_BYTES_MAX {
            return Err(RelayError::TooLarge { bytes: whole.len(), bytes_max: MESSAGE_BYTES_MAX });
        }
        let mut script = self.publish.prepare_invoke();
        script.key(self.keys.fence()).key(self.keys.relay_state()).key(self.keys.relay_quotes());
        script.arg(epoch.0).arg(seq).arg(FENCE_MS).arg(SYMBOLS_MAX);
        script.arg(self.keys.relay_channel()).arg(whole).arg(wire::encode(&head));
        for aged in quotes.iter().take(SYMBOLS_MAX) {
            script.arg(aged.quote.symbol.as_str()).arg(aged.age_ms).arg(codec::encode(&aged.quote));
        }
        let told: bool = self.publications.call(|to| script.invoke(to))?;
        if told {
            return Ok(Published::Told);
        }
        self.fenced.fetch_add(1, Relaxed);
        Ok(Published::Fenced)
    }

    fn want(&self, symbols: &[Symbol]) -> Result<(), RelayError> {
        self.say(self.keys.wanted_channel(), &wire::encode_wanted(&self.node, symbols))
    }

    fn pass_on(&self, sealed: &[u8]) -> Result<(), RelayError> {
        self.say(self.keys.sealed_channel(), sealed)
    }

    fn tell_of_changes(&self) -> Result<(), RelayError> {
        self.say(self.keys.changes_channel(), &[])
    }
}
