//! The typed records of the store. Plain values that know no SQL.

use std::collections::HashMap;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{Broker, Candle, ClosingPrice, Holding, Position, Source, Symbol, Synced};
use crate::ops::DurationCounts;
use crate::portfolio::{DayPoint, Derived, Repriced};
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
    pub(crate) const LASTS_MS: u64 = 20_000;
    /// How often a turn is extended. Three times may fail before it runs out.
    pub(crate) const EXTENDED_EACH_MS: u64 = 5_000;

    /// Of the one process that has the database, which nobody can take it from.
    pub fn alone(user: AccountId) -> Self {
        Self { user, holder: String::new(), number: 0 }
    }

    /// Whether there is nobody to take it.
    pub(crate) fn is_alone(&self) -> bool {
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
pub(crate) struct DatabaseIdentity {
    /// Tokens are good for one incarnation alone. A database that was put back, or was seen to have
    /// gone back, has a new one.
    pub incarnation: String,
    /// Stays while the same database goes on, and is no other database's.
    pub cluster: String,
}

/// A network from which an account was used, as a keyed hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LoginNetwork {
    pub id: AccountId,
    pub network: String,
    pub seen_ms: i64,
}

/// The state that decides whether a token is accepted, besides its signature.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuthState {
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
pub(crate) enum Change {
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
pub(crate) struct LastRead {
    /// Number of the last change.
    pub number: i64,
    /// Its random mark; `None` where there is no such row any more.
    pub mark: Option<i64>,
}

/// What a page says of the changes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuity {
    /// They are those that were read, and none was forgotten between them and the page.
    Follows,
    /// Some were forgotten meanwhile.
    Missed,
    /// They are others, or not there: the database is an older one, or another past of it.
    WentBack,
}

/// A page of the changes after one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changes {
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
    pub(crate) fn continuity(&self, read: LastRead) -> Continuity {
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
    pub(crate) fn last(&self, read: LastRead) -> LastRead {
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

/// Derives what a sync writes and what the user is told of it, from what is stored and what the
/// broker sent. Runs within the sync's transaction on the store's writer. It must be quick and
/// pure, since it may run twice.
pub type Derive = Box<dyn Fn(&Before, &Synced) -> Derived + Send>;

/// What one sync of one broker brings to be stored.
pub struct NewPortfolio {
    pub broker: Broker,
    pub synced_ms: i64,
    pub synced: Synced,
    /// The date of the closing prices that `derive` is given.
    pub closes_of: Option<Date>,
    pub derive: Derive,
    /// The rows may be of another person at the broker than those they replace.
    pub replaces_broker_user: bool,
}

/// A user's portfolio, valued at a close. It is written only if the portfolio has not changed
/// since: a sync or a deletion may have come in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Valued {
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
pub(crate) type PriceOfClose = (Symbol, ClosingPrice);

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
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
        }
    }

    /// The side with this name.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Buy, Self::Sell].into_iter().find(|side| side.as_str() == word)
    }
}

/// The fields of a journal entry, already validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalFields {
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
pub(crate) struct JournalEntry {
    pub id: i64,
    pub fields: JournalFields,
    pub created_ms: i64,
    pub updated_ms: i64,
}

/// Size of one user's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalSize {
    pub entries: usize,
    pub text_bytes: usize,
}

/// A page of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JournalPage {
    pub entries: Vec<JournalEntry>,
    /// Whether more entries follow.
    pub more: bool,
}

/// Position at which a page of the journal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalCursor {
    pub traded_on: Date,
    pub id: i64,
}

impl JournalPage {
    /// Position of the next page; `None` if this is the last one.
    pub(crate) fn next(&self) -> Option<JournalCursor> {
        let last = self.entries.last().filter(|_| self.more)?;
        Some(JournalCursor { traded_on: last.fields.traded_on, id: last.id })
    }
}

/// A table that was copied to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedTable {
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

// ---- Signal records
//
// The typed records of candles and signals. Plain values that know no SQL.

/// A symbol's stored history, without the candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandleHistory {
    pub symbol: Symbol,
    /// The source of all candles.
    pub source: Source,
    pub simulated: bool,
    /// Whether the candles cannot be trusted until all are fetched again.
    pub refetch: bool,
    /// Date of the newest candle.
    pub last: Option<Date>,
    pub suspicions: Vec<SplitSuspicion>,
}

/// A symbol's newest candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredCandles {
    /// The source of all candles.
    pub source: Source,
    pub simulated: bool,
    /// Whether the candles cannot be trusted until all are fetched again.
    pub refetch: bool,
    /// Oldest first.
    pub candles: Vec<Candle>,
}

/// A date that looks like an unadjusted split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitSuspicion {
    pub date: Date,
    /// Whether a later fetch of the whole history had the same prices, so that it was a real move.
    pub confirmed: bool,
}

/// A whole history that replaces the stored one.
#[derive(Clone, Debug)]
pub struct NewHistory {
    pub symbol: Symbol,
    pub source: Source,
    pub simulated: bool,
    /// Ascending.
    pub candles: Vec<Candle>,
    pub suspicions: Vec<SplitSuspicion>,
}

/// The data that a confidence was derived from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Basis {
    /// Weight of the prior, in dates.
    pub prior_dates: u32,
    /// Dates with the same pattern in the window.
    pub dates: u32,
    /// Mean over these dates of the share of hits on each.
    pub date_hit_rate: Option<f64>,
    /// Signals on these dates, and how many of them hit; `None` in entries older than this count.
    pub signals_and_hits: Option<(u32, u32)>,
    pub base_rate: f64,
}

/// A signal as it was published.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedSignal {
    pub symbol: Symbol,
    pub pattern: String,
    /// True if the signal claims a rise, false for a fall.
    pub bullish: bool,
    pub confidence: f64,
    pub basis: Basis,
    /// Close of its date, in ten-thousandths of a rupee.
    pub close_e4: i64,
    /// Rank among the date's signals, from 1.
    pub rank: u32,
    pub simulated: bool,
}

/// The outcome of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalOutcome {
    /// The session on which the outcome was known.
    pub judged_on: Date,
    /// Closes of both sessions as the history had them at that time. A later split changes them in
    /// the history.
    pub from_close_e4: i64,
    pub to_close_e4: i64,
    pub hit: bool,
    /// Symbols of the universe that traded on both dates, and how many of them moved in the
    /// signal's direction; `None` in outcomes older than this count.
    pub universe: Option<(u32, u32)>,
}

/// An entry of the ledger of published signals.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerEntry {
    /// Ascending in the order of publication.
    pub id: i64,
    pub on: Date,
    pub signal: PublishedSignal,
    pub outcome: Option<SignalOutcome>,
    /// Whether the signal can be judged: it has an outcome, or its candle is stored.
    pub has_candle: bool,
}

/// A provisional signal (of an unfinished candle), as it was when it was first found.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisionalSignal {
    pub symbol: Symbol,
    pub pattern: String,
    /// True if the signal claims a rise, false for a fall.
    pub bullish: bool,
    pub confidence: f64,
    pub basis: Basis,
    /// Last price of the candle, in ten-thousandths of a rupee.
    pub price_e4: i64,
    pub simulated: bool,
}

/// Whether the finished candle has the pattern too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The date's complete list has not been published.
    Unknown,
    Confirmed,
    Vanished,
}

/// An entry of the ledger of provisional signals.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisionalEntry {
    /// Ascending in the order in which the signals were found.
    pub id: i64,
    pub on: Date,
    pub signal: ProvisionalSignal,
    pub first_seen_ms: i64,
    pub completion: Completion,
    pub outcome: Option<SignalOutcome>,
    /// Whether the signal can be judged, as in [`LedgerEntry`].
    pub has_candle: bool,
}

// ---- Limits
//
// How much a store takes of one user, whatever the engine.

/// What one sync of one broker may bring of each. The largest retail accounts hold some hundreds;
/// the rest is room.
pub(crate) const ROWS_MAX: usize = 5_000;
/// What one user may keep in the journal: forty a trading day for a year.
pub(crate) const ENTRIES_MAX: usize = 10_000;
/// Bytes of text in them (symbol, strategy, notes and tags, as stored): 800 each, if all are there.
/// Bounds what one account takes of the disk, of memory for an export, and of the writer when it is
/// erased; the longest texts in every entry would be 200 MB.
pub(crate) const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Text of a page, but for one longer entry: it is made into JSON in some hundred microseconds.
pub(crate) const PAGE_BYTES_MAX: usize = 256 * 1024;
/// Changes of accounts and tokens that are read at a time.
pub(crate) const CHANGES_PAGE: usize = 500;
/// Changes of accounts and tokens that are kept, for nodes that were away for a while: some
/// megabyte. One that misses more of them reads all accounts anew, as at its start.
pub(crate) const CHANGES_KEPT: usize = 10_000;
/// Networks that are kept of an account: home, work, and the last few of a phone.
pub(crate) const LOGIN_NETWORKS_MAX: usize = 8;
/// Networks of all accounts that are read at a time, the newest: some 10 MB. Logins from those that
/// were not read are strangers' until they succeed.
pub(crate) const LOGIN_NETWORKS_READ: usize = 200_000;
/// A network is written again once its last use was written so long before.
pub(crate) const LOGIN_NETWORK_AGAIN_MS: i64 = 20 * 3_600_000;

// ---- Error
//
// Why an operation of the store failed.

/// The text is for the log. Clients get an error code, which `api/errors` chooses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the e-mail is registered already")]
    EmailTaken,
    /// There is or was another account already, and only the first was to be added.
    #[error("this is not the first account of the database")]
    NotFirst,
    /// The user was erased meanwhile.
    #[error("no such user")]
    NoSuchUser,
    /// A user has reached a bound on what is stored.
    #[error("at most {limit} {what} per user")]
    TooMany { what: &'static str, limit: usize },
    /// The record is not in the state that the change expects. Nothing was written.
    #[error("the record is not in the state that the change expects")]
    NotAsExpected,
    /// Another node has led since. Nothing was written.
    #[error("another node leads")]
    Deposed,
    /// The user's turn ran out and another change took it. Nothing was written.
    #[error("another change of the user's portfolio has taken the turn")]
    TurnLost,
    /// The portfolio is that of another person at the broker. Nothing was written. The id is not
    /// for the log.
    #[error("the portfolio is of another person at the broker")]
    OtherBrokerUser { kept: String },
    #[error("too much is waiting for the store")]
    Busy,
    /// The deadline passed. A write may still happen.
    #[error("the store did not answer in time")]
    Late,
    /// The disk is full, or the file is read-only, corrupt or not open.
    #[error("the store cannot be used: {0}")]
    Unavailable(String),
    /// A row that this program could not have written.
    #[error("a stored row is damaged: {0}")]
    Damaged(&'static str),
}
