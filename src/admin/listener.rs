//! The listener of metrics and probes: its limits, and what it answers.
//!
//! Probes are answered on the edge from memory; a scrape is gathered on the lane `admin`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use serde::Serialize;

use crate::admin::exposition;
use crate::admin::metrics;
use crate::admin::probes;
use crate::admin::probes::Verdict;
use crate::api::Api;
use crate::base::Clock;
use crate::brokers::Public;
use crate::cache::{Responses, SecondLevel};
use crate::health::Readings;
use crate::http::server::shared::Shared;
use crate::http::settings::HttpSettings;
use crate::http::{Listener, Method, Problem, Request, Response, Serve, Server};
use crate::rt::{Lane, LaneSpec};

/// One scraper or two, a supervisor's probe, a person with curl; the rest is for whoever leaves
/// connections open. `app` reserves descriptors for them.
const CONNECTIONS_MAX: usize = 64;

/// Shorter than the time between two scrapes: keeping a connection for the next one saves nothing
/// here, and who holds many must not blind a probe for long.
const IDLE_TIMEOUT_MS: u64 = 5_000;

/// Nothing here has a body, and nobody on this machine needs long for a head.
const BODY_BYTES_MAX: usize = 0;

const HEAD_TIMEOUT_MS: u64 = 5_000;

/// Of the listener itself, once everything else has ended.
const DRAIN_TIMEOUT_MS: u64 = 1_000;

/// Scrapes that may wait; each takes some milliseconds.
const SCRAPES_WAITING_MAX: usize = 4;

/// Below a scraper's usual timeout of ten seconds.
const SCRAPE_DEADLINE_MS: u64 = 5_000;

/// Every path, for the document at an unknown one.
const PATHS: [&str; 3] = ["/metrics", "/livez", "/readyz"];

/// What is looked at beside the edge's own state.
pub struct MetricSources {
    pub clock: Clock,
    pub state_dir: PathBuf,
    /// Every lane that the composition root started.
    pub lanes: Vec<Arc<Lane>>,
    pub vitals: Arc<ArcSwapOption<Readings>>,
    pub answers: Arc<Responses>,
    pub l2: Arc<dyn SecondLevel>,
    /// `None` when switched off.
    pub public: Option<Arc<Public>>,
}

/// Everything that is looked at.
pub(super) struct Watched {
    pub(super) edge: Arc<Shared<Api>>,
    pub(super) back: MetricSources,
    /// Where the service listens whose listener this is.
    of: String,
    /// Unix seconds by the machine's own clock, whatever the service's reads.
    pub(super) started_s: f64,
}

/// The service of the operator's listener.
pub struct Admin {
    watched: Arc<Watched>,
    lane: Lane,
}

impl Admin {
    /// Serves what `edge` and `back` show of the service that listens at `of`, on `listener`.
    ///
    /// # Errors
    /// When a thread or the poll registration cannot be had.
    pub fn start(
        listener: Listener,
        http: &HttpSettings,
        of: &str,
        edge: Arc<Shared<Api>>,
        back: MetricSources,
    ) -> io::Result<Server<Self>> {
        let settings = HttpSettings {
            connections_max: CONNECTIONS_MAX,
            connections_per_address_max: 0,
            body_bytes_max: BODY_BYTES_MAX,
            head_timeout_ms: HEAD_TIMEOUT_MS,
            idle_timeout_ms: IDLE_TIMEOUT_MS,
            drain_timeout_ms: DRAIN_TIMEOUT_MS,
            trusted_proxies: Vec::new(),
            allowed_origins: Vec::new(),
            // The rest as the service has it: buffers are pooled by their size.
            ..http.clone()
        };
        let clock = back.clock.clone();
        let spec = LaneSpec { name: "admin", threads: 1, queue_max: SCRAPES_WAITING_MAX };
        let lane = Lane::start(&spec, &clock)?;
        let started_s = Clock::system().now_ms() as f64 / 1_000.0;
        let watched = Arc::new(Watched { edge, back, of: of.to_owned(), started_s });
        Server::start(listener, &settings, &clock, Self { watched, lane })
    }

    /// Gathers the metrics.
    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    fn answer(&self, request: &Request<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
        let path = request.path();
        if !PATHS.iter().any(|known| known.as_bytes() == path) {
            let detail = "There are /metrics, /livez and /readyz.";
            return Err(Problem::new(404, "not_found", detail));
        }
        if !matches!(request.method(), Method::Get | Method::Head) {
            let detail = "This path takes GET and HEAD only.";
            let problem = Problem::new(405, "method_not_allowed", detail);
            return Err(problem.with("Allow", "GET, HEAD".to_owned()));
        }
        let verdict = match path {
            b"/livez" => probes::alive(probes::heartbeat_age_ms(&self.watched)),
            b"/readyz" => probes::ready(&self.watched),
            _ => return self.metrics(reply),
        };
        self.send_verdict(reply, &verdict);
        Ok(())
    }

    fn metrics(&self, reply: &mut Response<'_>) -> Result<(), Problem> {
        let (watched, own) = (Arc::clone(&self.watched), self.lane.stats());
        let ticket = self.lane.submit(SCRAPE_DEADLINE_MS, move || metrics::gather(&watched, own));
        let text = ticket.map_err(too_busy).and_then(|ticket| ticket.wait().map_err(too_busy))?;
        reply.body().extend_from_slice(text.as_bytes());
        reply.send(200, exposition::CONTENT_TYPE, &[("Cache-Control", "no-store")]);
        Ok(())
    }

    fn send_verdict(&self, reply: &mut Response<'_>, verdict: &Verdict) {
        let probed = Probed { verdict, of: &self.watched.of };
        let body = sonic_rs::to_vec(&probed).expect("names and text always serialise");
        reply.body().extend_from_slice(&body);
        let status = if verdict.is_good() { 200 } else { 503 };
        reply.send(status, crate::http::message::response::JSON, &[("Cache-Control", "no-store")]);
    }
}

/// A verdict with the service that it is about: another instance may have the default address.
#[derive(Serialize)]
struct Probed<'a> {
    #[serde(flatten)]
    verdict: &'a Verdict,
    of: &'a str,
}

fn too_busy(error: impl std::error::Error + Send + Sync + 'static) -> Problem {
    Problem::unavailable("busy", "Too many are asking for metrics.", 1).because(error)
}

impl Serve for Admin {
    fn serve<'a>(&'a self, request: &Request<'_>, reply: &mut Response<'a>) {
        if let Err(problem) = self.answer(request, reply) {
            let request_id = reply.problem(&problem);
            let (status, code) = (problem.status, problem.code);
            let cause = problem.cause.as_deref();
            tracing::info!(
                request_id,
                status,
                code,
                cause,
                "request to the admin listener refused"
            );
        }
    }
}
