//! Makes a node one of several: with a way to the others, and a lease that decides who leads.

use std::sync::Arc;

use super::assemble::Assembled;
use super::membership::MembershipParts;
use super::start_error::StartError;
use crate::auth::{ChangesBell, ChangesParts};
use crate::base::lease::{Authority, LeaseTimes};
use crate::base::{Clock, Epoch, Leadership, NodeSecret};
use crate::cache::ValkeyL2;
use crate::cache::nodes::claim::ValkeyClaim;
use crate::cache::nodes::limits::SharedLimits;
use crate::cache::valkey::{Server, ValkeySettings};
use crate::config::Config;
use crate::limits::shared::SharedCounts;
use crate::rt::{Lane, LaneSpec};
use crate::warmers::{
    Cluster, Lead, LeaseParts, NoWire, SharedTokens, ValkeyWire, Wire, WireParts,
};

/// One message to all nodes, and one to the leader, may be under way; the next may wait.
const RELAY_THREADS: usize = 2;
const RELAY_QUEUE_MAX: usize = 4;

/// What counts epochs for all nodes.
pub type Row = Arc<dyn Authority>;

/// What all nodes have in common.
pub(super) struct NodesParts {
    pub(super) row: Row,
    pub(super) secret: Arc<NodeSecret>,
}

/// Joins the other nodes: those of the store's lease, over the server of the settings if they name
/// one. What it gives is started once the scheduler runs.
///
/// # Errors
/// [`StartError`].
pub(super) fn join(
    assembled: &mut Assembled,
    config: &Config,
    parts: NodesParts,
    clock: &Clock,
) -> Result<MembershipParts, StartError> {
    let NodesParts { row, secret } = parts;
    let node = config.nodes.called();
    let lease_ms = config.nodes.lease_ms;
    let (bell, woken) = ChangesBell::new();
    let shared = (&secret, &bell);
    let Link { wire, claim, tokens, limits, begin_term } = link(assembled, config, &node, shared)?;
    let changes = ChangesParts { bell, woken, tell: teller(&wire) };
    let leadership = Arc::new(Leadership::follower());
    let spec = LaneSpec { name: "relay", threads: RELAY_THREADS, queue_max: RELAY_QUEUE_MAX };
    let context = &mut assembled.context;
    context.lead = Lead::new(&leadership, clock);
    context.cluster = Some(Cluster {
        node: node.clone(),
        wire,
        tokens,
        limits,
        secret,
        shares_cache: claim.is_some(),
        lane: Arc::new(Lane::start(&spec, clock)?),
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
fn teller(wire: &Arc<dyn Wire>) -> Box<dyn Fn() + Send> {
    let wire = Arc::clone(wire);
    Box::new(move || {
        if let Err(error) = wire.tell_of_changes() {
            tracing::debug!(%error, "the other nodes were not told of a change");
        }
    })
}

/// The way to the other nodes.
struct Link {
    wire: Arc<dyn Wire>,
    claim: Option<Row>,
    tokens: Option<SharedTokens>,
    limits: Option<Arc<dyn SharedCounts>>,
    begin_term: Box<dyn Fn(Epoch) + Send + Sync>,
}

/// Through the server that the nodes share. Its second cache level takes the place of the file.
fn link(
    assembled: &mut Assembled,
    config: &Config,
    node: &str,
    (secret, bell): (&Arc<NodeSecret>, &ChangesBell),
) -> Result<Link, StartError> {
    let ValkeySettings { url, password, ca_file, namespace } = &config.valkey;
    let Some(url) = url.clone() else {
        let (wire, begin_term) = (Arc::new(NoWire), Box::new(|_| ()));
        return Ok(Link { wire, claim: None, tokens: None, limits: None, begin_term });
    };
    let server = Server::new(url, password.clone(), ca_file.as_deref())?;
    let server = Arc::new(server.named(config.nodes.connection_name()));
    assembled.context.refusals = Arc::clone(server.refusals());
    let l2 = Arc::new(ValkeyL2::new(&server, namespace, config.cache.l2_records_max));
    let state = &assembled.state;
    let tokens = SharedTokens {
        counts: Arc::default(),
        of_broker_a: Arc::clone(&state.broker_a_token),
        of_broker_b: Arc::clone(state.broker_b.session()),
    };
    let wire = ValkeyWire::start(WireParts {
        server: Arc::clone(&server),
        namespace: namespace.clone(),
        node: node.to_owned(),
        inbox: assembled.mailbox.relay(),
        bell: bell.clone(),
        secret: Arc::clone(secret),
        tokens: tokens.clone(),
        clock: state.clock.clone(),
    })?;
    let limits: Arc<dyn SharedCounts> = Arc::new(SharedLimits::new(&server, namespace, secret));
    state.auth.join(&limits);
    state.portfolio.attempts.join("sync", &limits);
    state.broker_a.join(&limits);
    state.broker_b.join(&limits);
    assembled.context.l2 = l2.clone();
    assembled.metric_sources.l2 = l2.clone();
    Ok(Link {
        wire: Arc::new(wire),
        claim: Some(Arc::new(ValkeyClaim::new(&server, namespace, config.nodes.lease_ms))),
        tokens: Some(tokens),
        limits: Some(limits),
        begin_term: Box::new(move |epoch| l2.set_epoch(epoch)),
    })
}
