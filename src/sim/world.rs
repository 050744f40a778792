//! The state that all connection threads of the simulator share: its settings, the clock, the
//! exchange, and the locked state of logins, faults, limits and counters. Locks are held for
//! look-ups only, never over I/O.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::Deserialize;

use crate::base::{Clock, settings};
use crate::sim::accounts::Accounts;
use crate::sim::exchange::day::{CACHED_DAYS_MAX, Day, Sessions, Tick};
use crate::sim::exchange::universe::{Instrument, Universe};
use crate::sim::faults::Faults;
use crate::sim::limits::{Limits, Stats, Tickers};
use crate::sim::server::message::Request;
use crate::sim::sessions::{Login, Logins};

/// The simulated outside world.
#[derive(Debug)]
pub(super) struct World {
    pub(super) settings: SimSettings,
    pub(super) clock: Clock,
    pub(super) universe: Universe,
    pub(super) day: Day,
    /// Connections closed at once because too many were open.
    pub(super) refused_connections: Arc<AtomicU64>,
    pub(super) faults: Mutex<Faults>,
    pub(super) stats: Mutex<Stats>,
    pub(super) limits: Mutex<Limits>,
    pub(super) tickers: Mutex<Tickers>,
    pub(super) broker_a: Mutex<Logins>,
    pub(super) broker_b: Mutex<Logins>,
    pub(super) accounts: Mutex<Accounts>,
    /// Changes of broker A's list of instruments.
    pub(super) listing: Mutex<ListingOrder>,
    /// Symbols whose prices stand at broker A alone, since these instants.
    pub(super) stands: Mutex<HashMap<String, Timestamp>>,
    /// Whether the brokers say the close of a session that is over as the previous close.
    pub(super) rolls_over: AtomicBool,
    /// Root of the service to which the login pages send the browser back, as registered with the
    /// apps.
    pub(super) returns_to: Mutex<String>,
}

impl World {
    pub(super) fn new(settings: SimSettings, clock: Clock) -> Self {
        let seed = settings.seed;
        let app_a = &settings.broker_a;
        let app_b = &settings.broker_b;
        let mut broker_a = Logins::new(seed, 6);
        let mut broker_b = Logins::new(seed, 0);
        if !app_a.access_token.is_empty() {
            let user_id = app_a.user_id.clone();
            let api_key = app_a.api_key.clone();
            let login = Login {
                user_id,
                api_key,
                at: clock.now(),
            };
            broker_a.log_in(app_a.access_token.clone(), login);
        }
        if !app_b.api_session.is_empty() {
            let user_id = app_b.user_id.clone();
            broker_b.keep_code(app_b.api_session.clone(), user_id, Timestamp::UNIX_EPOCH);
        }
        let universe = Universe::new(seed, settings.more_shares);
        let mut day = Day::new(seed, settings.sessions.clone());
        day.prices_per_s = settings.prices_per_s.max(1);
        day.cached_days_max = CACHED_DAYS_MAX.max(2 * universe.all().len());
        Self {
            day,
            universe,
            refused_connections: Arc::default(),
            faults: Mutex::default(),
            stats: Mutex::default(),
            limits: Mutex::default(),
            tickers: Mutex::default(),
            broker_a: Mutex::new(broker_a),
            broker_b: Mutex::new(broker_b),
            accounts: Mutex::default(),
            listing: Mutex::default(),
            stands: Mutex::default(),
            rolls_over: AtomicBool::new(false),
            returns_to: Mutex::new(settings.returns_to.clone()),
            settings,
            clock,
        }
    }
}

impl World {
    /// The instant whose price broker A shows of `instrument` at `at`.
    pub(super) fn shown_at_broker_a(&self, instrument: &Instrument, at: Timestamp) -> Timestamp {
        self.stands
            .lock()
            .get(&instrument.key)
            .map_or(at, |since| at.min(*since))
    }
}

/// How broker A's list of instruments differs from what trades, as a control route sets it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ListingOrder {
    /// Rows that are sent before the row with this number, as they stand here.
    pub(super) insert: Vec<(usize, String)>,
    /// Symbols whose rows are not sent.
    pub(super) without: Vec<String>,
    /// Symbols that the quote calls leave out of their answers.
    pub(super) unquoted: Vec<String>,
    /// Number of rows after which each exchange's list ends.
    pub(super) rows_max: Option<usize>,
}

/// One request at a route that exists.
pub(super) struct Call<'a> {
    pub(super) world: &'a World,
    pub(super) request: &'a Request,
    pub(super) now: Timestamp,
    /// The instant whose prices are shown: now, unless the price is muted or lags.
    pub(super) prices_at: Timestamp,
    /// Added to the times of prices, so that they lie in the future.
    pub(super) ahead: SignedDuration,
}

impl Call<'_> {
    /// The tick of `instrument` at the instant whose prices are shown.
    pub(super) fn tick(&self, instrument: &Instrument) -> Tick {
        self.tick_at(instrument, self.prices_at)
    }

    /// The same as broker A's quote calls have it.
    pub(super) fn tick_at_broker_a(&self, instrument: &Instrument) -> Tick {
        self.tick_at(instrument, self.world.shown_at_broker_a(instrument, self.prices_at))
    }

    fn tick_at(&self, instrument: &Instrument, at: Timestamp) -> Tick {
        let mut tick = self.world.day.tick(instrument, at);
        let is_over = || tick.as_of >= self.world.day.end(instrument, tick.date);
        if self.world.rolls_over.load(Ordering::Relaxed) && is_over() {
            tick.previous_close = tick.last;
        }
        tick
    }

    /// The time stated for a price made at `at`.
    pub(super) fn stamp(&self, at: Timestamp) -> Timestamp {
        at.checked_add(self.ahead).unwrap_or(at)
    }

    /// Whether `admit` lets this call through. Always true while rate limits are off.
    pub(super) fn within_limit(&self, admit: impl FnOnce(&mut Limits, u64) -> bool) -> bool {
        let now_ms = self.world.clock.monotonic_ms();
        !self.world.settings.rate_limits || admit(&mut self.world.limits.lock(), now_ms)
    }
}

// ---- Settings
//
// Settings of the simulator: its listener, its seed, and the two simulated broker apps.

settings! {
    /// The settings of a simulator. The credentials are made up and no secret.
    pub struct SimSettings {
        /// Port 0 takes any free one.
        pub listen: String = "127.0.0.1:0".into(),
        /// The same seed and instant give the same prices, everywhere.
        pub seed: u64 = 1,
        /// Refuse what is over the documented rate limits.
        pub rate_limits: bool = true,
        /// Delay of the public provider behind the exchange, in seconds. The observed delay of the
        /// real one is a quarter of an hour.
        pub public_delay_s: i64 = 900,
        /// Number of made-up shares added to the embedded list.
        pub more_shares: usize = 0,
        /// Number of moves of each price in a second. The times of prices are whole seconds.
        pub prices_per_s: i64 = 1,
        /// Root of the service whose return addresses are registered with both apps; the default
        /// address of `bhav serve`.
        pub returns_to: String = "http://127.0.0.1:8080".into(),
        pub broker_a: SimBrokerA = SimBrokerA::default(),
        pub broker_b: SimBrokerB = SimBrokerB::default(),
        /// The dates on which the exchange trades.
        pub sessions: Sessions = Sessions::weekdays(),
    }
}

settings! {
    /// Broker A's app and the token it starts with.
    pub struct SimBrokerA {
        pub api_key: String = "simkeya".into(),
        pub api_secret: String = "simsecreta".into(),
        /// Valid from the start until the next 06:00 IST; empty means that nobody has logged in.
        pub access_token: String = "simtokena".into(),
        /// The user id of logins that name none.
        pub user_id: String = "SA0001".into(),
        /// Whether the app's plan carries market data; without it quotes and candles answer
        /// PermissionException.
        pub market_data: bool = true,
    }
}

settings! {
    /// Broker B's app and the login value it starts with.
    pub struct SimBrokerB {
        /// Holds characters that have to be encoded in a URL, as real keys do.
        pub api_key: String = "sim+key=b&1".into(),
        pub secret_key: String = "simsecretb".into(),
        /// The value that the login redirect would carry; empty means none.
        pub api_session: String = "12345678".into(),
        pub user_id: String = "SB000001".into(),
        /// Whether the account is empty. It then sends the documented kinds of "no data".
        pub empty_account: bool = false,
    }
}

/// Whether `api_key` is `own`, an app's, or that key with a number (`simkeya-7`). Numbered keys
/// share its secret, so that a load test can have as many apps as users, as in the real world.
pub(super) fn is_or_follows(own: &str, api_key: &str) -> bool {
    api_key.strip_prefix(own).is_some_and(|rest| {
        let number = rest.strip_prefix('-');
        rest.is_empty() || number.is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::limits::KEYS_MAX;

    #[test]
    fn each_key_has_limits_of_its_own() {
        let mut limits = Limits::default();
        assert!(limits.of("one").quotes.admit(0) && !limits.of("one").quotes.admit(0));
        assert!(limits.of("two").quotes.admit(0));
        for number in 0..2 * KEYS_MAX {
            limits.of(&number.to_string());
        }
        assert!(limits.keys.len() <= KEYS_MAX);
    }
}
