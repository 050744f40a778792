//! What goes on beside a measured load: upstreams that hang, users who log in, syncs that hang,
//! readers of the stream.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use openloop::request::live_prices_path;
use serde_json::{Value, json};

use crate::crowd::Crowd;
use crate::databases::{credentials, email, log_in};
use crate::error::Error;
use crate::figures::Figures;
use crate::harness::{Harness, SYMBOLS_PER_REQUEST, wait_for_quotes};
use crate::http::{self, Client, DEADLINE};
use crate::run::Background;
use crate::servers::Server;
use crate::ticker::{self, QuoteReader};
use crate::wait;

/// Users who log in at once.
const LOGINS: usize = 200;

/// Syncs that hang, each of another user.
const SYNCS: usize = 50;

/// How long a hanging upstream call takes.
const HANG_MS: u64 = 30_000;

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

/// The users whose syncs hang.
pub fn prepare(server: &Server, background: Background) -> Result<Vec<String>, Error> {
    match background {
        Background::None
        | Background::HangingUpstreams
        | Background::Readers(_)
        | Background::ReadersLoginsAndHangs(_)
        | Background::AllInstruments => Ok(Vec::new()),
        Background::LoginsAndSyncs => {
            (LOGINS + 1..=LOGINS + SYNCS).map(|user| log_in(server, &email(user))).collect()
        }
    }
}

/// Begins, and returns when everything is at work.
pub fn begin<'a>(
    harness: &Harness,
    server: &'a Server,
    background: Background,
    tokens: &[String],
) -> Result<Running<'a>, Error> {
    let (stop, answers) = (Arc::default(), Arc::default());
    let (threads, crowd, quotes) = (Vec::new(), None, None);
    let mut running = Running { server, background, stop, answers, threads, crowd, quotes };
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
            server.simulator()?.delay("broker_a.session", HANG_MS)?;
            for (number, token) in tokens.iter().enumerate() {
                // A key each, as users have: calls are limited by key.
                let body = json!({
                    "api_key": format!("load-key-{number}"),
                    "api_secret": "load-secret",
                    "request_token": "load-token",
                });
                running.ask("sync", server.url("/api/portfolio/sync"), Some(token), body);
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
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the faults back and lets every client finish its request under way; all answers, and
    /// what the readers saw.
    pub fn end(mut self) -> Result<Answers, Error> {
        let seen = self.crowd.take().map(|mut crowd| crowd.values()).transpose()?;
        let delays = self.quotes.take().map(|reader| reader.end(self.server)).transpose()?;
        if self.background != Background::None {
            self.server.simulator()?.set_faults(&[])?;
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
            self.ask("login", server.url("/api/auth/login"), None, credentials(&email(user)));
        }
    }

    /// Asks for quotes of all of these, well within the minute for which they stay wanted.
    fn keep_wanted(&mut self, urls: Vec<String>) {
        let stop = Arc::clone(&self.stop);
        self.threads.push(thread::spawn(move || {
            yield_to_others();
            let client = Client::new(DEADLINE);
            let stopped = || stop.load(Ordering::Relaxed);
            while !stopped() {
                for url in &urls {
                    // A request that fails is made again in the next pass.
                    let _ = client.send("GET", url, &[], None);
                    let _ = wait::until(WANTED_PAUSE, || Ok(stopped().then_some(())));
                }
            }
        }));
    }

    fn ask(&mut self, kind: &'static str, url: String, token: Option<&str>, body: Value) {
        let (stop, answers) = (Arc::clone(&self.stop), Arc::clone(&self.answers));
        let bearer = token.map(|token| format!("Bearer {token}"));
        self.threads.push(thread::spawn(move || {
            yield_to_others();
            let client = Client::new(DEADLINE);
            let headers: Vec<(&str, &str)> =
                bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
            let stopped = || stop.load(Ordering::Relaxed);
            while !stopped() {
                let answer = client.send("POST", &url, &headers, Some(&body));
                let status = answer.map_or(0, |answer| answer.status);
                let mut counts = answers.lock().unwrap_or_else(PoisonError::into_inner);
                *counts.entry(format!("{kind} {status}")).or_default() += 1.0;
                drop(counts);
                if status != 200 {
                    let _ = wait::until(BACK_OFF, || Ok(stopped().then_some(())));
                }
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
    some.map(|some| server.url(&live_prices_path(some.iter().map(String::as_str)))).collect()
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
    let mut servers: Vec<(&str, Answers)> = Vec::new();
    for ((server, _), slice) in figures.all().filter(|((_, of), _)| *of == case) {
        if servers.last().is_none_or(|(last, _)| last != server) {
            servers.push((server, Answers::new()));
        }
        let Some((_, sum)) = servers.last_mut() else { continue };
        for kind in ["login ", "sync "] {
            for (status, count) in slice.values(kind).filter(|&(_, count)| count > 0.0) {
                *sum.entry(format!("{kind}{status}")).or_default() += count;
            }
        }
    }
    let mut out = String::from(
        "Answers by status (0: none), to logins in the loaded slices and to syncs until the last \
         one ended:\n\n",
    );
    for (server, sum) in servers {
        let of = |kind: &str| {
            let counts = sum.iter().filter_map(|(name, count)| {
                Some(format!("{count} × {}", name.strip_prefix(kind)?.trim_start()))
            });
            let counts: Vec<String> = counts.collect();
            if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
        };
        out.push_str(&format!("- {server}: logins {}; syncs {}\n", of("login"), of("sync")));
    }
    out
}
