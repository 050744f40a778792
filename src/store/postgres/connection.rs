//! One connection, with the runtime that drives it. Used by one thread at a time, which waits for
//! each answer until the deadline of its operation.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::deadline::Deadline;
use super::target::Target;
use crate::store::StoreError;
use crate::store::tx::Failure;

/// How long one host may take to accept a connection and the user.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection. Dropping it closes it at once, whatever the other side does.
pub(crate) struct Connection {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
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

    /// Waits for the result of `work`, at most until the deadline. If that passes, the connection
    /// cannot be used any more.
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
        // Waits for nothing: not for the server, and not for a name that is being looked up.
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

/// Lets the runtime move the connection's data while somebody waits.
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
