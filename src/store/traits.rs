//! The interface of the store. Nothing above it knows which engine is behind it.

use jiff::civil::Date;

use crate::base::{Broker, Candle, Epoch, Symbol, Synced};
use crate::portfolio::{DayPoint, Derived, SyncOutcome};
use crate::store::expected::{Expected, ExpectedPage};
use crate::store::records::{
    AccountId, AuthState, Before, CandleHistory, Changes, ClosePage, DatabaseIdentity, Deleted,
    Erased, JournalCursor, JournalEntry, JournalFields, JournalPage, JournalSize, LastRead,
    LedgerEntry, LoginNetwork, NewHistory, NewUser, Portfolio, PriceOfClose, ProvisionalEntry,
    ProvisionalSignal, PublishedSignal, SignalOutcome, StoreError, StoreHealth, StoredCandles,
    Turn, User, UserChange, UserSecrets, UserSummary, Valued,
};
use crate::store::sqlite::errors::MaintenanceError;

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

/// Durable storage. Every method may fail with [`StoreError`].
pub trait Store: Send + Sync {
    // Accounts.

    /// Adds a user. [`StoreError::EmailTaken`] where the e-mail, already normalised, is known.
    /// It begins with a random token epoch.
    fn create_user(&self, user: NewUser) -> Result<UserSecrets, StoreError>;
    /// Same as [`create_user`](Self::create_user), for the first account the database ever has.
    /// [`StoreError::NotFirst`] where there is or was another; of two at once one is the first.
    fn create_first_user(&self, user: NewUser) -> Result<UserSecrets, StoreError>;
    /// The user with a normalised e-mail, with the data that a login checks.
    fn user_by_email(&self, email: &str) -> Result<Option<UserSecrets>, StoreError>;
    fn user_by_id(&self, id: AccountId) -> Result<Option<UserSecrets>, StoreError>;
    /// Replaces the hash `old` by one of the same password with better parameters. Returns false if
    /// the stored hash is no longer `old`.
    fn replace_hash(&self, id: AccountId, old: &str, new: &str) -> Result<bool, StoreError>;
    /// Changes the password if the stored hash is still `old_hash`, and returns the user's new,
    /// higher token epoch. `None` if another change came first or the user does not exist.
    fn change_password(
        &self,
        id: AccountId,
        old_hash: &str,
        new_hash: &str,
    ) -> Result<Option<i64>, StoreError>;
    /// Erases the user and everything stored for them, from the file and its log.
    fn erase_user(&self, id: AccountId) -> Result<Erased, StoreError>;
    /// Refuses all of the user's tokens of before, and returns the user's new, higher token epoch.
    /// `None` if the user does not exist.
    fn end_tokens(&self, id: AccountId) -> Result<Option<i64>, StoreError>;
    /// Revokes one token, which expires at `expires_ms`.
    fn revoke_token(&self, token_id: &str, expires_ms: i64) -> Result<(), StoreError>;
    /// Deletes revocations of tokens that expired before `before_ms`, and returns how many.
    fn forget_revocations(&self, before_ms: i64) -> Result<usize, StoreError>;
    /// Networks from which accounts were used at `since_ms` or later, each with the account's
    /// e-mail; the newest first, a bounded number.
    fn login_networks(&self, since_ms: i64) -> Result<Vec<(String, LoginNetwork)>, StoreError>;
    /// Notes networks, of each account the newest few. Accounts that are gone are passed over.
    fn keep_login_networks(&self, seen: Vec<LoginNetwork>) -> Result<(), StoreError>;
    /// Deletes networks that were last seen before `before_ms`.
    fn forget_login_networks(&self, before_ms: i64) -> Result<(), StoreError>;
    /// The state that decides whether a token is accepted, all of one moment, to be kept in memory.
    fn auth_state(&self) -> Result<AuthState, StoreError>;

    /// Which database it is.
    fn identity(&self) -> Result<DatabaseIdentity, StoreError>;
    /// Gives the database a new incarnation if it has gone back since `read` and still has the one
    /// that was `seen`: of several nodes, one does. Returns which database it is then.
    fn renew_incarnation(&self, seen: &str, read: LastRead)
    -> Result<DatabaseIdentity, StoreError>;
    /// Records the check value `own` of the secret that this node signs tokens with, where none is
    /// recorded or one of those in `known`. Returns the recorded one where it is another. A store
    /// that one process has records none.
    fn claim_secret(&self, own: &str, known: &[String]) -> Result<Option<String>, StoreError>;

    /// The next changes after `number` of what [`auth_state`](Self::auth_state) has, made by this
    /// service, by other nodes or by operators' commands.
    fn changes_after(&self, number: i64) -> Result<Changes, StoreError>;
    /// Records that the one service of a database has applied the changes up to `number`, for
    /// commands that wait for it.
    fn notice_changes(&self, number: i64) -> Result<(), StoreError>;
    /// Deletes all changes but the newest. Who has not read them reads all anew.
    fn forget_changes(&self) -> Result<(), StoreError>;

    // Portfolios.

    // Syncs and deletions of one user take turns, also on different nodes. Each checks within its
    // transaction that it has the turn, and fails with [`StoreError::TurnLost`] where that ran out
    // and another has taken it. A store that one process has grants every turn at once.

    /// Takes the user's turn for [`Turn::LASTS_MS`]; `None` while another holder has it.
    fn take_turn(&self, id: AccountId) -> Result<Option<Turn>, StoreError>;
    /// Lets a turn last for its whole time from now; false where another has taken it.
    fn extend_turn(&self, turn: &Turn) -> Result<bool, StoreError>;
    /// Ends a turn, if its holder still has it.
    fn end_turn(&self, turn: &Turn) -> Result<(), StoreError>;
    /// Replaces the stored rows of one broker for a user and writes the day's point, as derived, in
    /// one transaction. Returns the outcome that was derived of what was written.
    fn replace_portfolio(&self, turn: &Turn, new: NewPortfolio) -> Result<SyncOutcome, StoreError>;
    /// All of a user's holdings, positions and times of sync.
    fn portfolio(&self, id: AccountId) -> Result<Portfolio, StoreError>;
    /// A number that is another after each write of the user's portfolio. Gives up soon: who asks
    /// has a response that is finished but for this.
    fn portfolio_version(&self, id: AccountId) -> Result<i64, StoreError>;
    /// Points from `since` on, oldest first.
    fn points(&self, id: AccountId, since: Date) -> Result<Vec<DayPoint>, StoreError>;
    /// Deletes holdings, positions and points. The journal stays.
    fn delete_portfolio(&self, turn: &Turn) -> Result<Deleted, StoreError>;

    // The close of a trading day.

    // What the leader alone writes takes its epoch, and fails with [`StoreError::Deposed`] where
    // another node has led since.

    /// Whether the revaluation at the close of `date` is finished.
    fn is_closed(&self, date: Date) -> Result<bool, StoreError>;
    /// Distinct symbols of stored holdings, after `after`, in order, at most `limit`.
    fn held_symbols(&self, after: Option<&Symbol>, limit: usize)
    -> Result<Vec<Symbol>, StoreError>;
    /// Symbols without a closing price on the last date that was closed, after `after`, in order,
    /// at most `limit`.
    fn silent_symbols(
        &self,
        after: Option<&Symbol>,
        limit: usize,
    ) -> Result<Vec<Symbol>, StoreError>;
    /// Stores closing prices of a date.
    fn keep_closes(
        &self,
        epoch: Epoch,
        date: Date,
        prices: &[PriceOfClose],
    ) -> Result<(), StoreError>;
    /// All stored closing prices of a date.
    fn closes(&self, date: Date) -> Result<Vec<PriceOfClose>, StoreError>;
    /// Portfolios of the next users after `after` with holdings that are not completely valued at
    /// the close of `date`, in order of id, at most `limit`.
    fn portfolios_to_close(
        &self,
        date: Date,
        after: AccountId,
        limit: usize,
    ) -> Result<ClosePage, StoreError>;
    /// Writes closing prices into the rows of these portfolios, and the points of `date`, in one
    /// transaction. A later point of a date replaces an earlier one.
    fn keep_points(&self, epoch: Epoch, date: Date, points: Vec<Valued>) -> Result<(), StoreError>;
    /// Finishes the revaluation of `date`. The symbols in `silent` had no closing price.
    fn finish_close(
        &self,
        epoch: Epoch,
        date: Date,
        finished_ms: i64,
        silent: Vec<Symbol>,
    ) -> Result<(), StoreError>;

    // The journal.

    // A change checks its precondition within its transaction and fails with
    // [`StoreError::NotAsExpected`].

    /// Adds an entry. `page`, if given, is a page of the journal that must still be in the state
    /// the client has seen.
    fn add_entry(
        &self,
        id: AccountId,
        fields: JournalFields,
        now_ms: i64,
        page: Option<ExpectedPage>,
    ) -> Result<JournalEntry, StoreError>;
    /// A page of entries, newest trading date first, then newest entry. It has fewer than `limit`
    /// entries if they are long.
    fn entries(
        &self,
        id: AccountId,
        after: Option<JournalCursor>,
        limit: usize,
    ) -> Result<JournalPage, StoreError>;
    /// Size of the journal, as counted at each change.
    fn journal_size(&self, id: AccountId) -> Result<JournalSize, StoreError>;
    /// The entry; `None` if this user has no such entry.
    fn entry(&self, id: AccountId, entry: i64) -> Result<Option<JournalEntry>, StoreError>;
    fn replace_entry(
        &self,
        id: AccountId,
        entry: i64,
        fields: JournalFields,
        now_ms: i64,
        expected: Expected,
    ) -> Result<Option<JournalEntry>, StoreError>;
    fn delete_entry(
        &self,
        id: AccountId,
        entry: i64,
        expected: Expected,
    ) -> Result<bool, StoreError>;

    // Its own state.

    /// The state that the last operations and probes showed. Never waits.
    fn health(&self) -> StoreHealth;
    /// Probes the file: reads and, if writing was refused before, writes. Completes what an erasure
    /// left to be done. Blocks.
    fn probe(&self);
    /// Writes what waits, moves the log into the database file, and refuses everything afterwards.
    /// Blocks.
    fn close(&self);
}

/// Durable storage of candles and signals, for the signals warmer. Every method may fail with
/// [`StoreError`]. The leader alone writes, and says its epoch: [`StoreError::Deposed`] where
/// another node has led since.
pub trait SignalStore: Send + Sync {
    /// The stored history of every symbol, without candles.
    fn candle_histories(&self) -> Result<Vec<CandleHistory>, StoreError>;
    /// A symbol's newest candles, at most `max`, with what is known of all of them; `None` if
    /// nothing is stored.
    fn candle_history(
        &self,
        symbol: &Symbol,
        max: usize,
    ) -> Result<Option<StoredCandles>, StoreError>;
    /// A symbol's candles, oldest first.
    fn candles(&self, symbol: &Symbol) -> Result<Vec<Candle>, StoreError>;
    /// Replaces the stored history of a symbol.
    fn replace_candles(&self, epoch: Epoch, history: NewHistory) -> Result<(), StoreError>;
    /// Appends sessions after the last stored one, and drops candles before `keep_from`.
    fn append_candles(
        &self,
        epoch: Epoch,
        symbol: &Symbol,
        candles: Vec<Candle>,
        keep_from: Date,
    ) -> Result<(), StoreError>;
    /// Marks a symbol's candles as not to be used until all are fetched again.
    fn want_refetch(
        &self,
        epoch: Epoch,
        symbol: &Symbol,
        suspected: Option<Date>,
    ) -> Result<(), StoreError>;
    /// Publishes a date's signals, which were searched for in so many symbols. Returns false, and
    /// writes nothing, if the date was published before.
    fn publish_signals(
        &self,
        epoch: Epoch,
        on: Date,
        published_ms: i64,
        symbols: usize,
        signals: Vec<PublishedSignal>,
    ) -> Result<bool, StoreError>;
    /// First and last date that was published.
    fn signal_dates(&self) -> Result<Option<(Date, Date)>, StoreError>;
    /// Every date that was published, oldest first.
    fn published_dates(&self) -> Result<Vec<Date>, StoreError>;
    /// A date's signals in their published order.
    fn signals_of(&self, on: Date) -> Result<Vec<PublishedSignal>, StoreError>;
    /// A page of the ledger after the entry `after`.
    fn ledger(&self, after: i64, limit: usize) -> Result<Vec<LedgerEntry>, StoreError>;
    /// Records the outcomes of signals. An outcome that exists is not overwritten.
    fn keep_outcomes(
        &self,
        epoch: Epoch,
        outcomes: Vec<(i64, SignalOutcome)>,
    ) -> Result<(), StoreError>;

    // Provisional signals, of unfinished candles, which have a ledger of their own.

    /// Records provisional signals of the running date before they are shown, each once. Returns
    /// how many were new.
    fn keep_provisional(
        &self,
        epoch: Epoch,
        on: Date,
        seen_ms: i64,
        signals: Vec<ProvisionalSignal>,
    ) -> Result<usize, StoreError>;
    /// A page of the ledger of provisional signals after the entry `after`.
    fn provisional_ledger(
        &self,
        after: i64,
        limit: usize,
    ) -> Result<Vec<ProvisionalEntry>, StoreError>;
    /// Records the outcomes of provisional signals. An outcome that exists is not overwritten.
    fn keep_provisional_outcomes(
        &self,
        epoch: Epoch,
        outcomes: Vec<(i64, SignalOutcome)>,
    ) -> Result<(), StoreError>;
}

/// A database with both interfaces.
pub trait Database: Store + SignalStore {}

impl<T: Store + SignalStore> Database for T {}

/// Users as an operator's commands list and change them, beside a running service or without one.
/// Called on a command's main thread; blocks. Each change is numbered in the transaction that makes
/// it, so that the running services apply it. A password's hash is never returned.
pub trait UserDirectory {
    /// The next users after `after`, in order of id.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    fn page(&self, after: AccountId, limit: usize) -> Result<Vec<UserSummary>, MaintenanceError>;

    /// The user with an id or with a normalised e-mail.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    fn find(&self, id_or_email: &str) -> Result<Option<UserSummary>, MaintenanceError>;

    /// Adds a user; `None` if the normalised e-mail is registered already.
    ///
    /// # Errors
    /// [`MaintenanceError`]. Then nothing was changed.
    fn add(&mut self, user: NewUser) -> Result<Option<User>, MaintenanceError>;

    /// Replaces the password and refuses every older token. Returns the number of the change, or
    /// `None` if there is no such user. A disabled user stays disabled and gets no valid token.
    ///
    /// # Errors
    /// [`MaintenanceError`]. Then nothing was changed.
    fn set_password(&mut self, id: AccountId, hash: &str) -> Result<Option<i64>, MaintenanceError>;

    /// Makes the change and returns its number, or `None` if there was nothing to change.
    ///
    /// # Errors
    /// [`MaintenanceError`]. Then nothing was changed.
    fn change(
        &mut self,
        id: AccountId,
        change: UserChange,
    ) -> Result<Option<i64>, MaintenanceError>;

    /// Gives the database a new incarnation, which ends every login; where it is a copy of another
    /// one that goes on, another id of the cluster too.
    ///
    /// # Errors
    /// [`MaintenanceError`]. Then nothing was changed.
    fn renew_identity(&mut self, is_copy: bool) -> Result<DatabaseIdentity, MaintenanceError>;

    /// Whether the running service has applied the change with this number; `None` where any number
    /// of services may run, each of which applies it within seconds or refuses every token.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    fn noticed(&self, number: i64) -> Result<Option<bool>, MaintenanceError>;
}
