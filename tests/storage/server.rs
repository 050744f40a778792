//! The service with its store on a PostgreSQL server: what clients see is what they see of a file,
//! also while the server is away.

use std::path::Path;

use bhav::config::Config;
use bhav::store::url::StoreUrl;
use sonic_rs::JsonValueTrait;

use crate::support::postgres::{Server, server};
use crate::support::{
    Program, Ran, Scene, Service, Signal, TRADING, bearer, bhav, run, serve, state_flag, until,
};

const PASSWORD: &str = "nine green parrots";
const ENTRY: &str = r#"{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1,
    "price":99.50,"notes":"kept \u20b9"}"#;

/// Settings for a schema of its own.
fn on_server(scene: &Scene, server: &Server) -> (Config, String) {
    let url = server.url(&server.fresh_role());
    let mut config = scene.config();
    config.store.url = Some(StoreUrl::parse(&url).unwrap());
    config.auth.jwt_secret = Some("a key that all the nodes know, as they must".into());
    (config, url)
}

fn command(url: &str, state: &Path, args: &[&str]) -> Ran {
    run(bhav(args).arg(state_flag(state)).env("BHAV_STORE_URL", url))
}

fn holdings(service: &Service, auth: &str) -> String {
    service.client().request("GET", "/api/portfolio/holdings", auth).text().to_owned()
}

fn sync(scene: &Scene, service: &Service, auth: &str) {
    let body = format!(
        r#"{{"api_key":"simkeya","api_secret":"simsecreta","request_token":"{}"}}"#,
        scene.request_token()
    );
    let answer = service.post("/api/portfolio/sync", auth, &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn accounts_portfolios_and_journals_outlive_the_service_on_a_server() {
    let Some(server) = server() else { return };
    let scene = Scene::at(TRADING);
    let (config, url) = on_server(&scene, server);
    let service = scene.start_with(&config);
    let auth = bearer(&service.register("asha@example.com", PASSWORD));
    sync(&scene, &service, &auth);
    assert_eq!(service.post("/api/journal", &auth, ENTRY).status, 201);
    let before = holdings(&service, &auth);
    assert!(before.contains("\"holdings\""), "{before}");
    assert_eq!(service.health()["database"], "ok");
    let left = bearer(&service.register("ravi@example.com", PASSWORD));
    assert_eq!(service.post("/api/auth/logout", &left, "").status, 200);
    // An operator's command beside it.
    let listed = command(&url, scene.state.path(), &["user", "list"]);
    assert!(listed.out.contains("asha@example.com"), "{} {}", listed.out, listed.err);
    service.stop();
    assert!(!scene.state.path().join(bhav::store::FILE_NAME).exists(), "there is no file");

    let service = scene.start_with(&config);
    assert_eq!(holdings(&service, &auth), before);
    let journal = service.client().request("GET", "/api/journal", &auth);
    assert!(journal.text().contains("kept \u{20b9}"), "{}", journal.text());
    assert_eq!(service.client().request("GET", "/api/journal", &left).status, 401, "logged out");
    let ran = command(&url, scene.state.path(), &["user", "disable", "asha@example.com"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    until("the operator's change", || {
        service.client().request("GET", "/api/journal", &auth).status == 401
    });
    service.stop();
}

#[test]
fn prices_go_on_while_the_server_is_stopped_and_writes_say_so() {
    if server().is_none() {
        return;
    }
    let own = Server::start_at(5432, |_| (), &["listen_addresses="]);
    let scene = Scene::at(TRADING);
    let (config, _) = on_server(&scene, &own);
    let service = scene.start_with(&config);
    let auth = bearer(&service.register("asha@example.com", PASSWORD));
    service.fresh_snapshot();
    own.signal(Signal::STOP);
    let refused = service.post("/api/journal", &auth, ENTRY);
    assert_eq!(refused.status, 503, "{}", refused.text());
    let code = refused.json()["code"].as_str().unwrap().to_owned();
    assert!(["store_late", "store_unavailable"].contains(&code.as_str()), "{code}");
    service.fresh_snapshot();
    until("the state of the store", || service.health()["database"] == "unavailable");
    own.signal(Signal::CONT);
    until("the store", || service.health()["database"] == "ok");
    assert_eq!(service.post("/api/journal", &auth, ENTRY).status, 201);
    service.stop();
}

#[test]
fn a_file_moves_to_a_server_with_one_command() {
    let Some(server) = server() else { return };
    let scene = Scene::at(TRADING);
    let service = scene.start();
    let auth = bearer(&service.register("asha@example.com", PASSWORD));
    sync(&scene, &service, &auth);
    assert_eq!(service.post("/api/journal", &auth, ENTRY).status, 201);
    let before = holdings(&service, &auth);
    let (config, url) = on_server(&scene, server);
    let state = scene.state.path();
    let migrate = |url: &str| run(bhav(&["migrate", "--to", url]).arg(state_flag(state)));
    let refused = migrate(&url);
    assert_eq!(refused.code, Some(69), "the service runs: {}", refused.err);
    service.stop();
    let refused = migrate("postgres://asha:secret@db/bhav");
    assert_eq!(refused.code, Some(64), "{}", refused.err);
    assert!(!refused.err.contains("secret"), "{}", refused.err);
    let ran = migrate(&url);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("1  journal\n") && ran.out.contains("cell by cell"), "{}", ran.out);
    let again = migrate(&url);
    assert_eq!(again.code, Some(64), "{}", again.err);
    assert!(again.err.contains("is not empty"), "{}", again.err);

    let service = scene.start_with(&config);
    assert_eq!(
        service.client().request("GET", "/api/journal", &auth).status,
        401,
        "a token of before"
    );
    let body = format!(r#"{{"email":"asha@example.com","password":"{PASSWORD}"}}"#);
    let login = service.post("/api/auth/login", "", &body);
    let auth = bearer(login.json()["access_token"].as_str().unwrap());
    assert_eq!(holdings(&service, &auth), before);
    service.stop();

    // A start on the old file says what it is.
    let said = |state: &Path| {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut old = Program::of(serve(&scene, state).stderr(log.reopen().unwrap()));
        old.terminate();
        old.exit();
        std::fs::read_to_string(log.path()).unwrap()
    };
    let text = said(state);
    assert!(text.contains("this database was copied to a server") && text.contains(&url), "{text}");
    let (elsewhere, copy) = (tempfile::tempdir().unwrap(), scene.state.path().join("copy"));
    let backup = bhav(&["backup", copy.to_str().unwrap()]).arg(state_flag(state)).output().unwrap();
    assert!(backup.status.success());
    std::fs::copy(&copy, elsewhere.path().join(bhav::store::FILE_NAME)).unwrap();
    assert!(
        !said(elsewhere.path()).contains("was copied to a server"),
        "a backup goes on by itself"
    );
}

#[test]
fn commands_about_the_file_say_that_there_is_none() {
    let Some(server) = server() else { return };
    let url = server.url("nobody");
    let state = tempfile::tempdir().unwrap();
    for (args, instead) in [
        (vec!["backup", "copy.sqlite"], "pg_dump"),
        (vec!["restore", "copy.sqlite", "--yes"], "pg_restore"),
        (vec!["migrate", "--status"], "a start migrates it"),
    ] {
        let ran = command(&url, state.path(), &args);
        assert_eq!(ran.code, Some(64), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(instead), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_password_in_the_url_or_a_fallback_to_clear_text_ends_the_start_with_64() {
    for (url, why) in [
        ("postgres://bhav:hunter2@db/bhav", "BHAV_STORE_PASSWORD"),
        ("postgres://bhav@db/bhav?sslmode=prefer", "clear text"),
    ] {
        let ran = run(bhav(&["config", "check"]).env("BHAV_STORE_URL", url));
        assert_eq!(ran.code, Some(64), "{}", ran.err);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains(why) && !said.contains("hunter2"), "{said}");
    }
    // In its own place it is taken, and not shown.
    let mut check = bhav(&["config", "check"]);
    check.env("BHAV_STORE_URL", "postgres://bhav@db/bhav").env("BHAV_STORE_PASSWORD", "hunter2");
    check.env("JWT_SECRET", "a key that all the nodes know, as they must");
    let added = run(&mut check);
    assert_eq!(added.code, Some(0), "{}{}", added.out, added.err);
    assert!(!added.out.contains("hunter2"), "{}", added.out);
}
