//! The token of the day over a restart: what the real program has its supervisor keep, and what the
//! next process makes of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bhav::base::Broker;
use bhav::brokers::kept::KeptToken;
use bhav::ops::memory_file;
use rustix::fs::{SealFlags, fcntl_get_seals};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use secrecy::ExposeSecret;
use sonic_rs::Value;

use super::support::{Client, SNAPSHOT, Scene, TRADING, until};

const A: &str = "broker-a-token";
const B: &str = "broker-b-token";
const STATUS_A: &str = "/brokera/status";
const STATUS_B: &str = "/brokerb/status";
/// Both apps of the simulator, and nobody logged in.
const APPS: &[(&str, &str)] = &[
    ("BROKERA_API_KEY", "simkeya"),
    ("BROKERA_API_SECRET", "simsecreta"),
    ("BROKERB_API_KEY", "sim+key=b&1"),
    ("BROKERB_API_SECRET", "simsecretb"),
];

/// What a service manager does for the unit: it holds the listening socket, keeps files that it is
/// given, and passes all of it to each process.
struct Supervisor {
    scene: Scene,
    listener: TcpListener,
    address: String,
    notify: UnixDatagram,
    kept: BTreeMap<String, OwnedFd>,
    /// Every word about keeping, in order.
    heard: Vec<String>,
    /// Whether the socket comes before what is kept.
    socket_first: bool,
    starts: usize,
}

impl Supervisor {
    fn new() -> Self {
        let scene = Scene::at(TRADING);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let notify = UnixDatagram::bind(scene.state.path().join("notify")).unwrap();
        notify.set_nonblocking(true).unwrap();
        let (kept, heard) = (BTreeMap::new(), Vec::new());
        Self { scene, listener, address, notify, kept, heard, socket_first: true, starts: 0 }
    }

    /// Starts the next process with these settings. It has at most three descriptors to pass, which
    /// reach the shell as its standard ones.
    fn start(&mut self, settings: &[(&str, &str)]) -> Running {
        let socket = ("bhav.socket".to_owned(), OwnedFd::from(self.listener.try_clone().unwrap()));
        let kept = self.kept.iter().map(|(name, file)| (name.clone(), file.try_clone().unwrap()));
        let mut passed: Vec<_> = kept.collect();
        passed.insert(if self.socket_first { 0 } else { passed.len() }, socket);
        self.starts += 1;
        let output = self.scene.state.path().join(format!("output-{}", self.starts));
        let names: Vec<_> = passed.iter().map(|(name, _)| name.as_str()).collect();
        let moved: String = (0..passed.len()).map(|at| format!("{}<&{at} ", at + 3)).collect();
        let script = format!(
            "LISTEN_PID=$$ LISTEN_FDS={} LISTEN_FDNAMES={} exec \"$0\" \"$@\" {moved} \
             </dev/null >'{}' 2>&1",
            passed.len(),
            names.join(":"),
            output.display()
        );
        let mut command = self.command(&script, settings);
        let mut passed = passed.into_iter().map(|(_, descriptor)| Stdio::from(descriptor));
        command.stdin(passed.next().unwrap());
        command.stdout(passed.next().unwrap_or_else(Stdio::null));
        command.stderr(passed.next().unwrap_or_else(Stdio::null));
        assert!(passed.next().is_none());
        Running(command.spawn().unwrap())
    }

    fn command(&self, script: &str, settings: &[(&str, &str)]) -> Command {
        let scene = &self.scene;
        let mut command = Command::new("sh");
        command
            .args(["-c", script, env!("CARGO_BIN_EXE_bhav"), "serve"])
            .arg("--admin-listen=off")
            .arg(format!("--state-dir={}", scene.state.path().join("state").display()))
            .arg(format!("--brokera-url={}", scene.sim.broker_a_url()))
            .arg(format!("--brokerb-url={}", scene.sim.broker_b_url()))
            .arg(format!("--public-url={}", scene.sim.public_url()))
            .arg(format!("--now={TRADING}"))
            .env_clear()
            .envs(settings.iter().copied())
            .env("NOTIFY_SOCKET", scene.state.path().join("notify"));
        command
    }

    /// Does what it was told meanwhile.
    fn hear(&mut self) {
        loop {
            let mut bytes = [0; 1024];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let Ok(message) = recvmsg(&self.notify, &mut parts, &mut ancillary, flags) else {
                return;
            };
            let said = String::from_utf8(bytes[..message.bytes].to_vec()).unwrap();
            let files: Vec<OwnedFd> = ancillary
                .drain()
                .flat_map(|part| match part {
                    RecvAncillaryMessage::ScmRights(files) => files.collect(),
                    _ => Vec::new(),
                })
                .collect();
            self.obey(&said, files);
        }
    }

    fn obey(&mut self, said: &str, files: Vec<OwnedFd>) {
        let value = |key: &str| said.lines().find_map(|line| line.strip_prefix(key));
        let (Some(name), count) = (value("FDNAME="), files.len()) else {
            assert!(files.is_empty(), "{said}");
            return;
        };
        if value("FDSTORE=") == Some("1") {
            assert_eq!((count, value("FDPOLL=")), (1, Some("0")), "{said}");
            let file = files.into_iter().next().unwrap();
            assert!(self.kept.insert(name.to_owned(), file).is_none(), "one at a time");
            self.heard.push(format!("keep {name}"));
        } else {
            assert_eq!((count, value("FDSTOREREMOVE=")), (0, Some("1")), "{said}");
            self.kept.remove(name);
            self.heard.push(format!("forget {name}"));
        }
    }

    /// Waits until exactly these are kept.
    fn until_kept(&mut self, names: &[&str]) {
        until(&format!("{names:?} kept"), || {
            self.hear();
            self.kept.keys().map(String::as_str).eq(names.iter().copied()).then_some(())
        });
    }

    /// What is kept under a name.
    fn document(&self, name: &str) -> KeptToken {
        let file = self.kept[name].try_clone().unwrap();
        KeptToken::decode(&memory_file::read(file, 16 * 1024).unwrap()).unwrap()
    }

    fn client(&self) -> Client {
        Client::connect(&self.address)
    }

    fn json(&self, target: &str) -> Value {
        self.client().get(target).json()
    }

    fn activate_a(&self) -> Value {
        let code = self.scene.request_token();
        let body = format!("{{\"request_token\":\"{code}\"}}");
        let answer = until("room at broker A", || {
            let answer = self.client().send_json("POST", "/brokera/activate", "", &body);
            (answer.status != 429).then_some(answer)
        });
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    fn activate_b(&self) -> Value {
        let body = format!("{{\"api_session\":\"{}\"}}", self.scene.api_session());
        let answer = self.client().send_json("POST", "/brokerb/activate", "", &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    fn until_prices_of(&self, source: &str) {
        let mut client = self.client();
        until(source, || {
            let answer = client.get(SNAPSHOT);
            (answer.status == 200)
                .then(|| answer.json())
                .filter(|json| json["market"]["source"] == source)
                .filter(|json| json["market"]["stale"] == false)
        });
    }

    /// What the newest process printed and logged.
    fn output(&self) -> String {
        let path = self.scene.state.path().join(format!("output-{}", self.starts));
        std::fs::read_to_string(path).unwrap()
    }

    /// Stops the process as `systemctl restart` does; what it says at the end counts.
    fn stop(&mut self, running: &mut Running) {
        let kill = format!("kill -TERM {}", running.0.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let status = until("its end", || running.0.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{}", self.output());
        self.hear();
    }

    /// No file anywhere below the scene's folder has it: neither state nor output.
    fn nowhere_on_disk(&self, secret: &str) {
        let mut folders = vec![self.scene.state.path().to_owned()];
        let mut looked_at = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    looked_at += 1;
                    assert!(!has(&entry.path(), secret), "{:?} has it", entry.path());
                }
            }
        }
        assert!(looked_at >= 3, "databases and output, not {looked_at}");
    }
}

fn has(path: &Path, secret: &str) -> bool {
    let bytes = std::fs::read(path).unwrap();
    memchr::memmem::find(&bytes, secret.as_bytes()).is_some()
}

/// A process that does not outlive the test.
struct Running(Child);

impl Running {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already, most times.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn both_tokens_outlive_restarts_and_a_crash_and_no_file_has_them() {
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(APPS);
    assert_eq!(supervisor.json(STATUS_A)["initialized"], false);
    let (a, b) = (supervisor.activate_a(), supervisor.activate_b());
    supervisor.until_kept(&[A, B]);
    for name in [A, B] {
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        assert!(fcntl_get_seals(&supervisor.kept[name]).unwrap().contains(seals));
    }
    let (kept_a, kept_b) = (supervisor.document(A), supervisor.document(B));
    assert_eq!((kept_a.broker, kept_b.broker), (Broker::A, Broker::B));
    assert!(kept_a.settings_token.is_none() && kept_b.settings_token.is_none());
    for (socket_first, crash) in [(true, false), (false, true), (false, false)] {
        if crash {
            running.kill();
            supervisor.hear();
        } else {
            supervisor.stop(&mut running);
        }
        supervisor.socket_first = socket_first;
        supervisor.heard.clear();
        running = supervisor.start(APPS);
        // With the very first answers, to the nanosecond of their first setting.
        assert_eq!(supervisor.json(STATUS_A), a);
        assert_eq!(supervisor.json(STATUS_B), b);
        supervisor.until_prices_of("broker_a");
        until("both kept anew", || {
            supervisor.hear();
            (supervisor.heard.len() >= 4).then_some(())
        });
        let expected = [A, B].map(|name| [format!("forget {name}"), format!("keep {name}")]);
        assert_eq!(supervisor.heard, expected.concat());
        for (name, before) in [(A, &kept_a), (B, &kept_b)] {
            let now = supervisor.document(name);
            assert_eq!(now.set_at, before.set_at);
            assert_eq!(now.access_token.expose_secret(), before.access_token.expose_secret());
        }
        let output = supervisor.output();
        assert_eq!(output.matches("token kept over the restart").count(), 2, "{output}");
    }
    supervisor.stop(&mut running);
    let calls = supervisor.scene.stats();
    assert_eq!(calls["requests"]["broker_a.session"], 1, "nobody logged in again");
    assert_eq!(calls["requests"]["broker_b.customerdetails"], 1);
    for kept in [kept_a, kept_b] {
        supervisor.nowhere_on_disk(kept.access_token.expose_secret());
    }
}

#[test]
fn a_new_login_replaces_what_is_kept_and_a_refusal_removes_it() {
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(APPS);
    supervisor.activate_a();
    supervisor.until_kept(&[A]);
    let first = supervisor.document(A);
    supervisor.activate_a();
    until("the second", || {
        supervisor.hear();
        (supervisor.heard.len() == 3).then_some(())
    });
    assert_eq!(supervisor.heard, [format!("keep {A}"), format!("forget {A}"), format!("keep {A}")]);
    let second = supervisor.document(A);
    assert_ne!(first.access_token.expose_secret(), second.access_token.expose_secret());
    assert_eq!(supervisor.scene.control("POST", "broker_a/expire", "").status, 200);
    supervisor.until_kept(&[]);
    assert_eq!(supervisor.json(STATUS_A)["valid"], false);
    supervisor.stop(&mut running);
    let _next = supervisor.start(APPS);
    assert_eq!(supervisor.json(STATUS_A)["initialized"], false);
}

#[test]
fn a_login_just_before_the_end_is_kept_and_one_refused_meanwhile_is_dropped_by_the_next() {
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(APPS);
    // The rounds may not have come by in between; the end looks once more.
    supervisor.activate_a();
    supervisor.stop(&mut running);
    supervisor.until_kept(&[A]);
    assert_eq!(supervisor.scene.control("POST", "broker_a/expire", "").status, 200);
    let _next = supervisor.start(APPS);
    until("the broker's refusal", || {
        let status = supervisor.json(STATUS_A);
        assert_eq!(status["initialized"], true);
        (status["valid"] == false).then_some(())
    });
    supervisor.until_kept(&[]);
}

#[test]
fn with_another_api_key_it_is_not_used() {
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(APPS);
    supervisor.activate_a();
    supervisor.activate_b();
    supervisor.until_kept(&[A, B]);
    supervisor.stop(&mut running);
    let _next = supervisor.start(&[
        ("BROKERA_API_KEY", "another"),
        ("BROKERA_API_SECRET", "simsecreta"),
        ("BROKERB_API_KEY", "sim+key=b&1"),
        ("BROKERB_API_SECRET", "simsecretb"),
    ]);
    assert_eq!(supervisor.json(STATUS_A)["initialized"], false);
    assert_eq!(supervisor.json(STATUS_B)["valid"], true);
    supervisor.until_kept(&[B]);
    let output = supervisor.output();
    assert!(output.contains("the settings have another API key"), "{output}");
}

#[test]
fn a_newer_token_of_the_settings_wins_over_the_one_that_was_kept() {
    let with = |token| [APPS, &[("BROKERA_ACCESS_TOKEN", token)]].concat();
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(&with("simtokena"));
    let activated = supervisor.activate_a();
    supervisor.until_kept(&[A]);
    assert!(supervisor.document(A).settings_token.is_some());
    supervisor.stop(&mut running);
    // The settings say what they said: the login is newer.
    let mut running = supervisor.start(&with("simtokena"));
    assert_eq!(supervisor.json(STATUS_A), activated);
    supervisor.until_prices_of("broker_a");
    supervisor.stop(&mut running);
    // Only the new one is any good now.
    assert_eq!(supervisor.scene.control("POST", "broker_a/expire", "").status, 200);
    let body = r#"{"access_token":"fresh1"}"#;
    assert_eq!(supervisor.scene.control("POST", "broker_a/token", body).status, 200);
    let _next = supervisor.start(&with("fresh1"));
    assert_eq!(supervisor.json(STATUS_A)["valid"], true);
    supervisor.until_kept(&[]);
    supervisor.until_prices_of("broker_a");
    let output = supervisor.output();
    assert!(output.contains("the settings have a newer token"), "{output}");
    assert!(!output.contains("fresh1"));
}

#[test]
fn what_cannot_be_read_is_dropped_and_the_service_starts() {
    let sealed = |bytes: &[u8]| memory_file::sealed("test", bytes).unwrap();
    let mut supervisor = Supervisor::new();
    let mut running = supervisor.start(APPS);
    supervisor.activate_a();
    supervisor.until_kept(&[A]);
    let good = File::from(supervisor.kept.remove(A).unwrap());
    let mut document = vec![0; usize::try_from(good.metadata().unwrap().len()).unwrap()];
    good.read_exact_at(&mut document, 0).unwrap();
    supervisor.stop(&mut running);
    let mut newer = document.clone();
    newer[b"bhav-token".len()] = 2;
    let (socket, mut other) = UnixStream::pair().unwrap();
    other.write_all(&document).unwrap();
    for (name, file, reason) in [
        (A, sealed(b"GARBAGE"), "not a document of ours"),
        (A, sealed(b""), "not a document of ours"),
        (A, sealed(&document[..document.len() - 1]), "damaged or cut short"),
        (A, sealed(&newer), "written in version 2"),
        (A, sealed(&vec![b'x'; 16 * 1024 + 1]), "cannot be read"),
        (A, socket.into(), "cannot be read"),
        (B, sealed(&document), "of another broker"),
    ] {
        supervisor.kept.insert(name.to_owned(), file);
        let mut running = supervisor.start(APPS);
        assert_eq!(supervisor.json(STATUS_A)["initialized"], false, "{reason}");
        assert_eq!(supervisor.json(STATUS_B)["initialized"], false, "{reason}");
        supervisor.until_kept(&[]);
        supervisor.stop(&mut running);
        let output = supervisor.output();
        assert_eq!(output.matches("kept token not used").count(), 1, "{output}");
        assert!(output.contains(reason) && !output.contains("GARBAGE"), "{reason}: {output}");
    }
}

#[test]
fn what_the_supervisor_does_not_hear_costs_one_line_and_no_login() {
    let mut supervisor = Supervisor::new();
    std::fs::remove_file(supervisor.scene.state.path().join("notify")).unwrap();
    let mut running = supervisor.start(APPS);
    supervisor.activate_a();
    supervisor.until_prices_of("broker_a");
    supervisor.stop(&mut running);
    let output = supervisor.output();
    assert_eq!(output.matches("token not kept for a restart").count(), 1, "{output}");
}
