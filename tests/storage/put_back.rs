//! A state directory that is put back over the present one, by the programs that people copy with:
//! a token and an API key that were ended since the copy stay dead. What changes no content ends
//! nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use crate::accounts::keys::made;
use crate::storage::going_back::status;
use crate::support::{Program, Scene, Service, TRADING, bearer, bhav, run, serve, state_flag};
use bhav::store::FILE_NAME;

const PASSWORD: &str = "nine green parrots";
const EMAIL: &str = "asha@example.com";

/// Programs that write into the files that are there, each as a command of the shell that puts the
/// folder `$C` back over `$S`. The last ones do so with a file alone.
const PROGRAMS: [(&str, &str); 12] = [
    ("cp", "cp -a \"$C\"/. \"$S\"/"),
    ("cp", "cp -r \"$C\"/. \"$S\"/"),
    ("tar", "tar -C \"$C\" -cf - . | tar -C \"$S\" --overwrite -xf -"),
    ("tar", "tar -C \"$C\" -cf - . | tar -C \"$S\" -xf -"),
    (
        "python3",
        "python3 -c 'import shutil, sys; shutil.copytree(*sys.argv[1:], dirs_exist_ok=True)' \
         \"$C\" \"$S\"",
    ),
    (
        "perl",
        "perl -MFile::Copy -e 'copy($_, $ENV{S}) or die for glob(\"$ENV{C}/*\")'",
    ),
    ("rsync", "rsync -a \"$C\"/ \"$S\"/"),
    ("rsync", "rsync -a --inplace --delete \"$C\"/ \"$S\"/"),
    ("install", "install -p -m 600 \"$C\"/* \"$S\"/"),
    ("cat", "for f in \"$C\"/*; do cat \"$f\" >\"$S/${f##*/}\"; done"),
    (
        "dd",
        "for f in \"$C\"/*; do dd if=\"$f\" of=\"$S/${f##*/}\" conv=notrunc,fsync status=none; \
         truncate -r \"$f\" \"$S/${f##*/}\"; done",
    ),
    ("dd", "dd if=\"$C/bhav.sqlite\" of=\"$S/bhav.sqlite\" status=none"),
];

fn shell(script: &str, state: &Path, copy: &Path) -> bool {
    let mut command = Command::new("sh");
    command
        .args(["-e", "-c", script])
        .env("S", state)
        .env("C", copy);
    command.status().unwrap().success()
}

fn is_there(program: &str) -> bool {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!("command -v {program} >/dev/null && {program} --version >/dev/null"),
    ]);
    command.status().unwrap().success()
}

/// A login and an API key.
struct Access {
    token: String,
    key: String,
}

impl Access {
    fn of(service: &Service, action: &str) -> Self {
        let token = service
            .account(action, EMAIL, PASSWORD)
            .field("access_token");
        let (_, key) = made(service, &bearer(&token), r#""journal:read""#, "");
        Self { token, key }
    }

    fn statuses(&self, service: &Service) -> [u16; 2] {
        [status(service, &self.token), status(service, &self.key)]
    }

    fn end(&self, service: &Service) {
        let mut client = service.client();
        let body = r#"{"everywhere":true,"keys":true}"#;
        client
            .send_json("POST", "/api/auth/logout", &bearer(&self.token), body)
            .with_status(200);
        assert_eq!(self.statuses(service), [401, 401]);
    }
}

fn copied(scene: &Scene, copy: &Path) {
    let _ = fs::remove_dir_all(copy);
    assert!(shell("cp -a \"$S\" \"$C\"", scene.state.path(), copy));
}

#[test]
fn what_was_ended_stays_ended_whichever_program_puts_the_folder_back() {
    let scene = Scene::at(TRADING);
    let aside = tempfile::tempdir().unwrap();
    let copy = aside.path().join("copy");
    let mut service = scene.start();
    let mut access = Access::of(&service, "register");
    let mut tried = 0;
    for (program, script) in PROGRAMS {
        if !is_there(program) {
            continue;
        }
        service.stop();
        copied(&scene, &copy);
        service = scene.start();
        assert_eq!(access.statuses(&service), [200, 200], "a stop and a start end nothing");
        access.end(&service);
        service.stop();
        assert!(shell(script, scene.state.path(), &copy), "{script}");
        service = scene.start();
        assert_eq!(access.statuses(&service), [401, 401], "{script}");
        access = Access::of(&service, "login");
        tried += 1;
    }
    assert!(tried >= 8, "{tried} ways");
}

/// A copy of the running service, put back right after its end.
fn live_copy(back: &str) {
    let scene = Scene::at(TRADING);
    let aside = tempfile::tempdir().unwrap();
    let copy = aside.path().join("copy");
    let service = scene.start();
    let access = Access::of(&service, "register");
    copied(&scene, &copy);
    access.end(&service);
    service.stop();
    assert!(shell(back, scene.state.path(), &copy), "{back}");
    let service = scene.start();
    assert_eq!(access.statuses(&service), [401, 401], "{back}");
}

#[test]
fn a_live_copy_is_told_right_after_a_stop() {
    for back in [
        "cp -a \"$C\"/. \"$S\"/",
        "cp \"$C/bhav.sqlite\" \"$S/bhav.sqlite\"; cp \"$C/bhav.sqlite-wal\" \"$S/\"",
        "cp \"$C\"/bhav.sqlite* \"$S\"/",
    ] {
        live_copy(back);
    }
}

#[test]
fn a_live_copy_is_told_right_after_a_kill() {
    for back in [
        "cp -a \"$C\"/. \"$S\"/",
        // The log alone, the database alone without its log, and both without the mark.
        "cp -a \"$C/bhav.sqlite-wal\" \"$S/\"",
        "rm \"$S\"/bhav.sqlite-*; cp \"$C/bhav.sqlite\" \"$S/\"",
        "cp \"$C/bhav.sqlite\" \"$C/bhav.sqlite-wal\" \"$S/\"",
    ] {
        let scene = Scene::at(TRADING);
        let aside = tempfile::tempdir().unwrap();
        let copy = aside.path().join("copy");
        let mut program = Program::of(&mut serve(&scene, scene.state.path()));
        let mut client = program.client();
        let token = client
            .account("register", EMAIL, PASSWORD)
            .field("access_token");
        copied(&scene, &copy);
        let bearer = bearer(&token);
        client
            .request("POST", "/api/auth/logout", &bearer)
            .with_status(200);
        program.kill();
        assert!(shell(back, scene.state.path(), &copy), "{back}");
        let program = Program::of(&mut serve(&scene, scene.state.path()));
        let answer = program.client().request("GET", "/api/journal", &bearer);
        assert_ne!(answer.status, 200, "{back}");
    }
}

#[test]
fn a_copy_of_before_a_command_is_told() {
    let scene = Scene::at(TRADING);
    let aside = tempfile::tempdir().unwrap();
    let (state, copy) = (scene.state.path(), aside.path().join("copy"));
    let service = scene.start();
    let access = Access::of(&service, "register");
    service.stop();
    copied(&scene, &copy);
    run(&mut bhav(&["user", "logout", EMAIL, &state_flag(state)])).with_code(0);
    assert!(shell("cp -a \"$C\"/. \"$S\"/", state, &copy));
    // A command does not make the copy pass for the present state.
    run(&mut bhav(&[
        "user",
        "add",
        "ravi@example.com",
        "--password-file=-",
        &state_flag(state),
    ]));
    run(&mut bhav(&["user", "disable", EMAIL, &state_flag(state)])).with_code(0);
    run(&mut bhav(&["user", "enable", EMAIL, &state_flag(state)])).with_code(0);
    let service = scene.start();
    assert_eq!(access.statuses(&service), [401, 401]);
}

#[test]
fn what_changes_no_content_ends_no_login() {
    let scene = Scene::at(TRADING);
    let aside = tempfile::tempdir().unwrap();
    let state = scene.state.path();
    let service = scene.start();
    let access = Access::of(&service, "register");
    service.stop();
    let backup = aside.path().join("backup.sqlite");
    let about = |path: &Path| fs::metadata(path).unwrap();
    let each: [(&str, &dyn Fn()); 6] = [
        ("a restart", &|| {}),
        ("owners and modes", &|| {
            for entry in fs::read_dir(state)
                .unwrap()
                .map(|entry| entry.unwrap().path())
            {
                use std::os::unix::fs::MetadataExt;
                chown(&entry, Some(about(&entry).uid()), Some(about(&entry).gid())).unwrap();
                fs::set_permissions(&entry, fs::Permissions::from_mode(0o600)).unwrap();
            }
            fs::set_permissions(state, fs::Permissions::from_mode(0o750)).unwrap();
        }),
        ("hard links of a backup", &|| {
            assert!(shell("cp -al \"$S\" \"$C\" && rm -r \"$C\"", state, &aside.path().join("l")));
        }),
        ("times", &|| assert!(shell("touch \"$S\"/*", state, aside.path()))),
        ("a backup", &|| {
            run(bhav(&["backup", backup.to_str().unwrap()]).arg(state_flag(state))).with_code(0);
        }),
        ("another name", &|| {
            let script = "mv \"$S\" \"$C/moved\" && mv \"$C/moved\" \"$S\"";
            assert!(shell(script, state, aside.path()));
        }),
    ];
    for (what, change) in each {
        change();
        let service = scene.start();
        assert_eq!(access.statuses(&service), [200, 200], "{what}");
        service.stop();
    }
    // A kill, with the log left beside the database.
    let mut program = Program::of(&mut serve(&scene, state));
    let asked = program
        .client()
        .request("GET", "/api/journal", &bearer(&access.token));
    assert_eq!(asked.status, 200);
    program.kill();
    let service = scene.start();
    assert_eq!(access.statuses(&service), [200, 200], "a kill");
}

#[test]
fn a_database_that_is_missing_is_damage_and_the_operator_says_what_to_do() {
    let scene = Scene::at(TRADING);
    let state = scene.state.path();
    let database = state.join(FILE_NAME);
    let backup = state.join("kept.sqlite");
    let service = scene.start();
    Access::of(&service, "register");
    service.stop();
    run(bhav(&["backup", backup.to_str().unwrap()]).arg(state_flag(state))).with_code(0);
    for round in ["stopped", "killed"] {
        if round == "killed" {
            Program::of(&mut serve(&scene, state)).kill();
        }
        let away = state.join("away");
        fs::rename(&database, &away).unwrap();
        let ran = run(serve(&scene, state).stderr(std::process::Stdio::piped())).with_code(64);
        for part in [
            "is missing, where a database stood",
            "bhav restore",
            "bhav.sqlite.mark",
        ] {
            assert!(ran.err.contains(part), "{part} is not in {}", ran.err);
        }
        assert!(!database.exists(), "no new one is made");
        fs::rename(&away, &database).unwrap();
        let service = scene.start();
        service.account("login", EMAIL, PASSWORD).with_status(200);
        service.stop();
    }
    fs::remove_file(&database).unwrap();
    run(&mut bhav(&[
        "restore",
        backup.to_str().unwrap(),
        "--yes",
        &state_flag(state),
    ]))
    .with_code(0);
    let service = scene.start();
    service.account("login", EMAIL, PASSWORD).with_status(200);
    service.stop();
    // The operator wants a new one.
    fs::remove_file(&database).unwrap();
    fs::remove_file(database.with_extension("sqlite.mark")).unwrap();
    let service = scene.start();
    service.account("login", EMAIL, PASSWORD).with_status(401);
    service
        .account("register", EMAIL, PASSWORD)
        .with_status(201);
}
