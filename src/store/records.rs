//! The typed records of the store. Plain values that know no SQL.

use std::collections::HashMap;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{Broker, ClosingPrice, Holding, Position, Symbol};
use crate::ops::DurationCounts;
use crate::portfolio::{DayPoint, Repriced};
use crate::rt::{BatchStats, LaneStats};

/// A user's id: positive, never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(pub i64);

/// The right to change a user's portfolio. Of all nodes that share a database, one holder has it at
/// a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub user: AccountId,
    /// Random text, different for each turn.
    pub holder: String,
    /// Higher than that of each turn of the user before.
    pub number: i64,
}

impl Turn {
    /// How long a turn lasts that is not extended, by the clock of the database: what a node that
    /// is gone blocks its user for.
    pub const LASTS_MS: u64 = 20_000;
    /// How often a turn is extended. Three times may fail before it runs out.
    pub const EXTENDED_EACH_MS: u64 = 5_000;

    /// Of the one process that has the database, which nobody can take it from.
    pub fn alone(user: AccountId) -> Self {
        Self { user, holder: String::new(), number: 0 }
    }

    /// Whether there is nobody to take it.
    pub fn is_alone(&self) -> bool {
        self.number == 0
    }
}

/// A user to register.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// Normalised: trimmed and in lower case.
    pub email: String,
    pub name: Option<String>,
    /// Hash of the password as a PHC string.
    pub password_hash: String,
    pub created_ms: i64,
}

/// A user without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: AccountId,
    pub email: String,
    pub name: Option<String>,
    pub created_ms: i64,
}

/// A user with the data that a login checks.
#[derive(Clone, Debug)]
pub struct UserSecrets {
    pub user: User,
    pub password_hash: String,
    /// Tokens with another epoch are refused.
    pub token_epoch: i64,
    /// Whether an operator has disabled logins.
    pub disabled: bool,
}

/// Counts of the rows erased with an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Whether there was such a user.
    pub user: bool,
    pub portfolio: Deleted,
    pub journal_entries: u64,
}

/// A user as an operator's command lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSummary {
    pub id: AccountId,
    pub email: String,
    pub created_ms: i64,
    pub disabled_ms: Option<i64>,
    /// Time of the last sync with either broker.
    pub synced_ms: Option<i64>,
    /// Number of stored holdings, positions, points of the trend and journal entries.
    pub rows: i64,
    /// Bytes of text in the journal.
    pub journal_bytes: i64,
}

/// A change to a user by an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserChange {
    /// Refuses logins and all tokens.
    Disable {
        now_ms: i64,
    },
    Enable,
    /// Refuses all tokens of before. Logins go on.
    EndTokens,
    /// Deletes the user with everything stored for them.
    Delete,
}

/// Which database it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseIdentity {
    /// Tokens are good for one incarnation alone. A database that was put back, or was seen to have
    /// gone back, has a new one.
    pub incarnation: String,
    /// Stays while the same database goes on, and is no other database's.
    pub cluster: String,
}

/// A network from which an account was used, as a keyed hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoginNetwork {
    pub id: AccountId,
    pub network: String,
    pub seen_ms: i64,
}

/// The state that decides whether a token is accepted, besides its signature.
#[derive(Clone, Debug, Default)]
pub struct AuthState {
    /// Tokens issued for another one are refused.
    pub incarnation: String,
    /// Every user.
    pub users: Vec<AccountId>,
    /// The highest id ever given to a user.
    pub last_user: AccountId,
    /// Users with a token epoch other than zero.
    pub epochs: Vec<(AccountId, i64)>,
    /// The last change that is in all this.
    pub read: LastRead,
    /// Ids of revoked tokens, each with the time when it expires anyway (Unix milliseconds).
    pub revoked_tokens: Vec<(String, i64)>,
}

/// A change that every node has to know of, to judge tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The account exists, with this token epoch.
    Account {
        id: AccountId,
        epoch: i64,
    },
    Erased {
        id: AccountId,
    },
    Revoked {
        token_id: String,
        expires_ms: i64,
    },
    /// A newer program has made it.
    Unknown,
}

/// How far the changes of a database were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastRead {
    /// Number of the last change.
    pub number: i64,
    /// Its random mark; `None` where there is no such row any more.
    pub mark: Option<i64>,
}

/// What a page says of the changes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// They are those that were read, and none was forgotten between them and the page.
    Follows,
    /// Some were forgotten meanwhile.
    Missed,
    /// They are others, or not there: the database is an older one, or another past of it.
    WentBack,
}

/// A page of the changes after one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The incarnation of the database that has them.
    pub incarnation: String,
    /// The check value of the secret that nodes of this database sign with.
    pub secret_check: Option<String>,
    /// The mark of the change before the page, where it is still there.
    pub before: Option<i64>,
    /// The mark of the last change of the page.
    pub mark: Option<i64>,
    /// Number of the last change that was made.
    pub made: i64,
    /// Number of the last one that the one service of a database has said to have applied.
    pub noticed: i64,
    /// With their numbers, in order.
    pub rows: Vec<(i64, Change)>,
}

impl Changes {
    /// Whether they are all that was made since `read`.
    pub fn continuity(&self, read: LastRead) -> Continuity {
        let first = self.rows.first().map(|(number, _)| *number);
        match (read.mark, self.before) {
            _ if self.made < read.number => Continuity::WentBack,
            (Some(known), Some(found)) if known == found => Continuity::Follows,
            (Some(_), Some(_)) => Continuity::WentBack,
            // The newest changes are never forgotten.
            (Some(_), None) if first.is_none() => Continuity::WentBack,
            (Some(_), None) => Continuity::Missed,
            (None, _) => match first.map_or(self.made == read.number, |at| at == read.number + 1) {
                true => Continuity::Follows,
                false => Continuity::Missed,
            },
        }
    }

    /// The last change of the page, which came after `read`.
    pub fn last(&self, read: LastRead) -> LastRead {
        let last = self.rows.last().map(|(number, _)| *number);
        last.map_or(read, |number| LastRead { number, mark: self.mark })
    }
}

/// The last sync of a broker for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncState {
    pub broker: Broker,
    pub synced_ms: i64,
    pub simulated: bool,
    /// The broker's id of the person; `None` where it was not kept or not said.
    pub broker_user: Option<String>,
}

/// Everything stored from a user's syncs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Portfolio {
    /// Broker A's holdings first; each broker's in the order it sent them.
    pub holdings: Vec<Holding>,
    pub positions: Vec<Position>,
    /// One for each broker that was synced and not deleted since.
    pub syncs: Vec<SyncState>,
}

/// What is stored when a sync begins to write.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// Of both brokers.
    pub portfolio: Portfolio,
    /// Stored closing prices of the date asked for, of all symbols that the user holds or that the
    /// sync brings.
    pub closes: HashMap<Symbol, ClosingPrice>,
}

/// A user's portfolio, valued at a close. It is written only if the portfolio has not changed
/// since: a sync or a deletion may have come in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Valued {
    pub id: AccountId,
    /// The latest `synced_ms` of the portfolio that was valued.
    pub synced_ms: i64,
    pub point: DayPoint,
    pub repriced: Repriced,
    /// Points of dates after the close, if there are any, get the same totals. In those from this
    /// date on, every holding with a price counts as carried.
    pub next_session: Date,
    /// Number of holdings with a price.
    pub priced: u32,
    /// Whether no more closing prices are expected, so that the value is final.
    pub is_complete: bool,
}

/// A symbol with its closing price.
pub type PriceOfClose = (Symbol, ClosingPrice);

/// A page of the users whose portfolios are not yet completely valued at a close.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosePage {
    pub portfolios: Vec<(AccountId, Portfolio)>,
    /// Whether more users follow.
    pub more: bool,
}

/// Counts of the rows that a deletion removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    pub holdings: u64,
    pub positions: u64,
    pub pnl_snapshots: u64,
}

/// Whether a trade was a purchase or a sale.
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

    /// The side with this name.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Buy, Self::Sell].into_iter().find(|side| side.as_str() == word)
    }
}

/// The fields of a journal entry, already validated.
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

/// One stored journal entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    pub id: i64,
    pub fields: JournalFields,
    pub created_ms: i64,
    pub updated_ms: i64,
}

/// Size of one user's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSize {
    pub entries: usize,
    pub text_bytes: usize,
}

/// A page of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalPage {
    pub entries: Vec<JournalEntry>,
    /// Whether more entries follow.
    pub more: bool,
}

/// Position at which a page of the journal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalCursor {
    pub traded_on: Date,
    pub id: i64,
}

impl JournalPage {
    /// Position of the next page; `None` if this is the last one.
    pub fn next(&self) -> Option<JournalCursor> {
        let last = self.entries.last().filter(|_| self.more)?;
        Some(JournalCursor { traded_on: last.fields.traded_on, id: last.id })
    }
}

/// A table that was copied to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    pub name: &'static str,
    pub rows: u64,
}

/// State of the store, known without accessing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHealth {
    /// `ok`, `read_only`, `full`, `corrupt`, `busy` or `unavailable`.
    pub state: &'static str,
    /// The cause of the state, for the operator; empty if the state is `ok`.
    pub cause: String,
    /// Acknowledged writes, and the commits that wrote them.
    pub writes: u64,
    pub commits: u64,
    /// Operations refused or given up since the start.
    pub refused: u64,
    /// How long the writer's current transaction has been running; `None` if there is none.
    pub writing_ms: Option<u64>,
    pub writer: BatchStats,
    pub readers: LaneStats,
    /// How long a database on a server took for what it was asked; empty for a file.
    pub roundtrips: DurationCounts,
}
