//! Placeholder of the first build.
