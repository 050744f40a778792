//! The load generator as a process: attended slices, and connections that are held open.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use openloop::report::LoadReport;
use serde::de::DeserializeOwned;

use crate::figures::Slice;
use crate::harness::Programs;
use crate::process::{Process, machine_busy_us};
use crate::servers::Server;
use crate::snapshot;
use crate::surroundings::cores;

/// Longest wait for the generator to be ready, and for its figures after the end of a slice.
const DEADLINE: Duration = Duration::from_secs(30);

/// Idle connections of one generator process: well below the usual hard limit of 20,000 files.
const CONNECTIONS_PER_PROCESS: usize = 15_000;

/// Source addresses of one generator process.
const SOURCES_PER_PROCESS: usize = 4;

/// Longest wait for idle connections to settle; a server at its cap leaves some that never do.
const IDLE_DEADLINE: Duration = Duration::from_secs(15);

/// Starts it in a mode, against a server.
pub fn start(
    programs: &Programs,
    server: &Server,
    name: &str,
    mode: &str,
    arguments: &[String],
) -> Result<Process> {
    let mut command = Command::new(programs.folder.join("openloop"));
    command
        .args([mode, "--target", &server.address.to_string()])
        .args(arguments);
    Process::start(name, command, &programs.work_folder)
}

/// Runs one slice with these arguments, and reads the server's CPU time around the measured part.
pub fn slice(
    programs: &Programs,
    server: &Server,
    arguments: &[String],
    lasts_ms: u64,
) -> Result<Slice> {
    let attended = ["--attended", "--duration-ms", &lasts_ms.to_string()].map(str::to_owned);
    let arguments = [arguments, &attended].concat();
    let mut generator = start(programs, server, "openloop", "load", &arguments)?;
    ensure!(generator.line(DEADLINE)? == "ready", "the generator is not ready");
    let clocks = || anyhow::Ok((Instant::now(), server.process.cpu_us()?, machine_busy_us()?));
    let (began, server_before_us, busy_before_us) = clocks()?;
    generator.write_line("go")?;
    let load: LoadReport = report(&generator, Duration::from_millis(lasts_ms) + DEADLINE)?;
    let (ended, server_after_us, busy_after_us) = clocks()?;
    ensure!(load.requests > 0, "the server answered nothing");
    let server_us = server_after_us - server_before_us;
    let capacity_us = ended.duration_since(began).as_secs_f64() * 1e6 * cores() as f64;
    let foreign_us = busy_after_us - busy_before_us - server_us - load.generator_cpu_s * 1e6;
    Ok(Slice {
        load,
        cpu_us_per_request: server_us / load.requests as f64,
        foreign_share: (foreign_us / capacity_us).max(0.0),
        ..Slice::default()
    })
}

/// Opens idle connections from several generator processes, each with its own loopback addresses,
/// reads the server's memory while they are held, and closes them.
pub fn hold_idle(
    programs: &Programs,
    server: &Server,
    connections: usize,
    rests: impl Fn(),
) -> Result<Slice> {
    let fresh_kib = server.process.memory_kib("VmRSS")?;
    let processes = connections.div_ceil(CONNECTIONS_PER_PROCESS);
    let mut holders = Vec::with_capacity(processes);
    for number in 0..processes {
        let share = connections / processes + usize::from(number < connections % processes);
        let first = 2 + number * SOURCES_PER_PROCESS;
        let arguments = format!(
            "--path {} --connections {share} --source-first {first} --source-count \
             {SOURCES_PER_PROCESS} --deadline-ms {}",
            snapshot::PATH,
            IDLE_DEADLINE.as_millis(),
        );
        let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        let name = format!("openloop-{number}");
        holders.push(start(programs, server, &name, "idle", &arguments)?);
    }
    let mut read = BTreeMap::from([("fresh KiB".to_owned(), fresh_kib)]);
    for holder in &holders {
        let part: BTreeMap<String, f64> = report(holder, IDLE_DEADLINE + DEADLINE)?;
        part.into_iter()
            .for_each(|(name, count)| *read.entry(name).or_default() += count);
    }
    rests();
    read.insert("held KiB".to_owned(), server.process.memory_kib("VmRSS")?);
    for holder in &mut holders {
        holder.end_input();
        *read.entry("still open".to_owned()).or_default() += report::<f64>(holder, DEADLINE)?;
    }
    Ok(Slice {
        read,
        ..Slice::default()
    })
}

/// The figures that a generator prints next.
pub fn report<T: DeserializeOwned>(generator: &Process, deadline: Duration) -> Result<T> {
    let line = generator.line(deadline)?;
    serde_json::from_str(&line).with_context(|| format!("the generator says {line}"))
}
