//! The integration tests, one binary: the repository's own rules, and the program as its users see
//! it.

// `allow-unwrap-in-tests` does not reach the functions beside the tests.
#![allow(clippy::unwrap_used)]

mod faults;
mod layers;
mod settings;
mod source;
mod tidy;
