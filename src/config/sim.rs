//! Settings of the simulator that `bhav demo` and `bhav sim` start.

/// A free port of another loopback address than the service's. A browser sends a cookie to every
/// port of its host name, and the login is none of the simulator's business.
pub const LISTEN_APART: &str = "127.0.0.2:0";
/// Where the machine has that address alone.
pub const LISTEN_BESIDE: &str = "127.0.0.1:0";

/// The simulator, used by `bhav demo` and `bhav sim` only.
#[derive(Debug, Clone)]
pub struct SimSettings {
    /// `IP:PORT`; port 0 takes a free port.
    pub listen: String,
    /// The same seed gives the same exchange day.
    pub seed: u64,
    /// Delay of the simulated public provider behind the exchange.
    pub public_delay_s: u64,
    /// Made-up shares beside the instruments that are always listed.
    pub more_shares: usize,
    /// How often a second each price moves.
    pub prices_per_s: u64,
}

impl Default for SimSettings {
    fn default() -> Self {
        // The real provider's observed delay is a quarter of an hour.
        Self {
            listen: LISTEN_APART.into(),
            seed: 1,
            public_delay_s: 900,
            more_shares: 0,
            prices_per_s: 1,
        }
    }
}
