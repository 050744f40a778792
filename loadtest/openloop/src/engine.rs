//! A run: an epoll loop over keep-alive connections in one thread, one request in flight on each.
//!
//! A connection whose response is late collects its due requests and sends them one after the
//! other when it can; each is measured from its own due time. Nothing is allocated per request.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::epoll::Epoll;
use crate::scan::{Response, SURPLUS, Scanner};
use crate::schedule::{NS_PER_S, Schedule};
use crate::sys;
use crate::tally::Tally;

/// Longest wait for the kernel to complete a connection; on loopback it takes microseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long after the end of a run answers are waited for, in nanoseconds.
const GRACE_NS: u64 = 5_000_000_000;

/// Bytes read at once. A response of either route fits, so that one read empties the socket.
const READ_BYTES: usize = 64 * 1024;

/// Reconnects per connection after which the server is taken to be broken.
const RECONNECTS_PER_CONNECTION_MAX: u64 = 20;

/// When requests are sent.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// One request on every connection: the warm-up.
    Once,
    /// As the schedule says, answered or not.
    Open(Schedule),
    /// The next one as soon as the last is answered, for so many nanoseconds.
    Closed {
        /// Length of the run.
        duration_ns: u64,
    },
}

struct Connection {
    stream: TcpStream,
    scanner: Scanner,
    request: Arc<[u8]>,
    /// Requests that have come due in this run.
    due: u64,
    /// Requests sent in this run.
    sent: u64,
    in_flight: bool,
    /// Where the latency of the request in flight starts.
    origin_ns: u64,
}

/// The connections of a run.
pub struct Engine {
    target: SocketAddr,
    epoll: Epoll,
    connections: Vec<Connection>,
    buffer: Vec<u8>,
    /// Status that an answer is expected to have.
    status: u16,
    started: Instant,
    pace: Pace,
    tally: Tally,
}

impl Engine {
    /// Opens one connection per request; connection `n` sends request `n` all the time.
    /// Answers with another status than `status` are counted apart.
    ///
    /// # Errors
    /// The server does not accept.
    pub fn connect(target: SocketAddr, requests: &[Arc<[u8]>], status: u16) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let mut connections = Vec::with_capacity(requests.len());
        for (token, request) in requests.iter().enumerate() {
            connections.push(Connection {
                stream: open(target, &epoll, token)?,
                scanner: Scanner::default(),
                request: Arc::clone(request),
                due: 0,
                sent: 0,
                in_flight: false,
                origin_ns: 0,
            });
        }
        Ok(Self {
            target,
            epoll,
            connections,
            buffer: vec![0; READ_BYTES],
            status,
            started: Instant::now(),
            pace: Pace::Once,
            tally: Tally::default(),
        })
    }

    /// Runs at `pace` until it ends and every answer is in or the grace has passed.
    ///
    /// # Errors
    /// A system call failed or the server keeps closing connections.
    pub fn run(&mut self, pace: Pace) -> io::Result<Tally> {
        self.pace = pace;
        self.tally = Tally::default();
        for connection in &mut self.connections {
            connection.due = 0;
            connection.sent = 0;
            connection.in_flight = false;
        }
        self.started = Instant::now();
        let (total, end_ns) = match pace {
            Pace::Once => (0, 0),
            Pace::Open(schedule) => (schedule.total(), schedule.due_ns(schedule.total())),
            Pace::Closed { duration_ns } => (0, duration_ns),
        };
        if !matches!(pace, Pace::Open(_)) {
            for token in 0..self.connections.len() {
                self.come_due(token)?;
            }
        }
        let (mut next, mut ready) = (0, Vec::new());
        loop {
            let now_ns = self.now_ns();
            let mut wait_until_ns = end_ns + GRACE_NS;
            if let Pace::Open(schedule) = pace {
                while next < total && schedule.due_ns(next) <= now_ns {
                    self.come_due(schedule.connection(next))?;
                    next += 1;
                }
                if next < total {
                    wait_until_ns = schedule.due_ns(next);
                }
            }
            if next == total && (self.is_settled() || now_ns >= wait_until_ns) {
                break;
            }
            let timeout_ns = wait_until_ns.saturating_sub(self.now_ns());
            self.epoll.wait(&mut ready, timeout_ns)?;
            for ready in &ready {
                self.receive(ready.token)?;
            }
        }
        self.give_up_on_the_rest();
        Ok(std::mem::take(&mut self.tally))
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Every request that came due has been answered or lost.
    fn is_settled(&self) -> bool {
        let due: u64 = match self.pace {
            Pace::Open(schedule) => schedule.total(),
            Pace::Once | Pace::Closed { .. } => self.connections.iter().map(|c| c.due).sum(),
        };
        self.tally.counts.requests + self.tally.counts.errors == due
    }

    fn come_due(&mut self, token: usize) -> io::Result<()> {
        self.connections[token].due += 1;
        if self.connections[token].in_flight {
            return Ok(());
        }
        let sent_ns = self.send_next(token)?;
        if matches!(self.pace, Pace::Open(_)) {
            let lag_ns = sent_ns.saturating_sub(self.connections[token].origin_ns);
            self.tally.send_lag.saturating_record(lag_ns.max(1));
        }
        Ok(())
    }

    /// Sends the next due request of a free connection and returns when, in nanoseconds.
    fn send_next(&mut self, token: usize) -> io::Result<u64> {
        let now_ns = self.now_ns();
        let pace = self.pace;
        let connection = &mut self.connections[token];
        connection.origin_ns = match pace {
            Pace::Open(schedule) => schedule.due_on_ns(token, connection.sent),
            Pace::Once | Pace::Closed { .. } => now_ns,
        };
        connection.sent += 1;
        connection.in_flight = true;
        // Nothing else is in the send buffer, so a short write means a broken connection.
        let sent = (&connection.stream).write(&connection.request);
        if sent.is_ok_and(|bytes| bytes == connection.request.len()) {
            return Ok(now_ns);
        }
        self.lose(token, "short write")?;
        Ok(now_ns)
    }

    /// Reads what has arrived on a connection. Edge-triggered: a read that does not fill the
    /// buffer has emptied the socket.
    fn receive(&mut self, token: usize) -> io::Result<()> {
        loop {
            let connection = &mut self.connections[token];
            let bytes = match sys::receive(&connection.stream, &mut self.buffer) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(()),
                Err(error) => return self.lose(token, &error.to_string()),
            };
            let scanned = match connection.in_flight {
                true => connection.scanner.feed(&self.buffer[..bytes]),
                false => Err(SURPLUS),
            };
            match scanned {
                Ok(Some(response)) => {
                    self.complete(token, response);
                    if response.closes {
                        return self.reconnect(token, "Connection: close");
                    }
                    self.go_on(token)?;
                }
                Ok(None) => {}
                Err(error) => return self.lose(token, &error.to_string()),
            }
            if bytes < self.buffer.len() {
                return Ok(());
            }
        }
    }

    fn complete(&mut self, token: usize, response: Response) {
        let now_ns = self.now_ns();
        let connection = &mut self.connections[token];
        connection.in_flight = false;
        let latency_ns = now_ns.saturating_sub(connection.origin_ns);
        self.tally.latency.saturating_record(latency_ns.max(1));
        self.tally.response_bytes += response.bytes as u64;
        let counts = &mut self.tally.counts;
        counts.requests += 1;
        counts.other_status += u64::from(response.status != self.status);
        counts.elapsed_s = now_ns as f64 / NS_PER_S as f64;
        if let Pace::Closed { duration_ns } = self.pace {
            connection.due += u64::from(now_ns < duration_ns);
        }
    }

    fn go_on(&mut self, token: usize) -> io::Result<()> {
        let connection = &self.connections[token];
        if connection.sent < connection.due {
            self.send_next(token)?;
        }
        Ok(())
    }

    /// Counts the request in flight as lost and replaces the connection.
    fn lose(&mut self, token: usize, cause: &str) -> io::Result<()> {
        if self.connections[token].in_flight {
            self.connections[token].in_flight = false;
            self.tally.counts.errors += 1;
        }
        self.reconnect(token, cause)
    }

    fn reconnect(&mut self, token: usize, cause: &str) -> io::Result<()> {
        self.tally.counts.reconnects += 1;
        let reconnects = self.tally.counts.reconnects;
        if reconnects > RECONNECTS_PER_CONNECTION_MAX * self.connections.len() as u64 {
            return Err(io::Error::other(format!(
                "the server closed connections {reconnects} times; last cause: {cause}"
            )));
        }
        self.connections[token].stream = open(self.target, &self.epoll, token)?;
        self.connections[token].scanner = Scanner::default();
        self.go_on(token)
    }

    /// After the grace: whatever came due and is not answered is an error, and its wait so far
    /// counts as its latency, so that a hanging server cannot look fast.
    fn give_up_on_the_rest(&mut self) {
        let now_ns = self.now_ns();
        let mut give_up = |since_ns| {
            self.tally
                .latency
                .saturating_record(now_ns.saturating_sub(since_ns).max(1));
            self.tally.counts.errors += 1;
        };
        for (token, connection) in self.connections.iter().enumerate() {
            if connection.in_flight {
                give_up(connection.origin_ns);
            }
            if let Pace::Open(schedule) = self.pace {
                let unsent = connection.sent..connection.due;
                unsent.for_each(|nth| give_up(schedule.due_on_ns(token, nth)));
            }
        }
    }
}

fn open(target: SocketAddr, epoll: &Epoll, token: usize) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, CONNECT_TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    epoll.add(&stream, token, false)?;
    Ok(stream)
}
