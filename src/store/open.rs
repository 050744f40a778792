//! Opens the database. The only place in the program that chooses an engine.

use std::path::Path;
use std::sync::Arc;

use super::records::CopiedTable;
use super::settings::StoreSettings;
use super::sqlite::errors::{MaintenanceError, OpenError};
use super::sqlite::maintenance::inspect;
use super::sqlite::store::{FILE_NAME, SqliteStore};
use super::traits::{Database, UserDirectory};
use crate::base::Clock;
use crate::ops::state_lock::InstanceLock;
use crate::store::settings::StoreUrl;
use crate::store::sqlite::store::SqliteUsers;

#[cfg(feature = "engines")]
use super::postgres::{PostgresLease, PostgresStore, PostgresUsers};
#[cfg(feature = "engines")]
use crate::base::lease::Authority;
#[cfg(feature = "engines")]
use crate::store::sqlite::file;

/// Opens the database that the settings name, or else that of the state directory, which is written
/// to only while its lock is held.
///
/// # Errors
/// [`OpenError`] if the file is not a database of this program, or is of a newer version. A damaged
/// or unreachable file is no error here: the store reports its state until the file can be used.
pub fn open(
    state_dir: &Path,
    settings: &StoreSettings,
    lock: &Arc<InstanceLock>,
    clock: &Clock,
) -> Result<Arc<dyn Database>, OpenError> {
    #[cfg(feature = "engines")]
    if let Some(url) = &settings.url {
        return Ok(Arc::new(PostgresStore::open(url, settings, clock)?));
    }
    let path = state_dir.join(FILE_NAME);
    Ok(Arc::new(SqliteStore::open_with(&path, settings, Some(Arc::clone(lock)), clock)?))
}

/// Whether a service could use the server of the settings, which is left as it is; `None` for the
/// file.
#[cfg(feature = "engines")]
pub(crate) fn check_server(settings: &StoreSettings) -> Option<Result<(), OpenError>> {
    Some(PostgresStore::check(settings.url.as_ref()?, settings))
}

/// The lease of the leader among the nodes that share the database of the settings; `None` for the
/// file, which one process has.
///
/// # Errors
/// A bad setting.
#[cfg(feature = "engines")]
pub(crate) fn open_lease(
    settings: &StoreSettings,
    lease_ms: u64,
    clock: &Clock,
) -> Result<Option<Arc<dyn Authority>>, OpenError> {
    let Some(url) = &settings.url else { return Ok(None) };
    Ok(Some(Arc::new(PostgresLease::new(url, settings, lease_ms, clock)?)))
}

/// Copies the database of a state directory to the empty one of a server, in one transaction. The
/// caller holds the lock of the state directory. Returns what was copied.
///
/// # Errors
/// [`MaintenanceError`]. Then the server has nothing of it.
pub(crate) fn copy_to_server(
    state_dir: &Path,
    url: &StoreUrl,
    settings: &StoreSettings,
) -> Result<Vec<CopiedTable>, MaintenanceError> {
    let path = state_dir.join(FILE_NAME);
    let report = inspect(&path)?;
    if report.version != report.known {
        return Err(MaintenanceError::Older { path, found: report.version });
    }
    #[cfg(feature = "engines")]
    {
        let copied = super::postgres::copy(&path, url, settings)?;
        file::note_moved(&path, url.as_str(), Clock::system().now_ms())?;
        Ok(copied)
    }
    #[cfg(not(feature = "engines"))]
    {
        let _ = (url, settings);
        unreachable!("a build without engines has no URL");
    }
}

/// Opens the users of the same database, beside the running service.
///
/// # Errors
/// [`MaintenanceError`].
pub fn open_users(
    state_dir: &Path,
    settings: &StoreSettings,
) -> Result<Box<dyn UserDirectory>, MaintenanceError> {
    #[cfg(feature = "engines")]
    if let Some(url) = &settings.url {
        return Ok(Box::new(PostgresUsers::open(url, settings)?));
    }
    #[cfg(not(feature = "engines"))]
    let _ = settings;
    Ok(Box::new(SqliteUsers::open(&state_dir.join(FILE_NAME))?))
}
