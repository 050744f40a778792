//! The simulator, a deterministic, seeded exchange day served over real HTTP/1.1 in the
//! three wire formats of the outside world, with faults that can be switched on.
//!
//! One listener carries every upstream under a path of its own (`/a`, `/b`, `/b-master`, `/p`) and
//! the control routes under `/sim/control`. Prices come from `day`, formats from `broker_a`,
//! `broker_b` and `public`, misbehaviour from `faults`, threads from `server`. Nothing here may be
//! used by the product's own request path: the simulator is its peer, reached through a socket like
//! any other upstream.

mod accounts;
mod broker_a;
mod broker_b;
pub mod exchange;
mod faults;
mod public;
mod server;
mod sessions;
mod world;

#[cfg(test)]
mod testing;

use std::io;
use std::net::SocketAddr;

pub use exchange::day::Sessions;
pub use server::message::MARK_HEADER;

use crate::base::Clock;

/// Everything that can be chosen about a simulator. The credentials are made up and no secret.
#[derive(Debug, Clone)]
pub struct SimSettings {
    /// `127.0.0.1:0` takes any free port.
    pub listen: String,
    /// The same seed and instant give the same prices, everywhere.
    pub seed: u64,
    /// Refuse what is over the documented rate limits.
    pub rate_limits: bool,
    /// How far the public provider is behind the exchange, in seconds.
    pub public_delay_s: i64,
    pub broker_a: SimBrokerA,
    pub broker_b: SimBrokerB,
    /// The dates on which the exchange trades.
    pub sessions: Sessions,
}

impl Default for SimSettings {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".into(),
            seed: 1,
            rate_limits: true,
            // Observed delay of the real one: a quarter of an hour.
            public_delay_s: 900,
            broker_a: SimBrokerA::default(),
            broker_b: SimBrokerB::default(),
            sessions: Sessions::weekdays(),
        }
    }
}

/// Broker A's app and the token it starts with.
#[derive(Debug, Clone)]
pub struct SimBrokerA {
    pub api_key: String,
    pub api_secret: String,
    /// Valid from the start until the next 06:00 IST; empty means that nobody has logged in.
    pub access_token: String,
    /// The client id of whoever logs in without saying who.
    pub user_id: String,
    /// Whether the app's plan carries market data; without it quotes and candles answer
    /// PermissionException.
    pub market_data: bool,
}

impl Default for SimBrokerA {
    fn default() -> Self {
        Self {
            api_key: "simkeya".into(),
            api_secret: "simsecreta".into(),
            access_token: "simtokena".into(),
            user_id: "SA0001".into(),
            market_data: true,
        }
    }
}

impl SimBrokerA {
    /// Whether `api_key` is the app's, or one of the numbered ones beside it (`simkeya-7`). Those
    /// share its secret, so that a load test can have as many apps as users, as in the real world.
    fn knows(&self, api_key: &str) -> bool {
        is_or_follows(&self.api_key, api_key)
    }
}

impl SimBrokerB {
    /// As broker A's.
    fn knows(&self, api_key: &str) -> bool {
        is_or_follows(&self.api_key, api_key)
    }
}

fn is_or_follows(own: &str, api_key: &str) -> bool {
    api_key.strip_prefix(own).is_some_and(|rest| {
        let number = rest.strip_prefix('-');
        rest.is_empty() || number.is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

/// Broker B's app and the login value it starts with.
#[derive(Debug, Clone)]
pub struct SimBrokerB {
    /// Holds characters that have to be encoded in a URL, as real keys do.
    pub api_key: String,
    pub secret_key: String,
    /// The value that the login redirect would carry; empty means none.
    pub api_session: String,
    pub user_id: String,
    /// The account holds nothing: the documented kinds of "no data".
    pub empty_account: bool,
}

impl Default for SimBrokerB {
    fn default() -> Self {
        Self {
            api_key: "sim+key=b&1".into(),
            secret_key: "simsecretb".into(),
            api_session: "12345678".into(),
            user_id: "SB000001".into(),
            empty_account: false,
        }
    }
}

/// A running simulator. Dropping it stops it.
#[derive(Debug)]
pub struct Sim {
    server: server::Server,
}

/// Starts a simulator whose exchange runs on `clock`.
///
/// # Errors
/// The address cannot be bound, or a thread cannot be started.
pub fn start(settings: SimSettings, clock: Clock) -> io::Result<Sim> {
    let listen = settings.listen.clone();
    let mark = format!("seed={}", settings.seed);
    let world = world::World::new(settings, clock);
    let refused = world.refused_connections.clone();
    let handler =
        Box::new(move |request: &server::message::Request| faults::route::answer(&world, request));
    Ok(Sim { server: server::Server::start(&listen, mark, refused, handler)? })
}

impl Sim {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Root of broker A's API.
    pub fn broker_a_url(&self) -> String {
        format!("http://{}/a", self.addr())
    }

    /// Root of broker B's API.
    pub fn broker_b_url(&self) -> String {
        format!("http://{}/b", self.addr())
    }

    /// Root of the public provider.
    pub fn public_url(&self) -> String {
        format!("http://{}/p", self.addr())
    }

    /// Root of the control routes.
    pub fn control_url(&self) -> String {
        format!("http://{}/sim/control", self.addr())
    }

    /// Closes every connection and waits for the threads.
    pub fn stop(mut self) {
        self.server.stop();
    }
}
