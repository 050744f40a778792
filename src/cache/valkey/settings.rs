//! Settings of the server that several nodes share.

use std::path::PathBuf;

use secrecy::SecretString;

use super::address::{Address, Namespace};

/// The shared cache. Without an address there is none.
#[derive(Debug, Clone, Default)]
pub struct ValkeySettings {
    pub url: Option<Address>,
    pub password: Option<SecretString>,
    /// Certificates of the authorities that the operator trusts for it, in place of the web's.
    pub ca_file: Option<PathBuf>,
    /// What all keys and channels of this installation begin with; that of the database if not
    /// given.
    pub namespace: Option<Namespace>,
}
