//! The integration tests, one binary: the repository's own rules, and the program as its users see
//! it.

mod layers;
mod settings;
mod source;
mod tidy;
