//! What the commands about an installed service share: settings found where the unit has them, and
//! talking to the terminal.
//!
//! Main thread of a command. Nothing here prints a secret.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};

use super::loopback::Target;
use crate::config::Config;
use crate::config::check::{Fault, report};
use crate::config::cli::{Scope, typed, with_flags};
use crate::config::env_file;
use crate::config::load::{Environment, Loaded, load};
use crate::config::secrets::read_credential_store;
use crate::ops::Exit;
use crate::store::FILE_NAME;
use crate::store::upkeep::UpkeepError;

/// Where the package keeps the unit's settings and its state.
const ENV_FILE: &str = "/etc/bhav/bhav.env";
const STATE_DIR: &str = "/var/lib/bhav";
/// Where the unit's credentials lie (systemd.exec(5), `LoadCredential=`).
const CREDENTIAL_STORE: &str = "/etc/credstore";

/// `command` with the flags that say which service is meant.
pub fn with_service(command: Command) -> Command {
    with_env_file(with_flags(command, Scope::Operator))
}

/// The same for a command that asks the running service: it may be told where.
pub fn with_running_service(command: Command) -> Command {
    let url = Arg::new("url").long("url").value_name("URL");
    with_service(command.arg(url.help("Ask here instead of where the settings say it listens")))
}

/// `command` with the flag that names the unit's settings.
pub fn with_env_file(command: Command) -> Command {
    let env_file = Arg::new("env-file")
        .long("env-file")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help(format!("Settings of the service, as its unit has them [default: {ENV_FILE}]"));
    command.arg(env_file)
}

/// The settings of the service that is meant: flags, the environment, then the unit's own file.
///
/// # Errors
/// The exit code; the reason has been told.
pub fn loaded(matches: &ArgMatches) -> Result<Loaded, ExitCode> {
    let env = Environment::of_process();
    let given = matches.get_one::<PathBuf>("env-file");
    let package = Path::new(ENV_FILE);
    let env = match given {
        Some(file) => env.with_file_at(file),
        None if env.path(env_file::NAME).is_some() => env.with_file(),
        // Without the package, or not for our eyes: the environment may do.
        None if std::fs::File::open(package).is_err() => Ok(env),
        None => env.with_file_at(package),
    };
    let told = |faults: Vec<Fault>| {
        say(&format!("bhav: {}", report(&faults)));
        Exit::Usage
    };
    let env = env.map_err(told)?;
    let mut loaded = load(&typed(matches), &env).map_err(told)?;
    read_credential_store(Path::new(CREDENTIAL_STORE), &mut loaded);
    Ok(loaded)
}

/// The same for a command about the service's state directory.
///
/// # Errors
/// As [`loaded`].
pub fn settings(matches: &ArgMatches) -> Result<Config, ExitCode> {
    let Loaded { mut config, origins, .. } = loaded(matches)?;
    // Where nothing names it: of a service started by hand here, else the package's.
    if !origins.contains_key("BHAV_STATE_DIR") && !config.state_dir.exists() {
        let package = PathBuf::from(STATE_DIR);
        if package.exists() {
            config.state_dir = package;
        }
    }
    Ok(config)
}

/// The same for a command [`with_running_service`], and where that is to be asked.
///
/// # Errors
/// As [`loaded`]; an address that nobody can be asked at is told too.
pub fn service(matches: &ArgMatches) -> Result<(Config, Target), ExitCode> {
    let config = settings(matches)?;
    let url = matches.get_one::<String>("url").map(String::as_str);
    let target = Target::of(url, &config.http.listen).map_err(|why| refuse(&why, Exit::Usage))?;
    Ok((config, target))
}

/// To standard output. A reader that went away (`| head`) is no fault.
pub fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::Internal.into(),
        _ => Exit::Ok.into(),
    }
}

/// To standard error, before the log runs. Nobody is left to tell when that fails.
pub fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A failure with the service's database, told so that the next step shows.
pub fn in_words(error: &UpkeepError) -> String {
    match error {
        UpkeepError::File { path, source }
            if source.kind() == io::ErrorKind::NotFound && path.ends_with(FILE_NAME) =>
        {
            format!("there is no {}; say with --state-dir which service is meant", path.display())
        }
        error => error.to_string(),
    }
}

/// Tells why a command does nothing.
pub fn refuse(why: &str, exit: Exit) -> ExitCode {
    say(&format!("bhav: {why}\n"));
    exit.into()
}

/// Text of another program, made harmless for a terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `3 d 4 h`, `2 h 5 min`, `4 min 10 s`, `7 s`.
pub fn span(seconds: u64) -> String {
    let (d, h, min, s) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    match (d, h, min) {
        (0, 0, 0) => format!("{s} s"),
        (0, 0, _) => format!("{min} min {s} s"),
        (0, _, _) => format!("{h} h {min} min"),
        _ => format!("{d} d {h} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_like_a_person_says_them() {
        for (seconds, text) in
            [(7, "7 s"), (250, "4 min 10 s"), (7_500, "2 h 5 min"), (273_600, "3 d 4 h")]
        {
            assert_eq!(span(seconds), text);
        }
        assert_eq!(plain("a\u{1b}[31mb\n"), "a [31mb ");
    }
}
