//! The list of instruments that exist. A client's symbol is checked against it before an upstream
//! is asked.
//!
//! Built by a warmer (background task) from broker A's daily list, or from the embedded one. Read
//! on the edge, where [`InstrumentList::contains`] is one hash look-up. Holds at most
//! [`INSTRUMENTS_MAX`].

use std::collections::HashSet;

use foldhash::fast::RandomState;
use jiff::civil::Date;

use super::search::{Named, Query, SearchIndex};
use crate::base::Symbol;

/// Most instruments held. Broker A's rows of both exchanges are about 25,000; with the sets'
/// overhead and the index for searches this many take under 16 MiB.
pub const INSTRUMENTS_MAX: usize = 60_000;

const EMBEDDED: &str = include_str!("data/instruments.csv");

/// Format name and version, at the beginning of the stored form.
const MAGIC: &str = "bhav-instruments-2";
const MAGIC_WITHOUT_NAMES: &str = "bhav-instruments-1";

/// Where a list comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Compiled in: large shares and the indices only, so an unlisted symbol may still exist.
    Embedded,
    /// Broker A's daily list: an unlisted symbol does not exist.
    BrokerA,
}

impl Origin {
    /// Name of the origin in health and in the stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::BrokerA => "broker_a",
        }
    }
}

/// Why a list was not accepted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InstrumentsError {
    #[error("more than {INSTRUMENTS_MAX} instruments")]
    TooMany,
    #[error("an empty list of instruments")]
    Empty,
    #[error("the stored list of instruments is damaged: {0}")]
    Damaged(&'static str),
}

/// The symbols that exist, as of a date.
#[derive(Debug, Clone)]
pub struct InstrumentList {
    symbols: HashSet<Symbol, RandomState>,
    search: SearchIndex,
    origin: Origin,
    as_of: Date,
}

impl InstrumentList {
    /// The list that is compiled in.
    pub fn embedded() -> Self {
        let rows = embedded_instruments()
            .into_iter()
            .map(|row| Named { symbol: row.symbol, name: row.name.into() });
        Self::from_rows(rows, Origin::Embedded, Date::constant(2026, 9, 30))
            .expect("the embedded list has rows and is far under the limit")
    }

    /// A list of instruments; duplicates count once. Sorts them, so it belongs on an OS thread.
    ///
    /// # Errors
    /// None at all, or more than [`INSTRUMENTS_MAX`].
    pub fn from_rows(
        rows: impl IntoIterator<Item = Named>,
        origin: Origin,
        as_of: Date,
    ) -> Result<Self, InstrumentsError> {
        let mut symbols = HashSet::with_hasher(RandomState::default());
        let mut unique = Vec::new();
        for row in rows {
            if symbols.insert(row.symbol.clone()) {
                unique.push(row);
            }
            if symbols.len() > INSTRUMENTS_MAX {
                return Err(InstrumentsError::TooMany);
            }
        }
        if symbols.is_empty() {
            return Err(InstrumentsError::Empty);
        }
        symbols.shrink_to_fit();
        Ok(Self { symbols, search: SearchIndex::new(unique), origin, as_of })
    }

    /// Whether `symbol`, whole as in `NSE:INFY`, is listed. Any thread, never blocks or allocates.
    pub fn contains(&self, symbol: &str) -> bool {
        self.symbols.contains(symbol)
    }

    /// The list's own copy of `symbol`, which can be cloned without allocating.
    pub fn find(&self, symbol: &str) -> Option<&Symbol> {
        self.symbols.get(symbol)
    }

    /// At most `max` instruments that fit the query. Any thread, for some hundred microseconds at
    /// most.
    pub fn search<'a>(&'a self, query: &'a Query, max: usize) -> Vec<&'a Named> {
        self.search.find(query, max)
    }

    /// The name of `symbol`; may be empty.
    pub fn name_of(&self, symbol: &Symbol) -> Option<&str> {
        self.search.row(symbol).map(|row| &*row.name)
    }

    /// Number of instruments.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Always false: an empty list is not accepted.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Where the list comes from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The day the list describes.
    pub fn as_of(&self) -> Date {
        self.as_of
    }

    /// The stored form: one line with origin, date and count, then an instrument a line, symbol
    /// and name with a tabulator between them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let head =
            format!("{MAGIC} {} {} {}\n", self.origin.as_str(), self.as_of, self.symbols.len());
        let mut bytes = head.into_bytes();
        for Named { symbol, name } in self.search.rows() {
            bytes.extend_from_slice(symbol.as_str().as_bytes());
            bytes.push(b'\t');
            // A name with a control character would be two lines.
            let plain = name.chars().filter(|letter| !letter.is_control());
            bytes.extend_from_slice(plain.collect::<String>().as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }

    /// Reads the stored form, also that of before names were kept.
    ///
    /// # Errors
    /// The bytes differ from what [`to_bytes`](Self::to_bytes) writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InstrumentsError> {
        let damaged = InstrumentsError::Damaged;
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("not text"))?;
        let (head, body) = text.split_once('\n').ok_or(damaged("no head"))?;
        let words: Vec<&str> = head.split(' ').collect();
        let [MAGIC | MAGIC_WITHOUT_NAMES, origin, as_of, count] = words[..] else {
            return Err(damaged("head"));
        };
        let origin = [Origin::Embedded, Origin::BrokerA]
            .into_iter()
            .find(|known| known.as_str() == origin)
            .ok_or(damaged("origin"))?;
        let as_of: Date = as_of.parse().map_err(|_| damaged("date"))?;
        let count: usize = count.parse().map_err(|_| damaged("count"))?;
        if count > INSTRUMENTS_MAX {
            return Err(InstrumentsError::TooMany);
        }
        let mut rows = Vec::with_capacity(count);
        for line in body.lines() {
            let (symbol, name) = line.split_once('\t').unwrap_or((line, ""));
            let symbol = Symbol::parse(symbol).ok_or(damaged("symbol"))?;
            rows.push(Named { symbol, name: name.into() });
            if rows.len() > count {
                return Err(damaged("more symbols than counted"));
            }
        }
        let list = Self::from_rows(rows, origin, as_of)?;
        if list.len() == count { Ok(list) } else { Err(damaged("fewer symbols than counted")) }
    }
}

/// What an instrument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Share,
    Index,
}

/// A row of the embedded list. Empty cells are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instrument {
    pub symbol: Symbol,
    pub kind: Kind,
    pub name: String,
    pub industry: Option<String>,
    pub isin: Option<String>,
    pub broker_a_token: Option<u32>,
    pub broker_b_code: Option<String>,
    /// The public provider's symbol, of indices only.
    pub public: Option<String>,
}

/// The rows of the embedded list, in its order: the NIFTY 50 by ticker first.
pub fn embedded_instruments() -> Vec<Instrument> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(EMBEDDED.as_bytes());
    reader
        .records()
        .map(|record| {
            let record = record.expect("the embedded instruments are CSV: a test reads them");
            instrument(&record)
                .expect("the embedded instruments are well-formed: a test reads them")
        })
        .collect()
}

fn instrument(record: &csv::StringRecord) -> Option<Instrument> {
    let filled = |column: usize| record.get(column).filter(|cell| !cell.is_empty());
    let token = match filled(5) {
        Some(digits) => Some(digits.parse().ok()?),
        None => None,
    };
    Some(Instrument {
        symbol: Symbol::parse(record.get(0)?)?,
        kind: match record.get(1)? {
            "share" => Kind::Share,
            "index" => Kind::Index,
            _ => return None,
        },
        name: filled(2)?.into(),
        industry: filled(3).map(Into::into),
        isin: filled(4).map(Into::into),
        broker_a_token: token,
        broker_b_code: filled(6).map(Into::into),
        public: filled(7).map(Into::into),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::IndexList;

    #[test]
    fn the_embedded_list_has_the_nifty_50_and_every_index() {
        let rows = embedded_instruments();
        let shares: Vec<_> = rows.iter().filter(|row| row.kind == Kind::Share).collect();
        assert_eq!(shares.len(), 51);
        assert!(shares.iter().all(|row| row.isin.is_some() && row.broker_a_token.is_some()));
        let list = InstrumentList::embedded();
        assert_eq!(list.len(), rows.len());
        for symbol in ["NSE:M&M", "NSE:BAJAJ-AUTO", "NSE:BSE", "NSE:WIPRO", "NSE:NIFTY 50"] {
            assert!(list.contains(symbol), "{symbol}");
        }
        assert!(!list.contains("NSE:TATAMOTORS") && !list.contains("BSE:INFY"));
        for index in IndexList::embedded().all() {
            let row = rows.iter().find(|row| row.symbol == index.symbol).unwrap();
            assert_eq!((row.kind, &row.public), (Kind::Index, &index.public), "{}", index.symbol);
        }
        let infy = rows.iter().find(|row| row.symbol.as_str() == "NSE:INFY").unwrap();
        assert_eq!(
            (infy.broker_a_token, infy.broker_b_code.as_deref()),
            (Some(408_065), Some("INFTEC"))
        );
    }

    /// The check digit of an ISIN: letters as two digits, every second digit doubled from the
    /// right.
    fn isin_is_sound(isin: &str) -> bool {
        let digits: Vec<u32> = isin
            .chars()
            .flat_map(|c| {
                let value = c.to_digit(36).unwrap();
                if value > 9 { vec![value / 10, value % 10] } else { vec![value] }
            })
            .collect();
        let sum: u32 = digits
            .iter()
            .rev()
            .enumerate()
            .map(
                |(place, digit)| {
                    if place % 2 == 1 { digit * 2 / 10 + digit * 2 % 10 } else { *digit }
                },
            )
            .sum();
        isin.len() == 12 && sum.is_multiple_of(10)
    }

    #[test]
    fn every_isin_passes_its_check_digit() {
        assert!(!isin_is_sound("INE009A01022"));
        for row in embedded_instruments() {
            if let Some(isin) = &row.isin {
                assert!(isin_is_sound(isin), "{} {isin}", row.symbol);
            }
        }
    }

    fn rows(count: usize) -> impl Iterator<Item = Named> {
        (0..count).map(|n| Named {
            symbol: Symbol::parse(&format!("NSE:S{n}")).unwrap(),
            name: format!("COMPANY {n}").into(),
        })
    }

    fn today() -> Date {
        Date::constant(2026, 11, 20)
    }

    #[test]
    fn a_list_over_the_limit_is_refused() {
        let full = InstrumentList::from_rows(rows(INSTRUMENTS_MAX), Origin::BrokerA, today());
        assert_eq!(full.unwrap().len(), INSTRUMENTS_MAX);
        for (count, expected) in
            [(INSTRUMENTS_MAX + 1, InstrumentsError::TooMany), (0, InstrumentsError::Empty)]
        {
            let refused = InstrumentList::from_rows(rows(count), Origin::BrokerA, today());
            assert_eq!(refused.unwrap_err(), expected);
        }
    }

    #[test]
    fn a_stored_list_is_read_back_equal() {
        let list = InstrumentList::from_rows(rows(30), Origin::BrokerA, today()).unwrap();
        let read = InstrumentList::from_bytes(&list.to_bytes()).unwrap();
        assert_eq!((read.origin(), read.as_of(), read.len()), (Origin::BrokerA, today(), 30));
        assert_eq!(read.to_bytes(), list.to_bytes());
        assert!(read.contains("NSE:S29") && !read.contains("NSE:S30"));
        let query = Query::parse("company 7").unwrap();
        let found = read.search(&query, 20);
        assert_eq!(found.iter().map(|row| row.symbol.as_str()).collect::<Vec<_>>(), ["NSE:S7"]);
    }

    #[test]
    fn a_stored_list_without_names_is_read() {
        let bytes = b"bhav-instruments-1 broker_a 2026-11-20 2\nNSE:INFY\nNSE:M&M\n";
        let list = InstrumentList::from_bytes(bytes).unwrap();
        assert!(list.len() == 2 && list.contains("NSE:M&M"));
        assert_eq!(list.search(&Query::parse("inf").unwrap(), 20).len(), 1);
    }

    #[test]
    fn a_damaged_stored_list_is_refused() {
        let good = String::from_utf8(
            InstrumentList::from_rows(rows(3), Origin::BrokerA, today()).unwrap().to_bytes(),
        )
        .unwrap();
        for bad in [
            String::new(),
            good.replace("-2 ", "-3 "),
            good.replace("broker_a", "broker_c"),
            good.replace("2026-11-20", "2026-11-31"),
            good.replace("NSE:S2\tCOMPANY 2\n", ""),
            good.replace("NSE:S2", "nse:s2"),
            good.clone() + "NSE:S9\n",
            good.replace(" 3\n", " 99999999\n"),
        ] {
            assert!(InstrumentList::from_bytes(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(InstrumentList::from_bytes(&[0xff, b'\n']).is_err());
    }
}
