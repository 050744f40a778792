//! Makes a node one of several: with a way to the others, and a lease that decides who leads.

use std::sync::Arc;

use super::assemble::{Assembled, SharedServer};
use crate::app::start::{MembershipParts, StartError};
use crate::auth::{ChangesBell, ChangesParts};
use crate::base::Clock;
use crate::base::limiter::SharedCounts;
use crate::config::Config;
use crate::nodes::Lead;
use crate::nodes::authorities::ValkeyClaim;
use crate::nodes::cluster::{Cluster, Relay, SharedTokens};
use crate::nodes::lead::Leadership;
use crate::nodes::lease::LeaseParts;
use crate::nodes::lease::{Authority, LeaseTimes};
use crate::nodes::limits::SharedLimits;
use crate::nodes::relay::publisher::{RelayParts, ValkeyRelay};
use crate::nodes::valkey::NodeSecret;
use crate::nodes::valkey::{Installation, Namespace};
use crate::rt::{Lane, LaneSpec};
use crate::store::Epoch;
use crate::store::{Store, backups};

/// One message to all nodes, and one to the leader, may be under way; the next may wait.
const RELAY_THREADS: usize = 2;
const RELAY_QUEUE_MAX: usize = 4;

/// What counts epochs for all nodes.
pub type Row = Arc<dyn Authority>;

/// Joins the other nodes: those of the store's lease, over the server of the settings if they name
/// one. What it gives is started once the scheduler runs.
///
/// # Errors
/// [`StartError`].
pub(super) fn join(
    assembled: &mut Assembled,
    config: &Config,
    row: Row,
    clock: &Clock,
) -> Result<MembershipParts, StartError> {
    let node = config.nodes.called();
    let lease_ms = config.nodes.lease_ms;
    let (bell, woken) = ChangesBell::new();
    let Link { relay, claim, tokens, limits, identify, begin_term } =
        link(assembled, config, &node, &bell)?;
    let changes = ChangesParts { bell, woken, tell: teller(relay.clone()) };
    let leadership = Arc::new(Leadership::follower());
    let spec = LaneSpec { name: "relay", threads: RELAY_THREADS, queue_max: RELAY_QUEUE_MAX };
    let context = &mut assembled.context;
    context.lead = Lead::new(&leadership, clock);
    context.cluster = Some(Cluster {
        node: node.clone(),
        relay,
        tokens,
        limits,
        shares_cache: claim.is_some(),
        lane: Arc::new(Lane::start(&spec, clock)?),
        identify,
        begin_term,
    });
    let lease = LeaseParts {
        times: LeaseTimes::of(lease_ms),
        node,
        row,
        claim,
        leadership,
        first_call_after_ms: config.broker_a.quote_interval_ms,
        clock: clock.clone(),
    };
    Ok(MembershipParts { lease, changes })
}

/// Tells the others of changes. They find them without it, only later.
fn teller(relay: Option<Arc<dyn Relay>>) -> Box<dyn Fn() + Send> {
    Box::new(move || {
        if let Some(Err(error)) = relay.as_ref().map(|relay| relay.notify_changes()) {
            tracing::debug!(%error, "the other nodes were not told of a change");
        }
    })
}

/// The way to the other nodes.
struct Link {
    relay: Option<Arc<dyn Relay>>,
    claim: Option<Row>,
    tokens: Option<SharedTokens>,
    limits: Option<Arc<dyn SharedCounts>>,
    identify: Identify,
    begin_term: Box<dyn Fn(Epoch) + Send + Sync>,
}

/// Through the server that the nodes share.
fn link(
    assembled: &mut Assembled,
    config: &Config,
    node: &str,
    bell: &ChangesBell,
) -> Result<Link, StartError> {
    let Some(SharedServer { server, installation, l2 }) = assembled.shared.clone() else {
        return Ok(Link {
            relay: None,
            claim: None,
            tokens: None,
            limits: None,
            identify: Arc::new(|_| ()),
            begin_term: Box::new(|_| ()),
        });
    };
    let state = &assembled.state;
    let tokens = SharedTokens {
        counts: Arc::default(),
        of_broker_a: Arc::clone(&state.broker_a_token),
        of_broker_b: Arc::clone(state.broker_b.session()),
    };
    let bell = bell.clone();
    let relay = ValkeyRelay::start(RelayParts {
        server: Arc::clone(&server),
        installation: Arc::clone(&installation),
        node: node.to_owned(),
        update: Box::new(assembled.mailbox.relay()),
        changed: Box::new(move || bell.ring()),
        tokens: tokens.clone(),
        clock: state.clock.clone(),
    })?;
    let limits: Arc<dyn SharedCounts> = Arc::new(SharedLimits::new(&server, &installation));
    state.auth.join(&limits);
    state.portfolio.attempts.join("sync", &limits);
    state.broker_a.join(&limits);
    state.broker_b.join(&limits);
    Ok(Link {
        relay: Some(Arc::new(relay)),
        claim: Some(Arc::new(ValkeyClaim::new(&server, &installation, config.nodes.lease_ms))),
        tokens: Some(tokens),
        limits: Some(limits),
        identify: identify(config, &installation),
        begin_term: Box::new(move |epoch| l2.set_epoch(epoch)),
    })
}

/// The id of the database that this node last used, for a start while the database is away.
const CLUSTER_FILE: &str = "cluster";

/// Asks the database which one it is.
type Identify = Arc<dyn Fn(&Store) + Send + Sync>;

/// Whose keys stand on the shared server: the namespace of the settings, or that of the database,
/// or, while the database is away, of the one before. A node that knows none of them has no way to
/// the others until the database answers.
pub(super) fn installation(
    config: &Config,
    store: &Store,
    secret: &Arc<NodeSecret>,
) -> Arc<Installation> {
    if let Some(namespace) = config.valkey.namespace.clone() {
        return Arc::new(Installation::named(namespace, secret));
    }
    let installation = Arc::new(Installation::new(secret));
    identify(config, &installation)(store);
    if installation.namespace().is_none()
        && let Ok(Some(kept)) = backups::read_small_file(&config.state_dir.join(CLUSTER_FILE))
        && let Ok(cluster) = String::from_utf8(kept)
    {
        installation.belongs_to(cluster.trim(), false);
    }
    installation
}

/// Keeps the installation that of the database, if the settings name none.
fn identify(config: &Config, installation: &Arc<Installation>) -> Identify {
    if config.valkey.namespace.is_some() {
        return Arc::new(|_| ());
    }
    let (installation, path) = (Arc::clone(installation), config.state_dir.join(CLUSTER_FILE));
    Arc::new(move |store| match store.identity() {
        Ok(identity) if installation.belongs_to(&identity.cluster, true) => {
            tracing::info!(
                namespace = installation.namespace().as_ref().map(Namespace::as_str),
                "keys on the shared server are those of this database"
            );
            if let Err(error) = backups::replace(&path, identity.cluster.as_bytes()) {
                tracing::warn!(%error, "the database's id is not kept for a start without it");
            }
        }
        Ok(_) => {}
        Err(error) => tracing::debug!(%error, "the database does not say which one it is"),
    })
}
