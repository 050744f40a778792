//! The trades ledger over HTTP: a broker's files become a preview, count once confirmed, and go
//! again.

mod agreement;
mod flow;
mod kill;
mod limits;
pub mod owner;
mod rights;
mod synced;
