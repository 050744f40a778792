//! Two nodes in this process that share a database of a real server.

use std::path::Path;

use bhav::config::Config;
use bhav::store::settings::StoreUrl;
use rustix::process::Signal;

use crate::support::postgres::{self, Server};
use crate::support::{Answer, Scene, Service, SharedServer, TRADING, bearer};

/// Two nodes on one database of a server.
pub struct Pair {
    pub a: Service,
    pub b: Service,
    pub scene: Scene,
    pub config: Config,
    /// Owner of the schema that they share on the server.
    pub role: String,
    /// Carries the messages between the nodes.
    _shared: Option<SharedServer>,
    _states: [tempfile::TempDir; 2],
}

impl Pair {
    pub fn on(scene: Scene, server: &Server, shared: Option<SharedServer>) -> Self {
        let role = server.fresh_role();
        let url = server.url(&role);
        Self::at(scene, &url, role, shared)
    }

    /// Starts a pair with the database at a URL, which may name several servers.
    pub fn at(scene: Scene, url: &str, role: String, shared: Option<SharedServer>) -> Self {
        let mut config = scene.config();
        config.broker_b.url = scene.sim.broker_b_url();
        config.store.url = Some(StoreUrl::parse(url).unwrap());
        config.auth.jwt_secret = Some("a key that all the nodes know, as they must".into());
        config.valkey.url = shared.as_ref().map(SharedServer::address);
        let states = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [a, b] = [("a", &states[0]), ("b", &states[1])]
            .map(|(name, state)| start(&scene, &config, name, state.path()));
        Self {
            a,
            b,
            scene,
            config,
            role,
            _shared: shared,
            _states: states,
        }
    }

    /// `None` if an engine is missing; it then prints which test is skipped.
    pub fn start(test: &str, tells: bool) -> Option<Self> {
        let server = postgres::server()?;
        let shared = if tells {
            Some(SharedServer::start(test)?)
        } else {
            None
        };
        Some(Self::on(Scene::at(TRADING), server, shared))
    }

    /// Starts another node, with a state directory of its own.
    pub fn start_third(&self, state: &Path) -> Service {
        start(&self.scene, &self.config, "c", state)
    }

    pub fn stop(self) {
        self.a.stop();
        self.b.stop();
    }
}

pub fn start(scene: &Scene, config: &Config, name: &str, state: &Path) -> Service {
    let mut config = config.clone();
    config.state_dir = state.into();
    config.nodes.name = Some(name.into());
    scene.start_with(&config)
}

pub fn ask(node: &Service, method: &str, target: &str, token: &str, body: &str) -> Answer {
    node.client()
        .send_json(method, target, &bearer(token), body)
}

/// A stopped server, which answers nothing. Continued on drop, so that it can be ended.
pub struct Stopped<'a>(&'a Server);

impl<'a> Stopped<'a> {
    pub fn now(server: &'a Server) -> Self {
        server.signal(Signal::STOP);
        Self(server)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.signal(Signal::CONT);
    }
}
