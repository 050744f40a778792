//! India's financial year, from 1 April to 31 March.

use std::fmt;

use jiff::civil::Date;

/// By the year in which it begins: 2024-25 is 2024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FinancialYear(i16);

impl FinancialYear {
    /// Reads `2024-25`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let start: i16 = text.get(..4)?.parse().ok()?;
        let year = Self(start);
        ((1990..2100).contains(&start) && year.to_string() == text).then_some(year)
    }

    pub(crate) fn of(date: Date) -> Self {
        Self(if date.month() >= 4 {
            date.year()
        } else {
            date.year() - 1
        })
    }

    pub(crate) fn first(self) -> Date {
        Date::new(self.0, 4, 1).unwrap_or_default()
    }

    pub(crate) fn last(self) -> Date {
        Date::new(self.0 + 1, 3, 31).unwrap_or_default()
    }

    pub(crate) fn contains(self, date: Date) -> bool {
        Self::of(date) == self
    }

    /// The ends of the parts of the year by which gains are asked for: 15 June, September,
    /// December and March, and 31 March.
    pub(crate) fn period_ends(self) -> [Date; 5] {
        let of = |year: i16, month: i8, day: i8| Date::new(year, month, day).unwrap_or_default();
        [
            of(self.0, 6, 15),
            of(self.0, 9, 15),
            of(self.0, 12, 15),
            of(self.0 + 1, 3, 15),
            self.last(),
        ]
    }
}

impl fmt::Display for FinancialYear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:02}", self.0, (self.0 + 1) % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::testing::date;

    #[test]
    fn a_year_is_read_and_written_and_holds_its_dates() {
        for good in ["2024-25", "1999-00", "2099-00", "2008-09"] {
            assert_eq!(FinancialYear::parse(good).unwrap().to_string(), good);
        }
        for bad in [
            "",
            "2024",
            "2024-26",
            "24-25",
            "2024-2025",
            "2024/25",
            "1989-90",
            "+024-25",
            "2024-25 ",
        ] {
            assert_eq!(FinancialYear::parse(bad), None, "{bad}");
        }
        let year = FinancialYear::of(date("2025-03-31"));
        assert_eq!((year.to_string().as_str(), year.first()), ("2024-25", date("2024-04-01")));
        assert!(year.contains(date("2024-04-01")) && !year.contains(date("2025-04-01")));
        assert_eq!(year.period_ends()[3], date("2025-03-15"));
    }
}
