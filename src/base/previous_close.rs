//! Decides what a previous close is: the one rule behind every change of a price that is shown.
//!
//! A source says a last price and a previous close. The two belong together only within one
//! session, and sources break that in four ways. On the ex-date of a corporate action the exchange
//! sets a base price, which is no close. In the evening a source may already say today's close in
//! place of yesterday's. On the morning of a trading date it has replaced the previous close while
//! the price is still the last session's. And in a halt, or on a holiday that the calendar does not
//! know, price and previous close are both of an earlier session. What bhav stored itself tells
//! these apart.
//!
//! Pure; any thread. Quotes, closing prices, rows of brokers and candles ask here and nowhere else.

use rust_decimal::Decimal;

use crate::base::ClosingPrice;
use crate::base::base_ratio::BaseRatio;

/// What a source says about one instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub last_price: Decimal,
    pub previous_close: Option<Decimal>,
}

/// The session of the price that the source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionOfPrice {
    /// The latest session, and its official close is not final.
    Running,
    /// The latest session, and its official close is final. Until midnight of the next trading
    /// date.
    Over,
    /// An earlier one: the date of another session has begun.
    Earlier,
}

/// What bhav knows about the instrument by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The previous close that was shown with an earlier price of the same session.
    pub shown: Option<Decimal>,
    /// The stored close of the price's session, and of the session before it.
    pub close: Option<ClosingPrice>,
    pub close_before: Option<ClosingPrice>,
    /// Whether the source says of its index that it did not move at all. No index closes where it
    /// closed the day before, so its previous closes then are today's. `None` if it says nothing of
    /// its index.
    pub index_stands: Option<bool>,
}

/// The previous close to compare a price with, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreviousClose {
    /// `None` if it is not known.
    pub price: Option<Decimal>,
    pub reason: Reason,
}

/// What a previous close is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The close of the session before, as the source says it.
    Own,
    /// A base price that the exchange adjusted for a corporate action.
    Base(BaseRatio),
    /// The source says the session's own close. What was known of the session before counts.
    RolledOver,
    /// The source says what belongs to another session. What was known of the price's own counts.
    OtherSession,
    /// Nobody says it.
    Unknown,
}

/// Furthest that a last trade and the official close, the average of the last half hour, are taken
/// to be apart. A stored close that may be a last trade is evidence only beyond it.
const LAST_TRADE_APART: Decimal = Decimal::from_parts(3, 0, 0, false, 2);

/// Largest part by which a percentage of two decimals moves the price that is computed from it.
const PERCENT_APART: Decimal = Decimal::from_parts(1, 0, 0, false, 4);

/// A change beyond which a stored close of the session before is not put in place of what a source
/// says: a base price may have come in between, and nobody has seen it. The smallest bonus that
/// companies give, one for ten, is a change of 9.1 %.
const UNSEEN_CHANGE_MAX: Decimal = Decimal::from_parts(9, 0, 0, false, 2);

/// Decides what the previous close of a price is.
pub(crate) fn previous_close(said: Said, of: SessionOfPrice, known: Known) -> PreviousClose {
    match of {
        SessionOfPrice::Running => running(said, known),
        SessionOfPrice::Over => over(said, known),
        SessionOfPrice::Earlier => known.of_session(said, Reason::OtherSession),
    }
}

/// Whether a previous close that a source says without a price is of the session. Beside no price,
/// nothing tells whether one that is said once the session is over has rolled over.
pub(crate) fn is_believed_alone(previous: Decimal, of: SessionOfPrice, known: Known) -> bool {
    match of {
        SessionOfPrice::Running => true,
        SessionOfPrice::Over => known
            .close_before
            .is_some_and(|close| close.price == previous),
        SessionOfPrice::Earlier => false,
    }
}

fn running(said: Said, known: Known) -> PreviousClose {
    let Some(previous) = said.previous_close else {
        return PreviousClose {
            price: None,
            reason: Reason::Unknown,
        };
    };
    let equals_last = previous == said.last_price;
    // Some sources roll over before the close is final.
    if equals_last && known.shown.is_some_and(|shown| shown != previous) {
        return PreviousClose {
            price: known.shown,
            reason: Reason::RolledOver,
        };
    }
    believed(previous, known.close_before)
}

fn over(said: Said, known: Known) -> PreviousClose {
    let held = known
        .shown
        .or(known.close.and_then(|close| close.previous_close));
    let Some(previous) = said.previous_close else {
        let reason = if held.is_some() {
            Reason::Own
        } else {
            Reason::Unknown
        };
        return PreviousClose {
            price: held,
            reason,
        };
    };
    if let Some(held) = held {
        if is_same(held, previous) {
            // An index closes within a tick of where it did now and then.
            return believed(held, known.close_before);
        }
        // What was said while the session ran is of the session.
        return PreviousClose {
            price: Some(held),
            reason: Reason::RolledOver,
        };
    }
    let before = known.close_before;
    if before.is_some_and(|before| is_same(before.price, previous)) {
        return believed(previous, before);
    }
    let equals = |close: ClosingPrice| close.price == previous;
    let has_rolled = known
        .index_stands
        .unwrap_or_else(|| previous == said.last_price || known.close.is_some_and(equals));
    match has_rolled {
        true => known.of_session(said, Reason::RolledOver),
        false => believed(previous, before),
    }
}

impl Known {
    /// What is known without the source.
    fn of_session(self, said: Said, reason: Reason) -> PreviousClose {
        let of_close = self.close.and_then(|close| close.previous_close);
        let before = self.close_before.map(|before| before.price);
        let before = before.filter(|before| is_near(said.last_price, *before, UNSEEN_CHANGE_MAX));
        PreviousClose {
            price: self.shown.or(of_close).or(before),
            reason,
        }
    }
}

/// A previous close that belongs to the price's session: the close before it, or a base price.
fn believed(previous: Decimal, before: Option<ClosingPrice>) -> PreviousClose {
    let base = before.and_then(|before| base_ratio(previous, &before));
    let reason = base.map_or(Reason::Own, Reason::Base);
    PreviousClose {
        price: Some(previous),
        reason,
    }
}

/// The ratio of the previous close that a source says to the stored close of that session, if the
/// exchange must have adjusted it.
///
/// A close that is certainly the official one is evidence beyond a tick. One that may be a last
/// trade is evidence beyond what a last trade and an official close can be apart.
pub(crate) fn base_ratio(previous: Decimal, before: &ClosingPrice) -> Option<BaseRatio> {
    let stands = |close: Decimal| match before.official {
        true => is_same(previous, close),
        false => is_same(previous, close) || is_near(previous, close, LAST_TRADE_APART),
    };
    // A source may not have replaced its previous close yet.
    if stands(before.price)
        || before
            .previous_close
            .is_some_and(|older| is_same(previous, older))
    {
        return None;
    }
    previous
        .checked_div(before.price)
        .filter(|ratio| *ratio > Decimal::ZERO)
        .map(BaseRatio)
}

/// As [`base_ratio`], from a change in percent with two decimals.
pub(crate) fn base_ratio_of_percent(
    last_price: Decimal,
    percent: Decimal,
    before: &ClosingPrice,
) -> Option<BaseRatio> {
    let previous = close_of_percent(last_price, percent)?;
    match is_near(previous, before.price, PERCENT_APART) {
        true => None,
        false => base_ratio(previous, before),
    }
}

/// Whether a price is still the close `before`, although a later session has begun: it equals it,
/// and what is said beside it is the close before that one. So it is in a halt, on a holiday that
/// the calendar does not know, and of a single share that has not traded.
pub(crate) fn is_close_before(said: Said, percent: Option<Decimal>, before: &ClosingPrice) -> bool {
    if said.last_price != before.price {
        return false;
    }
    let said_close = said.previous_close.or_else(|| {
        let percent = percent.filter(|percent| !percent.is_zero())?;
        close_of_percent(said.last_price, percent)
    });
    // Beside the close itself the price is of a session that has begun, and did not move it.
    let Some(previous) = said_close.filter(|previous| *previous != before.price) else {
        return false;
    };
    match before.previous_close {
        Some(older) if said.previous_close.is_some() => is_same(previous, older),
        Some(older) => is_same(previous, older) || is_near(previous, older, PERCENT_APART),
        // A session that has begun would have this close for its previous one.
        None => !is_same(previous, before.price),
    }
}

fn close_of_percent(last_price: Decimal, percent: Decimal) -> Option<Decimal> {
    let whole = Decimal::ONE_HUNDRED.checked_add(percent)?;
    last_price
        .checked_mul(Decimal::ONE_HUNDRED)?
        .checked_div(whole)
        .filter(|_| whole > Decimal::ZERO)
}

fn is_near(one: Decimal, other: Decimal, part_max: Decimal) -> bool {
    (one - other).abs() <= other.abs().saturating_mul(part_max)
}

/// Whether two prices are the same close: they differ by a tick at most.
fn is_same(one: Decimal, other: Decimal) -> bool {
    (one - other).abs() <= tick(one.max(other))
}

/// The largest step in which an exchange quotes prices of this height.
fn tick(price: Decimal) -> Decimal {
    let steps = [(20_000, 500), (10_000, 100), (5_000, 50), (1_000, 10)];
    let step = steps
        .into_iter()
        .find(|(above, _)| price > Decimal::from(*above));
    Decimal::new(step.map_or(5, |(_, paise)| paise), 2)
}

#[cfg(test)]
#[path = "previous_close_tests.rs"]
mod tests;
