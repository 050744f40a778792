//! The typed records of the store. Plain values; nothing here knows SQL.

use std::collections::HashMap;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{Broker, ClosingPrice, Holding, Position, Symbol};
use crate::portfolio::{DayPoint, Repriced};
use crate::rt::{BatchStats, LaneStats};

/// A user's id: positive, never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(pub i64);

/// A registration.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// Trimmed and in lower case.
    pub email: String,
    pub name: Option<String>,
    /// PHC string.
    pub password_hash: String,
    pub created_ms: i64,
}

/// A user as others may see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: AccountId,
    pub email: String,
    pub name: Option<String>,
    pub created_ms: i64,
}

/// A user with what a login checks.
#[derive(Clone, Debug)]
pub struct UserSecrets {
    pub user: User,
    pub password_hash: String,
    /// Tokens of another epoch are refused.
    pub token_epoch: i64,
    /// An operator closed the account to logins.
    pub disabled: bool,
}

/// What was erased with an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// False where there was no such user.
    pub user: bool,
    pub portfolio: Deleted,
    pub journal_entries: u64,
}

/// A user as an operator sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSummary {
    pub id: AccountId,
    pub email: String,
    pub created_ms: i64,
    pub disabled_ms: Option<i64>,
    /// The last sync with either broker.
    pub synced_ms: Option<i64>,
    /// Holdings, positions, points of the trend and journal entries.
    pub rows: i64,
    /// Text in the journal.
    pub journal_bytes: i64,
}

/// What an operator does to a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserChange {
    /// No login any more, and no token there is.
    Disable {
        now_ms: i64,
    },
    Enable,
    /// With everything stored of theirs.
    Delete,
}

/// What decides about a token beside its signature.
#[derive(Clone, Debug, Default)]
pub struct AuthState {
    /// Tokens of another database are refused.
    pub database_id: String,
    /// Every user.
    pub users: Vec<AccountId>,
    /// The highest id that was ever given.
    pub last_user: AccountId,
    /// Users whose epoch is not zero.
    pub epochs: Vec<(AccountId, i64)>,
    /// Ids of tokens that are refused, with when they expire anyway (Unix milliseconds).
    pub revoked_tokens: Vec<(String, i64)>,
}

/// What operators' commands changed beside the running service, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutsideChanges {
    pub made: i64,
    /// How many of them the service has taken up.
    pub noticed: i64,
}

/// When a broker was last synced for a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncState {
    pub broker: Broker,
    pub synced_ms: i64,
    pub simulated: bool,
}

/// Everything synced for a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Portfolio {
    /// Broker A's first, each broker's in its own order.
    pub holdings: Vec<Holding>,
    pub positions: Vec<Position>,
    /// One per broker that was ever synced and not deleted since.
    pub syncs: Vec<SyncState>,
}

/// What stands in the store when a sync begins to write.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// Of both brokers.
    pub portfolio: Portfolio,
    /// The kept closing prices, of the date asked for, of all that the user holds or brings.
    pub closes: HashMap<Symbol, ClosingPrice>,
}

/// A user's portfolio at a close. It is written only if the portfolio that it was made of still
/// stands: a sync or a deletion may have come between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Valued {
    pub id: AccountId,
    /// The latest `synced_ms` of the portfolio it was made of.
    pub synced_ms: i64,
    pub point: DayPoint,
    pub repriced: Repriced,
    /// Points of later dates, where there are any, get the same totals. From this date on all
    /// priced holdings count as carried in them.
    pub next_session: Date,
    /// How many holdings have a price.
    pub priced: u32,
    /// Nothing more is to be expected of this close.
    pub is_complete: bool,
}

/// A symbol's closing price.
pub type PriceOfClose = (Symbol, ClosingPrice);

/// Some of the users whose portfolios a close has not valued completely.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosePage {
    pub portfolios: Vec<(AccountId, Portfolio)>,
    /// Whether there are users after these.
    pub more: bool,
}

/// Rows that a deletion removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    pub holdings: u64,
    pub positions: u64,
    pub pnl_snapshots: u64,
}

/// Bought or sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Buy,
    Sell,
}

impl Side {
    /// `buy` or `sell`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
        }
    }

    /// The side of a word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Buy, Self::Sell].into_iter().find(|side| side.as_str() == word)
    }
}

/// What a user writes into the journal; checked before it comes here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFields {
    pub traded_on: Date,
    pub symbol: String,
    pub side: Side,
    pub quantity: Decimal,
    pub price: Decimal,
    pub fees: Option<Decimal>,
    pub strategy: Option<String>,
    pub notes: Option<String>,
    pub tags: Vec<String>,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    pub id: i64,
    pub fields: JournalFields,
    pub created_ms: i64,
    pub updated_ms: i64,
}

/// How much one user has in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSize {
    pub entries: usize,
    pub text_bytes: usize,
}

/// A page of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalPage {
    pub entries: Vec<JournalEntry>,
    /// Whether there are entries after these.
    pub more: bool,
}

/// Where a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalCursor {
    pub traded_on: Date,
    pub id: i64,
}

impl JournalPage {
    /// Where the next page goes on; `None` if this is the last.
    pub fn next(&self) -> Option<JournalCursor> {
        let last = self.entries.last().filter(|_| self.more)?;
        Some(JournalCursor { traded_on: last.fields.traded_on, id: last.id })
    }
}

/// What is known of the store without asking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHealth {
    /// `ok`, `read_only`, `full`, `corrupt`, `busy` or `unavailable`.
    pub state: &'static str,
    /// The cause, for the operator; empty while `ok`.
    pub cause: String,
    /// Writes acknowledged, and the commits that carried them.
    pub writes: u64,
    pub commits: u64,
    /// Refused or given up, since start.
    pub refused: u64,
    /// How long the writer has been at its present transaction; `None` while it has none.
    pub writing_ms: Option<u64>,
    pub writer: BatchStats,
    pub readers: LaneStats,
}
