//! From settings to a running service, and back down in order.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

#[cfg(feature = "engines")]
use super::assemble::store_settings;
use super::assemble::{Assembled, assemble};
use super::handover::{Handover, Left};
use super::membership::{Membership, MembershipParts};
#[cfg(feature = "engines")]
use super::nodes::{Row, join};
use super::start_error::StartError;
use super::status_line::StatusLine;
use super::watchdog::Watchdog;
use crate::admin::Admin;
use crate::admin::settings::AdminListen;
use crate::api::{Api, State};
use crate::base::{Clock, NodeSecret};
use crate::config::Config;
#[cfg(feature = "engines")]
use crate::config::check::NoSharedKey;
use crate::config::check::{Exposed, exposed};
use crate::health::Heartbeat;
use crate::http::{Listener, Server};
use crate::ops::Inherited;
use crate::ops::state_lock::{InstanceLock, NotHeld};
use crate::rt::coroutines;
#[cfg(feature = "engines")]
use crate::store::open_lease;
use crate::views::health::HealthExposed;
use crate::warmers::{Reloads, Warmers};

/// Descriptors beside client connections: databases, upstream calls, epoll, log.
const DESCRIPTORS_RESERVED: u64 = 256;

/// A running service.
pub struct App {
    server: Server<Api>,
    admin: Option<Server<Admin>>,
    /// Why there is none where one was wanted.
    admin_failure: Option<String>,
    warmers: Warmers,
    /// `None` for a node that is alone.
    joined: Option<Membership>,
    node_secret: Arc<NodeSecret>,
    heartbeat: Arc<Heartbeat>,
    reloads: Arc<Reloads>,
    /// Of the main thread alone.
    handover: Mutex<Handover>,
    /// Held while the service runs; the system lets go of it with the process.
    state_lock: Arc<InstanceLock>,
}

impl App {
    /// Starts everything; when this returns, requests are answered. With a database on a server it
    /// is one node of those that share the database.
    ///
    /// # Errors
    /// [`StartError`]; whatever had started is stopped again.
    pub fn start(config: &Config, clock: &Clock) -> Result<Self, StartError> {
        #[cfg(feature = "engines")]
        if let Some(row) = open_lease(&store_settings(config), config.nodes.lease_ms, clock)? {
            return Self::start_among(config, clock, row);
        }
        Self::begin(config, clock, |_| Ok(None))
    }

    /// The same as one node of several, whose leaders `row` counts.
    ///
    /// # Errors
    /// [`StartError`]; whatever had started is stopped again.
    #[cfg(feature = "engines")]
    pub fn start_among(config: &Config, clock: &Clock, row: Row) -> Result<Self, StartError> {
        // First, before a database is changed.
        config.auth.jwt_secret.as_ref().ok_or(NoSharedKey)?;
        Self::begin(config, clock, |assembled| join(assembled, config, row, clock).map(Some))
    }

    fn begin(
        config: &Config,
        clock: &Clock,
        join: impl FnOnce(&mut Assembled) -> Result<Option<MembershipParts>, StartError>,
    ) -> Result<Self, StartError> {
        coroutines::configure(config.http.edge_threads);
        // First, so that a second instance fails before it touches anything.
        let mut inherited = Inherited::take();
        let left = Left::claim(&mut inherited);
        let listener = Listener::open(&config.http.listen, inherited.rest())?;
        let (admin, admin_failure) = admin_listener(&config.admin.listen)?;
        make_state_dir(&config.state_dir)?;
        let state_lock = lock_state_dir(&config.state_dir)?;
        let mut assembled = assemble(config, &state_lock, clock)?;
        let joined = join(&mut assembled)?;
        let Assembled { state, mut context, mailbox, metric_sources, secret: node_secret, .. } =
            assembled;
        context.admin_failure.clone_from(&admin_failure);
        let handover = Mutex::new(Handover::take_over(left, config, &state));
        let (heartbeat, reloads) = (Arc::clone(&context.heartbeat), Arc::clone(&context.reloads));
        reloads.set_exposed(unprotected(config));
        let warmers = Warmers::start(context, mailbox)?;
        let auth = &state.auth;
        let joined = joined.map(|parts| Membership::start(parts, auth)).transpose()?;
        let mut http = config.http.clone();
        http.connections_max = affordable_connections(http.connections_max);
        let started = Server::start(listener, &http, clock, Api::new(state)).and_then(|server| {
            let (edge, of) = (server.shared(), server.address());
            let admin =
                admin.map(|at| Admin::start(at, &http, of, Arc::clone(edge), metric_sources));
            let admin = admin.transpose()?;
            Ok((server, admin))
        });
        match started {
            Ok((server, admin)) => Ok(Self {
                server,
                admin,
                admin_failure,
                warmers,
                joined,
                node_secret,
                heartbeat,
                reloads,
                handover,
                state_lock,
            }),
            Err(error) => {
                warmers.stop();
                if let Some(joined) = joined {
                    joined.stop();
                }
                Err(error.into())
            }
        }
    }

    /// Where it listens, `127.0.0.1:8080` or `unix:/path`.
    pub fn address(&self) -> &str {
        self.server.address()
    }

    /// The operator's listener; `None` where it is off or could not be had.
    pub fn admin(&self) -> Option<&Server<Admin>> {
        self.admin.as_ref()
    }

    /// Why it could not be had.
    pub(super) fn admin_failure(&self) -> Option<&str> {
        self.admin_failure.as_deref()
    }

    /// The running HTTP server, for tests and benches.
    pub fn server(&self) -> &Server<Api> {
        &self.server
    }

    /// What the handlers work with.
    pub(super) fn state(&self) -> &State {
        self.server.shared().service.state()
    }

    pub(super) fn warmers(&self) -> &Warmers {
        &self.warmers
    }

    /// What keys are derived from beside tokens; all nodes have the same.
    pub(super) fn node_secret(&self) -> &NodeSecret {
        &self.node_secret
    }

    /// Where it is noted what became of a reload.
    pub(super) fn reloads(&self) -> &Reloads {
        &self.reloads
    }

    /// Tokens that the next process gets, and what they depend on.
    pub(super) fn handover(&self) -> MutexGuard<'_, Handover> {
        self.handover.lock()
    }

    /// The clock that the service runs by.
    pub fn clock(&self) -> &Clock {
        &self.state().clock
    }

    /// Looks whether every subsystem makes progress.
    pub fn watchdog(&self) -> Watchdog {
        Watchdog::new(Arc::clone(self.server.shared()), Arc::clone(&self.heartbeat))
    }

    /// What `systemctl status` shows of it.
    pub(super) fn status_line(&self) -> StatusLine {
        let state = self.state();
        let now = state.clock.now();
        StatusLine {
            now,
            address: self.address().to_owned(),
            serving: self.heartbeat.serving(),
            broker_a: state.broker_a_token.status(now),
            broker_b: state.broker_b.status(),
            store: state.store.health().state,
        }
    }

    /// Drains connections, then stores what the caches hold and closes the database. Gives how many
    /// connections were cut off.
    pub fn stop(self) -> usize {
        let shared = Arc::clone(self.server.shared());
        let cut_off = self.server.drain();
        // A login may have been the last thing that was answered.
        self.handover.into_inner().go(shared.service.state());
        let store = Arc::clone(&shared.service.state().store);
        shared.service.state().auth.keep_networks();
        drop(shared);
        self.warmers.stop();
        if let Some(joined) = self.joined {
            joined.stop();
        }
        store.close();
        // Last: until here it says that the service drains.
        if let Some(admin) = self.admin {
            admin.drain();
        }
        self.state_lock.release();
        cut_off
    }
}

/// The listener, or why there is none at an address that nobody asked for: prices are served all
/// the same.
fn admin_listener(listen: &AdminListen) -> Result<(Option<Listener>, Option<String>), StartError> {
    let Some(address) = listen.address() else { return Ok((None, None)) };
    match (Listener::bind(address), listen) {
        (Ok(listener), _) => Ok((Some(listener), None)),
        (Err(error), AdminListen::Default) => {
            tracing::warn!(
                %error,
                "no metrics and probes; set BHAV_ADMIN_LISTEN to a free address, or to off"
            );
            Ok((None, Some(error.to_string())))
        }
        (Err(error), _) => Err(StartError::AdminListen(error)),
    }
}

/// The connections that the settings leave unprotected, for health.
pub(super) fn unprotected(config: &Config) -> Vec<HealthExposed> {
    let found = exposed(config).into_iter();
    found.map(|Exposed { setting, reason, .. }| HealthExposed { setting, reason }).collect()
}

fn make_state_dir(path: &Path) -> Result<(), StartError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| StartError::StateDir { path: path.display().to_string(), source })
}

/// One instance per state directory: two would set each other's files aside. Where the lock cannot
/// be had the service starts all the same, and writes nothing until it has it.
fn lock_state_dir(path: &Path) -> Result<Arc<InstanceLock>, StartError> {
    let lock = Arc::new(InstanceLock::of(path));
    match lock.hold() {
        Ok(()) => Ok(lock),
        Err(NotHeld::InUse) => Err(StartError::StateInUse { path: path.display().to_string() }),
        Err(error @ (NotHeld::Refused(_) | NotHeld::Released)) => {
            tracing::warn!(%error, path = %path.display(), "nothing is written without the lock");
            Ok(lock)
        }
    }
}

/// Raises the limit on descriptors as far as the system lets us, and keeps the connection cap below
/// it: running out while accepting would starve everything else.
fn affordable_connections(wanted: usize) -> usize {
    let needed = wanted as u64 + DESCRIPTORS_RESERVED;
    let limit = rlimit::increase_nofile_limit(needed).unwrap_or(needed);
    let affordable = limit.saturating_sub(DESCRIPTORS_RESERVED).max(1) as usize;
    if affordable < wanted {
        tracing::warn!(wanted, affordable, "fewer connections: raise LimitNOFILE");
    }
    affordable.min(wanted)
}
