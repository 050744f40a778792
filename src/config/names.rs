//! The names of variables: which ones are known, and the known one that a misspelt name resembles.

use super::env_file;
use super::environment::Environment;
use super::fault::Fault;
use super::secrets::{FILE_SUFFIX, SECRETS};
use super::settings::SETTINGS;

/// A known name is suggested for a misspelt one from this similarity (0 to 1) on.
const LIKENESS_MIN: f64 = 0.6;

/// Prefixes that only bhav uses: an unknown name with one of them is taken for a typing error.
const OWN_PREFIXES: [&str; 5] = ["BHAV_", "BROKERA_", "BROKERB_", "BROKER_A_", "BROKER_B_"];
/// A prefix that other programs use too: an unknown name with it is taken for a typing error only
/// if it is very similar to one of ours.
pub(super) const SHARED_PREFIX: &str = "JWT_";
const SHARED_LIKENESS_MIN: f64 = 0.8;

/// Faults for unknown variables, which are almost always typing errors. In the environment only
/// names that look like ours count, in the settings file all.
pub(super) fn unknown_names(env: &Environment) -> Vec<Fault> {
    let ours = env.names().filter(|name| looks_like_ours(name));
    let unknown = |name: &&str| !is_known(name);
    let in_file = env.names_in_file().filter(|name| !env.names().any(|own| own == *name));
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
        return OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    };
    let rest = rest.strip_suffix(FILE_SUFFIX).unwrap_or(rest);
    let known = SECRETS.iter().filter_map(|secret| secret.name.strip_prefix(SHARED_PREFIX));
    known.map(|known| strsim::jaro(rest, known)).any(|likeness| likeness >= SHARED_LIKENESS_MIN)
}

/// Whether a setting or a secret has this name.
pub(super) fn is_known(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.name == name) || {
        let bare = name.strip_suffix(FILE_SUFFIX).unwrap_or(name);
        SECRETS.iter().any(|secret| secret.name == bare)
    }
}

/// The known name most similar to `name`, with the suffix `_FILE` if that is a secret's and `name`
/// has it. `None` if no name is similar enough.
pub fn likeliest(name: &str) -> Option<String> {
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
    let secrets =
        SECRETS.iter().map(|secret| (strsim::jaro(bare_of_file, secret.name), secret.name, suffix));
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
