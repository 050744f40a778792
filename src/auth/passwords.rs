//! Password hashes: argon2id as PHC strings, computed on the lane `crypto`.
//!
//! Callers park. One hash takes tens of milliseconds of a core and 19 MiB, and logins must not slow
//! down the market routes. So the lane has few threads of the lowest priority and a bounded queue.
//! Part of the queue is reserved for known clients, so that a flood of logins by strangers cannot
//! fill all of it.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::auth::keys::AuthSettings;
use crate::auth::throttle::SharedAttempt;
use crate::base::limiter::TooEarly;
use crate::base::{Clock, visible, words};
use crate::ops::Counter;
use crate::rt::{Lane, LaneError, LaneSpec};

/// Deadline of a hash. With a queue of 64 and 30 ms a hash, none waits half as long.
const DEADLINE_MS: u64 = 10_000;

/// Part of the queue's places that is reserved for known clients.
const KNOWN_PART: usize = 4;

const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

type Result<T, E = CryptoError> = std::result::Result<T, E>;

thread_local! {
    /// Work memory of the lane's thread, reused because fresh 19 MiB for each hash would cost as
    /// much as the hash itself. Its content after a hash reveals nothing about the password.
    static WORK: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

/// Why a password could not be hashed or checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CryptoError {
    #[error("too many hashes are waiting")]
    Busy,
    #[error("hashing did not finish in time: {0}")]
    Lost(#[from] LaneError),
    #[error("the hash cannot be made: {0}")]
    Failed(String),
    /// The limit of all nodes together is used up. Nothing was hashed.
    #[error("too many attempts at all nodes")]
    Throttled(TooEarly),
}

/// Kind of client that a hash is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A caller with a valid token, or from a known network of the account.
    Known,
    /// Any other client.
    Stranger,
}

/// The client of a hash, and the attempt to count at all nodes.
pub(crate) struct HashClient {
    pub whose: Whose,
    /// `None` if there are no other nodes, or no limit.
    pub attempt: Option<SharedAttempt>,
}

impl From<Whose> for HashClient {
    fn from(whose: Whose) -> Self {
        Self {
            whose,
            attempt: None,
        }
    }
}

/// Limits the hashes of strangers in the queue.
struct Strangers {
    waiting_max: usize,
    waiting: AtomicUsize,
    refused: Counter,
}

/// A stranger's place in the queue, freed when the hash begins or is given up.
struct Place(Arc<Strangers>);

impl Place {
    fn take(strangers: &Arc<Strangers>) -> Option<Self> {
        let free = |waiting| (waiting < strangers.waiting_max).then_some(waiting + 1);
        match strangers
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, free)
        {
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

/// The result of checking a password.
#[derive(Debug)]
pub(crate) struct Checked {
    pub good: bool,
    /// A new hash, if the password is right and the stored hash has weaker parameters or is of
    /// letters that are not composed.
    pub better_hash: Option<String>,
}

/// Makes and checks hashes.
pub(crate) struct Passwords {
    /// For its counters, too.
    pub(super) lane: Arc<Lane>,
    strangers: Arc<Strangers>,
    params: Params,
    deadline_ms: u64,
    /// A hash of no password, against which passwords are checked if there is no account.
    decoy: String,
}

impl Passwords {
    /// Starts the lane.
    ///
    /// # Errors
    /// If a thread cannot be started or the system has no randomness.
    pub(crate) fn start(settings: &AuthSettings, clock: &Clock) -> io::Result<Self> {
        let threads = match settings.crypto_threads {
            0 => available_parallelism()
                .map_or(1, |cores| cores.get() / 2)
                .max(1),
            given => given,
        };
        let spec = LaneSpec {
            name: "crypto",
            threads,
            queue_max: settings.crypto_queue_max,
        };
        let params = params(settings).map_err(io::Error::other)?;
        let decoy = decoy(&params).map_err(io::Error::other)?;
        let strangers = Strangers {
            waiting_max: spec.queue_max - spec.queue_max / KNOWN_PART,
            waiting: AtomicUsize::new(0),
            refused: Counter::new(),
        };
        let lane = Arc::new(Lane::start_lowered(&spec, clock)?);
        Ok(Self {
            lane,
            strangers: Arc::new(strangers),
            params,
            deadline_ms: DEADLINE_MS,
            decoy,
        })
    }

    /// Hashes of strangers refused because their share of the queue was full.
    pub(crate) fn strangers_refused(&self) -> u64 {
        self.strangers.refused.value()
    }

    /// Hashes a new password, unless the limit of all nodes together is used up. Parks.
    ///
    /// # Errors
    /// [`CryptoError`].
    pub(crate) fn hash(
        &self,
        password: SecretString,
        asker: impl Into<HashClient>,
    ) -> Result<String> {
        let params = self.params.clone();
        self.run(asker.into(), move |_| hashed(&composed(&password), &params))
    }

    /// Checks a password against a stored hash: with its letters composed, and as they came if that
    /// is something else. Without a stored hash it does the same work on a decoy, and
    /// the result is always wrong. Parks.
    ///
    /// # Errors
    /// [`CryptoError`].
    pub(crate) fn check(
        &self,
        password: SecretString,
        stored: Option<&str>,
        asker: impl Into<HashClient>,
    ) -> Result<Checked> {
        let params = self.params.clone();
        let known = stored.is_some();
        let stored = stored.unwrap_or(&self.decoy).to_owned();
        self.run(asker.into(), move |attempt| {
            let forms = forms(&password);
            let mut good = false;
            let mut weaker = false;
            let mut is_raw = false;
            // Whether there is an account or not, each form takes a hash until one is right.
            for (at, form) in forms.iter().enumerate() {
                (good, weaker) = matches(form, &stored, &params)?;
                is_raw = at > 0;
                if good {
                    break;
                }
            }
            let good = good && known;
            if let Some(attempt) = attempt.filter(|_| good) {
                attempt.forgive_own();
            }
            let better_hash = match good && (weaker || is_raw) {
                true => Some(hashed(&forms[0], &params)?),
                false => None,
            };
            Ok(Checked { good, better_hash })
        })
    }

    /// Runs a job on the lane, after the attempt was counted together with the other nodes.
    fn run<T: Send + 'static>(
        &self,
        HashClient { whose, attempt }: HashClient,
        job: impl FnOnce(Option<&SharedAttempt>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let place = match whose {
            Whose::Known => None,
            Whose::Stranger => Some(Place::take(&self.strangers).ok_or(CryptoError::Busy)?),
        };
        let job = move || {
            drop(place);
            let attempt = attempt.as_ref();
            attempt
                .map_or(Ok(()), SharedAttempt::count)
                .map_err(CryptoError::Throttled)?;
            job(attempt)
        };
        self.lane
            .submit(self.deadline_ms, job)
            .map_err(|_| CryptoError::Busy)?
            .wait()?
    }
}

/// Hashes a new password on the calling thread, for a command. Blocks for tens of milliseconds.
///
/// # Errors
/// [`CryptoError`].
pub(crate) fn hash_here(password: &SecretString, settings: &AuthSettings) -> Result<String> {
    hashed(&composed(password), &params(settings).map_err(failed)?)
}

/// The password with its letters composed (NFC), as it is hashed: keyboards of different systems
/// send different forms of the same letter (NIST SP 800-63B). NFKC would make one password of two.
fn composed(password: &SecretString) -> SecretString {
    SecretString::from(&*visible::composed(password.expose_secret()))
}

/// What a given password is tried as: composed, and as it came if that is something else, which an
/// earlier version hashed. It depends on nothing but the password, so that the time of a refusal
/// tells nobody whether there is an account.
fn forms(password: &SecretString) -> Vec<SecretString> {
    let normal = composed(password);
    let is_other = normal.expose_secret() != password.expose_secret();
    [Some(normal), is_other.then(|| password.clone())]
        .into_iter()
        .flatten()
        .collect()
}

fn params(settings: &AuthSettings) -> argon2::Result<Params> {
    Params::new(settings.argon2_memory_kib, settings.argon2_passes, 1, Some(HASH_BYTES))
}

fn failed(error: impl std::fmt::Display) -> CryptoError {
    CryptoError::Failed(error.to_string())
}

fn salt() -> Result<Salt> {
    let mut bytes = [0; SALT_BYTES];
    getrandom::fill(&mut bytes).map_err(failed)?;
    Salt::new(&bytes).map_err(failed)
}

fn hashed(password: &SecretString, params: &Params) -> Result<String> {
    let salt = salt()?;
    let hash = mixed(password, &salt, Version::V0x13, Algorithm::Argon2id, params)?;
    phc(params, salt, hash)
}

fn decoy(params: &Params) -> Result<String> {
    let mut bytes = [0; HASH_BYTES];
    getrandom::fill(&mut bytes).map_err(failed)?;
    phc(params, salt()?, Output::new(&bytes).map_err(failed)?)
}

fn phc(params: &Params, salt: Salt, hash: Output) -> Result<String> {
    let phc = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(params).map_err(failed)?,
        salt: Some(salt),
        hash: Some(hash),
    };
    Ok(phc.to_string())
}

/// Whether the password matches `stored`, and whether that has weaker parameters than `params`.
fn matches(password: &SecretString, stored: &str, params: &Params) -> Result<(bool, bool)> {
    let stored = PasswordHash::new(stored).map_err(failed)?;
    let (Some(salt), Some(hash)) = (&stored.salt, &stored.hash) else {
        return Err(failed("a stored hash lacks a part"));
    };
    let algorithm = Algorithm::try_from(stored.algorithm.as_str()).map_err(failed)?;
    let version = stored
        .version
        .map_or(Ok(Version::default()), Version::try_from);
    let own = Params::try_from(&stored).map_err(failed)?;
    let made = mixed(password, salt, version.map_err(failed)?, algorithm, &own)?;
    let weaker = algorithm != Algorithm::Argon2id
        || own.m_cost() < params.m_cost()
        || own.t_cost() < params.t_cost();
    // `Output` compares in constant time.
    Ok((made == *hash, weaker))
}

/// Runs argon2 in the thread's work memory.
fn mixed(
    password: &SecretString,
    salt: &[u8],
    version: Version,
    algorithm: Algorithm,
    params: &Params,
) -> Result<Output> {
    let mut out = Zeroizing::new([0; Output::MAX_LENGTH]);
    let out = &mut out[..params.output_len().unwrap_or(HASH_BYTES)];
    WORK.with_borrow_mut(|work| {
        if work.len() < params.block_count() {
            work.resize(params.block_count(), Block::default());
        }
        let argon2 = Argon2::new(algorithm, version, params.clone());
        let password = password.expose_secret().as_bytes();
        argon2
            .hash_password_into_with_memory(password, salt, out, work)
            .map_err(failed)
    })?;
    Output::new(out).map_err(failed)
}

// ---- Common passwords
//
// Recognises passwords that attackers try first.
//
// Pure. There are three embedded lists: whole passwords, words that people extend by an ending, and
// those endings. All are in lower case, and passwords are looked up in lower case, because
// `PASSWORD1` is as easily guessed as `password1`.

static WHOLE: LazyLock<HashSet<&str>> =
    LazyLock::new(|| lines(include_str!("data/common_passwords.txt")).collect());
static STEMS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| lines(include_str!("data/common_stems.txt")).collect());
/// Common endings of a stem, without years.
static ENDINGS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| lines(include_str!("data/common_endings.txt")).collect());

/// Longest entry of the lists.
const COMMON_BYTES_MAX: usize = 32;

/// Years that people append to a word, also after `@`.
const YEARS: std::ops::RangeInclusive<u16> = 1950..=2035;

/// Shortest run of a pattern that counts: the shortest password that is allowed.
const PATTERN_BYTES_MIN: usize = 8;

/// Sequences of keys and characters. They also count backwards.
const SEQUENCES: &[&str] = &[
    "01234567890123456789",
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiopasdfghjklzxcvbnm",
    "azertyuiopqsdfghjklmwxcvbn",
    "1q2w3e4r5t6y7u8i9o0p",
    "q1w2e3r4t5y6u7i8o9p0",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
    "qazwsxedcrfvtgbyhnujmikolp",
    "zaq12wsxcde34rfv",
];

fn lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
}

words! {
    /// Why a password is weak. The words complete the sentence "This password is ...".
    pub enum Weakness {
        /// It is on the list of the most common passwords.
        Common = "one of the most common",
        WordWithEnding = "a common word with a common ending",
        Repeated = "one short piece again and again",
        InOrder = "keys or letters in their order",
    }
}

/// Why the password is weak; `None` if no weakness is found.
pub(crate) fn weakness(password: &str) -> Option<Weakness> {
    if password.len() > COMMON_BYTES_MAX {
        return pattern(password.as_bytes());
    }
    // Reserve the whole length: a string that grows leaves unwiped copies behind.
    let mut lower = Zeroizing::new(String::with_capacity(password.len()));
    lower.push_str(password);
    lower.make_ascii_lowercase();
    if WHOLE.contains(lower.as_str()) || STEMS.contains(lower.as_str()) {
        return Some(Weakness::Common);
    }
    let ended = || is_stem_and_ending(&lower).then_some(Weakness::WordWithEnding);
    pattern(lower.as_bytes()).or_else(ended)
}

fn is_stem_and_ending(lower: &str) -> bool {
    let ended = ENDINGS.iter().any(|ending| {
        lower
            .strip_suffix(ending)
            .is_some_and(|stem| STEMS.contains(stem))
    });
    ended || is_stem_and_year(lower)
}

fn is_stem_and_year(lower: &str) -> bool {
    let Some((word, year)) = lower
        .len()
        .checked_sub(4)
        .and_then(|at| lower.split_at_checked(at))
    else {
        return false;
    };
    year.parse().is_ok_and(|year| YEARS.contains(&year))
        && STEMS.contains(word.strip_suffix(['@', '#', '_', '-']).unwrap_or(word))
}

/// Finds a repeated unit of one to four bytes, or a part of one of [`SEQUENCES`].
fn pattern(lower: &[u8]) -> Option<Weakness> {
    if lower.len() < PATTERN_BYTES_MIN {
        return None;
    }
    let repeats = |unit: usize| {
        lower
            .iter()
            .zip(&lower[unit..])
            .all(|(one, next)| one == next)
    };
    if (1..=4).any(repeats) {
        return Some(Weakness::Repeated);
    }
    let reversed: Zeroizing<Vec<u8>> = Zeroizing::new(lower.iter().rev().copied().collect());
    let typed = |text: &[u8]| {
        SEQUENCES
            .iter()
            .any(|keys| memchr::memmem::find(keys.as_bytes(), text).is_some())
    };
    (typed(lower) || typed(&reversed)).then_some(Weakness::InOrder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A longer deadline, for a machine that is busy with other work.
    fn started(settings: &AuthSettings) -> Passwords {
        let passwords = Passwords::start(settings, &Clock::system()).unwrap();
        Passwords {
            deadline_ms: 60 * DEADLINE_MS,
            ..passwords
        }
    }

    fn passwords(passes: u32) -> Passwords {
        started(&AuthSettings {
            argon2_passes: passes,
            ..AuthSettings::default()
        })
    }

    #[test]
    fn a_hash_has_the_default_parameters_and_matches_its_own_password_only() {
        let passwords = passwords(2);
        let first = passwords
            .hash("correct horse".into(), Whose::Known)
            .unwrap();
        assert!(first.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{first}");
        assert_ne!(
            passwords
                .hash("correct horse".into(), Whose::Known)
                .unwrap(),
            first,
            "the salt is new"
        );
        let good = passwords
            .check("correct horse".into(), Some(&first), Whose::Known)
            .unwrap();
        assert!(good.good && good.better_hash.is_none());
        assert!(
            !passwords
                .check("correct horsf".into(), Some(&first), Whose::Known)
                .unwrap()
                .good
        );
        assert!(
            !passwords
                .check("correct horse".into(), None, Whose::Known)
                .unwrap()
                .good
        );
        assert_eq!(passwords.lane.stats().completed, 5, "each of them was work");
    }

    /// A hash made by the reference implementation's command line (argon2 of P-H-C, salt
    /// "somesalt").
    #[test]
    fn a_hash_of_the_reference_implementation_is_checked() {
        let passwords = passwords(2);
        let stored = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ\
                      $CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert!(
            passwords
                .check("password".into(), Some(stored), Whose::Known)
                .unwrap()
                .good
        );
        assert!(
            !passwords
                .check("passwore".into(), Some(stored), Whose::Known)
                .unwrap()
                .good
        );
        assert!(
            passwords
                .check("password".into(), Some("nonsense"), Whose::Known)
                .is_err()
        );
    }

    #[test]
    fn a_weaker_hash_is_renewed_if_the_password_is_right() {
        let old = passwords(2)
            .hash("correct horse".into(), Whose::Known)
            .unwrap();
        let today = passwords(3);
        let checked = today
            .check("correct horse".into(), Some(&old), Whose::Known)
            .unwrap();
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
    fn a_password_is_the_same_in_each_form_of_its_letters() {
        let passwords = passwords(2);
        let (composed, loose) =
            ("pässwörd für Zoë", "pa\u{308}sswo\u{308}rd fu\u{308}r Zoe\u{308}");
        let check = |given: &str, stored: Option<&str>| {
            let before = passwords.lane.stats().completed;
            let checked = passwords.check(given.into(), stored, Whose::Known).unwrap();
            assert_eq!(passwords.lane.stats().completed, before + 1);
            checked
        };
        for made_of in [composed, loose] {
            let stored = passwords.hash(made_of.into(), Whose::Known).unwrap();
            for given in [composed, loose] {
                let checked = check(given, Some(&stored));
                assert!(checked.good && checked.better_hash.is_none(), "{given}");
            }
            assert!(!check("pässwörd für Zoe", Some(&stored)).good);
        }
        // An earlier version hashed the letters as they came.
        let old = hashed(&loose.into(), &passwords.params).unwrap();
        let checked = check(loose, Some(&old));
        let better = checked.better_hash.unwrap();
        assert!(checked.good && check(composed, Some(&better)).good);
        assert!(check(composed, Some(&better)).better_hash.is_none());
        for given in [composed, loose] {
            assert!(!check(given, None).good, "there is no account");
        }
        // NFKC would make these the same.
        let ligature = passwords
            .hash("e\u{fb03}cient code".into(), Whose::Known)
            .unwrap();
        assert!(!check("efficient code", Some(&ligature)).good);
    }

    #[test]
    fn how_many_hashes_a_refusal_takes_depends_on_the_password_alone() {
        for (password, count) in [
            ("password", 1),
            ("p\u{e4}ssword", 1),
            ("pa\u{308}ssword", 2),
        ] {
            let forms = forms(&password.into());
            assert_eq!(forms.len(), count, "{password}");
            assert_eq!(forms[count - 1].expose_secret(), password, "as it came, last");
        }
    }

    #[test]
    fn strangers_leave_a_quarter_of_the_queue_to_known_clients() {
        let settings = AuthSettings {
            crypto_threads: 1,
            crypto_queue_max: 8,
            ..AuthSettings::default()
        };
        let passwords = Arc::new(started(&settings));
        // Keeps the only thread busy, so that further hashes wait.
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let held = passwords
            .lane
            .submit(60_000, move || gate.recv().is_ok())
            .unwrap();
        while passwords.lane.stats().running == 0 {
            std::thread::yield_now();
        }
        let ask = |whose| {
            let passwords = Arc::clone(&passwords);
            let asks = move || passwords.check("wrong".into(), None, whose).is_ok();
            crate::rt::threads::spawn("asks", asks).unwrap()
        };
        let mut waiting: Vec<_> = (0..6).map(|_| ask(Whose::Stranger)).collect();
        while passwords.lane.stats().depth < 6 {
            std::thread::yield_now();
        }
        assert!(!ask(Whose::Stranger).join().unwrap(), "the seventh");
        assert_eq!((passwords.strangers_refused(), passwords.lane.stats().refused), (1, 0));
        waiting.extend((0..2).map(|_| ask(Whose::Known)));
        while passwords.lane.stats().depth < 8 {
            std::thread::yield_now();
        }
        assert!(!ask(Whose::Known).join().unwrap(), "the queue itself is full");
        release.send(()).unwrap();
        assert_eq!(held.wait(), Ok(true));
        assert!(waiting.into_iter().all(|asks| asks.join().unwrap()));
        assert_eq!(passwords.strangers.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_decoy_has_the_parameters_of_a_real_hash() {
        let passwords = passwords(3);
        let parsed = PasswordHash::new(&passwords.decoy).unwrap();
        let params = Params::try_from(&parsed).unwrap();
        assert_eq!((params.m_cost(), params.t_cost(), params.p_cost()), (19_456, 3, 1));
    }
}

#[cfg(test)]
mod common_passwords_tests {
    use super::*;

    #[test]
    fn well_known_passwords_are_weak_in_any_case() {
        for known in [
            "password",
            "PASSWORD",
            "Password1",
            "password123",
            "12345678",
            "123456789",
            "1234567890",
            "qwertyuiop",
            "QwertyUiop",
            "11111111",
            "aaaaaaaaaaaa",
            "abcdefgh",
            "87654321",
            "iloveyou",
            "sunshine",
            "football",
            "1q2w3e4r",
            "1qaz2wsx",
            "zaq12wsx",
            "abcd1234",
            "abc12345",
            "trustno1",
            "welcome1",
            "Welcome@123",
            "admin@123",
            "India@123",
            "india123",
            "Sachin10",
            "letmein1",
            "Passw0rd",
            "p@ssw0rd",
            "P@ssword1",
            "Krishna@2024",
            "password2026",
            "asdfghjkl",
            "00000000",
            "12341234",
            "abcabcabc",
        ] {
            assert!(weakness(known).is_some(), "{known}");
        }
    }

    #[test]
    fn each_weak_password_has_its_own_kind_of_weakness() {
        for (password, expected) in [
            ("12345678", Weakness::Common),
            ("PassWord", Weakness::Common),
            ("sunshine", Weakness::Common),
            ("password1", Weakness::WordWithEnding),
            ("Krishna@2024", Weakness::WordWithEnding),
            ("dragon#1234", Weakness::WordWithEnding),
            ("zvzvzvzvzv", Weakness::Repeated),
            ("kqx7kqx7kqx7", Weakness::Repeated),
            (&"long".repeat(12), Weakness::Repeated),
            ("defghijklm", Weakness::InOrder),
            ("mnbvcxzlkj", Weakness::InOrder),
        ] {
            assert_eq!(weakness(password), Some(expected), "{password}");
        }
    }

    #[test]
    fn other_passwords_are_not_weak() {
        for other in [
            "correct horse battery staple",
            "h7#kQ2!vLx9",
            "tulip-cargo-9",
            "passwordisnotmine",
            "ünïcödé pässwörd",
            "नमस्ते दुनिया",
            "gandalfs-eagle",
            "1795000000123",
            "india-ocean-depth",
        ] {
            assert_eq!(weakness(other), None, "{other}");
        }
    }

    #[test]
    fn the_files_are_in_lower_case_and_without_repeats() {
        for (file, set, least) in [
            (include_str!("data/common_passwords.txt"), &WHOLE, 150),
            (include_str!("data/common_stems.txt"), &STEMS, 300),
            (include_str!("data/common_endings.txt"), &ENDINGS, 100),
        ] {
            assert!(set.len() >= least, "{}", set.len());
            assert_eq!(lines(file).count(), set.len(), "a line stands twice");
            for line in lines(file) {
                assert_eq!(line, line.trim().to_ascii_lowercase());
                assert!(line.len() <= COMMON_BYTES_MAX);
            }
        }
        assert!(lines(include_str!("data/common_passwords.txt")).all(|line| line.len() >= 8));
        // Number of passwords that the files and endings stand for.
        assert!(STEMS.len() * (ENDINGS.len() + YEARS.len()) > 50_000);
    }
}
