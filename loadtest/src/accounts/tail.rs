//! The snapshot's tail while many log in at once and many syncs hang on a slow broker.

use std::thread;
use std::time::{Duration, Instant};

use super::Effort;
use super::crowd::{Answers, Crowd, since};
use super::people;
use super::states::{NO_LOGIN_LIMIT, States, email};
use crate::error::Error;
use crate::fetch;
use crate::generator::{Ask, Generator, Slice};
use crate::servers::{Programs, Server};
use crate::stats::{median, median_ratio};

/// Clients that log in at once.
pub const LOGINS: usize = 200;

/// Syncs that hang.
pub const SYNCS: usize = 50;

/// Rate of the snapshot, in requests a second.
pub const RATE_PER_S: u64 = 10_000;

/// Its connections.
pub const CONNECTIONS: usize = 64;

/// How long the broker takes to answer.
const BROKER_DELAY_MS: u64 = 30_000;

/// Deadline of a sync: longer than a loaded slice with its beginning, so that nobody who hangs is
/// let go meanwhile, and shorter than the default for the sake of the test's own length.
const SYNC_TIMEOUT: (&str, &str) = ("BHAV_SYNC_TIMEOUT_MS", "8000");

/// The breaker would turn the syncs of all rounds but the first away instead of letting them hang.
const NO_BREAKER: (&str, &str) = ("BHAV_UPSTREAM_BREAKER_FAILURES", "1000");

/// Until every client is at it.
const SETTLES: Duration = Duration::from_millis(1_500);

/// Slices are longer than elsewhere, so that p99.9 stands on dozens of requests.
const SLICES: u64 = 2;

/// A choice of the settings that bound what logins may take.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// What stands in the table.
    pub name: &'static str,
    /// Environment variables.
    pub variables: &'static [(&'static str, &'static str)],
    /// Has a target, and so all rounds.
    pub is_default: bool,
}

/// The default and what is to either side of it.
pub const SETTINGS: [Setting; 3] = [
    Setting { name: "default", variables: &[], is_default: true },
    Setting {
        name: "BHAV_CRYPTO_QUEUE_MAX=8",
        variables: &[("BHAV_CRYPTO_QUEUE_MAX", "8")],
        is_default: false,
    },
    Setting {
        name: "BHAV_CRYPTO_THREADS=2",
        variables: &[("BHAV_CRYPTO_THREADS", "2")],
        is_default: false,
    },
];

/// One loaded slice.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The snapshot's figures.
    pub slice: Slice,
    /// Share of one core that the hashing threads used.
    pub crypto_share: f64,
    /// Answers to logins, by status.
    pub logins: Answers,
    /// Answers to syncs, by status, those after the slice included.
    pub syncs: Answers,
    /// Length of the slice, in seconds.
    pub elapsed_s: f64,
}

/// All rounds of one setting.
pub struct Tail {
    /// Which.
    pub setting: Setting,
    /// Quiet slices.
    pub quiet: Vec<Slice>,
    /// Slices of the same rounds under logins and hanging syncs.
    pub loaded: Vec<Loaded>,
}

impl Tail {
    /// p99.9 under load as a ratio to the quiet value of the same round, median.
    pub fn ratio(&self) -> Option<f64> {
        let loaded: Vec<f64> =
            self.loaded.iter().map(|loaded| loaded.slice.load.latency.p999_us).collect();
        let quiet: Vec<f64> = self.quiet.iter().map(|slice| slice.load.latency.p999_us).collect();
        median_ratio(&loaded, &quiet)
    }

    /// Logins a second that ended with one of `statuses`, median over the rounds.
    pub fn logins_per_s(&self, of: impl Fn(u16) -> bool) -> Option<f64> {
        let rates: Vec<f64> = self
            .loaded
            .iter()
            .map(|loaded| {
                let counted = loaded.logins.iter().filter(|&(&status, _)| of(status));
                counted.map(|(_, &count)| count as f64).sum::<f64>() / loaded.elapsed_s
            })
            .collect();
        median(&rates)
    }
}

/// Measures on a fresh bhav with many users.
///
/// # Errors
/// bhav does not start, has no simulator, or the generator failed.
pub fn measure(
    programs: &Programs,
    generator: &Generator,
    states: &States,
    setting: Setting,
    effort: Effort,
) -> Result<Tail, Error> {
    let mut variables = vec![NO_LOGIN_LIMIT, SYNC_TIMEOUT, NO_BREAKER];
    variables.extend(setting.variables);
    let server = programs.start_bhav_on(&states.many, &variables)?;
    let syncing: Vec<String> = (LOGINS + 1..=LOGINS + SYNCS)
        .map(|number| people::log_in(server.address, &email(number)))
        .collect::<Result<_, _>>()?;
    let mut tail = Tail { setting, quiet: Vec::new(), loaded: Vec::new() };
    let rounds = if setting.is_default { effort.rounds } else { effort.rounds_aside };
    for _ in 0..rounds {
        let slice = generator.measure(&server, &snapshot(), SLICES * effort.slice_ms)?;
        tail.quiet.push(slice);
        tail.loaded.push(loaded(&server, generator, &syncing, effort)?);
    }
    Ok(tail)
}

fn snapshot() -> Ask {
    Ask::Open {
        path: fetch::SNAPSHOT_PATH.to_owned(),
        connections: CONNECTIONS,
        rate_per_s: RATE_PER_S,
        tick_us: 0,
    }
}

fn loaded(
    server: &Server,
    generator: &Generator,
    syncing: &[String],
    effort: Effort,
) -> Result<Loaded, Error> {
    let simulator = server.simulator()?;
    fetch::delay(simulator, "broker_a.session", BROKER_DELAY_MS)?;
    let syncs = Crowd::syncing(server.address, syncing);
    let logins = Crowd::logging_in(server.address, LOGINS);
    thread::sleep(SETTLES);
    let read = || -> Result<_, Error> {
        let crypto_us = server.process.threads_cpu_us("crypto")?;
        Ok((Instant::now(), crypto_us, logins.answers()))
    };
    let (began, crypto_before_us, logins_before) = read()?;
    let slice = generator.measure(server, &snapshot(), SLICES * effort.slice_ms);
    let (ended, crypto_after_us, logins_after) = read()?;
    fetch::clear_faults(simulator)?;
    logins.end();
    let syncs = syncs.end();
    let elapsed_s = ended.duration_since(began).as_secs_f64();
    Ok(Loaded {
        slice: slice?,
        crypto_share: (crypto_after_us - crypto_before_us) / 1e6 / elapsed_s,
        logins: since(&logins_before, &logins_after),
        syncs,
        elapsed_s,
    })
}
