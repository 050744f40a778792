//! Loads flags, environment and settings file into one checked [`Config`].
//!
//! Runs on the main thread, at start and at each reload. A flag overrides its environment variable,
//! and that the default. A variable that is set but empty counts as not set. All faults are
//! collected before they are reported.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use super::check::{self, Fault};
use super::composed::Config;
use super::env_file::{self, Entry, EnvFile};
use super::secrets::{self, SECRETS};
use super::settings::{SETTINGS, Setting};

/// A known name is suggested for a misspelt one from this similarity (0 to 1) on.
const LIKENESS_MIN: f64 = 0.6;

/// A secret's name with this suffix is the variable that names a file with the secret.
pub(super) const FILE_SUFFIX: &str = "_FILE";

/// Prefixes that only bhav uses: an unknown name with one of them is taken for a typing error.
const OWN_PREFIXES: [&str; 5] = ["BHAV_", "BROKERA_", "BROKERB_", "BROKER_A_", "BROKER_B_"];
/// A prefix that other programs use too: an unknown name with it is taken for a typing error only
/// if it is very similar to one of ours.
pub(super) const SHARED_PREFIX: &str = "JWT_";
const SHARED_LIKENESS_MIN: f64 = 0.8;

/// The flags given on the command line, by variable name.
pub type Flags = BTreeMap<&'static str, String>;

/// The environment variables, and the settings file, which they override. Taken once, so that tests
/// can provide their own.
#[derive(Debug, Default)]
pub struct Environment {
    own: BTreeMap<String, OsString>,
    file: EnvFile,
}

impl Environment {
    /// The environment of this process. Names that are not UTF-8 are left out, as no setting has
    /// one.
    pub fn of_process() -> Self {
        let named = |(name, value): (OsString, _)| Some((name.into_string().ok()?, value));
        Self { own: std::env::vars_os().filter_map(named).collect(), file: EnvFile::default() }
    }

    /// Adds the settings file that `BHAV_ENV_FILE` names, if it names one.
    ///
    /// # Errors
    /// All faults of the file.
    pub fn with_file(self) -> Result<Self, Vec<Fault>> {
        match self.path(env_file::NAME) {
            Some(path) => self.with_file_at(&path),
            None => Ok(self),
        }
    }

    /// Adds the settings file at `path`.
    ///
    /// # Errors
    /// All faults of the file.
    pub fn with_file_at(mut self, path: &Path) -> Result<Self, Vec<Fault>> {
        self.file = env_file::read(path)?;
        Ok(self)
    }

    #[cfg(test)]
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let own = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { own, file: EnvFile::default() }
    }

    /// The text of a variable; `None` if not set or empty, `Err` if it is not UTF-8.
    pub fn text(&self, name: &str) -> Option<Result<&str, NotText>> {
        match self.set(name) {
            Some(value) => Some(value.to_str().ok_or(NotText)),
            None => self.entry(name).map(|entry| Ok(entry.value.as_str())),
        }
    }

    /// The variable as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let from_file = || self.entry(name).map(|entry| PathBuf::from(entry.value.as_str()));
        self.set(name).map(PathBuf::from).or_else(from_file)
    }

    /// Where the value of a set variable comes from.
    pub fn origin(&self, name: &str) -> Origin {
        match (self.set(name), self.entry(name)) {
            (None, Some(entry)) => Origin::EnvFile(self.file.path.clone(), entry.line),
            _ => Origin::Environment,
        }
    }

    fn set(&self, name: &str) -> Option<&OsString> {
        self.own.get(name).filter(|value| !value.is_empty())
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.file.entries.get(name).filter(|entry| !entry.value.is_empty())
    }

    /// Names of the variables in the settings file.
    fn names_in_file(&self) -> impl Iterator<Item = &str> {
        self.file.entries.keys().map(String::as_str)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.own.keys().map(String::as_str)
    }
}

/// The value of a variable is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotText;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    Flag,
    Environment,
    /// A line of the file that `BHAV_ENV_FILE` names.
    EnvFile(PathBuf, usize),
    /// `$STATE_DIRECTORY`, which systemd sets.
    StateDirectory,
    /// The state directory of the package's unit, assumed by commands about an installed service.
    Unit,
    /// The file that `<NAME>_FILE` names.
    File(PathBuf),
    /// A file in `$CREDENTIALS_DIRECTORY`.
    Credential(PathBuf),
}

impl Origin {
    /// The kind of origin as text.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::EnvFile(..) => "settings file",
            Self::StateDirectory => "$STATE_DIRECTORY",
            Self::Unit => "the installed unit",
            Self::File(_) => "file",
            Self::Credential(_) => "credential",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) | Self::Credential(path) => {
                write!(f, "{} {}", self.kind(), path.display())
            }
            Self::EnvFile(path, line) => write!(f, "{} line {line}", path.display()),
            plain => f.write_str(plain.kind()),
        }
    }
}

/// Valid settings, the origin of each, and warnings for the operator.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// By variable name, including secrets; a name that is absent has its default.
    pub origins: BTreeMap<&'static str, Origin>,
    pub warnings: Vec<String>,
}

/// Reads all settings again, as at the start.
pub type Reread<'a> = dyn Fn() -> Result<Loaded, Vec<Fault>> + 'a;

/// Reads and checks all settings.
///
/// # Errors
/// All faults at once, never an empty list.
pub fn load(flags: &Flags, env: &Environment) -> Result<Loaded, Vec<Fault>> {
    let mut loaded =
        Loaded { config: Config::default(), origins: BTreeMap::new(), warnings: Vec::new() };
    let mut faults = Vec::new();
    for setting in SETTINGS {
        if let Err(fault) = read_setting(setting, flags, env, &mut loaded) {
            faults.push(fault);
        }
    }
    secrets::read_all(env, &mut loaded, &mut faults);
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
    (setting.set)(&mut loaded.config, text).map_err(|why| Fault {
        name: setting.name.into(),
        value: Some(text.into()),
        origin: Some(origin.to_string()),
        problem: why.problem,
        cure: format!("{} ({})", why.cure, setting.unit),
    })?;
    loaded.origins.insert(setting.name, origin);
    Ok(())
}

/// Faults for unknown variables, which are almost always typing errors. In the environment only
/// names that look like ours count, in the settings file all.
fn unknown_names(env: &Environment) -> Vec<Fault> {
    let ours = env.names().filter(|name| looks_like_ours(name));
    let unknown = |name: &&str| !is_known(name);
    let in_file = env.names_in_file().filter(|name| !env.own.contains_key(*name));
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
    SETTINGS.iter().any(|setting| setting.name == name)
        || (!name.starts_with("BHAV_") && {
            let bare = name.strip_suffix(FILE_SUFFIX).unwrap_or(name);
            SECRETS.iter().any(|secret| secret.name == bare)
        })
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
        let pairs = [("BHAV_LISTEN", "127.0.0.1:1"), ("BHAV_ENV_FILE", path.to_str().unwrap())];
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
    fn every_fault_is_reported_at_once() {
        let faults = load_env(&[
            ("BHAV_MAX_CONNECTIONS", "0"),
            ("BHAV_PUBLIC_URL", "ftp://x"),
            ("BHAV_LISTN", "127.0.0.1:1"),
            ("BHAV_HTTP_HEAD_BYTES_MAX", "131072"),
        ])
        .unwrap_err();
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let text = text.join("\n");
        for part in ["BHAV_MAX_CONNECTIONS=0", "ftp://x", "did you mean BHAV_LISTEN?", "HEAD_BYTES"]
        {
            assert!(text.contains(part), "{part} is missing from:\n{text}");
        }
        assert_eq!(faults.len(), 4, "{text}");
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
