//! What goes on beside a measured load: upstreams that hang, users who log in, slow syncs,
//! readers of the stream.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::crowd::Crowd;
use crate::databases::{credentials, email, log_in};
use crate::figures::Figures;
use crate::harness::{Harness, SYMBOLS_PER_REQUEST, wait_for_quotes};
use crate::http::{self, Answer, Client, DEADLINE};
use crate::requests::live_prices_path;
use crate::run::Background;
use crate::servers::Server;
use crate::ticker::{self, QuoteReader};
use crate::wait;

/// Users who log in at once.
const LOGINS: usize = 200;

/// Syncs at a slow broker, each of another user.
const SYNCS: usize = 50;

/// How long a hanging upstream call takes.
const HANG_MS: u64 = 30_000;

/// How long broker A takes to answer a sync: less than the deadline of one call, after which the
/// service would take the broker for one that fails and no longer ask it.
const SLOW_SYNC_MS: u64 = 4_500;

/// Time until every feed waits in a call that hangs.
const HANG_SETTLES: Duration = Duration::from_secs(3);

/// Time until every client is at work.
const CLIENTS_SETTLE: Duration = Duration::from_millis(1_500);

/// What a client waits after another status than 200: the least that `Retry-After` says.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Between two requests that keep instruments wanted: sixty of them take some twenty seconds.
const WANTED_PAUSE: Duration = Duration::from_millis(300);

/// Clients that ask at once for what no cache has yet.
const FETCHERS: usize = 12;

/// Counts of answers by kind of request and status; status 0 stands for no answer.
pub type Answers = BTreeMap<String, f64>;

/// What goes on, until it is ended: faults of the simulator, and threads that ask again and again.
pub struct Running<'a> {
    server: &'a Server,
    background: Background,
    stop: Arc<AtomicBool>,
    answers: Arc<Mutex<Answers>>,
    threads: Vec<JoinHandle<()>>,
    crowd: Option<Crowd>,
    quotes: Option<QuoteReader>,
}

/// The users who sync.
pub fn prepare(server: &Server, background: Background) -> Result<Vec<String>> {
    let syncs = if background == Background::LoginsAndSyncs {
        SYNCS
    } else {
        0
    };
    (LOGINS + 1..=LOGINS + syncs)
        .map(|user| log_in(server, &email(user)))
        .collect()
}

/// Begins, and returns when everything is at work.
pub fn begin<'a>(
    harness: &Harness,
    server: &'a Server,
    background: Background,
    tokens: &[String],
) -> Result<Running<'a>> {
    let (stop, answers) = (Arc::default(), Arc::default());
    let (threads, crowd, quotes) = (Vec::new(), None, None);
    let mut running = Running {
        server,
        background,
        stop,
        answers,
        threads,
        crowd,
        quotes,
    };
    match background {
        Background::None => {}
        Background::Readers(readers) => {
            running.crowd = Some(Crowd::gather(&harness.programs, server, readers)?);
        }
        Background::ReadersLoginsAndHangs(readers) => {
            running.crowd = Some(Crowd::gather(&harness.programs, server, readers)?);
            server.simulator()?.delay("*", HANG_MS)?;
            running.log_in(server);
            thread::sleep(HANG_SETTLES);
        }
        Background::AllInstruments => {
            let instruments = server.simulator()?.instruments()?;
            let urls = quote_urls(server, &instruments);
            fetch(&urls);
            wait_for_quotes(server, &instruments)?;
            running.keep_wanted(urls);
            ticker::wait_until_subscribed(server, instruments.len())?;
            running.quotes = Some(QuoteReader::start(server, &instruments)?);
        }
        Background::HangingUpstreams => {
            server.simulator()?.delay("*", HANG_MS)?;
            thread::sleep(HANG_SETTLES);
        }
        Background::LoginsAndSyncs => {
            server
                .simulator()?
                .delay("broker_a.session", SLOW_SYNC_MS)?;
            for (number, token) in tokens.iter().enumerate() {
                // A key each, as users have: calls are limited by key.
                let body = json!({
                    "api_key": format!("load-key-{number}"),
                    "api_secret": "load-secret",
                    "request_token": "load-token",
                });
                let (url, bearer) = (server.url("/api/portfolio/sync"), format!("Bearer {token}"));
                running.again_and_again("sync", move |client| {
                    client.send("POST", &url, &[("Authorization", &bearer)], Some(&body))
                });
            }
            running.log_in(server);
            thread::sleep(CLIENTS_SETTLE);
        }
    }
    Ok(running)
}

impl Running<'_> {
    /// Answers so far.
    pub fn answers(&self) -> Answers {
        self.answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes the faults back and lets every client finish its request under way; all answers, and
    /// what the readers saw.
    pub fn end(mut self) -> Result<Answers> {
        let seen = self
            .crowd
            .take()
            .map(|mut crowd| crowd.values())
            .transpose()?;
        let delays = self
            .quotes
            .take()
            .map(|reader| reader.end(self.server))
            .transpose()?;
        if self.background != Background::None {
            self.server.simulator()?.heal()?;
        }
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let mut answers = self.answers();
        answers.extend(seen.into_iter().flatten());
        answers.extend(delays.into_iter().flatten());
        Ok(answers)
    }

    fn log_in(&mut self, server: &Server) {
        for user in 1..=LOGINS {
            let (url, body) = (server.url("/api/auth/login"), credentials(&email(user)));
            self.again_and_again("login", move |client| {
                client.send("POST", &url, &[], Some(&body))
            });
        }
    }

    /// Asks for quotes of all of these, well within the minute for which they stay wanted.
    fn keep_wanted(&mut self, urls: Vec<String>) {
        let mut urls = urls.into_iter().cycle();
        // A request that fails is made again in the next pass.
        self.repeat(move |client, pause| {
            let _ = urls.next().map(|url| client.send("GET", &url, &[], None));
            pause(WANTED_PAUSE);
        });
    }

    fn again_and_again(
        &mut self,
        kind: &'static str,
        ask: impl Fn(&Client) -> Result<Answer> + Send + 'static,
    ) {
        let answers = Arc::clone(&self.answers);
        self.repeat(move |client, pause| {
            let status = ask(client).map_or(0, |answer| answer.status);
            let mut counts = answers.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry(format!("{kind} {status}")).or_default() += 1.0;
            drop(counts);
            if status != 200 {
                pause(BACK_OFF);
            }
        });
    }

    /// Gives a thread of its own a client and a pause that the end cuts short, until the end.
    fn repeat(&mut self, mut ask: impl FnMut(&Client, &dyn Fn(Duration)) + Send + 'static) {
        let stop = Arc::clone(&self.stop);
        self.threads.push(thread::spawn(move || {
            yield_to_others();
            let client = Client::new(DEADLINE);
            let stopped = || stop.load(Ordering::Relaxed);
            let pause = |time| drop(wait::until(time, || Ok(stopped().then_some(()))));
            while !stopped() {
                ask(&client, &pause);
            }
        }));
    }
}

/// Asks for quotes of all of these by clients at the same time, which share calls: one after the
/// other, each request would wait for a call of its own.
fn fetch(urls: &[String]) {
    thread::scope(|scope| {
        for share in urls.chunks(urls.len().div_ceil(FETCHERS).max(1)) {
            // What is not there yet is asked for again.
            scope.spawn(move || share.iter().for_each(|url| drop(http::get(url, &[]))));
        }
    });
}

/// Requests for quotes of all of these.
fn quote_urls(server: &Server, instruments: &[String]) -> Vec<String> {
    let some = instruments.chunks(SYMBOLS_PER_REQUEST);
    some.map(|some| server.url(&live_prices_path(some)))
        .collect()
}

/// Gives the calling thread the lowest priority: what two hundred clients cost is not the server's
/// doing, and would not be on its machine. A refusal leaves things as they are.
fn yield_to_others() {
    const LOWEST: libc::c_int = 19;
    // SAFETY: plain integers; 0 is the calling thread, and on Linux no other.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, LOWEST);
    }
}

/// What stands below the table of logins: answers by status of each server, in a case.
pub fn answers(figures: &Figures, case: &str) -> String {
    let mut out = String::from(
        "Answers by status (0: none), to logins in the loaded slices and to syncs until the last \
         one ended:\n\n",
    );
    let slices: Vec<_> = figures.all().filter(|((_, of), _)| *of == case).collect();
    for servers in slices.chunk_by(|((one, _), _), ((other, _), _)| one == other) {
        let of = |kind: &str| {
            let mut sums = Answers::new();
            for (status, count) in servers.iter().flat_map(|(_, slice)| slice.values(kind)) {
                *sums.entry(status.to_owned()).or_default() += count;
            }
            let counts = sums.iter().filter(|(_, count)| **count > 0.0);
            let counts: Vec<String> = counts.map(|(s, count)| format!("{count} × {s}")).collect();
            if counts.is_empty() {
                "none".to_owned()
            } else {
                counts.join(", ")
            }
        };
        let ((server, _), _) = servers[0];
        out.push_str(&format!("- {server}: logins {}; syncs {}\n", of("login "), of("sync ")));
    }
    out
}
