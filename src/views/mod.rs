//! Every document that a client can see: one typed struct each.
//!
//! A struct has the members of its document in their order. The doc comments of a struct and of its
//! members are the descriptions in the OpenAPI document: a test generates `src/api/openapi.json`
//! from these structs. Pure. A handler fills a view and writes it with [`values`].

pub(crate) mod account;
pub(crate) mod candles;
pub(crate) mod export;
pub(crate) mod export_ledger;
pub mod health;
pub(crate) mod holdings;
pub(crate) mod journal;
pub(crate) mod quotes;
pub(crate) mod signal_record;
pub mod signals;
pub mod snapshot;
pub mod states;
pub mod sync;
pub(crate) mod trades;
pub(crate) mod values;
