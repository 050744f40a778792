//! The cursor of a journal page: the position where the page ended, as text for the client. Pure.
//!
//! A cursor is valid for one user and contains nothing that its page did not, so it needs no secret
//! and no key. It stays valid over restarts, key rotation and a move to another machine. Its
//! checksum covers the user too, so that another user's cursor or a changed one is refused. A
//! forged cursor reaches only the user's own entries.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Span;
use jiff::civil::Date;
use sha2::{Digest, Sha256};

use crate::store::{AccountId, JournalCursor};

/// The date as a number of days, the entry's id, the checksum.
pub(super) const BYTES: usize = 4 + 8 + CHECKSUM_BYTES;

pub(super) const CHECKSUM_BYTES: usize = 8;

/// The position as text for a URL.
pub(crate) fn seal(user: AccountId, position: JournalCursor) -> String {
    let days = days_of(position.traded_on);
    let mut bytes = [0; BYTES];
    bytes[..4].copy_from_slice(&days.to_be_bytes());
    bytes[4..12].copy_from_slice(&position.id.to_be_bytes());
    bytes[12..].copy_from_slice(&checksum(user, days, position.id));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position of the user's own cursor; `None` for any other text.
pub(super) fn open(user: AccountId, text: &str) -> Option<JournalCursor> {
    let mut bytes = [0; BYTES];
    let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
    let (days, rest) = bytes.split_first_chunk()?;
    let (id, sum) = rest.split_first_chunk::<8>()?;
    let days = i32::from_be_bytes(*days);
    let id = i64::from_be_bytes(*id);
    if length != BYTES || *sum != checksum(user, days, id) {
        return None;
    }
    let traded_on = Date::ZERO.checked_add(Span::new().try_days(days).ok()?).ok()?;
    Some(JournalCursor { traded_on, id })
}

pub(super) fn checksum(user: AccountId, days: i32, id: i64) -> [u8; CHECKSUM_BYTES] {
    let mut hash = Sha256::new_with_prefix(b"journal cursor");
    hash.update(user.0.to_be_bytes());
    hash.update(days.to_be_bytes());
    hash.update(id.to_be_bytes());
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&hash.finalize()[..CHECKSUM_BYTES]);
    sum
}

pub(super) fn days_of(date: Date) -> i32 {
    // Dates span 20,000 years: 7.3 million days.
    (date - Date::ZERO).get_days()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_cursor_is_valid_only_unchanged_and_for_its_user() {
        let position = JournalCursor { traded_on: date(2026, 11, 20), id: i64::MAX };
        let text = seal(AccountId(1), position);
        assert_eq!(open(AccountId(1), &text), Some(position));
        let oldest = JournalCursor { traded_on: date(1990, 1, 1), id: 1 };
        assert_eq!(open(AccountId(1), &seal(AccountId(1), oldest)), Some(oldest));
        assert_eq!(open(AccountId(2), &text), None, "another's");
        for at in 0..text.len() {
            let mut forged = text.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert_eq!(open(AccountId(1), &forged), None, "{forged}");
        }
        for bad in ["", "A", "====", "....", "é", &text[1..], &text.repeat(2), &"A".repeat(27)] {
            assert_eq!(open(AccountId(1), bad), None, "{bad}");
        }
    }

    /// A cursor from another version or machine is valid here, since the format never changes.
    #[test]
    fn a_cursor_of_an_older_version_is_valid() {
        let position = JournalCursor { traded_on: date(2026, 11, 20), id: 42 };
        assert_eq!(seal(AccountId(7), position), "AAtL0QAAAAAAAAAqI73okUjV8n8");
    }
}
