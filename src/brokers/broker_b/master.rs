//! The reader of broker B's security master, which links its short codes to tickers and ISINs. Runs
//! where the operator's file is loaded, never on the edge.
//!
//! The file is the published zip or one of its lists; the first bytes show which. Bad rows are
//! skipped and counted, and rows that are not shares are left out.

use std::io::{self, Cursor, Read};
use std::path::Path;

use csv::StringRecord;
use zip::ZipArchive;

use crate::base::MasterRow;
use crate::brokers::broken_rows::{WholeRows, whole_rows};

/// The setting that names the file.
pub(crate) const SETTING: &str = "BHAV_BROKERB_MASTER_FILE";

/// Most uncompressed bytes of one list; today's have some ten million.
const LIST_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most rows of one list. An exchange has some ten thousand securities.
const ROWS_MAX: usize = 200_000;

/// Most members of the archive; the published one has seven.
const MEMBERS_MAX: usize = 64;

/// Longest code, ticker or ISIN; real ones have up to 20 bytes.
const TEXT_BYTES_MAX: usize = 32;

/// First bytes of a zip.
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

/// Shares and trusts: the NSE's series, then the BSE's groups. Bonds, funds, indices and offers for
/// sale are in other series, and repeat the shares' tickers there.
const SHARE_SERIES: [&str; 24] = [
    "EQ", "BE", "BZ", "SM", "ST", "SZ", "IV", "RR", "A", "B", "E", "IF", "IP", "M", "MS", "MT",
    "P", "T", "TS", "W", "X", "XT", "Z", "ZP",
];

/// Suffix of codes of offers for sale, which may have the share's series.
const OFFER_FOR_SALE: &str = "OFS";

/// The lists that are read: exchange, member of the archive, and positions of the columns in case
/// the header names them differently.
const LISTS: [(&str, &str, Columns); 2] = [
    (
        "NSE",
        "NSEScripMaster.txt",
        Columns {
            code: 1,
            series: 2,
            isin: 10,
            ticker: 60,
        },
    ),
    (
        "BSE",
        "BSEScripMaster.txt",
        Columns {
            code: 1,
            series: 2,
            isin: 10,
            ticker: 60,
        },
    ),
];

#[derive(Clone, Copy)]
struct Columns {
    code: usize,
    series: usize,
    isin: usize,
    ticker: usize,
}

/// Content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Master {
    pub rows: Vec<MasterRow>,
    /// Rows that could not be read.
    pub skipped: u64,
    /// Readable rows of anything but shares.
    pub left_out: u64,
}

/// The reason why no list could be read.
#[derive(Debug, thiserror::Error)]
pub enum MasterError {
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    #[error("it is no readable zip: {0}")]
    BadZip(String),
    #[error("the zip holds neither {} nor {}", LISTS[0].1, LISTS[1].1)]
    NoList,
    #[error("a list is larger than {LIST_BYTES_MAX} bytes or {ROWS_MAX} rows")]
    TooLarge,
    #[error("it has no header with a short name and a ticker")]
    NoHeader,
    #[error("it lists no shares")]
    Empty,
}

/// Reads the operator's file from the disk; blocks.
///
/// # Errors
/// [`MasterError`], as for [`parse`].
pub(crate) fn load(path: &Path) -> Result<Master, MasterError> {
    parse(&std::fs::read(path)?)
}

/// Reads the operator's file: `SecurityMaster.zip` as published, or one list out of it.
///
/// # Errors
/// [`MasterError`]; single bad rows are counted, not fatal.
pub fn parse(file: &[u8]) -> Result<Master, MasterError> {
    let mut master = Master::default();
    if file.starts_with(ZIP_MAGIC) {
        let mut found = false;
        let bad = |error: zip::result::ZipError| MasterError::BadZip(error.to_string());
        let mut archive = ZipArchive::new(Cursor::new(file)).map_err(bad)?;
        if archive.len() > MEMBERS_MAX {
            return Err(MasterError::BadZip(format!("more than {MEMBERS_MAX} members")));
        }
        for (exchange, name, columns) in LISTS {
            let Some(at) = member(&archive, name) else {
                continue;
            };
            found = true;
            let mut list = Vec::new();
            let member = archive.by_index(at).map_err(bad)?;
            member
                .take(LIST_BYTES_MAX + 1)
                .read_to_end(&mut list)
                .map_err(|error| MasterError::BadZip(error.to_string()))?;
            master.add_list(&list, Some(exchange), columns)?;
        }
        if !found {
            return Err(MasterError::NoList);
        }
    } else {
        master.add_list(file, None, LISTS[0].2)?;
    }
    if master.rows.is_empty() {
        Err(MasterError::Empty)
    } else {
        Ok(master)
    }
}

/// Index of the member called `name`, in any folder and any case.
fn member(archive: &ZipArchive<Cursor<&[u8]>>, name: &str) -> Option<usize> {
    archive.file_names_raw().position(|path| {
        let file = path
            .rsplit(|byte| matches!(byte, b'/' | b'\\'))
            .next()
            .unwrap_or(path);
        file.eq_ignore_ascii_case(name.as_bytes())
    })
}

impl Master {
    /// Adds one list. If `exchange` is `None`, the list's header decides.
    fn add_list(
        &mut self,
        list: &[u8],
        exchange: Option<&'static str>,
        usual: Columns,
    ) -> Result<(), MasterError> {
        if list.len() as u64 > LIST_BYTES_MAX {
            return Err(MasterError::TooLarge);
        }
        let WholeRows { list, broken } = whole_rows(list);
        self.skipped += broken;
        // The header's cells have a space before the quote, so the reader leaves their quotes on.
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(list.as_slice());
        let mut record = StringRecord::new();
        if !matches!(reader.read_record(&mut record), Ok(true)) {
            return Err(MasterError::NoHeader);
        }
        let header: Vec<String> = record
            .iter()
            .map(bare)
            .map(str::to_ascii_lowercase)
            .collect();
        let at = |name: &str| header.iter().position(|cell| cell == name);
        // Only the BSE's list has this column; its last one is the NSE's ticker.
        let of_bse = at("scripid");
        let exchange = exchange.unwrap_or(if of_bse.is_some() { "BSE" } else { "NSE" });
        if at("shortname").is_none() && header.len() <= usual.ticker {
            return Err(MasterError::NoHeader);
        }
        let columns = Columns {
            code: at("shortname").unwrap_or(usual.code),
            series: at("series").unwrap_or(usual.series),
            isin: at("isincode").unwrap_or(usual.isin),
            ticker: of_bse
                .or_else(|| at("exchangecode"))
                .unwrap_or(usual.ticker),
        };
        for _ in 0..ROWS_MAX {
            match reader.read_record(&mut record) {
                Ok(true) => self.add(&record, exchange, columns),
                Ok(false) => return Ok(()),
                Err(_) => self.skipped += 1,
            }
        }
        Err(MasterError::TooLarge)
    }

    fn add(&mut self, record: &StringRecord, exchange: &'static str, columns: Columns) {
        let cell = |at: usize| record.get(at).map(bare);
        let fits = |text: &&str| text.len() <= TEXT_BYTES_MAX && text.is_ascii();
        let named = |at| cell(at).filter(fits).filter(|text| !text.is_empty());
        let (Some(code), Some(series)) = (named(columns.code), cell(columns.series)) else {
            self.skipped += 1;
            return;
        };
        if !SHARE_SERIES.contains(&series) || code.ends_with(OFFER_FOR_SALE) {
            self.left_out += 1;
            return;
        }
        let isin = cell(columns.isin).unwrap_or_default();
        let (Some(ticker), true) = (named(columns.ticker), isin.is_empty() || is_isin(isin)) else {
            self.skipped += 1;
            return;
        };
        self.rows.push(MasterRow {
            short_code: code.to_owned(),
            exchange,
            ticker: ticker.to_owned(),
            isin: (!isin.is_empty()).then(|| isin.to_owned()),
            series: series.to_owned(),
        });
    }
}

/// The cell without the spaces and quotes around it.
fn bare(cell: &str) -> &str {
    cell.trim().trim_matches('"').trim()
}

/// Two letters, nine letters or digits, a digit.
fn is_isin(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 12
        && bytes[..2].iter().all(u8::is_ascii_uppercase)
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && bytes[11].is_ascii_digit()
}

#[cfg(test)]
#[path = "master_tests.rs"]
mod tests;
