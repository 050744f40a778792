//! Every key and channel on the shared server: `bhav:NAMESPACE:…`, so that an operator can allow
//! one user exactly these. The table says what nodes keep under each key. Every script begins with
//! lines generated from it, which delete what no node can have written.

use std::fmt::Write as _;

use redis::Script;

use crate::base::words;
use crate::cache::l2::Kind;
use crate::nodes::lease::Holder;
use crate::nodes::valkey::address::Namespace;

/// Bytes of a signed value before its body: tag, epoch and number.
pub(crate) const SIGNED_BYTES: usize = 48;
/// Most quotes of the relay that are kept: what a ticker gives and some more.
pub(crate) const RELAYED_MAX: usize = 10_000;
/// Time for which the server remembers the highest epoch, and what was told, after the last leader.
/// A database restored from a backup has lower epochs; the next leader raises them above the fence.
pub(crate) const FENCE_MS: u64 = 600_000;
/// Lifetime of records after the last store. It is longer than any closure of the exchanges, and
/// ends records of an abandoned namespace.
pub(crate) const RECORDS_MS: u64 = 14 * 24 * 3_600_000;
/// Decimal digits of a time in milliseconds, and some more.
const TIME_BYTES_MAX: usize = 20;
/// Above every setting of how many records are kept.
const RECORDS_MAX: usize = 10_000_000;
/// Longest lease that the settings allow.
pub(crate) const LEASE_MS_MAX: u64 = 60_000;
/// A full bucket is not kept, and none takes longer to fill than an hour's attempts.
pub(crate) const BUCKET_MS_MAX: u64 = 24 * 3_600_000;

words! {
    /// A name below a namespace that does not depend on anything else.
    pub(crate) enum Key {
        /// The highest epoch that wrote anything. Lower ones are refused.
        Fence = "epoch",
        /// The claim of the leader.
        Leader = "leader",
        /// HASH of the newest message of the relay: its place, and all but its quotes. Also the
        /// channel of the leader's updates.
        Relay = "relay",
        /// HASH of the newest quotes of the relay.
        RelayQuotes = "relay:quote",
        /// Channel of the symbols that nodes want.
        Wanted = "wanted",
        /// Channel of encrypted messages.
        Sealed = "sealed",
        /// Channel of notices that there are changes to read.
        Changes = "changes",
        /// Nothing is ever kept or sent under this name; access is tried with it.
        Access = "access",
    }

    /// The type of a key, as the server names it.
    pub enum KeptType {
        Text = "string",
        Hash = "hash",
        SortedSet = "zset",
    }

    /// What stands under a key.
    pub enum Form {
        /// A value that a node has signed for its place.
        Signed = "signed",
        /// Fields, each with a value that a node has signed for it.
        SignedFields = "signed fields",
        /// A member for each record, with the time at which it was stored.
        Times = "times",
        /// A time in milliseconds, in decimal digits.
        Time = "a time",
    }

    /// Who writes a key.
    pub enum Writer {
        Leader = "the leader",
        Any = "every node",
    }
}

/// A row of the table: what nodes keep under one key.
#[derive(Debug)]
pub struct KeptKey {
    /// The name below the namespace. `*` stands for any text.
    pub name: &'static str,
    pub kept_type: KeptType,
    pub form: Form,
    /// Most bytes of a string, most fields of a hash, most members of a set.
    pub size_max: usize,
    /// Longest time that it may still have to live.
    pub life_ms_max: u64,
    pub writer: Writer,
}

const fn row(
    name: &'static str,
    (kept_type, form): (KeptType, Form),
    size_max: usize,
    life_ms_max: u64,
    writer: Writer,
) -> KeptKey {
    KeptKey {
        name,
        kept_type,
        form,
        size_max,
        life_ms_max,
        writer,
    }
}

/// Every key that nodes keep.
pub const KEPT: [KeptKey; 9] = {
    use KeptType::{Hash, SortedSet, Text};
    use Writer::{Any, Leader};
    const CLAIM_BYTES_MAX: usize = SIGNED_BYTES + Holder::BYTES_MAX;
    [
        row("leader", (Text, Form::Signed), CLAIM_BYTES_MAX, LEASE_MS_MAX, Any),
        row("epoch", (Text, Form::Signed), SIGNED_BYTES, FENCE_MS, Leader),
        // Place, newest message, and two fields of earlier versions.
        row("relay", (Hash, Form::SignedFields), 4, FENCE_MS, Leader),
        row("relay:quote", (Hash, Form::SignedFields), RELAYED_MAX, FENCE_MS, Leader),
        row("quote", (Hash, Form::SignedFields), RECORDS_MAX, RECORDS_MS, Leader),
        row("quote:age", (SortedSet, Form::Times), RECORDS_MAX, RECORDS_MS, Leader),
        row("instruments", (Hash, Form::SignedFields), RECORDS_MAX, RECORDS_MS, Leader),
        row("instruments:age", (SortedSet, Form::Times), RECORDS_MAX, RECORDS_MS, Leader),
        row("limit:*", (Text, Form::Time), TIME_BYTES_MAX, BUCKET_MS_MAX, Any),
    ]
};

/// The row of each kind of records: records, then ages.
pub(crate) const fn rows_of(kind: Kind) -> [&'static KeptKey; 2] {
    match kind {
        Kind::Quote => [&KEPT[4], &KEPT[5]],
        Kind::Instruments => [&KEPT[6], &KEPT[7]],
    }
}

pub(crate) const LEADER: &KeptKey = &KEPT[0];
pub(crate) const FENCE: &KeptKey = &KEPT[1];
pub(crate) const RELAY: &KeptKey = &KEPT[2];
pub(crate) const RELAY_QUOTES: &KeptKey = &KEPT[3];
pub(crate) const BUCKETS: &KeptKey = &KEPT[8];

/// The beginning of all scripts, behind the generated lines.
pub(super) const COMMON: &str = include_str!("../scripts/common.lua");

/// A script over keys of these rows. The last row is that of all further keys.
pub(crate) fn script(code: &str, rows: &[&KeptKey]) -> Script {
    generated(code, rows, false)
}

/// A script over keys of these rows that changes nothing.
pub(crate) fn looking_script(code: &str, rows: &[&KeptKey]) -> Script {
    generated(code, rows, true)
}

fn generated(code: &str, rows: &[&KeptKey], looks: bool) -> Script {
    let mut whole = format!("local LOOKS = {looks}\nlocal KEPT = {{");
    for row in rows {
        let _ = write!(whole, "{{'{}', {}}}, ", row.kept_type.as_str(), row.size_max);
    }
    whole.push_str("}\n");
    whole.push_str(COMMON);
    whole.push_str(code);
    Script::new(&whole)
}

/// Names below one namespace.
#[derive(Clone, Debug)]
pub(crate) struct Keys(String);

impl Keys {
    pub(crate) fn of(namespace: &Namespace) -> Self {
        Self(format!("bhav:{}:", namespace.as_str()))
    }

    pub(crate) fn key(&self, key: Key) -> String {
        self.named(key.as_str())
    }

    /// The full name of a row of the table.
    pub(crate) fn named(&self, name: &str) -> String {
        format!("{}{name}", self.0)
    }

    /// HASH of the records of a kind.
    pub(crate) fn records(&self, kind: Kind) -> String {
        self.named(kind.as_str())
    }

    /// ZSET of the times at which records of the kind were stored.
    pub(crate) fn ages(&self, kind: Kind) -> String {
        self.named(&format!("{}:age", kind.as_str()))
    }

    /// All channels.
    pub(crate) fn channels(&self) -> [String; 4] {
        [Key::Relay, Key::Wanted, Key::Sealed, Key::Changes].map(|channel| self.key(channel))
    }

    /// Bucket of a rate limit.
    pub(crate) fn limit(&self, name: &str) -> String {
        self.named(&format!("limit:{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes of other versions use the same, and operators' access rules name them.
    #[test]
    fn keys_and_channels_have_these_names() {
        let keys = Keys::of(&Namespace::parse("main").unwrap());
        let names = [
            keys.records(Kind::Quote),
            keys.records(Kind::Instruments),
            keys.ages(Kind::Quote),
            keys.ages(Kind::Instruments),
            keys.key(Key::Fence),
            keys.key(Key::Leader),
            keys.key(Key::Relay),
            keys.key(Key::RelayQuotes),
            keys.key(Key::Access),
            keys.limit("0badcafe"),
        ];
        let expected = [
            "bhav:main:quote",
            "bhav:main:instruments",
            "bhav:main:quote:age",
            "bhav:main:instruments:age",
            "bhav:main:epoch",
            "bhav:main:leader",
            "bhav:main:relay",
            "bhav:main:relay:quote",
            "bhav:main:access",
            "bhav:main:limit:0badcafe",
        ];
        assert_eq!(names, expected);
        let channels = ["relay", "wanted", "sealed", "changes"].map(|n| format!("bhav:main:{n}"));
        assert_eq!(keys.channels(), channels);
    }

    #[test]
    fn every_row_is_named_as_its_key_is() {
        let named = |row: &KeptKey| row.name.to_owned();
        assert_eq!(LEADER.name, Key::Leader.as_str());
        assert_eq!(FENCE.name, Key::Fence.as_str());
        assert_eq!(RELAY.name, Key::Relay.as_str());
        assert_eq!(RELAY_QUOTES.name, Key::RelayQuotes.as_str());
        for kind in [Kind::Quote, Kind::Instruments] {
            let [records, ages] = rows_of(kind).map(named);
            assert_eq!((records.as_str(), ages), (kind.as_str(), format!("{records}:age")));
        }
        assert_eq!(BUCKETS.name, "limit:*");
    }
}
