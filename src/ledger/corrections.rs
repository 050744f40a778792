//! What a person says of the ledger that no trade says: corporate actions, lots that came without a
//! trade, and facts of a security. Read strictly from JSON, and written back in one form.
//!
//! Nothing here is applied by itself: a correction exists because a person put it.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::base::json;
use crate::base::words::{Words, words};
use crate::ledger::row::AccountName;

/// Longest symbol and longest note, in bytes.
const SYMBOL_BYTES_MAX: usize = 64;
const NOTE_BYTES_MAX: usize = 500;
/// Most decimals of a quantity or an amount.
const DECIMALS_MAX: u32 = 9;
/// Largest quantity and price, and the largest amount of money.
const FIGURE_MAX: Decimal = Decimal::from_parts(3_567_587_328, 232, 0, false, 0);
const AMOUNT_MAX: Decimal = Decimal::from_parts(2_764_472_320, 232_830, 0, false, 0);
/// Largest side of a ratio.
const RATIO_SIDE_MAX: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);
/// Dates are of these years. Shares that were given may be older than electronic trading.
const YEARS: std::ops::RangeInclusive<i16> = 1900..=2199;

words! {
    /// How shares came to their owner.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum How {
        /// Bought on an exchange.
        Market = "market",
        Ipo = "ipo",
        Rights = "rights",
        Bonus = "bonus",
        /// Of an employer's plan.
        Esop = "esop",
        Gift = "gift",
        Inheritance = "inheritance",
        /// Bought outside the exchange.
        OffMarket = "off_market",
        /// Held on paper before.
        Physical = "physical",
        Merger = "merger",
        Demerger = "demerger",
    }

    /// What a person says a security is, for its gains.
    pub(crate) enum ClassWord {
        Equity = "equity",
        /// Taxed as equity.
        EquityFund = "equity_fund",
        Other = "other",
    }

    /// What happened that is never computed.
    pub(crate) enum Unproved {
        MergerCash = "merger_cash",
        Delisting = "delisting",
        PartlyPaid = "partly_paid",
        CapitalReduction = "capital_reduction",
        Liquidation = "liquidation",
        ReturnOfCapital = "return_of_capital",
        Other = "other",
    }

    /// The kinds of corrections.
    pub(crate) enum Kind {
        Split = "split",
        Bonus = "bonus",
        Merger = "merger",
        Demerger = "demerger",
        Rights = "rights",
        OpeningLot = "opening_lot",
        Transfer = "transfer",
        Buyback = "buyback",
        FractionCash = "fraction_cash",
        How = "how",
        Class = "class",
        Symbol = "symbol",
        Fmv = "fmv",
        FmvIndexed = "fmv_indexed",
        Unproved = "unproved",
    }
}

/// New shares for held ones. Both are above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ratio {
    pub numerator: u32,
    pub denominator: u32,
}

impl Ratio {
    /// Whether there are as many new shares as held ones.
    pub(crate) fn is_even(self) -> bool {
        self.numerator == self.denominator
    }
}

/// What a corporate action does to the shares of `Action::isin`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// With `new_isin` and 1:1 it is a plain change of the ISIN.
    Split {
        ratio: Ratio,
        new_isin: Option<Isin>,
    },
    Merger {
        ratio: Ratio,
        new_isin: Isin,
        allotment_date: Option<Date>,
        cash: Option<Decimal>,
    },
    Demerger {
        ratio: Ratio,
        new_isin: Isin,
        allotment_date: Option<Date>,
        cost_percent: Decimal,
    },
    Bonus {
        ratio: Ratio,
        allotment_date: Option<Date>,
        record_date: Option<Date>,
    },
}

/// A corporate action. Without an account it is of all accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub account: Option<AccountName>,
    pub isin: Isin,
    pub ex_date: Date,
    pub change: Change,
}

/// Shares whose purchase no trade shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpeningLot {
    pub account: AccountName,
    pub isin: Isin,
    /// Of the purchase; of the previous owner's after a gift or an inheritance.
    pub date: Date,
    /// When they came into the account: on `date` unless said otherwise.
    pub entered: Option<Date>,
    pub quantity: Decimal,
    /// Of all of them together.
    pub cost: Decimal,
    pub how: Option<How>,
}

/// What a person says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Correction {
    Action(Action),
    /// Shares that were subscribed to, paid at `price` each.
    Rights {
        account: AccountName,
        isin: Isin,
        date: Date,
        quantity: Decimal,
        price: Decimal,
    },
    OpeningLot(OpeningLot),
    /// Shares that moved to another account, or out of the ledger.
    Transfer {
        account: AccountName,
        to: Option<AccountName>,
        isin: Isin,
        date: Date,
        quantity: Decimal,
    },
    /// Shares that the company bought back outside the market, at `price` each.
    Buyback {
        account: AccountName,
        isin: Isin,
        date: Date,
        quantity: Decimal,
        price: Decimal,
    },
    /// Money in place of a fraction of a share.
    FractionCash {
        account: AccountName,
        isin: Isin,
        date: Date,
        cash: Decimal,
    },
    /// How the purchases of a date came about.
    How {
        account: AccountName,
        isin: Isin,
        date: Date,
        how: How,
    },
    Class {
        isin: Isin,
        class: ClassWord,
    },
    /// The security that an account's rows without an ISIN mean by a symbol.
    Symbol {
        account: AccountName,
        symbol: String,
        isin: Isin,
    },
    /// The highest price on 31 January 2018, as it was printed then.
    Fmv {
        isin: Isin,
        price: Decimal,
    },
    /// Not listed on 31 January 2018, listed at the sale.
    FmvIndexed {
        isin: Isin,
    },
    Unproved {
        account: Option<AccountName>,
        isin: Isin,
        date: Date,
        what: Unproved,
        note: Option<String>,
    },
}

impl Correction {
    /// Reads one JSON object. The error says in plain words what is wrong with it.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, String> {
        let mut members = Members::read(json)?;
        let kind = members.word::<Kind>("kind")?;
        let correction = match kind {
            Kind::Split | Kind::Bonus | Kind::Merger | Kind::Demerger => {
                Self::Action(action(kind, &mut members)?)
            }
            Kind::OpeningLot => Self::OpeningLot(opening_lot(&mut members)?),
            Kind::Rights
            | Kind::Transfer
            | Kind::Buyback
            | Kind::FractionCash
            | Kind::How
            | Kind::Symbol => of_account(kind, &mut members)?,
            Kind::Class => Self::Class {
                isin: members.isin("isin")?,
                class: members.word("class")?,
            },
            Kind::Fmv => Self::Fmv {
                isin: members.isin("isin")?,
                price: members.figure("price")?,
            },
            Kind::FmvIndexed => Self::FmvIndexed {
                isin: members.isin("isin")?,
            },
            Kind::Unproved => unproved(&mut members)?,
        };
        members.end()?;
        Ok(correction)
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Action(action) => match action.change {
                Change::Split { .. } => Kind::Split,
                Change::Bonus { .. } => Kind::Bonus,
                Change::Merger { .. } => Kind::Merger,
                Change::Demerger { .. } => Kind::Demerger,
            },
            Self::Rights { .. } => Kind::Rights,
            Self::OpeningLot(_) => Kind::OpeningLot,
            Self::Transfer { .. } => Kind::Transfer,
            Self::Buyback { .. } => Kind::Buyback,
            Self::FractionCash { .. } => Kind::FractionCash,
            Self::How { .. } => Kind::How,
            Self::Class { .. } => Kind::Class,
            Self::Symbol { .. } => Kind::Symbol,
            Self::Fmv { .. } => Kind::Fmv,
            Self::FmvIndexed { .. } => Kind::FmvIndexed,
            Self::Unproved { .. } => Kind::Unproved,
        }
    }

    /// The account that it is of; `None` if it is of all accounts.
    pub(crate) fn account(&self) -> Option<&AccountName> {
        match self {
            Self::Action(action) => action.account.as_ref(),
            Self::OpeningLot(lot) => Some(&lot.account),
            Self::Rights { account, .. }
            | Self::Transfer { account, .. }
            | Self::Buyback { account, .. }
            | Self::FractionCash { account, .. }
            | Self::How { account, .. }
            | Self::Symbol { account, .. } => Some(account),
            Self::Unproved { account, .. } => account.as_ref(),
            Self::Class { .. } | Self::Fmv { .. } | Self::FmvIndexed { .. } => None,
        }
    }

    pub(crate) fn isin(&self) -> Isin {
        match self {
            Self::Action(action) => action.isin,
            Self::OpeningLot(lot) => lot.isin,
            Self::Rights { isin, .. }
            | Self::Transfer { isin, .. }
            | Self::Buyback { isin, .. }
            | Self::FractionCash { isin, .. }
            | Self::How { isin, .. }
            | Self::Class { isin, .. }
            | Self::Symbol { isin, .. }
            | Self::Fmv { isin, .. }
            | Self::FmvIndexed { isin }
            | Self::Unproved { isin, .. } => *isin,
        }
    }

    /// Its date; `None` of an action, which has an ex-date, and of what has none.
    pub(crate) fn date(&self) -> Option<Date> {
        match self {
            Self::OpeningLot(lot) => Some(lot.date),
            Self::Rights { date, .. }
            | Self::Transfer { date, .. }
            | Self::Buyback { date, .. }
            | Self::FractionCash { date, .. }
            | Self::How { date, .. }
            | Self::Unproved { date, .. } => Some(*date),
            Self::Action(_)
            | Self::Class { .. }
            | Self::Symbol { .. }
            | Self::Fmv { .. }
            | Self::FmvIndexed { .. } => None,
        }
    }

    /// The last date on which it changes lots; `None` if it changes none.
    pub(crate) fn last_date(&self) -> Option<Date> {
        match self {
            Self::Action(action) => {
                let allotted = action.change.allotment_date();
                Some(allotted.unwrap_or(action.ex_date))
            }
            Self::OpeningLot(lot) => Some(lot.entered.unwrap_or(lot.date)),
            Self::Rights { date, .. }
            | Self::Transfer { date, .. }
            | Self::Buyback { date, .. } => Some(*date),
            _ => None,
        }
    }

    /// The correction as a JSON object: members in one order, numbers in their shortest form. Two
    /// corrections that say the same are the same text.
    pub(crate) fn to_json(&self) -> String {
        let mut object = Object::new(self.kind());
        if let Self::Action(action) = self {
            write_action(&mut object, action);
            return object.end();
        }
        object.optional(self.account(), |object, account| object.text("account", account.as_str()));
        match self {
            Self::Transfer { to: Some(to), .. } => object.text("to", to.as_str()),
            Self::Symbol { symbol, .. } => object.text("symbol", symbol),
            _ => &mut object,
        };
        object.text("isin", self.isin().as_str());
        object.optional(self.date(), |object, date| object.date("date", date));
        self.write_rest(&mut object);
        object.end()
    }

    /// Writes what stands behind account, security and date.
    fn write_rest(&self, object: &mut Object) {
        match self {
            Self::Rights {
                quantity, price, ..
            }
            | Self::Buyback {
                quantity, price, ..
            } => {
                object.number("quantity", *quantity).number("price", *price);
            }
            Self::OpeningLot(lot) => {
                object.optional(lot.entered, |object, entered| object.date("entered", entered));
                object
                    .number("quantity", lot.quantity)
                    .number("cost", lot.cost);
                object.optional(lot.how, |object, how| object.text("how", how.as_str()));
            }
            Self::Transfer { quantity, .. } => {
                object.number("quantity", *quantity);
            }
            Self::FractionCash { cash, .. } => {
                object.number("cash", *cash);
            }
            Self::How { how, .. } => {
                object.text("how", how.as_str());
            }
            Self::Class { class, .. } => {
                object.text("class", class.as_str());
            }
            Self::Fmv { price, .. } => {
                object.number("price", *price);
            }
            Self::Unproved { what, note, .. } => {
                object.text("what", what.as_str());
                object.optional(note.as_ref(), |object, note| object.text("note", note));
            }
            Self::Action(_) | Self::Symbol { .. } | Self::FmvIndexed { .. } => {}
        }
    }
}

fn action(kind: Kind, members: &mut Members<'_>) -> Result<Action, String> {
    let account = members.optional("account", Members::account)?;
    let isin = members.isin("isin")?;
    let ex_date = members.date("ex_date")?;
    let ratio = Ratio {
        numerator: members.ratio_side("numerator")?,
        denominator: members.ratio_side("denominator")?,
    };
    let change = match kind {
        Kind::Split => {
            let new_isin = members.optional("new_isin", Members::isin)?;
            if new_isin.is_none() && ratio.is_even() {
                return Err("a split of 1:1 without new_isin changes nothing".into());
            }
            Change::Split { ratio, new_isin }
        }
        Kind::Bonus => Change::Bonus {
            ratio,
            allotment_date: members.optional("allotment_date", Members::date)?,
            record_date: members.optional("record_date", Members::date)?,
        },
        Kind::Merger => Change::Merger {
            ratio,
            new_isin: members.isin("new_isin")?,
            allotment_date: members.optional("allotment_date", Members::date)?,
            cash: members.optional("cash", Members::amount)?,
        },
        _ => Change::Demerger {
            ratio,
            new_isin: members.isin("new_isin")?,
            allotment_date: members.optional("allotment_date", Members::date)?,
            cost_percent: members.percent("cost_percent")?,
        },
    };
    if change.new_isin() == Some(isin) {
        return Err("new_isin is the same as isin".into());
    }
    if change
        .allotment_date()
        .is_some_and(|allotted| allotted < ex_date)
    {
        return Err("allotment_date is before ex_date".into());
    }
    Ok(Action {
        account,
        isin,
        ex_date,
        change,
    })
}

impl Change {
    pub(crate) fn ratio(&self) -> Ratio {
        match self {
            Self::Split { ratio, .. }
            | Self::Merger { ratio, .. }
            | Self::Demerger { ratio, .. }
            | Self::Bonus { ratio, .. } => *ratio,
        }
    }

    pub(crate) fn new_isin(&self) -> Option<Isin> {
        match self {
            Self::Split { new_isin, .. } => *new_isin,
            Self::Merger { new_isin, .. } | Self::Demerger { new_isin, .. } => Some(*new_isin),
            Self::Bonus { .. } => None,
        }
    }

    pub(crate) fn allotment_date(&self) -> Option<Date> {
        match self {
            Self::Split { .. } => None,
            Self::Merger { allotment_date, .. }
            | Self::Demerger { allotment_date, .. }
            | Self::Bonus { allotment_date, .. } => *allotment_date,
        }
    }
}

fn opening_lot(members: &mut Members<'_>) -> Result<OpeningLot, String> {
    let lot = OpeningLot {
        account: members.account("account")?,
        isin: members.isin("isin")?,
        date: members.date("date")?,
        entered: members.optional("entered", Members::date)?,
        quantity: members.figure("quantity")?,
        cost: members.cost("cost")?,
        how: members.optional("how", Members::word)?,
    };
    if lot.entered.is_some_and(|entered| entered < lot.date) {
        return Err("entered is before date".into());
    }
    Ok(lot)
}

fn of_account(kind: Kind, members: &mut Members<'_>) -> Result<Correction, String> {
    let account = members.account("account")?;
    if kind == Kind::Symbol {
        let symbol = members.text("symbol", SYMBOL_BYTES_MAX)?;
        return Ok(Correction::Symbol {
            account,
            symbol,
            isin: members.isin("isin")?,
        });
    }
    let isin = members.isin("isin")?;
    let date = members.date("date")?;
    if kind == Kind::FractionCash {
        let cash = members.amount("cash")?;
        return Ok(Correction::FractionCash {
            account,
            isin,
            date,
            cash,
        });
    }
    if kind == Kind::How {
        return Ok(Correction::How {
            account,
            isin,
            date,
            how: members.word("how")?,
        });
    }
    let quantity = members.figure("quantity")?;
    if kind == Kind::Transfer {
        let to = members.optional("to", Members::account)?;
        if to.as_ref() == Some(&account) {
            return Err("to is the same as account".into());
        }
        return Ok(Correction::Transfer {
            account,
            to,
            isin,
            date,
            quantity,
        });
    }
    let price = members.figure("price")?;
    Ok(match kind {
        Kind::Rights => Correction::Rights {
            account,
            isin,
            date,
            quantity,
            price,
        },
        _ => Correction::Buyback {
            account,
            isin,
            date,
            quantity,
            price,
        },
    })
}

fn unproved(members: &mut Members<'_>) -> Result<Correction, String> {
    Ok(Correction::Unproved {
        account: members.optional("account", Members::account)?,
        isin: members.isin("isin")?,
        date: members.date("date")?,
        what: members.word("what")?,
        note: members.optional("note", |members, name| members.text(name, NOTE_BYTES_MAX))?,
    })
}

fn write_action(object: &mut Object, action: &Action) {
    let account = action.account.as_ref();
    object.optional(account, |object, account| object.text("account", account.as_str()));
    object.text("isin", action.isin.as_str());
    let new_isin = action.change.new_isin();
    object.optional(new_isin, |object, isin| object.text("new_isin", isin.as_str()));
    object.date("ex_date", action.ex_date);
    let ratio = action.change.ratio();
    object.number("numerator", ratio.numerator.into());
    object.number("denominator", ratio.denominator.into());
    match &action.change {
        Change::Demerger { cost_percent, .. } => {
            object.number("cost_percent", *cost_percent);
        }
        Change::Merger { cash, .. } => {
            object.optional(*cash, |object, cash| object.number("cash", cash));
        }
        Change::Bonus { record_date, .. } => {
            object.optional(*record_date, |object, date| object.date("record_date", date));
        }
        Change::Split { .. } => {}
    }
    let allotted = action.change.allotment_date();
    object.optional(allotted, |object, date| object.date("allotment_date", date));
}

/// The members of an object that are not read yet.
struct Members<'a>(Vec<json::Member<'a>>);

impl<'a> Members<'a> {
    fn read(json: &'a [u8]) -> Result<Self, String> {
        let members = json::members(json).ok_or("a correction is one JSON object")?;
        for (at, (name, _)) in members.iter().enumerate() {
            if members[..at].iter().any(|(before, _)| before == name) {
                return Err(format!("{name} is given twice"));
            }
        }
        Ok(Self(members))
    }

    /// Takes a member out, so that at the end only unknown ones are left.
    fn take(&mut self, name: &str) -> Result<&'a str, String> {
        let at = self.0.iter().position(|(known, _)| known == name);
        at.map(|at| self.0.remove(at).1.trim())
            .ok_or_else(|| format!("{name} is missing"))
    }

    /// A member that may be absent or null.
    fn optional<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self, &str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let Some(at) = self.0.iter().position(|(known, _)| known == name) else {
            return Ok(None);
        };
        if self.0[at].1.trim() == "null" {
            self.0.remove(at);
            return Ok(None);
        }
        read(self, name).map(Some)
    }

    fn string(&mut self, name: &str) -> Result<String, String> {
        let raw = self.take(name)?;
        let text = json::unescaped(raw).ok_or_else(|| format!("{name} is not a text"))?;
        Ok(text.to_string())
    }

    fn text(&mut self, name: &str, bytes_max: usize) -> Result<String, String> {
        let text = self.string(name)?;
        if text.trim().is_empty() || text.len() > bytes_max || text.chars().any(char::is_control) {
            return Err(format!("{name} is 1 to {bytes_max} bytes of text on one line"));
        }
        Ok(text)
    }

    fn word<W: Words>(&mut self, name: &str) -> Result<W, String> {
        let text = self.string(name)?;
        W::parse(&text).ok_or_else(|| {
            let all: Vec<&str> = W::EVERY.iter().map(|word| word.word()).collect();
            format!("{name} is one of {}", all.join(", "))
        })
    }

    fn account(&mut self, name: &str) -> Result<AccountName, String> {
        let text = self.string(name)?;
        AccountName::parse(&text).ok_or_else(|| format!("{name} is 1 to 40 of a-z, 0-9, _ and -"))
    }

    fn isin(&mut self, name: &str) -> Result<Isin, String> {
        let text = self.string(name)?;
        Isin::parse(&text).ok_or_else(|| format!("{name} is not an ISIN"))
    }

    fn date(&mut self, name: &str) -> Result<Date, String> {
        let text = self.string(name)?;
        let wrong = || format!("{name} is a date as 2024-08-24");
        // The parser of dates takes more forms, and a time beside the date.
        let date: Date = text.parse().map_err(|_| wrong())?;
        let exact = date.to_string() == text && YEARS.contains(&date.year());
        exact.then_some(date).ok_or_else(wrong)
    }

    fn number(&mut self, name: &str) -> Result<Decimal, String> {
        let raw = self.take(name)?;
        let number = if raw.contains(['e', 'E']) {
            Decimal::from_scientific(raw).ok()
        } else {
            // The usual parser rounds digits away that do not fit.
            Decimal::from_str_exact(raw).ok()
        };
        let number = number
            .ok_or_else(|| format!("{name} is not a number"))?
            .normalize();
        if number.scale() > DECIMALS_MAX {
            return Err(format!("{name} has more than {DECIMALS_MAX} decimals"));
        }
        Ok(number)
    }

    fn within(&mut self, name: &str, max: Decimal) -> Result<Decimal, String> {
        let number = self.number(name)?;
        if number <= Decimal::ZERO || number > max {
            return Err(format!("{name} is not above 0 and at most {max}"));
        }
        Ok(number)
    }

    /// A quantity or a price.
    fn figure(&mut self, name: &str) -> Result<Decimal, String> {
        self.within(name, FIGURE_MAX)
    }

    fn amount(&mut self, name: &str) -> Result<Decimal, String> {
        self.within(name, AMOUNT_MAX)
    }

    /// An amount that may be nothing.
    fn cost(&mut self, name: &str) -> Result<Decimal, String> {
        let number = self.number(name)?;
        if number < Decimal::ZERO || number > AMOUNT_MAX {
            return Err(format!("{name} is not at least 0 and at most {AMOUNT_MAX}"));
        }
        Ok(number.abs())
    }

    fn percent(&mut self, name: &str) -> Result<Decimal, String> {
        let number = self.number(name)?;
        if number <= Decimal::ZERO || number >= Decimal::ONE_HUNDRED {
            return Err(format!("{name} is not between 0 and 100"));
        }
        Ok(number)
    }

    fn ratio_side(&mut self, name: &str) -> Result<u32, String> {
        let side = self.within(name, RATIO_SIDE_MAX)?;
        u32::try_from(side)
            .ok()
            .filter(|whole| Decimal::from(*whole) == side)
            .ok_or_else(|| format!("{name} is not a whole number"))
    }

    fn end(self) -> Result<(), String> {
        match self.0.first() {
            Some((name, _)) => Err(format!("{name} is unknown here")),
            None => Ok(()),
        }
    }
}

/// A JSON object that is being written.
struct Object(String);

impl Object {
    fn new(kind: Kind) -> Self {
        Self(format!(r#"{{"kind":"{kind}""#))
    }

    fn raw(&mut self, name: &str, value: &str) -> &mut Self {
        self.0.push_str(&format!(r#","{name}":{value}"#));
        self
    }

    fn text(&mut self, name: &str, value: &str) -> &mut Self {
        let quoted = serde_json::Value::from(value).to_string();
        self.raw(name, &quoted)
    }

    fn date(&mut self, name: &str, value: Date) -> &mut Self {
        self.text(name, &value.to_string())
    }

    fn number(&mut self, name: &str, value: Decimal) -> &mut Self {
        self.raw(name, &json::shortest(value).to_string())
    }

    fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T) -> &mut Self) {
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each kind in the form that is written, with and without what is optional.
    const WRITTEN: &[&str] = &[
        r#"{"kind":"split","isin":"INE040A01034","ex_date":"2024-08-24","numerator":5,
            "denominator":1}"#,
        r#"{"kind":"split","account":"a","isin":"INE040A01034",
            "new_isin":"INE040A01042","ex_date":"2024-08-24","numerator":1,"denominator":1}"#,
        r#"{"kind":"bonus","isin":"INE040A01034","ex_date":"2024-08-24","numerator":1,
            "denominator":1}"#,
        r#"{"kind":"bonus","isin":"INE040A01034","ex_date":"2024-08-24","numerator":1,
            "denominator":2,"record_date":"2024-08-24","allotment_date":"2024-08-27"}"#,
        r#"{"kind":"merger","isin":"INE001A01036","new_isin":"INE040A01034",
            "ex_date":"2023-07-13","numerator":42,"denominator":25}"#,
        r#"{"kind":"merger","isin":"INE001A01036","new_isin":"INE040A01034",
            "ex_date":"2023-07-13","numerator":42,"denominator":25,"cash":10.5,
            "allotment_date":"2023-07-14"}"#,
        r#"{"kind":"demerger","isin":"INE155A01022","new_isin":"INE1TAE01010",
            "ex_date":"2025-10-14","numerator":1,"denominator":1,"cost_percent":31.15}"#,
        r#"{"kind":"rights","account":"a","isin":"INE040A01034","date":"2020-05-14",
            "quantity":10,"price":100}"#,
        r#"{"kind":"opening_lot","account":"a","isin":"INE040A01034",
            "date":"2015-03-02","entered":"2022-05-04","quantity":10,"cost":5000,"how":"gift"}"#,
        r#"{"kind":"opening_lot","account":"a","isin":"INE040A01034",
            "date":"2015-03-02","quantity":0.5,"cost":0}"#,
        r#"{"kind":"transfer","account":"a","to":"b","isin":"INE040A01034",
            "date":"2020-05-14","quantity":10}"#,
        r#"{"kind":"transfer","account":"a","isin":"INE040A01034","date":"2020-05-14",
            "quantity":10}"#,
        r#"{"kind":"buyback","account":"a","isin":"INE040A01034","date":"2020-05-14",
            "quantity":10,"price":100.05}"#,
        r#"{"kind":"fraction_cash","account":"a","isin":"INE040A01034",
            "date":"2020-05-14","cash":31.25}"#,
        r#"{"kind":"how","account":"b","isin":"INE040A01034","date":"2021-03-15","how":"ipo"}"#,
        r#"{"kind":"class","isin":"INF204KB17I5","class":"equity_fund"}"#,
        r#"{"kind":"symbol","account":"b","symbol":"RELIND","isin":"INE002A01018"}"#,
        r#"{"kind":"fmv","isin":"INE040A01034","price":90}"#,
        r#"{"kind":"fmv_indexed","isin":"INE040A01034"}"#,
        r#"{"kind":"unproved","isin":"INE040A01034","date":"2020-05-14",
            "what":"delisting","note":"a \"note\""}"#,
        r#"{"kind":"unproved","account":"a","isin":"INE040A01034","date":"2020-05-14",
            "what":"other"}"#,
    ];

    /// The examples, each on one line.
    fn written() -> Vec<String> {
        let joined = |json: &&str| json.lines().map(str::trim_start).collect();
        WRITTEN.iter().map(joined).collect()
    }

    fn parsed(json: &str) -> Result<Correction, String> {
        Correction::parse(json.as_bytes())
    }

    #[test]
    fn each_kind_is_read_and_written_back_byte_for_byte() {
        let written = written();
        for json in &written {
            assert_eq!(parsed(json).unwrap().to_json(), *json);
        }
        for kind in Kind::ALL {
            let is_of = |json: &String| parsed(json).unwrap().kind() == kind;
            assert!(written.iter().any(is_of), "{kind} has no example");
        }
    }

    #[test]
    fn any_order_of_members_null_for_absent_and_other_forms_of_numbers_are_written_alike() {
        let json = r#" { "denominator":1.0, "numerator":5e0, "account":null, "new_isin" : null,
            "ex_date":"2024-08-24", "isin":"INE040A0\u0031034", "kind":"split" } "#;
        assert_eq!(parsed(json).unwrap().to_json(), written()[0]);
    }

    #[test]
    fn every_member_is_needed_and_no_other_is_taken() {
        let optional = [
            "account",
            "new_isin",
            "allotment_date",
            "record_date",
            "entered",
            "how",
            "to",
            "cash",
            "note",
        ];
        for json in &written() {
            let members: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(json).unwrap();
            for name in members.keys() {
                let mut fewer = members.clone();
                fewer.remove(name);
                let fewer = serde_json::to_string(&fewer).unwrap();
                let may_lack = optional.contains(&name.as_str());
                assert!(may_lack || parsed(&fewer).is_err(), "{fewer}");
                for wrong in ["[]", "{}", "true", "\"\"", "-1", "\"2024-02-30\""] {
                    let mut other = members.clone();
                    other[name] = serde_json::from_str(wrong).unwrap();
                    let other = serde_json::to_string(&other).unwrap();
                    let free = ["note", "symbol", "account", "to"].contains(&name.as_str());
                    let is_date = wrong.starts_with("\"2024");
                    assert!((free && is_date) || parsed(&other).is_err(), "{other}");
                }
            }
            let more = json.replacen('{', r#"{"extra":1,"#, 1);
            assert_eq!(parsed(&more), Err("extra is unknown here".into()));
            let twice = json.replacen('{', r#"{"kind":"split","#, 1);
            assert_eq!(parsed(&twice), Err("kind is given twice".into()));
        }
    }

    #[test]
    fn unsound_values_are_refused_with_their_reason() {
        for (at, from, to, reason) in [
            (0, "5,", "1,", "a split of 1:1 without new_isin changes nothing"),
            (0, "5,", "5.5,", "numerator is not a whole number"),
            (0, "5,", "0,", "numerator is not above 0 and at most 1000000"),
            (0, "5,", "1000001,", "numerator is not above 0 and at most 1000000"),
            (0, "5,", "\"5\",", "numerator is not a number"),
            (0, "2024-08-24", "24-08-2024", "ex_date is a date as 2024-08-24"),
            (0, "2024-08-24", "2024-08-24T10:00", "ex_date is a date as 2024-08-24"),
            (0, "2024-08-24", "1899-12-31", "ex_date is a date as 2024-08-24"),
            (0, "INE040A01034", "ine040a01034", "isin is not an ISIN"),
            (1, "\"a\"", "\"A\"", "account is 1 to 40 of a-z, 0-9, _ and -"),
            (1, "INE040A01042", "INE040A01034", "new_isin is the same as isin"),
            (3, "2024-08-27", "2024-08-23", "allotment_date is before ex_date"),
            (6, "31.15", "100", "cost_percent is not between 0 and 100"),
            (6, "31.15", "0", "cost_percent is not between 0 and 100"),
            (7, "100}", "1000000000001}", "price is not above 0 and at most 1000000000000"),
            (7, "100}", "0.0000000001}", "price has more than 9 decimals"),
            (8, "2022-05-04", "2015-03-01", "entered is before date"),
            (8, "5000", "-0.01", "cost is not at least 0 and at most 1000000000000000"),
            (10, "\"b\"", "\"a\"", "to is the same as account"),
            (
                14,
                "ipo",
                "allotted",
                "how is one of market, ipo, rights, bonus, esop, gift, \
             inheritance, off_market, physical, merger, demerger",
            ),
            (16, "RELIND", " ", "symbol is 1 to 64 bytes of text on one line"),
        ] {
            let json = written()[at].replacen(from, to, 1);
            assert_eq!(parsed(&json), Err(reason.into()), "{json}");
        }
        assert_eq!(parsed("[]"), Err("a correction is one JSON object".into()));
        assert_eq!(parsed("{}"), Err("kind is missing".into()));
        assert!(
            parsed(r#"{"kind":"dividend"}"#)
                .unwrap_err()
                .starts_with("kind is one of split,")
        );
        let long = format!("1.{}1", "0".repeat(40));
        let json = written()[7].replacen("100}", &format!("{long}}}"), 1);
        assert!(parsed(&json).is_err(), "digits that do not fit are not rounded away");
    }
}
