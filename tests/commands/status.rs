//! `bhav status`: exit codes, the screen, the JSON, and the text of each trouble.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;

use crate::commands::expect_screen;
use crate::support::wait::at_once;
use crate::support::{Ran, Scene, Service, TRADING, bhav, run, state_flag, until};
use socket2::{Domain, SockAddr, Socket, Type};
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

fn status(service: &Service, scene: &Scene, more: &[&str]) -> Ran {
    let url = match service.0.address() {
        unix if unix.starts_with("unix:") => unix.to_owned(),
        address => format!("http://{address}"),
    };
    let state = state_flag(scene.state.path());
    let now = format!("--now={TRADING}");
    let args = ["status", &format!("--url={url}"), &state, &now];
    run(bhav(&args).args(more).env("BROKERA_API_KEY", "simkeya"))
}

fn json(ran: &Ran) -> Value {
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    sonic_rs::from_str(&ran.out).unwrap()
}

fn names(json: &Value) -> Vec<String> {
    let troubles = json["troubles"].as_array().unwrap();
    troubles
        .iter()
        .map(|trouble| trouble["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The first status for which `holds` is true.
fn status_where(
    what: &str,
    service: &Service,
    scene: &Scene,
    holds: impl Fn(&Value) -> bool,
) -> (Ran, Value) {
    until(what, || {
        let ran = status(service, scene, &["--json"]);
        let json = json(&ran);
        holds(&json).then_some((ran, json))
    })
}

#[test]
fn a_good_service_is_ok_and_exits_0() {
    let (scene, service) = Scene::trading();
    service.await_instruments();
    let (ran, json) = status_where("ok", &service, &scene, |json| json["status"] == "ok");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(json["service"]["feeds"]["broker_a"]["state"], "ok");
    assert_eq!(json["service"]["market"]["phase"], "open");
    assert_eq!(json["service"]["market"]["next_transition_ist"], "2026-11-20T15:15:00+05:30");
    assert_eq!(json["service"]["tokens"][0]["state"], "valid");
    let left_s = json["service"]["tokens"][0]["left_s"].as_i64().unwrap();
    assert!((68_000..=68_400).contains(&left_s), "{left_s}");
    assert_eq!(names(&json), ["clock_set"], "the scene has a clock of its own");

    let ran = status(&service, &scene, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    expect_screen(&ran.out);
    for part in [
        "bhav is ok, version ",
        "market    open; ",
        "broker A  ok; asked ",
        "token a   valid; 1",
    ] {
        assert!(ran.out.contains(part), "{part} is not in\n{}", ran.out);
    }
    assert!(!ran.out.contains("simtokena") && !ran.out.contains("simkeya"), "{}", ran.out);
}

#[test]
fn how_prices_come_is_said_beside_the_feed() {
    for (fault, state, part) in [
        (None, "speaking", "; live by ticker"),
        (Some("expired_token"), "refused", "; by calls, ticker: refused (403)"),
    ] {
        let scene = Scene::at(TRADING);
        if let Some(kind) = fault {
            scene.fault("broker_a.ticker", &format!(r#"{{"kind":"{kind}"}}"#));
        }
        let mut config = scene.config();
        config.broker_a.ticker_url = scene.sim.broker_a_ticker_url();
        let service = scene.start_with(&config);
        status_where(state, &service, &scene, |json| {
            let feed = &json["service"]["feeds"]["broker_a"];
            let (ticker, live) = (&feed["ticker"], fault.is_none());
            // The ticker may be connected before the first call is answered.
            feed["state"] == "ok" && ticker["state"] == state && ticker["live"] == live
        });
        let ran = status(&service, &scene, &[]);
        expect_screen(&ran.out);
        let line = ran
            .out
            .lines()
            .find(|line| line.starts_with("broker A"))
            .unwrap();
        assert!(line.ends_with(part), "{line}");
    }
}

#[test]
fn over_a_unix_socket_it_is_the_same() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.http.listen = format!("unix:{}", scene.state.path().join("s").display());
    let service = scene.start_with(&config);
    let (ran, json) =
        status_where("an answer", &service, &scene, |json| json["service"].is_object());
    assert!(matches!(ran.code, Some(0..=2)), "{}", ran.err);
    assert_eq!(json["url"].as_str(), Some(config.http.listen.as_str()));
    // The address comes from the settings, without --url.
    let ran = run(&mut bhav(&["status", "--listen", &config.http.listen]));
    assert!(ran.out.contains("bhav is ") && ran.out.contains("broker A"), "{}", ran.out);
}

#[test]
fn a_dead_token_is_named_with_the_link_and_the_command() {
    let (scene, service) = Scene::trading();
    service.fresh_snapshot();
    assert_eq!(scene.control("POST", "broker_a/expire", "").status, 200);
    let (ran, json) = status_where("a dead token", &service, &scene, |json| {
        // At first by the token's own status; then the service has seen it too.
        let is_dead = names(json)[0] == "broker_a_token_dead";
        json["status"] == "degraded" && is_dead && json["troubles"][0]["since_ist"].is_str()
    });
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    let trouble = &json["troubles"][0];
    let link = "https://kite.zerodha.com/connect/login?v=3&api_key=simkeya";
    assert_eq!(trouble["login_url"], link);
    assert_eq!(trouble["severity"], "degraded");
    assert_eq!(trouble["command"], "bhav token a");
    // The service says the same, but for the link, which has the operator's key.
    let health = service.health();
    let told = &health["troubles"][0];
    for member in ["name", "severity", "cause", "cure", "command", "since_ist"] {
        assert!(told[member].is_str() && told[member] == trouble[member], "{member}: {told}");
    }
    assert!(!health.to_string().contains("simkeya"), "{health}");
    let day = &health["day"];
    let last = |part: &str| day[part].as_str().unwrap().chars().last();
    assert_eq!((last("broker_a"), last("database")), (Some('x'), Some('o')), "{day}");
    let ran = status(&service, &scene, &[]);
    assert_eq!(ran.code, Some(1));
    expect_screen(&ran.out);
    for part in [
        "bhav is degraded",
        "! Broker A's token is dead",
        "run: bhav token a",
        link,
    ] {
        assert!(ran.out.contains(part), "{part} is not in\n{}", ran.out);
    }
}

#[test]
fn two_dead_feeds_and_a_damaged_database_are_all_named() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let path = scene.state.path().join(bhav::store::FILE_NAME);
    std::fs::write(path, b"no database at all".repeat(400)).unwrap();
    let service = scene.start();
    let (ran, json) = status_where("down", &service, &scene, |json| {
        let names = names(json);
        json["status"] == "down"
            && names.iter().any(|name| name == "feeds_dead")
            && names.iter().any(|name| name == "store_corrupt")
    });
    assert_eq!(ran.code, Some(2));
    assert_eq!(json["service"]["store"]["state"], "corrupt");
    let ran = status(&service, &scene, &[]);
    assert_eq!(ran.code, Some(2));
    expect_screen(&ran.out);
    assert!(ran.out.contains("bhav restore BACKUP"), "{}", ran.out);
}

#[test]
fn a_service_that_is_not_there_is_down_and_how_to_start_it_is_said() {
    let state = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("--url=http://{}", free.local_addr().unwrap());
    drop(free);
    let ran = run(&mut bhav(&["status", &url, &state_flag(state.path())]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), ""));
    expect_screen(&ran.out);
    for part in ["bhav is down", "not running", "systemctl start bhav"] {
        assert!(ran.out.contains(part), "{part} is not in\n{}", ran.out);
    }
    // An instance uses the state, but the command asks at the wrong address.
    let (scene, _service) = Scene::trading();
    let state = state_flag(scene.state.path());
    let ran = run(&mut bhav(&["status", "--json", &url, &state]));
    assert_eq!((ran.code, names(&json(&ran))), (Some(2), vec!["silent".to_owned()]));
}

#[test]
fn another_program_on_the_port_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("--url=http://{}", listener.local_addr().unwrap());
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
            stream.write_all(answer.as_bytes()).unwrap();
            // Waits until the other side has finished; otherwise a reset could lose the answer.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        run(&mut bhav(&["status", "--json", &url]))
    });
    assert_eq!((ran.code, names(&json(&ran))), (Some(2), vec!["not_ours".to_owned()]));
}

#[test]
fn wrong_ways_to_ask_exit_64() {
    for args in [
        &["status", "--url=ftp://h"][..],
        &["status", "--listen=127.0.0.1:0"],
        &["status", "--env-file=no/such/file"],
        &["status", "extra"],
    ] {
        let ran = run(&mut bhav(args));
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{args:?}");
        assert!(!ran.err.is_empty(), "{args:?}");
    }
}

#[test]
fn the_units_own_settings_are_found_in_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bhav.env");
    std::fs::write(&file, "# comment\nBHAV_LISTEN=unix:nowhere\n").unwrap();
    let ran = run(&mut bhav(&["status", "--env-file", file.to_str().unwrap()]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.contains("(unix:nowhere)"), "{}", ran.out);
}

/// The kernel accepts the connection, but no process does. Then the operator's listener decides,
/// whoever runs the command.
#[test]
fn silence_is_never_taken_for_a_service_that_is_not_there() {
    let crowded = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = crowded.local_addr().unwrap().to_string();
    // A user who may not read the lock does not know of an instance.
    let state = tempfile::tempdir().unwrap();
    let asked = |admin: &str| {
        let ran = run(bhav(&["status", "--json", &state_flag(state.path())])
            .env("BHAV_LISTEN", &listen)
            .env("BHAV_ADMIN_LISTEN", admin));
        assert_eq!(ran.code, Some(2), "{}", ran.out);
        names(&json(&ran))
    };
    let (_scene, service) = Scene::trading_on(Scene::watched);
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let hangs = hanging.local_addr().unwrap().to_string();
    let cases = [
        ("off", "unreachable"),
        (service.0.admin().unwrap().address(), "connections_all_taken"),
        (&*hangs, "hangs"),
    ];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = hanging.accept().unwrap();
            let answer = "HTTP/1.1 503 x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
            stream.write_all(answer.as_bytes()).unwrap();
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        at_once(cases, |(admin, trouble)| assert_eq!(asked(admin), [trouble]));
    });
}

/// On a Unix socket a full backlog keeps even `connect` waiting.
#[test]
fn a_unix_socket_that_nobody_serves_ends_the_wait_too() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("s");
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    socket.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    socket.listen(0).unwrap();
    // The kernel accepts one more than the backlog.
    let _first = UnixStream::connect(&path).unwrap();
    let listen = format!("--listen=unix:{}", path.display());
    let ran = run(bhav(&["status", "--json", &listen, &state_flag(state.path())])
        .env("BHAV_ADMIN_LISTEN", "off"));
    assert_eq!((ran.code, names(&json(&ran))), (Some(2), vec!["unreachable".to_owned()]));
}
