//! Many readers of a stream of events in one thread: counts frames, gaps, snapshots that go back,
//! and the time from publication to reception; comes back after an end as the server says.
//!
//! What was received is kept as it came (16 bytes a frame), and judged when a report is asked for:
//! only then is every publication known.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Instant;

use crate::epoll::{Epoll, Ready};
use crate::events::{AsOf, StreamParser};
use crate::idle::Many;
use crate::judge::{Received, Reception};
use crate::published::Watcher;
use crate::report::ReadersReport;
use crate::request::render_get;
use crate::scan::ScanError;
use crate::schedule::NS_PER_S;
use crate::sys;

/// Path of the document that the stream sends.
const DOCUMENT: &str = "/api/index/snapshot";

/// Connections on their way at once: below the usual backlog, so that no peer drops a SYN merely
/// because of the burst.
const OPENING_MAX: usize = 512;

/// Longest wait for events, in nanoseconds: how often commands and returns are looked for.
const TICK_NS: u64 = 5_000_000;

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// When a reader tries again whose attempt failed.
const RETRY_NS: u64 = NS_PER_S;

/// Width of the classes of [`ReadersReport::returns`], in nanoseconds.
const RETURNS_CLASS_NS: u64 = NS_PER_S / 2;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Until it is due to connect.
    #[default]
    Away,
    Connecting,
    /// Asked, and not answered yet.
    Asked,
    Open,
}

#[derive(Default)]
struct Reader {
    stream: Option<TcpStream>,
    parser: StreamParser,
    state: State,
    /// Since when it is open.
    opened_ns: u64,
    /// The newest time that it has seen, over all its connections.
    as_of: AsOf,
    /// It was open before.
    returns: bool,
}

/// All readers.
pub struct Readers {
    many: Many,
    /// They ask and never read; the kernel takes so many bytes for each, or as many as it likes if
    /// that is 0.
    never_read: Option<usize>,
    request: Vec<u8>,
    epoll: Epoll,
    readers: Vec<Reader>,
    away: BinaryHeap<Reverse<(u64, usize)>>,
    started: Instant,
    began_ns: u64,
    opening: usize,
    report: ReadersReport,
    received: Received,
    ids: HashMap<Vec<u8>, u32>,
    watcher: Watcher,
}

impl Readers {
    /// Opens all streams, and returns when each is open (each that never reads: has asked), or at
    /// the deadline.
    ///
    /// # Errors
    /// A local system call failed, for example for want of descriptors.
    pub fn open(many: Many, never_read: Option<usize>) -> io::Result<Self> {
        let started = Instant::now();
        let mut all = Self {
            never_read,
            request: render_get(many.target, &many.path),
            epoll: Epoll::new()?,
            readers: (0..many.connections).map(|_| Reader::default()).collect(),
            away: (0..many.connections)
                .map(|index| Reverse((0, index)))
                .collect(),
            started,
            began_ns: 0,
            opening: 0,
            report: ReadersReport::default(),
            received: Received::default(),
            ids: HashMap::new(),
            watcher: Watcher::start(many.target, DOCUMENT, started),
            many,
        };
        let mut ready = Vec::new();
        while started.elapsed() < all.many.deadline() && all.open_now() < all.readers.len() {
            all.turn(&mut ready)?;
        }
        Ok(all)
    }

    /// Streams that are open now, or silent ones that have asked.
    pub fn open_now(&self) -> usize {
        let is_there = |reader: &&Reader| {
            let has_asked = self.never_read.is_some() && reader.state == State::Asked;
            reader.state == State::Open || has_asked
        };
        self.readers.iter().filter(is_there).count()
    }

    /// Reads until there are no more commands. `go` forgets what was counted; for any other line it
    /// gives a report.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn run(
        &mut self,
        commands: &Receiver<String>,
        mut give: impl FnMut(&ReadersReport) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut ready = Vec::new();
        loop {
            match commands.try_recv().as_deref() {
                Ok("go") => {
                    self.began_ns = self.now_ns();
                    (self.report, self.received) = (ReadersReport::default(), Received::default());
                }
                Ok(_) => give(&self.report())?,
                Err(TryRecvError::Empty) => self.turn(&mut ready)?,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn report(&self) -> ReadersReport {
        let mut report = self.report.clone();
        let now_ns = self.now_ns();
        report.open = self.open_now();
        report.window_s = (now_ns - self.began_ns) as f64 / NS_PER_S as f64;
        let publications = self.watcher.seen();
        self.received
            .judge(&publications, &self.ids, self.began_ns..now_ns, &mut report);
        report
    }

    /// Connects those that are due, and takes what has happened.
    fn turn(&mut self, ready: &mut Vec<Ready>) -> io::Result<()> {
        let now_ns = self.now_ns();
        while self.opening < OPENING_MAX
            && self
                .away
                .peek()
                .is_some_and(|Reverse((due_ns, _))| *due_ns <= now_ns)
        {
            let Some(Reverse((_, index))) = self.away.pop() else {
                break;
            };
            self.connect(index)?;
        }
        self.epoll.wait(ready, TICK_NS)?;
        let mut room = [0; READ_BYTES];
        for ready in ready {
            self.advance(*ready, &mut room);
        }
        Ok(())
    }

    fn connect(&mut self, index: usize) -> io::Result<()> {
        let bytes = self.never_read.unwrap_or(0);
        let (stream, refused) = self.many.begin(index, &self.epoll, bytes)?;
        let reader = &mut self.readers[index];
        reader.stream = Some(stream);
        reader.parser = StreamParser::default();
        reader.state = State::Connecting;
        self.opening += 1;
        if let Some(error) = refused {
            self.fail(index, &error);
        }
        Ok(())
    }

    fn advance(&mut self, ready: Ready, room: &mut [u8]) {
        let index = ready.token;
        let reader = &mut self.readers[index];
        if reader.state == State::Connecting && ready.writable {
            let Some(stream) = &reader.stream else { return };
            if let Err(error) = sys::send_first(stream, &self.request) {
                return self.fail(index, &error);
            }
            reader.state = State::Asked;
            self.opening -= usize::from(self.never_read.is_some());
        }
        if self.never_read.is_none() {
            self.receive(index, room);
        }
    }

    /// Edge-triggered: a read that does not fill the buffer has emptied the socket.
    fn receive(&mut self, index: usize, room: &mut [u8]) {
        while let State::Asked | State::Open = self.readers[index].state {
            let Some(stream) = &self.readers[index].stream else {
                return;
            };
            match sys::receive(stream, room) {
                Ok(Some(count)) => {
                    self.take(index, &room[..count]);
                    if count < room.len() {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => return self.fail(index, &error),
            }
        }
    }

    fn take(&mut self, index: usize, bytes: &[u8]) {
        let now_ns = self.now_ns();
        let (report, received, ids) = (&mut self.report, &mut self.received, &mut self.ids);
        let Reader {
            parser,
            as_of: newest,
            opened_ns,
            ..
        } = &mut self.readers[index];
        let opened_ns = if parser.is_open() { *opened_ns } else { now_ns };
        let fed = parser.feed(bytes, |event| {
            if event.name != b"snapshot" {
                return;
            }
            report.frames += 1;
            if let Some(as_of) = event.as_of {
                report.went_back += u64::from(as_of < *newest);
                *newest = as_of.max(*newest);
            }
            let next = u32::try_from(ids.len()).expect("fewer states than that");
            let id = match ids.get(event.id) {
                Some(id) => *id,
                None => *ids.entry(event.id.to_vec()).or_insert(next),
            };
            received.push(Reception {
                reader: index as u32,
                id,
                at_ns: now_ns,
                opened_ns,
            });
        });
        match fed {
            // In good order, since the last chunk has come.
            Ok(()) if parser.is_complete() => {
                let retry_ns = parser.retry_ms().unwrap_or(0) * 1_000_000;
                self.report.ended += 1;
                self.leave(index, retry_ns);
            }
            Ok(()) => {
                let is_open = parser.is_open();
                let reader = &mut self.readers[index];
                if is_open && reader.state == State::Asked {
                    reader.state = State::Open;
                    reader.opened_ns = now_ns;
                    self.opening -= 1;
                    self.count_return(index, now_ns);
                }
            }
            Err(error) => {
                self.report.refused += usize::from(matches!(error, ScanError::Status(_)));
                self.fail(index, &error);
            }
        }
    }

    fn count_return(&mut self, index: usize, now_ns: u64) {
        if !std::mem::replace(&mut self.readers[index].returns, true) {
            return;
        }
        let class = usize::try_from((now_ns - self.began_ns) / RETURNS_CLASS_NS).unwrap_or(0);
        let returns = &mut self.report.returns;
        if returns.len() <= class {
            returns.resize(class + 1, 0);
        }
        returns[class] += 1;
    }

    fn fail(&mut self, index: usize, cause: &dyn std::error::Error) {
        if self.report.broken == 0 {
            eprintln!("openloop: first broken stream: {cause}");
        }
        self.report.broken += 1;
        self.leave(index, RETRY_NS);
    }

    /// Closes the connection, and comes back later.
    fn leave(&mut self, index: usize, retry_ns: u64) {
        let now_ns = self.now_ns();
        let is_silent = self.never_read.is_some();
        let reader = &mut self.readers[index];
        let is_opening = match reader.state {
            State::Connecting => true,
            State::Asked => !is_silent,
            State::Away | State::Open => false,
        };
        self.opening -= usize::from(is_opening);
        reader.stream = None;
        reader.state = State::Away;
        self.away.push(Reverse((now_ns + retry_ns, index)));
    }
}
