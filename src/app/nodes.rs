//! Makes a node one of several: connects it to the others, and to the lease that decides which node
//! leads.

use std::sync::Arc;

use crate::app::assemble::{Assembled, MembershipParts, SharedServer};
use crate::app::start_error::StartError;
use crate::auth::{ChangesBell, ChangesParts};
use crate::base::limiter::SharedCounts;
use crate::base::{ByBroker, Clock};
use crate::config::Config;
use crate::nodes::authorities::ValkeyClaim;
use crate::nodes::cluster::{Relay, Shared, SharedTokens};
use crate::nodes::lease::{Authority, LeaseTimes};
use crate::nodes::lease_thread::LeaseParts;
use crate::nodes::limits::SharedLimits;
use crate::nodes::relay::valkey_relay::{RelayParts, ValkeyRelay};
use crate::nodes::{Lead, Nodes};
use crate::rt::{Lane, LaneSpec};

/// One message to all nodes and one to the leader may be in progress. The next ones wait.
const RELAY_THREADS: usize = 2;
const RELAY_QUEUE_MAX: usize = 4;

/// The authority that counts epochs for all nodes.
pub type Row = Arc<dyn Authority>;

/// Joins the nodes of the store's lease, over the shared server if the settings name one. The
/// returned parts are started once the scheduler runs.
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
    let server = assembled.shared.clone();
    let claim = server.as_ref().map(
        |SharedServer {
             server,
             installation,
             ..
         }| { Arc::new(ValkeyClaim::new(server, installation, lease_ms)) as Row },
    );
    let shared = server
        .map(|server| share(assembled, server, &node, &bell))
        .transpose()?;
    let tell = teller(shared.as_ref().map(|shared| Arc::clone(&shared.relay)));
    let lead = Lead::follower(clock);
    let spec = LaneSpec {
        name: "relay",
        threads: RELAY_THREADS,
        queue_max: RELAY_QUEUE_MAX,
    };
    let lane = Arc::new(Lane::start(&spec, clock)?);
    let context = &mut assembled.context;
    context.lead = lead.clone();
    context.nodes = Some(Nodes {
        node: node.clone(),
        lane,
        shared,
    });
    let lease = LeaseParts {
        times: LeaseTimes::of(lease_ms),
        node,
        row,
        claim,
        lead,
        first_call_after_ms: config.broker_a.quote_interval_ms,
    };
    Ok(MembershipParts {
        lease,
        changes: ChangesParts { bell, woken, tell },
    })
}

/// Sends word of changes to the others. They find them without it, only later.
fn teller(relay: Option<Arc<dyn Relay>>) -> Box<dyn Fn() + Send> {
    Box::new(move || {
        if let Some(Err(error)) = relay.as_ref().map(|relay| relay.notify_changes()) {
            tracing::debug!(%error, "the other nodes were not notified of a change");
        }
    })
}

/// Joins the other nodes over the server that they share.
fn share(
    assembled: &Assembled,
    SharedServer {
        server,
        installation,
        l2,
    }: SharedServer,
    node: &str,
    bell: &ChangesBell,
) -> Result<Shared, StartError> {
    let state = &assembled.state;
    let bell = bell.clone();
    let tokens = SharedTokens {
        counts: Arc::default(),
        of: ByBroker::of(|broker| Arc::clone(state.brokers[broker].client.token())),
    };
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
    state.auth.join(&limits, &state.portfolio.lane);
    state.portfolio.attempts.join("sync", &limits);
    state.trades.attempts.join("import", &limits);
    for (_, access) in state.brokers.iter() {
        access.client.join(&limits);
    }
    Ok(Shared {
        relay: Arc::new(relay),
        tokens,
        limits,
        identify: Arc::new(move |store| installation.identify(store)),
        begin_term: Box::new(move |epoch| l2.set_epoch(epoch)),
    })
}
