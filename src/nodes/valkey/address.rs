//! The address of the server and the namespace on it: `BHAV_CACHE_URL` and `BHAV_CACHE_NAMESPACE`.
//! Pure.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use secrecy::{ExposeSecret, SecretString};
use ureq::http::Uri;

use crate::base::settings;

/// The port of both servers.
const PORT: u16 = 6_379;
/// Longest path of a Unix socket: sun_path holds 108 bytes with its final zero (unix(7)).
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// Highest number of a database that an address may name.
const DATABASE_MAX: u32 = 9_999;

/// Why a text is no address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    #[error("is no address of a Valkey or Redis server")]
    Malformed,
    #[error("has a password in it")]
    Password,
    #[error("is no usable socket path")]
    SocketPath,
    #[error("the path must be a database number, such as /0")]
    Database,
}

/// The socket of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Unix(PathBuf),
    Tcp { host: String, port: u16, tls: bool },
}

/// A server and the user and database on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    text: String,
    pub place: Place,
    /// The user on the server; its default user if `None`.
    pub user: Option<String>,
    pub database: u32,
    /// Whether the text names Valkey. Names the server until it has given its own name.
    pub says_valkey: bool,
}

impl Address {
    /// Reads `valkey://`, `redis://`, `rediss://` (TLS) and `unix:`.
    ///
    /// # Errors
    /// [`BadAddress`]. A password is refused wherever it stands: addresses are printed.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Self::of_socket(text, path.strip_prefix("//").unwrap_or(path));
        }
        // The parser refuses some passwords as malformed; the fault is the password all the same.
        if has_password(text) {
            return Err(BadAddress::Password);
        }
        let uri: Uri = text.parse().map_err(|_| BadAddress::Malformed)?;
        let (says_valkey, tls) = match uri.scheme_str() {
            Some("valkey") => (true, false),
            Some("valkeys") => (true, true),
            Some("redis") => (false, false),
            Some("rediss") => (false, true),
            _ => return Err(BadAddress::Malformed),
        };
        let authority = uri.authority().filter(|found| !found.host().is_empty());
        let authority = authority.ok_or(BadAddress::Malformed)?;
        let user = authority
            .as_str()
            .rsplit_once('@')
            .map(|(user, _)| user.to_owned());
        let is_plain = |user: &String| !user.is_empty() && !user.contains('%');
        if uri.query().is_some() || text.contains('#') || !user.iter().all(is_plain) {
            return Err(BadAddress::Malformed);
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16();
        let has_port = authority.as_str().rsplit_once(']').map_or(
            authority
                .as_str()
                .rsplit_once('@')
                .map_or(authority.as_str(), |(_, at)| at),
            |(_, after)| after,
        );
        if port.is_none() && has_port.contains(':') {
            return Err(BadAddress::Malformed);
        }
        let database = match uri.path().trim_start_matches('/') {
            "" => 0,
            number => number.parse().map_err(|_| BadAddress::Database)?,
        };
        if database > DATABASE_MAX {
            return Err(BadAddress::Database);
        }
        let place = Place::Tcp {
            host,
            port: port.unwrap_or(PORT),
            tls,
        };
        Ok(Self {
            text: text.to_owned(),
            place,
            user,
            database,
            says_valkey,
        })
    }

    fn of_socket(text: &str, path: &str) -> Result<Self, BadAddress> {
        let usable = path.starts_with('/')
            && path.len() <= SOCKET_PATH_BYTES_MAX
            && !path.contains(['\0', '?', '@']);
        if !usable {
            return Err(BadAddress::SocketPath);
        }
        let place = Place::Unix(PathBuf::from(path));
        Ok(Self {
            text: text.to_owned(),
            place,
            user: None,
            database: 0,
            says_valkey: false,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether the part before the host contains a password.
fn has_password(text: &str) -> bool {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    // A password may contain what ends an authority, so the last @ of all counts too.
    let user = authority.rsplit_once('@').or_else(|| rest.rsplit_once('@'));
    let in_query = ["pass=", "password="]
        .iter()
        .any(|name| rest.contains(name));
    in_query || user.is_some_and(|(user, _)| user.contains(':'))
}

/// The prefix of all keys of one installation: several may share a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(String);

/// A text is no namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no name of a namespace")]
pub struct BadNamespace;

impl Namespace {
    /// Longest name.
    pub(crate) const BYTES_MAX: usize = 64;

    /// Reads a name of small letters, digits, `-`, `_` and `.`, so that an operator can write it in
    /// the server's access rules.
    ///
    /// # Errors
    /// [`BadNamespace`].
    pub fn parse(text: &str) -> Result<Self, BadNamespace> {
        let plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
        };
        let fits = (1..=Self::BYTES_MAX).contains(&text.len()) && text.bytes().all(plain);
        fits.then(|| Self(text.to_owned())).ok_or(BadNamespace)
    }

    /// A namespace that no node uses, for checking what a server allows.
    #[cfg(feature = "engines")]
    pub(super) fn unused() -> Self {
        Self("check".to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// ---- Settings
//
// Settings of the server that several nodes share.

settings! {
    /// The shared cache. Without an address there is none.
    pub struct ValkeySettings {
        pub url: Option<Address> = None,
        pub password: Option<SecretString> = None,
        /// Certificates of the authorities that the operator trusts for it, in place of the web's.
        pub ca_file: Option<PathBuf> = None,
        /// The prefix of all keys and channels of this installation; that of the database if not
        /// given.
        pub namespace: Option<Namespace> = None,
    }
}

// ---- Node secret
//
// `JWT_SECRET`, which all nodes have and from which they derive keys, and the secrets before it,
// `JWT_PREVIOUS_SECRETS`. A reload may change them.

/// The secrets in force. Their `Debug` does not show them.
#[derive(Debug)]
pub(crate) struct Secrets {
    pub current: Arc<SecretString>,
    /// Signatures under these are still accepted.
    pub previous: Vec<SecretString>,
}

/// The secret in force, and those before it.
#[derive(Debug)]
pub struct NodeSecret(ArcSwap<Secrets>);

impl NodeSecret {
    /// A secret without earlier ones.
    pub fn new(current: SecretString) -> Self {
        Self::with(current, None)
    }

    /// `previous` is the setting's text: earlier secrets separated by commas.
    pub(crate) fn with(current: SecretString, previous: Option<&SecretString>) -> Self {
        let current = Arc::new(current);
        let previous = split(previous);
        Self(ArcSwap::from_pointee(Secrets { current, previous }))
    }

    /// The secret in force. It is another allocation if and only if the secret was changed.
    pub(crate) fn load(&self) -> Arc<SecretString> {
        Arc::clone(&self.0.load().current)
    }

    /// The secret in force and earlier ones. It is another allocation if any of them was changed.
    pub(crate) fn load_all(&self) -> Arc<Secrets> {
        self.0.load_full()
    }

    /// Replaces the secrets.
    pub(crate) fn set(&self, current: &SecretString, previous: Option<&SecretString>) {
        let held = self.load_all();
        let previous = split(previous);
        let is_same = held.current.expose_secret() == current.expose_secret();
        let texts = |secrets: &[SecretString]| -> Vec<String> {
            secrets
                .iter()
                .map(|secret| secret.expose_secret().to_owned())
                .collect()
        };
        if is_same && texts(&held.previous) == texts(&previous) {
            return;
        }
        let current = if is_same {
            Arc::clone(&held.current)
        } else {
            Arc::new(current.clone())
        };
        self.0.store(Arc::new(Secrets { current, previous }));
    }
}

fn split(previous: Option<&SecretString>) -> Vec<SecretString> {
    let text = previous.map_or("", |secrets| secrets.expose_secret());
    let each = text
        .split(',')
        .map(str::trim)
        .filter(|secret| !secret.is_empty());
    each.map(SecretString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> (String, u16, bool, Option<String>, u32) {
        let address = Address::parse(text).unwrap();
        assert_eq!(address.to_string(), text);
        let Place::Tcp { host, port, tls } = address.place else {
            panic!("{text}")
        };
        (host, port, tls, address.user, address.database)
    }

    #[test]
    fn every_kind_of_address_is_read() {
        assert_eq!(tcp("valkey://cache.lan"), ("cache.lan".into(), 6_379, false, None, 0));
        assert_eq!(tcp("redis://10.0.0.5:7000/3"), ("10.0.0.5".into(), 7_000, false, None, 3));
        let secured = ("::1".into(), 6_390, true, Some("bhav".into()), 0);
        assert_eq!(tcp("rediss://bhav@[::1]:6390/"), secured);
        assert!(Address::parse("valkey://h").unwrap().says_valkey);
        assert!(!Address::parse("redis://h").unwrap().says_valkey);
        for text in ["unix:/run/valkey/v.sock", "unix:///run/valkey/v.sock"] {
            let place = Address::parse(text).unwrap().place;
            assert_eq!(place, Place::Unix(PathBuf::from("/run/valkey/v.sock")));
        }
    }

    #[test]
    fn a_password_is_refused_as_one_wherever_it_stands() {
        for text in [
            "redis://user:secret@host",
            "redis://:secret@host:1/0",
            "valkey://:se/cret@host",
            "rediss://user:se#cret@host",
            "redis://host?password=secret",
        ] {
            assert_eq!(Address::parse(text), Err(BadAddress::Password), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "host",
            "http://host",
            "redis://",
            "redis://host:",
            "redis://host:99999",
            "redis://host/x",
            "redis://host/10000",
            "redis://host?db=1",
            "redis://host#1",
            "redis://@host",
            "unix:",
            "unix:relative.sock",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
        assert!(Address::parse(&format!("unix:/{}", "x".repeat(107))).is_err());
        for bad in ["", "a b", "A", "a:b", "a*", &"x".repeat(65)] {
            assert_eq!(Namespace::parse(bad), Err(BadNamespace), "{bad}");
        }
        assert_eq!(Namespace::parse("prod-1.in_a").unwrap().as_str(), "prod-1.in_a");
    }
}

#[cfg(test)]
mod node_secret_tests {
    use super::*;

    #[test]
    fn only_another_secret_is_a_change() {
        let secret = NodeSecret::new("one".into());
        let before = secret.load();
        let all = secret.load_all();
        secret.set(&"one".into(), None);
        assert!(Arc::ptr_eq(&before, &secret.load()) && Arc::ptr_eq(&all, &secret.load_all()));
        secret.set(&"one".into(), Some(&" zero, ,nought".into()));
        assert!(Arc::ptr_eq(&before, &secret.load()) && !Arc::ptr_eq(&all, &secret.load_all()));
        assert_eq!(secret.load_all().previous[1].expose_secret(), "nought");
        secret.set(&"two".into(), Some(&"one".into()));
        assert_eq!(secret.load().expose_secret(), "two");
        assert!(!format!("{secret:?}").contains("two"));
    }
}
