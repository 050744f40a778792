//! (what this file is)

use crate::config::words::AdminListen;

/// The operator's own listener: metrics and probes.
#[derive(Debug, Clone)]
pub struct AdminSettings {
    pub listen: AdminListen,
}

impl Default for AdminSettings {
    fn default() -> Self {
        Self { listen: AdminListen::Default }
    }
}
