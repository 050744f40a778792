//! What was given from outside: the flags, and the environment with the settings file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::env_file::{self, Entry, EnvFile};
use super::fault::Fault;
use super::origin::Origin;

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
    pub(super) fn names_in_file(&self) -> impl Iterator<Item = &str> {
        self.file.entries.keys().map(String::as_str)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.own.keys().map(String::as_str)
    }
}

/// The value of a variable is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotText;
