//! A raw HTTP client for the simulator's own tests: it writes bytes and reads bytes, so that
//! nothing is hidden by a library.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use jiff::Timestamp;

use super::simulator::{Sim, start};
use crate::base::{Clock, ManualClock};
use crate::sim::world::SimSettings;

/// A Friday in the middle of trading.
pub(super) const FRIDAY: &str = "2026-11-20T11:42:17+05:30";
/// A user-agent that the public provider accepts.
pub(super) const BROWSER: &str = "User-Agent: Mozilla/5.0\r\n";
/// Broker A's headers with the token that is valid from the start.
pub(super) const BROKER_A: &str = "X-Kite-Version: 3\r\nAuthorization: token simkeya:simtokena\r\n";

/// A response.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Got {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(super) fn json(&self) -> sonic_rs::Value {
        sonic_rs::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The value of a header, given in the case the simulator writes it.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// A simulator at `now` on a clock that stands still, and that clock.
pub(super) fn sim_at(now: &str, settings: SimSettings) -> (Sim, ManualClock) {
    let clock = Clock::manual(now.parse::<Timestamp>().unwrap());
    (start(settings, clock.clone()).unwrap(), clock)
}

/// A simulator in the middle of trading, without rate limits.
pub(super) fn sim() -> (Sim, ManualClock) {
    sim_at(
        FRIDAY,
        SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        },
    )
}

/// One request on a connection of its own.
pub(super) fn send(
    addr: SocketAddr,
    method: &str,
    target: &str,
    headers: &str,
    body: &str,
) -> std::io::Result<Got> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let length = body.len();
    let text = format!(
        "{method} {target} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n{headers}\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let cut = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let cut = cut.ok_or(ErrorKind::UnexpectedEof)?;
    let head = String::from_utf8_lossy(&bytes[..cut]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Ok(Got {
        status,
        head,
        body: bytes[cut + 4..].to_vec(),
    })
}

/// `GET` without a body.
pub(super) fn get(sim: &Sim, target: &str, headers: &str) -> Got {
    send(sim.addr(), "GET", target, headers, "").unwrap()
}

/// Switches a fault on.
pub(super) fn set_fault(sim: &Sim, route: &str, fault: &str) {
    let body = format!(r#"{{"route":"{route}","fault":{fault}}}"#);
    let got = send(sim.addr(), "POST", "/sim/control/faults", "", &body).unwrap();
    assert_eq!(got.status, 200, "{}", got.text());
}
