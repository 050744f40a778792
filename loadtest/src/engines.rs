//! The large database on each engine: the copy from one to the other, holdings, and writes of the
//! journal.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::databases::{email, log_in};
use crate::execute::requests;
use crate::figures::median;
use crate::generator;
use crate::harness::Harness;
use crate::http::{Client, DEADLINE};
use crate::requests::{HOLDINGS, What};
use crate::servers::{More, Server, State, copy_state};
use crate::stores::{self, Postgres, SIGNING_KEY};

/// In which each engine has its turn, ordinarily and quickly.
const ROUNDS: [usize; 2] = [5, 1];
/// Users who ask in a round: each round has its own, since an answer is first only once.
const USERS: usize = 40;
/// Clients that write at once.
const WRITERS: [usize; 3] = [1, 16, 64];
const WRITES_MS: u64 = 3_000;

/// What was measured of one engine.
#[derive(Default)]
struct Measured {
    first_us: Vec<f64>,
    kept_us: Vec<f64>,
    /// A second, by the number of writers.
    writes: [Vec<f64>; WRITERS.len()],
}

impl Measured {
    /// Its row of the table.
    fn row(&self, engine: &str) -> String {
        let writes = self
            .writes
            .each_ref()
            .map(|writes| median(writes).unwrap_or(f64::NAN));
        format!(
            "| {engine} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            median(&self.first_us).unwrap_or(f64::NAN),
            p99(&self.first_us),
            median(&self.kept_us).unwrap_or(f64::NAN),
            writes[0],
            writes[1],
            writes[2],
        )
    }
}

/// Copies the large database to a server, and measures a service on each.
pub fn measure(harness: &Harness) -> Result<String> {
    let postgres = Postgres::start("engines", true)?;
    let databases = harness.databases()?;
    let file = harness.programs.work_folder.join("to-copy");
    copy_state(&databases.many, &file)?;
    let url = stores::url(&postgres.folder);
    let (copied_s, rows) = copy(harness, &file, &url)?;
    postgres.query("VACUUM ANALYZE")?;
    let size = postgres.query("SELECT pg_database_size('postgres') >> 20")?;
    let servers = [
        (
            "SQLite",
            harness.start_bhav("on-sqlite", State::ManyUsers, &[], More::default())?,
        ),
        ("PostgreSQL", {
            let settings = [
                ("BHAV_STORE_URL", url.as_str()),
                ("JWT_SECRET", SIGNING_KEY),
            ];
            harness.start_bhav("on-postgresql", State::Empty, &settings, More::default())?
        }),
    ];
    let rounds = ROUNDS[usize::from(harness.is_quick)];
    let mut tokens = Vec::new();
    for (_, server) in &servers {
        let apart = harness.users / (rounds * USERS);
        let users = (0..rounds * USERS).map(|user| email(1 + user * apart));
        tokens.push(
            users
                .map(|user| log_in(server, &user))
                .collect::<Result<Vec<_>, _>>()?,
        );
    }
    let mut measured = [Measured::default(), Measured::default()];
    for round in 0..rounds {
        for ((of, (_, server)), tokens) in measured.iter_mut().zip(&servers).zip(&tokens) {
            let tokens = &tokens[round * USERS..][..USERS];
            of.first_us.extend(holdings(server, tokens)?);
            of.kept_us.extend(holdings(server, tokens)?);
            for (writes, clients) in of.writes.iter_mut().zip(WRITERS) {
                let (journal, _) =
                    requests(harness, server, What::JournalWrites, clients, "engines")?;
                let written = generator::slice(&harness.programs, server, &journal, WRITES_MS)?;
                ensure!(written.load.other_status == 0, "a write of the journal failed");
                writes.push(written.load.rate_per_s);
            }
        }
    }
    let mut out = format!(
        "{} users on this machine's disk, synced at each commit by both; one client for holdings, \
         `bhav migrate --to` copied {rows} rows in {copied_s:.1} s and compared them cell by cell. \
         The database takes {size} MiB on the server. Medians of {rounds} rounds in turn.\n{}\n\
         | engine | holdings, first p50 µs | p99 µs | kept p50 µs | journal writes/s by 1 client \
         | by 16 | by 64 |\n|---|---|---|---|---|---|---|\n",
        harness.users, databases.described,
    );
    for (of, (name, _)) in measured.iter().zip(&servers) {
        let _ = writeln!(out, "{}", of.row(name));
    }
    Ok(out)
}

/// How long the product's own copy takes, and the rows that it told of.
fn copy(harness: &Harness, file: &Path, url: &str) -> Result<(f64, u64)> {
    let began = Instant::now();
    let mut command = Command::new(&harness.programs.bhav);
    command
        .args(["migrate", "--to", url, "--state-dir"])
        .arg(file);
    let said = stores::printed(&mut command)?;
    let rows = said
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok((began.elapsed().as_secs_f64(), rows.sum()))
}

/// What each user waits for the holdings, in microseconds.
fn holdings(server: &Server, tokens: &[String]) -> Result<Vec<f64>> {
    let (client, url) = (Client::new(DEADLINE), server.url(HOLDINGS));
    let mut waits_us = Vec::with_capacity(tokens.len());
    for token in tokens {
        let bearer = format!("Bearer {token}");
        let began = Instant::now();
        client
            .send("GET", &url, &[("Authorization", &bearer)], None)?
            .expect(200)?;
        waits_us.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(waits_us)
}

fn p99(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get(sorted.len() * 99 / 100)
        .copied()
        .unwrap_or(f64::NAN)
}
