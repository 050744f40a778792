//! The universe: the shares whose daily candles are stored and searched for signals.
//!
//! Read on the main thread, at start and at each reload. A list does not change, so any thread may
//! read it. It is kept small because every symbol costs calls to slow upstreams each day.

use std::collections::HashSet;
use std::path::Path;

use crate::base::Symbol;
use crate::market::data_file::{DataError, Faults, operators};
use crate::market::universe_entry;

/// Most symbols. At the public provider's limit of four calls a minute this many take two hours.
pub(crate) const SYMBOLS_MAX: usize = 500;

/// Column heading that the first line of a CSV file may have.
pub(super) const HEADING: &str = "symbol";

pub(super) const EMBEDDED_UNIVERSE: &str = include_str!("data/nifty50.txt");

/// The shares, in the order of their file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Universe {
    symbols: Vec<Symbol>,
}

impl Universe {
    /// The list that is compiled in: the NIFTY 50.
    pub fn embedded() -> Self {
        Self::parse(EMBEDDED_UNIVERSE, "the embedded universe")
            .expect("the embedded universe has no faults: a test reads it")
    }

    /// The operator's list in place of the embedded one.
    ///
    /// # Errors
    /// The file cannot be read, or has faults: all of them, each with its line.
    pub(crate) fn load(operator_file: Option<&Path>) -> Result<Self, DataError> {
        operators(operator_file, Self::embedded, Self::parse)
    }

    /// Reads a list from text: one `EXCHANGE:TICKER` a line, or CSV with the symbol in its first
    /// column. `#` begins a comment. `origin` is the name of the text in faults.
    ///
    /// # Errors
    /// The text has faults: all of them, each with its line.
    pub(crate) fn parse(text: &str, origin: &str) -> Result<Self, DataError> {
        let mut faults = Faults::of(text);
        let mut symbols: Vec<Symbol> = Vec::new();
        let mut seen = HashSet::new();
        let mut heading = true;
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let at = offset;
            offset += line.len();
            let line = line.trim_start_matches('\u{feff}');
            let plain = line.split('#').next().unwrap_or_default();
            let mut cells = plain.split(',').map(|cell| cell.trim().trim_matches('"'));
            let cell = cells.next().unwrap_or_default();
            let is_heading = std::mem::take(&mut heading) && cell.eq_ignore_ascii_case(HEADING);
            if plain.trim().is_empty() || is_heading {
                heading |= plain.trim().is_empty();
                continue;
            }
            let symbol = match universe_entry::read(cell) {
                Ok(symbol) => symbol,
                Err(why) => {
                    faults.add(at, why);
                    continue;
                }
            };
            if let Some(other) = cells.find_map(Symbol::parse) {
                faults.add(at, format!("{other} is not read: write one symbol a line"));
            } else if !seen.insert(symbol.clone()) {
                faults.add(at, format!("{symbol} comes twice"));
            } else if symbols.len() == SYMBOLS_MAX {
                faults.add(at, format!("more than {SYMBOLS_MAX} symbols: drop from here on"));
                break;
            } else {
                symbols.push(symbol);
            }
        }
        if symbols.is_empty() {
            faults.add(0, "no symbol in it");
        }
        faults.into_result(origin, Self { symbols })
    }

    /// The symbols, each once, in the order of the file.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::instruments::{Kind, embedded_instruments};

    fn names(text: &str) -> Vec<String> {
        let universe = Universe::parse(text, "test").unwrap();
        universe.symbols().iter().map(ToString::to_string).collect()
    }

    fn faults(text: &str) -> Vec<(usize, String)> {
        let Err(DataError::Faulty { faults, .. }) = Universe::parse(text, "test") else {
            panic!("no fault in {text}")
        };
        faults
            .into_iter()
            .map(|fault| (fault.line, fault.message))
            .collect()
    }

    #[test]
    fn the_embedded_universe_is_the_nifty_50_with_broker_a_tokens() {
        let universe = Universe::load(None).unwrap();
        assert_eq!(universe.symbols().len(), 50);
        let rows = embedded_instruments();
        for symbol in universe.symbols() {
            let row = rows.iter().find(|row| row.symbol == *symbol).unwrap();
            assert!(row.kind == Kind::Share && row.broker_a_token.is_some(), "{symbol}");
        }
        assert!(
            !universe
                .symbols()
                .iter()
                .any(|symbol| symbol.ticker() == "WIPRO")
        );
    }

    #[test]
    fn symbols_are_read_from_lines_and_csv_with_comments() {
        assert_eq!(names("NSE:INFY\n\n# all\nNSE:M&M # cars\r\n"), ["NSE:INFY", "NSE:M&M"]);
        let csv = "\u{feff}# list\nSymbol,Name\n\"NSE:INFY\",Infosys\nBSE:SBIN,\"State, Bank\"";
        assert_eq!(names(csv), ["NSE:INFY", "BSE:SBIN"]);
        assert_eq!(Universe::parse(EMBEDDED_UNIVERSE, "").unwrap(), Universe::embedded());
    }

    #[test]
    fn faults_name_their_lines() {
        let found = faults("NSE:INFY\nINFY\nNSE:NIFTY 50\nNSE:INFY,x\nsymbol\n");
        let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 3, 4, 5]);
        assert!(found[1].1.contains("index") && found[2].1.contains("twice"), "{found:?}");
        assert_eq!(faults("# nothing\n"), [(1, "no symbol in it".to_owned())]);
    }

    #[test]
    fn a_universe_over_the_limit_is_refused() {
        let lines = |count: usize| {
            (0..count)
                .map(|n| format!("NSE:S{n}\n"))
                .collect::<String>()
        };
        assert_eq!(names(&lines(SYMBOLS_MAX)).len(), SYMBOLS_MAX);
        let found = faults(&lines(SYMBOLS_MAX + 5));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, SYMBOLS_MAX + 1);
    }

    #[test]
    fn an_error_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("universe.txt");
        std::fs::write(&path, "NSE:INFY\nnse:tcs\n").unwrap();
        let error = Universe::load(Some(&path)).unwrap_err().to_string();
        assert!(error.contains("universe.txt") && error.contains('2'), "{error}");
        assert!(Universe::load(Some(dir.path())).is_err());
    }
}
