//! Documents of demat accounts.

use crate::views::values::{Instant, documents};

documents! {
    /// Whose an account is.
    pub(crate) struct AccountPerson<'a> {
        pub name: &'a str,
        pub person: &'a str,
    }

    /// An id by which a broker or depository knows the account's owner.
    pub(crate) struct ClientView<'a> {
        /// What it is an id of, as `demat`.
        pub kind: &'a str,
        pub id: String,
    }

    /// A demat account.
    pub(crate) struct AccountView<'a> {
        pub name: &'a str,
        pub person: &'a str,
        /// Those that its files and its last sync name.
        pub client_ids: Vec<ClientView<'a>>,
        /// `null` if it was never synced.
        pub last_sync: Option<Instant>,
        /// Whether the ledger agrees with that sync in every security.
        pub proved: bool,
    }

    /// The demat accounts, by name.
    pub(crate) struct Accounts<'a> {
        pub accounts: Vec<AccountView<'a>>,
    }
}
