//! The highest prices of 31 January 2018, by which the tax law counts the cost of shares that are
//! older.
//!
//! Read on the main thread, at start and at each reload, never for a request.

use std::collections::HashMap;
use std::path::Path;

use rust_decimal::Decimal;
use sha2::{Digest, Sha256};

use crate::base::Isin;
use crate::market::data_file::{DataError, Faults, operators};

/// Most securities: twice those that both exchanges list.
const SECURITIES_MAX: usize = 12_000;
/// Above the price of any share.
const PRICE_MAX: i64 = 1_000_000_000;

/// Prices by ISIN; none without an operator's file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FairValues {
    of: HashMap<Isin, Decimal>,
    /// Another one for other prices, at every node. 0 for none.
    revision: u64,
}

impl FairValues {
    /// The operator's list, or none.
    ///
    /// # Errors
    /// The file cannot be read, or has faults: all of them, each with its line.
    pub(crate) fn load(operator_file: Option<&Path>) -> Result<Self, DataError> {
        operators(operator_file, Self::default, Self::parse)
    }

    /// Reads CSV with the columns `isin` and `price`. `origin` is the name of the text in faults.
    ///
    /// # Errors
    /// The text has faults: all of them, each with its line.
    fn parse(text: &str, origin: &str) -> Result<Self, DataError> {
        let mut faults = Faults::of(text);
        let plain = text.trim_start_matches('\u{feff}');
        let mark = text.len() - plain.len();
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .from_reader(plain.as_bytes());
        let heads = reader.headers().cloned().unwrap_or_default();
        let column = |name| {
            heads
                .iter()
                .position(|head| head.trim().eq_ignore_ascii_case(name))
        };
        let columns = column("isin").zip(column("price"));
        if columns.is_none() {
            faults.add(0, "the columns isin and price are not there");
        }
        let mut of: HashMap<Isin, Decimal> = HashMap::new();
        for record in reader.records() {
            let Some((isin_at, price_at)) = columns else {
                break;
            };
            let Ok(record) = record else {
                faults.add(text.len(), "not CSV");
                break;
            };
            let offset = record.position().map_or(0, |at| at.byte() as usize) + mark;
            let cell = |at: usize| record.get(at).unwrap_or_default().trim();
            let Some(isin) = Isin::parse(cell(isin_at)) else {
                faults.add(offset, "the ISIN is not two letters, nine letters or digits, a digit");
                continue;
            };
            let Some(price) = price(cell(price_at)) else {
                faults.add(offset, format!("the price of {isin:?} is not a number above 0"));
                continue;
            };
            if of.insert(isin, price).is_some_and(|before| before != price) {
                faults.add(offset, format!("{isin:?} has another price in a line before"));
            }
        }
        if of.len() > SECURITIES_MAX {
            faults.add(text.len(), format!("more than {SECURITIES_MAX} securities"));
        }
        if of.is_empty() {
            faults.add(text.len(), "no price in it");
        }
        let revision = revision(&of);
        faults.into_result(origin, Self { of, revision })
    }

    /// The price of the security with this ISIN.
    pub(crate) fn of(&self, isin: Isin) -> Option<Decimal> {
        self.of.get(&isin).copied()
    }

    /// A number that is another one for other prices.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }
}

/// A price in plain digits.
fn price(text: &str) -> Option<Decimal> {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let price: Decimal = text.parse().ok().filter(|_| is_plain)?;
    let counts = price > Decimal::ZERO && price <= PRICE_MAX.into() && price.scale() <= 9;
    counts.then(|| price.normalize())
}

/// Of the prices alone, however the file is written.
fn revision(of: &HashMap<Isin, Decimal>) -> u64 {
    let mut rows: Vec<String> = of
        .iter()
        .map(|(isin, price)| format!("{isin:?},{price}"))
        .collect();
    rows.sort_unstable();
    let hash = Sha256::digest(rows.join("\n").as_bytes());
    hash.iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "isin,price\nINE009A01021,1180.50\nINE002A01018,990\n";

    fn faults(text: &str) -> String {
        FairValues::parse(text, "list").unwrap_err().to_string()
    }

    #[test]
    fn prices_are_found_by_isin_however_the_file_is_written() {
        let list = FairValues::parse(LIST, "list").unwrap();
        let of = |isin| list.of(Isin::parse(isin).unwrap());
        assert_eq!(of("INE009A01021"), "1180.5".parse().ok());
        assert_eq!(of("INE040A01034"), None);
        let other = "\u{feff}Name,Price,ISIN\r\nx,990.00,INE002A01018\r\nx,1180.5,INE009A01021\r\n";
        assert_eq!(FairValues::parse(other, "list").unwrap(), list);
        let changed = FairValues::parse(&LIST.replace("990", "991"), "list").unwrap();
        assert_ne!(changed.revision(), list.revision());
        assert_eq!(FairValues::load(None).unwrap().revision(), 0);
    }

    #[test]
    fn each_bad_line_is_named() {
        let bad = "isin,price\nINE009A01021,1180.50\nINE009A0102,5\nINE002A01018,-1\n\
                   INE002A01018,1e3\nINE009A01021,7\nINE002A01018\n";
        let told = faults(bad);
        let lines: Vec<&str> = told.lines().map(|line| &line[..7]).collect();
        assert_eq!(lines, ["list:3:", "list:4:", "list:5:", "list:6:", "list:7:"], "{told}");
        assert!(faults("isin;price\n").starts_with("list:1: the columns"), "no columns");
        assert!(faults("isin,price\n").contains("no price in it"));
        let many: String = (0..=SECURITIES_MAX)
            .map(|number| format!("INE{number:08}0,1\n"))
            .collect();
        assert!(faults(&format!("isin,price\n{many}")).contains("more than 12000"));
    }
}
