//! Reads secrets. They have no flags, because other users of the machine can see flags, and they
//! are never printed.
//!
//! The first of these places that has a secret counts:
//! 1. the variable of its name, or the file that `<NAME>_FILE` names (both at once is a fault);
//! 2. `$CREDENTIALS_DIRECTORY/<NAME>`, also in lower case, which systemd's `LoadCredential=` fills;
//! 3. only for commands about an installed service: the source of the unit's `LoadCredential=`.
//!
//! Runs on the main thread, at start and at each reload. All memory that held a secret is wiped.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use super::composed::Config;
use crate::config::composed::Loaded;
use crate::config::environment::{Environment, NotText};
use crate::config::fault::{Fault, Origin};
use crate::config::outside;
use crate::config::outside::{Bare, Kind, SECRET_BYTES_MAX};
use crate::config::refused::Refused;
use crate::config::value;
use crate::ops::state_lock;

/// A prefix that other programs use too: an unknown name with it is taken for a typing error only
/// if it is very similar to one of ours.
pub(super) const SHARED_PREFIX: &str = "JWT_";
/// A secret's name with this suffix is a variable that names a file with the secret.
pub(super) const FILE_SUFFIX: &str = "_FILE";

/// Shortest HS256 key allowed (RFC 7518, 3.2). Shorter ones can be found by brute force.
const JWT_SECRET_BYTES_MIN: usize = 32;

/// One secret.
#[derive(Debug)]
pub struct Secret {
    /// The environment variable and the credential's name.
    pub name: &'static str,
    pub about: &'static str,
    pub kind: Kind,
    pub slot: fn(&mut Config) -> &mut Option<SecretString>,
}

macro_rules! secret {
    ($kind:ident $name:literal, $($field:ident).+, $about:literal) => {
        Secret {
            name: $name,
            about: $about,
            kind: Kind::$kind,
            slot: |config| &mut config.$($field).+,
        }
    };
}

/// All secrets.
#[rustfmt::skip]
pub const SECRETS: &[Secret] = &[
    secret!(Key "BROKERA_API_KEY", broker_a.api_key, "API key of the server's own broker A app"),
    secret!(Key "BROKERA_API_SECRET", broker_a.api_secret,
        "API secret of that app; exchanges a request token for an access token"),
    secret!(Key "BROKERA_ACCESS_TOKEN", broker_a.access_token,
        "Shared access token of the day; expires at 06:00 IST"),
    secret!(Passphrase "BROKERA_ADMIN_SECRET", broker_a.admin_secret,
        "Required to activate broker A's token from other machines"),
    secret!(Key "BROKERB_API_KEY", broker_b.api_key, "API key of the server's own broker B app"),
    secret!(Key "BROKERB_API_SECRET", broker_b.api_secret,
        "API secret of that app; signs each call"),
    secret!(Passphrase "BROKERB_ADMIN_SECRET", broker_b.admin_secret,
        "Required to activate broker B's session from other machines"),
    secret!(Passphrase "BHAV_CACHE_PASSWORD", valkey.password,
        "Password of the server of BHAV_CACHE_URL"),
    secret!(Passphrase "BHAV_STORE_PASSWORD", store.password,
        "Password of the user in BHAV_STORE_URL"),
    secret!(Passphrase "JWT_SECRET", auth.jwt_secret,
        "Key that signs access tokens, 32 bytes or more; generated once if not given"),
    secret!(Passphrase "JWT_PREVIOUS_SECRETS", auth.jwt_previous_secrets,
        "Earlier signing keys, comma-separated, whose tokens stay valid until they expire"),
];

/// Reads every secret that is given; adds faults and warnings to those of the caller.
pub(crate) fn read_all(env: &Environment, loaded: &mut Loaded, faults: &mut Vec<Fault>) {
    for secret in SECRETS {
        let Some((origin, text)) = read(secret, env, &mut loaded.warnings) else {
            continue;
        };
        let blame = |fault| blamed(fault, secret.name, &origin, env);
        match text {
            Ok(text) => {
                faults.extend(weak_key(secret.name, text.expose_secret()).map(blame));
                *(secret.slot)(&mut loaded.config) = Some(text);
                loaded.origins.insert(secret.name, origin);
            }
            Err(fault) => faults.push(blame(fault)),
        }
    }
}

/// For commands about an installed service: reads missing secrets from the source of the unit's
/// `LoadCredential=`. Secrets that are absent or not readable stay missing.
pub(crate) fn read_credential_store(store: &Path, loaded: &mut Loaded) {
    for secret in SECRETS {
        let slot = (secret.slot)(&mut loaded.config);
        let path = store.join(format!("bhav.{}", secret.name.to_ascii_lowercase()));
        if let (None, Ok(Given { text, .. })) = (&slot, read_file(secret, &path)) {
            *slot = Some(text);
            loaded.origins.insert(secret.name, Origin::Credential(path));
        }
    }
}

/// A fault if the secret contains a signing key that is too short.
fn weak_key(name: &str, text: &str) -> Option<Fault> {
    let keys = match name {
        "JWT_SECRET" => vec![text],
        "JWT_PREVIOUS_SECRETS" => text.split(',').collect(),
        _ => return None,
    };
    keys.iter()
        .any(|key| key.trim().len() < JWT_SECRET_BYTES_MIN)
        .then(|| {
            let problem = format!(
                "has a key shorter than {JWT_SECRET_BYTES_MIN} bytes, which can be found by brute \
             force and used to forge tokens"
            );
            Fault::of_secret(name, problem, "generate one with `openssl rand -base64 48`")
        })
}

/// The text of a secret, and whether quotation marks were taken off.
struct Given {
    text: SecretString,
    was_quoted: bool,
}

/// Where the secret stands, and its text.
fn read(
    secret: &Secret,
    env: &Environment,
    warnings: &mut Vec<String>,
) -> Option<(Origin, Result<SecretString, Fault>)> {
    let name = secret.name;
    let file_name = format!("{name}{FILE_SUFFIX}");
    let (origin, given) = match (env.text(name).filter(is_something), env.path(&file_name)) {
        (Some(_), Some(_)) => {
            let problem = format!("and {file_name} ({}) are both set", env.origin(&file_name));
            let fault = Fault::of_secret(name, problem, "keep the file and unset the variable");
            (env.origin(name), Err(fault))
        }
        (Some(Err(NotText)), None) => (env.origin(name), Err(Fault::not_text(name))),
        (Some(Ok(text)), None) => (env.origin(name), usable(secret, text)),
        (None, Some(path)) => {
            if let Some(Ok(text)) = env.text(&file_name)
                && outside::bare(text, Kind::Setting).was_quoted
            {
                warnings.push(outside::quoted_warning(&file_name, &env.origin(&file_name)));
            }
            let given = read_file(secret, &path);
            if given.is_ok() {
                warn_if_open(name, &path, warnings);
            }
            (Origin::File(path), given)
        }
        (None, None) => {
            let path = credential(name, env)?;
            let given = read_file(secret, &path);
            (Origin::Credential(path), given)
        }
    };
    let text = given.map(|given| {
        if given.was_quoted {
            warnings.push(outside::quoted_warning(name, &origin));
        }
        given.text
    });
    Some((origin, text))
}

/// Whether a variable holds more than quotation marks.
fn is_something(text: &Result<&str, NotText>) -> bool {
    text.map_or(true, |text| !outside::bare(text, Kind::Passphrase).text.is_empty())
}

/// Completes a fault with the place that the operator has to change. For a secret in a file this is
/// the variable that names the file, and the origin of that variable.
fn blamed(fault: Fault, name: &str, origin: &Origin, env: &Environment) -> Fault {
    let Origin::File(path) = origin else {
        return Fault {
            origin: Some(origin.to_string()),
            ..fault
        };
    };
    let variable = format!("{name}{FILE_SUFFIX}");
    Fault {
        value: Some(path.display().to_string()),
        origin: Some(env.origin(&variable).to_string()),
        name: variable,
        ..fault
    }
}

fn credential(name: &str, env: &Environment) -> Option<PathBuf> {
    let directory = env.path("CREDENTIALS_DIRECTORY")?;
    [name.to_owned(), name.to_ascii_lowercase()]
        .into_iter()
        .map(|file| directory.join(file))
        .find(|path| path.exists())
}

fn read_file(secret: &Secret, path: &Path) -> Result<Given, Fault> {
    let name = secret.name;
    if let Some(Err(Refused { problem, cure })) = path.to_str().map(value::path) {
        return Err(Fault::of_secret(name, problem, &cure));
    }
    let unreadable = |why: io::Error| {
        Fault::of_secret(
            name,
            format!("cannot be read: {why}"),
            "name a readable file that holds the secret and nothing else",
        )
    };
    // Room for what is taken off.
    let bytes_max = SECRET_BYTES_MAX + 16;
    let bytes = File::open(path)
        .and_then(|file| state_lock::read(file, bytes_max))
        .map_err(unreadable)?;
    match outside::decoded(&bytes) {
        Ok(text) => usable(secret, text),
        Err(Refused { problem, cure }) => Err(Fault::of_secret(name, problem, &cure)),
    }
}

/// The text of a secret without what surrounds it, if it can be one.
fn usable(secret: &Secret, text: &str) -> Result<Given, Fault> {
    let Bare { text, was_quoted } = outside::bare(text, secret.kind);
    if text.is_empty() {
        let problem = "is empty".to_owned();
        return Err(Fault::of_secret(secret.name, problem, "give the secret, or unset the name"));
    }
    match outside::refusal(text, secret.kind) {
        None => Ok(Given {
            text: SecretString::from(text),
            was_quoted,
        }),
        Some(Refused { problem, cure }) => Err(Fault::of_secret(secret.name, problem, &cure)),
    }
}

fn warn_if_open(name: &str, path: &Path, warnings: &mut Vec<String>) {
    if let Ok(about) = std::fs::metadata(path)
        && about.mode() & 0o077 != 0
    {
        warnings
            .push(format!("{name}{FILE_SUFFIX}: others may read {}; chmod 600 it", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::load;
    use super::*;
    use crate::config::environment::Flags;

    fn directory_with(file: &str, bytes: &[u8]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(file), bytes).unwrap();
        directory
    }

    fn load_env(pairs: &[(&str, &str)]) -> Result<Loaded, Vec<Fault>> {
        load(&Flags::new(), &Environment::from_pairs(pairs.iter().copied()))
    }

    #[test]
    fn a_file_a_credential_and_a_variable_are_read() {
        let directory = directory_with("jwt_secret", b"from a credential of more than 32 bytes\n");
        let path = directory.path().to_str().unwrap();
        let key = directory_with("key", b"from-a-file\n");
        let file = key.path().join("key");
        let loaded = load_env(&[
            ("CREDENTIALS_DIRECTORY", path),
            ("BROKERA_API_KEY_FILE", file.to_str().unwrap()),
            ("BROKERB_API_KEY", "from-a-variable"),
            ("BROKERB_API_SECRET", ""),
        ])
        .unwrap();
        let text = |slot: &Option<SecretString>| slot.as_ref().unwrap().expose_secret().to_owned();
        assert_eq!(text(&loaded.config.broker_a.api_key), "from-a-file");
        assert_eq!(text(&loaded.config.broker_b.api_key), "from-a-variable");
        assert!(text(&loaded.config.auth.jwt_secret).starts_with("from a credential"));
        assert!(loaded.config.broker_b.api_secret.is_none(), "empty is not set");
        assert_eq!(loaded.origins["BROKERA_API_KEY"], Origin::File(file));
        assert_eq!(loaded.origins["BROKERB_API_KEY"], Origin::Environment);
    }

    #[test]
    fn commands_read_the_units_credentials_last() {
        let store = directory_with("bhav.brokera_api_key", b"stored\n");
        std::fs::write(store.path().join("bhav.brokerb_api_key"), "stored").unwrap();
        let mut loaded = load_env(&[("BROKERB_API_KEY", "given")]).unwrap();
        read_credential_store(store.path(), &mut loaded);
        let text = |slot: &Option<SecretString>| slot.as_ref().unwrap().expose_secret().to_owned();
        assert_eq!(text(&loaded.config.broker_a.api_key), "stored");
        assert_eq!(text(&loaded.config.broker_b.api_key), "given");
        assert!(loaded.config.broker_a.api_secret.is_none());
    }

    #[test]
    fn a_secret_file_that_others_may_read_gives_a_warning() {
        use std::os::unix::fs::PermissionsExt;
        let directory = directory_with("key", b"k");
        let path = directory.path().join("key");
        for (mode, warned) in [(0o600, false), (0o640, true), (0o604, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let loaded = load_env(&[("BROKERA_API_KEY_FILE", path.to_str().unwrap())]).unwrap();
            assert_eq!(!loaded.warnings.is_empty(), warned, "{mode:o}: {:?}", loaded.warnings);
        }
    }

    #[test]
    fn a_signing_key_has_32_bytes_or_more() {
        let enough = "0123456789abcdef0123456789abcdef";
        for (name, text, good) in [
            ("JWT_SECRET", enough.to_owned(), true),
            ("JWT_SECRET", enough[1..].to_owned(), false),
            ("JWT_PREVIOUS_SECRETS", format!("{enough}, {enough}"), true),
            ("JWT_PREVIOUS_SECRETS", format!("{enough},"), false),
        ] {
            assert_eq!(load_env(&[(name, &text)]).is_ok(), good, "{name}={text}");
        }
    }

    #[test]
    fn a_variable_overrides_a_credential() {
        let directory = directory_with("BROKERA_ACCESS_TOKEN", b"old");
        let path = directory.path().to_str().unwrap();
        let loaded = load_env(&[
            ("CREDENTIALS_DIRECTORY", path),
            ("BROKERA_ACCESS_TOKEN", "new"),
        ])
        .unwrap();
        assert_eq!(loaded.config.broker_a.access_token.unwrap().expose_secret(), "new");
    }

    #[test]
    fn bad_secrets_are_refused_without_showing_them() {
        let directory = directory_with("big", &[b'x'; 5000]);
        let big = directory.path().join("big");
        let faults = load_env(&[
            ("BROKERA_API_KEY", "s3cr3t\nHost: evil"),
            ("BROKERA_API_SECRET", "s3cr3t"),
            ("BROKERA_API_SECRET_FILE", "nowhere"),
            ("BROKERB_API_KEY_FILE", "nowhere/at/all"),
            ("JWT_SECRET_FILE", big.to_str().unwrap()),
            ("JWT_PREVIOUS_SECRETS", "s3cr3t-but-more-than-thirty-two-bytes,s3cr3t"),
        ])
        .unwrap_err();
        assert_eq!(faults.len(), 5, "{faults:?}");
        for fault in &faults {
            assert!(!format!("{fault} {fault:?}").contains("s3cr3t"), "{fault:?}");
        }
    }
}
