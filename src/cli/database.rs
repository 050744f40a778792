//! `bhav backup`, `bhav restore`, `bhav migrate` and `bhav renew-identity`.
//!
//! Main thread. A backup may be made while the service runs; a restore only while it is stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgGroup, ArgMatches, Command, value_parser};

use super::operator::{
    Done, STOP, expect_consent, flag, in_words, in_words_of_backup, print, refuse, say, settings,
    with_service,
};
use crate::base::{Clock, clock};
use crate::config::Config;
use crate::ops::exit::Failed;
use crate::ops::state_lock::StateLock;
use crate::ops::{Exit, exit, state_lock};
use crate::store::maintenance::FileReport;
use crate::store::settings::StoreUrl;
use crate::store::{self, FILE_NAME, MaintenanceError, UserDirectory, backups, maintenance};

/// The signing key, in the state directory.
const KEY_FILE: &str = "jwt.key";

const BACKUP_NOTES: &str = "\
Works while the service runs. The copy is checked before it gets its final name. It has mode 600
and contains everything in the database: keep it as safe. It does not contain the signing key
(jwt.key), which is not needed: after a restore everybody logs in again. An existing file is never
overwritten. Files that an interrupted backup left in the directory are removed. bhav status shows
the last good copy, and a failure if it was a timer's run (--scheduled).";

const RESTORE_NOTES: &str = "\
First stop the service and its socket unit, which would start it again: systemctl stop bhav.socket
bhav.service. Start both again afterwards, the socket only if you use it. The replaced database is
kept as bhav.sqlite.before-restore-TIME; delete it when you no longer need it. Everybody logs in
again: tokens issued before are not valid for a restored database. Use --rotate-key if somebody
else may know the signing key (if it is given as JWT_SECRET, change that instead).";

const MIGRATE_NOTES: &str = "\
With --to, first stop the service. The URL is that of BHAV_STORE_URL, and the password comes from
BHAV_STORE_PASSWORD as for the service. Everything is copied in one transaction, with its ids, read
back and compared before it is committed. Then set BHAV_STORE_URL and start the service; everybody
logs in again. The file stays, and a start on it warns that it was copied: delete it when it is no
longer needed.";

const RENEW_NOTES: &str = "\
For a database that was put back in a way that the program cannot see: a snapshot of the machine or
of the file system, or a server's data directory. Everybody logs in again, so that no login counts
that had been ended after the copy was made. Works while the service runs; each node takes it up
within 5 seconds. On a server it also forgets which JWT_SECRET the nodes sign with: the next start
says it anew. With --copied, stop every node of the copy first: it may share a cache server with
the nodes of the original.";

/// The definition of the command `backup`.
pub(crate) fn backup_command() -> Command {
    let to = Arg::new("to").value_name("FILE|DIR").required(true);
    let keep = Arg::new("keep").long("keep").value_name("N");
    with_service(
        Command::new("backup")
            .about("Copy the database, whether or not the service runs")
            .arg(to.value_parser(value_parser!(PathBuf)).help(
                "A new file, or a directory that gets bhav-YYYYMMDD-HHMMSS.sqlite (time in IST)",
            ))
            .arg(
                keep.value_parser(value_parser!(u32).range(1..=10_000)).help(
                    "In a directory: keep the newest N files of that pattern, remove older ones",
                ),
            )
            .arg(flag("scheduled", "For a timer: bhav status then shows a failure of this run"))
            .after_help(format!("{BACKUP_NOTES}\n\n{}", exit::HELP)),
    )
}

/// The definition of the command `restore`.
pub(crate) fn restore_command() -> Command {
    let from = Arg::new("from").value_name("FILE").required(true);
    let rotate = "Also rename the signing key, so that the next start makes a new one";
    with_service(
        Command::new("restore")
            .about("Replace the database by a backup; the service must be stopped")
            .arg(from.value_parser(value_parser!(PathBuf)).help("The backup"))
            .arg(flag("yes", "Do not ask"))
            .arg(flag("rotate-key", rotate))
            .after_help(format!("{RESTORE_NOTES}\n\n{}", exit::HELP)),
    )
}

/// The definition of the command `migrate`.
pub(crate) fn migrate_command() -> Command {
    let status = flag("status", "Only show which migrations the next start would run");
    let to = Arg::new("to")
        .long("to")
        .value_name("URL")
        .conflicts_with("status");
    with_service(
        Command::new("migrate")
            .about("Show pending migrations of the database, or copy it to a server")
            .arg(status)
            .arg(to.help("Copy everything to this empty PostgreSQL database"))
            .group(ArgGroup::new("what").args(["status", "to"]).required(true))
            .after_help(format!("{MIGRATE_NOTES}\n\n{}", exit::HELP)),
    )
}

/// The definition of the command `renew-identity`.
pub(crate) fn renew_identity_command() -> Command {
    let copied = "It is a copy of a database that goes on: tell the two apart";
    with_service(
        Command::new("renew-identity")
            .about("Give a database that was put back another identity; ends every login")
            .arg(flag("copied", copied))
            .arg(flag("yes", "Do not ask"))
            .after_help(format!("{RENEW_NOTES}\n\n{}", exit::HELP)),
    )
}

/// Runs one of the commands.
pub(super) fn run(name: &str, matches: &ArgMatches) -> Done {
    let config = settings(matches)?;
    match name {
        "backup" => backup(matches, &config),
        "restore" => restore(matches, &config),
        "migrate" => migrate(matches, &config),
        _ => renew_identity(matches, &config),
    }
}

fn renew_identity(matches: &ArgMatches, config: &Config) -> Done {
    let mut users =
        UserDirectory::open(&config.state_dir, &config.store).map_err(refused(Exit::StateDir))?;
    expect_consent(matches, "End every login?")?;
    users
        .renew_identity(matches.get_flag("copied"))
        .map_err(refused(Exit::Unavailable))?;
    Ok(print(
        "the database has a new identity; everybody logs in again, at a running service \
         within 5 seconds\n",
    ))
}

fn backup(matches: &ArgMatches, config: &Config) -> Done {
    expect_file(config, "use pg_dump")?;
    let given: &PathBuf = matches.get_one("to").expect("clap demands it");
    let keep = matches.get_one::<u32>("keep").copied();
    let clock = Clock::system();
    let database = config.state_dir.join(FILE_NAME);
    let made = copy(&database, given, keep.is_some(), &clock);
    // A person who runs a backup sees its failure; only a timer's failure has to be remembered.
    if made.is_ok() || matches.get_flag("scheduled") {
        remember(&config.state_dir, &database, &clock, made.is_ok());
    }
    let (to, report) = made.map_err(|(why, exit)| refuse(&why, exit))?;
    let bytes = fs::metadata(&to).map_or(0, |about| about.len());
    let ms = clock.monotonic_ms();
    let done = print(&format!(
        "{}: {bytes} bytes, schema {}, checked, in {ms} ms\n",
        to.display(),
        report.version
    ));
    if let Some(keep) = keep {
        let removed = remove_older(given, keep as usize);
        let unusable = |error| refuse(&format!("older backups: {error}"), Exit::StateDir);
        for path in removed.map_err(unusable)? {
            say(&format!("removed {}\n", path.display()));
        }
    }
    Ok(done)
}

/// Makes a checked copy of the database: the file `given`, or a new file in that directory.
///
/// # Errors
/// Why there is no copy, and the exit code.
fn copy(
    database: &Path,
    given: &Path,
    keeps: bool,
    clock: &Clock,
) -> Result<(PathBuf, FileReport), Failed> {
    let to = match is_directory(given, keeps)? {
        true => {
            remove_unfinished(given);
            given.join(backup_name(&stamp(clock)))
        }
        false => given.to_owned(),
    };
    let report = maintenance::copy_to(database, &to)
        .map_err(|error| (in_words(&error), exit_of(&error, Exit::StateDir)))?;
    Ok((to, report))
}

/// Whether `to` is a directory in which to create a new file, and not the file itself.
///
/// # Errors
/// The reason and exit code if the directory does not exist or `to` is no directory.
fn is_directory(to: &Path, keeps: bool) -> Result<bool, Failed> {
    if to.is_dir() {
        return Ok(true);
    }
    let named = to.display().to_string();
    let bare = named.trim_end_matches('/');
    match (to.exists(), keeps || bare != named) {
        (_, false) => Ok(false),
        (true, true) => {
            let why = format!("{bare} is no directory, which --keep needs to keep backups in");
            Err((why, Exit::Usage))
        }
        (false, true) => {
            Err((format!("there is no directory {bare}: make it first (mkdir)"), Exit::StateDir))
        }
    }
}

/// Records the result of a backup for `bhav status` and the metrics.
fn remember(state_dir: &Path, database: &Path, clock: &Clock, good: bool) {
    if !database.exists() {
        return;
    }
    if let Err(error) = backups::note(state_dir, clock.now_ms(), good) {
        say(&format!("bhav: bhav status will not know of it: {error}\n"));
    }
}

fn restore(matches: &ArgMatches, config: &Config) -> Done {
    let from: &PathBuf = matches.get_one("from").expect("clap demands it");
    expect_file(config, "use pg_restore")?;
    let state = config.state_dir.as_path();
    let _lock = stopped(state)?;
    let unusable =
        |otherwise| move |error| refuse(&in_words_of_backup(&error), exit_of(&error, otherwise));
    // Check the backup before asking for confirmation.
    maintenance::verify(from).map_err(unusable(Exit::Data))?;
    let path = state.join(FILE_NAME);
    expect_consent(matches, &format!("Replace {} with {}?", path.display(), from.display()))?;
    let stamp = stamp(&Clock::system());
    let restored = maintenance::restore(from, &path, &stamp).map_err(unusable(Exit::StateDir))?;
    let version = restored.report.version;
    let mut text = format!("{} holds {} now, schema {version}\n", path.display(), from.display());
    if let Some(kept) = restored.kept {
        text.push_str(&format!("the former database is {}\n", kept.display()));
    }
    text.push_str("everybody logs in again: no token of before is good any more\n");
    if matches.get_flag("rotate-key") {
        let rotated = rotate_key(state, &stamp);
        text.push_str(
            &rotated.map_err(|error| refuse(&format!("{KEY_FILE}: {error}"), Exit::StateDir))?,
        );
    }
    Ok(print(&text))
}

/// Takes the lock of a state directory, so that no service starts while the command runs.
fn stopped(state: &Path) -> Result<impl Sized, ExitCode> {
    match state_lock::take(state) {
        Ok(StateLock::Held(lock)) => Ok(lock),
        Ok(StateLock::InUse) => {
            let why = format!("the service runs on this state directory: {STOP}");
            Err(refuse(&why, Exit::Unavailable))
        }
        Err(error) => Err(refuse(&format!("{}: {error}", state.display()), Exit::StateDir)),
    }
}

/// Refuses a command about the file if the database is on a server.
fn expect_file(config: &Config, instead: &str) -> Result<(), ExitCode> {
    match &config.store.url {
        Some(url) => Err(refuse(&format!("the database is {url}: {instead}"), Exit::Usage)),
        None => Ok(()),
    }
}

/// Prints why the database cannot be used.
fn refused(otherwise: Exit) -> impl Fn(MaintenanceError) -> ExitCode {
    move |error| refuse(&in_words(&error), exit_of(&error, otherwise))
}

/// `bhav migrate --status` and `bhav migrate --to`.
fn migrate(matches: &ArgMatches, config: &Config) -> Done {
    if let Some(url) = matches.get_one::<String>("to") {
        return migrate_to(url, config);
    }
    expect_file(config, "a start migrates it")?;
    let path = config.state_dir.join(FILE_NAME);
    let FileReport {
        version,
        known,
        pending,
    } = maintenance::inspect(&path).map_err(refused(Exit::StateDir))?;
    let mut text = format!("{}: schema {version}; this program's is {known}\n", path.display());
    match pending.as_slice() {
        [] => text.push_str("nothing to do\n"),
        pending => {
            text.push_str(&format!("the next start runs: {}\n", pending.join(", ")));
            if version > 0 {
                text.push_str(&format!(
                    "and keeps a copy first, as {}\n",
                    maintenance::copy_before_upgrade(&path, version).display()
                ));
            }
        }
    }
    Ok(print(&text))
}

fn migrate_to(url: &str, config: &Config) -> Done {
    let url = StoreUrl::parse(url).map_err(|bad| refuse(&format!("--to {bad}"), Exit::Usage))?;
    let state = config.state_dir.as_path();
    let _lock = stopped(state)?;
    let copied =
        store::copy_to_server(state, &url, &config.store).map_err(refused(Exit::Unavailable))?;
    let mut text = String::new();
    for table in copied {
        text.push_str(&format!("{:>10}  {}\n", table.rows, table.name));
    }
    text.push_str(&format!(
        "{url} holds {} now, compared cell by cell; set BHAV_STORE_URL and start the service\n",
        state.join(FILE_NAME).display()
    ));
    Ok(print(&text))
}

/// The exit code of an error; `otherwise` if the error has no code of its own.
fn exit_of(error: &MaintenanceError, otherwise: Exit) -> Exit {
    match error {
        MaintenanceError::Newer { .. }
        | MaintenanceError::Foreign(_)
        | MaintenanceError::NotEmpty { .. }
        | MaintenanceError::Open(_)
        | MaintenanceError::Exists(_)
        | MaintenanceError::Older { .. } => Exit::Usage,
        MaintenanceError::Damaged { .. } | MaintenanceError::Differs(_) => Exit::Data,
        MaintenanceError::NoSpace(_) => Exit::StateDir,
        _ => otherwise,
    }
}

/// Renames the key file, so that the next start generates a new key.
fn rotate_key(state: &Path, stamp: &str) -> std::io::Result<String> {
    let path = state.join(KEY_FILE);
    let kept = state.join(format!("{KEY_FILE}.before-restore-{stamp}"));
    match fs::rename(&path, &kept) {
        Ok(()) => Ok(format!("the signing key was set aside as {}; delete it\n", kept.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok("there was no signing key to set aside; the next start makes one\n".to_owned())
        }
        Err(error) => Err(error),
    }
}

/// The time for file names, in IST: `20261120-110000`.
fn stamp(clock: &Clock) -> String {
    clock::zoned(clock.now())
        .strftime("%Y%m%d-%H%M%S")
        .to_string()
}

fn backup_name(stamp: &str) -> String {
    format!("bhav-{stamp}.sqlite")
}

/// Whether a file has the name of a backup. Only such files are ever removed.
fn is_backup(name: &str) -> bool {
    let stamp = name
        .strip_prefix("bhav-")
        .and_then(|rest| rest.strip_suffix(".sqlite"));
    stamp
        .and_then(|stamp| stamp.split_once('-'))
        .is_some_and(|(date, time)| {
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            date.len() == 8 && time.len() == 6 && digits(date) && digits(time)
        })
}

/// Removes the leftovers of interrupted backups in the directory, but not the file of a running
/// one. Ignores files that cannot be removed.
fn remove_unfinished(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_ours = name.strip_suffix(".unfinished").is_some_and(is_backup);
        if is_ours && store::remove_unfinished(&path).unwrap_or(false) {
            say(&format!("removed {}, left by a backup that was ended\n", path.display()));
        }
    }
}

/// Removes all backups but the newest `keep`. Names contain the time, so they sort by age.
fn remove_older(directory: &Path, keep: usize) -> std::io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_backup(&name) && entry.file_type()?.is_file() {
            names.push(name);
        }
    }
    names.sort_unstable();
    names.truncate(names.len().saturating_sub(keep));
    let paths: Vec<PathBuf> = names.iter().map(|name| directory.join(name)).collect();
    for path in &paths {
        fs::remove_file(path)?;
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_pattern_are_backups() {
        assert!(is_backup(&backup_name("20261120-110000")));
        for other in [
            "bhav.sqlite",
            "bhav-2026112-110000.sqlite",
            "bhav-20261120-110000.sqlite.unfinished",
            "bhav-20261120-11000x.sqlite",
            "x-20261120-110000.sqlite",
        ] {
            assert!(!is_backup(other), "{other}");
        }
    }
}
