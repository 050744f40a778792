//! A demo for strangers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use crate::admin::listener::AdminListen;
use crate::app::commands::{guard_memory, say, url_of, warn_of_all_addresses};
use crate::app::demo::Stage;
use crate::app::demo_people::{Maker, NotMade, PASSWORD, guests};
use crate::app::main_loop::until_end;
use crate::app::start::App;
use crate::auth::keys::Registration;
use crate::base::Clock;
use crate::config::Config;
use crate::ops::exit::Failed;
use crate::ops::state_lock::{Lock, StateLock};
use crate::ops::{Exit, notify, owner, state_lock};
use crate::rt::arenas;
use crate::rt::unix_signals::{Hangup, Signal, Signals};
use crate::sim;

/// Most open connections, and those of one address: a browser has six and a stream or two for each
/// open page, and several people may sit behind one address.
const CONNECTIONS_MAX: usize = 2_000;
const CONNECTIONS_PER_ADDRESS_MAX: usize = 48;
/// Most streams of one address.
pub(super) const STREAMS_PER_ADDRESS_MAX: usize = 16;
/// Logins of one address. No limit is shared by all visitors of an account.
pub(super) const LOGINS_PER_MINUTE: u32 = 60;
/// Work of a password's hash. The passwords are public, and the hashes of a crowd that guesses must
/// not hold up those of visitors.
const ARGON2_MEMORY_KIB: u32 = 8;
const ARGON2_PASSES: u32 = 1;

/// Between the last call of the service that makes the people and the first one of the visitors':
/// broker A takes one a second. Else a day would begin with prices that are marked stale.
const BROKER_PAUSE: Duration = Duration::from_millis(1_100);

/// Folders of a day and of the next one.
const FOLDERS: [&str; 2] = ["even", "odd"];

/// Why a public demo stops.
enum Ended {
    Signal(i32),
    Failed(Failed),
}

impl From<Failed> for Ended {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

/// A day that is ready to be served: its simulator is running and its accounts are stored.
struct Day {
    sim: sim::Sim,
    config: Config,
    clock: Clock,
}

impl Day {
    fn end(self) {
        self.sim.stop();
        // Nothing of a visitor outlives the day. What cannot be removed now is tried again when the
        // folder is used next.
        if let Err(error) = remove(&self.config.state_dir) {
            tracing::warn!(%error, "cannot remove the previous demo's data; trying again");
        }
    }
}

/// Runs a demo for strangers, which starts over after each `period`.
///
/// # Errors
/// Why it did not start or go on.
pub fn public_demo(config: &Config, period: Duration) -> Result<(), Failed> {
    arenas::keep_few();
    guard_memory(config);
    let Err(ended) = Days::of(config, period)?.serve();
    match ended {
        Ended::Signal(signal) => {
            tracing::info!(signal, "stopped");
            Ok(())
        }
        Ended::Failed(failed) => Err(failed),
    }
}

/// The days of a public demo, one after the other.
struct Days {
    stage: Stage,
    config: Config,
    period: Duration,
    signals: Signals,
    /// Folder of all days.
    folder: PathBuf,
    /// Held while the process runs: no other demo removes what is in the folder.
    _lock: Lock,
}

impl Days {
    fn of(config: &Config, period: Duration) -> Result<Self, Failed> {
        if let Some(url) = &config.store.url {
            let why = format!("a public demo keeps nothing: unset BHAV_STORE_URL ({url})");
            return Err((why, Exit::Usage));
        }
        // Whoever reaches the simulator can set its faults and log in as anybody.
        let apart = config.sim.listen.parse().ok();
        let apart = apart.filter(|address: &SocketAddr| address.ip().is_loopback());
        let Some(apart) = apart else {
            let why = format!(
                "BHAV_SIM_LISTEN={}: the simulator of a public demo is for nobody else, so it \
                 listens on loopback",
                config.sim.listen
            );
            return Err((why, Exit::Usage));
        };
        if notify::has_passed() {
            let why = "a public demo opens its listener anew for each day, so it takes no socket \
                       of systemd: disable the socket unit";
            return Err((why.into(), Exit::Usage));
        }
        let folder = config.state_dir.join("demo-public");
        let cannot = |error: io::Error| (format!("{}: {error}", folder.display()), Exit::StateDir);
        fs::create_dir_all(&folder)
            .and_then(|()| owner::give_name(&folder))
            .map_err(cannot)?;
        let lock = match state_lock::take(&folder).map_err(cannot)? {
            StateLock::Held(lock) => lock,
            StateLock::InUse => {
                let why = format!("another public demo uses {}", folder.display());
                return Err((why, Exit::Unavailable));
            }
        };
        // Of a demo that was killed.
        for name in FOLDERS {
            remove(&folder.join(name)).map_err(cannot)?;
        }
        let signals = Signals::arm(Hangup::Ends);
        let signals = signals.map_err(|error| (error.to_string(), Exit::Internal))?;
        let stage = Stage::of(config)?;
        let mut config = limited(config);
        // Two days have a simulator each while one follows the other.
        config.sim.listen = SocketAddr::new(apart.ip(), 0).to_string();
        Ok(Self {
            stage,
            config,
            period,
            signals,
            folder,
            _lock: lock,
        })
    }

    /// Serves one day after the other until something ends it.
    fn serve(&mut self) -> Result<Infallible, Ended> {
        let mut number = 0;
        let mut next = self.prepared(number)?;
        loop {
            let (day, app) = self.opened(next, number == 0)?;
            number += 1;
            let ends_mono_ms = day.clock.monotonic_ms() + self.period.as_millis() as u64;
            let signal = until_end(&app, &mut self.signals, Some(ends_mono_ms), || {});
            if let Some(signal) = signal {
                notify::stopping();
                app.stop();
                day.end();
                return Err(Ended::Signal(signal));
            }
            // The day goes on while the next one is made ready.
            let prepared = self.prepared(number);
            app.stop();
            day.end();
            arenas::give_back();
            next = prepared?;
        }
    }

    /// Opens a day at the public address.
    fn opened(&mut self, day: Day, is_first: bool) -> Result<(Day, App), Ended> {
        let app = App::start_public_demo(
            &day.config,
            &day.clock,
            &day.sim,
            &guests(),
            &notice(self.period),
        );
        let app = app.map_err(|error| (error.to_string(), error.exit()))?;
        let url = url_of(app.address());
        // Where a free port was asked for, it stays the same one.
        self.config.http.listen = app.address().to_owned();
        if let Some(admin) = app.admin() {
            self.config.admin.listen = admin.address().into();
        }
        tracing::info!(%url, "a day of the public demo begins");
        if is_first {
            let accounts = guests().map(|guest| guest.email).join(", ");
            say(&format!(
                "bhav demo --public: a simulated exchange day for strangers. Every price is made \
                 up and says so.\naccounts, which nobody can change: {accounts}; password: \
                 {PASSWORD}\neverything starts over every {} s\nlistening on {url}\n",
                self.period.as_secs()
            ));
            warn_of_all_addresses(&url);
        }
        Ok((day, app))
    }

    /// Makes a day ready: a simulator with a seed of its own, and a service that nobody else can
    /// reach, through which the accounts are made and synced.
    fn prepared(&mut self, number: u64) -> Result<Day, Ended> {
        let [even, odd] = FOLDERS;
        let folder = self
            .folder
            .join(if number.is_multiple_of(2) { even } else { odd });
        let cannot = |error: io::Error| (format!("{}: {error}", folder.display()), Exit::StateDir);
        remove(&folder).map_err(cannot)?;
        let (sim, mut config, clock) = self.stage.set(&self.config, number)?;
        config.state_dir = folder;
        let mut alone = config.clone();
        alone.http.listen = "127.0.0.1:0".into();
        alone.http.trusted_proxies.clear();
        alone.admin.listen = AdminListen::Off;
        alone.auth.registration = Registration::Open;
        let app = App::start_demo(&alone, &clock, &sim, &guests());
        let app = app.map_err(|error| (error.to_string(), error.exit()))?;
        let signals = &mut self.signals;
        let made = Maker::of(&app, &sim).make(|longest| match signals.wait(longest) {
            Some(Signal::End(signal)) => Some(signal),
            _ => None,
        });
        app.stop();
        let day = Day { sim, config, clock };
        let made = made.and_then(|()| match self.signals.wait(BROKER_PAUSE) {
            Some(Signal::End(signal)) => Err(NotMade::Ended(signal)),
            _ => Ok(()),
        });
        match made {
            Ok(()) => Ok(day),
            Err(not_made) => {
                day.end();
                Err(match not_made {
                    NotMade::Ended(signal) => Ended::Signal(signal),
                    NotMade::Failed(why) => {
                        let why = format!("an account of the demo: {why}");
                        Ended::Failed((why, Exit::Internal))
                    }
                })
            }
        }
    }
}

/// The settings with the limits of a public demo.
pub(super) fn limited(config: &Config) -> Config {
    let mut config = config.clone();
    let http = &mut config.http;
    // Of these settings 0 is no limit.
    let at_most = |set: &mut usize, most: usize| {
        *set = if *set == 0 { most } else { most.min(*set) };
    };
    at_most(&mut http.connections_max, CONNECTIONS_MAX);
    at_most(&mut http.connections_per_address_max, CONNECTIONS_PER_ADDRESS_MAX);
    at_most(&mut http.streams_per_address_max, STREAMS_PER_ADDRESS_MAX);
    config.auth.registration = Registration::Closed;
    config.auth.login_attempts_per_minute = LOGINS_PER_MINUTE;
    config.auth.argon2_memory_kib = ARGON2_MEMORY_KIB;
    config.auth.argon2_passes = ARGON2_PASSES;
    config
}

/// The notice on every page: one line.
pub(super) fn notice(period: Duration) -> String {
    let minutes = period.as_secs().div_ceil(60);
    format!("Public demo: made up, read only, new every {minutes} min")
}

/// Removes a day's folder. It is no fault if there is none.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
