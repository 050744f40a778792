//! Reads what it can from a head that is incomplete or malformed, for the response that refuses it.
//! Pure.

use super::{Head, Span, only};
use crate::http::message::request::Method;

impl Head {
    /// Sets what a refusal depends on: the method, and `Origin` and `X-Request-Id` from the header
    /// lines that are complete.
    pub(crate) fn glimpse(&mut self, window: &[u8]) {
        (self.method, self.origin, self.request_id) = (Method::default(), None, None);
        let start = window.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
        let begun = &window[start.unwrap_or(window.len())..];
        let token = begun.split(|byte| *byte == b' ').next().unwrap_or_default();
        self.method = Method::parse(token).unwrap_or_default();
        // The text after the last line end may be incomplete.
        let whole = memchr::memrchr(b'\n', begun).map_or(&begun[..0], |end| &begun[..end]);
        for line in whole.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = memchr::memchr(b':', line) else {
                if line.trim_ascii().is_empty() {
                    return;
                }
                continue;
            };
            let value = Span::within(window, line[colon + 1..].trim_ascii());
            match &line[..colon] {
                name if name.eq_ignore_ascii_case(b"origin") => {
                    self.origin = Some(only(self.origin, value));
                }
                name if name.eq_ignore_ascii_case(b"x-request-id") => self.request_id = Some(value),
                _ => {}
            }
        }
    }
}
