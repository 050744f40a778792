//! Faults on the connection of broker A's ticker: it stalls, it swallows, it breaks in the middle
//! of a frame.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;

use super::ticker::{Seen, Stage};
use crate::support::wait::at_once;
use crate::support::{Scene, TRADING};

/// Interval at which a side checks its order.
const LOOK: Duration = Duration::from_millis(20);

/// Treatment of the bytes on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Does {
    Pass,
    /// Accepts nothing, like a stopped process.
    Stand,
    /// Accepts everything and forwards nothing, like a firewall that forgot the connection.
    Swallow,
    /// Forwards half of a read, and resets.
    Break,
    End,
}

impl Does {
    const ALL: [Self; 5] = [
        Self::Pass,
        Self::Stand,
        Self::Swallow,
        Self::Break,
        Self::End,
    ];
}

/// A line to `far`, for one connection after the other.
struct Line {
    address: SocketAddr,
    does: Arc<AtomicU8>,
    thread: Option<JoinHandle<()>>,
}

impl Line {
    fn to(far: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, does) = (listener.local_addr().unwrap(), Arc::new(AtomicU8::new(0)));
        let now = Arc::clone(&does);
        let does_now = move || Does::ALL[usize::from(now.load(SeqCst))];
        let thread = std::thread::Builder::new().spawn(move || {
            std::thread::scope(|scope| {
                while let Ok((near, _)) = listener.accept() {
                    if does_now() == Does::End {
                        break;
                    }
                    let does_now = &does_now;
                    scope.spawn(move || carry(&near, &TcpStream::connect(far).unwrap(), does_now));
                }
            });
        });
        Self {
            address,
            does,
            thread: Some(thread.unwrap()),
        }
    }

    fn set(&self, does: Does) {
        self.does.store(does as u8, SeqCst);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.set(Does::End);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Forwards bytes both ways until one end has closed.
fn carry(near: &TcpStream, far: &TcpStream, does: &impl Fn() -> Does) {
    for stream in [near, far] {
        stream.set_read_timeout(Some(LOOK)).unwrap();
        stream.set_nodelay(true).unwrap();
    }
    let parker = bhav::rt::moving::Parker::current();
    let mut buffer = [0; 4096];
    loop {
        if does() == Does::Stand {
            parker.park(LOOK.as_millis() as u64);
            continue;
        }
        for (from, to) in [(near, far), (far, near)] {
            if !step(from, to, does(), &mut buffer) {
                return;
            }
        }
    }
}

/// Forwards the available bytes one way. False at the end.
fn step(mut from: &TcpStream, mut to: &TcpStream, does: Does, buffer: &mut [u8]) -> bool {
    let read = match from.read(buffer) {
        Ok(0) => return false,
        Ok(read) => read,
        Err(error) => {
            use std::io::ErrorKind::{TimedOut, WouldBlock};
            return matches!(error.kind(), TimedOut | WouldBlock) && does != Does::End;
        }
    };
    match does {
        Does::Pass | Does::Stand => to.write_all(&buffer[..read]).is_ok(),
        Does::Swallow => true,
        // Only a read longer than a heartbeat has a middle.
        Does::Break if read < 8 => to.write_all(&buffer[..read]).is_ok(),
        Does::Break => {
            let _ = to.write_all(&buffer[..read / 2]);
            let _ = SockRef::from(to).set_linger(Some(Duration::ZERO));
            false
        }
        Does::End => false,
    }
}

#[test]
fn a_line_that_stands_swallows_or_breaks_leaves_prices_fresh_and_comes_back() {
    let lines = [
        (Does::Stand, "silent"),
        (Does::Swallow, "silent"),
        (Does::Break, "broken"),
    ];
    at_once(lines, |(does, failure)| {
        let scene = Scene::at(TRADING);
        let line = Line::to(scene.sim.addr());
        let stage = Stage::with(scene, |config| {
            config.broker_a.ticker_url = format!("ws://{}/a/ticker", line.address);
        });
        stage.live();
        let fault = format!("{does:?}");
        line.set(does);
        stage.fresh_until(&fault, "the end of the connection", |seen| {
            // Each further connection breaks while it opens, with another name.
            seen.failure() == Some(failure) || (does == Does::Break && seen.failure().is_some())
        });
        line.set(Does::Pass);
        stage.fresh_until(&fault, "ticks again", Seen::is_live);
        assert!(!stage.seen().stands("waiting", failure));
    });
}
