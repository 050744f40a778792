//! The state that all connection threads of the simulator share: the clock, the exchange, and the
//! locked state of sessions, faults, limits and counters. Locks are held for look-ups only, never
//! over I/O.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::broker_a::ticker::Tickers;
use super::exchange::day::{Day, Tick};
use super::exchange::universe::{Instrument, Universe};
use super::faults::Faults;
use super::server::message::Request;
use super::sessions::{BrokerASessions, BrokerBSessions};
use crate::base::Clock;
use crate::sim::server::message::{Limits, Stats};
use crate::sim::sessions::Accounts;
use crate::sim::simulator::SimSettings;

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
    pub(super) broker_a: Mutex<BrokerASessions>,
    pub(super) broker_b: Mutex<BrokerBSessions>,
    pub(super) accounts: Mutex<Accounts>,
    /// Root of the service to which the login pages send the browser back, as registered with the
    /// apps.
    pub(super) returns_to: Mutex<String>,
}

impl World {
    pub(super) fn new(settings: SimSettings, clock: Clock) -> Self {
        let now = clock.now();
        let universe = Universe::new(settings.seed, settings.more_shares);
        Self {
            day: Day::new(settings.seed, settings.sessions.clone())
                .moving(settings.prices_per_s)
                .with_room_for(universe.all().len()),
            universe,
            refused_connections: Arc::default(),
            faults: Mutex::default(),
            stats: Mutex::default(),
            limits: Mutex::default(),
            tickers: Mutex::default(),
            broker_a: Mutex::new(BrokerASessions::new(&settings, now)),
            broker_b: Mutex::new(BrokerBSessions::new(&settings)),
            accounts: Mutex::default(),
            returns_to: Mutex::new(settings.returns_to.clone()),
            settings,
            clock,
        }
    }
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
        self.world.day.tick(instrument, self.prices_at)
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
