//! Broker A's binary ticks: bytes of one WebSocket message to exact prices. Pure.
//!
//! A message is `u16` packets, then for each a `u16` length and a body; big-endian and unsigned
//! throughout. The length of a body decides its layout (`wire` documentation, section 10). Nothing
//! is allocated and nothing panics, whatever the bytes: a message whose lengths do not add up is
//! refused as a whole, a packet that cannot be read is left out alone.

use jiff::Timestamp;
use rust_decimal::Decimal;

/// Anything shorter is the heartbeat, which the broker sends as one byte.
const HEADER_BYTES: usize = 2;

/// Decimal places of a price on the wire, for the segments that are read.
const PRICE_PLACES: u32 = 2;

/// Low byte of the tokens that are read: shares of NSE and BSE, and indices. The others' prices
/// have other divisors.
const SEGMENTS: [u32; 3] = [1, 4, 9];

/// What one packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    pub token: u32,
    pub last_price: Decimal,
    /// `None` in the shortest packet.
    pub day: Option<Day>,
    /// Exchange time; only full packets have one.
    pub at: Option<Timestamp>,
}

/// The session so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    pub open: Decimal,
    pub high: Decimal,
    pub low: Decimal,
    pub previous_close: Decimal,
}

/// The lengths within a message do not add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFraming;

/// Why a packet of a well-framed message is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFault {
    /// No layout has its length.
    UnknownLength,
    /// It is of a segment that nobody subscribed to.
    Segment,
}

/// The packets of a binary message; none of a heartbeat.
///
/// # Errors
/// [`BadFraming`].
pub fn packets(
    message: &[u8],
) -> Result<impl Iterator<Item = Result<Tick, PacketFault>> + '_, BadFraming> {
    let (count, bodies) = split(message);
    // Walked once before anything is read, so that a message is taken as a whole or not at all.
    let mut left = bodies;
    for _ in 0..count {
        (_, left) = body(left).ok_or(BadFraming)?;
    }
    if !left.is_empty() {
        return Err(BadFraming);
    }
    let mut left = bodies;
    Ok(std::iter::from_fn(move || {
        let (packet, rest) = body(left)?;
        left = rest;
        Some(tick(packet))
    }))
}

/// The number of packets and what follows it.
fn split(message: &[u8]) -> (u16, &[u8]) {
    match message.split_first_chunk::<HEADER_BYTES>() {
        Some((count, bodies)) => (u16::from_be_bytes(*count), bodies),
        None => (0, &[]),
    }
}

/// The next packet's body and what follows it.
fn body(left: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = left.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

fn tick(body: &[u8]) -> Result<Tick, PacketFault> {
    let (day, at) = match body.len() {
        8 => (None, None),
        28 => (Some(index_day(body)), None),
        32 => (Some(index_day(body)), time(body, 28)),
        44 => (Some(share_day(body)), None),
        184 => (Some(share_day(body)), time(body, 60)),
        _ => return Err(PacketFault::UnknownLength),
    };
    let token = word(body, 0);
    if !SEGMENTS.contains(&(token & 0xff)) {
        return Err(PacketFault::Segment);
    }
    Ok(Tick { token, last_price: price(body, 4), day, at })
}

/// High and low come before open.
fn index_day(body: &[u8]) -> Day {
    let (high, low) = (price(body, 8), price(body, 12));
    Day { open: price(body, 16), high, low, previous_close: price(body, 20) }
}

/// Open comes first.
fn share_day(body: &[u8]) -> Day {
    let (open, high) = (price(body, 28), price(body, 32));
    Day { open, high, low: price(body, 36), previous_close: price(body, 40) }
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
#[path = "ticks_tests.rs"]
mod tests;
