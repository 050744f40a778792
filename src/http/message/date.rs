//! The `Date` header's form of an instant.
//!
//! Pure arithmetic on a caller's milliseconds, and a cell for the present second; any thread. Never
//! reads a clock.

use std::sync::atomic::{AtomicU64, Ordering, fence};

const WEEKDAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Last millisecond of the year 9999, beyond which the year has no four digits.
const UNIX_MS_MAX: i64 = 253_402_300_799_999;

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 5.6.7). Instants before 1970 or after 9999 count as
/// the nearest one between.
pub fn imf_fixdate(unix_ms: i64) -> [u8; 29] {
    let unix_s = unix_ms.clamp(0, UNIX_MS_MAX) / 1_000;
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let (year, month, day) = civil(days);
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    out[..3].copy_from_slice(WEEKDAYS[(days % 7) as usize]);
    two_digits(&mut out, 5, day);
    out[8..11].copy_from_slice(MONTHS[month]);
    two_digits(&mut out, 12, year / 100);
    two_digits(&mut out, 14, year % 100);
    two_digits(&mut out, 17, second / 3_600);
    two_digits(&mut out, 20, second / 60 % 60);
    two_digits(&mut out, 23, second % 60);
    out
}

/// A whole `Date` line, with its end.
pub type DateLine = [u8; 37];

/// The line of an instant; see [`imf_fixdate`].
pub fn date_line(unix_ms: i64) -> DateLine {
    let mut line = *b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
    line[6..35].copy_from_slice(&imf_fixdate(unix_ms));
    line
}

/// The line of the present second, written by one thread and read by all. A reader takes no lock
/// and keeps no address: it copies the words and looks whether they were changed meanwhile.
#[derive(Debug)]
pub struct DateCell {
    /// Odd while the words are being written.
    version: AtomicU64,
    words: [AtomicU64; WORDS],
}

const WORDS: usize = size_of::<DateLine>().div_ceil(8);

impl DateCell {
    /// Holds the line of an instant.
    pub fn new(unix_ms: i64) -> Self {
        let cell = Self { version: AtomicU64::new(0), words: Default::default() };
        cell.set(unix_ms);
        cell
    }

    /// Puts in the line of another instant. One thread at a time.
    pub fn set(&self, unix_ms: i64) {
        let mut bytes = [0; WORDS * 8];
        bytes[..size_of::<DateLine>()].copy_from_slice(&date_line(unix_ms));
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        // What follows is not seen before the odd version.
        fence(Ordering::Release);
        for (word, bytes) in self.words.iter().zip(bytes.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        self.version.store(version + 2, Ordering::Release);
    }

    /// The line.
    pub fn line(&self) -> DateLine {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let mut bytes = [0; WORDS * 8];
            for (word, bytes) in self.words.iter().zip(bytes.as_chunks_mut().0) {
                *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            }
            // What was read is not younger than the version that is read next.
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && version == self.version.load(Ordering::Relaxed) {
                return *bytes.first_chunk().expect("the words hold a line");
            }
            std::hint::spin_loop();
        }
    }
}

fn two_digits(out: &mut [u8; 29], at: usize, value: i64) {
    out[at] = b'0' + (value / 10) as u8;
    out[at + 1] = b'0' + (value % 10) as u8;
}

/// Days since 1970-01-01 as (year, month from 0, day from 1). Counts in eras of 400 years that
/// begin on a 1 March, so that the leap day is the last day of its year.
fn civil(days: i64) -> (i64, usize, i64) {
    let days = days + 719_468; // from 0000-03-01
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march as usize + 2) % 12;
    let year = era * 400 + year_of_era + i64::from(month < 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    fn written(unix_ms: i64) -> String {
        String::from_utf8(imf_fixdate(unix_ms).to_vec()).unwrap()
    }

    #[test]
    fn known_dates() {
        for (unix_ms, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_777_999, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (1_709_164_800_000, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (1_795_132_800_000, "Fri, 20 Nov 2026 00:00:00 GMT"),
            (UNIX_MS_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (i64::MIN, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            assert_eq!(written(unix_ms), expected);
        }
    }

    #[test]
    fn readers_see_whole_lines() {
        let cell = DateCell::new(0);
        // Lines that differ in every word.
        let instants = [0, 1_795_132_800_000, UNIX_MS_MAX];
        let lines = instants.map(date_line);
        assert_eq!(cell.line(), lines[0]);
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        assert!(lines.contains(&cell.line()));
                    }
                });
            }
            (0..100_000).for_each(|turn| cell.set(instants[turn % 3]));
            stop.store(true, Ordering::Relaxed);
        });
    }

    proptest! {
        #[test]
        fn agrees_with_the_calendar_library(unix_ms in 0..=UNIX_MS_MAX) {
            let at = jiff::Timestamp::from_millisecond(unix_ms).unwrap();
            let expected = at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            assert_eq!(written(unix_ms), expected);
        }
    }
}
