//! `GET /api/market/search`.

use serde::Serialize;

use super::values::Day;
use crate::base::Symbol;

/// The instruments that fit a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SearchResults<'a> {
    /// The day that the list of instruments describes.
    pub as_of: Day,
    /// Number of instruments listed.
    pub count: usize,
    /// First those whose ticker begins with the query, by ticker; then those by name; then those by
    /// ISIN.
    #[cfg_attr(test, schemars(extend("maxItems" = 20)))]
    pub instruments: Vec<FoundInstrument<'a>>,
}

/// A share or an index.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundInstrument<'a> {
    pub symbol: Symbol,
    /// Name of the company or index, as the list has it; null if it has none.
    pub name: Option<&'a str>,
}
