//! Log lines about refused requests. Runs on the edge; a flood of them is left out.

use crate::api::state::State;
use crate::auth::PREFIX;
use crate::http::{Problem, Request};

/// Bytes of a path that a log line shows. The longest route has a third of this.
pub(super) const LOGGED_PATH_BYTES_MAX: usize = 160;

/// Paths to which brokers' logins send a browser, with a code in the query or the body.
pub(super) const PATHS_OF_CODES: &[&[u8]] = &[b"/return/a", b"/return/b"];

/// Logs a refusal. In a flood of them the line is left out.
pub(super) fn log_refusal(
    state: &State,
    request: &Request<'_>,
    request_id: &str,
    problem: &Problem,
) {
    let status = problem.status;
    let code = problem.code;
    if !state
        .refusal_lines
        .admit(status, code, state.clock.monotonic_ms())
    {
        return;
    }
    let method = request.method().as_str();
    let path = shown(request.path(), request.normal_path().as_deref());
    let cause = problem.cause.as_deref();
    if status >= 500 {
        tracing::warn!(request_id, method, path, status, code, cause, "request failed");
    } else {
        tracing::info!(request_id, method, path, status, code, cause, "request refused");
    }
}

/// The path for the log; `normal` is its normal form, if that differs. Anything after a path to
/// which brokers send a browser is left out, because it may be a one-time code.
fn shown(path: &[u8], normal: Option<&[u8]>) -> String {
    if !PATHS_OF_CODES.contains(&path) {
        let lower = normal.unwrap_or(path).to_ascii_lowercase();
        if memchr::memmem::find(&lower, b"return").is_some() {
            return format!("/return... ({} bytes)", path.len());
        }
    }
    // An API key that somebody has put there.
    if memchr::memmem::find(normal.unwrap_or(path), PREFIX).is_some() {
        return format!("/... ({} bytes)", path.len());
    }
    match path.split_at_checked(LOGGED_PATH_BYTES_MAX) {
        Some((start, rest)) if !rest.is_empty() => {
            format!("{}... ({} bytes)", String::from_utf8_lossy(start), path.len())
        }
        _ => String::from_utf8_lossy(path).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_long_path_is_truncated_in_the_log() {
        let shown = |path: &[u8]| shown(path, None);
        assert_eq!(shown(b"/api/journal/7"), "/api/journal/7");
        let path = [b"/".as_slice(), &[0xC3, 0xA4].repeat(4_000)].concat();
        let shown = shown(&path);
        assert!(shown.len() < 200 && shown.ends_with("... (8001 bytes)"), "{shown}");
    }
}
