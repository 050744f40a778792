//! What settings say by one of a few words. Constant; any thread.

/// One line an event, in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Logfmt,
    Json,
}

/// Who may make an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// Whoever reaches the service.
    Open,
    /// Nobody.
    Closed,
}

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
