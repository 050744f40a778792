//! Enums whose variants have words. One declaration gives the variants, their words and the list of
//! all, so no list of words can lack a variant.
//!
//! Documents, metrics, log lines and the command line write the same word.

use serde::{Deserialize, Deserializer};

/// An enum made by `words!`.
pub(crate) trait Words: Copy + Eq + 'static {
    /// Every variant, in the order of the declaration.
    const EVERY: &'static [Self];

    /// The word of this variant.
    fn word(self) -> &'static str;

    /// The position of this variant among all.
    fn place(self) -> usize {
        Self::EVERY
            .iter()
            .position(|variant| *variant == self)
            .unwrap_or_default()
    }

    /// The variant of a word.
    fn parse(word: &str) -> Option<Self> {
        Self::EVERY
            .iter()
            .copied()
            .find(|variant| variant.word() == word)
    }
}

/// Reads a word. The default stands for words that only another version of the program knows.
pub(crate) fn read<'de, W: Words + Default, D: Deserializer<'de>>(from: D) -> Result<W, D::Error> {
    let word = String::deserialize(from)?;
    Ok(W::parse(&word).unwrap_or_default())
}

/// Declares enums whose variants have words. With `else` an enum can also be read; the variant
/// named there stands for unknown words.
macro_rules! words {
    ($(
        $(#[$meta:meta])*
        $vis:vis enum $name:ident $(else $fallback:ident)? {
            $($(#[$doc:meta])* $variant:ident = $word:literal,)+
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Every variant.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word in documents, metrics and log lines.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl $crate::base::words::Words for $name {
            const EVERY: &'static [Self] = &Self::ALL;

            fn word(self) -> &'static str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        $(
            impl Default for $name {
                fn default() -> Self {
                    Self::$fallback
                }
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    $crate::base::words::read(from)
                }
            }
        )?
    )+};
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    use super::*;

    words! {
        enum Light else Off {
            Off = "off",
            HalfOn = "half_on",
        }
    }

    #[test]
    fn a_word_is_written_and_read_and_an_unknown_one_is_the_fallback() {
        assert_eq!(sonic_rs::to_string(&Light::ALL).unwrap(), r#"["off","half_on"]"#);
        let read: Vec<Light> = sonic_rs::from_str(r#"["half_on","dimmed"]"#).unwrap();
        assert_eq!(read, [Light::HalfOn, Light::Off]);
        assert_eq!((Light::parse("dimmed"), Light::HalfOn.to_string()), (None, "half_on".into()));
    }
}
