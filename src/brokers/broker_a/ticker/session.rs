//! One connection, from its opening to its end.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use tungstenite::client::IntoClientRequest;
use tungstenite::http::HeaderValue;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Bytes, Error, HandshakeError, Message, WebSocket};

use crate::base::clock::zoned;
use crate::base::{Clock, Source, Symbol, wipe};
use crate::brokers::broker_a::ticker::dial::{Dialer, Endpoint, Way, Worker};
use crate::brokers::broker_a::ticker::reading::{Bad, Reason, State, Verdict, Watch};
use crate::brokers::broker_a::ticker::subscriptions::{Changes, Subscriptions, Wanted};
use crate::brokers::feed::{Batch, CallTimes};
use crate::brokers::quote_checks::{Claim, Kind};
use crate::brokers::session::token::Token;
use crate::rt::outbound::{Stream, Timed, is_wait};

/// Longest wait for a message. Commands, deadlines and the end of the service are checked this
/// often.
const READ_WAIT_MS: u64 = 100;
/// Interval between two checks of the wanted symbols.
const FOLLOW_MS: u64 = 1_000;
/// Longest wait for the answer to a close.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// The same at the end of the service.
const STOP_WAIT: Duration = Duration::from_millis(100);

/// The end of a connection, or the reason why there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The service stops.
    Stopped,
    /// It is no longer wanted, or the endpoint or the token has changed.
    Unwanted,
    NotOpened(Reason),
    /// It was open. `spoke`: prices flowed.
    Lost {
        reason: Reason,
        spoke: bool,
    },
}

/// An open connection and its state.
struct Session<'a> {
    worker: &'a Worker,
    link: Link,
    subscriptions: Subscriptions,
    watch: Watch,
    window: Window,
    followed_mono_ms: Option<u64>,
    spoke: bool,
}

/// Opens a connection and runs it until it ends.
pub(super) fn run(worker: &Worker, way: &Way) -> Ended {
    worker.counters().set_state(State::Connecting);
    let link = match Link::open(&worker.dialer, &way.endpoint, &way.token) {
        Ok(link) => link,
        Err(failure) => return Ended::NotOpened(failure),
    };
    worker.counters().set_state(State::Subscribing);
    let mut session = Session {
        link,
        subscriptions: Subscriptions::default(),
        watch: Watch::new(&worker.parts.leads, worker.now_mono_ms()),
        window: Window::default(),
        followed_mono_ms: None,
        spoke: false,
        worker,
    };
    let ended = loop {
        if let Err(ended) = session.pass(way) {
            break ended;
        }
    };
    let wait = if ended == Ended::Stopped { STOP_WAIT } else { CLOSE_WAIT };
    session.link.close(wait);
    ended
}

impl Session<'_> {
    fn lost(&self, reason: Reason) -> Ended {
        Ended::Lost { reason, spoke: self.spoke }
    }

    /// One pass: subscribes, checks the connection, reads one message, pushes a batch that is due.
    fn pass(&mut self, way: &Way) -> Result<(), Ended> {
        if self.worker.stop.is_set() {
            return Err(Ended::Stopped);
        }
        let view = self.worker.view();
        if !view.is_way(way) {
            return Err(Ended::Unwanted);
        }
        let wanted = &view.wanted;
        self.follow(wanted, view.settings.symbols_max)?;
        let now_mono_ms = self.worker.now_mono_ms();
        match self.watch.judge(wanted.moves, now_mono_ms) {
            Verdict::Fine => {}
            Verdict::Ping => {
                self.link.send(Message::Ping(Bytes::new())).map_err(|broken| self.lost(broken))?;
            }
            Verdict::Renew => self.send(&self.subscriptions.all())?,
            Verdict::GiveUp(why) => return Err(self.lost(why)),
        }
        let due_in_ms = self.window.due_in_ms(now_mono_ms);
        let wait_ms = due_in_ms.map_or(READ_WAIT_MS, |due| due.min(READ_WAIT_MS));
        let heard = self.link.read(Duration::from_millis(wait_ms));
        if let Some(message) = heard.map_err(|broken| self.lost(broken))? {
            self.take(&message);
        }
        self.tell(wanted);
        Ok(())
    }

    /// Updates the subscriptions, once a second.
    fn follow(&mut self, wanted: &Wanted, symbols_max: usize) -> Result<(), Ended> {
        let now_mono_ms = self.worker.now_mono_ms();
        let since_ms = self.followed_mono_ms.map(|at| now_mono_ms.saturating_sub(at));
        if since_ms.is_some_and(|since_ms| since_ms < FOLLOW_MS) {
            return Ok(());
        }
        self.followed_mono_ms = Some(now_mono_ms);
        let known = &self.worker.parts.tokens;
        let changes = self.subscriptions.follow(wanted, known, symbols_max, now_mono_ms);
        self.worker.counters().update(|reading| reading.subscribed = self.subscriptions.len());
        self.send(&changes)
    }

    fn send(&mut self, changes: &Changes) -> Result<(), Ended> {
        for request in changes.requests() {
            self.link.send(Message::text(request)).map_err(|broken| self.lost(broken))?;
        }
        Ok(())
    }

    fn take(&mut self, message: &Message) {
        let now_mono_ms = self.worker.now_mono_ms();
        match message {
            Message::Binary(bytes) => self.read(bytes, now_mono_ms),
            Message::Pong(_) => self.watch.ponged(),
            // Text is not read or kept, because it may be an order of the app's owner.
            _ => {}
        }
        self.worker.counters().update(|reading| reading.frames += 1);
        self.watch.heard(now_mono_ms);
    }

    fn read(&mut self, message: &[u8], now_mono_ms: u64) {
        let counters = self.worker.counters();
        counters.update(|reading| reading.bytes += message.len() as u64);
        let packets = match packets(message) {
            Ok(packets) => packets,
            Err(bad) => {
                counters.bad.increment(bad);
                return self.watch.bad(now_mono_ms);
            }
        };
        for packet in packets {
            match packet {
                Ok(tick) => {
                    counters.ticked(now_mono_ms);
                    self.window.add(tick, &self.worker.parts.clock);
                }
                Err(bad) => counters.bad.increment(bad),
            }
        }
    }

    /// Pushes the gathered ticks if they are due, and updates the state.
    fn tell(&mut self, wanted: &Wanted) {
        let (worker, now_mono_ms) = (self.worker, self.worker.now_mono_ms());
        let counters = worker.counters();
        if self.window.due_in_ms(now_mono_ms) == Some(0) {
            let (clock, simulated) = (&worker.parts.clock, self.link.simulated);
            let Self { window, subscriptions, watch, .. } = self;
            // An implausible price does not count as a tick.
            let believed = |symbol: &Symbol, at_mono_ms| watch.ticked(symbol, at_mono_ms);
            let batch = window.batch(subscriptions, wanted.trades, simulated, clock, believed);
            match batch.map(|batch| (worker.parts.push)(Box::new(batch))) {
                Some(Err(_)) => {
                    let is_first = window.refused(now_mono_ms);
                    counters.update(|reading| reading.merged += u64::from(is_first));
                }
                Some(Ok(())) | None => window.clear(),
            }
        }
        let live = self.watch.is_live(now_mono_ms);
        counters.update(|reading| reading.live = live);
        if live && !self.spoke {
            self.spoke = true;
            tracing::info!(subscribed = self.subscriptions.len(), "ticker connected");
        }
        let speaks = live || (self.watch.has_ticked() && !wanted.moves);
        counters.set_state(if speaks { State::Speaking } else { State::Subscribing });
    }
}

// ---- Link
//
// The WebSocket: the upgrade within its deadline, then messages. It blocks, and runs only on the
// thread `ticker`.
//
// The library's own way to connect is not used: it follows redirects, has no deadline, and its
// errors repeat the URL, which carries the token. No error here contains text of the peer or of the
// library.

/// 3,000 full packets take 545 KiB.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
const READ_BUFFER_BYTES: usize = 16 * 1024;
const WRITE_BUFFER_BYTES: usize = 16 * 1024;
const WRITE_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// An open connection.
pub(super) struct Link {
    socket: WebSocket<Stream<Timed>>,
    /// The peer declared itself as the simulator.
    pub(super) simulated: bool,
}

impl Link {
    /// Opens a connection with this token.
    pub(super) fn open(
        dialer: &Dialer,
        endpoint: &Endpoint,
        token: &Token,
    ) -> Result<Self, Reason> {
        let opened = upgrade(endpoint, token, dialer.dial(endpoint)?);
        // Making the request leaves pieces of the token on the stack.
        wipe::scrub();
        let (socket, simulated) = opened?;
        Ok(Self { socket, simulated })
    }

    /// The next message; `None` if there is none within `wait`. The bytes of an incomplete message
    /// are kept for the next call.
    ///
    /// # Errors
    /// [`Reason::Broken`], also for the close of the peer.
    pub(super) fn read(&mut self, wait: Duration) -> Result<Option<Message>, Reason> {
        self.socket.get_mut().socket().allow_for_ms(wait.as_millis().max(1) as u64);
        match self.socket.read() {
            Ok(Message::Close(_)) => Err(Reason::Broken),
            Ok(message) => Ok(Some(message)),
            Err(Error::Io(error)) if is_wait(&error) => Ok(None),
            Err(_) => Err(Reason::Broken),
        }
    }

    /// # Errors
    /// [`Reason::Broken`].
    pub(super) fn send(&mut self, message: Message) -> Result<(), Reason> {
        self.socket.send(message).map_err(|_| Reason::Broken)
    }

    /// Sends a close, so that the broker does not count a dead connection, and waits for the answer
    /// for at most `wait`.
    pub(super) fn close(mut self, wait: Duration) {
        self.socket.get_mut().socket().allow_for_ms(wait.as_millis() as u64);
        if self.socket.close(None).is_err() {
            return;
        }
        // The loop ends with the connection, an error, or the deadline.
        while self.socket.read().is_ok() {}
    }
}

fn upgrade(
    endpoint: &Endpoint,
    token: &Token,
    stream: Stream<Timed>,
) -> Result<(WebSocket<Stream<Timed>>, bool), Reason> {
    let target = token.ticker_url(&endpoint.url);
    let request = target.as_str().into_client_request();
    let mut request = request.map_err(|_| Reason::NotWebSocket)?;
    request.headers_mut().insert("x-kite-version", HeaderValue::from_static("3"));
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    match tungstenite::client::client_with_config(request, stream, Some(config)) {
        Ok((socket, response)) => {
            let simulated = response.headers().contains_key("x-bhav-simulator");
            Ok((socket, simulated))
        }
        Err(HandshakeError::Failure(Error::Http(response))) => {
            Err(match response.status().as_u16() {
                403 => Reason::Refused,
                429 | 500.. => Reason::Busy,
                300..=399 => Reason::Redirected,
                _ => Reason::NotWebSocket,
            })
        }
        Err(HandshakeError::Failure(Error::Io(error))) => Err(match error.kind() {
            io::ErrorKind::TimedOut => Reason::TimedOut,
            _ => Reason::Unreachable,
        }),
        Err(HandshakeError::Failure(_)) => Err(Reason::NotWebSocket),
        Err(HandshakeError::Interrupted(_)) => Err(Reason::TimedOut),
    }
}

// ---- Window
//
// Gathers the last tick of each instrument and makes a batch of them. The scheduler gets four
// batches a second at most, however often prices change.

/// Time for which ticks are gathered, the interval of snapshots. Index times are whole seconds, and
/// no share may look newer than the index next to it, so both are published together.
pub(super) const WINDOW_MS: u64 = 250;

/// Wait before a refused batch is pushed again, about the time that the scheduler works on one. It
/// refuses a batch while it has not taken the one before. Later ticks join the refused batch.
const TRY_AGAIN_MS: u64 = 50;

/// Low byte of an index's token.
const INDEX_SEGMENT: u32 = 9;

/// Most symbols of a batch: all that can be subscribed.
const SYMBOLS_MAX: usize = 3_000;

/// Ticks since the last batch was taken.
#[derive(Default)]
pub(super) struct Window {
    /// The newest tick of each instrument, with its time of arrival.
    ticks: HashMap<u32, (Tick, u64)>,
    began: Option<CallTimes>,
    /// Time of the next try of a refused batch.
    again_mono_ms: Option<u64>,
    /// The session of each instrument as it was received last while the market traded, and its
    /// date.
    days: HashMap<u32, (Day, Option<Date>)>,
}

impl Window {
    /// Adds a tick; the newest of each instrument counts. A tick without a time is dropped, because
    /// the age of its price is unknown and a full one follows.
    pub(super) fn add(&mut self, tick: Tick, clock: &Clock) {
        if tick.at.is_some() {
            self.began.get_or_insert_with(|| CallTimes::begin(clock));
            self.ticks.insert(tick.token, (tick, clock.monotonic_ms()));
        }
    }

    /// Milliseconds until the gathered ticks are due; `None` without any.
    pub(super) fn due_in_ms(&self, now_mono_ms: u64) -> Option<u64> {
        let began = self.began?;
        let due_mono_ms = self.again_mono_ms.unwrap_or(began.asked_mono_ms + WINDOW_MS);
        Some(due_mono_ms.saturating_sub(now_mono_ms))
    }

    /// Keeps the gathered ticks for another try after the scheduler refused them. True at the first
    /// refusal.
    pub(super) fn refused(&mut self, now_mono_ms: u64) -> bool {
        self.again_mono_ms.replace(now_mono_ms + TRY_AGAIN_MS).is_none()
    }

    /// Drops the gathered ticks.
    pub(super) fn clear(&mut self) {
        self.ticks.clear();
        self.began = None;
        self.again_mono_ms = None;
    }

    /// The gathered ticks as a batch. `trades`: the market trades by the calendar, so the broker's
    /// previous close is that of the session before, and its range is the session's. At other times
    /// neither is certain, and those received before stay. `believed` gets each plausible tick's
    /// symbol and time of arrival.
    pub(super) fn batch(
        &mut self,
        subscriptions: &Subscriptions,
        trades: bool,
        simulated: bool,
        clock: &Clock,
        mut believed: impl FnMut(&Symbol, u64),
    ) -> Option<Batch> {
        let times = self.began?.end(clock);
        let mut batch =
            Batch { times, symbols_max: SYMBOLS_MAX, simulated, pushed: true, ..Batch::default() };
        for (tick, at_mono_ms) in self.ticks.values() {
            let Some(symbol) = subscriptions.symbol(tick.token) else { continue };
            let date = tick.at.map(|at| zoned(at).date());
            if let (true, Some(day)) = (trades, tick.day) {
                self.days.insert(tick.token, (day, date));
            }
            let Some((day, of)) = self.days.get(&tick.token).copied() else { continue };
            let own = Some(day).filter(|_| of == date);
            let kind = Kind::of(symbol, tick.token & 0xff == INDEX_SEGMENT);
            let claim = Claim {
                last_price: tick.last_price,
                previous_close: Some(day.previous_close),
                open: own.map(|day| day.open),
                low: own.map(|day| day.low),
                high: own.map(|day| day.high),
                limits: None,
                as_of: tick.at,
            };
            let count = batch.quotes.len();
            batch.add(kind, symbol, Source::BrokerA, &claim);
            if batch.quotes.len() > count {
                believed(symbol, *at_mono_ms);
            }
        }
        let is_empty =
            batch.quotes.is_empty() && batch.unproven.is_empty() && batch.implausible.is_empty();
        (!is_empty).then_some(batch)
    }
}

// ---- Ticks
//
// Parses broker A's binary ticks: bytes of one WebSocket message to exact prices. Pure.
//
// A message is `u16` packets, then for each a `u16` length and a body; big-endian and unsigned
// throughout. The length of a body decides its layout (`wire` documentation, section 10). Nothing
// is allocated and nothing panics, whatever the bytes: a message whose lengths do not add up is
// refused as a whole; an unreadable packet alone is left out.

/// A shorter message is the heartbeat, which the broker sends as one byte.
const HEADER_BYTES: usize = 2;

/// Decimal places of a price on the wire, in [`SEGMENTS`].
const PRICE_PLACES: u32 = 2;

/// Low byte of the tokens that are read: shares of NSE and BSE, and indices. Prices of other
/// segments have other divisors.
const SEGMENTS: [u32; 3] = [1, 4, 9];

/// The content of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tick {
    pub token: u32,
    pub last_price: Decimal,
    /// `None` in the shortest packet.
    pub day: Option<Day>,
    /// Exchange time; only full packets have one.
    pub at: Option<Timestamp>,
}

/// The session so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Day {
    pub open: Decimal,
    pub high: Decimal,
    pub low: Decimal,
    pub previous_close: Decimal,
}

/// The packets of a binary message. A heartbeat has none.
///
/// # Errors
/// [`Bad::Framing`]; of a packet, [`Bad::Length`] or [`Bad::Segment`].
pub(super) fn packets(message: &[u8]) -> Result<impl Iterator<Item = Result<Tick, Bad>> + '_, Bad> {
    let header = message.split_first_chunk::<HEADER_BYTES>();
    let (count, bodies) =
        header.map_or((0, &[][..]), |(count, bodies)| (u16::from_be_bytes(*count), bodies));
    // All lengths are checked first, so that a message is read as a whole or not at all.
    let mut left = bodies;
    for _ in 0..count {
        (_, left) = body(left).ok_or(Bad::Framing)?;
    }
    if !left.is_empty() {
        return Err(Bad::Framing);
    }
    let mut left = bodies;
    Ok(std::iter::from_fn(move || {
        let (packet, rest) = body(left)?;
        left = rest;
        Some(tick(packet))
    }))
}

/// The next packet's body, and the bytes after it.
fn body(left: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = left.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

fn tick(body: &[u8]) -> Result<Tick, Bad> {
    let (day, at) = match body.len() {
        8 => (None, None),
        28 => (Some(index_day(body)), None),
        32 => (Some(index_day(body)), time(body, 28)),
        44 => (Some(share_day(body)), None),
        184 => (Some(share_day(body)), time(body, 60)),
        _ => return Err(Bad::Length),
    };
    let token = word(body, 0);
    if !SEGMENTS.contains(&(token & 0xff)) {
        return Err(Bad::Segment);
    }
    Ok(Tick { token, last_price: price(body, 4), day, at })
}

/// High and low come before open.
fn index_day(body: &[u8]) -> Day {
    let (high, low) = (price(body, 8), price(body, 12));
    Day { open: price(body, 16), high, low, previous_close: price(body, 20) }
}

/// Open comes first.
fn share_day(body: &[u8]) -> Day {
    let (open, high) = (price(body, 28), price(body, 32));
    Day { open, high, low: price(body, 36), previous_close: price(body, 40) }
}

fn price(body: &[u8], offset: usize) -> Decimal {
    Decimal::new(i64::from(word(body, offset)), PRICE_PLACES)
}

/// Unix seconds.
fn time(body: &[u8], offset: usize) -> Option<Timestamp> {
    Timestamp::from_second(i64::from(word(body, offset))).ok()
}

/// The word at `offset`, which the layout of this length has.
fn word(body: &[u8], offset: usize) -> u32 {
    let bytes = body.get(offset..).and_then(|rest| rest.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod link_tests;

#[cfg(test)]
mod window_tests {
    use super::*;
    use crate::base::Symbol;
    use crate::brokers::broker_a::ticker::session::Day;
    use crate::brokers::broker_a::ticker::subscriptions::{KnownTokens, Wanted};

    const NIFTY: u32 = 256_265;
    const INFY: u32 = 408_065;

    fn subscribed() -> Subscriptions {
        let of = [("NSE:NIFTY 50", NIFTY), ("NSE:INFY", INFY)];
        let of = of.map(|(name, token)| (Symbol::parse(name).unwrap(), token));
        let (known, mut subscriptions) = (KnownTokens::default(), Subscriptions::default());
        known.learn(of.clone());
        let wanted = Wanted { shares: of.map(|(symbol, _)| symbol).into(), ..Wanted::default() };
        subscriptions.follow(&wanted, &known, 10, 0);
        subscriptions
    }

    fn tick(token: u32, paise: i64, close: i64, clock: &Clock) -> Tick {
        let zero = Decimal::ZERO;
        let previous_close = Decimal::new(close, 2);
        let day = Some(Day { open: zero, high: zero, low: zero, previous_close });
        Tick { token, last_price: Decimal::new(paise, 2), day, at: Some(clock.now()) }
    }

    #[test]
    fn the_newest_tick_of_each_instrument_is_in_the_batch_once_it_is_due() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let (subscriptions, mut window) = (subscribed(), Window::default());
        assert_eq!(window.due_in_ms(0), None);
        window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
        clock.advance_ms(100);
        window.add(tick(INFY, 140_005, 139_000, &clock), &clock);
        window.add(tick(NIFTY, 2_410_005, 2_400_000, &clock), &clock);
        window.add(tick(999, 1, 1, &clock), &clock);
        window.add(Tick { at: None, ..tick(NIFTY, 1, 1, &clock) }, &clock);
        assert_eq!(window.due_in_ms(clock.monotonic_ms()), Some(150));
        let batch = window.batch(&subscriptions, true, true, &clock, |_, _| {}).unwrap();
        assert!(batch.pushed && batch.simulated && batch.implausible.is_empty());
        assert_eq!(batch.times.asked_mono_ms, 0, "the moment of the first");
        let mut prices: Vec<String> =
            batch.quotes.iter().map(|quote| quote.last_price.to_string()).collect();
        prices.sort_unstable();
        assert_eq!(prices, ["1400.05", "24100.05"]);
        assert!(batch.quotes.iter().all(|quote| quote.timed && quote.simulated));
        window.clear();
        assert_eq!(window.due_in_ms(clock.monotonic_ms()), None);
    }

    #[test]
    fn a_refused_batch_is_tried_again_after_a_while_and_counted_once() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let (subscriptions, mut window) = (subscribed(), Window::default());
        window.add(tick(NIFTY, 2_410_000, 2_400_000, &clock), &clock);
        clock.advance_ms(1);
        window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
        let (mut made, mut counted) = (0, 0);
        // The scheduler refuses it for ten seconds, while one instrument ticks on.
        for _ in 0..10_000 {
            let now_mono_ms = clock.monotonic_ms();
            if window.due_in_ms(now_mono_ms) == Some(0) {
                let mut heard = Vec::new();
                let batch = window
                    .batch(&subscriptions, true, true, &clock, |symbol, at_mono_ms| {
                        heard.push((symbol.ticker().to_owned(), at_mono_ms));
                    })
                    .unwrap();
                assert_eq!((batch.quotes.len(), batch.times.asked_mono_ms), (2, 0));
                heard.sort_unstable();
                assert_eq!(heard[1], ("NIFTY 50".to_owned(), 0), "it does not tick");
                assert!(heard[0].1 + 10 > now_mono_ms, "{heard:?} at {now_mono_ms}");
                made += 1;
                counted += usize::from(window.refused(now_mono_ms));
                assert_eq!(window.due_in_ms(now_mono_ms), Some(TRY_AGAIN_MS));
            }
            clock.advance_ms(1);
            if clock.monotonic_ms().is_multiple_of(10) {
                window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
            }
        }
        assert_eq!((made, counted), (1 + (10_000 - WINDOW_MS) / TRY_AGAIN_MS, 1));
        window.clear();
        assert_eq!(window.due_in_ms(clock.monotonic_ms()), None);
        // The next batch is due as usual, and counts separately.
        window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
        assert_eq!(window.due_in_ms(clock.monotonic_ms()), Some(WINDOW_MS));
        assert!(window.refused(clock.monotonic_ms() + WINDOW_MS));
    }

    /// The longer run, with the service around it, is a measurement of the load test.
    #[test]
    #[expect(clippy::print_stdout, reason = "what was measured")]
    fn a_minute_of_three_thousand_symbols_takes_no_more_room_than_its_first_second() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let all = (0..SYMBOLS_MAX as u32)
            .map(|number| (Symbol::parse(&format!("NSE:S{number}")).unwrap(), (number << 8) | 1));
        let all: Vec<_> = all.collect();
        let (known, mut subscriptions) = (KnownTokens::default(), Subscriptions::default());
        known.learn(all.clone());
        let shares = all.iter().map(|(symbol, _)| symbol.clone()).collect();
        let wanted = Wanted { shares, ..Wanted::default() };
        subscriptions.follow(&wanted, &known, SYMBOLS_MAX, 0);
        let (mut window, mut room, mut batches) = (Window::default(), Vec::new(), 0);
        let timer = Clock::system();
        for half_second in 0..120 {
            for (_, token) in &all {
                window.add(tick(*token, 140_000 + half_second, 139_000, &clock), &clock);
            }
            clock.advance_ms(WINDOW_MS as i64);
            assert_eq!(window.due_in_ms(clock.monotonic_ms()), Some(0));
            let batch = window.batch(&subscriptions, true, true, &clock, |_, _| {}).unwrap();
            assert_eq!(batch.quotes.len(), SYMBOLS_MAX);
            batches += 1;
            window.clear();
            clock.advance_ms(500 - WINDOW_MS as i64);
            room.push((window.ticks.capacity(), window.days.capacity()));
        }
        assert_eq!(room[1], *room.last().unwrap());
        assert!(room[1].0 < 3 * SYMBOLS_MAX && window.days.len() == SYMBOLS_MAX);
        println!("{batches} batches within {} ms", timer.monotonic_ms());
        assert!(timer.monotonic_ms() < 60_000, "{} ms of a minute", timer.monotonic_ms());
    }

    #[test]
    fn what_cannot_be_true_is_implausible_with_its_time() {
        let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
        let (subscriptions, mut window) = (subscribed(), Window::default());
        let ahead = clock.now() + jiff::SignedDuration::from_mins(6);
        window.add(Tick { at: Some(ahead), ..tick(NIFTY, 2_410_000, 2_400_000, &clock) }, &clock);
        window.add(tick(INFY, 0, 139_000, &clock), &clock);
        let batch = window.batch(&subscriptions, true, false, &clock, |_, _| {}).unwrap();
        assert_eq!((batch.quotes.len(), batch.implausible.len()), (0, 2));
        assert_eq!(batch.ahead, Some(ahead));
        for far in [u32::MAX, 1 << 31] {
            window.clear();
            window.add(tick(INFY, i64::from(far), 139_000, &clock), &clock);
            let believed = |_: &Symbol, _| panic!("{far} counts as a tick");
            let batch = window.batch(&subscriptions, true, false, &clock, believed).unwrap();
            assert_eq!((batch.quotes.len(), batch.unproven.len()), (0, 1), "{far}");
        }
    }

    #[test]
    fn after_the_session_the_close_of_the_session_before_stays() {
        let clock = Clock::manual("2026-11-20T16:05:00+05:30".parse().unwrap());
        let (subscriptions, mut window) = (subscribed(), Window::default());
        window.add(tick(INFY, 140_000, 139_000, &clock), &clock);
        assert!(
            window.batch(&subscriptions, false, false, &clock, |_, _| {}).is_none(),
            "not known"
        );
        window.batch(&subscriptions, true, false, &clock, |_, _| {}).unwrap();
        window.clear();
        window.add(tick(INFY, 140_000, 140_000, &clock), &clock);
        let batch = window.batch(&subscriptions, false, false, &clock, |_, _| {}).unwrap();
        assert_eq!(batch.quotes[0].previous_close, Some(Decimal::new(139_000, 2)));
    }

    #[test]
    fn the_range_is_that_of_the_session_and_none_of_the_session_before() {
        let clock = Clock::manual("2026-11-20T15:29:00+05:30".parse().unwrap());
        let (subscriptions, mut window) = (subscribed(), Window::default());
        let paise = |paise| Decimal::new(paise, 2);
        let mut range = |trades, (low, last, high)| {
            let plain = tick(INFY, last, 139_000, &clock);
            let day = plain.day.map(|day| Day { low: paise(low), high: paise(high), ..day });
            window.clear();
            window.add(Tick { day, ..plain }, &clock);
            let batch = window.batch(&subscriptions, trades, false, &clock, |_, _| {}).unwrap();
            batch.quotes[0].day.map(|day| (day.low(), day.high()))
        };
        let session = Some((paise(138_000), paise(141_000)));
        assert_eq!(range(true, (138_000, 140_000, 141_000)), session);
        assert_eq!(range(true, (140_001, 140_000, 141_000)), None, "above the price");
        assert_eq!(range(true, (0, 140_000, 0)), None, "before the first trade");
        assert_eq!(range(true, (138_000, 140_000, 141_000)), session);
        clock.advance_ms(3_600_000);
        // What the broker sends after the session is not certain.
        assert_eq!(range(false, (1, 140_000, 150_000)), session);
        assert_eq!(range(false, (1, 141_001, 150_000)), None);
        clock.advance_ms(17 * 3_600_000);
        assert_eq!(range(false, (138_000, 140_000, 141_000)), None, "of the date before");
    }
}

#[cfg(test)]
#[path = "../ticks_tests.rs"]
mod ticks_tests;
