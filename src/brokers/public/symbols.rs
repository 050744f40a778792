//! The public provider's names of instruments, by rule or by list. Pure.

use std::collections::HashMap;

use crate::base::{Exchange, Symbol};

/// Series that the provider lists without suffix: trade-to-trade, block deals, and trusts.
const SUFFIXES_STRIPPED: [&str; 5] = ["BE", "BZ", "BL", "IT", "RR"];

/// Government securities, gold bonds and treasury bills, which the provider does not list.
const SUFFIXES_ABSENT: [&str; 3] = ["GS", "GB", "TB"];

/// Indices beside those of the operator's list that the provider has with years of history, and its
/// names of them, as public code uses them. They are asked for like shares.
const INDICES_BESIDE: [(&str, &str); 5] = [
    ("NSE:INDIA VIX", "^INDIAVIX"),
    ("NSE:NIFTY NEXT 50", "^NSMIDCP"),
    ("NSE:NIFTY 100", "^CNX100"),
    ("NSE:NIFTY 200", "^CNX200"),
    ("NSE:NIFTY 500", "^CRSLDX"),
];

/// The rules, and the indices that follow none.
#[derive(Debug)]
pub(super) struct SymbolMap {
    indices: HashMap<Symbol, String>,
}

impl SymbolMap {
    /// `indices` has the provider's spelling by symbol. It is data, because spellings change, and
    /// goes before the ones known here.
    pub(super) fn new(indices: HashMap<Symbol, String>) -> Self {
        Self { indices }
    }

    /// Whether `symbol` is an index of the operator's list.
    pub(super) fn is_of_list(&self, symbol: &Symbol) -> bool {
        self.indices.contains_key(symbol)
    }

    /// Whether `symbol` is an index that the provider has.
    pub(super) fn is_index(&self, symbol: &Symbol) -> bool {
        self.index(symbol).is_some()
    }

    /// The provider's spelling of an index.
    fn index(&self, symbol: &Symbol) -> Option<&str> {
        let beside = || {
            INDICES_BESIDE
                .iter()
                .find(|(known, _)| *known == symbol.as_str())
        };
        let of_list = self.indices.get(symbol).map(String::as_str);
        of_list.or_else(|| beside().map(|(_, spelled)| *spelled))
    }

    /// The provider's spelling; `None` if it cannot have the instrument.
    pub(super) fn spelled(&self, symbol: &Symbol) -> Option<String> {
        if let Some(index) = self.index(symbol) {
            return Some(index.to_owned());
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
        assert!(map.is_of_list(&index));
        for (symbol, expected) in [
            ("NSE:NIFTY 50", Some("^NSEI")),
            ("NSE:NIFTY BANK", None),
            ("NSE:INDIA VIX", Some("^INDIAVIX")),
            ("NSE:NIFTY NEXT 50", Some("^NSMIDCP")),
            ("NSE:NIFTY MIDCAP 50", None),
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
