//! Settings of the operator's listener.

/// Address for metrics and probes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminListen {
    /// Not set: [`AdminListen::DEFAULT`] if it is free, else no listener, so that several instances
    /// can run on one machine.
    Default,
    /// `ADDRESS:PORT` or `unix:PATH`. The service refuses to start if it cannot listen there.
    At(String),
    Off,
}

impl AdminListen {
    /// The default address. 9464 is the usual port of OpenTelemetry's Prometheus exporters.
    pub const DEFAULT: &'static str = "127.0.0.1:9464";
    /// Given in place of an address: no listener.
    pub const OFF: &'static str = "off";

    /// The address to listen at; `None` if switched off.
    pub fn address(&self) -> Option<&str> {
        match self {
            Self::Default => Some(Self::DEFAULT),
            Self::At(address) => Some(address),
            Self::Off => None,
        }
    }
}

impl From<&str> for AdminListen {
    fn from(text: &str) -> Self {
        match text {
            Self::OFF => Self::Off,
            address => Self::At(address.to_owned()),
        }
    }
}

/// Settings of the operator's listener.
#[derive(Debug, Clone)]
pub struct AdminSettings {
    pub listen: AdminListen,
}

impl Default for AdminSettings {
    fn default() -> Self {
        Self { listen: AdminListen::Default }
    }
}
