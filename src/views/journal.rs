//! `/api/journal`: entries, their pages, and what searched ones came to. The export has the entries
//! too.

use crate::views::values::{Day, Exact, Instant, Money, Share, documents};

documents! {
    pub(crate) struct JournalPage<'a> {
        /// Newest trading date first.
        pub entries: Vec<JournalEntry<'a>>,
        /// Send it as `cursor` for the next page; null on the last page. It stays valid when the
        /// service restarts.
        pub next_cursor: Option<String>,
    }

    /// The entries that fit, and what they came to.
    pub(crate) struct FoundEntries<'a> {
        /// Newest trading date first.
        pub entries: Vec<JournalEntry<'a>>,
        /// Send it as `cursor`, with the same filters, for the next page; null on the last page.
        pub next_cursor: Option<String>,
        /// Entries that fit, on all pages.
        pub count: usize,
        pub summary: JournalSummary,
    }

    /// Closed pairs: parts of a trade and of a later one on the other side, of the same symbol,
    /// matched first in, first out over the whole journal. A pair counts if it was closed within
    /// the dates and one of its trades has the strategy and the tag.
    pub(crate) struct JournalSummary {
        pub closed_pairs: usize,
        /// Closed pairs with a profit after fees.
        pub wins: usize,
        /// Share of wins among the closed pairs; null without any.
        pub win_rate: Option<Share>,
        /// Sum of the closed pairs after their shares of the fees; null without any.
        pub realised: Option<Money>,
        /// Sum of the fees of the entries that fit; null if it has too many digits.
        pub fees: Option<Money>,
    }

    pub(crate) struct JournalEntry<'a> {
        pub id: i64,
        pub traded_on: Day,
        pub symbol: &'a str,
        pub side: &'static str,
        pub quantity: Exact,
        pub price: Exact,
        pub fees: Option<Exact>,
        pub strategy: Option<&'a str>,
        pub notes: Option<&'a str>,
        pub tags: &'a [String],
        pub created_at: Instant,
        pub updated_at: Instant,
        /// Names this state of the entry. In quotes it is the entry's `ETag`: send it as `If-Match`
        /// with the next change, or in the body of a PUT. No proxy changes it.
        pub revision: String,
    }
}
