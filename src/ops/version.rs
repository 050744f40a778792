//! What this build is, known without a build script.

/// The package version, as in `/api/health`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `release`, or `debug` where assertions are on (slower, never for service).
pub const PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// One line for `bhav version` and the first line of the log.
pub fn line() -> String {
    use std::env::consts::{ARCH, OS};
    format!("bhav {VERSION} ({PROFILE}, {ARCH}-{OS})")
}
