//! Reads all that the server keeps of the relay, in one consistent piece.

use redis::{ConnectionLike, RedisResult};

use super::update::{Aged, Update};
use super::wire::{self, SYMBOLS_MAX};
use crate::base::Epoch;
use crate::cache::l2::codec;
use crate::cache::valkey::Keys;

/// What stands before everything that is kept or told: the server's time in milliseconds.
pub(super) const STAMP_BYTES: usize = 13;

/// What was read.
pub(super) struct Read {
    /// `None` where nobody has published for long.
    pub(super) state: Option<Update>,
    /// The server's time.
    pub(super) server_ms: u64,
    /// Parts that were not ours.
    pub(super) refused: u64,
}

/// Splits a stamp off.
pub(super) fn stamped(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (stamp, rest) = bytes.split_at_checked(STAMP_BYTES)?;
    let digits = stamp.iter().all(u8::is_ascii_digit);
    let at_ms = std::str::from_utf8(stamp).ok().filter(|_| digits)?.parse().ok()?;
    Some((at_ms, rest))
}

/// Epoch, number and head of the newest message.
type Newest = (Option<u64>, Option<u64>, Option<Vec<u8>>);
/// The server's time in seconds and microseconds, the newest message, quotes by symbol.
type Everything = ((u64, u64), Newest, Vec<(Vec<u8>, Vec<u8>)>);

/// Reads it.
pub(super) fn read(keys: &Keys, to: &mut dyn ConnectionLike) -> RedisResult<Read> {
    let mut pipe = redis::pipe();
    pipe.atomic().cmd("TIME");
    pipe.cmd("HMGET").arg(keys.relay_state()).arg(&["epoch", "seq", "head"]);
    pipe.cmd("HGETALL").arg(keys.relay_quotes());
    let ((seconds, micros), (epoch, seq, head), quotes): Everything = pipe.query(to)?;
    let server_ms = seconds * 1_000 + micros / 1_000;
    let mut read = Read { state: None, server_ms, refused: 0 };
    let (Some(epoch), Some(seq), Some(head)) = (epoch, seq, head) else { return Ok(read) };
    let told = stamped(&head).and_then(|(at_ms, head)| Some((at_ms, wire::decode(head).ok()?)));
    let Some((told_ms, mut state)) = told else {
        read.refused = 1;
        return Ok(read);
    };
    (state.epoch, state.seq) = (Epoch(epoch), seq);
    state.grow_older(server_ms.saturating_sub(told_ms));
    for (key, value) in quotes.iter().take(SYMBOLS_MAX) {
        match aged(key, value, server_ms) {
            Some(aged) => state.quotes.push(aged),
            None => read.refused += 1,
        }
    }
    read.state = Some(state);
    Ok(read)
}

fn aged(key: &[u8], value: &[u8], server_ms: u64) -> Option<Aged> {
    let (vouched_ms, bytes) = stamped(value)?;
    let quote = codec::decode(std::str::from_utf8(key).ok()?, bytes)?;
    Some(Aged { quote, age_ms: server_ms.saturating_sub(vouched_ms) })
}
