//! Starts the simulator and stops it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::base::Clock;
use crate::sim::router;
use crate::sim::server;
use crate::sim::settings::SimSettings;
use crate::sim::world;

/// A running simulator. Dropping it stops it.
#[derive(Debug)]
pub struct Sim {
    server: server::Server,
    world: Arc<world::World>,
}

/// Starts a simulator whose exchange runs on `clock`.
///
/// # Errors
/// The address cannot be bound, or a thread cannot be started.
pub fn start(settings: SimSettings, clock: Clock) -> io::Result<Sim> {
    let listen = settings.listen.clone();
    let mark = format!("seed={}", settings.seed);
    let world = Arc::new(world::World::new(settings, clock));
    let refused = world.refused_connections.clone();
    let answering = Arc::clone(&world);
    let handler =
        Box::new(move |request: &server::message::Request| router::answer(&answering, request));
    Ok(Sim { server: server::Server::start(&listen, mark, refused, handler)?, world })
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

    /// Where broker A's ticks come from.
    pub fn broker_a_ticker_url(&self) -> String {
        format!("ws://{}/a/ticker", self.addr())
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

    /// Registers the service at `url` as the one to which the login pages send the browser back.
    pub fn return_logins_to(&self, url: &str) {
        url.clone_into(&mut self.world.returns_to.lock());
    }

    /// Closes every connection and waits for the threads.
    pub fn stop(mut self) {
        self.server.stop();
    }
}
