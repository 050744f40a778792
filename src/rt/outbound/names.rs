//! Addresses of a name, by a deadline.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use crate::base::Clock;
use crate::rt::{Lane, LaneSpec};

/// A look-up that hangs is left to itself, and holds up the next at most.
pub(crate) const NAMES_QUEUE_MAX: usize = 1;
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 3;

/// Gives the addresses of a name.
type Resolve = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Finds addresses on a thread that may be left behind: the system's resolver cannot be
/// interrupted, and has no deadline that could be set.
pub(crate) struct Names {
    pub(crate) lane: Lane,
    resolve: Resolve,
}

impl Names {
    /// Of the system. `thread` is the name of the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(thread: &'static str) -> io::Result<Self> {
        let resolve = |host: &str, port: u16| {
            (host, port).to_socket_addrs().map(|found| found.take(ADDRESSES_MAX).collect())
        };
        Self::with(thread, Arc::new(resolve))
    }

    pub(crate) fn with(thread: &'static str, resolve: Resolve) -> io::Result<Self> {
        let spec = LaneSpec { name: thread, threads: 1, queue_max: NAMES_QUEUE_MAX };
        // Deadlines are of this machine, whatever clock the market has.
        let lane = Lane::start(&spec, &Clock::system())?;
        Ok(Self { lane, resolve })
    }

    /// The addresses of a host, which may be one itself.
    ///
    /// # Errors
    /// The resolver's, and `TimedOut`.
    pub(crate) fn addresses(
        &self,
        host: &str,
        port: u16,
        timeout_ms: u64,
    ) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let (resolve, host) = (Arc::clone(&self.resolve), host.to_owned());
        let late = || io::Error::from(io::ErrorKind::TimedOut);
        // Refused and late are one: a look-up before this one hangs.
        let found = self.lane.submit(timeout_ms, move || resolve(&host, port));
        found.map_err(|_| late())?.wait().map_err(|_| late())?
    }
}
