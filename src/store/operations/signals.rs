//! The operations on candles and signals, over any engine.

use jiff::civil::Date;

use crate::base::{Candle, Epoch, Symbol};
use crate::store::statements::{candles, provisional_signals, signals};
use crate::store::traits::SignalStore;
use crate::store::transact::{PAGE_DEADLINE_MS, READ_DEADLINE_MS, Transact, Write};
use crate::store::{
    CandleHistory, LedgerEntry, NewHistory, ProvisionalEntry, ProvisionalSignal, PublishedSignal,
    SignalOutcome, StoreError, StoredCandles,
};

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
            provisional_signals::keep(tx, on, seen_ms, &signals)
        })
    }

    fn provisional_ledger(
        &self,
        after: i64,
        limit: usize,
    ) -> Result<Vec<ProvisionalEntry>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |tx| provisional_signals::page(tx, after, limit))
    }

    fn keep_provisional_outcomes(
        &self,
        epoch: Epoch,
        outcomes: Vec<(i64, SignalOutcome)>,
    ) -> Result<(), StoreError> {
        self.write(Write::page(), move |tx| {
            E::hold(tx, epoch)?;
            provisional_signals::keep_outcomes(tx, &outcomes)
        })
    }
}
