//! The store over one of its engines, and how it is opened. The only place in the program that
//! chooses an engine.

use std::path::Path;
use std::sync::Arc;

use super::condition::{PROBE_READ, PROBE_WRITE, State, StoreHealth};
use super::errors::{MaintenanceError, OpenError, Result};
use super::settings::{StoreSettings, StoreUrl};
use super::sqlite::maintenance::{CopiedTable, inspect};
use super::sqlite::store::{FILE_NAME, Sqlite};
use super::tx::{Failure, Tx, statements};
use crate::base::Clock;
use crate::ops::state_lock::InstanceLock;
use crate::store::write::{READ_DEADLINE_MS, Write};

#[cfg(feature = "engines")]
use super::postgres::{Postgres, PostgresLease, Purpose};
#[cfg(feature = "engines")]
use crate::store::sqlite::identity;

statements! { of the server:
    /// Locks the rows that registrations and changes of all nodes wait for.
    const PROBE_SHARED = "\
SELECT last_user.user_id FROM last_user, change_count
WHERE last_user.id = 1 AND change_count.id = 1 FOR UPDATE";
}

/// Durable storage. Every operation runs on the engine's threads in one transaction, or in a second
/// one if the engine ended the first for a reason of its own. The caller parks (coroutine) or
/// blocks (thread) until the result is there or the deadline has passed.
pub struct Store(Engine);

enum Engine {
    Sqlite(Sqlite),
    #[cfg(feature = "engines")]
    Postgres(Postgres),
}

impl Store {
    /// Opens the database named in the settings, or else the file in the state directory, which is
    /// written to only while the directory's lock is held.
    ///
    /// # Errors
    /// [`OpenError`] if the file is not a database of this program, or is of a newer version. A
    /// damaged or unreachable file is no error here: the store reports its state until the file can
    /// be used.
    pub(crate) fn open(
        state_dir: &Path,
        settings: &StoreSettings,
        lock: &Arc<InstanceLock>,
        clock: &Clock,
    ) -> Result<Self, OpenError> {
        #[cfg(feature = "engines")]
        if let Some(url) = &settings.url {
            return Self::on_server(url, settings, clock);
        }
        Self::in_file(&state_dir.join(FILE_NAME), settings, Some(Arc::clone(lock)), clock)
    }

    /// Opens the file at `path`; makes or migrates it if needed. If the file cannot be used, the
    /// store reports that and tries again. With a `lock`, nothing is written while the lock is not
    /// held.
    ///
    /// # Errors
    /// A newer schema, a foreign file, or a thread that could not be started.
    pub fn in_file(
        path: &Path,
        settings: &StoreSettings,
        lock: Option<Arc<InstanceLock>>,
        clock: &Clock,
    ) -> Result<Self, OpenError> {
        Ok(Self(Engine::Sqlite(Sqlite::open(path, settings, lock, clock)?)))
    }

    /// Opens the file at `path` for use where no other instance is possible.
    ///
    /// # Errors
    /// Same as for [`in_file`](Self::in_file).
    pub fn open_file(path: &Path, readers: usize, clock: &Clock) -> Result<Self, OpenError> {
        let settings = StoreSettings {
            readers,
            ..StoreSettings::default()
        };
        Self::in_file(path, &settings, None, clock)
    }

    /// Opens a database on a server. See [`Postgres::open`].
    ///
    /// # Errors
    /// A newer or foreign schema, a bad setting, or a thread that could not be started.
    #[cfg(feature = "engines")]
    pub(super) fn on_server(
        url: &StoreUrl,
        settings: &StoreSettings,
        clock: &Clock,
    ) -> Result<Self, OpenError> {
        Ok(Self(Engine::Postgres(Postgres::open(url, settings, clock)?)))
    }

    /// Whether several nodes may share the database. A file belongs to one process.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self.0, Engine::Sqlite(_))
    }

    /// Runs work that only reads, on one state of the database.
    pub(super) fn read<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        match &self.0 {
            Engine::Sqlite(file) => file.read(deadline_ms, move |tx| work(tx)),
            #[cfg(feature = "engines")]
            Engine::Postgres(server) => server.submit(Purpose::Read, deadline_ms, work),
        }
    }

    /// Runs a single statement that only reads. A server does that at less cost.
    pub(super) fn glance<T: Send + 'static>(
        &self,
        deadline_ms: u64,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        match &self.0 {
            Engine::Sqlite(file) => file.read(deadline_ms, move |tx| work(tx)),
            #[cfg(feature = "engines")]
            Engine::Postgres(server) => {
                server.submit(Purpose::Statement { writes: false }, deadline_ms, work)
            }
        }
    }

    /// Runs work that writes. `Ok` means that it is on disk.
    pub(super) fn write<T: Send + 'static>(
        &self,
        write: Write,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        self.erase(write, work, |_| false)
    }

    /// Same as [`write`](Self::write), for work that erases a user's data for good. `erased` says
    /// whether there was any.
    #[cfg_attr(
        not(feature = "engines"),
        expect(clippy::needless_pass_by_value, reason = "a server's threads keep it")
    )]
    pub(super) fn erase<T: Send + 'static>(
        &self,
        write: Write,
        work: impl Fn(&dyn Tx) -> Result<T, Failure> + Send + 'static,
        erased: fn(&T) -> bool,
    ) -> Result<T> {
        match &self.0 {
            Engine::Sqlite(file) => file.write(&write, work, erased),
            #[cfg(feature = "engines")]
            Engine::Postgres(server) => server.write(write, work),
        }
    }

    /// The state that the last operations and probes showed. Never waits.
    pub fn health(&self) -> StoreHealth {
        match &self.0 {
            Engine::Sqlite(file) => file.health(),
            #[cfg(feature = "engines")]
            Engine::Postgres(server) => server.health(),
        }
    }

    /// Probes the database: reads and, if a write was refused before, writes. Completes the upkeep
    /// that an erasure left. Blocks.
    pub(crate) fn probe(&self) {
        let (seen, is_in_place) = match &self.0 {
            Engine::Sqlite(file) => (&file.condition.seen, file.condition.is_in_place()),
            #[cfg(feature = "engines")]
            Engine::Postgres(server) => (&server.connections.condition.seen, true),
        };
        // Failures are recorded where they happen.
        let read = self.glance(READ_DEADLINE_MS, |tx| tx.first(PROBE_READ, &[], |_| Ok(())));
        let is_trusted = !seen.take_doubt() && seen.state() == State::Ok;
        let done = match &self.0 {
            Engine::Sqlite(file) if is_in_place && is_trusted && read.is_ok() => file.keep_up(),
            #[cfg(feature = "engines")]
            Engine::Postgres(_) if is_trusted && read.is_ok() => Ok(()),
            _ => {
                let written = self.write_probe();
                seen.probed(&written);
                written
            }
        };
        if let Err(error) = done {
            tracing::debug!(%error, "the store has not recovered yet");
        }
    }

    fn write_probe(&self) -> Result<()> {
        let is_shared = self.is_shared();
        self.write(Write::new(), move |tx| {
            tx.run(PROBE_WRITE, &[])?;
            match is_shared {
                true => tx.first(PROBE_SHARED, &[], |_| Ok(())).map(drop),
                false => Ok(()),
            }
        })
    }

    /// Writes the waiting jobs, moves the log into the database file, and refuses everything
    /// afterwards. Blocks.
    pub fn close(&self) {
        match &self.0 {
            Engine::Sqlite(file) => file.close(),
            #[cfg(feature = "engines")]
            Engine::Postgres(server) => server.connections.close(),
        }
    }

    /// Makes a file's disk look full, or gives it room again. For the seeded days; a server is left
    /// as it is.
    ///
    /// # Errors
    /// The file cannot be reached.
    pub fn set_full(&self, is_full: bool) -> Result<()> {
        match &self.0 {
            Engine::Sqlite(file) => file.set_full(is_full),
            #[cfg(feature = "engines")]
            Engine::Postgres(_) => Ok(()),
        }
    }

    #[cfg(test)]
    pub(super) fn file(&self) -> &Sqlite {
        match &self.0 {
            Engine::Sqlite(file) => file,
            #[cfg(feature = "engines")]
            Engine::Postgres(_) => panic!("a server has no file"),
        }
    }
}

/// Whether a service could use the server of the settings. Changes nothing on it. `None` for the
/// file.
#[cfg(feature = "engines")]
pub(crate) fn check_server(settings: &StoreSettings) -> Option<Result<(), OpenError>> {
    Some(Postgres::check(settings.url.as_ref()?, settings))
}

/// The leader's lease among the nodes that share the database of the settings; `None` for the file,
/// which belongs to one process.
///
/// # Errors
/// A bad setting.
#[cfg(feature = "engines")]
pub(crate) fn open_lease(
    settings: &StoreSettings,
    lease_ms: u64,
    clock: &Clock,
) -> Result<Option<PostgresLease>, OpenError> {
    let Some(url) = &settings.url else {
        return Ok(None);
    };
    Ok(Some(PostgresLease::new(url, settings, lease_ms, clock)?))
}

/// Copies the database of a state directory to an empty database on a server, in one transaction.
/// The caller holds the lock of the state directory. Returns the tables copied.
///
/// # Errors
/// [`MaintenanceError`]. Then nothing was written to the server.
pub(crate) fn copy_to_server(
    state_dir: &Path,
    url: &StoreUrl,
    settings: &StoreSettings,
) -> Result<Vec<CopiedTable>, MaintenanceError> {
    let path = state_dir.join(FILE_NAME);
    let report = inspect(&path)?;
    if report.version != report.known {
        return Err(MaintenanceError::Older {
            path,
            found: report.version,
        });
    }
    #[cfg(feature = "engines")]
    {
        let copied = super::postgres::copy(&path, url, settings)?;
        identity::note_moved(&path, url.as_str(), Clock::system().now_ms())?;
        Ok(copied)
    }
    #[cfg(not(feature = "engines"))]
    {
        let _ = (url, settings);
        unreachable!("a build without engines has no URL");
    }
}
