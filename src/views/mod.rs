//! Every document that a client can see: one typed struct each.
//!
//! A struct's members are the document's, in their order. The comments of a struct and of its
//! members are what the description of the API says of them: `src/api/openapi.json` is made of
//! these structs by a test. Pure; whoever answers fills a view and writes it with [`json`].

pub mod account;
pub mod broker_status;
pub mod export;
pub mod health;
pub mod holdings;
pub mod journal;
pub mod json;
pub mod pnl;
pub mod portfolio_deleted;
pub mod positions;
pub mod quotes;
#[cfg(test)]
mod schemas;
pub mod signal_record;
pub mod signals;
pub mod snapshot;
pub mod sync;
pub mod values;
mod words;
