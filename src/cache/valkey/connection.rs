//! Commands over one stream: the library encodes and decodes, the stream keeps the deadline.

use std::io::{self, Write as _};

use redis::{Cmd, ConnectionLike, FromRedisValue, Parser, RedisError, RedisResult, Value};

use super::socket::Timed;
use crate::rt::outbound::Stream;

/// Largest answer to one command: an instrument list, or a page of it, and then some.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An open connection. After any error but one that the server answered it is not used again: what
/// comes later may be the answer to the command before.
pub(in crate::cache) struct Connection {
    stream: Stream<Timed>,
    parser: Parser,
    database: u32,
    until_mono_ms: u64,
    /// What the server says it is.
    is_valkey: bool,
    usable: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream<Timed>, database: u32) -> Self {
        let parser = Parser::new();
        Self { stream, parser, database, until_mono_ms: 0, is_valkey: false, usable: true }
    }

    /// All that follows ends by `until_mono_ms`.
    pub(in crate::cache) fn end_by(&mut self, until_mono_ms: u64) {
        self.until_mono_ms = until_mono_ms;
    }

    /// Whether nothing is left over of an earlier call.
    pub(super) fn is_usable(&self) -> bool {
        self.usable
    }

    /// The server's name, for health.
    pub(super) fn is_valkey(&self) -> bool {
        self.is_valkey
    }

    /// Logs in, chooses the database, says who this is and asks who the server is.
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
        // Access rules may forbid the name and the question.
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
    pub(in crate::cache) fn subscribe(&mut self, channels: &[String]) -> RedisResult<()> {
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
    pub(in crate::cache) fn hear(&mut self) -> RedisResult<Option<(String, Vec<u8>)>> {
        match self.answer() {
            Ok(value) => {
                let (kind, channel, payload): (String, String, Vec<u8>) =
                    FromRedisValue::from_redis_value(value)?;
                if kind != "message" {
                    return Err(unexpected());
                }
                Ok(Some((channel, payload)))
            }
            // What has come of a message stays in the parser.
            Err(error) if error.is_timeout() => {
                self.usable = true;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> RedisResult<()> {
        self.stream.socket().allow(self.until_mono_ms, ANSWER_BYTES_MAX);
        let sent = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
        self.usable &= sent.is_ok();
        Ok(sent?)
    }

    fn answer(&mut self) -> RedisResult<Value> {
        self.stream.socket().allow(self.until_mono_ms, ANSWER_BYTES_MAX);
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
