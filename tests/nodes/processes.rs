//! Three nodes as separate processes, while nodes, servers and the connections between them fail at
//! random: killed, stopped, restarted, cut and mute. A seed decides the faults. It is printed if
//! the test fails, and `BHAV_CHAOS_SEED` repeats it. `BHAV_CHAOS_S` sets a longer time.
//! `BHAV_CHAOS_STRANGER` is `always` or `never`, to compare runs of one seed with and without
//! somebody else on the shared server.

use std::collections::BTreeSet;

use bhav::base::Clock;
use bhav::rt::moving::Parker;
use bhav::sim::SimSettings;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::clients::Clients;
use super::foreign_writes::Writer;
use super::programs::{Shared, registration};
use super::ways::{Mode, Way};
use crate::support::postgres::{self, Server};
use crate::support::{Answer, Process, SNAPSHOT, Signal, bearer, say, until};

pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];
/// Duration and seed of the faults in a run of the whole suite.
const LASTS_S: u64 = 18;
const SEED: u64 = 4;
/// Two faults of the leader come first, each for longer than a lease and the next leader's start.
const OPENING_MS: u64 = 6_000;
/// Time between two new faults, and duration of a fault: shorter and longer than a lease.
const EVERY_MS: std::ops::Range<u64> = 300..3_000;
const FAULT_MS: std::ops::Range<u64> = 200..12_000;
pub(super) const STEP_MS: u64 = 20;
/// Checks in a row in which all nodes must show the same at rest, and the time between them: longer
/// than a price takes from one node to another.
const LOOKS: usize = 3;
const LOOK_APART_MS: u64 = 400;
pub(super) const DEADLINE_MS: u64 = 10_000;

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Kill(usize),
    Stop(usize),
    /// A clean end, then a new start.
    Restart(usize),
    WayToDatabase(usize, Mode),
    WayToServer(usize, Mode),
    KillServer,
    StopDatabase,
    KillDatabase,
    /// Somebody else writes under all keys of the nodes on the shared server, all the time.
    Stranger,
}

impl Fault {
    /// The place of the fault, which has one fault at a time: a node's process, one of its ways, a
    /// server.
    fn place(self) -> (usize, usize) {
        match self {
            Self::Kill(node) | Self::Stop(node) | Self::Restart(node) => (0, node),
            Self::WayToDatabase(node, _) => (1, node),
            Self::WayToServer(node, _) => (2, node),
            Self::KillServer => (3, 0),
            Self::StopDatabase | Self::KillDatabase => (4, 0),
            Self::Stranger => (5, 0),
        }
    }

    /// A random fault. Half of the faults of nodes hit the leader.
    fn draw(chance: &mut fastrand::Rng, leader: usize) -> Self {
        let node = if chance.bool() {
            leader
        } else {
            chance.usize(..NAMES.len())
        };
        let mode = if chance.bool() { Mode::Cut } else { Mode::Mute };
        match chance.u32(..23) {
            0..=3 => Self::Kill(node),
            4..=7 => Self::Stop(node),
            8..=9 => Self::Restart(node),
            10..=12 => Self::WayToDatabase(node, mode),
            13..=15 => Self::WayToServer(node, mode),
            16..=17 => Self::KillServer,
            18 => Self::StopDatabase,
            19 => Self::KillDatabase,
            _ => Self::Stranger,
        }
    }
}

/// When somebody else writes on the shared server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StrangerWrites {
    /// As one of the faults.
    Sometimes,
    Always,
    Never,
}

impl StrangerWrites {
    fn asked() -> Self {
        match std::env::var("BHAV_CHAOS_STRANGER").as_deref() {
            Err(_) => Self::Sometimes,
            Ok("always") => Self::Always,
            Ok("never") => Self::Never,
            Ok(other) => panic!("{other} is neither always nor never"),
        }
    }
}

/// A node, running or not. Its ways outlive its processes.
pub(super) struct Member {
    folder: tempfile::TempDir,
    database: Way,
    server: Way,
    process: Option<Process>,
}

impl Member {
    fn at(&self, file: &str) -> String {
        format!("{}/{file}", self.folder.path().display())
    }

    /// The address at which it listens.
    pub(super) fn address(&self) -> String {
        format!("unix:{}", self.at("http"))
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().unwrap()
    }
}

pub(super) struct World {
    pub(super) shared: Shared,
    pub(super) members: Vec<Member>,
    /// Whether PostgreSQL runs, so that it can be sent a signal.
    has_database: bool,
    writer: Writer,
}

impl World {
    /// Starts servers for this test alone, and prepares nodes without starting them.
    pub(super) fn of(test: &str) -> Option<Self> {
        postgres::server()?;
        // The server ends with the test process.
        let database = Box::leak(Box::new(Server::start_at(5432, |_| (), &["listen_addresses="])));
        let settings = SimSettings::default();
        let key = "a key that all the nodes know, as they must";
        let shared = Shared::with(test, database, settings, key)?;
        let member = |_| {
            let folder = tempfile::tempdir().unwrap();
            let way = |file: &str, server| Way::open(&folder.path().join(file), server);
            let database = way(".s.PGSQL.5432", database.directory.join(".s.PGSQL.5432"));
            let server = way("server", shared.server.socket());
            Member {
                folder,
                database,
                server,
                process: None,
            }
        };
        let members = NAMES.iter().map(member).collect();
        let writer = Writer::start(&shared.server.socket());
        Some(Self {
            shared,
            members,
            has_database: true,
            writer,
        })
    }

    pub(super) fn start(&mut self, node: usize, clients: &Clients) {
        let member = &self.members[node];
        let (own, role) = (member.folder.path().display(), &self.shared.role);
        let urls = [
            format!("postgres:///postgres?host={own}&port=5432&user={role}"),
            format!("unix:{}", member.at("server")),
        ];
        let (state, listen) = (member.folder.path().join("state"), member.address());
        let mut command = self.shared.command(NAMES[node], &state, &listen, &urls);
        command.stdout(std::process::Stdio::null());
        self.members[node].process = Some(Process::start(&mut command));
        clients.started(node);
    }

    pub(super) fn begin(&mut self, fault: Fault, clients: &Clients) {
        match fault {
            Fault::Kill(node) => {
                clients.set_running(node, false);
                self.members[node].process().kill();
            }
            Fault::Stop(node) => {
                clients.set_running(node, false);
                self.members[node].process().signal(Signal::STOP);
            }
            Fault::Restart(node) => {
                clients.set_running(node, false);
                self.members[node].process().terminate();
            }
            Fault::WayToDatabase(node, mode) => self.members[node].database.set(mode),
            Fault::WayToServer(node, mode) => self.members[node].server.set(mode),
            Fault::KillServer => self.shared.server.kill(),
            Fault::StopDatabase => self.shared.database.signal(Signal::STOP),
            Fault::KillDatabase => {
                self.has_database = false;
                self.shared.database.signal(Signal::KILL);
            }
            Fault::Stranger => self.writer.set_active(true),
        }
    }

    pub(super) fn end(&mut self, fault: Fault, clients: &Clients) {
        match fault {
            Fault::Kill(node) => self.start(node, clients),
            Fault::Stop(node) => {
                self.members[node].process().signal(Signal::CONT);
                clients.set_running(node, true);
            }
            Fault::Restart(node) => {
                self.members[node].process().exit();
                self.start(node, clients);
            }
            Fault::WayToDatabase(node, _) => self.members[node].database.set(Mode::Open),
            Fault::WayToServer(node, _) => self.members[node].server.set(Mode::Open),
            Fault::KillServer => self.shared.server.restart(),
            Fault::StopDatabase => self.shared.database.signal(Signal::CONT),
            Fault::KillDatabase => {
                self.shared.database.launch();
                self.has_database = true;
            }
            Fault::Stranger => self.writer.set_active(false),
        }
    }

    /// Begins faults, and ends each when its time is over.
    fn play(&mut self, clients: &Clients, plan: &mut Plan) {
        let mut chance = fastrand::Rng::with_seed(plan.seed);
        let (clock, parker) = (Clock::system(), Parker::current());
        let (mut under_way, mut next_ms) = (Vec::<(u64, Fault)>::new(), 0);
        self.writer
            .set_active(plan.stranger == StrangerWrites::Always);
        while clock.monotonic_ms() < plan.lasts_s * 1_000 {
            let now_ms = clock.monotonic_ms();
            clients.step();
            while let Some(at) = under_way
                .iter()
                .position(|(until_ms, _)| *until_ms <= now_ms)
            {
                let (_, fault) = under_way.swap_remove(at);
                self.end(fault, clients);
            }
            for (node, member) in self.members.iter_mut().enumerate() {
                let ends = under_way
                    .iter()
                    .any(|(_, fault)| [Fault::Kill(node), Fault::Restart(node)].contains(fault));
                let ended = member.process().child.try_wait().unwrap();
                assert!(ends || ended.is_none(), "node {node} ended by itself: {ended:?}");
            }
            if next_ms <= now_ms {
                let leader = clients.leader().unwrap().0;
                let (fault, lasts_ms) = match plan.played.len() {
                    0 => (Fault::Kill(leader), OPENING_MS),
                    1 => (Fault::Stop(leader), OPENING_MS),
                    _ => (Fault::draw(&mut chance, leader), chance.u64(FAULT_MS)),
                };
                let opens = plan.played.len() < 2;
                next_ms = now_ms
                    + if opens {
                        OPENING_MS
                    } else {
                        chance.u64(EVERY_MS)
                    };
                let is_set = fault == Fault::Stranger && plan.stranger != StrangerWrites::Sometimes;
                if !is_set
                    && !under_way
                        .iter()
                        .any(|(_, other)| other.place() == fault.place())
                {
                    self.begin(fault, clients);
                    under_way.push((now_ms + lasts_ms, fault));
                    plan.played.push((now_ms, fault));
                }
            }
            parker.park(STEP_MS);
        }
        under_way
            .into_iter()
            .for_each(|(_, fault)| self.end(fault, clients));
        self.writer.set_active(false);
    }
}

impl Clients {
    /// Waits until one node leads, the others follow it, and all serve fresh prices.
    pub(super) fn await_rest(&self) {
        let get = |node, target| self.send(node, DEADLINE_MS, "GET", target, "", "");
        let state = |node| {
            let (health, snapshot) = (get(node, "/api/health")?, get(node, SNAPSHOT)?);
            let (health, market) = (health.json(), snapshot.json()["market"].clone());
            let fresh = market["stale"] == false && market["source"] == "broker_a";
            let follows = health["relay"]["state"] == "following";
            let role = health["role"].as_str()?.to_owned();
            Some((role == "leader", fresh && (role == "leader" || follows), role))
        };
        until("rest", || {
            let states: Vec<_> = (0..NAMES.len()).map(state).collect();
            let all_well = states
                .iter()
                .all(|it| it.as_ref().is_some_and(|(_, well, _)| *well));
            let leaders = states.iter().flatten().filter(|(leads, ..)| *leads).count();
            if all_well && leaders == 1 {
                Ok(())
            } else {
                Err(format!("{states:?}"))
            }
        });
    }

    /// Waits until all nodes show the same in several checks in a row.
    pub(super) fn await_same(&self) {
        let clock = Clock::system();
        let (mut before, mut looked_ms, mut same) = (Vec::new(), 0, 0);
        until("the same snapshot of all, again and again", || {
            let now_ms = clock.monotonic_ms();
            if now_ms < looked_ms + LOOK_APART_MS {
                return Err(String::new());
            }
            let get = |node| {
                self.send(node, DEADLINE_MS, "GET", SNAPSHOT, "", "")
                    .unwrap()
            };
            let shown: Vec<_> = (0..NAMES.len()).map(get).collect();
            let tag = |answer: &Answer| answer.header("etag").unwrap().to_owned();
            let tags: Vec<String> = shown.iter().map(tag).collect();
            if tags.iter().any(|tag| *tag != tags[0]) {
                same = 0;
            } else if tags == before {
                same += 1;
            }
            (before, looked_ms) = (tags, now_ms);
            let texts = || shown.iter().map(|answer| answer.text().to_owned());
            if same == LOOKS {
                Ok(())
            } else {
                Err(texts().collect::<Vec<_>>().join("\n"))
            }
        });
    }

    /// The notes of all entries in a node's journal.
    pub(super) fn journal(&self, node: usize, auth: &str) -> BTreeSet<String> {
        let (mut notes, mut cursor) = (BTreeSet::new(), String::new());
        loop {
            let target = format!("/api/journal?limit=200{cursor}");
            let page = self
                .send(node, DEADLINE_MS, "GET", &target, auth, "")
                .unwrap()
                .json();
            let entries = page["entries"].as_array().unwrap();
            notes.extend(
                entries
                    .iter()
                    .map(|entry| entry["notes"].as_str().unwrap().to_owned()),
            );
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return notes,
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A stopped process could not end.
        if self.has_database {
            self.shared.database.signal(Signal::CONT);
        }
    }
}

/// The plan of the faults, and those played so far. Prints them if the test fails.
struct Plan {
    seed: u64,
    lasts_s: u64,
    is_long: bool,
    stranger: StrangerWrites,
    played: Vec<(u64, Fault)>,
}

impl Plan {
    /// The plan from the environment variables.
    fn asked() -> Self {
        let asked = |name| {
            std::env::var(name)
                .ok()
                .map(|text| text.parse::<u64>().unwrap())
        };
        let (long_s, seed) = (asked("BHAV_CHAOS_S"), asked("BHAV_CHAOS_SEED"));
        let usual = || long_s.map_or(SEED, |_| Clock::system().now_ms().unsigned_abs());
        let (seed, lasts_s) = (seed.unwrap_or_else(usual), long_s.unwrap_or(LASTS_S));
        let stranger = StrangerWrites::asked();
        Self {
            seed,
            lasts_s,
            is_long: long_s.is_some(),
            stranger,
            played: Vec::new(),
        }
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        if self.is_long || std::thread::panicking() {
            let Self {
                seed,
                lasts_s,
                played,
                ..
            } = self;
            let again = format!("BHAV_CHAOS_SEED={seed} BHAV_CHAOS_S={lasts_s} repeats it");
            say(&format!("faults by milliseconds: {played:?}\n{again}\n"));
        }
    }
}

#[test]
fn whatever_fails_one_node_leads_prices_go_on_and_nothing_acknowledged_is_lost() {
    let name = "whatever_fails_one_node_leads_prices_go_on_and_nothing_acknowledged_is_lost";
    let mut plan = Plan::asked();
    let Some(mut world) = World::of(name) else {
        return;
    };
    let clients = Clients::of(world.members.iter().map(Member::address).collect());
    (0..NAMES.len()).for_each(|node| world.start(node, &clients));
    let auth = registered(&clients);
    clients.await_rest();

    let (running, stop) = crossbeam_channel::bounded(0);
    std::thread::scope(|scope| {
        // Dropped also on a panic, which ends the clients.
        let _running: crossbeam_channel::Sender<()> = running;
        clients.watch(scope, &auth, &stop);
        until("a leader", || clients.leader());
        world.play(&clients, &mut plan);
        clients.await_rest();
        clients.await_same();
    });
    let kept = [0, 1, 2].map(|node| clients.journal(node, &auth));
    let epochs = clients.leader().unwrap().1;
    let (counts, faults, acknowledged) = clients.end();
    let written = world.writer.written();
    let told = format!(
        "{} faults, {epochs} epochs, {written} strange writes, {counts:?}",
        plan.played.len()
    );
    if plan.is_long {
        say(&format!("{told}\n"));
    }
    assert_eq!(faults, [""; 0], "{told}");
    for kept in kept {
        assert_eq!(acknowledged.difference(&kept).collect::<Vec<_>>(), [""; 0], "lost: {told}");
    }
    assert!(epochs >= 3 && acknowledged.len() > 5, "{told}");
    // A node that is stopped between its last check of the deadline and a call makes one call too
    // many.
    let stops = plan
        .played
        .iter()
        .filter(|(_, fault)| matches!(fault, Fault::Stop(_)));
    let stops = stops.count() as i64;
    let stats = world.shared.scene.stats();
    let refused = ["broker_a.quote", "broker_a.ohlc", "broker_a.ltp"]
        .map(|route| stats["rejected"][route].as_i64().unwrap_or(0));
    assert!(refused.iter().sum::<i64>() <= stops, "{refused:?}: {told}");
    assert!(stats["max_quote_calls_in_1s"].as_i64() <= Some(2), "{told}");
}

/// A user of the first node, as the headers of their requests.
pub(super) fn registered(clients: &Clients) -> String {
    let body = registration("nine green parrots");
    until("a user", || {
        let target = "/api/auth/register";
        let answer = clients.send(0, DEADLINE_MS, "POST", target, "", &body);
        answer
            .filter(|it| it.status == 201)
            .map(|it| bearer(&it.field("access_token")))
    })
}

/// A run without other faults, in which somebody writes under all keys every 100 ms.
#[test]
fn a_stranger_who_never_stops_writing_costs_no_leader_no_price_and_no_write() {
    let name = "a_stranger_who_never_stops_writing_costs_no_leader_no_price_and_no_write";
    let plan = Plan::asked();
    let Some(mut world) = World::of(name) else {
        return;
    };
    let clients = Clients::of(world.members.iter().map(Member::address).collect());
    (0..NAMES.len()).for_each(|node| world.start(node, &clients));
    let auth = registered(&clients);
    clients.await_rest();
    world.writer.set_active(true);
    let (running, stop) = crossbeam_channel::bounded(0);
    std::thread::scope(|scope| {
        let _running: crossbeam_channel::Sender<()> = running;
        clients.watch(scope, &auth, &stop);
        until("a leader", || clients.leader());
        let (clock, parker) = (Clock::system(), Parker::current());
        while clock.monotonic_ms() < plan.lasts_s * 1_000 {
            clients.step();
            parker.park(STEP_MS);
        }
    });
    world.writer.set_active(false);
    clients.await_rest();
    let kept = [0, 1, 2].map(|node| clients.journal(node, &auth));
    let epochs = clients.leader().unwrap().1;
    let (counts, faults, acknowledged) = clients.end();
    let told = format!("{epochs} epochs, {} strange writes, {counts:?}", world.writer.written());
    if plan.is_long {
        say(&format!("{told}\n"));
    }
    assert_eq!(faults, [""; 0], "{told}");
    for kept in kept {
        assert_eq!(acknowledged.difference(&kept).collect::<Vec<_>>(), [""; 0], "lost: {told}");
    }
    assert_eq!(epochs, 1, "the leader was replaced: {told}");
    assert_eq!(counts.get("writes refused"), None, "{told}");
    let of = |what| counts.get(what).copied().unwrap_or_default();
    assert!(of("stale snapshots") * 100 <= of("fresh snapshots"), "{told}");
}
