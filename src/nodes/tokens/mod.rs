//! The brokers' tokens of the day on all nodes.
//!
//! A login's code works once, so one node exchanges it and sends the token to the others; so does
//! a node whose settings are read again. A refusal is sent in the same way. Each node keeps a
//! received token with its own logins, so that its next process has it too, and may lead with it at
//! once.
//!
//! Nothing is stored on the server between the nodes, so a message may be lost. Every node asks at
//! its start, after each new connection, and from time to time. A node that has a token answers.
//!
//! - `exchange`: the OS thread `tokens`, which sends and receives, and decides which of two tokens
//!   holds.
//! - `sealed`: the bytes of a message, and their encryption.

mod exchange;
mod judge;
pub(crate) mod sealed;

pub(crate) use exchange::{ExchangeParts, HEARD_MAX, start_exchange};
