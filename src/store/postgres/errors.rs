//! What an error of the server means for the store.

use tokio_postgres::error::SqlState;

use crate::store::StoreError;
use crate::store::condition::State;

/// What to do about an error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The caller is told. The server is well.
    Told(StoreError),
    /// The server is not well.
    Shows(State),
    /// The server takes no more at the moment.
    Busy,
    /// The statement was ended for lack of time.
    Late,
    /// The transaction was ended and may be tried again.
    Again,
    /// The connection is lost. What was not committed is not written.
    Lost,
    /// An error of this statement alone.
    Statement,
}

pub(crate) fn meaning(error: &tokio_postgres::Error) -> Meaning {
    let Some(found) = error.as_db_error() else {
        // Not said by the server: the connection, or what came through it.
        return Meaning::Lost;
    };
    let code = found.code();
    match code.code() {
        "40001" | "40P01" => Meaning::Again,
        // The e-mail is the only unique column of users that is not a key.
        "23505" if found.table() == Some("users") => Meaning::Told(StoreError::EmailTaken),
        "23503" => Meaning::Told(StoreError::NoSuchUser),
        "57014" => Meaning::Late,
        "53300" | "55P03" => Meaning::Busy,
        "53100" => Meaning::Shows(State::Full),
        "25006" => Meaning::Shows(State::ReadOnly),
        "57P01" | "57P02" | "57P03" => Meaning::Lost,
        other if other.starts_with("08") => Meaning::Lost,
        // Refused passwords, roles and databases, which only an operator can set right.
        other if other.starts_with("28") || other.starts_with("3D") => {
            Meaning::Shows(State::Unavailable)
        }
        other if other.starts_with("XX") && *code != SqlState::INTERNAL_ERROR => {
            Meaning::Shows(State::Corrupt)
        }
        // A pooler has closed the server's connection, or found none.
        _ if found.severity() == "FATAL" => Meaning::Lost,
        _ => Meaning::Statement,
    }
}

/// The error for a person. Without the server's details, which repeat values of rows.
pub(crate) fn in_words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(found) => format!("{} ({})", found.message(), found.code().code()),
        None => {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(inner) = cause {
                text.push_str(&format!(": {inner}"));
                cause = inner.source();
            }
            if text.contains("UnknownIssuer") {
                text.push_str("; BHAV_STORE_CA_FILE names the authorities that are trusted");
            }
            text
        }
    }
}
