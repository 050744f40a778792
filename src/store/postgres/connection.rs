//! One connection, with the runtime that drives it. Used by one thread at a time, which waits for
//! each answer until the deadline of its operation.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::base::Clock;
use crate::store::StoreError;
use crate::store::condition::State;
use crate::store::errors::Failure;
use crate::store::postgres::target::Target;

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
                Ok(Ok(client)) => {
                    return Ok(Self {
                        runtime: Some(runtime),
                        client,
                    });
                }
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
        let Some(runtime) = &self.runtime else {
            return Err(unavailable("it is closed"));
        };
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
    Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(1)
        .build()
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
        Self {
            clock: clock.clone(),
            at_mono_ms: clock.monotonic_ms() + ms,
            ms,
        }
    }

    pub(crate) fn left(&self) -> Duration {
        Duration::from_millis(self.at_mono_ms.saturating_sub(self.clock.monotonic_ms()))
    }
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
