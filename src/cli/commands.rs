//! The commands of the command line, and the start of the service.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, value_parser};

use crate::cli::completions::{completions, completions_command, man, man_command};
use crate::cli::operator::{
    Done, checked, flag, group, named_file_faults, plain, print, refuse, report_faults, say, shown,
    with_env_file,
};
use crate::cli::{calendar, database, keys, status, token, users};
use crate::config::Config;
use crate::config::check::missing_key;
use crate::config::cli::{Scope, typed, with_flags};
use crate::config::composed::{Loaded, Reread};
use crate::config::environment::{Environment, Flags};
use crate::config::fault::Fault;
use crate::config::load::{effective, load_with};
use crate::config::settings::template;
use crate::ops::exit::Failed;
use crate::ops::{Exit, exit, log, panic};

#[cfg(feature = "engines")]
use crate::nodes::valkey::{Server, ValkeySettings};
#[cfg(feature = "engines")]
use crate::store::check_server;

/// Longest wait for the last log lines when a command ends.
const LOG_FLUSH_MAX: Duration = Duration::from_secs(2);

/// Flag of `config check`.
const CONNECT: &str = "connect";

/// Flags of `demo`.
const PUBLIC: &str = "public";
const RESET_S: &str = "reset-s";

/// Runs the service with these settings. The second argument reads them again for a reload.
pub type Serve = fn(&Config, &Reread<'_>) -> Result<(), Failed>;

/// Runs a demo for strangers, which starts over after each period.
pub type PublicDemo = fn(&Config, Duration) -> Result<(), Failed>;

/// The implementations of commands that need the whole service, provided by `app`.
#[derive(Debug, Clone, Copy)]
pub struct Commands {
    pub serve: Serve,
    pub demo: Serve,
    pub public_demo: PublicDemo,
    pub sim: Serve,
}

/// Runs one command line, whose first argument is the program's name. A panic on this thread (a
/// library may panic without a free file descriptor) also ends with a documented exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, commands: &Commands) -> ExitCode {
    // Unwind safe: nothing is used again after a panic.
    let exit = catch_unwind(AssertUnwindSafe(|| dispatch(args, commands)));
    log::flush(LOG_FLUSH_MAX);
    match exit {
        Ok(Ok(code) | Err(code)) => code,
        Err(_) => Exit::Internal.into(),
    }
}

fn dispatch(args: impl IntoIterator<Item = OsString>, commands: &Commands) -> Done {
    let matches = command().try_get_matches_from(args).map_err(|error| {
        // clap also reports --help as an error, which it prints on standard output.
        let _ = error.print();
        if error.use_stderr() {
            Exit::Usage
        } else {
            Exit::Ok
        }
    })?;
    match matches.subcommand() {
        Some(("serve", typed)) => start_service(typed, commands.serve),
        Some(("demo", typed)) => {
            start_service(typed, |config, reread| match typed.get_flag(PUBLIC) {
                true => {
                    let seconds: &u32 = typed.get_one(RESET_S).expect("it has a default");
                    (commands.public_demo)(config, Duration::from_secs(u64::from(*seconds)))
                }
                false => (commands.demo)(config, reread),
            })
        }
        Some(("sim", typed)) => start(typed, commands.sim),
        Some(("config", config)) => match config.subcommand() {
            Some(("check", typed)) => check(typed),
            Some(("show", typed)) => Ok(print(&effective(&shown(typed)?))),
            Some(("template", _)) => Ok(print(&template())),
            _ => unreachable!("clap demands one of the three"),
        },
        Some(("calendar", typed)) => calendar::run(typed),
        Some(("status", typed)) => status::run(typed),
        Some(("healthcheck", typed)) => Ok(status::healthcheck(typed)),
        Some(("token", typed)) => token::run(typed),
        Some((name @ ("backup" | "restore" | "migrate" | "renew-identity"), typed)) => {
            database::run(name, typed)
        }
        Some(("user", typed)) => users::run(typed),
        Some(("key", typed)) => keys::run(typed),
        Some(("completions", typed)) => Ok(completions(typed, command())),
        Some(("man", typed)) => Ok(man(typed, command())),
        Some(("version", _)) => Ok(print(&format!("{}\n", exit::line()))),
        _ => unreachable!("clap demands a command"),
    }
}

fn start_service(
    matches: &ArgMatches,
    serve: impl FnOnce(&Config, &Reread<'_>) -> Result<(), Failed>,
) -> Done {
    panic::expect_enough().map_err(|error| refuse(&error.to_string(), Exit::Usage))?;
    start(matches, serve)
}

fn start(
    matches: &ArgMatches,
    serve: impl FnOnce(&Config, &Reread<'_>) -> Result<(), Failed>,
) -> Done {
    let flags = typed(matches);
    let Loaded {
        config, warnings, ..
    } = read(&flags).map_err(|faults| report_faults(&faults))?;
    log::start(&config.log.filter, config.log.format)
        .map_err(|error| refuse(&error.to_string(), Exit::Internal))?;
    panic::install();
    tracing::info!(version = exit::VERSION, profile = exit::PROFILE, "starting");
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    serve(&config, &|| read(&flags)).map_err(|(error, exit)| {
        tracing::error!(%error, "not started");
        exit
    })?;
    Ok(Exit::Ok.into())
}

fn check(matches: &ArgMatches) -> Done {
    let loaded = checked(matches)?;
    let text = effective(&loaded);
    if !matches.get_flag(CONNECT) {
        return Ok(print(&text));
    }
    let (can_be_used, refused) = ask_servers(&loaded.config);
    for cause in &refused {
        say(&format!("bhav: {}\n", plain(cause)));
    }
    match refused.is_empty() {
        true => Ok(print(&(text + &can_be_used))),
        false => Err(Exit::Usage.into()),
    }
}

/// Connects to every server in the settings and changes nothing there. Returns the settings whose
/// servers can be used, as lines of a settings file, and the refusals of the others, each with its
/// setting.
#[cfg(feature = "engines")]
fn ask_servers(config: &Config) -> (String, Vec<String>) {
    let mut can_be_used = String::new();
    let mut refused = Vec::new();
    let mut note = |setting: &str, causes: Vec<String>| match causes.is_empty() {
        true => can_be_used.push_str(&format!("# {setting}: the server can be used\n")),
        false => refused.extend(causes),
    };
    if let Some(checked) = check_server(&config.store) {
        let cause = checked
            .err()
            .map(|error| format!("BHAV_STORE_URL: {error}"));
        note("BHAV_STORE_URL", cause.into_iter().collect());
    }
    let ValkeySettings {
        url,
        password,
        ca_file,
        namespace,
    } = &config.valkey;
    if let Some(url) = url.clone() {
        let causes = match Server::new(url, password.clone(), ca_file.as_deref()) {
            Ok(server) => server.check(namespace.as_ref()),
            Err(error) => vec![error.to_string()],
        };
        note("BHAV_CACHE_URL", causes);
    }
    (can_be_used, refused)
}

/// Without engines no setting names a server.
#[cfg(not(feature = "engines"))]
fn ask_servers(_: &Config) -> (String, Vec<String>) {
    (String::new(), Vec::new())
}

/// Reads the settings from flags, environment and files; returns all faults at once.
fn read(flags: &Flags) -> Result<Loaded, Vec<Fault>> {
    let env = Environment::of_process().with_file()?;
    load_with(flags, &env, None, missing_key).map_err(|mut faults| {
        faults.extend(named_file_faults(flags, &env, &faults));
        faults
    })
}

/// The definition of the command `demo`.
fn demo_command() -> Command {
    let public = flag(
        PUBLIC,
        "For strangers: accounts that nobody can change, everything anew each hour, and nothing of \
         a visitor kept",
    );
    let reset = Arg::new(RESET_S)
        .long(RESET_S)
        .value_name("SECONDS")
        .value_parser(value_parser!(u32).range(5..=86_400))
        .default_value("3600")
        .requires(PUBLIC)
        .help("With --public: time after which everything starts over");
    with_flags(
        Command::new("demo")
            .about("Serve a simulated exchange day; needs no network and no settings")
            .arg(public)
            .arg(reset)
            .after_help(exit::HELP),
        Scope::Demo,
    )
}

const ABOUT: &str = "Low-latency, self-hosted edge service for Indian market data";

const EXAMPLES: &str = "\
Examples:
  bhav demo                              a simulated exchange day, no network, no settings
  bhav serve                             real feeds on 127.0.0.1:8080
  BHAV_LISTEN=127.0.0.1:9000 bhav serve  the same on another port
  bhav status                            state of the service, what is wrong and what to do
  bhav token a                           log in at broker A and give the service its token
  bhav user add asha@example.com         create an account; asks for the password
  bhav backup /var/backups/bhav --keep 7 copy and check the database, while it is in use
  bhav calendar                          hours, holidays, and what of them is not known
  bhav config check                      the settings in force and where each came from

Every flag has an environment variable, named in the long help of its command, and overrides it.
Secrets have no flag: give JWT_SECRET and the brokers' keys as systemd credentials, as
<NAME>_FILE, or in the environment; bhav config template lists them.

All data is informational and not investment advice; the operator is not registered as an
investment adviser or research analyst.";

/// The whole command line, for parsing, help, and generated documents.
pub fn command() -> Command {
    Command::new("bhav")
        .about(ABOUT)
        .version(exit::VERSION)
        .after_help(format!("{EXAMPLES}\n\n{}", exit::HELP))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(100)
        .subcommand(with_flags(
            Command::new("serve")
                .about("Serve market data from the real feeds")
                .after_help(exit::HELP),
            Scope::Service,
        ))
        .subcommand(demo_command())
        .subcommand(with_flags(
            Command::new("sim").about("Run only the simulator of the brokers' and public APIs"),
            Scope::Simulator,
        ))
        .subcommand(
            group("config", "Look at settings")
                .subcommand(with_env_file(with_flags(
                    Command::new("check")
                        .about("Check all settings and show those in force, secrets masked")
                        .arg(flag(
                            CONNECT,
                            "Also open the database and the shared server that the settings name, \
                             change nothing there, and say what they refuse",
                        )),
                    Scope::Check,
                )))
                .subcommand(with_env_file(with_flags(
                    Command::new("show")
                        .about("Show the settings in force and where each came from"),
                    Scope::Check,
                )))
                .subcommand(
                    Command::new("template").about("Print a documented file of all settings"),
                ),
        )
        .subcommand(calendar::command())
        .subcommand(status::command())
        .subcommand(status::healthcheck_command())
        .subcommand(token::command())
        .subcommand(database::backup_command())
        .subcommand(database::restore_command())
        .subcommand(database::migrate_command())
        .subcommand(database::renew_identity_command())
        .subcommand(users::command())
        .subcommand(keys::command())
        .subcommand(completions_command())
        .subcommand(man_command())
        .subcommand(Command::new("version").about("Print version and build"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_command_is_required_and_secrets_have_no_flag() {
        assert!(command().try_get_matches_from(["bhav"]).is_err());
        assert!(command().try_get_matches_from(["bhav", "config"]).is_err());
        assert!(
            command()
                .try_get_matches_from(["bhav", "serve", "--jwt-secret", "x"])
                .is_err()
        );
    }
}
