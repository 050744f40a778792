//! Settings of the listener for metrics and probes.

/// Where metrics and probes are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminListen {
    /// Nobody named an address: [`AdminListen::DEFAULT`], and nothing where that cannot be had, so
    /// that several instances can run on one machine.
    Default,
    /// `127.0.0.1:9464` or `unix:PATH`; the service does not start without it.
    At(String),
    Off,
}

impl AdminListen {
    /// The port by which exporters of OpenTelemetry are looked for.
    pub const DEFAULT: &'static str = "127.0.0.1:9464";
    /// In place of an address: there is no such listener.
    pub const OFF: &'static str = "off";

    /// The address, where there is to be one.
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
