//! `bhav user list|disable|enable|delete`: accounts in the hands of the operator.
//!
//! Main thread; works on the database, beside a running service or without one. A running service
//! is waited for until it refuses what it has to refuse.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use jiff::Timestamp;

use super::operator::{in_words, plain, print, refuse, say, settings, with_service};
use crate::auth::normalised;
use crate::base::{Clock, ist};
use crate::config::Config;
use crate::ops::{Exit, exit, state_lock};
use crate::rt::edge::Parker;
use crate::store::people::{Change, People, Person};
use crate::store::upkeep::UpkeepError;
use crate::store::{AccountId, FILE_NAME};

/// Users read at a time.
const PAGE: usize = 500;
/// Three times what the service takes between two looks.
const NOTICE_MAX_MS: u64 = 15_000;
const LOOK_EVERY_MS: u64 = 100;

const NOTES: &str = "\
Works while the service runs, which takes a change up within 5 seconds; the command waits for it. A
disabled user cannot log in, and no token they have is accepted, also after they are enabled again:
they log in anew.";

/// Its part of the command line.
pub fn command() -> Command {
    let one = |name: &'static str, about: &'static str| {
        let user = Arg::new("user").value_name("ID|EMAIL").required(true);
        with_service(Command::new(name).about(about).arg(user.help("Whose account")))
            .after_help(exit::HELP)
    };
    let yes = Arg::new("yes").long("yes").action(ArgAction::SetTrue).help("Do not ask");
    Command::new("user")
        .about("Look at accounts and close them")
        .after_help(NOTES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(with_service(
            Command::new("list").about("All users: id, e-mail, times, what is stored"),
        ))
        .subcommand(one("disable", "No login any more, and no token there is"))
        .subcommand(one("enable", "Logins again"))
        .subcommand(one("delete", "Erase an account and everything stored for it").arg(yes))
}

/// Any of the four.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let Some((name, matches)) = matches.subcommand() else {
        unreachable!("clap demands one of the four");
    };
    let config = match settings(matches) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let opened = People::open(&config.state_dir.join(FILE_NAME));
    let done = opened.and_then(|people| match name {
        "list" => list(&people),
        name => change(people, name, matches, &config),
    });
    done.unwrap_or_else(|error| {
        let exit = match &error {
            UpkeepError::Foreign(_) | UpkeepError::Newer { .. } | UpkeepError::Older { .. } => {
                Exit::Usage
            }
            _ => Exit::StateDir,
        };
        refuse(&in_words(&error), exit)
    })
}

fn list(people: &People) -> Result<ExitCode, UpkeepError> {
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

fn line(text: &mut String, person: &Person) {
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

fn change(
    mut people: People,
    name: &str,
    matches: &ArgMatches,
    config: &Config,
) -> Result<ExitCode, UpkeepError> {
    let given = matches.get_one::<String>("user").map_or("", String::as_str);
    let email = normalised(given).unwrap_or_else(|| given.to_owned());
    let Some(person) = people.find(&email)? else {
        return Ok(refuse("there is no such user; bhav user list shows all", Exit::Usage));
    };
    let who = format!("user {} ({})", person.id.0, plain(&person.email));
    let clock = config.now.map_or_else(Clock::system, Clock::starting_at);
    let now_ms = clock.now_ms();
    let (change, done) = match name {
        "disable" => (Change::Disable { now_ms }, "is disabled"),
        "enable" => (Change::Enable, "is enabled"),
        _ => {
            if !matches.get_flag("yes") && !confirmed(&who) {
                let why = "nothing was changed; --yes does it without asking";
                return Ok(refuse(why, Exit::Usage));
            }
            (Change::Delete, "is erased with everything stored for them")
        }
    };
    let Some(number) = people.change(person.id, change)? else {
        return Ok(print(&format!("{who} {done} already\n")));
    };
    let code = print(&format!("{who} {done}\n"));
    // Nothing that a service would have to refuse.
    if change == Change::Enable || state_lock::in_use(&config.state_dir) != Some(true) {
        return Ok(code);
    }
    let (waited, parker) = (Clock::system(), Parker::current());
    while !people.noticed(number)? {
        if waited.monotonic_ms() > NOTICE_MAX_MS {
            let why = "the running service has not taken it up: restart it to end their tokens";
            return Ok(refuse(why, Exit::Unavailable));
        }
        parker.park(LOOK_EVERY_MS);
    }
    Ok(print("the running service refuses their tokens\n"))
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
