//! What the routes of the ledger refuse, and the words for it.

use crate::api::errors::too_early;
use crate::base::limiter::TooEarly;
use crate::http::Problem;
use crate::ledger::effort::{ACTIONS_OF_ONE_SECURITY_MAX, LOT_CHANGES_MAX, TooComplex};
use crate::ledger::file::FileError;
use crate::store::StoreError;

/// `Retry-After` where the lane is full: each file before takes a second or two.
const BUSY_RETRY_S: u64 = 5;

/// The lane is full, for a file.
pub(super) fn uploads_busy() -> Problem {
    let detail = "Too many files are being read. Nothing was changed.";
    Problem::unavailable("uploads_busy", detail, BUSY_RETRY_S)
}

/// The lane is full or slow, for a read.
pub(super) fn ledger_busy() -> Problem {
    Problem::unavailable("ledger_busy", "Too many ledgers are being computed.", BUSY_RETRY_S)
}

pub(super) fn too_many_imports(throttled: TooEarly) -> Problem {
    let detail = "You have sent too many files; the file was not read.";
    too_early("too_many_attempts", detail, throttled)
}

pub(super) fn media_type_not_supported() -> Problem {
    let detail = "Send the file itself, as text/csv, text/plain, text/tab-separated-values, \
                  application/vnd.ms-excel, application/zip, application/octet-stream or the type \
                  of an .xlsx.";
    Problem::new(415, "unsupported_media_type", detail)
}

/// A file that is not taken.
pub(super) fn not_taken(error: FileError) -> Problem {
    let told = capitalised(&error);
    match error {
        FileError::TooManyRows => Problem::new(413, "too_many_rows", told),
        FileError::Expands(_) => Problem::new(413, "file_expands", told),
        FileError::Encrypted => Problem::new(422, "file_encrypted", told),
        FileError::TooSlow => Problem::new(422, "file_too_slow", told),
        FileError::NotUnderstood { seen, .. } => {
            Problem::new(422, "file_not_understood", told).having_seen(seen)
        }
        FileError::Io(cause) => Problem::internal().because(cause),
    }
}

/// A sentence of an error's text.
fn capitalised(error: &FileError) -> String {
    let text = error.to_string();
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Refuses what would pass a limit of the ledger.
pub(super) fn full(error: StoreError) -> Problem {
    match error {
        StoreError::TooMany { what, limit } => {
            let detail = format!("You have as many {what} as you may have, which is {limit}.");
            Problem::new(409, "ledger_full", detail)
        }
        other => other.into(),
    }
}

/// A ledger that is not computed, because its corrections make too much work.
pub(super) fn ledger_too_complex(why: TooComplex) -> Problem {
    let detail = match why {
        TooComplex::ManyActions => format!(
            "Your corrections have more than {ACTIONS_OF_ONE_SECURITY_MAX} corporate actions of \
             one security. Delete some."
        ),
        TooComplex::ManyLots => {
            format!("Your corrections change lots more than {LOT_CHANGES_MAX} times. Delete some.")
        }
    };
    Problem::new(409, "ledger_too_complex", detail)
}

pub(super) fn account_differs() -> Problem {
    let detail = "The file is of another client of the broker than what this account has. Choose \
                  another account, or send force=true if it is the same demat account.";
    Problem::new(409, "account_differs", detail)
}

pub(super) fn import_not_found() -> Problem {
    Problem::new(404, "import_not_found", "You have no import of this id.")
}

pub(super) fn import_gone() -> Problem {
    let detail = "This import has expired, or was dropped or undone. Send the file again.";
    Problem::new(410, "import_gone", detail)
}

pub(super) fn correction_not_found() -> Problem {
    Problem::new(404, "correction_not_found", "You have no correction of this id.")
}

pub(super) fn conflict_not_found() -> Problem {
    Problem::new(404, "conflict_not_found", "Your trades have no conflict of this id.")
}

pub(super) fn too_many_rows(limit: usize) -> Problem {
    let detail = format!("More than {limit} trades fit. Narrow the dates with from and to.");
    Problem::new(409, "too_many_rows", detail)
}
