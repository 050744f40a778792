//! `bhav healthcheck`: one probe, one line, exit code 0 or 1. For supervisors that run a command,
//! as container engines do, in an image that holds no other program.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use crate::admin::listener::AdminListen;
use crate::base::Words;
use crate::cli::client::{Answer, Target};
use crate::cli::operator::{flag, plain, print, refuse, settings, with_env_file};
use crate::cli::status::command::{TIMEOUT, document, is_of_this_service};
use crate::config::Config;
use crate::config::cli::{Scope, with_flags};
use crate::ops::{Exit, exit};
use crate::views::states::ServiceState;

/// The definition of the command `healthcheck`.
pub(crate) fn healthcheck_command() -> Command {
    let ready = flag("ready", "Ask whether it can serve (/readyz) and not only makes progress");
    with_env_file(with_flags(
        Command::new("healthcheck")
            .about("Ask the running service whether it is alive; 0 if it is, 1 if not")
            .arg(ready)
            .after_help(exit::HELP),
        Scope::Probe,
    ))
}

/// Asks the service and prints one line.
pub(crate) fn healthcheck(matches: &ArgMatches) -> ExitCode {
    let Ok(config) = settings(matches) else {
        return Exit::Degraded.into();
    };
    match probed(matches.get_flag("ready"), &config) {
        Ok(good) => print(&format!("{}\n", plain(&good))),
        Err(why) => refuse(&plain(&why), Exit::Degraded),
    }
}

/// The result of a probe, as one line. Asks the operator's listener. Where that is off, or its
/// default address is another's, the service's own listener is asked.
///
/// # Errors
/// Why the probe failed, as one line.
fn probed(ready: bool, config: &Config) -> Result<String, String> {
    let Some(listen) = config.admin.listen.address() else {
        return asked_itself(ready, config);
    };
    let (path, good) = if ready {
        ("/readyz", "ready")
    } else {
        ("/livez", "alive")
    };
    let target = Target::of(None, listen).map_err(|_| {
        format!("BHAV_ADMIN_LISTEN: {listen} is no address at which a service can be asked")
    })?;
    let asked = format!("{}{path}", target.text());
    let answer = target.get(path, TIMEOUT);
    let is_own = |answer: &Answer| is_of_this_service(answer, config);
    let is_answered = answer.as_ref().is_ok_and(is_own);
    if config.admin.listen == AdminListen::Default && !is_answered {
        return asked_itself(ready, config);
    }
    let answer = answer.map_err(|error| format!("{asked}: {error}"))?;
    let json: Value = document(&answer).unwrap_or_default();
    let parts = json["missing"]
        .as_array()
        .into_iter()
        .flat_map(|parts| parts.iter());
    let missing: Vec<&str> = parts.filter_map(|part| part.as_str()).collect();
    let without = match missing.as_slice() {
        [] => String::new(),
        missing => format!("; without {}", missing.join(", ")),
    };
    let state = json["status"].as_str().unwrap_or("no answer of bhav");
    match answer.status {
        200 => Ok(format!("{good}: {state}{without}")),
        status => Err(format!("not {good}: {state}{without} ({status} of {asked})")),
    }
}

/// Same as [`probed`], by the listener of clients. Its health document is made each second, so
/// whatever it says, the service makes progress; it is ready if it also has a snapshot to serve.
fn asked_itself(ready: bool, config: &Config) -> Result<String, String> {
    let target = Target::of(None, &config.http.listen)
        .map_err(|why| format!("BHAV_ADMIN_LISTEN has nobody to ask, and BHAV_LISTEN: {why}"))?;
    let asked = format!("{}/api/health", target.text());
    let answer = target
        .get("/api/health", TIMEOUT)
        .map_err(|error| format!("{asked}: {error}"))?;
    let json: Value = document(&answer).unwrap_or_default();
    let is_starting = answer.status == 503 && json["code"] == "starting";
    let state = json["status"].as_str().and_then(ServiceState::parse);
    let state = match state {
        Some(state) => state.as_str(),
        None if is_starting => "starting",
        None => return Err(format!("not alive: no answer of bhav ({} of {asked})", answer.status)),
    };
    if !ready {
        return Ok(format!("alive: {state}"));
    }
    let snapshot = target.get("/api/index/snapshot", TIMEOUT);
    let snapshot = snapshot.map_err(|error| format!("{}: {error}", target.text()))?;
    match (snapshot.status, answer.status) {
        (200, 200) => Ok(format!("ready: {state}")),
        (200, status) => Err(format!("not ready: {state} ({status} of {asked})")),
        (status, _) => Err(format!(
            "not ready: {state}; without snapshot ({status} of {}/api/index/snapshot)",
            target.text()
        )),
    }
}
