//! The simulator without a socket, for a service on a stage (`rt/staged.rs`). The service's clients
//! pass their requests by a function call, in their own thread.

use std::io::{self, Read};

use bhav::base::{Clock, rng};
use bhav::brokers::Peer;
use bhav::rt::staged;
use bhav::sim::{MARK_HEADER, Reply, SimInMemory, SimSettings};
use flate2::read::GzDecoder;
use jiff::Timestamp;
use parking_lot::Mutex;
use rust_decimal::Decimal;
use ureq::http::{Request as Asked, Response};
use ureq::{Body, Error, SendBody, Timeout};

/// Root URL of the simulator for a service's clients. Nothing listens there.
const ROOT: &str = "http://simulator.invalid";
/// Longest delay of the network, in each direction.
const WAY_MS_MAX: u64 = 120;

/// A simulator that is called and not connected to.
pub struct SimPeer {
    sim: SimInMemory,
    clock: Clock,
    mark: String,
    /// Time-outs of a call: until its answer begins, and until it is complete.
    read_timeout_ms: u64,
    total_timeout_ms: u64,
    /// Path and time of arrival of each request.
    asked: Mutex<Vec<(String, u64)>>,
}

impl SimPeer {
    /// A simulator whose exchange runs on `clock`. Calls end at these time-outs.
    pub fn new(
        settings: SimSettings,
        clock: &Clock,
        read_timeout_ms: u64,
        total_timeout_ms: u64,
    ) -> Self {
        let mark = format!("seed={}", settings.seed);
        let (clock, asked) = (clock.clone(), Mutex::default());
        let sim = SimInMemory::new(settings, &clock);
        Self {
            sim,
            clock,
            mark,
            read_timeout_ms,
            total_timeout_ms,
            asked,
        }
    }

    /// Root of broker A's API (`a`), broker B's (`b`), or the public provider's (`p`).
    pub fn url(upstream: &str) -> String {
        format!("{ROOT}/{upstream}")
    }

    /// Answers a control route (docs of `sim/control.rs`): the status and the document.
    pub fn control(&self, method: &str, target: &str, body: &str) -> (u16, Vec<u8>) {
        let target = format!("/sim/control/{target}");
        let reply = self.sim.answer(method, &target, Vec::new(), body.into());
        (reply.status, reply.body)
    }

    /// Takes the paths requested since the last call of this, each with its time of arrival.
    pub fn take_asked(&self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.asked.lock())
    }

    /// The exchange's price of `symbol` at `at`, whatever faults are set.
    pub fn price(&self, symbol: &str, at: Timestamp) -> Option<Decimal> {
        self.sim.price(symbol, at)
    }

    /// The exchange's previous close of the session that `symbol` shows at `at`.
    pub fn previous_close(&self, symbol: &str, at: Timestamp) -> Option<Decimal> {
        self.sim.previous_close(symbol, at)
    }

    fn way(&self) {
        staged::pause(rng::bits() % WAY_MS_MAX);
    }

    /// Waits as long as the reply takes to arrive, and fails as its delivery says.
    fn deliver(&self, reply: &mut Reply) -> Result<(), Error> {
        let delivery = reply.delivery;
        if delivery.delay_ms >= self.read_timeout_ms {
            staged::pause(self.read_timeout_ms);
            return Err(Error::Timeout(Timeout::RecvResponse));
        }
        staged::pause(delivery.delay_ms);
        self.way();
        if delivery.refuse {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        let bytes_per_s = delivery.bytes_per_s.map_or(u64::MAX, u64::from);
        let body_ms = (reply.body.len() as u64 * 1_000) / bytes_per_s.max(1);
        if delivery.delay_ms + body_ms >= self.total_timeout_ms {
            staged::pause(self.total_timeout_ms - delivery.delay_ms);
            return Err(Error::Timeout(Timeout::Global));
        }
        staged::pause(body_ms);
        if delivery.truncate {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if let Some(at) = reply
            .headers
            .iter()
            .position(|(name, _)| *name == "Content-Encoding")
        {
            reply.headers.remove(at);
            let mut whole = Vec::new();
            GzDecoder::new(reply.body.as_slice()).read_to_end(&mut whole)?;
            reply.body = whole;
        }
        Ok(())
    }
}

impl Peer for SimPeer {
    fn answer(&self, asked: Asked<SendBody<'_>>) -> Result<Response<Body>, Error> {
        let (parts, body) = asked.into_parts();
        let target = parts
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let headers = parts.headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let mut sent = Vec::new();
        body.into_reader().read_to_end(&mut sent)?;
        let mut headers: Vec<_> = headers.collect();
        // The client's library would set it after this point.
        headers.push(("user-agent".to_owned(), "Mozilla/5.0".to_owned()));
        self.way();
        let (path, at_mono_ms) = (parts.uri.path().to_owned(), self.clock.monotonic_ms());
        self.asked.lock().push((path, at_mono_ms));
        let mut reply = self
            .sim
            .answer(parts.method.as_str(), target, headers, sent);
        self.deliver(&mut reply)?;
        let mut response = Response::builder()
            .status(reply.status)
            .header(MARK_HEADER, &self.mark);
        for (name, value) in &reply.headers {
            response = response.header(*name, value);
        }
        Ok(response.body(Body::builder().data(reply.body))?)
    }
}
