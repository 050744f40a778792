//! The service under attack: echoes each request as JSON, and misbehaves on request.

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bhav::base::Clock;
use bhav::http::settings::HttpSettings;
use bhav::http::{BodyLimits, Prepared, Problem, Request, Response, Serve, Upload};
use bhav::rt::{Lane, LaneSpec};
use crossbeam_channel::{Receiver, Sender, unbounded};
use serde::Serialize;

use super::wait::PATIENCE_MS;

/// A test's control over the service while it runs.
#[derive(Clone)]
pub struct Handle {
    /// Lets one request to `/lane` continue.
    pub release: Sender<()>,
    /// Receives when a request to `/lane` waits.
    pub waiting: Receiver<()>,
    served: Arc<AtomicUsize>,
    asked_for_limits: Arc<AtomicUsize>,
    /// The answer of `/owned`, [`OWNED_BYTES`] long, sent without a copy.
    pub owned: Arc<[u8]>,
    /// The files that were sent to `/upload-kept`.
    pub kept: Arc<Mutex<Vec<Upload>>>,
}

impl Handle {
    /// Requests that have reached the service.
    pub fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }

    /// How often the limits of a body were asked for.
    pub fn asked_for_limits(&self) -> usize {
        self.asked_for_limits.load(Ordering::SeqCst)
    }
}

/// Answers everything.
pub struct Probe {
    lane: Lane,
    gate: Receiver<()>,
    arrived: Sender<()>,
    served: Arc<AtomicUsize>,
    asked_for_limits: Arc<AtomicUsize>,
    prepared: Prepared,
    unchanged: Prepared,
    owned: Arc<[u8]>,
    kept: Arc<Mutex<Vec<Upload>>>,
}

/// More than the kernel buffers for a peer that does not read.
pub const OWNED_BYTES: usize = 24 * 1024 * 1024;

/// Longest wait of a request on the lane.
const LANE_DEADLINE_MS: u64 = 20_000;

impl Probe {
    pub fn new(clock: &Clock) -> (Self, Handle) {
        let spec = LaneSpec {
            name: "probe",
            threads: 4,
            queue_max: 64,
        };
        let (release, gate) = unbounded();
        let (arrived, waiting) = unbounded();
        let served = Arc::new(AtomicUsize::new(0));
        // Each probe has its own, whose references its test counts. Repeating is fast unoptimised.
        let period: Vec<u8> = (0..251).collect();
        let owned: Arc<[u8]> = period.repeat(OWNED_BYTES.div_ceil(251))[..OWNED_BYTES].into();
        let asked_for_limits = Arc::new(AtomicUsize::new(0));
        let kept = Arc::<Mutex<Vec<Upload>>>::default();
        let handle = Handle {
            release,
            waiting,
            served: Arc::clone(&served),
            asked_for_limits: Arc::clone(&asked_for_limits),
            owned: Arc::clone(&owned),
            kept: Arc::clone(&kept),
        };
        let probe = Self {
            lane: Lane::start(&spec, clock).unwrap(),
            gate,
            arrived,
            served,
            asked_for_limits,
            prepared: Prepared::new(
                200,
                &[("ETag", "\"one\""), ("X-Made", "ahead")],
                b"ready-made",
            ),
            unchanged: Prepared::new(304, &[("ETag", "\"one\"")], b"ready-made"),
            owned,
            kept,
        };
        (probe, handle)
    }
}

fn text(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

impl Serve for Probe {
    fn body_limits(&self, head: &Request<'_>, settings: &HttpSettings) -> BodyLimits {
        self.asked_for_limits.fetch_add(1, Ordering::SeqCst);
        let usual = settings.body_limits();
        match head.path() {
            b"/narrow" => BodyLimits {
                bytes_max: 1024,
                ..usual
            },
            b"/odd" => BodyLimits {
                bytes_max: 1000,
                ..usual
            },
            b"/wide" => BodyLimits {
                bytes_max: 1024 * 1024,
                ..usual
            },
            b"/none" => BodyLimits {
                bytes_max: 0,
                ..usual
            },
            b"/hasty" => BodyLimits {
                timeout_ms: 300,
                ..usual
            },
            b"/patient" => BodyLimits {
                timeout_ms: PATIENCE_MS,
                ..usual
            },
            b"/upload" | b"/upload-kept" => settings.upload_limits(),
            b"/upload-hasty" => BodyLimits {
                timeout_ms: 300,
                ..settings.upload_limits()
            },
            _ => usual,
        }
    }

    /// The user is named in the head.
    fn admit(&self, head: &Request<'_>) -> Result<i64, Problem> {
        let user = text(head.header("x-user")).and_then(|user| user.parse().ok());
        user.ok_or_else(|| Problem::new(401, "token_missing", "Say who you are."))
    }

    fn serve_upload(&self, request: &Request<'_>, mut upload: Upload, reply: &mut Response<'_>) {
        self.served.fetch_add(1, Ordering::SeqCst);
        assert!(request.body.is_empty());
        let mut read = Vec::new();
        upload.read_to_end(&mut read).unwrap();
        let sum: u64 = (1..)
            .zip(&read)
            .map(|(at, byte): (u64, _)| at * u64::from(*byte))
            .sum();
        let told = format!("{{\"bytes\":{},\"sum\":{sum}}}", read.len());
        reply.body().extend_from_slice(told.as_bytes());
        reply.send(200, "application/json", &[]);
        if request.path() == b"/upload-kept" {
            self.kept.lock().unwrap().push(upload);
        }
    }

    fn serve(&self, request: &Request<'_>, reply: &mut Response<'_>) {
        self.served.fetch_add(1, Ordering::SeqCst);
        match request.path() {
            b"/panic" => panic!("a handler panics on purpose"),
            b"/halfway" => {
                reply.body().extend_from_slice(b"half an ans");
                panic!("a handler panics with an answer begun");
            }
            b"/mute" => {}
            b"/twice" => {
                reply.send_document(&self.prepared);
                reply.send_document(&self.prepared);
            }
            b"/unchanged" => {
                reply
                    .body()
                    .extend_from_slice(b"a body that must not be sent");
                reply.send(304, "text/plain", &[]);
            }
            b"/prepared" if request.header("if-none-match") == Some(b"\"one\"") => {
                reply.send_document(&self.unchanged);
            }
            b"/prepared" => reply.send_document(&self.prepared),
            b"/problem" => {
                reply.problem(&Problem::new(404, "not_found", "No \"such\" thing.\n"));
            }
            b"/bye" => {
                reply.close();
                reply.send(204, "", &[]);
            }
            b"/large" => {
                let bytes: usize = text(request.query()).unwrap().parse().unwrap();
                reply.body().resize(bytes, b'x');
                reply.send(200, "text/plain", &[]);
            }
            b"/owned" => {
                reply.send_owned(200, "text/plain", &[("X-Made", "apart")], self.owned.clone());
            }
            b"/owned-small" => reply.send_owned(200, "text/plain", &[], b"small".to_vec()),
            b"/owned-panic" => {
                reply.send_owned(200, "text/plain", &[], self.owned.clone());
                panic!("a handler panics with a large answer sent");
            }
            b"/ignore" => {
                reply.body().extend_from_slice(b"ignored");
                reply.send(200, "text/plain", &[]);
            }
            b"/lane" => {
                let (gate, arrived) = (self.gate.clone(), self.arrived.clone());
                let ticket = self.lane.submit(LANE_DEADLINE_MS, move || {
                    arrived.send(()).unwrap();
                    gate.recv().is_ok()
                });
                let outcome = ticket.map(bhav::rt::Ticket::wait);
                reply
                    .body()
                    .extend_from_slice(format!("{outcome:?}").as_bytes());
                reply.send(200, "text/plain", &[]);
            }
            _ => echo(request, reply),
        }
    }
}

/// The fields have a fixed order, so that equal requests have equal answers.
#[derive(Serialize)]
struct Echo<'a> {
    method: &'static str,
    path: Option<String>,
    query: Option<String>,
    body: Option<String>,
    host: Option<String>,
    seen: Vec<Option<String>>,
    client: Option<&'a str>,
}

fn echo(request: &Request<'_>, reply: &mut Response<'_>) {
    let client = request.client_address().map(|address| address.to_string());
    let document = Echo {
        method: request.method().as_str(),
        path: text(Some(request.path())),
        query: text(request.query()),
        body: text(Some(request.body)),
        host: text(request.header("host")),
        seen: request
            .headers("x-seen")
            .map(|value| text(Some(value)))
            .collect(),
        client: client.as_deref(),
    };
    sonic_rs::to_writer(reply.body(), &document).unwrap();
    reply.send(200, "application/json", &[("X-Echo", "yes")]);
}
