//! Opens many keep-alive connections, sends one request on each and holds them.
//!
//! Connections come from several loopback source addresses, because one address has some 28,000
//! ephemeral ports. A server at its cap leaves the rest waiting in the backlog or unanswered in
//! the handshake: that is a result, not a fault of the run, so every state is counted.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use clap::Args;

use crate::epoll::Epoll;
use crate::report::IdleReport;
use crate::request::render_get;
use crate::scan::Scanner;
use crate::sys;

/// Handshakes and first requests on their way at once: below the usual backlog of 1,024, so that
/// no peer drops a SYN merely because of the burst.
const OPENING_MAX: usize = 512;

/// An attempt that has not been answered for this long no longer holds back the next ones.
const SLOW_AFTER: Duration = Duration::from_millis(250);

/// Longest wait for events, in nanoseconds: how often slow attempts are looked for.
const TICK_NS: u64 = 10_000_000;

/// Bytes read at once.
const READ_BYTES: usize = 16 * 1024;

/// Connections from several loopback addresses.
#[derive(Debug, Clone, Args)]
pub struct Many {
    /// Server, as ADDRESS:PORT
    #[arg(long)]
    pub target: SocketAddr,
    /// Path to request on each connection
    #[arg(long, default_value = "/api/index/stream")]
    pub path: String,
    /// Connections to open
    #[arg(long, default_value_t = 500)]
    pub connections: usize,
    /// First source address is 127.0.0.N
    #[arg(long, default_value_t = 2)]
    source_first: u8,
    /// Number of source addresses
    #[arg(long, default_value_t = 8)]
    source_count: u8,
    /// Longest wait for all of them to be open or to have failed, in milliseconds
    #[arg(long, default_value_t = 60_000)]
    deadline_ms: u64,
}

impl Many {
    /// Longest wait for all connections to settle.
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// Begins the connection with this number, from the next of the source addresses in turn; see
    /// [`sys::begin_to_connect`].
    ///
    /// # Errors
    /// A local system call failed, for example for want of descriptors.
    pub fn begin(
        &self,
        index: usize,
        epoll: &Epoll,
        receive_buffer_bytes: usize,
    ) -> io::Result<(TcpStream, Option<io::Error>)> {
        let ahead = (index % usize::from(self.source_count.max(1))) as u8;
        let source = Ipv4Addr::new(127, 0, 0, self.source_first.saturating_add(ahead));
        let begun = sys::begin_to_connect(source, self.target, receive_buffer_bytes)?;
        epoll.add(&begun.0, index, true)?;
        Ok(begun)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Asked,
    Answered,
    Failed,
}

struct Held {
    stream: TcpStream,
    scanner: Scanner,
    state: State,
    opened: Instant,
}

/// The connections that are held open; dropping it closes them.
pub struct IdleConnections {
    held: Vec<Held>,
    /// What became of the attempts.
    pub report: IdleReport,
}

impl IdleConnections {
    /// Opens the connections and returns when each is answered or failed, or at the deadline.
    ///
    /// # Errors
    /// A local system call failed, for example for want of descriptors.
    pub fn open(many: &Many) -> io::Result<Self> {
        let (epoll, request) = (Epoll::new()?, render_get(many.target, &many.path));
        let (started, mut ready) = (Instant::now(), Vec::new());
        let mut connections = Self {
            held: Vec::with_capacity(many.connections),
            report: IdleReport::default(),
        };
        // Before this index everything is settled or slow.
        let mut settled_to = 0;
        while started.elapsed() < many.deadline() {
            settled_to = connections.skip_settled(settled_to);
            let opening = connections.held[settled_to..]
                .iter()
                .filter(|held| held.is_opening())
                .count();
            let room = OPENING_MAX.saturating_sub(opening);
            let missing = many.connections - connections.held.len();
            for _ in 0..room.min(missing) {
                connections.start_one(many, &epoll)?;
            }
            if connections.is_settled(many.connections) {
                break;
            }
            epoll.wait(&mut ready, TICK_NS)?;
            for ready in &ready {
                connections.advance(ready.token, ready.writable, &request);
            }
        }
        Ok(connections)
    }

    /// How many of the answered connections the server has still not closed.
    pub fn still_open(&self) -> usize {
        self.held
            .iter()
            .filter(|held| held.state == State::Answered && held.is_open())
            .count()
    }

    fn skip_settled(&self, from: usize) -> usize {
        self.held[from..]
            .iter()
            .position(Held::is_opening)
            .map_or(self.held.len(), |ahead| from + ahead)
    }

    fn is_settled(&self, wanted: usize) -> bool {
        let IdleReport {
            attempted,
            answered,
            another_status,
            failed,
            ..
        } = self.report;
        attempted == wanted && answered + another_status + failed == wanted
    }

    fn start_one(&mut self, many: &Many, epoll: &Epoll) -> io::Result<()> {
        let index = self.held.len();
        let (stream, refused) = many.begin(index, epoll, 0)?;
        let (scanner, opened) = (Scanner::default(), Instant::now());
        self.held.push(Held {
            stream,
            scanner,
            state: State::Connecting,
            opened,
        });
        self.report.attempted += 1;
        if let Some(error) = refused {
            self.fail(index, &error);
        }
        Ok(())
    }

    fn fail(&mut self, index: usize, cause: &io::Error) {
        if self.report.failed == 0 {
            eprintln!("openloop: first failed connection: {cause}");
        }
        match self.held[index].state {
            State::Failed => return,
            State::Answered => self.report.answered -= 1,
            State::Connecting | State::Asked => {}
        }
        self.held[index].state = State::Failed;
        self.report.failed += 1;
    }

    fn advance(&mut self, index: usize, writable: bool, request: &[u8]) {
        let held = &mut self.held[index];
        if held.state == State::Connecting && writable {
            if let Err(error) = sys::send_first(&held.stream, request) {
                return self.fail(index, &error);
            }
            held.state = State::Asked;
            self.report.connected += 1;
        }
        self.receive(index);
    }

    fn receive(&mut self, index: usize) {
        let mut room = [0; READ_BYTES];
        loop {
            let held = &mut self.held[index];
            let scanned = match sys::receive(&held.stream, &mut room) {
                Ok(Some(bytes)) => held.scanner.feed(&room[..bytes]).map_err(io::Error::other),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            match scanned {
                Ok(None) => {}
                Ok(Some(response)) if response.status == 200 => {
                    held.state = State::Answered;
                    self.report.answered += 1;
                }
                Ok(Some(_)) => {
                    held.state = State::Failed;
                    self.report.another_status += 1;
                }
                Err(error) => return self.fail(index, &error),
            }
        }
    }
}

impl Held {
    fn is_opening(&self) -> bool {
        matches!(self.state, State::Connecting | State::Asked) && self.opened.elapsed() < SLOW_AFTER
    }

    fn is_open(&self) -> bool {
        let mut byte = [0];
        match self.stream.peek(&mut byte) {
            Ok(bytes) => bytes > 0,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}
