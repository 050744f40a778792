//! The public secondary provider: delayed quotes without an account, slow and removable.
//!
//! Runs on upstream lanes; every call blocks up to its deadline. The provider documents nothing, so
//! every answer is checked. `wire.rs` has the known shapes.

mod candles;
mod client;
mod symbols;
pub(crate) mod wire;

pub use client::Public;
