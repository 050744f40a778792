//! The signing keys of tokens: from settings, or generated once and kept in the state directory.
//!
//! Loaded on the main thread at start; later a lane checks the file. The file contains 32 random
//! bytes in hexadecimal. A file that others may read is refused, because anybody who has read it
//! can forge tokens of any user. A running service does not recreate a removed file: an operator
//! removes it to end every login.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::base::hex::hex;
use crate::base::{settings, words};
use crate::ops::{owner, state_lock};
use crate::views::states::KeyState;

const FILE_NAME: &str = "jwt.key";
const KEY_BYTES: usize = 32;
/// A longer file is no key file.
const FILE_BYTES_MAX: usize = 1024;

/// Prefix of the data from which check values are hashed. They reveal no key.
const CHECK_LABEL: &[u8] = b"bhav check value of a signing key\0";
const CHECK_BYTES: usize = 16;
/// Digits of a check value that are shown, for comparing nodes.
const FINGERPRINT_DIGITS: usize = 8;

/// A signing key.
pub type Key = Zeroizing<Vec<u8>>;

/// The keys that settings give.
pub struct Keys {
    /// The key that signs, then those that only verify.
    pub all: Vec<Key>,
    pub file: KeyFile,
}

/// The file with the signing key; `None` if settings give the key.
pub struct KeyFile(Option<Kept>);

/// A generated key.
struct Kept {
    path: PathBuf,
    key: Key,
    /// Whether the file has contained the key.
    was_kept: bool,
}

impl KeyFile {
    /// Checks the file; writes it if it could not be written at start. Blocks.
    pub(crate) fn look(&mut self) -> KeyState {
        let Some(Kept {
            path,
            key,
            was_kept,
        }) = &mut self.0
        else {
            return KeyState::Given;
        };
        match File::open(&*path) {
            Ok(opened) => {
                *was_kept = true;
                match read(path, opened) {
                    Ok(found) if found == *key => KeyState::Kept,
                    _ => KeyState::Changed,
                }
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => KeyState::Changed,
            Err(_) if *was_kept => KeyState::Missing,
            Err(_) => {
                *was_kept = write(path, key).is_ok();
                if *was_kept {
                    KeyState::Kept
                } else {
                    KeyState::Missing
                }
            }
        }
    }
}

/// Why the signing key cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error(
        "{path} can be read by others, so anybody may have made tokens: remove it, which ends \
             every login, or chmod 600 it if nobody else was on this machine"
    )]
    Open { path: PathBuf },
    #[error("{path} contains no key ({} hexadecimal digits): restore or remove it", 2 * KEY_BYTES)]
    NoKey { path: PathBuf },
    #[error("{path} cannot be read: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the system gives no randomness: {0}")]
    NoRandomness(getrandom::Error),
}

/// The keys in the settings, or the one in the state directory, generated if missing.
///
/// # Errors
/// [`KeyError`]. A state directory that cannot be written is no error: the key is then kept in
/// memory until [`KeyFile::look`] can write it.
pub(crate) fn load(settings: &AuthSettings, state_dir: &Path) -> Result<Keys, KeyError> {
    let (current, file) = match &settings.jwt_secret {
        Some(secret) => (Zeroizing::new(secret.expose_secret().as_bytes().to_vec()), None),
        None => {
            let path = state_dir.join(FILE_NAME);
            let (key, was_kept) = kept(&path)?;
            (
                key.clone(),
                Some(Kept {
                    path,
                    key,
                    was_kept,
                }),
            )
        }
    };
    let previous = settings.jwt_previous_secrets.as_ref();
    let previous = previous.map_or("", |secrets| secrets.expose_secret());
    let previous = previous
        .split(',')
        .map(str::trim)
        .filter(|key| !key.is_empty());
    let previous = previous.map(|key| Zeroizing::new(key.as_bytes().to_vec()));
    let all = std::iter::once(current).chain(previous).collect();
    Ok(Keys {
        all,
        file: KeyFile(file),
    })
}

/// The check value of the key that a database's nodes sign with, as the database records it.
pub(crate) fn check_value(key: &Key) -> String {
    let mut hash = Sha256::new();
    hash.update(CHECK_LABEL);
    hash.update(key);
    hex(&hash.finalize()[..CHECK_BYTES])
}

/// The part of a check value that is shown.
pub(crate) fn fingerprint(check_value: &str) -> &str {
    check_value.get(..FINGERPRINT_DIGITS).unwrap_or(check_value)
}

/// The generated key, and whether its file exists.
fn kept(path: &Path) -> Result<(Key, bool), KeyError> {
    match File::open(path) {
        Ok(file) => Ok((read(path, file)?, true)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut key = Zeroizing::new(vec![0; KEY_BYTES]);
            getrandom::fill(&mut key).map_err(KeyError::NoRandomness)?;
            let written = write(path, &key);
            if let Err(error) = &written {
                tracing::error!(
                    %error,
                    path = %path.display(),
                    "cannot write the signing key: until it can be written, every login ends \
                     with the service"
                );
            }
            Ok((key, written.is_ok()))
        }
        Err(source) => Err(KeyError::Unreadable {
            path: path.into(),
            source,
        }),
    }
}

fn read(path: &Path, file: File) -> Result<Key, KeyError> {
    let unreadable = |source| KeyError::Unreadable {
        path: path.into(),
        source,
    };
    if file.metadata().map_err(unreadable)?.mode() & 0o077 != 0 {
        return Err(KeyError::Open { path: path.into() });
    }
    let no_key = || KeyError::NoKey { path: path.into() };
    let text = state_lock::read(file, FILE_BYTES_MAX).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => no_key(),
        _ => unreadable(error),
    })?;
    decoded(text.trim_ascii()).ok_or_else(no_key)
}

fn decoded(digits: &[u8]) -> Option<Key> {
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    let mut key = Zeroizing::new(Vec::with_capacity(KEY_BYTES));
    for pair in digits.chunks_exact(2) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        key.push((high << 4 | low) as u8);
    }
    Some(key)
}

/// Writes the file atomically, and syncs it before the first token is signed with the key.
fn write(path: &Path, key: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("key.new");
    // Left by a process that ended while writing; that key was never used.
    let _ = std::fs::remove_file(&unfinished);
    let mut text = Zeroizing::new(Vec::with_capacity(2 * KEY_BYTES + 1));
    for byte in key {
        write!(text, "{byte:02x}")?;
    }
    text.push(b'\n');
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)?;
    file.write_all(&text)?;
    owner::give(&file, path)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

// ---- Settings
//
// Settings of accounts, tokens and password hashing.

words! {
    /// Permission to create an account.
    pub enum Registration {
        /// Any client.
        Open = "open",
        /// Any client, until the database has its first account.
        First = "first",
        /// Only the operator, with `bhav user add`.
        Closed = "closed",
    }
}

settings! {
    /// Settings of accounts, tokens and password hashing.
    pub struct AuthSettings {
        /// Current signing key. If not given, one is generated once and kept in the state
        /// directory.
        pub jwt_secret: Option<SecretString> = None,
        /// Earlier keys, which verify and no longer sign, separated by commas.
        pub jwt_previous_secrets: Option<SecretString> = None,
        pub registration: Registration = Registration::Open,
        /// Limit by account and by client network; 0 is no limit.
        pub login_attempts_per_minute: u32 = 10,
        /// Limit by client network; 0 is no limit.
        pub registration_attempts_per_minute: u32 = 10,
        /// Limit of requests by API key, of all nodes together; 0 is no limit. Ten a second: a
        /// dozen widgets that poll, not a program that runs wild.
        pub key_requests_per_minute: u32 = 600,
        /// Memory of one password hash. The default is OWASP's minimum for two passes.
        pub argon2_memory_kib: u32 = 19_456,
        pub argon2_passes: u32 = 2,
        /// Threads that hash passwords; 0 is half of the cores, at least one.
        pub crypto_threads: usize = 0,
        /// Most hashes that wait for a thread.
        pub crypto_queue_max: usize = 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn settings() -> AuthSettings {
        AuthSettings::default()
    }

    #[test]
    fn a_key_is_generated_once_and_kept_readable_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let first = load(&settings(), directory.path()).unwrap();
        assert_eq!((first.all.len(), first.all[0].len()), (1, KEY_BYTES));
        assert_ne!(*first.all[0], vec![0; KEY_BYTES]);
        let path = directory.path().join(FILE_NAME);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(*load(&settings(), directory.path()).unwrap().all[0], *first.all[0]);
        let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        let other = tempfile::tempdir().unwrap();
        assert_ne!(*load(&settings(), other.path()).unwrap().all[0], *first.all[0]);
    }

    #[test]
    fn a_key_file_that_others_may_read_or_without_a_key_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        load(&settings(), directory.path()).unwrap();
        let path = directory.path().join(FILE_NAME);
        for mode in [0o640, 0o604, 0o620] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let refused = load(&settings(), directory.path());
            assert!(matches!(refused, Err(KeyError::Open { .. })), "{mode:o}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        for bad in [
            "",
            "00",
            &whole[1..],
            &whole.replace(['a', '0', '5'], "g"),
            &"x".repeat(9999),
        ] {
            std::fs::write(&path, bad).unwrap();
            let refused = load(&settings(), directory.path());
            assert!(matches!(refused, Err(KeyError::NoKey { .. })), "{bad}");
        }
    }

    #[test]
    fn without_a_directory_the_key_stays_in_memory_until_it_can_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        let mut first = load(&settings(), &missing).unwrap();
        assert_ne!(*load(&settings(), &missing).unwrap().all[0], *first.all[0]);
        assert_eq!(first.file.look(), KeyState::Missing);
        std::fs::create_dir(&missing).unwrap();
        assert_eq!(first.file.look(), KeyState::Kept);
        assert_eq!(*load(&settings(), &missing).unwrap().all[0], *first.all[0]);
    }

    #[test]
    fn a_removed_or_changed_file_is_noticed_and_not_recreated() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        let mut keys = load(&settings(), directory.path()).unwrap();
        assert_eq!(keys.file.look(), KeyState::Kept);
        let whole = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((keys.file.look(), keys.file.look()), (KeyState::Missing, KeyState::Missing));
        assert!(!path.exists(), "that is how an operator ends every login");
        // The file contains another key now.
        load(&settings(), directory.path()).unwrap();
        assert_eq!(keys.file.look(), KeyState::Changed);
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(keys.file.look(), KeyState::Kept);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(keys.file.look(), KeyState::Changed);
        let given = AuthSettings {
            jwt_secret: Some("given".into()),
            ..settings()
        };
        assert_eq!(load(&given, directory.path()).unwrap().file.look(), KeyState::Given);
    }

    #[test]
    fn keys_from_settings_are_the_signing_one_first_then_earlier_ones() {
        let directory = tempfile::tempdir().unwrap();
        let settings = AuthSettings {
            jwt_secret: Some("current".into()),
            jwt_previous_secrets: Some("one, two".into()),
            ..settings()
        };
        let keys = load(&settings, directory.path()).unwrap();
        let texts: Vec<_> = keys.all.iter().map(|key| key.as_slice()).collect();
        assert_eq!(texts, [b"current".as_slice(), b"one", b"two"]);
        assert!(!directory.path().join(FILE_NAME).exists());
    }
}
