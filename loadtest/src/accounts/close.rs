//! The evening's revaluation of the large database: how long, and how much memory.

use std::thread;
use std::time::{Duration, Instant};

use super::people;
use super::states::States;
use crate::error::Error;
use crate::servers::Programs;

/// After the close of the day that bhav's clock is otherwise set into.
const EVENING: (&str, &str) = ("BHAV_NOW", "2026-10-14T17:00:00+05:30");

/// Longest wait for the last point.
const DEADLINE: Duration = Duration::from_secs(180);

/// Between two looks at health, which is published once a second.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What it took.
#[derive(Debug, Clone, Copy)]
pub struct Revaluation {
    /// Points written.
    pub points: u64,
    /// Closing prices kept.
    pub priced: u64,
    /// Pages, each one transaction.
    pub pages: u64,
    /// From the first page seen in health to the last point, in seconds; to a second or so.
    pub pages_s: f64,
    /// From the first answer of the service to the last point, prices included.
    pub whole_s: f64,
    /// CPU of the whole process during that time, in seconds.
    pub cpu_s: f64,
    /// Memory at the beginning and at its height, in KiB.
    pub rss_kib: (u64, u64),
}

/// Runs one evening on the large database.
///
/// # Errors
/// bhav does not start, or does not end the revaluation in time.
pub fn measure(programs: &Programs, states: &States) -> Result<Revaluation, Error> {
    let server = programs.start_bhav_on(&states.many, &[EVENING])?;
    let began = Instant::now();
    let (cpu_before_us, rss_kib) = (server.process.cpu_us()?, server.process.rss_kib()?);
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
    Ok(Revaluation {
        points: count("points")?,
        priced: count("priced")?,
        pages: count("pages")?,
        pages_s: first_page.map_or(0.0, |first: Instant| first.elapsed().as_secs_f64()),
        whole_s: began.elapsed().as_secs_f64(),
        cpu_s: (server.process.cpu_us()? - cpu_before_us) / 1e6,
        rss_kib: (rss_kib, server.process.rss_peak_kib()?),
    })
}
