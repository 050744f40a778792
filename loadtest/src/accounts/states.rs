//! The state folders: one with few users, one with many, with the same measured users.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::people::{self, PASSWORD};
use crate::error::Error;
use crate::fetch;
use crate::servers::{Programs, copy_state};

/// Users of the small database. All of them are large.
pub const FEW_USERS: usize = 100;

/// Holdings of a large user.
pub const ROWS: usize = 100;

/// Holdings of every other user.
pub const ROWS_OTHERS: usize = 10;

/// Who is registered by request; everybody else is seeded with a copy of that hash.
const REGISTERED: &str = "first@load.example";

/// The evening before the day that bhav's clock is set to.
const SYNCED: &str = "2026-10-13T18:00:00+05:30";

/// Symbols that are held: about as many as are traded often.
const SYMBOLS: usize = 1_000;

/// Limits that a test from one address must not run into.
pub const NO_LOGIN_LIMIT: (&str, &str) = ("BHAV_LOGIN_ATTEMPTS_PER_MINUTE", "0");

/// Where the databases are, and what they cost.
pub struct States {
    /// With [`FEW_USERS`].
    pub few: PathBuf,
    /// With many.
    pub many: PathBuf,
    /// Users of the large one, without the registered one.
    pub many_users: usize,
    /// Their holdings.
    pub many_rows: usize,
    /// Time that the store took to write the large one, in seconds.
    pub seeded_s: f64,
    /// Size of its file, in MiB.
    pub many_mib: u64,
    /// File system of the folders, with its device.
    pub file_system: String,
    /// Of one `fdatasync` after a write of one page there: median, in microseconds.
    pub sync_us: f64,
}

impl States {
    /// Makes both.
    ///
    /// # Errors
    /// bhav does not start, or the seeding program failed.
    pub fn prepare(programs: &Programs, users: usize) -> Result<Self, Error> {
        let folder = |name: &str| programs.work_folder.join(name);
        let (few, many) = (folder("state-few"), folder("state-many"));
        programs.copy_signals(&few)?;
        let symbols = folder("held-symbols.txt");
        {
            let server = programs.start_bhav_on(&few, &[NO_LOGIN_LIMIT])?;
            people::register(server.address, REGISTERED)?;
            let listed = fetch::listed_symbols(server.simulator()?, SYMBOLS)?;
            fs::write(&symbols, listed.join("\n")).map_err(Error::io("write the symbols"))?;
        }
        copy_state(&few, &many)?;
        let sync_us = sync_us(&few).map_err(Error::io("measure the disk"))?;
        seed(programs, &few, &symbols, FEW_USERS)?;
        let began = Instant::now();
        seed(programs, &many, &symbols, users)?;
        let seeded_s = began.elapsed().as_secs_f64();
        let many_mib = largest_file_bytes(&many).map_err(Error::io("look at a folder"))? >> 20;
        let file_system = file_system_of(&few);
        Ok(Self {
            few,
            many,
            many_users: users,
            many_rows: FEW_USERS * ROWS + users.saturating_sub(FEW_USERS) * ROWS_OTHERS,
            seeded_s,
            many_mib,
            file_system,
            sync_us,
        })
    }
}

fn seed(programs: &Programs, state: &Path, symbols: &Path, users: usize) -> Result<(), Error> {
    let status = Command::new(programs.folder.join("seed"))
        .arg("--state")
        .arg(state)
        .arg("--symbols")
        .arg(symbols)
        .args(["--registered", REGISTERED, "--synced", SYNCED])
        .args(["--users", &users.to_string(), "--large", &FEW_USERS.to_string()])
        .args(["--rows-large", &ROWS.to_string(), "--rows", &ROWS_OTHERS.to_string()])
        .status()
        .map_err(Error::io("run the seeding program"))?;
    match status.success() {
        true => Ok(()),
        false => Err(Error::Program("the seeding program failed".to_owned())),
    }
}

fn largest_file_bytes(folder: &Path) -> std::io::Result<u64> {
    let sizes: Vec<u64> = fs::read_dir(folder)?
        .filter_map(Result::ok)
        .filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .collect();
    Ok(sizes.into_iter().max().unwrap_or(0))
}

/// What the disk takes to keep one page that was appended, as a database's log is.
fn sync_us(folder: &Path) -> std::io::Result<f64> {
    use std::io::Write;
    const PAGE_BYTES: usize = 4_096;
    const TIMES: usize = 200;
    let path = folder.join("sync-probe");
    let mut file = fs::File::create(&path)?;
    let mut taken = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        file.write_all(&[7; PAGE_BYTES])?;
        let began = Instant::now();
        file.sync_data()?;
        taken.push(began.elapsed().as_secs_f64() * 1e6);
    }
    fs::remove_file(path)?;
    Ok(crate::stats::median(&taken).unwrap_or(0.0))
}

/// Type and device of the mount that holds `folder`, from the longest mount point above it.
fn file_system_of(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let above = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (device, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
        folder.starts_with(point).then(|| (point.len(), format!("{kind} on {device}")))
    });
    above.max_by_key(|(length, _)| *length).map(|(_, found)| found).unwrap_or_default()
}

/// E-mail of a seeded user, counted from 1.
pub fn email(number: usize) -> String {
    format!("user-{number}@load.example")
}

/// Body of a registration or a login.
pub fn credentials(email: &str) -> serde_json::Value {
    serde_json::json!({"email": email, "password": PASSWORD})
}
