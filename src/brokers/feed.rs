//! A feed of quotes: its trait, its batches, and the errors of all calls to brokers.
//!
//! Calls block and run on the feed's lane.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use sonic_rs::LazyValue;

use crate::base::{Clock, DayRange, Quote, Source, Symbol, json, words};

/// A source of quotes that answers in batches.
///
/// Implementations own their rate limit, their circuit breaker and their plausibility checks, so
/// that no caller can spend more of the upstream's budget than the settings allow.
pub(crate) trait MarketFeed: Send + Sync {
    /// The source of its quotes.
    fn source(&self) -> Source;

    /// Maximum number of instruments in one call now.
    fn batch_max(&self) -> usize;

    /// Whether a call could be made now. Never blocks.
    fn readiness(&self) -> Readiness;

    /// One upstream call for at most [`batch_max`](Self::batch_max) symbols. Blocks for at most the
    /// settings' total deadline.
    ///
    /// # Errors
    /// [`BrokerError`]; a batch that failed as a whole returns no quotes.
    fn quotes(&self, symbols: &[Symbol]) -> Result<Batch, BrokerError>;
}

/// The reply to one call, or pushed quotes. A symbol in none of the lists was not requested: a feed
/// that uses its spare route requests fewer (see [`MarketFeed::batch_max`]).
#[derive(Debug, Default)]
pub struct Batch {
    /// Plausible quotes of requested symbols, in no particular order.
    pub quotes: Vec<Quote>,
    /// Symbols the upstream does not know (left out of its answer).
    pub unknown: Vec<Symbol>,
    /// Symbols with an implausible price: zero, in another currency, or too old.
    pub implausible: Vec<Symbol>,
    /// The newest price time that is too far ahead of our clock.
    pub ahead: Option<Timestamp>,
    /// Number of prices whose time is too far ahead.
    pub ahead_count: u64,
    /// Times of the call and its answer.
    pub times: CallTimes,
    /// Maximum number of symbols in a call of the route that answered.
    pub symbols_max: usize,
    /// The answer carried the simulator's mark.
    pub simulated: bool,
    /// The batch was pushed. Symbols that it lacks are not missing at the source.
    pub pushed: bool,
}

impl Batch {
    /// Records a symbol whose price is implausible, and the price's time.
    pub(super) fn disbelieve(&mut self, symbol: Symbol, as_of: Option<Timestamp>) {
        let answered = self.times.answered;
        let ahead = as_of.filter(|at| Quote::is_ahead(*at, answered));
        self.ahead = self.ahead.max(ahead);
        self.ahead_count += u64::from(ahead.is_some());
        self.implausible.push(symbol);
    }
}

/// Passes a pushed batch to the scheduler. Returns it while the scheduler has not taken the one
/// before.
pub type Push = Box<dyn Fn(Box<Batch>) -> Result<(), Box<Batch>> + Send>;

/// Times at which a call was made and its answer was complete.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallTimes {
    pub asked: Timestamp,
    /// The same moment by the monotonic clock.
    pub asked_mono_ms: u64,
    pub answered: Timestamp,
}

impl CallTimes {
    /// The times of a call that is made now, before its answer.
    pub(super) fn begin(clock: &Clock) -> Self {
        let asked = clock.now();
        Self { asked, asked_mono_ms: clock.monotonic_ms(), answered: asked }
    }

    /// The same times, answered now.
    pub(super) fn end(self, clock: &Clock) -> Self {
        Self { answered: clock.now(), ..self }
    }
}

/// Whether a feed can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Now.
    Ready,
    /// After this time: rate limit or penalty.
    Paced(Duration),
    /// Circuit open for this long after repeated failures.
    Open(Duration),
    /// Broker A without a token, or with one that is known to be dead.
    NoToken,
    /// Broker A's token is good but its plan carries no market data (PermissionException).
    NoPermission,
    /// Switched off by a setting.
    Off,
    /// Another node leads, and calls the feeds for all nodes.
    Follows,
}

// ---- Error
//
// The error of a failed call to a broker or to the public provider: one type for feeds, syncs and
// logins.
//
// Its text is for the log and for the operator's health page. It consists of our own text, of
// numbers, and of a feed's message about our own request. The error of a user's sync contains no
// text of the broker, which may have repeated the credentials.

/// A failed call. A batch or sync that failed half-way returns no data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerError {
    /// The upstream's name in the log.
    pub upstream: &'static str,
    pub kind: BrokerErrorKind,
    /// Particulars; empty if the kind is enough.
    pub detail: String,
    retry_after: Option<Duration>,
}

/// The kind of an error. A caller's next step depends on this alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerErrorKind {
    /// The call was not made: a limit, the open circuit, no token, or a switch.
    NotReady(Readiness),
    /// No connection, or one that broke before the reply was complete.
    Unreachable,
    /// No complete reply in time.
    TimedOut,
    /// The upstream wants fewer calls.
    RateLimited,
    /// The broker names a limit that it documents as the API key's own.
    KeySpent,
    /// The server's access token is no longer accepted.
    TokenDead,
    /// The one-time code of a login is wrong, used or expired, or the session made of it ended.
    CodeRefused,
    /// The API key is unknown, or the secret does not match it.
    KeyRefused,
    /// The API key is good, but its app or plan may not do this.
    NotPermitted,
    /// The account is blocked or incomplete. Only its owner can solve that with the broker.
    AccountProblem,
    /// The account's second factor is missing or blocked. Only its owner can settle that.
    SecondFactorProblem,
    /// The broker accepts calls of this API key from registered network addresses only.
    AddressRefused,
    /// The request itself was refused, for instance for one of its symbols.
    Refused,
    /// The upstream reports a failure of its own.
    Failed { status: u16 },
    /// A reply that the upstream does not document. It is never an empty portfolio.
    Malformed,
    /// A redirect, which is not followed: it would take credentials to another host.
    Redirected,
}

impl BrokerError {
    pub(crate) fn new(
        upstream: &'static str,
        kind: BrokerErrorKind,
        detail: impl Into<String>,
    ) -> Self {
        Self { upstream, kind, detail: detail.into(), retry_after: None }
    }

    /// A call that was not made.
    pub(crate) fn not_ready(upstream: &'static str, readiness: Readiness) -> Self {
        Self::new(upstream, BrokerErrorKind::NotReady(readiness), "")
    }

    /// The same, not to be tried again before `wait` has passed.
    pub(crate) fn after(mut self, wait: Duration) -> Self {
        match &mut self.kind {
            BrokerErrorKind::NotReady(Readiness::Paced(own) | Readiness::Open(own)) => *own = wait,
            _ => self.retry_after = Some(wait),
        }
        self
    }

    /// Time until the same call may succeed, if that is known.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            BrokerErrorKind::NotReady(Readiness::Paced(wait) | Readiness::Open(wait)) => Some(wait),
            _ => self.retry_after,
        }
    }
}

/// The meaning of an error for the upstream's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It answered, though with an error.
    Works,
    /// It wants fewer calls. The pace handles that, not the circuit.
    Throttles,
    Fails,
    /// It sent a malformed answer. For a call of the server itself that is a failure. A user's odd
    /// key can cause odd answers, and must not open the circuit for everyone.
    Strange,
}

words! {
    /// Outcome of a call that was made, for metrics.
    pub(super) enum Outcome {
        Ok = "ok",
        Unreachable = "unreachable",
        TimedOut = "timed_out",
        RateLimited = "rate_limited",
        TokenDead = "token_dead",
        NoPermission = "no_permission",
        Refused = "refused",
        UpstreamError = "upstream_error",
        Malformed = "malformed",
    }
}

/// The meaning of an error for the circuit, the metrics and the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    pub(super) health: Health,
    /// `None` if no call was made.
    pub(super) outcome: Option<Outcome>,
    /// Whether the upstream refuses the request's content. The same content is refused again each
    /// time, so users' refusals are counted.
    pub(super) blames_request: bool,
}

impl BrokerErrorKind {
    /// The table of what errors mean here. The table of answers to clients is in `api/errors.rs`.
    pub(super) fn judged(self) -> Judged {
        let (health, outcome, blames_request) = match self {
            Self::NotReady(_) => (Health::Works, None, false),
            Self::Unreachable => (Health::Fails, Some(Outcome::Unreachable), false),
            Self::TimedOut => (Health::Fails, Some(Outcome::TimedOut), false),
            Self::Failed { .. } => (Health::Fails, Some(Outcome::UpstreamError), false),
            Self::Malformed | Self::Redirected => {
                (Health::Strange, Some(Outcome::Malformed), false)
            }
            Self::RateLimited => (Health::Throttles, Some(Outcome::RateLimited), false),
            Self::KeySpent => (Health::Works, Some(Outcome::RateLimited), true),
            Self::TokenDead => (Health::Works, Some(Outcome::TokenDead), true),
            Self::NotPermitted => (Health::Works, Some(Outcome::NoPermission), true),
            Self::CodeRefused
            | Self::KeyRefused
            | Self::AccountProblem
            | Self::SecondFactorProblem
            | Self::AddressRefused
            | Self::Refused => (Health::Works, Some(Outcome::Refused), true),
        };
        Judged { health, outcome, blames_request }
    }
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use BrokerErrorKind as Kind;
        let Self { upstream: name, kind, detail, .. } = self;
        match kind {
            Kind::NotReady(readiness) => write!(f, "not asked: {readiness:?}"),
            Kind::Unreachable => write!(f, "cannot reach {name}: {detail}"),
            Kind::TimedOut => write!(f, "{name} took longer than {detail}"),
            Kind::RateLimited => write!(f, "{name} refused for too many requests"),
            Kind::KeySpent => write!(f, "{name}: the API key has no calls left"),
            Kind::TokenDead => write!(f, "{name} says the token is dead"),
            Kind::CodeRefused => write!(f, "{name} does not accept the one-time code: {detail}"),
            Kind::KeyRefused => {
                write!(f, "{name} does not accept the API key or its signature: {detail}")
            }
            Kind::NotPermitted => write!(f, "{name}: {detail}"),
            Kind::AccountProblem => {
                write!(f, "{name}: the broker says that the account has a problem")
            }
            Kind::SecondFactorProblem => {
                write!(f, "{name}: the broker says that the account's second factor has a problem")
            }
            Kind::AddressRefused => {
                write!(f, "{name} does not accept calls from this address: {detail}")
            }
            Kind::Refused => write!(f, "{name} refused the request: {detail}"),
            Kind::Failed { status } => write!(f, "{name} failed with HTTP {status}: {detail}"),
            Kind::Malformed => write!(f, "{name} answered nonsense: {detail}"),
            Kind::Redirected => write!(f, "{name} answered with a redirect that is not followed"),
        }
    }
}

impl std::error::Error for BrokerError {}

// ---- Quote checks
//
// Plausibility checks of prices, for every source in one place. Pure.
//
// The limits are wide on purpose: real days are wild, and a refused true price is as wrong as a
// shown false one. They catch zeros, other instruments' prices, lost decimal points and dead feeds.

/// Oldest price that is still "the last session's". The longest closures are long weekends of four
/// or five days; twice that leaves room for shares that did not trade on a day or two.
const AGE_MAX: SignedDuration = SignedDuration::from_hours(10 * 24);

/// Highest believable price. No share or index comes near; a higher one has lost a decimal point.
const PRICE_MAX: Decimal = Decimal::from_parts(100_000_000, 0, 0, false, 0);

/// Kind of an instrument, which decides how far it may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Shares with derivatives have no fixed price band, and index members fell by 26 to 28 % on
    /// days of 2023 and 2025; others are banded at 20 % except on listing and relisting days.
    Share,
    /// The market-wide breaker halts the day at 20 %; sector indices go a little further.
    Index,
    /// An index of implied volatility, which rose by half in a day more than once.
    Volatility,
}

impl Kind {
    /// Whether such a change from the previous close is believable, either way.
    fn allows(self, price: Decimal, previous_close: Decimal) -> bool {
        let pct_max = match self {
            Self::Share => 50,
            Self::Index => 25,
            Self::Volatility => 200,
        };
        let pct = json::percent_change(price, previous_close);
        pct.is_some_and(|pct| pct.abs() <= Decimal::from(pct_max))
    }

    /// The kind of `symbol`, which is an index or a share.
    pub(super) fn of(symbol: &Symbol, is_index: bool) -> Self {
        match is_index {
            false => Self::Share,
            true if symbol.ticker().contains("VIX") => Self::Volatility,
            true => Self::Index,
        }
    }
}

/// An upstream's data about one instrument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub last_price: Decimal,
    pub previous_close: Option<Decimal>,
    /// Lowest and highest price of the price's session.
    pub low: Option<Decimal>,
    pub high: Option<Decimal>,
    /// Time of the price; `None` if the upstream sent none.
    pub as_of: Option<Timestamp>,
}

/// The reason for refusing a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The price is not positive, or absurdly large.
    Price,
    /// Price time ahead of our clock.
    Future,
    /// Price time older than any market closure.
    Old,
    /// Change from the previous close above the limit of the kind.
    Change,
}

impl Claim {
    /// Checks the claim. Returns the previous close to show with the price, if it is positive.
    ///
    /// # Errors
    /// The first [`Doubt`].
    fn believed(&self, kind: Kind, now: Timestamp) -> Result<Option<Decimal>, Doubt> {
        if self.last_price <= Decimal::ZERO || self.last_price > PRICE_MAX {
            return Err(Doubt::Price);
        }
        if self.as_of.is_some_and(|as_of| Quote::is_ahead(as_of, now)) {
            return Err(Doubt::Future);
        }
        let age = self.as_of.map(|as_of| now.duration_since(as_of)).unwrap_or_default();
        if age > AGE_MAX {
            return Err(Doubt::Old);
        }
        let previous_close = self.previous_close.filter(|close| *close > Decimal::ZERO);
        if previous_close.is_some_and(|close| !kind.allows(self.last_price, close)) {
            return Err(Doubt::Change);
        }
        Ok(previous_close)
    }

    /// The range of the session, if it is as plausible as the price. The price is believed without
    /// it.
    fn day(&self, kind: Kind, previous_close: Option<Decimal>) -> Option<DayRange> {
        let range = DayRange::around(self.last_price, self.low, self.high)?;
        let is_near = |price| previous_close.is_none_or(|close| kind.allows(price, close));
        let is_believed =
            range.high() <= PRICE_MAX && is_near(range.low()) && is_near(range.high());
        is_believed.then_some(range)
    }

    /// The claim as a quote of `symbol`, if it is plausible.
    pub(crate) fn quote(
        &self,
        kind: Kind,
        symbol: &Symbol,
        times: &CallTimes,
        source: Source,
        simulated: bool,
    ) -> Option<Quote> {
        let previous_close = self.believed(kind, times.answered).ok()?;
        Some(Quote {
            symbol: symbol.clone(),
            last_price: self.last_price,
            previous_close,
            day: self.day(kind, previous_close),
            as_of: self.as_of.unwrap_or(times.asked),
            timed: self.as_of.is_some(),
            asked: times.asked,
            delay_s: None,
            source,
            simulated,
        })
    }
}

// ---- Number
//
// Parses numbers as the brokers write them: with or without quotes, whole or not, null, or a text
// for a missing value. Pure; never panics, never rounds.

/// Longest number that is read; a decimal has at most 29 digits.
const NUMBER_BYTES_MAX: usize = 64;

/// A number, or the broker's text for a missing one (`null`, `""`, `NA`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number(pub(super) Option<Decimal>);

impl Number {
    /// The value as a price; zero means that the broker has none.
    pub(super) fn price(self) -> Option<Decimal> {
        self.0.filter(|price| *price > Decimal::ZERO)
    }

    /// The value as a quantity; older answers leave out zero.
    pub(super) fn or_zero(self) -> Decimal {
        self.0.unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw: LazyValue<'de> = Deserialize::deserialize(deserializer)?;
        read(raw.as_raw_str()).ok_or_else(|| D::Error::custom("not a number"))
    }
}

/// `None` if the JSON text `raw` is neither a number nor a text for a missing one.
pub(super) fn read(raw: &str) -> Option<Number> {
    let raw = raw.trim();
    let text = match raw.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"')?.trim(),
        None => raw,
    };
    if text.is_empty() || text == "null" || text.eq_ignore_ascii_case("na") {
        return Some(Number(None));
    }
    // The decimal parser would accept underscores too.
    let plain = |byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    if text.len() > NUMBER_BYTES_MAX || !text.bytes().all(plain) {
        return None;
    }
    json::parse_decimal(text).map(|number| Number(Some(number)))
}

#[cfg(test)]
mod quote_checks_tests {
    use super::*;

    fn claim(last: &str, close: &str) -> Claim {
        Claim {
            last_price: last.parse().unwrap(),
            previous_close: Some(close.parse().unwrap()),
            low: None,
            high: None,
            as_of: Some(now()),
        }
    }

    fn now() -> Timestamp {
        "2026-11-20T10:00:00Z".parse().unwrap()
    }

    #[test]
    fn prices_and_changes() {
        let of_index = |name| Kind::of(&Symbol::parse(name).unwrap(), true);
        for (kind, last, close, expected) in [
            (Kind::Share, "1412.95", "1389.65", Ok(())),
            (Kind::Share, "0", "10", Err(Doubt::Price)),
            (Kind::Share, "-1", "10", Err(Doubt::Price)),
            (Kind::Share, "100000001", "0", Err(Doubt::Price)),
            (Kind::Share, "71.8", "100", Ok(())),
            (Kind::Share, "150", "100", Ok(())),
            (Kind::Share, "150.01", "100", Err(Doubt::Change)),
            (Kind::Share, "49.99", "100", Err(Doubt::Change)),
            (Kind::Index, "80", "100", Ok(())),
            (Kind::Index, "74", "100", Err(Doubt::Change)),
            (of_index("NSE:INDIA VIX"), "22.8", "13.8", Ok(())),
            (of_index("NSE:NIFTY 50"), "22.8", "13.8", Err(Doubt::Change)),
        ] {
            let got = claim(last, close).believed(kind, now()).map(|_| ());
            assert_eq!(got, expected, "{kind:?} {last} {close}");
        }
    }

    #[test]
    fn a_range_that_cannot_be_true_is_dropped_and_its_price_is_not() {
        let times = CallTimes { answered: now(), ..CallTimes::default() };
        let symbol = Symbol::parse("NSE:INFY").unwrap();
        // With a previous close of 100, and without one.
        for (low, high, is_believed) in [
            ("99", "140", [true, true]),
            ("50", "150", [true, true]),
            ("99", "150.01", [false, true]),
            ("49.99", "140", [false, true]),
            ("99", "100000001", [false, false]),
            ("101", "140", [false, false]),
            ("99", "99.5", [false, false]),
            ("0", "0", [false, false]),
        ] {
            for (close, is_believed) in ["100", "0"].into_iter().zip(is_believed) {
                let (low, high) = (low.parse().ok(), high.parse().ok());
                let claim = Claim { low, high, ..claim("100", close) };
                let quote = claim.quote(Kind::Share, &symbol, &times, Source::Public, false);
                let quote = quote.unwrap();
                assert_eq!(quote.last_price, 100.into());
                assert_eq!(quote.day.is_some(), is_believed, "{low:?} {high:?} {close}");
            }
        }
    }

    #[test]
    fn a_close_that_is_not_positive_is_no_close() {
        for close in ["0", "-5"] {
            assert_eq!(claim("10", close).believed(Kind::Share, now()), Ok(None));
        }
    }

    #[test]
    fn times() {
        for (as_of, expected) in [
            ("2026-11-20T10:00:05Z", Ok(())),
            ("2026-11-20T10:00:06Z", Err(Doubt::Future)),
            ("2026-11-10T10:00:00Z", Ok(())),
            ("2026-11-10T09:59:59Z", Err(Doubt::Old)),
        ] {
            let claim = Claim { as_of: as_of.parse().ok(), ..claim("10", "10") };
            let believed = claim.believed(Kind::Share, now()).map(|_| ());
            assert_eq!(believed, expected, "{as_of}");
        }
    }
}

#[cfg(test)]
mod number_tests {
    use super::*;
    use proptest::prelude::{any, prop_assert};

    #[test]
    fn numbers_keep_their_digits_and_words_for_none_are_none() {
        for (raw, expected) in [
            ("161", Some("161")),
            ("801.78125", Some("801.78125")),
            ("\"5175\"", Some("5175")),
            ("\" 231.40 \"", Some("231.40")),
            ("-629.2999999999993", Some("-629.2999999999993")),
            ("1e3", Some("1000")),
            ("0", Some("0")),
            ("null", None),
            ("\"\"", None),
            ("\"NA\"", None),
        ] {
            let number = read(raw).unwrap();
            assert_eq!(number.0.map(|n| n.to_string()).as_deref(), expected, "{raw}");
        }
        let long = "9".repeat(65);
        for raw in ["false", "\"abc\"", "{}", "[1]", "\"1_000\"", "\"1,5\"", "\"", "--1", &long] {
            assert_eq!(read(raw), None, "{raw}");
        }
    }

    #[test]
    fn prices_of_zero_are_none() {
        assert_eq!(read("0").unwrap().price(), None);
        assert_eq!(read("\"0.00\"").unwrap().price(), None);
        assert_eq!(read("0.05").unwrap().price().unwrap().to_string(), "0.05");
    }

    proptest::proptest! {
        #[test]
        fn never_panics(raw in any::<String>(), digits in "[-+0-9.eE]{0,70}") {
            for text in [raw.as_str(), digits.as_str(), &format!("\"{digits}\"")] {
                if let Some(Number(Some(number))) = read(text) {
                    prop_assert!(text.bytes().any(|b| b.is_ascii_digit()), "{number} of {text}");
                }
            }
        }
    }
}
