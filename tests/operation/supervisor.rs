//! A service manager for one unit: it holds the listening socket, keeps the files that it is given,
//! and passes all of them to each process of the real program.

use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Client, Process, SNAPSHOT, Scene, TRADING, by_shell, until};
use bhav::brokers::session::token::{DOCUMENT_BYTES_MAX, KeptToken};
use bhav::ops::notify;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use sonic_rs::Value;

/// Position of the listening socket among the passed descriptors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    First,
    Last,
    Nowhere,
}

/// A supervisor with one unit and its outside world.
pub struct Supervisor {
    pub scene: Scene,
    listener: TcpListener,
    address: String,
    notify: UnixDatagram,
    pub kept: BTreeMap<String, OwnedFd>,
    /// Every message about stored files, in order.
    pub heard: Vec<String>,
    /// Position of the socket among the stored files; absent if the unit has none.
    pub socket: Place,
    starts: usize,
}

impl Supervisor {
    pub fn new() -> Self {
        let scene = Scene::at(TRADING);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let notify = UnixDatagram::bind(scene.state.path().join("notify")).unwrap();
        notify.set_nonblocking(true).unwrap();
        let (kept, heard, socket) = (BTreeMap::new(), Vec::new(), Place::First);
        Self {
            scene,
            listener,
            address,
            notify,
            kept,
            heard,
            socket,
            starts: 0,
        }
    }

    /// Starts the next process with these settings. At most three descriptors are passed; the shell
    /// gets them as its standard ones.
    pub fn start(&mut self, settings: &[(&str, &str)]) -> Process {
        let socket = ("bhav.socket".to_owned(), OwnedFd::from(self.listener.try_clone().unwrap()));
        let kept = self
            .kept
            .iter()
            .map(|(name, file)| (name.clone(), file.try_clone().unwrap()));
        let mut passed: Vec<_> = kept.collect();
        match self.socket {
            Place::First => passed.insert(0, socket),
            Place::Last => passed.push(socket),
            Place::Nowhere => drop(socket),
        }
        self.starts += 1;
        let output = self
            .scene
            .state
            .path()
            .join(format!("output-{}", self.starts));
        let names: Vec<_> = passed.iter().map(|(name, _)| name.as_str()).collect();
        let moved: String = (0..passed.len())
            .map(|at| format!("{}<&{at} ", at + 3))
            .collect();
        let script = format!(
            "LISTEN_PID=$$ LISTEN_FDS={} LISTEN_FDNAMES={} exec \"$0\" \"$@\" {moved} \
             </dev/null >'{}' 2>&1",
            passed.len(),
            names.join(":"),
            output.display()
        );
        let mut command = self.command(&script, settings);
        let mut passed = passed
            .into_iter()
            .map(|(_, descriptor)| Stdio::from(descriptor));
        command.stdin(passed.next().unwrap_or_else(Stdio::null));
        command.stdout(passed.next().unwrap_or_else(Stdio::null));
        command.stderr(passed.next().unwrap_or_else(Stdio::null));
        assert!(passed.next().is_none());
        let running = Process::start(&mut command);
        if self.socket == Place::Nowhere {
            self.address = until("its own address", || {
                let output = self.output();
                let (_, after) = output.split_once("\nlistening on http://")?;
                after
                    .split_once('\n')
                    .map(|(address, _)| address.to_owned())
            });
        }
        running
    }

    fn command(&self, script: &str, settings: &[(&str, &str)]) -> Command {
        let scene = &self.scene;
        let mut command = by_shell(script);
        command
            .args(["serve", "--admin-listen=off", "--listen=127.0.0.1:0"])
            .arg(format!("--state-dir={}", scene.state.path().join("state").display()))
            .arg(format!("--brokera-url={}", scene.sim.broker_a_url()))
            .arg(format!("--brokerb-url={}", scene.sim.broker_b_url()))
            .arg(format!("--public-url={}", scene.sim.public_url()))
            .arg(format!("--now={}", scene.clock.now()))
            .envs(settings.iter().copied())
            .env("NOTIFY_SOCKET", scene.state.path().join("notify"));
        command
    }

    /// Carries out the messages received meanwhile.
    pub fn hear(&mut self) {
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

    /// Waits until exactly these are stored.
    pub fn until_kept(&mut self, names: &[&str]) {
        until(&format!("{names:?} kept"), || {
            self.hear();
            self.kept
                .keys()
                .map(String::as_str)
                .eq(names.iter().copied())
                .then_some(())
        });
    }

    /// The file stored under a name.
    pub fn document(&self, name: &str) -> KeptToken {
        let file = self.kept[name].try_clone().unwrap();
        KeptToken::decode(&notify::read(file, DOCUMENT_BYTES_MAX).unwrap()).unwrap()
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.address)
    }

    pub fn json(&self, target: &str) -> Value {
        self.client().get(target).json()
    }

    pub fn activate_a(&self) -> Value {
        let code = self.scene.request_token();
        let body = format!("{{\"request_token\":\"{code}\"}}");
        let answer = until("room at broker A", || {
            let answer = self
                .client()
                .send_json("POST", "/brokera/activate", "", &body);
            (answer.status != 429).then_some(answer)
        });
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    pub fn activate_b(&self) -> Value {
        let body = format!("{{\"api_session\":\"{}\"}}", self.scene.api_session());
        let answer = self
            .client()
            .send_json("POST", "/brokerb/activate", "", &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    pub fn until_prices_of(&self, source: &str) {
        let mut client = self.client();
        until(source, || {
            let answer = client.get(SNAPSHOT);
            (answer.status == 200)
                .then(|| answer.json())
                .filter(|json| json["market"]["source"] == source)
                .filter(|json| json["market"]["stale"] == false)
        });
    }

    /// Output and log of the newest process.
    pub fn output(&self) -> String {
        let path = self
            .scene
            .state
            .path()
            .join(format!("output-{}", self.starts));
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// Stops the process as `systemctl restart` does, and carries out its last messages.
    pub fn stop(&mut self, running: &mut Process) {
        running.terminate();
        assert_eq!(running.exit().code(), Some(0), "{}", self.output());
        self.hear();
    }

    /// Whether no file below the scene's folder contains the secret: neither state nor output.
    pub fn nowhere_on_disk(&self, secret: &str) {
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
