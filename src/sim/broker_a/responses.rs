//! Broker A's envelopes of success and error, and its form of a time.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::base::clock;
use crate::sim::server::message::{Answer, map};

/// A time as the broker writes it: of India, without a zone.
pub(crate) fn stamp(at: Timestamp) -> String {
    clock::zoned(at).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `{"status":"success","data":…}`.
pub(crate) fn success(data: Value) -> Answer {
    Answer::ok(map([("status", "success".into()), ("data", data)]))
}

/// `{"status":"error",…}`.
pub(crate) fn error(status: u16, error_type: &str, message: &str) -> Answer {
    let body = json!({
        "status": "error", "message": message, "data": null, "error_type": error_type,
    });
    Answer::rejected(status, body)
}
