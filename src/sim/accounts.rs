//! Accounts with rows set by a control route, in place of the seeded ones. Plain values; prices
//! come from the simulated exchange.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// Rows of one list; the real APIs are asked for no more.
const ROWS_MAX: usize = 10_000;
/// Accounts that have rows of their own.
const ACCOUNTS_MAX: usize = 1_000;

/// The rows of accounts, by user id.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    broker_a: HashMap<String, HoldingsA>,
    broker_b: HashMap<String, HoldingsB>,
    positions_a: HashMap<String, PositionRows>,
    positions_b: HashMap<String, PositionRows>,
    trades_a: HashMap<String, PositionRows>,
    trades_b: HashMap<String, PositionRows>,
}

/// A row of broker A's holdings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowA {
    /// `NSE:INFY`.
    pub(super) symbol: String,
    #[serde(default)]
    pub(super) quantity: i64,
    /// Sold today, so no longer in `quantity`.
    #[serde(default)]
    pub(super) sold: i64,
    #[serde(default)]
    pub(super) undelivered: i64,
    #[serde(default)]
    pub(super) pledged: i64,
    #[serde(default)]
    pub(super) funded: i64,
    /// 0 where the broker does not know it.
    #[serde(default)]
    pub(super) average_paise: i64,
    /// Its last price and previous close are 0, as of a suspended share.
    #[serde(default)]
    pub(super) unpriced: bool,
}

/// A row of the depository's list, in broker B's spelling.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DematB {
    pub(super) stock_code: String,
    pub(super) isin: String,
    pub(super) quantity: String,
}

/// A row of broker B's own list; the price is that of `symbol`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PortfolioB {
    pub(super) stock_code: String,
    pub(super) quantity: String,
    pub(super) average_price: String,
    pub(super) symbol: String,
    /// Its price is 0.
    #[serde(default)]
    pub(super) unpriced: bool,
}

/// The rows that an order sets for an account at broker A.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HoldingsA {
    user_id: String,
    pub(super) rows: Vec<RowA>,
}

/// The two lists that an order sets for an account at broker B.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HoldingsB {
    user_id: String,
    #[serde(default)]
    pub(super) demat: Vec<DematB>,
    #[serde(default)]
    pub(super) portfolio: Vec<PortfolioB>,
}

/// The rows of positions or trades that an order sets for an account, as they are sent. Trades have
/// the first list alone.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PositionRows {
    user_id: String,
    /// Broker B's only list.
    #[serde(default)]
    pub(super) net: Vec<Value>,
    #[serde(default)]
    pub(super) day: Vec<Value>,
}

impl Accounts {
    pub(super) fn of_broker_a(&self, user_id: &str) -> Option<Vec<RowA>> {
        self.broker_a
            .get(user_id)
            .map(|holdings| holdings.rows.clone())
    }

    pub(super) fn of_broker_b(&self, user_id: &str) -> Option<HoldingsB> {
        self.broker_b.get(user_id).cloned()
    }

    /// Replaces the rows of an account. Returns how many it has now.
    ///
    /// # Errors
    /// The mistake, in words for the person who sent the order.
    pub(super) fn set_broker_a(&mut self, holdings: HoldingsA) -> Result<usize, String> {
        let rows = holdings.rows.len();
        set(&mut self.broker_a, holdings.user_id.clone(), holdings, rows)
    }

    /// Same as [`set_broker_a`](Self::set_broker_a), for broker B.
    ///
    /// # Errors
    /// The mistake, in words for the person who sent the order.
    pub(super) fn set_broker_b(&mut self, holdings: HoldingsB) -> Result<usize, String> {
        let rows = holdings.demat.len().max(holdings.portfolio.len());
        set(&mut self.broker_b, holdings.user_id.clone(), holdings, rows)
    }

    pub(super) fn positions_a(&self, user_id: &str) -> Option<PositionRows> {
        self.positions_a.get(user_id).cloned()
    }

    pub(super) fn positions_b(&self, user_id: &str) -> Option<PositionRows> {
        self.positions_b.get(user_id).cloned()
    }

    pub(super) fn trades_a(&self, user_id: &str) -> Option<PositionRows> {
        self.trades_a.get(user_id).cloned()
    }

    pub(super) fn trades_b(&self, user_id: &str) -> Option<PositionRows> {
        self.trades_b.get(user_id).cloned()
    }

    /// Replaces the trades of an account at broker A, and at broker B if `at_b`.
    ///
    /// # Errors
    /// The mistake, in words for the person who sent the order.
    pub(super) fn set_trades(&mut self, at_b: bool, trades: PositionRows) -> Result<usize, String> {
        let rows = trades.net.len();
        let accounts = if at_b {
            &mut self.trades_b
        } else {
            &mut self.trades_a
        };
        set(accounts, trades.user_id.clone(), trades, rows)
    }

    /// Replaces the positions of an account at broker A, and at broker B if `at_b`.
    ///
    /// # Errors
    /// The mistake, in words for the person who sent the order.
    pub(super) fn set_positions(
        &mut self,
        at_b: bool,
        positions: PositionRows,
    ) -> Result<usize, String> {
        let rows = positions.net.len().max(positions.day.len());
        let accounts = if at_b {
            &mut self.positions_b
        } else {
            &mut self.positions_a
        };
        set(accounts, positions.user_id.clone(), positions, rows)
    }
}

fn set<T>(
    accounts: &mut HashMap<String, T>,
    user_id: String,
    holdings: T,
    rows: usize,
) -> Result<usize, String> {
    if rows > ROWS_MAX || accounts.len() >= ACCOUNTS_MAX {
        return Err(format!("at most {ROWS_MAX} rows a list and {ACCOUNTS_MAX} accounts"));
    }
    accounts.insert(user_id, holdings);
    Ok(rows)
}
