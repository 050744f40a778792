//! The formats of files and syncs that the ledger takes rows from, and whose account they are of.

use crate::base::{Broker, words};

words! {
    /// What an import brings.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum FileKind {
        Trades = "trades",
        /// Exits with their gains, as a broker states them.
        TaxReport = "tax_report",
    }

    /// Where rows come from.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum FileFormat {
        ZerodhaTradebook = "zerodha_tradebook",
        ZerodhaTaxReport = "zerodha_tax_report",
        IciciTransactions = "icici_transactions",
        IciciTradebook = "icici_tradebook",
        IciciCapitalGains = "icici_capital_gains",
        /// Broker A's calls.
        SyncA = "sync_a",
        /// Broker B's calls.
        SyncB = "sync_b",
    }

    /// What a client's id is a number of. Ids of one kind are compared within an account.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum ClientIdKind {
        /// Broker A's user.
        UserA = "broker_a_user",
        /// Broker B's user, who may have several accounts.
        UserB = "broker_b_user",
        /// Broker B's account.
        AccountB = "broker_b_account",
        /// A demat account: its depository participant and its number there.
        Demat = "demat",
    }
}

impl FileFormat {
    /// Of what a broker's API says at a sync.
    pub(crate) const fn of_syncs(broker: Broker) -> Self {
        match broker {
            Broker::A => Self::SyncA,
            Broker::B => Self::SyncB,
        }
    }

    pub(crate) const fn kind(self) -> FileKind {
        match self {
            Self::ZerodhaTaxReport | Self::IciciCapitalGains => FileKind::TaxReport,
            Self::ZerodhaTradebook | Self::IciciTransactions | Self::IciciTradebook => {
                FileKind::Trades
            }
            Self::SyncA | Self::SyncB => FileKind::Trades,
        }
    }
}

impl ClientIdKind {
    /// The id by which a broker's API names a person.
    pub(crate) const fn user_at(broker: Broker) -> Self {
        match broker {
            Broker::A => Self::UserA,
            Broker::B => Self::UserB,
        }
    }
}

/// Longest id of a client.
const CLIENT_ID_BYTES_MAX: usize = 40;

/// Whose account a file is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClientId {
    pub kind: ClientIdKind,
    pub id: String,
}

impl ClientId {
    /// The id as it is written, if it is one: letters, digits and `-` alone, in capitals.
    pub(crate) fn of(kind: ClientIdKind, id: &str) -> Option<Self> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let well_formed = (1..=CLIENT_ID_BYTES_MAX).contains(&id.len())
            && id.bytes().all(allowed)
            && id.bytes().any(|byte| byte.is_ascii_alphanumeric());
        well_formed.then(|| Self {
            kind,
            id: id.to_ascii_uppercase(),
        })
    }
}
