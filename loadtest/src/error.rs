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
    /// A program ended, or did not get ready in time.
    #[error("{0} does not serve; its log is in the work folder")]
    NotServing(String),
    /// A request of the driver itself failed.
    #[error("{url}: {source}")]
    Http {
        /// Where to.
        url: String,
        /// The cause.
        source: Box<ureq::Error>,
    },
    /// A program, an answer or a figure is not as it must be.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// For `map_err`: wraps an I/O error with what was being done.
    pub fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }

    /// Something that must not be published or worked with.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(what.into())
    }
}
