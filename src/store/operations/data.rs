//! The operations of the store, over any engine.

use jiff::civil::Date;

use crate::base::{Candle, Epoch, Symbol};
use crate::portfolio::{DayPoint, SyncOutcome};
use crate::store::statements::{accounts, candles, eod, journal, portfolios, signals};
use crate::store::traits::{NewPortfolio, SignalStore, Store};
use crate::store::tx::{
    GLANCE_DEADLINE_MS, PAGE_DEADLINE_MS, READ_DEADLINE_MS, Transact, Tx, Write,
};
use crate::store::{
    AccountId, AuthState, CandleHistory, Changes, ClosePage, DatabaseIdentity, Deleted, Erased,
    Expected, ExpectedPage, JournalCursor, JournalEntry, JournalFields, JournalPage, JournalSize,
    LastRead, LedgerEntry, LoginNetwork, NewHistory, NewUser, Portfolio, PriceOfClose,
    ProvisionalEntry, ProvisionalSignal, PublishedSignal, SignalOutcome, StoreError, StoreHealth,
    StoredCandles, Turn, UserSecrets, Valued,
};

impl<E: Transact> Store for E {
    fn create_user(&self, user: NewUser) -> Result<UserSecrets, StoreError> {
        self.write(Write::new(), move |tx| accounts::create(tx, &user))
    }

    fn create_first_user(&self, user: NewUser) -> Result<UserSecrets, StoreError> {
        self.write(Write::new(), move |tx| accounts::create_first(tx, &user))
    }

    fn user_by_email(&self, email: &str) -> Result<Option<UserSecrets>, StoreError> {
        let email = email.to_owned();
        self.read(READ_DEADLINE_MS, move |tx| accounts::by_email(tx, &email))
    }

    fn user_by_id(&self, id: AccountId) -> Result<Option<UserSecrets>, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| accounts::by_id(tx, id))
    }

    fn replace_hash(&self, id: AccountId, old: &str, new: &str) -> Result<bool, StoreError> {
        let (old, new) = (old.to_owned(), new.to_owned());
        self.write(Write::new(), move |tx| accounts::replace_hash(tx, id, &old, &new))
    }

    fn change_password(
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

    fn erase_user(&self, id: AccountId) -> Result<Erased, StoreError> {
        self.erase(id, move |tx| accounts::erase(tx, id), |erased| erased.user)
    }

    fn end_tokens(&self, id: AccountId) -> Result<Option<i64>, StoreError> {
        self.write(Write::new().of([id]), move |tx| accounts::end_tokens(tx, id))
    }

    fn revoke_token(&self, token_id: &str, expires_ms: i64) -> Result<(), StoreError> {
        let token_id = token_id.to_owned();
        self.write(Write::new(), move |tx| accounts::revoke_token(tx, &token_id, expires_ms))
    }

    fn forget_revocations(&self, before_ms: i64) -> Result<usize, StoreError> {
        self.write(Write::new(), move |tx| accounts::forget_revocations(tx, before_ms))
    }

    fn login_networks(&self, since_ms: i64) -> Result<Vec<(String, LoginNetwork)>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| accounts::login_networks(tx, since_ms))
    }

    fn keep_login_networks(&self, mut seen: Vec<LoginNetwork>) -> Result<(), StoreError> {
        seen.sort();
        self.write(Write::page(), move |tx| accounts::keep_login_networks(tx, &seen))
    }

    fn forget_login_networks(&self, before_ms: i64) -> Result<(), StoreError> {
        self.write(Write::page(), move |tx| accounts::forget_login_networks(tx, before_ms))
    }

    fn auth_state(&self) -> Result<AuthState, StoreError> {
        self.read(PAGE_DEADLINE_MS, accounts::auth_state)
    }

    fn identity(&self) -> Result<DatabaseIdentity, StoreError> {
        self.glance(READ_DEADLINE_MS, accounts::identity)
    }

    fn renew_incarnation(
        &self,
        seen: &str,
        read: LastRead,
    ) -> Result<DatabaseIdentity, StoreError> {
        let seen = seen.to_owned();
        self.write(Write::new(), move |tx| accounts::renew_incarnation(tx, &seen, read))
    }

    fn claim_secret(&self, own: &str, known: &[String]) -> Result<Option<String>, StoreError> {
        if !E::HAS_SEVERAL_NODES {
            return Ok(None);
        }
        let (own, known) = (own.to_owned(), known.to_vec());
        self.write(Write::new(), move |tx| accounts::claim_secret(tx, &own, &known))
    }

    fn changes_after(&self, number: i64) -> Result<Changes, StoreError> {
        self.glance(READ_DEADLINE_MS, move |tx| accounts::after(tx, number))
    }

    fn notice_changes(&self, number: i64) -> Result<(), StoreError> {
        // Some of the changes may have been erasures.
        self.write(Write::new().hiding(), move |tx| accounts::notice(tx, number))
    }

    fn forget_changes(&self) -> Result<(), StoreError> {
        self.write(Write::new(), accounts::forget)
    }

    fn take_turn(&self, id: AccountId) -> Result<Option<Turn>, StoreError> {
        self.begin_turn(id)
    }

    fn extend_turn(&self, turn: &Turn) -> Result<bool, StoreError> {
        self.prolong_turn(turn)
    }

    fn end_turn(&self, turn: &Turn) -> Result<(), StoreError> {
        self.finish_turn(turn)
    }

    fn replace_portfolio(&self, turn: &Turn, new: NewPortfolio) -> Result<SyncOutcome, StoreError> {
        let turn = turn.clone();
        self.write(Write::new().of([turn.user]), move |tx| {
            E::hold_turn(tx, &turn)?;
            portfolios::replace(tx, turn.user, &new)
        })
    }

    fn portfolio(&self, id: AccountId) -> Result<Portfolio, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| portfolios::of(tx, id))
    }

    fn portfolio_version(&self, id: AccountId) -> Result<i64, StoreError> {
        self.glance(GLANCE_DEADLINE_MS, move |tx| portfolios::version(tx, id))
    }

    fn points(&self, id: AccountId, since: Date) -> Result<Vec<DayPoint>, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| portfolios::points(tx, id, since))
    }

    fn delete_portfolio(&self, turn: &Turn) -> Result<Deleted, StoreError> {
        let is_some = |deleted: &Deleted| *deleted != Deleted::default();
        let (id, turn) = (turn.user, turn.clone());
        let delete = move |tx: &dyn Tx| {
            E::hold_turn(tx, &turn)?;
            portfolios::delete(tx, turn.user)
        };
        self.erase(id, delete, is_some)
    }

    fn is_closed(&self, date: Date) -> Result<bool, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| eod::is_finished(tx, date))
    }

    fn held_symbols(
        &self,
        after: Option<&Symbol>,
        limit: usize,
    ) -> Result<Vec<Symbol>, StoreError> {
        let after = after.cloned();
        self.read(PAGE_DEADLINE_MS, move |tx| eod::held_symbols(tx, after.as_ref(), limit))
    }

    fn silent_symbols(
        &self,
        after: Option<&Symbol>,
        limit: usize,
    ) -> Result<Vec<Symbol>, StoreError> {
        let after = after.cloned();
        self.read(PAGE_DEADLINE_MS, move |tx| eod::silent_symbols(tx, after.as_ref(), limit))
    }

    fn keep_closes(
        &self,
        epoch: Epoch,
        date: Date,
        prices: &[PriceOfClose],
    ) -> Result<(), StoreError> {
        let prices = prices.to_vec();
        self.write(Write::page(), move |tx| {
            E::hold(tx, epoch)?;
            eod::keep(tx, date, &prices)
        })
    }

    fn closes(&self, date: Date) -> Result<Vec<PriceOfClose>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| eod::of(tx, date))
    }

    fn portfolios_to_close(
        &self,
        date: Date,
        after: AccountId,
        limit: usize,
    ) -> Result<ClosePage, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| eod::portfolios_to_close(tx, date, after, limit))
    }

    fn keep_points(&self, epoch: Epoch, date: Date, points: Vec<Valued>) -> Result<(), StoreError> {
        let users = points.iter().map(|valued| valued.id);
        let write = Write::page().of(users);
        self.write(write, move |tx| {
            E::hold(tx, epoch)?;
            eod::keep_points(tx, date, &points)
        })
    }

    fn finish_close(
        &self,
        epoch: Epoch,
        date: Date,
        finished_ms: i64,
        silent: Vec<Symbol>,
    ) -> Result<(), StoreError> {
        self.write(Write::page(), move |tx| {
            E::hold(tx, epoch)?;
            eod::finish(tx, date, finished_ms, &silent)
        })
    }

    fn add_entry(
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

    fn entries(
        &self,
        id: AccountId,
        after: Option<JournalCursor>,
        limit: usize,
    ) -> Result<JournalPage, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| journal::page(tx, id, after, limit))
    }

    fn journal_size(&self, id: AccountId) -> Result<JournalSize, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| journal::size(tx, id))
    }

    fn entry(&self, id: AccountId, entry: i64) -> Result<Option<JournalEntry>, StoreError> {
        self.read(READ_DEADLINE_MS, move |tx| journal::one(tx, id, entry))
    }

    fn replace_entry(
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

    fn delete_entry(
        &self,
        id: AccountId,
        entry: i64,
        expected: Expected,
    ) -> Result<bool, StoreError> {
        self.write(Write::new().of([id]).hiding(), move |tx| {
            journal::delete(tx, id, entry, &expected)
        })
    }

    fn health(&self) -> StoreHealth {
        self.condition()
    }

    fn probe(&self) {
        self.look_after();
    }

    fn close(&self) {
        self.finish();
    }
}

// ---- Signals
//
// The operations on candles and signals, over any engine.

impl<E: Transact> SignalStore for E {
    fn candle_histories(&self) -> Result<Vec<CandleHistory>, StoreError> {
        self.read(PAGE_DEADLINE_MS, candles::histories)
    }

    fn candle_history(
        &self,
        symbol: &Symbol,
        max: usize,
    ) -> Result<Option<StoredCandles>, StoreError> {
        let symbol = symbol.clone();
        self.read(READ_DEADLINE_MS, move |tx| candles::newest(tx, &symbol, max))
    }

    fn candles(&self, symbol: &Symbol) -> Result<Vec<Candle>, StoreError> {
        let symbol = symbol.clone();
        self.read(PAGE_DEADLINE_MS, move |tx| candles::of(tx, &symbol))
    }

    fn replace_candles(&self, epoch: Epoch, history: NewHistory) -> Result<(), StoreError> {
        self.write(Write::page(), move |tx| {
            E::hold(tx, epoch)?;
            candles::replace(tx, &history)
        })
    }

    fn append_candles(
        &self,
        epoch: Epoch,
        symbol: &Symbol,
        candles: Vec<Candle>,
        keep_from: Date,
    ) -> Result<(), StoreError> {
        let symbol = symbol.clone();
        self.write(Write::page(), move |tx| {
            E::hold(tx, epoch)?;
            candles::append(tx, &symbol, &candles, keep_from)
        })
    }

    fn want_refetch(
        &self,
        epoch: Epoch,
        symbol: &Symbol,
        suspected: Option<Date>,
    ) -> Result<(), StoreError> {
        let symbol = symbol.clone();
        self.write(Write::page(), move |tx| {
            E::hold(tx, epoch)?;
            candles::want_refetch(tx, &symbol, suspected)
        })
    }

    fn publish_signals(
        &self,
        epoch: Epoch,
        on: Date,
        published_ms: i64,
        symbols: usize,
        found: Vec<PublishedSignal>,
    ) -> Result<bool, StoreError> {
        self.write(Write::page(), move |tx| {
            E::hold(tx, epoch)?;
            signals::publish(tx, on, published_ms, symbols, &found)
        })
    }

    fn signal_dates(&self) -> Result<Option<(Date, Date)>, StoreError> {
        self.read(PAGE_DEADLINE_MS, signals::first_and_last_date)
    }

    fn published_dates(&self) -> Result<Vec<Date>, StoreError> {
        self.read(PAGE_DEADLINE_MS, signals::dates)
    }

    fn signals_of(&self, on: Date) -> Result<Vec<PublishedSignal>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| signals::of_date(tx, on))
    }

    fn ledger(&self, after: i64, limit: usize) -> Result<Vec<LedgerEntry>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| signals::page(tx, after, limit))
    }

    fn keep_outcomes(
        &self,
        epoch: Epoch,
        outcomes: Vec<(i64, SignalOutcome)>,
    ) -> Result<(), StoreError> {
        self.write(Write::page(), move |tx| {
            E::hold(tx, epoch)?;
            signals::keep_outcomes(tx, &outcomes)
        })
    }

    fn keep_provisional(
        &self,
        epoch: Epoch,
        on: Date,
        seen_ms: i64,
        signals: Vec<ProvisionalSignal>,
    ) -> Result<usize, StoreError> {
        self.write(Write::page(), move |tx| {
            E::hold(tx, epoch)?;
            signals::keep(tx, on, seen_ms, &signals)
        })
    }

    fn provisional_ledger(
        &self,
        after: i64,
        limit: usize,
    ) -> Result<Vec<ProvisionalEntry>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| signals::provisional_page(tx, after, limit))
    }

    fn keep_provisional_outcomes(
        &self,
        epoch: Epoch,
        outcomes: Vec<(i64, SignalOutcome)>,
    ) -> Result<(), StoreError> {
        self.write(Write::page(), move |tx| {
            E::hold(tx, epoch)?;
            signals::keep_provisional_outcomes(tx, &outcomes)
        })
    }
}
