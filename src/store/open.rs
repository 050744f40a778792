//! Opens the database. The only place in the program that chooses an engine.

use std::path::Path;
use std::sync::Arc;

use super::settings::StoreSettings;
use super::sqlite::errors::{MaintenanceError, OpenError};
use super::sqlite::store::{FILE_NAME, SqliteStore};
use super::sqlite::users::SqliteUsers;
use super::traits::{Database, UserDirectory};
use crate::base::Clock;
use crate::ops::state_lock::InstanceLock;

/// Opens the database of a state directory. It is written to only while its lock is held.
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
    let path = state_dir.join(FILE_NAME);
    Ok(Arc::new(SqliteStore::open_with(&path, settings, Some(Arc::clone(lock)), clock)?))
}

/// Opens the users of a state directory, beside the running service.
///
/// # Errors
/// [`MaintenanceError`].
pub fn open_users(state_dir: &Path) -> Result<Box<dyn UserDirectory>, MaintenanceError> {
    Ok(Box::new(SqliteUsers::open(&state_dir.join(FILE_NAME))?))
}
