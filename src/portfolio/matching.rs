//! Matches each row of a sync with the row of the previous sync that it continues. Pure, linear in
//! the rows.

use std::collections::HashMap;

use rust_decimal::Decimal;

use crate::base::Holding;

/// By what two rows are of one share, the surest first.
#[derive(Clone, Copy)]
enum SameShare {
    Ticker,
    /// After a new ticker.
    IsinAndExchange,
    Isin,
}

/// What several rows of one share have in common with the rows that they continue, the surest
/// first. A broker may send them in any order.
#[derive(Clone, Copy)]
enum SameNumbers {
    QuantityAndCost,
    Quantity,
    Cost,
    None,
}

/// For each row of `after`, the index of the row of `before` that it continues. Rows are matched by
/// exchange and ticker first, then by ISIN; among rows of one share those with equal numbers first,
/// then in their order. No row of `before` is used twice.
pub(crate) fn paired(before: &[&Holding], after: &[Holding]) -> Vec<Option<usize>> {
    let mut free: Vec<bool> = vec![true; before.len()];
    let mut pairs = vec![None; after.len()];
    for share in [
        SameShare::Ticker,
        SameShare::IsinAndExchange,
        SameShare::Isin,
    ] {
        for numbers in [
            SameNumbers::QuantityAndCost,
            SameNumbers::Quantity,
            SameNumbers::Cost,
            SameNumbers::None,
        ] {
            let key = |row: &Holding| Some((share.of(row)?, numbers.of(row)));
            pair(before, after, key, &mut free, &mut pairs);
        }
    }
    pairs
}

impl SameShare {
    /// The names that have to be equal; `None` if the row has none.
    fn of(self, row: &Holding) -> Option<[String; 2]> {
        Some(match self {
            Self::Ticker => [row.exchange.clone(), row.tradingsymbol.clone()],
            Self::IsinAndExchange => [row.exchange.clone(), row.isin.clone()?],
            Self::Isin => [String::new(), row.isin.clone()?],
        })
    }
}

impl SameNumbers {
    /// The numbers that have to be equal.
    fn of(self, row: &Holding) -> (Option<Decimal>, Option<Decimal>) {
        let quantity = Some(row.quantity());
        let cost = row.average_price();
        match self {
            Self::QuantityAndCost => (quantity, cost),
            Self::Quantity => (quantity, None),
            Self::Cost => (None, cost),
            Self::None => (None, None),
        }
    }
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
