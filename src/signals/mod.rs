//! Candlestick signals and what they are worth. Pure.
//!
//! `history` and `silence` judge candles, `patterns` finds signals in them, `record` keeps count of
//! how they did, date by date, and gives each its confidence, `running` looks at a day that is not
//! over, `list` and `reliability` are what clients see, `evaluate` walks forward over years of
//! candles with nothing known but the past. All of it computes; nothing here reads a file, a clock
//! or a store. Run by warm lanes and by the `signals evaluate` command.

pub mod backtest;
pub mod blocks;
pub mod confidence;
pub mod forming;
pub mod history;
pub mod list;
pub mod patterns;
pub mod performance;
pub mod provisional_record;
pub mod silence;
pub mod track_record;

pub use list::{ListedSignal, Look, SignalList};
pub use provisional_record::Fate;
pub use track_record::{Reliability, Standing};

/// Sessions after which a signal is judged, in the symbol's own sessions.
pub const HORIZON_SESSIONS: usize = 5;

/// What a confidence is.
pub const MEANING: &str = "Estimated chance that the close five sessions later has moved this way. \
    Mostly the market's own drift (see `base_rate`); the pattern's own two years weigh \
    samples/(samples+1000). Patterns have not been shown to add anything. Closes before 3 August \
    2026 are averages of the last half hour, later ones auction prices; what that changes is not \
    known yet.";

/// What a provisional signal is.
pub const PROVISIONAL_MEANING: &str = "Found in a day's candle before its official close, where a \
    pattern can appear and vanish; kept as first shown. Confirmed are those that the finished \
    candle has too, vanished those that it has not. Judged from the official close of their date, \
    not from the price at which they were shown.";

/// What nobody may read into it.
pub const DISCLAIMER: &str = "Information, not investment advice. No costs are counted; \
    entering at the next open would give less. Signals of one day are not independent. A universe \
    of today's members leaves out those that fell out of it, so that rises look likelier than they \
    were.";

/// What a signal claims: the close [`HORIZON_SESSIONS`] later is higher, or lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    Bullish,
    Bearish,
}

impl Direction {
    /// `bullish` or `bearish`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bullish => "bullish",
            Self::Bearish => "bearish",
        }
    }

    /// The direction of a word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Bullish, Self::Bearish].into_iter().find(|direction| direction.as_str() == word)
    }

    /// Whether a move from one close to another is what was claimed. No move is a miss.
    pub fn is_hit(self, from_e4: i64, to_e4: i64) -> bool {
        match self {
            Self::Bullish => to_e4 > from_e4,
            Self::Bearish => to_e4 < from_e4,
        }
    }
}
