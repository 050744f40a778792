//! `bhav backup`, `bhav restore`, `bhav migrate`, next to a running service and without one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use bhav::base::Clock;
use bhav::sim::SimSettings;
use bhav::store::{FILE_NAME, backups};

use crate::commands::expect_screen;
use crate::support::scrape::{BACKED_UP, Scrape};
use crate::support::{
    Process, Ran, Scene, Service, Signal, TRADING, bearer, bhav, run, state_flag, until,
};

const PASSWORD: &str = "nine green parrots";

fn command(name: &str, state: &Path, more: &[&str]) -> Ran {
    run(bhav(&[name, &state_flag(state)]).args(more))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn logs_in(service: &Service, email: &str) -> bool {
    service.account("login", email, PASSWORD).status == 200
}

/// A stopped service's state, with one user.
fn stopped_with(email: &str) -> Scene {
    let (scene, service) = Scene::trading();
    service.register(email, PASSWORD);
    service.stop();
    scene
}

fn backup_of(scene: &Scene, directory: &Path) -> PathBuf {
    let to = directory.join("copy.sqlite");
    command("backup", scene.state.path(), &[text(&to)]).with_code(0);
    to
}

#[test]
fn a_backup_of_a_running_service_serves_elsewhere() {
    let (scene, out) = (Scene::at(TRADING), tempfile::tempdir().unwrap());
    let service = scene.start();
    service.register("asha@example.com", PASSWORD);
    let to = out.path().join("copy.sqlite");
    let ran = command("backup", scene.state.path(), &[text(&to)]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.starts_with(&format!("{}: ", to.display())), "{}", ran.out);
    assert!(ran.out.contains(" bytes, schema ") && ran.out.contains(", checked, in "));
    assert_eq!((mode(&to), names(out.path())), (0o600, vec!["copy.sqlite".to_owned()]));
    // Later writes are not in it.
    service.register("ravi@example.com", PASSWORD);
    service.stop();

    let other = Scene::at(TRADING);
    let ran = command("restore", other.state.path(), &[text(&to), "--yes"]).with_code(0);
    assert!(!ran.out.contains("the former database"), "{}", ran.out);
    assert_eq!(mode(&other.state.path().join(FILE_NAME)), 0o600);
    let service = other.start();
    assert!(logs_in(&service, "asha@example.com") && !logs_in(&service, "ravi@example.com"));
}

#[test]
fn nothing_is_overwritten_and_no_half_file_is_left() {
    let (scene, out) = (stopped_with("asha@example.com"), tempfile::tempdir().unwrap());
    let to = out.path().join("mine");
    fs::write(&to, "mine").unwrap();
    let ran = command("backup", scene.state.path(), &[text(&to)]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""));
    assert!(ran.err.contains("exists already"), "{}", ran.err);
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    let ran = command("backup", scene.state.path(), &[text(&out.path().join("no/where"))]);
    assert_eq!(ran.code, Some(74), "{}", ran.err);
    let empty = tempfile::tempdir().unwrap();
    command("backup", empty.path(), &[text(&out.path().join("x"))]).with_code(74);
    assert_eq!(names(out.path()), ["mine"]);
    assert!(names(empty.path()).is_empty(), "a look changes nothing");
}

/// A database whose copy takes long enough to be observed in progress.
fn large() -> Scene {
    let scene = stopped_with("asha@example.com");
    let connection = rusqlite::Connection::open(scene.state.path().join(FILE_NAME)).unwrap();
    let fill = "CREATE TABLE filling (x BLOB);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 64)
        INSERT INTO filling SELECT randomblob(1048576) FROM n";
    connection.execute_batch(fill).unwrap();
    scene
}

/// A running backup, and the file that it writes.
fn under_way(scene: &Scene, out: &Path) -> (Process, PathBuf) {
    let mut command = bhav(&["backup", &state_flag(scene.state.path()), text(out)]);
    let backup = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let unfinished = until("half a copy", || {
        let found = names(out)
            .into_iter()
            .find(|name| name.ends_with(".unfinished"));
        found
            .map(|name| out.join(name))
            .filter(|path| fs::metadata(path).unwrap().len() > 0)
    });
    (backup, unfinished)
}

#[test]
fn what_a_killed_backup_left_is_removed_by_the_next() {
    let (scene, out) = (large(), tempfile::tempdir().unwrap());
    let (mut backup, unfinished) = under_way(&scene, out.path());
    backup.kill();
    assert!(unfinished.exists());
    let other = out.path().join("mine.unfinished");
    fs::write(&other, "mine").unwrap();
    let ran = until("another second", || {
        let ran = command("backup", scene.state.path(), &[text(out.path())]);
        (ran.code == Some(0)).then_some(ran)
    });
    assert!(ran.err.contains("left by a backup that was ended"), "{}", ran.err);
    let names = names(out.path());
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().any(|name| name == "mine.unfinished"), "{names:?}");
    // The same with a given file name.
    let to = out.path().join("copy.sqlite");
    fs::write(out.path().join("copy.sqlite.unfinished"), "half").unwrap();
    command("backup", scene.state.path(), &[text(&to)]).with_code(0);
    assert!(!out.path().join("copy.sqlite.unfinished").exists());
}

#[test]
fn a_backup_that_is_under_way_is_left_alone_by_another() {
    let (scene, out) = (large(), tempfile::tempdir().unwrap());
    let (mut backup, unfinished) = under_way(&scene, out.path());
    backup.signal(Signal::STOP);
    until("another second", || {
        let ran = command("backup", scene.state.path(), &[text(out.path())]);
        (ran.code == Some(0)).then_some(())
    });
    assert!(unfinished.exists(), "the first one still writes it");
    backup.signal(Signal::CONT);
    assert_eq!(backup.exit().code(), Some(0));
    assert_eq!(names(out.path()).len(), 2);
    assert!(
        names(out.path())
            .iter()
            .all(|name| name.ends_with(".sqlite"))
    );
}

#[test]
fn a_directory_keeps_the_newest_of_the_pattern() {
    let (scene, out) = (stopped_with("asha@example.com"), tempfile::tempdir().unwrap());
    let old = ["bhav-20200101-000000.sqlite", "bhav-20210101-000000.sqlite"];
    for name in old.iter().chain(&["notes.txt", "bhav-old.sqlite"]) {
        fs::write(out.path().join(name), "x").unwrap();
    }
    let ran = command("backup", scene.state.path(), &[text(out.path()), "--keep", "2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains(old[0]) && !ran.err.contains(old[1]), "{}", ran.err);
    let names = names(out.path());
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.iter().any(|name| name == old[1]), "{names:?}");
    let file = out.path().join("notes.txt");
    let ran = command("backup", scene.state.path(), &[text(&file), "--keep", "2"]).with_code(64);
    assert!(ran.err.contains("notes.txt is no directory"), "{}", ran.err);
}

#[test]
fn a_directory_that_is_not_there_is_said_to_be_missing() {
    let (scene, out) = (stopped_with("asha@example.com"), tempfile::tempdir().unwrap());
    let missing = out.path().join("missing");
    let (bare, slash) = (text(&missing).to_owned(), format!("{}/", missing.display()));
    for args in [
        &[&bare, "--keep", "3"][..],
        &[&slash],
        &[&slash, "--keep=3"],
    ] {
        let ran = command("backup", scene.state.path(), args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(74), ""), "{args:?}: {}", ran.err);
        let why = format!("there is no directory {bare}");
        assert!(ran.err.contains(&why) && ran.err.contains("mkdir"), "{args:?}: {}", ran.err);
        assert!(names(out.path()).is_empty(), "{args:?}");
    }
}

#[test]
fn a_restore_is_refused_while_an_instance_runs_and_without_a_yes() {
    let (scene, out) = (stopped_with("asha@example.com"), tempfile::tempdir().unwrap());
    let copy = backup_of(&scene, out.path());
    let service = scene.start();
    let ran = command("restore", scene.state.path(), &[text(&copy), "--yes"]).with_code(69);
    assert!(ran.err.contains("systemctl stop bhav"), "{}", ran.err);
    service.stop();
    let before = names(scene.state.path());
    let ran = command("restore", scene.state.path(), &[text(&copy)]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{}", ran.err);
    assert!(ran.err.contains("--yes"), "{}", ran.err);
    assert_eq!(names(scene.state.path()), before);
}

#[test]
fn the_former_database_is_kept_and_no_token_comes_back() {
    let (scene, out) = (Scene::at(TRADING), tempfile::tempdir().unwrap());
    let service = scene.start();
    let token = service.register("asha@example.com", PASSWORD);
    let copy = backup_of(&scene, out.path());
    assert_eq!(service.post("/api/auth/logout", &bearer(&token), "").status, 200);
    service.register("ravi@example.com", PASSWORD);
    service.stop();
    let holds = |scene: &Scene, token: &str| {
        let service = scene.start();
        let answer = service
            .client()
            .request("GET", "/api/portfolio/holdings", &bearer(token));
        service.stop();
        answer.status == 200
    };
    assert!(!holds(&scene, &token), "logged out");
    let ran = command("restore", scene.state.path(), &[text(&copy), "--yes"]).with_code(0);
    assert!(ran.out.contains("everybody logs in again"), "{}", ran.out);
    assert!(!holds(&scene, &token), "a restore brings no token back");
    let kept = names(scene.state.path());
    let kept = kept
        .iter()
        .find(|name| name.starts_with("bhav.sqlite.before-restore-"))
        .unwrap();
    assert!(ran.out.contains(kept.as_str()), "{}", ran.out);
    // The replaced database is complete: it can be restored the same way, and then the key is
    // renamed.
    let kept = out.path().join("kept");
    let from = names(scene.state.path());
    let from = from
        .iter()
        .find(|name| name.contains(".before-restore-"))
        .unwrap();
    fs::rename(scene.state.path().join(from), &kept).unwrap();
    let ran = command("restore", scene.state.path(), &[text(&kept), "--yes", "--rotate-key"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("the signing key was set aside as"), "{}", ran.out);
    assert!(!holds(&scene, &token));
    let service = scene.start();
    assert!(logs_in(&service, "ravi@example.com"), "written before the first restore");
}

#[test]
fn what_is_no_good_backup_is_refused_and_the_database_stays() {
    let (scene, out) = (stopped_with("asha@example.com"), tempfile::tempdir().unwrap());
    let good = backup_of(&scene, out.path());
    let spoilt = |name: &str, spoil: &dyn Fn(&Path)| {
        let path = out.path().join(name);
        fs::copy(&good, &path).unwrap();
        spoil(&path);
        path
    };
    let newer = spoilt("newer", &|path| {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
    });
    let foreign = spoilt("foreign", &|path| {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.pragma_update(None, "application_id", 7).unwrap();
    });
    let garbage = spoilt("garbage", &|path| fs::write(path, "garbage ".repeat(999)).unwrap());
    let empty = spoilt("empty", &|path| fs::write(path, "").unwrap());
    let cut = spoilt("cut", &|path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() - 3 * 4096]).unwrap();
    });
    let orphan = spoilt("orphan", &|path| {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection
            .pragma_update(None, "foreign_keys", false)
            .unwrap();
        connection
            .execute(
                "INSERT INTO syncs (user_id, broker, synced_ms, simulated) VALUES (77, 'a', 1, 0)",
                [],
            )
            .unwrap();
    });
    let missing = out.path().join("missing");
    let folder = out.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let before = names(scene.state.path());
    for (path, code, why) in [
        (&newer, 64, "version 99 and this program knows"),
        (&newer, 64, "or name an older backup"),
        (&foreign, 64, "is not a backup of bhav: name another file"),
        (&garbage, 64, "is not a backup of bhav"),
        (&empty, 64, "is not a backup of bhav"),
        (&cut, 65, "is damaged: database disk image is malformed; name an older backup"),
        (&orphan, 65, "a row of syncs belongs to nobody; name an older backup"),
        (&missing, 65, "No such file"),
        (&folder, 65, "it is not a file"),
    ] {
        let ran = command("restore", scene.state.path(), &[text(path), "--yes"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{path:?}: {}", ran.err);
        assert!(ran.err.contains(why) && ran.err.contains(text(path)), "{path:?}: {}", ran.err);
        for other in ["BHAV_STATE_DIR", ".before-upgrade", ".restoring"] {
            assert!(!ran.err.contains(other), "{path:?}: {}", ran.err);
        }
    }
    assert_eq!(names(scene.state.path()), before);
    let service = scene.start();
    assert!(logs_in(&service, "asha@example.com"));
}

#[test]
fn what_a_start_would_migrate_is_told_on_open_and_closed_files() {
    let scene = Scene::at(TRADING);
    let ran = command("migrate", scene.state.path(), &["--status"]);
    assert_eq!(ran.code, Some(74), "there is no file: {}", ran.err);
    let service = scene.start();
    let ran = command("migrate", scene.state.path(), &["--status"]).with_code(0);
    assert!(ran.out.ends_with("\nnothing to do\n"), "{}", ran.out);
    service.stop();
    let old = tempfile::tempdir().unwrap();
    let connection = rusqlite::Connection::open(old.path().join(FILE_NAME)).unwrap();
    connection
        .execute_batch(include_str!("../../sql/store/0001_accounts.sql"))
        .unwrap();
    connection
        .pragma_update(None, "application_id", 0x6268_6176)
        .unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    drop(connection);
    let ran = command("migrate", old.path(), &["--status"]).with_code(0);
    for part in [
        "schema 1; ",
        "the next start runs: 0002_portfolios, 0003_closes",
        ".before-upgrade-v1\n",
    ] {
        assert!(ran.out.contains(part), "{part} is not in {}", ran.out);
    }
    assert_eq!(command("migrate", old.path(), &[]).code, Some(64));
}

#[test]
fn a_backup_of_what_is_no_good_database_names_it_and_the_cure() {
    let out = tempfile::tempdir().unwrap();
    let to = out.path().join("copy.sqlite");
    let spoilt = |spoil: &dyn Fn(&Path)| {
        let scene = stopped_with("asha@example.com");
        let database = scene.state.path().join(FILE_NAME);
        spoil(&database);
        let ran = command("backup", scene.state.path(), &[text(&to)]);
        assert!(ran.err.contains(text(&database)), "{}", ran.err);
        assert!(names(out.path()).is_empty(), "{}", ran.err);
        ran
    };
    let damaged = spoilt(&|path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() - 3 * 4096]).unwrap();
    });
    assert_eq!(damaged.code, Some(65), "{}", damaged.err);
    let cure = "systemctl stop bhav.socket bhav.service; bhav restore BACKUP";
    assert!(damaged.err.contains(cure), "{}", damaged.err);
    let foreign = spoilt(&|path| fs::write(path, "garbage ".repeat(999)).unwrap()).with_code(64);
    assert!(foreign.err.contains("--state-dir"), "{}", foreign.err);
    // An empty file never replaces a good copy.
    let emptied = spoilt(&|path| fs::write(path, "").unwrap()).with_code(65);
    assert!(
        emptied
            .err
            .contains("it holds nothing, where a database stood"),
        "{}",
        emptied.err
    );
    assert!(emptied.err.contains(cure), "{}", emptied.err);
    let newer = |path: &Path| {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
    };
    let alone = spoilt(&newer).with_code(64);
    assert!(alone.err.contains("run the newer program again"), "{}", alone.err);
    assert!(
        alone.err.contains("restore a backup of schema "),
        "no copy is there: {}",
        alone.err
    );
}

#[test]
fn status_and_metrics_know_of_the_last_backup() {
    // The record is read every five seconds.
    const LOOK_MS: i64 = 1_000;
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(
        clock,
        SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        },
    );
    let out = tempfile::tempdir().unwrap();
    let service = scene.start_with(&scene.watched());
    let url = format!("--url=http://{}", service.0.address());
    let status = |what: &str, holds: &dyn Fn(&str) -> bool| {
        until(what, || {
            scene.advance_ms(LOOK_MS);
            let ran = run(&mut bhav(&["status", &url, &state_flag(scene.state.path())]));
            expect_screen(&ran.out);
            holds(&ran.out).then_some(ran.out)
        })
    };
    status("no word of backups", &|screen| !screen.contains("backup"));
    let backup = |to: &Path| command("backup", scene.state.path(), &[text(to)]);
    assert_eq!(backup(&out.path().join("one")).code, Some(0));
    let record = scene.state.path().join("last-backup.json");
    assert_eq!(mode(&record), 0o600);
    status("a backup", &|screen| {
        screen.contains("\nbackup    ") && screen.contains(" old, of ")
    });
    Scrape::until(&service, "its time", |scrape| {
        scene.advance_ms(LOOK_MS);
        scrape.find(BACKED_UP).is_some()
    });
    assert_eq!(backup(&out.path().join("one")).code, Some(64), "it exists already");
    // A person sees the failure of a manual backup. The record of the timer's backups stays.
    assert_eq!(backup(&out.path().join("no/where")).code, Some(74));
    let unchanged = backups::read(scene.state.path()).unwrap().unwrap();
    assert!(!unchanged.failed(), "{unchanged:?}");
    assert_eq!(Scrape::of(&service).value("bhav_backup_failed"), 0.0);
    let nowhere = out.path().join("no/where");
    let timer = |more: &[&str]| {
        let args = [&[text(&nowhere), "--scheduled"], more].concat();
        command("backup", scene.state.path(), &args).code
    };
    // Whatever keeps the timer from making a backup is reported.
    assert_eq!(timer(&["--keep=30"]), Some(74));
    status("the timer's failure", &|screen| screen.contains("; the last attempt failed"));
    assert_eq!(backup(&out.path().join("two")).code, Some(0));
    status("mended by hand", &|screen| !screen.contains("failed"));
    assert_eq!(timer(&[]), Some(74));
    let screen = status("its failure", &|screen| screen.contains("; the last attempt failed"));
    assert!(screen.contains("- The last backup failed; the last good one: "), "{screen}");
    assert_eq!(Scrape::of(&service).value("bhav_backup_failed"), 1.0);
}
