//! A client of event streams: chunks, gzip, and a parser that follows the WHATWG's text step by
//! step (HTML 9.2.5 and 9.2.6).

use std::io::{ErrorKind, Read};
use std::time::Duration;

use bhav::base::Clock;
use flate2::{Decompress, FlushDecompress};

use super::client::{Answer, Client};
use super::service::Service;
use super::wait::PATIENCE_MS;

pub const STREAM: &str = "/api/index/stream";
pub const EVENT_STREAM: &str = "text/event-stream";

/// RFC 1952 2.3: deflate, no name, no time, of an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Longest wait of one read for bytes.
const LOOK: Duration = Duration::from_millis(5);

/// An event as a browser dispatches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub name: String,
    pub data: String,
    /// The last event id when it was dispatched.
    pub id: String,
}

/// Parses bytes into events.
#[derive(Default)]
pub struct EventParser {
    begun: bool,
    /// Whether the last line ended with a CR. An LF that follows belongs to it.
    after_cr: bool,
    line: Vec<u8>,
    name: String,
    data: String,
    id_buffer: String,
    last_id: String,
    pub retry: Option<u64>,
    pub comments: usize,
    pub events: Vec<Event>,
}

impl EventParser {
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' if std::mem::take(&mut self.after_cr) => {}
                b'\n' | b'\r' => {
                    self.after_cr = *byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    self.take(&line);
                }
                other => {
                    self.after_cr = false;
                    self.line.push(*other);
                }
            }
        }
    }

    /// Whether no line and no event is incomplete.
    pub fn is_between_events(&self) -> bool {
        self.line.is_empty() && self.name.is_empty() && self.data.is_empty()
    }

    fn take(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let first = !std::mem::replace(&mut self.begun, true);
        let line = if first {
            text.strip_prefix('\u{feff}').unwrap_or(&text)
        } else {
            &text
        };
        if line.is_empty() {
            return self.dispatch();
        }
        match line.split_once(':') {
            Some(("", _)) => self.comments += 1,
            Some((field, value)) => self.field(field, value.strip_prefix(' ').unwrap_or(value)),
            None => self.field(line, ""),
        }
    }

    fn field(&mut self, field: &str, value: &str) {
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "id" if !value.contains('\0') => value.clone_into(&mut self.id_buffer),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().or(self.retry);
            }
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        self.last_id.clone_from(&self.id_buffer);
        let (name, mut data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        if data.pop().is_none() {
            return;
        }
        let name = if name.is_empty() {
            "message".into()
        } else {
            name
        };
        self.events.push(Event {
            name,
            data,
            id: self.last_id.clone(),
        });
    }
}

/// One stream over a connection. Each chunk has to hold complete events.
pub struct EventReader {
    pub client: Client,
    pub head: Answer,
    pub parser: EventParser,
    raw: Vec<u8>,
    gzip: Option<Decompress>,
    /// Bytes of the gzip header still to come.
    gzip_header: &'static [u8],
    /// Everything parsed so far, decoded.
    text: String,
    taken: usize,
    /// Chunks so far, and whether the last one has come.
    pub chunks: usize,
    pub is_complete: bool,
    is_closed: bool,
}

impl EventReader {
    /// Opens a stream; `headers` are whole lines.
    #[track_caller]
    pub fn open(service: &Service, target: &str, headers: &str) -> Self {
        let text = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        Self::ask(service.client(), &text)
    }

    /// Sends a request and expects a stream.
    #[track_caller]
    pub fn ask(mut client: Client, request: &str) -> Self {
        client.write(request);
        Self::over(client)
    }

    /// The stream whose head arrives next.
    #[track_caller]
    pub fn over(mut client: Client) -> Self {
        let head = client.head();
        assert_eq!((head.status, head.header("content-type")), (200, Some(EVENT_STREAM)));
        let is_gzip = head.header("content-encoding") == Some("gzip");
        let raw = client.take_pending();
        client.socket.set_read_timeout(Some(LOOK)).unwrap();
        let mut reader = Self {
            client,
            head,
            parser: EventParser::default(),
            raw: Vec::new(),
            gzip: is_gzip.then(|| Decompress::new(false)),
            gzip_header: if is_gzip { &GZIP_HEADER } else { &[] },
            text: String::new(),
            taken: 0,
            chunks: 0,
            is_complete: false,
            is_closed: false,
        };
        reader.accept(&raw);
        reader
    }

    /// The events' text so far, decoded.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The next event, once it has come; `None` at the end of the stream.
    #[track_caller]
    pub fn event(&mut self) -> Option<Event> {
        let clock = Clock::system();
        loop {
            if let Some(event) = self.ready() {
                return Some(event);
            }
            // A proxy may keep the connection open after the last chunk.
            if self.is_closed || self.is_complete {
                return None;
            }
            assert!(clock.monotonic_ms() < PATIENCE_MS, "no event after {:?}", self.text);
            self.look();
        }
    }

    /// The next event, which must have this name.
    #[track_caller]
    pub fn event_named(&mut self, name: &str) -> Event {
        let event = self
            .event()
            .unwrap_or_else(|| panic!("it ended: {:?}", self.text));
        assert_eq!(event.name, name, "{event:?}");
        event
    }

    /// An event that has arrived.
    pub fn ready(&mut self) -> Option<Event> {
        let event = self.parser.events.get(self.taken).cloned();
        self.taken += usize::from(event.is_some());
        event
    }

    /// Reads once, for a moment.
    pub fn look(&mut self) {
        let mut room = [0; 16 * 1024];
        match (&self.client.socket).read(&mut room) {
            Ok(0) => self.is_closed = true,
            Ok(count) => self.accept(&room[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => self.is_closed = true,
            Err(error) => assert!(
                matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
                "{error}"
            ),
        }
    }

    /// Reads to the end.
    #[track_caller]
    pub fn end(&mut self) {
        while self.event().is_some() {}
    }

    fn accept(&mut self, bytes: &[u8]) {
        if self.head.header("transfer-encoding") != Some("chunked") {
            return self.decode(bytes);
        }
        self.raw.extend_from_slice(bytes);
        while let Some(at) = memchr::memmem::find(&self.raw, b"\r\n") {
            let length = std::str::from_utf8(&self.raw[..at]).unwrap();
            let length = usize::from_str_radix(length, 16).unwrap();
            let (start, end) = (at + 2, at + 2 + length);
            if self.raw.len() < end + 2 {
                return;
            }
            assert_eq!(&self.raw[end..end + 2], b"\r\n");
            assert!(!self.is_complete, "a chunk after the last one");
            let payload = self.raw[start..end].to_vec();
            self.raw.drain(..end + 2);
            self.is_complete = length == 0;
            self.chunks += usize::from(length > 0);
            self.decode(&payload);
            assert!(self.parser.is_between_events(), "half an event in a chunk");
        }
    }

    fn decode(&mut self, payload: &[u8]) {
        let Some(gzip) = &mut self.gzip else {
            self.text.push_str(std::str::from_utf8(payload).unwrap());
            return self.parser.feed(payload);
        };
        let header = self.gzip_header.len().min(payload.len());
        assert_eq!(payload[..header], self.gzip_header[..header], "a gzip header");
        self.gzip_header = &self.gzip_header[header..];
        let (mut rest, mut plain) = (&payload[header..], Vec::with_capacity(64 * 1024));
        loop {
            let (before_in, before) = (gzip.total_in(), plain.len());
            gzip.decompress_vec(rest, &mut plain, FlushDecompress::Sync)
                .unwrap();
            rest = &rest[usize::try_from(gzip.total_in() - before_in).unwrap()..];
            let is_full = plain.len() == plain.capacity();
            if rest.is_empty() && !is_full {
                break;
            }
            assert!(!rest.is_empty() || plain.len() > before || is_full);
            plain.reserve(64 * 1024);
        }
        self.text.push_str(std::str::from_utf8(&plain).unwrap());
        self.parser.feed(&plain);
    }
}
