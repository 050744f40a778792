//! The leader's side of the relay: collects changes and sends them, at most every 250 ms. A message
//! goes out each second even without changes, so that silence means a fault.

use std::collections::HashSet;

use crate::base::Symbol;
use crate::cache::Peek;
use crate::nodes::cluster::SendError;
use crate::nodes::relay::{Evening, Update};
use crate::rt::lanes::{LOST, Outcomes};
use crate::store::Epoch;
use crate::warmers::context::WarmerContext;

/// Minimum interval between two messages.
const APART_MS: u64 = 250;

/// A message goes out after this even if nothing changed.
const HEARTBEAT_MS: u64 = 1_000;

/// Deadline for sending a message. The relay's own deadlines are shorter.
const TELL_DEADLINE_MS: u64 = 5_000;

/// Maximum quotes in one message: two of broker A's batches, some 150 KiB. The rest goes with the
/// next message.
const QUOTES_MAX: usize = 1_000;

/// Maximum unknown symbols in one message. Beyond it each node finds out for itself.
const UNKNOWN_MAX: usize = 200;

/// Result of sending a message.
pub(crate) type Sent = Result<(), SendError>;

/// Owner of the changes that are to be sent. Bounded by the symbols of L1.
pub(crate) struct RelayPublisher {
    outcomes: Outcomes<Sent>,
    /// The epoch in which this node sends; `None` if it does not lead.
    epoch: Option<Epoch>,
    quotes: HashSet<Symbol>,
    unknown: HashSet<Symbol>,
    /// The symbols that the message under way carries.
    under_way: Vec<Symbol>,
    in_flight: bool,
    told_mono_ms: Option<u64>,
    told: Option<Evening>,
    /// The last message could not be sent.
    is_failing: bool,
}

impl RelayPublisher {
    pub(crate) fn new(outcomes: Outcomes<Sent>) -> Self {
        Self {
            outcomes,
            epoch: None,
            quotes: HashSet::new(),
            unknown: HashSet::new(),
            under_way: Vec::new(),
            in_flight: false,
            told_mono_ms: None,
            told: None,
            is_failing: false,
        }
    }

    /// Sets the epoch in which this node sends; `None` stops it. A change drops what was collected.
    pub(crate) fn set_epoch(&mut self, epoch: Option<Epoch>) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.quotes.clear();
            self.unknown.clear();
            (self.told_mono_ms, self.told) = (None, None);
        }
    }

    /// Notes a quote that a feed sent or confirmed.
    pub(crate) fn add_quote(&mut self, symbol: &Symbol) {
        if self.epoch.is_some() && !self.quotes.contains(symbol) {
            self.quotes.insert(symbol.clone());
        }
    }

    /// Notes a symbol that no source knows.
    pub(crate) fn add_unknown(&mut self, symbol: Symbol) {
        if self.epoch.is_some() && self.unknown.len() < UNKNOWN_MAX {
            self.unknown.insert(symbol);
        }
    }

    /// Sends a message if one is due.
    pub(crate) fn poll(&mut self, context: &WarmerContext, evening: Evening, now_mono_ms: u64) {
        let (Some(nodes), Some(epoch)) = (&context.nodes, self.epoch) else {
            return;
        };
        let since = self
            .told_mono_ms
            .map_or(u64::MAX, |at| now_mono_ms.saturating_sub(at));
        let has_news =
            !self.quotes.is_empty() || !self.unknown.is_empty() || self.told != Some(evening);
        if self.in_flight || since < APART_MS || (since < HEARTBEAT_MS && !has_news) {
            return;
        }
        self.told_mono_ms = Some(now_mono_ms);
        self.told = Some(evening);
        self.in_flight = true;
        let update = self.update(context, evening, now_mono_ms);
        let relay = nodes.relay().cloned();
        // A refused job is reported and logged like any other failure.
        let _ = self
            .outcomes
            .submit(&nodes.lane, TELL_DEADLINE_MS, move || {
                relay.map_or(Ok(()), |relay| relay.send(epoch, update))
            });
    }

    /// Milliseconds until a change may be sent.
    pub(crate) fn wait_ms(&self, now_mono_ms: u64) -> u64 {
        let has_news = self.epoch.is_some() && !(self.quotes.is_empty() && self.unknown.is_empty());
        match self.told_mono_ms {
            Some(at) if has_news => (at + APART_MS).saturating_sub(now_mono_ms),
            _ => u64::MAX,
        }
    }

    /// Builds a message: all quotes of the snapshot, so that one message suffices for a whole
    /// snapshot, and the changes since the last.
    fn update(&mut self, context: &WarmerContext, evening: Evening, now_mono_ms: u64) -> Update {
        let indices = context.indices.all().map(|index| index.symbol.clone());
        let room = QUOTES_MAX.saturating_sub(context.indices.all().count());
        let is_share = |symbol: &Symbol| !context.indices.contains(symbol);
        self.quotes.retain(is_share);
        let taken: Vec<Symbol> = self.quotes.iter().take(room).cloned().collect();
        for symbol in &taken {
            self.quotes.remove(symbol);
        }
        let mut update = Update::new(context.l1.freshness().rules(now_mono_ms), evening);
        for symbol in indices.chain(taken.iter().cloned()) {
            if let Peek::Known { quote, vouched, .. } =
                context.l1.peek(symbol.as_str(), now_mono_ms)
            {
                update.add_quote(quote, vouched, now_mono_ms);
            }
        }
        update.unknown = self.unknown.drain().collect();
        self.under_way = taken;
        update
    }

    /// Takes the result of a message. True if a newer leader sends.
    pub(crate) fn ended(&mut self, sent: Option<Sent>) -> bool {
        self.in_flight = false;
        let carried = std::mem::take(&mut self.under_way);
        match sent.unwrap_or_else(|| Err(SendError::Unavailable(LOST.to_owned()))) {
            Ok(()) => {
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("prices can be sent to the other nodes again");
                }
                false
            }
            Err(SendError::Deposed) => true,
            Err(SendError::Unavailable(failure)) => {
                // Log once: the text differs with each attempt.
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(
                        failure,
                        "prices cannot be sent to the other nodes; trying again"
                    );
                }
                // The next message carries them again. A quote that it leaves out stays as old as
                // it was.
                if self.epoch.is_some() {
                    self.quotes.extend(carried);
                }
                false
            }
        }
    }
}
