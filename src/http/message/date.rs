//! The `Date` header's form of an instant.
//!
//! Pure functions on milliseconds, and a cell with the line of the current second for any thread.
//! Nothing here reads a clock.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

use crate::http::document::prepared::DateLine;

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 5.6.7). Instants before 1970 or after the calendar's
/// end in 9999 count as the nearest one between.
pub fn imf_fixdate(unix_ms: i64) -> [u8; 29] {
    let unix_s = unix_ms
        .div_euclid(1_000)
        .clamp(0, Timestamp::MAX.as_second());
    let at = Timestamp::from_second(unix_s).unwrap_or_default();
    let written = DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&at)
        .unwrap_or_default();
    written
        .as_bytes()
        .try_into()
        .unwrap_or(*b"Thu, 01 Jan 1970 00:00:00 GMT")
}

/// The line of an instant; see [`imf_fixdate`].
pub(crate) fn date_line(unix_ms: i64) -> DateLine {
    let mut line = *b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
    line[6..35].copy_from_slice(&imf_fixdate(unix_ms));
    line
}

/// The line of the current second, written by one thread and read by all.
///
/// There are two copies: the writer overwrites the older one and then makes it the current one. A
/// reader takes no lock and never waits for the writer, even where that thread is not scheduled.
#[derive(Debug)]
pub(crate) struct DateCell {
    /// Number of lines written. The current copy is at this number modulo two.
    written: AtomicU64,
    copies: [[AtomicU64; WORDS]; 2],
}

const WORDS: usize = size_of::<DateLine>().div_ceil(8);

impl DateCell {
    /// A cell with the line of an instant.
    pub(crate) fn new(unix_ms: i64) -> Self {
        let cell = Self {
            written: AtomicU64::new(0),
            copies: Default::default(),
        };
        cell.set(unix_ms);
        cell
    }

    /// Stores the line of another instant. Only one thread at a time may call it.
    pub(crate) fn set(&self, unix_ms: i64) {
        let mut bytes = [0; WORDS * 8];
        bytes[..size_of::<DateLine>()].copy_from_slice(&date_line(unix_ms));
        let next = self.written.load(Ordering::Relaxed) + 1;
        // A reader of one of the words below also sees that the line before is current.
        fence(Ordering::Release);
        for (word, bytes) in self.copy(next).iter().zip(bytes.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        self.written.store(next, Ordering::Release);
    }

    /// The line.
    pub(crate) fn line(&self) -> DateLine {
        let mut current = self.written.load(Ordering::Acquire);
        loop {
            let mut bytes = [0; WORDS * 8];
            for (word, bytes) in self.copy(current).iter().zip(bytes.as_chunks_mut().0) {
                *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            }
            fence(Ordering::Acquire);
            // The copy is overwritten only after the other one has become current.
            match self.written.load(Ordering::Acquire) {
                still if still == current => {
                    return *bytes.first_chunk().expect("the words hold a line");
                }
                newer => current = newer,
            }
        }
    }

    fn copy(&self, number: u64) -> &[AtomicU64; WORDS] {
        &self.copies[usize::from(!number.is_multiple_of(2))]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

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
            (i64::MAX, "Thu, 30 Dec 9999 22:00:00 GMT"),
            (i64::MIN, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            assert_eq!(written(unix_ms), expected);
        }
    }

    #[test]
    fn readers_see_whole_lines() {
        let cell = DateCell::new(0);
        // Lines that differ in every word.
        let instants = [0, 1_795_132_800_000, i64::MAX];
        let lines = instants.map(date_line);
        assert_eq!(cell.line(), lines[0]);
        let stop = AtomicBool::new(false);
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
        fn agrees_with_the_calendar_library(unix_ms in 0..Timestamp::MAX.as_millisecond()) {
            let at = Timestamp::from_millisecond(unix_ms).unwrap();
            let expected = at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            assert_eq!(written(unix_ms), expected);
        }
    }
}
