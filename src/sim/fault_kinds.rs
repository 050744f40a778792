//! The kinds of faults, and the upstreams at which they exist.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::base::{Words, words};

words! {
    /// A kind of fault.
    pub(crate) enum Kind {
        /// The connection is reset without an answer.
        Refuse = "refuse",
        /// The answer comes late.
        Delay = "delay",
        /// The answer comes slowly; so do the ticker's messages.
        Drip = "drip",
        /// The connection ends after half of the promised body.
        Truncate = "truncate",
        /// 429.
        RateLimit = "rate_limit",
        /// 400: the request itself is refused.
        BadRequest = "bad_request",
        /// 200 whose body is an error.
        ErrorIn200 = "error_in_200",
        /// 5xx with a page of HTML.
        Html5xx = "html_5xx",
        /// A redirect, which no upstream sends to its API's clients.
        Redirect = "redirect",
        /// The broker says that the login is over.
        ExpiredToken = "expired_token",
        /// Broker A says that the plan has no market data.
        NoPermission = "no_permission",
        /// Numbers become text, text becomes `false`; the envelope stays right.
        WrongTypes = "wrong_types",
        /// The members that matter are left out.
        MissingFields = "missing_fields",
        /// Prices and their times stand still from the instant the fault was set.
        MutePrice = "mute_price",
        /// Last prices are 0.
        ZeroPrice = "zero_price",
        /// Last prices are ten times as high, as with a lost decimal point; their range is right.
        TenfoldPrice = "tenfold_price",
        /// Every value is null; the envelope stays right.
        Nulls = "nulls",
        /// Prices and their times are those of some time ago, and move on.
        Lag = "lag",
        /// The times of prices lie in the future.
        FutureTime = "future_time",
        /// One candle in the middle of a history is text.
        NanCandle = "nan_candle",
        /// Nine candles of a history are text.
        NanCandles = "nan_candles",
        /// A history ends halfway.
        HalfHistory = "half_history",
        /// The newest candle is not there yet.
        LateCandle = "late_candle",
        /// Broker A's list of instruments ends with a row that lacks a column.
        BrokenRow = "broken_row",
        // From here on, kinds that exist on the ticker's stream only (`is_of_stream`).
        /// Nothing is sent or read, and the connection stays.
        Silent = "silent",
        /// Heartbeats are sent, but no prices.
        HeartbeatOnly = "heartbeat_only",
        /// No prices of indices.
        LeadStands = "lead_stands",
        /// The connection is reset.
        Hangup = "hangup",
        /// The connection is closed in order.
        CloseFrame = "close_frame",
        /// Messages have five thousand packets.
        Flood = "flood",
        /// Messages lack their last byte.
        Short = "short",
        /// Messages have a byte too many.
        Long = "long",
        /// Every packet has a byte too many.
        UnknownLength = "unknown_length",
        /// The bytes of every 32-bit word are reversed.
        WrongEndian = "wrong_endian",
        /// An order of the app's owner is sent.
        OrderText = "order_text",
        /// Errors are sent, as text and as an object.
        ErrorText = "error_text",
        /// A ping is sent each second.
        Ping = "ping",
        /// Every message is sent in two frames.
        Fragmented = "fragmented",
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        Self::parse(&word).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            D::Error::custom(format!("unknown variant `{word}`, expected one of {known}"))
        })
    }
}

/// The upstream that a route belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upstream {
    BrokerA,
    /// Messages on broker A's WebSocket once it is open.
    Ticker,
    BrokerB,
    Public,
}

impl Kind {
    /// Whether it happens on the ticker's stream alone, as those from `Silent` on do.
    fn is_of_stream(self) -> bool {
        self as usize >= Self::Silent as usize
    }

    /// Whether an upstream can go wrong in this way.
    pub(crate) fn exists_at(self, upstream: Upstream) -> bool {
        match self {
            Self::MutePrice
            | Self::ZeroPrice
            | Self::TenfoldPrice
            | Self::Lag
            | Self::FutureTime
            | Self::Drip => true,
            _ if self.is_of_stream() => upstream == Upstream::Ticker,
            _ if upstream == Upstream::Ticker => false,
            Self::NoPermission | Self::BrokenRow | Self::BadRequest => {
                upstream == Upstream::BrokerA
            }
            Self::ExpiredToken => upstream != Upstream::Public,
            _ => true,
        }
    }
}
