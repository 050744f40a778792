//! Which shares have derivatives. They alone take part in the closing auction; every other share
//! trades continuously to the end and has a close without an auction.
//!
//! Read from broker A's list of derivatives, by the ticker that each contract names. A company's
//! shares count on both exchanges. Without such a list only the compiled-in shares are known to
//! have derivatives, and of any other nothing is known. Pure; part of the list of instruments.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use jiff::civil::Date;

use crate::base::Symbol;
use crate::market::list_limits::{NAMED_MAX, is_cut_short, is_much_unread};
use crate::market::phase::Trading;

/// Most shares with derivatives. The exchange has some 220.
const UNDERLYINGS_MAX: usize = 2_000;

/// Whether a share has derivatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derivatives {
    Some,
    None,
    /// No list says it. Its hours are taken to be those of a share with derivatives, and nothing
    /// of it counts as an auction's price.
    Unknown,
}

impl Derivatives {
    /// Whose continuous trading is that of the share.
    pub(crate) fn trading(self) -> Trading {
        match self {
            Self::Some | Self::Unknown => Trading::WithAuction,
            Self::None => Trading::WithoutAuction,
        }
    }
}

/// The tickers of the shares with derivatives. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Underlyings {
    tickers: Arc<BTreeSet<Box<str>>>,
    /// The day of broker A's list; `None` for the compiled-in shares, which are not all.
    as_of: Option<Date>,
}

/// Why a list of derivatives is not believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnderlyingsDoubt {
    TooMany,
    Lacks {
        count: usize,
        before: usize,
        first: Vec<Box<str>>,
    },
    Unread {
        rows: u64,
        of: u64,
    },
}

impl fmt::Display for UnderlyingsDoubt {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(to, "it names more than {UNDERLYINGS_MAX} shares"),
            Self::Lacks {
                count,
                before,
                first,
            } => {
                let first = first.join(", ");
                write!(to, "it lacks {count} of the {before} shares of the last: {first}")
            }
            Self::Unread { rows, of } => write!(to, "{rows} of its {of} rows cannot be read"),
        }
    }
}

impl Underlyings {
    /// Shares that are known to have derivatives without any list.
    pub(crate) fn compiled_in(tickers: impl IntoIterator<Item = Box<str>>) -> Self {
        Self {
            tickers: Arc::new(tickers.into_iter().collect()),
            as_of: None,
        }
    }

    /// The list of a day.
    pub(crate) fn of_list(tickers: impl IntoIterator<Item = Box<str>>, as_of: Date) -> Self {
        Self {
            tickers: Arc::new(tickers.into_iter().collect()),
            as_of: Some(as_of),
        }
    }

    /// The day of broker A's list, if it is one.
    pub(crate) fn as_of(&self) -> Option<Date> {
        self.as_of
    }

    pub(crate) fn tickers(&self) -> impl Iterator<Item = &str> {
        self.tickers.iter().map(|ticker| &**ticker)
    }

    /// Whether `symbol` has derivatives. Nothing is said of an index, which trades with its shares.
    pub(crate) fn of(&self, symbol: &Symbol) -> Derivatives {
        let ticker = symbol.ticker();
        match self.tickers.contains(ticker) {
            true => Derivatives::Some,
            false if self.as_of.is_none() || ticker.contains(' ') => Derivatives::Unknown,
            false => Derivatives::None,
        }
    }

    /// The doubt about this list, of which `unread` of `rows` could not be read, after `last`.
    pub(crate) fn doubt(&self, last: &Self, unread: u64, rows: u64) -> Option<UnderlyingsDoubt> {
        if self.tickers.len() > UNDERLYINGS_MAX {
            return Some(UnderlyingsDoubt::TooMany);
        }
        let lacking: Vec<&Box<str>> = last.tickers.difference(&self.tickers).collect();
        let count = lacking.len();
        let before = last.tickers.len();
        if is_cut_short(before - count, before) {
            let first = lacking.into_iter().take(NAMED_MAX).cloned().collect();
            return Some(UnderlyingsDoubt::Lacks {
                count,
                before,
                first,
            });
        }
        is_much_unread(unread, rows).then_some(UnderlyingsDoubt::Unread {
            rows: unread,
            of: rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONDAY: Date = Date::constant(2026, 11, 23);

    fn shares(range: std::ops::Range<usize>) -> impl Iterator<Item = Box<str>> {
        range.map(|number| format!("S{number}").into())
    }

    #[test]
    fn a_list_says_it_of_every_share_and_the_compiled_in_shares_of_themselves() {
        let listed = Underlyings::of_list(["INFY".into(), "M&M".into()], MONDAY);
        let compiled_in = Underlyings::compiled_in(["INFY".into()]);
        for (name, by_list, without) in [
            ("NSE:INFY", Derivatives::Some, Derivatives::Some),
            ("BSE:INFY", Derivatives::Some, Derivatives::Some),
            ("NSE:M&M", Derivatives::Some, Derivatives::Unknown),
            ("NSE:INFY-BE", Derivatives::None, Derivatives::Unknown),
            ("NSE:INF", Derivatives::None, Derivatives::Unknown),
            ("NSE:MRPL", Derivatives::None, Derivatives::Unknown),
            ("NSE:NIFTY 50", Derivatives::Unknown, Derivatives::Unknown),
        ] {
            let symbol = Symbol::parse(name).unwrap();
            assert_eq!((listed.of(&symbol), compiled_in.of(&symbol)), (by_list, without), "{name}");
        }
        assert_eq!(Derivatives::None.trading(), Trading::WithoutAuction);
        assert_eq!(Derivatives::Unknown.trading(), Trading::WithAuction);
    }

    #[test]
    fn a_list_is_judged_by_the_one_before_it() {
        let last = Underlyings::of_list(shares(0..200), MONDAY);
        let judged = |range, unread| {
            Underlyings::of_list(shares(range), MONDAY).doubt(&last, unread, 10_000)
        };
        assert_eq!(judged(0..200, 0), None);
        assert_eq!(judged(20..260, 1_000), None, "a tenth is out, and a tenth cannot be read");
        let told = judged(21..260, 0).unwrap().to_string();
        assert!(told.starts_with("it lacks 21 of the 200 shares of the last: S0, S1"), "{told}");
        assert!(judged(0..0, 0).is_some() && judged(300..500, 0).is_some());
        let unread = UnderlyingsDoubt::Unread {
            rows: 1_001,
            of: 10_000,
        };
        assert_eq!(judged(0..200, 1_001), Some(unread));
        assert_eq!(judged(0..2_001, 0), Some(UnderlyingsDoubt::TooMany));
    }
}
