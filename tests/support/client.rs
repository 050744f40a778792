//! The tests' HTTP client: ordinary requests, or any bytes that a test sends, over TCP or a Unix
//! socket, with a deadline on every read and write. On an unexpected answer it prints both sides of
//! the conversation.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::wait::{PATIENCE_MS, until};
use crate::contract::openapi::expect_listed;

const PATIENCE: Duration = Duration::from_millis(PATIENCE_MS);

/// One connection to a server.
pub struct Client {
    pub socket: Socket,
    sent: Vec<u8>,
    got: Vec<u8>,
    /// Length of the part of `got` that belongs to answers already taken.
    taken: usize,
}

/// An answer that did not come.
#[derive(Debug, Clone, Copy)]
pub struct Lost {
    pub kind: ErrorKind,
    /// Whether a part of it had arrived.
    pub begun: bool,
}

/// One response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub version: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Checks the status.
    #[track_caller]
    pub fn with_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}{}", self.head(), self.decoded());
        self
    }

    /// The value of a header that occurs at most once; for `set-cookie`, the first.
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let values = self.headers(name);
        let once = values.len() < 2 || name.eq_ignore_ascii_case("set-cookie");
        assert!(once, "{name} twice in {:?}", self.headers);
        values.first().copied()
    }

    /// The values of all headers of this name, in any case.
    pub fn headers(&self, name: &str) -> Vec<&str> {
        let named = self
            .headers
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// Status line and headers, as lines.
    pub fn head(&self) -> String {
        let lines = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        format!("{} {}\r\n{}", self.version, self.status, lines.collect::<String>())
    }

    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The text, whatever its content coding.
    #[track_caller]
    pub fn decoded(&self) -> String {
        let mut text = Vec::new();
        match self.header("content-encoding") {
            None => text.clone_from(&self.body),
            Some("br") => brotli::BrotliDecompress(&mut &self.body[..], &mut text).unwrap(),
            Some("gzip") => {
                _ = flate2::read::GzDecoder::new(&self.body[..])
                    .read_to_end(&mut text)
                    .unwrap();
            }
            Some(other) => panic!("coded as {other}"),
        }
        String::from_utf8(text).unwrap()
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        sonic_rs::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {}{}", self.head(), String::from_utf8_lossy(&self.body))
        })
    }

    /// A string of the JSON body.
    #[track_caller]
    pub fn field(&self, name: &str) -> String {
        let json = self.json();
        json.get(name)
            .as_str()
            .unwrap_or_else(|| panic!("{name} missing in {json:?}"))
            .to_owned()
    }

    /// Whether the server announced that it closes.
    pub fn says_close(&self) -> bool {
        self.header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The symbols of its quotes, in order.
    pub fn quoted(&self) -> Vec<String> {
        let json = self.json();
        let quotes = json["quotes"].as_array().unwrap();
        quotes
            .iter()
            .map(|quote| quote["symbol"].as_str().unwrap().to_owned())
            .collect()
    }

    pub fn unavailable(&self) -> Vec<String> {
        let json = self.json();
        let symbols = json["unavailable"].as_array().unwrap();
        symbols
            .iter()
            .map(|symbol| symbol.as_str().unwrap().to_owned())
            .collect()
    }

    /// Checks that it is a problem document with this status and code.
    #[track_caller]
    pub fn expect_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}{}", self.head(), self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert!(self.header("x-request-id").is_some_and(|id| !id.is_empty()));
        let json = self.json();
        assert_eq!(json["type"], "about:blank");
        assert_eq!(json["status"].as_u64(), Some(u64::from(status)));
        assert_eq!(json["code"], code);
        assert!(json["title"].is_str() && json["detail"].is_str());
        json
    }
}

impl Client {
    /// Connects to `127.0.0.1:port` or `unix:/path`.
    pub fn connect(address: &str) -> Self {
        Self::try_connect(address).unwrap_or_else(|error| panic!("connect {address}: {error}"))
    }

    /// Same as [`connect`](Self::connect), for tests of a failure.
    pub fn try_connect(address: &str) -> io::Result<Self> {
        let client = Self::unconnected(address)?;
        client.knock(address)?;
        Ok(client)
    }

    /// A socket that [`knock`](Self::knock) will connect.
    pub fn unconnected(address: &str) -> io::Result<Self> {
        let (domain, _) = target(address)?;
        let socket = Socket::new(domain, Type::STREAM, None)?;
        if domain != Domain::UNIX {
            // Fragments have to arrive as fragments.
            socket.set_tcp_nodelay(true)?;
        }
        Self::over(socket)
    }

    /// A client over an existing socket.
    pub fn over(socket: Socket) -> io::Result<Self> {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            socket,
            sent: Vec::new(),
            got: Vec::new(),
            taken: 0,
        })
    }

    /// Connects. Uses no further descriptor.
    pub fn knock(&self, address: &str) -> io::Result<()> {
        match target(address)? {
            (Domain::UNIX, path) => self.socket.connect(&path),
            (_, address) => self.socket.connect_timeout(&address, PATIENCE),
        }
    }

    pub fn get(&mut self, target: &str) -> Answer {
        self.request("GET", target, "")
    }

    /// Sends a request; `headers` are whole lines.
    #[track_caller]
    pub fn request(&mut self, method: &str, target: &str, headers: &str) -> Answer {
        self.write(format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"));
        let answer = if method == "HEAD" {
            self.head()
        } else {
            self.answer()
        };
        expect_listed(method, target, answer.status, &answer.body);
        answer
    }

    /// Registers or logs in. Passwords are hashed at the lowest priority. On a busy machine that
    /// may take longer than a request waits, and the answer asks to try again.
    #[track_caller]
    pub fn account(&mut self, action: &str, email: &str, password: &str) -> Answer {
        let body = format!(r#"{{"email":"{email}","password":"{password}"}}"#);
        until("the hash of a password", || {
            let answer = self.send_json("POST", &format!("/api/auth/{action}"), "", &body);
            (!answer.text().contains("login_busy")).then_some(answer)
        })
    }

    /// Sends a request with a JSON body; `headers` are whole lines.
    #[track_caller]
    pub fn send_json(&mut self, method: &str, target: &str, headers: &str, body: &str) -> Answer {
        let length = body.len();
        let answer = self.ask(format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        ));
        expect_listed(method, target, answer.status, &answer.body);
        answer
    }

    /// Sends a file of trades.
    #[track_caller]
    pub fn send_file(&mut self, target: &str, headers: &str, file: &[u8]) -> Answer {
        let length = file.len();
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        // A server that refuses the head may close while the client still sends.
        self.try_write(&[head.as_bytes(), file].concat()).ok();
        let answer = self.answer();
        expect_listed("POST", target, answer.status, &answer.body);
        answer
    }

    /// Sends all of `bytes`.
    #[track_caller]
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        if let Err(error) = self.try_write(bytes.as_ref()) {
            self.fail(&format!("cannot send: {error}"));
        }
        self
    }

    /// Same as [`write`](Self::write), to a server that may have closed.
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent.extend_from_slice(bytes);
        self.socket.write_all(bytes)
    }

    /// Ends sending: shuts the socket down for writing.
    pub fn finish(&mut self) -> &mut Self {
        self.socket.shutdown(Shutdown::Write).unwrap();
        self
    }

    /// Sends a request and takes its answer.
    #[track_caller]
    pub fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Answer {
        self.write(bytes);
        self.answer()
    }

    /// The next answer, whose length is in its Content-Length.
    #[track_caller]
    pub fn answer(&mut self) -> Answer {
        self.try_answer()
            .unwrap_or_else(|lost| self.fail(&format!("no answer: {lost:?}")))
    }

    /// Same as [`answer`](Self::answer), from a server that may be gone.
    #[track_caller]
    pub fn try_answer(&mut self) -> Result<Answer, Lost> {
        let mut answer = self.try_head()?;
        let length = match answer.header("content-length") {
            _ if answer.status < 200 || matches!(answer.status, 204 | 304) => 0,
            Some(length) => length
                .parse()
                .unwrap_or_else(|_| self.fail("Content-Length")),
            None => self.fail("no Content-Length"),
        };
        while self.pending() < length {
            self.arrive().map_err(|lost| Lost {
                begun: true,
                ..lost
            })?;
        }
        answer.body = self.got[self.taken..self.taken + length].to_vec();
        self.taken += length;
        Ok(answer)
    }

    /// The next answer to a HEAD request: no body follows.
    #[track_caller]
    pub fn head(&mut self) -> Answer {
        self.try_head()
            .unwrap_or_else(|lost| self.fail(&format!("no head: {lost:?}")))
    }

    #[track_caller]
    fn try_head(&mut self) -> Result<Answer, Lost> {
        let end = loop {
            let open = &self.got[self.taken..];
            if let Some(at) = memchr::memmem::find(open, b"\r\n\r\n") {
                break self.taken + at + 4;
            }
            self.arrive()?;
        };
        let bytes = self.got[self.taken..end].to_vec();
        self.taken = end;
        Ok(split(&bytes).unwrap_or_else(|| self.fail("not a response head")))
    }

    /// Expects that the server closes without sending anything more.
    #[track_caller]
    pub fn closes(&mut self) {
        while self.more() {}
        if self.got.len() > self.taken {
            self.fail("bytes that nobody asked for");
        }
    }

    /// Takes every answer until the server closes.
    #[track_caller]
    pub fn statuses_to_the_end(&mut self) -> Vec<u16> {
        while self.more() {}
        let mut statuses = Vec::new();
        while self.pending() > 0 {
            statuses.push(self.answer().status);
        }
        statuses
    }

    /// Bytes that have arrived and belong to no answer taken so far.
    pub fn pending(&self) -> usize {
        self.got.len() - self.taken
    }

    /// The bytes that have arrived and were not taken yet.
    pub fn take_pending(&mut self) -> Vec<u8> {
        let pending = self.got.split_off(self.taken);
        self.taken = self.got.len();
        pending
    }

    /// Everything that arrives until the end or the deadline. A reset is an end too.
    pub fn rest(&mut self) -> String {
        while self.receive().is_ok_and(|count| count > 0) {}
        let rest = String::from_utf8_lossy(&self.got[self.taken..]).into_owned();
        self.taken = self.got.len();
        rest
    }

    /// Waits for at least one more byte; false at the end of the stream, which a reset is too.
    #[track_caller]
    pub fn more(&mut self) -> bool {
        match self.receive() {
            Ok(count) => count > 0,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => self.fail(&format!("nothing arrives: {error}")),
        }
    }

    /// Waits for at least one more byte of an answer.
    fn arrive(&mut self) -> Result<(), Lost> {
        let begun = self.pending() > 0;
        match self.receive() {
            Ok(0) => Err(Lost {
                kind: ErrorKind::UnexpectedEof,
                begun,
            }),
            Ok(_) => Ok(()),
            Err(error) => Err(Lost {
                kind: error.kind(),
                begun,
            }),
        }
    }

    fn receive(&mut self) -> io::Result<usize> {
        let mut room = [0u8; 16 * 1024];
        loop {
            match (&self.socket).read(&mut room) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => {
                    let count = outcome?;
                    self.got.extend_from_slice(&room[..count]);
                    return Ok(count);
                }
            }
        }
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        let tail = |bytes: &[u8]| {
            let from = bytes.len().saturating_sub(2_000);
            String::from_utf8_lossy(&bytes[from..]).into_owned()
        };
        panic!(
            "{what}\n--- sent ({} bytes)\n{}\n--- got ({} bytes, {} taken)\n{}\n---",
            self.sent.len(),
            tail(&self.sent),
            self.got.len(),
            self.taken,
            tail(&self.got),
        );
    }
}

fn target(address: &str) -> io::Result<(Domain, SockAddr)> {
    Ok(match address.strip_prefix("unix:") {
        Some(path) => (Domain::UNIX, SockAddr::unix(path)?),
        None => {
            let address: SocketAddr = address.parse().unwrap();
            (Domain::for_address(address), address.into())
        }
    })
}

fn split(bytes: &[u8]) -> Option<Answer> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.strip_suffix("\r\n\r\n")?.split("\r\n");
    let mut status_line = lines.next()?.splitn(3, ' ');
    let version = status_line.next()?.to_owned();
    let status = status_line.next()?.parse().ok()?;
    let headers = lines
        .map(|line| {
            let (name, value) = line.split_once(": ")?;
            (!line.contains(['\r', '\n'])).then(|| (name.to_owned(), value.to_owned()))
        })
        .collect::<Option<Vec<_>>>()?;
    Some(Answer {
        status,
        version,
        headers,
        body: Vec::new(),
    })
}

/// The header line that carries a token.
pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// The names of an object's members, in order.
pub fn members(object: &Value) -> Vec<String> {
    object
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, _)| name.to_owned())
        .collect()
}
