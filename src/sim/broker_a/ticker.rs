//! Broker A's WebSocket: admission of clients, and the messages sent to them. Each has a connection
//! thread.

use std::collections::BTreeMap;
use std::io;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::frame::{CloseFrame, Frame};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket};

use crate::base::Clock;
use crate::sim::broker_a::packets::{Mode, message, packet};
use crate::sim::broker_a::responses::error;
use crate::sim::fault_kinds::{Kind, Upstream};
use crate::sim::faults::Effects;
use crate::sim::limits::Sent;
use crate::sim::server::message::{Answer, Content, Upgrade};
use crate::sim::world::{Call, World, is_or_follows};

/// The route's name.
pub(crate) const ROUTE: &str = "broker_a.ticker";
/// Connections of one API key, and instruments of one connection, as the broker documents them.
const CONNECTIONS_MAX: usize = 3;
const INSTRUMENTS_MAX: usize = 3_000;
/// A request for every instrument takes some 30 KiB.
const REQUEST_BYTES_MAX: usize = 64 * 1024;
/// Longest time that a read may delay sending.
const READ_TIMEOUT: Duration = Duration::from_millis(20);
/// Interval of heartbeats. Also that of checks for changed prices, if prices move once a second.
const BEAT_MS: u64 = 1_000;
/// Messages over which a move is spread if prices move more often. Each has an equal part of the
/// instruments.
const SPREAD: u64 = 10;
/// Pause between two pieces of a message under the fault `drip`, which sends at least 20 bytes a
/// second.
const PIECE_PAUSE: Duration = Duration::from_millis(50);
/// Packets of a message that the fault `flood` makes.
const FLOOD_PACKETS: usize = 5_000;
/// An order of the app's owner, which no client may keep or log.
const ORDER: &str = r#"{"type":"order","data":{"order_id":"SIMORDERCANARY","status":"COMPLETE"}}"#;
const ERRORS: [&str; 2] = [
    r#"{"type":"error","data":"Too many instruments"}"#,
    r#"{"type":"error","data":{"message":"Too many instruments","code":7}}"#,
];

/// Answers the request that opens a WebSocket.
pub(crate) fn answer(call: &Call<'_>, world: &Arc<World>) -> Answer {
    let request = call.request;
    let given = |name: &str| request.query_value(name).unwrap_or_default();
    let api_key = given("api_key");
    let access_token = given("access_token");
    let known = is_or_follows(&world.settings.broker_a.api_key, &api_key)
        && world
            .broker_a
            .lock()
            .user_of(&api_key, &access_token, call.now)
            .is_some();
    if !known {
        return error(403, "TokenException", "Incorrect `api_key` or `access_token`.");
    }
    if !world.settings.broker_a.market_data {
        return error(403, "PermissionException", "Insufficient permission for that call.");
    }
    let upgrades = request
        .header("upgrade")
        .is_some_and(|to| to.eq_ignore_ascii_case("websocket"));
    let key = request.header("sec-websocket-key").filter(|_| upgrades);
    let Some(key) = key else {
        return error(400, "InputException", "This is a WebSocket.");
    };
    let Some(place) = Place::take(world, api_key) else {
        return error(403, "GeneralException", "Too many connections.");
    };
    let accept = derive_accept_key(key.as_bytes());
    let ticker = Box::new(Ticker::new(place));
    Answer {
        status: 101,
        content: Content::Upgrade(accept, ticker),
        rejected: false,
    }
}

/// One connection among those of its API key.
#[derive(Debug)]
struct Place {
    world: Arc<World>,
    api_key: String,
}

impl Place {
    /// Counts one more connection of the key. `None` if it has reached its limit.
    fn take(world: &Arc<World>, api_key: String) -> Option<Self> {
        let mut tickers = world.tickers.lock();
        let open = tickers.open.entry(api_key.clone()).or_default();
        if *open >= CONNECTIONS_MAX {
            return None;
        }
        *open += 1;
        Some(Self {
            world: Arc::clone(world),
            api_key,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut tickers = self.world.tickers.lock();
        let left = tickers
            .open
            .get(&self.api_key)
            .map_or(0, |open| open.saturating_sub(1));
        match left {
            0 => drop(tickers.open.remove(&self.api_key)),
            left => drop(tickers.open.insert(std::mem::take(&mut self.api_key), left)),
        }
    }
}

/// Sends on one connection.
#[derive(Debug)]
pub(crate) struct Ticker {
    place: Place,
    subscriptions: BTreeMap<i64, Subscription>,
    /// Checks for changed prices so far.
    looks: u64,
    looks_per_beat: u64,
    /// Messages over which a move is spread.
    spread: u64,
}

#[derive(Debug)]
struct Subscription {
    mode: Mode,
    /// Second and part of the last price that was sent.
    sent_at: Option<(jiff::Timestamp, i64)>,
}

/// A client's request: `subscribe` and `unsubscribe` have tokens, `mode` a name and tokens.
#[derive(Deserialize)]
struct Request {
    a: String,
    v: Value,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Tokens(Vec<i64>),
    Mode(String, Vec<i64>),
}

type Socket<'a> = WebSocket<&'a TcpStream>;

/// Whether the simulator stops.
type Stopping<'a> = &'a dyn Fn() -> bool;

/// Why a connection ends.
enum End {
    Over,
    Reset,
}

impl From<Error> for End {
    fn from(_: Error) -> Self {
        Self::Over
    }
}

impl Ticker {
    fn new(place: Place) -> Self {
        let moves = place.world.settings.prices_per_s.unsigned_abs().max(1);
        let spread = if moves == 1 { 1 } else { SPREAD };
        let subscriptions = BTreeMap::new();
        Self {
            place,
            subscriptions,
            looks: 0,
            looks_per_beat: moves * spread,
            spread,
        }
    }
}

impl Upgrade for Ticker {
    /// Sends until the client leaves, a fault ends it, or the simulator stops.
    fn run(mut self: Box<Self>, stream: &TcpStream, stopping: Stopping<'_>) -> bool {
        let config = WebSocketConfig::default().max_message_size(Some(REQUEST_BYTES_MAX));
        let mut socket = WebSocket::from_raw_socket(stream, Role::Server, Some(config));
        let _ = stream.set_read_timeout(Some(READ_TIMEOUT));
        let timer = Clock::system();
        let mut due_ms = timer.monotonic_ms();
        let end = loop {
            if stopping() {
                break End::Over;
            }
            let now_ms = timer.monotonic_ms();
            let looks = now_ms >= due_ms;
            if looks {
                // Keeps the pace. Checks missed in a standstill of over a beat are not made up for.
                due_ms =
                    (due_ms + BEAT_MS / self.looks_per_beat).max(now_ms.saturating_sub(BEAT_MS));
            }
            if let Err(end) = self.pass(&mut socket, looks, stopping) {
                break end;
            }
        };
        self.place.world.tickers.lock().subscribed -= self.subscriptions.len();
        matches!(end, End::Reset)
    }
}

impl Ticker {
    fn pass(
        &mut self,
        socket: &mut Socket<'_>,
        looks: bool,
        stopping: Stopping<'_>,
    ) -> Result<(), End> {
        let beats = looks && self.looks.is_multiple_of(self.looks_per_beat);
        let effects = self.effects(beats);
        let is_silent = effects.has(Kind::Silent);
        if !is_silent {
            self.listen(socket)?;
        } else {
            socket.get_ref().take_error().map_err(|_| End::Over)?;
            // Waits as long as a read would have.
            let _ = socket.get_ref().peek(&mut [0]);
        }
        if looks {
            self.looks += 1;
        }
        if beats && !is_silent {
            self.beat(socket, &effects)?;
        }
        if looks && !is_silent {
            self.send_prices(socket, &effects, stopping)?;
        }
        Ok(())
    }

    /// The faults in force now; each beat counts them down.
    fn effects(&self, beats: bool) -> Effects {
        let mut faults = self.place.world.faults.lock();
        match beats {
            true => faults.hit(ROUTE, Upstream::Ticker),
            false => faults.standing(ROUTE, Upstream::Ticker),
        }
    }

    fn listen(&mut self, socket: &mut Socket<'_>) -> Result<(), End> {
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => self.obey(text.as_str()),
                Ok(_) => {}
                Err(Error::Io(error)) if is_wait(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn obey(&mut self, text: &str) {
        let world = Arc::clone(&self.place.world);
        let before = self.subscriptions.len();
        match serde_json::from_str::<Request>(text) {
            Ok(Request {
                a,
                v: Value::Tokens(tokens),
            }) if a == "subscribe" => {
                for token in tokens {
                    let known = world.universe.by_token(token).is_some();
                    if known && self.subscriptions.len() < INSTRUMENTS_MAX {
                        let fresh = Subscription {
                            mode: Mode::Quote,
                            sent_at: None,
                        };
                        self.subscriptions.insert(token, fresh);
                    }
                }
            }
            Ok(Request {
                a,
                v: Value::Tokens(tokens),
            }) if a == "unsubscribe" => {
                self.subscriptions
                    .retain(|token, _| !tokens.contains(token));
            }
            Ok(Request {
                a,
                v: Value::Mode(mode, tokens),
            }) if a == "mode" => {
                let Some(mode) = Mode::named(&mode) else {
                    return;
                };
                for token in tokens {
                    if let Some(subscription) = self.subscriptions.get_mut(&token) {
                        *subscription = Subscription {
                            mode,
                            sent_at: None,
                        };
                    }
                }
            }
            _ => world.stats.lock().turned_away(ROUTE),
        }
        let mut tickers = world.tickers.lock();
        tickers.subscribed = tickers.subscribed + self.subscriptions.len() - before;
    }

    /// Sends the messages of each second except prices.
    fn beat(&mut self, socket: &mut Socket<'_>, effects: &Effects) -> Result<(), End> {
        if effects.has(Kind::Hangup) {
            return Err(End::Reset);
        }
        if effects.has(Kind::CloseFrame) {
            let reason = "restart".into();
            socket.close(Some(CloseFrame {
                code: CloseCode::Restart,
                reason,
            }))?;
            socket.flush()?;
            return Ok(());
        }
        if effects.has(Kind::Ping) {
            socket.send(Message::Ping("alive".as_bytes().to_vec().into()))?;
        }
        if effects.has(Kind::OrderText) {
            socket.send(Message::text(ORDER))?;
        }
        if effects.has(Kind::ErrorText) {
            let turn = (self.looks / self.looks_per_beat) as usize;
            socket.send(Message::text(ERRORS[turn % ERRORS.len()]))?;
        }
        Ok(socket.send(Message::binary(vec![0_u8]))?)
    }

    fn send_prices(
        &mut self,
        socket: &mut Socket<'_>,
        effects: &Effects,
        stopping: Stopping<'_>,
    ) -> Result<(), End> {
        if effects.has(Kind::HeartbeatOnly) || effects.has(Kind::CloseFrame) {
            return Ok(());
        }
        let bodies = self.bodies(effects);
        if bodies.is_empty() {
            return Ok(());
        }
        send(socket, damaged(bodies, effects), effects, stopping)
    }

    /// A packet of each instrument in this message's part whose price has changed since it was
    /// sent.
    fn bodies(&mut self, effects: &Effects) -> Vec<Vec<u8>> {
        let world = Arc::clone(&self.place.world);
        let now = world.clock.now();
        let shown = effects.muted_at.map_or(now, |muted| muted.min(now));
        let prices_at = shown.checked_sub(effects.lag).unwrap_or(shown);
        let timer = Clock::system();
        let mut bodies = Vec::new();
        let turn = self.looks % self.spread;
        let numbered = (0..self.spread).cycle().zip(&mut self.subscriptions);
        for (_, (token, subscription)) in numbered.filter(|(number, _)| *number == turn) {
            let Some(instrument) = world.universe.by_token(*token) else {
                continue;
            };
            if instrument.is_index && effects.has(Kind::LeadStands) {
                continue;
            }
            let shown_at = world.shown_at_broker_a(instrument, prices_at);
            let mut tick = world.day.tick(instrument, shown_at);
            let moment = (tick.as_of, tick.part);
            if subscription.sent_at.replace(moment) == Some(moment) {
                continue;
            }
            if effects.has(Kind::ZeroPrice) {
                tick.last = 0;
            }
            if effects.has(Kind::TenfoldPrice) {
                tick.last *= 10;
            }
            let told = tick.as_of.checked_add(effects.ahead).unwrap_or(tick.as_of);
            let seed = world.settings.seed;
            bodies.push(packet(seed, instrument, &tick, told.as_second(), subscription.mode));
            let token = *token;
            let paise = tick.last;
            world.tickers.lock().note(Sent {
                token,
                paise,
                as_of: told,
                at_ms: timer.now_ms(),
            });
        }
        bodies
    }
}

/// The message of these packets, damaged by the faults in force.
fn damaged(mut bodies: Vec<Vec<u8>>, effects: &Effects) -> Vec<u8> {
    if effects.has(Kind::UnknownLength) {
        bodies.iter_mut().for_each(|body| body.push(0));
    }
    if effects.has(Kind::WrongEndian) {
        let words = bodies.iter_mut().flat_map(|body| body.chunks_exact_mut(4));
        words.for_each(<[u8]>::reverse);
    }
    if effects.has(Kind::Flood) {
        let all = bodies.len();
        bodies = (0..FLOOD_PACKETS)
            .map(|number| bodies[number % all].clone())
            .collect();
    }
    let mut message = message(&bodies);
    if effects.has(Kind::Short) {
        message.truncate(message.len() - 1);
    }
    if effects.has(Kind::Long) {
        message.push(0);
    }
    message
}

fn send(
    socket: &mut Socket<'_>,
    message: Vec<u8>,
    effects: &Effects,
    stopping: Stopping<'_>,
) -> Result<(), End> {
    if let Some(bytes_per_s) = effects.delivery.bytes_per_s {
        return drip(socket.get_ref(), message, bytes_per_s, stopping);
    }
    if !effects.has(Kind::Fragmented) {
        return Ok(socket.send(Message::binary(message))?);
    }
    let half = message.len() / 2;
    let rest = message[half..].to_vec();
    let first = Frame::message(message[..half].to_vec(), OpCode::Data(Data::Binary), false);
    socket.send(Message::Frame(first))?;
    let last = Frame::message(rest, OpCode::Data(Data::Continue), true);
    Ok(socket.send(Message::Frame(last))?)
}

/// Sends a message at this rate; nothing is sent between its pieces.
fn drip(
    mut stream: &TcpStream,
    message: Vec<u8>,
    bytes_per_s: u32,
    stopping: Stopping<'_>,
) -> Result<(), End> {
    let mut bytes = Vec::new();
    Frame::message(message, OpCode::Data(Data::Binary), true).format(&mut bytes)?;
    let pieces_per_s = 1_000 / PIECE_PAUSE.as_millis() as usize;
    let pause = crossbeam_channel::never::<()>();
    for piece in bytes.chunks((bytes_per_s as usize / pieces_per_s).max(1)) {
        if stopping() {
            return Err(End::Over);
        }
        stream.write_all(piece).map_err(|_| End::Over)?;
        let _ = pause.recv_timeout(PIECE_PAUSE);
    }
    Ok(())
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[cfg(test)]
#[path = "ticker_tests.rs"]
mod tests;
