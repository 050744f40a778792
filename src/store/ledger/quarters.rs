//! The first days of quarters, as one text.

use std::collections::BTreeSet;

use jiff::civil::Date;

use crate::store::arg::{Arg, Argument};
use crate::store::cells::{Cells, Nullable, parsed};
use crate::store::tx::Failure;

/// First days of quarters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Quarters(pub(super) BTreeSet<Date>);

impl Quarters {
    /// Dates with a blank between each two.
    fn parse(text: &str) -> Option<Self> {
        text.split(' ')
            .map(|day| day.parse().ok())
            .collect::<Option<_>>()
            .map(Self)
    }
}

impl Nullable for Quarters {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        parsed(row, at, Self::parse, "quarters")
    }
}

impl<'a> Argument<'a> for &Quarters {
    /// Null where there are none.
    fn arg(value: Option<Self>) -> Arg<'a> {
        let some = value.filter(|quarters| !quarters.0.is_empty());
        Arg::from(some.map(|quarters| {
            let days: Vec<String> = quarters.0.iter().map(Date::to_string).collect();
            days.join(" ")
        }))
    }
}
