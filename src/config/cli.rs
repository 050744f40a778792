//! The command line flags of the settings, generated from [`SETTINGS`] for clap.
//!
//! Values stay text here. [`super::load`] parses them together with the environment, so that all
//! faults are reported at once. Secrets have no flag.

use std::ffi::OsStr;
use std::fmt::Write as _;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::settings::{Group, SETTINGS, Setting};
use crate::config::environment::Flags;

/// The settings that a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// `serve`: all but the simulator's.
    Service,
    /// `demo`: all.
    Demo,
    /// `sim`: the simulator's own, the clock and the log.
    Simulator,
    /// `config check` and `config show`: all.
    Check,
    /// Commands about an installed service: its address, its state directory and its clock.
    Operator,
    /// `healthcheck`: the two addresses at which the service listens.
    Probe,
}

impl Scope {
    fn takes(self, setting: &Setting) -> bool {
        match self {
            Self::Service => setting.group != Group::Simulator,
            Self::Demo | Self::Check => true,
            Self::Operator => matches!(setting.field, "http.listen" | "state_dir" | "now"),
            Self::Probe => matches!(setting.field, "http.listen" | "admin.listen"),
            Self::Simulator => {
                matches!(setting.group, Group::Simulator | Group::Log) || setting.field == "now"
            }
        }
    }

    fn flag(self, setting: &Setting) -> String {
        match (self, setting.field) {
            (Self::Simulator, "sim.listen") => "listen".into(),
            _ => setting.flag(),
        }
    }
}

/// `command` with one flag for each setting of `scope`.
pub(crate) fn with_flags(command: Command, scope: Scope) -> Command {
    command.args(
        SETTINGS
            .iter()
            .filter(|s| scope.takes(s))
            .map(|setting| flag(setting, scope)),
    )
}

fn flag(setting: &'static Setting, scope: Scope) -> Arg {
    let default = match setting.default_text() {
        none if none.is_empty() => "none".to_owned(),
        text => text,
    };
    let short = format!("{} [default: {default}]", setting.about);
    let mut long = format!("{}.\n", setting.about);
    if !setting.more.is_empty() {
        let _ = writeln!(long, "{}", setting.more);
    }
    let _ = write!(long, "[{}] [default: {default}] [env: {}]", setting.unit, setting.name);
    let arg = match words(setting.unit) {
        Some(words) => Arg::new(setting.name).value_parser(Words(words)),
        None => Arg::new(setting.name),
    };
    arg.long(scope.flag(setting))
        .value_name(value_name(setting.unit))
        .help_heading(setting.group.as_str())
        .help(short)
        .long_help(long)
        .action(ArgAction::Set)
        .allow_hyphen_values(false)
}

/// The allowed words of a setting whose unit lists them: `open, first or closed`.
fn words(unit: &'static str) -> Option<Vec<&'static str>> {
    let words: Vec<_> = unit
        .split(" or ")
        .flat_map(|words| words.split(", "))
        .collect();
    let plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    (words.len() > 1 && words.iter().all(plain)).then_some(words)
}

/// Shows the allowed words in help and completions, and accepts any text: [`super::load`] checks
/// it.
#[derive(Clone)]
struct Words(Vec<&'static str>);

impl TypedValueParser for Words {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let text = value.to_str().map(str::to_owned);
        text.ok_or_else(|| clap::Error::new(ErrorKind::InvalidUtf8).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(|word| PossibleValue::new(*word))))
    }
}

fn value_name(unit: &'static str) -> &'static str {
    match unit {
        "ms" => "MS",
        "bytes" => "BYTES",
        "url" => "URL",
        "path" => "PATH",
        "ip:port" | "ip:port or unix:path" | "ip:port, unix:path or off" => "ADDR",
        "ISO 8601 instant" => "INSTANT",
        "text" => "TEXT",
        "tracing filter" => "FILTER",
        list if list.ends_with("comma-separated") => "LIST",
        choice if words(choice).is_some() => "WORD",
        _ => "N",
    }
}

/// The flags given on the command line.
pub(crate) fn typed(matches: &ArgMatches) -> Flags {
    SETTINGS
        .iter()
        .filter_map(|setting| {
            // Not every scope knows every flag.
            let text = matches.try_get_one::<String>(setting.name).ok().flatten()?;
            Some((setting.name, text.clone()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_named_after_their_variables() {
        let command = with_flags(Command::new("demo"), Scope::Demo);
        let matches = command
            .try_get_matches_from([
                "demo",
                "--listen",
                "127.0.0.1:0",
                "--http-body-bytes-max=2048",
                "--seed=7",
                "--sim-listen",
                "127.0.0.1:9",
                "--max-connections",
                "5",
            ])
            .unwrap();
        let typed = typed(&matches);
        assert_eq!(typed["BHAV_LISTEN"], "127.0.0.1:0");
        assert_eq!(typed["BHAV_HTTP_BODY_BYTES_MAX"], "2048");
        assert_eq!(typed["BHAV_SIM_SEED"], "7");
        assert_eq!(typed["BHAV_SIM_LISTEN"], "127.0.0.1:9");
        assert_eq!(typed["BHAV_MAX_CONNECTIONS"], "5");
        assert_eq!(typed.len(), 5);
    }

    #[test]
    fn the_sim_command_has_the_short_flag_listen() {
        let command = with_flags(Command::new("sim"), Scope::Simulator);
        let matches = command
            .try_get_matches_from(["sim", "--listen", "127.0.0.1:9"])
            .unwrap();
        assert_eq!(typed(&matches)["BHAV_SIM_LISTEN"], "127.0.0.1:9");
    }

    #[test]
    fn help_names_each_flag_its_variable_and_its_default() {
        let mut command = with_flags(Command::new("demo"), Scope::Demo);
        let help = command.render_long_help().to_string();
        for setting in SETTINGS {
            assert!(help.contains(&format!("--{} <", setting.flag())), "{}", setting.name);
            assert!(help.contains(&format!("[env: {}]", setting.name)), "{}", setting.name);
            assert!(help.contains(setting.group.as_str()), "{}", setting.name);
        }
        assert!(help.contains("[default: 127.0.0.1:8080]"), "{help}");
        command.debug_assert();
    }
}
