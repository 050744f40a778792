//! Shared by the commands about an installed service: finding its settings, and messages on the
//! terminal.
//!
//! Main thread of a command. Nothing here prints a secret.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::client::Target;
use crate::brokers::security_master;
use crate::config::check::missing_key;
use crate::config::cli::{Scope, typed, with_flags};
use crate::config::composed::Loaded;
use crate::config::composed::PACKAGE_STATE_DIR;
use crate::config::environment::{Environment, Flags};
use crate::config::fault::{Fault, Origin, report};
use crate::config::load::load_with;
use crate::config::{Config, env_file};
use crate::market::{FairValues, IndexList, MarketCalendar, Sectors, Universe};
use crate::ops::Exit;
use crate::store::{FILE_NAME, MaintenanceError, maintenance};

/// Settings file of the package's systemd unit.
const ENV_FILE: &str = "/etc/bhav/bhav.env";
/// Source of the unit's credentials (systemd.exec(5), `LoadCredential=`).
const CREDENTIAL_STORE: &str = "/etc/credstore";

/// The exit code of a command that has printed its result, or else why it failed.
pub(super) type Done = Result<ExitCode, ExitCode>;

/// A command that is nothing without one of its subcommands.
pub(super) fn group(name: &'static str, about: &'static str) -> Command {
    let group = Command::new(name).about(about);
    group
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
}

/// A flag without a value.
pub(super) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .action(ArgAction::SetTrue)
        .help(help)
}

/// `command` with the flags that select the service.
pub(crate) fn with_service(command: Command) -> Command {
    with_env_file(with_flags(command, Scope::Operator))
}

/// `command` with the flags that select the service, and `--url` for its address.
pub(crate) fn with_running_service(command: Command) -> Command {
    let url = Arg::new("url").long("url").value_name("URL");
    with_service(command.arg(url.help("Ask here instead of where the settings say it listens")))
}

/// `command` with the flag that names the unit's settings.
pub(crate) fn with_env_file(command: Command) -> Command {
    let env_file = Arg::new("env-file")
        .long("env-file")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help(format!("Settings file of the service [default: {ENV_FILE}]"));
    command.arg(env_file)
}

/// The sources of the selected service's settings: flags, environment, and the unit's own file.
struct Sources {
    flags: Flags,
    env: Environment,
    /// A warning if the unit's file could not be read.
    missing: Option<String>,
}

impl Sources {
    fn of(matches: &ArgMatches) -> Result<Self, Vec<Fault>> {
        let env = Environment::of_process();
        let given = matches.get_one::<PathBuf>("env-file");
        let (env, missing) = match given {
            Some(file) => (env.with_file_at(file)?, None),
            None if env.path(env_file::NAME).is_some() => (env.with_file()?, None),
            None => with_package_file(env, Path::new(ENV_FILE))?,
        };
        Ok(Self {
            flags: typed(matches),
            env,
            missing,
        })
    }

    fn load(&self) -> Result<Loaded, Vec<Fault>> {
        let credentials = Some(Path::new(CREDENTIAL_STORE));
        let mut loaded = load_with(&self.flags, &self.env, credentials, |_| None)?;
        loaded.warnings.extend(self.missing.clone());
        take_package_state(&mut loaded, Path::new(PACKAGE_STATE_DIR));
        Ok(loaded)
    }
}

/// Adds the package's settings file if it exists. If it cannot be read, returns a warning instead.
fn with_package_file(
    env: Environment,
    file: &Path,
) -> Result<(Environment, Option<String>), Vec<Fault>> {
    match File::open(file) {
        Ok(_) => Ok((env.with_file_at(file)?, None)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((env, None)),
        Err(error) => {
            let missing = format!(
                "{} cannot be read: {error}; the service may have other settings than these",
                file.display()
            );
            Ok((env, Some(missing)))
        }
    }
}

/// If no setting names a state directory and the default one does not exist here, uses the
/// package's.
fn take_package_state(loaded: &mut Loaded, package: &Path) {
    const NAME: &str = "BHAV_STATE_DIR";
    if !loaded.origins.contains_key(NAME) && !loaded.config.state_dir.exists() && package.exists() {
        loaded.config.state_dir = package.to_owned();
        loaded.origins.insert(NAME, Origin::Unit);
    }
}

pub(super) fn report_faults(faults: &[Fault]) -> ExitCode {
    say(&format!("bhav: {}", report(faults)));
    Exit::Usage.into()
}

/// The settings of the selected service.
///
/// # Errors
/// The exit code; the reason has been printed.
pub(super) fn shown(matches: &ArgMatches) -> Result<Loaded, ExitCode> {
    Sources::of(matches)
        .and_then(|sources| sources.load())
        .map_err(|faults| report_faults(&faults))
}

/// The settings of the selected service, after checking the files that they name.
///
/// # Errors
/// The exit code; all faults have been printed.
pub(super) fn checked(matches: &ArgMatches) -> Result<Loaded, ExitCode> {
    let sources = Sources::of(matches).map_err(|faults| report_faults(&faults))?;
    let (loaded, mut faults) = match sources.load() {
        Ok(loaded) => {
            let fault = missing_key(&loaded.config);
            (Some(loaded), fault.into_iter().collect())
        }
        Err(faults) => (None, faults),
    };
    faults.extend(named_file_faults(&sources.flags, &sources.env, &faults));
    loaded
        .filter(|_| faults.is_empty())
        .ok_or_else(|| report_faults(&faults))
}

/// The settings for a command about the service's state directory.
///
/// # Errors
/// The exit code; the reason has been printed.
pub(super) fn settings(matches: &ArgMatches) -> Result<Config, ExitCode> {
    shown(matches).map(|loaded| loaded.config)
}

/// The settings and the address, for a command [`with_running_service`].
///
/// # Errors
/// Those of [`settings`], or no usable address.
pub(super) fn service(matches: &ArgMatches) -> Result<(Config, Target), ExitCode> {
    let config = settings(matches)?;
    let url = matches.get_one::<String>("url").map(String::as_str);
    let target = Target::of(url, &config.http.listen).map_err(|why| refuse(&why, Exit::Usage))?;
    Ok((config, target))
}

/// Prints to standard output. A closed pipe (`| head`) is no error.
pub(super) fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            refuse(&format!("standard output: {error}"), Exit::StateDir)
        }
        _ => Exit::Ok.into(),
    }
}

/// Prints to standard error. Errors are ignored, because there is no other place to report them.
pub(super) fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Asks for a `yes` on a terminal, unless `--yes` is given. Refuses without a terminal.
pub(super) fn expect_consent(matches: &ArgMatches, question: &str) -> Result<(), ExitCode> {
    if matches.get_flag("yes") {
        return Ok(());
    }
    let mut answer = String::new();
    if io::stdin().is_terminal() {
        say(&format!("{question} Type yes: "));
        // Without an answer nothing is changed.
        let _ = io::stdin().read_line(&mut answer);
    }
    match answer.trim() {
        "yes" => Ok(()),
        _ => Err(refuse("nothing was changed; --yes does it without asking", Exit::Usage)),
    }
}

/// The command that stops the service and the socket unit that would start it again.
pub(super) const STOP: &str = "systemctl stop bhav.socket bhav.service";

/// An error of the service's database as a message that says what to do.
pub(crate) fn in_words(error: &MaintenanceError) -> String {
    let cure = match error {
        MaintenanceError::File { path, source }
            if source.kind() == io::ErrorKind::NotFound && path.ends_with(FILE_NAME) =>
        {
            let demo = path.with_file_name("demo");
            let of_the_demo = match demo.join(FILE_NAME).exists() {
                true => format!(" (--state-dir={} is the demo's)", demo.display()),
                false => String::new(),
            };
            let path = path.display();
            return format!(
                "there is no {path}; say with --state-dir which service is meant{of_the_demo}"
            );
        }
        MaintenanceError::Foreign(_) => {
            "say with --state-dir which service is meant; if it is this one, the file's beginning \
             is damaged: bhav restore BACKUP"
                .to_owned()
        }
        MaintenanceError::Newer { path, known, .. } => {
            format!("run the newer program again, or {}", maintenance::way_back(path, *known))
        }
        MaintenanceError::Damaged { .. } => {
            format!("{STOP}; bhav restore BACKUP (the newest good one); start; check the disk")
        }
        MaintenanceError::NoSpace(_) => "free some, or name another place".to_owned(),
        _ => return error.to_string(),
    };
    format!("{error}; {cure}")
}

/// An error of a backup that was to be restored, as a message that says what to do.
pub(crate) fn in_words_of_backup(error: &MaintenanceError) -> String {
    match error {
        MaintenanceError::Foreign(path) => {
            format!("{} is not a backup of bhav: name another file", path.display())
        }
        MaintenanceError::Newer { .. } => {
            format!("{error}: install the newer program that made it, or name an older backup")
        }
        MaintenanceError::Damaged { .. } => format!("{error}; name an older backup"),
        MaintenanceError::NoSpace(_) => format!("{error}; free some. Nothing was changed"),
        error => error.to_string(),
    }
}

/// Prints why a command fails, and returns the exit code.
pub(super) fn refuse(why: &str, exit: Exit) -> ExitCode {
    say(&format!("bhav: {why}\n"));
    exit.into()
}

/// Text from outside with control characters replaced, so that it cannot manipulate the terminal.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

// ---- Named files
//
// Checks the files that settings name by reading them as the service does, so that their faults
// are reported together with those of the settings. Main thread of a command.

type Reader = fn(&Path) -> Result<(), String>;

/// Each setting that names a file, with the function that reads the file.
const FILES: [(&str, Reader); 6] = [
    ("BHAV_CALENDAR_FILE", |path| said(MarketCalendar::load(Some(path)))),
    ("BHAV_INDICES_FILE", |path| said(IndexList::load(Some(path)))),
    ("BHAV_UNIVERSE_FILE", |path| said(Universe::load(Some(path)))),
    ("BHAV_SECTORS_FILE", |path| said(Sectors::load(Some(path)))),
    ("BHAV_FMV_FILE", |path| said(FairValues::load(Some(path)))),
    (security_master::SETTING, |path| said(security_master::load(path))),
];

/// Faults in the contents of the files. Settings with a fault in `known` are skipped.
pub(crate) fn named_file_faults(flags: &Flags, env: &Environment, known: &[Fault]) -> Vec<Fault> {
    let mut found = Vec::new();
    for (name, read) in FILES {
        let (path, origin) = match (flags.get(name), env.path(name)) {
            (Some(path), _) => (path.into(), "flag".to_owned()),
            (None, Some(path)) => (path, env.origin(name).to_string()),
            (None, None) => continue,
        };
        if known.iter().any(|fault| fault.name == name) {
            continue;
        }
        found.extend(read(&path).err().map(|problem| Fault {
            name: name.to_owned(),
            value: Some(path.display().to_string()),
            origin: Some(origin),
            problem: format!("cannot be used: {problem}"),
            cure: "correct the file, or unset the setting to do without".to_owned(),
        }));
    }
    found
}

fn said<T, E: std::fmt::Display>(read: Result<T, E>) -> Result<(), String> {
    read.map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::effective;
    use crate::config::load::load;

    #[test]
    fn a_settings_file_that_cannot_be_read_gives_a_warning() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("bhav.env");
        let told = |file: &Path| with_package_file(Environment::default(), file).unwrap().1;
        assert_eq!(told(&file), None, "there is no package");
        std::fs::write(&file, "BHAV_EDGE_THREADS=3\n").unwrap();
        assert_eq!(told(&file), None);
        // Covers tests run by root, who may read every file.
        let closed = told(&file.join("below-a-file")).unwrap();
        assert!(closed.contains("below-a-file cannot be read: "), "{closed}");
    }

    #[test]
    fn the_units_state_directory_is_used_unless_one_is_set() {
        let package = tempfile::tempdir().unwrap();
        let state = |pairs: &[(&str, &str)], package: &Path| {
            let env = Environment::from_pairs(pairs.iter().copied());
            let mut loaded = load(&Flags::new(), &env).unwrap();
            take_package_state(&mut loaded, package);
            (loaded.config.state_dir.clone(), effective(&loaded))
        };
        let (dir, text) = state(&[], package.path());
        assert_eq!(dir, package.path());
        let line = format!("BHAV_STATE_DIR={}  # the installed unit\n", dir.display());
        assert!(text.contains(&line), "{text}");
        assert_eq!(state(&[("BHAV_STATE_DIR", "mine")], package.path()).0, Path::new("mine"));
        assert_eq!(state(&[], &package.path().join("none")).0, Config::default().state_dir);
    }

    #[test]
    fn what_manipulates_a_terminal_becomes_a_space() {
        assert_eq!(plain("a\u{1b}[31mb\n"), "a [31mb ");
    }
}

#[cfg(test)]
mod named_files_tests {
    use super::*;
    use crate::config::settings::SETTINGS;

    #[test]
    fn every_name_is_a_setting_and_what_is_known_is_not_told_twice() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "root:x:0:0:root:/home:/bin/sh\n").unwrap();
        let path = file.path().to_str().unwrap();
        let env = Environment::from_pairs(FILES.map(|(name, _)| (name, path)));
        let told = named_file_faults(&Flags::new(), &env, &[]);
        let names: Vec<&str> = told.iter().map(|fault| fault.name.as_str()).collect();
        assert_eq!(names, FILES.map(|(name, _)| name));
        for (name, _) in FILES {
            assert!(SETTINGS.iter().any(|setting| setting.name == name), "{name}");
        }
        assert!(named_file_faults(&Flags::new(), &env, &told).is_empty());
        assert!(named_file_faults(&Flags::new(), &Environment::default(), &[]).is_empty());
    }
}
