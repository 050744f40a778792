//! The cursor of a journal page: the date and the entry where the page ended. Pure.

use jiff::Span;
use jiff::civil::Date;

use crate::api::cursor;
use crate::store::{AccountId, JournalCursor};

/// The kind of list, for its cursors.
const LIST: &str = "journal cursor";

/// The position as text for a URL.
pub(crate) fn seal(user: AccountId, position: JournalCursor) -> String {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&days_of(position.traded_on).to_be_bytes());
    bytes[4..].copy_from_slice(&position.id.to_be_bytes());
    cursor::seal(LIST, user, &bytes)
}

/// The position of the user's own cursor; `None` for any other text.
pub(super) fn open(user: AccountId, text: &str) -> Option<JournalCursor> {
    let position = cursor::open(LIST, user, text)?;
    let (days, id) = position.split_first_chunk::<4>()?;
    let days = i32::from_be_bytes(*days);
    let id = i64::from_be_bytes(id.try_into().ok()?);
    let traded_on = Date::ZERO
        .checked_add(Span::new().try_days(days).ok()?)
        .ok()?;
    Some(JournalCursor { traded_on, id })
}

fn days_of(date: Date) -> i32 {
    // Dates span 20,000 years: 7.3 million days.
    (date - Date::ZERO).get_days()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_cursor_is_valid_only_unchanged_and_for_its_user() {
        let position = JournalCursor {
            traded_on: date(2026, 11, 20),
            id: i64::MAX,
        };
        let text = seal(AccountId(1), position);
        assert_eq!(open(AccountId(1), &text), Some(position));
        let oldest = JournalCursor {
            traded_on: date(1990, 1, 1),
            id: 1,
        };
        assert_eq!(open(AccountId(1), &seal(AccountId(1), oldest)), Some(oldest));
        assert_eq!(open(AccountId(2), &text), None, "another's");
        for at in 0..text.len() {
            let mut forged = text.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert_eq!(open(AccountId(1), &forged), None, "{forged}");
        }
        for bad in [
            "",
            "A",
            "====",
            "....",
            "é",
            &text[1..],
            &text.repeat(2),
            &"A".repeat(27),
        ] {
            assert_eq!(open(AccountId(1), bad), None, "{bad}");
        }
    }

    /// A cursor from another version or machine is valid here, since the format never changes.
    #[test]
    fn a_cursor_of_an_older_version_is_valid() {
        let position = JournalCursor {
            traded_on: date(2026, 11, 20),
            id: 42,
        };
        assert_eq!(seal(AccountId(7), position), "AAtL0QAAAAAAAAAqI73okUjV8n8");
    }
}
