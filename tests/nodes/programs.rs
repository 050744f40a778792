//! Nodes as the programs that they are, on a database and a server that they really share.

use std::path::Path;

use bhav::sim::SimSettings;
use sonic_rs::{JsonValueTrait, Value};

use crate::support::postgres;
use crate::support::{Program, Scene, SharedServer, TRADING, bearer, serve};

/// The shortest that the program takes.
const LEASE_MS: u64 = 4_000;

/// What all of them share.
pub struct Shared {
    pub scene: Scene,
    pub server: SharedServer,
    pub database: &'static postgres::Server,
    role: String,
    secrets: [(&'static str, String); 4],
}

/// A program, and where it keeps its state over restarts.
pub struct Node {
    pub program: Program,
    pub name: &'static str,
    pub state: tempfile::TempDir,
}

impl Shared {
    /// `None` where there are no such servers.
    pub fn start(test: &str) -> Option<Self> {
        let settings = SimSettings { rate_limits: false, ..SimSettings::default() };
        Self::with(test, settings, "a key that all the nodes know, as they must")
    }

    /// With brokers whose app the nodes have, and a key with which they sign.
    pub fn with(test: &str, settings: SimSettings, signing_key: &str) -> Option<Self> {
        let (database, server) = (postgres::server()?, SharedServer::start(test)?);
        let app = settings.broker_a.clone();
        let secrets = [
            ("JWT_SECRET", signing_key.to_owned()),
            ("BROKERA_API_KEY", app.api_key),
            ("BROKERA_API_SECRET", app.api_secret),
            ("BROKERA_ACCESS_TOKEN", app.access_token),
        ];
        let (scene, role) = (Scene::with(TRADING, settings), database.fresh_role());
        Some(Self { scene, server, database, role, secrets })
    }

    pub fn node(&self, name: &'static str) -> Node {
        let state = tempfile::tempdir().unwrap();
        Node { program: self.program(name, state.path()), name, state }
    }

    pub fn program(&self, name: &str, state: &Path) -> Program {
        let mut command = serve(&self.scene, state);
        command
            .env("BHAV_NODE", name)
            .env("BHAV_STORE_URL", self.database.url(&self.role))
            .env("BHAV_CACHE_URL", self.server.address().to_string())
            .env("BHAV_LEASE_MS", LEASE_MS.to_string())
            .env("BHAV_BROKERA_TICKER", "false")
            .envs(self.secrets.iter().map(|(name, value)| (name, value)));
        Program::of(&mut command)
    }

    /// Most of broker A's quote calls that came within a second.
    pub fn calls_in_a_second(&self) -> i64 {
        self.scene.stats()["max_quote_calls_in_1s"].as_i64().unwrap()
    }
}

impl Node {
    pub fn health(&self) -> Value {
        self.program.client().get("/api/health").json()
    }

    /// A new user's header line.
    pub fn register(&self, password: &str) -> String {
        let body = format!(r#"{{"email":"asha@example.com","password":"{password}","name":"A"}}"#);
        let answer = self.program.client().send_json("POST", "/api/auth/register", "", &body);
        assert_eq!(answer.status, 201, "{}", answer.text());
        bearer(&answer.field("access_token"))
    }

    /// A new entry of a user's journal.
    pub fn write(&self, auth: &str, notes: &str) {
        let body = format!(
            r#"{{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1,
                "price":1764.90,"notes":"{notes}"}}"#
        );
        let answer = self.program.client().send_json("POST", "/api/journal", auth, &body);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
}
