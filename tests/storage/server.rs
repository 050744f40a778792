//! The service with its store on a PostgreSQL server. Clients see the same as with a file, also
//! while the server is away.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use bhav::base::Clock;
use bhav::config::Config;
use bhav::store::settings::StoreUrl;
use sonic_rs::JsonValueTrait;

use crate::support::postgres::{Server, server};
use crate::support::scrape::Scrape;
use crate::support::{
    Program, Ran, Scene, Service, SharedServer, Signal, TRADING, bearer, bhav, run, serve,
    state_flag, until,
};

const PASSWORD: &str = "nine green parrots";
const ENTRY: &str = r#"{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1,
    "price":99.50,"notes":"kept \u20b9"}"#;

/// Settings with a schema of their own.
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
    service
        .client()
        .request("GET", "/api/portfolio/holdings", auth)
        .text()
        .to_owned()
}

fn sync(scene: &Scene, service: &Service, auth: &str) {
    let body = format!(
        r#"{{"api_key":"simkeya","api_secret":"simsecreta","request_token":"{}"}}"#,
        scene.request_token()
    );
    service
        .post("/api/portfolio/sync", auth, &body)
        .with_status(200);
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
    // An operator's command at the same time.
    let listed = command(&url, scene.state.path(), &["user", "list"]);
    assert!(listed.out.contains("asha@example.com"), "{} {}", listed.out, listed.err);
    service.stop();
    assert!(!scene.state.path().join(bhav::store::FILE_NAME).exists(), "there is no file");

    let service = scene.start_with(&config);
    assert_eq!(holdings(&service, &auth), before);
    let journal = service.client().request("GET", "/api/journal", &auth);
    assert!(journal.text().contains("kept \u{20b9}"), "{}", journal.text());
    assert_eq!(
        service
            .client()
            .request("GET", "/api/journal", &left)
            .status,
        401,
        "logged out"
    );
    command(&url, scene.state.path(), &["user", "disable", "asha@example.com"]).with_code(0);
    until("the operator's change", || {
        service
            .client()
            .request("GET", "/api/journal", &auth)
            .status
            == 401
    });
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
    let refused = service.post("/api/journal", &auth, ENTRY).with_status(503);
    let code = refused.json()["code"].as_str().unwrap().to_owned();
    assert!(["store_late", "store_unavailable"].contains(&code.as_str()), "{code}");
    service.fresh_snapshot();
    until("the state of the store", || service.health()["database"] == "unavailable");
    own.signal(Signal::CONT);
    until("the store", || service.health()["database"] == "ok");
    assert_eq!(service.post("/api/journal", &auth, ENTRY).status, 201);
}

fn set(server: &Server, statement: &str) {
    server.execute("bhav", statement).unwrap();
    server.execute("bhav", "SELECT pg_reload_conf()").unwrap();
}

#[test]
fn writes_that_a_lost_synchronous_standby_holds_up_are_told() {
    if server().is_none() {
        return;
    }
    let own = Server::start_at(5432, |_| (), &["listen_addresses="]);
    let scene = Scene::at(TRADING);
    let (mut config, _) = on_server(&scene, &own);
    config.admin = scene.watched().admin;
    let service = scene.start_with(&config);
    let auth = bearer(&service.register("asha@example.com", PASSWORD));
    let state = |name: &str| {
        let scrape = Scrape::of(&service);
        scrape.find(&format!("bhav_store_state{{state=\"{name}\"}}")) == Some(1.0)
    };
    until("the state", || state("ok"));
    let status = || {
        let url = format!("--url=http://{}", service.0.address());
        let args = [
            "status",
            &url,
            &state_flag(scene.state.path()),
            &format!("--now={TRADING}"),
        ];
        run(&mut bhav(&args))
    };
    // Waits for a standby that is gone.
    set(&own, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    until("a write that is held up", || {
        service.post("/api/journal", &auth, ENTRY).status == 503
    });
    let failed_ms = Clock::system();
    until("its word", || service.health()["database"] == "stuck");
    assert!(failed_ms.monotonic_ms() < 30_000);
    let health = service.health();
    assert_eq!(health["status"], "degraded", "{health}");
    let told = status();
    assert_eq!(told.code, Some(1), "{}", told.out);
    assert!(told.out.contains("Writes to the database do not end"), "{}", told.out);
    assert!(state("stuck"));
    let read = service.client().request("GET", "/api/journal", &auth);
    assert_eq!(read.status, 200, "what is stored is read");
    set(&own, "ALTER SYSTEM RESET synchronous_standby_names");
    until("the store", || service.health()["database"] == "ok");
    assert_eq!(service.post("/api/journal", &auth, ENTRY).status, 201);
    service.register("ravi@example.com", PASSWORD);
}

#[test]
fn a_lock_that_holds_up_registrations_alone_is_told() {
    if server().is_none() {
        return;
    }
    let own = Server::start_at(5432, |_| (), &["listen_addresses="]);
    let scene = Scene::at(TRADING);
    let (config, _) = on_server(&scene, &own);
    let service = scene.start_with(&config);
    let auth = bearer(&service.register("asha@example.com", PASSWORD));
    let schema =
        own.execute("bhav", "SELECT schemaname FROM pg_tables WHERE tablename = 'last_user'");
    let lock =
        format!("BEGIN; LOCK TABLE {}.last_user; SELECT pg_sleep(600)", schema.unwrap().trim());
    std::thread::scope(|scope| {
        let holds = scope.spawn(|| own.execute("bhav", &lock));
        until("a lock", || {
            let asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
            own.execute("bhav", asked).unwrap().trim() == "1"
        });
        let body = format!(r#"{{"email":"r@example.com","password":"{PASSWORD}","name":"R"}}"#);
        assert_eq!(service.post("/api/auth/register", "", &body).status, 503);
        until("its word", || service.health()["database"] == "stuck");
        // Another user's write succeeds. That does not show that all do.
        assert_eq!(service.post("/api/journal", &auth, ENTRY).status, 201);
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE \
                   wait_event = 'PgSleep'";
        own.execute("bhav", end).unwrap();
        assert!(holds.join().unwrap().is_err());
    });
    until("the store", || service.health()["database"] == "ok");
    service.register("ravi@example.com", PASSWORD);
}

/// Runs `bhav config check --connect` with the addresses of a database and a cache.
fn checked(store: &str, cache: &str, password: &str) -> Ran {
    let mut command = bhav(&["config", "check", "--connect"]);
    command
        .env("BHAV_STORE_URL", store)
        .env("BHAV_CACHE_URL", cache);
    command.env("BHAV_CACHE_PASSWORD", password);
    command.env("JWT_SECRET", "a key that all the nodes know, as they must");
    run(&mut command)
}

/// The check fails, says these lines, and does not say the password.
#[track_caller]
fn refused(store: &str, cache: &str, password: &str, lines: &[&str]) {
    let ran = checked(store, cache, password);
    assert_eq!(ran.code, Some(64), "{}{}", ran.out, ran.err);
    for line in lines {
        assert!(ran.err.contains(line), "{line} is not in {}", ran.err);
    }
    assert_eq!(ran.err.lines().count(), lines.len(), "{}", ran.err);
    assert!(!ran.err.contains(password), "{}", ran.err);
}

/// A database of a newer program, a user without write permission, and a database that takes no
/// writes.
fn expect_unusable_databases_refused(server: &Server, role: &str, cache: &str) {
    let good = server.url(role);
    server
        .execute(
            role,
            "CREATE TABLE users (); CREATE TABLE schema (id int, version bigint, \
        least_program bigint); INSERT INTO schema VALUES (1, 1000, 1000)",
        )
        .unwrap();
    refused(&good, cache, "sesame", &["needs a program that knows 1000"]);
    server
        .execute(role, "UPDATE schema SET least_program = 1")
        .unwrap();
    server
        .execute(role, "REVOKE INSERT ON users FROM CURRENT_USER")
        .unwrap();
    refused(&good, cache, "sesame", &["BHAV_STORE_URL: ", "may not use the tables"][1..]);
    server
        .execute("bhav", &format!("ALTER ROLE {role} SET default_transaction_read_only = on"))
        .unwrap();
    refused(&good, cache, "sesame", &["takes no writes"]);
}

#[test]
fn config_check_connects_where_it_is_asked_to_and_says_what_is_refused() {
    let Some(server) = server() else { return };
    let name = "config_check_connects_where_it_is_asked_to";
    let rules = [
        "--user", "bhav", "on", ">sesame", "~bhav:*", "&bhav:*", "+@all", "-@admin",
    ];
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let port = port.to_string();
    let rules = [
        &rules[..],
        &["-@dangerous", "--requirepass", "other", "--port", &port],
    ]
    .concat();
    let Some(_shared) = SharedServer::with(name, &rules) else {
        return;
    };
    let cache = format!("redis://bhav@127.0.0.1:{port}");
    let role = server.fresh_role();
    let good = server.url(&role);
    let denied = "bhav: BHAV_CACHE_URL: the server refuses INFO to user bhav\n";
    refused(&good, &cache, "sesame", &[denied]);
    refused(
        &good,
        &cache,
        "wrong-one",
        &["refuses user bhav with the password of BHAV_CACHE_PASS"],
    );
    let no_role = server.url("nobody");
    refused(&no_role, &cache, "sesame", &["bhav: BHAV_STORE_URL: ", denied]);
    let nowhere = good.replace("host=/", "host=/nowhere/");
    refused(&nowhere, &cache, "sesame", &["bhav: BHAV_STORE_URL: ", denied]);
    assert_eq!(
        server
            .execute(&role, "SELECT to_regclass('users')")
            .unwrap()
            .trim(),
        "",
        "made"
    );

    let mut client = redis_client(&port);
    client("AUTH other");
    client("ACL SETUSER bhav +info");
    let ran = checked(&good, &cache, "sesame").with_code(0);
    for name in ["BHAV_STORE_URL", "BHAV_CACHE_URL"] {
        assert!(
            ran.out
                .contains(&format!("# {name}: the server can be used\n")),
            "{}",
            ran.out
        );
    }
    expect_unusable_databases_refused(server, &role, &cache);
}

/// A client that sends lines to the server and expects each to be accepted.
fn redis_client(port: &str) -> impl FnMut(&str) + use<> {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    move |line| {
        stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
        let mut said = [0; 5];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"+OK\r\n", "{line}");
    }
}

#[test]
fn connections_are_called_after_the_node() {
    let Some(server) = server() else { return };
    let scene = Scene::at(TRADING);
    let (mut config, url) = on_server(&scene, server);
    config.nodes.name = Some("node one".into());
    let _service = scene.start_with(&config);
    let role = url.rsplit('=').next().unwrap().to_owned();
    let asked =
        format!("SELECT DISTINCT application_name FROM pg_stat_activity WHERE usename = '{role}'");
    until("its connections", || {
        server.execute("bhav", &asked).unwrap() == "bhav/nodeone\n"
    });
}

#[test]
fn a_file_moves_to_a_server_with_one_command() {
    let Some(server) = server() else { return };
    let (scene, service) = Scene::trading();
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
    let refused = migrate("postgres://asha:secret@db/bhav").with_code(64);
    assert!(!refused.err.contains("secret"), "{}", refused.err);
    let ran = migrate(&url).with_code(0);
    assert!(
        ran.out.contains("1  journal\n") && ran.out.contains("cell by cell"),
        "{}",
        ran.out
    );
    let again = migrate(&url).with_code(64);
    assert!(again.err.contains("is not empty"), "{}", again.err);

    let service = scene.start_with(&config);
    assert_eq!(
        service
            .client()
            .request("GET", "/api/journal", &auth)
            .status,
        401,
        "a token of before"
    );
    let login = service.account("login", "asha@example.com", PASSWORD);
    let auth = bearer(login.json()["access_token"].as_str().unwrap());
    assert_eq!(holdings(&service, &auth), before);
    service.stop();

    // A start on the old file reports that it was copied.
    let said = |state: &Path| {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut old = Program::of(serve(&scene, state).stderr(log.reopen().unwrap()));
        old.terminate();
        old.exit();
        std::fs::read_to_string(log.path()).unwrap()
    };
    let text = said(state);
    assert!(
        text.contains("this database was copied to a server") && text.contains(&url),
        "{text}"
    );
    let (elsewhere, copy) = (tempfile::tempdir().unwrap(), scene.state.path().join("copy"));
    let backup = bhav(&["backup", copy.to_str().unwrap()])
        .arg(state_flag(state))
        .output()
        .unwrap();
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
        ("postgres://bhav@db/bhav?sslmode=verify-ca", "not understood"),
    ] {
        let ran = run(bhav(&["config", "check"]).env("BHAV_STORE_URL", url)).with_code(64);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains(why) && !said.contains("hunter2"), "{said}");
    }
    // In its own variable the password is accepted, and not shown.
    let mut check = bhav(&["config", "check"]);
    check
        .env("BHAV_STORE_URL", "postgres://bhav@db/bhav")
        .env("BHAV_STORE_PASSWORD", "hunter2");
    check.env("JWT_SECRET", "a key that all the nodes know, as they must");
    let added = run(&mut check);
    assert_eq!(added.code, Some(0), "{}{}", added.out, added.err);
    assert!(!added.out.contains("hunter2"), "{}", added.out);
}
