//! Nodes over one PostgreSQL and one Valkey server, before one simulator.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::calls::Calls;
use super::link::Link;
use super::node::Node;
use super::postgres::{Disk, Postgres};
use super::valkey::Valkey;
use crate::error::Error;
use crate::harness::Harness;
use crate::http::Client;
use crate::servers::{empty_folder, socket_address};
use crate::simulator::Simulator;
use crate::wait;

/// In the middle of trading.
const TRADING: &str = "2026-11-20T11:00:00+05:30";

/// Of every service on a server that nodes may share.
pub const SIGNING_KEY: &str = "a signing key for measurements alone, of 64 bytes and some more.";

/// Settings of every node.
const SETTINGS: [(&str, &str); 5] = [
    ("JWT_SECRET", SIGNING_KEY),
    // Prices by calls, which are what is counted.
    ("BHAV_BROKERA_TICKER", "false"),
    ("BHAV_HTTP_CONNECTIONS_PER_ADDRESS_MAX", "0"),
    ("BHAV_WRITES_PER_USER_PER_MINUTE", "0"),
    ("BHAV_LOGIN_ATTEMPTS_PER_MINUTE", "0"),
];

const START_DEADLINE: Duration = Duration::from_secs(90);

/// Who writes.
const EMAIL: &str = "writer@load.example";
const PASSWORD: &str = "paper boats in the monsoon 7";

/// All of it; dropping it ends it.
pub struct World {
    pub nodes: Vec<Node>,
    pub postgres: Postgres,
    pub valkey: Valkey,
    pub simulator: Simulator,
    pub calls: Arc<Calls>,
    pub began: Instant,
    /// Of the user who writes.
    pub token: String,
    program: PathBuf,
    log_folder: PathBuf,
    folder: PathBuf,
    settings: Vec<(&'static str, String)>,
}

/// What is different from the usual.
#[derive(Default)]
pub struct Plan {
    /// Where PostgreSQL's files are.
    pub disk: Disk,
    pub settings: Vec<(&'static str, String)>,
}

impl World {
    /// Starts the servers and `names.len()` nodes at once, and waits until all serve.
    pub fn start(harness: &Harness, names: &[&str], plan: Plan) -> Result<Self, Error> {
        let program = harness.programs.bhav.clone().ok_or(Error::invalid("bhav was left out"))?;
        // Short, for the names of sockets are.
        let folder = std::env::temp_dir().join(format!("bhav-nodes-{}", std::process::id()));
        empty_folder(&folder)?;
        let log_folder = harness.programs.work_folder.join("nodes");
        empty_folder(&log_folder)?;
        let began = Instant::now();
        let postgres = Postgres::start(folder.join("pg"), plan.disk)?;
        let valkey = Valkey::start(folder.clone())?;
        let simulator = Simulator::start(&program, &log_folder, &[("BHAV_NOW", TRADING)])?;
        let calls = Calls::since(began);
        let mut nodes = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let broker = Link::tcp(socket_address(simulator.root())?, calls.tap(number))?;
            let own = folder.join(name);
            nodes.push(Node::new(name, own, postgres.address(), valkey.address(), broker)?);
        }
        let settings = plan.settings;
        let mut world = Self {
            nodes,
            postgres,
            valkey,
            simulator,
            calls,
            began,
            program,
            log_folder,
            folder,
            settings,
            token: String::new(),
        };
        world.start_node(0)?;
        world.token = world.register()?;
        for node in 1..world.nodes.len() {
            world.start_node(node)?;
        }
        world.await_rest()?;
        Ok(world)
    }

    /// Starts a node; does not wait for it.
    pub fn start_node(&mut self, number: usize) -> Result<(), Error> {
        let node = &mut self.nodes[number];
        let listen = format!("127.0.0.1:{}", node.port);
        let mut command = self.simulator.service(&self.program, &node.state_folder(), &listen)?;
        command.envs(SETTINGS).envs(node.settings()).envs(self.settings.iter().cloned());
        node.launch(command, &self.log_folder)
    }

    pub fn url(&self, node: usize, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.nodes[node].port)
    }

    /// Who leads, by their own word.
    pub fn leader(&self) -> Option<usize> {
        let leads = |node: &usize| self.health(*node).is_ok_and(|it| it["role"] == "leader");
        (0..self.nodes.len()).find(leads)
    }

    pub fn health(&self, node: usize) -> Result<Value, Error> {
        let client = Client::unpooled(Duration::from_secs(2));
        client.send("GET", &self.url(node, "/api/health"), &[], None)?.json()
    }

    /// Waits until one node leads, the others follow it, and all serve fresh prices.
    pub fn await_rest(&self) -> Result<(), Error> {
        let mut last = Vec::new();
        let rest = wait::until(START_DEADLINE, || {
            last = (0..self.nodes.len()).map(|node| self.state(node)).collect();
            let count = |state: &str| last.iter().filter(|seen| *seen == state).count();
            let others = self.nodes.len() - 1;
            let fresh = count("leader fresh") == 1 && count("follower following fresh") == others;
            Ok(fresh.then_some(()))
        })?;
        rest.ok_or_else(|| Error::Invalid(format!("the nodes never came to rest: {last:?}")))
    }

    fn state(&self, node: usize) -> String {
        let Ok(health) = self.health(node) else { return "no answer".into() };
        let client = Client::unpooled(Duration::from_secs(2));
        let url = self.url(node, crate::snapshot::PATH);
        let snapshot = client.send("GET", &url, &[], None).and_then(|answer| answer.json());
        let fresh = snapshot
            .is_ok_and(|it| it["market"]["stale"] == false && it["market"]["source"] == "broker_a");
        let words = [&health["role"], &health["relay"]["state"]].map(|word| word.as_str());
        let words: Vec<&str> = words.into_iter().flatten().collect();
        // A leader's own word on the relay says nothing here.
        let words = if words.first() == Some(&"leader") { &words[..1] } else { &words[..] };
        format!("{}{}", words.join(" "), if fresh { " fresh" } else { " old" })
    }

    /// A token of the user who writes, as soon as the first node takes one.
    fn register(&self) -> Result<String, Error> {
        let client = Client::unpooled(Duration::from_secs(30));
        let body = json!({"email": EMAIL, "password": PASSWORD, "name": "Writer"});
        let url = self.url(0, "/api/auth/register");
        let token = wait::until(START_DEADLINE, || {
            let Ok(answer) = client.send("POST", &url, &[], Some(&body)) else { return Ok(None) };
            let token =
                answer.json().unwrap_or_default()["access_token"].as_str().map(str::to_owned);
            Ok(token)
        })?;
        token.ok_or(Error::invalid("nobody can register"))
    }

    pub fn elapsed_ms(&self) -> u64 {
        elapsed_ms(self.began)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            node.heal();
            node.thaw();
            node.begin_stop();
        }
        self.nodes.iter_mut().for_each(Node::end_stop);
        self.valkey.kill();
        self.postgres.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub fn elapsed_ms(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}
