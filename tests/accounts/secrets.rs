//! Searches for credentials after their use: canaries go through both syncs, both activations and
//! the accounts, on every path, with the most verbose log. Then everything that the program wrote
//! is searched, and its memory.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use bhav::rt::moving::Parker;
use bhav::sim::SimSettings;
use bhav::store::FILE_NAME;

use super::secrets_passwords::passwords;
use super::secrets_paths::{self as paths, A, B};
use crate::support::canaries::{Canaries, Found};
use crate::support::{
    Client, Program, Scene, TRADING, bearer, few_candles, say, until, without_admin,
};

/// Short deadlines of a sync, a call and a body, so that slow paths end soon.
const BUDGET_MS: &str = "--sync-timeout-ms=1500";
const CALL_MS: &str = "--upstream-total-timeout-ms=2000";
const BODY_MS: &str = "--http-body-timeout-ms=1500";
/// Time after which all work of the last answer has ended and its memory is freed.
const SETTLE_MS: u64 = 2_000;
const LOOK_EVERY_MS: u64 = 100;

/// Kinds that must be nowhere, memory included.
const NOWHERE: &[&str] = &[
    "api_secret",
    "api_key",
    "one-time code",
    "session token",
    "replaced session",
    "password",
    "wrong admin secret",
];
/// Kinds that must be in no file and no log.
const KINDS: &[&str] = &[
    "api_secret",
    "api_key",
    "one-time code",
    "session token",
    "password",
    "wrong admin secret",
    "admin secret",
    "replaced session",
    "shared session",
];

/// A program in its simulated world.
pub struct World {
    pub canaries: Arc<Canaries>,
    pub scene: Scene,
    pub program: Program,
    /// The simulator's app.
    pub key: String,
    pub secret: String,
    pub admin_secret: String,
    log: PathBuf,
    /// Holds its credentials and its log, next to `temp` with its temporary files.
    outside: tempfile::TempDir,
    temp: tempfile::TempDir,
}

impl World {
    /// Starts the program. `url` replaces the simulator's for both brokers.
    pub fn start(canaries: Arc<Canaries>, url: Option<&str>) -> Self {
        let key = canaries.make("api_key", "the app that is known");
        let secret = canaries.make("api_secret", "the app that is known");
        let admin_secret = canaries.make("admin secret", "settings");
        let mut settings = SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        };
        settings.broker_a.api_key.clone_from(&key);
        settings.broker_a.api_secret.clone_from(&secret);
        settings.broker_b.api_key.clone_from(&key);
        settings.broker_b.secret_key.clone_from(&secret);
        let scene = Scene::with(TRADING, settings);
        let (outside, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, value) in [
            ("BROKERA_API_KEY", "server-key-a"),
            ("BROKERA_API_SECRET", "server-secret-a"),
            ("BROKERB_API_KEY", "server-key-b"),
            ("BROKERB_API_SECRET", "server-secret-b"),
            ("BROKERB_ADMIN_SECRET", &*admin_secret),
        ] {
            std::fs::write(outside.path().join(name), value).unwrap();
        }
        let log = outside.path().join("log");
        let broker =
            |path: &str| url.map_or(format!("http://{}{path}", scene.sim.addr()), Into::into);
        let mut command = without_admin(&[
            "serve",
            "--listen=127.0.0.1:0",
            &format!("--state-dir={}", scene.state.path().display()),
            &format!("--brokera-url={}", broker("/a")),
            &format!("--brokera-ticker-url={}", scene.sim.broker_a_ticker_url()),
            &format!("--brokerb-url={}", broker("/b")),
            &format!("--public-url={}", scene.sim.public_url()),
            &format!("--now={}", scene.clock.now()),
            &few_candles(),
            "--brokera-lane-threads=1",
            "--login-attempts-per-minute=0",
            "--registration-attempts-per-minute=0",
            BUDGET_MS,
            CALL_MS,
            BODY_MS,
        ]);
        command
            .env("BHAV_LOG", "trace")
            .env("BHAV_DEBUGGABLE", "true")
            .env("BHAV_SYNC_ATTEMPTS_PER_MINUTE", "0")
            .env("CREDENTIALS_DIRECTORY", outside.path())
            .env("TMPDIR", temp.path())
            .env("SQLITE_TMPDIR", temp.path())
            .stderr(File::create(&log).unwrap());
        let program = Program::of(&mut command);
        Self {
            canaries,
            scene,
            program,
            key,
            secret,
            admin_secret,
            log,
            outside,
            temp,
        }
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.program.address)
    }

    /// A new user's header line.
    pub fn user(&self, name: &str) -> String {
        let password = self.canaries.make("password", "registered");
        let answer = self
            .client()
            .account("register", &format!("{name}@example.com"), &password);
        bearer(&answer.with_status(201).field("access_token"))
    }

    fn memory(&self) -> Found {
        self.canaries.in_memory_of(self.program.child.id())
    }

    /// The memory once all work has ended, and the milliseconds waited.
    fn settled_memory(&self) -> (Found, u64) {
        let parker = Parker::current();
        // The time of a search does not count: on a busy machine it takes seconds.
        let mut waited_ms = 0;
        loop {
            let found = self.memory();
            let left: usize = NOWHERE
                .iter()
                .map(|k| self.canaries.copies_of(k, &found))
                .sum();
            if left == 0 || waited_ms >= SETTLE_MS {
                return (found, waited_ms);
            }
            parker.park(LOOK_EVERY_MS);
            waited_ms += LOOK_EVERY_MS;
        }
    }

    fn written(&self) -> (Found, usize) {
        let mut found = Found::default();
        let mut files = 0;
        for folder in [self.scene.state.path(), self.temp.path()] {
            files += self.canaries.in_files_below(folder, &mut found);
        }
        self.canaries
            .look(&std::fs::read(&self.log).unwrap(), "log", &mut found);
        (found, files + 1)
    }

    /// Searches everything, ends the program, and searches what it left.
    fn search(mut self, what: &str) {
        let (memory, waited_ms) = self.settled_memory();
        let (mut files, mut count) = self.written();
        count += self
            .canaries
            .in_open_files_of(self.program.child.id(), &mut files);
        for name in [FILE_NAME, "l2.sqlite"] {
            assert!(self.scene.state.path().join(name).is_file(), "{name} was not searched");
        }
        self.program.terminate();
        assert_eq!(self.program.exit().code(), Some(0));
        let (mut left, _) = self.written();
        self.canaries
            .look(self.program.said().as_bytes(), "standard output", &mut left);
        let log = std::fs::read_to_string(&self.log).unwrap();
        let mut table = format!(
            "canaries, {what}: {count} files and {} log lines (at level trace) searched, memory \
             {waited_ms} ms after the last answer\n\
             {:<20} {:>5} {:>6} {:>14} {:>7}\n",
            log.lines().count(),
            "kind",
            "made",
            "files",
            "files at end",
            "memory",
        );
        for kind in KINDS {
            let copies = |found| self.canaries.copies_of(kind, found);
            table += &format!(
                "{kind:<20} {:>5} {:>6} {:>14} {:>7}\n",
                self.canaries.made_of(kind),
                copies(&files),
                copies(&left),
                copies(&memory)
            );
        }
        say(&table);
        for kind in KINDS {
            if std::env::var_os("BHAV_TEST_CANARIES").is_some() {
                let told = self.canaries.told(kind, &memory).join("\n");
                say(&format!("{kind}\n{told}\n"));
            }
            for found in [&files, &left] {
                let told = self.canaries.told(kind, found);
                assert!(told.is_empty(), "{kind} was written:\n{}", told.join("\n"));
            }
        }
        for kind in NOWHERE {
            let told = self.canaries.told(kind, &memory);
            assert!(told.is_empty(), "{kind} is in memory:\n{}", told.join("\n"));
        }
        assert!(self.outside.path().is_dir());
    }
}

#[test]
fn the_search_sees_what_a_program_holds() {
    let world = World::start(Arc::new(Canaries::new()), None);
    let found = world.memory();
    // The settings' administrator secret stays in memory while the program runs.
    assert!(world.canaries.copies_of("admin secret", &found) >= 1);
    // An incomplete body is held until it ends.
    let secret = world.canaries.make("api_secret", "held");
    let mut client = world.client();
    let part = format!(
        "POST /api/portfolio/sync HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{secret}"
    );
    client.write(part);
    until("the held secret", || {
        (world.canaries.copies_of("api_secret", &world.memory()) > 0).then_some(())
    });
    drop(client);
    world.search("a body given up");
}

#[test]
fn credentials_are_gone_after_every_path() {
    let world = World::start(Arc::new(Canaries::new()), None);
    std::thread::scope(|scope| {
        for side in [&A, &B] {
            let world = &world;
            scope.spawn(move || {
                paths::accepted(world, side);
                paths::refused(world, side);
                paths::misbehaving(world, side);
                paths::misshapen(world, side);
                paths::broken_off(world, side);
            });
        }
        scope.spawn(|| passwords(&world));
    });
    paths::crowded(&world, &A);
    world.search("against the simulator");
}

#[test]
fn sessions_and_activations_that_succeed_leave_no_secret() {
    let canaries = Arc::new(Canaries::new());
    let upstream = paths::accepting(&canaries);
    let world = World::start(canaries, Some(&upstream.url()));
    paths::activated(&world);
    world.search("with canaries as sessions");
}
