//! Parses broker A's binary ticks: bytes of one WebSocket message to exact prices. Pure.
//!
//! A message is `u16` packets, then for each a `u16` length and a body; big-endian and unsigned
//! throughout. The length of a body decides its layout (`wire` documentation, section 10). Nothing
//! is allocated and nothing panics, whatever the bytes: a message whose lengths do not add up is
//! refused as a whole; an unreadable packet alone is left out.

use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::brokers::broker_a::ticker::reading::Bad;

/// A shorter message is the heartbeat, which the broker sends as one byte.
const HEADER_BYTES: usize = 2;

/// Decimal places of a price on the wire, in [`SEGMENTS`].
const PRICE_PLACES: u32 = 2;

/// Low byte of the tokens that are read: shares of NSE and BSE, and indices. Prices of other
/// segments have other divisors.
const SEGMENTS: [u32; 3] = [1, 4, 9];

/// The content of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tick {
    pub token: u32,
    pub last_price: Decimal,
    /// `None` in the shortest packet.
    pub day: Option<Day>,
    /// Exchange time; only full packets have one.
    pub at: Option<Timestamp>,
}

/// The session so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Day {
    pub open: Decimal,
    pub high: Decimal,
    pub low: Decimal,
    pub previous_close: Decimal,
}

/// The packets of a binary message. A heartbeat has none.
///
/// # Errors
/// [`Bad::Framing`]; of a packet, [`Bad::Length`] or [`Bad::Segment`].
pub(super) fn packets(message: &[u8]) -> Result<impl Iterator<Item = Result<Tick, Bad>> + '_, Bad> {
    let header = message.split_first_chunk::<HEADER_BYTES>();
    let (count, bodies) =
        header.map_or((0, &[][..]), |(count, bodies)| (u16::from_be_bytes(*count), bodies));
    // All lengths are checked first, so that a message is read as a whole or not at all.
    let mut left = bodies;
    for _ in 0..count {
        (_, left) = body(left).ok_or(Bad::Framing)?;
    }
    if !left.is_empty() {
        return Err(Bad::Framing);
    }
    let mut left = bodies;
    Ok(std::iter::from_fn(move || {
        let (packet, rest) = body(left)?;
        left = rest;
        Some(tick(packet))
    }))
}

/// The next packet's body, and the bytes after it.
fn body(left: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = left.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

fn tick(body: &[u8]) -> Result<Tick, Bad> {
    let (day, at) = match body.len() {
        8 => (None, None),
        28 => (Some(index_day(body)), None),
        32 => (Some(index_day(body)), time(body, 28)),
        44 => (Some(share_day(body)), None),
        184 => (Some(share_day(body)), time(body, 60)),
        _ => return Err(Bad::Length),
    };
    let token = word(body, 0);
    if !SEGMENTS.contains(&(token & 0xff)) {
        return Err(Bad::Segment);
    }
    Ok(Tick {
        token,
        last_price: price(body, 4),
        day,
        at,
    })
}

/// High and low come before open.
fn index_day(body: &[u8]) -> Day {
    let high = price(body, 8);
    let low = price(body, 12);
    Day {
        open: price(body, 16),
        high,
        low,
        previous_close: price(body, 20),
    }
}

/// Open comes first.
fn share_day(body: &[u8]) -> Day {
    let open = price(body, 28);
    let high = price(body, 32);
    Day {
        open,
        high,
        low: price(body, 36),
        previous_close: price(body, 40),
    }
}

fn price(body: &[u8], offset: usize) -> Decimal {
    Decimal::new(i64::from(word(body, offset)), PRICE_PLACES)
}

/// Unix seconds.
fn time(body: &[u8], offset: usize) -> Option<Timestamp> {
    Timestamp::from_second(i64::from(word(body, offset))).ok()
}

/// The word at `offset`, which the layout of this length has.
fn word(body: &[u8], offset: usize) -> u32 {
    let bytes = body.get(offset..).and_then(|rest| rest.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
#[path = "../ticks_tests.rs"]
mod tests;
