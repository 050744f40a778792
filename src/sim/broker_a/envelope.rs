//! The form of broker A's answers, and the hexadecimal of its checksums.

use std::fmt::Write;

use crate::sim::server::answer::Answer;
use crate::sim::server::json::{Json, map};

/// `{"status":"success","data":…}`.
pub(crate) fn success(data: Json) -> Answer {
    Answer::ok(map([("status", "success".into()), ("data", data)]))
}

/// `{"status":"error",…}`.
pub(crate) fn error(status: u16, error_type: &str, message: &str) -> Answer {
    let body = map([
        ("status", "error".into()),
        ("message", message.into()),
        ("data", Json::Null),
        ("error_type", error_type.into()),
    ]);
    Answer::rejected(status, body)
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}"); // writing to a String cannot fail
        out
    })
}
