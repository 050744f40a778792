//! Opens connections to an address: name, socket, TLS and login together by one deadline.

use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use redis::{Parser, RedisError};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use secrecy::{ExposeSecret, SecretString};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::base::Clock;
use crate::nodes::valkey::address::{Address, Namespace, Place};
use crate::nodes::valkey::connection::{Connection, ValkeyError, refused};
use crate::nodes::valkey::keys::Keys;
use crate::nodes::valkey::refusals::{Refusal, Refusals};
use crate::rt::outbound::{Names, Stream, Timed, roots_of, trusting, web_roots};

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
        let mut tls = None;
        let mut names = None;
        if let Place::Tcp {
            host, tls: wanted, ..
        } = &address.place
        {
            if *wanted {
                let name = ServerName::try_from(host.clone()).map_err(|_| Unusable::Name)?;
                tls = Some((Arc::new(trusting(roots(ca_file)?)), name));
            }
            names = Some(Names::start("cache-name")?);
        }
        let refusals = Arc::default();
        Ok(Self {
            address,
            password,
            tls,
            names,
            timer,
            name: None,
            refusals,
        })
    }

    /// Gives this name to the connections on the server.
    #[must_use]
    pub(crate) fn named(self, name: String) -> Self {
        Self {
            name: Some(name),
            ..self
        }
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
            match connection
                .subscribe(&keys.channels())
                .map_err(|error| ValkeyError::of(&error))
            {
                Err(ValkeyError::Refused { refusal, .. }) if !found.contains(&refusal) => {
                    found.push(refusal);
                }
                Ok(()) | Err(ValkeyError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
            Ok(found)
        });
        match asked {
            Ok(found) => found
                .iter()
                .map(|refusal| refusal.in_words(self.user()))
                .collect(),
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
        if !matches!(
            error,
            ValkeyError::Refused {
                refusal: Refusal::Unnamed,
                ..
            }
        ) {
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
        for refusal in if looked.is_empty() {
            &unnamed[..]
        } else {
            &looked
        } {
            self.refusals.note(&refusal.in_words(self.user()));
        }
    }

    /// A connection that is logged in.
    pub(crate) fn connect(&self, until_mono_ms: u64) -> Result<Connection, ValkeyError> {
        self.open(until_mono_ms)
            .inspect_err(|error| self.note_failure(error))
    }

    fn open(&self, until_mono_ms: u64) -> Result<Connection, ValkeyError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ValkeyError::Late,
            _ => ValkeyError::Connect {
                detail: error.to_string(),
            },
        };
        let socket = self.socket(until_mono_ms).map_err(failed)?;
        let mut timed = Timed::new(socket, &self.timer);
        timed.allow(until_mono_ms, usize::MAX);
        let stream = match &self.tls {
            Some((config, name)) => Stream::secured(timed, config, name.clone()).map_err(failed)?,
            None => Stream::Plain(timed),
        };
        let parser = Parser::new();
        let database = self.address.database;
        let mut connection = Connection {
            stream,
            parser,
            database,
            until_mono_ms,
            is_valkey: false,
            usable: true,
        };
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
        let Some(names) = &self.names else {
            return Err(failure);
        };
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
    let Some(path) = ca_file else {
        return Ok(web_roots());
    };
    roots_of(path).map_err(|detail| Unusable::Certificates {
        path: path.to_owned(),
        detail,
    })
}
