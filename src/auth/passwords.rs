//! Password hashes: argon2id in PHC strings, made and checked on the `crypto` lane.
//!
//! Callers park. The lane has few threads of the lowest priority, and a bounded queue, because one
//! hash takes tens of milliseconds of a core and 19 MiB: logins must not slow the market down. A
//! part of the queue is kept for who is known, so that a crowd of strangers fills the rest alone.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::settings::AuthSettings;
use crate::base::Clock;
use crate::ops::Counter;
use crate::rt::{Lane, LaneError, LaneSpec};

/// A hash that has not ended by then is given up: with a queue of 64 and 30 ms a hash nothing waits
/// half as long, and a client has long lost patience.
const DEADLINE_MS: u64 = 10_000;

/// This part of the queue is kept free of strangers.
const KNOWN_PART: usize = 4;

const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

thread_local! {
    /// The lane thread's work memory: 19 MiB of fresh pages for each hash would cost as much as the
    /// hash itself. What is left in it is mixed by the whole function and tells nothing.
    static WORK: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

/// Why there is neither a hash nor a verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CryptoError {
    #[error("too many hashes are waiting")]
    Busy,
    #[error("the hash did not end: {0}")]
    Lost(#[from] LaneError),
    #[error("the hash cannot be made: {0}")]
    Failed(String),
}

/// For whom a hash is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Who has shown a token, or comes from where the account was logged in to lately.
    Known,
    Stranger,
}

/// Strangers' hashes that wait.
struct Strangers {
    waiting_max: usize,
    waiting: AtomicUsize,
    refused: Counter,
}

/// One stranger's place in the queue, given back when the hash begins or is given up.
struct Place(Arc<Strangers>);

impl Place {
    fn take(strangers: &Arc<Strangers>) -> Option<Self> {
        let free = |waiting| (waiting < strangers.waiting_max).then_some(waiting + 1);
        match strangers.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free) {
            Ok(_) => Some(Self(Arc::clone(strangers))),
            Err(_) => {
                strangers.refused.increment();
                None
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The verdict on a password.
#[derive(Debug)]
pub struct Checked {
    pub good: bool,
    /// For a good one whose stored hash is weaker than today's parameters.
    pub better_hash: Option<String>,
}

/// Makes and checks hashes.
pub struct Passwords {
    lane: Arc<Lane>,
    strangers: Arc<Strangers>,
    params: Params,
    /// Nobody's: what a password is checked against where there is no account.
    decoy: String,
}

impl Passwords {
    /// Starts the lane.
    ///
    /// # Errors
    /// When a thread cannot be started or the system gives no randomness.
    pub fn start(settings: &AuthSettings, clock: &Clock) -> io::Result<Self> {
        let threads = match settings.crypto_threads {
            0 => available_parallelism().map_or(1, |cores| cores.get() / 2).max(1),
            given => given,
        };
        let spec = LaneSpec { name: "crypto", threads, queue_max: settings.crypto_queue_max };
        let params = params(settings).map_err(io::Error::other)?;
        let decoy = decoy(&params).map_err(io::Error::other)?;
        let strangers = Strangers {
            waiting_max: spec.queue_max - spec.queue_max / KNOWN_PART,
            waiting: AtomicUsize::new(0),
            refused: Counter::new(),
        };
        let lane = Arc::new(Lane::start_lowered(&spec, clock)?);
        Ok(Self { lane, strangers: Arc::new(strangers), params, decoy })
    }

    /// The lane, for its counters.
    pub fn lane(&self) -> &Arc<Lane> {
        &self.lane
    }

    /// Hashes of strangers refused because others of theirs wait.
    pub fn strangers_refused(&self) -> u64 {
        self.strangers.refused.value()
    }

    /// Hashes a new password. Parks.
    ///
    /// # Errors
    /// [`CryptoError`].
    pub fn hash(&self, password: SecretString, whose: Whose) -> Result<String, CryptoError> {
        let params = self.params.clone();
        self.run(whose, move || hashed(&password, &params))
    }

    /// Checks a password against a stored hash; against a decoy, with the same work and always in
    /// vain, where there is none. Parks.
    ///
    /// # Errors
    /// [`CryptoError`].
    pub fn check(
        &self,
        password: SecretString,
        stored: Option<&str>,
        whose: Whose,
    ) -> Result<Checked, CryptoError> {
        let (params, known) = (self.params.clone(), stored.is_some());
        let stored = stored.unwrap_or(&self.decoy).to_owned();
        self.run(whose, move || {
            let (good, weaker) = matches(&password, &stored, &params)?;
            let good = good && known;
            let better_hash = match good && weaker {
                true => Some(hashed(&password, &params)?),
                false => None,
            };
            Ok(Checked { good, better_hash })
        })
    }

    fn run<T: Send + 'static>(
        &self,
        whose: Whose,
        job: impl FnOnce() -> Result<T, CryptoError> + Send + 'static,
    ) -> Result<T, CryptoError> {
        let place = match whose {
            Whose::Known => None,
            Whose::Stranger => Some(Place::take(&self.strangers).ok_or(CryptoError::Busy)?),
        };
        let job = move || {
            drop(place);
            job()
        };
        self.lane.submit(DEADLINE_MS, job).map_err(|_| CryptoError::Busy)?.wait()?
    }
}

/// Hashes a new password on the calling thread, for a command beside the service. Blocks for tens
/// of milliseconds.
///
/// # Errors
/// [`CryptoError`].
pub fn hash_here(password: &SecretString, settings: &AuthSettings) -> Result<String, CryptoError> {
    hashed(password, &params(settings).map_err(failed)?)
}

fn params(settings: &AuthSettings) -> argon2::Result<Params> {
    Params::new(settings.argon2_memory_kib, settings.argon2_passes, 1, Some(HASH_BYTES))
}

fn failed(error: impl std::fmt::Display) -> CryptoError {
    CryptoError::Failed(error.to_string())
}

fn salt() -> Result<Salt, CryptoError> {
    let mut bytes = [0; SALT_BYTES];
    getrandom::fill(&mut bytes).map_err(failed)?;
    Salt::new(&bytes).map_err(failed)
}

fn hashed(password: &SecretString, params: &Params) -> Result<String, CryptoError> {
    let salt = salt()?;
    let hash = mixed(password, &salt, Version::V0x13, Algorithm::Argon2id, params)?;
    phc(params, salt, hash)
}

fn decoy(params: &Params) -> Result<String, CryptoError> {
    let mut bytes = [0; HASH_BYTES];
    getrandom::fill(&mut bytes).map_err(failed)?;
    phc(params, salt()?, Output::new(&bytes).map_err(failed)?)
}

fn phc(params: &Params, salt: Salt, hash: Output) -> Result<String, CryptoError> {
    let phc = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(params).map_err(failed)?,
        salt: Some(salt),
        hash: Some(hash),
    };
    Ok(phc.to_string())
}

/// Whether the password is that of `stored`, and whether that was made with less than `params`.
fn matches(
    password: &SecretString,
    stored: &str,
    params: &Params,
) -> Result<(bool, bool), CryptoError> {
    let stored = PasswordHash::new(stored).map_err(failed)?;
    let (Some(salt), Some(hash)) = (&stored.salt, &stored.hash) else {
        return Err(failed("a stored hash lacks a part"));
    };
    let algorithm = Algorithm::try_from(stored.algorithm.as_str()).map_err(failed)?;
    let version = stored.version.map_or(Ok(Version::default()), Version::try_from);
    let own = Params::try_from(&stored).map_err(failed)?;
    let made = mixed(password, salt, version.map_err(failed)?, algorithm, &own)?;
    let weaker = algorithm != Algorithm::Argon2id
        || own.m_cost() < params.m_cost()
        || own.t_cost() < params.t_cost();
    // `Output` compares in constant time.
    Ok((made == *hash, weaker))
}

/// The function itself, in the thread's own work memory.
fn mixed(
    password: &SecretString,
    salt: &[u8],
    version: Version,
    algorithm: Algorithm,
    params: &Params,
) -> Result<Output, CryptoError> {
    let mut out = Zeroizing::new([0; Output::MAX_LENGTH]);
    let out = &mut out[..params.output_len().unwrap_or(HASH_BYTES)];
    WORK.with_borrow_mut(|work| {
        if work.len() < params.block_count() {
            work.resize(params.block_count(), Block::default());
        }
        let argon2 = Argon2::new(algorithm, version, params.clone());
        let password = password.expose_secret().as_bytes();
        argon2.hash_password_into_with_memory(password, salt, out, work).map_err(failed)
    })?;
    Output::new(out).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passwords(passes: u32) -> Passwords {
        let settings = AuthSettings { argon2_passes: passes, ..AuthSettings::default() };
        Passwords::start(&settings, &Clock::system()).unwrap()
    }

    #[test]
    fn a_hash_is_made_to_the_floor_and_checks_its_own_password_only() {
        let passwords = passwords(2);
        let first = passwords.hash("correct horse".into(), Whose::Known).unwrap();
        assert!(first.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{first}");
        assert_ne!(
            passwords.hash("correct horse".into(), Whose::Known).unwrap(),
            first,
            "the salt is new"
        );
        let good = passwords.check("correct horse".into(), Some(&first), Whose::Known).unwrap();
        assert!(good.good && good.better_hash.is_none());
        assert!(!passwords.check("correct horsf".into(), Some(&first), Whose::Known).unwrap().good);
        assert!(!passwords.check("correct horse".into(), None, Whose::Known).unwrap().good);
        assert_eq!(passwords.lane().stats().completed, 5, "each of them was work");
    }

    /// Made by the reference implementation's command line (argon2 of P-H-C, salt "somesalt").
    #[test]
    fn another_programs_hash_is_understood() {
        let passwords = passwords(2);
        let stored = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ\
                      $CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert!(passwords.check("password".into(), Some(stored), Whose::Known).unwrap().good);
        assert!(!passwords.check("passwore".into(), Some(stored), Whose::Known).unwrap().good);
        assert!(passwords.check("password".into(), Some("nonsense"), Whose::Known).is_err());
    }

    #[test]
    fn a_weaker_hash_is_made_anew_when_the_password_is_right() {
        let old = passwords(2).hash("correct horse".into(), Whose::Known).unwrap();
        let today = passwords(3);
        let checked = today.check("correct horse".into(), Some(&old), Whose::Known).unwrap();
        let better = checked.better_hash.unwrap();
        assert!(better.contains("t=3"), "{better}");
        assert!(
            today
                .check("correct horse".into(), Some(&better), Whose::Known)
                .unwrap()
                .better_hash
                .is_none()
        );
        assert!(
            today
                .check("wrong horse".into(), Some(&old), Whose::Known)
                .unwrap()
                .better_hash
                .is_none()
        );
    }

    #[test]
    fn strangers_leave_a_quarter_of_the_queue_to_who_is_known() {
        let settings =
            AuthSettings { crypto_threads: 1, crypto_queue_max: 8, ..AuthSettings::default() };
        let passwords = Arc::new(Passwords::start(&settings, &Clock::system()).unwrap());
        // Holds the one thread, so that whoever comes now waits.
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let held = passwords.lane().submit(60_000, move || gate.recv().is_ok()).unwrap();
        while passwords.lane().stats().running == 0 {
            std::thread::yield_now();
        }
        let ask = |whose| {
            let passwords = Arc::clone(&passwords);
            let asks = move || passwords.check("wrong".into(), None, whose).is_ok();
            crate::rt::threads::spawn("asks", asks).unwrap()
        };
        let mut waiting: Vec<_> = (0..6).map(|_| ask(Whose::Stranger)).collect();
        while passwords.lane().stats().depth < 6 {
            std::thread::yield_now();
        }
        assert!(!ask(Whose::Stranger).join().unwrap(), "the seventh");
        assert_eq!((passwords.strangers_refused(), passwords.lane().stats().refused), (1, 0));
        waiting.extend((0..2).map(|_| ask(Whose::Known)));
        while passwords.lane().stats().depth < 8 {
            std::thread::yield_now();
        }
        assert!(!ask(Whose::Known).join().unwrap(), "the queue itself is full");
        release.send(()).unwrap();
        assert_eq!(held.wait(), Ok(true));
        assert!(waiting.into_iter().all(|asks| asks.join().unwrap()));
        assert_eq!(passwords.strangers.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_decoy_costs_what_a_real_hash_does() {
        let passwords = passwords(3);
        let parsed = PasswordHash::new(&passwords.decoy).unwrap();
        let params = Params::try_from(&parsed).unwrap();
        assert_eq!((params.m_cost(), params.t_cost(), params.p_cost()), (19_456, 3, 1));
    }
}
