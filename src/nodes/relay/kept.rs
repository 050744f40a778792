//! Reads all that the server keeps of the relay, in one consistent piece.

use redis::{ConnectionLike, RedisResult, Script};

use crate::cache::l2::codec;
use crate::nodes::relay::encoding::decode;
use crate::nodes::relay::update::{Aged, MESSAGE_BYTES_MAX, SYMBOLS_MAX, Update};
use crate::nodes::valkey::{Distrust, Key, NamespaceKeys, Signed};

/// Most bytes that are read at once: the largest message, and as much again for quotes that are
/// kept and not in it. What is larger was not told by a leader.
const KEPT_BYTES_MAX: usize = 4 * MESSAGE_BYTES_MAX;

/// What the server keeps.
pub(super) struct Kept {
    /// `None` if nobody has published for long.
    pub(super) state: Option<Update>,
    /// The server's time.
    pub(super) server_ms: u64,
    /// Distrusted values.
    pub(super) distrusted: Vec<(Distrust, Signed)>,
    /// Places of keys that no node has written.
    pub(super) foreign: Vec<usize>,
}

/// The server's time, the newest message, quotes by symbol, and what no node has written.
type Everything = (u64, Option<Vec<u8>>, Vec<(Vec<u8>, Vec<u8>)>, Vec<usize>);

pub(super) fn read_kept(
    read: &Script,
    namespace_keys: &NamespaceKeys,
    to: &mut dyn ConnectionLike,
) -> RedisResult<Kept> {
    let mut read = read.prepare_invoke();
    read.key(namespace_keys.keys.key(Key::Relay))
        .key(namespace_keys.keys.key(Key::RelayQuotes))
        .arg(KEPT_BYTES_MAX);
    let (server_ms, head, quotes, foreign): Everything = read.invoke(to)?;
    let mut kept = Kept {
        state: None,
        server_ms,
        distrusted: Vec::new(),
        foreign,
    };
    let Some(head) = head else { return Ok(kept) };
    match opened(namespace_keys, Signed::Head, &head) {
        Ok(mut state) => {
            state.grow_older(server_ms.saturating_sub(state.sent_ms));
            for (key, value) in quotes.iter().take(SYMBOLS_MAX) {
                match aged(namespace_keys, key, value, server_ms) {
                    Ok(aged) => state.quotes.push(aged),
                    Err(cause) => kept.distrusted.push((cause, Signed::Quote)),
                }
            }
            kept.state = Some(state);
        }
        Err(cause) => kept.distrusted.push((cause, Signed::Head)),
    }
    Ok(kept)
}

/// Opens a message that a leader of ours signed.
pub(super) fn opened(
    namespace_keys: &NamespaceKeys,
    kind: Signed,
    value: &[u8],
) -> Result<Update, Distrust> {
    let opened = namespace_keys
        .open(kind, b"", value)
        .ok_or(Distrust::Forged)?;
    decode(opened.epoch, opened.number, opened.body).ok_or(Distrust::Unreadable)
}

fn aged(
    namespace_keys: &NamespaceKeys,
    key: &[u8],
    value: &[u8],
    server_ms: u64,
) -> Result<Aged, Distrust> {
    let opened = namespace_keys
        .open(Signed::Quote, key, value)
        .ok_or(Distrust::Forged)?;
    let key = std::str::from_utf8(key).ok();
    let quote = key
        .and_then(|key| codec::decode(key, opened.body))
        .ok_or(Distrust::Unreadable)?;
    let age_ms = match opened.number {
        0 => Aged::NEVER_MS,
        vouched_ms => server_ms.saturating_sub(vouched_ms),
    };
    Ok(Aged { quote, age_ms })
}
