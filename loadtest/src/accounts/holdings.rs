//! Holdings: kept answers next to the snapshot, and few users next to many.

use std::thread;
use std::time::Duration;

use super::Effort;
use super::people;
use super::states::{FEW_USERS, NO_LOGIN_LIMIT, States, email};
use crate::error::Error;
use crate::fetch::SNAPSHOT_PATH;
use crate::generator::{Ask, Generator, Slice};
use crate::servers::{Programs, Server};

const HOLDINGS_PATH: &str = "/api/portfolio/holdings";

/// Views of a user's holdings; each is an answer of its own.
const VIEWS: [&str; 3] = ["", "?broker=a", "?broker=b"];

/// Connections of the comparison with the snapshot.
pub const CONNECTIONS: usize = 64;

/// Rate of kept answers where users are compared, in requests a second.
pub const HITS_PER_S: u64 = 2_000;

/// Rate of answers that are made anew.
pub const MISSES_PER_S: u64 = 200;

/// The smallest cache of answers: a small part of what the measured users' answers need, so that
/// nearly every look misses.
const SMALLEST_CACHE: (&str, &str) = ("BHAV_ANSWERS_BYTES_MAX", "4194304");

/// Health counts are published once a second.
const HEALTH_SETTLES: Duration = Duration::from_millis(1_500);

/// What is asked for in the comparison with the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// 200 with the whole body, not compressed.
    Identity,
    /// 200 with the body as gzip.
    Gzip,
    /// 304: the client has it.
    NotModified,
}

impl Form {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 3] = [Self::Identity, Self::Gzip, Self::NotModified];

    /// Name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "200, identity",
            Self::Gzip => "200, gzip",
            Self::NotModified => "304",
        }
    }

    fn status(self) -> u16 {
        match self {
            Self::Identity | Self::Gzip => 200,
            Self::NotModified => 304,
        }
    }
}

/// One form of both routes, one slice per round.
pub struct Pair {
    /// Which.
    pub form: Form,
    /// The snapshot.
    pub snapshot: Vec<Slice>,
    /// Holdings of the same rounds.
    pub holdings: Vec<Slice>,
    /// Length of the body of holdings in this form.
    pub body_bytes: usize,
}

/// Kept answers next to the snapshot.
pub struct Hits {
    /// By form.
    pub pairs: Vec<Pair>,
}

/// Measures on a fresh bhav with few users, at saturation.
///
/// # Errors
/// bhav does not start or the generator failed.
pub fn compare_with_snapshot(
    programs: &Programs,
    generator: &Generator,
    states: &States,
    effort: Effort,
) -> Result<Hits, Error> {
    let server = programs.start_bhav_on(&states.few, &[NO_LOGIN_LIMIT])?;
    let token = people::log_in(server.address, &email(1))?;
    let mut asks = Vec::new();
    let mut hits = Hits { pairs: Vec::new() };
    for form in Form::ALL {
        let coding = if form == Form::Gzip { "gzip" } else { "identity" };
        let (etag, length) = people::look_at(server.address, HOLDINGS_PATH, &token, coding)?;
        let ask = |what: &str, path: &str, token: Option<&str>, tag: &str| {
            let lines = match form {
                Form::Identity => Vec::new(),
                Form::Gzip => vec![("Accept-Encoding", "gzip")],
                Form::NotModified => vec![("If-None-Match", tag)],
            };
            let text = people::rendered(server.address, path, token, &lines, None);
            let name = format!("{what}-{}", form.status());
            let file = people::write_requests(
                &programs.work_folder,
                &format!("{name}-{coding}"),
                &[text],
            )?;
            let status = form.status();
            Ok::<_, Error>(Ask::Requests {
                file,
                connections: CONNECTIONS,
                rate_per_s: None,
                status,
            })
        };
        // The snapshot changes every second; any tag stands for the one that a client just got.
        asks.push((
            ask("snapshot", SNAPSHOT_PATH, None, "*")?,
            ask("holdings", HOLDINGS_PATH, Some(&token), &etag)?,
        ));
        let body_bytes = if form == Form::NotModified { 0 } else { length };
        hits.pairs.push(Pair { form, snapshot: Vec::new(), holdings: Vec::new(), body_bytes });
    }
    for _ in 0..effort.rounds {
        for (pair, (snapshot, holdings)) in hits.pairs.iter_mut().zip(&asks) {
            pair.snapshot.push(generator.measure(&server, snapshot, effort.slice_ms / 2)?);
            pair.holdings.push(generator.measure(&server, holdings, effort.slice_ms / 2)?);
        }
    }
    Ok(hits)
}

/// Figures of one database.
#[derive(Default)]
pub struct Database {
    /// Kept answers, one slice per round.
    pub hits: Vec<Slice>,
    /// Answers that are made anew.
    pub misses: Vec<Slice>,
    /// Looks of the miss slices that missed, as a share.
    pub missed_share: f64,
    /// Memory after its last slice, in KiB.
    pub rss_kib: u64,
}

/// Few users next to many.
pub struct Reads {
    /// The small database.
    pub few: Database,
    /// The large one.
    pub many: Database,
}

/// Measures on two fresh bhavs in turn, both with the smallest cache.
///
/// # Errors
/// bhav does not start or the generator failed.
pub fn compare_users(
    programs: &Programs,
    generator: &Generator,
    states: &States,
    effort: Effort,
) -> Result<Reads, Error> {
    let settings = [NO_LOGIN_LIMIT, SMALLEST_CACHE];
    let mut sides = Vec::new();
    for state in [&states.few, &states.many] {
        let server = programs.start_bhav_on(state, &settings)?;
        let (hits, misses) = asks(programs, &server, sides.len())?;
        sides.push((server, hits, misses, Database::default(), [0_u64; 2]));
    }
    for _ in 0..effort.rounds {
        for (server, hits, _, database, _) in &mut sides {
            database.hits.push(generator.measure(server, hits, effort.slice_ms)?);
        }
        for (server, _, misses, database, [hit, missed]) in &mut sides {
            let before = looks(server)?;
            database.misses.push(generator.measure(server, misses, effort.slice_ms)?);
            let after = looks(server)?;
            *hit += after[0] - before[0];
            *missed += after[1] - before[1];
        }
    }
    let mut databases = Vec::new();
    for (server, _, _, mut database, [hit, missed]) in sides {
        database.missed_share = missed as f64 / (hit + missed).max(1) as f64;
        database.rss_kib = server.process.rss_kib()?;
        databases.push(database);
    }
    let (many, few) = (databases.pop(), databases.pop());
    let lost = Error::Unexpected("two databases and one of them missing");
    match (few, many) {
        (Some(few), Some(many)) => Ok(Reads { few, many }),
        _ => Err(lost),
    }
}

/// Looks for kept answers so far: hits and misses.
fn looks(server: &Server) -> Result<[u64; 2], Error> {
    thread::sleep(HEALTH_SETTLES);
    let count = |name| people::health_count(server.address, &format!("/cache_answers/{name}"));
    Ok([count("hits")?, count("misses")?])
}

fn asks(programs: &Programs, server: &Server, number: usize) -> Result<(Ask, Ask), Error> {
    let address = server.address;
    let mut texts = Vec::new();
    for user in 1..=FEW_USERS {
        let token = people::log_in(address, &email(user))?;
        for view in VIEWS {
            let path = format!("{HOLDINGS_PATH}{view}");
            texts.push(people::rendered(address, &path, Some(&token), &[], None));
        }
    }
    // One view after the other rather than one user after the other: the longest time between two
    // looks at one user's answers.
    let texts: Vec<String> = (0..VIEWS.len())
        .flat_map(|view| texts.iter().skip(view).step_by(VIEWS.len()).cloned())
        .collect();
    let folder = &programs.work_folder;
    let hit = people::write_requests(folder, &format!("hit-{number}"), &texts[..1])?;
    let miss = people::write_requests(folder, &format!("miss-{number}"), &texts)?;
    let status = 200;
    let hits =
        Ask::Requests { file: hit, connections: CONNECTIONS, rate_per_s: Some(HITS_PER_S), status };
    let connections = texts.len();
    let misses = Ask::Requests { file: miss, connections, rate_per_s: Some(MISSES_PER_S), status };
    Ok((hits, misses))
}
