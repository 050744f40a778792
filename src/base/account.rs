//! A user's account at a broker.

use crate::base::{Broker, Words};

/// A user's account at a broker: what one sync replaces, and what its rows belong to. Somebody who
/// logs in here is another kind of account (`store::AccountId`). A user has one at each broker, so
/// today the broker names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account(Broker);

impl Account {
    /// The user's account at this broker.
    pub const fn at(broker: Broker) -> Self {
        Self(broker)
    }

    /// The broker that has it.
    pub const fn broker(self) -> Broker {
        self.0
    }

    /// Whether its broker names shares by the exchange's tickers, and not by codes of its own.
    pub(crate) const fn writes_tickers(self) -> bool {
        matches!(self.0, Broker::A)
    }

    /// The word under which it is stored.
    pub(crate) const fn as_str(self) -> &'static str {
        self.0.as_str()
    }

    /// The account of a word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Broker::parse(word).map(Self)
    }
}
