//! The simulator of the brokers and the public provider: a process of its own, so that none of its
//! CPU time and memory is in the figures of the service.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::{self, Client};
use crate::process::Process;

/// Start of the line by which the simulator announces where it listens.
const LISTENING: &str = "simulator on http://";

/// Deadline of a request to the simulator.
const DEADLINE: Duration = Duration::from_secs(10);

/// A row of broker A's instrument list.
#[derive(Deserialize)]
struct Listed {
    tradingsymbol: String,
    instrument_type: String,
    segment: String,
    exchange: String,
}

/// A running simulator; dropping it stops it.
pub struct Simulator {
    root: String,
    client: Client,
    _process: Process,
}

impl Simulator {
    /// Starts one with settings as environment variables.
    pub fn start(program: &Path, log_folder: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        let mut command = command(program, "sim");
        command.envs(settings.iter().copied());
        let process = Process::start("simulator", command, log_folder)?;
        let root = format!("http://{}", process.announced(LISTENING, |_| {})?);
        Ok(Self {
            root,
            client: Client::new(DEADLINE),
            _process: process,
        })
    }

    /// A service beside it: its feeds, its app at broker A, its clock and a state folder.
    pub fn service(&self, program: &Path, state_folder: &Path) -> Result<Command> {
        let mut command = command(program, "serve");
        command
            .env("BHAV_STATE_DIR", state_folder)
            .env("BHAV_BROKERA_URL", format!("{}/a", self.root))
            .env(
                "BHAV_BROKERA_TICKER_URL",
                format!("{}/a/ticker", self.root.replace("http", "ws")),
            )
            .env("BHAV_BROKERB_URL", format!("{}/b", self.root))
            .env("BHAV_PUBLIC_URL", format!("{}/p", self.root))
            .env("BROKERA_API_KEY", "simkeya")
            .env("BROKERA_API_SECRET", "simsecreta")
            .env("BROKERA_ACCESS_TOKEN", "simtokena")
            .env("BHAV_NOW", self.now()?.to_string())
            // Several services may run at once.
            .env("BHAV_ADMIN_LISTEN", "127.0.0.1:0");
        Ok(command)
    }

    /// What the simulated exchange's clock reads.
    pub fn now(&self) -> Result<Timestamp> {
        let now_ms = self.stats()?["now_ms"].as_i64().unwrap_or(i64::MAX);
        Timestamp::from_millisecond(now_ms).context("the simulator's clock")
    }

    /// Its counters since the start.
    pub fn stats(&self) -> Result<Value> {
        self.control("GET", "stats", None)
    }

    /// One request to the routes that control it.
    pub fn control(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let url = format!("{}/sim/control/{path}", self.root);
        self.client
            .send(method, &url, &[], body)?
            .expect(200)?
            .json()
    }

    /// Takes every fault back.
    pub fn heal(&self) -> Result<()> {
        self.control("DELETE", "faults", None).map(drop)
    }

    /// Makes a route answer only after `delay_ms` and takes every other fault back.
    pub fn delay(&self, route: &str, delay_ms: u64) -> Result<()> {
        self.heal()?;
        let fault = json!({"kind": "delay", "delay_ms": delay_ms});
        let fault = json!({"route": route, "fault": fault});
        self.control("POST", "faults", Some(&fault)).map(drop)
    }

    /// Ordinary shares of the main exchange, as `NSE:TICKER`.
    pub fn listed_symbols(&self, most: usize) -> Result<Vec<String>> {
        let all = self.listed(|row| row.exchange == "NSE" && row.segment == "NSE")?;
        Ok(all.into_iter().take(most).collect())
    }

    /// Everything that broker A's ticker can send: shares and indices of both exchanges.
    pub fn instruments(&self) -> Result<Vec<String>> {
        self.listed(|_| true)
    }

    /// Of broker A's instrument list (which is always compressed), as `EXCHANGE:TICKER`.
    fn listed(&self, is_wanted: impl Fn(&Listed) -> bool) -> Result<Vec<String>> {
        let url = format!("{}/a/instruments", self.root);
        let headers = [
            ("X-Kite-Version", "3"),
            ("Authorization", "token simkeya:simtokena"),
        ];
        let answer = http::get(&url, &headers)?.expect(200)?;
        // Rows that do not parse are the simulator's to have, as the real list has them.
        Ok(csv::ReaderBuilder::new()
            .flexible(true)
            .from_reader(GzDecoder::new(answer.body.as_slice()))
            .deserialize()
            .filter_map(Result::ok)
            .filter(|row: &Listed| row.instrument_type == "EQ" && is_wanted(row))
            .map(|row| format!("{}:{}", row.exchange, row.tradingsymbol))
            .collect())
    }
}

/// A command of bhav that listens on a free port. The operator's own settings must not decide what
/// is measured.
fn command(program: &Path, name: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if ["BHAV_", "BROKER"]
            .iter()
            .any(|own| name.to_string_lossy().starts_with(own))
        {
            command.env_remove(name);
        }
    }
    command.args([name, "--listen", "127.0.0.1:0"]);
    command
}
