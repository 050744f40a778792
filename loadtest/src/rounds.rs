//! The interleaved rounds: every server in turn under the same load, again and again.

use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::fetch::SNAPSHOT_PATH;
use crate::generator::{Ask, Generator, Slice};
use crate::process::machine_busy_us;
use crate::servers::{Kind, Server};
use crate::stats::median;

/// Rate of the CPU measurement, in requests a second.
pub const RATE_PER_S: u64 = 10_000;

/// Connection counts of the CPU and saturation measurements.
pub const CONNECTION_COUNTS: [usize; 2] = [64, 512];

/// Connections of the measurement at half of saturation.
pub const HALF_CONNECTIONS: usize = 256;

/// Most by which mean responses may differ, in bytes: a server's own lines and digits of prices
/// make some dozens, a part that one server lacks makes hundreds.
const OWN_BYTES_MAX: f64 = 200.0;

/// Length of a look at a server without load: long enough for warmers that work once a second.
const UNLOADED: Duration = Duration::from_secs(2);

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Rounds.
    pub rounds: usize,
    /// Length of a slice, in milliseconds.
    pub slice_ms: u64,
    /// Length of the run with many clients, in milliseconds.
    pub clients_ms: u64,
    /// Ticks at whose beginning the requests of the CPU slices are gathered, in microseconds;
    /// 0 spaces them evenly.
    pub tick_us: u64,
}

/// What is asked of every server in every round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// [`RATE_PER_S`] over so many connections.
    Rate(usize),
    /// As much as it can over so many connections.
    Saturation(usize),
    /// Half of the reference server's saturation over [`HALF_CONNECTIONS`].
    Half,
}

/// Figures of one server in one round.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Server.
    pub kind: Kind,
    /// Load.
    pub scenario: Scenario,
    /// Figures.
    pub slice: Slice,
}

/// Figures of all rounds, in the order of measurement.
#[derive(Debug, Default)]
pub struct Figures {
    /// Every slice.
    pub measured: Vec<Measured>,
    /// Share of one core that a server uses without load, once a round.
    pub unloaded: Vec<(Kind, f64)>,
}

impl Figures {
    /// One value per round.
    pub fn values(&self, kind: Kind, scenario: Scenario, of: impl Fn(&Slice) -> f64) -> Vec<f64> {
        self.measured
            .iter()
            .filter(|measured| measured.kind == kind && measured.scenario == scenario)
            .map(|measured| of(&measured.slice))
            .collect()
    }

    /// Refuses figures of servers whose responses differed in length by more than their own
    /// headers may: bhav's body changes every second, and the peers serve one moment of it.
    ///
    /// # Errors
    /// A server's mean response in some scenario was another.
    pub fn expect_equal_bytes(&self, kinds: &[Kind]) -> Result<(), Error> {
        let Some(&first) = kinds.first() else { return Ok(()) };
        let bytes = |kind| median(&self.response_bytes(kind)).unwrap_or_default();
        let wanted = bytes(first);
        match kinds.iter().find(|&&kind| (bytes(kind) - wanted).abs() > OWN_BYTES_MAX) {
            None => Ok(()),
            Some(&other) => Err(Error::Invalid(format!(
                "a response of {} had {:.0} bytes, of {} {wanted:.0}",
                other.name(),
                bytes(other),
                first.name()
            ))),
        }
    }

    /// Mean length of a server's responses, heads included, one value per slice.
    pub fn response_bytes(&self, kind: Kind) -> Vec<f64> {
        let own = self.measured.iter().filter(|measured| measured.kind == kind);
        own.map(|measured| measured.slice.load.bytes_per_response).collect()
    }

    /// Share of one core without load, one value per round.
    pub fn unloaded_shares(&self, kind: Kind) -> Vec<f64> {
        self.unloaded.iter().filter(|&&(of, _)| of == kind).map(|&(_, share)| share).collect()
    }
}

/// Runs all rounds. The first server is the reference for the rate at half of saturation.
///
/// # Errors
/// As [`Generator::measure`].
pub fn run(servers: &[Server], generator: &Generator, sizes: Sizes) -> Result<Figures, Error> {
    let mut figures = Figures::default();
    for round in 1..=sizes.rounds {
        eprintln!("round {round} of {}", sizes.rounds);
        for server in servers {
            let share = unloaded_share(server)?;
            figures.unloaded.push((server.kind, share));
        }
        for connections in CONNECTION_COUNTS {
            let ask = Ask::Open {
                path: SNAPSHOT_PATH.to_owned(),
                connections,
                rate_per_s: RATE_PER_S,
                tick_us: sizes.tick_us,
            };
            let scenario = Scenario::Rate(connections);
            measure_all(servers, generator, scenario, &ask, sizes, &mut figures)?;
        }
        for connections in CONNECTION_COUNTS {
            let scenario = Scenario::Saturation(connections);
            let ask = saturate(connections);
            measure_all(servers, generator, scenario, &ask, sizes, &mut figures)?;
        }
        let ask = half_of_saturation(&servers[0], generator, sizes)?;
        measure_all(servers, generator, Scenario::Half, &ask, sizes, &mut figures)?;
    }
    Ok(figures)
}

/// The load at half of what `reference` can do over [`HALF_CONNECTIONS`].
///
/// # Errors
/// As [`Generator::measure`].
pub fn half_of_saturation(
    reference: &Server,
    generator: &Generator,
    sizes: Sizes,
) -> Result<Ask, Error> {
    let most = generator.measure(reference, &saturate(HALF_CONNECTIONS), sizes.slice_ms)?;
    Ok(Ask::Open {
        path: SNAPSHOT_PATH.to_owned(),
        connections: HALF_CONNECTIONS,
        rate_per_s: (most.load.rate_per_s / 2.0) as u64,
        tick_us: 0,
    })
}

fn saturate(connections: usize) -> Ask {
    Ask::Closed { path: SNAPSHOT_PATH.to_owned(), connections }
}

fn measure_all(
    servers: &[Server],
    generator: &Generator,
    scenario: Scenario,
    ask: &Ask,
    sizes: Sizes,
    figures: &mut Figures,
) -> Result<(), Error> {
    for server in servers {
        let slice = generator.measure(server, ask, sizes.slice_ms)?;
        eprintln!(
            "  {:<12} {:<16} {:>8.0} req/s {:>6.2} us CPU, p99.9 {:>7.0} us, rest {:>4.1} %",
            server.kind.name(),
            format!("{scenario:?}"),
            slice.load.rate_per_s,
            slice.cpu_us_per_request,
            slice.load.latency.p999_us,
            slice.foreign_share * 100.0,
        );
        figures.measured.push(Measured { kind: server.kind, scenario, slice });
    }
    Ok(())
}

fn unloaded_share(server: &Server) -> Result<f64, Error> {
    let before_us = server.process.cpu_us()?;
    thread::sleep(UNLOADED);
    let used_us = server.process.cpu_us()? - before_us;
    Ok(used_us / 1e6 / UNLOADED.as_secs_f64())
}

/// Busy share of the machine over one second in which the driver does nothing: how quiet the
/// machine is before the run.
///
/// # Errors
/// The system's counters cannot be read.
pub fn machine_share_at_rest(cores: usize) -> Result<f64, Error> {
    let second = Duration::from_secs(1);
    let before_us = machine_busy_us()?;
    thread::sleep(second);
    Ok((machine_busy_us()? - before_us) / 1e6 / cores as f64)
}
