//! The operations of the store, over any engine.

use jiff::civil::Date;

use crate::base::{Candle, Epoch, Symbol};
use crate::portfolio::{DayPoint, SyncOutcome};
use crate::store::open::Store;
use crate::store::statements::{accounts, candles, eod, journal, portfolios, signals};
use crate::store::tx::{GLANCE_DEADLINE_MS, PAGE_DEADLINE_MS, READ_DEADLINE_MS, Write};
use crate::store::{
    AccountId, AuthState, CandleHistory, Changes, ClosePage, DatabaseIdentity, Deleted, Erased,
    Expected, ExpectedPage, JournalCursor, JournalEntry, JournalFields, JournalPage, JournalSize,
    LastRead, LedgerEntry, LoginNetwork, NewHistory, NewPortfolio, NewUser, Portfolio,
    PriceOfClose, ProvisionalEntry, ProvisionalSignal, PublishedSignal, SignalOutcome, StoreError,
    StoredCandles, Turn, UserSecrets, Valued,
};

impl Store {
    /// Adds a user. [`StoreError::EmailTaken`] where the e-mail, already normalised, is known.
    /// It begins with a random token epoch.
    pub fn create_user(&self, user: NewUser) -> Result<UserSecrets, StoreError> {
        self.write(Write::new(), move |tx| accounts::create(tx, &user))
    }

    /// Same as [`create_user`](Self::create_user), for the first account the database ever has.
    /// [`StoreError::NotFirst`] where there is or was another; of two at once one is the first.
    pub(crate) fn create_first_user(&self, user: NewUser) -> Result<UserSecrets, StoreError> {
        self.write(Write::new(), move |tx| accounts::create_first(tx, &user))
    }

    /// The user with a normalised e-mail, with the data that a login checks.
    pub fn user_by_email(&self, email: &str) -> Result<Option<UserSecrets>, StoreError> {
        let email = email.to_owned();
        self.read(READ_DEADLINE_MS, move |tx| accounts::by_email(tx, &email))
    }

    pub(crate) fn user_by_id(&self, id: AccountId) -> Result<Option<UserSecrets>, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| accounts::by_id(tx, id))
    }

    /// Replaces the hash `old` by one of the same password with better parameters. Returns false if
    /// the stored hash is no longer `old`.
    pub(crate) fn replace_hash(
        &self,
        id: AccountId,
        old: &str,
        new: &str,
    ) -> Result<bool, StoreError> {
        let (old, new) = (old.to_owned(), new.to_owned());
        self.write(Write::new(), move |tx| accounts::replace_hash(tx, id, &old, &new))
    }

    /// Changes the password if the stored hash is still `old_hash`, and returns the user's new,
    /// higher token epoch. `None` if another change came first or the user does not exist.
    pub(crate) fn change_password(
        &self,
        id: AccountId,
        old_hash: &str,
        new_hash: &str,
    ) -> Result<Option<i64>, StoreError> {
        let (old, new) = (old_hash.to_owned(), new_hash.to_owned());
        self.write(Write::new().of([id]).hiding(), move |tx| {
            accounts::change_password(tx, id, &old, &new)
        })
    }

    /// Erases the user and everything stored for them, from the file and its log.
    pub fn erase_user(&self, id: AccountId) -> Result<Erased, StoreError> {
        self.erase(Write::new().of([id]), move |tx| accounts::erase(tx, id), |erased| erased.user)
    }

    /// Refuses all of the user's tokens of before, and returns the user's new, higher token epoch.
    /// `None` if the user does not exist.
    pub(crate) fn end_tokens(&self, id: AccountId) -> Result<Option<i64>, StoreError> {
        self.write(Write::new().of([id]), move |tx| accounts::end_tokens(tx, id))
    }

    /// Revokes one token, which expires at `expires_ms`.
    pub(crate) fn revoke_token(&self, token_id: &str, expires_ms: i64) -> Result<(), StoreError> {
        let token_id = token_id.to_owned();
        self.write(Write::new(), move |tx| accounts::revoke_token(tx, &token_id, expires_ms))
    }

    /// Deletes revocations of tokens that expired before `before_ms`, and returns how many.
    pub(crate) fn forget_revocations(&self, before_ms: i64) -> Result<usize, StoreError> {
        self.write(Write::new(), move |tx| accounts::forget_revocations(tx, before_ms))
    }

    /// Networks from which accounts were used at `since_ms` or later, each with the account's
    /// e-mail; the newest first, a bounded number.
    pub(crate) fn login_networks(
        &self,
        since_ms: i64,
    ) -> Result<Vec<(String, LoginNetwork)>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| accounts::login_networks(tx, since_ms))
    }

    /// Notes networks, of each account the newest few. Accounts that are gone are passed over.
    pub(crate) fn keep_login_networks(
        &self,
        mut seen: Vec<LoginNetwork>,
    ) -> Result<(), StoreError> {
        seen.sort();
        self.write(Write::page(), move |tx| accounts::keep_login_networks(tx, &seen))
    }

    /// Deletes networks that were last seen before `before_ms`.
    pub(crate) fn forget_login_networks(&self, before_ms: i64) -> Result<(), StoreError> {
        self.write(Write::page(), move |tx| accounts::forget_login_networks(tx, before_ms))
    }

    /// The state that decides whether a token is accepted, all of one moment, to be kept in memory.
    pub(crate) fn auth_state(&self) -> Result<AuthState, StoreError> {
        self.read(PAGE_DEADLINE_MS, accounts::auth_state)
    }

    /// Which database it is.
    pub(crate) fn identity(&self) -> Result<DatabaseIdentity, StoreError> {
        self.glance(READ_DEADLINE_MS, accounts::identity)
    }

    /// Gives the database a new incarnation if it has gone back since `read` and still has the one
    /// that was `seen`: of several nodes, one does. Returns which database it is then.
    pub(crate) fn renew_incarnation(
        &self,
        seen: &str,
        read: LastRead,
    ) -> Result<DatabaseIdentity, StoreError> {
        let seen = seen.to_owned();
        self.write(Write::new(), move |tx| accounts::renew_incarnation(tx, &seen, read))
    }

    /// Records the check value `own` of the secret that this node signs tokens with, where none is
    /// recorded or one of those in `known`. Returns the recorded one where it is another. A store
    /// that one process has records none.
    pub(crate) fn claim_secret(
        &self,
        own: &str,
        known: &[String],
    ) -> Result<Option<String>, StoreError> {
        if !self.is_shared() {
            return Ok(None);
        }
        let (own, known) = (own.to_owned(), known.to_vec());
        self.write(Write::new(), move |tx| accounts::claim_secret(tx, &own, &known))
    }

    /// The next changes after `number` of what [`auth_state`](Self::auth_state) has, made by this
    /// service, by other nodes or by operators' commands.
    pub(crate) fn changes_after(&self, number: i64) -> Result<Changes, StoreError> {
        self.glance(READ_DEADLINE_MS, move |tx| accounts::after(tx, number))
    }

    /// Records that the one service of a database has applied the changes up to `number`, for
    /// commands that wait for it.
    pub(crate) fn notice_changes(&self, number: i64) -> Result<(), StoreError> {
        // Some of the changes may have been erasures.
        self.write(Write::new().hiding(), move |tx| accounts::notice(tx, number))
    }

    /// Deletes all changes but the newest. Who has not read them reads all anew.
    pub(crate) fn forget_changes(&self) -> Result<(), StoreError> {
        self.write(Write::new(), accounts::forget)
    }

    /// Replaces the stored rows of one broker for a user and writes the day's point, as derived, in
    /// one transaction. Returns the outcome that was derived of what was written.
    pub fn replace_portfolio(
        &self,
        turn: &Turn,
        new: NewPortfolio,
    ) -> Result<SyncOutcome, StoreError> {
        let id = turn.user;
        self.write(Write::in_turn(turn), move |tx| portfolios::replace(tx, id, &new))
    }

    /// All of a user's holdings, positions and times of sync.
    pub fn portfolio(&self, id: AccountId) -> Result<Portfolio, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| portfolios::of(tx, id))
    }

    /// A number that is another after each write of the user's portfolio. Gives up soon: who asks
    /// has a response that is finished but for this.
    pub(crate) fn portfolio_version(&self, id: AccountId) -> Result<i64, StoreError> {
        self.glance(GLANCE_DEADLINE_MS, move |tx| portfolios::version(tx, id))
    }

    /// Points from `since` on, oldest first.
    pub fn points(&self, id: AccountId, since: Date) -> Result<Vec<DayPoint>, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| portfolios::points(tx, id, since))
    }

    /// Deletes holdings, positions and points. The journal stays.
    pub fn delete_portfolio(&self, turn: &Turn) -> Result<Deleted, StoreError> {
        let is_some = |deleted: &Deleted| *deleted != Deleted::default();
        let id = turn.user;
        self.erase(Write::in_turn(turn), move |tx| portfolios::delete(tx, id), is_some)
    }

    /// Whether the revaluation at the close of `date` is finished.
    pub fn is_closed(&self, date: Date) -> Result<bool, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| eod::is_finished(tx, date))
    }

    /// Distinct symbols of stored holdings, after `after`, in order, at most `limit`.
    pub(crate) fn held_symbols(
        &self,
        after: Option<&Symbol>,
        limit: usize,
    ) -> Result<Vec<Symbol>, StoreError> {
        let after = after.cloned();
        self.read(PAGE_DEADLINE_MS, move |tx| eod::held_symbols(tx, after.as_ref(), limit))
    }

    /// Symbols without a closing price on the last date that was closed, after `after`, in order,
    /// at most `limit`.
    pub(crate) fn silent_symbols(
        &self,
        after: Option<&Symbol>,
        limit: usize,
    ) -> Result<Vec<Symbol>, StoreError> {
        let after = after.cloned();
        self.read(PAGE_DEADLINE_MS, move |tx| eod::silent_symbols(tx, after.as_ref(), limit))
    }

    /// Stores closing prices of a date.
    pub(crate) fn keep_closes(
        &self,
        epoch: Epoch,
        date: Date,
        prices: &[PriceOfClose],
    ) -> Result<(), StoreError> {
        let prices = prices.to_vec();
        self.write(Write::leading(epoch), move |tx| eod::keep(tx, date, &prices))
    }

    /// All stored closing prices of a date.
    pub(crate) fn closes(&self, date: Date) -> Result<Vec<PriceOfClose>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| eod::of(tx, date))
    }

    /// Portfolios of the next users after `after` with holdings that are not completely valued at
    /// the close of `date`, in order of id, at most `limit`.
    pub fn portfolios_to_close(
        &self,
        date: Date,
        after: AccountId,
        limit: usize,
    ) -> Result<ClosePage, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| eod::portfolios_to_close(tx, date, after, limit))
    }

    /// Writes closing prices into the rows of these portfolios, and the points of `date`, in one
    /// transaction. A later point of a date replaces an earlier one.
    pub(crate) fn keep_points(
        &self,
        epoch: Epoch,
        date: Date,
        points: Vec<Valued>,
    ) -> Result<(), StoreError> {
        let users = points.iter().map(|valued| valued.id);
        let write = Write::leading(epoch).of(users);
        self.write(write, move |tx| eod::keep_points(tx, date, &points))
    }

    /// Finishes the revaluation of `date`. The symbols in `silent` had no closing price.
    pub(crate) fn finish_close(
        &self,
        epoch: Epoch,
        date: Date,
        finished_ms: i64,
        silent: Vec<Symbol>,
    ) -> Result<(), StoreError> {
        self.write(Write::leading(epoch), move |tx| eod::finish(tx, date, finished_ms, &silent))
    }

    /// Adds an entry. `page`, if given, is a page of the journal that must still be in the state
    /// the client has seen.
    pub(crate) fn add_entry(
        &self,
        id: AccountId,
        fields: JournalFields,
        now_ms: i64,
        page: Option<ExpectedPage>,
    ) -> Result<JournalEntry, StoreError> {
        self.write(Write::new().of([id]), move |tx| {
            journal::add(tx, id, &fields, now_ms, page.as_ref())
        })
    }

    /// A page of entries, newest trading date first, then newest entry. It has fewer than `limit`
    /// entries if they are long.
    pub(crate) fn entries(
        &self,
        id: AccountId,
        after: Option<JournalCursor>,
        limit: usize,
    ) -> Result<JournalPage, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| journal::page(tx, id, after, limit))
    }

    /// Size of the journal, as counted at each change.
    pub(crate) fn journal_size(&self, id: AccountId) -> Result<JournalSize, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| journal::size(tx, id))
    }

    /// The entry; `None` if this user has no such entry.
    pub(crate) fn entry(
        &self,
        id: AccountId,
        entry: i64,
    ) -> Result<Option<JournalEntry>, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| journal::one(tx, id, entry))
    }

    pub(crate) fn replace_entry(
        &self,
        id: AccountId,
        entry: i64,
        fields: JournalFields,
        now_ms: i64,
        expected: Expected,
    ) -> Result<Option<JournalEntry>, StoreError> {
        self.write(Write::new().of([id]).hiding(), move |tx| {
            journal::replace(tx, id, entry, &fields, now_ms, &expected)
        })
    }

    pub(crate) fn delete_entry(
        &self,
        id: AccountId,
        entry: i64,
        expected: Expected,
    ) -> Result<bool, StoreError> {
        self.write(Write::new().of([id]).hiding(), move |tx| {
            journal::delete(tx, id, entry, &expected)
        })
    }
}

// ---- Signals
//
// The operations on candles and signals, over any engine.

impl Store {
    /// The stored history of every symbol, without candles.
    pub fn candle_histories(&self) -> Result<Vec<CandleHistory>, StoreError> {
        self.read(PAGE_DEADLINE_MS, candles::histories)
    }

    /// A symbol's newest candles, at most `max`, with what is known of all of them; `None` if
    /// nothing is stored.
    pub(crate) fn candle_history(
        &self,
        symbol: &Symbol,
        max: usize,
    ) -> Result<Option<StoredCandles>, StoreError> {
        let symbol = symbol.clone();
        self.read(READ_DEADLINE_MS, move |tx| candles::newest(tx, &symbol, max))
    }

    /// A symbol's candles, oldest first.
    pub fn candles(&self, symbol: &Symbol) -> Result<Vec<Candle>, StoreError> {
        let symbol = symbol.clone();
        self.read(PAGE_DEADLINE_MS, move |tx| candles::of(tx, &symbol))
    }

    /// Replaces the stored history of a symbol.
    pub fn replace_candles(&self, epoch: Epoch, history: NewHistory) -> Result<(), StoreError> {
        self.write(Write::leading(epoch), move |tx| candles::replace(tx, &history))
    }

    /// Appends sessions after the last stored one, and drops candles before `keep_from`.
    pub(crate) fn append_candles(
        &self,
        epoch: Epoch,
        symbol: &Symbol,
        candles: Vec<Candle>,
        keep_from: Date,
    ) -> Result<(), StoreError> {
        let symbol = symbol.clone();
        self.write(Write::leading(epoch), move |tx| {
            candles::append(tx, &symbol, &candles, keep_from)
        })
    }

    /// Marks a symbol's candles as not to be used until all are fetched again.
    pub fn want_refetch(
        &self,
        epoch: Epoch,
        symbol: &Symbol,
        suspected: Option<Date>,
    ) -> Result<(), StoreError> {
        let symbol = symbol.clone();
        self.write(Write::leading(epoch), move |tx| candles::want_refetch(tx, &symbol, suspected))
    }

    /// Publishes a date's signals, which were searched for in so many symbols. Returns false, and
    /// writes nothing, if the date was published before.
    pub(crate) fn publish_signals(
        &self,
        epoch: Epoch,
        on: Date,
        published_ms: i64,
        symbols: usize,
        found: Vec<PublishedSignal>,
    ) -> Result<bool, StoreError> {
        self.write(Write::leading(epoch), move |tx| {
            signals::publish(tx, on, published_ms, symbols, &found)
        })
    }

    /// First and last date that was published.
    pub fn signal_dates(&self) -> Result<Option<(Date, Date)>, StoreError> {
        self.read(PAGE_DEADLINE_MS, signals::first_and_last_date)
    }

    /// Every date that was published, oldest first.
    pub(crate) fn published_dates(&self) -> Result<Vec<Date>, StoreError> {
        self.read(PAGE_DEADLINE_MS, signals::dates)
    }

    /// A date's signals in their published order.
    pub(crate) fn signals_of(&self, on: Date) -> Result<Vec<PublishedSignal>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| signals::of_date(tx, on))
    }

    /// A page of the ledger after the entry `after`.
    pub fn ledger(&self, after: i64, limit: usize) -> Result<Vec<LedgerEntry>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| signals::page(tx, after, limit))
    }

    /// Records the outcomes of signals. An outcome that exists is not overwritten.
    pub(crate) fn keep_outcomes(
        &self,
        epoch: Epoch,
        outcomes: Vec<(i64, SignalOutcome)>,
    ) -> Result<(), StoreError> {
        self.write(Write::leading(epoch), move |tx| signals::keep_outcomes(tx, &outcomes))
    }

    /// Records provisional signals of the running date before they are shown, each once. Returns
    /// how many were new.
    pub(crate) fn keep_provisional(
        &self,
        epoch: Epoch,
        on: Date,
        seen_ms: i64,
        signals: Vec<ProvisionalSignal>,
    ) -> Result<usize, StoreError> {
        self.write(Write::leading(epoch), move |tx| signals::keep(tx, on, seen_ms, &signals))
    }

    /// A page of the ledger of provisional signals after the entry `after`.
    pub fn provisional_ledger(
        &self,
        after: i64,
        limit: usize,
    ) -> Result<Vec<ProvisionalEntry>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| signals::provisional_page(tx, after, limit))
    }

    /// Records the outcomes of provisional signals. An outcome that exists is not overwritten.
    pub(crate) fn keep_provisional_outcomes(
        &self,
        epoch: Epoch,
        outcomes: Vec<(i64, SignalOutcome)>,
    ) -> Result<(), StoreError> {
        self.write(Write::leading(epoch), move |tx| {
            signals::keep_provisional_outcomes(tx, &outcomes)
        })
    }
}
