//! Memory per idle connection, and what more connections than the cap do to bhav.

use std::thread;
use std::time::{Duration, Instant};

use openloop::report::IdleReport;

use crate::error::Error;
use crate::fetch::{self, SNAPSHOT_PATH, Snapshot};
use crate::generator::Generator;
use crate::servers::{Kind, Programs};

/// Idle connections of the memory measurement.
pub const IDLE_CONNECTIONS: usize = 10_000;

/// Connection attempts of the storm: three times bhav's cap.
pub const STORM_CONNECTIONS: usize = 30_000;

/// Time for a server to come to rest before its memory is read.
const REST: Duration = Duration::from_secs(1);

/// How long bhav may take to answer a new connection after the storm.
const RECOVERY_DEADLINE: Duration = Duration::from_secs(30);

/// Pause between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Memory of one server under idle connections.
#[derive(Debug, Clone, Copy)]
pub struct IdleMemory {
    /// Server.
    pub kind: Kind,
    /// Resident memory of the fresh server, in KiB.
    pub fresh_kib: u64,
    /// Growth per connection, in KiB.
    pub kib_per_connection: f64,
    /// What became of the attempts.
    pub report: IdleReport,
    /// Connections that were still open when the memory had been read.
    pub still_open: usize,
}

/// Measures a fresh process of `kind`. Its memory is read before the first connection and while
/// all are open and answered.
///
/// # Errors
/// The server does not start or the generator failed.
pub fn measure_idle(
    programs: &Programs,
    generator: &Generator,
    kind: Kind,
    snapshot: &Snapshot,
) -> Result<IdleMemory, Error> {
    let server = programs.start(kind, snapshot)?;
    thread::sleep(REST);
    let fresh_kib = server.process.rss_kib()?;
    let holders = generator.hold_idle(server.address, SNAPSHOT_PATH, IDLE_CONNECTIONS)?;
    thread::sleep(REST);
    let held_kib = server.process.rss_kib()?;
    let report = holders.report;
    let still_open = holders.release()?;
    let grown_kib = held_kib.saturating_sub(fresh_kib);
    Ok(IdleMemory {
        kind,
        fresh_kib,
        kib_per_connection: grown_kib as f64 / report.answered.max(1) as f64,
        report,
        still_open,
    })
}

/// What the storm did.
#[derive(Debug, Clone, Copy)]
pub struct Storm {
    /// What became of the attempts.
    pub report: IdleReport,
    /// From the release of the connections to the first answer on a new one, in milliseconds;
    /// `None` if there was none within the deadline.
    pub recovered_after_ms: Option<u128>,
    /// Resident memory at the height of the storm, in KiB.
    pub held_kib: u64,
}

/// Opens far more connections to a fresh bhav than it takes, closes them and asks again.
///
/// # Errors
/// bhav does not start or the generator failed.
pub fn storm(programs: &Programs, generator: &Generator) -> Result<Storm, Error> {
    let server = programs.start_bhav()?;
    let holders = generator.hold_idle(server.address, SNAPSHOT_PATH, STORM_CONNECTIONS)?;
    let report = holders.report;
    let held_kib = server.process.rss_kib()?;
    holders.release()?;
    let released = Instant::now();
    let mut recovered_after_ms = None;
    while recovered_after_ms.is_none() && released.elapsed() < RECOVERY_DEADLINE {
        match fetch::snapshot(server.address) {
            Ok(Some(_)) => recovered_after_ms = Some(released.elapsed().as_millis()),
            Ok(None) | Err(_) => thread::sleep(RETRY_INTERVAL),
        }
    }
    Ok(Storm { report, recovered_after_ms, held_kib })
}
