//! Which prices are believed, for every source in one place. Pure.
//!
//! The limits are wide on purpose: real days are wild, and a refused true price is as wrong as a
//! shown false one. What they catch is zeros, other instruments' prices, lost decimal points and
//! dead feeds.

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use super::feed::CallTimes;
use crate::base::{Quote, Source, Symbol, decimal};

/// Oldest price that is still "the last session's". The longest closures are long weekends of four
/// or five days; twice that leaves room for shares that did not trade on a day or two.
const AGE_MAX: SignedDuration = SignedDuration::from_hours(10 * 24);

/// No share or index comes near; beyond it a decimal point was lost.
const PRICE_MAX: Decimal = Decimal::from_parts(100_000_000, 0, 0, false, 0);

/// What an instrument is, as far as its moves are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Shares with derivatives have no fixed price band, and index members fell by 26 to 28 % on
    /// days of 2023 and 2025; others are banded at 20 % except on listing and relisting days.
    Share,
    /// The market-wide breaker halts the day at 20 %; sector indices go a little further.
    Index,
    /// An index of implied volatility, which rose by half in a day more than once.
    Volatility,
}

impl Kind {
    /// Largest believable change from the previous close, in percent, either way.
    fn change_pct_max(self) -> Decimal {
        Decimal::from(match self {
            Self::Share => 50,
            Self::Index => 25,
            Self::Volatility => 200,
        })
    }

    /// The kind of an index called `ticker`.
    pub fn of_index(ticker: &str) -> Self {
        if ticker.contains("VIX") { Self::Volatility } else { Self::Index }
    }
}

/// What an upstream said about one instrument.
#[derive(Clone, Debug)]
pub struct Claim {
    pub kind: Kind,
    pub last_price: Decimal,
    pub previous_close: Option<Decimal>,
    /// `None` where it gave no time.
    pub as_of: Option<Timestamp>,
}

/// Why a claim is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Not positive, or absurdly large.
    Price,
    /// Price time ahead of our clock.
    Future,
    /// Price time older than any market closure.
    Old,
    /// Change from the previous close beyond what the kind allows.
    Change,
}

impl Claim {
    /// The previous close to show with the price: a positive one or none.
    ///
    /// # Errors
    /// The first [`Doubt`].
    pub fn believed(&self, now: Timestamp) -> Result<Option<Decimal>, Doubt> {
        if self.last_price <= Decimal::ZERO || self.last_price > PRICE_MAX {
            return Err(Doubt::Price);
        }
        if self.as_of.is_some_and(|as_of| Quote::is_ahead(as_of, now)) {
            return Err(Doubt::Future);
        }
        let age = self.as_of.map(|as_of| now.duration_since(as_of)).unwrap_or_default();
        if age > AGE_MAX {
            return Err(Doubt::Old);
        }
        let previous_close = self.previous_close.filter(|close| *close > Decimal::ZERO);
        if let Some(close) = previous_close {
            let change_pct = decimal::percent_change(self.last_price, close);
            if change_pct.is_none_or(|pct| pct.abs() > self.kind.change_pct_max()) {
                return Err(Doubt::Change);
            }
        }
        Ok(previous_close)
    }

    /// The claim as a quote of `symbol`, if it is believed.
    pub fn quote(
        self,
        symbol: &Symbol,
        times: &CallTimes,
        source: Source,
        simulated: bool,
    ) -> Option<Quote> {
        let previous_close = self.believed(times.answered).ok()?;
        Some(Quote {
            symbol: symbol.clone(),
            last_price: self.last_price,
            previous_close,
            as_of: self.as_of.unwrap_or(times.asked),
            timed: self.as_of.is_some(),
            asked: times.asked,
            delay_s: None,
            source,
            simulated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(kind: Kind, last: &str, close: &str) -> Claim {
        Claim {
            kind,
            last_price: last.parse().unwrap(),
            previous_close: Some(close.parse().unwrap()),
            as_of: Some(now()),
        }
    }

    fn now() -> Timestamp {
        "2026-11-20T10:00:00Z".parse().unwrap()
    }

    #[test]
    fn prices_and_changes() {
        for (kind, last, close, expected) in [
            (Kind::Share, "1412.95", "1389.65", Ok(())),
            (Kind::Share, "0", "10", Err(Doubt::Price)),
            (Kind::Share, "-1", "10", Err(Doubt::Price)),
            (Kind::Share, "100000001", "0", Err(Doubt::Price)),
            (Kind::Share, "71.8", "100", Ok(())),
            (Kind::Share, "150", "100", Ok(())),
            (Kind::Share, "150.01", "100", Err(Doubt::Change)),
            (Kind::Share, "49.99", "100", Err(Doubt::Change)),
            (Kind::Index, "80", "100", Ok(())),
            (Kind::Index, "74", "100", Err(Doubt::Change)),
            (Kind::of_index("INDIA VIX"), "22.8", "13.8", Ok(())),
            (Kind::of_index("NIFTY 50"), "22.8", "13.8", Err(Doubt::Change)),
        ] {
            let got = claim(kind, last, close).believed(now()).map(|_| ());
            assert_eq!(got, expected, "{kind:?} {last} {close}");
        }
    }

    #[test]
    fn a_close_that_is_not_positive_is_no_close() {
        for close in ["0", "-5"] {
            assert_eq!(claim(Kind::Share, "10", close).believed(now()), Ok(None));
        }
    }

    #[test]
    fn times() {
        for (as_of, expected) in [
            ("2026-11-20T10:00:05Z", Ok(())),
            ("2026-11-20T10:00:06Z", Err(Doubt::Future)),
            ("2026-11-10T10:00:00Z", Ok(())),
            ("2026-11-10T09:59:59Z", Err(Doubt::Old)),
        ] {
            let claim = Claim { as_of: as_of.parse().ok(), ..claim(Kind::Share, "10", "10") };
            assert_eq!(claim.believed(now()).map(|_| ()), expected, "{as_of}");
        }
    }
}
