//! The two brokers, under the letters that the API uses for them.

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
}
