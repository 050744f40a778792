//! The daily instruments files: gzip or plain CSV to the shares and indices that can be quoted, and
//! the file of derivatives to the shares that have some. Pure.
//!
//! Bad rows are skipped and counted, rows of other exchanges are left out.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use crate::base::{Exchange, Symbol};
use crate::brokers::BrokerError;
use crate::brokers::broken_rows::{WholeRows, whole_rows};
use crate::brokers::broker_a::wire::malformed;

/// Most rows of one file. The largest exchange file has some ten thousand. The whole market's,
/// options included, stays under this too.
const ROWS_MAX: usize = 500_000;

/// First bytes of gzip, for a compressed file without the header that declares it.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// One instrument that can be quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub symbol: Symbol,
    pub instrument_token: u32,
    /// The exchange's short company name; may be empty.
    pub name: Box<str>,
}

/// One exchange's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstrumentList {
    pub listed: Vec<Listed>,
    /// Rows that could not be read.
    pub skipped: u64,
    /// Readable rows of derivatives, or of another exchange.
    pub left_out: u64,
}

/// The file of derivatives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DerivativesList {
    /// Tickers of what the contracts are of: shares, and names of indices.
    pub(crate) underlyings: BTreeSet<Box<str>>,
    /// All rows, and those of them that could not be read.
    pub(crate) rows: u64,
    pub(crate) skipped: u64,
}

#[derive(Deserialize)]
struct Row<'a> {
    instrument_token: u32,
    tradingsymbol: &'a str,
    name: &'a str,
    instrument_type: &'a str,
    segment: &'a str,
    exchange: &'a str,
}

/// Reads the file of `exchange`, which may have at most `bytes_max` uncompressed.
///
/// # Errors
/// [`Malformed`](crate::brokers::BrokerErrorKind::Malformed) when it is too large, not this CSV, or
/// holds nothing that can be quoted.
pub(crate) fn parse(
    body: &[u8],
    exchange: Exchange,
    bytes_max: u64,
) -> Result<InstrumentList, BrokerError> {
    let mut list = InstrumentList::default();
    let read = read_rows(body, bytes_max, |row| list.add(row, exchange))?;
    list.skipped += read.skipped;
    if list.listed.is_empty() {
        Err(malformed("instruments file lists nothing"))
    } else {
        Ok(list)
    }
}

/// Reads the file of derivatives, which may have at most `bytes_max` uncompressed.
///
/// # Errors
/// [`Malformed`](crate::brokers::BrokerErrorKind::Malformed) when it is too large, not this CSV, or
/// holds no derivative.
pub(crate) fn parse_derivatives(
    body: &[u8],
    bytes_max: u64,
) -> Result<DerivativesList, BrokerError> {
    let mut list = DerivativesList::default();
    let read = read_rows(body, bytes_max, |row| list.add(row))?;
    list.skipped += read.skipped;
    list.rows = read.rows;
    match list.underlyings.is_empty() {
        true => Err(malformed("derivatives file lists nothing")),
        false => Ok(list),
    }
}

/// The rows of a file, and those that could not be read.
struct RowsRead {
    rows: u64,
    skipped: u64,
}

/// Passes each readable row of a file to `take`.
fn read_rows(
    body: &[u8],
    bytes_max: u64,
    mut take: impl FnMut(&Row<'_>),
) -> Result<RowsRead, BrokerError> {
    let mut plain = Vec::new();
    let is_packed = body.starts_with(&GZIP_MAGIC);
    if is_packed {
        MultiGzDecoder::new(body)
            .take(bytes_max + 1)
            .read_to_end(&mut plain)
            .map_err(|_| malformed("instruments file is badly packed"))?;
        if plain.len() as u64 > bytes_max {
            return Err(malformed("instruments file is too large"));
        }
    }
    let WholeRows { list, broken } = whole_rows(if is_packed { &plain } else { body });
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(list.as_slice());
    let headers = reader
        .headers()
        .map_err(|_| malformed("instruments file without header"))?;
    let headers = headers.clone();
    let mut read = RowsRead {
        rows: broken,
        skipped: broken,
    };
    let mut record = csv::StringRecord::new();
    for _ in 0..ROWS_MAX {
        let is_read = reader.read_record(&mut record);
        if matches!(is_read, Ok(false)) {
            return Ok(read);
        }
        read.rows += 1;
        // The values of a short row would get the names of other columns.
        let is_whole = is_read.is_ok() && record.len() == headers.len();
        match is_whole
            .then(|| record.deserialize(Some(&headers)).ok())
            .flatten()
        {
            Some(row) => take(&row),
            None => read.skipped += 1,
        }
    }
    Err(malformed("instruments file has too many rows"))
}

impl DerivativesList {
    fn add(&mut self, row: &Row<'_>) {
        let is_contract = matches!(row.segment, "NFO-FUT" | "NFO-OPT")
            && matches!(row.instrument_type, "FUT" | "CE" | "PE");
        // A contract's own name begins with that of its share.
        let names = !row.name.is_empty() && row.tradingsymbol.starts_with(row.name);
        let is_ticker = || Symbol::parse(&format!("NSE:{}", row.name)).is_some();
        match is_contract && names && is_ticker() {
            true if self.underlyings.contains(row.name) => {}
            true => {
                self.underlyings.insert(row.name.into());
            }
            false => self.skipped += 1,
        }
    }
}

impl InstrumentList {
    fn add(&mut self, row: &Row<'_>, from: Exchange) {
        let is_quoted = matches!(row.segment, "INDICES" | "NSE" | "BSE");
        if !is_quoted || row.exchange != from.as_str() || row.instrument_type != "EQ" {
            self.left_out += 1;
            return;
        }
        match Symbol::parse(&format!("{}:{}", row.exchange, row.tradingsymbol)) {
            Some(symbol) => self.listed.push(Listed {
                symbol,
                instrument_token: row.instrument_token,
                name: row.name.into(),
            }),
            None => self.skipped += 1,
        }
    }
}

// ---- Instrument tokens
//
// Broker A's instrument tokens of the few symbols that need candles. Plain values.

/// The token of each wanted symbol, if it is known. Never holds a symbol that was not wanted, so
/// its size is the universe's.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    known: HashMap<Symbol, Option<u32>>,
}

impl Tokens {
    /// Each of `wanted` has the token to use until the day's file is read, or `None`.
    pub fn new(wanted: impl IntoIterator<Item = (Symbol, Option<u32>)>) -> Self {
        Self {
            known: wanted.into_iter().collect(),
        }
    }

    /// Wants one more symbol, whose token the next file has.
    pub(crate) fn want(&mut self, symbol: Symbol) {
        self.known.entry(symbol).or_default();
    }

    /// Takes the tokens from the day's file of `exchange`. A wanted symbol that the file lacks
    /// loses its token, because the broker gives tokens of delisted instruments to others.
    pub(crate) fn learn(&mut self, exchange: Exchange, list: &InstrumentList) {
        let of_exchange = self
            .known
            .iter_mut()
            .filter(|(symbol, _)| symbol.exchange() == exchange);
        of_exchange.for_each(|(_, token)| *token = None);
        for listed in &list.listed {
            if let Some(token) = self.known.get_mut(&listed.symbol) {
                *token = Some(listed.instrument_token);
            }
        }
    }

    /// The token of `symbol`.
    pub fn of(&self, symbol: &Symbol) -> Option<u32> {
        self.known.get(symbol).copied().flatten()
    }

    /// Wanted symbols without a token, in order: renamed, delisted or never listed.
    pub(crate) fn lacking(&self) -> Vec<&Symbol> {
        let without = self.known.iter().filter(|(_, token)| token.is_none());
        let mut lacking: Vec<&Symbol> = without.map(|(symbol, _)| symbol).collect();
        lacking.sort_unstable_by_key(|symbol| symbol.as_str());
        lacking
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::brokers::BrokerErrorKind;

    const SAMPLE: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/instruments_nse.csv");
    const HEADER: &str = "instrument_token,exchange_token,tradingsymbol,name,last_price,expiry,\
        strike,tick_size,lot_size,instrument_type,segment,exchange\n";
    const BYTES_MAX: u64 = 1024 * 1024;

    fn rows(rows: &str) -> Result<InstrumentList, BrokerError> {
        parse(format!("{HEADER}{rows}").as_bytes(), Exchange::Nse, BYTES_MAX)
    }

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn reads_the_official_file_plain_and_packed() {
        let list = parse(SAMPLE, Exchange::Nse, BYTES_MAX).unwrap();
        let lines = SAMPLE
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .count();
        assert_eq!(list.listed.len() as u64 + list.skipped + list.left_out, lines as u64 - 1);
        assert_eq!(list.skipped, 0);
        let ports = list
            .listed
            .iter()
            .find(|row| row.symbol.as_str() == "NSE:ADANIPORTS")
            .unwrap();
        assert_eq!((ports.instrument_token, &*ports.name), (3_861_249, "ADANI PORT & SEZ"));
        assert_eq!(parse(&packed(SAMPLE), Exchange::Nse, BYTES_MAX).unwrap(), list);
    }

    #[test]
    fn keeps_indices_and_quoted_names_and_counts_bad_rows() {
        let list = rows(
            "256265,1001,NIFTY 50,NIFTY 50,0,,0,0,0,EQ,INDICES,NSE\n\
             519937,2031,M&M,\"MAHINDRA, MAHINDRA\",0,,0,0.05,1,EQ,NSE,NSE\n\
             1,2,SHORT,MISSING A COLUMN,0,,0,0.05,1,EQ,NSE\n\
             x,2,BAD,TOKEN,0,,0,0.05,1,EQ,NSE,NSE\n\
             3,2,bad symbol,,0,,0,0.05,1,EQ,NSE,NSE\n\
             4,2,NIFTY26NOVFUT,,0,2026-11-26,0,0.05,75,FUT,NFO-FUT,NFO\n\
             5,2,SENSEX,,0,,0,0,0,EQ,INDICES,BSE\n",
        )
        .unwrap();
        assert_eq!((list.skipped, list.left_out), (3, 2));
        let symbols: Vec<_> = list.listed.iter().map(|row| row.symbol.as_str()).collect();
        assert_eq!(symbols, ["NSE:NIFTY 50", "NSE:M&M"]);
        assert_eq!(&*list.listed[1].name, "MAHINDRA, MAHINDRA");
    }

    #[test]
    fn a_quotation_mark_that_is_never_closed_costs_its_own_row_alone() {
        let good =
            |number: usize| format!("{number},1,S{number},\"A, B\",0,,0,0.05,1,EQ,NSE,NSE\n");
        for broken in [
            "138371,540,QUOTED,\"INDIAN METALS,0.0,,0.0,0.05,1,EQ,NSE,NSE\n",
            "138371,540,\"QUOTED,INDIAN METALS,0.0,,0.0,0.05,1,EQ,NSE,NSE\n",
            "\"138371,540,QUOTED,INDIAN METALS,0.0,,0.0,0.05,1,EQ,NSE,NSE\n",
            "138371,540,QUOTED,INDIAN METALS,0.0,,0.0,0.05,1,EQ,NSE,\"NSE\n",
        ] {
            for at in [0, 1, 20, 40] {
                let mut lines: Vec<String> = (1..=40).map(good).collect();
                lines.insert(at, broken.to_owned());
                let list = rows(&lines.concat()).unwrap();
                assert_eq!((list.listed.len(), list.skipped), (40, 1), "{at} {broken}");
            }
        }
    }

    #[test]
    fn refuses_what_is_not_the_file() {
        for body in ["", "<html>maintenance</html>", "a,b\n1,2\n", HEADER] {
            let error = parse(body.as_bytes(), Exchange::Nse, BYTES_MAX).unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::Malformed, "{body}: {error}");
        }
        parse(&packed(&vec![b'1'; 2 * BYTES_MAX as usize]), Exchange::Nse, BYTES_MAX).unwrap_err();
        parse(&packed(SAMPLE)[..200], Exchange::Nse, BYTES_MAX).unwrap_err();
    }

    #[test]
    fn the_file_of_derivatives_gives_the_shares_that_have_some() {
        let body = format!(
            "{HEADER}\
             1,2,INFY26DECFUT,INFY,0,2026-12-29,0,0.05,400,FUT,NFO-FUT,NFO\n\
             2,2,INFY26DEC1500CE,INFY,0,2026-12-29,1500,0.05,400,CE,NFO-OPT,NFO\n\
             3,2,M&M26DEC3000PE,\"M&M\",0,2026-12-29,3000,0.05,200,PE,NFO-OPT,NFO\n\
             4,2,BAJAJ-AUTO26DECFUT,BAJAJ-AUTO,0,2026-12-29,0,0.05,75,FUT,NFO-FUT,NFO\n\
             5,2,NIFTY26DECFUT,NIFTY,0,2026-12-29,0,0.05,65,FUT,NFO-FUT,NFO\n\
             6,2,TCS26DECFUT,,0,2026-12-29,0,0.05,65,FUT,NFO-FUT,NFO\n\
             7,2,TCS26DECFUT,TATA CONSULTANCY,0,2026-12-29,0,0.05,65,FUT,NFO-FUT,NFO\n\
             8,2,USDINR26DECFUT,USDINR,0,2026-12-29,0,0.05,1,FUT,CDS-FUT,CDS\n\
             9,2,SBIN,SBIN,0,,0,0.05,1,EQ,NSE,NSE\n\
             10,2,SBIN26DECFUT,SBIN,0,2026-12-29,0,0.05,750,FUT,NFO-FUT\n\
             11,2,\"WIPRO26DECFUT,WIPRO,0,2026-12-29,0,0.05,750,FUT,NFO-FUT,NFO\n"
        );
        let list = parse_derivatives(body.as_bytes(), BYTES_MAX).unwrap();
        let found: Vec<&str> = list.underlyings.iter().map(|ticker| &**ticker).collect();
        assert_eq!(found, ["BAJAJ-AUTO", "INFY", "M&M", "NIFTY"]);
        assert_eq!((list.rows, list.skipped), (11, 6));
        assert_eq!(parse_derivatives(&packed(body.as_bytes()), BYTES_MAX).unwrap(), list);
        for body in ["", HEADER, "<html>", std::str::from_utf8(SAMPLE).unwrap()] {
            let error = parse_derivatives(body.as_bytes(), BYTES_MAX).unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::Malformed, "{error}");
        }
    }

    #[test]
    fn the_number_of_rows_is_bounded() {
        let error = rows(&"1,2\n".repeat(ROWS_MAX + 1)).unwrap_err();
        assert!(error.to_string().contains("too many rows"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn bytes_behind_the_header_add_no_row_of_another_exchange(body: Vec<u8>) {
            let good = "1,2,SBIN,SBIN,0,,0,0.05,1,EQ,BSE,BSE\n";
            let whole = [HEADER.as_bytes(), good.as_bytes(), &body].concat();
            let lines = body.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() as u64 + 2;
            if let Ok(list) = parse(&whole, Exchange::Bse, BYTES_MAX) {
                let of_bse = list.listed.iter().all(|row| row.symbol.as_str().starts_with("BSE:"));
                proptest::prop_assert!(of_bse, "{list:?}");
                let rows = list.listed.len() as u64 + list.skipped + list.left_out;
                proptest::prop_assert!((1..=lines).contains(&rows), "{rows} rows of {lines} lines");
            }
            if let Ok(list) = parse_derivatives(&whole, BYTES_MAX) {
                proptest::prop_assert!(list.skipped <= list.rows && list.rows <= lines);
            }
        }
    }
}

#[cfg(test)]
mod instrument_tokens_tests {
    use super::*;
    use crate::brokers::broker_a::instruments::parse;

    const FILE: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/instruments_nse.csv");

    fn symbol(name: &str) -> Symbol {
        Symbol::parse(name).unwrap()
    }

    #[test]
    fn the_days_file_wins_for_its_exchange_and_teaches_nothing_unwanted() {
        let wanted = [
            ("NSE:ADANIPORTS", Some(1)),
            ("NSE:RENAMED", Some(7)),
            ("NSE:UNKNOWN", None),
            ("BSE:SBIN", Some(128_028_676)),
        ];
        let mut tokens = Tokens::new(wanted.map(|(name, token)| (symbol(name), token)));
        assert_eq!(tokens.of(&symbol("NSE:ADANIPORTS")), Some(1));
        assert_eq!(tokens.lacking(), [&symbol("NSE:UNKNOWN")]);
        tokens.learn(Exchange::Nse, &parse(FILE, Exchange::Nse, 1 << 20).unwrap());
        assert_eq!(tokens.of(&symbol("NSE:ADANIPORTS")), Some(3_861_249));
        assert_eq!(tokens.of(&symbol("BSE:SBIN")), Some(128_028_676), "another file's");
        assert_eq!(tokens.lacking(), [&symbol("NSE:RENAMED"), &symbol("NSE:UNKNOWN")]);
        assert_eq!(tokens.known.len(), wanted.len());
    }
}
