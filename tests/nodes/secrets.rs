//! Checks that no secret reaches the servers that nodes share.

use bhav::sim::SimSettings;
use memchr::memmem;

use super::programs::{Node, Shared};
use crate::support::canaries::{Canaries, Found};
use crate::support::{postgres, until};

/// The kinds of secrets that must be nowhere.
const KINDS: [&str; 6] = [
    "password",
    "api_key",
    "api_secret",
    "access token",
    "one-time code",
    "signing key",
];

fn log_in(node: &Node, password: &str) -> u16 {
    let body = format!(r#"{{"email":"asha@example.com","password":"{password}"}}"#);
    node.program
        .client()
        .send_json("POST", "/api/auth/login", "", &body)
        .status
}

fn sync(node: &Node, auth: &str, [key, secret, code]: [&str; 3]) -> u16 {
    let body = format!(r#"{{"api_key":"{key}","api_secret":"{secret}","request_token":"{code}"}}"#);
    node.program
        .client()
        .send_json("POST", "/api/portfolio/sync", auth, &body)
        .status
}

#[test]
fn shared_servers_hold_no_password_no_broker_key_and_no_token() {
    let name = "shared_servers_hold_no_password_no_broker_key_and_no_token";
    let canaries = Canaries::new();
    let make = |kind| canaries.make(kind, "in use");
    let mut settings = SimSettings {
        rate_limits: false,
        ..SimSettings::default()
    };
    settings.broker_a.api_key = make("api_key");
    settings.broker_a.api_secret = make("api_secret");
    settings.broker_a.access_token = make("access token");
    let app = settings.broker_a.clone();
    let Some(database) = postgres::server() else {
        return;
    };
    let key = make("signing key");
    let Some(shared) = Shared::with(name, database, settings, &key) else {
        return;
    };
    let node = shared.node("a");
    let password = make("password");
    let auth = node.register(&password);
    let others = [shared.node("b")];

    // Accepted secrets, and refused ones.
    assert_eq!(log_in(&node, &password), 200);
    assert_eq!(log_in(&others[0], &make("password")), 401);
    let code = shared.scene.request_token();
    assert_eq!(sync(&node, &auth, [&app.api_key, &app.api_secret, &code]), 200);
    let wrong = [make("api_key"), make("api_secret"), make("one-time code")];
    assert_ne!(sync(&node, &auth, wrong.each_ref().map(String::as_str)), 200);
    let control = make("note");
    node.write(&auth, &control);
    until("a relayed price", || others[0].health()["relay"]["state"] == "following");

    shared.database.execute("bhav", "CHECKPOINT").unwrap();
    let mut found = Found::default();
    let files = canaries.in_files_below(&shared.database.directory.join("data"), &mut found);
    let noted = canaries.copies_of("note", &found);
    assert!(files > 100 && noted >= 2, "in a table and in the log: {files} files, {noted}");
    canaries.in_files_below(shared.server.folder_with_dump(), &mut found);
    let memory = canaries.in_memory_of(shared.server.id());
    assert_eq!(canaries.copies_of("note", &memory), 0);
    for kind in KINDS {
        assert!(canaries.made_of(kind) > 0);
        assert_eq!(canaries.told(kind, &found), [""; 0], "{kind} in a file");
        assert_eq!(canaries.told(kind, &memory), [""; 0], "{kind} in memory");
    }
    // The user's token, whose last part is the signature.
    let signature = auth.trim().rsplit('.').next().unwrap().as_bytes();
    let dump = shared.server.dump();
    assert!(memmem::find(&dump, b"bhav:").is_some(), "the dump has what it should");
    assert!(memmem::find(&dump, signature).is_none());
    for entry in std::fs::read_dir(shared.database.directory.join("data/pg_wal")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = if path.is_file() {
            std::fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        assert!(memmem::find(&bytes, signature).is_none(), "{}", path.display());
    }
}
