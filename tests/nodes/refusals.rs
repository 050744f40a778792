//! Tests of a shared server that refuses a node: the log lines, and the access rules of
//! `docs/nodes.md`.

use std::process::Stdio;

use bhav::nodes::valkey::Address;
use sonic_rs::JsonValueTrait;

use crate::support::postgres;
use crate::support::{Program, Scene, SharedServer, TRADING, serve, until};

const PAGE: &str = include_str!("../../docs/nodes.md");

/// Starts a server on a port of its own, with only the user of `docs/nodes.md`.
fn start(test: &str, password: &str) -> Option<(SharedServer, Address)> {
    let rules = PAGE
        .lines()
        .find_map(|line| line.strip_prefix("user bhav "))
        .unwrap();
    let rules = rules.replace("PASSWORD", password);
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let port = port.to_string();
    let mut options = vec![
        "--port",
        &port,
        "--requirepass",
        "of nobody",
        "--user",
        "bhav",
    ];
    options.extend(rules.split(' '));
    let server = SharedServer::with(test, &options)?;
    Some((server, Address::parse(&format!("redis://bhav@127.0.0.1:{port}")).unwrap()))
}

/// Starts a program with that server and a database of its own. It logs to standard error.
fn program(scene: &Scene, url: &Address, password: &str) -> Option<Program> {
    let database = postgres::server()?;
    let mut command = serve(scene, scene.state.path());
    command
        .env("BHAV_STORE_URL", database.url(&database.fresh_role()))
        .env("BHAV_CACHE_URL", url.to_string())
        .env("BHAV_CACHE_PASSWORD", password)
        .env("BHAV_NODE", "a")
        .env("BHAV_LEASE_MS", "4000")
        .env("JWT_SECRET", "a key that all the nodes know, as they must")
        .stderr(Stdio::piped());
    Some(Program::of(&mut command))
}

#[test]
fn the_access_rules_of_the_page_are_enough() {
    let test = "the_access_rules_of_the_page_are_enough";
    let Some((_server, url)) = start(test, "sesame") else {
        return;
    };
    let scene = Scene::at(TRADING);
    let Some(program) = program(&scene, &url, "sesame") else {
        return;
    };
    until("a leader that tells", || {
        let health = program.client().get("/api/health").json();
        let is_well = health["role"] == "leader"
            && health["relay"]["state"] == "following"
            && health["cache_l2"]["errors"] == 0
            && health["warmers"]["persist"] == "ok"
            && health["shared_server"].is_null()
            && matches!(health["cache_l2"]["backend"].as_str(), Some("redis" | "valkey"));
        is_well.then_some(()).ok_or(health.to_string())
    });
}

#[test]
fn a_wrong_password_is_one_line_of_the_log() {
    let test = "a_wrong_password_is_one_line_of_the_log";
    let Some((_server, url)) = start(test, "sesame") else {
        return;
    };
    let scene = Scene::at(TRADING);
    let Some(mut program) = program(&scene, &url, "another-one") else {
        return;
    };
    until("its word", || {
        let health = program.client().get("/api/health").json();
        let told = health["shared_server"]["refused"][0].as_str() == Some(DENIED);
        told.then_some(()).ok_or(health.to_string())
    });
    // By then claim, relay and second level have all been refused.
    until("several tries", || {
        program.client().get("/api/health").json()["cache_l2"]["errors"].as_u64() >= Some(2)
    });
    program.terminate();
    program.exit();
    let mut log = String::new();
    std::io::Read::read_to_string(&mut program.child.stderr.take().unwrap(), &mut log).unwrap();
    let log = log + &program.said();
    assert_eq!(log.matches(DENIED).count(), 1, "{log}");
    let loud = |line: &&str| line.contains("WARN") && line.contains("WRONGPASS");
    assert_eq!(log.lines().filter(loud).count(), 0, "{log}");
    assert!(!log.contains("another-one") && !log.contains("sesame"), "{log}");
}

const DENIED: &str =
    "BHAV_CACHE_URL: the server refuses user bhav with the password of BHAV_CACHE_PASSWORD";
