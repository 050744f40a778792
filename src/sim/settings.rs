//! Settings of the simulator: its listener, its seed, and the two simulated broker apps.

use crate::sim::exchange::day::Sessions;

/// Everything that can be chosen about a simulator. The credentials are made up and no secret.
#[derive(Debug, Clone)]
pub struct SimSettings {
    /// `127.0.0.1:0` takes any free port.
    pub listen: String,
    /// The same seed and instant give the same prices, everywhere.
    pub seed: u64,
    /// Refuse what is over the documented rate limits.
    pub rate_limits: bool,
    /// How far the public provider is behind the exchange, in seconds.
    pub public_delay_s: i64,
    /// Made-up shares beside the embedded list.
    pub more_shares: usize,
    /// How often a second each price moves; their times are whole seconds.
    pub prices_per_s: i64,
    /// Root of the service whose return addresses are registered with both apps.
    pub returns_to: String,
    pub broker_a: SimBrokerA,
    pub broker_b: SimBrokerB,
    /// The dates on which the exchange trades.
    pub sessions: Sessions,
}

impl Default for SimSettings {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".into(),
            seed: 1,
            rate_limits: true,
            // Observed delay of the real one: a quarter of an hour.
            public_delay_s: 900,
            more_shares: 0,
            prices_per_s: 1,
            // Where `bhav serve` listens unless told otherwise.
            returns_to: "http://127.0.0.1:8080".into(),
            broker_a: SimBrokerA::default(),
            broker_b: SimBrokerB::default(),
            sessions: Sessions::weekdays(),
        }
    }
}

/// Broker A's app and the token it starts with.
#[derive(Debug, Clone)]
pub struct SimBrokerA {
    pub api_key: String,
    pub api_secret: String,
    /// Valid from the start until the next 06:00 IST; empty means that nobody has logged in.
    pub access_token: String,
    /// The client id of whoever logs in without saying who.
    pub user_id: String,
    /// Whether the app's plan carries market data; without it quotes and candles answer
    /// PermissionException.
    pub market_data: bool,
}

impl Default for SimBrokerA {
    fn default() -> Self {
        Self {
            api_key: "simkeya".into(),
            api_secret: "simsecreta".into(),
            access_token: "simtokena".into(),
            user_id: "SA0001".into(),
            market_data: true,
        }
    }
}

impl SimBrokerA {
    /// Whether `api_key` is the app's, or one of the numbered ones beside it (`simkeya-7`). Those
    /// share its secret, so that a load test can have as many apps as users, as in the real world.
    pub(super) fn knows(&self, api_key: &str) -> bool {
        is_or_follows(&self.api_key, api_key)
    }
}

impl SimBrokerB {
    /// As broker A's.
    pub(super) fn knows(&self, api_key: &str) -> bool {
        is_or_follows(&self.api_key, api_key)
    }
}

fn is_or_follows(own: &str, api_key: &str) -> bool {
    api_key.strip_prefix(own).is_some_and(|rest| {
        let number = rest.strip_prefix('-');
        rest.is_empty() || number.is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

/// Broker B's app and the login value it starts with.
#[derive(Debug, Clone)]
pub struct SimBrokerB {
    /// Holds characters that have to be encoded in a URL, as real keys do.
    pub api_key: String,
    pub secret_key: String,
    /// The value that the login redirect would carry; empty means none.
    pub api_session: String,
    pub user_id: String,
    /// The account holds nothing: the documented kinds of "no data".
    pub empty_account: bool,
}

impl Default for SimBrokerB {
    fn default() -> Self {
        Self {
            api_key: "sim+key=b&1".into(),
            secret_key: "simsecretb".into(),
            api_session: "12345678".into(),
            user_id: "SB000001".into(),
            empty_account: false,
        }
    }
}
