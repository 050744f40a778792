//! Names of variables: the unknown ones, and the known name that a misspelt one resembles. Pure.

use crate::base::Broker;
use crate::config::env_file;
use crate::config::environment::Environment;
use crate::config::fault::Fault;
use crate::config::secrets::{FILE_SUFFIX, SECRETS, SHARED_PREFIX};
use crate::config::settings::{REMOVED, SETTINGS, is_known};

/// Lowest similarity (0 to 1) at which a known name is suggested for a misspelt one.
const LIKENESS_MIN: f64 = 0.6;

const SHARED_LIKENESS_MIN: f64 = 0.8;

/// Faults for unknown variables, which are almost always typing errors. In the environment only
/// names with one of our prefixes count, in the settings file all. Those of [`REMOVED`] are known.
pub(super) fn unknown_names(env: &Environment) -> Vec<Fault> {
    let ours = env.names().filter(|name| looks_like_ours(name));
    let unknown = |name: &&str| !is_known(name) && !REMOVED.contains(name);
    let in_file = env
        .names_in_file()
        .filter(|name| !env.names().any(|own| own == *name));
    let stray = ours.filter(|name| *name != env_file::NAME).filter(unknown);
    stray
        .chain(in_file.filter(unknown))
        .map(|name| Fault {
            name: name.into(),
            // Not shown: it may be a secret under a misspelt name.
            value: None,
            origin: Some(env.origin(name).to_string()),
            problem: "is no setting".into(),
            cure: match likeliest(name) {
                Some(known) => format!("did you mean {known}? Otherwise unset it"),
                None => "unset it; `bhav serve --help` lists the settings".into(),
            },
        })
        .collect()
}

fn looks_like_ours(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(SHARED_PREFIX) else {
        return name.starts_with("BHAV_") || names_a_broker(name);
    };
    let rest = rest.strip_suffix(FILE_SUFFIX).unwrap_or(rest);
    let known = SECRETS
        .iter()
        .filter_map(|secret| secret.name.strip_prefix(SHARED_PREFIX));
    known
        .map(|known| strsim::jaro(rest, known))
        .any(|likeness| likeness >= SHARED_LIKENESS_MIN)
}

/// Whether a name begins as a broker's secrets do, as `BROKERA_` or `BROKER_A_`.
fn names_a_broker(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("BROKER") else {
        return false;
    };
    let rest = rest.strip_prefix('_').unwrap_or(rest);
    Broker::ALL.iter().any(|broker| {
        let letter = broker.as_str().to_ascii_uppercase();
        rest.strip_prefix(&*letter)
            .is_some_and(|rest| rest.starts_with('_'))
    })
}

/// The known name most similar to `name`. It gets the suffix `_FILE` if it is a secret's and `name`
/// has the suffix. `None` if no name is similar enough.
pub(super) fn likeliest(name: &str) -> Option<String> {
    let bare = name.strip_prefix("BHAV_").unwrap_or(name);
    let (bare_of_file, suffix) = match bare.strip_suffix(FILE_SUFFIX) {
        Some(of_file) => (of_file, FILE_SUFFIX),
        None => (bare, ""),
    };
    // Compare without the prefix, which all names share.
    let settings = SETTINGS.iter().map(|setting| {
        let known = setting.name.strip_prefix("BHAV_").unwrap_or(setting.name);
        (strsim::jaro(bare, known), setting.name, "")
    });
    let secrets = SECRETS
        .iter()
        .map(|secret| (strsim::jaro(bare_of_file, secret.name), secret.name, suffix));
    settings
        .chain(secrets)
        .filter(|(likeness, ..)| *likeness >= LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known, suffix)| format!("{known}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_is_suggested_and_no_dissimilar_one() {
        for (name, known) in [
            ("BHAV_MAXCONNECTIONS", Some("BHAV_MAX_CONNECTIONS")),
            ("BHAV_JWT_SECRET", Some("JWT_SECRET")),
            ("BHAV_CALENDER_FILE", Some("BHAV_CALENDAR_FILE")),
            ("BROKERB_API_KEYS_FILE", Some("BROKERB_API_KEY_FILE")),
            ("BHAV_QQQQ", None),
        ] {
            assert_eq!(likeliest(name).as_deref(), known);
        }
    }
}
