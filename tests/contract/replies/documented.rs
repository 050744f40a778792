//! Every documented reply of a broker to a sync, and the error it becomes. Constant data, from
//! which the tests of the brokers' clients and the table in the documentation are made.

use super::BrokerErrorKind;

pub(crate) mod broker_a;
pub(crate) mod broker_b;

/// A documented reply of a broker, and its error here: a row of the table of broker replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentedReply {
    /// The broker's call, as in `POST /session/token`.
    pub call: &'static str,
    /// Its meaning, for readers.
    pub meaning: &'static str,
    pub http_status: u16,
    pub content_type: &'static str,
    pub body: &'static str,
    /// `None` for a success without rows.
    pub answer: Option<BrokerErrorKind>,
}

const JSON: &str = "application/json";
const HTML: &str = "text/html";

impl DocumentedReply {
    /// A JSON document; `answer` is `None` for a success.
    const fn json(
        call: &'static str,
        meaning: &'static str,
        http_status: u16,
        body: &'static str,
        answer: Option<BrokerErrorKind>,
    ) -> Self {
        Self {
            call,
            meaning,
            http_status,
            content_type: JSON,
            body,
            answer,
        }
    }

    /// An HTML page or an empty body instead of a document.
    const fn page(
        call: &'static str,
        meaning: &'static str,
        http_status: u16,
        body: &'static str,
        answer: BrokerErrorKind,
    ) -> Self {
        Self {
            call,
            meaning,
            http_status,
            content_type: HTML,
            body,
            answer: Some(answer),
        }
    }
}
