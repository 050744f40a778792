//! Error documents (RFC 9457), for violations of HTTP and for errors of handlers.

use std::borrow::Cow;

use serde::Serialize;

use crate::http::document::prepared::reason;
use crate::http::message::conditional::PreconditionFailed;
use crate::http::message::head_fault::HeadFault;

/// One field that failed validation.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FieldError {
    pub field: Cow<'static, str>,
    pub message: Cow<'static, str>,
}

/// An error response.
#[derive(Debug, Clone)]
pub struct Problem {
    pub status: u16,
    /// Stable code in snake case, which clients can switch on.
    pub code: &'static str,
    /// Text for a person. Contains no secrets and no internals.
    pub detail: Cow<'static, str>,
    pub(crate) errors: Vec<FieldError>,
    /// Of a file that is not understood. Boxed, since every result carries the place of it.
    pub(crate) seen: Option<Box<FirstRows>>,
    /// Further headers, such as `Allow` or `Retry-After`.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// For the log only; never sent.
    pub cause: Option<Box<str>>,
}

/// The first rows of a file, cut and cleaned.
#[derive(Debug, Clone)]
pub(crate) struct FirstRows(Vec<String>);

/// An error (RFC 9457). `code` is stable: switch on it. `detail` is for a person and may change.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Problem"))]
pub(crate) struct ProblemDocument<'a> {
    #[cfg_attr(test, schemars(extend("const" = "about:blank")))]
    r#type: &'a str,
    /// The status in words.
    title: &'a str,
    #[cfg_attr(test, schemars(extend("minimum" = 400, "maximum" = 599)))]
    status: u16,
    /// A stable word in snake case.
    #[cfg_attr(test, schemars(extend("pattern" = "^[a-z][a-z_]*$")))]
    code: &'a str,
    /// Safe to show.
    detail: &'a str,
    /// What is wrong with which field or parameter.
    #[serde(skip_serializing_if = "<[FieldError]>::is_empty")]
    #[cfg_attr(test, schemars(extend("minItems" = 1)))]
    errors: &'a [FieldError],
    /// The first rows of a file that is not understood, cut and cleaned.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    #[cfg_attr(test, schemars(extend("minItems" = 1)))]
    seen: &'a [String],
}

impl From<PreconditionFailed> for Problem {
    fn from(_: PreconditionFailed) -> Self {
        Self::precondition_failed()
    }
}

impl From<HeadFault> for Problem {
    fn from(fault: HeadFault) -> Self {
        let (status, code, detail) = fault.told();
        Self::new(status, code, detail)
    }
}

impl Problem {
    /// A problem without field errors or further headers.
    pub fn new(status: u16, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = detail.into();
        Self {
            status,
            code,
            detail,
            errors: Vec::new(),
            seen: None,
            headers: Vec::new(),
            cause: None,
        }
    }

    /// Adds the first rows of a file.
    #[must_use]
    pub(crate) fn having_seen(self, seen: Vec<String>) -> Self {
        Self {
            seen: Some(Box::new(FirstRows(seen))),
            ..self
        }
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds a cause for the log.
    #[must_use]
    pub(crate) fn because(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause = Some(cause.to_string().into());
        self
    }

    /// Adds a field that failed.
    #[must_use]
    pub(crate) fn field(
        mut self,
        field: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.errors.push(FieldError {
            field: field.into(),
            message: message.into(),
        });
        self
    }

    /// 503 with `Retry-After`.
    pub(crate) fn unavailable(
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
        retry_after_s: u64,
    ) -> Self {
        Self::new(503, code, detail).with("Retry-After", retry_after_s.to_string())
    }

    /// 500, for a bug; details are in the log only.
    pub(crate) fn internal() -> Self {
        Self::new(500, "internal_error", "The service failed; the log has the cause.")
    }

    /// 412: `If-Match` or `If-None-Match` does not hold.
    pub(crate) fn precondition_failed() -> Self {
        let detail =
            "What is there is not what If-Match or If-None-Match expects; nothing was done.";
        Self::new(412, "precondition_failed", detail)
    }

    /// The problem as a page.
    pub(super) fn write_page(&self, request_id: &str, out: &mut Vec<u8>) {
        let title = escaped(reason(self.status));
        let cookies = match self.code {
            "head_too_large" => {
                "<p>How to delete them: in Chrome and Edge by the sign before the address, Cookies \
                 and site data; in Firefox by the padlock, Clear cookies and site data; in Safari \
                 in the settings, Privacy.</p>\n"
            }
            _ => "",
        };
        let page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>{}</p>\n\
             {cookies}<p><small>{} {}, request {}</small></p>\n</main>\n</body>\n</html>\n",
            escaped(&self.detail),
            self.status,
            self.code,
            escaped(request_id)
        );
        out.extend_from_slice(page.as_bytes());
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let document = ProblemDocument {
            r#type: "about:blank",
            title: reason(self.status),
            status: self.status,
            code: self.code,
            detail: &self.detail,
            errors: &self.errors,
            seen: self.seen.as_ref().map_or(&[], |rows| &rows.0),
        };
        // Cannot fail: strings and numbers, written to a Vec.
        let _ = sonic_rs::to_writer(out, &document);
    }
}

/// The text as the content of an HTML element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
