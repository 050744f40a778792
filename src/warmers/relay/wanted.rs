//! What the leader does about symbols that followers want: as if its own clients had asked.

use std::collections::HashSet;

use super::tell::TellTask;
use crate::base::Symbol;
use crate::cache::Peek;
use crate::warmers::context::WarmerContext;

/// Owner of what is known of the followers' wants.
pub struct WantedTask {
    /// As of the last look.
    known: HashSet<Symbol>,
}

impl WantedTask {
    /// Nobody wants anything.
    pub fn new() -> Self {
        Self { known: HashSet::new() }
    }

    /// Looks what followers want. What is held counts as asked for, so that polls and the ticker go
    /// on with it; what is not is fetched. What was not wanted a moment ago is told once more,
    /// because the follower that asks lacks it.
    pub fn poll(&mut self, context: &WarmerContext, tell: &mut TellTask, now_mono_ms: u64) {
        let Some(cluster) = &context.cluster else { return };
        let wanted = cluster.wire.wanted();
        let list = context.instruments.load();
        let (mut listed, mut unlisted): (Vec<Symbol>, Vec<Symbol>) = Default::default();
        for symbol in &wanted {
            let (name, is_new) = (symbol.as_str(), !self.known.contains(symbol));
            match context.l1.peek(name, now_mono_ms) {
                Peek::Known { .. } => {
                    context.l1.touch(name, now_mono_ms);
                    if is_new {
                        tell.add_quote(symbol);
                    }
                }
                Peek::Unknown if is_new => tell.add_unknown(symbol.clone()),
                Peek::Unknown => {}
                Peek::Missing if list.contains(name) => listed.push(symbol.clone()),
                Peek::Missing => unlisted.push(symbol.clone()),
            }
        }
        // Where there is no place the follower asks again. Nobody waits here: the answer is told.
        if !listed.is_empty() {
            drop(context.pending.join_listed(&listed));
        }
        if !unlisted.is_empty() {
            drop(context.pending.join_unlisted(None, &unlisted));
        }
        self.known = wanted.into_iter().collect();
    }
}
