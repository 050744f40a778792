//! What an operator has to set right on the server: what it refuses to this node, and that somebody
//! else writes under the nodes' keys. Each cause is logged once, whichever module met it, and
//! health shows it.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::Clock;

/// A cause is over if it was not met for this long. Longer than the longest pause before a next
/// try.
const OVER_MS: u64 = 30_000;
/// Most causes kept. A server has fewer, but the bound holds whatever it sends.
const CAUSES_MAX: usize = 32;

/// Time for which a key that somebody else wrote is shown, and between two log lines about it. The
/// write itself is replaced within a second.
const FOREIGN_MS: u64 = 600_000;

/// A refusal in a reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The user or its password.
    Login,
    /// All commands, as long as no password is given.
    NoPassword,
    /// A command, in capitals.
    Command(String),
    Keys,
    Channels,
    /// A command within a script or a transaction; the server does not say which.
    Unnamed,
    /// Another refusal, by the first word of the reply.
    Other(String),
}

impl Refusal {
    /// Reads the first word of an error and the rest, which may repeat a secret: only the name of a
    /// command is kept of it.
    pub(super) fn of(code: &str, rest: &str) -> Self {
        let in_script =
            rest.contains("user executing the script") || rest.contains("ACL failure in script");
        match code {
            "WRONGPASS" => Self::Login,
            "NOAUTH" => Self::NoPassword,
            "EXECABORT" => Self::Unnamed,
            "ERR" if !in_script && rest.contains("AUTH") => Self::Login,
            "NOPERM" | "ERR" if code == "NOPERM" || in_script => match named(rest) {
                Some(command) => Self::Command(command),
                None if rest.contains("this command") => Self::Unnamed,
                None if rest.contains("channel") => Self::Channels,
                None if rest.contains("key") => Self::Keys,
                None => Self::Unnamed,
            },
            code => Self::Other(code.to_owned()),
        }
    }

    /// The refusal in words for a person, with the setting's name first.
    pub(super) fn in_words(&self, user: &str) -> String {
        match self {
            Self::Login => format!(
                "BHAV_CACHE_URL: the server refuses user {user} with the password of \
                 BHAV_CACHE_PASSWORD"
            ),
            Self::NoPassword => {
                "BHAV_CACHE_PASSWORD: the server asks for a password, and none is set".to_owned()
            }
            Self::Command(command) => {
                format!("BHAV_CACHE_URL: the server refuses {command} to user {user}")
            }
            Self::Keys => {
                format!("BHAV_CACHE_URL: the server refuses the keys ~bhav:* to user {user}")
            }
            Self::Channels => {
                format!("BHAV_CACHE_URL: the server refuses the channels &bhav:* to user {user}")
            }
            Self::Unnamed => format!(
                "BHAV_CACHE_URL: the server refuses a command of a script or transaction to user \
                 {user}"
            ),
            Self::Other(code) => format!("BHAV_CACHE_URL: the server answers {code}"),
        }
    }
}

/// The command of `... permissions to run the 'client|setname' command`.
fn named(rest: &str) -> Option<String> {
    let name = rest.split_once("run the '")?.1.split_once('\'')?.0;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"|-_.".contains(&byte);
    let fits = (1..=40).contains(&name.len()) && name.bytes().all(plain);
    fits.then(|| name.replace('|', " ").to_ascii_uppercase())
}

struct Cause {
    text: Arc<str>,
    met_mono_ms: u64,
}

/// A key that somebody other than the nodes has written.
struct Foreign {
    name: &'static str,
    met_mono_ms: u64,
    logged_mono_ms: u64,
}

#[derive(Default)]
struct Known {
    causes: Vec<Cause>,
    /// One for each key at most.
    foreign: Vec<Foreign>,
    /// When the server was last asked which commands it refuses, and its answer.
    looked: Option<(u64, Vec<Refusal>)>,
}

/// The causes that last. Used from any thread.
pub struct Refusals {
    known: Mutex<Known>,
    timer: Clock,
}

impl Default for Refusals {
    fn default() -> Self {
        Self::by(Clock::system())
    }
}

impl Refusals {
    fn by(timer: Clock) -> Self {
        Self {
            known: Mutex::default(),
            timer,
        }
    }

    /// Notes a cause, and logs it if it is new.
    pub(super) fn note(&self, text: &str) {
        let now_mono_ms = self.timer.monotonic_ms();
        let mut known = self.known.lock();
        let causes = &mut known.causes;
        if let Some(cause) = causes.iter_mut().find(|cause| *cause.text == *text) {
            cause.met_mono_ms = now_mono_ms;
        } else if causes.len() < CAUSES_MAX {
            causes.push(Cause {
                text: text.into(),
                met_mono_ms: now_mono_ms,
            });
            drop(known);
            tracing::warn!("{text}");
        }
    }

    /// Notes that somebody else has written under this key, and that it is replaced. Logs each key
    /// from time to time.
    pub(super) fn note_foreign(&self, name: &'static str) {
        let now_mono_ms = self.timer.monotonic_ms();
        let mut known = self.known.lock();
        match known
            .foreign
            .iter_mut()
            .find(|foreign| foreign.name == name)
        {
            Some(foreign) => {
                foreign.met_mono_ms = now_mono_ms;
                if now_mono_ms.saturating_sub(foreign.logged_mono_ms) < FOREIGN_MS {
                    return;
                }
                foreign.logged_mono_ms = now_mono_ms;
            }
            None => {
                let met_mono_ms = now_mono_ms;
                let logged_mono_ms = now_mono_ms;
                known.foreign.push(Foreign {
                    name,
                    met_mono_ms,
                    logged_mono_ms,
                });
            }
        }
        drop(known);
        tracing::warn!(
            key = name,
            "BHAV_CACHE_URL: somebody other than these nodes has written a key of theirs on the \
             shared server; the nodes replace it. Give the server a password, and a user who alone \
             may use their keys (docs/nodes.md)"
        );
    }

    /// The keys that somebody else wrote a short while ago.
    pub(crate) fn foreign(&self) -> Vec<&'static str> {
        let now_mono_ms = self.timer.monotonic_ms();
        let mut known = self.known.lock();
        known
            .foreign
            .retain(|it| now_mono_ms.saturating_sub(it.met_mono_ms) < FOREIGN_MS);
        known.foreign.iter().map(|foreign| foreign.name).collect()
    }

    /// The commands that the server was found to refuse a moment ago.
    pub(super) fn looked(&self) -> Option<Vec<Refusal>> {
        let now_mono_ms = self.timer.monotonic_ms();
        let known = self.known.lock();
        let (at, found) = known.looked.as_ref()?;
        (now_mono_ms < at + OVER_MS / 2).then(|| found.clone())
    }

    pub(super) fn set_looked(&self, found: Vec<Refusal>) {
        self.known.lock().looked = Some((self.timer.monotonic_ms(), found));
    }

    /// The causes that last. Logs those that are over.
    pub(crate) fn in_force(&self) -> Vec<Arc<str>> {
        let now_mono_ms = self.timer.monotonic_ms();
        let mut known = self.known.lock();
        let is_over = |cause: &Cause| now_mono_ms.saturating_sub(cause.met_mono_ms) >= OVER_MS;
        let over: Vec<Cause> = known
            .causes
            .extract_if(.., |cause| is_over(cause))
            .collect();
        let lasting = known
            .causes
            .iter()
            .map(|cause| Arc::clone(&cause.text))
            .collect();
        drop(known);
        for cause in over {
            tracing::info!(cause = &*cause.text, "the shared server has stopped refusing this");
        }
        lasting
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn answers_of_every_server_are_read_and_nothing_of_them_is_kept_but_the_command() {
        let command = |name: &str| Refusal::Command(name.to_owned());
        for (code, rest, expected) in [
            (
                "WRONGPASS",
                "invalid username-password pair or user is disabled.",
                Refusal::Login,
            ),
            ("ERR", "AUTH <password> called without any password configured", Refusal::Login),
            ("NOAUTH", "Authentication required.", Refusal::NoPassword),
            (
                "NOPERM",
                "this user has no permissions to run the 'info' command",
                command("INFO"),
            ),
            (
                "NOPERM",
                "User bhav has no permissions to run the 'script|load' command",
                command("SCRIPT LOAD"),
            ),
            (
                "ERR",
                "ACL failure in script: User bhav has no permissions to run the 'info' command",
                command("INFO"),
            ),
            (
                "ERR",
                "The user executing the script can't run this command or subcommand script: b1b",
                Refusal::Unnamed,
            ),
            (
                "ERR",
                "The user executing the script can't access at least one of the keys mentioned in \
                 the command arguments",
                Refusal::Keys,
            ),
            ("NOPERM", "No permissions to access a channel", Refusal::Channels),
            ("NOPERM", "No permissions to access a key", Refusal::Keys),
            ("EXECABORT", "", Refusal::Unnamed),
            ("NOPERM", "run the 'a secret?' command", Refusal::Unnamed),
            ("OOM", "command not allowed", Refusal::Other("OOM".to_owned())),
        ] {
            assert_eq!(Refusal::of(code, rest), expected, "{code} {rest}");
        }
    }

    #[test]
    fn a_key_that_somebody_else_wrote_is_shown_for_ten_minutes() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let refusals = Refusals::by(clock.clone());
        for _ in 0..1_000 {
            refusals.note_foreign("leader");
        }
        clock.advance_ms(300_000);
        refusals.note_foreign("epoch");
        assert_eq!(refusals.foreign(), ["leader", "epoch"]);
        clock.advance_ms(300_000);
        assert_eq!(refusals.foreign(), ["epoch"]);
        clock.advance_ms(300_000);
        assert_eq!(refusals.foreign(), [""; 0]);
    }

    #[test]
    fn a_cause_lasts_half_a_minute_after_it_was_last_met() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let refusals = Refusals::by(clock.clone());
        refusals.note("one");
        clock.advance_ms(20_000);
        refusals.note("two");
        clock.advance_ms(5_000);
        refusals.note("one");
        clock.advance_ms(24_999);
        let lasting = || refusals.in_force().join(" ");
        assert_eq!(lasting(), "one two");
        clock.advance_ms(1);
        assert_eq!(lasting(), "one");
        clock.advance_ms(5_000);
        assert!(refusals.in_force().is_empty());
        for number in 0..100 {
            refusals.note(&number.to_string());
        }
        assert_eq!(refusals.in_force().len(), CAUSES_MAX);
    }
}
