//! Opens many keep-alive connections, sends one request on each and holds them.
//!
//! Connections come from several loopback source addresses, because one address has some 28,000
//! ephemeral ports. A server at its cap leaves the rest waiting in the backlog or unanswered in
//! the handshake: that is a result, not a fault of the run, so every state is counted.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::epoll::{Epoll, Events};
use crate::report::{HeldReport, IdleReport};
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

/// What to open.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Server.
    pub target: SocketAddr,
    /// The request sent once on every connection.
    pub request: Vec<u8>,
    /// Connections to open.
    pub connections: usize,
    /// Source addresses, used in turn.
    pub sources: Vec<Ipv4Addr>,
    /// Longest wait for all connections to settle.
    pub deadline: Duration,
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
    report: IdleReport,
}

impl IdleConnections {
    /// Opens the connections and returns when each is answered or failed, or at the deadline.
    ///
    /// # Errors
    /// A local system call failed, for example for want of descriptors.
    pub fn open(plan: &Plan) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let mut events = Events::with_capacity(OPENING_MAX);
        let started = Instant::now();
        let mut connections =
            Self { held: Vec::with_capacity(plan.connections), report: IdleReport::default() };
        // Before this index everything is settled or slow.
        let mut settled_to = 0;
        while started.elapsed() < plan.deadline {
            settled_to = connections.skip_settled(settled_to);
            let opening =
                connections.held[settled_to..].iter().filter(|held| held.is_opening()).count();
            let room = OPENING_MAX.saturating_sub(opening);
            let missing = plan.connections - connections.held.len();
            for _ in 0..room.min(missing) {
                connections.start_one(plan, &epoll)?;
            }
            if connections.is_settled(plan.connections) {
                break;
            }
            epoll.wait(&mut events, TICK_NS)?;
            for ready in events.ready() {
                connections.advance(ready.token, ready.writable, &plan.request);
            }
        }
        Ok(connections)
    }

    /// What became of the attempts.
    pub fn report(&self) -> IdleReport {
        self.report
    }

    /// How many of the answered connections the server has still not closed.
    pub fn held(&self) -> HeldReport {
        let still_open =
            self.held.iter().filter(|held| held.state == State::Answered && held.is_open()).count();
        HeldReport { still_open }
    }

    fn skip_settled(&self, from: usize) -> usize {
        self.held[from..]
            .iter()
            .position(Held::is_opening)
            .map_or(self.held.len(), |ahead| from + ahead)
    }

    fn is_settled(&self, wanted: usize) -> bool {
        let report = &self.report;
        report.attempted == wanted && report.answered + report.non_200 + report.failed == wanted
    }

    fn start_one(&mut self, plan: &Plan, epoll: &Epoll) -> io::Result<()> {
        let index = self.held.len();
        let source = plan.sources[index % plan.sources.len()];
        let (stream, refused) = sys::begin_to_connect(source, plan.target, 0)?;
        epoll.add(&stream, index, true)?;
        self.held.push(Held {
            stream,
            scanner: Scanner::default(),
            state: State::Connecting,
            opened: Instant::now(),
        });
        self.report.attempted += 1;
        if let Some(error) = refused {
            self.fail(index, &error.to_string());
        }
        Ok(())
    }

    fn fail(&mut self, index: usize, cause: &str) {
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
        if self.held[index].state == State::Connecting && writable {
            let stream = &self.held[index].stream;
            match stream.take_error() {
                Ok(None) => {}
                Ok(Some(error)) | Err(error) => return self.fail(index, &error.to_string()),
            }
            self.report.connected += 1;
            match (&*stream).write(request) {
                Ok(bytes) if bytes == request.len() => self.held[index].state = State::Asked,
                Ok(_) => return self.fail(index, "short write"),
                Err(error) => return self.fail(index, &error.to_string()),
            }
        }
        self.receive(index);
    }

    fn receive(&mut self, index: usize) {
        let mut buffer = [0; READ_BYTES];
        loop {
            let held = &mut self.held[index];
            match (&held.stream).read(&mut buffer) {
                Ok(0) => return self.fail(index, "closed by the server"),
                Ok(bytes) => match held.scanner.feed(&buffer[..bytes]) {
                    Ok(Some(response)) if response.status == 200 => {
                        held.state = State::Answered;
                        self.report.answered += 1;
                    }
                    Ok(Some(_)) => {
                        held.state = State::Failed;
                        self.report.non_200 += 1;
                    }
                    Ok(None) => {}
                    Err(error) => return self.fail(index, &error.to_string()),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.fail(index, &error.to_string()),
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
