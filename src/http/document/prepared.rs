//! A complete response, made ahead of time.
//!
//! OS threads make them; the edge copies them into its output. Sending one does not allocate,
//! format or compress.

/// Keeps browsers from taking a body for another type than it says. In every response with a body.
pub(crate) const NO_SNIFFING: &[u8] = b"X-Content-Type-Options: nosniff\r\n";

/// Status line, headers and body as the client gets them, except `Date`, which is added on sending.
#[derive(Debug, Clone)]
pub struct Prepared {
    status: u16,
    bytes: Box<[u8]>,
    /// Length of the status line, after which the headers begin.
    status_line_bytes: usize,
    /// Length of the head including its empty line, after which the body begins.
    head_bytes: usize,
}

impl Prepared {
    /// Makes the response. `headers` are written in order, then `Content-Length`. A 304 gets
    /// neither a body nor `Content-Length`, which RFC 9110 8.6 leaves optional.
    pub fn new(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256 + body.len());
        bytes.extend_from_slice(b"HTTP/1.1 ");
        bytes.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(reason(status).as_bytes());
        bytes.extend_from_slice(b"\r\n");
        let status_line_bytes = bytes.len();
        for (name, value) in headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        if status != 304 {
            bytes.extend_from_slice(NO_SNIFFING);
            bytes.extend_from_slice(b"Content-Length: ");
            bytes.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        let head_bytes = bytes.len();
        if status != 304 {
            bytes.extend_from_slice(body);
        }
        Self { status, bytes: bytes.into_boxed_slice(), status_line_bytes, head_bytes }
    }

    pub fn status(&self) -> u16 {
        self.status
    }

    /// `HTTP/1.1 200 OK\r\n`.
    pub fn status_line(&self) -> &[u8] {
        &self.bytes[..self.status_line_bytes]
    }

    /// The headers, including the empty line at their end.
    pub fn headers(&self) -> &[u8] {
        &self.bytes[self.status_line_bytes..self.head_bytes]
    }

    /// Everything after the status line.
    pub fn headers_and_body(&self) -> &[u8] {
        &self.bytes[self.status_line_bytes..]
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.head_bytes..]
    }

    /// Everything.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The reason phrase of each status that the service sends.
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        303 => "See Other",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Unknown",
    }
}
