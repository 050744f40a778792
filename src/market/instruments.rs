//! The list of instruments that exist. A client's symbol is checked against it before an upstream
//! is asked.
//!
//! Built by a warmer (background task) from broker A's daily list, or from the embedded one. Read
//! on the edge, where [`InstrumentList::contains`] is one hash look-up. Holds at most
//! [`INSTRUMENTS_MAX`].

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use jiff::civil::Date;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::base::{Exchange, Symbol, Words, words};
use crate::market::derivatives::{Derivatives, Underlyings};
use crate::market::search::{Named, Query, SearchIndex};

/// Most instruments held. Broker A's rows of both exchanges are about 25,000; with the sets'
/// overhead and the index for searches this many take under 16 MiB.
pub(crate) const INSTRUMENTS_MAX: usize = 60_000;

const EMBEDDED: &str = include_str!("data/instruments.csv");

/// The compiled-in shares all have derivatives, as members of the NIFTY 50 must.
static COMPILED_IN: LazyLock<Underlyings> = LazyLock::new(|| {
    let shares = embedded_instruments()
        .into_iter()
        .filter(|row| row.kind == Kind::Share);
    Underlyings::compiled_in(shares.map(|row| row.symbol.ticker().into()))
});

/// Date of the index provider's files in the embedded list.
pub(super) const EMBEDDED_AS_OF: Date = Date::constant(2026, 9, 30);

/// Format name and version, at the beginning of the stored form.
const MAGIC: &str = "bhav-instruments-3";
const MAGIC_WITHOUT_DERIVATIVES: &str = "bhav-instruments-2";
const MAGIC_WITHOUT_NAMES: &str = "bhav-instruments-1";

words! {
    /// Where a list comes from, as health and the stored form name it.
    pub enum Origin else Embedded {
        /// Compiled in: large shares and the indices only, so an unlisted symbol may still exist.
        Embedded = "embedded",
        /// Broker A's daily list. A symbol that it lacks is most likely wrong, but a row of it
        /// may be broken.
        BrokerA = "broker_a",
    }
}

/// Why a list was not accepted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum InstrumentsError {
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
    underlyings: Underlyings,
}

impl InstrumentList {
    /// The list that is compiled in.
    pub(crate) fn embedded() -> Self {
        let rows = embedded_instruments().into_iter().map(|row| Named {
            symbol: row.symbol,
            name: row.name.into(),
        });
        Self::from_rows(rows, Origin::Embedded, EMBEDDED_AS_OF)
            .expect("the embedded list has rows and is far under the limit")
    }

    /// A list of instruments, with names as one writes them; duplicates count once. Sorts them,
    /// so it belongs on an OS thread.
    ///
    /// # Errors
    /// None at all, or more than [`INSTRUMENTS_MAX`].
    pub(crate) fn from_rows(
        rows: impl IntoIterator<Item = Named>,
        origin: Origin,
        as_of: Date,
    ) -> Result<Self, InstrumentsError> {
        let mut symbols = HashSet::with_hasher(RandomState::default());
        let mut unique = Vec::new();
        for row in rows {
            if symbols.insert(row.symbol.clone()) {
                let name = written(&row.symbol, &row.name);
                unique.push(Named { name, ..row });
            }
            if symbols.len() > INSTRUMENTS_MAX {
                return Err(InstrumentsError::TooMany);
            }
        }
        if symbols.is_empty() {
            return Err(InstrumentsError::Empty);
        }
        symbols.shrink_to_fit();
        let search = SearchIndex::new(unique);
        Ok(Self {
            symbols,
            search,
            origin,
            as_of,
            underlyings: COMPILED_IN.clone(),
        })
    }

    /// The same list, with these shares as those that have derivatives.
    pub(crate) fn with_underlyings(self, underlyings: Underlyings) -> Self {
        Self {
            underlyings,
            ..self
        }
    }

    /// The shares with derivatives.
    pub(crate) fn underlyings(&self) -> &Underlyings {
        &self.underlyings
    }

    /// Whether `symbol` has derivatives. Any thread, never blocks or allocates.
    pub(crate) fn derivatives_of(&self, symbol: &Symbol) -> Derivatives {
        self.underlyings.of(symbol)
    }

    /// Whether `symbol`, whole as in `NSE:INFY`, is listed. Any thread, never blocks or allocates.
    pub(crate) fn contains(&self, symbol: &str) -> bool {
        self.symbols.contains(symbol)
    }

    /// At most `max` instruments that match the query. Any thread, for some hundred microseconds at
    /// most.
    pub(crate) fn search<'a>(&'a self, query: &'a Query, max: usize) -> Vec<&'a Named> {
        self.search.find(query, max)
    }

    /// The name of `symbol`, if it has one.
    pub(crate) fn name_of(&self, symbol: &Symbol) -> Option<&str> {
        self.search
            .row(symbol)
            .map(|row| &*row.name)
            .filter(|name| !name.is_empty())
    }

    /// Number of instruments.
    pub(crate) fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Number of instruments on one exchange.
    pub(crate) fn count_on(&self, exchange: Exchange) -> usize {
        self.symbols
            .iter()
            .filter(|symbol| symbol.exchange() == exchange)
            .count()
    }

    /// Its symbols, by ticker.
    #[cfg(test)]
    pub(crate) fn search_rows(&self) -> impl Iterator<Item = &Symbol> {
        self.search.rows().iter().map(|row| &row.symbol)
    }

    /// Origin of the list.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The day the list describes.
    pub(crate) fn as_of(&self) -> Date {
        self.as_of
    }

    /// The stored form: one line with origin, date and count, and with the date and the tickers of
    /// the list of derivatives if there is one; then an instrument a line, symbol and name with a
    /// tabulator between them.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let origin = self.origin.as_str();
        let count = self.symbols.len();
        let mut head = format!("{MAGIC} {origin} {} {count}", self.as_of);
        if let Some(as_of) = self.underlyings.as_of() {
            let tickers: Vec<&str> = self.underlyings.tickers().collect();
            head += &format!(" {as_of},{}", tickers.join(","));
        }
        head.push('\n');
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

    /// Reads the stored form, also the older ones without derivatives and without names.
    ///
    /// # Errors
    /// The bytes differ from those that [`to_bytes`](Self::to_bytes) writes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, InstrumentsError> {
        let damaged = InstrumentsError::Damaged;
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("not text"))?;
        let (head, body) = text.split_once('\n').ok_or(damaged("no head"))?;
        let words: Vec<&str> = head.split(' ').collect();
        let (origin, as_of, count, derivatives) = match words[..] {
            [MAGIC, origin, as_of, count, derivatives] => (origin, as_of, count, Some(derivatives)),
            [
                MAGIC | MAGIC_WITHOUT_DERIVATIVES | MAGIC_WITHOUT_NAMES,
                origin,
                as_of,
                count,
            ] => (origin, as_of, count, None),
            _ => return Err(damaged("head")),
        };
        let origin = Origin::parse(origin).ok_or(damaged("origin"))?;
        let as_of: Date = as_of.parse().map_err(|_| damaged("date"))?;
        let count: usize = count.parse().map_err(|_| damaged("count"))?;
        if count > INSTRUMENTS_MAX {
            return Err(InstrumentsError::TooMany);
        }
        let mut rows = Vec::with_capacity(count);
        for line in body.lines() {
            let (symbol, name) = line.split_once('\t').unwrap_or((line, ""));
            let symbol = Symbol::parse(symbol).ok_or(damaged("symbol"))?;
            rows.push(Named {
                symbol,
                name: name.into(),
            });
            if rows.len() > count {
                return Err(damaged("more symbols than counted"));
            }
        }
        let mut list = Self::from_rows(rows, origin, as_of)?;
        if let Some(derivatives) = derivatives {
            let (as_of, tickers) = derivatives.split_once(',').ok_or(damaged("derivatives"))?;
            let as_of = as_of.parse().map_err(|_| damaged("date of derivatives"))?;
            list.underlyings = Underlyings::of_list(tickers.split(',').map(Box::from), as_of);
        }
        if list.len() == count {
            Ok(list)
        } else {
            Err(damaged("fewer symbols than counted"))
        }
    }
}

/// The kind of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Share,
    Index,
}

/// A row of the embedded list. Empty cells are unknown.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Instrument {
    #[serde(deserialize_with = "symbol")]
    pub symbol: Symbol,
    pub kind: Kind,
    pub name: String,
    /// The sector, as the index provider names it; only for shares.
    pub industry: Option<String>,
    pub isin: Option<String>,
    pub broker_a_token: Option<u32>,
    /// The short code at the broker that has such codes.
    pub short_code: Option<String>,
    /// The public provider's symbol; only for indices.
    pub public: Option<String>,
}

fn symbol<'de, D: Deserializer<'de>>(from: D) -> Result<Symbol, D::Error> {
    let text = String::deserialize(from)?;
    Symbol::parse(&text).ok_or_else(|| D::Error::custom("not a symbol"))
}

/// The rows of the embedded list, in its order: the NIFTY 50 by ticker first.
pub fn embedded_instruments() -> Vec<Instrument> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(EMBEDDED.as_bytes());
    let rows = reader.deserialize();
    rows.map(|row| row.expect("the embedded instruments are well-formed: a test reads them"))
        .collect()
}

/// Names of the compiled-in list, by ticker: a share has the same one on both exchanges.
static NAMES: LazyLock<HashMap<Box<str>, Box<str>>> = LazyLock::new(|| {
    let rows = embedded_instruments().into_iter();
    rows.map(|row| (row.symbol.ticker().into(), row.name.into()))
        .collect()
});

/// Words that are no abbreviation, as short as they are.
const SHORT_WORDS: [&str; 18] = [
    "AIR", "BAG", "CO", "CAN", "GAS", "IND", "JET", "LTD", "NEW", "OIL", "ONE", "RED", "SKY",
    "SUN", "TEA", "TVS", "UNO", "WAY",
];
/// Words within a name that begin small.
const JOINING: [&str; 6] = ["AND", "OF", "THE", "FOR", "IN", "TO"];

/// The name in words. One that is not in capitals stays as it is, and so does an abbreviation:
/// a word of three letters, one without a vowel, or a short one that is the ticker.
fn written(symbol: &Symbol, name: &str) -> Box<str> {
    if let Some(known) = NAMES.get(symbol.ticker()) {
        return known.clone();
    }
    if name.chars().any(char::is_lowercase) {
        return name.into();
    }
    let mut out = String::with_capacity(name.len());
    for word in name.split_inclusive(|letter: char| !letter.is_alphanumeric() && letter != '\'') {
        let is_first = out.is_empty();
        let bare = word.trim_end_matches(|letter: char| !letter.is_alphanumeric());
        let rest = &word[bare.len()..];
        if !is_first && JOINING.contains(&bare) {
            out.push_str(&bare.to_lowercase());
        } else if is_abbreviation(bare, symbol.ticker()) {
            out.push_str(bare);
        } else {
            let mut letters = bare.chars();
            out.extend(letters.next());
            out.push_str(&letters.as_str().to_lowercase());
        }
        out.push_str(rest);
    }
    out.into()
}

fn is_abbreviation(word: &str, ticker: &str) -> bool {
    let is_short = word.len() <= 3 && !SHORT_WORDS.contains(&word) && !JOINING.contains(&word);
    let is_voiceless = !word.contains(['A', 'E', 'I', 'O', 'U', 'Y']);
    let is_figure = word.contains(|letter: char| letter.is_ascii_digit());
    let is_ticker = word.len() <= 4 && word == ticker;
    (is_short || is_voiceless || is_figure || is_ticker) && !SHORT_WORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::IndexList;
    use crate::market::data_file::DataError;
    use crate::market::sectors::{SECTORS_MAX, Sectors};

    #[test]
    fn an_operators_sectors_have_a_date_and_a_source() {
        let text = "# 2026-10-31 NIFTY 500 of the index provider\n\
                    Company Name,Industry,Symbol,Series,ISIN Code\n\
                    \"M & M, Ltd.\",Automobile and Auto Components,M&M,EQ,INE101A01026\n\
                    No industry,,X,EQ,INE000000000\n\
                    Infosys Ltd.,Information Technology,INFY,EQ,INE009A01021\n";
        let sectors = Sectors::parse(text, "mine.csv").unwrap();
        assert_eq!((sectors.as_of.to_string().as_str(), sectors.of.len()), ("2026-10-31", 2));
        assert_eq!(sectors.source, "NIFTY 500 of the index provider");
        assert_eq!(sectors.of("INE101A01026"), Some("Automobile and Auto Components"));
        assert_eq!(sectors.name_of("INE101A01026"), Some("M & M, Ltd."));
        assert_eq!((sectors.of("INE000000000"), sectors.of("INE002A01018")), (None, None));
        assert_eq!(sectors.of_ticker("INFY"), Some("Information Technology"));
        assert_eq!(sectors.of_ticker("TCS"), None);
        assert_eq!(Sectors::embedded().of("INE009A01021"), Some("Information Technology"));
        assert_eq!(Sectors::embedded().of_ticker("SBIN"), Some("Financial Services"));
        let lines = |text: &str| -> Vec<usize> {
            match Sectors::parse(text, "mine.csv") {
                Err(DataError::Faulty { faults, .. }) => faults.iter().map(|f| f.line).collect(),
                other => panic!("no faults: {other:?}"),
            }
        };
        let expected: [(&str, &[usize]); 4] = [
            ("", &[1, 1, 1]),
            (&text[text.find('\n').unwrap() + 1..], &[1]),
            ("# 2026-10-31 NIFTY 500\nSymbol,Sector\nINFY,IT\n", &[2, 4]),
            ("# yesterday NIFTY 500\nIndustry,ISIN Code\nIT,INE009A01021\n", &[1]),
        ];
        for (text, faults) in expected {
            assert_eq!(lines(text), faults, "{text}");
        }
        let rows: String = (0..=SECTORS_MAX)
            .map(|n| format!("S{n},INE{n}\n"))
            .collect();
        let many = format!("# 2026-10-31 mine\nIndustry,ISIN Code\n{rows}");
        assert_eq!(lines(&many), [SECTORS_MAX + 4]);
    }

    #[test]
    fn the_embedded_list_has_the_nifty_50_and_every_index() {
        let rows = embedded_instruments();
        let shares: Vec<_> = rows.iter().filter(|row| row.kind == Kind::Share).collect();
        assert_eq!(shares.len(), 51);
        assert!(
            shares
                .iter()
                .all(|row| row.isin.is_some() && row.broker_a_token.is_some())
        );
        let list = InstrumentList::embedded();
        assert_eq!(list.len(), rows.len());
        for symbol in [
            "NSE:M&M",
            "NSE:BAJAJ-AUTO",
            "NSE:BSE",
            "NSE:WIPRO",
            "NSE:NIFTY 50",
        ] {
            assert!(list.contains(symbol), "{symbol}");
        }
        assert!(!list.contains("NSE:TATAMOTORS") && !list.contains("BSE:INFY"));
        for index in IndexList::embedded().all() {
            let row = rows.iter().find(|row| row.symbol == index.symbol).unwrap();
            assert_eq!((row.kind, &row.public), (Kind::Index, &index.public), "{}", index.symbol);
        }
        let infy = rows
            .iter()
            .find(|row| row.symbol.as_str() == "NSE:INFY")
            .unwrap();
        assert_eq!(
            (infy.broker_a_token, infy.short_code.as_deref()),
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
                if value > 9 {
                    vec![value / 10, value % 10]
                } else {
                    vec![value]
                }
            })
            .collect();
        let sum: u32 = digits
            .iter()
            .rev()
            .enumerate()
            .map(|(place, digit)| {
                if place % 2 == 1 {
                    digit * 2 / 10 + digit * 2 % 10
                } else {
                    *digit
                }
            })
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
            name: format!("Company {n}").into(),
        })
    }

    fn today() -> Date {
        Date::constant(2026, 11, 20)
    }

    #[test]
    fn a_list_over_the_limit_is_refused() {
        let full = InstrumentList::from_rows(rows(INSTRUMENTS_MAX), Origin::BrokerA, today());
        assert_eq!(full.unwrap().len(), INSTRUMENTS_MAX);
        for (count, expected) in [
            (INSTRUMENTS_MAX + 1, InstrumentsError::TooMany),
            (0, InstrumentsError::Empty),
        ] {
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
        assert_eq!(
            found
                .iter()
                .map(|row| row.symbol.as_str())
                .collect::<Vec<_>>(),
            ["NSE:S7"]
        );
    }

    #[test]
    fn a_stored_list_keeps_which_shares_have_derivatives() {
        let list = InstrumentList::from_rows(rows(3), Origin::BrokerA, today()).unwrap();
        assert_eq!(list.underlyings().as_of(), None);
        let tickers = ["M&M", "S1", "BAJAJ-AUTO"].map(Box::from);
        let list = list.with_underlyings(Underlyings::of_list(tickers, today()));
        let read = InstrumentList::from_bytes(&list.to_bytes()).unwrap();
        assert_eq!(read.underlyings(), list.underlyings());
        let of = |name| read.derivatives_of(&Symbol::parse(name).unwrap());
        assert_eq!(of("NSE:S1"), Derivatives::Some);
        assert_eq!(of("NSE:S2"), Derivatives::None);
    }

    #[test]
    fn older_stored_lists_are_read() {
        for bytes in [
            "bhav-instruments-1 broker_a 2026-11-20 2\nNSE:INFY\nNSE:M&M\n",
            "bhav-instruments-2 broker_a 2026-11-20 2\nNSE:INFY\tINFOSYS\nNSE:M&M\tM&M\n",
        ] {
            let list = InstrumentList::from_bytes(bytes.as_bytes()).unwrap();
            assert!(list.len() == 2 && list.contains("NSE:M&M"));
            assert_eq!(list.search(&Query::parse("inf").unwrap(), 20).len(), 1);
            assert_eq!(list.underlyings().as_of(), None);
        }
    }

    #[test]
    fn a_damaged_stored_list_is_refused() {
        let good = String::from_utf8(
            InstrumentList::from_rows(rows(3), Origin::BrokerA, today())
                .unwrap()
                .to_bytes(),
        )
        .unwrap();
        for bad in [
            String::new(),
            good.replace("-3 ", "-4 "),
            good.replace("-3 ", "-2 ")
                .replace(" 3\n", " 3 2026-11-20,S1\n"),
            good.replace(" 3\n", " 3 2026-11-20\n"),
            good.replace(" 3\n", " 3 today,S1\n"),
            good.replace("broker_a", "broker_c"),
            good.replace("2026-11-20", "2026-11-31"),
            good.replace("NSE:S2\tCompany 2\n", ""),
            good.replace("NSE:S2", "nse:s2"),
            good.clone() + "NSE:S9\n",
            good.replace(" 3\n", " 99999999\n"),
        ] {
            assert!(InstrumentList::from_bytes(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(InstrumentList::from_bytes(&[0xff, b'\n']).is_err());
    }

    #[test]
    fn names_in_capitals_are_told_in_words() {
        for (symbol, name, expected) in [
            ("NSE:INFY", "INFOSYS", "Infosys"),
            ("BSE:SBIN", "STATE BANK OF INDIA", "State Bank of India"),
            ("NSE:NIFTY PVT BANK", "NIFTY PVT BANK", "Nifty Private Bank"),
            ("NSE:LICHSGFIN", "LIC HOUSING FINANCE", "LIC Housing Finance"),
            ("NSE:NHPC", "NHPC", "NHPC"),
            ("NSE:GAIL", "GAIL (INDIA)", "GAIL (India)"),
            ("NSE:TATAPOWER", "TATA POWER CO", "Tata Power Co"),
            ("NSE:OIL", "OIL INDIA", "Oil India"),
            ("NSE:HAL", "HINDUSTAN AERONAUTICS", "Hindustan Aeronautics"),
            ("NSE:M&MFIN", "M&M FIN. SERVICES", "M&M FIN. Services"),
            ("NSE:DIVISLAB", "DIVI'S LABORATORIES", "Divi's Laboratories"),
            ("NSE:BALKRISIND", "BALKRISHNA IND. LTD", "Balkrishna Ind. Ltd"),
            ("NSE:3MINDIA", "3M INDIA", "3M India"),
            ("NSE:NAUKRI", "Info Edge (India)", "Info Edge (India)"),
            ("NSE:NONAME", "", ""),
        ] {
            let symbol = Symbol::parse(symbol).unwrap();
            let once = written(&symbol, name);
            assert_eq!(&*once, expected);
            assert_eq!(written(&symbol, &once), once, "a second time changes nothing");
        }
    }
}
