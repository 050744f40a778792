//! One connection for calls, opened anew when it broke. Every call ends by its deadline, and while
//! the server is away most end at once.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use parking_lot::Mutex;
use redis::{Cmd, RedisResult, Script, Value};

use crate::base::rng;
use crate::cache::l2::Kind;
use crate::nodes::valkey::address::Namespace;
use crate::nodes::valkey::connection::{Connection, Server, ValkeyError};
use crate::nodes::valkey::refusals::Refusal;
use crate::views::health::CacheBackend;

/// Deadlines of calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    /// Deadline for opening a connection and logging in, part of the call's time.
    pub(crate) connect_ms: u64,
    /// Deadline of a call, including the wait for the connection and opening one.
    pub(crate) call_ms: u64,
}

/// Counts of calls since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientStats {
    pub(crate) connects: u64,
    pub(crate) errors: u64,
}

/// The connection, and the waits between tries to open one.
struct Slot {
    connection: Option<Connection>,
    back_off: BackOff,
}

/// Calls from any thread that may block, one at a time.
pub(crate) struct Client {
    server: Arc<Server>,
    deadlines: Deadlines,
    slot: Mutex<Slot>,
    connects: AtomicU64,
    errors: AtomicU64,
    is_valkey: AtomicBool,
}

impl Client {
    pub(crate) fn new(server: &Arc<Server>, deadlines: Deadlines) -> Self {
        Self {
            server: Arc::clone(server),
            deadlines,
            slot: Mutex::new(Slot { connection: None, back_off: BackOff::new() }),
            connects: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            is_valkey: AtomicBool::new(server.says_valkey()),
        }
    }

    /// Runs `work` on the connection. A failed call is not repeated, because only the caller knows
    /// whether it may be. The next call opens a new connection.
    pub(crate) fn call<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> RedisResult<T>,
    ) -> Result<T, ValkeyError> {
        let done = self.try_call(work);
        if done.is_err() {
            self.errors.fetch_add(1, Relaxed);
        }
        done
    }

    fn try_call<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> RedisResult<T>,
    ) -> Result<T, ValkeyError> {
        let until_mono_ms = self.now_mono_ms() + self.deadlines.call_ms;
        let wait = Duration::from_millis(self.deadlines.call_ms);
        let mut slot = self.slot.try_lock_for(wait).ok_or(ValkeyError::Busy)?;
        let mut connection = match slot.connection.take() {
            Some(connection) => connection,
            None => self.open(&mut slot.back_off, until_mono_ms)?,
        };
        connection.end_by(until_mono_ms);
        match work(&mut connection) {
            Ok(done) => {
                slot.connection = Some(connection);
                Ok(done)
            }
            Err(error) => {
                let error = ValkeyError::of(&error);
                if error.keeps_connection() {
                    self.server.note_answer(&error, &mut connection);
                }
                if error.keeps_connection() && connection.is_usable() {
                    slot.connection = Some(connection);
                }
                Err(error)
            }
        }
    }

    fn open(&self, back_off: &mut BackOff, until_mono_ms: u64) -> Result<Connection, ValkeyError> {
        let now_mono_ms = self.now_mono_ms();
        match back_off.wait_ms(now_mono_ms) {
            0 => {}
            retry_ms => return Err(ValkeyError::Away { retry_ms }),
        }
        let opened =
            self.server.connect(until_mono_ms.min(now_mono_ms + self.deadlines.connect_ms));
        match &opened {
            Ok(connection) => {
                back_off.succeeded();
                self.connects.fetch_add(1, Relaxed);
                self.is_valkey.store(connection.is_valkey(), Relaxed);
            }
            Err(_) => back_off.failed(self.now_mono_ms()),
        }
        opened
    }

    /// The server's own name, or that of the address until the server has given its own.
    pub(crate) fn server_name(&self) -> CacheBackend {
        if self.is_valkey.load(Relaxed) { CacheBackend::Valkey } else { CacheBackend::Redis }
    }

    pub(crate) fn stats(&self) -> ClientStats {
        ClientStats { connects: self.connects.load(Relaxed), errors: self.errors.load(Relaxed) }
    }

    fn now_mono_ms(&self) -> u64 {
        self.server.timer().monotonic_ms()
    }
}

// ---- Back off
//
// The wait before the next try after a failure: doubling, bounded, with a jitter.

/// The wait after the first failure; a server that was only restarted is back by then.
const FIRST_MS: u64 = 100;
/// Longest wait; there is no last try.
const LONGEST_MS: u64 = 5_000;

/// Waits between tries. Times are of the monotonic clock.
#[derive(Debug)]
pub(crate) struct BackOff {
    next_ms: u64,
    not_before_mono_ms: u64,
}

impl BackOff {
    pub(crate) fn new() -> Self {
        Self { next_ms: FIRST_MS, not_before_mono_ms: 0 }
    }

    /// Time until the next try may be made; zero if it may be made now.
    pub(crate) fn wait_ms(&self, now_mono_ms: u64) -> u64 {
        self.not_before_mono_ms.saturating_sub(now_mono_ms)
    }

    /// A try failed.
    pub(crate) fn failed(&mut self, now_mono_ms: u64) {
        self.not_before_mono_ms = now_mono_ms + rng::jittered_ms(self.next_ms);
        self.next_ms = (self.next_ms * 2).min(LONGEST_MS);
    }

    /// A try succeeded.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::new();
    }
}

// ---- Keys
//
// The names of all keys and channels: `bhav:NAMESPACE:…`, so that an operator can allow one user
// exactly these.

/// The beginning of all scripts.
const COMMON: &str = include_str!("../scripts/common.lua");

/// A script behind the common beginning.
pub(crate) fn script(code: &str) -> Script {
    Script::new(&[COMMON, code].concat())
}

/// Names below one namespace.
#[derive(Clone, Debug)]
pub(crate) struct Keys(String);

impl Keys {
    pub(crate) fn of(namespace: &Namespace) -> Self {
        Self(format!("bhav:{}:", namespace.as_str()))
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.0)
    }

    /// HASH of the records of a kind.
    pub(crate) fn records(&self, kind: Kind) -> String {
        self.key(kind.as_str())
    }

    /// ZSET of the times at which records of the kind were stored.
    pub(crate) fn ages(&self, kind: Kind) -> String {
        self.key(&format!("{}:age", kind.as_str()))
    }

    /// The highest epoch that wrote anything. Lower ones are refused.
    pub(crate) fn fence(&self) -> String {
        self.key("epoch")
    }

    /// The claim of the leader.
    pub(crate) fn leader(&self) -> String {
        self.key("leader")
    }

    /// HASH of the newest message of the relay: epoch, number, and all but its quotes.
    pub(crate) fn relay_state(&self) -> String {
        self.key("relay")
    }

    /// HASH of the newest quotes of the relay.
    pub(crate) fn relay_quotes(&self) -> String {
        self.key("relay:quote")
    }

    /// All channels.
    pub(crate) fn channels(&self) -> [String; 4] {
        [self.relay_channel(), self.wanted_channel(), self.sealed_channel(), self.changes_channel()]
    }

    /// Channel of the leader's updates.
    pub(crate) fn relay_channel(&self) -> String {
        self.key("relay")
    }

    /// Channel of the symbols that nodes want.
    pub(crate) fn wanted_channel(&self) -> String {
        self.key("wanted")
    }

    /// Channel of encrypted messages.
    pub(crate) fn sealed_channel(&self) -> String {
        self.key("sealed")
    }

    /// Channel of notices that there are changes to read.
    pub(crate) fn changes_channel(&self) -> String {
        self.key("changes")
    }

    /// Nothing is ever kept or sent under this name; access is tried with it.
    pub(crate) fn access(&self) -> String {
        self.key("access")
    }

    /// Bucket of a rate limit.
    pub(crate) fn limit(&self, name: &str) -> String {
        self.key(&format!("limit:{name}"))
    }
}

// ---- Access
//
// Asks the server which of our commands it refuses, without changing anything on it.

/// Placeholder for a name below the namespace that nothing else uses.
const NAME: &str = "NAME";

/// Every command that a node sends or one of its scripts runs, and that it cannot do without; each
/// in a form that changes nothing. An odd number of fields is an error after access was checked.
pub(super) const COMMANDS: &[&[&str]] = &[
    &["INFO", "server"],
    &["TIME"],
    &["GET", NAME],
    &["EXISTS", NAME],
    &["DEL", NAME],
    &["SET", NAME, "x", "XX", "PX", "1"],
    &["PEXPIRE", NAME, "1"],
    &["HGET", NAME, "x"],
    &["HMGET", NAME, "x"],
    &["HGETALL", NAME],
    &["HLEN", NAME],
    &["HSCAN", NAME, "0"],
    &["HDEL", NAME, "x"],
    &["HSET", NAME, "x", "x", "odd"],
    &["ZADD", NAME, "XX", "1", "x"],
    &["ZCARD", NAME],
    &["ZPOPMIN", NAME, "0"],
    &["SCRIPT", "LOAD", "return 1"],
    &["EVALSHA", "0000000000000000000000000000000000000000", "0"],
    &["MULTI"],
    &["EXEC"],
    &["PUBLISH", NAME, ""],
];

/// The refusals of the server to this connection, each once.
///
/// # Errors
/// [`ValkeyError`] if it does not answer.
pub(super) fn refused(
    connection: &mut Connection,
    keys: &Keys,
) -> Result<Vec<Refusal>, ValkeyError> {
    let name = keys.access();
    let mut found = Vec::new();
    for words in COMMANDS {
        let mut command = Cmd::new();
        for word in *words {
            command.arg(if *word == NAME { name.as_str() } else { word });
        }
        let answered: RedisResult<Value> = command.query(connection);
        let Err(error) = answered else { continue };
        let ValkeyError::Refused { detail, refusal } = ValkeyError::of(&error) else {
            return Err(ValkeyError::of(&error));
        };
        // An error about a command's form, or about a script that is not loaded, does not concern
        // access.
        let of_the_form = ["ERR", "NOSCRIPT", "EXECABORT"].contains(&detail.as_str());
        if !of_the_form && !found.contains(&refusal) {
            found.push(refusal);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod back_off_tests {
    use super::*;

    #[test]
    fn waits_double_to_five_seconds_and_begin_anew_after_a_success() {
        let (mut back_off, mut now_ms) = (BackOff::new(), 0);
        for expected_ms in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            back_off.failed(now_ms);
            let wait_ms = back_off.wait_ms(now_ms);
            let fifth = expected_ms / 5;
            assert!((expected_ms - fifth..=expected_ms + fifth).contains(&wait_ms), "{wait_ms}");
            now_ms += wait_ms;
            assert_eq!(back_off.wait_ms(now_ms), 0);
        }
        back_off.succeeded();
        back_off.failed(now_ms);
        assert!(back_off.wait_ms(now_ms) <= 120);
    }
}

#[cfg(test)]
mod keys_tests {
    use super::*;

    /// Nodes of other versions use the same, and operators' access rules name them.
    #[test]
    fn keys_and_channels_have_these_names() {
        let keys = Keys::of(&Namespace::parse("main").unwrap());
        let names = [
            keys.records(Kind::Quote),
            keys.records(Kind::Instruments),
            keys.ages(Kind::Quote),
            keys.ages(Kind::Instruments),
            keys.fence(),
            keys.leader(),
            keys.relay_state(),
            keys.relay_quotes(),
            keys.access(),
            keys.limit("0badcafe"),
        ];
        let expected = [
            "bhav:main:quote",
            "bhav:main:instruments",
            "bhav:main:quote:age",
            "bhav:main:instruments:age",
            "bhav:main:epoch",
            "bhav:main:leader",
            "bhav:main:relay",
            "bhav:main:relay:quote",
            "bhav:main:access",
            "bhav:main:limit:0badcafe",
        ];
        assert_eq!(names, expected);
        let channels = ["relay", "wanted", "sealed", "changes"].map(|n| format!("bhav:main:{n}"));
        assert_eq!(keys.channels(), channels);
    }
}

#[cfg(test)]
mod access_tests {
    use super::*;
    use crate::base::Clock;
    use crate::nodes::valkey::Namespace;
    use crate::nodes::valkey::testing::TestServer;

    #[test]
    fn every_command_of_a_script_is_in_the_list() {
        let scripts = [
            include_str!("../scripts/store.lua"),
            include_str!("../scripts/look.lua"),
            include_str!("../scripts/claim.lua"),
            include_str!("../scripts/release.lua"),
            include_str!("../scripts/admit.lua"),
            include_str!("../scripts/publish.lua"),
        ];
        for script in scripts {
            for call in script.split("redis.call('").skip(1) {
                let name = call.split('\'').next().unwrap();
                assert!(COMMANDS.iter().any(|words| words[0] == name), "{name}");
            }
        }
    }

    #[test]
    fn a_server_that_refuses_nothing_is_left_as_it_was() {
        let name = "a_server_that_refuses_nothing_is_left_as_it_was";
        let Some(server) = TestServer::start(name) else { return };
        let until_mono_ms = Clock::system().monotonic_ms() + 10_000;
        let mut connection = server.server().connect(until_mono_ms).unwrap();
        connection.end_by(until_mono_ms);
        let keys = Keys::of(&Namespace::unused());
        assert_eq!(refused(&mut connection, &keys).unwrap(), []);
        let kept: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
        assert!(kept.is_empty(), "{kept:?}");
        let rules = ["ACL", "SETUSER", "default", "-info", "-publish", "resetkeys", "~other:*"];
        let mut command = Cmd::new();
        for word in rules {
            command.arg(word);
        }
        command.exec(&mut connection).unwrap();
        let command = |name: &str| Refusal::Command(name.to_owned());
        assert_eq!(
            refused(&mut connection, &keys).unwrap(),
            [command("INFO"), Refusal::Keys, command("PUBLISH")]
        );
    }
}
