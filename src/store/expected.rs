//! Revisions of records, and the preconditions that a change has on them.
//!
//! Plain values. They are compared on the writer, within the transaction of the change, so that of
//! two clients that have read the same state only one can change it.

use serde::Serialize;

use super::{JournalCursor, JournalEntry, JournalPage, StoreError};
use crate::http::document::variants::content_tag;
use crate::ops::exit::VERSION;

/// Names a state of a record. Equal revisions mean equal states, as the same version of the program
/// shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision(String);

impl Revision {
    /// A revision from text of a client, which need not be one of ours.
    pub(crate) fn from_text(text: String) -> Self {
        Self(text)
    }

    /// The revision as hexadecimal digits.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn of(state: &impl Serialize) -> Self {
        // Serialising text and numbers cannot fail.
        Self(content_tag(&sonic_rs::to_vec(&(VERSION, state)).unwrap_or_default()))
    }
}

/// The states that a precondition names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum States {
    /// Every state.
    All,
    These(Vec<Revision>),
}

impl States {
    fn have(&self, revision: &Revision) -> bool {
        match self {
            Self::All => true,
            Self::These(revisions) => revisions.contains(revision),
        }
    }
}

/// The states in which a record may be changed. By default any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub one_of: Option<States>,
    pub none_of: Option<States>,
}

impl Expected {
    /// Whether there is no precondition.
    pub(crate) fn is_any(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the precondition against the record's state.
    ///
    /// # Errors
    /// [`StoreError::NotAsExpected`].
    pub(super) fn compare(&self, revision: impl FnOnce() -> Revision) -> Result<(), StoreError> {
        if self.is_any() {
            return Ok(());
        }
        let now = revision();
        let met = self.one_of.as_ref().is_none_or(|states| states.have(&now))
            && !self.none_of.as_ref().is_some_and(|states| states.have(&now));
        met.then_some(()).ok_or(StoreError::NotAsExpected)
    }
}

/// A page of a journal, and the state it is expected to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedPage {
    pub after: Option<JournalCursor>,
    pub limit: usize,
    pub expected: Expected,
}

impl JournalEntry {
    /// Revision of the whole entry.
    pub(crate) fn revision(&self) -> Revision {
        Revision::of(&Shown::of(self))
    }
}

impl JournalPage {
    /// Revision of the page: of its entries, and of whether more follow.
    pub(crate) fn revision(&self) -> Revision {
        Revision::of(&(self.entries.iter().map(Shown::of).collect::<Vec<_>>(), self.more))
    }
}

/// An entry with its numbers as text, since floats would lose digits.
#[derive(Serialize)]
struct Shown<'a> {
    id: i64,
    traded_on: String,
    symbol: &'a str,
    side: &'static str,
    numbers: [Option<String>; 3],
    texts: [Option<&'a str>; 2],
    tags: &'a [String],
    written_ms: [i64; 2],
}

impl<'a> Shown<'a> {
    fn of(entry: &'a JournalEntry) -> Self {
        let JournalEntry { id, fields, created_ms, updated_ms } = entry;
        let numbers = [Some(fields.quantity), Some(fields.price), fields.fees];
        Self {
            id: *id,
            traded_on: fields.traded_on.to_string(),
            symbol: &fields.symbol,
            side: fields.side.as_str(),
            numbers: numbers.map(|number| number.map(|number| number.normalize().to_string())),
            texts: [fields.strategy.as_deref(), fields.notes.as_deref()],
            tags: &fields.tags,
            written_ms: [*created_ms, *updated_ms],
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::store::{JournalFields, Side};

    fn entry() -> JournalEntry {
        let fields = JournalFields {
            traded_on: date(2026, 11, 20),
            symbol: "INFY".into(),
            side: Side::Buy,
            quantity: "1.50".parse().unwrap(),
            price: "2".parse().unwrap(),
            fees: None,
            strategy: None,
            notes: None,
            tags: vec!["a".into()],
        };
        JournalEntry { id: 7, fields, created_ms: 1, updated_ms: 2 }
    }

    #[test]
    fn a_revision_depends_on_every_field_and_not_on_number_spelling() {
        let first = entry().revision();
        assert_eq!(first.as_str().len(), 24);
        let mut same = entry();
        same.fields.quantity = "1.5".parse().unwrap();
        assert_eq!(same.revision(), first);
        let changes: [fn(&mut JournalEntry); 12] = [
            |entry| entry.id = 8,
            |entry| entry.fields.traded_on = date(2026, 11, 19),
            |entry| entry.fields.symbol = "ITC".into(),
            |entry| entry.fields.side = Side::Sell,
            |entry| entry.fields.quantity = "1.51".parse().unwrap(),
            |entry| entry.fields.price = "2.0000001".parse().unwrap(),
            |entry| entry.fields.fees = Some("0".parse().unwrap()),
            |entry| entry.fields.strategy = Some("null".into()),
            |entry| entry.fields.notes = Some("n".into()),
            |entry| entry.fields.tags = vec!["a\",\"b".into()],
            |entry| entry.created_ms = 2,
            |entry| entry.updated_ms = 3,
        ];
        let mut seen = vec![first];
        for change in changes {
            let mut other = entry();
            change(&mut other);
            let revision = other.revision();
            assert!(!seen.contains(&revision), "{other:?}");
            seen.push(revision);
        }
        let page = |entries: Vec<JournalEntry>, more| JournalPage { entries, more }.revision();
        assert_ne!(page(vec![entry()], false), page(vec![entry()], true));
        assert_ne!(page(vec![entry()], false), page(vec![entry(), entry()], false));
        assert_eq!(page(vec![entry()], true), page(vec![entry()], true));
    }

    #[test]
    fn a_precondition_matches_the_states_it_names() {
        let now = || Revision::from_text("now".into());
        let these = |names: &[&str]| {
            Some(States::These(
                names.iter().map(|name| Revision::from_text((*name).into())).collect(),
            ))
        };
        for (one_of, none_of, met) in [
            (None, None, true),
            (Some(States::All), None, true),
            (these(&["now"]), None, true),
            (these(&["then", "now"]), these(&["then"]), true),
            (these(&[]), None, false),
            (these(&["then"]), None, false),
            (None, Some(States::All), false),
            (None, these(&["now"]), false),
            (None, these(&[]), true),
            (these(&["now"]), these(&["now"]), false),
        ] {
            let expected = Expected { one_of, none_of };
            assert_eq!(expected.compare(now).is_ok(), met, "{expected:?}");
        }
    }
}
