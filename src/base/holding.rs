//! What a user owns and trades at one broker: the rows that a sync brings and the store keeps.
//!
//! Quantities and prices are the broker's own digits; nothing is rounded before it is written out.

use jiff::civil::Date;
use rust_decimal::Decimal;

use super::{Broker, Symbol};

/// One row of a broker's holdings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    pub broker: Broker,
    /// `NSE`, `BSE`; as the broker says.
    pub exchange: String,
    /// The exchange's ticker; the broker's own short code while `unresolved`.
    pub tradingsymbol: String,
    /// Empty text is never kept: `None` where the broker gave none.
    pub isin: Option<String>,
    /// Delivered and not sold.
    pub settled_quantity: Decimal,
    /// Bought, not delivered yet; owned all the same.
    pub t1_quantity: Decimal,
    /// Pledged as margin. Shown, never added to what is owned.
    pub pledged_quantity: Decimal,
    /// Margin-funded. Shown, never added to what is owned.
    pub mtf_quantity: Decimal,
    /// Shares that one of the broker's two lists counts and the other does not (broker B: pledged
    /// or undelivered). Already inside the owned quantity; zero where the lists agree.
    pub disputed_quantity: Decimal,
    /// What the owned shares cost; `None` where the broker has no cost.
    pub cost: Option<Cost>,
    /// The last price the broker named; `None` where it names none.
    pub last_price: Option<Decimal>,
    /// Previous trading day's close.
    pub close_price: Option<Decimal>,
    /// When `last_price` was true, Unix milliseconds: the time of the sync, or of the last close if
    /// the market rested then; of a closing price written since, its own.
    pub as_of_ms: i64,
    /// The broker's own profit figure for the row, to be shown beside ours.
    pub broker_pnl: Option<Decimal>,
    /// The broker says that its own average is unreliable.
    pub discrepancy: bool,
    /// `tradingsymbol` is a broker's code that no list could turn into a ticker.
    pub unresolved: bool,
    /// It looks like a split or bonus, or the effect of one.
    pub mark: Option<Mark>,
}

/// What the owned shares of a holding cost, in the form in which the broker gives it, so that no
/// sum is made of a rounded average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The broker's average cost of one share.
    PerShare(Decimal),
    /// The cost of all owned shares together, added up from the broker's rows.
    Total(Decimal),
    /// The broker knows the cost of `quantity` of the owned shares and none of the others'. The
    /// holding's own cost is then unknown: an average over shares of unknown cost is a guess.
    Part { quantity: Decimal, cost: Decimal },
}

/// A holding whose quantity and price seem to tell of a split, a bonus or a consolidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The IST date on which it was seen first.
    pub on: Date,
    pub sign: ActionSign,
}

impl Mark {
    /// Whether the value on `date` is in doubt because of it.
    pub fn bends(&self, date: Date) -> bool {
        match self.sign {
            ActionSign::InverseRatios => self.on == date,
            ActionSign::PriceLeap => self.on <= date,
            ActionSign::SharesArrived => false,
        }
    }
}

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionSign {
    /// Quantity and price, or quantity and average cost, moved by inverse ratios.
    InverseRatios,
    /// The price moved as only corporate actions move it, and the quantity has not followed yet:
    /// until it does, the holding's value is not to be trusted.
    PriceLeap,
    /// Shares came without money while the price stood: what a leap of the price announced is
    /// complete, and the figures are right again.
    SharesArrived,
}

impl ActionSign {
    /// The word that clients and the store see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InverseRatios => "inverse_ratios",
            Self::PriceLeap => "price_leap",
            Self::SharesArrived => "shares_arrived",
        }
    }

    /// The sign of a word.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::InverseRatios, Self::PriceLeap, Self::SharesArrived];
        all.into_iter().find(|sign| sign.as_str() == word)
    }
}

impl Holding {
    /// What the user owns: settled and T1.
    pub fn quantity(&self) -> Decimal {
        self.settled_quantity.saturating_add(self.t1_quantity)
    }

    /// Average cost of one share; `None` where the cost is not known of all of them.
    pub fn average_price(&self) -> Option<Decimal> {
        match self.cost? {
            Cost::PerShare(average) => Some(average),
            Cost::Total(cost) => cost.checked_div(self.quantity()),
            Cost::Part { .. } => None,
        }
    }

    /// The symbol under which quotes know it; `None` for unresolved or unquoted ones.
    pub fn symbol(&self) -> Option<Symbol> {
        if self.unresolved {
            return None;
        }
        Symbol::parse(&format!("{}:{}", self.exchange, self.tradingsymbol))
    }
}

/// Which of the broker's two lists a position stands in. They overlap: never add them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PositionKind {
    /// Today's trading alone.
    Day,
    /// The state now, carried positions included.
    Net,
}

impl PositionKind {
    /// `day` or `net`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Net => "net",
        }
    }

    /// The kind of a word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Day, Self::Net].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// One row of a broker's positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub broker: Broker,
    pub kind: PositionKind,
    pub exchange: String,
    /// The exchange's ticker or contract; broker B's derivatives as code, expiry, strike and right.
    pub tradingsymbol: String,
    /// `CNC`, `MIS`, `NRML`, ...; as the broker says.
    pub product: String,
    /// Signed: short is negative. Zero means closed.
    pub quantity: Decimal,
    /// Units per lot of quantity; 1 for shares.
    pub multiplier: Decimal,
    pub average_price: Option<Decimal>,
    pub last_price: Option<Decimal>,
    /// Previous close; `None` where nothing was carried.
    pub close_price: Option<Decimal>,
    pub pnl: Option<Decimal>,
    /// Of what was closed; `None` where the broker's row does not tell.
    pub realised: Option<Decimal>,
    /// Of what is open, so zero once closed; `None` where the broker's row does not tell.
    pub unrealised: Option<Decimal>,
    /// `tradingsymbol` is a broker's code that no list could turn into a ticker.
    pub unresolved: bool,
}

/// Everything one sync brought from one broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    pub holdings: Vec<Holding>,
    pub positions: Vec<Position>,
    /// An answer carried the simulator's mark.
    pub simulated: bool,
}
