//! The statements of the store, over a transaction of any engine. Their texts are in `sql/store`.

pub(crate) mod accounts;
pub(crate) mod candles;
pub(crate) mod changes;
pub(crate) mod closing_prices;
mod columns;
pub(crate) mod eod;
pub(crate) mod erasure;
pub(crate) mod journal;
mod ledger_columns;
pub(crate) mod portfolios;
pub(crate) mod provisional_signals;
pub(crate) mod signals;
pub(crate) mod users;
