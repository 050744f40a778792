//! Why a load test cannot go on.

use std::io;

use thiserror::Error;

/// An error ends the run: half a table would be read as a whole one.
#[derive(Debug, Error)]
pub enum Error {
    /// A file or system call failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A program that was built or looked for is not there, or failed.
    #[error("{0}")]
    Program(String),
    /// A server ended, or did not serve in time.
    #[error("{0} does not serve; see its log in the work folder")]
    NotServing(String),
    /// A request of the driver itself failed.
    #[error("{url}: {source}")]
    Http {
        /// Where to.
        url: String,
        /// The cause.
        source: Box<ureq::Error>,
    },
    /// Output of the generator or the system that makes no sense.
    #[error("unexpected: {0}")]
    Unexpected(&'static str),
    /// Figures that must not be published.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// For `map_err`: wraps an I/O error with what was being done.
    pub fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
