//! What can go wrong, and at which upstream.

use serde::Deserialize;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The connection is reset without an answer.
    Refuse,
    /// The answer comes late.
    Delay,
    /// The answer comes slowly; so do the ticker's messages.
    Drip,
    /// Half of the promised body, then the end of the connection.
    Truncate,
    /// 429.
    RateLimit,
    /// 200 whose body is an error.
    #[serde(rename = "error_in_200")]
    ErrorIn200,
    /// 5xx with a page of HTML.
    #[serde(rename = "html_5xx")]
    Html5xx,
    /// A redirect, which no upstream sends to its API's clients.
    Redirect,
    /// The broker says that the login is over.
    ExpiredToken,
    /// Broker A says that the plan has no market data.
    NoPermission,
    /// Numbers become text, text becomes `false`; the envelope stays right.
    WrongTypes,
    /// The members that matter are left out.
    MissingFields,
    /// Prices and their times stand still from the instant the fault was set.
    MutePrice,
    /// Last prices are 0.
    ZeroPrice,
    /// Every value is null; the envelope stays right.
    Nulls,
    /// Prices and their times are those of a while ago, and move on.
    Lag,
    /// The times of prices lie in the future.
    FutureTime,
    /// One candle in the middle of a history is text.
    NanCandle,
    /// A history ends halfway.
    HalfHistory,
    /// The newest candle is not there yet.
    LateCandle,
    // Of the ticker's stream alone.
    /// Nothing is sent or read, and the connection stays.
    Silent,
    /// No prices, heartbeats alone.
    HeartbeatOnly,
    /// No prices of indices.
    LeadStands,
    /// The connection is reset.
    Hangup,
    /// The connection is closed in order.
    CloseFrame,
    /// Five thousand packets a message.
    Flood,
    /// A byte too few.
    Short,
    /// A byte too many.
    Long,
    /// Every packet has a byte too many.
    UnknownLength,
    /// Every word the wrong way round.
    WrongEndian,
    /// An order of the app's owner.
    OrderText,
    /// Errors as text and as an object.
    ErrorText,
    /// A ping each second.
    Ping,
    /// Every message in two frames.
    Fragmented,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Delay => "delay",
            Self::Drip => "drip",
            Self::Truncate => "truncate",
            Self::RateLimit => "rate_limit",
            Self::ErrorIn200 => "error_in_200",
            Self::Html5xx => "html_5xx",
            Self::Redirect => "redirect",
            Self::ExpiredToken => "expired_token",
            Self::NoPermission => "no_permission",
            Self::WrongTypes => "wrong_types",
            Self::MissingFields => "missing_fields",
            Self::MutePrice => "mute_price",
            Self::ZeroPrice => "zero_price",
            Self::Nulls => "nulls",
            Self::Lag => "lag",
            Self::FutureTime => "future_time",
            Self::NanCandle => "nan_candle",
            Self::HalfHistory => "half_history",
            Self::LateCandle => "late_candle",
            Self::Silent => "silent",
            Self::HeartbeatOnly => "heartbeat_only",
            Self::LeadStands => "lead_stands",
            Self::Hangup => "hangup",
            Self::CloseFrame => "close_frame",
            Self::Flood => "flood",
            Self::Short => "short",
            Self::Long => "long",
            Self::UnknownLength => "unknown_length",
            Self::WrongEndian => "wrong_endian",
            Self::OrderText => "order_text",
            Self::ErrorText => "error_text",
            Self::Ping => "ping",
            Self::Fragmented => "fragmented",
        }
    }
}

/// Which upstream a route belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upstream {
    BrokerA,
    /// What is sent on broker A's WebSocket once it is open.
    Ticker,
    BrokerB,
    Public,
}

impl Kind {
    /// Whether it happens on the ticker's stream alone.
    pub(crate) fn is_of_stream(self) -> bool {
        matches!(
            self,
            Self::Silent
                | Self::HeartbeatOnly
                | Self::LeadStands
                | Self::Hangup
                | Self::CloseFrame
                | Self::Flood
                | Self::Short
                | Self::Long
                | Self::UnknownLength
                | Self::WrongEndian
                | Self::OrderText
                | Self::ErrorText
                | Self::Ping
                | Self::Fragmented
        )
    }

    /// Whether an upstream can go wrong in this way.
    pub(crate) fn exists_at(self, upstream: Upstream) -> bool {
        match self {
            Self::MutePrice | Self::ZeroPrice | Self::Lag | Self::FutureTime | Self::Drip => true,
            _ if self.is_of_stream() => upstream == Upstream::Ticker,
            _ if upstream == Upstream::Ticker => false,
            Self::NoPermission => upstream == Upstream::BrokerA,
            Self::ExpiredToken => upstream != Upstream::Public,
            _ => true,
        }
    }
}
