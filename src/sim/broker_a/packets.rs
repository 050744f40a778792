//! Broker A's binary ticks, written from the table of the wire document (section 10). Shares
//! nothing with the service's decoder, so that each shows the other's mistakes. Pure.

use crate::sim::broker_a::quotes::book;
use crate::sim::exchange::day::Tick;
use crate::sim::exchange::universe::Instrument;

/// The content of a subscription's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Ltp,
    Quote,
    Full,
}

impl Mode {
    /// The mode with this name in a client's request.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "ltp" => Some(Self::Ltp),
            "quote" => Some(Self::Quote),
            "full" => Some(Self::Full),
            _ => None,
        }
    }
}

/// A message of these packets: their number, then each with its length before it.
pub(crate) fn message(bodies: &[Vec<u8>]) -> Vec<u8> {
    let mut message = u16::try_from(bodies.len())
        .unwrap_or(u16::MAX)
        .to_be_bytes()
        .to_vec();
    for body in bodies {
        message.extend_from_slice(&u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes());
        message.extend_from_slice(body);
    }
    message
}

/// The body of one packet. `at_s` is the exchange time stated in it.
pub(crate) fn packet(
    seed: u64,
    instrument: &Instrument,
    tick: &Tick,
    at_s: i64,
    mode: Mode,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(184);
    let mut put = |value: i64| out.extend_from_slice(&word(value).to_be_bytes());
    put(instrument.token);
    put(tick.last);
    if mode == Mode::Ltp {
        return out;
    }
    if instrument.is_index {
        put(tick.high);
        put(tick.low);
        put(tick.open);
        put(tick.previous_close);
        put(tick.last - tick.previous_close);
        if mode == Mode::Full {
            put(at_s);
        }
        return out;
    }
    put(1);
    put(if tick.open > 0 {
        (tick.high + tick.low) / 2
    } else {
        0
    });
    put(tick.volume);
    put(tick.volume / 3);
    put(tick.volume / 4);
    put(tick.open);
    put(tick.high);
    put(tick.low);
    put(tick.previous_close);
    if mode == Mode::Full {
        put(at_s);
        // Open interest, and its highest and lowest.
        (0..3).for_each(|_| put(0));
        put(at_s);
        for level in book(seed, instrument, tick).as_flattened() {
            out.extend_from_slice(&word(level.quantity).to_be_bytes());
            out.extend_from_slice(&word(level.paise).to_be_bytes());
            // The number of orders has 16 bits, and as many follow that mean nothing.
            out.extend_from_slice(&word(level.orders << 16).to_be_bytes());
        }
    }
    out
}

/// The low 32 bits. Higher bits are cut off, as by the real broker.
fn word(value: i64) -> u32 {
    (value & 0xffff_ffff) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::exchange::day::{Day, Sessions};
    use crate::sim::exchange::universe::Universe;

    #[test]
    fn each_mode_has_the_length_of_the_table() {
        let universe = Universe::new(1, 0);
        let day = Day::new(1, Sessions::weekdays());
        let now = "2026-11-20T11:00:00+05:30".parse().unwrap();
        for (key, lengths) in [("NSE:INFY", [8, 44, 184]), ("NSE:NIFTY 50", [8, 28, 32])] {
            let instrument = universe.by_key(key).unwrap();
            let tick = day.tick(instrument, now);
            for (mode, length) in [Mode::Ltp, Mode::Quote, Mode::Full]
                .into_iter()
                .zip(lengths)
            {
                let body = packet(1, instrument, &tick, 7, mode);
                assert_eq!(body.len(), length, "{key} {mode:?}");
                assert_eq!(body[..4], word(instrument.token).to_be_bytes());
                assert_eq!(body[4..8], word(tick.last).to_be_bytes());
            }
        }
    }

    #[test]
    fn an_index_has_high_and_low_before_open_and_a_share_open_first() {
        let universe = Universe::new(1, 0);
        let day = Day::new(1, Sessions::weekdays());
        let now = "2026-11-20T11:00:00+05:30".parse().unwrap();
        for (key, first, time) in [("NSE:INFY", 28, 60), ("NSE:NIFTY 50", 8, 28)] {
            let instrument = universe.by_key(key).unwrap();
            let tick = day.tick(instrument, now);
            let Tick {
                open,
                high,
                low,
                previous_close: close,
                ..
            } = tick;
            let order = if instrument.is_index {
                [high, low, open, close]
            } else {
                [open, high, low, close]
            };
            let body = packet(1, instrument, &tick, 1_795_155_307, Mode::Full);
            for (at, value) in (first..).step_by(4).zip(order) {
                assert_eq!(body[at..at + 4], word(value).to_be_bytes(), "{key} at {at}");
            }
            assert_eq!(body[time..time + 4], 1_795_155_307_u32.to_be_bytes(), "{key}");
        }
    }
}
