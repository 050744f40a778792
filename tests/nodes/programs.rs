//! Nodes as separate processes with a shared database and a shared server.

use std::path::Path;
use std::process::{Command, Stdio};

use bhav::sim::SimSettings;
use sonic_rs::Value;

use crate::support::postgres;
use crate::support::{Program, Scene, SharedServer, TRADING, bearer, few_candles, without_admin};

/// The shortest lease that the program accepts.
const LEASE_MS: u64 = 4_000;

/// The servers and settings that the nodes share.
pub struct Shared {
    pub scene: Scene,
    pub server: SharedServer,
    pub database: &'static postgres::Server,
    pub role: String,
    secrets: [(&'static str, String); 4],
}

/// A running program with its state directory.
pub struct Node {
    pub program: Program,
    _state: tempfile::TempDir,
}

impl Shared {
    /// Starts the servers, with brokers whose app the nodes have, and a signing key. `None` if a
    /// server is missing; it then prints which test is skipped.
    pub fn with(
        test: &str,
        database: &'static postgres::Server,
        settings: SimSettings,
        signing_key: &str,
    ) -> Option<Self> {
        let server = SharedServer::start(test)?;
        let app = settings.broker_a.clone();
        let secrets = [
            ("JWT_SECRET", signing_key.to_owned()),
            ("BROKERA_API_KEY", app.api_key),
            ("BROKERA_API_SECRET", app.api_secret),
            ("BROKERA_ACCESS_TOKEN", app.access_token),
        ];
        let (scene, role) = (Scene::with(TRADING, settings), database.fresh_role());
        Some(Self {
            scene,
            server,
            database,
            role,
            secrets,
        })
    }

    /// Starts a node that connects directly to both servers.
    pub fn node(&self, name: &str) -> Node {
        let state = tempfile::tempdir().unwrap();
        let urls = [
            self.database.url(&self.role),
            self.server.address().to_string(),
        ];
        let mut command = self.command(name, state.path(), "127.0.0.1:0", &urls);
        Node {
            program: Program::of(&mut command),
            _state: state,
        }
    }

    /// The command of a node. `urls` are those of the database and the server.
    pub fn command(&self, name: &str, state: &Path, listen: &str, urls: &[String; 2]) -> Command {
        let listen = format!("--listen={listen}");
        let mut command = without_admin(&["serve", &listen, &few_candles()]);
        command
            .args(self.scene.flags(state))
            .stderr(Stdio::null())
            .env("BHAV_NODE", name)
            .env("BHAV_STORE_URL", &urls[0])
            .env("BHAV_CACHE_URL", &urls[1])
            .env("BHAV_LEASE_MS", LEASE_MS.to_string())
            .env("BHAV_BROKERA_TICKER", "false")
            .env("BHAV_WRITES_PER_USER_PER_MINUTE", "0")
            .envs(self.secrets.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl Node {
    pub fn health(&self) -> Value {
        self.program.client().get("/api/health").json()
    }

    /// Registers a user and returns the header line.
    pub fn register(&self, password: &str) -> String {
        let answer = self.program.client().send_json(
            "POST",
            "/api/auth/register",
            "",
            &registration(password),
        );
        assert_eq!(answer.status, 201, "{}", answer.text());
        bearer(&answer.field("access_token"))
    }

    /// Writes an entry to a user's journal.
    pub fn write(&self, auth: &str, notes: &str) {
        let client = &mut self.program.client();
        client
            .send_json("POST", "/api/journal", auth, &entry(notes))
            .with_status(201);
    }
}

/// Body of a request for a new user.
pub fn registration(password: &str) -> String {
    format!(r#"{{"email":"asha@example.com","password":"{password}","name":"A"}}"#)
}

/// Body of a request for a new entry of the journal.
pub fn entry(notes: &str) -> String {
    format!(
        r#"{{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1,
            "price":1764.90,"notes":"{notes}"}}"#
    )
}
