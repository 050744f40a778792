//! What people see of a text: letters in one form, and characters that nobody sees. Pure.
//!
//! Two texts that look the same must not be two names, two accounts or two keys. So letters with
//! accents are composed (NFC), and what cannot be seen is found by its class:
//!
//! | class | such as |
//! |---|---|
//! | control characters | U+0000 to U+001F, U+007F to U+009F |
//! | ends of lines and paragraphs | U+2028, U+2029 |
//! | spaces other than the plain one | no-break space U+00A0, ideographic space U+3000 |
//! | what programs may leave out | zero-width space U+200B, soft hyphen U+00AD, Hangul fillers |
//! | of these, too | byte-order mark, joiners, direction, variation selectors, tags |
//! | what is drawn empty | Braille blank U+2800, annotation marks U+FFF9 to U+FFFB |

use std::borrow::Cow;
use std::fmt;

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};

/// A character that cannot be seen, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unseen {
    /// Counted in characters, from 1.
    position: usize,
    letter: char,
    what: &'static str,
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            position,
            letter,
            what,
        } = self;
        write!(f, "Character {position} is {what} (U+{:04X})", u32::from(*letter))
    }
}

/// The text with its letters composed (NFC). ASCII is returned as it is, without an allocation.
pub(crate) fn composed(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

/// The first character that cannot be seen.
pub(crate) fn unseen(text: &str) -> Option<Unseen> {
    let found = |(at, letter)| {
        what(letter).map(|what| Unseen {
            position: at + 1,
            letter,
            what,
        })
    };
    text.chars().enumerate().find_map(found)
}

/// The name as it is stored and compared: composed, every space the plain one, none around it.
pub(crate) fn name(text: &str) -> String {
    let is_space = |letter| category(letter) == GeneralCategory::SpaceSeparator;
    let plain = |letter| if is_space(letter) { ' ' } else { letter };
    composed(text)
        .chars()
        .map(plain)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// The first character of a name that cannot be seen. Joiners and variation selectors count only
/// where no letter is before them: words of Indian languages and emojis are written with them.
pub(crate) fn unseen_in_name(name: &str) -> Option<Unseen> {
    let mut before = None;
    for (at, letter) in name.chars().enumerate() {
        let joins = matches!(letter, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
        if let Some(what) = what(letter).filter(|_| !joins || before.is_none_or(|b| b == ' ')) {
            return Some(Unseen {
                position: at + 1,
                letter,
                what,
            });
        }
        before = Some(letter);
    }
    None
}

/// What the character is, if it cannot be seen.
fn what(letter: char) -> Option<&'static str> {
    if (' '..='~').contains(&letter) {
        return None;
    }
    Some(match letter {
        '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => "a line break",
        '\t' => "a tab",
        letter if letter.is_control() => "a control character",
        '\u{feff}' => "a byte-order mark",
        '\u{200b}' => "a zero-width space",
        '\u{ad}' => "a soft hyphen",
        '\u{200c}' | '\u{200d}' => "a joiner",
        '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            "a mark of writing direction"
        }
        '\u{2800}' | '\u{fff9}'..='\u{fffb}' => "an invisible character",
        letter if category(letter) == GeneralCategory::SpaceSeparator => {
            "a space that is not the plain one"
        }
        letter if CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(letter) => {
            "an invisible character"
        }
        _ => return None,
    })
}

fn category(letter: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(letter)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn each_class_of_what_cannot_be_seen_is_found_with_its_place() {
        for (letter, what) in [
            ('\0', "a control character"),
            ('\u{7f}', "a control character"),
            ('\u{9b}', "a control character"),
            ('\n', "a line break"),
            ('\u{2028}', "a line break"),
            ('\t', "a tab"),
            ('\u{feff}', "a byte-order mark"),
            ('\u{200b}', "a zero-width space"),
            ('\u{ad}', "a soft hyphen"),
            ('\u{200d}', "a joiner"),
            ('\u{202e}', "a mark of writing direction"),
            ('\u{2067}', "a mark of writing direction"),
            ('\u{a0}', "a space that is not the plain one"),
            ('\u{2009}', "a space that is not the plain one"),
            ('\u{3000}', "a space that is not the plain one"),
            ('\u{2060}', "an invisible character"),
            ('\u{34f}', "an invisible character"),
            ('\u{3164}', "an invisible character"),
            ('\u{115f}', "an invisible character"),
            ('\u{180e}', "an invisible character"),
            ('\u{fe0f}', "an invisible character"),
            ('\u{e0041}', "an invisible character"),
            ('\u{2800}', "an invisible character"),
        ] {
            let found = unseen(&format!("नé{letter}b")).unwrap().to_string();
            let expected = format!("Character 3 is {what} (U+{:04X})", u32::from(letter));
            assert_eq!(found, expected);
        }
        for seen in [
            "",
            "a b~!",
            "é",
            "e\u{301}",
            "नमस्ते",
            "漢字",
            "🚀",
            "İß",
            "٣",
            "\u{600}",
        ] {
            assert_eq!(unseen(seen), None, "{seen}");
        }
    }

    #[test]
    fn a_name_is_seen_and_keeps_the_joiners_of_its_language() {
        for (text, stored) in [
            (" Long  term ", "Long  term"),
            ("My\u{a0}list", "My list"),
            ("\u{3000}日経\u{3000}平均", "日経 平均"),
            ("Cafe\u{301}", "Café"),
            ("क्\u{200d}ष", "क्\u{200d}ष"),
            ("👨\u{200d}👩\u{200d}👧 fund", "👨\u{200d}👩\u{200d}👧 fund"),
            ("❤\u{fe0f}", "❤\u{fe0f}"),
        ] {
            assert_eq!(name(text), stored);
            assert_eq!(unseen_in_name(stored), None, "{stored}");
        }
        for hidden in [
            "\u{200b}",
            "a\u{200b}b",
            "\u{200d}",
            "\u{200d}a",
            "a \u{200d}",
            "a\u{202e}b",
        ] {
            assert!(unseen_in_name(hidden).is_some(), "{hidden:?}");
        }
    }

    proptest! {
        #[test]
        fn a_text_has_one_composed_form(text in any::<String>()) {
            let once = composed(&text).into_owned();
            prop_assert_eq!(&*composed(&once), &once);
            let stored = name(&text);
            prop_assert_eq!(name(&stored), stored.clone());
            if unseen_in_name(&stored).is_none() && !stored.is_empty() {
                prop_assert!(stored.chars().any(|letter| what(letter).is_none() && letter != ' '));
            }
        }
    }
}
