//! Matches each row of a sync with the row of the previous sync that it continues. Pure, linear in
//! the rows.

use std::collections::HashMap;

use crate::base::Holding;

/// For each row of `after`, the index of the row of `before` that it continues. Rows are matched by
/// exchange and ticker first, then by ISIN. No row of `before` is used twice.
pub(crate) fn paired(before: &[&Holding], after: &[Holding]) -> Vec<Option<usize>> {
    let mut free: Vec<bool> = vec![true; before.len()];
    let mut pairs = vec![None; after.len()];
    let ticker = |row: &Holding| {
        let key: (String, String) = (row.exchange.clone(), row.tradingsymbol.clone());
        Some(key)
    };
    pair(before, after, ticker, &mut free, &mut pairs);
    pair(before, after, |row| row.isin.clone(), &mut free, &mut pairs);
    pairs
}

fn pair<K: std::hash::Hash + Eq>(
    before: &[&Holding],
    after: &[Holding],
    key: impl Fn(&Holding) -> Option<K>,
    free: &mut [bool],
    pairs: &mut [Option<usize>],
) {
    let mut known: HashMap<K, Vec<usize>> = HashMap::new();
    // In reverse, so that rows with equal keys are used in their order.
    for (at, row) in before.iter().enumerate().rev().filter(|(at, _)| free[*at]) {
        if let Some(key) = key(row) {
            known.entry(key).or_default().push(at);
        }
    }
    for (row, pair) in after.iter().zip(pairs).filter(|(_, pair)| pair.is_none()) {
        let found = key(row).and_then(|key| known.get_mut(&key)?.pop());
        if let Some(at) = found {
            free[at] = false;
            *pair = Some(at);
        }
    }
}
