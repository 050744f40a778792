//! SQLite as the store's conformance suite uses it.

use std::path::PathBuf;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::base::Clock;
use crate::store::conformance::engine::Engine;
use crate::store::settings::StoreSettings;
use crate::store::{FILE_NAME, Store, UserDirectory};

const READERS: usize = 2;

/// A file in a directory of its own.
pub(crate) struct OneFile {
    path: PathBuf,
    _dir: TempDir,
}

impl Engine for OneFile {
    fn fresh() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            path: dir.path().join(FILE_NAME),
            _dir: dir,
        }
    }

    fn open(&self) -> Store {
        Store::open_file(&self.path, READERS, &Clock::system()).unwrap()
    }

    fn users(&self) -> UserDirectory {
        let state_dir = self.path.parent().unwrap();
        UserDirectory::open(state_dir, &StoreSettings::default()).unwrap()
    }

    fn execute(&self, statement: &str) -> Result<(), String> {
        let connection = Connection::open(&self.path).unwrap();
        connection
            .execute_batch(statement)
            .map_err(|error| error.to_string())
    }
}
