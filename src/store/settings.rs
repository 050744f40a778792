//! Settings of the store.

use std::path::PathBuf;

use secrecy::SecretString;

use super::url::StoreUrl;

/// Accounts, portfolios and the journal on disk, or on a server.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// The server. `None` is the embedded database.
    pub url: Option<StoreUrl>,
    /// The password of the server's user.
    pub password: Option<SecretString>,
    /// What connections to the server are called there, where the URL does not say. No setting: it
    /// follows from the name of the node.
    #[cfg_attr(not(feature = "engines"), allow(dead_code, reason = "a file has no connections"))]
    pub(crate) connection_name: String,
    /// Certificates that are trusted instead of the public authorities.
    pub ca_file: Option<PathBuf>,
    /// Number of reader threads; 0 is as many as the engine needs.
    pub readers: usize,
    /// Number of writer threads, where a server is written to; 0 is as many as it needs.
    pub writers: usize,
    /// Most waiting writes that one commit carries.
    pub writes_per_commit_max: usize,
    /// Changes that one user may make to the journal, or by deleting, each minute; 0 disables the
    /// limit.
    pub writes_per_user_per_minute: u32,
}

impl Default for StoreSettings {
    fn default() -> Self {
        // Up to 600 at once, for an import of old entries, and then ten a second.
        Self {
            url: None,
            password: None,
            connection_name: "bhav".to_owned(),
            ca_file: None,
            readers: 0,
            writers: 0,
            writes_per_commit_max: 256,
            writes_per_user_per_minute: 600,
        }
    }
}
