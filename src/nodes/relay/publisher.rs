//! Messages of this node. A leader sends updates, fenced by its epoch. Any node sends wanted
//! symbols, encrypted tokens and notices of changes. Calls block, by deadlines; none is repeated.

use std::sync::Arc;

use parking_lot::Mutex;
use redis::Script;

use crate::base::{Clock, Symbol};
use crate::cache::l2::codec;
use crate::nodes::cluster::SendError;
use crate::nodes::relay::encoding::{encode, encode_wanted};
use crate::nodes::relay::update::{MESSAGE_BYTES_MAX, SYMBOLS_MAX, Update};
use crate::nodes::valkey::keys::{FENCE, FENCE_MS, RELAY, RELAY_QUOTES};
use crate::nodes::valkey::{
    Client, Deadlines, Distrust, Installation, KeptKey, Key, NamespaceKeys, Server, Signed,
    ValkeyError, script,
};
use crate::store::Epoch;

/// A late message is worth little: the next round comes in a second.
const DEADLINES: Deadlines = Deadlines {
    connect_ms: 500,
    call_ms: 1_000,
};
/// Time for which this node trusts its estimate of the server's clock.
const CLOCK_MS: u64 = 30_000;
/// Tries of a publication: one for a wrong estimate of the server's clock, and some for forged
/// values, which somebody may write as fast as they are replaced.
const TRIES_MAX: usize = 5;

/// The rows of the publishing script's keys.
const ROWS: [&KeptKey; 3] = [FENCE, RELAY, RELAY_QUOTES];
/// Answers of that script.
const FENCED: u64 = 0;
const SENT: u64 = 1;

/// Code, the server's time, fence, place, and what no node has written.
type Told = (u64, u64, Vec<u8>, Vec<u8>, Vec<usize>);

/// Values that a script found and that no node has signed.
#[derive(Default)]
struct Forged {
    fence: Vec<u8>,
    place: Vec<u8>,
}

/// An estimate of the server's clock.
#[derive(Default)]
struct ServerClock {
    /// The server's time at the zero of our clock: not too late, so that nothing looks younger
    /// than it is.
    zero_ms: u64,
    /// When the server was last asked; `None` for never.
    asked_mono_ms: Option<u64>,
}

/// Sends over one server. Updates and the rest have connections of their own, so that neither waits
/// for the other.
pub struct Publisher {
    node: String,
    installation: Arc<Installation>,
    updates: Client,
    rest: Client,
    publish: Script,
    timer: Clock,
    server_clock: Mutex<ServerClock>,
    /// The last number of the newest epoch.
    last: Mutex<(Epoch, u64)>,
}

impl From<ValkeyError> for SendError {
    fn from(error: ValkeyError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl Publisher {
    /// The publisher of the node of this name, which no other has.
    pub fn new(server: &Arc<Server>, installation: &Arc<Installation>, node: &str) -> Self {
        Self {
            node: node.to_owned(),
            installation: Arc::clone(installation),
            updates: Client::new(server, DEADLINES),
            rest: Client::new(server, DEADLINES),
            publish: script(include_str!("../scripts/publish.lua"), &ROWS),
            timer: server.timer.clone(),
            server_clock: Mutex::default(),
            last: Mutex::default(),
        }
    }

    /// Sends an update to all nodes as the leader of `epoch`, and keeps it for those that come
    /// later. Numbers the updates, anew in each epoch.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn publish(&self, epoch: Epoch, update: Update) -> Result<(), SendError> {
        let namespace_keys = self.installation.sure_namespace_keys()?;
        let seq = self.next_seq(epoch);
        let node = self.node.clone();
        let mut update = Update {
            epoch,
            seq,
            node,
            ..update
        };
        let mut forged = Forged::default();
        for _ in 0..TRIES_MAX {
            let (code, _, fence, place, foreign) =
                self.try_publish(&namespace_keys, &mut update, &forged)?;
            self.updates.note_foreign(&ROWS, &foreign);
            match code {
                SENT => return Ok(()),
                FENCED if self.is_deposed(&namespace_keys, fence, place, &mut forged) => {
                    return Err(SendError::Deposed);
                }
                _ => {}
            }
        }
        let why = "the server's clock leaps, or somebody writes there as fast as this node";
        Err(SendError::Unavailable(why.to_owned()))
    }

    /// Whether nodes have signed what is in the way of a message. Notes what none has signed.
    fn is_deposed(
        &self,
        namespace_keys: &NamespaceKeys,
        fence: Vec<u8>,
        place: Vec<u8>,
        forged: &mut Forged,
    ) -> bool {
        let is_ours = |kind, value: &[u8], row: &'static KeptKey| {
            let is_ours = value.is_empty() || namespace_keys.open(kind, b"", value).is_some();
            if !is_ours {
                self.installation.distrust(Distrust::Forged, kind);
                self.updates.note_foreign(&[row], &[1]);
            }
            is_ours
        };
        let is_fenced = is_ours(Signed::Fence, &fence, FENCE);
        let is_placed = is_ours(Signed::Place, &place, RELAY);
        if !is_fenced {
            forged.fence = fence;
        }
        if !is_placed {
            forged.place = place;
        }
        is_fenced && is_placed
    }

    /// Sends the leader the symbols that this node wants to be kept fresh.
    pub(super) fn want(&self, symbols: &[Symbol]) -> Result<(), SendError> {
        let body = encode_wanted(&self.node, symbols);
        self.send_signed(Signed::Wanted, Key::Wanted, &body)
    }

    /// Notifies all subscribed nodes that the database has changes to read.
    pub(super) fn notify_changes(&self) -> Result<(), SendError> {
        self.send_signed(Signed::Changes, Key::Changes, b"")
    }

    /// Passes encrypted bytes to all subscribed nodes. Nothing is kept.
    pub(crate) fn pass_on(&self, sealed: &[u8]) -> Result<(), SendError> {
        let namespace_keys = self.installation.namespace_keys()?;
        self.send(&namespace_keys, Key::Sealed, sealed)
    }

    /// A number that no message had. A number whose message may have been lost is not used again:
    /// the followers notice the gap.
    pub(super) fn next_seq(&self, epoch: Epoch) -> u64 {
        let mut last = self.last.lock();
        *last = if last.0 == epoch {
            (epoch, last.1 + 1)
        } else {
            (epoch, 1)
        };
        last.1
    }

    fn note_server_ms(&self, server_ms: u64) {
        let now_mono_ms = self.timer.monotonic_ms();
        let zero_ms = server_ms.saturating_sub(now_mono_ms);
        *self.server_clock.lock() = ServerClock {
            zero_ms,
            asked_mono_ms: Some(now_mono_ms),
        };
    }

    /// The time by the server's clock, which is read through `client` if the estimate is too old.
    fn server_ms(&self, client: &Client) -> Result<u64, SendError> {
        let now_mono_ms = self.timer.monotonic_ms();
        let known = {
            let clock = self.server_clock.lock();
            let is_recent = clock
                .asked_mono_ms
                .is_some_and(|at| now_mono_ms - at < CLOCK_MS);
            is_recent.then(|| clock.zero_ms + now_mono_ms)
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let (seconds, micros): (u64, u64) = client.call(|to| redis::cmd("TIME").query(to))?;
        self.note_server_ms(seconds * 1_000 + micros / 1_000);
        Ok(self.server_clock.lock().zero_ms + self.timer.monotonic_ms())
    }

    fn send(
        &self,
        namespace_keys: &NamespaceKeys,
        channel: Key,
        message: &[u8],
    ) -> Result<(), SendError> {
        let mut command = redis::cmd("PUBLISH");
        command.arg(namespace_keys.keys.key(channel)).arg(message);
        self.rest.call(|to| command.query::<u64>(to))?;
        Ok(())
    }

    /// Sends a body signed with the time.
    fn send_signed(&self, kind: Signed, channel: Key, body: &[u8]) -> Result<(), SendError> {
        let namespace_keys = self.installation.namespace_keys()?;
        let sent_ms = self.server_ms(&self.rest)?;
        self.send(
            &namespace_keys,
            channel,
            &namespace_keys.sign(kind, "", (Epoch::default(), sent_ms), body),
        )
    }

    /// Publishes once, past what is known to be forged. Returns the script's reply.
    fn try_publish(
        &self,
        namespace_keys: &NamespaceKeys,
        update: &mut Update,
        forged: &Forged,
    ) -> Result<Told, SendError> {
        update.sent_ms = self.server_ms(&self.updates)?;
        let place = (update.epoch, update.seq);
        let whole = namespace_keys.sign(Signed::Message, "", place, &encode(update));
        let bytes = whole.len();
        if bytes > MESSAGE_BYTES_MAX {
            let text =
                format!("a message of {bytes} bytes is over the limit of {MESSAGE_BYTES_MAX}");
            return Err(SendError::Unavailable(text));
        }
        let quotes = std::mem::take(&mut update.quotes);
        let head = namespace_keys.sign(Signed::Head, "", place, &encode(update));
        let mut script = self.publish.prepare_invoke();
        let keys = &namespace_keys.keys;
        script
            .key(keys.key(Key::Fence))
            .key(keys.key(Key::Relay))
            .key(keys.key(Key::RelayQuotes));
        script
            .arg(namespace_keys.sign(Signed::Fence, "", (update.epoch, update.sent_ms), b""))
            .arg(namespace_keys.sign(Signed::Place, "", place, b""))
            .arg(&forged.fence)
            .arg(&forged.place)
            .arg(FENCE_MS)
            .arg(SYMBOLS_MAX)
            .arg(keys.key(Key::Relay))
            .arg(whole)
            .arg(head);
        for aged in quotes.iter().take(SYMBOLS_MAX) {
            let symbol = aged.quote.symbol.as_str();
            let place = (update.epoch, update.sent_ms.saturating_sub(aged.age_ms));
            let stored = codec::encode(&aged.quote);
            script
                .arg(symbol)
                .arg(namespace_keys.sign(Signed::Quote, symbol, place, &stored));
        }
        update.quotes = quotes;
        let told: Told = self.updates.call(|to| script.invoke(to))?;
        self.note_server_ms(told.1);
        Ok(told)
    }
}
