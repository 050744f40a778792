//! A complete response, made ahead of time.
//!
//! Publishers on OS threads build these; the edge copies them out. No allocation, formatting or
//! compression happens when one is sent.

/// Status line, headers and body as the client gets them, but for `Date`, which is put in when they
/// are sent.
#[derive(Debug, Clone)]
pub struct Prepared {
    status: u16,
    bytes: Box<[u8]>,
    /// Where the headers begin: after the status line.
    status_line_bytes: usize,
    /// Where the body begins: after the empty line.
    head_bytes: usize,
}

impl Prepared {
    /// Builds the response. `headers` are written in order; `Content-Length` is added except to a
    /// 304, for which the length of the body it stands for is not sent (RFC 9110 8.6 leaves it
    /// optional).
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

    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// `HTTP/1.1 200 OK\r\n`.
    pub fn status_line(&self) -> &[u8] {
        &self.bytes[..self.status_line_bytes]
    }

    /// Headers with the closing empty line.
    pub fn headers(&self) -> &[u8] {
        &self.bytes[self.status_line_bytes..self.head_bytes]
    }

    /// What follows the status line.
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

/// The reason phrase of every status the product sends.
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
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
