//! The statements of the store, over a transaction of any engine. Their texts are in `sql/store`.

pub(crate) mod accounts;
pub(crate) mod candles;
mod columns;
pub(crate) mod eod;
pub(crate) mod journal;
pub(crate) mod portfolios;
pub(crate) mod signals;
