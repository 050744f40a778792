//! Prints the settings in force, for `config show` and at a reload.

use std::fmt::Write as _;

use super::loaded::Loaded;
use super::origin::Origin;
use super::secrets::SECRETS;
use super::settings::SETTINGS;

/// The settings in force, one a line in the form of an environment file, secrets masked.
pub fn effective(loaded: &Loaded) -> String {
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
    use super::super::environment::{Environment, Flags};
    use super::super::load::load;
    use super::*;

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
