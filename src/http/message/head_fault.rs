//! What is wrong with a request head, and the refusal that says it.

/// The reason for refusing a head. The connection is closed after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadFault {
    Malformed,
    BareLineFeed,
    BadTarget,
    BadHost,
    BadLength,
    BadTransferEncoding,
    UnknownCoding,
    TargetTooLong,
    TooManyHeaders,
    HeadTooLarge,
    UnknownMethod,
    BadExpectation,
    Version,
}

impl HeadFault {
    /// Status, error code and detail of the response.
    pub(crate) fn told(self) -> (u16, &'static str, &'static str) {
        let malformed = |detail| (400, "malformed_request", detail);
        match self {
            Self::Malformed => {
                malformed("The request line or a header line is not valid HTTP/1.1.")
            }
            Self::BareLineFeed => malformed(
                "A line of the request ends in a line feed alone; lines of HTTP/1.1 end in CR LF.",
            ),
            Self::BadTarget => malformed("The request target is not a path or an http URI."),
            Self::BadHost => {
                malformed("HTTP/1.1 needs exactly one Host header, with a host and at most a port.")
            }
            Self::BadLength => malformed("Content-Length is not one plain decimal number."),
            Self::BadTransferEncoding => malformed(
                "Transfer-Encoding must end in 'chunked', in HTTP/1.1, without Content-Length.",
            ),
            Self::TargetTooLong => {
                (414, "target_too_long", "The request target is longer than 8 KiB.")
            }
            Self::BadExpectation => {
                (417, "expectation_failed", "The only supported expectation is 100-continue.")
            }
            Self::TooManyHeaders => {
                (431, "head_too_large", "The request has too many header lines.")
            }
            Self::HeadTooLarge => (431, "head_too_large", "The request head is too large."),
            Self::UnknownMethod => {
                (501, "method_not_implemented", "This method is not implemented.")
            }
            Self::UnknownCoding => (
                501,
                "transfer_coding_not_implemented",
                "The only transfer coding that is implemented is 'chunked'.",
            ),
            Self::Version => (505, "http_version_not_supported", "Only HTTP/1 is spoken here."),
        }
    }
}
