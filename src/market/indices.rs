//! The indices and sectors that the snapshot shows, and their names at each source.
//!
//! Read on the main thread at start and not changed afterwards. The list is limited to one batch
//! call to the public provider.

use std::path::{Path, PathBuf};

use crate::base::{Symbol, settings};
use crate::market::data_file::{DataError, Faults, Row, document, operators};

/// Most indices in a list: the size of one batch call to the public provider.
pub(crate) const INDICES_MAX: usize = 20;

/// Longest symbol of the public provider.
pub(crate) const PUBLIC_SYMBOL_BYTES_MAX: usize = 40;

const EMBEDDED: &str = include_str!("data/indices.toml");

/// One index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Name that people see. It has no character that JSON would escape.
    pub name: String,
    /// Broker A's name of the index. The API uses the same one.
    pub symbol: Symbol,
    /// The public provider's name of the index; `None` if the provider does not have it.
    pub public: Option<String>,
}

/// The three indices and the sectors, in the order in which they are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexList {
    /// Large caps of NSE (NIFTY 50): `index1` in the snapshot.
    pub primary: Index,
    /// Banks (NIFTY BANK): `bankindex` in the snapshot.
    pub bank: Index,
    /// Large caps of BSE (SENSEX): `index2` in the snapshot.
    pub second: Index,
    pub sectors: Vec<Index>,
}

impl IndexList {
    /// The list that is compiled in.
    pub fn embedded() -> Self {
        Self::parse(EMBEDDED, "the embedded index list")
            .expect("the embedded index list has no faults: a test reads it")
    }

    /// The operator's list in place of the embedded one.
    ///
    /// # Errors
    /// The file cannot be read, or has faults: all of them, each with its line.
    pub(crate) fn load(operator_file: Option<&Path>) -> Result<Self, DataError> {
        operators(operator_file, Self::embedded, Self::parse)
    }

    /// Reads a list from text. `origin` is the name of the text in faults.
    ///
    /// # Errors
    /// The text has faults: all of them, each with its line.
    pub(crate) fn parse(text: &str, origin: &str) -> Result<Self, DataError> {
        let mut faults = Faults::of(text);
        let table = document(text, &mut faults);
        let root = Row::whole(&table);
        root.expect_only(&["index"], &mut faults);
        let rows = root.rows("index", &mut faults);
        if rows.len() > INDICES_MAX {
            let offset = rows[INDICES_MAX].offset;
            faults.add(offset, format!("more than {INDICES_MAX} indices: drop from here on"));
        }
        let mut lead: [Option<Index>; 3] = [None, None, None];
        let mut sectors: Vec<Index> = Vec::new();
        for row in rows {
            let Some((role, index)) = read_index(&row, &mut faults) else {
                continue;
            };
            let known = lead.iter().flatten().chain(&sectors);
            if known.into_iter().any(|other| other.symbol == index.symbol) {
                faults.add(row.offset, format!("{} is listed twice: remove one", index.symbol));
            }
            let Some(position) = LEADS.iter().position(|lead| *lead == role) else {
                sectors.push(index);
                continue;
            };
            if lead[position].replace(index).is_some() {
                faults.add(row.offset, format!("a second index with role {role}: remove one"));
            }
        }
        for (role, index) in LEADS.iter().zip(&lead) {
            if index.is_none() {
                faults.add(0, format!("no valid index has role = \"{role}\": add one"));
            }
        }
        let [primary, bank, second] = lead;
        let list = primary
            .zip(bank)
            .zip(second)
            .map(|((primary, bank), second)| Self {
                primary,
                bank,
                second,
                sectors,
            });
        // A missing lead index is a fault, so a text without faults has all three.
        faults
            .into_result(origin, list)
            .map(|list| list.expect("every lead is there"))
    }

    /// Every index, most important first. If a source allows only a few symbols a call, the first
    /// ones are asked for.
    pub fn all(&self) -> impl Iterator<Item = &Index> {
        self.leads().into_iter().chain(&self.sectors)
    }

    /// Whether `symbol` is an index of this list.
    pub(crate) fn contains(&self, symbol: &Symbol) -> bool {
        self.all().any(|index| index.symbol == *symbol)
    }

    /// The three lead indices. Without a price for each of them there is no snapshot.
    pub(crate) fn leads(&self) -> [&Index; 3] {
        [&self.primary, &self.bank, &self.second]
    }

    /// The public provider's symbol for `symbol`, if it is an index of this list.
    #[cfg(test)]
    pub(crate) fn public_symbol(&self, symbol: &str) -> Option<&str> {
        self.all()
            .find(|index| index.symbol.as_str() == symbol)?
            .public
            .as_deref()
    }
}

const LEADS: [&str; 3] = ["primary", "bank", "second"];

fn read_index<'a>(row: &Row<'a, '_>, faults: &mut Faults<'_>) -> Option<(&'a str, Index)> {
    row.expect_only(&["role", "name", "symbol", "public"], faults);
    let role = row.required("role", faults);
    let name = row.required("name", faults);
    let spelled = row.required("symbol", faults);
    let public = row.text("public", faults);
    if role.is_some_and(|role| role != "sector" && !LEADS.contains(&role)) {
        faults.add(row.offset_of("role"), "`role` is one of primary, bank, second, sector");
        return None;
    }
    let symbol = spelled.and_then(Symbol::parse);
    if spelled.is_some() && symbol.is_none() {
        faults.add(
            row.offset_of("symbol"),
            "`symbol` is not an instrument: write it like \"NSE:NIFTY 50\"",
        );
    }
    if public.is_some_and(|public| !public_well_formed(public)) {
        faults.add(
            row.offset_of("public"),
            format!("`public` takes 1 to {PUBLIC_SYMBOL_BYTES_MAX} of A-Z 0-9 ^ . _ & = -"),
        );
    }
    let index = Index {
        name: name?.into(),
        symbol: symbol?,
        public: public.map(Into::into),
    };
    Some((role?, index))
}

/// Whether the name is safe in a URL's query once it is percent-encoded.
fn public_well_formed(text: &str) -> bool {
    text.len() <= PUBLIC_SYMBOL_BYTES_MAX
        && text.bytes().all(|byte| {
            byte.is_ascii_uppercase()
                || byte.is_ascii_digit()
                || matches!(byte, b'^' | b'.' | b'_' | b'&' | b'=' | b'-')
        })
}

// ---- Settings
//
// Settings of the market files.

settings! {
    /// Files that replace or extend the embedded market data, and of what candles are stored.
    pub struct MarketSettings {
        /// The operator's calendar entries, which override the embedded ones
        /// (`BHAV_CALENDAR_FILE`).
        pub calendar_file: Option<PathBuf> = None,
        /// Replaces the embedded index and sector list (`BHAV_INDICES_FILE`).
        pub indices_file: Option<PathBuf> = None,
        /// Replaces the embedded list of shares that signals are made of (`BHAV_UNIVERSE_FILE`).
        pub universe_file: Option<PathBuf> = None,
        /// Replaces the embedded list of companies' sectors (`BHAV_SECTORS_FILE`).
        pub sectors_file: Option<PathBuf> = None,
        /// The highest prices of 31 January 2018, for the gains of older shares
        /// (`BHAV_FMV_FILE`).
        pub fmv_file: Option<PathBuf> = None,
        /// Most symbols beyond the universe whose candles are stored, for charts: the indices
        /// first, then what users hold. As many as the largest list has.
        pub candles_beyond_max: usize = 500,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_list_fits_one_public_batch() {
        let list = IndexList::embedded();
        assert_eq!(list.primary.symbol.as_str(), "NSE:NIFTY 50");
        assert_eq!(list.bank.symbol.as_str(), "NSE:NIFTY BANK");
        assert_eq!(list.second.symbol.as_str(), "BSE:SENSEX");
        assert_eq!(list.sectors.len(), 12);
        assert_eq!(list.sectors[0].symbol.as_str(), "NSE:NIFTY IT");
        let with_public = list.all().filter(|index| index.public.is_some()).count();
        assert_eq!(with_public, 15);
        assert!(with_public <= INDICES_MAX);
        assert_eq!(list.public_symbol("NSE:NIFTY 50"), Some("^NSEI"));
        assert_eq!(list.public_symbol("NSE:INFY"), None);
    }

    fn entry(role: &str, symbol: &str) -> String {
        format!("[[index]]\nrole = \"{role}\"\nname = \"n\"\nsymbol = \"{symbol}\"\n")
    }

    fn leads() -> String {
        entry("primary", "NSE:A") + &entry("bank", "NSE:B") + &entry("second", "BSE:C")
    }

    fn fault_lines(text: &str) -> Vec<usize> {
        match IndexList::parse(text, "mine.toml") {
            Err(DataError::Faulty { faults, .. }) => faults.iter().map(|f| f.line).collect(),
            other => panic!("no faults: {other:?}"),
        }
    }

    #[test]
    fn an_operators_list_replaces_the_embedded_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("indices.toml");
        std::fs::write(&path, leads() + &entry("sector", "NSE:NIFTY CPSE")).unwrap();
        let list = IndexList::load(Some(&path)).unwrap();
        let symbols: Vec<_> = list.all().map(|index| index.symbol.as_str()).collect();
        assert_eq!(symbols, ["NSE:A", "NSE:B", "BSE:C", "NSE:NIFTY CPSE"]);
        assert_eq!(list.sectors[0].public, None);
    }

    #[test]
    fn all_faults_are_reported() {
        assert_eq!(fault_lines(""), [1, 1, 1]);
        assert_eq!(fault_lines(&(leads() + &entry("bank", "NSE:D"))), [13]);
        assert_eq!(fault_lines(&(leads() + &entry("sector", "NSE:A"))), [13]);
        assert_eq!(fault_lines(&(leads() + &entry("fund", "NSE:D"))), [14]);
        assert_eq!(fault_lines(&(leads() + &entry("sector", "nifty"))), [16]);
        let public = entry("sector", "NSE:D") + "public = \"a/b\"\ncolour = \"red\"\n";
        assert_eq!(fault_lines(&(leads() + &public)), [17, 18]);
        let many: String = (3..=INDICES_MAX)
            .map(|n| entry("sector", &format!("NSE:S{n}")))
            .collect();
        assert_eq!(fault_lines(&(leads() + &many)), [INDICES_MAX * 4 + 1]);
    }
}
