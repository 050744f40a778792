//! Starts the service from its settings, and stops it in order.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use parking_lot::Mutex;

use crate::admin::Admin;
use crate::admin::listener::AdminListen;
use crate::api::{Api, State};
use crate::app::assemble::{Assembled, MembershipParts, assemble};
use crate::app::handover::{Handover, InheritedTokens};
use crate::app::start_error::{StartError, cure};
use crate::app::status_line::StatusLine;
use crate::auth::{Auth, start_changes};
use crate::base::{ByBroker, Clock};
use crate::config::Config;
use crate::config::check::{Exposed, exposed};
use crate::http::{Listener, Server};
use crate::nodes::lease_thread::start_lease;
use crate::nodes::valkey::NodeSecret;
use crate::ops::Inherited;
use crate::ops::owner;
use crate::ops::state_lock::{InstanceLock, NotHeld};
use crate::rt::coroutines;
use crate::rt::threads::Stoppable;
use crate::sim::Sim;
use crate::views::health::HealthExposed;
use crate::warmers::{CandlesAtHand, Heartbeat, Reloads, Warmers};
use crate::web::{Guest, Site};

#[cfg(feature = "engines")]
use super::assemble::store_settings;
#[cfg(feature = "engines")]
use super::nodes::{Row, join};
#[cfg(feature = "engines")]
use crate::config::check::NoSharedKey;
#[cfg(feature = "engines")]
use crate::store::open_lease;

/// Descriptors besides those of client connections: databases, upstream calls, epoll, log.
const DESCRIPTORS_RESERVED: u64 = 256;
/// Memory besides that of client connections. Measured: 12 MiB of a service, 25 MiB of a demo.
const MEMORY_RESERVED: u64 = 32 * 1024 * 1024;
/// Memory of a connection whose request waits: the touched part of its stack, and its buffers.
/// Measured: 85 KiB, of an idle one 8 KiB.
const MEMORY_WAITING: u64 = 88 * 1024;

/// A running service.
pub struct App {
    server: Server<Api>,
    admin: Option<Server<Admin>>,
    /// Why the operator's listener is missing although the settings want one.
    pub(super) admin_failure: Option<String>,
    pub(super) warmers: Warmers,
    /// `None` on a single node.
    joined: Option<Membership>,
    /// The secret from which keys other than those of tokens are derived. All nodes have the same.
    pub(super) node_secret: Arc<NodeSecret>,
    pub(super) heartbeat: Arc<Heartbeat>,
    pub(super) reloads: Arc<Reloads>,
    /// Tokens for the next process. Used only by the main thread.
    pub(super) handover: Mutex<Handover>,
    /// Held while the service runs. The system releases it with the process.
    state_lock: Arc<InstanceLock>,
}

impl App {
    /// Starts everything; requests are answered from its return on. With a database on a server the
    /// service is one node of those that share it.
    ///
    /// # Errors
    /// [`StartError`]; all that had started is stopped again.
    pub fn start(config: &Config, clock: &Clock) -> Result<Self, StartError> {
        #[cfg(feature = "engines")]
        if let Some(row) = open_lease(&store_settings(config), config.nodes.lease_ms, clock)? {
            return Self::start_among(config, clock, Arc::new(row));
        }
        Self::begin(config, clock, |_| Ok(None))
    }

    /// Same as [`start`](Self::start), as one node of several whose epochs `row` counts.
    ///
    /// # Errors
    /// [`StartError`]; all that had started is stopped again.
    #[cfg(feature = "engines")]
    pub fn start_among(config: &Config, clock: &Clock, row: Row) -> Result<Self, StartError> {
        // Checked first, before a database is changed.
        config.auth.jwt_secret.as_ref().ok_or(NoSharedKey)?;
        Self::begin(config, clock, |assembled| join(assembled, config, row, clock).map(Some))
    }

    /// Same as [`start`](Self::start) on a single node against this simulator: a new database gets
    /// the exchange's days at once, and the pages offer its people's accounts.
    ///
    /// # Errors
    /// [`StartError`]; all that had started is stopped again.
    pub(super) fn start_demo(
        config: &Config,
        clock: &Clock,
        sim: &Sim,
        guests: &[Guest],
    ) -> Result<Self, StartError> {
        Self::begin(config, clock, |assembled| {
            assembled.context.at_hand = Some(days_of(sim));
            assembled.state.site = assembled.state.site.map(|_| Site::of_demo(guests));
            Ok(None)
        })
    }

    /// Same as [`start`](Self::start) on a single node, for strangers: no request changes anything,
    /// and every page has the notice.
    ///
    /// # Errors
    /// [`StartError`]; all that had started is stopped again.
    pub(super) fn start_public_demo(
        config: &Config,
        clock: &Clock,
        sim: &Sim,
        guests: &[Guest],
        notice: &str,
    ) -> Result<Self, StartError> {
        Self::begin(config, clock, |assembled| {
            assembled.context.at_hand = Some(days_of(sim));
            assembled.state.is_read_only = true;
            // They are the simulator's, which is for nobody else.
            assembled.state.login_pages = None;
            assembled.state.auth.count_logins_by_network_alone();
            assembled.state.site = assembled
                .state
                .site
                .map(|_| Site::of_public_demo(notice, guests));
            Ok(None)
        })
    }

    fn begin(
        config: &Config,
        clock: &Clock,
        join: impl FnOnce(&mut Assembled) -> Result<Option<MembershipParts>, StartError>,
    ) -> Result<Self, StartError> {
        coroutines::configure(config.http.edge_threads);
        // Taken first, so that a second instance fails before it touches anything.
        let mut inherited = Inherited::take();
        let left = InheritedTokens::claim(&mut inherited);
        let listeners = Listener::open(&config.http.listen, inherited.rest())?;
        let (admin, admin_failure) = admin_listener(&config.admin.listen)?;
        make_state_dir(&config.state_dir)?;
        let state_lock = lock_state_dir(&config.state_dir)?;
        let mut assembled = assemble(config, &state_lock, clock)?;
        let joined = join(&mut assembled)?;
        let Assembled {
            state,
            mut context,
            mailbox,
            reporter,
            metric_sources,
            secret: node_secret,
            ..
        } = assembled;
        context.admin_failure.clone_from(&admin_failure);
        let handover = Mutex::new(Handover::take_over(left, config, &state));
        let heartbeat = Arc::clone(&context.heartbeat);
        let reloads = Arc::clone(&context.reloads);
        reloads.set_exposed(unprotected(config));
        let warmers = Warmers::start(context, mailbox, reporter)?;
        let auth = &state.auth;
        let joined = joined
            .map(|parts| Membership::start(parts, auth))
            .transpose()?;
        let mut http = config.http.clone();
        http.connections_max = affordable_connections(http.connections_max);
        warn_of_memory(http.connections_max);
        let started = Server::start(listeners, &http, clock, Api::new(state)).and_then(|server| {
            let edge = server.shared();
            let of = server.address();
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
                drop(joined);
                Err(error.into())
            }
        }
    }

    /// The first listen address, `127.0.0.1:8080` or `unix:/path`.
    pub fn address(&self) -> &str {
        self.server.address()
    }

    /// All listen addresses.
    pub(super) fn addresses(&self) -> &[String] {
        self.server.addresses()
    }

    /// The operator's listener; `None` if it is off or its address could not be bound.
    pub fn admin(&self) -> Option<&Server<Admin>> {
        self.admin.as_ref()
    }

    /// The running HTTP server, for tests and benches.
    pub fn server(&self) -> &Server<Api> {
        &self.server
    }

    /// The state of the handlers.
    pub(super) fn state(&self) -> &State {
        self.server.shared().service.state()
    }

    /// The service's clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.state().clock
    }

    /// The line for `systemctl status`.
    pub(super) fn status_line(&self) -> StatusLine {
        let state = self.state();
        let now = state.clock.now();
        StatusLine {
            now,
            address: self.address().to_owned(),
            serving: self.heartbeat.serving(),
            tokens: ByBroker::of(|broker| state.brokers[broker].client.token().status(now)),
            store: state.store.health().state,
        }
    }

    /// Drains connections, then stores the content of the caches and closes the database. Returns
    /// the number of connections cut off.
    pub fn stop(self) -> usize {
        let shared = Arc::clone(self.server.shared());
        let cut_off = self.server.drain();
        // The last request answered may have been a login.
        self.handover.into_inner().go(shared.service.state());
        let store = Arc::clone(&shared.service.state().store);
        let auth = Arc::clone(&shared.service.state().auth);
        auth.write_endings();
        auth.keep_networks();
        drop(shared);
        self.warmers.stop();
        drop(self.joined);
        auth.keep_last_change();
        store.close();
        // Last: until here the admin listener reports that the service drains.
        if let Some(admin) = self.admin {
            admin.drain();
        }
        self.state_lock.release();
        cut_off
    }
}

/// The exchange's days, without a call.
fn days_of(sim: &Sim) -> CandlesAtHand {
    let history = sim.history();
    Arc::new(move |symbol, from, to| history.candles(symbol, from, to))
}

/// The admin listener, or why it is missing at a default address. Prices are served without it.
fn admin_listener(
    listen: &AdminListen,
) -> Result<(Option<Vec<Listener>>, Option<String>), StartError> {
    let Some(address) = listen.address() else {
        return Ok((None, None));
    };
    match (Listener::bind(address), listen) {
        (Ok(listeners), _) => Ok((Some(listeners), None)),
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
    let health = |Exposed {
                      setting, reason, ..
                  }| HealthExposed {
        setting: setting.into(),
        reason,
    };
    exposed(config).into_iter().map(health).collect()
}

fn make_state_dir(path: &Path) -> Result<(), StartError> {
    let made = (|| {
        let is_new = !path.exists();
        let has_parent = owner::folder_of(path).exists();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)?;
        if is_new && has_parent {
            owner::give_name(path)
        } else {
            Ok(())
        }
    })();
    made.map_err(|source| StartError::StateDir {
        path: path.display().to_string(),
        source,
    })
}

/// One instance per state directory: two would set each other's files aside. Without the lock the
/// service starts, and writes nothing until it has it.
fn lock_state_dir(path: &Path) -> Result<Arc<InstanceLock>, StartError> {
    let lock = Arc::new(InstanceLock::of(path));
    match lock.hold() {
        Ok(()) => Ok(lock),
        Err(NotHeld::InUse) => Err(StartError::StateInUse {
            path: path.display().to_string(),
        }),
        Err(error @ (NotHeld::Refused(_) | NotHeld::Released)) => {
            let cure = match &error {
                NotHeld::Refused(cause) => cure(cause),
                _ => String::new(),
            };
            let path = path.display();
            tracing::warn!(%error, %path, "nothing is written without the lock{cure}");
            Ok(lock)
        }
    }
}

/// Raises the limit on descriptors as far as the system allows, and keeps the connection cap below
/// it: accepting without descriptors would starve everything else.
fn affordable_connections(wanted: usize) -> usize {
    let needed = wanted as u64 + DESCRIPTORS_RESERVED;
    let limit = rlimit::increase_nofile_limit(needed).unwrap_or(needed);
    let affordable = limit.saturating_sub(DESCRIPTORS_RESERVED).max(1) as usize;
    if affordable < wanted {
        tracing::warn!(
            wanted,
            affordable,
            "fewer connections than BHAV_MAX_CONNECTIONS: raise the limit of open files, \
             LimitNOFILE"
        );
    }
    affordable.min(wanted)
}

/// Warns if the limit on memory carries fewer waiting connections than are allowed.
fn warn_of_memory(allowed: usize) {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit_bytes = memory_limit(&groups, Path::new("/sys/fs/cgroup"));
    let carried = limit_bytes.map(|it| it.saturating_sub(MEMORY_RESERVED) / MEMORY_WAITING);
    if carried.is_some_and(|carried| carried < allowed as u64) {
        tracing::warn!(
            limit_bytes,
            carried,
            allowed,
            "more connections are allowed than the limit on memory carries if all of them wait: \
             the kernel would end the process (exit code 137); raise the limit, or lower \
             BHAV_MAX_CONNECTIONS"
        );
    }
}

/// The limit on this process's memory in bytes, which a container or a unit has: the lowest of its
/// control group and those above. `groups` is `/proc/self/cgroup` (cgroups(7)).
fn memory_limit(groups: &str, mounted: &Path) -> Option<u64> {
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        let path = parts.next()?;
        // Of the first version, each controller has a folder, and one alone has this file.
        let file = if controllers.is_empty() {
            "memory.max"
        } else {
            "memory.limit_in_bytes"
        };
        // A container may see its own group as the root, and under another path than this.
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        let limits = groups.filter_map(|group| {
            let file = mounted.join(controllers).join(group).join(file);
            fs::read_to_string(file).ok()?.trim().parse().ok()
        });
        limits.min()
    };
    groups.lines().filter_map(of_line).min()
}

// ---- Membership
//
// The parts that run only in one node of several.

/// The running threads. Dropping them ends the leadership first, so that another node can take it.
pub(super) struct Membership {
    _lease: Stoppable,
    _changes: Stoppable,
}

impl Membership {
    pub(super) fn start(parts: MembershipParts, auth: &Arc<Auth>) -> io::Result<Self> {
        let _changes = start_changes(auth, parts.changes)?;
        Ok(Self {
            _lease: start_lease(parts.lease)?,
            _changes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_on_memory_holds_in_both_versions_of_control_groups() {
        let mounted = tempfile::tempdir().unwrap();
        let write = |path: &str, limit: &str| {
            let path = mounted.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, limit).unwrap();
        };
        let limit = |groups: &str| memory_limit(groups, mounted.path());
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/memory.max", "1000\n");
        assert_eq!(limit("0::/a/b\n"), Some(1_000));
        write("a/b/memory.max", "600\n");
        assert_eq!(limit("0::/a/b\n"), Some(600));
        let first = "9:cpu,cpuacct:/x\n4:memory:/docker/id\n0::/\n";
        assert_eq!(limit(first), None);
        // As in a container, where the group's path is that of the machine.
        write("memory/memory.limit_in_bytes", "700\n");
        assert_eq!(limit(first), Some(700));
        assert_eq!(limit(""), None);
    }
}
