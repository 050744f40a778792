//! The rules of gains as dated rows: what they say, of which sales, until when they are known, and
//! who said it. A sale on a date that no row has is named, never summed.

use jiff::ToSpan;
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::words::words;

words! {
    /// What a rule is about.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum RuleId {
        ShortRate = "short_rate",
        LongRate = "long_rate",
        Exemption = "exemption",
        Term = "term",
        Fifo = "fifo",
        Grandfathering = "grandfathering",
        Buyback = "buyback",
        Speculation = "speculation",
        BonusStripping = "bonus_stripping",
    }
}

/// How a buyback is taxed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuybackRule {
    Exempt,
    /// What is paid is a dividend, and the cost a capital loss.
    DeemedDividend,
    CapitalGain,
}

/// What a rule lays down beside its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    None,
    RatePct(Decimal),
    Rupees(i64),
    Buyback(BuybackRule),
}

/// One rule, of sales from one date to another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub id: RuleId,
    pub says: &'static str,
    /// `None` where the number in the Act of 2025 is not confirmed.
    pub section: Option<&'static str>,
    pub from: Option<Date>,
    pub to: Option<Date>,
    /// Later sales may be under another rule.
    pub known_until: Date,
    pub figure: Figure,
    pub source: &'static str,
}

/// Rates and sections are known until here, by the Finance Act 2026.
const KNOWN_UNTIL: Date = Date::constant(2027, 3, 31);
/// The last day of the Income-tax Act 1961.
const OLD_ACT_TO: Date = Date::constant(2026, 3, 31);
const NEW_ACT_FROM: Date = Date::constant(2026, 4, 1);
/// Long gains on listed shares were exempt before, so neither rate is known of earlier sales.
const RATES_FROM: Date = Date::constant(2018, 4, 1);
const RATES_2018_TO: Date = Date::constant(2024, 7, 22);
const RATES_2024_FROM: Date = Date::constant(2024, 7, 23);

/// Shares acquired until then keep the gain of before.
pub(crate) const GRANDFATHERED_UNTIL: Date = Date::constant(2018, 1, 31);
/// Securities transaction tax began.
pub(crate) const STT_FROM: Date = Date::constant(2004, 10, 1);

const OLD_ACT: &str = "Income-tax Act 1961";
const NEW_ACT: &str = "Income-tax Act 2025";
const ACT_2018: &str = "Finance Act 2018";
const ACT_2024: &str = "Finance (No. 2) Act 2024";

const fn rule(id: RuleId, says: &'static str, section: &'static str, source: &'static str) -> Rule {
    Rule {
        id,
        says,
        section: Some(section),
        from: None,
        to: None,
        known_until: KNOWN_UNTIL,
        figure: Figure::None,
        source,
    }
}

const fn pct(tenths: i64) -> Figure {
    Figure::RatePct(Decimal::from_parts(tenths as u32, 0, 0, false, 1))
}

/// Every rule, by subject and date.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        from: Some(RATES_FROM),
        to: Some(RATES_2018_TO),
        figure: pct(150),
        ..rule(RuleId::ShortRate, "15 %, sales to 22-Jul-2024", "111A", OLD_ACT)
    },
    Rule {
        from: Some(RATES_2024_FROM),
        to: Some(OLD_ACT_TO),
        figure: pct(200),
        ..rule(RuleId::ShortRate, "20 %, sales from 23-Jul-2024", "111A", ACT_2024)
    },
    Rule {
        from: Some(NEW_ACT_FROM),
        figure: pct(200),
        ..rule(RuleId::ShortRate, "20 %, sales from 1-Apr-2026", "196", NEW_ACT)
    },
    Rule {
        from: Some(RATES_FROM),
        to: Some(RATES_2018_TO),
        figure: pct(100),
        ..rule(RuleId::LongRate, "10 %, sales to 22-Jul-2024", "112A", ACT_2018)
    },
    Rule {
        from: Some(RATES_2024_FROM),
        to: Some(OLD_ACT_TO),
        figure: pct(125),
        ..rule(RuleId::LongRate, "12.5 %, sales from 23-Jul-2024", "112A", ACT_2024)
    },
    Rule {
        from: Some(NEW_ACT_FROM),
        figure: pct(125),
        ..rule(RuleId::LongRate, "12.5 %, sales from 1-Apr-2026", "198", NEW_ACT)
    },
    Rule {
        from: Some(RATES_FROM),
        to: Some(Date::constant(2024, 3, 31)),
        figure: Figure::Rupees(100_000),
        ..rule(
            RuleId::Exemption,
            "Rs 1,00,000 of long gains a year and person, to FY 2023-24",
            "112A",
            ACT_2018,
        )
    },
    Rule {
        from: Some(Date::constant(2024, 4, 1)),
        to: Some(OLD_ACT_TO),
        figure: Figure::Rupees(125_000),
        ..rule(
            RuleId::Exemption,
            "Rs 1,25,000 of long gains a year and person, on both rates, from FY 2024-25",
            "112A",
            ACT_2024,
        )
    },
    Rule {
        from: Some(NEW_ACT_FROM),
        figure: Figure::Rupees(125_000),
        ..rule(RuleId::Exemption, "Rs 1,25,000 of long gains a year and person", "198", NEW_ACT)
    },
    Rule {
        to: Some(OLD_ACT_TO),
        ..rule(
            RuleId::Term,
            "long if sold after the anniversary of the purchase, by trade dates",
            "2(42A)",
            "Income-tax Act 1961; CBDT circular 704",
        )
    },
    Rule {
        from: Some(NEW_ACT_FROM),
        section: None,
        ..rule(
            RuleId::Term,
            "long if sold after the anniversary of the purchase, by trade dates",
            "",
            NEW_ACT,
        )
    },
    Rule {
        to: Some(OLD_ACT_TO),
        ..rule(
            RuleId::Fifo,
            "what entered an account first is sold first",
            "45(2A)",
            "Income-tax Act 1961; CBDT circular 768",
        )
    },
    Rule {
        from: Some(NEW_ACT_FROM),
        ..rule(RuleId::Fifo, "what entered an account first is sold first", "67(7)", NEW_ACT)
    },
    Rule {
        from: Some(RATES_FROM),
        to: Some(OLD_ACT_TO),
        ..rule(
            RuleId::Grandfathering,
            "acquired to 31-Jan-2018: the higher of cost and the lower of FMV and sale",
            "55(2)(ac)",
            ACT_2018,
        )
    },
    Rule {
        from: Some(NEW_ACT_FROM),
        ..rule(
            RuleId::Grandfathering,
            "acquired to 31-Jan-2018: the higher of cost and the lower of FMV and sale",
            "90",
            NEW_ACT,
        )
    },
    Rule {
        from: Some(Date::constant(2019, 7, 5)),
        to: Some(Date::constant(2024, 9, 30)),
        section: None,
        figure: Figure::Buyback(BuybackRule::Exempt),
        ..rule(
            RuleId::Buyback,
            "exempt, 5-Jul-2019 to 30-Sep-2024",
            "",
            "Finance (No. 2) Act 2019",
        )
    },
    Rule {
        from: Some(Date::constant(2024, 10, 1)),
        to: Some(OLD_ACT_TO),
        figure: Figure::Buyback(BuybackRule::DeemedDividend),
        ..rule(
            RuleId::Buyback,
            "all of it deemed dividend, the cost a capital loss, 1-Oct-2024 to 31-Mar-2026",
            "46A",
            ACT_2024,
        )
    },
    Rule {
        from: Some(NEW_ACT_FROM),
        figure: Figure::Buyback(BuybackRule::CapitalGain),
        ..rule(RuleId::Buyback, "a capital gain, from 1-Apr-2026", "69", "Finance Act 2026")
    },
    Rule {
        to: Some(OLD_ACT_TO),
        ..rule(
            RuleId::Speculation,
            "bought and sold in a day is speculation; its loss meets speculation alone (s. 73)",
            "43(5)",
            OLD_ACT,
        )
    },
    Rule {
        from: Some(NEW_ACT_FROM),
        section: None,
        ..rule(
            RuleId::Speculation,
            "bought and sold in a day is speculation; its loss meets speculation alone (s. 113)",
            "",
            NEW_ACT,
        )
    },
    Rule {
        from: Some(Date::constant(2022, 4, 1)),
        to: Some(OLD_ACT_TO),
        ..rule(
            RuleId::BonusStripping,
            "a loss beside a bonus that is kept is ignored, and the security left out",
            "94(8)",
            "Finance Act 2022",
        )
    },
    Rule {
        from: Some(NEW_ACT_FROM),
        section: None,
        ..rule(
            RuleId::BonusStripping,
            "a loss beside a bonus that is kept is ignored, and the security left out",
            "",
            NEW_ACT,
        )
    },
];

impl Rule {
    /// The rule of sales on a date; `None` if none is known.
    pub(crate) fn on(id: RuleId, date: Date) -> Option<&'static Self> {
        RULES.iter().find(|rule| {
            rule.id == id
                && rule.from.is_none_or(|from| from <= date)
                && rule.to.is_none_or(|to| date <= to)
                && date <= rule.known_until
        })
    }

    pub(crate) fn rate_pct(&self) -> Option<Decimal> {
        match self.figure {
            Figure::RatePct(rate) => Some(rate),
            _ => None,
        }
    }
}

/// The first day on which a sale of what was acquired on a date is long: the day after the
/// anniversary, which of 29 February is the 28th.
pub(crate) fn long_from(acquired_on: Date) -> Date {
    acquired_on.saturating_add(1.year()).saturating_add(1.day())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::testing::{date, decimal};

    #[test]
    fn each_rate_begins_and_ends_on_its_day() {
        let known = |id: RuleId, day: &str| {
            Rule::on(id, date(day)).map(|rule| (rule.section, rule.rate_pct()))
        };
        let rate = |section: &'static str, rate: &str| Some((Some(section), Some(decimal(rate))));
        for (day, short, long) in [
            ("2018-03-31", None, None),
            ("2018-04-01", rate("111A", "15"), rate("112A", "10")),
            ("2024-07-22", rate("111A", "15"), rate("112A", "10")),
            ("2024-07-23", rate("111A", "20"), rate("112A", "12.5")),
            ("2026-03-31", rate("111A", "20"), rate("112A", "12.5")),
            ("2026-04-01", rate("196", "20"), rate("198", "12.5")),
            ("2027-03-31", rate("196", "20"), rate("198", "12.5")),
            ("2027-04-01", None, None),
        ] {
            assert_eq!(known(RuleId::ShortRate, day), short, "{day}");
            assert_eq!(known(RuleId::LongRate, day), long, "{day}");
        }
    }

    #[test]
    fn the_other_rules_begin_and_end_on_their_days() {
        let figure = |id: RuleId, day: &str| Rule::on(id, date(day)).map(|rule| rule.figure);
        for (day, rupees) in [
            ("2018-03-31", None),
            ("2024-03-31", Some(100_000)),
            ("2024-04-01", Some(125_000)),
            ("2026-04-01", Some(125_000)),
            ("2027-04-01", None),
        ] {
            assert_eq!(figure(RuleId::Exemption, day), rupees.map(Figure::Rupees), "{day}");
        }
        for (day, rule) in [
            ("2019-07-04", None),
            ("2019-07-05", Some(BuybackRule::Exempt)),
            ("2024-09-30", Some(BuybackRule::Exempt)),
            ("2024-10-01", Some(BuybackRule::DeemedDividend)),
            ("2026-03-31", Some(BuybackRule::DeemedDividend)),
            ("2026-04-01", Some(BuybackRule::CapitalGain)),
            ("2027-04-01", None),
        ] {
            assert_eq!(figure(RuleId::Buyback, day), rule.map(Figure::Buyback), "{day}");
        }
        let section = |id: RuleId, day: &str| Rule::on(id, date(day)).unwrap().section;
        for (id, old, new) in [
            (RuleId::Fifo, Some("45(2A)"), Some("67(7)")),
            (RuleId::Grandfathering, Some("55(2)(ac)"), Some("90")),
            (RuleId::Buyback, Some("46A"), Some("69")),
            (RuleId::Speculation, Some("43(5)"), None),
            (RuleId::BonusStripping, Some("94(8)"), None),
            (RuleId::Term, Some("2(42A)"), None),
        ] {
            assert_eq!(section(id, "2026-03-31"), old, "{id}");
            assert_eq!(section(id, "2026-04-01"), new, "{id}");
            assert_eq!(Rule::on(id, date("2027-04-01")), None, "{id}");
        }
    }

    #[test]
    fn no_two_rules_are_of_one_day_and_each_says_its_source() {
        let mut day = date("2017-01-01");
        while day < date("2028-01-01") {
            for id in RuleId::ALL {
                let of = RULES.iter().filter(|rule| {
                    rule.id == id
                        && rule.from.is_none_or(|from| from <= day)
                        && rule.to.is_none_or(|to| day <= to)
                });
                assert!(of.count() <= 1, "{id} on {day}");
            }
            day = day.tomorrow().unwrap();
        }
        assert!(
            RULES
                .iter()
                .all(|rule| !rule.says.is_empty() && !rule.source.is_empty())
        );
        assert!(RULES.iter().all(|rule| rule.section != Some("")));
    }

    #[test]
    fn a_sale_on_the_anniversary_is_short() {
        for (acquired, long) in [
            ("2023-05-11", "2024-05-12"),
            ("2024-02-28", "2025-03-01"),
            ("2024-02-29", "2025-03-01"),
            ("2023-02-28", "2024-02-29"),
            ("2023-12-31", "2025-01-01"),
        ] {
            assert_eq!(long_from(date(acquired)), date(long), "{acquired}");
        }
    }
}
