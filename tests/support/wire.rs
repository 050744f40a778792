//! A raw HTTP client: it sends the bytes it is told to and splits what comes back, with a deadline
//! on every read. When something is not as expected it prints both sides of the conversation.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use sonic_rs::{JsonValueTrait, Value};

use super::wait::PATIENCE_MS;

/// One connection to the server under test.
pub struct Wire {
    pub socket: Socket,
    sent: Vec<u8>,
    got: Vec<u8>,
    /// How much of `got` belongs to answers already taken.
    taken: usize,
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
    /// The value of a header that is there at most once.
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let first = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} twice in {:?}", self.headers);
        first
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        sonic_rs::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// A string of the JSON body.
    #[track_caller]
    pub fn text(&self, field: &str) -> String {
        let json = self.json();
        json.get(field).as_str().unwrap_or_else(|| panic!("{field} missing in {json:?}")).to_owned()
    }

    /// Whether the server said that it closes.
    pub fn says_close(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

impl Wire {
    /// Connects to `127.0.0.1:port` or `unix:/path`.
    pub fn connect(address: &str) -> Self {
        Self::try_connect(address).unwrap_or_else(|error| panic!("connect {address}: {error}"))
    }

    /// As [`connect`](Self::connect), where failure is what is tested.
    pub fn try_connect(address: &str) -> io::Result<Self> {
        let wire = Self::unconnected(address)?;
        wire.knock(address)?;
        Ok(wire)
    }

    /// A socket that [`knock`](Self::knock) will connect.
    pub fn unconnected(address: &str) -> io::Result<Self> {
        let (domain, _) = target(address)?;
        let socket = Socket::new(domain, Type::STREAM, None)?;
        socket.set_read_timeout(Some(Duration::from_millis(PATIENCE_MS)))?;
        socket.set_write_timeout(Some(Duration::from_millis(PATIENCE_MS)))?;
        if domain != Domain::UNIX {
            // So that fragments arrive as fragments.
            socket.set_tcp_nodelay(true)?;
        }
        Ok(Self { socket, sent: Vec::new(), got: Vec::new(), taken: 0 })
    }

    /// Connects; takes no further descriptor.
    pub fn knock(&self, address: &str) -> io::Result<()> {
        self.socket.connect(&target(address)?.1)
    }

    /// Sends all of `bytes`.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        if let Err(error) = self.try_send(bytes.as_ref()) {
            self.fail(&format!("cannot send: {error}"));
        }
        self
    }

    /// As [`send`](Self::send), to a server that may have closed.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent.extend_from_slice(bytes);
        self.socket.write_all(bytes)
    }

    /// Says that nothing more will be sent.
    pub fn finish(&mut self) -> &mut Self {
        self.socket.shutdown(Shutdown::Write).unwrap();
        self
    }

    /// Sends a request and takes its answer.
    #[track_caller]
    pub fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Answer {
        self.send(bytes);
        self.answer()
    }

    /// The next answer, whose body is as long as Content-Length says.
    #[track_caller]
    pub fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        let length = match answer.header("content-length") {
            Some(length) => length.parse().unwrap_or_else(|_| self.fail("Content-Length")),
            None if answer.status < 200 || matches!(answer.status, 204 | 304) => 0,
            None => self.fail("no Content-Length"),
        };
        while self.got.len() - self.taken < length {
            if !self.more() {
                self.fail("closed inside a body");
            }
        }
        answer.body = self.got[self.taken..self.taken + length].to_vec();
        self.taken += length;
        answer
    }

    /// The next answer to a HEAD request: no body follows.
    #[track_caller]
    pub fn head(&mut self) -> Answer {
        let end = loop {
            let open = &self.got[self.taken..];
            if let Some(at) = memchr::memmem::find(open, b"\r\n\r\n") {
                break self.taken + at + 4;
            }
            if !self.more() {
                self.fail("closed inside a head");
            }
        };
        let bytes = self.got[self.taken..end].to_vec();
        self.taken = end;
        split(&bytes).unwrap_or_else(|| self.fail("not a response head"))
    }

    /// The server closes, and sends nothing before that.
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

    /// Waits for at least one byte more; false at the end of the stream, which a reset is too.
    #[track_caller]
    fn more(&mut self) -> bool {
        let mut room = [0u8; 16 * 1024];
        match (&self.socket).read(&mut room) {
            Ok(count) => {
                self.got.extend_from_slice(&room[..count]);
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(error) => self.fail(&format!("nothing arrives: {error}")),
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
    Some(Answer { status, version, headers, body: Vec::new() })
}
