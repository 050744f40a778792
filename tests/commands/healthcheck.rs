//! `bhav healthcheck`: one probe, one line, 0 or 1.

use crate::support::{
    Client, Program, Ran, SNAPSHOT, Scene, TRADING, bhav, few_candles, run, until,
};

/// Asks the listener at `admin`.
fn asked(admin: &str, more: &[&str]) -> Ran {
    run(bhav(&["healthcheck", &format!("--admin-listen={admin}")]).args(more))
}

#[track_caller]
fn expect(ran: &Ran, code: i32, line: &str) {
    let said = format!("{}{}", ran.out, ran.err);
    assert_eq!(ran.code, Some(code), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(line), "{line} is not in {said}");
}

/// A service with a listener for probes, and that listener's address.
fn probed(scene: &Scene, more: &[&str]) -> (Program, String) {
    let mut command = bhav(&[
        "serve",
        "--listen=127.0.0.1:0",
        "--admin-listen=127.0.0.1:0",
    ]);
    command
        .arg(few_candles())
        .args(scene.flags(scene.state.path()))
        .args(more);
    let program = Program::of(command.stderr(std::process::Stdio::null()));
    let lines = program.printed.lines();
    let mut urls = lines.filter_map(|line| line.strip_prefix("metrics on http://"));
    let admin = urls.next().unwrap().trim_end_matches("/metrics").to_owned();
    (program, admin)
}

#[test]
fn one_line_and_0_while_the_service_lives_and_1_once_it_is_gone() {
    let scene = Scene::at(TRADING);
    let (mut program, admin) = probed(&scene, &[]);
    let mut client = program.client();
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    expect(&asked(&admin, &[]), 0, "alive: ok");
    let ready =
        until("ready", || Some(asked(&admin, &["--ready"])).filter(|ran| ran.code == Some(0)));
    expect(&ready, 0, "ready: ");
    // The address may come from the environment, as in an image.
    let ran = run(bhav(&["healthcheck"]).env("BHAV_ADMIN_LISTEN", &admin));
    expect(&ran, 0, "alive: ok");
    program.ends();
    expect(&asked(&admin, &[]), 1, &admin);
}

#[test]
fn connections_that_somebody_leaves_open_make_no_service_unhealthy() {
    let scene = Scene::at(TRADING);
    let (_program, admin) = probed(&scene, &[]);
    let idle: Vec<_> = (0..64).map(|_| Client::connect(&admin)).collect();
    for _ in 0..3 {
        expect(&asked(&admin, &[]), 0, "alive: ok");
    }
    drop(idle);
}

#[test]
fn a_service_without_data_lives_and_is_not_ready() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let (_program, admin) = probed(&scene, &[]);
    expect(&asked(&admin, &[]), 0, "alive: ok");
    expect(&asked(&admin, &["--ready"]), 1, "not ready: starting; without snapshot");
}

/// Without the operator's listener the service's own is asked, wherever it listens.
#[test]
fn the_service_itself_is_asked_where_the_operators_listener_is_off() {
    let scene = Scene::at(TRADING);
    for listen in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"] {
        let state = tempfile::tempdir().unwrap();
        let mut command = bhav(&["serve", &format!("--listen={listen}"), "--admin-listen=off"]);
        command.arg(few_candles()).args(scene.flags(state.path()));
        let mut program = Program::of(command.stderr(std::process::Stdio::null()));
        let port = program
            .address
            .rsplit(':')
            .next()
            .unwrap_or_default()
            .to_owned();
        let (host, _) = listen.rsplit_once(':').unwrap();
        let at = format!("{host}:{port}");
        let probe = |more: &[&str]| {
            let listen = format!("--listen={at}");
            run(bhav(&["healthcheck", "--admin-listen=off", &listen]).args(more))
        };
        let said = probe(&[]);
        assert_eq!(said.code, Some(0), "{at}: {}{}", said.out, said.err);
        assert!(said.out.starts_with("alive: "), "{at}: {}", said.out);
        let ready = until("ready", || Some(probe(&["--ready"])).filter(|ran| ran.code == Some(0)));
        expect(&ready, 0, "ready: ");
        // As an image and a supervisor name it.
        let mut by_name = bhav(&["healthcheck"]);
        let ran = run(by_name
            .env("BHAV_ADMIN_LISTEN", "false")
            .env("BHAV_LISTEN", &at));
        expect(&ran, 0, "alive: ");
        program.ends();
        expect(&probe(&[]), 1, "/api/health: ");
    }
}

#[test]
fn a_service_at_a_socket_is_asked_there() {
    let scene = Scene::at(TRADING);
    let listen = format!("--listen=unix:{}", scene.state.path().join("bhav.sock").display());
    let state = tempfile::tempdir().unwrap();
    let mut command = bhav(&["serve", &listen, "--admin-listen=off"]);
    command.arg(few_candles()).args(scene.flags(state.path()));
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut service = command.spawn().unwrap();
    let probe = || run(&mut bhav(&["healthcheck", "--admin-listen=off", &listen]));
    let alive = until("an answer", || Some(probe()).filter(|ran| ran.code == Some(0)));
    service.kill().unwrap();
    service.wait().unwrap();
    expect(&alive, 0, "alive: ");
    expect(&probe(), 1, "/api/health: ");
}

#[test]
fn a_service_that_is_asked_itself_lives_without_data_and_is_not_ready() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let (program, _) = probed(&scene, &[]);
    let listen = format!("--listen={}", program.address);
    let ask = |more: &[&str]| run(bhav(&["healthcheck", "--admin-listen=off", &listen]).args(more));
    expect(&ask(&[]), 0, "alive: ");
    expect(&ask(&["--ready"]), 1, "without snapshot (503 of ");
    expect(
        &run(&mut bhav(&["healthcheck", "--admin-listen=off", "--listen=127.0.0.1:0"])),
        1,
        "only the service knows its port",
    );
}

#[test]
fn what_cannot_be_asked_is_1_with_the_reason() {
    expect(&asked("127.0.0.1:0", &[]), 1, "127.0.0.1:0 is no address");
    // Another program answers there: the service's own listener has no probes.
    let scene = Scene::at(TRADING);
    let (program, _) = probed(&scene, &[]);
    expect(&asked(&program.address, &[]), 1, "not alive: no answer of bhav (404 of ");
}
