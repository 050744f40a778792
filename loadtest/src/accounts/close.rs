//! The evening's revaluation of the large database, which writes the closing prices into every
//! stored row: how long, how much CPU and how much memory.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::people;
use super::states::{States, email};
use crate::error::Error;
use crate::servers::{Programs, Server};

/// The day that bhav's clock is otherwise set into.
const DAY: &str = "2026-10-14";

/// After its close.
const EVENING: (&str, &str) = ("BHAV_NOW", "2026-10-14T17:00:00+05:30");

/// Longest wait for the last point.
const DEADLINE: Duration = Duration::from_secs(300);

/// Begin the names of the threads that do nothing but this on an evening without visitors: the lane
/// that values and the store, which also takes the candles of fifty symbols.
const THREADS: [&str; 2] = ["close", "store-"];

/// Between two looks at health, which is published once a second.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What it took.
#[derive(Debug, Clone, Copy)]
pub struct Revaluation {
    /// Points written.
    pub points: u64,
    /// Rows that have the closing price.
    pub rows: u64,
    /// Closing prices kept.
    pub priced: u64,
    /// Pages, each one transaction.
    pub pages: u64,
    /// From the first page seen in health to the last point, in seconds; to a second or so.
    pub pages_s: f64,
    /// From the start of the service to the last point, prices included.
    pub whole_s: f64,
    /// CPU of the whole process until then, in seconds.
    pub cpu_s: f64,
    /// Of this, that of the valuing and storing threads.
    pub threads_s: f64,
    /// Memory at the beginning and at its height, in KiB.
    pub rss_kib: (u64, u64),
}

/// Runs one evening on the large database.
///
/// # Errors
/// bhav does not start, or does not end the revaluation in time.
pub fn measure(programs: &Programs, states: &States) -> Result<Revaluation, Error> {
    let began = Instant::now();
    let server = programs.start_bhav_on(&states.many, &[EVENING])?;
    let rss_kib = server.process.rss_kib()?;
    let count = |name: &str| people::health_count(server.address, &format!("/close/{name}"));
    let mut first_page = None;
    // The registered user has no holdings and gets no point.
    while count("points")? < states.many_users as u64 {
        if first_page.is_none() && count("pages")? > 0 {
            first_page = Some(Instant::now());
        }
        if began.elapsed() > DEADLINE {
            let points = count("points")?;
            return Err(Error::Invalid(format!("the revaluation stands at {points} points")));
        }
        thread::sleep(LOOK_INTERVAL);
    }
    let (whole_s, cpu_us) = (began.elapsed().as_secs_f64(), server.process.cpu_us()?);
    let threads_us = threads_us(&server)?;
    let pages_s = first_page.map_or(0.0, |first: Instant| first.elapsed().as_secs_f64());
    for user in [1, states.many_users / 2, states.many_users] {
        expect_priced(&server, user)?;
    }
    Ok(Revaluation {
        points: count("points")?,
        rows: states.many_rows as u64,
        priced: count("priced")?,
        pages: count("pages")?,
        pages_s,
        whole_s,
        cpu_s: cpu_us / 1e6,
        threads_s: threads_us / 1e6,
        rss_kib: (rss_kib, server.process.rss_peak_kib()?),
    })
}

fn threads_us(server: &Server) -> Result<f64, Error> {
    THREADS.iter().map(|prefix| server.process.threads_cpu_us(prefix)).sum()
}

/// Refuses a figure where a user's rows were left at an earlier price.
fn expect_priced(server: &Server, user: usize) -> Result<(), Error> {
    let token = people::log_in(server.address, &email(user))?;
    let holdings = people::read_json(server.address, "/api/portfolio/holdings", &token)?;
    let rows = holdings["holdings"].as_array().map_or(&[][..], Vec::as_slice);
    let priced = |row: &Value| row["as_of"].as_str().is_some_and(|as_of| as_of.starts_with(DAY));
    let left = rows.iter().filter(|row| !priced(row)).count();
    match rows.is_empty() || left > 0 {
        true => Err(Error::Invalid(format!("{left} of {} rows are not priced", rows.len()))),
        false => Ok(()),
    }
}
