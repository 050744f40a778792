//! Version and profile of this build.

/// The package version, as in `/api/health`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `release`, or `debug` for a build with assertions, which is too slow for production.
pub const PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// One line for `bhav version` and the first line of the log.
pub fn line() -> String {
    use std::env::consts::{ARCH, OS};
    format!("bhav {VERSION} ({PROFILE}, {ARCH}-{OS})")
}
