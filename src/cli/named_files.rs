//! Checks the files that settings name by reading them as the service does, so that their faults
//! are reported together with those of the settings. Main thread of a command.

use std::path::Path;

use crate::brokers::broker_b::master;
use crate::config::environment::{Environment, Flags};
use crate::config::fault::Fault;
use crate::market::{IndexList, MarketCalendar, Universe};

type Reader = fn(&Path) -> Result<(), String>;

/// Each setting that names a file, with the function that reads the file.
const FILES: [(&str, Reader); 4] = [
    ("BHAV_CALENDAR_FILE", |path| said(MarketCalendar::load(Some(path)))),
    ("BHAV_INDICES_FILE", |path| said(IndexList::load(Some(path)))),
    ("BHAV_UNIVERSE_FILE", |path| said(Universe::load(Some(path)))),
    ("BHAV_BROKERB_MASTER_FILE", |path| said(master::load(path))),
];

/// Faults in the contents of the files. Settings with a fault in `known` are skipped.
pub fn faults(flags: &Flags, env: &Environment, known: &[Fault]) -> Vec<Fault> {
    let mut found = Vec::new();
    for (name, read) in FILES {
        let (path, origin) = match (flags.get(name), env.path(name)) {
            (Some(path), _) => (path.into(), "flag".to_owned()),
            (None, Some(path)) => (path, env.origin(name).to_string()),
            (None, None) => continue,
        };
        if known.iter().any(|fault| fault.name == name) {
            continue;
        }
        found.extend(read(&path).err().map(|problem| Fault {
            name: name.to_owned(),
            value: Some(path.display().to_string()),
            origin: Some(origin),
            problem: format!("cannot be used: {problem}"),
            cure: "correct the file, or unset the setting to do without".to_owned(),
        }));
    }
    found
}

fn said<T, E: std::fmt::Display>(read: Result<T, E>) -> Result<(), String> {
    read.map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::SETTINGS;

    #[test]
    fn every_name_is_a_setting_and_what_is_known_is_not_told_twice() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "root:x:0:0:root:/home:/bin/sh\n").unwrap();
        let path = file.path().to_str().unwrap();
        let env = Environment::from_pairs(FILES.map(|(name, _)| (name, path)));
        let told = faults(&Flags::new(), &env, &[]);
        let names: Vec<&str> = told.iter().map(|fault| fault.name.as_str()).collect();
        assert_eq!(names, FILES.map(|(name, _)| name));
        for (name, _) in FILES {
            assert!(SETTINGS.iter().any(|setting| setting.name == name), "{name}");
        }
        assert!(faults(&Flags::new(), &env, &told).is_empty());
        assert!(faults(&Flags::new(), &Environment::default(), &[]).is_empty());
    }
}
