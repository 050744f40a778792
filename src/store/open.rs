//! Opens what the settings name. The only place of the program that chooses an engine.

use std::path::Path;
use std::sync::Arc;

use super::settings::StoreSettings;
use super::sqlite::file::OpenError;
use super::sqlite::maintenance::MaintenanceError;
use super::sqlite::store::{FILE_NAME, SqliteStore};
use super::sqlite::users::SqliteUsers;
use super::traits::{Database, UserDirectory};
use crate::base::Clock;
use crate::ops::state_lock::InstanceLock;

/// Opens the database of a state directory, for writing where its lock is held.
///
/// # Errors
/// [`OpenError`] where it is no database of this program or of a newer version of it. A file that
/// is damaged or cannot be had is no error: the store says so until it can.
pub fn open(
    state_dir: &Path,
    settings: &StoreSettings,
    lock: &Arc<InstanceLock>,
    clock: &Clock,
) -> Result<Arc<dyn Database>, OpenError> {
    let path = state_dir.join(FILE_NAME);
    Ok(Arc::new(SqliteStore::open_with(&path, settings, Some(Arc::clone(lock)), clock)?))
}

/// Opens the users of a state directory beside the service.
///
/// # Errors
/// [`MaintenanceError`].
pub fn open_users(state_dir: &Path) -> Result<Box<dyn UserDirectory>, MaintenanceError> {
    Ok(Box::new(SqliteUsers::open(&state_dir.join(FILE_NAME))?))
}
