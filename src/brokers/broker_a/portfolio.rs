//! Broker A's client for one user's portfolio, with that user's own credentials.
//!
//! Runs on the lane of user syncs and blocks up to the budget of one sync. It has its own limits
//! and circuit, separate from the shared feed's, and each sync has its own connection. It keeps no
//! user's data between two syncs, and never logs credentials.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use rust_decimal::Decimal;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sonic_rs::LazyValue;
use zeroize::Zeroizing;

use crate::base::{
    Account, Broker, Clock, Cost, Holding, Position, PositionKind, SoldHolding, Synced,
    broker_user, json, wipe,
};
use crate::brokers::broker_a::open_session::{END_TIMEOUT_MS, Session, SessionEnd, exchange};
use crate::brokers::broker_a::trades_wire;
use crate::brokers::broker_a::wire::{API_VERSION, Envelope, NAME, failed, malformed};
use crate::brokers::call::transport::{CallLimits, Redirects, Reply, Transport};
use crate::brokers::feed::Number;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::sync::{SyncGate, SyncGuard};
use crate::brokers::sync_limits::SyncRates;
use crate::brokers::trades::ReadTrades;
use crate::brokers::{
    BrokerError, BrokerErrorKind as Kind, Credentials, OpenSession, SyncedTrades, portfolio,
};
use crate::ops::counter::Counts;

/// The documented limits of each API key (`wire` documentation, 9). No limit per address is
/// documented. In the long run all syncs together may make as many calls as two busy keys, and at
/// once enough for sixty users at the opening bell.
const RATES: SyncRates = SyncRates {
    key_calls_max: 10,
    key_window_ms: 1_000,
    key_day_calls_max: usize::MAX,
    calls_max: 200,
    window_ms: 10_000,
};

/// Session, holdings, positions.
const CALLS: usize = 3;

/// The outcome of a sync: rows or the error, and the session if one was opened.
pub(super) struct Fetched {
    pub(super) result: Result<Synced, BrokerError>,
    pub(super) session: Option<Session>,
}

/// A session with the client that ends it.
pub(super) struct Ending {
    pub(super) portfolios: Arc<Portfolios>,
    pub(super) session: Session,
}

impl OpenSession for Ending {
    fn trades(&self, _: &BTreeSet<Date>) -> SyncedTrades {
        let mut trades = SyncedTrades::default();
        match self.portfolios.trades(&self.session) {
            Ok(read) => trades.add(read),
            Err(error) => trades.error = Some(error),
        }
        trades
    }

    fn end(self: Box<Self>) {
        self.portfolios.end(self.session);
    }

    fn keep(self: Box<Self>) {
        self.session.keep();
    }
}

/// All users' syncs.
pub(super) struct Portfolios {
    url: String,
    clock: Clock,
    transport: Transport,
    limits: CallLimits,
    pub(super) gate: SyncGate,
    /// Counts of the sessions that syncs opened.
    pub(super) session_ends: Arc<Counts<SessionEnd>>,
}

impl Portfolios {
    /// A client for the API at the checked URL `url`.
    pub(super) fn new(url: &str, upstream: &UpstreamSettings, clock: &Clock) -> Self {
        let user_agent = concat!("bhav/", env!("CARGO_PKG_VERSION"));
        Self {
            transport: Transport::new(upstream, url, user_agent, Redirects::Never),
            limits: CallLimits::usual(upstream),
            url: url.to_owned(),
            clock: clock.clone(),
            gate: SyncGate::new(NAME, "broker A portfolios", clock, upstream, RATES),
            session_ends: Arc::default(),
        }
    }

    /// Exchanges the one-time code and reads holdings and positions with the new session. A sync
    /// that failed half-way returns only the session, which is still open.
    pub(super) fn sync(&self, credentials: &Credentials) -> Fetched {
        let mut session = None;
        let sync = |guard: &SyncGuard<'_>| self.fetch(credentials, guard, &mut session);
        let checked = credentials.check(NAME);
        let result = checked.and_then(|()| self.gate.sync(credentials, CALLS, sync));
        Fetched { result, session }
    }

    /// Ends a session that a sync opened, if a call may be made now. Its failure does not count
    /// against the circuit or the limits of syncs.
    pub(super) fn end(&self, session: Session) {
        let url = format!("{}/session/token", self.url);
        let total_timeout_ms = self.limits.total_timeout_ms.min(END_TIMEOUT_MS);
        let limits = CallLimits {
            total_timeout_ms,
            ..self.limits
        };
        if self.gate.take_one(session.caller) {
            session.end(&url, limits, is_success);
            // Sending it leaves pieces of the token on the stack.
            wipe::scrub();
        }
    }

    /// The trades of today.
    fn trades(&self, session: &Session) -> Result<ReadTrades, BrokerError> {
        let authorization = session.authorization();
        let caller = (session.caller, &session.api_key);
        self.gate.beside(caller, self.gate.until_ms(), |limits| {
            let reply = self.read(&session.connection, "/trades", &authorization, limits)?;
            trades_wire::trades(data(Call::Read, &reply)?)
        })
    }

    fn fetch(
        &self,
        credentials: &Credentials,
        guard: &SyncGuard<'_>,
        opened: &mut Option<Session>,
    ) -> Result<Synced, BrokerError> {
        let connection = self.transport.apart();
        let (token, broker_user, simulated) =
            guard.call(|limits| self.session(&connection, credentials, limits))?;
        let caller = guard.caller();
        let key = credentials.api_key.clone();
        let session = Session::new(connection, caller, key, token, Arc::clone(&self.session_ends));
        let session = opened.insert(session);
        let authorization = session.authorization();
        let read = |path, limits| self.read(&session.connection, path, &authorization, limits);
        let mut synced = Synced {
            simulated,
            broker_user,
            ..Synced::default()
        };
        let rows = guard.call(|limits| {
            let reply = read("/portfolio/holdings", limits)?;
            holdings(&reply, self.clock.now_ms())
        })?;
        synced.holdings = rows.held;
        synced.sold_holdings = rows.sold;
        synced.positions = guard.call(|limits| {
            let reply = read("/portfolio/positions", limits)?;
            positions(&reply)
        })?;
        Ok(synced)
    }

    /// The access token, the broker's id of its owner, and whether a simulator replied.
    fn session(
        &self,
        connection: &Transport,
        credentials: &Credentials,
        limits: CallLimits,
    ) -> Result<(SecretString, Option<String>, bool), BrokerError> {
        let Credentials {
            api_key,
            api_secret,
            one_time_code,
            ..
        } = credentials;
        let app = (api_key, api_secret);
        let code = one_time_code.expose_secret();
        let exchanged = exchange(connection, &self.url, app, code, limits, session);
        let (session, simulated) = exchanged.map_err(|error| error.of_user(NAME))?;
        let (token, broker_user) = session?;
        Ok((token, broker_user, simulated))
    }

    fn read(
        &self,
        connection: &Transport,
        path: &str,
        authorization: &Zeroizing<String>,
        limits: CallLimits,
    ) -> Result<Reply, BrokerError> {
        let headers = [API_VERSION, ("authorization", authorization.as_str())];
        let sent = connection.get(&format!("{}{path}", self.url), &headers, limits);
        sent.map_err(|error| error.of_user(NAME))
    }
}

// ---- Portfolio wire
//
// Parses broker A's answers to a user's sync into holdings and positions, or into an error. Pure.
//
// An answer is a portfolio only if its envelope reports success and every row can be read. Anything
// else is an error, never an empty portfolio. `error_type` decides the kind of an error, then the
// HTTP status. The broker's text decides only between the two kinds of refused login.

/// The broker's error names are shorter. A longer one is not repeated in our text.
const ERROR_TYPE_BYTES_MAX: usize = 32;
/// Longest ticker, exchange, ISIN or product; real ones have up to 30 bytes.
const TEXT_BYTES_MAX: usize = 64;
/// The broker counts calls by the second.
const RATE_LIMIT_WAIT_MIN: Duration = Duration::from_secs(1);

/// The call that an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// `POST /session/token`: here the "token" is the one-time code or the checksum.
    Session,
    /// A read with the access token.
    Read,
}

/// The access token of a new session, and the broker's id of its owner.
///
/// # Errors
/// As [`data`], and [`Malformed`](crate::brokers::BrokerErrorKind::Malformed) without an access
/// token.
pub(in crate::brokers) fn session(
    reply: &Reply,
) -> Result<(SecretString, Option<String>), BrokerError> {
    let data = data(Call::Session, reply)?;
    let members = json::members(data.as_bytes()).unwrap_or_default();
    let text = |name| json::text(&members, name).filter(|text| !text.is_empty());
    let token = text("access_token").map(|token| SecretString::from(token.as_str()));
    let token = token.ok_or_else(|| malformed("session without an access token"))?;
    Ok((token, text("user_id").and_then(|id| broker_user(&id))))
}

/// The rows of `GET /portfolio/holdings`.
#[derive(Debug, Default)]
pub(in crate::brokers) struct HoldingRows {
    pub(in crate::brokers) held: Vec<Holding>,
    /// Rows of which nothing is left, by what was sold today.
    pub(in crate::brokers) sold: Vec<SoldHolding>,
}

/// The rows of `GET /portfolio/holdings`. Those of which nothing is owned, pledged or funded, and
/// nothing was sold today, are left out.
///
/// # Errors
/// As [`data`], and [`Malformed`](crate::brokers::BrokerErrorKind::Malformed) when a row cannot be
/// read.
pub(in crate::brokers) fn holdings(
    reply: &Reply,
    as_of_ms: i64,
) -> Result<HoldingRows, BrokerError> {
    let rows: Vec<WireHolding> = portfolio::rows(NAME, data(Call::Read, reply)?)?;
    let mut read = HoldingRows::default();
    for row in rows {
        add_holding(row, as_of_ms, &mut read)
            .ok_or_else(|| malformed("holding without a name or a quantity"))?;
    }
    Ok(read)
}

/// The rows of both lists of `GET /portfolio/positions`, including closed ones.
///
/// # Errors
/// As [`holdings`].
pub(in crate::brokers) fn positions(reply: &Reply) -> Result<Vec<Position>, BrokerError> {
    #[derive(Deserialize)]
    struct Lists<'a> {
        #[serde(borrow)]
        net: LazyValue<'a>,
        #[serde(borrow)]
        day: LazyValue<'a>,
    }
    let data = data(Call::Read, reply)?;
    if data == "null" {
        return Ok(Vec::new());
    }
    let lists: Lists<'_> =
        json::parse(data.as_bytes()).ok_or_else(|| malformed("positions without their lists"))?;
    let mut positions = Vec::new();
    for (kind, list) in [
        (PositionKind::Net, &lists.net),
        (PositionKind::Day, &lists.day),
    ] {
        let rows: Vec<WirePosition> = portfolio::rows(NAME, list.as_raw_str())?;
        for row in rows {
            let position = position(row, kind);
            positions.push(position.ok_or_else(|| malformed("position without a name"))?);
        }
    }
    Ok(positions)
}

/// Whether the reply is a success, whatever its data.
pub(super) fn is_success(reply: &Reply) -> bool {
    data(Call::Read, reply).is_ok()
}

/// `data` of a success.
fn data(call: Call, reply: &Reply) -> Result<&str, BrokerError> {
    let envelope = Envelope::of(&reply.body).ok_or_else(|| not_an_envelope(reply))?;
    if envelope.is_error() {
        let message = envelope.message.to_ascii_lowercase();
        return Err(reported(call, reply, envelope.error_type(), &message));
    }
    envelope
        .success(reply.status)
        .ok_or_else(|| not_an_envelope(reply))
}

/// An error that the broker reports. `message` is in lower case.
fn reported(call: Call, reply: &Reply, kind: &str, message: &str) -> BrokerError {
    let status = reply.status;
    match (kind, call) {
        ("TokenException", Call::Session) => refused_login(message),
        ("TokenException", Call::Read) => {
            failed(Kind::CodeRefused, "the session made with it is over")
        }
        ("PermissionException" | "PermissionError", _) => {
            failed(Kind::NotPermitted, "the app lacks the permission")
        }
        ("UserException", _) => failed(Kind::AccountProblem, ""),
        ("TwoFAException", _) => failed(Kind::SecondFactorProblem, ""),
        _ if status == 429 || message.contains("too many requests") => {
            portfolio::rate_limited(NAME, reply, RATE_LIMIT_WAIT_MIN)
        }
        ("InputException", Call::Session) => refused_login(message),
        // Our own requests have no parameters that could be wrong.
        ("InputException", Call::Read) => malformed("a read is called bad input"),
        ("", _) if status < 500 => malformed(format!("an error without a type, HTTP {status}")),
        // Network, Data, General and types for orders. Unknown types count as General.
        _ => unavailable(kind, status),
    }
}

/// Wrong key, secret or code; only the text shows which.
fn refused_login(message: &str) -> BrokerError {
    if message.contains("checksum") {
        failed(Kind::KeyRefused, "the checksum is wrong: API key or secret")
    } else if message.contains("api_key") {
        failed(Kind::KeyRefused, "the API key is unknown")
    } else {
        failed(Kind::CodeRefused, "wrong, used or too old")
    }
}

fn unavailable(kind: &str, status: u16) -> BrokerError {
    let named = kind.len() <= ERROR_TYPE_BYTES_MAX && kind.ends_with("Exception");
    let named = named && kind.bytes().all(|byte| byte.is_ascii_alphabetic());
    let kind = if named { kind } else { "an unknown error" };
    failed(Kind::Failed { status }, kind)
}

/// An answer without a readable envelope, such as an outage page in front of the broker.
fn not_an_envelope(reply: &Reply) -> BrokerError {
    portfolio::not_an_envelope(NAME, reply, RATE_LIMIT_WAIT_MIN)
}

/// What must be there is checked with the values.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WireHolding {
    tradingsymbol: String,
    exchange: String,
    isin: Option<String>,
    quantity: Number,
    used_quantity: Number,
    t1_quantity: Number,
    collateral_quantity: Number,
    mtf: Option<WireMtf>,
    average_price: Number,
    last_price: Number,
    close_price: Number,
    pnl: Number,
    discrepancy: Option<bool>,
}

#[derive(Deserialize)]
struct WireMtf {
    #[serde(default)]
    quantity: Number,
}

/// Adds a row, unless all were sold before today, or the shares that are not delivered yet make up
/// for those sold before. `None` if it is invalid.
fn add_holding(row: WireHolding, as_of_ms: i64, rows: &mut HoldingRows) -> Option<()> {
    let isin = row.isin.filter(|isin| !isin.is_empty());
    if !named(&row.tradingsymbol) || !named(&row.exchange) || !isin.as_deref().is_none_or(named) {
        return None;
    }
    let settled_quantity = row.quantity.0?;
    let t1_quantity = row.t1_quantity.or_zero();
    let pledged_quantity = row.collateral_quantity.or_zero();
    let mtf_quantity = row
        .mtf
        .map(|mtf| mtf.quantity.or_zero())
        .unwrap_or_default();
    let used_quantity = row.used_quantity.or_zero();
    let owned = settled_quantity.checked_add(t1_quantity)?;
    let quantities = [owned, pledged_quantity, mtf_quantity];
    if quantities.iter().all(Decimal::is_zero) {
        if !used_quantity.is_zero() {
            rows.sold.push(SoldHolding {
                account: Account::at(Broker::A),
                exchange: row.exchange,
                tradingsymbol: row.tradingsymbol,
                isin,
                used_quantity,
            });
        }
        return Some(());
    }
    let holding = Holding {
        account: Account::at(Broker::A),
        exchange: row.exchange,
        tradingsymbol: row.tradingsymbol,
        isin,
        settled_quantity,
        t1_quantity,
        pledged_quantity,
        mtf_quantity,
        used_quantity,
        disputed_quantity: Decimal::ZERO,
        cost: row.average_price.price().map(Cost::PerShare),
        last_price: row.last_price.price(),
        close_price: row.close_price.price(),
        change_pct: None,
        as_of_ms,
        broker_pnl: row.pnl.0,
        discrepancy: row.discrepancy.unwrap_or(false),
        unresolved: false,
        mark: None,
    };
    rows.held.push(holding.with_known_profit());
    Some(())
}

/// What must be there is checked with the values.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WirePosition {
    tradingsymbol: String,
    exchange: String,
    product: String,
    quantity: Number,
    multiplier: Number,
    average_price: Number,
    last_price: Number,
    close_price: Number,
    pnl: Number,
    buy_quantity: Number,
    sell_quantity: Number,
}

impl WirePosition {
    /// The realised and the unrealised part of `pnl`, each if the row's figures give it. The
    /// broker's own fields are not used, because it leaves the gain of a closed position in
    /// `unrealised`.
    fn split(&self, quantity: Decimal, multiplier: Decimal) -> (Option<Decimal>, Option<Decimal>) {
        let pnl = self.pnl.0;
        if quantity.is_zero() {
            return (pnl, Some(Decimal::ZERO));
        }
        let (Some(bought), Some(sold)) = (self.buy_quantity.0, self.sell_quantity.0) else {
            return (None, None);
        };
        if bought.checked_sub(sold) != Some(quantity) {
            return (None, None);
        }
        if bought.is_zero() || sold.is_zero() {
            return (Some(Decimal::ZERO), pnl);
        }
        // Partly closed: the average price refers to the remaining quantity.
        let unrealised = || {
            let gain = self
                .last_price
                .price()?
                .checked_sub(self.average_price.price()?)?;
            gain.checked_mul(quantity)?.checked_mul(multiplier)
        };
        let unrealised = unrealised();
        let realised = pnl
            .zip(unrealised)
            .and_then(|(pnl, open)| pnl.checked_sub(open));
        (realised, unrealised)
    }
}

fn position(row: WirePosition, kind: PositionKind) -> Option<Position> {
    if ![&row.tradingsymbol, &row.exchange, &row.product]
        .into_iter()
        .all(|text| named(text))
    {
        return None;
    }
    let quantity = row.quantity.0?;
    let multiplier = row.multiplier.price().unwrap_or(Decimal::ONE);
    let (realised, unrealised) = row.split(quantity, multiplier);
    let position = Position {
        account: Account::at(Broker::A),
        kind,
        exchange: row.exchange,
        tradingsymbol: row.tradingsymbol,
        product: row.product,
        quantity,
        multiplier,
        average_price: row.average_price.price(),
        last_price: row.last_price.price(),
        close_price: row.close_price.price(),
        pnl: row.pnl.0,
        realised,
        unrealised,
        unresolved: false,
    };
    Some(position.with_known_profit())
}

/// Whether this can be a name: not empty, not too long, no control characters.
fn named(text: &str) -> bool {
    (1..=TEXT_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control)
}

#[cfg(test)]
#[path = "portfolio_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "portfolio_limits_tests.rs"]
mod limits_tests;

#[cfg(test)]
#[path = "portfolio_wire_tests.rs"]
mod portfolio_wire_tests;
