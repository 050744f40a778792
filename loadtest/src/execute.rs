//! Measures one row of the table.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::background::{self, Running};
use crate::error::Error;
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
    /// Arguments of the generator, without its mode and rate.
    arguments: Vec<String>,
    body_bytes: usize,
    /// Users of the background.
    tokens: Vec<String>,
}

/// Measures a run.
pub fn measure(harness: &Harness, effort: &Effort, run: &Run) -> Result<Outcome, Error> {
    eprintln!("run: {}", run.name);
    let slices = match run.work {
        Work::Steps(steps) => return steps(harness).map(Outcome::Text),
        Work::Slices(slices) => slices,
    };
    let available: Vec<&ServerSpec> =
        slices.servers.iter().filter(|server| harness.has(server.kind)).collect();
    let mut figures = Figures::default();
    match slices.order {
        Order::Interleaved => rounds(harness, effort, slices, &available, &mut figures)?,
        Order::OneByOne | Order::Once => {
            for server in available.chunks(1) {
                rounds(harness, effort, slices, server, &mut figures)?;
            }
        }
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
) -> Result<(), Error> {
    let mut started = Vec::new();
    for (number, &spec) in servers.iter().enumerate() {
        let server = harness.start(spec)?;
        let prepared = slices.cases.iter().enumerate().map(|(case_number, case)| {
            prepare(harness, &server, case, &format!("{number}-{case_number}"))
        });
        let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
        started.push(Started { spec, server, prepared });
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
                let arguments = [owned(["closed"]), started[0].prepared[number].arguments.clone()];
                let (server, arguments) = (&started[0].server, arguments.concat());
                let most =
                    generator::slice(&harness.programs, server, &arguments, effort.slice_ms)?;
                half_per_s = (most.load.rate_per_s / 2.0) as u64;
            }
            for Started { spec, server, prepared } in &started {
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

fn prepare(
    harness: &Harness,
    server: &Server,
    case: &Case,
    number: &str,
) -> Result<Prepared, Error> {
    let file = |name: &str| harness.programs.work_folder.join(format!("{name}-{number}"));
    let mut body_bytes = 0;
    let arguments: Vec<String> = match case.load {
        Load::None | Load::Idle(_) => Vec::new(),
        Load::Requests(what, connections, _) => {
            let requests = requests::render(harness, server, what)?;
            body_bytes = requests.body_bytes;
            let (connections, status) = (connections.to_string(), requests.status.to_string());
            let file = file("requests");
            let json = serde_json::to_vec(&requests.texts);
            let json = json.map_err(|_| Error::invalid("requests that are no text"))?;
            fs::write(&file, json).map_err(Error::io("write requests"))?;
            let file = file.to_string_lossy();
            owned(["--requests", &file, "--connections", &connections, "--status", &status])
        }
        Load::Clients(clients) => {
            let symbols = harness.symbols(server)?;
            let file = file("symbols");
            fs::write(&file, symbols.join("\n")).map_err(Error::io("write the symbols"))?;
            owned(["--symbols", &file.to_string_lossy(), "--clients", &clients.to_string()])
        }
    };
    let tokens = background::prepare(server, case.background)?;
    Ok(Prepared { arguments, body_bytes, tokens })
}

fn owned<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).into()
}

/// The generator's mode and rate.
fn mode(load: Load, half_per_s: u64) -> Vec<String> {
    let rate_per_s = match load {
        Load::None | Load::Idle(_) => return Vec::new(),
        Load::Clients(_) => return owned(["mixed"]),
        Load::Requests(_, _, Rate::AsAnswered) => return owned(["closed"]),
        Load::Requests(_, _, Rate::HalfOfSaturation) => half_per_s,
        Load::Requests(_, _, Rate::PerSecond(per_s)) => per_s,
    };
    owned(["open", "--rate", &rate_per_s.to_string()])
}

fn one_slice(
    harness: &Harness,
    effort: &Effort,
    slices: &Slices,
    case: &Case,
    server: &Server,
    prepared: &Prepared,
    half_per_s: u64,
) -> Result<Slice, Error> {
    let arguments = [mode(case.load, half_per_s), prepared.arguments.clone()].concat();
    let lasts_ms = (slices.lasts_ms)(effort);
    let running = background::begin(harness, server, case.background, &prepared.tokens)?;
    let (before, began) = (read(server, slices.reads, &running)?, Instant::now());
    let measured = match case.load {
        Load::None => unloaded(server, Duration::from_millis(lasts_ms)),
        Load::Idle(connections) => idle(harness, server, connections),
        _ => generator::slice(&harness.programs, server, &arguments, lasts_ms),
    };
    let seconds = began.elapsed().as_secs_f64();
    let after = read(server, slices.reads, &running)?;
    let answers = running.end()?;
    let mut slice = measured?;
    for (name, value) in after {
        let earlier = before.get(&name).filter(|_| !NO_COUNTERS.contains(&name.as_str()));
        slice.read.insert(name, value - earlier.unwrap_or(&0.0));
    }
    // Syncs hang over the end of the slice, so all of them count.
    let is_read_at_the_end =
        |name: &str| ["sync ", "readers ", "quotes "].iter().any(|kind| name.starts_with(kind));
    slice.read.extend(answers.into_iter().filter(|(name, _)| is_read_at_the_end(name)));
    slice.read.insert("seconds".to_owned(), seconds);
    slice.read.insert("body bytes".to_owned(), prepared.body_bytes as f64);
    if let Load::Clients(_) = case.load {
        let quoted = quotes_served(server, harness.symbols(server)?)?;
        slice.read.insert("quoted".to_owned(), quoted as f64);
    }
    Ok(slice)
}

fn unloaded(server: &Server, lasts: Duration) -> Result<Slice, Error> {
    let before_us = server.process.cpu_us()?;
    thread::sleep(lasts);
    let share = (server.process.cpu_us()? - before_us) / 1e6 / lasts.as_secs_f64();
    Ok(Slice { read: [("core share".to_owned(), share)].into(), ..Slice::default() })
}

fn idle(harness: &Harness, server: &Server, connections: usize) -> Result<Slice, Error> {
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
fn read(
    server: &Server,
    reads: &[Read],
    running: &Running<'_>,
) -> Result<BTreeMap<String, f64>, Error> {
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
pub fn health_counter(server: &Server, path: &str) -> Result<f64, Error> {
    let health = http::get(&server.url("/api/health"), &[])?.json()?;
    let count = health.pointer(path).and_then(serde_json::Value::as_f64);
    count.ok_or_else(|| Error::Invalid(format!("bhav's health lacks {path}")))
}

/// Refuses figures of servers whose snapshots differed in length by more than their own headers
/// may: bhav's body changes every second, and the peers serve one moment of it.
fn expect_equal_bytes(slices: &Slices, figures: &Figures) -> Result<(), Error> {
    let is_snapshot = |load| matches!(load, Load::Requests(What::Snapshot(_), ..));
    for case in slices.cases.iter().filter(|case| is_snapshot(case.load)) {
        let bytes = slices.servers.iter().filter_map(|server| {
            let key = (server.name, case.name);
            let bytes = median(&figures.values(key, |slice| slice.load.bytes_per_response))?;
            Some((server.name, bytes))
        });
        let bytes: Vec<(&str, f64)> = bytes.collect();
        let Some(&(first, wanted)) = bytes.first() else { continue };
        let other = bytes.iter().find(|(_, bytes)| (bytes - wanted).abs() > OWN_BYTES_MAX);
        if let Some((other, bytes)) = other {
            return Err(Error::Invalid(format!(
                "a response of {other} had {bytes:.0} bytes, of {first} {wanted:.0}"
            )));
        }
    }
    Ok(())
}
