//! The clients in `examples` against a running service: their output, and their end when the
//! service refuses them.

use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Output, Stdio};

use crate::support::source::root;
use crate::support::{Process, Scene, Service};

const PASSWORD: &str = "nine green parrots";

fn url(service: &Service) -> String {
    format!("http://{}", service.0.address())
}

/// The output of a client, which must have succeeded.
#[track_caller]
fn printed(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The Python client with these arguments; `None` if this machine has no Python.
fn python(args: &[&str]) -> Option<Output> {
    let mut command = Command::new("python3");
    command
        .arg(root().join("examples/client.py"))
        .args(args)
        .stdin(Stdio::null());
    command
        .env("CLIENT_PASSWORD", PASSWORD)
        .env("API_SECRET", "simsecreta");
    match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        output => Some(output.unwrap()),
    }
}

#[test]
fn the_python_client_polls_syncs_and_keeps_a_journal() {
    let (scene, service) = Scene::trading();
    service.fresh_snapshot();
    let (url, sim) = (url(&service), format!("http://{}", scene.sim.addr()));
    let account = [url.as_str(), "--email=python@example.com", "--register"];
    // Skipped without Python; `.ci/run` installs it.
    let Some(polled) = python(&["snapshot", &url, "--answers=3"]) else {
        return;
    };
    let polled = printed(&polled);
    assert!(polled.contains("+05:30 open  NIFTY 50 "), "{polled}");
    assert!(
        polled
            .trim_end()
            .ends_with("answers were 304: nothing had changed"),
        "{polled}"
    );

    let prices = printed(&python(&["prices", &url, "NSE:M&M", "NSE:NOSUCH"]).unwrap());
    assert!(prices.starts_with("NSE:M&M "), "{prices}");
    assert!(
        prices
            .lines()
            .any(|line| line.trim_end().ends_with("unavailable")),
        "{prices}"
    );
    let refused = python(&["prices", &url, "nonsense"]).unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.starts_with("400 symbol_malformed: "), "{said}");

    let app = ["--api-key=simkeya-1", &format!("--sim={sim}")];
    let held = printed(&python(&[&["portfolio"], &account[..], &app].concat()).unwrap());
    assert!(held.starts_with("synced 12 holdings, "), "{held}");
    assert!(
        held.contains("cost unknown") && held.contains("(1 holdings without a cost)"),
        "{held}"
    );
    // The client itself asserts its sum of the rows.
    assert!(held.trim_end().ends_with("(sync)"), "{held}");

    let journal = printed(&python(&[&["journal"], &account[..]].concat()).unwrap());
    let lines: Vec<&str> = journal.lines().collect();
    assert!(lines[0].starts_with("412: "), "{journal}");
    assert_eq!(lines[1..], ["2026-11-20 buy 10 NSE:INFY at 1764.9: bought at the open"]);
}

/// A client that keeps running, read line by line; `None` if this machine cannot run it.
struct Follower {
    lines: BufReader<ChildStdout>,
    _process: Process,
}

impl Follower {
    fn of(mut command: Command) -> Option<Self> {
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = match started {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            child => child.unwrap(),
        };
        let lines = BufReader::new(child.stdout.take().unwrap());
        Some(Self {
            lines,
            _process: Process { child },
        })
    }

    fn python(url: &str, answers: u32) -> Option<Self> {
        let mut command = Command::new("python3");
        command
            .arg(root().join("examples/client.py"))
            .args(["stream", url, "--answers"]);
        command.arg(answers.to_string()).stderr(Stdio::null());
        Self::of(command)
    }

    fn page(url: &str, answers: u32) -> Option<Self> {
        let mut command = Command::new("node");
        command.arg(root().join("tests/contract/page.mjs"));
        command
            .arg(root().join("examples/stream.js"))
            .args([url, &answers.to_string()]);
        Self::of(command)
    }

    /// The next line with a snapshot.
    #[track_caller]
    fn snapshot(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the client has ended");
            if line.contains("+05:30") {
                return line.trim_start_matches("shown ").to_owned();
            }
        }
    }

    /// Waits until the client ends.
    #[track_caller]
    fn ends(mut self) {
        let status = self._process.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

/// Both clients. Skipped without Python or node; `.ci/run` installs them.
fn followers(url: &str, answers: u32) -> Vec<Follower> {
    [Follower::python(url, answers), Follower::page(url, answers)]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn followers_of_the_stream_go_on_after_a_restart_and_never_go_back() {
    let (scene, service) = Scene::trading();
    service.fresh_snapshot();
    let mut followers = followers(&url(&service), 4);
    let mut seen: Vec<Vec<String>> = followers
        .iter_mut()
        .map(|one| vec![one.snapshot(), one.snapshot()])
        .collect();
    let mut config = scene.config();
    config.http.listen = service.0.address().into();
    service.stop();
    let _service = scene.start_with(&config);
    for (one, seen) in followers.iter_mut().zip(&mut seen) {
        seen.extend([one.snapshot(), one.snapshot()]);
        let times: Vec<&str> = seen
            .iter()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert!(times.is_sorted(), "{times:?}");
    }
    followers.into_iter().for_each(Follower::ends);
}

#[test]
fn followers_poll_where_streams_are_refused() {
    let (_scene, service) = Scene::trading_with(|config| config.http.streams_max = 0);
    service.fresh_snapshot();
    let mut followers = followers(&url(&service), 2);
    for one in &mut followers {
        one.snapshot();
    }
    let refused = service.0.server().shared().streams.stats.refused.value();
    assert!(refused >= followers.len() as u64, "{refused}");
    followers.into_iter().for_each(Follower::ends);
}

/// Builds the example if needed, and returns the program: `cargo test --test main` does not build
/// it.
fn dashboard() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile: &Path = test.ancestors().nth(2).unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args([
        "build",
        "--quiet",
        "--locked",
        "--offline",
        "--example",
        "dashboard",
    ]);
    build
        .arg("--target-dir")
        .arg(profile.parent().unwrap())
        .current_dir(root());
    if profile.ends_with("release") {
        build.arg("--release");
    }
    // Set by `.ci/timed`, and by cargo for this test. The compiler looks at the first and build
    // scripts of dependencies at the others, so that most would be compiled anew, here and by the
    // next command outside.
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
        let is_of_the_test = ["CARGO_PKG_", "CARGO_MANIFEST_", "RUSTC_BOOTSTRAP"];
        if is_of_the_test.iter().any(|prefix| name.starts_with(prefix)) {
            build.env_remove(name);
        }
    }
    printed(&build.stdin(Stdio::null()).output().unwrap());
    profile.join("examples/dashboard")
}

#[test]
fn the_dashboard_in_rust_polls_and_gets_304() {
    let (scene, service) = Scene::trading();
    service.fresh_snapshot();
    // Without feeds nothing changes, so all answers but the first are 304.
    scene.refuse_all();
    service.snapshot_where("old prices", |json| json["market"]["stale"] == true);
    let run = |url: &str, answers: &str| {
        Command::new(dashboard())
            .args([url, answers])
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let polled = printed(&run(&url(&service), "3"));
    let lines: Vec<&str> = polled.lines().collect();
    assert!(lines[0].ends_with("+05:30 open OLD simulated"), "{polled}");
    assert!(lines[1].trim_start().starts_with("NIFTY 50 "), "{polled}");
    assert_eq!(lines[2..], ["2 answers were 304: nothing had changed"]);
    let nowhere = run("http://127.0.0.1:1", "1");
    assert_eq!(nowhere.status.code(), Some(1), "{}", String::from_utf8_lossy(&nowhere.stderr));
}
