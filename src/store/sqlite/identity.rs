//! The identity of the database: the id that access tokens are bound to, and the mark, a file
//! beside the database (`bhav.sqlite.mark`) that records which database is here.
//!
//! The id is made when a service first opens the file, and is kept from start to start. A copy has
//! none, so a restored database gets a new one. So does a database that is not the one of the mark:
//!
//! - it has another id, or was started less often than the mark says;
//! - it is another file than the mark names, as when the folder was removed and copied back;
//! - the mark is not in the file that it names. Each writing makes a new file, so a mark that was
//!   copied over the present one names a file that is gone;
//! - it lacks the last change of accounts that the mark names. The mark is written anew with each
//!   such change, before the change is answered.
//!
//! None of this can change by an owner, a mode, a name or a link, so these end no login. The mark
//! also records whether the service runs, so that a start after a kill knows that there must be a
//! log. Runs on the thread that writes the file, and in commands.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use std::{fs, io};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use serde::{Deserialize, Serialize};

use crate::base::clock;
use crate::base::paths::beside;
use crate::store::arg::args;
use crate::store::change_log;
use crate::store::change_log::{Continuity, LastRead};
use crate::store::columns::at;
use crate::store::condition::{IDENTIFIED, IDENTITY};
use crate::store::small_file;
use crate::store::tx::{Failure, Tx, statements};

statements! { of the file:
    const BEGIN_START = "\
-- Without an id of before, a new one of 128 random bits.
UPDATE identity SET
    database_id = coalesce(?1, lower(hex(randomblob(16)))),
    cluster_id = CASE WHEN ?1 IS NULL OR cluster_id IS NULL THEN lower(hex(randomblob(16)))
        ELSE cluster_id END,
    starts = starts + 1
WHERE id = 1
RETURNING moved_to, moved_ms";
    const NOTE_MOVE = "UPDATE identity SET moved_to = ?1, moved_ms = ?2 WHERE id = 1";
    const FORGET_DATABASE_ID = "UPDATE identity SET database_id = NULL WHERE id = 1";
}

/// The first schema version with an id.
const VERSION_MIN: i64 = 9;
/// The first schema version that records where the file was copied to.
const MOVE_VERSION_MIN: i64 = 14;

/// Content of the file beside the database. What is `None` was not recorded by an older program.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    database_id: String,
    starts: i64,
    file: Option<WhichFile>,
    /// The file that holds the mark.
    own: Option<WhichFile>,
    /// The last change of accounts in the database.
    change: Option<MarkedChange>,
    /// Whether a service has the database open, or was killed while it had.
    #[serde(default)]
    is_open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MarkedChange {
    number: i64,
    mark: Option<i64>,
}

/// Properties that a copy of a file cannot share with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct WhichFile {
    inode: u64,
    /// Creation time of the file, if the file system records it. Preferred, since some file systems
    /// give other inodes at each mount.
    made_ns: Option<i64>,
}

impl WhichFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::described(&fs::metadata(path)?))
    }

    fn described(about: &fs::Metadata) -> Self {
        let made = about
            .created()
            .ok()
            .and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let made_ns = made.and_then(|made| i64::try_from(made.as_nanos()).ok());
        Self {
            inode: about.ino(),
            made_ns,
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self.made_ns, other.made_ns) {
            (Some(one), Some(two)) => one == two,
            _ => self.inode == other.inode,
        }
    }

    /// Whether `path` names this file. True if one of the two is not known.
    fn is_at(known: Option<&Self>, path: &Path) -> bool {
        known
            .zip(Self::of(path).ok())
            .is_none_or(|(one, other)| one.is(&other))
    }
}

fn mark_of(path: &Path) -> PathBuf {
    beside(path, ".mark")
}

/// Whether a database was at `path`.
pub(crate) fn stood(path: &Path) -> bool {
    mark_of(path).exists()
}

/// How a database differs from the one that was here last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    /// It never had an id, or there is no mark: a new database, or a copy.
    New,
    OtherId,
    Older,
    OtherFile,
    /// The mark itself was written over.
    OtherMark,
    /// The last change is missing.
    LacksChange,
}

impl Difference {
    fn text(self) -> &'static str {
        match self {
            Self::New => "it is new, or a copy",
            Self::OtherId => "it is another database than was here",
            Self::Older => "it was started less often than the one that was here",
            Self::OtherFile => "it is another file than was here",
            Self::OtherMark => "files were copied over the present ones",
            Self::LacksChange => "the last change of accounts is not in it",
        }
    }
}

/// Compares the database at `path` with its mark. `Err` says how they differ.
fn compare(
    tx: &dyn Tx,
    path: &Path,
    mark: Option<&Mark>,
) -> Result<Result<String, Difference>, Failure> {
    let (found, starts) = read(tx)?;
    let Some((id, mark)) = found.zip(mark) else {
        return Ok(Err(Difference::New));
    };
    let lacks_change = || -> Result<bool, Failure> {
        let Some(MarkedChange { number, mark }) = mark.change else {
            return Ok(false);
        };
        let page = change_log::changes_after(tx, number)?;
        Ok(page.continuity(LastRead { number, mark }) == Continuity::WentBack)
    };
    Ok(if mark.database_id != id {
        Err(Difference::OtherId)
    } else if mark.starts > starts {
        Err(Difference::Older)
    } else if !WhichFile::is_at(mark.file.as_ref(), path) {
        Err(Difference::OtherFile)
    } else if !WhichFile::is_at(mark.own.as_ref(), &mark_of(path)) {
        Err(Difference::OtherMark)
    } else if lacks_change()? {
        Err(Difference::LacksChange)
    } else {
        Ok(id)
    })
}

/// Counts a start. Makes a new id if the file has none or is not the database of before. Returns
/// the number of the last change of accounts, which the mark now names.
pub(crate) fn begin_identity(connection: &mut Connection, path: &Path) -> Result<i64, Failure> {
    let mark = read_mark(path);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tx: &dyn Tx = &*transaction;
    let compared = compare(tx, path, mark.as_ref())?;
    let kept = compared.as_deref().ok();
    let moved = tx.only(BEGIN_START, &args![kept], "the database's id", |row| {
        Ok(row
            .get::<Option<String>>(0)?
            .zip(row.get::<Option<i64>>(1)?))
    })?;
    transaction.commit()?;
    if let Some((to, at_ms)) = moved {
        let at = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        tracing::warn!(
            to,
            at = clock::iso(at),
            "this database was copied to a server and ended here: changes made on the server since \
             are not in it; set BHAV_STORE_URL, or go on here by bhav backup and bhav restore"
        );
    }
    match compared {
        Ok(_) => {}
        Err(Difference::New) => tracing::info!(
            "the database is new or was replaced: access tokens issued before are refused"
        ),
        Err(difference) => tracing::warn!(
            why = difference.text(),
            "the database was replaced or put back: acknowledged changes may be missing, and every \
             login and every API key ends"
        ),
    }
    // Written last: a start interrupted before leaves a database with more starts than the mark,
    // which is accepted.
    write_mark(connection, path, true)
}

/// The mark; `None` also if it cannot be read.
fn read_mark(path: &Path) -> Option<Mark> {
    let bytes = small_file::read(&mark_of(path))
        .ok()
        .flatten()
        .unwrap_or_default();
    sonic_rs::from_slice(&bytes).ok()
}

/// Writes the mark of the open database, and returns the number of the last change of accounts.
/// Nothing is taken over from the mark of before, which somebody may have put there.
pub(crate) fn write_mark(
    connection: &Connection,
    path: &Path,
    is_open: bool,
) -> Result<i64, Failure> {
    let (database_id, starts) = read(connection)?;
    let last = last_change(connection)?;
    let change = Some(MarkedChange {
        number: last.number,
        mark: last.mark,
    });
    let Some(database_id) = database_id else {
        return Ok(last.number);
    };
    let file = WhichFile::of(path).ok();
    let written = small_file::replace_with(&mark_of(path), |about| {
        let own = Some(WhichFile::described(about));
        let mark = Mark {
            database_id,
            starts,
            file,
            own,
            change,
            is_open,
        };
        sonic_rs::to_vec(&mark).unwrap_or_default()
    });
    if let Err(error) = written {
        // The one of before stays, which is as good for all but the changes since.
        tracing::warn!(%error, "the mark file of the database was not written");
    }
    Ok(last.number)
}

/// The last change of accounts in the database.
pub(crate) fn last_change(connection: &Connection) -> Result<LastRead, Failure> {
    Ok(change_log::counts(connection)?.0)
}

/// Whether a service has this file open, or was killed while it had.
pub(crate) fn is_open(path: &Path) -> bool {
    let file = WhichFile::of(path).ok();
    read_mark(path).is_some_and(|mark| {
        mark.is_open
            && mark
                .file
                .zip(file)
                .is_some_and(|(one, other)| one.is(&other))
    })
}

/// Whether the database is the one of its mark, so that a command may write the mark anew.
pub(crate) fn is_marked(connection: &Connection, path: &Path) -> bool {
    compare(connection, path, read_mark(path).as_ref()).is_ok_and(|compared| compared.is_ok())
}

/// Records that everything is in the database file, so that a missing log is no loss.
pub(crate) fn note_closed(connection: &Connection, path: &Path) {
    if let Err(error) = write_mark(connection, path, false) {
        tracing::warn!(%error, "the mark file of the database was not written");
    }
}

/// Records what a command has changed, so that the next start keeps it and misses it if it is gone.
/// Not beside a running service, which takes the change up and records it.
pub(crate) fn note_change(connection: &Connection, path: &Path) {
    if let Err(error) = write_mark(connection, path, is_open(path)) {
        tracing::warn!(%error, "the mark file of the database was not written");
    }
}

/// Records in the file that it was copied to a server, which continues it.
#[cfg(feature = "engines")]
pub(crate) fn note_moved(path: &Path, to: &str, now_ms: i64) -> Result<(), Failure> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.run(NOTE_MOVE, &args![to, now_ms]).map(drop)
}

fn read(tx: &dyn Tx) -> Result<(Option<String>, i64), Failure> {
    tx.only(IDENTITY, &[], "the database's id", |row| {
        Ok((row.get(at!(IDENTIFIED.database_id))?, row.get(at!(IDENTIFIED.starts))?))
    })
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
    use crate::store::changes::identity as identity_of;
    use crate::store::sqlite::file::open_for_writing;

    fn id_at_a_start(path: &Path) -> String {
        let mut connection = open_for_writing(path, true).unwrap();
        begin_identity(&mut connection, path).unwrap();
        identity_of(&connection).unwrap().incarnation
    }

    fn new_folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bhav.sqlite");
        (dir, path)
    }

    /// Writes one file's content into another, as programs do that copy over a file.
    fn write_over(from: &Path, to: &Path) {
        fs::write(to, fs::read(from).unwrap()).unwrap();
    }

    #[test]
    fn an_id_is_kept_from_start_to_start_and_not_by_older_copies() {
        let (dir, path) = new_folder();
        let first = id_at_a_start(&path);
        assert_eq!(first.len(), 32);
        let old = dir.path().join("old");
        fs::copy(&path, &old).unwrap();
        assert_eq!(id_at_a_start(&path), first);
        write_over(&old, &path);
        let second = id_at_a_start(&path);
        assert_ne!(second, first, "it was started less often than the one that stood here");
        assert_eq!(id_at_a_start(&path), second);
        // A database from another place, without a mark.
        let other = dir.path().join("other.sqlite");
        let third = id_at_a_start(&other);
        write_over(&other, &path);
        let fourth = id_at_a_start(&path);
        assert!(![&first, &second, &third].contains(&&fourth));
        fs::remove_file(mark_of(&path)).unwrap();
        assert_ne!(id_at_a_start(&path), fourth);
        fs::write(mark_of(&path), "garbage").unwrap();
        assert_ne!(id_at_a_start(&path), fourth);
    }

    #[test]
    fn a_mark_of_an_older_program_is_good() {
        let (_dir, path) = new_folder();
        let first = id_at_a_start(&path);
        fs::write(mark_of(&path), format!(r#"{{"database_id":"{first}","starts":1}}"#)).unwrap();
        assert!(!is_open(&path));
        assert_eq!(id_at_a_start(&path), first);
        assert!(is_open(&path));
        note_closed(&open_for_writing(&path, false).unwrap(), &path);
        assert!(!is_open(&path));
        assert_eq!(id_at_a_start(&path), first);
    }

    #[test]
    fn a_folder_that_is_put_back_whole_has_another_id() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().join("here");
        let copy = dir.path().join("copy");
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
    fn files_that_are_written_over_have_another_id_and_a_command_does_not_hide_it() {
        for by_command in [false, true] {
            let (dir, path) = new_folder();
            let first = id_at_a_start(&path);
            note_closed(&open_for_writing(&path, false).unwrap(), &path);
            let kept = dir.path().join("kept");
            fs::create_dir(&kept).unwrap();
            let names = ["bhav.sqlite", "bhav.sqlite.mark"];
            for name in names {
                fs::copy(dir.path().join(name), kept.join(name)).unwrap();
            }
            assert_eq!(id_at_a_start(&path), first);
            names
                .iter()
                .for_each(|name| write_over(&kept.join(name), &dir.path().join(name)));
            let connection = open_for_writing(&path, false).unwrap();
            assert!(!is_marked(&connection, &path));
            drop(connection);
            if by_command {
                let mut users = crate::store::sqlite::store::SqliteUsers::open(&path).unwrap();
                let work = |tx: &dyn Tx| tx.run(FORGET_DATABASE_ID, &[]).map(Some);
                users
                    .write(&crate::store::write::Write::new(), work)
                    .unwrap();
            }
            assert_ne!(id_at_a_start(&path), first, "{by_command}");
        }
    }

    #[test]
    fn a_copy_without_the_last_change_has_another_id() {
        let (dir, path) = new_folder();
        let first = id_at_a_start(&path);
        let kept = dir.path().join("kept");
        fs::copy(&path, &kept).unwrap();
        let connection = open_for_writing(&path, false).unwrap();
        let add = "INSERT INTO users (email, password_hash, created_ms) VALUES ('a', 'h', 1)";
        connection.execute(add, []).unwrap();
        assert_eq!(write_mark(&connection, &path, false).unwrap(), 1);
        drop(connection);
        assert_eq!(id_at_a_start(&path), first);
        let starts = Connection::open(&kept).unwrap();
        // As often as the present one, as a copy of the same start is.
        starts
            .execute("UPDATE identity SET starts = 2", [])
            .unwrap();
        drop(starts);
        write_over(&kept, &path);
        assert_ne!(id_at_a_start(&path), first);
    }

    #[test]
    fn an_owner_a_mode_a_name_and_a_link_change_no_identity() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().join("here");
        fs::create_dir(&here).unwrap();
        let path = here.join("bhav.sqlite");
        let first = id_at_a_start(&path);
        for file in [path.clone(), mark_of(&path)] {
            fs::hard_link(&file, beside(&file, ".link")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            let about = fs::metadata(&file).unwrap();
            std::os::unix::fs::chown(&file, Some(about.uid()), Some(about.gid())).unwrap();
            let opened = fs::File::options().append(true).open(&file).unwrap();
            opened
                .set_modified(std::time::SystemTime::UNIX_EPOCH)
                .unwrap();
        }
        assert_eq!(id_at_a_start(&path), first);
        let moved = dir.path().join("moved");
        fs::rename(&here, &moved).unwrap();
        assert_eq!(id_at_a_start(&moved.join("bhav.sqlite")), first);
    }

    #[test]
    fn a_copy_has_no_id_until_it_is_started() {
        let (dir, path) = new_folder();
        let copy = dir.path().join("copy");
        let first = id_at_a_start(&path);
        let connection = open_for_writing(&path, false).unwrap();
        assert_eq!(read(&connection).unwrap(), (Some(first.clone()), 1), "opened again");
        connection
            .execute("VACUUM INTO ?1", [copy.to_string_lossy()])
            .unwrap();
        drop(connection);
        forget_in(&copy).unwrap();
        assert!(identity_of(&Connection::open(&copy).unwrap()).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "file, mark and copy");
        write_over(&copy, &path);
        assert_ne!(id_at_a_start(&path), first);
    }
}
