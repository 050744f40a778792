//! The sectors of companies, as an index provider's list of constituents names them.
//!
//! Read on the main thread, at start and at each reload.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use jiff::civil::Date;

use crate::market::data_file::{DataError, Faults, operators};
use crate::market::instruments::{EMBEDDED_AS_OF, embedded_instruments};

/// Most sectors. Portfolios are divided by them, so they are few.
pub(super) const SECTORS_MAX: usize = 100;
/// Most companies: twice those that the exchanges list.
const COMPANIES_MAX: usize = 12_000;

/// The sectors of companies, with the list's date and source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sectors {
    /// By ISIN.
    pub(super) of: HashMap<Box<str>, Company>,
    /// ISINs by ticker, of the companies whose ticker the list has.
    tickers: HashMap<Box<str>, Box<str>>,
    pub(crate) as_of: Date,
    pub(crate) source: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Company {
    sector: Arc<str>,
    /// Empty if the list has none.
    name: Box<str>,
}

impl Sectors {
    /// The list that is compiled in: the shares of the NIFTY 50.
    pub(crate) fn embedded() -> Self {
        let mut of = HashMap::new();
        let mut tickers = HashMap::new();
        for row in embedded_instruments() {
            let (Some(industry), Some(isin)) = (row.industry, row.isin) else {
                continue;
            };
            tickers.insert(row.symbol.ticker().into(), isin.clone().into());
            of.insert(
                isin.into(),
                Company {
                    sector: industry.into(),
                    name: row.name.into(),
                },
            );
        }
        Self {
            of,
            tickers,
            as_of: EMBEDDED_AS_OF,
            source: "NIFTY 50".into(),
        }
    }

    /// The operator's list in place of the embedded one.
    ///
    /// # Errors
    /// The file cannot be read, or has faults: all of them, each with its line.
    pub(crate) fn load(operator_file: Option<&Path>) -> Result<Self, DataError> {
        operators(operator_file, Self::embedded, Self::parse)
    }

    /// Reads a list from text: a first line with date and source, `# 2026-09-30 NIFTY 500`, and
    /// then CSV as the index provider publishes it, with the columns `Industry` and `ISIN Code`;
    /// `Company Name` and `Symbol` are read where they are there.
    /// `origin` is the name of the text in faults.
    ///
    /// # Errors
    /// The text has faults: all of them, each with its line.
    pub(crate) fn parse(text: &str, origin: &str) -> Result<Self, DataError> {
        let mut faults = Faults::of(text);
        let first = text.lines().next().unwrap_or_default();
        let (as_of, source) = date_and_source(first);
        if as_of.is_none() || source.is_empty() {
            faults.add(0, "no date and source: begin with a line such as # 2026-09-30 NIFTY 500");
        }
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .flexible(true)
            .from_reader(text.as_bytes());
        let heads = reader.headers().cloned().unwrap_or_default();
        let column = |name| {
            heads
                .iter()
                .position(|head| head.trim().eq_ignore_ascii_case(name))
        };
        let industry = column("Industry");
        let isin = column("ISIN Code");
        let name = column("Company Name");
        let ticker = column("Symbol");
        if industry.is_none() || isin.is_none() {
            faults.add(first.len() + 1, "the columns Industry and ISIN Code are not there");
        }
        let mut of = HashMap::new();
        let mut tickers = HashMap::new();
        let mut names: HashSet<Arc<str>> = HashSet::new();
        for record in reader.records() {
            let Ok(record) = record else {
                faults.add(text.len(), "not CSV");
                break;
            };
            let cell = |at: Option<usize>| record.get(at?).map(str::trim).filter(|c| !c.is_empty());
            let (Some(industry), Some(isin)) = (cell(industry), cell(isin)) else {
                continue;
            };
            let sector = names
                .get(industry)
                .cloned()
                .unwrap_or_else(|| industry.into());
            names.insert(Arc::clone(&sector));
            if let Some(ticker) = cell(ticker) {
                tickers.insert(ticker.into(), isin.into());
            }
            of.insert(
                isin.into(),
                Company {
                    sector,
                    name: cell(name).unwrap_or_default().into(),
                },
            );
        }
        if names.len() > SECTORS_MAX || of.len() > COMPANIES_MAX {
            let most = format!("more than {SECTORS_MAX} sectors or {COMPANIES_MAX} companies");
            faults.add(text.len(), most);
        }
        if of.is_empty() {
            faults.add(text.len(), "no company in it");
        }
        let as_of = as_of.unwrap_or(EMBEDDED_AS_OF);
        faults.into_result(
            origin,
            Self {
                of,
                tickers,
                as_of,
                source: source.into(),
            },
        )
    }

    /// The sector of the company with this ISIN.
    pub(crate) fn of(&self, isin: &str) -> Option<&str> {
        self.of.get(isin).map(|company| &*company.sector)
    }

    /// The sector of the company with this ticker, if the list has tickers.
    pub(crate) fn of_ticker(&self, ticker: &str) -> Option<&str> {
        self.of(self.tickers.get(ticker)?)
    }

    /// The name of the company with this ISIN, as one writes it.
    pub(crate) fn name_of(&self, isin: &str) -> Option<&str> {
        self.of
            .get(isin)
            .map(|company| &*company.name)
            .filter(|name| !name.is_empty())
    }
}

/// The date of a list and its source, of a first line such as `# 2026-09-30 NIFTY 500`.
fn date_and_source(line: &str) -> (Option<Date>, &str) {
    let about = line
        .trim_start_matches('\u{feff}')
        .strip_prefix('#')
        .unwrap_or_default();
    let (date, source) = about.trim().split_once(' ').unwrap_or_default();
    (date.parse().ok(), source.trim())
}
