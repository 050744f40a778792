//! The two brokers, by the letter that the API uses.

/// A broker whose portfolios are synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Broker {
    /// Wire-compatible with Kite Connect v3.
    A,
    /// Wire-compatible with the Breeze API.
    B,
}

impl Broker {
    /// Both, in the order of the API.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// `a` or `b`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// The broker of a letter.
    pub fn parse(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|broker| broker.as_str() == letter)
    }

    /// The name in logs and in what a person reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "broker A",
            Self::B => "broker B",
        }
    }
}
