//! The hours of the simulated exchange, and instants of its trading dates. Pure.

use jiff::Timestamp;
use jiff::civil::Date;

use super::universe::Instrument;
use crate::base::ist;

/// 09:15 IST, in seconds of the day.
pub(crate) const OPEN_S: i64 = 9 * 3600 + 15 * 60;
/// 15:30 IST: the close of continuous trading for instruments without a closing auction.
pub(crate) const CLOSE_S: i64 = 15 * 3600 + 30 * 60;
/// 15:15 IST: where continuous trading stops before a closing auction.
pub(crate) const AUCTION_FREEZE_S: i64 = 15 * 3600 + 15 * 60;
/// 15:35 IST: matching is over and the auction's one price is known.
pub(crate) const AUCTION_PRINT_S: i64 = 15 * 3600 + 35 * 60;
/// The closing auction exists from this date (exchange circular of 29 May 2026).
pub(crate) const AUCTION_SINCE: Date = jiff::civil::date(2026, 8, 3);
/// Minutes from open to close.
pub(crate) const DAY_MINUTES: i64 = (CLOSE_S - OPEN_S) / 60;

/// Where continuous trading ends for this instrument, in seconds of the day.
pub(crate) fn continuous_end_s(instrument: &Instrument, date: Date) -> i64 {
    if instrument.auction && date >= AUCTION_SINCE { AUCTION_FREEZE_S } else { CLOSE_S }
}

/// When the day's last price is made, in seconds of the day.
pub(crate) fn end_s(instrument: &Instrument, date: Date) -> i64 {
    if instrument.auction && date >= AUCTION_SINCE { AUCTION_PRINT_S } else { CLOSE_S }
}

pub(crate) fn day_number(date: Date) -> i64 {
    instant(date, 0).as_second().div_euclid(86_400)
}

pub(crate) fn second_of_day(at: Timestamp) -> i64 {
    (at.as_second() + i64::from(ist::OFFSET_S)).rem_euclid(86_400)
}

/// The instant `second` seconds after midnight IST of `date`.
pub(crate) fn instant(date: Date, second: i64) -> Timestamp {
    let midnight = ist::instant(date.at(0, 0, 0, 0)).as_second();
    Timestamp::from_second(midnight + second).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The regular session's first and last instant on `date`, as everybody who does not know the
/// auction states them.
pub(crate) fn regular_hours(date: Date) -> (Timestamp, Timestamp) {
    (instant(date, OPEN_S), instant(date, CLOSE_S))
}
