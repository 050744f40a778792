//! Why a ledger and a broker may differ, and what a person can do about it.
//!
//! Only offers: nothing here is applied by itself. What only the person knows is null in them.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::ledger::corrections::{Action, Change, Correction, Ratio};
use crate::ledger::reasons::{Cause, Reason};
use crate::ledger::row::AccountName;
use crate::ledger::shares;
use crate::ledger::trades::Trades;

/// Days without a trade after which a file seems to be missing.
const GAP_DAYS_MIN: i32 = 180;
/// New shares for held ones of usual bonuses, and of usual splits that no bonus looks like.
const BONUSES: [(u32, u32); 6] = [(1, 1), (1, 2), (2, 1), (3, 1), (1, 4), (1, 5)];
const SPLITS: [(u32, u32); 6] = [(5, 1), (10, 1), (1, 10), (1, 5), (1, 2), (4, 1)];
/// Characters of an ISIN that name the issuer and the kind of security.
const ISSUER_CHARS: usize = 7;

/// What a person can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mend {
    /// To put this correction: JSON, with null for what nobody but the person knows.
    Correction(String),
    /// To import the files of this time.
    Import {
        from: Option<Date>,
        to: Option<Date>,
    },
}

/// The longest time without a trade of an account, until its sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub from: Option<Date>,
    pub to: Option<Date>,
    /// Whether it is so long that a file seems to be missing.
    pub is_long: bool,
}

impl Gap {
    pub(crate) fn of(trades: &Trades, account: &AccountName, until: Date) -> Self {
        let mut longest = Self {
            from: None,
            to: Some(until),
            is_long: false,
        };
        let mut longest_days = 0;
        let mut before: Option<Date> = None;
        let dates = trades.all.iter().filter(|trade| trade.account == *account);
        for date in dates
            .map(|trade| trade.date)
            .filter(|date| *date <= until)
            .chain([until])
        {
            let days = before.map_or(0, |before| (date - before).get_days());
            if days > longest_days {
                longest_days = days;
                let is_long = days >= GAP_DAYS_MIN;
                longest = Self {
                    from: before,
                    to: Some(date),
                    is_long,
                };
            }
            before = Some(date);
        }
        longest
    }
}

/// What differs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference<'a> {
    pub account: &'a AccountName,
    pub isin: Option<Isin>,
    pub ledger: Decimal,
    pub synced: Decimal,
    /// When quantity and price suggested an action, if they did.
    pub action_seen: Option<Date>,
    pub synced_on: Date,
    pub gap: Gap,
}

impl Difference<'_> {
    pub(crate) fn cause(&self) -> Cause {
        if self.bonus().is_some() {
            return Cause::Bonus;
        }
        if self.split().is_some() || self.action_seen.is_some() {
            return Cause::Split;
        }
        match self.synced > self.ledger {
            _ if self.gap.is_long => Cause::MissingFile,
            true => Cause::TransferIn,
            false => Cause::TransferOut,
        }
    }

    fn bonus(&self) -> Option<Ratio> {
        let gives = |ratio: &Ratio| {
            let given = shares::whole(self.ledger, *ratio);
            !given.is_zero() && self.ledger + given == self.synced
        };
        BONUSES.map(ratio).into_iter().find(gives)
    }

    fn split(&self) -> Option<Ratio> {
        let gives = |ratio: &Ratio| {
            !self.synced.is_zero() && shares::whole(self.ledger, *ratio) == self.synced
        };
        SPLITS.map(ratio).into_iter().find(gives)
    }

    pub(crate) fn mends(&self) -> Vec<Mend> {
        let import = Mend::Import {
            from: self.gap.from,
            to: self.gap.to,
        };
        let Some(isin) = self.isin else {
            return vec![import];
        };
        let ex_date = self.action_seen.unwrap_or(self.synced_on);
        let more = self.synced - self.ledger;
        let action = if let Some(ratio) = self.bonus() {
            Some(Change::Bonus {
                ratio,
                allotment_date: None,
                record_date: None,
            })
        } else {
            self.split().map(|ratio| Change::Split {
                ratio,
                new_isin: None,
            })
        };
        let correction = match action {
            Some(change) => {
                let account = Some(self.account.clone());
                Correction::Action(Action {
                    account,
                    isin,
                    ex_date,
                    change,
                })
                .to_json()
            }
            None if more > Decimal::ZERO => opening_lot(self.account, isin, more),
            None => Correction::Transfer {
                account: self.account.clone(),
                to: None,
                isin,
                date: self.synced_on,
                quantity: -more,
            }
            .to_json(),
        };
        vec![Mend::Correction(correction), import]
    }
}

fn ratio((numerator, denominator): (u32, u32)) -> Ratio {
    Ratio {
        numerator,
        denominator,
    }
}

/// Only the person knows date and cost.
fn opening_lot(account: &AccountName, isin: Isin, quantity: Decimal) -> String {
    let place = format!(r#""account":"{}","isin":"{}""#, account.as_str(), isin.as_str());
    let quantity = quantity.normalize();
    format!(r#"{{"kind":"opening_lot",{place},"date":null,"quantity":{quantity},"cost":null}}"#)
}

/// The cause that the ledger itself shows.
pub(crate) fn cause_within(reasons: &[Reason]) -> Option<Cause> {
    reasons.iter().find_map(|reason| match reason {
        Reason::Uncovered => Some(Cause::OlderFile),
        Reason::Conflict => Some(Cause::Conflict),
        Reason::IsinUnknown => Some(Cause::Symbol),
        _ => None,
    })
}

/// What mends a sale without a purchase: files of before it, or the purchase as a lot.
pub(crate) fn of_uncovered(
    account: &AccountName,
    isin: Option<Isin>,
    uncovered: Decimal,
    first_on: Option<Date>,
) -> Vec<Mend> {
    let import = Mend::Import {
        from: None,
        to: first_on,
    };
    let lot = isin.map(|isin| Mend::Correction(opening_lot(account, isin, uncovered)));
    [import].into_iter().chain(lot).collect()
}

/// What mends a symbol of which nothing tells the security.
pub(crate) fn of_symbol(account: &AccountName, symbol: &str) -> Mend {
    let symbol = serde_json::Value::from(symbol);
    let account = account.as_str();
    let members = format!(r#""account":"{account}","symbol":{symbol},"isin":null"#);
    Mend::Correction(format!(r#"{{"kind":"symbol",{members}}}"#))
}

/// Issuer and kind of a security.
pub(crate) fn issuer(isin: Isin) -> Option<String> {
    isin.as_str().get(..ISSUER_CHARS).map(str::to_owned)
}

/// The split that made of one ISIN another of the same issuer, if the quantities say so.
pub(crate) fn new_isin(
    account: &AccountName,
    (old, held): (Isin, Decimal),
    (new, holds): (Isin, Decimal),
    ex_date: Date,
) -> Option<Mend> {
    if old == new || issuer(old) != issuer(new) || held.is_zero() {
        return None;
    }
    let usual = [(1, 1), (2, 1)].into_iter().chain(SPLITS).map(ratio);
    let ratio = usual
        .into_iter()
        .find(|ratio| shares::split(held, *ratio) == holds)?;
    let change = Change::Split {
        ratio,
        new_isin: Some(new),
    };
    let action = Action {
        account: Some(account.clone()),
        isin: old,
        ex_date,
        change,
    };
    Some(Mend::Correction(Correction::Action(action).to_json()))
}
