//! A user's ledger: computed from all that is stored of it, on the lane `ledger`.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use jiff::civil::Date;
use parking_lot::Mutex;
use rust_decimal::Decimal;

use crate::api::trades::gathered::Gathered;
use crate::api::trades::refusals::ledger_too_complex;
use crate::api::trades::synced::synced;
use crate::base::{Account, Isin, clock};
use crate::http::Problem;
use crate::ledger::corrections::Correction;
use crate::ledger::financial_year::FinancialYear;
use crate::ledger::gains::{Gains, Sources, gains};
use crate::ledger::lots::{Ledger, replay};
use crate::ledger::positions::{Lot, Part, Position};
use crate::ledger::reconciliation::{Compared, Persons, Reconciliation, reconcile};
use crate::ledger::report_agreement::{Agreement, agreement};
use crate::ledger::report_charges::add_charges;
use crate::ledger::report_offers::offers;
use crate::ledger::reported::AccountReport;
use crate::ledger::returns::{DatedPrice, ReturnSources, Returns, returns};
use crate::ledger::row::AccountName;
use crate::ledger::stated::{Stated, stated};
use crate::ledger::trades::{Trade, Trades, trades};
use crate::market::{FairValues, MarketCalendar};
use crate::store::{Portfolio, StoredImport};

/// The name of the index that returns are compared with.
pub(super) const INDEX: &str = "NIFTY 50";
/// Memory of a trade with its texts, which most trades share.
const TRADE_BYTES: usize = size_of::<Trade>() + 128;

/// A computed ledger.
pub(super) struct Book {
    pub(super) today: Date,
    pub(super) trades: Trades,
    pub(super) corrections: Vec<(String, Correction)>,
    /// At the end of today.
    pub(super) ledger: Ledger,
    pub(super) reconciliation: Reconciliation,
    pub(super) persons: Persons,
    /// Those that are live.
    pub(super) imports: Vec<StoredImport>,
    /// Ids of conflicts that were decided.
    decided: Vec<String>,
    pub(super) portfolio: Portfolio,
    pub(super) reports: Vec<AccountReport>,
    prices: HashMap<Isin, Vec<Price>>,
    index: HashMap<Date, Decimal>,
    /// The operator's prices of 31 January 2018, which corrections come before.
    fair_value: Box<dyn Fn(Isin) -> Option<Decimal> + Send + Sync>,
    /// The gains that were asked for last, for their pages.
    gains: Mutex<Option<Arc<YearOfGains>>>,
}

/// A financial year's gains of one person, and what reports say of them.
pub(super) struct YearOfGains {
    /// With what reports alone say among what is left out.
    pub(super) gains: Gains,
    pub(super) stated: Stated,
    pub(super) agreement: Agreement,
}

/// The price of a holding.
#[derive(Clone, Copy)]
pub(super) struct Price {
    account: Account,
    pub(super) last_price: Decimal,
    pub(super) as_of_ms: i64,
    /// Older than the last session before today.
    pub(super) is_stale: bool,
}

impl Book {
    pub(super) fn of(
        mut gathered: Gathered,
        calendar: &MarketCalendar,
        fair_values: Arc<FairValues>,
        today: Date,
    ) -> Result<Self, Problem> {
        let trades = trades(&gathered.imported(), gathered.known());
        gathered.forget_rows();
        let Gathered {
            corrections,
            choices,
            reports,
            index,
            portfolio,
            persons,
            imports,
            ..
        } = gathered;
        let decided = choices.into_keys().collect();
        let mut ledger = replay(&trades, &corrections, today);
        if let Some(why) = ledger.too_complex {
            return Err(ledger_too_complex(why));
        }
        add_charges(&mut ledger, &reports);
        let compared = Compared {
            trades: &trades,
            corrections: &corrections,
            ledger: &ledger,
            persons: &persons,
        };
        let reconciliation = reconcile(compared, &synced(&portfolio, calendar), calendar)
            .map_err(ledger_too_complex)?;
        let session = calendar.previous_trading_date(today).unwrap_or(today);
        let prices = prices(&portfolio, &ledger, session);
        let mut book = Self {
            today,
            trades,
            corrections,
            ledger,
            reconciliation,
            persons,
            imports,
            decided,
            portfolio,
            reports,
            prices,
            index,
            fair_value: Box::new(move |isin| fair_values.of(isin)),
            gains: Mutex::default(),
        };
        let offers = offers(book.sources(), &book.reports);
        book.reconciliation.add_offers(offers);
        book.trades.mark_checks(&book.ledger.checks);
        Ok(book)
    }

    /// The gains of a person in a financial year.
    pub(super) fn gains(&self, fy: FinancialYear, of_person: &str) -> Arc<YearOfGains> {
        let mut kept = self.gains.lock();
        let is_it =
            |year: &&Arc<YearOfGains>| year.gains.fy == fy && year.gains.person == of_person;
        if let Some(year) = kept.as_ref().filter(is_it) {
            return Arc::clone(year);
        }
        let sources = self.sources();
        let stated = stated(sources, &self.reports, fy, of_person);
        let mut gains = gains(sources, fy, of_person);
        gains.add_stated(&stated);
        let agreement = self.agreement(fy, None);
        let made = Arc::new(YearOfGains {
            gains,
            stated,
            agreement,
        });
        *kept = Some(Arc::clone(&made));
        made
    }

    /// What reports say of a financial year, against the ledger.
    pub(super) fn agreement(&self, fy: FinancialYear, account: Option<&AccountName>) -> Agreement {
        agreement(self.sources(), &self.reports, fy, account)
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            trades: &self.trades,
            corrections: &self.corrections,
            ledger: &self.ledger,
            proof: &self.reconciliation,
            persons: &self.persons,
            fmv: &*self.fair_value,
        }
    }

    /// What a person's shares returned.
    pub(super) fn returns(&self, of_person: &str) -> Returns {
        let price_of = |position: &Position| {
            let price = self.price(&position.account, position.isin()?)?;
            let date = clock::date_of_ms(price.as_of_ms)?;
            Some(DatedPrice {
                price: price.last_price,
                date,
            })
        };
        let sources = ReturnSources {
            ledger: &self.ledger,
            proof: &self.reconciliation,
            persons: &self.persons,
            prices: &price_of,
            index: &|date| self.index.get(&date).copied(),
        };
        returns(sources, of_person)
    }

    /// Whether there is, or was before it was decided, a conflict of this id.
    pub(super) fn has_conflict(&self, id: &str) -> bool {
        self.trades
            .conflicts
            .iter()
            .any(|conflict| conflict.id == id)
            || self.decided.iter().any(|decided| decided == id)
    }

    /// The price of a security, of the account's own holding if there is one.
    pub(super) fn price(&self, account: &AccountName, isin: Isin) -> Option<Price> {
        let prices = self.prices.get(&isin)?;
        let own = prices
            .iter()
            .find(|price| price.account.as_str() == account.as_str());
        own.or(prices.first()).copied()
    }

    /// Whether the last sync of an account came from the simulator.
    pub(super) fn is_simulated(&self, account: &AccountName) -> bool {
        let mut syncs = self.portfolio.syncs.iter();
        syncs.any(|sync| sync.account.as_str() == account.as_str() && sync.simulated)
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let trades = self.trades.all.len() + self.trades.conflicts.len();
        let lots: usize = self
            .ledger
            .positions
            .iter()
            .map(|position| position.lots.len())
            .sum();
        let parts: usize = self
            .ledger
            .sales
            .iter()
            .map(|sale| sale.parts.len() + 1)
            .sum();
        trades * TRADE_BYTES + lots * size_of::<Lot>() + parts * size_of::<Part>()
    }
}

/// The prices of all holdings, the newest first, by the newest ISIN of each.
fn prices(portfolio: &Portfolio, ledger: &Ledger, session: Date) -> HashMap<Isin, Vec<Price>> {
    let mut prices: HashMap<Isin, Vec<Price>> = HashMap::new();
    for row in &portfolio.holdings {
        let isin = row.isin.as_deref().and_then(Isin::parse);
        if let Some((isin, last_price)) = isin.zip(row.last_price) {
            let is_stale = clock::date_of_ms(row.as_of_ms).is_none_or(|date| date < session);
            let price = Price {
                account: row.account,
                last_price,
                as_of_ms: row.as_of_ms,
                is_stale,
            };
            prices
                .entry(ledger.securities.newest(isin))
                .or_default()
                .push(price);
        }
    }
    for of_one in prices.values_mut() {
        of_one.sort_by_key(|price| std::cmp::Reverse(price.as_of_ms));
    }
    prices
}
