//! What each node wants, as the leader knows it. Pure.

use std::collections::HashSet;

use crate::base::{BoundedMap, Symbol};

/// How long a node's list counts; it is repeated well within that.
pub const WANTED_TTL_MS: u64 = 5_000;
/// Most nodes whose lists are kept; of more, those that were heard longest ago are forgotten.
pub const NODES_MAX: usize = 64;

struct List {
    until_mono_ms: u64,
    /// By the server's clock.
    told_ms: u64,
    symbols: Vec<Symbol>,
}

/// The lists of all nodes.
pub(super) struct Board(BoundedMap<String, List>);

impl Board {
    pub(super) fn new() -> Self {
        Self(BoundedMap::new(NODES_MAX))
    }

    /// Replaces a node's list, unless that was told later; whether it did.
    pub(super) fn put(
        &mut self,
        node: String,
        symbols: Vec<Symbol>,
        told_ms: u64,
        now_mono_ms: u64,
    ) -> bool {
        if self.0.get(&node).is_some_and(|list| list.told_ms >= told_ms) {
            return false;
        }
        let list = List { until_mono_ms: now_mono_ms + WANTED_TTL_MS, told_ms, symbols };
        let worth = |list: &List| (list.until_mono_ms > now_mono_ms).then_some(list.until_mono_ms);
        self.0.insert(node, list, worth);
        true
    }

    /// What any node wants now, each once.
    pub(super) fn wanted(&mut self, now_mono_ms: u64) -> Vec<Symbol> {
        self.0.retain(|_, list| list.until_mono_ms > now_mono_ms);
        let all: HashSet<&Symbol> = self.0.values().flat_map(|list| &list.symbols).collect();
        all.into_iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(names: &[&str]) -> Vec<Symbol> {
        names.iter().map(|name| Symbol::parse(&format!("NSE:{name}")).unwrap()).collect()
    }

    fn wanted(board: &mut Board, now_mono_ms: u64) -> Vec<String> {
        let mut wanted: Vec<String> =
            board.wanted(now_mono_ms).iter().map(ToString::to_string).collect();
        wanted.sort();
        wanted
    }

    #[test]
    fn lists_are_joined_replaced_and_forgotten() {
        let mut board = Board::new();
        assert!(board.put("a".into(), symbols(&["X", "Y"]), 10, 0));
        assert!(board.put("b".into(), symbols(&["Y", "Z"]), 20, 1_000));
        assert_eq!(wanted(&mut board, 1_000), ["NSE:X", "NSE:Y", "NSE:Z"]);
        assert!(board.put("b".into(), symbols(&["Z"]), 30, 2_000));
        assert!(!board.put("b".into(), symbols(&["Y"]), 20, 2_000), "told again");
        assert_eq!(wanted(&mut board, 4_999), ["NSE:X", "NSE:Y", "NSE:Z"]);
        assert_eq!(wanted(&mut board, 5_000), ["NSE:Z"]);
        assert!(wanted(&mut board, 7_000).is_empty());
    }

    #[test]
    fn invented_nodes_do_not_push_out_what_was_heard_last() {
        let mut board = Board::new();
        for n in 0..1_000 {
            board.put(format!("node{n}"), symbols(&[&format!("S{n}")]), n, n);
        }
        let wanted = wanted(&mut board, 1_000);
        assert_eq!(wanted.len(), NODES_MAX);
        assert!(wanted.contains(&"NSE:S999".to_owned()));
    }
}
