//! What the store has of a user's ledger, and in which form the domain takes it.
//!
//! Blocks for the store; for the lane `ledger`.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::candle::PRICE_DIGITS;
use crate::base::symbol::Exchange;
use crate::base::{Account, Isin, Symbol};
use crate::http::Problem;
use crate::ledger::corrections::Correction;
use crate::ledger::file::FileKind;
use crate::ledger::reconciliation::{Persons, person};
use crate::ledger::reported::AccountReport;
use crate::ledger::row::{AccountName, Row};
use crate::ledger::securities::Securities as JoinedIsins;
use crate::ledger::trades::{Choices, ImportedRows, IsinLookup, Known};
use crate::portfolio::Securities;
use crate::store::{AccountId, ImportState, Portfolio, Store, StoreError, StoredImport};

/// The index that returns are compared with.
const INDEX_SYMBOL: &str = "NSE:NIFTY 50";

/// Everything that is stored of a user's ledger, and the portfolio that proves it.
pub(super) struct Gathered {
    /// Those that are live.
    pub(super) imports: Vec<StoredImport>,
    /// The ids of those that bring trades, and their rows.
    ids: Vec<String>,
    rows: Vec<Vec<Row>>,
    pub(super) persons: Persons,
    /// What live reports state.
    pub(super) reports: Vec<AccountReport>,
    /// With their ids.
    pub(super) corrections: Vec<(String, Correction)>,
    pub(super) choices: Choices,
    pub(super) portfolio: Portfolio,
    /// Closes of the index that returns are compared with.
    pub(super) index: HashMap<Date, Decimal>,
    joined: JoinedIsins,
    isins: Isins,
}

impl Gathered {
    /// Reads it. Another state may be stored before the last part is read: the caller has taken the
    /// version before, so nothing older than that is ever kept under it.
    pub(super) fn read(
        store: &Store,
        user: AccountId,
        listed: &Arc<Securities>,
    ) -> Result<Self, Problem> {
        let mut imports = store.imports(user)?;
        imports.retain(|import| import.state == ImportState::Live);
        let of_trades: Vec<i64> = imports
            .iter()
            .filter(|import| import.kind == FileKind::Trades)
            .map(|import| import.id)
            .collect();
        let rows = store.import_rows(user, &of_trades)?;
        let reports = reports(store, user, &imports)?;
        let corrections = corrections(store, user)?;
        let portfolio = store.portfolio(user)?;
        let accounts = store.ledger_accounts(user)?.into_iter();
        let said: Vec<&Correction> = corrections.iter().map(|(_, said)| said).collect();
        Ok(Self {
            ids: of_trades.iter().map(i64::to_string).collect(),
            rows,
            reports,
            index: index(store)?,
            persons: accounts.map(|known| (known.name, known.person)).collect(),
            choices: store.choices(user)?,
            joined: JoinedIsins::of(said.iter().copied()),
            isins: Isins::of(&portfolio, &said, listed),
            imports,
            corrections,
            portfolio,
        })
    }

    /// The rows of the live imports.
    pub(super) fn imported(&self) -> Vec<ImportedRows<'_>> {
        let imports = self
            .imports
            .iter()
            .filter(|import| import.kind == FileKind::Trades);
        let with_rows = imports.zip(self.ids.iter().zip(&self.rows));
        with_rows
            .map(|(import, (id, rows))| ImportedRows {
                import: id,
                account: &import.account,
                format: import.format.as_str(),
                rows,
            })
            .collect()
    }

    /// Forgets the rows, once the trades are made of them. They are most of the memory.
    pub(super) fn forget_rows(&mut self) {
        self.rows = Vec::new();
        self.ids = Vec::new();
    }

    /// What the merging of rows goes by.
    pub(super) fn known(&self) -> Known<'_> {
        Known {
            securities: &self.joined,
            choices: &self.choices,
            isins: &self.isins,
        }
    }

    /// Whose an account is.
    pub(super) fn person_of(&self, account: &AccountName) -> &str {
        person(&self.persons, account)
    }
}

/// The closes of the index that are stored.
fn index(store: &Store) -> Result<HashMap<Date, Decimal>, Problem> {
    let Some(symbol) = Symbol::parse(INDEX_SYMBOL) else {
        return Ok(HashMap::new());
    };
    let candles = store.candles(&symbol)?.into_iter();
    Ok(candles
        .map(|day| (day.date, Decimal::new(day.close_e4, PRICE_DIGITS)))
        .collect())
}

/// What the live reports state.
fn reports(
    store: &Store,
    user: AccountId,
    imports: &[StoredImport],
) -> Result<Vec<AccountReport>, Problem> {
    let of_reports: Vec<&StoredImport> = imports
        .iter()
        .filter(|import| import.kind == FileKind::TaxReport)
        .collect();
    let ids: Vec<i64> = of_reports.iter().map(|import| import.id).collect();
    let stored = store.reports(user, &ids)?;
    let with_import = of_reports.iter().zip(stored);
    let reports = with_import.map(|(import, report)| AccountReport {
        account: import.account.clone(),
        format: import.format,
        lines: report.lines,
        income: report.income,
    });
    Ok(reports.collect())
}

/// The corrections of a user, with their ids.
pub(super) fn corrections(
    store: &Store,
    user: AccountId,
) -> Result<Vec<(String, Correction)>, Problem> {
    let stored = store.corrections(user)?.into_iter();
    let read = stored.map(|stored| {
        let correction = Correction::parse(stored.document.as_bytes());
        let correction = correction.map_err(|_| StoreError::Damaged("a correction"))?;
        Ok((stored.id, correction))
    });
    read.collect()
}

/// What is known of symbols beside the rows.
struct Isins {
    held: HashMap<(String, Exchange, String), Vec<Isin>>,
    said: HashMap<(String, String), Vec<Isin>>,
    listed: Arc<Securities>,
}

impl Isins {
    fn of(portfolio: &Portfolio, said: &[&Correction], listed: &Arc<Securities>) -> Self {
        let mut isins = Self {
            held: HashMap::new(),
            said: HashMap::new(),
            listed: Arc::clone(listed),
        };
        for row in &portfolio.holdings {
            let exchange = Exchange::ALL
                .into_iter()
                .find(|one| one.as_str() == row.exchange);
            let isin = row.isin.as_deref().and_then(Isin::parse);
            if let Some((exchange, isin)) = exchange.zip(isin) {
                let account = row.account.as_str().to_owned();
                let place = (account, exchange, row.tradingsymbol.clone());
                note(isins.held.entry(place).or_default(), isin);
            }
        }
        for correction in said {
            if let Correction::Symbol {
                account,
                symbol,
                isin,
            } = correction
            {
                let place = (account.as_str().to_owned(), symbol.clone());
                note(isins.said.entry(place).or_default(), *isin);
            }
        }
        isins
    }
}

fn note(isins: &mut Vec<Isin>, isin: Isin) {
    if !isins.contains(&isin) {
        isins.push(isin);
    }
}

impl IsinLookup for Isins {
    fn held(&self, account: &AccountName, exchange: Exchange, symbol: &str) -> Vec<Isin> {
        let place = (account.as_str().to_owned(), exchange, symbol.to_owned());
        self.held.get(&place).cloned().unwrap_or_default()
    }

    /// Broker A writes the exchange's tickers, of which some are another share's code at broker B.
    fn listed(&self, account: &AccountName, exchange: Exchange, symbol: &str) -> Vec<Isin> {
        if Account::parse(account.as_str()).is_some_and(Account::writes_tickers) {
            return Vec::new();
        }
        let isin = self.listed.isin_of_code(symbol, exchange.as_str());
        isin.and_then(Isin::parse).into_iter().collect()
    }

    fn said(&self, account: &AccountName, symbol: &str) -> Vec<Isin> {
        let place = (account.as_str().to_owned(), symbol.to_owned());
        self.said.get(&place).cloned().unwrap_or_default()
    }
}
