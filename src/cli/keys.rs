//! `bhav key list|revoke`: API keys of all accounts, for the operator. No key is ever printed; its
//! id, which is no secret, names it.
//!
//! Main thread. Works on the database, whether or not the service runs.

use std::fmt::Write as _;

use clap::{Arg, ArgMatches, Command};

use crate::auth::number;
use crate::cli::operator::{Done, group, plain, print, refuse, with_service};
use crate::cli::users::{
    PAGE, await_notice, failed, find_user, minute, print_table, with_directory,
};
use crate::config::Config;
use crate::config::composed::clock_of;
use crate::ops::{Exit, exit};
use crate::store::{ListedKey, UserDirectory};

const NOTES: &str = "\
Works while the service runs; the service refuses a revoked key within 5 seconds, and the command
waits for it. Nodes that share a database refuse it within a second, and the command does not wait.
Users make and revoke keys of their own on the account page or by /api/keys.";

/// The definition of the command.
pub(super) fn command() -> Command {
    let user = Arg::new("user")
        .value_name("ID|EMAIL")
        .help("Whose keys; all without it");
    let id = Arg::new("id").value_name("ID").required(true);
    let id = id.help("The key's id, as listed; a whole key is taken too");
    let list = Command::new("list").about("List API keys: id, owner, scopes, times, state");
    let revoke = Command::new("revoke").about("Revoke an API key for good");
    group("key", "List and revoke API keys")
        .after_help(NOTES)
        .subcommand(with_service(list.arg(user)).after_help(exit::HELP))
        .subcommand(with_service(revoke.arg(id)).after_help(exit::HELP))
}

/// Runs one of the subcommands.
pub(super) fn run(matches: &ArgMatches) -> Done {
    with_directory(matches, |directory, name, matches, config| match name {
        "list" => list(directory, matches, config),
        _ => revoke(directory, matches, config),
    })
}

fn list(directory: &UserDirectory, matches: &ArgMatches, config: &Config) -> Done {
    let user = match matches.contains_id("user") {
        false => None,
        true => Some(find_user(directory, matches)?.id),
    };
    let now_ms = clock_of(config).now_ms();
    let heading = format!(
        "{:<11}  {:<16}  {:<16}  {:<18}  {:<16}  {:<8}  owner, name, scopes\n",
        "id", "created (IST)", "last used", "from", "ends", "state"
    );
    let page = |last: Option<&ListedKey>| {
        directory.keys(last.map_or("", |last| last.key.id.as_str()), PAGE)
    };
    print_table(heading, page, |text, listed| {
        if user.is_none_or(|user| listed.key.user == user) {
            line(text, listed, now_ms);
        }
    })
}

fn line(text: &mut String, listed: &ListedKey, now_ms: i64) {
    let key = &listed.key;
    let state = match key.expires_ms {
        _ if !listed.is_current => "old",
        Some(expires_ms) if expires_ms <= now_ms => "expired",
        _ if listed.is_disabled => "disabled",
        _ => "good",
    };
    let or_never = |ms: Option<i64>| ms.map_or_else(|| "never".to_owned(), minute);
    let _ = writeln!(
        text,
        "{:<11}  {:<16}  {:<16}  {:<18}  {:<16}  {state:<8}  {}, {}, {}",
        key.id,
        minute(key.created_ms),
        or_never(key.used_ms),
        key.used_from.as_deref().unwrap_or("-"),
        or_never(key.expires_ms),
        plain(&listed.email),
        plain(&key.name),
        key.scopes.spelled()
    );
}

fn revoke(directory: &mut UserDirectory, matches: &ArgMatches, config: &Config) -> Done {
    let given = matches.get_one::<String>("id").map_or("", String::as_str);
    let id = given
        .strip_prefix("bhav_")
        .unwrap_or(given)
        .split('_')
        .next()
        .unwrap_or_default();
    if number(id.as_bytes()).is_none() {
        let why = "this is no id of an API key: 11 letters and digits, as bhav key list shows them";
        return Ok(refuse(why, Exit::Usage));
    }
    match directory.revoke_key(id).map_err(|error| failed(&error))? {
        Some(number) => {
            let code = print(&format!("API key {id} is revoked\n"));
            await_notice(directory, number, config, code, "it")
        }
        None => Ok(refuse("there is no such API key; bhav key list shows all", Exit::Usage)),
    }
}
