//! What the product asks of a store. Nothing above knows which engine is behind it.

use jiff::civil::Date;

use crate::base::{Broker, Candle, Symbol, Synced};
use crate::portfolio::{DayPoint, Derived, SyncOutcome};
use crate::store::error::StoreError;
use crate::store::expected::{Expected, ExpectedPage};
use crate::store::records::{
    AccountId, AuthState, Before, ClosePage, Deleted, Erased, JournalCursor, JournalEntry,
    JournalFields, JournalPage, JournalSize, NewUser, OutsideChanges, Portfolio, PriceOfClose,
    StoreHealth, User, UserChange, UserSecrets, UserSummary, Valued,
};
use crate::store::signal_records::{
    CandleHistory, LedgerEntry, NewHistory, ProvisionalEntry, ProvisionalSignal, PublishedSignal,
    SignalOutcome,
};
use crate::store::sqlite::maintenance::MaintenanceError;

/// Decides, inside a sync's transaction, what is written and what the user is told, from what
/// stands there and what the broker sent. Runs on the store's writer; must be quick and pure, since
/// a store that has to repeat the transaction calls it again.
pub type Derive = Box<dyn Fn(&Before, &Synced) -> Derived + Send>;

/// Durable storage. Every method may fail with [`StoreError`].
pub trait Store: Send + Sync {
    // Accounts.

    /// Adds a user. [`StoreError::EmailTaken`] where the e-mail, already normalised, is known.
    fn create_user(&self, user: NewUser) -> Result<User, StoreError>;
    /// The user of a normalised e-mail, with what a login checks.
    fn user_by_email(&self, email: &str) -> Result<Option<UserSecrets>, StoreError>;
    fn user_by_id(&self, id: AccountId) -> Result<Option<UserSecrets>, StoreError>;
    /// Stores a hash of the same password with better parameters, if the one it was made from still
    /// stands.
    fn replace_hash(&self, id: AccountId, old: &str, new: &str) -> Result<bool, StoreError>;
    /// Changes the password, if `old_hash` still stands, and makes a higher token epoch, which it
    /// returns; `None` where another change came first or the user is gone.
    fn change_password(
        &self,
        id: AccountId,
        old_hash: &str,
        new_hash: &str,
    ) -> Result<Option<i64>, StoreError>;
    /// Erases the user and everything of theirs, from the file and its log.
    fn erase_user(&self, id: AccountId) -> Result<Erased, StoreError>;
    /// Refuses one token from now on; it expires at `expires_ms`.
    fn revoke_token(&self, token_id: &str, expires_ms: i64) -> Result<(), StoreError>;
    /// Drops revocations of tokens that had expired before `before_ms`; how many.
    fn forget_revocations(&self, before_ms: i64) -> Result<usize, StoreError>;
    /// What decides about a token beside its signature, all of one moment, for memory.
    fn auth_state(&self) -> Result<AuthState, StoreError>;

    /// Whether an operator's command changed users beside this service.
    fn outside_changes(&self) -> Result<OutsideChanges, StoreError>;
    /// Says that the changes up to number `made` were taken up.
    fn notice_outside_changes(&self, made: i64) -> Result<(), StoreError>;

    // Portfolios.

    /// Replaces what the store has of one broker for a user, in one transaction with the day's
    /// point that `derive` computes, and shows it the closing prices of `closes_of`. Everything or
    /// nothing. Returns the outcome that `derive` computed of what was written.
    fn replace_portfolio(
        &self,
        id: AccountId,
        broker: Broker,
        synced_ms: i64,
        synced: Synced,
        closes_of: Option<Date>,
        derive: Derive,
    ) -> Result<SyncOutcome, StoreError>;
    /// All of a user's holdings, positions and times of sync.
    fn portfolio(&self, id: AccountId) -> Result<Portfolio, StoreError>;
    /// Points from `since` on, oldest first.
    fn points(&self, id: AccountId, since: Date) -> Result<Vec<DayPoint>, StoreError>;
    /// Deletes holdings, positions and points; not the journal.
    fn delete_portfolio(&self, id: AccountId) -> Result<Deleted, StoreError>;

    // The close of a trading day.

    /// Whether the day's revaluation is finished.
    fn is_closed(&self, date: Date) -> Result<bool, StoreError>;
    /// Distinct symbols that stored holdings need, after `after`, in order, at most `limit`.
    fn held_symbols(&self, after: Option<&Symbol>, limit: usize)
    -> Result<Vec<Symbol>, StoreError>;
    /// Symbols after `after` that had no closing price on the last date that was closed, in order,
    /// at most `limit`.
    fn silent_symbols(
        &self,
        after: Option<&Symbol>,
        limit: usize,
    ) -> Result<Vec<Symbol>, StoreError>;
    /// Keeps closing prices of a date.
    fn keep_closes(&self, date: Date, prices: &[PriceOfClose]) -> Result<(), StoreError>;
    /// All kept closing prices of a date.
    fn closes(&self, date: Date) -> Result<Vec<PriceOfClose>, StoreError>;
    /// Portfolios of the next users after `after` that have holdings and no complete value at the
    /// close of `date`, in order of id, at most `limit`.
    fn portfolios_to_close(
        &self,
        date: Date,
        after: AccountId,
        limit: usize,
    ) -> Result<ClosePage, StoreError>;
    /// Writes closing prices into the rows of these portfolios, and the date's points, in one
    /// transaction. Of a date's points the one written last stands.
    fn keep_points(&self, date: Date, points: Vec<Valued>) -> Result<(), StoreError>;
    /// Ends the day's revaluation, in which `silent` had no closing price.
    fn finish_close(
        &self,
        date: Date,
        finished_ms: i64,
        silent: Vec<Symbol>,
    ) -> Result<(), StoreError>;

    // The journal.

    // Changes compare what they expect in their own transaction: [`StoreError::NotAsExpected`].

    /// `page` is what the writer has seen of the journal, where that matters.
    fn add_entry(
        &self,
        id: AccountId,
        fields: JournalFields,
        now_ms: i64,
        page: Option<ExpectedPage>,
    ) -> Result<JournalEntry, StoreError>;
    /// A page, newest trading date first, then newest entry. Ends before `limit` where the entries
    /// are long.
    fn entries(
        &self,
        id: AccountId,
        after: Option<JournalCursor>,
        limit: usize,
    ) -> Result<JournalPage, StoreError>;
    /// How much there is in the journal, as counted at each change.
    fn journal_size(&self, id: AccountId) -> Result<JournalSize, StoreError>;
    /// `None` where the user has no such entry, whoever else may.
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

    /// What the last operations and probes saw. Never waits.
    fn health(&self) -> StoreHealth;
    /// Tries the file: a read and, where writing was refused before, a write. Does what an erasure
    /// left to be done. Blocks.
    fn probe(&self);
    /// Writes what waits, leaves all of it in the one file, and takes nothing any more. Blocks.
    fn close(&self);
}

/// Durable storage of candles and signals, for the warmer of signals. Every method may fail with
/// [`StoreError`].
pub trait SignalStore: Send + Sync {
    /// What is stored of every symbol's candles.
    fn candle_histories(&self) -> Result<Vec<CandleHistory>, StoreError>;
    /// A symbol's candles, oldest first.
    fn candles(&self, symbol: &Symbol) -> Result<Vec<Candle>, StoreError>;
    /// Puts a whole history in the place of what is stored of its symbol.
    fn replace_candles(&self, history: NewHistory) -> Result<(), StoreError>;
    /// Adds the sessions after the last stored one, and drops what lies before `keep_from`.
    fn append_candles(
        &self,
        symbol: &Symbol,
        candles: Vec<Candle>,
        keep_from: Date,
    ) -> Result<(), StoreError>;
    /// Notes that a symbol's candles are not to be used until all are fetched again.
    fn want_refetch(&self, symbol: &Symbol, suspected: Option<Date>) -> Result<(), StoreError>;
    /// Publishes a date's signals, found in so many symbols; once: false where the date was
    /// published before, and then nothing is written.
    fn publish_signals(
        &self,
        on: Date,
        published_ms: i64,
        symbols: usize,
        signals: Vec<PublishedSignal>,
    ) -> Result<bool, StoreError>;
    /// First and last date that was published.
    fn signal_dates(&self) -> Result<Option<(Date, Date)>, StoreError>;
    /// Every date that was published, oldest first.
    fn published_dates(&self) -> Result<Vec<Date>, StoreError>;
    /// A date's signals in their order.
    fn signals_of(&self, on: Date) -> Result<Vec<PublishedSignal>, StoreError>;
    /// A page of the ledger after the line `after`.
    fn ledger(&self, after: i64, limit: usize) -> Result<Vec<LedgerEntry>, StoreError>;
    /// Writes what became of signals; the first word stands.
    fn keep_outcomes(&self, outcomes: Vec<(i64, SignalOutcome)>) -> Result<(), StoreError>;

    // Of unfinished candles, in a ledger apart.

    /// Puts on record what is about to be shown of the running date, each signal once. How many
    /// were new.
    fn keep_provisional(
        &self,
        on: Date,
        seen_ms: i64,
        signals: Vec<ProvisionalSignal>,
    ) -> Result<usize, StoreError>;
    /// A page of that ledger after the line `after`.
    fn provisional_ledger(
        &self,
        after: i64,
        limit: usize,
    ) -> Result<Vec<ProvisionalEntry>, StoreError>;
    /// Writes what became of them; the first word stands.
    fn keep_provisional_outcomes(
        &self,
        outcomes: Vec<(i64, SignalOutcome)>,
    ) -> Result<(), StoreError>;
}

/// Everything that one database holds, as one value for who puts the service together.
pub trait Database: Store + SignalStore {}

impl<T: Store + SignalStore> Database for T {}

/// Users in the hands of the operator, beside a running service or without one. Called on a
/// command's main thread; blocks. Each change is counted in the transaction that makes it, so that
/// the service takes it up. Never gives away a password's hash.
pub trait UserDirectory {
    /// The next users after `after`, in order of id.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    fn page(&self, after: AccountId, limit: usize) -> Result<Vec<UserSummary>, MaintenanceError>;

    /// The user of an id or a normalised e-mail.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    fn find(&self, id_or_email: &str) -> Result<Option<UserSummary>, MaintenanceError>;

    /// Adds a user; `None` where the e-mail, already normalised, is known. A running service needs
    /// no word of it: it reads who logs in.
    ///
    /// # Errors
    /// [`MaintenanceError`]; then nothing was changed.
    fn add(&mut self, user: NewUser) -> Result<Option<User>, MaintenanceError>;

    /// Replaces the password, whatever it was, and refuses every older token. Gives the number of
    /// the change, or `None` where there is no such user. A disabled user stays disabled, and has
    /// no token that would be good.
    ///
    /// # Errors
    /// [`MaintenanceError`]; then nothing was changed.
    fn set_password(&mut self, id: AccountId, hash: &str) -> Result<Option<i64>, MaintenanceError>;

    /// Makes the change and gives its number, or `None` where there was nothing to change.
    ///
    /// # Errors
    /// [`MaintenanceError`]; then nothing was changed.
    fn change(
        &mut self,
        id: AccountId,
        change: UserChange,
    ) -> Result<Option<i64>, MaintenanceError>;

    /// Whether the running service has taken up the change with this number.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    fn noticed(&self, number: i64) -> Result<bool, MaintenanceError>;
}
