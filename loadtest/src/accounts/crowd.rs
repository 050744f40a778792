//! People who log in, and people whose syncs hang: OS threads that each ask again and again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::http::Request;

use super::people::agent;
use super::states::{credentials, email};

/// What somebody who was turned away waits: what the answers' `Retry-After` says at the least.
const BACK_OFF: Duration = Duration::from_secs(1);

/// How often somebody who waits looks whether it is over.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Answers by status; 0 stands for none.
pub type Answers = BTreeMap<u16, u64>;

/// Threads that ask until they are told to stop.
pub struct Crowd {
    stop: Arc<AtomicBool>,
    answers: Arc<Mutex<Answers>>,
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// `clients` users log in at once, and each again as soon as it has a token.
    pub fn logging_in(address: SocketAddr, clients: usize) -> Self {
        let asks = (1..=clients).map(|number| (None, credentials(&email(number))));
        Self::start(&format!("http://{address}/api/auth/login"), asks)
    }

    /// Every token's user asks for a sync of broker A, again and again.
    pub fn syncing(address: SocketAddr, tokens: &[String]) -> Self {
        let asks = tokens.iter().enumerate().map(|(number, token)| {
            // A key each, as users have: calls are limited by key.
            let body = serde_json::json!({
                "api_key": format!("load-key-{number}"),
                "api_secret": "load-secret",
                "request_token": "load-token",
            });
            (Some(token.clone()), body)
        });
        Self::start(&format!("http://{address}/api/portfolio/sync"), asks)
    }

    fn start(url: &str, asks: impl Iterator<Item = (Option<String>, Value)>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let answers = Arc::new(Mutex::new(Answers::new()));
        let threads = asks.map(|(token, body)| {
            let (stop, answers, url) = (Arc::clone(&stop), Arc::clone(&answers), url.to_owned());
            thread::spawn(move || ask_on(&url, token.as_deref(), &body, &stop, &answers))
        });
        let threads = threads.collect();
        Self { stop, answers, threads }
    }

    /// Answers so far.
    pub fn answers(&self) -> Answers {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets everybody finish the request under way, and no other; all answers.
    pub fn end(self) -> Answers {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let _ = thread.join();
        }
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Those of `after` that are not in `before`.
pub fn since(before: &Answers, after: &Answers) -> Answers {
    after
        .iter()
        .map(|(&status, &count)| (status, count - before.get(&status).unwrap_or(&0)))
        .filter(|&(_, count)| count > 0)
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

fn ask_on(
    url: &str,
    token: Option<&str>,
    body: &Value,
    stop: &AtomicBool,
    answers: &Mutex<Answers>,
) {
    yield_to_others();
    let agent = agent();
    while !stop.load(Ordering::Relaxed) {
        let mut request = Request::post(url).header("Content-Type", "application/json");
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let answer = request.body(body.to_string()).ok().map(|request| agent.run(request));
        let status = match answer {
            Some(Ok(mut response)) => {
                // Read to the end, so that the connection is used again.
                let _ = response.body_mut().read_to_vec();
                response.status().as_u16()
            }
            _ => 0,
        };
        *answers.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
        let turned_away = Instant::now();
        while status != 200 && turned_away.elapsed() < BACK_OFF && !stop.load(Ordering::Relaxed) {
            thread::sleep(LOOK_INTERVAL);
        }
    }
}
