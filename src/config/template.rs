//! The operator's template (`systemd/bhav.env`): every setting, commented out at its default.
//!
//! `bhav config template` prints it; a test holds the file in the repository against it.

use std::fmt::Write as _;

use super::secrets::SECRETS;
use super::settings::{Group, SETTINGS};

const OPENING: &str = "\
# Settings of bhav. The program reads this file itself if BHAV_ENV_FILE names it, at start and at
# each reload (systemctl reload bhav). A variable of the environment overrides this file.
# Each setting is commented out at its default: remove the # to change it.
# A variable that is set but empty counts as not set. An unknown name is refused, here and among
# the BHAV_, BROKERA_ and BROKERB_ names of the environment.
# Check with: bhav config check
";

const SECRETS_OPENING: &str = "
# ==== Secrets ====
# Do not put secrets into this file, which is easily copied and shown to others.
# With systemd: put each into a file /etc/credstore/bhav.NAME, the name in lower case, which the
# unit loads as a credential; a new value needs a restart. Without systemd, or to change it by a
# reload: set NAME_FILE=PATH to a file with mode 600 that the service can read.
";

/// Width at which explanations wrap.
const WIDTH: usize = 96;

/// The whole template.
pub fn template() -> String {
    let mut text = OPENING.to_owned();
    let mut group: Option<Group> = None;
    for setting in SETTINGS {
        if group != Some(setting.group) {
            group = Some(setting.group);
            let _ = writeln!(text, "\n# ==== {} ====", setting.group.title());
        }
        let about = format!("{} ({}).", setting.about, setting.unit);
        let _ = writeln!(text, "\n{}", commented(&about));
        if !setting.more.is_empty() {
            let _ = writeln!(text, "{}", commented(setting.more));
        }
        let _ = writeln!(text, "#{}={}", setting.name, setting.default_text());
    }
    text.push_str(SECRETS_OPENING);
    for secret in SECRETS {
        let _ = writeln!(text, "\n# {}.\n#{}_FILE=", secret.about, secret.name);
    }
    text
}

fn commented(prose: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in prose.split_whitespace() {
        let line = lines.last_mut().expect("starts with one line");
        if line.len() + 1 + word.len() > WIDTH {
            lines.push(format!("# {word}"));
        } else {
            let _ = write!(line, " {word}");
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::environment::{Environment, Flags};
    use super::super::load::load;
    use super::*;

    const FILE: &str = include_str!("../../systemd/bhav.env");

    /// `NAME=value` of each setting line, the leading `#` removed.
    fn uncommented() -> Vec<(&'static str, &'static str)> {
        FILE.lines()
            .filter_map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with([' ', '#'])))
            .filter_map(|line| line.split_once('='))
            .collect()
    }

    #[test]
    fn the_file_in_the_repository_is_this_template() {
        assert!(FILE == template(), "run: bhav config template > systemd/bhav.env");
    }

    #[test]
    fn every_line_of_the_file_set_gives_the_defaults() {
        let pairs = uncommented();
        let loaded = load(&Flags::new(), &Environment::from_pairs(pairs.iter().copied())).unwrap();
        let defaults = super::super::Config::default();
        for setting in SETTINGS {
            assert_eq!((setting.show)(&loaded.config), (setting.show)(&defaults));
            let lines = pairs.iter().filter(|(name, _)| *name == setting.name).count();
            assert_eq!(lines, 1, "{} stands {lines} times in the file", setting.name);
        }
        for secret in SECRETS {
            assert!(pairs.contains(&(&*format!("{}_FILE", secret.name), "")), "{}", secret.name);
        }
        assert_eq!(pairs.len(), SETTINGS.len() + SECRETS.len());
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }
}
