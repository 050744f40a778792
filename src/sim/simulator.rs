//! Starts the simulator and stops it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::{Span, Timestamp};
use rust_decimal::Decimal;

use crate::base::{Broker, Candle, Clock, Symbol};
use crate::brokers::DailyCandles;
use crate::sim::exchange::universe::rupees;
use crate::sim::router::answer;
use crate::sim::server;
use crate::sim::server::message::{Reply, Request};
use crate::sim::world::{SimSettings, World};

/// Ten-thousandths of a rupee in a paisa.
const E4_OF_PAISE: i64 = 100;

/// An app at a simulated broker. Made up and no secret.
pub(crate) struct SimApp {
    /// Root of the broker's API.
    pub(crate) url: String,
    pub(crate) api_key: String,
    pub(crate) api_secret: String,
}

/// A running simulator. Dropping it stops it.
pub struct Sim {
    server: server::Server,
    world: Arc<World>,
}

/// Starts a simulator whose exchange runs on `clock`.
///
/// # Errors
/// The address cannot be bound, or a thread cannot be started.
pub fn start(settings: SimSettings, clock: Clock) -> io::Result<Sim> {
    let listen = settings.listen.clone();
    let mark = format!("seed={}", settings.seed);
    let world = Arc::new(World::new(settings, clock));
    let refused = world.refused_connections.clone();
    let answering = Arc::clone(&world);
    let handler = Box::new(move |request: &Request| answer(&answering, request));
    Ok(Sim {
        server: server::Server::start(&listen, mark, refused, handler)?,
        world,
    })
}

impl Sim {
    /// The address at which it listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// The service's own app at a broker.
    pub(crate) fn app(&self, broker: Broker) -> SimApp {
        let SimSettings {
            broker_a, broker_b, ..
        } = &self.world.settings;
        match broker {
            Broker::A => SimApp {
                url: self.broker_a_url(),
                api_key: broker_a.api_key.clone(),
                api_secret: broker_a.api_secret.clone(),
            },
            Broker::B => SimApp {
                url: self.broker_b_url(),
                api_key: broker_b.api_key.clone(),
                api_secret: broker_b.secret_key.clone(),
            },
        }
    }

    /// Root of broker A's API.
    pub fn broker_a_url(&self) -> String {
        format!("http://{}/a", self.addr())
    }

    /// URL of broker A's WebSocket.
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
    pub(crate) fn control_url(&self) -> String {
        format!("http://{}/sim/control", self.addr())
    }

    /// Registers the service at `url` as the one to which the login pages send the browser back.
    pub(crate) fn return_logins_to(&self, url: &str) {
        url.clone_into(&mut self.world.returns_to.lock());
    }

    /// Root of the files that a person exports at a broker's website.
    pub(crate) fn files_url(&self) -> String {
        format!("http://{}/files", self.addr())
    }

    /// What the exchange's days were, to be read without a call.
    pub(crate) fn history(&self) -> ExchangeHistory {
        ExchangeHistory(Arc::clone(&self.world))
    }

    /// Closes every connection and waits for the threads.
    pub fn stop(mut self) {
        self.server.stop();
    }
}

/// The finished days of the simulated exchange, as its brokers' routes give them, for who is in the
/// same process.
#[derive(Clone)]
pub(crate) struct ExchangeHistory(Arc<World>);

impl ExchangeHistory {
    /// The candles of the sessions from `from` to `to`, which are over; `None` if the exchange does
    /// not have the symbol.
    pub(crate) fn candles(&self, symbol: &Symbol, from: Date, to: Date) -> Option<DailyCandles> {
        let instrument = self.0.universe.by_key(symbol.as_str())?;
        let is_session = |date: &Date| self.0.day.sessions.trades_on(*date);
        let dates = from
            .series(Span::new().days(1))
            .take_while(|date| *date <= to);
        let candle = |date: Date| {
            let bar = self.0.day.day_bar(instrument, date);
            Candle {
                date,
                open_e4: bar.open * E4_OF_PAISE,
                high_e4: bar.high * E4_OF_PAISE,
                low_e4: bar.low * E4_OF_PAISE,
                close_e4: bar.close * E4_OF_PAISE,
                volume: bar.volume,
            }
        };
        let candles = dates.filter(is_session).map(candle).collect();
        Some(DailyCandles {
            candles,
            unreadable: Vec::new(),
            simulated: true,
        })
    }
}

/// A simulator without a listener, whose exchange runs on the caller's clock. Tests play whole days
/// with it in one thread.
pub struct SimInMemory(Arc<World>);

impl SimInMemory {
    pub fn new(settings: SimSettings, clock: &Clock) -> Self {
        Self(Arc::new(World::new(settings, clock.clone())))
    }

    /// Answers a request of any route. The caller carries out the reply's delivery.
    pub fn answer(
        &self,
        method: &str,
        target: &str,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Reply {
        answer(&self.0, &Request::of(method, target, headers, body))
    }

    /// The exchange's own price of a symbol, whatever faults are set.
    pub fn price(&self, symbol: &str, at: Timestamp) -> Option<Decimal> {
        let instrument = self.0.universe.by_key(symbol)?;
        Some(rupees(self.0.day.tick(instrument, at).last))
    }

    /// The exchange's own previous close of a symbol's session at `at`.
    pub fn previous_close(&self, symbol: &str, at: Timestamp) -> Option<Decimal> {
        let instrument = self.0.universe.by_key(symbol)?;
        Some(rupees(self.0.day.tick(instrument, at).previous_close))
    }
}
