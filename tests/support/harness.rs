//! A server to attack, on a port of its own, drained when the test ends.

use std::sync::Once;

use bhav::base::Clock;
use bhav::http::server::shared::Shared;
use bhav::http::settings::HttpSettings;
use bhav::http::{Listener, Server};
use bhav::ops::Inherited;

use super::client::Client;
use super::probe::{Handle, Probe};

static EDGE: Once = Once::new();

/// A running server. Dropping it drains it, and nothing may be left.
pub struct Harness {
    server: Option<Server<Probe>>,
    pub address: String,
    pub probe: Handle,
}

/// Settings under which every deadline passes within a second.
pub fn small() -> HttpSettings {
    HttpSettings {
        head_timeout_ms: 700,
        body_timeout_ms: 700,
        idle_timeout_ms: 700,
        unread_output_timeout_ms: 700,
        ..settings()
    }
}

/// The product's own settings on a free port, with long deadlines for a busy machine.
pub fn settings() -> HttpSettings {
    HttpSettings {
        listen: "127.0.0.1:0".into(),
        ..HttpSettings::default()
    }
}

impl Harness {
    /// A server with the product's own limits.
    pub fn start() -> Self {
        Self::with(&settings())
    }

    /// Same as [`start`](Self::start), with a connection to it.
    pub fn connected() -> (Self, Client) {
        let harness = Self::start();
        let client = harness.connect();
        (harness, client)
    }

    pub fn with(settings: &HttpSettings) -> Self {
        Self::on(Listener::open(&settings.listen, Inherited::take().rest()).unwrap(), settings)
    }

    /// Same as [`with`](Self::with), on these sockets.
    pub fn on(listeners: Vec<Listener>, settings: &HttpSettings) -> Self {
        EDGE.call_once(|| bhav::rt::coroutines::configure(2));
        let clock = Clock::system();
        let (service, probe) = Probe::new(&clock);
        let server = Server::start(listeners, settings, &clock, service).unwrap();
        Self {
            address: server.address().to_owned(),
            server: Some(server),
            probe,
        }
    }

    pub fn connect(&self) -> Client {
        Client::connect(&self.address)
    }

    /// Counters and the connection table.
    pub fn shared(&self) -> &Shared<Probe> {
        self.server.as_ref().unwrap().shared()
    }

    /// Drains now, and returns the number of connections cut off.
    pub fn drain(mut self) -> usize {
        self.server.take().unwrap().drain()
    }

    /// Takes the server out, to drain it on another thread.
    pub fn into_server(mut self) -> Server<Probe> {
        self.server.take().unwrap()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        if let Some(server) = self.server.take()
            && !std::thread::panicking()
        {
            assert_eq!(server.drain(), 0, "connections outlived the drain");
        }
    }
}
