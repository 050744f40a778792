//! The command `status`: queries the service and prints the result.

use std::io;
use std::io::IsTerminal;
use std::time::Duration;

use clap::{ArgMatches, Command};
use serde::de::DeserializeOwned;
use sonic_rs::{JsonValueTrait, Value};

use crate::admin::listener::AdminListen;
use crate::base::{Broker, ByBroker, Clock, Words};
use crate::cli::client::{Answer, Target};
use crate::cli::operator::{Done, flag, print, refuse, service, with_running_service};
use crate::cli::status::facts::Facts;
use crate::cli::status::report::ServiceReport;
use crate::cli::status::screen::{Colours, screen};
use crate::config::Config;
use crate::market::MarketCalendar;
use crate::ops::{Exit, exit, state_lock};
use crate::status::diagnoses;
use crate::status::diagnoses::Trouble;
use crate::views::states::ServiceState;

/// Timeout of each request. The requested routes are answered from memory.
pub(super) const TIMEOUT: Duration = Duration::from_millis(3_000);

/// Timeout of the request to the operator's listener, which is made only if the service does not
/// answer. The two further requests are skipped then, so the command takes no longer.
const LIVEZ_TIMEOUT: Duration = Duration::from_millis(1_000);

/// The definition of the command.
pub(crate) fn command() -> Command {
    with_running_service(
        Command::new("status")
            .about("Show the state of the running service, what is wrong, and what to do")
            .arg(flag("json", "Write one JSON document"))
            .after_help(format!(
                "0 is ok, 1 degraded (something needs you), 2 down or not reachable.\n\n{}",
                exit::HELP
            )),
    )
}

/// Queries the service and prints the result; the exit code is the state.
pub(crate) fn run(matches: &ArgMatches) -> Done {
    let (config, target) = service(matches)?;
    let calendar = MarketCalendar::load(config.market.calendar_file.as_deref());
    let calendar = calendar.map_err(|error| refuse(&error.to_string(), Exit::Usage))?;
    // With --url another service may be meant, whose operator's listener is not known.
    let elsewhere = matches.contains_id("url");
    let admin = config.admin.listen.address().filter(|_| !elsewhere);
    let admin = admin.and_then(|address| Target::of(None, address).ok());
    let facts = match ask(&target, admin.as_ref(), &config) {
        Ok(said) => Facts::of(target.text(), *said, &config, &calendar),
        Err(trouble) => Facts::without_service(target.text(), *trouble),
    };
    let text = if matches.get_flag("json") {
        // Text and numbers always serialise.
        let mut text = sonic_rs::to_string(&facts).unwrap_or_default();
        text.push('\n');
        text
    } else {
        screen(&facts, colours())
    };
    print(&text);
    let exit = match facts.status {
        ServiceState::Ok => Exit::Ok,
        ServiceState::Degraded => Exit::Degraded,
        ServiceState::Down => Exit::Down,
    };
    Ok(exit.into())
}

/// Colours on a terminal, unless `NO_COLOR` is set (no-color.org).
pub(super) fn colours() -> Colours {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match io::stdout().is_terminal() && !unwanted {
        true => Colours::On,
        false => Colours::Off,
    }
}

fn ask(
    target: &Target,
    admin: Option<&Target>,
    config: &Config,
) -> Result<Box<ServiceReport>, Box<Trouble>> {
    let answer = target.get("/api/health", TIMEOUT).map_err(|error| {
        let said = format!("{}: {error}", target.text());
        let is_silent = is_timeout(&error);
        Box::new(if is_silent {
            silent(&said, admin, config)
        } else {
            unreachable(&said, config)
        })
    })?;
    let here_now = Clock::system().now();
    let json: Value = document(&answer).unwrap_or_default();
    let is_ours = json["status"]
        .as_str()
        .and_then(ServiceState::parse)
        .is_some();
    let Some(health) = is_ours.then(|| document(&answer)).flatten() else {
        // A service that has no health report yet says so.
        let is_starting = answer.status == 503 && json["code"] == "starting";
        let row = if is_starting {
            &diagnoses::STARTING
        } else {
            &diagnoses::NOT_OURS
        };
        return Err(Box::new(row.trouble(&target.text())));
    };
    let token = |broker: Broker| {
        let answer = target.get(&format!("/broker{broker}/status"), TIMEOUT).ok();
        answer
            .and_then(|answer| document(&answer))
            .unwrap_or_default()
    };
    Ok(Box::new(ServiceReport {
        health,
        tokens: ByBroker::of(token),
        service_now: answer.date,
        here_now,
    }))
}

pub(super) fn document<T: DeserializeOwned>(answer: &Answer) -> Option<T> {
    sonic_rs::from_slice(&answer.body).ok()
}

/// Whether the service, or the kernel for it, accepted the connection and no response came in time.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

/// Whether a response of the operator's listener is from this service. At the default address
/// another instance may answer; its response names the service that it belongs to.
pub(super) fn is_of_this_service(answer: &Answer, config: &Config) -> bool {
    let json: Option<Value> = document(answer);
    config.admin.listen != AdminListen::Default
        || json.is_some_and(|json| json["of"] == config.http.listen.as_str())
}

/// Diagnoses a service that does not answer in time. The operator's listener, which has connections
/// of its own, shows whether the service is alive; else the lock of the state directory does.
pub(super) fn silent(said: &str, admin: Option<&Target>, config: &Config) -> Trouble {
    let alive = admin.and_then(|admin| admin.get("/livez", LIVEZ_TIMEOUT).ok());
    let alive = alive.filter(|answer| is_of_this_service(answer, config));
    let row = match alive.map(|answer| answer.status) {
        Some(200) => &diagnoses::ALL_TAKEN,
        Some(503) => &diagnoses::HANGS,
        _ if state_lock::in_use(&config.state_dir) == Some(true) => &diagnoses::NO_ROOM,
        _ => &diagnoses::UNREACHABLE,
    };
    row.trouble(said)
}

/// Diagnoses a refused connection. The lock of the state directory shows whether the service runs
/// and listens elsewhere.
fn unreachable(said: &str, config: &Config) -> Trouble {
    let row = match state_lock::in_use(&config.state_dir) {
        Some(true) => &diagnoses::SILENT,
        Some(false) if config.state_dir.exists() => &diagnoses::NOT_RUNNING,
        _ => &diagnoses::UNREACHABLE,
    };
    row.trouble(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_instances_listener_is_not_believed_at_the_default_address() {
        let mut config = Config::default();
        let answer = |body: &str| Answer {
            status: 200,
            date: None,
            body: body.into(),
        };
        let (own, other) =
            (answer(r#"{"of":"127.0.0.1:8080"}"#), answer(r#"{"of":"127.0.0.1:8090"}"#));
        assert!(is_of_this_service(&own, &config));
        assert!(!is_of_this_service(&other, &config));
        assert!(!is_of_this_service(&answer("{}"), &config));
        assert!(!is_of_this_service(&answer("garbage"), &config));
        // Whoever named it knows whose it is.
        config.admin.listen = "127.0.0.1:9464".into();
        assert!(is_of_this_service(&other, &config));
    }
}
