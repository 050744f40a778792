//! Resolves a broker's short codes to the exchange's tickers: by ISIN first, then by the code. A
//! code that neither resolves stays as it is. Pure; built once from the brokers' instrument lists
//! and used on lane threads.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::base::{Holding, Synced};

/// Suffix of codes for an offer for sale, which is not the share itself.
const OFFER_SUFFIX: &str = "OFS";

/// A share as one instrument list names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// `NSE` or `BSE`.
    pub exchange: String,
    pub ticker: String,
    pub isin: Option<String>,
    pub short_code: Option<String>,
}

/// An index of listed shares by broker code and by ISIN.
#[derive(Debug, Default)]
pub(crate) struct Securities {
    rows: Vec<Listed>,
    by_isin: Index,
    by_code: Index,
}

/// Row numbers by key in upper case and exchange; `None` if rows contradict each other.
type Index = HashMap<String, Vec<(String, Option<usize>)>, RandomState>;

impl Securities {
    /// Builds the index. If several lists have the same code or ISIN, the earliest list counts. If
    /// one list has two different shares for one code, the code stays unresolved.
    pub(crate) fn of(lists: Vec<Vec<Listed>>) -> Self {
        let mut securities = Self::default();
        for list in lists {
            let mut isins = Index::default();
            let mut codes = Index::default();
            for row in list {
                let at = securities.rows.len();
                if let Some(isin) = filled(row.isin.as_deref()) {
                    enter(&mut isins, isin, &row, at, &securities.rows);
                }
                let code = filled(row.short_code.as_deref()).filter(|code| !is_offer(code));
                if let Some(code) = code {
                    enter(&mut codes, code, &row, at, &securities.rows);
                }
                securities.rows.push(row);
            }
            adopt(&mut securities.by_isin, isins);
            adopt(&mut securities.by_code, codes);
        }
        securities
    }

    /// Replaces the codes of unresolved rows by tickers from the lists.
    pub(crate) fn resolve(&self, synced: &mut Synced) {
        for row in synced.holdings.iter_mut().filter(|row| row.unresolved) {
            self.resolve_holding(row);
        }
        for row in synced.positions.iter_mut().filter(|row| row.unresolved) {
            if let Some(listed) = self.find(&self.by_code, &row.tradingsymbol, &row.exchange)
                && listed.exchange == row.exchange
            {
                row.tradingsymbol = listed.ticker.clone();
                row.unresolved = false;
            }
        }
    }

    fn resolve_holding(&self, row: &mut Holding) {
        let by_isin = row
            .isin
            .as_deref()
            .and_then(|isin| self.find(&self.by_isin, isin, &row.exchange));
        // A code may be listed with another ISIN. After a split the list may be older than the
        // broker's data, so only the ticker is taken over and the row keeps its ISIN.
        let by_code = || self.find(&self.by_code, &row.tradingsymbol, &row.exchange);
        let Some(listed) = by_isin.or_else(by_code) else {
            return;
        };
        row.tradingsymbol = listed.ticker.clone();
        row.exchange = listed.exchange.clone();
        if row.isin.is_none() {
            row.isin = listed.isin.clone();
        }
        row.unresolved = false;
    }

    /// The row of `key` on `exchange` if it is listed there, else on NSE, else on any exchange.
    fn find(&self, index: &Index, key: &str, exchange: &str) -> Option<&Listed> {
        let places = index.get(&key.to_ascii_uppercase())?;
        let on = |wanted: &str| places.iter().find(|(exchange, _)| exchange == wanted);
        let (_, at) = on(exchange)
            .or_else(|| on("NSE"))
            .or_else(|| places.first())?;
        Some(&self.rows[(*at)?])
    }

    /// The ISIN of a broker's code.
    pub(crate) fn isin_of_code(&self, code: &str, exchange: &str) -> Option<&str> {
        self.find(&self.by_code, code, exchange)?.isin.as_deref()
    }

    /// The shares with this ISIN (in upper case), one per exchange.
    pub(crate) fn with_isin(&self, isin: &str) -> impl Iterator<Item = &Listed> {
        let places = self.by_isin.get(isin).into_iter().flatten();
        places.filter_map(|(_, at)| Some(&self.rows[(*at)?]))
    }

    /// Number of shares in the index.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the lists were empty.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn enter(index: &mut Index, key: &str, row: &Listed, at: usize, rows: &[Listed]) {
    let places = index.entry(key.to_ascii_uppercase()).or_default();
    match places
        .iter_mut()
        .find(|(exchange, _)| *exchange == row.exchange)
    {
        None => places.push((row.exchange.clone(), Some(at))),
        // Several series of one share have the same ticker. Two different tickers contradict each
        // other.
        Some((_, known)) => {
            if known.is_some_and(|known| rows[known].ticker != row.ticker) {
                *known = None;
            }
        }
    }
}

fn adopt(index: &mut Index, later: Index) {
    for (key, places) in later {
        let known = index.entry(key).or_default();
        for (exchange, at) in places {
            if !known.iter().any(|(place, _)| *place == exchange) {
                known.push((exchange, at));
            }
        }
    }
}

fn is_offer(code: &str) -> bool {
    code.len() > OFFER_SUFFIX.len() && code.ends_with(OFFER_SUFFIX)
}

fn filled(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
#[path = "securities_tests.rs"]
mod tests;
