//! Reads all that the server keeps of the relay, in one consistent piece.

use redis::{ConnectionLike, RedisResult};

use super::update::{Aged, Update};
use super::wire::{self, SYMBOLS_MAX};
use crate::cache::l2::codec;
use crate::cache::valkey::{Distrust, Room, Signed};

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
    wire::decode(opened.epoch, opened.number, opened.body).map_err(|_| Distrust::Unreadable)
}

fn aged(room: &Room, key: &[u8], value: &[u8], server_ms: u64) -> Result<Aged, Distrust> {
    let opened = room.open(Signed::Quote, key, value).ok_or(Distrust::Forged)?;
    let key = std::str::from_utf8(key).ok();
    let quote = key.and_then(|key| codec::decode(key, opened.body)).ok_or(Distrust::Unreadable)?;
    // Nobody has vouched for it since the leader's start.
    let age_ms = match opened.number {
        0 => u64::MAX,
        vouched_ms => server_ms.saturating_sub(vouched_ms),
    };
    Ok(Aged { quote, age_ms })
}
