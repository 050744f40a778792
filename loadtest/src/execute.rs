//! Measures one row of the table.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::background::{self, Running};
use crate::figures::{Figures, Slice, median};
use crate::generator;
use crate::harness::{Effort, Harness, quotes_served};
use crate::http;
use crate::requests::{self, What};
use crate::run::{Case, Load, Order, Rate, Read, Run, ServerSpec, Slices, Work};
use crate::servers::Server;
use crate::snapshot::Snapshot;
use crate::{ticker, wait};

/// Time for a server to come to rest before its memory is read.
const REST: Duration = Duration::from_secs(1);

/// Of what is read: states and not counters, of which a slice keeps the value after it.
const NO_COUNTERS: [&str; 2] = [RSS, QUOTE_CALLS_IN_1S];
const RSS: &str = "RSS KiB";
const RSS_GROWTH: &str = "RSS growth KiB";
const QUOTE_CALLS_IN_1S: &str = "quote calls in one second";

/// Health is published once a second: after this its counters are up to date.
const HEALTH_SETTLES: Duration = Duration::from_millis(1_500);

/// How long a server may take to answer a new connection after idle ones were closed.
const RECOVERY_DEADLINE: Duration = Duration::from_secs(30);

/// Most by which mean responses may differ, in bytes: a server's own lines and digits of prices
/// make some dozens, a part that one server lacks makes hundreds.
const OWN_BYTES_MAX: f64 = 200.0;

/// What a run found.
pub enum Outcome {
    /// Slices.
    Figures(Figures),
    /// What its own steps say.
    Text(String),
}

/// A server under measurement.
struct Started<'a> {
    spec: &'a ServerSpec,
    server: Server,
    /// By case: what was prepared for it.
    prepared: Vec<Prepared>,
}

/// What a case needs on one server.
struct Prepared {
    /// Arguments of the generator, without the rate.
    arguments: Vec<String>,
    body_bytes: usize,
    /// Users of the background.
    tokens: Vec<String>,
}

/// Measures a run.
pub fn measure(harness: &Harness, effort: &Effort, run: &Run) -> Result<Outcome> {
    eprintln!("run: {}", run.name);
    let slices = match run.work {
        Work::Steps(steps) => return steps(harness).map(Outcome::Text),
        Work::Slices(slices) => slices,
    };
    if let Some(measure) = slices.measure {
        return measure(harness, effort).map(Outcome::Figures);
    }
    let servers = slices
        .servers
        .iter()
        .filter(|server| harness.has(server.kind));
    let available: Vec<&ServerSpec> = servers.collect();
    let at_once = match slices.order {
        Order::Interleaved => available.len(),
        Order::OneByOne | Order::Once => 1,
    };
    let mut figures = Figures::default();
    for servers in available.chunks(at_once) {
        rounds(harness, effort, slices, servers, &mut figures)?;
    }
    expect_equal_bytes(slices, &figures)?;
    Ok(Outcome::Figures(figures))
}

/// Starts servers and measures every case on each of them in turn, again and again.
fn rounds(
    harness: &Harness,
    effort: &Effort,
    slices: &Slices,
    servers: &[&ServerSpec],
    figures: &mut Figures,
) -> Result<()> {
    let mut started = Vec::new();
    for (number, &spec) in servers.iter().enumerate() {
        let server = harness.start(spec)?;
        let prepared = slices.cases.iter().enumerate().map(|(case_number, case)| {
            prepare(harness, &server, case, &format!("{number}-{case_number}"))
        });
        let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
        started.push(Started {
            spec,
            server,
            prepared,
        });
    }
    let is_aside = servers.iter().all(|server| server.is_aside);
    let rounds = match slices.order {
        Order::Once => 1,
        _ if is_aside => effort.rounds_aside,
        _ => effort.rounds,
    };
    for round in 1..=rounds {
        let mut half_per_s = 0;
        for (number, case) in slices.cases.iter().enumerate() {
            if let (Load::Requests(_, _, Rate::HalfOfSaturation), 0) = (case.load, half_per_s) {
                let Started {
                    server, prepared, ..
                } = &started[0];
                let arguments = &prepared[number].arguments;
                let most = generator::slice(&harness.programs, server, arguments, effort.slice_ms)?;
                half_per_s = (most.load.rate_per_s / 2.0) as u64;
            }
            for Started {
                spec,
                server,
                prepared,
            } in &started
            {
                let prepared = &prepared[number];
                let slice = one_slice(harness, effort, slices, case, server, prepared, half_per_s)?;
                let name = harness.filled(spec.name);
                eprintln!("  {round}/{rounds} {name:<22} {:<16} {slice}", case.name);
                figures.push((spec.name, case.name), slice);
            }
        }
    }
    Ok(())
}

fn prepare(harness: &Harness, server: &Server, case: &Case, number: &str) -> Result<Prepared> {
    let tokens = background::prepare(server, case.background)?;
    let (arguments, body_bytes) = match case.load {
        Load::Requests(what, connections, _) => {
            requests(harness, server, what, connections, number)?
        }
        Load::None | Load::Idle(_) => (Vec::new(), 0),
    };
    Ok(Prepared {
        arguments,
        body_bytes,
        tokens,
    })
}

/// The generator's arguments for requests over so many connections, and the length of the body of
/// one answer. `number` tells what is under way at the same time apart.
pub fn requests(
    harness: &Harness,
    server: &Server,
    what: What,
    connections: usize,
    number: &str,
) -> Result<(Vec<String>, usize)> {
    let requests = requests::render(harness, server, what)?;
    let (connections, status) = (connections.to_string(), requests.status.to_string());
    let file = harness
        .programs
        .work_folder
        .join(format!("requests-{number}"));
    fs::write(&file, serde_json::to_vec(&requests.texts)?).context("write requests")?;
    let file = file.to_string_lossy();
    let mut arguments = owned([
        "--requests",
        &file,
        "--connections",
        &connections,
        "--status",
        &status,
    ]);
    if let What::Choices(_) = what {
        arguments.push("--cold".to_owned());
    }
    Ok((arguments, requests.body_bytes))
}

fn owned<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).into()
}

fn one_slice(
    harness: &Harness,
    effort: &Effort,
    slices: &Slices,
    case: &Case,
    server: &Server,
    prepared: &Prepared,
    half_per_s: u64,
) -> Result<Slice> {
    let rate_per_s = match case.load {
        Load::Requests(_, _, Rate::PerSecond(per_s)) => Some(per_s),
        Load::Requests(_, _, Rate::HalfOfSaturation) => Some(half_per_s),
        _ => None,
    };
    let mut arguments = prepared.arguments.clone();
    arguments.extend(
        rate_per_s
            .iter()
            .flat_map(|rate| owned(["--rate", &rate.to_string()])),
    );
    let lasts_ms = (slices.lasts_ms)(effort);
    let running = background::begin(harness, server, case.background, &prepared.tokens)?;
    let (before, began) = (read(server, slices.reads, &running)?, Instant::now());
    let measured = match case.load {
        Load::None => unloaded(server, Duration::from_millis(lasts_ms)),
        Load::Idle(connections) => idle(harness, server, connections),
        Load::Requests(..) => generator::slice(&harness.programs, server, &arguments, lasts_ms),
    };
    let seconds = began.elapsed().as_secs_f64();
    let after = read(server, slices.reads, &running)?;
    let answers = running.end()?;
    let mut slice = measured?;
    for (name, value) in after {
        let earlier = before
            .get(&name)
            .filter(|_| !NO_COUNTERS.contains(&name.as_str()));
        slice.read.insert(name, value - earlier.unwrap_or(&0.0));
    }
    // Syncs hang over the end of the slice, so all of them count.
    slice.read.extend(
        answers
            .into_iter()
            .filter(|(name, _)| !name.starts_with("login ")),
    );
    slice.read.insert("seconds".to_owned(), seconds);
    slice
        .read
        .insert("body bytes".to_owned(), prepared.body_bytes as f64);
    if let Load::Requests(What::Choices(_), ..) = case.load {
        let quoted = quotes_served(server, harness.symbols(server)?)?;
        slice.read.insert("quoted".to_owned(), quoted as f64);
    }
    Ok(slice)
}

fn unloaded(server: &Server, lasts: Duration) -> Result<Slice> {
    let before_us = server.process.cpu_us()?;
    thread::sleep(lasts);
    let share = (server.process.cpu_us()? - before_us) / 1e6 / lasts.as_secs_f64();
    Ok(Slice {
        read: [("core share".to_owned(), share)].into(),
        ..Slice::default()
    })
}

fn idle(harness: &Harness, server: &Server, connections: usize) -> Result<Slice> {
    thread::sleep(REST);
    let rest = || thread::sleep(REST);
    let mut slice = generator::hold_idle(&harness.programs, server, connections, rest)?;
    let closed = Instant::now();
    let answered = || Ok(Snapshot::of(server.address).ok().map(drop));
    if wait::until(RECOVERY_DEADLINE, answered)?.is_some() {
        let recovered_ms = closed.elapsed().as_secs_f64() * 1_000.0;
        slice.read.insert("recovered ms".to_owned(), recovered_ms);
    }
    Ok(slice)
}

/// What a run reads of a server now, and the answers to background load.
fn read(server: &Server, reads: &[Read], running: &Running<'_>) -> Result<BTreeMap<String, f64>> {
    let mut values = running.answers();
    if reads.iter().any(|read| matches!(read, Read::Health(_))) {
        thread::sleep(HEALTH_SETTLES);
    }
    for read in reads {
        match *read {
            Read::Health(path) => {
                values.insert(path.to_owned(), health_counter(server, path)?);
            }
            Read::Threads(prefix) => {
                values.insert(prefix.to_owned(), server.process.threads_cpu_us(prefix)?);
            }
            Read::Rss => {
                let kib = server.process.memory_kib("VmRSS")?;
                values.extend([RSS, RSS_GROWTH].map(|name| (name.to_owned(), kib)));
            }
            Read::Ticks => values.extend(ticker::counts(&server.metrics()?)),
            Read::UpstreamCalls => {
                let stats = server.simulator()?.stats()?;
                for (field, prefix) in [("requests", "upstream"), ("rejected", "turned away")] {
                    for (name, count) in stats[field].as_object().into_iter().flatten() {
                        let count = count.as_f64().unwrap_or(f64::NAN);
                        values.insert(format!("{prefix} {name}"), count);
                    }
                }
                let most = stats["max_quote_calls_in_1s"].as_f64().unwrap_or(f64::NAN);
                values.insert(QUOTE_CALLS_IN_1S.to_owned(), most);
            }
        }
    }
    Ok(values)
}

/// A counter of bhav's health, by its path in the document.
pub fn health_counter(server: &Server, path: &str) -> Result<f64> {
    let health = http::get(&server.url("/api/health"), &[])?.json()?;
    let count = health.pointer(path).and_then(serde_json::Value::as_f64);
    count.with_context(|| format!("bhav's health lacks {path}"))
}

/// Refuses figures of servers whose snapshots differed in length by more than their own headers
/// may: bhav's body changes every second, and the peers serve one moment of it.
fn expect_equal_bytes(slices: &Slices, figures: &Figures) -> Result<()> {
    let is_snapshot = |load| matches!(load, Load::Requests(What::Snapshot(_), ..));
    for case in slices.cases.iter().filter(|case| is_snapshot(case.load)) {
        let bytes = slices.servers.iter().filter_map(|server| {
            let key = (server.name, case.name);
            let bytes = median(&figures.values(key, |slice| slice.load.bytes_per_response))?;
            Some((server.name, bytes))
        });
        let bytes: Vec<(&str, f64)> = bytes.collect();
        let Some(&(first, wanted)) = bytes.first() else {
            continue;
        };
        let other = bytes
            .iter()
            .find(|(_, bytes)| (bytes - wanted).abs() > OWN_BYTES_MAX);
        if let Some((other, bytes)) = other {
            bail!("a response of {other} had {bytes:.0} bytes, of {first} {wanted:.0}");
        }
    }
    Ok(())
}
