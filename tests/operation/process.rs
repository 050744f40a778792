//! The real program: its output, its end, and a second instance's output.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{
    Client, Program, SNAPSHOT, Scene, TRADING, bhav, by_shell, refused, run, serve, state_flag,
    until,
};
use bhav::base::Clock;
use sonic_rs::JsonValueTrait;

#[test]
fn demo_says_what_to_try_and_it_works() {
    let state = tempfile::tempdir().unwrap();
    let program = Program::demo(state.path());
    let url = format!("http://{}", program.address);
    for part in [
        "bhav demo: a simulated exchange day",
        "the clock reads 2026-11-20T11:00:0",
        // Another address than the service's, since a browser sends a cookie to every port of its
        // host.
        "simulator on http://127.0.0.2:",
        &format!("{url}/api/index/snapshot"),
        &format!("{url}/api/portfolio/live-prices?symbols="),
        &format!("{url}/api/health"),
        &format!("{url}/brokera/status"),
        "not investment advice",
    ] {
        assert!(program.printed.contains(part), "{part} is missing from:\n{}", program.printed);
    }
    let mut client = program.client();
    for target in program
        .printed
        .split('\'')
        .filter_map(|text| text.strip_prefix(&*url))
    {
        until(target, || (client.get(target).status == 200).then_some(()));
    }
    let json = until("fresh", || {
        Some(client.get(SNAPSHOT).json()).filter(|json| json["market"]["stale"] == false)
    });
    assert!(json["market"]["simulated"] == true && json["market"]["phase"] == "open");
}

#[test]
fn the_log_names_a_failed_request_by_the_id_that_its_client_has() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let mut command = serve(&scene, scene.state.path());
    let mut program = Program::of(command.stderr(Stdio::piped()));
    let mut client = program.client();
    client
        .request("GET", SNAPSHOT, "X-Request-Id: probe-7\r\n")
        .expect_problem(503, "snapshot_not_ready");
    let made = client
        .get(SNAPSHOT)
        .header("x-request-id")
        .unwrap()
        .to_owned();
    program.terminate();
    let mut log = String::new();
    program
        .child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut log)
        .unwrap();
    assert_eq!(program.exit().code(), Some(0), "{log}");
    for id in ["probe-7", &made] {
        let lines = log
            .lines()
            .filter(|line| line.contains(&format!("request_id={id}")));
        assert_eq!(lines.count(), 1, "{id} in\n{log}");
    }
}

/// Refused requests in a flood. The log has a burst of lines, then a few a second.
const FLOOD: usize = 2_000;
/// Longest time until the log has reported the flood.
const LOG_MS_MAX: u64 = 120_000;

/// A service without data, whose log is read line by line.
struct Flooded {
    program: Program,
    log: std::sync::mpsc::Receiver<String>,
    reader: std::thread::JoinHandle<()>,
    clock: Clock,
}

impl Flooded {
    fn start(scene: &Scene) -> Self {
        scene.refuse_all();
        let mut command = bhav(&[
            "serve",
            "--admin-listen=127.0.0.1:0",
            "--listen=127.0.0.1:0",
            &format!("--state-dir={}", scene.state.path().display()),
            &format!("--brokera-url={}", scene.sim.broker_a_url()),
            &format!("--public-url={}", scene.sim.public_url()),
            &format!("--now={TRADING}"),
        ]);
        let mut program = Program::of(command.stderr(Stdio::piped()));
        let stderr = program.child.stderr.take().unwrap();
        let (lines, log) = std::sync::mpsc::channel();
        let reader = bhav::rt::threads::spawn("reads-log", move || {
            let whole = BufReader::new(stderr).lines().map_while(Result::ok);
            whole.for_each(|line| drop(lines.send(line)));
        });
        Self {
            program,
            log,
            reader: reader.unwrap(),
            clock: Clock::system(),
        }
    }

    /// Sends the flood, and checks the number of log lines about it and the summary after it.
    /// `ended` sends further requests to be logged, and returns a part of their line.
    fn check_log_of_flood(self, client: &mut Client, ended: impl FnOnce(&mut Client) -> String) {
        let started_ms = self.clock.monotonic_ms();
        let path = format!("/{}", "x".repeat(6_000));
        for _ in 0..FLOOD {
            client.get(&path).expect_problem(404, "not_found");
        }
        let last = ended(client);
        let mut seen = Vec::new();
        let (mut summary, mut failed) = (None, false);
        while summary.is_none() || !failed {
            // Other lines keep coming, so all waits end at the same moment.
            let left_ms = (started_ms + LOG_MS_MAX).saturating_sub(self.clock.monotonic_ms());
            let line = self
                .log
                .recv_timeout(Duration::from_millis(left_ms))
                .unwrap();
            failed |= line.contains(&last);
            if line.contains("refused requests not logged one by one") {
                summary = Some(line);
            } else {
                seen.push(line);
            }
        }
        let summary = summary.unwrap();
        let elapsed_s = ((self.clock.monotonic_ms() - started_ms) / 1_000) as usize + 1;
        let named = summary.contains("codes=\"not_found=") || summary.contains("codes=not_found=");
        assert!(named, "{summary}");
        let refused: Vec<&String> = seen.iter().filter(|line| line.contains("404")).collect();
        assert!((200..=200 + 20 * elapsed_s).contains(&refused.len()), "{}", refused.len());
        assert!(refused.iter().all(|line| line.len() < 600), "{}", refused[0]);
        let mut program = self.program;
        program.ends();
        self.reader.join().unwrap();
    }
}

#[test]
fn a_flood_of_refusals_does_not_fill_the_log() {
    let service = Flooded::start(&Scene::at(TRADING));
    let mut client = service.program.client();
    // A failure on our side is logged nevertheless.
    service.check_log_of_flood(&mut client, |client| {
        client
            .get(SNAPSHOT)
            .header("x-request-id")
            .unwrap()
            .to_owned()
    });
}

#[test]
fn a_flood_of_refusals_at_the_operators_listener_does_not_fill_the_log() {
    let service = Flooded::start(&Scene::at(TRADING));
    let lines = service.program.printed.lines();
    let mut urls = lines.filter_map(|line| line.strip_prefix("metrics on http://"));
    let address = urls.next().unwrap().trim_end_matches("/metrics").to_owned();
    let mut client = Client::connect(&address);
    service.check_log_of_flood(&mut client, |_| "not logged one by one".to_owned());
}

#[test]
fn sigterm_loses_no_answer_and_exits_0() {
    let state = tempfile::tempdir().unwrap();
    let mut program = Program::demo(state.path());
    let address = program.address.clone();
    let mut first = Client::connect(&address);
    until("data", || (first.get(SNAPSHOT).status == 200).then_some(()));
    let (answered, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    // Connected before any is at work: a late one would find nobody listening.
    let clients: Vec<Client> = (0..4).map(|_| Client::connect(&address)).collect();
    let status = std::thread::scope(|scope| {
        for mut client in clients {
            let (answered, ended) = (&answered, &ended);
            scope.spawn(move || {
                // Every request is answered, and the last answer announces the end.
                loop {
                    let answer = client.get(SNAPSHOT);
                    assert_eq!(answer.status, 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                    if answer.header("connection") == Some("close") {
                        ended.store(true, Ordering::Relaxed);
                        return;
                    }
                }
            });
        }
        until("clients at work", || (answered.load(Ordering::Relaxed) > 200).then_some(()));
        program.terminate();
        program.exit()
    });
    assert!(ended.load(Ordering::Relaxed));
    assert_eq!(status.code(), Some(0));
}

#[test]
fn core_files_are_off_unless_asked_for() {
    let limit = |program: &Program| {
        let limits = format!("/proc/{}/limits", program.child.id());
        let limits = std::fs::read_to_string(limits).unwrap();
        let line = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"))
            .unwrap();
        line.split_whitespace()
            .skip(4)
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let state = tempfile::tempdir().unwrap();
    assert_eq!(limit(&Program::demo(state.path())), ["0", "0"]);
    let listen = "--listen=127.0.0.1:0";
    let other = tempfile::tempdir().unwrap();
    let other = format!("--state-dir={}", other.path().display());
    let open = Program::start(&["demo", listen, &other, "--debuggable=true"]);
    let own = std::fs::read_to_string("/proc/self/limits").unwrap();
    let own = own
        .lines()
        .find(|line| line.starts_with("Max core file size"))
        .unwrap();
    let own: Vec<_> = own
        .split_whitespace()
        .skip(4)
        .take(2)
        .map(str::to_owned)
        .collect();
    assert_eq!(limit(&open), own);
}

#[test]
fn a_second_instance_on_the_port_says_so_and_exits_69() {
    let (state, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let program = Program::demo(state.path());
    let (code, said) = refused(&[
        &format!("--listen={}", program.address),
        &format!("--state-dir={}", other.path().join("untouched").display()),
    ]);
    assert_eq!(code, Some(69), "{said}");
    assert!(said.contains(&program.address) && said.contains("in use"), "{said}");
    assert!(!other.path().join("untouched").exists(), "it touched the state first");
    let mut client = program.client();
    assert!(client.get("/brokera/status").status == 200, "the first one goes on");
}

#[test]
fn a_second_instance_on_the_state_says_so_and_exits_69() {
    let state = tempfile::tempdir().unwrap();
    let program = Program::demo(state.path());
    let held = format!("--state-dir={}", state.path().join("demo").display());
    let (code, said) = refused(&["--listen=127.0.0.1:0", &held]);
    assert_eq!(code, Some(69), "{said}");
    assert!(said.contains("in use by another instance"), "{said}");
    let mut client = program.client();
    assert_eq!(client.get("/brokera/status").status, 200, "the first one goes on");
}

/// The default address of the metrics.
const ADMIN: &str = "127.0.0.1:9464";

#[test]
fn metrics_at_their_default_address_are_no_reason_not_to_start_and_at_a_named_one_are() {
    // From here on the port is taken, by this test or by another program.
    let _taken = TcpListener::bind(ADMIN);
    let scene = Scene::at(TRADING);
    let mut command = serve(&scene, scene.state.path());
    let program = Program::of(
        command
            .env_remove("BHAV_ADMIN_LISTEN")
            .stderr(Stdio::piped()),
    );
    let said = format!("no metrics: {ADMIN} is in use");
    assert!(program.printed.contains(&said), "{}", program.printed);
    let mut client = program.client();
    let failure = until("health to tell", || {
        let health = client.get("/api/health").json();
        health["admin_listener"]["failure"]
            .as_str()
            .map(str::to_owned)
    });
    assert!(failure.starts_with(&format!("{ADMIN} is in use")), "{failure}");
    // A note for the operator. The service does not count as degraded.
    let screen = until("a good status", || {
        let state = state_flag(scene.state.path());
        let url = format!("--url=http://{}", program.address);
        let ran = run(&mut bhav(&["status", &url, &state]));
        (ran.code == Some(0)).then_some(ran.out)
    });
    let note = format!("Metrics and probes are not served: {ADMIN} is in use");
    assert!(screen.contains(&note) && screen.contains("BHAV_ADMIN_LISTEN"), "{screen}");
    program.terminate();
    let mut program = program;
    let mut log = String::new();
    program
        .child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut log)
        .unwrap();
    assert_eq!(program.exit().code(), Some(0), "{log}");
    let warning = log
        .lines()
        .find(|line| line.contains("no metrics"))
        .unwrap();
    assert!(warning.contains("level=warn") && warning.contains(ADMIN), "{warning}");

    // Naming an address, even the default one, makes it required.
    let other = scene.state.path().join("other");
    let mut command = serve(&scene, &other);
    let refused = run(command
        .env("BHAV_ADMIN_LISTEN", ADMIN)
        .stderr(Stdio::piped()))
    .with_code(69);
    assert!(refused.err.contains("BHAV_ADMIN_LISTEN"), "{}", refused.err);
    assert!(!other.exists(), "it touched the state first");
}

#[test]
fn two_instances_with_an_address_and_a_state_of_their_own_run_side_by_side() {
    let scene = Scene::at(TRADING);
    let start = |name: &str| {
        let mut command = serve(&scene, &scene.state.path().join(name));
        Program::of(command.env_remove("BHAV_ADMIN_LISTEN"))
    };
    let programs = [start("one"), start("two")];
    for program in &programs {
        let mut client = program.client();
        until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    }
    for mut program in programs {
        program.ends();
    }
}

/// The limit is checked before any thread starts, whichever would have failed.
#[test]
fn a_limit_on_address_space_that_is_too_low_is_told_as_that() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path().join("untouched");
    for mib in [64, 128, 256, 640] {
        let script = format!("ulimit -v {}; exec \"$0\" \"$@\"", mib * 1_024);
        let mut command = by_shell(&script);
        let ran = run(command.args(["serve", "--listen=127.0.0.1:0", &state_flag(&state)]));
        let said = ran.err;
        assert_eq!(ran.code, Some(64), "{mib} MiB: {said}");
        let words = format!("the limit on address space (RLIMIT_AS; ulimit -v, LimitAS=) is {mib}");
        assert!(said.contains(&words) && said.contains("raise or remove it"), "{said}");
        assert!(!state.exists());
    }
}

#[test]
fn a_file_in_the_place_of_the_socket_is_left_alone() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("notes");
    std::fs::write(&file, "mine").unwrap();
    let (code, said) = refused(&[&format!("--listen=unix:{}", file.display())]);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("is not a socket"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}
