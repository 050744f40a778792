//! Settings of the store.

use std::fmt;
use std::path::PathBuf;

use secrecy::SecretString;

use crate::base::settings;
use crate::store::errors::BadStoreUrl;

settings! {
    /// Accounts, portfolios and the journal on disk, or on a server.
    pub struct StoreSettings {
        /// The server. `None` is the embedded database.
        pub url: Option<StoreUrl> = None,
        /// The password of the server's user.
        pub password: Option<SecretString> = None,
        /// Application name of the connections at the server, unless the URL gives one. No setting:
        /// it is derived from the node's name.
        #[cfg_attr(
            not(feature = "engines"),
            allow(dead_code, reason = "a file has no connections")
        )]
        pub(crate) connection_name: String = "bhav".to_owned(),
        /// Certificates that are trusted instead of the public authorities.
        pub ca_file: Option<PathBuf> = None,
        /// Number of reader threads; 0 is as many as the engine needs.
        pub readers: usize = 0,
        /// Number of writer threads of a server; 0 is as many as it needs.
        pub writers: usize = 0,
        /// Most waiting writes that one commit carries.
        pub writes_per_commit_max: usize = 256,
        /// Changes that one user may make to the journal, or by deleting, each minute; 0 disables
        /// the limit. The default allows an import of 600 old entries at once, then ten a second.
        pub writes_per_user_per_minute: u32 = 600,
        /// Files of trades that one user may send each minute; 0 disables the limit.
        pub import_attempts_per_minute: u32 = 10,
        /// Rows of all imports of a user. A day trader's five years.
        pub ledger_rows_max: usize = 300_000,
    }
}

// ---- Url
//
// The URL of a database server (`BHAV_STORE_URL`), as far as it can be checked without the server.

/// A `postgres://` URL without a password, which is printed as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// # Errors
    /// [`BadStoreUrl`], also if this program was built without PostgreSQL.
    pub fn parse(text: &str) -> Result<Self, BadStoreUrl> {
        const EXAMPLE: &str = "give a URL such as postgres://bhav@db.example.com/bhav";
        let rest = text
            .strip_prefix("postgres://")
            .or(text.strip_prefix("postgresql://"));
        let Some(rest) = rest else {
            return Err(BadStoreUrl::new("is not a postgres:// URL", EXAMPLE));
        };
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = place.split('/').next().unwrap_or_default();
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        let option = |name: &str| {
            let mut pairs = options.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        if user.contains(':') || option("password").is_some() {
            const CURE: &str =
                "give the password as BHAV_STORE_PASSWORD or BHAV_STORE_PASSWORD_FILE";
            return Err(BadStoreUrl::new("holds a password, and URLs are printed", CURE));
        }
        if let Some("prefer" | "allow") = option("sslmode") {
            const CURE: &str = "give sslmode=verify-full, or leave it out";
            return Err(BadStoreUrl::new("has an sslmode that falls back to clear text", CURE));
        }
        complete(text)?;
        Ok(Self(text.to_owned()))
    }

    /// Whether data sent to another machine is unencrypted.
    pub(crate) fn is_exposed(&self) -> bool {
        #[cfg(feature = "engines")]
        return crate::store::postgres::url::is_exposed(&self.0);
        #[cfg(not(feature = "engines"))]
        return false;
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(feature = "engines")]
fn complete(text: &str) -> Result<(), BadStoreUrl> {
    crate::store::postgres::url::parse(text).map(drop)
}

#[cfg(not(feature = "engines"))]
fn complete(_: &str) -> Result<(), BadStoreUrl> {
    const CURE: &str = "leave it out for the embedded database, or build with --features engines";
    Err(BadStoreUrl::new(
        "names a server, and this program was built without PostgreSQL",
        CURE,
    ))
}

#[cfg(test)]
mod url_tests {
    use super::*;

    #[test]
    fn what_may_not_be_in_a_url_is_refused_without_being_repeated() {
        for text in [
            "",
            "mysql://bhav@db/bhav",
            "postgres://bhav:hunter2@db/bhav",
            "postgres://bhav:@db/bhav",
            "postgres://bhav@db/bhav?password=hunter2",
            "postgres://bhav@db/bhav?sslmode=prefer",
            "postgresql://db/bhav?connect_timeout=3&sslmode=allow",
        ] {
            let refused = StoreUrl::parse(text).unwrap_err().to_string();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    #[cfg(feature = "engines")]
    #[test]
    fn urls_of_servers_are_accepted() {
        for text in [
            "postgres://bhav@db.example.com/bhav",
            "postgresql://bhav@one,two:5433/bhav?sslmode=verify-full",
            "postgres:///bhav?host=/run/postgresql&user=bhav",
        ] {
            assert_eq!(StoreUrl::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "postgres://db:nowhere/bhav",
            "postgres://db/bhav?speed=high",
        ] {
            assert!(StoreUrl::parse(text).is_err(), "{text}");
        }
    }

    #[cfg(not(feature = "engines"))]
    #[test]
    fn a_build_without_engines_says_so() {
        let refused = StoreUrl::parse("postgres://bhav@db.example.com/bhav").unwrap_err();
        assert!(refused.to_string().contains("--features engines"), "{refused}");
    }
}
