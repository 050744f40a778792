//! Merges the rows of one instrument that is held at both brokers or on both exchanges.
//!
//! Pure. The rows themselves are not changed.

use std::collections::HashMap;

use rust_decimal::Decimal;

use crate::portfolio::valuation::{Overflow, Valuation, Valued, add, share};

/// One instrument that has at least two rows.
#[derive(Debug, Clone)]
pub(crate) struct Merged<'a> {
    pub isin: &'a str,
    /// Ticker of the first row.
    pub tradingsymbol: &'a str,
    pub quantity: Decimal,
    /// Average weighted by quantity. `None` if a row has no cost or nothing is owned.
    pub average_price: Option<Decimal>,
    /// Sums of the rows' amounts. A sum is `None` if the amount of one row is unknown.
    pub(crate) valuation: Valuation,
    /// The rows, in the order of the holdings.
    pub(crate) parts: Vec<Valued<'a>>,
}

/// The instruments that have more than one row, in the order of their first rows.
///
/// # Errors
/// [`Overflow`].
pub(crate) fn merged<'a>(rows: &[Valued<'a>]) -> Result<Vec<Merged<'a>>, Overflow> {
    let mut by_isin: HashMap<&str, usize> = HashMap::with_capacity(rows.len());
    let mut groups: Vec<(&'a str, Vec<Valued<'a>>)> = Vec::new();
    for row in rows {
        let Some(isin) = row.holding.isin.as_deref() else {
            continue;
        };
        let at = *by_isin.entry(isin).or_insert_with(|| {
            groups.push((isin, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(*row);
    }
    let several = groups.into_iter().filter(|(_, parts)| parts.len() > 1);
    several.map(|(isin, parts)| whole(isin, parts)).collect()
}

fn whole<'a>(isin: &'a str, parts: Vec<Valued<'a>>) -> Result<Merged<'a>, Overflow> {
    let sum = |amount: fn(&Valuation) -> Option<Decimal>| {
        let mut total = Some(Decimal::ZERO);
        for part in &parts {
            match (&mut total, amount(&part.valuation)) {
                (Some(total), Some(amount)) => add(total, amount)?,
                _ => total = None,
            }
        }
        Ok(total)
    };
    let quantity = sum(|part| Some(part.quantity))?.unwrap_or_default();
    let invested = sum(|part| part.invested)?;
    let pnl = sum(|part| part.pnl)?;
    let pnl_pct = match (pnl, invested) {
        (Some(pnl), Some(invested)) => share(pnl, invested)?,
        _ => None,
    };
    let valuation = Valuation {
        quantity,
        invested,
        current_value: sum(|part| part.current_value)?,
        pnl,
        pnl_pct,
        previous_close: None,
        day_pnl: sum(|part| part.day_pnl)?,
    };
    let average_price = invested.and_then(|invested| invested.checked_div(quantity));
    let tradingsymbol = parts[0].holding.tradingsymbol.as_str();
    Ok(Merged {
        isin,
        tradingsymbol,
        quantity,
        average_price,
        valuation,
        parts,
    })
}
