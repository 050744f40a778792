//! `bhav user list|add|passwd|disable|enable|delete`: accounts in the hands of the operator.
//!
//! Main thread; works on the database, beside a running service or without one. A running service
//! is waited for until it refuses what it has to refuse.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use jiff::Timestamp;
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::operator::{in_words, plain, print, refuse, say, settings, with_service};
use super::secret_input;
use crate::auth::{
    NAME_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, hash_here, normalised, refuse_weak,
};
use crate::base::{Clock, ist};
use crate::config::Config;
use crate::ops::{Exit, core_dumps, exit, state_lock};
use crate::rt::coroutines::Parker;
use crate::store::{
    self, AccountId, MaintenanceError, NewUser, UserChange, UserDirectory, UserSummary,
};

/// Users read at a time.
const PAGE: usize = 500;
/// Three times what the service takes between two looks.
const NOTICE_MAX_MS: u64 = 15_000;
const LOOK_EVERY_MS: u64 = 100;

const NOTES: &str = "\
Works while the service runs, which takes a change up within 5 seconds; the command waits for it. A
disabled user cannot log in, and no token they have is accepted, also after they are enabled again:
they log in anew.";

const PASSWORD_NOTES: &str = "\
Works while the service runs or not. The password is asked for on the terminal, twice and without
showing it, or read from a file of one line (-: standard input); it is never an argument, which
other users of the machine could see. 8 to 256 characters, and none of the most common passwords.";

/// Its part of the command line.
pub fn command() -> Command {
    let one = |name: &'static str, about: &'static str| {
        let user = Arg::new("user").value_name("ID|EMAIL").required(true);
        with_service(Command::new(name).about(about).arg(user.help("Whose account")))
            .after_help(exit::HELP)
    };
    let yes = Arg::new("yes").long("yes").action(ArgAction::SetTrue).help("Do not ask");
    Command::new("user")
        .about("Look at accounts, make them, set passwords, close them")
        .after_help(NOTES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(with_service(
            Command::new("list").about("All users: id, e-mail, times, what is stored"),
        ))
        .subcommand(add_command())
        .subcommand(
            one("passwd", "Set a new password; every token that the user has ends")
                .arg(password_file())
                .after_help(format!("{PASSWORD_NOTES}\n\n{}", exit::HELP)),
        )
        .subcommand(one("disable", "No login any more, and no token there is"))
        .subcommand(one("enable", "Logins again"))
        .subcommand(one("delete", "Erase an account and everything stored for it").arg(yes))
}

fn add_command() -> Command {
    let email = Arg::new("email").value_name("EMAIL").required(true);
    let name = Arg::new("name").long("name").value_name("NAME");
    with_service(
        Command::new("add")
            .about("Make an account, also where registration is closed")
            .arg(email.help("Its e-mail address"))
            .arg(name.help("The user's name"))
            .arg(password_file()),
    )
    .after_help(format!("{PASSWORD_NOTES}\n\n{}", exit::HELP))
}

fn password_file() -> Arg {
    let file = Arg::new("password-file").long("password-file").value_name("FILE");
    file.value_parser(value_parser!(PathBuf))
        .help("Read the password from this file instead of asking; - is standard input")
}

/// Any of them.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let Some((name, matches)) = matches.subcommand() else {
        unreachable!("clap demands one of them");
    };
    let config = match settings(matches) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let opened = store::open_users(&config.state_dir);
    let done = opened.and_then(|mut people| match name {
        "list" => list(&*people),
        "add" => add(&mut *people, matches, &config),
        "passwd" => passwd(&mut *people, matches, &config),
        name => change(&mut *people, name, matches, &config),
    });
    done.unwrap_or_else(|error| {
        let exit = match &error {
            MaintenanceError::Foreign(_)
            | MaintenanceError::Newer { .. }
            | MaintenanceError::Older { .. } => Exit::Usage,
            _ => Exit::StateDir,
        };
        refuse(&in_words(&error), exit)
    })
}

fn list(people: &dyn UserDirectory) -> Result<ExitCode, MaintenanceError> {
    let mut text = format!(
        "{:>8}  {:<17}  {:<17}  {:>8}  {:>11}  {:<8}  e-mail\n",
        "id", "created (IST)", "last sync", "rows", "journal KiB", "state"
    );
    let mut after = AccountId(0);
    loop {
        let page = people.page(after, PAGE)?;
        for person in &page {
            line(&mut text, person);
        }
        let done = print(&text);
        text.clear();
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.id,
            _ => return Ok(done),
        }
    }
}

fn line(text: &mut String, person: &UserSummary) {
    let state = if person.disabled_ms.is_some() { "disabled" } else { "open" };
    let synced = person.synced_ms.map_or_else(|| "never".to_owned(), minute);
    let _ = writeln!(
        text,
        "{:>8}  {:<17}  {synced:<17}  {:>8}  {:>11}  {state:<8}  {}",
        person.id.0,
        minute(person.created_ms),
        person.rows,
        // A short note is not nothing.
        (person.journal_bytes + 1_023) / 1_024,
        plain(&person.email)
    );
}

fn minute(ms: i64) -> String {
    let at = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    ist::zoned(at).strftime("%Y-%m-%d %H:%M").to_string()
}

fn add(
    people: &mut dyn UserDirectory,
    matches: &ArgMatches,
    config: &Config,
) -> Result<ExitCode, MaintenanceError> {
    let given = matches.get_one::<String>("email").map_or("", String::as_str);
    let Some(email) = normalised(given) else {
        return Ok(refuse("this is not an e-mail address", Exit::Usage));
    };
    let name = matches.get_one::<String>("name").map(|name| name.trim().to_owned());
    let name = name.filter(|name| !name.is_empty());
    let crooked =
        |name: &String| name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control);
    if name.as_ref().is_some_and(crooked) {
        let why =
            format!("--name takes at most {NAME_CHARS_MAX} characters, no control characters");
        return Ok(refuse(&why, Exit::Usage));
    }
    let taken =
        format!("there is this account already; bhav user passwd {email} sets its password");
    // Before anybody is asked anything; the insert decides.
    if people.find(&email)?.is_some() {
        return Ok(refuse(&taken, Exit::Usage));
    }
    let password_hash = match new_hash(matches, config) {
        Ok(hash) => hash,
        Err(code) => return Ok(code),
    };
    let created_ms = clock(config).now_ms();
    match people.add(NewUser { email, name, password_hash, created_ms })? {
        Some(user) => {
            let (id, email) = (user.id.0, plain(&user.email));
            Ok(print(&format!("user {id} ({email}) is added\n")))
        }
        None => Ok(refuse(&taken, Exit::Usage)),
    }
}

fn passwd(
    people: &mut dyn UserDirectory,
    matches: &ArgMatches,
    config: &Config,
) -> Result<ExitCode, MaintenanceError> {
    let Some(person) = meant(&*people, matches)? else { return Ok(nobody()) };
    let hash = match new_hash(matches, config) {
        Ok(hash) => hash,
        Err(code) => return Ok(code),
    };
    let Some(number) = people.set_password(person.id, &hash)? else { return Ok(nobody()) };
    let closed = match person.disabled_ms {
        Some(_) => "; the account stays disabled",
        None => "",
    };
    let code = print(&format!("{} has a new password{closed}\n", called(&person)));
    await_notice(&*people, number, config, code, "older tokens")
}

/// The hash of the password that is asked for or read from a file.
///
/// # Errors
/// The exit code; the reason has been told.
fn new_hash(matches: &ArgMatches, config: &Config) -> Result<String, ExitCode> {
    if let Err(error) = core_dumps::close_memory() {
        say(&format!("bhav: warning: core files cannot be switched off: {error}\n"));
    }
    let password = match matches.get_one::<PathBuf>("password-file") {
        Some(file) => secret_input::from_file(file),
        None if secret_input::is_terminal() => asked_twice(),
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
    let first = secret_input::ask(|| say("New password (not shown): "))?;
    let second = secret_input::ask(|| say("The same again: "))?;
    if *first == *second { Ok(first) } else { Err("the two differ".to_owned()) }
}

/// The limits that registering has.
fn usable(password: &str) -> Result<(), String> {
    match password.chars().count() {
        0 => Err("it is empty".to_owned()),
        1..PASSWORD_CHARS_MIN => Err(format!("at least {PASSWORD_CHARS_MIN} characters")),
        PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX => Ok(()),
        _ => Err(format!("at most {PASSWORD_CHARS_MAX} characters")),
    }
}

/// Whose account the command line names.
fn meant(
    people: &dyn UserDirectory,
    matches: &ArgMatches,
) -> Result<Option<UserSummary>, MaintenanceError> {
    let given = matches.get_one::<String>("user").map_or("", String::as_str);
    people.find(&normalised(given).unwrap_or_else(|| given.to_owned()))
}

fn nobody() -> ExitCode {
    refuse("there is no such user; bhav user list shows all", Exit::Usage)
}

fn called(person: &UserSummary) -> String {
    format!("user {} ({})", person.id.0, plain(&person.email))
}

fn clock(config: &Config) -> Clock {
    config.now.map_or_else(Clock::system, Clock::starting_at)
}

fn change(
    people: &mut dyn UserDirectory,
    name: &str,
    matches: &ArgMatches,
    config: &Config,
) -> Result<ExitCode, MaintenanceError> {
    let Some(person) = meant(&*people, matches)? else { return Ok(nobody()) };
    let who = called(&person);
    let now_ms = clock(config).now_ms();
    let (change, done) = match name {
        "disable" => (UserChange::Disable { now_ms }, "is disabled"),
        "enable" => (UserChange::Enable, "is enabled"),
        _ => {
            if !matches.get_flag("yes") && !confirmed(&who) {
                let why = "nothing was changed; --yes does it without asking";
                return Ok(refuse(why, Exit::Usage));
            }
            (UserChange::Delete, "is erased with everything stored for them")
        }
    };
    let Some(number) = people.change(person.id, change)? else {
        return Ok(print(&format!("{who} {done} already\n")));
    };
    let code = print(&format!("{who} {done}\n"));
    match change {
        // Nothing that a service would have to refuse.
        UserChange::Enable => Ok(code),
        _ => await_notice(&*people, number, config, code, "tokens"),
    }
}

/// Waits until a running service refuses what the change with this number ended; `code` is that of
/// the change itself.
fn await_notice(
    people: &dyn UserDirectory,
    number: i64,
    config: &Config,
    code: ExitCode,
    what: &str,
) -> Result<ExitCode, MaintenanceError> {
    if state_lock::in_use(&config.state_dir) != Some(true) {
        return Ok(code);
    }
    let (waited, parker) = (Clock::system(), Parker::current());
    while !people.noticed(number)? {
        if waited.monotonic_ms() > NOTICE_MAX_MS {
            let why =
                format!("the running service has not taken it up: restart it to end their {what}");
            return Ok(refuse(&why, Exit::Unavailable));
        }
        parker.park(LOOK_EVERY_MS);
    }
    Ok(print(&format!("the running service refuses their {what}\n")))
}

/// Asked only where somebody can answer.
fn confirmed(who: &str) -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    say(&format!("Erase {who} and everything stored for them? Type yes: "));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).is_ok() && line.trim() == "yes"
}
