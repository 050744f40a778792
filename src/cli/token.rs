//! `bhav token a|b`: logs in at a broker and gives the running service its token of the day.
//!
//! Main thread. Sends the code of the login to the service, which exchanges it for a token; nothing
//! is stored here. The code is read without echo into memory that is wiped, and never printed.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::base::{Broker, Words, clock};
use crate::brokers::call::transport::push_encoded;
use crate::brokers::login_at;
use crate::cli::client::{Answer, Target};
use crate::cli::operator::{Done, plain, print, refuse, say, service, with_running_service};
use crate::cli::secret_input;
use crate::ops::{Exit, exit};

/// Longer than the service waits for the broker.
const TIMEOUT: Duration = Duration::from_millis(30_000);
/// Longest request body: names, quotes, and two secrets of which each byte may need an escape of
/// six.
const BODY_BYTES: usize = 64 + 6 * 2 * secret_input::BYTES_MAX;

const NOTES: &str = "\
Open the link, log in, and paste the address that the browser is sent to, or the code in it. From a
script, write it to standard input: --code shows it to every user of this machine.";

/// The definition of the command.
pub(super) fn command() -> Command {
    let apis = Broker::ALL.map(|broker| format!("{broker} is {}", broker.api_name()));
    let broker = Arg::new("broker")
        .value_name("BROKER")
        .required(true)
        .value_parser(Broker::ALL.map(Broker::as_str))
        .help(format!("Whose token: {}", apis.join(", ")));
    let code = Arg::new("code").long("code").value_name("CODE");
    with_running_service(
        Command::new("token")
            .about("Log in at a broker and give the running service its token of the day")
            .arg(broker)
            .arg(code.help("The code; other users of the machine can see it"))
            .after_help(format!("{NOTES}\n\n{}", exit::HELP)),
    )
}

/// The response: the token's state, or an error document.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Outcome {
    valid: bool,
    expires_at: Option<String>,
    code: String,
    detail: String,
}

/// Asks for the code and sends it to the service.
pub(super) fn run(matches: &ArgMatches) -> Done {
    let (config, target) = service(matches)?;
    let letter = matches
        .get_one::<String>("broker")
        .map_or("a", String::as_str);
    let broker = Broker::parse(letter).unwrap_or(Broker::A);
    let own = config.own_app(broker);
    let pasted = match matches.get_one::<String>("code") {
        Some(code) => {
            say("bhav: warning: a code in the command line is visible to other users\n");
            Zeroizing::new(code.clone())
        }
        None => secret_input::ask(|| invite(broker, own.url, own.api_key.as_ref()))
            .map_err(|why| refuse(&format!("what was pasted: {why}"), Exit::Data))?,
    };
    let code = code(broker, &pasted).ok_or_else(|| {
        let [name, _] = login_at(broker).code_names;
        let why = format!("there is no {name} in this; paste the whole address, or the code");
        refuse(&why, Exit::Data)
    })?;
    Ok(activate(broker, &target, &code, own.admin_secret.as_ref()))
}

/// Prints the prompt on standard error, so that standard output contains only the result.
fn invite(broker: Broker, api_url: &str, api_key: Option<&SecretString>) {
    say(&format!("Log in at {}:\n  {}\n", broker.name(), page(broker, api_url, api_key)));
    if api_key.is_none() {
        let letter = broker.as_str().to_ascii_uppercase();
        say(&format!(
            "(the API key is not known here: put it into the link, or give \
             BROKER{letter}_API_KEY_FILE)\n"
        ));
    }
    say("Paste the address you are sent to, or the code in it (not shown): ");
}

fn activate(
    broker: Broker,
    target: &Target,
    code: &str,
    secret: Option<&SecretString>,
) -> ExitCode {
    let path = format!("/broker{broker}/activate");
    let [_, name] = login_at(broker).code_names;
    // The code, and the administrator's secret if one is set.
    let mut members = BTreeMap::from([(name, code)]);
    members.extend(secret.map(|secret| ("secret", secret.expose_secret())));
    // Reserve everything at once: a buffer that grows leaves unwiped copies behind.
    let mut body = Zeroizing::new(Vec::with_capacity(BODY_BYTES));
    // Text always serialises; a Vec takes it.
    let _ = sonic_rs::to_writer(&mut *body, &members);
    match target.post(&path, &body, TIMEOUT) {
        Ok(answer) => told(broker, &answer),
        Err(error) => {
            let why = format!(
                "the service does not answer at {}: {error}; is it running? systemctl status bhav",
                target.text()
            );
            refuse(&why, Exit::Unavailable)
        }
    }
}

fn told(broker: Broker, answer: &Answer) -> ExitCode {
    let outcome: Outcome = sonic_rs::from_slice(&answer.body).unwrap_or_default();
    let name = broker.name();
    if answer.status == 200 && outcome.valid {
        let until = outcome
            .expires_at
            .and_then(|text| text.parse().ok())
            .map(clock::zoned);
        let until = until.map(|at| at.strftime(" until %Y-%m-%d %H:%M IST").to_string());
        return print(&format!("{name}: the token is valid{}\n", until.unwrap_or_default()));
    }
    let letter = broker.as_str().to_ascii_uppercase();
    let (why, exit) = match outcome.code.as_str() {
        "broker_session_invalid" => (
            "the broker does not accept the code: wrong, used or expired. Codes work once and \
             live for minutes: log in again"
                .to_owned(),
            Exit::Data,
        ),
        "admin_secret_invalid" => (
            format!("the service wants its BROKER{letter}_ADMIN_SECRET; give it here too"),
            Exit::Usage,
        ),
        "admin_local_only" => (
            format!(
                "the service takes this only from a program on its own machine, not through a \
                 proxy; or set BROKER{letter}_ADMIN_SECRET"
            ),
            Exit::Usage,
        ),
        "broker_not_configured" => (
            format!(
                "the service has no BROKER{letter}_API_KEY and BROKER{letter}_API_SECRET: give \
                 them to it and restart it"
            ),
            Exit::Usage,
        ),
        "" => (
            "another program answers there; check --url or BHAV_LISTEN".to_owned(),
            Exit::Usage,
        ),
        _ => (plain(&outcome.detail), Exit::Unavailable),
    };
    refuse(&format!("{name}: {why}"), exit)
}

// ---- Login
//
// The brokers' login pages, and extraction of the one-time code from what a person pastes. Pure.

/// Stands for an API key that the command does not know.
const PLACEHOLDER: &str = "YOUR_API_KEY";

/// The URL of the page where a person logs in to get a code from the broker at `api_url`.
pub(super) fn page(broker: Broker, api_url: &str, api_key: Option<&SecretString>) -> String {
    let mut url = login_at(broker).page(api_url);
    match api_key {
        Some(key) => push_encoded(&mut url, key.expose_secret()),
        None => url.push_str(PLACEHOLDER),
    }
    url
}

/// The code in pasted text: the bare code, or the whole address to which the browser was
/// redirected. Parameter names are matched in any case. `None` if there is no code.
pub(super) fn code(broker: Broker, pasted: &str) -> Option<Zeroizing<String>> {
    let pasted = pasted.trim();
    let found = match pasted.split_once('?') {
        Some((_, query)) => {
            let query = query.split('#').next().unwrap_or_default();
            query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .find_map(|(name, value)| {
                    let is_it = login_at(broker)
                        .code_names
                        .iter()
                        .any(|known| name.eq_ignore_ascii_case(known));
                    is_it.then_some(value)
                })?
        }
        None => pasted,
    };
    // Codes of both brokers are letters and digits, so an address without a code is refused here.
    let good = !found.is_empty()
        && found
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte));
    good.then(|| Zeroizing::new(found.to_owned()))
}

#[cfg(test)]
mod login_tests {
    use super::*;

    #[test]
    fn the_key_is_encoded_as_a_component() {
        let key = SecretString::from("a+b=c&d/e");
        let page_b = page(Broker::B, "http://sim/b", Some(&key));
        assert_eq!(page_b, "http://sim/b/apiuser/login?api_key=a%2Bb%3Dc%26d%2Fe");
        assert!(page(Broker::A, "http://sim/a", None).ends_with("v=3&api_key=YOUR_API_KEY"));
    }

    #[test]
    fn a_code_is_found_bare_or_in_the_whole_address() {
        for (broker, pasted, expected) in [
            (Broker::A, " abc123\n", Some("abc123")),
            (
                Broker::A,
                "https://127.0.0.1/cb?action=login&Request_Token=abc&status=success#x",
                Some("abc"),
            ),
            (Broker::A, "https://127.0.0.1/cb?status=cancelled", None),
            (Broker::A, "https://127.0.0.1/cb", None),
            (Broker::A, "", None),
            (Broker::B, "https://x/?apisession=12345678", Some("12345678")),
            (Broker::B, "https://x/?a=b&API_Session=87654321", Some("87654321")),
            (Broker::B, "12 34", None),
        ] {
            let found = code(broker, pasted);
            assert_eq!(found.as_ref().map(|code| code.as_str()), expected, "{pasted}");
        }
    }
}
