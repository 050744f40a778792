//! Settings of the dashboard.

/// Settings of the dashboard.
#[derive(Debug, Clone)]
pub struct WebSettings {
    /// Whether its pages are served.
    pub on: bool,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self { on: true }
    }
}
