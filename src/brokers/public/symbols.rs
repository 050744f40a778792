//! Exchange symbols in the provider's spelling. Pure.

use std::collections::HashMap;

use crate::base::{Exchange, Symbol};

/// Series that the provider lists without suffix: trade-to-trade, block deals, and trusts.
const SUFFIXES_STRIPPED: [&str; 5] = ["BE", "BZ", "BL", "IT", "RR"];

/// Government securities, gold bonds and treasury bills, which it does not list.
const SUFFIXES_ABSENT: [&str; 3] = ["GS", "GB", "TB"];

/// The rules, and the indices that follow none.
#[derive(Debug)]
pub struct SymbolMap {
    indices: HashMap<Symbol, String>,
}

impl SymbolMap {
    /// `indices`: provider's spelling by symbol, which is data and changes.
    pub fn new(indices: HashMap<Symbol, String>) -> Self {
        Self { indices }
    }

    /// Whether `symbol` is a mapped index.
    pub fn is_index(&self, symbol: &Symbol) -> bool {
        self.indices.contains_key(symbol)
    }

    /// The provider's spelling; `None` if it cannot have the instrument.
    pub fn spelled(&self, symbol: &Symbol) -> Option<String> {
        if let Some(index) = self.indices.get(symbol) {
            return Some(index.clone());
        }
        let ticker = symbol.ticker();
        if ticker.contains(' ') {
            return None; // an index that is not mapped
        }
        match symbol.exchange() {
            Exchange::Bse => Some(format!("{ticker}.BO")),
            Exchange::Nse => Some(format!("{}.NS", without_series(ticker)?)),
        }
    }
}

/// The ticker without a series suffix that the provider drops. `-SM` and `-ST` (small companies)
/// stay, and so do hyphens that belong to the name, as in `BAJAJ-AUTO`. `None` for bonds.
fn without_series(ticker: &str) -> Option<&str> {
    match ticker.rsplit_once('-') {
        Some((stem, suffix)) if !stem.is_empty() => {
            if SUFFIXES_ABSENT.contains(&suffix) || is_debenture(suffix) {
                None
            } else if SUFFIXES_STRIPPED.contains(&suffix) {
                Some(stem)
            } else {
                Some(ticker)
            }
        }
        _ => Some(ticker),
    }
}

/// Debenture series: `N1` to `NZ`, then `Y` and `Z` with a digit or letter.
fn is_debenture(suffix: &str) -> bool {
    matches!(suffix.as_bytes(), [b'N' | b'Y' | b'Z', b'0'..=b'9' | b'A'..=b'Z'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spells_by_the_rules() {
        let index = Symbol::parse("NSE:NIFTY 50").unwrap();
        let map = SymbolMap::new(HashMap::from([(index.clone(), "^NSEI".to_owned())]));
        assert!(map.is_index(&index));
        for (symbol, expected) in [
            ("NSE:NIFTY 50", Some("^NSEI")),
            ("NSE:NIFTY BANK", None),
            ("NSE:INFY", Some("INFY.NS")),
            ("BSE:SBIN", Some("SBIN.BO")),
            ("BSE:500325", Some("500325.BO")),
            ("NSE:M&M", Some("M&M.NS")),
            ("NSE:BAJAJ-AUTO", Some("BAJAJ-AUTO.NS")),
            ("NSE:NAM-INDIA", Some("NAM-INDIA.NS")),
            ("NSE:CENTRALBK-BE", Some("CENTRALBK.NS")),
            ("NSE:XYZ-BZ", Some("XYZ.NS")),
            ("NSE:EMBASSY-RR", Some("EMBASSY.NS")),
            ("NSE:XYZ-SM", Some("XYZ-SM.NS")),
            ("NSE:XYZ-ST", Some("XYZ-ST.NS")),
            ("NSE:754GS2036-GS", None),
            ("NSE:SGBAUG28V-GB", None),
            ("NSE:XYZ-N1", None),
            ("NSE:-BE", Some("-BE.NS")),
        ] {
            let symbol = Symbol::parse(symbol).unwrap();
            assert_eq!(map.spelled(&symbol).as_deref(), expected, "{symbol}");
        }
    }
}
