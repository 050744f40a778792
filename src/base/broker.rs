//! The two brokers, under the letters that the API uses for them.

/// A broker from which portfolios are synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Broker {
    /// Any broker that speaks Kite Connect v3 (Zerodha).
    A,
    /// Any broker that speaks the Breeze API (ICICI Direct).
    B,
}

impl Broker {
    /// Both brokers, in the order in which the API lists them.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// The letter in paths and documents: `a` or `b`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// The broker with this letter; `None` for any other text.
    pub fn parse(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|broker| broker.as_str() == letter)
    }

    /// The name for log lines and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "broker A",
            Self::B => "broker B",
        }
    }
}
