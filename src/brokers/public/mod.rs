//! The public secondary provider: delayed quotes without an account, slow and removable.
//!
//! Runs on upstream lanes; every call blocks up to its deadline. Nothing the provider does is
//! promised anywhere, so every answer is doubted: see `wire.rs` for the shapes it is known to take.

mod client;
pub(crate) mod wire;

pub use client::Public;
