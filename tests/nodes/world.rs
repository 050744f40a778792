//! Nodes in this process, each with a state directory of its own, with one shared server and one
//! simulator. An epoch counter in memory replaces the row of the shared database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bhav::app::App;
use bhav::base::Clock;
use bhav::config::Config;
use bhav::nodes::authorities::ValkeyClaim;
use bhav::nodes::lease::{Authority, AuthorityError, Grant, Holder, Look};
use bhav::nodes::valkey::NodeSecret;
use bhav::nodes::valkey::{Installation, Namespace, Server};
use bhav::store::Epoch;
use parking_lot::Mutex;
use sonic_rs::{JsonValueTrait, Value};

use crate::support::{Answer, SNAPSHOT, Scene, Service, SharedServer, until};

/// Shorter than by default; the shared server counts its uptime in seconds.
pub const LEASE_MS: u64 = 1_500;

/// The row's content, as in the database.
#[derive(Default)]
struct Row {
    epoch: u64,
    held: Option<(Holder, u64)>,
}

/// Gives the row to one holder at a time.
pub struct Rows {
    row: Mutex<Row>,
    away: AtomicBool,
    timer: Clock,
}

impl Rows {
    fn new() -> Arc<Self> {
        let (row, away) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self {
            row,
            away,
            timer: Clock::system(),
        })
    }

    /// Makes the row unavailable, or available again.
    pub fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    /// Resets the row to an earlier epoch, without a holder.
    pub fn go_back(&self, epoch: u64) {
        *self.row.lock() = Row { epoch, held: None };
    }

    fn ask<T>(&self, work: impl FnOnce(&mut Row, u64) -> T) -> Result<T, AuthorityError> {
        if self.away.load(Ordering::SeqCst) {
            return Err(AuthorityError("away".into()));
        }
        Ok(work(&mut self.row.lock(), self.timer.monotonic_ms()))
    }
}

impl Authority for Rows {
    fn look(&self) -> Result<Look, AuthorityError> {
        self.ask(|row, now_ms| {
            let taken = row
                .held
                .as_ref()
                .is_some_and(|(_, until_ms)| now_ms < *until_ms);
            Look {
                is_free: !taken,
                highest: Epoch(row.epoch),
            }
        })
    }

    fn take(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError> {
        self.ask(|row, now_ms| {
            if row
                .held
                .as_ref()
                .is_some_and(|(_, until_ms)| now_ms < *until_ms)
            {
                return Grant::Refused;
            }
            row.epoch = row.epoch.max(epoch.0) + 1;
            row.held = Some((holder.clone(), now_ms + LEASE_MS));
            Grant::Granted(Epoch(row.epoch))
        })
    }

    fn renew(&self, holder: &Holder, _epoch: Epoch) -> Result<Grant, AuthorityError> {
        self.ask(|row, now_ms| match &mut row.held {
            Some((held, until_ms)) if held == holder => {
                *until_ms = now_ms + LEASE_MS;
                Grant::Granted(Epoch(row.epoch))
            }
            _ => Grant::Refused,
        })
    }

    fn release(&self, holder: &Holder) -> Result<(), AuthorityError> {
        self.ask(|row, _| row.held.take_if(|(held, _)| held == holder))?;
        Ok(())
    }
}

/// The secret of all nodes.
pub const SECRET: &str = "a key that all the nodes know, as they must";

/// The namespace of these nodes, which have no common database whose id they could use.
fn namespace() -> Namespace {
    Namespace::parse("main").unwrap()
}

/// The installation of all these nodes.
pub fn installation() -> Arc<Installation> {
    let secret = Arc::new(NodeSecret::new(SECRET.into()));
    Arc::new(Installation::named(namespace(), &secret))
}

/// The parts that the nodes share.
pub struct World {
    pub scene: Scene,
    pub server: SharedServer,
    pub rows: Arc<Rows>,
}

/// A running node.
pub struct Node {
    pub service: Service,
    state: tempfile::TempDir,
}

impl World {
    /// `None` if the server is missing; it then prints which test is skipped.
    pub fn at(test: &str, now: &str) -> Option<Self> {
        let world = Self::of(test, Scene::at(now))?;
        // Each node has a store of its own here, so signals from candles would stay with the
        // leader.
        for route in ["broker_a.historical", "public.chart"] {
            world.scene.fault(route, r#"{"kind":"refuse"}"#);
        }
        Some(world)
    }

    /// The same with a given scene.
    pub fn of(test: &str, scene: Scene) -> Option<Self> {
        let server = SharedServer::start(test)?;
        let world = Self {
            scene,
            server,
            rows: Rows::new(),
        };
        world.await_claim();
        Some(world)
    }

    /// Waits for the first claim, which a server that has just started does not give yet.
    fn await_claim(&self) {
        let server = Arc::new(Server::new(self.server.address(), None, None).unwrap());
        let claim = ValkeyClaim::new(&server, &installation(), LEASE_MS);
        let free = || claim.look().is_ok_and(|look| look.is_free);
        until("a claim is free", free);
    }

    /// Settings with broker A's real pace, so that calls can be counted.
    pub fn config(&self) -> Config {
        let mut config = self.scene.config();
        config.broker_a.quote_interval_ms = Config::default().broker_a.quote_interval_ms;
        self.shared(config)
    }

    /// The same without a token, as before a login.
    pub fn config_without_tokens(&self) -> Config {
        let mut config = self.scene.config_without_tokens();
        config.broker_a.quote_interval_ms = Config::default().broker_a.quote_interval_ms;
        self.shared(config)
    }

    fn shared(&self, mut config: Config) -> Config {
        config.valkey.url = Some(self.server.address());
        config.valkey.namespace = Some(namespace());
        config.nodes.lease_ms = LEASE_MS;
        config.auth.jwt_secret = Some(SECRET.into());
        config
    }

    pub fn start(&self, name: &str) -> Node {
        self.start_with(name, self.config())
    }

    pub fn start_with(&self, name: &str, config: Config) -> Node {
        self.start_in(tempfile::tempdir().unwrap(), name, config)
    }

    /// Starts a node in a state directory that may already have a store.
    pub fn start_in(&self, state: tempfile::TempDir, name: &str, mut config: Config) -> Node {
        config.state_dir = state.path().into();
        config.nodes.name = Some(name.into());
        let app = App::start_among(&config, &self.scene.clock, self.rows.clone()).unwrap();
        Node {
            service: Service::of(app),
            state,
        }
    }

    /// Largest number of quote calls to broker A within a second.
    pub fn calls_in_a_second(&self) -> i64 {
        self.scene.stats()["max_quote_calls_in_1s"]
            .as_i64()
            .unwrap()
    }
}

impl Node {
    /// Stops the node, and returns its state directory.
    pub fn stop(self) -> tempfile::TempDir {
        self.service.stop();
        self.state
    }

    pub fn health(&self) -> Value {
        self.service.health()
    }

    pub fn leads(&self) -> bool {
        self.health()["role"] == "leader"
    }

    pub fn snapshot(&self) -> Answer {
        self.service.get(SNAPSHOT)
    }

    /// Number of its calls to all feeds.
    pub fn rounds(&self) -> u64 {
        let feeds = &self.health()["feeds"];
        ["broker_a", "public"]
            .iter()
            .map(|feed| feeds[feed]["rounds"].as_u64().unwrap())
            .sum()
    }
}

/// The leader first, then the others.
pub fn leader_first(nodes: Vec<Node>) -> Vec<Node> {
    until("one leader", || nodes.iter().filter(|node| node.leads()).count() == 1);
    let (mut first, others): (Vec<Node>, Vec<Node>) = nodes.into_iter().partition(Node::leads);
    first.extend(others);
    first
}

/// Waits until all serve the same snapshot with the same tag, and `holds` accepts it.
pub fn await_same(what: &str, nodes: &[&Node], holds: impl Fn(&Value) -> bool) {
    until(what, || {
        let shown: Vec<Answer> = nodes.iter().map(|node| node.snapshot()).collect();
        let alike = |one: &Answer| {
            one.status == 200
                && one.body == shown[0].body
                && one.header("etag") == shown[0].header("etag")
        };
        if shown.iter().all(alike) && holds(&shown[0].json()) {
            return Ok(());
        }
        Err(shown
            .iter()
            .map(|answer| answer.text().to_owned())
            .collect::<Vec<_>>()
            .join("\n"))
    });
}

/// Stops all of them, one after the other.
pub fn stop(nodes: Vec<Node>) {
    for node in nodes {
        node.stop();
    }
}
