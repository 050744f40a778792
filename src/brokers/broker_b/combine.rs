//! Combines broker B's two lists of holdings, and reads its positions. Pure.
//!
//! The depository's list has ISINs and delivered shares. The broker's own list has costs, and
//! includes pledged and, it seems, undelivered shares. Rows that share a code, in any case, or an
//! ISIN are one holding, in any order: after a split of the face value one code has its old and its
//! new ISIN for a while. The larger of the two quantities is owned, because neither list invents
//! shares and each leaves some out. The difference is reported as `disputed_quantity`, since no
//! answer shows its cause.
//!
//! The cost of a holding is known if the cost list has every owned share. If it has fewer, as after
//! a transfer or a bonus, the cost of the others is unknown. Then the holding has no average and no
//! profit, and its known cost is reported separately ([`Cost::Part`]).

use std::collections::{BTreeMap, HashMap};

use rust_decimal::Decimal;

use crate::base::{Account, Broker, Cost, Holding, Position, PositionKind};
use crate::brokers::BrokerError;
use crate::brokers::broker_b::wire::{DematRow, PortfolioRow, PositionRow, malformed};

/// The exchange of the equity list, and of the depository's rows, which name none.
const USUAL_EXCHANGE: &str = "NSE";
/// Longest code, name or ISIN; real ones have up to 20 bytes.
const TEXT_BYTES_MAX: usize = 64;
/// No price rises a hundredfold within a day.
const CHANGE_PCT_MAX: Decimal = Decimal::from_parts(10_000, 0, 0, false, 0);
/// Length of an ISIN.
const ISIN_BYTES: usize = 12;

/// The rows of one holding, added up. Nothing in it depends on their order.
#[derive(Default)]
struct Share {
    /// Shares of each code and ISIN.
    codes: BTreeMap<String, Decimal>,
    isins: BTreeMap<String, Decimal>,
    /// Exchanges of the cost list's rows, with the price that goes with the most shares.
    exchanges: BTreeMap<String, Option<Priced>>,
    demat: Decimal,
    portfolio: Decimal,
    /// Shares and value of the rows with a cost.
    costed: Decimal,
    cost: Decimal,
}

/// A price with its change of the day in percent, and its row's shares.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Priced {
    quantity: Decimal,
    price: Decimal,
    change_pct: Option<Decimal>,
}

/// A key by which rows are joined.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Code(String),
    Isin(String),
}

/// Groups of keys (union-find): each key's group, and each group's successor, itself if it is the
/// last.
#[derive(Default)]
struct Groups {
    by_key: HashMap<Key, usize>,
    successors: Vec<usize>,
}

impl Groups {
    fn group(&mut self, key: Key) -> usize {
        let next = self.successors.len();
        let group = *self.by_key.entry(key).or_insert(next);
        if group == next {
            self.successors.push(next);
        }
        self.last(group)
    }

    fn join(&mut self, one: Key, other: Key) {
        let one = self.group(one);
        let other = self.group(other);
        self.successors[one] = other;
    }

    fn last(&mut self, mut group: usize) -> usize {
        while self.successors[group] != group {
            // Path halving: the next search takes half as many steps.
            self.successors[group] = self.successors[self.successors[group]];
            group = self.successors[group];
        }
        group
    }
}

/// One holding per share, in the order of the codes. Rows without shares are left out.
///
/// # Errors
/// `Kind::Malformed` when a row has no code, or a quantity is missing, negative or too
/// large.
pub(super) fn holdings(
    demat: &[DematRow],
    portfolio: &[PortfolioRow],
    as_of_ms: i64,
) -> Result<Vec<Holding>, BrokerError> {
    let mut groups = Groups::default();
    for row in demat {
        let code = named(&row.stock_code)?;
        if let Some(isin) = isin(row)? {
            groups.join(Key::Code(code), Key::Isin(isin));
        }
    }
    let mut shares: HashMap<usize, Share> = HashMap::new();
    for row in demat {
        let code = named(&row.stock_code)?;
        let share = shares
            .entry(groups.group(Key::Code(code.clone())))
            .or_default();
        share.add_demat(code, isin(row)?, quantity(row.quantity.0)?)?;
    }
    for row in portfolio {
        let exchange = some(row.exchange_code.as_deref()).unwrap_or(USUAL_EXCHANGE);
        // Derivatives have a list of their own and should not be in this one.
        if !matches!(exchange, "NSE" | "BSE") {
            continue;
        }
        let code = named(&row.stock_code)?;
        let share = shares
            .entry(groups.group(Key::Code(code.clone())))
            .or_default();
        share.add_portfolio(code, exchange, row)?;
    }
    let held = shares.values().filter(|share| !share.owned().is_zero());
    let mut holdings: Vec<Holding> = held.map(|share| share.holding(as_of_ms)).collect();
    holdings.sort_by(|one, other| one.tradingsymbol.cmp(&other.tradingsymbol));
    Ok(holdings)
}

impl Share {
    fn add_demat(
        &mut self,
        code: String,
        isin: Option<String>,
        quantity: Decimal,
    ) -> Result<(), BrokerError> {
        self.demat = sum(self.demat, quantity)?;
        let of_code = self.codes.entry(code).or_default();
        *of_code = sum(*of_code, quantity)?;
        if let Some(isin) = isin {
            let of_isin = self.isins.entry(isin).or_default();
            *of_isin = sum(*of_isin, quantity)?;
        }
        Ok(())
    }

    fn add_portfolio(
        &mut self,
        code: String,
        exchange: &str,
        row: &PortfolioRow,
    ) -> Result<(), BrokerError> {
        let quantity = quantity(row.quantity.0)?;
        self.portfolio = sum(self.portfolio, quantity)?;
        let of_code = self.codes.entry(code).or_default();
        *of_code = sum(*of_code, quantity)?;
        let change_pct = row.change_percentage.0.filter(is_change);
        let price = row.current_market_price.price();
        let priced = price.map(|price| Priced {
            quantity,
            price,
            change_pct,
        });
        let best = self.exchanges.entry(exchange.to_owned()).or_default();
        *best = (*best).max(priced);
        if let Some(price) = row.average_price.price() {
            let value = price
                .checked_mul(quantity)
                .ok_or_else(|| malformed("a huge cost"))?;
            self.costed = sum(self.costed, quantity)?;
            self.cost = sum(self.cost, value)?;
        }
        Ok(())
    }

    fn owned(&self) -> Decimal {
        self.demat.max(self.portfolio)
    }

    fn holding(&self, as_of_ms: i64) -> Holding {
        let usual = self.exchanges.is_empty() || self.exchanges.contains_key(USUAL_EXCHANGE);
        let exchange = if usual { USUAL_EXCHANGE } else { "BSE" };
        // The price on its own exchange, else on the other.
        let own = self.exchanges.get(exchange).copied().flatten();
        let priced = own.or_else(|| self.exchanges.values().flatten().max().copied());
        Holding {
            account: Account::at(Broker::B),
            exchange: exchange.to_owned(),
            // The code with the most shares; among equals the first by name.
            tradingsymbol: most(self.codes.iter().rev()).unwrap_or_default(),
            // The ISIN with the most shares; among equals the newer.
            isin: most(self.isins.iter()),
            settled_quantity: self.owned(),
            t1_quantity: Decimal::ZERO,
            pledged_quantity: Decimal::ZERO,
            mtf_quantity: Decimal::ZERO,
            used_quantity: Decimal::ZERO,
            disputed_quantity: (self.demat - self.portfolio).abs(),
            cost: self.known_cost(),
            last_price: priced.map(|priced| priced.price),
            close_price: None,
            change_pct: priced.and_then(|priced| priced.change_pct),
            as_of_ms,
            broker_pnl: None,
            discrepancy: false,
            unresolved: true,
            mark: None,
        }
    }

    fn known_cost(&self) -> Option<Cost> {
        let Self { costed, cost, .. } = *self;
        match () {
            () if costed.is_zero() => None,
            () if costed == self.owned() => Some(Cost::Total(cost)),
            () => Some(Cost::Part {
                quantity: costed,
                cost,
            }),
        }
    }
}

/// Whether a price can change by this percentage in a day.
fn is_change(percent: &Decimal) -> bool {
    *percent > -Decimal::ONE_HUNDRED && *percent < CHANGE_PCT_MAX
}

/// The name with the most shares; the last among equals.
fn most<'a>(names: impl Iterator<Item = (&'a String, &'a Decimal)>) -> Option<String> {
    names
        .max_by_key(|(_, shares)| **shares)
        .map(|(name, _)| name.clone())
}

/// The rows as positions. The broker gives no profit: it is computed for open rows that have both
/// prices.
///
/// # Errors
/// As [`holdings`], and `Kind::Malformed` for an open row without a direction.
pub(super) fn positions(rows: &[PositionRow]) -> Result<Vec<Position>, BrokerError> {
    rows.iter().map(position).collect()
}

fn position(row: &PositionRow) -> Result<Position, BrokerError> {
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
    let average_price = row.average_price.price();
    let last_price = row.ltp.price();
    let pnl = match (average_price, last_price) {
        (Some(average), Some(last)) if !quantity.is_zero() => last
            .checked_sub(average)
            .and_then(|move_| move_.checked_mul(quantity)),
        _ => None,
    };
    let derivative = some(row.expiry_date.as_deref()).is_some();
    Ok(Position {
        account: Account::at(Broker::B),
        kind: PositionKind::Net,
        exchange: word(row.exchange_code.as_deref(), USUAL_EXCHANGE)?,
        tradingsymbol: contract(row)?,
        product: word(row.product_type.as_deref(), "")?,
        quantity,
        multiplier: Decimal::ONE,
        average_price,
        last_price,
        close_price: None,
        pnl,
        realised: None,
        unrealised: if quantity.is_zero() {
            Some(Decimal::ZERO)
        } else {
            pnl
        },
        unresolved: !derivative,
    })
}

/// The short code, for a derivative with expiry, strike and right: `NIFTY 27-Feb-2025 24800 Call`.
fn contract(row: &PositionRow) -> Result<String, BrokerError> {
    let mut name = named(&row.stock_code)?;
    let strike = row
        .strike_price
        .price()
        .map(|strike| strike.normalize().to_string());
    let right = some(row.right.as_deref()).filter(|right| *right != "*");
    for part in [some(row.expiry_date.as_deref()), strike.as_deref(), right]
        .into_iter()
        .flatten()
    {
        name.push(' ');
        name.push_str(part);
    }
    if name.len() > 3 * TEXT_BYTES_MAX || name.contains(char::is_control) {
        return Err(malformed("a contract with a name that is none"));
    }
    Ok(name)
}

fn some(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// A text that may be missing. Not every engine of the store accepts a zero byte in text.
fn word(text: Option<&str>, missing: &str) -> Result<String, BrokerError> {
    let word = some(text).unwrap_or(missing);
    if word.len() > TEXT_BYTES_MAX || word.contains(char::is_control) {
        return Err(malformed("an exchange or a product that is none"));
    }
    Ok(word.to_owned())
}

/// A code in the security master's case.
fn named(code: &str) -> Result<String, BrokerError> {
    let code = code.trim();
    let good = (1..=TEXT_BYTES_MAX).contains(&code.len()) && !code.contains(char::is_control);
    if good {
        Ok(code.to_ascii_uppercase())
    } else {
        Err(malformed("a row without a code"))
    }
}

/// The row's ISIN. A text that cannot be one counts as none, and joins no rows.
fn isin(row: &DematRow) -> Result<Option<String>, BrokerError> {
    let Some(isin) = some(row.isin.as_deref()) else {
        return Ok(None);
    };
    if isin.len() > TEXT_BYTES_MAX {
        return Err(malformed("an ISIN that is none"));
    }
    let meant = isin.len() == ISIN_BYTES && isin.bytes().all(|byte| byte.is_ascii_alphanumeric());
    Ok(meant.then(|| isin.to_ascii_uppercase()))
}

fn quantity(given: Option<Decimal>) -> Result<Decimal, BrokerError> {
    given
        .filter(|quantity| *quantity >= Decimal::ZERO)
        .ok_or_else(|| malformed("a row without a quantity"))
}

fn sum(one: Decimal, other: Decimal) -> Result<Decimal, BrokerError> {
    one.checked_add(other)
        .ok_or_else(|| malformed("a huge quantity"))
}

#[cfg(test)]
#[path = "combine_tests.rs"]
mod tests;
