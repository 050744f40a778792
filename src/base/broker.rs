//! The two brokers, under the letters that the API uses for them, and what there is once for each.

use std::ops::{Index, IndexMut};

use crate::base::words;

words! {
    /// A broker from which portfolios are synced, with its letter in paths and documents. The API
    /// lists them in this order.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Broker {
        /// Any broker with the API of Kite Connect v3 (Zerodha).
        A = "a",
        /// Any broker with the Breeze API (ICICI Direct).
        B = "b",
    }
}

impl Broker {
    /// The name for log lines and messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::A => "broker A",
            Self::B => "broker B",
        }
    }

    /// The name of its API, and whose it is.
    pub(crate) fn api_name(self) -> &'static str {
        match self {
            Self::A => "Kite Connect (Zerodha)",
            Self::B => "Breeze (ICICI Direct)",
        }
    }

    /// The name in metrics.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::A => "broker_a",
            Self::B => "broker_b",
        }
    }

    /// Whether it lists shares as soon as they are traded; the other ones list them when they are
    /// delivered.
    pub(crate) fn lists_what_is_traded(self) -> bool {
        self == Self::A
    }

    /// Whether it has a list of the day's positions beside the net ones.
    pub(crate) fn has_day_positions(self) -> bool {
        self == Self::A
    }
}

/// A value for each broker, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByBroker<T>(pub [T; Broker::ALL.len()]);

impl<T> ByBroker<T> {
    /// The values that `make` makes.
    pub fn of(make: impl FnMut(Broker) -> T) -> Self {
        Self(Broker::ALL.map(make))
    }

    /// The brokers with their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Broker, &T)> {
        Broker::ALL.into_iter().zip(&self.0)
    }
}

impl<T> Index<Broker> for ByBroker<T> {
    type Output = T;

    fn index(&self, broker: Broker) -> &T {
        &self.0[broker as usize]
    }
}

impl<T> IndexMut<Broker> for ByBroker<T> {
    fn index_mut(&mut self, broker: Broker) -> &mut T {
        &mut self.0[broker as usize]
    }
}
