//! `bhav key list|revoke` and `bhav user passwd --keys`, next to a running service; and that no key
//! is written into a file or the log.

use crate::accounts::keys::{PASSWORD, made};
use crate::support::{Ran, Scene, Service, TRADING, bearer, bhav, run, state_flag, until};

fn command(scene: &Scene, words: &[&str], rest: &[&str]) -> Ran {
    let mut command = bhav(words);
    command.arg(state_flag(scene.state.path())).args(rest);
    scene.while_time_passes(|| run(&mut command))
}

fn status(service: &Service, key: &str) -> u16 {
    service
        .client()
        .request("GET", "/api/auth/session", &bearer(key))
        .status
}

#[test]
fn the_operator_lists_and_revokes_keys_of_a_running_service() {
    let scene = Scene::still_at(TRADING);
    let service = scene.start();
    let login = bearer(&service.register("asha@example.com", PASSWORD));
    let other = bearer(&service.register("ravi@example.com", PASSWORD));
    let soon = r#","expires_at":"2099-11-20T23:00:00+05:30""#;
    let (id, key) = made(&service, &login, r#""market:read","journal:read""#, soon);
    let (_, kept) = made(&service, &other, r#""market:read""#, "");
    let status = |key: &str| status(&service, key);
    assert_eq!((status(&key), status(&kept)), (200, 200));
    let listed = command(&scene, &["key", "list"], &[]);
    assert_eq!((listed.code, listed.out.lines().count()), (Some(0), 3), "{}", listed.err);
    let line = listed
        .out
        .lines()
        .find(|line| line.starts_with(&id))
        .unwrap();
    for part in [
        "2099-11-20 23:00",
        "good",
        "asha@example.com, a widget, market:read journal:read",
    ] {
        assert!(line.contains(part), "{part} is not in\n{line}");
    }
    assert!(!listed.out.contains(&key[17..]) && !listed.out.contains(&kept[17..]));
    let of_one = command(&scene, &["key", "list"], &["Ravi@example.com"]);
    assert_eq!(of_one.out.lines().count(), 2, "{}", of_one.out);
    command(&scene, &["key", "list"], &["7"]).with_code(64);

    let revoked = command(&scene, &["key", "revoke"], &[&id]);
    let expected = format!("API key {id} is revoked\nthe running service refuses it\n");
    assert_eq!((revoked.code, &*revoked.out), (Some(0), &*expected), "{}", revoked.err);
    assert_eq!((status(&key), status(&kept)), (401, 200));
    for (given, said) in [(&*id, "there is no such API key"), ("17", "this is no id")] {
        let ran = command(&scene, &["key", "revoke"], &[given]);
        assert_eq!(ran.code, Some(64));
        assert!(ran.err.contains(said), "{}", ran.err);
    }

    // A new password leaves keys, unless they are meant.
    let file = scene.state.path().join("password");
    std::fs::write(&file, "ten red ones, then\n").unwrap();
    let from = format!("--password-file={}", file.display());
    let passwd = |more: &[&str]| {
        let rest = [&["ravi@example.com", &*from], more].concat();
        let ran = command(&scene, &["user", "passwd"], &rest).with_code(0);
        ran.out
    };
    assert!(passwd(&[]).ends_with("the running service refuses their older tokens\n"));
    assert_eq!(status(&kept), 200);
    let out = passwd(&["--keys"]);
    assert!(
        out.ends_with("the running service refuses their older tokens and API keys\n"),
        "{out}"
    );
    assert_eq!(status(&kept), 401);
}

#[test]
fn a_disabled_user_s_keys_are_refused_until_the_account_is_enabled() {
    let scene = Scene::still_at(TRADING);
    let service = scene.start();
    let login = bearer(&service.register("asha@example.com", PASSWORD));
    let status = |key: &str| status(&service, key);
    let (_, third) = made(&service, &login, r#""market:read""#, "");
    let user = |name: &str| {
        assert_eq!(command(&scene, &["user", name], &["asha@example.com"]).code, Some(0));
    };
    user("disable");
    assert_eq!(status(&third), 401);
    user("enable");
    scene.while_time_passes(|| until("the key again", || status(&third) == 200));
}
