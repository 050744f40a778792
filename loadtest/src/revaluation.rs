//! The evening's revaluation of the large database, which writes the closing prices into every
//! stored row: how long, how much CPU and how much memory.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::execute::health_counter;
use crate::harness::Harness;
use crate::requests::{HOLDINGS, bearer};
use crate::servers::{More, Server, State};
use crate::{http, wait};

/// The day that bhav's clock is otherwise set into.
const DAY: &str = "2026-10-14";

/// After its close.
const EVENING: (&str, &str) = ("BHAV_NOW", "2026-10-14T17:00:00+05:30");

/// Longest wait for the last point.
const DEADLINE: Duration = Duration::from_secs(300);

/// Begin the names of the threads that do nothing but this on an evening without visitors: the lane
/// that values and the store, which also takes the candles of fifty symbols.
const THREADS: [&str; 2] = ["close", "store-"];

/// Runs one evening on the large database.
pub fn measure(harness: &Harness) -> Result<String> {
    let rows = harness.databases()?.rows;
    let began = Instant::now();
    let server = harness.start_bhav("evening", State::ManyUsers, &[EVENING], More::default())?;
    let rss_before_mib = server.process.memory_kib("VmRSS")? / 1_024.0;
    let count = |name: &str| health_counter(&server, &format!("/close/{name}"));
    let mut first_page = None;
    // The registered user has no holdings and gets no point.
    let ended = wait::until(DEADLINE, || {
        if first_page.is_none() && count("pages")? > 0.0 {
            first_page = Some(Instant::now());
        }
        Ok((count("points")? >= harness.users as f64).then_some(()))
    })?;
    let points = count("points")?;
    ended.with_context(|| format!("the revaluation stands at {points} points"))?;
    let (whole_s, cpu_s) = (began.elapsed().as_secs_f64(), server.process.cpu_us()? / 1e6);
    let threads = THREADS
        .iter()
        .map(|prefix| server.process.threads_cpu_us(prefix));
    let threads_s = threads.sum::<Result<f64, _>>()? / 1e6;
    let pages_s = first_page.map_or(0.0, |first: Instant| first.elapsed().as_secs_f64());
    for user in [1, harness.users / 2, harness.users] {
        expect_priced(&server, user)?;
    }
    let (pages, priced) = (count("pages")?, count("priced")?);
    let rss_peak_mib = server.process.memory_kib("VmHWM")? / 1_024.0;
    Ok(format!(
        "Revaluation at the close: {points} points and {rows} rows in {pages} pages with {priced} \
         closing prices, {whole_s:.1} s from start to last point, of these {pages_s:.1} s for the \
         pages; {cpu_s:.1} s of CPU, of these {threads_s:.1} s of the threads that value and \
         store; RSS {rss_before_mib:.1} MiB at the beginning, {rss_peak_mib:.1} MiB at its \
         height.\n"
    ))
}

/// Refuses a figure where a user's rows were left at an earlier price.
fn expect_priced(server: &Server, user: usize) -> Result<()> {
    let headers = [("Authorization", &*bearer(server, user)?)];
    let holdings = http::get(&server.url(HOLDINGS), &headers)?
        .expect(200)?
        .json()?;
    let rows = holdings["holdings"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let priced = |row: &Value| {
        row["as_of"]
            .as_str()
            .is_some_and(|as_of| as_of.starts_with(DAY))
    };
    let left = rows.iter().filter(|row| !priced(row)).count();
    ensure!(!rows.is_empty() && left == 0, "{left} of {} rows are not priced", rows.len());
    Ok(())
}
