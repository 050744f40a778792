//! The identity of the database: the id that access tokens are bound to, and the file beside the
//! database that records it.
//!
//! The id is made when a service first opens the file, and is kept from start to start. A copy has
//! none, so a restored database gets a new one. The file beside it (`bhav.sqlite.mark`) records
//! which database is here, how often it was started and which file it is. A database with another
//! id or with fewer starts is an old copy that somebody put here, and gets a new id too; so does
//! another file, as when the whole folder was copied. The mark also records whether the service
//! runs, so that a start after a kill knows that there must be a log. Runs on the thread that opens
//! the file, and in commands that copy it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use std::{fs, io};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use serde::{Deserialize, Serialize};

use jiff::Timestamp;

use crate::base::ist;
use crate::base::paths::beside;
use crate::store::arg::args;
use crate::store::cells::damaged;
use crate::store::small_file;
use crate::store::tx::{Failure, Sql, Tx, sql};

const IDENTITY: Sql = sql!("sql/store/identity.sql");
const BEGIN_START: Sql = sql!("sql/store/begin_start.sql");
const NOTE_MOVE: Sql = sql!("sql/store/note_move.sql");
const FORGET_DATABASE_ID: Sql = sql!("sql/store/forget_database_id.sql");

/// The first schema version with an id.
const VERSION_MIN: i64 = 9;
/// The first one that says where the file was copied to.
const MOVE_VERSION_MIN: i64 = 14;

/// Content of the file beside the database.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    database_id: String,
    starts: i64,
    /// `None` where an older program wrote it.
    file: Option<WhichFile>,
    /// Whether a service has the database open, or was killed while it had.
    #[serde(default)]
    is_open: bool,
}

/// What a copy of a file cannot have in common with it. A copy onto the file itself can.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct WhichFile {
    inode: u64,
    /// When the file was made, where the file system knows that. Preferred, since some file systems
    /// give other inodes at each mount.
    made_ns: Option<i64>,
}

impl WhichFile {
    fn of(path: &Path) -> io::Result<Self> {
        let about = fs::metadata(path)?;
        let made = about.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let made_ns = made.and_then(|made| i64::try_from(made.as_nanos()).ok());
        Ok(Self { inode: about.ino(), made_ns })
    }

    fn is(&self, other: &Self) -> bool {
        match (self.made_ns, other.made_ns) {
            (Some(one), Some(two)) => one == two,
            _ => self.inode == other.inode,
        }
    }
}

fn mark_of(path: &Path) -> PathBuf {
    beside(path, ".mark")
}

/// Whether there was a database at `path` since a new one was last made there.
pub(crate) fn stood(path: &Path) -> bool {
    mark_of(path).exists()
}

/// Removes the mark. Called before a new database is made, so that until then none counts as having
/// been here.
pub(crate) fn forget_mark(path: &Path) -> io::Result<()> {
    match fs::remove_file(mark_of(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Counts a start. Makes a new id if the file has none or is not the database that was here.
pub(crate) fn begin_start(connection: &mut Connection, path: &Path) -> Result<(), Failure> {
    let mark = read_mark(path);
    let file = WhichFile::of(path).ok();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (found, starts) = read(&transaction)?;
    let stood_here = |id: &String| {
        mark.as_ref().is_some_and(|mark| {
            let files = mark.file.as_ref().zip(file.as_ref());
            let is_file = files.is_none_or(|(one, other)| one.is(other));
            mark.database_id == *id && mark.starts <= starts && is_file
        })
    };
    let kept = found.filter(stood_here);
    let is_new = kept.is_none();
    let tx: &dyn Tx = &*transaction;
    let begun = tx.first(BEGIN_START, &args![kept], |row| {
        let file = file.clone();
        let mark = Mark { database_id: row.get(0)?, starts: row.get(1)?, file, is_open: true };
        Ok((mark, row.get::<Option<String>>(2)?.zip(row.get::<Option<i64>>(3)?)))
    })?;
    let (mark, moved) = begun.ok_or_else(|| damaged("the database's id"))?;
    transaction.commit()?;
    if let Some((to, at_ms)) = moved {
        let at = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        tracing::warn!(
            to,
            at = ist::iso(at),
            "this database was copied to a server and ended here: what the server was told since \
             is not in it; set BHAV_STORE_URL, or go on here by bhav backup and bhav restore"
        );
    }
    if is_new {
        tracing::info!(
            "the database is new or was replaced: access tokens issued before are refused"
        );
    }
    // Written last: a start that is interrupted before leaves a database with more starts than the
    // mark, which is accepted.
    write_mark(path, &mark);
    Ok(())
}

/// `None` also where it cannot be read.
fn read_mark(path: &Path) -> Option<Mark> {
    let bytes = small_file::read(&mark_of(path)).ok().flatten().unwrap_or_default();
    sonic_rs::from_slice(&bytes).ok()
}

fn write_mark(path: &Path, mark: &Mark) {
    let bytes = sonic_rs::to_vec(mark).unwrap_or_default();
    if let Err(error) = small_file::replace(&mark_of(path), &bytes) {
        tracing::warn!(%error, "the mark file beside the database was not written");
    }
}

/// Whether a service has this file open, or was killed while it had.
pub(crate) fn is_open(path: &Path) -> bool {
    let file = WhichFile::of(path).ok();
    read_mark(path).is_some_and(|mark| {
        mark.is_open && mark.file.zip(file).is_some_and(|(one, other)| one.is(&other))
    })
}

/// Notes that everything is in the database file, so that no log is missed.
pub(crate) fn note_closed(path: &Path) {
    if let Some(mark) = read_mark(path).filter(|mark| mark.is_open) {
        write_mark(path, &Mark { is_open: false, ..mark });
    }
}

/// Notes that the database has this id now, so that the next start keeps it.
pub(crate) fn note_renewed(path: &Path, database_id: &str) {
    if let Some(mark) = read_mark(path) {
        write_mark(path, &Mark { database_id: database_id.to_owned(), ..mark });
    }
}

/// Notes in the file that it was copied to a server, which goes on from it.
#[cfg(feature = "engines")]
pub(crate) fn note_moved(path: &Path, to: &str, now_ms: i64) -> Result<(), Failure> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.run(NOTE_MOVE, &args![to, now_ms]).map(drop)
}

fn read(connection: &Connection) -> Result<(Option<String>, i64), Failure> {
    let tx: &dyn Tx = connection;
    let found = tx.first(IDENTITY, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    found.ok_or_else(|| damaged("the database's id"))
}

/// Removes the id from a copy that is not in use yet, so that it cannot pass for the service's
/// database.
pub(crate) fn forget_in(copy: &Path) -> Result<(), Failure> {
    let connection = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version < VERSION_MIN {
        return Ok(());
    }
    // An interrupted command starts over with a new copy, so no journal is needed for a rollback.
    connection.pragma_update_and_check(None, "journal_mode", "off", |_| Ok(()))?;
    if version >= MOVE_VERSION_MIN {
        connection.run(NOTE_MOVE, &args![None::<String>, None::<i64>])?;
    }
    connection.run(FORGET_DATABASE_ID, &[]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::file::open_for_writing;
    use crate::store::statements::accounts::identity as identity_of;

    fn id_at_a_start(path: &Path) -> String {
        let mut connection = open_for_writing(path, true).unwrap();
        begin_start(&mut connection, path).unwrap();
        identity_of(&connection).unwrap().incarnation
    }

    #[test]
    fn an_id_is_kept_from_start_to_start_and_not_by_older_copies() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bhav.sqlite");
        let first = id_at_a_start(&path);
        assert_eq!(first.len(), 32);
        let old = dir.path().join("old");
        fs::copy(&path, &old).unwrap();
        assert_eq!(id_at_a_start(&path), first);
        fs::copy(&old, &path).unwrap();
        let second = id_at_a_start(&path);
        assert_ne!(second, first, "it was started less often than the one that stood here");
        assert_eq!(id_at_a_start(&path), second);
        // A database from another place, without a mark.
        let other = dir.path().join("other.sqlite");
        let third = id_at_a_start(&other);
        fs::copy(&other, &path).unwrap();
        let fourth = id_at_a_start(&path);
        assert!(![&first, &second, &third].contains(&&fourth));
        forget_mark(&path).unwrap();
        assert_ne!(id_at_a_start(&path), fourth);
        fs::write(mark_of(&path), "garbage").unwrap();
        assert_ne!(id_at_a_start(&path), fourth);
    }

    #[test]
    fn a_mark_of_an_older_program_is_good() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bhav.sqlite");
        let first = id_at_a_start(&path);
        fs::write(mark_of(&path), format!(r#"{{"database_id":"{first}","starts":1}}"#)).unwrap();
        assert!(!is_open(&path));
        assert_eq!(id_at_a_start(&path), first);
        assert!(is_open(&path));
        note_closed(&path);
        assert!(!is_open(&path));
    }

    #[test]
    fn a_folder_that_is_put_back_whole_has_another_id() {
        let dir = tempfile::tempdir().unwrap();
        let (here, copy) = (dir.path().join("here"), dir.path().join("copy"));
        fs::create_dir(&here).unwrap();
        let path = here.join("bhav.sqlite");
        let first = id_at_a_start(&path);
        let copied = |from: &Path, to: &Path| {
            fs::create_dir(to).unwrap();
            for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        };
        copied(&here, &copy);
        assert_eq!(id_at_a_start(&path), first);
        fs::rename(&here, dir.path().join("away")).unwrap();
        copied(&copy, &here);
        let second = id_at_a_start(&path);
        assert_ne!(second, first, "the mark went back with the file");
        assert_eq!(id_at_a_start(&path), second);
    }

    #[test]
    fn a_copy_has_no_id_until_it_is_started() {
        let dir = tempfile::tempdir().unwrap();
        let (path, copy) = (dir.path().join("bhav.sqlite"), dir.path().join("copy"));
        let first = id_at_a_start(&path);
        let connection = open_for_writing(&path, false).unwrap();
        assert_eq!(read(&connection).unwrap(), (Some(first.clone()), 1), "opened again");
        connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()]).unwrap();
        drop(connection);
        forget_in(&copy).unwrap();
        assert!(identity_of(&Connection::open(&copy).unwrap()).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "file, mark and copy");
        fs::copy(&copy, &path).unwrap();
        assert_ne!(id_at_a_start(&path), first);
    }
}
