//! Commands over one stream: the library encodes and decodes, the stream keeps the deadline.

use std::io;
use std::io::Write;

use redis::{
    Cmd, ConnectionLike, ErrorKind, FromRedisValue, Parser, RedisError, RedisResult, Value,
};

use crate::nodes::valkey::keys::{Key, Keys};
use crate::nodes::valkey::refusals::Refusal;
use crate::rt::outbound::{Stream, Timed};

/// Largest answer to one command: an instrument list, or a page of it, and then some.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An open connection. After any error except an error reply it is not used again, because the next
/// bytes may be the reply to an earlier command.
pub(crate) struct Connection {
    pub(super) stream: Stream<Timed>,
    pub(super) parser: Parser,
    pub(super) database: u32,
    pub(super) until_mono_ms: u64,
    /// Whether the server calls itself Valkey.
    pub(super) is_valkey: bool,
    /// Whether no bytes of an earlier call are left.
    pub(super) usable: bool,
}

impl Connection {
    /// Makes all later reads and writes end by `until_mono_ms`.
    pub(crate) fn end_by(&mut self, until_mono_ms: u64) {
        self.until_mono_ms = until_mono_ms;
    }

    /// Logs in, chooses the database, names this connection and asks for the server's name.
    pub(super) fn introduce(
        &mut self,
        user: Option<&str>,
        password: Option<&str>,
        name: Option<&str>,
    ) -> RedisResult<()> {
        if let Some(password) = password {
            let mut auth = redis::cmd("AUTH");
            if let Some(user) = user {
                auth.arg(user);
            }
            auth.arg(password).exec(self)?;
        }
        if self.database != 0 {
            redis::cmd("SELECT").arg(self.database).exec(self)?;
        }
        // Access rules may forbid both commands.
        if let Some(name) = name
            && let Err(error) = redis::cmd("CLIENT").arg("SETNAME").arg(name).exec(self)
            && error.is_io_error()
        {
            return Err(error);
        }
        match redis::cmd("INFO").arg("server").query::<String>(self) {
            Ok(said) => self.is_valkey = said.contains("server_name:valkey"),
            Err(error) if error.is_io_error() => return Err(error),
            Err(_) => {}
        }
        Ok(())
    }

    /// Subscribes. From then on only [`hear`](Self::hear) may be called.
    pub(crate) fn subscribe(&mut self, channels: &[String]) -> RedisResult<()> {
        let mut command = redis::cmd("SUBSCRIBE");
        command.arg(channels);
        self.send(&command.get_packed_command())?;
        // One answer for each channel.
        for _ in channels {
            let (kind, ..): (String, String, i64) =
                FromRedisValue::from_redis_value(self.answer()?)?;
            if kind != "subscribe" {
                return Err(unexpected());
            }
        }
        Ok(())
    }

    /// The next message, as channel and payload; `None` if none is complete by the deadline.
    pub(crate) fn hear(&mut self) -> RedisResult<Option<(String, Vec<u8>)>> {
        match self.answer() {
            Ok(value) => {
                let (kind, channel, payload): (String, String, Vec<u8>) =
                    FromRedisValue::from_redis_value(value)?;
                if kind != "message" {
                    return Err(unexpected());
                }
                Ok(Some((channel, payload)))
            }
            // The received part of a message stays in the parser.
            Err(error) if error.is_timeout() => {
                self.usable = true;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> RedisResult<()> {
        self.stream
            .socket()
            .allow(self.until_mono_ms, ANSWER_BYTES_MAX);
        let sent = self
            .stream
            .write_all(bytes)
            .and_then(|()| self.stream.flush());
        self.usable &= sent.is_ok();
        Ok(sent?)
    }

    fn answer(&mut self) -> RedisResult<Value> {
        self.stream
            .socket()
            .allow(self.until_mono_ms, ANSWER_BYTES_MAX);
        let answer = self.parser.parse_value(&mut self.stream);
        self.usable &= answer.is_ok();
        answer
    }
}

fn unexpected() -> RedisError {
    io::Error::new(io::ErrorKind::InvalidData, "not an answer to what was asked").into()
}

impl ConnectionLike for Connection {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        self.send(command)?;
        self.answer()
    }

    fn req_command(&mut self, command: &Cmd) -> RedisResult<Value> {
        self.req_packed_command(&command.get_packed_command())
    }

    fn req_packed_commands(
        &mut self,
        commands: &[u8],
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        self.send(commands)?;
        for _ in 0..offset {
            self.answer()?;
        }
        (0..count).map(|_| self.answer()).collect()
    }

    fn get_db(&self) -> i64 {
        i64::from(self.database)
    }

    fn check_connection(&mut self) -> bool {
        self.is_open() && redis::cmd("PING").exec(self).is_ok()
    }

    fn is_open(&self) -> bool {
        self.usable
    }
}

// ---- Error
//
// Why a call of the server failed.

/// Why a call failed. Nothing in it names a key's value or a password.
#[derive(Debug, thiserror::Error)]
pub enum ValkeyError {
    /// The call was not tried, because one failed a moment ago. The next try is due in this time.
    #[error("the server is away; next try in {retry_ms} ms")]
    Away { retry_ms: u64 },
    #[error("cannot connect: {detail}")]
    Connect { detail: String },
    /// The outcome of a write is unknown.
    #[error("no answer in time")]
    Late,
    /// Another call used the connection for as long as this one may take.
    #[error("the connection is busy")]
    Busy,
    #[error("the connection broke: {detail}")]
    Broken { detail: String },
    /// No key can be named on the server before the database's id is known.
    #[error("not known yet of which database this node is")]
    NoNamespace,
    /// The server answered with an error, of which this is the first word.
    #[error("the server refuses: {detail}")]
    Refused { detail: String, refusal: Refusal },
}

impl ValkeyError {
    /// Converts an error of the library.
    pub(super) fn of(error: &RedisError) -> Self {
        if error.is_timeout() {
            return Self::Late;
        }
        match error.kind() {
            // The first word gives the kind. The rest may repeat what was sent.
            ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::AuthenticationFailed => {
                let detail = error.code().unwrap_or("ERR").to_owned();
                let refusal = Refusal::of(&detail, error.detail().unwrap_or_default());
                Self::Refused { detail, refusal }
            }
            ErrorKind::Io => Self::Broken {
                detail: error.to_string(),
            },
            kind => Self::Broken {
                detail: format!("{kind:?}"),
            },
        }
    }

    /// Whether the connection can be used for another call.
    pub(super) fn keeps_connection(&self) -> bool {
        matches!(self, Self::Refused { .. })
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
    &["TYPE", NAME],
    &["STRLEN", NAME],
    &["DEL", NAME],
    &["SET", NAME, "x", "XX", "PX", "1"],
    &["PEXPIRE", NAME, "1"],
    &["HGET", NAME, "x"],
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
    let name = keys.key(Key::Access);
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
        // An error about a command's form, about what somebody else keeps under the name, or about
        // a script that is not loaded, does not concern access.
        let of_the_form = ["ERR", "NOSCRIPT", "EXECABORT", "WRONGTYPE"].contains(&detail.as_str());
        if !of_the_form && !found.contains(&refusal) {
            found.push(refusal);
        }
    }
    Ok(found)
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
            crate::nodes::valkey::keys::COMMON,
            include_str!("../scripts/check.lua"),
            include_str!("../scripts/read.lua"),
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
        let Some(server) = TestServer::start(name) else {
            return;
        };
        let until_mono_ms = Clock::system().monotonic_ms() + 10_000;
        let mut connection = server.server().connect(until_mono_ms).unwrap();
        connection.end_by(until_mono_ms);
        let keys = Keys::of(&Namespace::unused());
        assert_eq!(refused(&mut connection, &keys).unwrap(), []);
        let kept: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
        assert!(kept.is_empty(), "{kept:?}");
        // What somebody else keeps under the name refuses nothing.
        let access = keys.key(Key::Access);
        for words in [
            ["LPUSH", &access, "x"],
            ["SADD", &access, "x"],
            ["SET", &access, "x"],
        ] {
            redis::cmd(words[0])
                .arg(&words[1..])
                .exec(&mut connection)
                .unwrap();
            assert_eq!(refused(&mut connection, &keys).unwrap(), [], "{words:?}");
        }
        let rules = [
            "ACL",
            "SETUSER",
            "default",
            "-info",
            "-publish",
            "resetkeys",
            "~other:*",
        ];
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
