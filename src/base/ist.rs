//! Indian Standard Time: a fixed offset of +05:30 with no daylight saving, so no zone database is
//! needed.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};

/// Seconds that IST is ahead of UTC.
pub const OFFSET_S: i32 = 19_800;

/// IST as a jiff zone.
pub fn zone() -> TimeZone {
    TimeZone::fixed(
        Offset::constant(0).saturating_add(jiff::SignedDuration::from_secs(OFFSET_S as i64)),
    )
}

/// `at` in IST.
pub fn zoned(at: Timestamp) -> Zoned {
    at.to_zoned(zone())
}

/// The instant of a civil time in IST. Brokers send times without a zone and mean IST.
pub fn instant(civil: DateTime) -> Timestamp {
    // Cannot fail: a fixed offset has neither gaps nor folds, and the years in use are far inside
    // jiff's range.
    civil.to_zoned(zone()).map(|z| z.timestamp()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// `2026-11-20T15:30:00+05:30`, whole seconds: the form of every market time in the API.
pub fn iso(at: Timestamp) -> String {
    zoned(at).strftime("%Y-%m-%dT%H:%M:%S+05:30").to_string()
}

/// The first IST midnight after `at`.
pub fn next_midnight(at: Timestamp) -> Timestamp {
    let tomorrow = zoned(at).date().saturating_add(1.day());
    instant(tomorrow.at(0, 0, 0, 0))
}

/// Time from `at` until [`next_midnight`].
pub fn until_midnight(at: Timestamp) -> Duration {
    Duration::try_from(next_midnight(at).duration_since(at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ist_midnight_is_at_half_past_six_in_the_evening_utc() {
        for (at, midnight) in [
            ("2026-11-20T18:29:59Z", "2026-11-20T18:30:00Z"),
            ("2026-11-20T18:30:00Z", "2026-11-21T18:30:00Z"),
        ] {
            let at = at.parse().unwrap();
            assert_eq!(next_midnight(at), midnight.parse().unwrap());
        }
        let at = "2026-11-20T18:29:30Z".parse().unwrap();
        assert_eq!(until_midnight(at), Duration::from_secs(30));
    }

    #[test]
    fn ist_is_five_and_a_half_hours_ahead_of_utc() {
        let at: Timestamp = "2026-11-20T10:00:00Z".parse().unwrap();
        assert_eq!(iso(at), "2026-11-20T15:30:00+05:30");
        assert_eq!(instant("2026-11-20T15:30:00".parse().unwrap()), at);
    }
}
