//! What an account holds of one security: its open lots, first in, first out, and the parts that
//! sales took of them.

use std::collections::VecDeque;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::base::words::words;
use crate::ledger::amount::Amount;
use crate::ledger::corrections::How;
use crate::ledger::row::AccountName;
use crate::ledger::securities::Security;

/// What a lot is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LotSource {
    /// Index in `Trades::all`.
    Trade(u32),
    /// Index in the corrections.
    Correction(u32),
}

/// Shares that came into an account together, or a part of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lot {
    /// Of the purchase: cost and term go by it.
    pub acquired_on: Date,
    /// When they came into this account: which are sold first goes by it.
    pub entered: Date,
    pub how: How,
    /// How they were acquired before a merger or a demerger carried them.
    pub origin: How,
    pub quantity: Decimal,
    /// Of all of them together, with `charges`.
    pub cost: Amount,
    /// Of the purchase, where a file states them.
    pub charges: Option<Amount>,
    pub source: LotSource,
    /// Whether a merger or a demerger carried the cost to this security.
    pub carried: bool,
    /// Index of the bonus's correction.
    pub bonus: Option<u32>,
}

impl Lot {
    /// The part of `quantity` shares, fewer than all, which leaves the lot.
    fn split_off(&mut self, quantity: Decimal) -> Self {
        let part = |amount: &Amount| amount.part(quantity, self.quantity);
        let taken = Self {
            quantity,
            cost: part(&self.cost),
            charges: self.charges.as_ref().map(part),
            ..self.clone()
        };
        self.quantity -= quantity;
        self.cost = self.cost.minus(&taken.cost);
        self.charges = self
            .charges
            .take()
            .zip(taken.charges.as_ref())
            .map(|(all, part)| all.minus(part));
        taken
    }
}

words! {
    /// What a part of a sale is.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum PartKind {
        /// Of shares that were held.
        Delivery = "delivery",
        /// Bought and sold on one exchange on one day.
        Intraday = "intraday",
        /// Of a contract of derivatives.
        Contract = "fno",
        Buyback = "buyback",
    }
}

/// One sale and one lot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub kind: PartKind,
    /// The shares that the sale took, with their part of the cost.
    pub lot: Lot,
    pub proceeds: Amount,
    /// Of the sale, where a file states them.
    pub charges: Option<Amount>,
    /// Accounts that held shares of a bonus whose stripping this part may be, with the index of
    /// the bonus's correction.
    pub beside_bonus: Vec<(u32, AccountName)>,
}

/// One sale, or the closing of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sale {
    /// Index in `Ledger::positions`.
    pub position: u32,
    pub sold: Date,
    pub quantity: Decimal,
    pub proceeds: Amount,
    pub charges: Option<Amount>,
    /// Index in `Trades::all`; none of a buyback.
    pub trade: Option<u32>,
    /// Shares whose purchase is not known.
    pub uncovered: Decimal,
    pub parts: Vec<Part>,
}

/// Money that was paid for shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Purchase {
    /// Index in `Ledger::positions`.
    pub position: u32,
    pub date: Date,
    /// With the charges that are known.
    pub paid: Amount,
}

/// An account's shares of one security.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub account: AccountName,
    pub security: Security,
    /// In the order in which they entered.
    pub lots: VecDeque<Lot>,
    /// Whether any shares ever came, by whatever way.
    pub was_held: bool,
    /// Shares that were sold or moved and that no purchase shows. Later purchases do not cover
    /// them.
    pub uncovered: Decimal,
    /// Accounts to which shares moved; `None` is out of the ledger.
    pub left_for: Vec<Option<AccountName>>,
    /// Cost of fractions of shares, for which an action gave none.
    pub cost_of_fractions: Amount,
    /// The symbol of the latest trade.
    pub symbol: Option<std::sync::Arc<str>>,
}

impl Position {
    pub(crate) fn new(account: AccountName, security: Security) -> Self {
        Self {
            account,
            security,
            lots: VecDeque::new(),
            was_held: false,
            uncovered: Decimal::ZERO,
            left_for: Vec::new(),
            cost_of_fractions: Amount::ZERO,
            symbol: None,
        }
    }

    pub(crate) fn isin(&self) -> Option<Isin> {
        self.security.isin()
    }

    pub(crate) fn quantity(&self) -> Decimal {
        self.lots.iter().map(|lot| lot.quantity).sum()
    }

    /// Adds a lot behind those that entered before.
    pub(crate) fn enter(&mut self, lot: Lot) {
        self.was_held = true;
        self.lots.push_back(lot);
    }

    /// Takes shares from the lots that entered first, and says how many were not there.
    pub(crate) fn take(&mut self, quantity: Decimal) -> (Vec<Lot>, Decimal) {
        let mut left = quantity;
        let mut taken = Vec::new();
        while left > Decimal::ZERO {
            let Some(mut first) = self.lots.pop_front() else {
                break;
            };
            if first.quantity > left {
                taken.push(first.split_off(left));
                self.lots.push_front(first);
                return (taken, Decimal::ZERO);
            }
            left -= first.quantity;
            taken.push(first);
        }
        self.uncovered += left;
        (taken, left)
    }
}
