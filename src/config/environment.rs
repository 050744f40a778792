//! Input from outside: the flags, and the environment with the settings file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::config::env_file;
use crate::config::env_file::{Entry, EnvFile};
use crate::config::fault::{Fault, Origin};
use crate::config::outside;
use crate::config::outside::Kind;

/// The flags given on the command line, by variable name.
pub(crate) type Flags = BTreeMap<&'static str, String>;

/// The environment variables and the settings file, which they override. Taken once, so that tests
/// can provide their own.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    own: BTreeMap<String, OsString>,
    file: EnvFile,
}

impl Environment {
    /// The environment of this process. Names that are not UTF-8 are left out, since no setting has
    /// one.
    pub(crate) fn of_process() -> Self {
        let named = |(name, value): (OsString, _)| Some((name.into_string().ok()?, value));
        Self {
            own: std::env::vars_os().filter_map(named).collect(),
            file: EnvFile::default(),
        }
    }

    /// Adds the settings file that `BHAV_ENV_FILE` names, if it names one.
    ///
    /// # Errors
    /// All faults of the file.
    pub(crate) fn with_file(self) -> Result<Self, Vec<Fault>> {
        match self.path(env_file::NAME) {
            Some(path) => self.with_file_at(&path),
            None => Ok(self),
        }
    }

    /// Adds the settings file at `path`.
    ///
    /// # Errors
    /// All faults of the file.
    pub(crate) fn with_file_at(mut self, path: &Path) -> Result<Self, Vec<Fault>> {
        self.file = env_file::read(path)?;
        Ok(self)
    }

    #[cfg(test)]
    pub(crate) fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let own = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Self {
            own,
            file: EnvFile::default(),
        }
    }

    /// The text of a variable; `None` if not set or empty, `Err` if it is not UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<Result<&str, NotText>> {
        match self.set(name) {
            Some(value) => Some(value.to_str().ok_or(NotText)),
            None => self.entry(name).map(|entry| Ok(entry.value.as_str())),
        }
    }

    /// The variable as a path, without what surrounds it.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        match self.text(name)? {
            Ok(text) => Some(outside::bare(text, Kind::Setting).text)
                .filter(|text| !text.is_empty())
                .map(PathBuf::from),
            Err(NotText) => self.set(name).map(PathBuf::from),
        }
    }

    /// Origin of the value of a set variable.
    pub(crate) fn origin(&self, name: &str) -> Origin {
        match (self.set(name), self.entry(name)) {
            (None, Some(entry)) => Origin::EnvFile(self.file.path.clone(), entry.line),
            _ => Origin::Environment,
        }
    }

    /// Whether the variable is there, even with an empty value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.own.contains_key(name) || self.file.entries.contains_key(name)
    }

    fn set(&self, name: &str) -> Option<&OsString> {
        self.own.get(name).filter(|value| !value.is_empty())
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.file
            .entries
            .get(name)
            .filter(|entry| !entry.value.is_empty())
    }

    /// Names of the variables in the settings file.
    pub(super) fn names_in_file(&self) -> impl Iterator<Item = &str> {
        self.file.entries.keys().map(String::as_str)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.own.keys().map(String::as_str)
    }
}

/// The value of a variable is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotText;
