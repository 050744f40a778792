//! `bhav user list|add|passwd|logout|disable|enable|delete`: management of accounts by the
//! operator.
//!
//! Main thread. Works on the database, whether or not the service runs. If it runs, the command
//! waits until the service refuses the tokens that the change revoked.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use jiff::Timestamp;
use secrecy::SecretString;
use zeroize::Zeroizing;

use crate::auth::{
    Email, NAME_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, hash_here, refuse_weak,
};
use crate::base::{Clock, clock, visible};
use crate::cli::operator::{
    Done, expect_consent, flag, group, in_words, plain, print, refuse, say, settings, with_service,
};
use crate::cli::secret_input::{ask, from_file, is_terminal};
use crate::config::Config;
use crate::config::composed::clock_of;
use crate::ops::{Exit, exit, panic, state_lock};
use crate::rt::moving::Parker;
use crate::store::{AccountId, MaintenanceError, NewUser, UserChange, UserDirectory, UserSummary};

/// Rows of a table read at a time.
pub(super) const PAGE: usize = 500;
/// Longest wait for the running service: three times its interval of checks.
const NOTICE_MAX_MS: u64 = 15_000;
/// Interval at which the command checks whether the service has applied the change.
const NOTICE_POLL_MS: u64 = 100;

const NOTES: &str = "\
Works while the service runs; the service applies a change within 5 seconds, and the command waits
for it. Nodes that share a database apply it within a second, and the command does not wait. A
disabled user cannot log in, and their tokens are refused, even after the account is enabled again:
they have to log in anew.";

const PASSWORD_NOTES: &str = "\
Works whether or not the service runs. The password is asked for on the terminal, twice and without
showing it, or read from a file of one line (-: standard input). It is never an argument, which
other users of the machine could see. 8 to 256 characters, none of the most common passwords.";

/// The definition of the command.
pub(super) fn command() -> Command {
    let one = |name: &'static str, about: &'static str| {
        let user = Arg::new("user").value_name("ID|EMAIL").required(true);
        with_service(
            Command::new(name)
                .about(about)
                .arg(user.help("Whose account")),
        )
        .after_help(exit::HELP)
    };
    group("user", "List, create, disable and erase accounts, and set passwords")
        .after_help(NOTES)
        .subcommand(with_service(
            Command::new("list").about("List all users: id, e-mail, times, stored data"),
        ))
        .subcommand(add_command())
        .subcommand(
            one("passwd", "Set a new password; ends all tokens of the user")
                .arg(password_file())
                .arg(flag("keys", "Revoke the user's API keys too"))
                .after_help(format!("{PASSWORD_NOTES}\n\n{}", exit::HELP)),
        )
        .subcommand(one("logout", "End all tokens of a user, who can log in again"))
        .subcommand(one("disable", "Refuse logins and all existing tokens of a user"))
        .subcommand(one("enable", "Allow a disabled user to log in again"))
        .subcommand(
            one("delete", "Erase an account and everything stored for it")
                .arg(flag("yes", "Do not ask")),
        )
}

fn add_command() -> Command {
    let email = Arg::new("email").value_name("EMAIL").required(true);
    let name = Arg::new("name").long("name").value_name("NAME");
    with_service(
        Command::new("add")
            .about("Create an account, even if registration is closed")
            .arg(email.help("Its e-mail address"))
            .arg(name.help("The user's name"))
            .arg(password_file()),
    )
    .after_help(format!("{PASSWORD_NOTES}\n\n{}", exit::HELP))
}

fn password_file() -> Arg {
    let file = Arg::new("password-file")
        .long("password-file")
        .value_name("FILE");
    file.value_parser(value_parser!(PathBuf))
        .help("Read the password from this file instead of asking; - is standard input")
}

/// Runs one of the subcommands.
pub(super) fn run(matches: &ArgMatches) -> Done {
    with_directory(matches, |directory, name, matches, config| match name {
        "list" => list(directory),
        "add" => add(directory, matches, config),
        "passwd" => passwd(directory, matches, config),
        name => change(directory, name, matches, config),
    })
}

/// Opens the database for a subcommand, and hands on its name, arguments and settings.
pub(super) fn with_directory(
    matches: &ArgMatches,
    work: impl FnOnce(&mut UserDirectory, &str, &ArgMatches, &Config) -> Done,
) -> Done {
    let (name, matches) = matches.subcommand().expect("clap demands one of them");
    let config = settings(matches)?;
    let mut directory =
        UserDirectory::open(&config.state_dir, &config.store).map_err(|error| failed(&error))?;
    work(&mut directory, name, matches, &config)
}

/// Prints why the database could not be used.
pub(super) fn failed(error: &MaintenanceError) -> ExitCode {
    let exit = match error {
        MaintenanceError::Foreign(_)
        | MaintenanceError::Newer { .. }
        | MaintenanceError::Older { .. }
        | MaintenanceError::Open(_) => Exit::Usage,
        _ => Exit::StateDir,
    };
    refuse(&in_words(error), exit)
}

fn list(directory: &UserDirectory) -> Done {
    let heading = format!(
        "{:>8}  {:<17}  {:<17}  {:>8}  {:>11}  {:<8}  e-mail\n",
        "id", "created (IST)", "last sync", "rows", "journal KiB", "state"
    );
    let page = |last: Option<&UserSummary>| {
        directory.page(last.map_or(AccountId(0), |last| last.id), PAGE)
    };
    print_table(heading, page, line)
}

/// Prints a table. `page` reads the next [`PAGE`] rows after the last one, and `line` appends one.
pub(super) fn print_table<T>(
    heading: String,
    page: impl Fn(Option<&T>) -> Result<Vec<T>, MaintenanceError>,
    line: impl Fn(&mut String, &T),
) -> Done {
    let mut text = heading;
    let mut last = None;
    loop {
        let mut rows = page(last.as_ref()).map_err(|error| failed(&error))?;
        rows.iter().for_each(|row| line(&mut text, row));
        let done = print(&text);
        text.clear();
        if rows.len() < PAGE {
            return Ok(done);
        }
        last = rows.pop();
    }
}

fn line(text: &mut String, user: &UserSummary) {
    let state = if user.disabled_ms.is_some() {
        "disabled"
    } else {
        "open"
    };
    let synced = user.synced_ms.map_or_else(|| "never".to_owned(), minute);
    let _ = writeln!(
        text,
        "{:>8}  {:<17}  {synced:<17}  {:>8}  {:>11}  {state:<8}  {}",
        user.id.0,
        minute(user.created_ms),
        user.rows,
        // Rounded up, so that a short note shows as 1.
        (user.journal_bytes + 1_023) / 1_024,
        plain(&user.email)
    );
}

pub(super) fn minute(ms: i64) -> String {
    let at = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    clock::zoned(at).strftime("%Y-%m-%d %H:%M").to_string()
}

fn add(directory: &mut UserDirectory, matches: &ArgMatches, config: &Config) -> Done {
    let given = matches
        .get_one::<String>("email")
        .map_or("", String::as_str);
    let email = match Email::parse(given) {
        Ok(email) => email,
        Err(why) => return Ok(refuse(&why.to_string(), Exit::Usage)),
    };
    let name = matches
        .get_one::<String>("name")
        .map(|given| visible::name(given));
    let name = name.filter(|name| !name.is_empty());
    let is_long = |name: &String| name.chars().count() > NAME_CHARS_MAX;
    if name.as_ref().is_some_and(is_long) {
        let why = format!("--name takes at most {NAME_CHARS_MAX} characters");
        return Ok(refuse(&why, Exit::Usage));
    }
    if let Some(unseen) = name.as_deref().and_then(visible::unseen_in_name) {
        return Ok(refuse(&format!("--name: {unseen}; a name has none of these"), Exit::Usage));
    }
    let Email {
        normal: email,
        spellings,
    } = email;
    let taken =
        format!("there is this account already; bhav user passwd {email} sets its password");
    // Saves asking for a password; the insert below decides whether the address is taken.
    if directory
        .find_spelled(&spellings)
        .map_err(|error| failed(&error))?
        .is_some()
    {
        return Ok(refuse(&taken, Exit::Usage));
    }
    let password_hash = new_hash(matches, config)?;
    let new = NewUser {
        email,
        name,
        password_hash,
        created_ms: clock_of(config).now_ms(),
    };
    match directory.add(&new).map_err(|error| failed(&error))? {
        Some(user) => {
            let id = user.id.0;
            let email = plain(&user.email);
            Ok(print(&format!("user {id} ({email}) is added\n")))
        }
        None => Ok(refuse(&taken, Exit::Usage)),
    }
}

fn passwd(directory: &mut UserDirectory, matches: &ArgMatches, config: &Config) -> Done {
    let user = find_user(directory, matches)?;
    let hash = new_hash(matches, config)?;
    let keys = matches.get_flag("keys");
    let set = directory
        .set_password(user.id, &hash, keys)
        .map_err(|error| failed(&error))?;
    let number = set.ok_or_else(no_such_user)?;
    let closed = match user.disabled_ms {
        Some(_) => "; the account stays disabled",
        None => "",
    };
    let code = print(&format!("{} has a new password{closed}\n", describe(&user)));
    let what = if keys {
        "older tokens and API keys"
    } else {
        "older tokens"
    };
    await_notice(directory, number, config, code, &format!("their {what}"))
}

/// Asks for the new password or reads it from a file, and hashes it.
///
/// # Errors
/// The exit code; the reason has been printed.
fn new_hash(matches: &ArgMatches, config: &Config) -> Result<String, ExitCode> {
    if let Err(error) = panic::close_memory() {
        say(&format!("bhav: warning: core files cannot be switched off: {error}\n"));
    }
    let password = match matches.get_one::<PathBuf>("password-file") {
        Some(file) => from_file(file),
        None if is_terminal() => asked_twice(),
        None => {
            let why = "nobody can be asked here: run it on a terminal, or give --password-file";
            return Err(refuse(why, Exit::Usage));
        }
    };
    let password = password.and_then(|text| {
        usable(&text)?;
        Ok(SecretString::from(text.as_str()))
    });
    let password = password.map_err(|why| refuse(&format!("the password: {why}"), Exit::Data))?;
    refuse_weak(&password).map_err(|error| refuse(&error.to_string(), Exit::Data))?;
    hash_here(&password, &config.auth).map_err(|error| refuse(&error.to_string(), Exit::Internal))
}

fn asked_twice() -> Result<Zeroizing<String>, String> {
    let first = ask(|| say("New password (not shown): "))?;
    let second = ask(|| say("The same again: "))?;
    if *first == *second {
        Ok(first)
    } else {
        Err("the two differ".to_owned())
    }
}

/// Checks the password's length, with the same limits as registration.
fn usable(password: &str) -> Result<(), String> {
    match password.chars().count() {
        0 => Err("it is empty".to_owned()),
        1..PASSWORD_CHARS_MIN => Err(format!("at least {PASSWORD_CHARS_MIN} characters")),
        PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX => Ok(()),
        _ => Err(format!("at most {PASSWORD_CHARS_MAX} characters")),
    }
}

/// Finds the account that the command line names.
pub(super) fn find_user(
    directory: &UserDirectory,
    matches: &ArgMatches,
) -> Result<UserSummary, ExitCode> {
    let given = matches.get_one::<String>("user").map_or("", String::as_str);
    let found = directory.find_spelled(&Email::given(given).spellings);
    found
        .map_err(|error| failed(&error))?
        .ok_or_else(no_such_user)
}

fn no_such_user() -> ExitCode {
    refuse("there is no such user; bhav user list shows all", Exit::Usage)
}

fn describe(user: &UserSummary) -> String {
    format!("user {} ({})", user.id.0, plain(&user.email))
}

fn change(
    directory: &mut UserDirectory,
    name: &str,
    matches: &ArgMatches,
    config: &Config,
) -> Done {
    let user = find_user(directory, matches)?;
    let who = describe(&user);
    let now_ms = clock_of(config).now_ms();
    let (change, done) = match name {
        "disable" => (UserChange::Disable { now_ms }, "is disabled"),
        "enable" => (UserChange::Enable, "is enabled"),
        "logout" => (UserChange::EndTokens, "is logged out everywhere"),
        _ => {
            expect_consent(matches, &format!("Erase {who} and everything stored for them?"))?;
            (UserChange::Delete, "is erased with everything stored for them")
        }
    };
    let Some(number) = directory
        .change(user.id, change)
        .map_err(|error| failed(&error))?
    else {
        return Ok(print(&format!("{who} {done} already\n")));
    };
    let code = print(&format!("{who} {done}\n"));
    match change {
        // Enabling revokes nothing, so there is nothing to wait for.
        UserChange::Enable => Ok(code),
        _ => await_notice(directory, number, config, code, "their tokens"),
    }
}

/// Waits until a running service has applied the change with this number. Returns `code`, the exit
/// code of the change itself, if no service runs.
pub(super) fn await_notice(
    directory: &UserDirectory,
    number: i64,
    config: &Config,
    code: ExitCode,
    what: &str,
) -> Done {
    if config.store.url.is_none() && state_lock::in_use(&config.state_dir) != Some(true) {
        return Ok(code);
    }
    let waited = Clock::system();
    let parker = Parker::current();
    while let Some(noticed) = directory.noticed(number).map_err(|error| failed(&error))? {
        if noticed {
            return Ok(print(&format!("the running service refuses {what}\n")));
        }
        if waited.monotonic_ms() > NOTICE_MAX_MS {
            let why = format!("the running service has not taken it up: restart it to end {what}");
            return Ok(refuse(&why, Exit::Unavailable));
        }
        parker.park(NOTICE_POLL_MS);
    }
    let when = "within a second; a node that cannot read the database, after 30";
    Ok(print(&format!("every running node refuses {what} {when}\n")))
}
