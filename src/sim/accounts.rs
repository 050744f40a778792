//! Accounts whose rows a control route gives, in place of the seeded ones. Plain values; prices
//! come from the simulated exchange.

use std::collections::HashMap;

use serde::Deserialize;

/// Rows of one list; the real APIs are asked for no more.
const ROWS_MAX: usize = 10_000;
/// Accounts that have rows of their own.
const ACCOUNTS_MAX: usize = 1_000;

/// By user id.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    broker_a: HashMap<String, Vec<RowA>>,
    broker_b: HashMap<String, ListsB>,
}

/// A row of broker A's holdings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowA {
    /// `NSE:INFY`.
    pub(super) symbol: String,
    #[serde(default)]
    pub(super) quantity: i64,
    #[serde(default)]
    pub(super) undelivered: i64,
    #[serde(default)]
    pub(super) pledged: i64,
    #[serde(default)]
    pub(super) funded: i64,
    /// 0 where the broker does not know it.
    #[serde(default)]
    pub(super) average_paise: i64,
}

/// Broker B's two lists.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListsB {
    #[serde(default)]
    pub(super) demat: Vec<DematB>,
    #[serde(default)]
    pub(super) portfolio: Vec<PortfolioB>,
}

/// A row of the depository's list, as broker B spells it.
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
}

/// An order for broker A's account.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderA {
    user_id: String,
    rows: Vec<RowA>,
}

/// An order for broker B's account.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderB {
    user_id: String,
    #[serde(default)]
    demat: Vec<DematB>,
    #[serde(default)]
    portfolio: Vec<PortfolioB>,
}

impl Accounts {
    pub(super) fn of_broker_a(&self, user_id: &str) -> Option<Vec<RowA>> {
        self.broker_a.get(user_id).cloned()
    }

    pub(super) fn of_broker_b(&self, user_id: &str) -> Option<ListsB> {
        self.broker_b.get(user_id).cloned()
    }

    /// Puts the rows in the place of what the account held; how many there are.
    ///
    /// # Errors
    /// What is wrong, for the person who sent it.
    pub(super) fn set_broker_a(&mut self, order: OrderA) -> Result<usize, String> {
        let rows = order.rows.len();
        set(&mut self.broker_a, order.user_id, order.rows, rows)
    }

    /// The same of broker B.
    ///
    /// # Errors
    /// The same.
    pub(super) fn set_broker_b(&mut self, order: OrderB) -> Result<usize, String> {
        let OrderB { user_id, demat, portfolio } = order;
        let rows = demat.len().max(portfolio.len());
        set(&mut self.broker_b, user_id, ListsB { demat, portfolio }, rows)
    }
}

fn set<T>(
    accounts: &mut HashMap<String, T>,
    user_id: String,
    lists: T,
    rows: usize,
) -> Result<usize, String> {
    if rows > ROWS_MAX || accounts.len() >= ACCOUNTS_MAX {
        return Err(format!("at most {ROWS_MAX} rows a list and {ACCOUNTS_MAX} accounts"));
    }
    accounts.insert(user_id, lists);
    Ok(rows)
}
