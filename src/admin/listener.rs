//! The operator's listener, which serves `/metrics`, `/livez` and `/readyz`.
//!
//! Probes are answered on the edge from memory. Metrics are gathered on the lane `admin`.

use std::io;
use std::sync::Arc;

use serde::Serialize;

use crate::admin::metrics::{MetricSources, Watched};
use crate::admin::{exposition, metrics};
use crate::api::Api;
use crate::base::{Clock, settings};
use crate::http::document::variants::JSON;
use crate::http::server::shared::Shared;
use crate::http::settings::HttpSettings;
use crate::http::{Listener, Method, Problem, Request, Response, Serve, Server};
use crate::ops::Counter;
use crate::rt::{Lane, LaneSpec};
use crate::status::{self, Verdict};

/// Most open connections. A scraper or two, a supervisor's probe and a person with curl need few;
/// the rest allows for clients that leave connections open. One more ends the one that has been
/// silent for longest, so that nobody keeps a probe waiting. `app` reserves descriptors for them.
const CONNECTIONS_MAX: usize = 64;

/// Shorter than the usual interval of scrapes. Reusing a connection saves nothing here, and a
/// client that holds many must not block probes for long.
const IDLE_TIMEOUT_MS: u64 = 5_000;

/// No request here has a body.
const BODY_BYTES_MAX: usize = 0;

/// Clients are on this machine or near it and send a head at once.
const HEAD_TIMEOUT_MS: u64 = 5_000;

/// How long this listener drains, after the service itself has stopped.
const DRAIN_TIMEOUT_MS: u64 = 1_000;

/// Scrapes that may wait for the lane; each takes a few milliseconds.
const SCRAPES_WAITING_MAX: usize = 4;

/// Below a scraper's usual timeout of ten seconds.
const SCRAPE_DEADLINE_MS: u64 = 5_000;

/// All paths; any other is answered 404.
const PATHS: [&str; 3] = ["/metrics", "/livez", "/readyz"];

/// The service of the operator's listener.
pub struct Admin {
    watched: Arc<Watched>,
    lane: Lane,
}

impl Admin {
    /// Serves metrics and probes of the service at `service_address` on `listeners`.
    ///
    /// # Errors
    /// If a thread cannot be started or the listener cannot be polled.
    pub(crate) fn start(
        listeners: Vec<Listener>,
        http: &HttpSettings,
        service_address: &str,
        edge: Arc<Shared<Api>>,
        sources: MetricSources,
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
            // The rest as in the service, above all buffer sizes: buffers are pooled by size.
            ..http.clone()
        };
        let clock = sources.clock.clone();
        let spec = LaneSpec {
            name: "admin",
            threads: 1,
            queue_max: SCRAPES_WAITING_MAX,
        };
        let lane = Lane::start(&spec, &clock)?;
        let started_s = Clock::system().now_ms() as f64 / 1_000.0;
        let service_address = service_address.to_owned();
        let made_room = Counter::new();
        let watched = Watched {
            edge,
            sources,
            service_address,
            started_s,
            made_room,
        };
        let watched = Arc::new(watched);
        Server::start(listeners, &settings, &clock, Self { watched, lane })
    }

    /// The lane that gathers metrics.
    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    fn answer(&self, request: &Request<'_>, response: &mut Response<'_>) -> Result<(), Problem> {
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
        let watched = &self.watched;
        let verdict = match path {
            b"/livez" => status::alive(watched.heartbeat_age_ms(), watched.fan_out_age_ms()),
            b"/readyz" => watched.readiness(),
            _ => return self.metrics(response),
        };
        let probed = Probed {
            verdict: &verdict,
            of: &watched.service_address,
        };
        let body = sonic_rs::to_vec(&probed).expect("names and text always serialise");
        response.body().extend_from_slice(&body);
        let status = if verdict.is_good { 200 } else { 503 };
        response.send(status, JSON, &[("Cache-Control", "no-store")]);
        Ok(())
    }

    fn metrics(&self, response: &mut Response<'_>) -> Result<(), Problem> {
        let watched = Arc::clone(&self.watched);
        let own = self.lane.stats();
        let ticket = self
            .lane
            .submit(SCRAPE_DEADLINE_MS, move || metrics::gather(&watched, own));
        let text = ticket
            .map_err(too_busy)
            .and_then(|ticket| ticket.wait().map_err(too_busy))?;
        response.body().extend_from_slice(text.as_bytes());
        response.send(200, exposition::CONTENT_TYPE, &[("Cache-Control", "no-store")]);
        Ok(())
    }
}

/// A verdict with the address of its service, because another instance may have taken the default
/// port of this listener.
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
    fn makes_room(&self) -> bool {
        self.watched.made_room.increment();
        true
    }

    fn serve<'a>(&'a self, request: &Request<'_>, response: &mut Response<'a>) {
        if let Err(problem) = self.answer(request, response) {
            let request_id = response.problem(&problem);
            let status = problem.status;
            let code = problem.code;
            // One limit with the service's own listener, whose summaries count these lines too.
            let lines = &self.watched.edge.stats.refusal_lines;
            if !lines.admit(status, code, self.watched.sources.clock.monotonic_ms()) {
                return;
            }
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

// ---- Settings
//
// Settings of the operator's listener.

/// Address for metrics and probes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminListen {
    /// Not set: [`AdminListen::DEFAULT`] if it is free, else no listener, so that several instances
    /// can run on one machine.
    Default,
    /// `ADDRESS:PORT` or `unix:PATH`. The service refuses to start if it cannot listen there.
    At(String),
    Off,
}

impl AdminListen {
    /// The default address. 9464 is the usual port of OpenTelemetry's Prometheus exporters.
    pub(crate) const DEFAULT: &'static str = "127.0.0.1:9464";
    /// Given in place of an address: no listener.
    pub const OFF: &'static str = "off";

    /// The address to listen at; `None` if switched off.
    pub(crate) fn address(&self) -> Option<&str> {
        match self {
            Self::Default => Some(Self::DEFAULT),
            Self::At(address) => Some(address),
            Self::Off => None,
        }
    }
}

impl From<&str> for AdminListen {
    fn from(text: &str) -> Self {
        match text {
            Self::OFF => Self::Off,
            address => Self::At(address.to_owned()),
        }
    }
}

settings! {
    /// Settings of the operator's listener.
    pub struct AdminSettings {
        pub listen: AdminListen = AdminListen::Default,
    }
}
