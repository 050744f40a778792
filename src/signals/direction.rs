//! The direction that a signal claims, and the horizon after which it is judged.

/// Sessions after which a signal is judged, counted in the sessions of its symbol.
pub const HORIZON_SESSIONS: usize = 5;

/// The claim of a signal: the close [`HORIZON_SESSIONS`] later is higher, or it is lower.
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

    /// The direction with this name.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Bullish, Self::Bearish].into_iter().find(|direction| direction.as_str() == word)
    }

    /// Whether the move between two closes is in this direction. No move is a miss.
    pub fn is_hit(self, from_e4: i64, to_e4: i64) -> bool {
        match self {
            Self::Bullish => to_e4 > from_e4,
            Self::Bearish => to_e4 < from_e4,
        }
    }
}
