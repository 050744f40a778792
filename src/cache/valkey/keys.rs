//! The names of all keys and channels: `bhav:NAMESPACE:…`, so that an operator can allow one user
//! exactly these.

use redis::Script;

use super::address::Namespace;
use crate::cache::l2::Kind;

/// What all scripts share.
const COMMON: &str = include_str!("common.lua");

/// A script behind what all of them share.
pub(in crate::cache) fn script(code: &str) -> Script {
    Script::new(&[COMMON, code].concat())
}

/// Names below one namespace.
#[derive(Clone, Debug)]
pub(in crate::cache) struct Keys(String);

impl Keys {
    pub(in crate::cache) fn of(namespace: &Namespace) -> Self {
        Self(format!("bhav:{}:", namespace.as_str()))
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.0)
    }

    /// HASH of the records of a kind.
    pub(in crate::cache) fn records(&self, kind: Kind) -> String {
        self.key(kind.as_str())
    }

    /// ZSET of when each record of the kind was stored.
    pub(in crate::cache) fn ages(&self, kind: Kind) -> String {
        self.key(&format!("{}:age", kind.as_str()))
    }

    /// The highest epoch that wrote anything: what is below it is refused.
    pub(in crate::cache) fn fence(&self) -> String {
        self.key("epoch")
    }

    /// The claim of the leader.
    pub(in crate::cache) fn leader(&self) -> String {
        self.key("leader")
    }

    /// HASH of the newest message of the relay: epoch, number, and all but its quotes.
    pub(in crate::cache) fn relay_state(&self) -> String {
        self.key("relay")
    }

    /// HASH of the newest quotes that the relay told.
    pub(in crate::cache) fn relay_quotes(&self) -> String {
        self.key("relay:quote")
    }

    /// All channels.
    pub(in crate::cache) fn channels(&self) -> [String; 4] {
        [self.relay_channel(), self.wanted_channel(), self.sealed_channel(), self.changes_channel()]
    }

    /// Channel of what the leader tells.
    pub(in crate::cache) fn relay_channel(&self) -> String {
        self.key("relay")
    }

    /// Channel of what the nodes want.
    pub(in crate::cache) fn wanted_channel(&self) -> String {
        self.key("wanted")
    }

    /// Channel of what is sealed.
    pub(in crate::cache) fn sealed_channel(&self) -> String {
        self.key("sealed")
    }

    /// Channel of the word that there are changes to read.
    pub(in crate::cache) fn changes_channel(&self) -> String {
        self.key("changes")
    }

    /// Nothing is ever kept or told under this name; access is tried with it.
    pub(in crate::cache) fn access(&self) -> String {
        self.key("access")
    }

    /// Bucket of a rate limit.
    pub(in crate::cache) fn limit(&self, name: &str) -> String {
        self.key(&format!("limit:{name}"))
    }
}
