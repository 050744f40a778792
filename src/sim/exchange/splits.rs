//! Shares that are split, given as a bonus or consolidated while the simulator runs, with the
//! history rewritten as vendors do it, or not yet. Plain values.

use jiff::civil::Date;
use serde::Deserialize;

/// Most shares given for one, or taken for one.
const SHARES_MAX: i64 = 100;

/// `new` shares for `old` ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    new: i64,
    old: i64,
}

impl Scale {
    /// As it was.
    pub(crate) const ONE: Self = Self { new: 1, old: 1 };

    pub(crate) fn price(self, paise: i64) -> i64 {
        paise * self.old / self.new
    }

    pub(crate) fn volume(self, shares: i64) -> i64 {
        shares * self.new / self.old
    }
}

/// A split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Split {
    scale: Scale,
    /// Dates before keep their old prices; `None` once the whole history is rewritten.
    from: Option<Date>,
}

impl Split {
    /// What it does to the candle of `date`.
    pub(crate) fn at(self, date: Date) -> Scale {
        if self.from.is_none_or(|from| date >= from) { self.scale } else { Scale::ONE }
    }
}

/// A split as the control route takes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SplitOrder {
    /// `NSE:INFY`; the company's shares on the other exchange are split with it.
    pub(crate) symbol: String,
    new: i64,
    old: i64,
    /// Whether candles of days before are rewritten, as they are unless this says otherwise.
    #[serde(default = "yes")]
    adjusted: bool,
}

fn yes() -> bool {
    true
}

impl SplitOrder {
    /// The split, if it makes sense.
    ///
    /// # Errors
    /// What is wrong, for the person who sent it.
    pub(crate) fn split(&self, today: Date) -> Result<Split, String> {
        let Self { new, old, adjusted, .. } = *self;
        let sound = (1..=SHARES_MAX).contains(&new) && (1..=SHARES_MAX).contains(&old);
        if !sound {
            return Err(format!("new and old have to be 1 to {SHARES_MAX}"));
        }
        let from = (!adjusted).then_some(today);
        Ok(Split { scale: Scale { new, old }, from })
    }
}
