//! The simulator and the service, each a process of its own, so that one can be restarted beside
//! the other.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use ureq::Agent;

use super::schedule::Pace;
use crate::error::Error;
use crate::process::Process;
use crate::servers::{LISTENING, Programs, TRADING_INSTANT, empty_folder};
use crate::simulator::Simulator;

/// Deadline of each request of the checker: longer than any answer of the service may take.
const REQUEST_DEADLINE: Duration = Duration::from_secs(5);

/// Both, while they run.
pub struct World {
    program: PathBuf,
    work_folder: PathBuf,
    state_folder: PathBuf,
    /// Where the service listens.
    pub service: SocketAddr,
    agent: Agent,
    running: Option<Process>,
    simulator: Simulator,
}

impl World {
    /// Starts both in the middle of an ordinary trading day, with nothing kept.
    ///
    /// # Errors
    /// One does not start.
    pub fn start(programs: &Programs, pace: Pace) -> Result<Self, Error> {
        let program = programs.bhav.clone().ok_or(Error::Unexpected("bhav was left out"))?;
        let state_folder = programs.work_folder.join("honesty-state");
        empty_folder(&state_folder)?;
        let delay_s = pace.public_delay.as_secs().to_string();
        let settings = [("BHAV_SIM_PUBLIC_DELAY_S", &*delay_s)];
        let simulator =
            Simulator::start(&program, &programs.work_folder, TRADING_INSTANT, &settings)?;
        let agent = Agent::config_builder()
            .timeout_global(Some(REQUEST_DEADLINE))
            .http_status_as_error(false)
            .build()
            .into();
        let mut world = Self {
            program,
            work_folder: programs.work_folder.clone(),
            state_folder,
            service: SocketAddr::from(([127, 0, 0, 1], 0)),
            agent,
            running: None,
            simulator,
        };
        world.start_service()?;
        Ok(world)
    }

    /// Stops the service as a supervisor does, and starts it again on what it left.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart_service(&mut self) -> Result<(), Error> {
        self.running = None;
        self.start_service()
    }

    fn start_service(&mut self) -> Result<(), Error> {
        let command = self.simulator.service(&self.program, &self.state_folder)?;
        let mut process = Process::start("honesty-serve", command, &self.work_folder)?;
        self.service = process.announced(LISTENING)?;
        self.running = Some(process);
        Ok(())
    }

    /// What the simulated exchange's clock reads.
    ///
    /// # Errors
    /// The simulator does not answer.
    pub fn now(&self) -> Result<Timestamp, Error> {
        self.simulator.now()
    }

    /// What the exchange itself shows of these symbols at a moment.
    ///
    /// # Errors
    /// The simulator does not answer.
    pub fn exchange(&self, at: Timestamp, symbols: &[String]) -> Result<Value, Error> {
        let mut path = format!("exchange?at={at}");
        for symbol in symbols {
            path.push_str("&i=");
            path.push_str(&encoded(symbol));
        }
        Ok(self.control("GET", &path, None)?["ticks"].take())
    }

    /// How often the public provider's chart route was asked.
    ///
    /// # Errors
    /// The simulator does not answer.
    pub fn chart_calls(&self) -> Result<u64, Error> {
        let stats = self.control("GET", "stats", None)?;
        Ok(stats["requests"]["public.chart"].as_u64().unwrap_or(0))
    }

    /// Puts these faults in the place of all others.
    ///
    /// # Errors
    /// The simulator does not take them.
    pub fn set_faults(&self, faults: &[Value]) -> Result<(), Error> {
        self.control("DELETE", "faults", None)?;
        for fault in faults {
            self.control("POST", "faults", Some(fault))?;
        }
        Ok(())
    }

    /// Logs broker A in again, as its operator does once a token is dead.
    ///
    /// # Errors
    /// Somebody does not answer.
    pub fn log_in(&self) -> Result<(), Error> {
        let code = self.control("POST", "broker_a/request_token", None)?;
        let url = format!("http://{}/brokera/activate", self.service);
        let body = json!({"request_token": code["request_token"]});
        let sent = self.agent.post(&url).send_json(&body);
        sent.map(drop).map_err(|source| Error::Http { url, source: Box::new(source) })
    }

    fn control(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let url = format!("{}/sim/control/{path}", self.simulator.root);
        let failed = |source| Error::Http { url: url.clone(), source: Box::new(source) };
        let sent = match (method, body) {
            ("DELETE", _) => self.agent.delete(&url).call(),
            ("POST", Some(body)) => self.agent.post(&url).send_json(body),
            ("POST", None) => self.agent.post(&url).send_empty(),
            _ => self.agent.get(&url).call(),
        };
        let mut response = sent.map_err(failed)?;
        if !response.status().is_success() {
            return Err(Error::Invalid(format!("{url} answered {}", response.status())));
        }
        response.body_mut().read_json().map_err(failed)
    }

    /// An answer of the service with its status; `None` while it does not answer at all.
    pub fn get(&self, path: &str) -> Option<(u16, Value)> {
        let url = format!("http://{}{path}", self.service);
        let mut response = self.agent.get(&url).call().ok()?;
        let status = response.status().as_u16();
        Some((status, response.body_mut().read_json().ok()?))
    }
}

/// A symbol as a query has it.
pub fn encoded(symbol: &str) -> String {
    symbol.replace(' ', "%20").replace('&', "%26")
}
