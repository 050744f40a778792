//! The load generator as a process: attended slices, and connections that are held open.

use std::process::Command;
use std::time::{Duration, Instant};

use openloop::report::{HeldReport, IdleReport, LoadReport};
use serde::de::DeserializeOwned;

use crate::error::Error;
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

/// Runs one slice with these arguments, and reads the server's CPU time around the measured part.
pub fn slice(
    programs: &Programs,
    server: &Server,
    arguments: &[String],
    lasts_ms: u64,
) -> Result<Slice, Error> {
    let mut command = Command::new(programs.folder.join("openloop"));
    command.args(arguments).arg("--target").arg(server.address.to_string());
    command.arg("--duration-ms").arg(lasts_ms.to_string()).arg("--attended");
    let mut generator = Process::start("openloop", command, &programs.work_folder)?;
    if generator.line(DEADLINE)? != "ready" {
        return Err(Error::invalid("the generator is not ready"));
    }
    let clocks = || Ok::<_, Error>((Instant::now(), server.process.cpu_us()?, machine_busy_us()?));
    let (began, server_before_us, busy_before_us) = clocks()?;
    generator.write_line("go")?;
    let load: LoadReport = report(&generator, Duration::from_millis(lasts_ms) + DEADLINE)?;
    let (ended, server_after_us, busy_after_us) = clocks()?;
    if load.requests == 0 {
        return Err(Error::invalid("the server answered nothing"));
    }
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
) -> Result<Slice, Error> {
    let fresh_kib = server.process.memory_kib("VmRSS")?;
    let processes = connections.div_ceil(CONNECTIONS_PER_PROCESS);
    let mut holders = Vec::with_capacity(processes);
    for number in 0..processes {
        let share = connections / processes + usize::from(number < connections % processes);
        let mut command = Command::new(programs.folder.join("openloop"));
        command.args(["idle", "--path", snapshot::PATH]);
        for (name, value) in [
            ("--target", server.address.to_string()),
            ("--connections", share.to_string()),
            ("--source-first", (2 + number * SOURCES_PER_PROCESS).to_string()),
            ("--source-count", SOURCES_PER_PROCESS.to_string()),
            ("--deadline-ms", IDLE_DEADLINE.as_millis().to_string()),
        ] {
            command.args([name, &value]);
        }
        let name = format!("openloop-{number}");
        holders.push(Process::start(&name, command, &programs.work_folder)?);
    }
    let mut sum = IdleReport::default();
    for holder in &holders {
        let part: IdleReport = report(holder, IDLE_DEADLINE + DEADLINE)?;
        sum.attempted += part.attempted;
        sum.connected += part.connected;
        sum.answered += part.answered;
        sum.non_200 += part.non_200;
        sum.failed += part.failed;
    }
    rests();
    let held_kib = server.process.memory_kib("VmRSS")?;
    let mut still_open = 0;
    for holder in &mut holders {
        holder.end_input();
        still_open += report::<HeldReport>(holder, DEADLINE)?.still_open;
    }
    let read = [
        ("fresh KiB", fresh_kib),
        ("held KiB", held_kib),
        ("attempted", sum.attempted as f64),
        ("connected", sum.connected as f64),
        ("answered", sum.answered as f64),
        ("another status", sum.non_200 as f64),
        ("failed", sum.failed as f64),
        ("still open", still_open as f64),
    ];
    let read = read.map(|(name, value)| (name.to_owned(), value)).into();
    Ok(Slice { read, ..Slice::default() })
}

/// The figures that a generator prints next.
pub fn report<T: DeserializeOwned>(generator: &Process, deadline: Duration) -> Result<T, Error> {
    let line = generator.line(deadline)?;
    serde_json::from_str(&line).map_err(|_| Error::Invalid(format!("the generator says {line}")))
}
