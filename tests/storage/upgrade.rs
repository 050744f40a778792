//! The way to a newer program and back: from each schema of before with every row compared, through
//! a kill in the middle, and an older program on a newer database.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use bhav::store::FILE_NAME;
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

use super::store::{known_version, of_version};
use crate::support::{Program, Scene, TRADING, bhav, refused, run, serve, state_flag, until};

/// Columns of the database's own identity, which no copy has.
const IDENTITY: [&str; 3] = ["database_id", "moved_to", "moved_ms"];

/// Every row of every table as text, and the schema version.
type Rows = BTreeMap<String, Vec<String>>;

fn rows(path: &Path) -> Rows {
    let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let list = |sql: &str, at: usize| -> Vec<String> {
        let mut statement = file.prepare(sql).unwrap();
        let names = statement.query_map([], |row| row.get(at)).unwrap();
        names.map(Result::unwrap).collect()
    };
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut found = Rows::new();
    for table in list(tables, 0) {
        let columns = list(&format!("PRAGMA table_info({table})"), 1);
        let columns: Vec<_> = columns
            .into_iter()
            .filter(|column| !IDENTITY.contains(&column.as_str()))
            .collect();
        let mut statement = file
            .prepare(&format!("SELECT {} FROM {table}", columns.join(", ")))
            .unwrap();
        let cells = statement.query_map([], |row| {
            let cells = (0..columns.len()).map(|at| row.get::<_, Value>(at).unwrap());
            Ok(format!("{:?}", cells.collect::<Vec<_>>()))
        });
        let mut rows: Vec<String> = cells.unwrap().map(Result::unwrap).collect();
        rows.sort();
        found.insert(table, rows);
    }
    let version: i64 = file
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    found.insert("schema version".into(), vec![version.to_string()]);
    found
}

/// The program of today on a state directory, until it listens, then stopped. Returns its log.
fn started_and_stopped(scene: &Scene) -> String {
    let mut program = Program::of(serve(scene, scene.state.path()).stderr(Stdio::piped()));
    program.terminate();
    let mut log = String::new();
    let mut stderr = program.child.stderr.take().unwrap();
    std::io::Read::read_to_string(&mut stderr, &mut log).unwrap();
    assert_eq!(program.exit().code(), Some(0), "{log}");
    log
}

/// The words of the command that the log gives for going back.
fn way_back(log: &str) -> Vec<String> {
    let line = log
        .lines()
        .find(|line| line.contains("go_back="))
        .unwrap_or_else(|| panic!("{log}"));
    let command = line
        .split("go_back=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    command.split(' ').map(str::to_owned).collect()
}

#[test]
fn from_each_schema_of_before_a_start_goes_up_and_the_logged_command_goes_back() {
    let known = known_version();
    for version in 1..known {
        let scene = Scene::at(TRADING);
        let path = scene.state.path().join(FILE_NAME);
        fs::write(&path, of_version(version).unwrap()).unwrap();
        let before = rows(&path);
        assert!(before["users"].len() >= 2, "{version}");
        let log = started_and_stopped(&scene);
        assert_eq!(rows(&path)["schema version"], [known.to_string()], "{version}");
        let copy = scene
            .state
            .path()
            .join(format!("{FILE_NAME}.before-upgrade-v{version}"));
        assert_eq!(rows(&copy), before, "{version}: the copy");

        let command = way_back(&log);
        assert_eq!(command[..2], ["bhav", "restore"], "{log}");
        assert_eq!(command.last().map(PathBuf::from), Some(copy), "{log}");
        let words: Vec<&str> = command[1..].iter().map(String::as_str).collect();
        let ran = run(bhav(&words).arg("--yes"));
        assert_eq!(ran.code, Some(0), "{version}: {}", ran.err);
        assert_eq!(rows(&path), before, "{version}: gone back");
        // And up once more, as after a second thought.
        if version == known - 1 {
            started_and_stopped(&scene);
            assert_eq!(rows(&path)["schema version"], [known.to_string()]);
        }
    }
}

/// Enough points that a migration writes for a while: more than SQLite's cache holds.
const POINTS: u32 = 150_000;
/// A log of this length holds pages of a transaction that is not committed yet.
const LOG_BYTES: u64 = 1024 * 1024;

#[test]
fn a_kill_in_the_middle_of_a_migration_leaves_the_old_schema_and_the_next_start_ends_it() {
    // Its migrations rewrite the table of points.
    const VERSION: i64 = 9;
    let scene = Scene::at(TRADING);
    let path = scene.state.path().join(FILE_NAME);
    fs::write(&path, of_version(VERSION).unwrap()).unwrap();
    let file = Connection::open(&path).unwrap();
    file.execute_batch(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {POINTS})
         INSERT INTO points SELECT min(id), 'day ' || i, '1', '2', '1', 'sync', 0, 0, 0
         FROM users, n GROUP BY i;"
    ))
    .unwrap();
    drop(file);
    let before = rows(&path);
    assert!(before["points"].len() > POINTS as usize);

    let log = path.with_extension("sqlite-wal");
    let mut process = crate::support::Process::start(
        serve(&scene, scene.state.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    );
    until("the middle of the migration", || {
        fs::metadata(&log)
            .is_ok_and(|about| about.len() > LOG_BYTES)
            .then_some(())
    });
    process.kill();
    // What was written is in the log and belongs to no transaction that ended.
    assert_eq!(rows(&path), before, "the old schema, whole");
    let copy = scene
        .state
        .path()
        .join(format!("{FILE_NAME}.before-upgrade-v{VERSION}"));
    assert_eq!(rows(&copy), before, "the copy was made first");

    started_and_stopped(&scene);
    let after = rows(&path);
    assert_eq!(after["schema version"], [known_version().to_string()]);
    assert_eq!(after["points"].len(), before["points"].len());
    assert_eq!(rows(&copy), before);
}

/// Every file of the folder with its bytes, but SQLite's shared memory and an empty log, which hold
/// no data: a command that only reads leaves them.
fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = files.map(|path| (path.clone(), fs::read(&path).unwrap()));
    let is_empty_log = |name: &str, bytes: &[u8]| name.ends_with("-wal") && bytes.is_empty();
    files
        .filter(|(path, bytes)| {
            let name = path.to_string_lossy();
            !name.ends_with("-shm") && !is_empty_log(&name, bytes)
        })
        .collect()
}

#[test]
fn an_older_program_on_a_newer_database_says_so_and_touches_nothing() {
    for with_log in [false, true] {
        let scene = Scene::at(TRADING);
        let path = scene.state.path().join(FILE_NAME);
        fs::write(&path, of_version(known_version() - 1).unwrap()).unwrap();
        started_and_stopped(&scene);
        // As a program of a later schema leaves it, that was killed or was stopped.
        let newer = Connection::open(&path).unwrap();
        newer
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, with_log)
            .unwrap();
        newer.pragma_update(None, "user_version", 99).unwrap();
        drop(newer);
        let log = path.with_extension("sqlite-wal");
        assert_eq!(fs::metadata(&log).is_ok_and(|about| about.len() > 0), with_log);
        let before = bytes(scene.state.path());

        let state = state_flag(scene.state.path());
        let (code, said) = refused(&["--listen=127.0.0.1:0", &state]);
        assert_eq!(code, Some(64), "{said}");
        let copy = format!("{FILE_NAME}.before-upgrade-v{}", known_version() - 1);
        for part in [
            "version 99",
            "nothing was changed",
            "run the newer program",
            "bhav restore ",
            &copy,
        ] {
            assert!(said.contains(part), "{part} is not in {said}");
        }
        run(&mut bhav(&["user", "list", &state])).with_code(64);
        let after = bytes(scene.state.path());
        assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
        assert!(after == before, "a file was changed");
    }
}
