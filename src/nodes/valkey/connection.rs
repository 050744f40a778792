//! Commands over one stream: the library encodes and decodes, the stream keeps the deadline.

use std::io;
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use redis::{
    Cmd, ConnectionLike, ErrorKind, FromRedisValue, Parser, RedisError, RedisResult, Value,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use secrecy::{ExposeSecret, SecretString};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::base::Clock;
use crate::nodes::valkey::address::{Address, Namespace, Place};
use crate::nodes::valkey::keys::{Key, Keys};
use crate::nodes::valkey::refusals::{Refusal, Refusals};
use crate::rt::outbound::{Names, Stream, Timed, roots_of, trusting, web_roots};

/// Largest answer to one command: an instrument list, or a page of it, and then some.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An open connection. After any error except an error reply it is not used again, because the next
/// bytes may be the reply to an earlier command.
pub(crate) struct Connection {
    stream: Stream<Timed>,
    parser: Parser,
    database: u32,
    until_mono_ms: u64,
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

// ---- Dial
//
// Opens connections to an address: name, socket, TLS and login together by one deadline.

/// Deadline of an operator's check, with all its commands.
const CHECK_MS: u64 = 10_000;
/// Deadline of the check for refused commands, after the call that was refused.
const LOOK_MS: u64 = 500;

/// Why a server cannot even be tried.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("BHAV_CACHE_CA_FILE {path}: {detail}")]
    Certificates { path: PathBuf, detail: String },
    #[error("BHAV_CACHE_URL names a host that no certificate can be of")]
    Name,
    #[error("the system refuses a thread: {0}")]
    System(#[from] io::Error),
}

/// A server as the settings name it; gives connections to it.
pub struct Server {
    pub(super) address: Address,
    password: Option<SecretString>,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// `None` for a Unix socket.
    names: Option<Names>,
    /// The clock of all deadlines: this machine's, whatever clock the market has.
    pub(crate) timer: Clock,
    /// The name of this node's connections on the server.
    name: Option<String>,
    /// The refusals of the server to this node.
    pub(crate) refusals: Arc<Refusals>,
}

impl Server {
    /// # Errors
    /// [`Unusable`].
    pub fn new(
        address: Address,
        password: Option<SecretString>,
        ca_file: Option<&Path>,
    ) -> Result<Self, Unusable> {
        let timer = Clock::system();
        let (mut tls, mut names) = (None, None);
        if let Place::Tcp { host, tls: wanted, .. } = &address.place {
            if *wanted {
                let name = ServerName::try_from(host.clone()).map_err(|_| Unusable::Name)?;
                tls = Some((Arc::new(trusting(roots(ca_file)?)), name));
            }
            names = Some(Names::start("cache-name")?);
        }
        let refusals = Arc::default();
        Ok(Self { address, password, tls, names, timer, name: None, refusals })
    }

    /// Gives this name to the connections on the server.
    #[must_use]
    pub(crate) fn named(self, name: String) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Tries all commands that a node needs, without changing anything. Returns what the server
    /// refuses, in words for a person. Without a namespace it uses names that no node uses.
    pub(crate) fn check(&self, namespace: Option<&Namespace>) -> Vec<String> {
        let until_mono_ms = self.timer.monotonic_ms() + CHECK_MS;
        let keys = namespace.map_or_else(|| Keys::of(&Namespace::unused()), Keys::of);
        let asked = self.connect(until_mono_ms).and_then(|mut connection| {
            connection.end_by(until_mono_ms);
            let mut found = refused(&mut connection, &keys)?;
            // Subscribing comes last, because the connection can do nothing else after it.
            match connection.subscribe(&keys.channels()).map_err(|error| ValkeyError::of(&error)) {
                Err(ValkeyError::Refused { refusal, .. }) if !found.contains(&refusal) => {
                    found.push(refusal);
                }
                Ok(()) | Err(ValkeyError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
            Ok(found)
        });
        match asked {
            Ok(found) => found.iter().map(|refusal| refusal.in_words(self.user())).collect(),
            Err(error) => vec![self.in_words(&error)],
        }
    }

    fn user(&self) -> &str {
        self.address.user.as_deref().unwrap_or("default")
    }

    /// Why a call failed, for a person.
    fn in_words(&self, error: &ValkeyError) -> String {
        match error {
            ValkeyError::Refused { refusal, .. } => refusal.in_words(self.user()),
            ValkeyError::Connect { detail } if detail.contains("UnknownIssuer") => {
                "BHAV_CACHE_CA_FILE: the server's certificate is of an authority that is not \
                 trusted; name a file with that authority's certificate"
                    .to_owned()
            }
            error => format!("BHAV_CACHE_URL: {error}"),
        }
    }

    /// Notes what the server refused, or why its certificate is refused.
    pub(super) fn note_failure(&self, error: &ValkeyError) {
        let of_tls = |detail: &str| detail.contains("certificate");
        let told = match error {
            ValkeyError::Refused { .. } => true,
            ValkeyError::Connect { detail } => of_tls(detail),
            _ => false,
        };
        if told {
            self.refusals.note(&self.in_words(error));
        }
    }

    /// Same as [`note_failure`](Self::note_failure), for an error of the library on a connection
    /// that can send nothing more.
    pub(crate) fn note(&self, error: &RedisError) {
        self.note_failure(&ValkeyError::of(error));
    }

    /// Same as [`note_failure`](Self::note_failure), on a connection that can send more. If a
    /// script or a transaction was refused, many servers do not name the command, so this checks
    /// which commands are refused.
    pub(super) fn note_answer(&self, error: &ValkeyError, connection: &mut Connection) {
        if !matches!(error, ValkeyError::Refused { refusal: Refusal::Unnamed, .. }) {
            return self.note_failure(error);
        }
        let looked = self.refusals.looked().unwrap_or_else(|| {
            connection.end_by(self.timer.monotonic_ms() + LOOK_MS);
            let keys = Keys::of(&Namespace::unused());
            let mut found = refused(connection, &keys).unwrap_or_default();
            // The check used another namespace, so only refused commands count.
            found.retain(|refusal| matches!(refusal, Refusal::Command(_)));
            self.refusals.set_looked(found.clone());
            found
        });
        let unnamed = [Refusal::Unnamed];
        for refusal in if looked.is_empty() { &unnamed[..] } else { &looked } {
            self.refusals.note(&refusal.in_words(self.user()));
        }
    }

    /// A connection that is logged in.
    pub(crate) fn connect(&self, until_mono_ms: u64) -> Result<Connection, ValkeyError> {
        self.open(until_mono_ms).inspect_err(|error| self.note_failure(error))
    }

    fn open(&self, until_mono_ms: u64) -> Result<Connection, ValkeyError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ValkeyError::Late,
            _ => ValkeyError::Connect { detail: error.to_string() },
        };
        let socket = self.socket(until_mono_ms).map_err(failed)?;
        let mut timed = Timed::new(socket, &self.timer);
        timed.allow(until_mono_ms, usize::MAX);
        let stream = match &self.tls {
            Some((config, name)) => Stream::secured(timed, config, name.clone()).map_err(failed)?,
            None => Stream::Plain(timed),
        };
        let (parser, database) = (Parser::new(), self.address.database);
        let mut connection =
            Connection { stream, parser, database, until_mono_ms, is_valkey: false, usable: true };
        let password = self.password.as_ref().map(ExposeSecret::expose_secret);
        let introduced =
            connection.introduce(self.address.user.as_deref(), password, self.name.as_deref());
        introduced.map_err(|error| ValkeyError::of(&error))?;
        Ok(connection)
    }

    fn left(&self, until_mono_ms: u64) -> io::Result<Duration> {
        match until_mono_ms.saturating_sub(self.timer.monotonic_ms()) {
            0 => Err(io::ErrorKind::TimedOut.into()),
            left_ms => Ok(Duration::from_millis(left_ms)),
        }
    }

    fn socket(&self, until_mono_ms: u64) -> io::Result<Socket> {
        let (host, port) = match &self.address.place {
            Place::Tcp { host, port, .. } => (host, *port),
            Place::Unix(path) => {
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                // With a timeout it does not wait on a full backlog either.
                socket.connect_timeout(&SockAddr::unix(path)?, self.left(until_mono_ms)?)?;
                return Ok(socket);
            }
        };
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        let Some(names) = &self.names else { return Err(failure) };
        let wait_ms = self.left(until_mono_ms)?.as_millis() as u64;
        for address in names.addresses(host, port, wait_ms)? {
            let tcp = TcpStream::connect_timeout(&address, self.left(until_mono_ms)?);
            match tcp.and_then(|tcp| tcp.set_nodelay(true).map(|()| tcp)) {
                Ok(tcp) => return Ok(tcp.into()),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

/// The trusted authorities: those in the operator's file if one is given, else the web's.
fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, Unusable> {
    let Some(path) = ca_file else { return Ok(web_roots()) };
    roots_of(path).map_err(|detail| Unusable::Certificates { path: path.to_owned(), detail })
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
            ErrorKind::Io => Self::Broken { detail: error.to_string() },
            kind => Self::Broken { detail: format!("{kind:?}") },
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
        let Some(server) = TestServer::start(name) else { return };
        let until_mono_ms = Clock::system().monotonic_ms() + 10_000;
        let mut connection = server.server().connect(until_mono_ms).unwrap();
        connection.end_by(until_mono_ms);
        let keys = Keys::of(&Namespace::unused());
        assert_eq!(refused(&mut connection, &keys).unwrap(), []);
        let kept: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
        assert!(kept.is_empty(), "{kept:?}");
        // What somebody else keeps under the name refuses nothing.
        let access = keys.key(Key::Access);
        for words in [["LPUSH", &access, "x"], ["SADD", &access, "x"], ["SET", &access, "x"]] {
            redis::cmd(words[0]).arg(&words[1..]).exec(&mut connection).unwrap();
            assert_eq!(refused(&mut connection, &keys).unwrap(), [], "{words:?}");
        }
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
