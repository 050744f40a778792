//! Output about broker A's ticker while its peer repeats everything that it was sent. Neither the
//! token nor the key, nor anything of the app owner's orders, is in the most verbose log, in health
//! or in the metrics.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bhav::sim::SimSettings;

use super::ticker::{ROUTE, Seen};
use crate::support::upstream::{Said, Upstream};
use crate::support::{Client, Program, Scene, TRADING, bhav, few_candles, until};

const KEY: &str = "CANARYKEYq7x";
const TOKEN: &str = "CANARYTOKENz3w";
/// The canary in the simulator's orders.
const ORDER: &str = "SIMORDERCANARY";
/// The peer's answers in order. After the last the ticker does not retry for a minute.
const ANSWERS: [(u16, &str); 4] = [
    (302, "redirected"),
    (200, "not_websocket"),
    (401, "not_websocket"),
    (403, "refused"),
];

/// Repeats everything: the target as a redirect, the head as a body. `turn` selects the answer, and
/// `given` records that it was sent.
fn repeating(turn: &Arc<AtomicUsize>, given: &Arc<AtomicUsize>) -> Upstream {
    let (turn, given) = (Arc::clone(turn), Arc::clone(given));
    Upstream::start(move |asked| {
        assert!(asked.target.contains(TOKEN) && asked.target.contains(KEY), "{}", asked.target);
        let turn = turn.load(Ordering::SeqCst);
        given.store(turn, Ordering::SeqCst);
        let location = Some(format!("http://127.0.0.1:1{}", asked.target));
        Said {
            status: ANSWERS[turn].0,
            location,
            ..Said::json(asked.head.clone())
        }
    })
}

struct Subject {
    scene: Scene,
    program: Program,
}

impl Subject {
    /// Starts with the ticker at this URL, or at the simulator's.
    fn start(url: Option<&str>) -> Self {
        let mut settings = SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        };
        settings.broker_a.api_key = KEY.into();
        settings.broker_a.access_token = TOKEN.into();
        let scene = Scene::with(TRADING, settings);
        let url = url.map_or_else(|| scene.sim.broker_a_ticker_url(), Into::into);
        let mut command = bhav(&[
            "serve",
            "--listen=127.0.0.1:0",
            "--admin-listen=127.0.0.1:0",
        ]);
        command
            .args(scene.flags(scene.state.path()))
            .args([&format!("--brokera-ticker-url={url}"), &few_candles()])
            .env("BHAV_LOG", "trace")
            .env("BROKERA_API_KEY", KEY)
            .env("BROKERA_ACCESS_TOKEN", TOKEN)
            .stderr(File::create(scene.state.path().join("log")).unwrap());
        let program = Program::of(&mut command);
        Self { scene, program }
    }

    fn seen(&self) -> Seen {
        Seen(self.program.client().get("/api/health").json())
    }

    fn until_failure(&self, failure: &str) {
        until(failure, || self.seen().failure() == Some(failure));
    }

    /// Searches all output so far and at the end.
    fn search(mut self, log_has: &str) {
        let health = self.program.client().get("/api/health").text().to_owned();
        let mut lines = self.program.printed.lines();
        let at = lines
            .find_map(|line| line.strip_prefix("metrics on http://"))
            .unwrap();
        let at = at.strip_suffix("/metrics").unwrap();
        let metrics = Client::connect(at).get("/metrics").text().to_owned();
        assert!(metrics.contains("bhav_ticker_reconnects_total"));
        self.program.terminate();
        assert_eq!(self.program.exit().code(), Some(0));
        let log = std::fs::read_to_string(self.scene.state.path().join("log")).unwrap();
        assert!(log.contains(log_has), "{log}");
        for said in [health, metrics, log, self.program.said()] {
            for canary in [KEY, TOKEN, ORDER] {
                assert!(!said.contains(canary), "{canary} in\n{said}");
            }
        }
    }
}

#[test]
fn a_peer_that_repeats_the_token_brings_it_into_no_log_and_no_error() {
    let (turn, given) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(usize::MAX)));
    let peer = repeating(&turn, &given);
    let subject = Subject::start(Some(&peer.url().replace("http://", "ws://")));
    for (number, (_, failure)) in ANSWERS.into_iter().enumerate() {
        turn.store(number, Ordering::SeqCst);
        until("the answer to be given", || given.load(Ordering::SeqCst) == number);
        subject.until_failure(failure);
    }
    subject.search("ticker disconnected");
}

#[test]
fn orders_and_errors_of_the_peer_are_nowhere_and_a_line_that_breaks_says_no_token() {
    let subject = Subject::start(None);
    for kind in ["order_text", "error_text"] {
        subject
            .scene
            .fault(ROUTE, &format!(r#"{{"kind":"{kind}"}}"#));
    }
    until("ticks", || subject.seen().is_live());
    subject.scene.fault(ROUTE, r#"{"kind":"hangup"}"#);
    subject.until_failure("broken");
    subject.search("ticker connected");
}
