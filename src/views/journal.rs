//! `/api/journal`.

use serde::Serialize;

use super::values::{Day, Exact, Instant};

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JournalPage<'a> {
    /// Newest trading date first.
    #[cfg_attr(test, schemars(extend("maxItems" = 200)))]
    pub entries: Vec<JournalEntry<'a>>,
    /// Send it as `cursor` for the next page; null on the last page. It stays valid when the
    /// service restarts.
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JournalEntry<'a> {
    #[cfg_attr(test, schemars(extend("minimum" = 1)))]
    pub id: i64,
    pub traded_on: Day,
    pub symbol: &'a str,
    #[cfg_attr(test, schemars(extend("enum" = ["buy", "sell"])))]
    pub side: &'static str,
    pub quantity: Exact,
    pub price: Exact,
    pub fees: Option<Exact>,
    pub strategy: Option<&'a str>,
    pub notes: Option<&'a str>,
    pub tags: &'a [String],
    pub created_at: Instant,
    pub updated_at: Instant,
}
