//! One connection, with the runtime that drives it. Used by one thread at a time, which waits for
//! each answer until the deadline of its operation.

use std::io;
use std::path::Path;
use std::time::Duration;

use secrecy::ExposeSecret;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::base::Clock;
use crate::rt::outbound::{roots_of, web_roots};
use crate::store::StoreError;
use crate::store::condition::State;
use crate::store::errors::{BadStoreUrl, Failure};
use crate::store::postgres::url::{KEEPALIVE_IDLE, UNACKNOWLEDGED_MAX, parse};
use crate::store::settings::{StoreSettings, StoreUrl};

/// Time in which one host has to accept a connection and the user.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection. Dropping it closes it at once, whatever the other side does.
pub(crate) struct Connection {
    /// `None` only during the drop.
    pub(crate) runtime: Option<Runtime>,
    pub(crate) client: Client,
}

impl Connection {
    /// Connects to the first host that accepts.
    pub(crate) fn open(target: &Target, deadline: &Deadline) -> Result<Self, Failure> {
        let runtime = runtime().map_err(|error| unavailable(&error.to_string()))?;
        let mut refused = unavailable("no host is named");
        for config in &target.hosts {
            let patience = deadline.left().min(CONNECT_TIMEOUT);
            let connected = runtime
                .block_on(async { timeout(patience, connect(config, target.tls.as_ref())).await });
            match connected {
                Ok(Ok(client)) => return Ok(Self { runtime: Some(runtime), client }),
                Ok(Err(error)) => refused = error.into(),
                Err(_) => refused = unavailable("the server did not answer in time"),
            }
        }
        runtime.shutdown_background();
        Err(refused)
    }

    /// Waits for the result of `work`, at most until the deadline. After that the connection cannot
    /// be used any more.
    pub(crate) fn wait<T>(
        &self,
        deadline: &Deadline,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        let Some(runtime) = &self.runtime else { return Err(unavailable("it is closed")) };
        let done = runtime.block_on(async { timeout(deadline.left(), work).await });
        match done {
            Ok(done) => Ok(done?),
            Err(_) => Err(StoreError::Late.into()),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Does not wait for the server, nor for a name lookup in progress.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(1).build()
}

async fn connect(
    config: &Config,
    tls: Option<&MakeRustlsConnect>,
) -> Result<Client, tokio_postgres::Error> {
    match tls {
        Some(tls) => {
            let (client, connection) = config.connect(tls.clone()).await?;
            drive(connection);
            Ok(client)
        }
        None => {
            let (client, connection) = config.connect(NoTls).await?;
            drive(connection);
            Ok(client)
        }
    }
}

/// Lets the runtime move the connection's data while a caller waits.
fn drive<S>(connection: tokio_postgres::Connection<Socket, S>)
where
    S: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the database ended");
        }
    });
}

fn unavailable(why: &str) -> Failure {
    StoreError::Unavailable(why.to_owned()).into()
}

// ---- Deadline
//
// Deadlines of operations.

/// A deadline. Each wait of an operation uses up part of the remaining time.
#[derive(Clone)]
pub(crate) struct Deadline {
    clock: Clock,
    at_mono_ms: u64,
    /// The whole time given.
    pub(crate) ms: u64,
}

impl Deadline {
    /// A deadline `ms` from now.
    pub(crate) fn in_ms(ms: u64, clock: &Clock) -> Self {
        Self { clock: clock.clone(), at_mono_ms: clock.monotonic_ms() + ms, ms }
    }

    pub(crate) fn left(&self) -> Duration {
        Duration::from_millis(self.at_mono_ms.saturating_sub(self.clock.monotonic_ms()))
    }
}

// ---- Target
//
// Address of the database and how to connect: `BHAV_STORE_URL` and the settings that go with it.

/// A database, as hosts to try in order.
pub(crate) struct Target {
    /// The URL of the settings, for messages. Holds no password.
    pub(crate) url: String,
    /// One configuration for each host.
    pub(crate) hosts: Vec<Config>,
    /// `None` if the connection is not encrypted.
    pub(crate) tls: Option<MakeRustlsConnect>,
}

impl Target {
    /// # Errors
    /// [`BadStoreUrl`], also of the file with the trusted certificates.
    pub(crate) fn new(url: &StoreUrl, settings: &StoreSettings) -> Result<Self, BadStoreUrl> {
        let mut config = parse(url.as_str())?;
        if let Some(password) = &settings.password {
            config.password(password.expose_secret());
        }
        if config.get_application_name().is_none() {
            config.application_name(&settings.connection_name);
        }
        let encrypted = config.get_ssl_mode() == SslMode::Require;
        let tls = encrypted.then(|| trusting(settings.ca_file.as_deref())).transpose()?;
        Ok(Self { url: url.as_str().to_owned(), hosts: hosts(&config), tls })
    }
}

/// One configuration for each host, so that each can be given up by itself.
fn hosts(config: &Config) -> Vec<Config> {
    let ports = config.get_ports();
    let port_of = |at: usize| match ports {
        [] => 5432,
        [port] => *port,
        ports => ports.get(at).copied().unwrap_or(5432),
    };
    let alone = |(at, host): (usize, &Host)| {
        let mut one = Config::new();
        match host {
            Host::Tcp(name) => one.host(name),
            Host::Unix(path) => one.host_path(path),
        };
        one.port(port_of(at)).ssl_mode(config.get_ssl_mode());
        one.keepalives_idle(KEEPALIVE_IDLE).tcp_user_timeout(UNACKNOWLEDGED_MAX);
        one.target_session_attrs(config.get_target_session_attrs());
        if let Some(user) = config.get_user() {
            one.user(user);
        }
        if let Some(password) = config.get_password() {
            one.password(password);
        }
        if let Some(name) = config.get_dbname() {
            one.dbname(name);
        }
        if let Some(options) = config.get_options() {
            one.options(options);
        }
        if let Some(name) = config.get_application_name() {
            one.application_name(name);
        }
        one
    };
    config.get_hosts().iter().enumerate().map(alone).collect()
}

// ---- Tls
//
// Encrypted connections. Name and chain of the server's certificate are always verified.

/// Trusts the certificates in a file (PEM), or the public authorities if none is named.
///
/// # Errors
/// [`BadStoreUrl`] if the file cannot be read or holds no certificate.
pub(crate) fn trusting(ca_file: Option<&Path>) -> Result<MakeRustlsConnect, BadStoreUrl> {
    let roots = match ca_file {
        None => web_roots(),
        Some(path) => roots_of(path).map_err(|why| {
            let problem = format!("BHAV_STORE_CA_FILE: {}: {why}", path.display());
            BadStoreUrl::new(problem, "name a file with certificates in PEM form")
        })?,
    };
    Ok(MakeRustlsConnect::new(crate::rt::outbound::trusting(roots)))
}

// ---- Errors
//
// Meaning of the server's errors for the store.

/// Consequence of an error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// An error for the caller. The server is well.
    Refused(StoreError),
    /// The server is not well.
    Shows(State),
    /// The server takes no more at the moment.
    Busy,
    /// The statement was ended for lack of time.
    Late,
    /// The transaction was ended and may be tried again.
    Again,
    /// The connection is lost. Uncommitted data is not written.
    Lost,
    /// An error of this statement alone.
    Statement,
}

pub(crate) fn meaning(error: &tokio_postgres::Error) -> Meaning {
    let Some(found) = error.as_db_error() else {
        // Not an error of the server: the connection failed, or the data on it was bad.
        return Meaning::Lost;
    };
    let code = found.code();
    match code.code() {
        "40001" | "40P01" => Meaning::Again,
        // The e-mail is the only unique column of users that is not a key.
        "23505" if found.table() == Some("users") => Meaning::Refused(StoreError::EmailTaken),
        "23503" => Meaning::Refused(StoreError::NoSuchUser),
        "57014" => Meaning::Late,
        "53300" | "55P03" => Meaning::Busy,
        "53100" => Meaning::Shows(State::Full),
        "25006" => Meaning::Shows(State::ReadOnly),
        "57P01" | "57P02" | "57P03" => Meaning::Lost,
        other if other.starts_with("08") => Meaning::Lost,
        // Refused passwords, roles and databases. Only an operator can correct them.
        other if other.starts_with("28") || other.starts_with("3D") => {
            Meaning::Shows(State::Unavailable)
        }
        other if other.starts_with("XX") && *code != SqlState::INTERNAL_ERROR => {
            Meaning::Shows(State::Corrupt)
        }
        // A pooler has closed the server's connection, or found none.
        _ if found.severity() == "FATAL" => Meaning::Lost,
        _ => Meaning::Statement,
    }
}

/// The error as text, without the server's details, which repeat values of rows.
pub(crate) fn in_words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(found) => format!("{} ({})", found.message(), found.code().code()),
        None => {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(inner) = cause {
                text.push_str(&format!(": {inner}"));
                cause = inner.source();
            }
            if text.contains("UnknownIssuer") {
                text.push_str("; BHAV_STORE_CA_FILE names the authorities that are trusted");
            }
            text
        }
    }
}

#[cfg(test)]
mod target_tests {
    use tokio_postgres::config::TargetSessionAttrs;

    use super::*;

    #[test]
    fn each_host_has_its_port_and_must_take_writes_if_there_are_several() {
        let found = hosts(&parse("postgres://bhav@one:5433,two:5434/bhav").unwrap());
        let ports: Vec<_> = found.iter().map(|config| config.get_ports().to_vec()).collect();
        assert_eq!(ports, [[5433], [5434]]);
        assert!(
            found.iter().all(|c| c.get_target_session_attrs() == TargetSessionAttrs::ReadWrite)
        );
        let found = hosts(&parse("postgres://bhav@one/bhav").unwrap());
        assert_eq!(found[0].get_target_session_attrs(), TargetSessionAttrs::Any);
        assert_eq!(found[0].get_ports(), [5432]);
    }
}
