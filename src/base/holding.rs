//! Holdings and positions of a user at one broker, as a sync fetches them and the store keeps them.
//!
//! Quantities and prices are exactly the broker's digits; they are rounded only when written out.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::base_ratio::{BASE_DAYS, BaseRatio};
use crate::base::{Account, Symbol, clock, words};

/// One row of a broker's holdings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    pub account: Account,
    /// Exchange code as the broker writes it: `NSE`, `BSE`.
    pub exchange: String,
    /// The exchange's ticker; the broker's own short code while `unresolved`.
    pub tradingsymbol: String,
    /// `None` if the broker sent none or an empty text.
    pub isin: Option<String>,
    /// Shares delivered and not sold.
    pub settled_quantity: Decimal,
    /// Shares bought and not delivered yet. They count as owned.
    pub t1_quantity: Decimal,
    /// Shares pledged as margin. Shown, never added to the owned quantity.
    pub pledged_quantity: Decimal,
    /// Shares bought with margin funding. Shown, never added to the owned quantity.
    pub mtf_quantity: Decimal,
    /// Delivered shares that broker A has taken out of the settled ones today, as sold ones. Kept
    /// to compare with the trades, never added to the owned quantity.
    pub used_quantity: Decimal,
    /// Shares that one of the broker's two lists counts and the other does not (broker B: pledged
    /// or undelivered). Already included in the owned quantity; zero if the lists agree.
    pub disputed_quantity: Decimal,
    /// Cost of the owned shares; `None` if the broker has none.
    pub cost: Option<Cost>,
    /// Last price in the broker's row; `None` if it has none.
    pub last_price: Option<Decimal>,
    /// Previous trading day's close.
    pub close_price: Option<Decimal>,
    /// Change of `last_price` from the previous close, in percent as the broker rounds it; `None`
    /// if the broker sends none. Broker B sends this in place of the close.
    pub change_pct: Option<Decimal>,
    /// Time of `last_price`, Unix milliseconds. After a sync: the time of the sync, or of the last
    /// close if the market was closed. After a closing price was written: that price's time.
    pub as_of_ms: i64,
    /// Profit as the broker computes it, shown next to ours.
    pub broker_pnl: Option<Decimal>,
    /// Whether the broker marks its own average price as unreliable.
    pub discrepancy: bool,
    /// Whether `tradingsymbol` is a broker's code for which no instrument list has a ticker.
    pub unresolved: bool,
    /// Set if quantity and price suggest a split or bonus.
    pub mark: Option<Mark>,
}

/// A holding of which nothing is left, because all of it was sold today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoldHolding {
    pub account: Account,
    /// Exchange code as the broker writes it: `NSE`, `BSE`.
    pub exchange: String,
    pub tradingsymbol: String,
    /// `None` if the broker sent none or an empty text.
    pub isin: Option<String>,
    /// Delivered shares that the broker has taken out of the settled ones today, as sold ones.
    pub used_quantity: Decimal,
}

/// Cost of a holding's owned shares, in the form in which the broker gives it, so that no total is
/// computed from a rounded average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The broker's average cost of one share.
    PerShare(Decimal),
    /// The cost of all owned shares together, summed from the broker's rows.
    Total(Decimal),
    /// The broker knows the cost of only `quantity` of the owned shares. The cost of the whole
    /// holding is then unknown.
    Part { quantity: Decimal, cost: Decimal },
}

/// A sign, in a holding's quantity and price, of a split, bonus or another corporate action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// IST date on which the sign was first seen.
    pub on: Date,
    pub sign: ActionSign,
    /// The exchange's base price as a part of the close before it, if the sign is one.
    pub ratio: Option<BaseRatio>,
}

impl Mark {
    /// Whether the holding's figures on `date` may be wrong because of the corporate action.
    pub(crate) fn distorts(&self, date: Date) -> bool {
        match self.sign {
            ActionSign::InverseRatios => self.on == date,
            ActionSign::PriceLeap => self.on <= date,
            ActionSign::BasePrice | ActionSign::AverageAwaited => {
                self.on <= date && self.is_awaited(date)
            }
            ActionSign::SharesArrived => false,
        }
    }

    /// Whether quantity and cost may still follow an adjusted base price.
    pub(crate) fn is_awaited(&self, date: Date) -> bool {
        let days = date.since(self.on).map_or(i32::MAX, |span| span.get_days());
        days < self.ratio.map_or(BASE_DAYS, BaseRatio::awaited_days)
    }
}

words! {
    /// The kind of sign.
    pub enum ActionSign {
        /// Quantity and price, or quantity and average cost, moved by inverse ratios.
        InverseRatios = "inverse_ratios",
        /// The price changed by a ratio typical of corporate actions, and the quantity has not
        /// followed yet. Until it does, the holding's value is wrong.
        PriceLeap = "price_leap",
        /// The quantity grew at unchanged cost and price: the shares that an earlier price leap
        /// announced have arrived, and the value is right again.
        SharesArrived = "shares_arrived",
        /// The exchange adjusted the base price of a session, and the quantity has not followed
        /// yet. Until it does, the holding's value is wrong.
        BasePrice = "base_price",
        /// The quantity has followed an adjusted base price, and the average cost has not. Until it
        /// does, the holding's profit is wrong.
        AverageAwaited = "average_awaited",
    }
}

impl Holding {
    /// Shares that the user owns: settled and T1.
    pub(crate) fn quantity(&self) -> Decimal {
        self.settled_quantity.saturating_add(self.t1_quantity)
    }

    /// Average cost of one share; `None` unless the cost of all owned shares is known.
    pub(crate) fn average_price(&self) -> Option<Decimal> {
        match self.cost? {
            Cost::PerShare(average) => Some(average),
            Cost::Total(cost) => cost.checked_div(self.quantity()),
            Cost::Part { .. } => None,
        }
    }

    /// The holding without a profit that the broker computed from a price that is not known: it
    /// then took 0 for the price.
    pub(crate) fn with_known_profit(mut self) -> Self {
        let known = self.last_price.is_some() && self.average_price().is_some();
        self.broker_pnl = self.broker_pnl.filter(|_| known);
        self
    }

    /// The symbol under which the share is quoted; `None` if unresolved or on an unquoted exchange.
    pub(crate) fn symbol(&self) -> Option<Symbol> {
        if self.unresolved {
            return None;
        }
        Symbol::parse(&format!("{}:{}", self.exchange, self.tradingsymbol))
    }
}

words! {
    /// The broker's position list that a row is from. The two lists overlap: never add them.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum PositionKind {
        /// Today's trades only.
        Day = "day",
        /// Current positions, including those carried over from earlier days.
        Net = "net",
    }
}

/// One row of a broker's positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub account: Account,
    pub kind: PositionKind,
    pub exchange: String,
    /// The exchange's ticker or contract. For broker B's derivatives: code, expiry, strike, right.
    pub tradingsymbol: String,
    /// Product code as the broker writes it: `CNC`, `MIS`, `NRML`, ...
    pub product: String,
    /// Signed: short is negative. Zero means closed.
    pub quantity: Decimal,
    /// Units per lot of quantity; 1 for shares.
    pub multiplier: Decimal,
    pub average_price: Option<Decimal>,
    pub last_price: Option<Decimal>,
    /// Previous close; `None` if nothing was carried over from an earlier day.
    pub close_price: Option<Decimal>,
    pub pnl: Option<Decimal>,
    /// Profit on the closed part; `None` if the broker's row does not contain it.
    pub realised: Option<Decimal>,
    /// Profit on the open part, zero once closed; `None` if the broker's row does not contain it.
    pub unrealised: Option<Decimal>,
    /// Whether `tradingsymbol` is a broker's code for which no instrument list has a ticker.
    pub unresolved: bool,
}

impl Position {
    /// The position without a profit that the broker computed from a price that is not known: it
    /// then took 0 for the price. No part of it can be told apart, so all three go. The profit of
    /// a closed position has no price in it.
    pub(crate) fn with_known_profit(mut self) -> Self {
        let is_open = !self.quantity.is_zero();
        if is_open && (self.last_price.is_none() || self.average_price.is_none()) {
            (self.pnl, self.realised, self.unrealised) = (None, None, None);
        }
        self
    }
}

/// Longest id of a person at a broker; real ones have up to ten characters.
const BROKER_USER_BYTES_MAX: usize = 64;

/// The id in the form that is stored and shown; `None` if it cannot be a broker's id.
pub(crate) fn broker_user(id: &str) -> Option<String> {
    let id = id.trim();
    let fits = (1..=BROKER_USER_BYTES_MAX).contains(&id.len());
    (fits && id.bytes().all(|byte| byte.is_ascii_graphic())).then(|| id.to_owned())
}

/// Everything that one sync fetched from one broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    pub holdings: Vec<Holding>,
    pub sold_holdings: Vec<SoldHolding>,
    pub positions: Vec<Position>,
    /// Whether at least one of the broker's responses was marked as simulated.
    pub simulated: bool,
    /// The broker's id of the person whose rows these are; `None` if the broker sent none.
    pub broker_user: Option<String>,
}

// ---- Security
//
// A row of broker B's security master, the file that maps its short codes to exchange tickers.

/// One share on one exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterRow {
    /// Broker B's own code of at most six letters.
    pub short_code: String,
    /// `NSE` or `BSE`.
    pub exchange: &'static str,
    /// The exchange's ticker.
    pub ticker: String,
    /// `None` if the file has none.
    pub isin: Option<String>,
    /// Series as the file writes it: `EQ`, `BE`, ...
    pub series: String,
}

// ---- Closing
//
// Official closing prices, and the trading dates by which the age of prices is judged.

/// The market calendar at one instant, as far as the age of prices depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketDay {
    /// Date of the instant in IST.
    pub today: Date,
    /// The latest trading date up to and including today, even if today's session has not opened
    /// yet. `today` if the calendar does not cover the date.
    pub session: Date,
    /// The latest trading date whose session has opened; `None` if the calendar does not cover the
    /// date.
    pub day: Option<Date>,
    /// Instant of the last official close; `None` once prices of a later date are possible.
    pub last_close: Option<Timestamp>,
    /// Instant of the official close before a pre-open; `None` outside one. Until its matching, and
    /// for many shares until trading begins, the last price still is that close.
    pub close_before_open: Option<Timestamp>,
    /// The trading date before [`trading_date`](Self::trading_date); `None` if the calendar does
    /// not know it.
    pub session_before: Option<Date>,
    /// Where no index has moved on the trading date, although a source was asked long enough after
    /// it began: the time of the last move before it. So it is on a holiday that the calendar does
    /// not know. A broker's prices are then no newer.
    pub stood_at: Option<Timestamp>,
}

impl MarketDay {
    /// The trading date of data that a broker sends now: the date of the last close while it
    /// stands, and the session's date from its pre-open on.
    pub(crate) fn trading_date(&self) -> Date {
        self.last_close
            .map_or(self.session, |close| clock::zoned(close).date())
    }
}
