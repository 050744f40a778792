//! Which way a signal says the price moves, and by when it is judged.

/// Sessions after which a signal is judged, in the symbol's own sessions.
pub const HORIZON_SESSIONS: usize = 5;

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
