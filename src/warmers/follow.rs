//! A follower's side of the relay: takes in the leader's updates, and sends the leader the symbols
//! that this node's clients ask for.

use std::collections::HashSet;
use std::sync::Arc;

use crate::base::Symbol;
use crate::cache::Peek;
use crate::cache::pending::Class;
use crate::market::InstrumentList;
use crate::nodes::Nodes;
use crate::nodes::relay::{Evening, Update, WANTED_MAX};
use crate::rt::lanes::Outcomes;
use crate::warmers::context::WarmerContext;
use crate::warmers::persist;
use crate::warmers::publish::{RelayPublisher, Sent};
use crate::warmers::quotes::apply::{QuoteSinks, take_in};

/// The relay counts as working while the last message is younger than this. Two heartbeats may be
/// lost.
const MUTE_MS: u64 = 3_000;

/// A symbol that the leader reports as unknown is remembered for this long. Then it is requested
/// again, and the leader repeats the report if it still holds.
const UNKNOWN_MS: u64 = 60_000;

/// Interval between two checks of which symbols are wanted.
const LOOK_MS: u64 = 500;

/// The list is sent again after this even if it is unchanged, because the leader may have changed.
const REPEAT_MS: u64 = 2_000;

/// Deadline for sending the list.
const WANT_DEADLINE_MS: u64 = 5_000;

/// Interval between two reads of the instrument list. The leader needs a moment to write it to the
/// second level.
const LIST_RETRY_MS: u64 = 5_000;

/// Deadline for reading the instrument list: megabytes over a network.
const LIST_DEADLINE_MS: u64 = 30_000;

/// Result of reading the instrument list.
pub(crate) type FoundList = Option<InstrumentList>;

/// Owner of the state that the leader sent.
pub(crate) struct FollowTask {
    wants: Outcomes<Sent>,
    lists: Outcomes<Box<FoundList>>,
    /// Monotonic time of the leader's last message.
    heard_mono_ms: Option<i64>,
    /// Monotonic time at which this node began to follow.
    since_mono_ms: u64,
    /// The state of the store that the leader reported last.
    pub evening: Evening,
    /// The wanted symbols at the last check.
    wanted: Vec<Symbol>,
    looked_mono_ms: u64,
    wanted_mono_ms: u64,
    /// A list is being sent. A lost one is sent again after `REPEAT_MS`.
    pub want_in_flight: bool,
    list_in_flight: bool,
    list_asked_mono_ms: Option<u64>,
}

impl FollowTask {
    /// No message has arrived yet. `wants` receives the outcome of each sent list, `lists` of each
    /// read of the instrument list.
    pub(crate) fn new(
        wants: Outcomes<Sent>,
        lists: Outcomes<Box<FoundList>>,
        now_mono_ms: u64,
    ) -> Self {
        Self {
            wants,
            lists,
            heard_mono_ms: None,
            since_mono_ms: now_mono_ms,
            evening: Evening::default(),
            wanted: Vec::new(),
            looked_mono_ms: 0,
            wanted_mono_ms: 0,
            want_in_flight: false,
            list_in_flight: false,
            list_asked_mono_ms: None,
        }
    }

    /// Begins to follow. The leader gets a full `MUTE_MS` for its first message.
    pub(crate) fn begin(&mut self, now_mono_ms: u64) {
        self.since_mono_ms = now_mono_ms;
    }

    /// Whether a message of the leader came within `MUTE_MS`, or this node has not followed for
    /// that long.
    pub(crate) fn speaks(&self, now_mono_ms: u64) -> bool {
        let follows_ms = now_mono_ms.saturating_sub(self.since_mono_ms);
        let age_ms = self
            .heard_mono_ms
            .map_or(u64::MAX, |at| (now_mono_ms as i64).abs_diff(at));
        age_ms.min(follows_ms) < MUTE_MS
    }

    /// Takes in an update without judging it, because the leader has done so.
    pub(crate) fn hear(
        &mut self,
        mut update: Update,
        sinks: &mut QuoteSinks<'_>,
        now_mono_ms: u64,
    ) {
        let context = sinks.context;
        let heard = update.take_quotes(now_mono_ms, &context.indices);
        let Update {
            unknown,
            rules,
            evening,
            age_ms,
            ..
        } = update;
        let told_mono_ms = (now_mono_ms as i64).saturating_sub_unsigned(age_ms);
        self.heard_mono_ms = self.heard_mono_ms.max(Some(told_mono_ms));
        self.evening = evening;
        context.l1.freshness().adopt(&rules, told_mono_ms);
        let mut settled: Vec<Symbol> = heard
            .iter()
            .map(|(quote, _)| quote.symbol.clone())
            .collect();
        take_in(heard, sinks, now_mono_ms);
        for symbol in unknown {
            sinks.keep_unknown(symbol.clone(), UNKNOWN_MS, now_mono_ms);
            settled.push(symbol);
        }
        // Requests that wait for one of these symbols find it in L1.
        context.pending.settle(&settled);
    }

    /// Sends the wanted symbols, and reads the instrument list if the leader has a newer one.
    pub(crate) fn poll(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        self.want(context, now_mono_ms);
        self.look_for_list(context, now_mono_ms);
    }

    fn want(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        let Some(nodes) = &context.nodes else { return };
        let since = |at: u64| now_mono_ms.saturating_sub(at);
        if self.want_in_flight || since(self.looked_mono_ms) < LOOK_MS {
            return;
        }
        self.looked_mono_ms = now_mono_ms;
        let waited = context
            .pending
            .symbols(&[Class::Listed, Class::Unlisted], WANTED_MAX);
        let mut asked = context.l1.wanted(now_mono_ms, 1, WANTED_MAX);
        asked.extend(context.pending.symbols(&[Class::Held], WANTED_MAX));
        let wanted = wanted(waited, asked);
        let is_due = wanted != self.wanted || since(self.wanted_mono_ms) >= REPEAT_MS;
        if wanted.is_empty() || !is_due {
            self.wanted = wanted;
            return;
        }
        self.wanted = wanted.clone();
        self.wanted_mono_ms = now_mono_ms;
        self.want_in_flight = true;
        let relay = nodes.relay().cloned();
        // A refused job is reported like any other failure.
        let _ = self.wants.submit(&nodes.lane, WANT_DEADLINE_MS, move || {
            relay.map_or(Ok(()), |relay| relay.want(&wanted))
        });
    }

    fn look_for_list(&mut self, context: &WarmerContext, now_mono_ms: u64) {
        let list = context.instruments.load();
        let has = Evening::of(None, &list).instruments;
        let rested = self
            .list_asked_mono_ms
            .is_none_or(|at| now_mono_ms.saturating_sub(at) >= LIST_RETRY_MS);
        if self.list_in_flight || !rested || self.evening.instruments <= has {
            return;
        }
        self.list_asked_mono_ms = Some(now_mono_ms);
        self.list_in_flight = true;
        let l2 = Arc::clone(&context.l2);
        // A refused job is reported like any other failure.
        let _ = self
            .lists
            .submit(&context.cache_lane, LIST_DEADLINE_MS, move || {
                Box::new(persist::stored_instruments(&*l2))
            });
    }

    /// Uses the instrument list that was read, if it is newer than the current one.
    pub(crate) fn listed(&mut self, found: Option<Box<FoundList>>, context: &WarmerContext) {
        self.list_in_flight = false;
        let Some(list) = found.and_then(|found| *found) else {
            return;
        };
        let newer = {
            let held = context.instruments.load();
            Evening::of(None, &list).instruments > Evening::of(None, &held).instruments
        };
        if newer {
            tracing::info!(as_of = %list.as_of(), instruments = list.len(), "instrument list read");
            context.instruments.store(Arc::new(list));
        }
    }
}

/// The symbols that a follower wants: first those that requests wait for, then those that clients
/// asked for lately or users hold. Sorted, so that two lists can be compared.
fn wanted(mut waited: Vec<Symbol>, mut asked: Vec<Symbol>) -> Vec<Symbol> {
    waited.truncate(WANTED_MAX);
    asked.truncate(WANTED_MAX - waited.len());
    waited.extend(asked);
    waited.sort_unstable();
    waited.dedup();
    waited
}

// ---- Wanted
//
// Symbols that followers want count as if the leader's own clients had asked for them.

/// Owner of the followers' lists.
#[derive(Default)]
pub(crate) struct WantedTask {
    /// All wanted symbols at the last check.
    known: HashSet<Symbol>,
}

impl WantedTask {
    /// Checks what followers want. A symbol in L1 counts as asked for, so that polls and the ticker
    /// go on with it; any other is fetched. A symbol that was not wanted at the last check is sent
    /// once more, because the follower that asks lacks it.
    pub(crate) fn poll(
        &mut self,
        context: &WarmerContext,
        publisher: &mut RelayPublisher,
        now_mono_ms: u64,
    ) {
        let Some(relay) = context.nodes.as_ref().and_then(Nodes::relay) else {
            return;
        };
        let wanted = relay.wanted();
        let list = context.instruments.load();
        let (mut listed, mut unlisted): (Vec<Symbol>, Vec<Symbol>) = Default::default();
        for symbol in &wanted {
            let name = symbol.as_str();
            let is_new = !self.known.contains(symbol);
            match context.l1.peek(name, now_mono_ms) {
                Peek::Known { .. } => {
                    context.l1.touch(name, now_mono_ms);
                    if is_new {
                        publisher.add_quote(symbol);
                    }
                }
                Peek::Unknown if is_new => publisher.add_unknown(symbol.clone()),
                Peek::Unknown => {}
                Peek::Missing if list.contains(name) => listed.push(symbol.clone()),
                Peek::Missing => unlisted.push(symbol.clone()),
            }
        }
        // If the queue is full the follower asks again. Nobody waits here: the quote is sent when
        // it comes.
        if !listed.is_empty() {
            drop(context.pending.join_listed(&listed));
        }
        if !unlisted.is_empty() {
            drop(context.pending.join_unlisted(None, &unlisted));
        }
        self.known = wanted.into_iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_requests_wait_for_is_wanted_before_what_was_asked_for() {
        let symbols = |letter: &str, count: usize| -> Vec<Symbol> {
            (0..count)
                .filter_map(|n| Symbol::parse(&format!("NSE:{letter}{n}")))
                .collect()
        };
        let of = |letter: char, wanted: &[Symbol]| {
            wanted
                .iter()
                .filter(|symbol| symbol.ticker().starts_with(letter))
                .count()
        };
        let both = wanted(symbols("W", 20), symbols("A", 600));
        assert_eq!((of('W', &both), of('A', &both)), (20, WANTED_MAX - 20));
        let full = wanted(symbols("W", 600), symbols("A", 1));
        assert_eq!((of('W', &full), of('A', &full)), (WANTED_MAX, 0));
        assert_eq!(wanted(symbols("A", 2), symbols("A", 2)), symbols("A", 2));
    }
}
