//! Who owns the files of a state directory that `root` serves from once, or uses a command on: the
//! owner of the directory, who can go on with them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::{BHAV, Client, Program, Scene, TRADING, bhav, run, serve, state_flag, until};

const OWNER: u32 = 65_532;
const PASSWORD: &str = "nine green parrots";

/// The files below `folder` that are somebody else's.
fn strangers(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        // A file that was removed meanwhile is nobody's.
        let Ok(about) = fs::symlink_metadata(&path) else {
            continue;
        };
        if about.is_dir() {
            found.extend(strangers(&path));
        }
        if (about.uid(), about.gid()) != (OWNER, OWNER) {
            found.push(path);
        }
    }
    found
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn what_root_makes_in_a_folder_belongs_to_the_folders_owner() {
    if !is_root() {
        return;
    }
    let scene = Scene::at(TRADING);
    let state = scene.state.path();
    chown(state, Some(OWNER), Some(OWNER)).unwrap();
    let mut program = Program::of(&mut serve(&scene, state));
    let mut client = program.client();
    client
        .account("register", "asha@example.com", PASSWORD)
        .with_status(201);
    until("the second level", || state.join("l2.sqlite").exists().then_some(()));
    assert_eq!(strangers(state), Vec::<PathBuf>::new(), "of a service");
    run(&mut bhav(&["user", "disable", "asha@example.com", &state_flag(state)])).with_code(0);
    run(&mut bhav(&["user", "enable", "asha@example.com", &state_flag(state)])).with_code(0);
    let backup = state.join("kept.sqlite");
    let backup = backup.to_str().unwrap();
    run(&mut bhav(&["backup", backup, &state_flag(state)])).with_code(0);
    program.ends();
    assert_eq!(strangers(state), Vec::<PathBuf>::new(), "of commands beside it");
    let restore = [
        "restore",
        backup,
        "--yes",
        "--rotate-key",
        &state_flag(state),
    ];
    run(&mut bhav(&restore)).with_code(0);
    let socket = state.join("bhav.sock");
    let listen = format!("--listen=unix:{}", socket.display());
    let mut on_socket = bhav(&["serve", &listen]);
    on_socket
        .args(scene.flags(state))
        .env("BHAV_ADMIN_LISTEN", "off");
    let mut on_socket = on_socket
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the socket", || socket.exists().then_some(()));
    until("its owner", || strangers(state).is_empty().then_some(()));
    on_socket.kill().unwrap();
    on_socket.wait().unwrap();

    // Its user goes on with all of it.
    if fs::metadata(Path::new(BHAV).parent().unwrap()).is_ok_and(|it| it.mode() & 0o001 == 0) {
        return;
    }
    let program = Program::of(serve(&scene, state).uid(OWNER).gid(OWNER));
    let mut client = Client::connect(&program.address);
    client
        .account("login", "asha@example.com", PASSWORD)
        .with_status(200);
    client
        .account("register", "ravi@example.com", PASSWORD)
        .with_status(201);
}

#[test]
fn the_folder_of_a_public_demo_and_a_backup_elsewhere_keep_their_owners() {
    if !is_root() {
        return;
    }
    let scene = Scene::at(TRADING);
    let state = scene.state.path();
    chown(state, Some(OWNER), Some(OWNER)).unwrap();
    let mut demo = bhav(&[
        "demo",
        "--public",
        "--listen=127.0.0.1:0",
        &state_flag(state),
    ]);
    demo.env("BHAV_ADMIN_LISTEN", "off").stderr(Stdio::null());
    let program = Program::of(&mut demo);
    assert_eq!(strangers(state), Vec::<PathBuf>::new());
    drop(program);
    // Another user's folder gets no copy that its owner can read.
    let service = scene.start();
    service.register("asha@example.com", PASSWORD);
    let elsewhere = tempfile::tempdir().unwrap();
    chown(elsewhere.path(), Some(1_234), Some(1_234)).unwrap();
    let copy = elsewhere.path().join("copy.sqlite");
    run(&mut bhav(&["backup", copy.to_str().unwrap(), &state_flag(state)])).with_code(0);
    let about = fs::metadata(&copy).unwrap();
    assert_eq!((about.uid(), about.permissions().mode() & 0o777), (0, 0o600));
}
