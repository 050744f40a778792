//! Text from outside on its way to become a setting or a secret: from variables, flags, settings
//! files, files of secrets and credentials. Pure.
//!
//! | what | is |
//! |---|---|
//! | a byte-order mark at the beginning, line ends at the end | taken off |
//! | spaces and tabs around a setting | taken off |
//! | a pair of quotation marks around the whole | taken off, with a warning |
//! | nothing, or such quotation marks alone | not set; refused in the file of a secret |
//! | another quotation mark at an end of a setting or key | refused |
//! | a character that nobody sees, a line break within | refused, with its position |
//! | a space within a key, and around any secret; one beyond ASCII in a key | refused, so too |
//! | `${NAME}` that nobody replaced | refused |
//! | UTF-16, other bytes that are not UTF-8, more than the limit | refused |
//! | ` #` and what looks like a comment | a warning for settings, refused in keys |

use std::fmt::Display;

use crate::base::visible;
use crate::config::refused::Refused;

/// Longest setting accepted: some hundred origins.
pub(crate) const SETTING_BYTES_MAX: usize = 16 * 1024;
/// Longest secret accepted. Keys and tokens have tens of bytes, a JWT has hundreds.
pub(crate) const SECRET_BYTES_MAX: usize = 4096;

/// What a text is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Setting,
    /// A key or token of a broker, which is sent in headers and addresses: visible ASCII.
    Key,
    /// A secret that people choose. Letters of any script, and spaces within.
    Passphrase,
}

/// A text without what surrounds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bare<'a> {
    pub text: &'a str,
    /// Quotation marks were taken off.
    pub was_quoted: bool,
}

/// The warning about quotation marks that were taken off.
pub(crate) fn quoted_warning(name: &str, origin: &dyn Display) -> String {
    format!(
        "{name} ({origin}) stands in quotation marks, which were taken off; remove them: \
         docker run --env-file passes them on, and other programs may not take them off"
    )
}

/// The warning about a setting that probably ends with a comment.
pub(crate) fn comment_warning(name: &str, origin: &dyn Display) -> String {
    format!(
        "{name} ({origin}) has ` #` in it, and all of it is the value; if that begins a comment, \
         put it on a line of its own"
    )
}

/// Takes off what surrounds a text.
pub(crate) fn bare(text: &str, kind: Kind) -> Bare<'_> {
    let trimmed = |text| match kind {
        Kind::Setting => trim_blanks(text),
        Kind::Key | Kind::Passphrase => text,
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = trimmed(text.trim_end_matches(['\n', '\r']));
    let within = ['"', '\''].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then_some(inner)
    });
    match within {
        Some(inner) => Bare {
            text: trimmed(inner),
            was_quoted: true,
        },
        None => Bare {
            text,
            was_quoted: false,
        },
    }
}

fn trim_blanks(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Why a bare text becomes neither setting nor secret. Neither part of the answer repeats the text.
pub(crate) fn refusal(text: &str, kind: Kind) -> Option<Refused> {
    let refused = |problem: String, cure: &str| {
        Some(Refused {
            problem,
            cure: cure.to_owned(),
        })
    };
    let bytes_max = match kind {
        Kind::Setting => SETTING_BYTES_MAX,
        Kind::Key | Kind::Passphrase => SECRET_BYTES_MAX,
    };
    if text.len() > bytes_max {
        return refused(format!("is longer than {bytes_max} bytes"), "give the value alone");
    }
    if let Some(unseen) = visible::unseen(text) {
        let problem = format!("has what nobody sees: {}", lower_first(&unseen.to_string()));
        return refused(
            problem,
            "type it anew by hand, on one line, or copy it from another place",
        );
    }
    if is_placeholder(text, kind) {
        let problem = "is the name of a variable that nothing has replaced".to_owned();
        return refused(
            problem,
            "write the value itself: variables within values are not replaced",
        );
    }
    let is_quote = |letter: char| "\"'“”„‘’«»`".contains(letter);
    let has_quote = text.starts_with(is_quote) || text.ends_with(is_quote);
    if kind != Kind::Passphrase && has_quote {
        let problem = "has a quotation mark at one end that is not one of a pair of \" or '";
        return refused(problem.to_owned(), "give the value without quotation marks");
    }
    let strange = |letter: &char| match kind {
        Kind::Key => *letter == ' ' || !letter.is_ascii(),
        Kind::Setting | Kind::Passphrase => false,
    };
    if let Some((at, letter)) = text.chars().enumerate().find(|(_, letter)| strange(letter)) {
        let problem = match letter {
            ' ' => format!("has a space, which is no part of a key: character {}", at + 1),
            _ => format!("has a letter that no key has: character {} is not ASCII", at + 1),
        };
        return refused(problem, "give the key alone, without a comment or a name before it");
    }
    if kind == Kind::Passphrase && text.trim() != text {
        return refused("has a space at one end".to_owned(), "give the secret without it");
    }
    None
}

/// Whether a text is a variable's name in the form that shells and Kubernetes replace.
fn is_placeholder(text: &str, kind: Kind) -> bool {
    let is_named = |inner: &str| {
        !inner.is_empty()
            && inner
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_whole = [("${", "}"), ("$(", ")")].into_iter().any(|(open, close)| {
        text.strip_prefix(open)
            .and_then(|rest| rest.strip_suffix(close))
            .is_some_and(is_named)
    });
    is_whole || kind == Kind::Setting && (text.contains("${") || text.contains("$("))
}

/// The text of a file.
///
/// # Errors
/// It is not UTF-8. UTF-16 is named.
pub(crate) fn decoded(bytes: &[u8]) -> Result<&str, Refused> {
    let wide = "is UTF-16 text, as Windows writes it";
    let refused = |problem: String| {
        let cure = "save it as UTF-8: iconv -f UTF-16 -t UTF-8 OLD > NEW";
        Refused {
            problem,
            cure: cure.to_owned(),
        }
    };
    let is_wide = |first: usize| bytes.iter().skip(first).step_by(2).all(|byte| *byte == 0);
    let has_mark = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    if has_mark || bytes.len() >= 4 && (is_wide(0) || is_wide(1)) {
        return Err(refused(wide.to_owned()));
    }
    std::str::from_utf8(bytes).map_err(|error| Refused {
        problem: format!("is not UTF-8: byte {} is wrong", error.valid_up_to() + 1),
        cure: "save it as UTF-8".to_owned(),
    })
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_lowercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    const KINDS: [Kind; 3] = [Kind::Setting, Kind::Key, Kind::Passphrase];

    #[test]
    fn what_surrounds_a_text_is_taken_off() {
        for (text, inner, was_quoted) in [
            ("key", "key", false),
            ("\u{feff}key\r\n", "key", false),
            ("key\n\n", "key", false),
            ("\"key\"", "key", true),
            ("'key'\n", "key", true),
            ("\u{feff}\"key\"\r\n", "key", true),
            ("\"\"", "", true),
            ("", "", false),
            ("\n", "", false),
            ("\"", "\"", false),
            ("\"a\" \"b\"", "\"a\" \"b\"", false),
            ("\"key", "\"key", false),
            ("'key\"", "'key\"", false),
        ] {
            for kind in KINDS {
                let expected = Bare {
                    text: inner,
                    was_quoted,
                };
                assert_eq!(bare(text, kind), expected, "{text:?} {kind:?}");
            }
        }
        assert_eq!(bare(" \"a b\" ", Kind::Setting).text, "a b");
        assert_eq!(bare("\t a b \r\n", Kind::Setting).text, "a b");
        assert_eq!(bare(" a b ", Kind::Passphrase).text, " a b ");
    }

    #[test]
    fn what_no_setting_or_secret_has_is_refused_with_its_place() {
        use Kind::{Key, Passphrase, Setting};
        for (text, kinds, part) in [
            ("abc\u{200b}def", &KINDS[..], "character 4 is a zero-width space (U+200B)"),
            ("abc\u{a0}", &KINDS, "character 4 is a space that is not the plain one (U+00A0)"),
            ("ab\u{ad}c", &KINDS, "character 3 is a soft hyphen (U+00AD)"),
            ("\u{feff}\u{feff}a", &KINDS, "character 1 is a byte-order mark"),
            ("a\nb", &KINDS, "character 2 is a line break"),
            ("a\u{7}", &KINDS, "character 2 is a control character"),
            ("ab\u{202e}", &KINDS, "a mark of writing direction"),
            ("${BHAV_KEY}", &KINDS, "a variable that nothing has replaced"),
            ("$(KEY)", &KINDS, "a variable that nothing has replaced"),
            ("${HOME}/bhav", &[Setting], "a variable that nothing has replaced"),
            ("\"key", &[Setting, Key], "a quotation mark at one end"),
            ("“key”", &[Setting, Key], "a quotation mark at one end"),
            ("''key''", &[Setting, Key], "a quotation mark at one end"),
            ("abc def", &[Key], "has a space, which is no part of a key: character 4"),
            ("abc # mine", &[Key], "character 4"),
            ("clé", &[Key], "character 3 is not ASCII"),
            (" key", &[Key, Passphrase], "has a space"),
        ] {
            for kind in KINDS {
                let refused = refusal(text, kind);
                let found = refused
                    .as_ref()
                    .is_some_and(|why| why.problem.contains(part));
                assert_eq!(found, kinds.contains(&kind), "{text:?} {kind:?}: {refused:?}");
            }
        }
        let long = "x".repeat(SETTING_BYTES_MAX + 1);
        assert!(KINDS.iter().all(|kind| refusal(&long, *kind).is_some()));
        for (text, kind) in [
            ("correct horse", Passphrase),
            ("पासवर्ड\"", Passphrase),
            ("it's $5", Passphrase),
            ("a+b=c&1~#/", Key),
            ("/var/lib/a b", Setting),
            ("", Setting),
        ] {
            assert_eq!(refusal(text, kind), None, "{text}");
        }
    }

    #[test]
    fn a_file_of_windows_is_named() {
        let wide = |text: &str, mark: bool| -> Vec<u8> {
            let mark = mark.then_some(0xfeff).into_iter();
            mark.chain(text.encode_utf16())
                .flat_map(u16::to_le_bytes)
                .collect()
        };
        let big: Vec<u8> = "key1".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [
            wide("key", true),
            wide("key1", false),
            big,
            b"\xfe\xff\0k".to_vec(),
        ] {
            assert!(decoded(&bytes).unwrap_err().problem.contains("UTF-16"), "{bytes:?}");
        }
        assert_eq!(decoded(b"ab\xff").unwrap_err().problem, "is not UTF-8: byte 3 is wrong");
        assert_eq!(decoded("\u{feff}kéy".as_bytes()), Ok("\u{feff}kéy"));
        assert_eq!(decoded(b""), Ok(""));
    }

    proptest! {
        #[test]
        fn a_text_of_visible_letters_keeps_every_one(
            text in "[!-&(-_a-~][!-_a-~ ]{0,30}[!-&(-_a-~]",
        ) {
            let kept = bare(&text, Kind::Passphrase);
            if !kept.was_quoted {
                prop_assert_eq!(kept.text, &text);
            }
        }

        #[test]
        fn no_refusal_repeats_a_secret(text in any::<String>()) {
            for kind in KINDS {
                if let Some(why) = refusal(bare(&text, kind).text, kind)
                    && text.len() > 12
                {
                    prop_assert!(!why.problem.contains(&text) && !why.cure.contains(&text));
                }
            }
        }
    }
}
