//! The schemas of the values in views. Only the test that generates the OpenAPI description uses
//! them, so they are not part of the program.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::health::{FeedWord, WarmerState};
use super::values::{Day, Delay, Exact, Instant, Mark, Money, Percent, Quantity, Share, Simulated};
use crate::base::{Broker, PositionKind, Source, Symbol};
use crate::market::Phase;
use crate::portfolio::PointSource;
use crate::signals::Direction;

/// Schemas with a name of their own, which members refer to.
macro_rules! named {
    ($($value:ty, $name:literal, $schema:tt;)*) => {$(
        impl JsonSchema for $value {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

/// Schemas that are written into the member that uses them.
macro_rules! inline {
    ($($value:ty, $name:literal, $schema:tt;)*) => {$(
        impl JsonSchema for $value {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

named! {
    Instant, "Instant", {
        "type": "string",
        "format": "date-time",
        "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\+05:30$",
        "examples": ["2026-11-20T15:30:00+05:30"],
        "description": "A time in India with its offset, whole seconds.",
    };
    Day, "Date", {
        "type": "string",
        "format": "date",
        "examples": ["2026-11-20"],
        "description": "A date in India.",
    };
    Symbol, "Symbol", {
        "type": "string",
        "pattern": "^(NSE|BSE):[A-Z0-9&._*$-]([A-Z0-9&._*$ -]*[A-Z0-9&._*$-])?$",
        "minLength": 5,
        "maxLength": 48,
        "examples": ["NSE:INFY", "NSE:M&M", "BSE:SENSEX"],
        "description": "Exchange and ticker. No space at either end of the ticker.",
    };
    Money, "Money", {
        "type": "number",
        "multipleOf": 0.01,
        "examples": [1412.95],
        "description":
            "Rupees (index points for an index), exact, rounded half away from zero to 2 places.",
    };
    Percent, "Percent", {
        "type": "number",
        "multipleOf": 0.01,
        "examples": [1.68],
        "description": "Percent, rounded half away from zero to 2 places.",
    };
    Quantity, "Quantity", {
        "type": "number",
        "examples": [10],
        "description": "Units, with every digit that is stored.",
    };
    Exact, "Exact", {
        "type": "number",
        "examples": [1410.55],
        "description": "A decimal with every digit that is stored.",
    };
    Share, "Share", {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "multipleOf": 0.0001,
        "examples": [0.5312],
        "description": "A share or probability, 4 places.",
    };
    Broker, "Broker", {
        "type": "string",
        "enum": ["a", "b"],
        "description":
            "`a`: broker A, which speaks Kite Connect v3 (Zerodha). `b`: broker B, which speaks \
             the Breeze API (ICICI Direct).",
    };
    Source, "Source", {
        "type": "string",
        "enum": ["broker_a", "public"],
        "description":
            "Where the price comes from: broker A's feed, or the public provider that replaces it \
             when it fails.",
    };
    Phase, "Phase", {
        "type": "string",
        "enum": ["pre_open", "open", "closing", "post_close", "closed", "holiday"],
        "description":
            "Phase of the primary exchange. `closing` is the closing auction, in which an index \
             that stands is normal and not stale.",
    };
    Direction, "Direction", {
        "type": "string",
        "enum": ["bullish", "bearish"],
    };
    Delay, "Delay", {
        "type": "integer",
        "minimum": 60,
        "description":
            "Seconds by which the source of the price runs behind the exchange by its nature, \
             measured while the market trades; absent where it does not.",
    };
    WarmerState, "WarmerState", {
        "type": "string",
        "enum": ["starting", "ok", "stale", "failing", "paused"],
    };
}

inline! {
    Mark, "Mark", {"type": "boolean", "enum": [true]};
    Simulated, "Simulated", {
        "type": "boolean",
        "enum": [true],
        "description":
            "Present, and true, if the value comes from the simulator; absent otherwise.",
    };
    FeedWord, "FeedWord", {"type": "string", "enum": FeedWord::ALL};
    PointSource, "PointSource", {"type": "string", "enum": ["sync", "close"]};
    PositionKind, "PositionKind", {"type": "string", "enum": ["day", "net"]};
}
