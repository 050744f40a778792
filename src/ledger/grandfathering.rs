//! The cost of shares acquired until 31 January 2018: the gain until that day is not taxed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::ledger::amount::Amount;
use crate::ledger::corrections::{Change, Correction, How};
use crate::ledger::financial_year::FinancialYear;
use crate::ledger::positions::Lot;
use crate::ledger::reasons::Reason;
use crate::ledger::row::AccountName;
use crate::ledger::rules::GRANDFATHERED_UNTIL;
use crate::ledger::securities::Securities;

/// Cost inflation indices from 2001-02 to 2017-18.
const INDICES: [i64; 17] = [
    100, 105, 109, 113, 117, 122, 129, 137, 148, 167, 184, 200, 220, 240, 254, 264, 272,
];
const FIRST_INDEX_YEAR: i16 = 2001;
const LAST_INDEX: i64 = 272;

/// A price of 31 January 2018 from outside the ledger.
pub(crate) type FmvList<'a> = &'a dyn Fn(Isin) -> Option<Decimal>;

/// What is known of prices on 31 January 2018.
pub(crate) struct FairValues<'a> {
    list: FmvList<'a>,
    /// By newest ISIN. Two prices of one security are in doubt.
    said: BTreeMap<Isin, BTreeSet<Decimal>>,
    indexed: BTreeSet<Isin>,
    splits: BTreeMap<Isin, Vec<Split<'a>>>,
    /// What splits until a sale have made of one share of 31 January 2018, in that account.
    since_splits: RefCell<BTreeMap<(Isin, AccountName, Date), Amount>>,
}

struct Split<'a> {
    account: Option<&'a AccountName>,
    ex_date: Date,
    numerator: Decimal,
    denominator: Decimal,
}

/// What counts as cost, and from which value of 31 January 2018.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Considered {
    /// Of all the part's shares.
    pub fmv: Option<Amount>,
    pub cost: Amount,
}

impl<'a> FairValues<'a> {
    pub(crate) fn of(
        corrections: &'a [(String, Correction)],
        securities: &Securities,
        list: FmvList<'a>,
    ) -> Self {
        let mut values = Self {
            list,
            said: BTreeMap::new(),
            indexed: BTreeSet::new(),
            splits: BTreeMap::new(),
            since_splits: RefCell::default(),
        };
        for (_, correction) in corrections {
            match correction {
                Correction::Fmv { isin, price } => {
                    values
                        .said
                        .entry(securities.newest(*isin))
                        .or_default()
                        .insert(*price);
                }
                Correction::FmvIndexed { isin } => {
                    values.indexed.insert(securities.newest(*isin));
                }
                Correction::Action(action) => {
                    if let Change::Split { ratio, .. } = action.change {
                        let of = values
                            .splits
                            .entry(securities.newest(action.isin))
                            .or_default();
                        of.push(Split {
                            account: action.account.as_ref(),
                            ex_date: action.ex_date,
                            numerator: ratio.numerator.into(),
                            denominator: ratio.denominator.into(),
                        });
                    }
                }
                _ => {}
            }
        }
        values
    }

    /// The cost to be considered of a long part.
    pub(crate) fn considered(
        &self,
        lot: &Lot,
        (account, isins): (&AccountName, &[Isin]),
        newest: Isin,
        (sold, proceeds): (Date, &Amount),
    ) -> Result<Considered, Reason> {
        if lot.acquired_on > GRANDFATHERED_UNTIL {
            return Ok(Considered {
                fmv: None,
                cost: lot.cost.clone(),
            });
        }
        if lot.carried {
            return Err(Reason::FmvCarried);
        }
        let fmv = if self.indexed.contains(&newest) {
            if matches!(lot.origin, How::Gift | How::Inheritance) {
                return Err(Reason::FmvCarried);
            }
            indexed(&lot.cost, lot.acquired_on)
        } else {
            let price = self.price(newest, isins)?;
            self.since_split(Amount::product(price, lot.quantity), account, newest, sold)
        };
        let lower = fmv.clone().min(proceeds.clone());
        Ok(Considered {
            cost: lot.cost.clone().max(lower),
            fmv: Some(fmv),
        })
    }

    fn price(&self, newest: Isin, isins: &[Isin]) -> Result<Decimal, Reason> {
        match self.said.get(&newest) {
            Some(said) if said.len() > 1 => Err(Reason::FmvDiffers),
            Some(said) => said.first().copied().ok_or(Reason::FmvMissing),
            None => isins
                .iter()
                .find_map(|isin| (self.list)(*isin))
                .ok_or(Reason::FmvMissing),
        }
    }

    /// A value at the price of then of shares as they are now: splits since have made more of them.
    fn since_split(
        &self,
        value: Amount,
        account: &AccountName,
        newest: Isin,
        sold: Date,
    ) -> Amount {
        let Some(splits) = self.splits.get(&newest) else {
            return value;
        };
        let mut known = self.since_splits.borrow_mut();
        let shares = known
            .entry((newest, account.clone(), sold))
            .or_insert_with(|| {
                let since = splits.iter().filter(|split| {
                    split.account.is_none_or(|of| of == account)
                        && split.ex_date > GRANDFATHERED_UNTIL
                        && split.ex_date <= sold
                });
                since.fold(Amount::from(Decimal::ONE), |shares, split| {
                    shares
                        .times(&split.numerator.into())
                        .over(&split.denominator.into())
                })
            });
        value.over(shares)
    }
}

/// The cost at the prices of 2017-18, of a share that was not listed on that day.
fn indexed(cost: &Amount, acquired_on: Date) -> Amount {
    let year = FinancialYear::of(acquired_on).first().year();
    let at = usize::try_from(year - FIRST_INDEX_YEAR).unwrap_or_default();
    let index = INDICES[at.min(INDICES.len() - 1)];
    cost.times(&Decimal::from(LAST_INDEX).into())
        .over(&Decimal::from(index).into())
}
