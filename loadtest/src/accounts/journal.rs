//! Acknowledged journal writes, with many writes to a commit and with one.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::Effort;
use super::people;
use super::states::{NO_LOGIN_LIMIT, States, email};
use crate::error::Error;
use crate::generator::{Ask, Generator, Slice};
use crate::servers::{Programs, Server, copy_state};
use crate::stats::{median, median_ratio};

/// Clients, each another user, each with one write under way at any time.
pub const CLIENTS: usize = 64;

/// Health counts are published once a second.
const HEALTH_SETTLES: Duration = Duration::from_millis(1_500);

/// Turns grouping off.
pub const ONE_EACH: (&str, &str) = ("BHAV_STORE_WRITES_PER_COMMIT_MAX", "1");

const ENTRY: &str =
    r#"{"traded_on":"2026-10-14","symbol":"NSE:INFY","side":"buy","quantity":10,"price":1412.95}"#;

/// Writes of one setting.
#[derive(Default)]
pub struct Writes {
    /// One slice per round.
    pub slices: Vec<Slice>,
    /// Writes and commits of all slices together.
    pub counts: [u64; 2],
}

impl Writes {
    /// Acknowledged a second, median.
    pub fn per_s(&self) -> Option<f64> {
        median(&self.rates())
    }

    /// Mean writes in a commit.
    pub fn per_commit(&self) -> f64 {
        self.counts[0] as f64 / self.counts[1].max(1) as f64
    }

    fn rates(&self) -> Vec<f64> {
        self.slices.iter().map(|slice| slice.load.rate_per_s).collect()
    }
}

/// Both settings.
pub struct Journal {
    /// The default: what waits is committed together.
    pub grouped: Writes,
    /// One commit for each write.
    pub one_each: Writes,
}

impl Journal {
    /// Writes a second, grouped to one each, median over the rounds.
    pub fn gain(&self) -> Option<f64> {
        median_ratio(&self.grouped.rates(), &self.one_each.rates())
    }
}

/// Measures on two bhavs in turn, each on its own copy of the small database.
///
/// # Errors
/// bhav does not start or the generator failed.
pub fn measure(
    programs: &Programs,
    generator: &Generator,
    states: &States,
    effort: Effort,
) -> Result<Journal, Error> {
    let start = |name: &str, settings: &[(&str, &str)]| {
        let folder = programs.work_folder.join(name);
        copy_state(&states.few, &folder)?;
        let server = programs.start_bhav_on(&folder, settings)?;
        let ask = ask(&programs.work_folder, name, &server)?;
        Ok::<_, Error>((server, ask, Writes::default()))
    };
    let mut sides = [
        start("state-grouped", &[NO_LOGIN_LIMIT])?,
        start("state-one-each", &[NO_LOGIN_LIMIT, ONE_EACH])?,
    ];
    // Nobody else writes between the first slice and the last.
    thread::sleep(HEALTH_SETTLES);
    for (server, _, writes) in &mut sides {
        writes.counts = counts(server)?;
    }
    for _ in 0..effort.rounds {
        for (server, ask, writes) in &mut sides {
            writes.slices.push(generator.measure(server, ask, effort.slice_ms)?);
        }
    }
    thread::sleep(HEALTH_SETTLES);
    for (server, _, writes) in &mut sides {
        let [written, committed] = counts(server)?;
        writes.counts = [written - writes.counts[0], committed - writes.counts[1]];
    }
    let [(_, _, grouped), (_, _, one_each)] = sides;
    Ok(Journal { grouped, one_each })
}

/// Writes and commits so far.
fn counts(server: &Server) -> Result<[u64; 2], Error> {
    let count = |name| people::health_count(server.address, &format!("/store/{name}"));
    Ok([count("writes")?, count("commits")?])
}

fn ask(folder: &Path, name: &str, server: &Server) -> Result<Ask, Error> {
    let mut texts = Vec::with_capacity(CLIENTS);
    for user in 1..=CLIENTS {
        let token = people::log_in(server.address, &email(user))?;
        let path = "/api/journal";
        texts.push(people::rendered(server.address, path, Some(&token), &[], Some(ENTRY)));
    }
    let file = people::write_requests(folder, name, &texts)?;
    Ok(Ask::Requests { file, connections: CLIENTS, rate_per_s: None, status: 201 })
}
