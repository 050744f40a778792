//! Starts the simulator and stops it.

use std::io;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::base::Clock;
use crate::sim::broker_a::ticker;
use crate::sim::exchange::day::Sessions;
use crate::sim::faults::{Instead, Kind, Upstream, find, upstream_of};
use crate::sim::server::message::{Answer, Content, Delivery, Reply, Request};
use crate::sim::world::{Call, World};
use crate::sim::{broker_a, broker_b, control, public, server, sessions};

/// A running simulator. Dropping it stops it.
#[derive(Debug)]
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
    Ok(Sim { server: server::Server::start(&listen, mark, refused, handler)?, world })
}

impl Sim {
    /// The address at which it listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
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

    /// Closes every connection and waits for the threads.
    pub fn stop(mut self) {
        self.server.stop();
    }
}

// ---- Settings
//
// Settings of the simulator: its listener, its seed, and the two simulated broker apps.

/// The settings of a simulator. The credentials are made up and no secret.
#[derive(Debug, Clone)]
pub struct SimSettings {
    /// `127.0.0.1:0` takes any free port.
    pub listen: String,
    /// The same seed and instant give the same prices, everywhere.
    pub seed: u64,
    /// Refuse what is over the documented rate limits.
    pub rate_limits: bool,
    /// Delay of the public provider behind the exchange, in seconds.
    pub public_delay_s: i64,
    /// Number of made-up shares added to the embedded list.
    pub more_shares: usize,
    /// Number of moves of each price in a second. The times of prices are whole seconds.
    pub prices_per_s: i64,
    /// Root of the service whose return addresses are registered with both apps.
    pub returns_to: String,
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
            more_shares: 0,
            prices_per_s: 1,
            // The default address of `bhav serve`.
            returns_to: "http://127.0.0.1:8080".into(),
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
    /// The user id of logins that name none.
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
    /// Whether `api_key` is the app's, or that key with a number (`simkeya-7`). Numbered keys share
    /// its secret, so that a load test can have as many apps as users, as in the real world.
    pub(super) fn knows(&self, api_key: &str) -> bool {
        is_or_follows(&self.api_key, api_key)
    }
}

impl SimBrokerB {
    /// Same as [`SimBrokerA::knows`].
    pub(super) fn knows(&self, api_key: &str) -> bool {
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
    /// Whether the account is empty. It then sends the documented kinds of "no data".
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

// ---- Router
//
// Turns a request into its reply: finds the route, the faults that hit it, and the upstream that
// answers. Connection threads run this; nothing here touches the socket.

/// Answers above this size are compressed for a client that accepts it, as broker A does.
const COMPRESS_BYTES_MIN: usize = 4 * 1024;

/// Answers one request.
pub(super) fn answer(world: &Arc<World>, request: &Request) -> Reply {
    if let Some(rest) = request.path.strip_prefix("/sim/control/") {
        return reply(request, control::answer(world, request, rest), Delivery::default());
    }
    let Some((route, rest)) = find(&request.path) else {
        let lost = Answer::text(404, "text/plain; charset=utf-8", "the simulator has no such path");
        return reply(request, lost, Delivery::default());
    };
    let upstream = upstream_of(route);
    let is_quote = matches!(route, "broker_a.quote" | "broker_a.ohlc" | "broker_a.ltp");
    world.stats.lock().asked(route, is_quote, world.clock.monotonic_ms());
    let effects = world.faults.lock().hit(route, upstream);
    if let Some(instead) = effects.instead {
        return reply(request, in_place(instead, upstream, route), effects.delivery);
    }
    let now = world.clock.now();
    let shown = effects.muted_at.map_or(now, |muted| muted.min(now));
    let prices_at = shown.checked_sub(effects.lag).unwrap_or(shown);
    let call = Call { world, request, now, prices_at, ahead: effects.ahead };
    let mut answer = match upstream {
        _ if [sessions::ROUTE_A, sessions::ROUTE_B].contains(&route) => {
            sessions::answer(&call, route)
        }
        Upstream::BrokerA if route == ticker::ROUTE => ticker::answer(&call, world),
        Upstream::BrokerA | Upstream::Ticker => broker_a::answer(&call, route, rest),
        Upstream::BrokerB => broker_b::answer(&call, route, rest),
        Upstream::Public => public::answer(&call, route, rest),
    };
    if answer.rejected {
        world.stats.lock().turned_away(route);
    }
    effects.rewrite(&mut answer);
    reply(request, answer, effects.delivery)
}

/// The answer of a fault in place of the route.
fn in_place(instead: Instead, upstream: Upstream, route: &str) -> Answer {
    let Instead { kind, status, location } = instead;
    if let Some(location) = location {
        let content = Content::Moved(location);
        return Answer { status: status.unwrap_or(302), content, rejected: false };
    }
    if kind == Kind::Html5xx {
        let page = "<!DOCTYPE html><html><head><title>Error</title></head>\
                    <body><h1>Will be right back</h1></body></html>";
        return Answer::text(status.unwrap_or(502), "text/html; charset=utf-8", page);
    }
    match upstream {
        Upstream::BrokerA | Upstream::Ticker => broker_a::fault(kind),
        Upstream::BrokerB => broker_b::fault(kind),
        Upstream::Public => public::fault(kind, route),
    }
}

fn reply(request: &Request, answer: Answer, delivery: Delivery) -> Reply {
    let mut headers = Vec::new();
    let mut ticker = None;
    let (media_type, mut body, mut compress) = match answer.content {
        Content::Moved(location) => {
            headers.push(("Location", location));
            ("text/html", Vec::new(), false)
        }
        Content::Json(json) => ("application/json", json.to_bytes(), false),
        Content::Text(media_type, bytes) => (media_type, bytes, false),
        Content::Gzipped(media_type, bytes) => (media_type, bytes, true),
        Content::Ticker(accept, opened) => {
            headers.push(("Upgrade", "websocket".to_owned()));
            headers.push(("Connection", "Upgrade".to_owned()));
            headers.push(("Sec-WebSocket-Accept", accept));
            ticker = Some(opened);
            ("application/octet-stream", Vec::new(), false)
        }
    };
    let accepts = request.header("accept-encoding").is_some_and(|codings| codings.contains("gzip"));
    let is_of_a = |(route, _): (&str, &str)| upstream_of(route) == Upstream::BrokerA;
    compress |=
        accepts && body.len() >= COMPRESS_BYTES_MIN && find(&request.path).is_some_and(is_of_a);
    headers.push(("Content-Type", media_type.to_owned()));
    if compress && let Ok(compressed) = gzipped(&body) {
        headers.push(("Content-Encoding", "gzip".to_owned()));
        body = compressed;
    }
    Reply { status: answer.status, headers, body, delivery, ticker }
}

fn gzipped(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}
