//! Recognises passwords that attackers try first.
//!
//! Pure. There are two embedded lists: whole passwords, and words that people extend by an ending.
//! Both are in lower case, and passwords are looked up in lower case, because `PASSWORD1` is as
//! easily guessed as `password1`.

use std::collections::HashSet;
use std::sync::LazyLock;

use zeroize::Zeroizing;

static WHOLE: LazyLock<HashSet<&str>> =
    LazyLock::new(|| lines(include_str!("data/common_passwords.txt")).collect());
static STEMS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| lines(include_str!("data/common_stems.txt")).collect());

/// Longest entry of the lists.
const COMMON_BYTES_MAX: usize = 32;

/// Common endings of a stem, including none.
const ENDINGS: &[&str] = &[
    "",
    "!",
    "!!",
    "#",
    "$",
    "*",
    ".",
    "@",
    "0",
    "00",
    "000",
    "007",
    "01",
    "02",
    "03",
    "07",
    "1",
    "1!",
    "10",
    "100",
    "1000",
    "101",
    "11",
    "111",
    "1111",
    "12",
    "12!",
    "121",
    "1212",
    "123",
    "123!",
    "123#",
    "123$",
    "123*",
    "123.",
    "123321",
    "1234",
    "1234!",
    "12345",
    "123456",
    "1234567",
    "12345678",
    "123456789",
    "13",
    "14",
    "143",
    "15",
    "16",
    "17",
    "18",
    "19",
    "2",
    "20",
    "21",
    "22",
    "222",
    "23",
    "24",
    "25",
    "26",
    "3",
    "321",
    "33",
    "333",
    "4",
    "44",
    "45",
    "5",
    "55",
    "555",
    "6",
    "66",
    "666",
    "69",
    "7",
    "77",
    "777",
    "786",
    "8",
    "88",
    "888",
    "9",
    "99",
    "999",
    "a",
    "abc",
    "x",
    "@1",
    "@12",
    "@123",
    "@123#",
    "@1234",
    "@12345",
    "@123456",
    "@321",
    "@786",
    "_1",
    "_123",
    "-123",
    "#1",
    "#123",
    "#1234",
    "!1",
    "!123",
];

/// Years that people append to a word, also after `@`.
const YEARS: std::ops::RangeInclusive<u16> = 1950..=2035;

/// Shortest run of a pattern that counts: the shortest password that is allowed.
const PATTERN_BYTES_MIN: usize = 8;

/// Sequences of keys and characters, which count backwards too.
const SEQUENCES: &[&str] = &[
    "01234567890123456789",
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiopasdfghjklzxcvbnm",
    "azertyuiopqsdfghjklmwxcvbn",
    "1q2w3e4r5t6y7u8i9o0p",
    "q1w2e3r4t5y6u7i8o9p0",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
    "qazwsxedcrfvtgbyhnujmikolp",
    "zaq12wsxcde34rfv",
];

fn lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with("# "))
}

/// Why a password is weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// It is on the list of the most common passwords.
    Common,
    /// A common word with a common ending.
    WordWithEnding,
    /// A short piece, repeated.
    Repeated,
    /// A sequence of keys or letters.
    InOrder,
}

impl Weakness {
    /// Completes the sentence "This password is ...".
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Common => "one of the most common",
            Self::WordWithEnding => "a common word with a common ending",
            Self::Repeated => "one short piece again and again",
            Self::InOrder => "keys or letters in their order",
        }
    }
}

/// Why the password is weak; `None` if no weakness is found.
pub fn weakness(password: &str) -> Option<Weakness> {
    if password.len() > COMMON_BYTES_MAX {
        return pattern(password.as_bytes());
    }
    // Reserve the whole length: a string that grows leaves unwiped copies behind.
    let mut lower = Zeroizing::new(String::with_capacity(password.len()));
    lower.push_str(password);
    lower.make_ascii_lowercase();
    if WHOLE.contains(lower.as_str()) || STEMS.contains(lower.as_str()) {
        return Some(Weakness::Common);
    }
    let ended = || is_stem_and_ending(&lower).then_some(Weakness::WordWithEnding);
    pattern(lower.as_bytes()).or_else(ended)
}

fn is_stem_and_ending(lower: &str) -> bool {
    let ended = ENDINGS
        .iter()
        .any(|ending| lower.strip_suffix(ending).is_some_and(|stem| STEMS.contains(stem)));
    ended || is_stem_and_year(lower)
}

fn is_stem_and_year(lower: &str) -> bool {
    let Some((word, year)) = lower.len().checked_sub(4).and_then(|at| lower.split_at_checked(at))
    else {
        return false;
    };
    year.parse().is_ok_and(|year| YEARS.contains(&year))
        && STEMS.contains(word.strip_suffix(['@', '#', '_', '-']).unwrap_or(word))
}

/// Finds a repeated unit of one to four bytes, or a part of one of [`SEQUENCES`].
fn pattern(lower: &[u8]) -> Option<Weakness> {
    if lower.len() < PATTERN_BYTES_MIN {
        return None;
    }
    let repeats = |unit: usize| lower.iter().zip(&lower[unit..]).all(|(one, next)| one == next);
    if (1..=4).any(repeats) {
        return Some(Weakness::Repeated);
    }
    let reversed: Zeroizing<Vec<u8>> = Zeroizing::new(lower.iter().rev().copied().collect());
    let typed = |text: &[u8]| {
        SEQUENCES.iter().any(|keys| memchr::memmem::find(keys.as_bytes(), text).is_some())
    };
    (typed(lower) || typed(&reversed)).then_some(Weakness::InOrder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_passwords_are_weak_in_any_case() {
        for known in [
            "password",
            "PASSWORD",
            "Password1",
            "password123",
            "12345678",
            "123456789",
            "1234567890",
            "qwertyuiop",
            "QwertyUiop",
            "11111111",
            "aaaaaaaaaaaa",
            "abcdefgh",
            "87654321",
            "iloveyou",
            "sunshine",
            "football",
            "1q2w3e4r",
            "1qaz2wsx",
            "zaq12wsx",
            "abcd1234",
            "abc12345",
            "trustno1",
            "welcome1",
            "Welcome@123",
            "admin@123",
            "India@123",
            "india123",
            "Sachin10",
            "letmein1",
            "Passw0rd",
            "p@ssw0rd",
            "P@ssword1",
            "Krishna@2024",
            "password2026",
            "asdfghjkl",
            "00000000",
            "12341234",
            "abcabcabc",
        ] {
            assert!(weakness(known).is_some(), "{known}");
        }
    }

    #[test]
    fn each_weak_password_has_its_own_kind_of_weakness() {
        for (password, expected) in [
            ("12345678", Weakness::Common),
            ("PassWord", Weakness::Common),
            ("sunshine", Weakness::Common),
            ("password1", Weakness::WordWithEnding),
            ("Krishna@2024", Weakness::WordWithEnding),
            ("dragon#1234", Weakness::WordWithEnding),
            ("zvzvzvzvzv", Weakness::Repeated),
            ("kqx7kqx7kqx7", Weakness::Repeated),
            (&"long".repeat(12), Weakness::Repeated),
            ("defghijklm", Weakness::InOrder),
            ("mnbvcxzlkj", Weakness::InOrder),
        ] {
            assert_eq!(weakness(password), Some(expected), "{password}");
        }
    }

    #[test]
    fn other_passwords_are_not_weak() {
        for other in [
            "correct horse battery staple",
            "h7#kQ2!vLx9",
            "tulip-cargo-9",
            "passwordisnotmine",
            "ünïcödé pässwörd",
            "नमस्ते दुनिया",
            "gandalfs-eagle",
            "1795000000123",
            "india-ocean-depth",
        ] {
            assert_eq!(weakness(other), None, "{other}");
        }
    }

    #[test]
    fn the_files_are_in_lower_case_and_without_repeats() {
        for (file, set, least) in [
            (include_str!("data/common_passwords.txt"), &WHOLE, 150),
            (include_str!("data/common_stems.txt"), &STEMS, 300),
        ] {
            assert!(set.len() >= least, "{}", set.len());
            assert_eq!(lines(file).count(), set.len(), "a line stands twice");
            for line in lines(file) {
                assert_eq!(line, line.trim().to_ascii_lowercase());
                assert!(line.len() <= COMMON_BYTES_MAX);
            }
        }
        assert!(lines(include_str!("data/common_passwords.txt")).all(|line| line.len() >= 8));
        // What the two files and the endings stand for together.
        assert!(STEMS.len() * (ENDINGS.len() + YEARS.len()) > 50_000);
    }
}
