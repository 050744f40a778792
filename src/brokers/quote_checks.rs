//! Which price may be believed, by what its row says: one place for every source. Pure.
//!
//! A price near its previous close is believed at once. One far from it may be true: on a share's
//! first day, after a relisting, a demerger, a split or a consolidation the previous close is of
//! something else. Then the row's own open, high, low and circuit limits are evidence. Where they
//! say nothing, other answers have to (`warmers/quotes/evidence.rs`). A price far from its previous
//! close is shown without a change, because that close may not be comparable.
//!
//! The limits are wide on purpose: real days are wild, and a refused true price is as wrong as a
//! shown false one. They catch zeros, other instruments' prices, lost decimal points and dead
//! feeds.

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use crate::base::{Clock, DayRange, Quote, Source, Symbol, json};

/// Oldest price that is still "the last session's". The longest closures are long weekends of four
/// or five days; twice that leaves room for shares that did not trade on a day or two.
const AGE_MAX: SignedDuration = SignedDuration::from_hours(10 * 24);

/// Highest believable price. No share or index comes near; a higher one has lost a decimal point.
const PRICE_MAX: Decimal = Decimal::from_parts(100_000_000, 0, 0, false, 0);

/// Kind of an instrument, which decides how far it may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Shares with derivatives have no fixed price band, and index members fell by 26 to 28 % on
    /// days of 2023 and 2025; others are banded at 20 % except on listing and relisting days.
    Share,
    /// The market-wide breaker halts the day at 20 %; sector indices go a little further.
    Index,
    /// An index of implied volatility, which rose by half in a day more than once.
    Volatility,
}

impl Kind {
    /// Whether such a change from the previous close is believed at once, either way.
    fn allows(self, price: Decimal, previous_close: Decimal) -> bool {
        let pct_max = match self {
            Self::Share => 50,
            Self::Index => 25,
            Self::Volatility => 200,
        };
        let pct = json::percent_change(price, previous_close);
        pct.is_some_and(|pct| pct.abs() <= Decimal::from(pct_max))
    }

    /// The kind of `symbol`, which is an index or a share.
    pub(crate) fn of(symbol: &Symbol, is_index: bool) -> Self {
        match is_index {
            false => Self::Share,
            true if symbol.ticker().contains("VIX") => Self::Volatility,
            true => Self::Index,
        }
    }
}

/// An upstream's data about one instrument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub last_price: Decimal,
    pub previous_close: Option<Decimal>,
    /// First, lowest and highest price of the price's session.
    pub open: Option<Decimal>,
    pub low: Option<Decimal>,
    pub high: Option<Decimal>,
    /// The lowest and the highest price that the exchange permits.
    pub limits: Option<(Decimal, Decimal)>,
    /// Time of the price; `None` if the upstream sent none.
    pub as_of: Option<Timestamp>,
}

/// The reason for refusing a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The price is not positive, or absurdly large.
    Price,
    /// Price time ahead of our clock.
    Future,
    /// Price time older than any market closure.
    Old,
}

/// A quote that is far from its previous close.
#[derive(Clone, Debug, PartialEq)]
pub struct Unproven {
    pub quote: Quote,
    pub row: RowEvidence,
}

/// What a row says of its own price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEvidence {
    /// Open, high and low are near the price, or the exchange's limits permit it.
    Supports,
    /// There is nothing to compare the price with.
    Silent,
    /// The price is outside of its own range or limits.
    Contradicts,
}

/// A claim that is not refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Judgement {
    Believed(Box<Quote>),
    Unproven(Box<Unproven>),
}

/// Limits further apart than this permit everything, so they say nothing: on a first day some
/// exchanges send 0.05 and 999,999.
const LIMITS_RATIO_MAX: Decimal = Decimal::TWO;

impl Claim {
    /// Checks that the price and its time are possible. Returns the previous close, if it is
    /// positive.
    ///
    /// # Errors
    /// The first [`Doubt`].
    fn possible(&self, now: Timestamp) -> Result<Option<Decimal>, Doubt> {
        if self.last_price <= Decimal::ZERO || self.last_price > PRICE_MAX {
            return Err(Doubt::Price);
        }
        if self.as_of.is_some_and(|as_of| Quote::is_ahead(as_of, now)) {
            return Err(Doubt::Future);
        }
        let age = self
            .as_of
            .map(|as_of| now.duration_since(as_of))
            .unwrap_or_default();
        if age > AGE_MAX {
            return Err(Doubt::Old);
        }
        Ok(self.previous_close.filter(|close| *close > Decimal::ZERO))
    }

    /// What the row says of its price.
    fn row_evidence(&self, kind: Kind) -> RowEvidence {
        let price = self.last_price;
        let given = |end: Option<Decimal>| end.filter(|end| *end > Decimal::ZERO);
        let limits = self.limits.filter(|(lower, upper)| {
            *lower > Decimal::ZERO && upper > lower && *upper <= *lower * LIMITS_RATIO_MAX
        });
        let permits = limits.map(|(lower, upper)| lower <= price && price <= upper);
        let range = given(self.low).zip(given(self.high));
        let is_within = range.map(|(low, high)| low <= price && price <= high);
        if permits == Some(false) || is_within == Some(false) {
            return RowEvidence::Contradicts;
        }
        let (Some((low, high)), Some(open)) = (range, given(self.open)) else {
            return RowEvidence::Silent;
        };
        if open < low || high < open {
            return RowEvidence::Contradicts;
        }
        // A wrong tick becomes a range's end, so the whole range has to be near.
        let is_near = kind.allows(low, price) && kind.allows(high, price);
        match permits == Some(true) || is_near {
            true => RowEvidence::Supports,
            false => RowEvidence::Contradicts,
        }
    }

    /// The range of the session, if it is as plausible as the price. The price is believed without
    /// it.
    fn day(&self, kind: Kind, previous_close: Option<Decimal>) -> Option<DayRange> {
        let range = DayRange::around(self.last_price, self.low, self.high)?;
        let is_near = |price| previous_close.is_none_or(|close| kind.allows(price, close));
        let is_believed =
            range.high() <= PRICE_MAX && is_near(range.low()) && is_near(range.high());
        is_believed.then(|| range.opened(self.open))
    }

    /// The claim as a quote of `symbol`.
    ///
    /// # Errors
    /// The first [`Doubt`] that no evidence can remove.
    pub(crate) fn judged(
        &self,
        kind: Kind,
        symbol: &Symbol,
        times: &CallTimes,
        source: Source,
        simulated: bool,
    ) -> Result<Judgement, Doubt> {
        let previous_close = self.possible(times.answered)?;
        let near = previous_close.filter(|close| kind.allows(self.last_price, *close));
        let quote = Quote {
            symbol: symbol.clone(),
            last_price: self.last_price,
            previous_close: near,
            day: self.day(kind, near),
            as_of: self.as_of.unwrap_or(times.asked),
            timed: self.as_of.is_some(),
            asked: times.asked,
            delay_s: None,
            source,
            simulated,
        };
        Ok(match previous_close == near {
            true => Judgement::Believed(Box::new(quote)),
            false => Judgement::Unproven(Box::new(Unproven {
                quote,
                row: self.row_evidence(kind),
            })),
        })
    }
}

/// Times at which a call was made and its answer was complete.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallTimes {
    pub asked: Timestamp,
    /// The same moment by the monotonic clock.
    pub asked_mono_ms: u64,
    pub answered: Timestamp,
}

impl CallTimes {
    /// The times of a call that is made now, before its answer.
    pub(super) fn begin(clock: &Clock) -> Self {
        let asked = clock.now();
        Self {
            asked,
            asked_mono_ms: clock.monotonic_ms(),
            answered: asked,
        }
    }

    /// The same times, answered now.
    pub(super) fn end(self, clock: &Clock) -> Self {
        Self {
            answered: clock.now(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(last: &str, close: &str) -> Claim {
        Claim {
            last_price: last.parse().unwrap(),
            previous_close: Some(close.parse().unwrap()),
            open: None,
            low: None,
            high: None,
            limits: None,
            as_of: Some(now()),
        }
    }

    fn now() -> Timestamp {
        "2026-11-20T10:00:00Z".parse().unwrap()
    }

    #[test]
    fn prices_and_changes() {
        let of_index = |name| Kind::of(&Symbol::parse(name).unwrap(), true);
        for (kind, last, close, expected) in [
            (Kind::Share, "1412.95", "1389.65", Ok(true)),
            (Kind::Share, "0", "10", Err(Doubt::Price)),
            (Kind::Share, "-1", "10", Err(Doubt::Price)),
            (Kind::Share, "100000001", "0", Err(Doubt::Price)),
            (Kind::Share, "71.8", "100", Ok(true)),
            (Kind::Share, "150", "100", Ok(true)),
            (Kind::Share, "150.01", "100", Ok(false)),
            (Kind::Share, "49.99", "100", Ok(false)),
            (Kind::Index, "80", "100", Ok(true)),
            (Kind::Index, "74", "100", Ok(false)),
            (of_index("NSE:INDIA VIX"), "22.8", "13.8", Ok(true)),
            (of_index("NSE:NIFTY 50"), "22.8", "13.8", Ok(false)),
        ] {
            let got = judged(&claim(last, close), kind);
            let got = got.map(|judged| matches!(judged, Judgement::Believed(_)));
            assert_eq!(got, expected, "{kind:?} {last} {close}");
        }
    }

    fn judged(claim: &Claim, kind: Kind) -> Result<Judgement, Doubt> {
        let times = CallTimes {
            answered: now(),
            ..CallTimes::default()
        };
        let symbol = Symbol::parse("NSE:INFY").unwrap();
        claim.judged(kind, &symbol, &times, Source::BrokerA, false)
    }

    /// Last price and previous close, open, low and high, and limits; zeros for what is not sent.
    type FarRow = ([&'static str; 2], [&'static str; 3], [&'static str; 2]);

    fn expect_evidence(what: &str, row: FarRow, expected: RowEvidence) {
        let ([last, close], [open, low, high], limits) = row;
        let number = |text: &str| text.parse::<Decimal>().ok();
        let claim = Claim {
            open: number(open),
            low: number(low),
            high: number(high),
            limits: number(limits[0]).zip(number(limits[1])),
            ..claim(last, close)
        };
        let Ok(Judgement::Unproven(unproven)) = judged(&claim, Kind::Share) else {
            panic!("{what} is believed or refused at once");
        };
        assert_eq!((unproven.row, unproven.quote.previous_close), (expected, None), "{what}");
    }

    #[test]
    fn what_a_row_far_from_its_previous_close_says_else_may_support_it() {
        use RowEvidence::{Silent, Supports};
        for (what, row, expected) in [
            ("a first day", (["480", "220"], ["470", "465", "490"], ["456", "504"]), Supports),
            ("without limits", (["480", "220"], ["470", "465", "490"], ["0", "0"]), Supports),
            (
                "limits that permit all",
                (["480", "220"], ["470", "465", "490"], ["0.05", "999999"]),
                Supports,
            ),
            ("a relisting", (["12", "60"], ["11", "11", "12.5"], ["9.9", "12.1"]), Supports),
            ("a demerger", (["390", "1000"], ["400", "380", "410"], ["360", "440"]), Supports),
            (
                "a split in ten",
                (["48.2", "480"], ["48", "47.5", "49"], ["43.2", "52.8"]),
                Supports,
            ),
            ("ten made one", (["482", "48"], ["480", "475", "490"], ["432", "528"]), Supports),
            (
                "a crash to its limit",
                (["45", "100"], ["100", "45", "101"], ["45", "85"]),
                Supports,
            ),
            ("before its first trade", (["480", "220"], ["0", "0", "0"], ["0", "0"]), Silent),
            ("limits alone", (["480", "220"], ["0", "0", "0"], ["456", "504"]), Silent),
            (
                "a range that lacks its open",
                (["480", "220"], ["0", "465", "490"], ["0", "0"]),
                Silent,
            ),
        ] {
            expect_evidence(what, row, expected);
        }
    }

    #[test]
    fn what_a_row_far_from_its_previous_close_says_else_may_contradict_it() {
        for (what, row) in [
            ("a lost decimal point", (["48.2", "480"], ["478", "476", "485"], ["432", "528"])),
            ("one too many", (["4820", "480"], ["478", "476", "485"], ["0", "0"])),
            (
                "a wrong tick in the range",
                (["4820", "480"], ["478", "476", "4820"], ["0", "0"]),
            ),
            (
                "another share's price",
                (["2900", "480"], ["478", "476", "485"], ["432", "528"]),
            ),
            ("limits of the old price", (["48.2", "480"], ["48", "47", "49"], ["432", "528"])),
        ] {
            expect_evidence(what, row, RowEvidence::Contradicts);
        }
    }

    #[test]
    fn a_range_that_cannot_be_true_is_dropped_and_its_price_is_not() {
        let times = CallTimes {
            answered: now(),
            ..CallTimes::default()
        };
        let symbol = Symbol::parse("NSE:INFY").unwrap();
        // With a previous close of 100, and without one.
        for (low, high, is_believed) in [
            ("99", "140", [true, true]),
            ("50", "150", [true, true]),
            ("99", "150.01", [false, true]),
            ("49.99", "140", [false, true]),
            ("99", "100000001", [false, false]),
            ("101", "140", [false, false]),
            ("99", "99.5", [false, false]),
            ("0", "0", [false, false]),
        ] {
            for (close, is_believed) in ["100", "0"].into_iter().zip(is_believed) {
                let low = low.parse().ok();
                let high = high.parse().ok();
                let claim = Claim {
                    low,
                    high,
                    ..claim("100", close)
                };
                let judged = claim.judged(Kind::Share, &symbol, &times, Source::Public, false);
                let Ok(Judgement::Believed(quote)) = judged else {
                    panic!("{claim:?}")
                };
                assert_eq!(quote.last_price, 100.into());
                assert_eq!(quote.day.is_some(), is_believed, "{low:?} {high:?} {close}");
            }
        }
    }

    #[test]
    fn a_close_that_is_not_positive_is_no_close() {
        for close in ["0", "-5"] {
            assert_eq!(claim("10", close).possible(now()), Ok(None));
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
            let claim = Claim {
                as_of: as_of.parse().ok(),
                ..claim("10", "10")
            };
            let believed = claim.possible(now()).map(|_| ());
            assert_eq!(believed, expected, "{as_of}");
        }
    }
}
