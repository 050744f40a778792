//! The state of the server's shared tokens.

use serde::Serialize;

use super::values::Instant;

/// State of the shared broker A token.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BrokerAStatus {
    /// Whether a token was ever set.
    pub initialized: bool,
    /// Whether the token is valid by the broker's rule; false as soon as the broker refuses it.
    pub valid: bool,
    pub token_type: &'static str,
    /// Absent if none was ever set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_at: Option<Instant>,
    /// Absent if none was ever set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
}

/// State of the shared broker B session.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BrokerBStatus {
    /// Whether a token was ever set.
    pub initialized: bool,
    /// Whether the token is valid by the broker's rule; false as soon as the broker refuses it.
    pub valid: bool,
    /// Absent if none was ever set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_at: Option<Instant>,
    /// Absent if none was ever set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
}
