//! An instrument's public name: `<EXCHANGE>:<TICKER>`, as broker A spells it.

use std::fmt;
use std::sync::Arc;

use crate::base::words;

/// Longest symbol accepted, including exchange and colon. The longest in broker A's instrument list
/// is under 40.
pub(crate) const SYMBOL_BYTES_MAX: usize = 48;

words! {
    /// The two exchanges whose instruments are quoted.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum Exchange {
        /// National Stock Exchange.
        Nse = "NSE",
        /// BSE.
        Bse = "BSE",
    }
}

/// A well-formed symbol, for example `NSE:M&M` or `NSE:NIFTY 50`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(Arc<str>);

impl Symbol {
    /// Parses `text`; `None` if it is not well-formed (see [`well_formed`]).
    pub fn parse(text: &str) -> Option<Self> {
        well_formed(text.as_bytes()).then(|| Self(text.into()))
    }

    /// The whole name, `NSE:INFY`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The exchange before the colon.
    pub(crate) fn exchange(&self) -> Exchange {
        if self.0.starts_with("BSE") {
            Exchange::Bse
        } else {
            Exchange::Nse
        }
    }

    /// The ticker after the colon, `INFY`.
    pub(crate) fn ticker(&self) -> &str {
        &self.0[4..]
    }
}

impl std::borrow::Borrow<str> for Symbol {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether `text` is `NSE:` or `BSE:` and a ticker of upper-case letters, digits, `&`, `-`, `.`,
/// `_`, `*`, `$` and inner spaces. None of these needs escaping in JSON, so a symbol can be copied
/// into a response as it is.
pub(crate) fn well_formed(text: &[u8]) -> bool {
    let Some(ticker) = text
        .strip_prefix(b"NSE:")
        .or_else(|| text.strip_prefix(b"BSE:"))
    else {
        return false;
    };
    let (Some(first), Some(last)) = (ticker.first(), ticker.last()) else {
        return false;
    };
    text.len() <= SYMBOL_BYTES_MAX
        && *first != b' '
        && *last != b' '
        && ticker.iter().all(|byte| {
            byte.is_ascii_uppercase()
                || byte.is_ascii_digit()
                || matches!(byte, b'&' | b'-' | b'.' | b'_' | b'*' | b'$' | b' ')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_as_the_exchanges_write_them_are_accepted() {
        for good in [
            "NSE:INFY",
            "NSE:M&M",
            "NSE:NIFTY 50",
            "BSE:SENSEX",
            "NSE:BAJAJ-AUTO",
        ] {
            assert!(well_formed(good.as_bytes()), "{good}");
        }
        let symbol = Symbol::parse("BSE:SENSEX").unwrap();
        assert_eq!((symbol.exchange(), symbol.ticker()), (Exchange::Bse, "SENSEX"));
    }

    #[test]
    fn symbols_that_are_malformed_are_refused() {
        let long = format!("NSE:{}", "A".repeat(SYMBOL_BYTES_MAX));
        for bad in [
            "", "NSE", "NSE:", "nse:INFY", "NSE:infy", "NFO:X", "NSE: X", "NSE:X ", "NSE:\"", &long,
        ] {
            assert!(!well_formed(bad.as_bytes()), "{bad}");
        }
    }
}
