//! The databases of users: a small and a large one, with the same measured users.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{fs, io};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::figures::median;
use crate::harness::Harness;
use crate::http::{Client, DEADLINE};
use crate::servers::{self, More, Server, copy_state};

/// Users of the small database. All of them are large.
pub const FEW_USERS: usize = 100;

/// Holdings of a large user.
const ROWS: usize = 100;

/// Holdings of every other user.
const ROWS_OTHERS: usize = 10;

/// The password of every user.
const PASSWORD: &str = "paper boats in the monsoon 7";

/// Who is registered by request; everybody else is seeded with a copy of that hash.
const REGISTERED: &str = "first@load.example";

/// The evening before the day that bhav's clock is set to.
const SYNCED: &str = "2026-10-13T18:00:00+05:30";

/// Symbols that are held: about as many as are traded often.
const SYMBOLS: usize = 1_000;

/// Where the databases are, and what they cost. Runs start on copies.
pub struct Databases {
    /// With [`FEW_USERS`].
    pub few: PathBuf,
    /// With many.
    pub many: PathBuf,
    /// Holdings in the large one.
    pub rows: usize,
    /// What the head of the section says of them.
    pub described: String,
}

impl Databases {
    /// Makes both.
    pub fn prepare(harness: &Harness) -> Result<Self> {
        let users = harness.users;
        eprintln!("prepare: databases of {FEW_USERS} and {users} users");
        let folder = |name: &str| harness.programs.work_folder.join(name);
        let (few, many, symbols) = (folder("few"), folder("many"), folder("held-symbols.txt"));
        copy_state(harness.signals()?, &few)?;
        {
            let server =
                servers::start_bhav(harness, "register", few.clone(), &[], More::default())?;
            let url = server.url("/api/auth/register");
            let client = Client::new(DEADLINE);
            client
                .send("POST", &url, &[], Some(&credentials(REGISTERED)))?
                .expect(201)?;
            let listed = server.simulator()?.listed_symbols(SYMBOLS)?;
            fs::write(&symbols, listed.join("\n")).context("write the symbols")?;
        }
        copy_state(&few, &many)?;
        let sync_us = sync_us(&few).context("measure the disk")?;
        seed(harness, &few, &symbols, FEW_USERS)?;
        let began = Instant::now();
        seed(harness, &many, &symbols, users)?;
        let seeded_s = began.elapsed().as_secs_f64();
        let many_mib = largest_file_bytes(&many).context("list a folder")? >> 20;
        let rows = FEW_USERS * ROWS + users.saturating_sub(FEW_USERS) * ROWS_OTHERS;
        let described = format!(
            "- databases: {FEW_USERS} users and {users} users; the same {FEW_USERS} have {ROWS} \
             holdings in both, the others {ROWS_OTHERS}; the large one was written in \
             {seeded_s:.0} s through the product's store and has {many_mib} MiB\n\
             - disk: {}; one synced append of 4 KiB takes {sync_us:.0} µs\n",
            file_system_of(&few),
        );
        Ok(Self {
            few,
            many,
            rows,
            described,
        })
    }
}

fn seed(harness: &Harness, state: &Path, symbols: &Path, users: usize) -> Result<()> {
    let status = Command::new(harness.programs.folder.join("seed"))
        .arg("--state")
        .arg(state)
        .arg("--symbols")
        .arg(symbols)
        .args(["--registered", REGISTERED, "--synced", SYNCED])
        .args([
            "--users",
            &users.to_string(),
            "--large",
            &FEW_USERS.to_string(),
        ])
        .args([
            "--rows-large",
            &ROWS.to_string(),
            "--rows",
            &ROWS_OTHERS.to_string(),
        ])
        .status()
        .context("run the seeding program")?;
    ensure!(status.success(), "the seeding program failed");
    Ok(())
}

fn largest_file_bytes(folder: &Path) -> io::Result<u64> {
    let entries = fs::read_dir(folder)?.filter_map(io::Result::ok);
    Ok(entries
        .filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .max()
        .unwrap_or(0))
}

/// What the disk takes to keep one page that was appended, as a database's log is.
fn sync_us(folder: &Path) -> io::Result<f64> {
    use io::Write;
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
    Ok(median(&taken).unwrap_or(0.0))
}

/// Type and device of the mount that holds `folder`, from the longest mount point above it.
fn file_system_of(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let above = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (device, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
        folder
            .starts_with(point)
            .then(|| (point.len(), format!("{kind} on {device}")))
    });
    above
        .max_by_key(|(length, _)| *length)
        .map(|(_, found)| found)
        .unwrap_or_default()
}

/// E-mail of a seeded user, counted from 1.
pub fn email(number: usize) -> String {
    format!("user-{number}@load.example")
}

/// Body of a registration or a login.
pub fn credentials(email: &str) -> Value {
    json!({"email": email, "password": PASSWORD})
}

/// A token for a user.
pub fn log_in(server: &Server, email: &str) -> Result<String> {
    let url = server.url("/api/auth/login");
    let answer = Client::new(DEADLINE).send("POST", &url, &[], Some(&credentials(email)))?;
    let session = answer.expect(200)?.json()?;
    let token = session["access_token"].as_str();
    Ok(token.context("a login without a token")?.to_owned())
}
