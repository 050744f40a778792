//! The number by which a security is known everywhere.

use std::fmt;

/// The twelve characters of ISO 6166.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Isin([u8; 12]);

impl Isin {
    /// Reads `INE002A01018`: two letters, nine letters or digits and a digit, in capitals.
    ///
    /// The check digit is not tested: a file's ISIN is taken as the broker wrote it, and a wrong
    /// one meets no holding, so that nothing of it is proved.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 12] = text.as_bytes().try_into().ok()?;
        let country = bytes[..2].iter().all(u8::is_ascii_uppercase);
        let code = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        let well_formed = country && bytes[2..11].iter().all(code) && bytes[11].is_ascii_digit();
        well_formed.then_some(Self(bytes))
    }

    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Isin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
