//! Error documents (RFC 9457), for this layer's own faults and for whatever a handler refuses.

use std::borrow::Cow;

use serde::Serialize;

use super::prepared::reason;

/// One field that failed validation.
#[derive(Debug, Clone, Serialize)]
pub struct FieldError {
    pub field: Cow<'static, str>,
    pub message: Cow<'static, str>,
}

/// An error as the client sees it.
#[derive(Debug, Clone)]
pub struct Problem {
    pub status: u16,
    /// Stable snake_case word that clients can switch on.
    pub code: &'static str,
    /// Safe to show: no secret, no internals.
    pub detail: Cow<'static, str>,
    pub errors: Vec<FieldError>,
    /// Further headers, such as `Allow` or `Retry-After`.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// For the log alone; never sent.
    pub cause: Option<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    r#type: &'a str,
    title: &'a str,
    status: u16,
    code: &'a str,
    detail: &'a str,
    #[serde(skip_serializing_if = "<[FieldError]>::is_empty")]
    errors: &'a [FieldError],
}

impl Problem {
    /// A problem without field errors or further headers.
    pub fn new(status: u16, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = detail.into();
        Self { status, code, detail, errors: Vec::new(), headers: Vec::new(), cause: None }
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds what the log should know.
    #[must_use]
    pub fn because(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// Adds a field that failed.
    #[must_use]
    pub fn field(
        mut self,
        field: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.errors.push(FieldError { field: field.into(), message: message.into() });
        self
    }

    /// 503 with `Retry-After`.
    pub fn unavailable(
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
        retry_after_s: u64,
    ) -> Self {
        Self::new(503, code, detail).with("Retry-After", retry_after_s.to_string())
    }

    /// A fault of our own, of which only the log says more.
    pub fn internal() -> Self {
        Self::new(500, "internal_error", "The service failed; the log has the cause.")
    }

    /// The stable code of a fault of the HTTP layer itself.
    pub(super) fn of_status(status: u16, detail: &'static str) -> Self {
        let code = match status {
            408 => "request_timeout",
            413 => "body_too_large",
            414 => "target_too_long",
            417 => "expectation_failed",
            421 => "misdirected_request",
            431 => "head_too_large",
            501 => "method_not_implemented",
            505 => "http_version_not_supported",
            _ => "malformed_request",
        };
        Self::new(status, code, detail)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let document = Document {
            r#type: "about:blank",
            title: reason(self.status),
            status: self.status,
            code: self.code,
            detail: &self.detail,
            errors: &self.errors,
        };
        // Strings and numbers always serialise; a Vec always takes them.
        let _ = sonic_rs::to_writer(out, &document);
    }
}
