//! Loads flags, environment and settings file into one checked [`Config`].
//!
//! Runs on the main thread, at start and at each reload. A flag overrides its environment variable,
//! which overrides the default. A variable that is set but empty counts as not set. All faults are
//! collected before they are reported.

use std::fmt::Write as _;
use std::path::Path;

use crate::config::composed::{Config, Loaded};
use crate::config::environment::{Environment, Flags, NotText};
use crate::config::fault::{Fault, Origin};
use crate::config::names::unknown_names;
use crate::config::outside::{Bare, Kind};
use crate::config::refused::Refused;
use crate::config::secrets::SECRETS;
use crate::config::settings::{SETTINGS, Setting};
use crate::config::{check, outside, refused, secrets};

/// Longest part of a wrong value that is shown.
const SHOWN_CHARS_MAX: usize = 200;

/// Reads and checks all settings, as any command needs them.
///
/// # Errors
/// All faults at once, never an empty list.
#[cfg(test)]
pub(crate) fn load(flags: &Flags, env: &Environment) -> Result<Loaded, Vec<Fault>> {
    load_with(flags, env, None, |_| None)
}

/// Reads and checks all settings. For commands about an installed service, missing secrets come
/// from `credentials`, the source of the unit's credentials, as far as it can be read. `more` is a
/// fault that only this command has.
///
/// # Errors
/// All faults at once, never an empty list.
pub(crate) fn load_with(
    flags: &Flags,
    env: &Environment,
    credentials: Option<&Path>,
    more: fn(&Config) -> Option<Fault>,
) -> Result<Loaded, Vec<Fault>> {
    let mut loaded = Loaded::of(Config::default());
    let mut faults = Vec::new();
    for setting in SETTINGS {
        if let Err(fault) = read_setting(setting, flags, env, &mut loaded) {
            faults.push(fault);
        }
    }
    secrets::read_all(env, &mut loaded, &mut faults);
    if let Some(store) = credentials {
        secrets::read_credential_store(store, &mut loaded);
    }
    faults.extend(unknown_names(env));
    // Check a relation only if both of its settings are valid: an invalid one still has its
    // default here.
    let broken: Vec<String> = faults.iter().map(|fault| fault.name.clone()).collect();
    let relations = check::relations(&loaded.config);
    faults.extend(
        relations
            .into_iter()
            .filter(|(names, _)| !names.iter().any(|name| broken.iter().any(|b| b == name)))
            .map(|(_, fault)| fault),
    );
    faults.extend(more(&loaded.config).filter(|fault| !broken.contains(&fault.name)));
    if !faults.is_empty() {
        return Err(faults);
    }
    check::warn(&mut loaded, env);
    Ok(loaded)
}

fn read_setting(
    setting: &'static Setting,
    flags: &Flags,
    env: &Environment,
    loaded: &mut Loaded,
) -> Result<(), Fault> {
    let (text, origin) = match (flags.get(setting.name), env.text(setting.name)) {
        (Some(text), _) => (text.as_str(), Origin::Flag),
        (None, Some(Ok(text))) => (text, env.origin(setting.name)),
        (None, Some(Err(NotText))) => return Err(Fault::not_text(setting.name)),
        (None, None) if setting.name == "BHAV_STATE_DIR" => {
            // systemd gives a colon-separated list when a unit asks for several directories.
            let listed = env.text("STATE_DIRECTORY").and_then(Result::ok);
            match listed.and_then(|list| list.split(':').next()) {
                Some(first) => (first, Origin::StateDirectory),
                None => return Ok(()),
            }
        }
        (None, None) => return Ok(()),
    };
    let Bare { text, was_quoted } = outside::bare(text, Kind::Setting);
    if was_quoted {
        loaded
            .warnings
            .push(outside::quoted_warning(setting.name, &origin));
    }
    if text.is_empty() {
        return Ok(());
    }
    let set = match outside::refusal(text, Kind::Setting) {
        Some(refused) => Err(refused),
        None => (setting.set)(&mut loaded.config, text),
    };
    set.map_err(|refused| {
        let Refused { problem, cure } = refused::explained(text, setting.unit, refused);
        let value = without_user(text).chars().take(SHOWN_CHARS_MAX).collect();
        let cure = format!("{cure} ({})", setting.unit);
        let origin = Some(origin.to_string());
        Fault {
            name: setting.name.into(),
            value: Some(value),
            origin,
            problem,
            cure,
        }
    })?;
    if text.contains(" #") {
        loaded
            .warnings
            .push(outside::comment_warning(setting.name, &origin));
    }
    loaded.origins.insert(setting.name, origin);
    Ok(())
}

/// A wrong value as it is shown. In a URL the part before the host is masked: it may be a password
/// that does not belong there.
fn without_user(text: &str) -> String {
    match (text.split_once("://"), text.rfind('@')) {
        (Some((scheme, _)), Some(at)) => format!("{scheme}://***{}", &text[at..]),
        _ => text.to_owned(),
    }
}

// ---- Effective
//
// Prints the settings in force, for `config show` and at a reload.

/// The settings in force, one a line in the form of an environment file, secrets masked.
pub(crate) fn effective(loaded: &Loaded) -> String {
    let mut text = String::new();
    for setting in SETTINGS {
        let origin = loaded.origins.get(setting.name).unwrap_or(&Origin::Default);
        let value = (setting.show)(&loaded.config);
        let _ = writeln!(text, "{}={value}  # {origin}", setting.name);
    }
    for secret in SECRETS {
        let _ = match loaded.origins.get(secret.name) {
            Some(origin) => writeln!(text, "{}=***  # {origin}", secret.name),
            None => writeln!(text, "{}=  # not set", secret.name),
        };
    }
    for warning in &loaded.warnings {
        let _ = writeln!(text, "# warning: {warning}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::settings::REMOVED;

    fn load_env(pairs: &[(&str, &str)]) -> Result<Loaded, Vec<Fault>> {
        load(&Flags::new(), &Environment::from_pairs(pairs.iter().copied()))
    }

    #[test]
    fn an_empty_environment_gives_the_defaults() {
        let loaded = load_env(&[]).unwrap();
        assert!(loaded.origins.is_empty());
        let defaults = Config::default();
        for setting in SETTINGS {
            assert_eq!((setting.show)(&loaded.config), (setting.show)(&defaults));
        }
    }

    #[test]
    fn a_flag_overrides_its_variable_and_an_empty_variable_is_not_set() {
        let env = Environment::from_pairs([
            ("BHAV_LISTEN", "127.0.0.1:1"),
            ("BHAV_EDGE_THREADS", "3"),
            ("BHAV_MAX_CONNECTIONS", ""),
        ]);
        let flags = Flags::from([("BHAV_LISTEN", "127.0.0.1:2".to_owned())]);
        let loaded = load(&flags, &env).unwrap();
        assert_eq!(loaded.config.http.listen, "127.0.0.1:2");
        assert_eq!(loaded.config.http.edge_threads, 3);
        assert_eq!(loaded.config.http.connections_max, 10_000);
        assert_eq!(loaded.origins["BHAV_LISTEN"], Origin::Flag);
        assert_eq!(loaded.origins["BHAV_EDGE_THREADS"], Origin::Environment);
        assert!(!loaded.origins.contains_key("BHAV_MAX_CONNECTIONS"));
    }

    #[test]
    fn the_settings_file_applies_where_the_environment_sets_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bhav.env");
        let text = "# BHAV_X=1\n;BHAV_Y=2\n\nBHAV_LISTEN=127.0.0.1:2\nBHAV_EDGE_THREADS = 3\n\
                    BHAV_STATE_DIR=\"a dir\"\nBHAV_LOG='warn'";
        std::fs::write(&path, text).unwrap();
        let pairs = [
            ("BHAV_LISTEN", "127.0.0.1:1"),
            ("BHAV_ENV_FILE", path.to_str().unwrap()),
        ];
        let env = Environment::from_pairs(pairs).with_file().unwrap();
        let loaded = load(&Flags::new(), &env).unwrap();
        assert_eq!(loaded.config.http.listen, "127.0.0.1:1");
        assert_eq!(loaded.config.http.edge_threads, 3);
        assert_eq!(loaded.config.state_dir, PathBuf::from("a dir"));
        assert_eq!(loaded.config.log.filter, "warn");
        assert_eq!(loaded.origins["BHAV_EDGE_THREADS"], Origin::EnvFile(path.clone(), 5));
        std::fs::write(&path, "BHAV_EDGE_THREDS=3\nTZ=UTC\nJWT_SECRET_FILE=\n").unwrap();
        let env = Environment::from_pairs(pairs).with_file().unwrap();
        let faults = load(&Flags::new(), &env).unwrap_err();
        assert_eq!(faults.len(), 2, "a name that nothing reads is a fault in our own file");
        assert!(faults[0].to_string().contains("line 1"), "{faults:?}");
    }

    #[test]
    fn a_removed_setting_is_a_warning_that_names_its_line_and_no_fault() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bhav.env");
        let lines = REMOVED.map(|name| format!("{name}=7\n")).concat() + "BHAV_EDGE_THREADS=3\n";
        std::fs::write(&path, lines).unwrap();
        let env = Environment::from_pairs([(REMOVED[0], "1")])
            .with_file_at(&path)
            .unwrap();
        let Loaded {
            config,
            origins,
            warnings,
        } = load(&Flags::new(), &env).unwrap();
        assert_eq!((config.http.edge_threads, origins.len()), (3, 1));
        let line = |at| format!("{} line {at}", path.display());
        let in_file = (2..=REMOVED.len()).map(line);
        let origins = std::iter::once("environment".to_owned()).chain(in_file);
        let expected = REMOVED.iter().zip(origins).map(|(name, origin)| {
            format!("{name} ({origin}) is no longer a setting and changes nothing; remove the line")
        });
        assert_eq!(warnings, expected.collect::<Vec<_>>());
    }

    #[test]
    fn every_fault_is_reported_at_once() {
        let faults = load_env(&[
            ("BHAV_MAX_CONNECTIONS", "0"),
            ("BHAV_PUBLIC_URL", "ftp://x"),
            ("BHAV_LISTN", "127.0.0.1:1"),
            ("BHAV_HTTP_BODY_BYTES_MAX", "512"),
        ])
        .unwrap_err();
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let text = text.join("\n");
        for part in [
            "BHAV_MAX_CONNECTIONS=0",
            "ftp://x",
            "did you mean BHAV_LISTEN?",
            "BODY_BYTES",
        ] {
            assert!(text.contains(part), "{part} is missing from:\n{text}");
        }
        assert_eq!(faults.len(), 4, "{text}");
    }

    #[test]
    fn a_password_in_a_url_is_a_fault_that_does_not_show_it() {
        for (name, url) in [
            ("BHAV_CACHE_URL", "redis://bhav:s3cr3t@cache.lan:6379"),
            ("BHAV_CACHE_URL", "valkey://:s3/cr3t@cache.lan"),
            ("BHAV_PUBLIC_URL", "https://u:s3cr3t@h.example/"),
        ] {
            let faults = load_env(&[(name, url)]).unwrap_err();
            let text = faults[0].to_string();
            assert!(text.contains(name) && !text.contains("s3"), "{text}");
        }
    }

    #[test]
    fn the_shared_cache_is_taken_by_a_build_that_has_it_and_refused_by_another() {
        let loaded = load_env(&[
            ("BHAV_CACHE_URL", "rediss://bhav@cache.lan:6390/2"),
            ("BHAV_CACHE_NAMESPACE", "prod"),
            ("BHAV_CACHE_PASSWORD", "s3cr3t"),
        ]);
        if cfg!(feature = "engines") {
            let valkey = loaded.unwrap().config.valkey;
            assert_eq!(valkey.url.unwrap().to_string(), "rediss://bhav@cache.lan:6390/2");
            let namespace = valkey.namespace.unwrap();
            assert_eq!((namespace.as_str(), valkey.password.is_some()), ("prod", true));
        } else {
            let text = loaded.unwrap_err()[0].to_string();
            assert!(text.contains("built without") && text.contains("BHAV_CACHE_URL"), "{text}");
        }
    }

    #[test]
    fn a_relation_with_an_invalid_setting_is_not_checked() {
        let faults = load_env(&[
            ("BHAV_UPSTREAM_TOTAL_TIMEOUT_MS", "huge"),
            ("BHAV_UPSTREAM_CONNECT_TIMEOUT_MS", "8000"),
        ])
        .unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
    }

    #[test]
    fn systemds_state_directory_is_used_unless_one_is_set() {
        let given = ("STATE_DIRECTORY", "/var/lib/bhav:/var/lib/other");
        let loaded = load_env(&[given]).unwrap();
        assert_eq!(loaded.config.state_dir, PathBuf::from("/var/lib/bhav"));
        assert_eq!(loaded.origins["BHAV_STATE_DIR"], Origin::StateDirectory);
        let loaded = load_env(&[given, ("BHAV_STATE_DIR", "here")]).unwrap();
        assert_eq!(loaded.config.state_dir, PathBuf::from("here"));
    }
}

#[cfg(test)]
mod effective_tests {
    use super::super::load::load;
    use super::*;
    use crate::config::environment::{Environment, Flags};

    #[test]
    fn settings_in_force_are_shown_with_origins_and_without_secrets() {
        let given = [("BROKERA_API_KEY", "s3cr3t"), ("BHAV_EDGE_THREADS", "2")];
        let loaded = load(&Flags::new(), &Environment::from_pairs(given)).unwrap();
        let text = effective(&loaded);
        assert!(text.contains("BROKERA_API_KEY=***  # environment"), "{text}");
        assert!(text.contains("BHAV_EDGE_THREADS=2  # environment"), "{text}");
        assert!(text.contains("BHAV_MAX_CONNECTIONS=10000  # default"), "{text}");
        assert!(text.contains("JWT_SECRET=  # not set"), "{text}");
        assert!(!text.contains("s3cr3t") && !format!("{loaded:?}").contains("s3cr3t"));
    }
}
