//! Broker B's two lists of holdings made one, and its positions. Pure.
//!
//! The depository's list knows ISINs and what was delivered; the broker's own list knows costs and
//! counts pledged and, it seems, undelivered shares. They join by short code into one holding per
//! ISIN. Owned is the larger of the two quantities: neither list invents shares, and each leaves
//! some out. The difference is told as `disputed_quantity`, since no answer says which kind it is.

use std::collections::HashMap;

use rust_decimal::Decimal;

use super::wire::{DematRow, PortfolioRow, PositionRow};
use crate::base::{Broker, Holding, Position, PositionKind};
use crate::brokers::SyncError;

/// The equity list appears under this exchange, and the depository's rows name none.
const USUAL_EXCHANGE: &str = "NSE";
/// Longest code, name or ISIN; real ones have up to 20 bytes.
const TEXT_BYTES_MAX: usize = 64;

#[derive(Default)]
struct Share<'a> {
    code: &'a str,
    isin: Option<&'a str>,
    exchange: Option<&'a str>,
    demat: Decimal,
    portfolio: Decimal,
    /// Of the rows with a cost: shares and their value.
    costed: Decimal,
    cost: Decimal,
    last_price: Option<Decimal>,
}

/// One holding per ISIN, or per code where no ISIN is known. Rows without shares are left out.
///
/// # Errors
/// [`SyncError::Malformed`] when a row has no code, or a quantity is missing, negative or too
/// large.
pub(super) fn holdings(
    demat: &[DematRow],
    portfolio: &[PortfolioRow],
    as_of_ms: i64,
) -> Result<Vec<Holding>, SyncError> {
    let mut shares: Vec<Share<'_>> = Vec::new();
    let mut by_code: HashMap<&str, usize> = HashMap::new();
    let mut by_isin: HashMap<&str, usize> = HashMap::new();
    for row in demat {
        let (code, isin) = (named(&row.stock_code)?, some(row.isin.as_deref()));
        if isin.is_some_and(|isin| isin.len() > TEXT_BYTES_MAX) {
            return Err(malformed("an ISIN that is none"));
        }
        let known = isin.map_or(by_code.get(code), |isin| by_isin.get(isin)).copied();
        let at = known.unwrap_or_else(|| {
            shares.push(Share { code, isin, ..Share::default() });
            shares.len() - 1
        });
        by_code.entry(code).or_insert(at);
        isin.map(|isin| by_isin.insert(isin, at));
        shares[at].demat = sum(shares[at].demat, quantity(row.quantity.0)?)?;
    }
    for row in portfolio {
        let exchange = some(row.exchange_code.as_deref());
        // Derivatives have a list of their own; asked for shares, the broker should give none.
        if exchange.is_some_and(|exchange| !matches!(exchange, "NSE" | "BSE")) {
            continue;
        }
        let code = named(&row.stock_code)?;
        let at = *by_code.entry(code).or_insert_with(|| {
            shares.push(Share { code, ..Share::default() });
            shares.len() - 1
        });
        let share = &mut shares[at];
        let quantity = quantity(row.quantity.0)?;
        share.portfolio = sum(share.portfolio, quantity)?;
        share.exchange = share.exchange.or(exchange);
        share.last_price = share.last_price.or(row.current_market_price.price());
        if let Some(price) = row.average_price.price() {
            let value = price.checked_mul(quantity).ok_or_else(|| malformed("a huge cost"))?;
            share.costed = sum(share.costed, quantity)?;
            share.cost = sum(share.cost, value)?;
        }
    }
    let held = shares.iter().filter(|share| !share.demat.max(share.portfolio).is_zero());
    Ok(held.map(|share| holding(share, as_of_ms)).collect())
}

fn holding(share: &Share<'_>, as_of_ms: i64) -> Holding {
    Holding {
        broker: Broker::B,
        exchange: share.exchange.unwrap_or(USUAL_EXCHANGE).to_owned(),
        tradingsymbol: share.code.to_owned(),
        isin: share.isin.map(str::to_owned),
        settled_quantity: share.demat.max(share.portfolio),
        t1_quantity: Decimal::ZERO,
        pledged_quantity: Decimal::ZERO,
        mtf_quantity: Decimal::ZERO,
        disputed_quantity: (share.demat - share.portfolio).abs(),
        average_price: share.cost.checked_div(share.costed),
        last_price: share.last_price,
        close_price: None,
        as_of_ms,
        broker_pnl: None,
        discrepancy: false,
        unresolved: true,
        corporate_action: false,
    }
}

/// The rows as positions. The broker gives no profit: it is computed for open rows that have both
/// prices.
///
/// # Errors
/// As [`holdings`], and [`SyncError::Malformed`] for an open row without a direction.
pub(super) fn positions(rows: &[PositionRow]) -> Result<Vec<Position>, SyncError> {
    rows.iter().map(position).collect()
}

fn position(row: &PositionRow) -> Result<Position, SyncError> {
    let unsigned = quantity(row.quantity.0)?;
    let action = row.action.as_deref().unwrap_or_default().trim();
    let quantity = if action.eq_ignore_ascii_case("buy") {
        unsigned
    } else if action.eq_ignore_ascii_case("sell") {
        -unsigned
    } else if unsigned.is_zero() {
        unsigned
    } else {
        return Err(malformed("an open position without a direction"));
    };
    let (average_price, last_price) = (row.average_price.price(), row.ltp.price());
    let pnl = match (average_price, last_price) {
        (Some(average), Some(last)) if !quantity.is_zero() => {
            last.checked_sub(average).and_then(|move_| move_.checked_mul(quantity))
        }
        _ => None,
    };
    let derivative = some(row.expiry_date.as_deref()).is_some();
    Ok(Position {
        broker: Broker::B,
        kind: PositionKind::Net,
        exchange: some(row.exchange_code.as_deref()).unwrap_or(USUAL_EXCHANGE).to_owned(),
        tradingsymbol: contract(row)?,
        product: some(row.product_type.as_deref()).unwrap_or_default().to_owned(),
        quantity,
        multiplier: Decimal::ONE,
        average_price,
        last_price,
        close_price: None,
        pnl,
        realised: None,
        unrealised: if quantity.is_zero() { Some(Decimal::ZERO) } else { pnl },
        unresolved: !derivative,
    })
}

/// The short code, and of a derivative its expiry, strike and right:
/// `NIFTY 27-Feb-2025 24800 Call`.
fn contract(row: &PositionRow) -> Result<String, SyncError> {
    let mut name = named(&row.stock_code)?.to_owned();
    let strike = row.strike_price.price().map(|strike| strike.normalize().to_string());
    let right = some(row.right.as_deref()).filter(|right| *right != "*");
    for part in [some(row.expiry_date.as_deref()), strike.as_deref(), right].into_iter().flatten() {
        name.push(' ');
        name.push_str(part);
    }
    if name.len() > 3 * TEXT_BYTES_MAX {
        return Err(malformed("a contract with a name that is none"));
    }
    Ok(name)
}

fn some(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

fn named(code: &str) -> Result<&str, SyncError> {
    let code = code.trim();
    let good = (1..=TEXT_BYTES_MAX).contains(&code.len()) && !code.contains(char::is_control);
    if good { Ok(code) } else { Err(malformed("a row without a code")) }
}

fn quantity(given: Option<Decimal>) -> Result<Decimal, SyncError> {
    given
        .filter(|quantity| *quantity >= Decimal::ZERO)
        .ok_or_else(|| malformed("a row without a quantity"))
}

fn sum(one: Decimal, other: Decimal) -> Result<Decimal, SyncError> {
    one.checked_add(other).ok_or_else(|| malformed("a huge quantity"))
}

fn malformed(what: &str) -> SyncError {
    SyncError::Malformed(what.into())
}

#[cfg(test)]
#[path = "combine_tests.rs"]
mod tests;
