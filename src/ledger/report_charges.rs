//! The charges of a sale, from the broker's report where no trade states them.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use crate::ledger::amount::Amount;
use crate::ledger::file_format::FileFormat;
use crate::ledger::lots::Ledger;
use crate::ledger::report_line::ReportLine;
use crate::ledger::reported::{AccountReport, Group, reported};

/// What the lines of a group state together.
#[derive(Default)]
struct Stated {
    quantity: Decimal,
    charges: Amount,
}

/// Gives sales without charges those of broker A's report, whose lines are of the same shares. A
/// report that states nought of all of them states none.
pub(crate) fn add_charges(ledger: &mut Ledger, reports: &[AccountReport]) {
    let mut stated: BTreeMap<Group, Stated> = BTreeMap::new();
    for of in reported(ledger, reports) {
        let Some(group) = of
            .group()
            .filter(|_| of.format == FileFormat::ZerodhaTaxReport)
        else {
            continue;
        };
        let of_group = stated.entry(group).or_default();
        of_group.quantity += of.line.quantity;
        of_group.charges = of_group.charges.plus(&deductible(of.line));
    }
    stated.retain(|_, of| !of.charges.is_zero());
    if stated.is_empty() {
        return;
    }
    let mut taken: BTreeMap<Group, Decimal> = BTreeMap::new();
    for sale in &ledger.sales {
        let position = &ledger.positions[sale.position as usize];
        for part in &sale.parts {
            *taken
                .entry(Group::of_part(position, sale, part))
                .or_default() += part.lot.quantity;
        }
    }
    stated.retain(|group, of| taken.get(group) == Some(&of.quantity));
    for sale in ledger
        .sales
        .iter_mut()
        .filter(|sale| sale.charges.is_none())
    {
        let position = &ledger.positions[sale.position as usize];
        let of_parts: Vec<Option<Amount>> = sale
            .parts
            .iter()
            .map(|part| {
                let of = stated.get(&Group::of_part(position, sale, part))?;
                Some(of.charges.part(part.lot.quantity, of.quantity))
            })
            .collect();
        sale.charges = of_parts
            .iter()
            .flatten()
            .cloned()
            .reduce(|sum, charges| sum.plus(&charges));
        for (part, charges) in sale.parts.iter_mut().zip(of_parts) {
            part.charges = charges;
        }
    }
}

/// Without securities transaction tax, which is never deducted.
fn deductible(line: &ReportLine) -> Amount {
    let charges = line.charges;
    let stated = [charges.brokerage, charges.stamp_duty, charges.other];
    stated
        .into_iter()
        .flatten()
        .fold(Amount::ZERO, |sum, one| sum.plus(&Amount::from(one)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::gains::ChargesKnown;
    use crate::ledger::story::{Story, known, report, rupees, story};

    const ZERODHA: FileFormat = FileFormat::ZerodhaTaxReport;

    fn charged(trades: &[&str], format: FileFormat, lines: &[&str]) -> [String; 4] {
        let reports = vec![report("a", format, lines)];
        let gains = Story {
            reports,
            ..story(trades, &[])
        }
        .gains("2024-25", "self");
        let sale = &gains.sales[0];
        let charges = match gains.charges {
            ChargesKnown::All => "all",
            ChargesKnown::Some => "some",
            ChargesKnown::None => "none",
        };
        [
            known(sale.charges.as_ref()),
            known(sale.gain.as_ref()),
            rupees(&gains.totals.gains.long),
            charges.into(),
        ]
    }

    #[test]
    fn a_sale_without_charges_has_those_of_broker_a_s_report() {
        let trades = [
            "a 2023-03-01 buy 10 X 50 INE0EXA01011 #1",
            "a 2024-12-17 sell 10 X 150 INE0EXA01011 #2",
        ];
        let own = [
            "a 2023-03-01 buy 10 X 50 INE0EXA01011 #1",
            "a 2024-12-17 sell 10 X 150 INE0EXA01011 #2 brokerage=7",
        ];
        let line = "long X INE0EXA01011 2023-03-01 2024-12-17 10 500 1500";
        let with = |more: &str| format!("{line} {more}");
        let b = FileFormat::IciciCapitalGains;
        for (trades, format, line, expected) in [
            (&trades, ZERODHA, with(""), ["-", "1000.00", "1000.00", "none"]),
            (
                &trades,
                ZERODHA,
                with("brokerage=0 other=0"),
                ["-", "1000.00", "1000.00", "none"],
            ),
            (&trades, ZERODHA, with("brokerage=20"), ["20.00", "980.00", "980.00", "all"]),
            (
                &trades,
                ZERODHA,
                with("brokerage=20 other=1.23 stamp=0.1 stt=9"),
                ["21.33", "978.67", "978.67", "all"],
            ),
            (&trades, ZERODHA, with("stt=9"), ["-", "1000.00", "1000.00", "none"]),
            (&own, ZERODHA, with("brokerage=20"), ["7.00", "993.00", "993.00", "all"]),
            (&trades, b, with("other=20"), ["-", "1000.00", "1000.00", "none"]),
            (
                &trades,
                ZERODHA,
                "long X INE0EXA01011 2023-03-01 2024-12-17 9 450 1350 brokerage=20".into(),
                ["-", "1000.00", "1000.00", "none"],
            ),
            (
                &trades,
                ZERODHA,
                "long X INE0EXA01011 2023-03-02 2024-12-17 10 500 1500 brokerage=20".into(),
                ["-", "1000.00", "1000.00", "none"],
            ),
            (
                &trades,
                ZERODHA,
                "intraday X INE0EXA01011 2023-03-01 2024-12-17 10 500 1500 brokerage=20".into(),
                ["-", "1000.00", "1000.00", "none"],
            ),
        ] {
            assert_eq!(charged(trades, format, &[&line]), expected, "{line}");
        }
    }

    #[test]
    fn charges_of_a_line_are_divided_among_its_sales_by_quantity() {
        let trades = [
            "a 2023-03-01 buy 30 X 50 INE0EXA01011 #1",
            "a 2024-12-17 sell 10 X 150 INE0EXA01011 #2",
            "a 2024-12-17 sell 20 X 151 INE0EXA01011 #3",
        ];
        let lines = ["long X INE0EXA01011 2023-03-01 2024-12-17 30 1500 4520 brokerage=20"];
        let reports = vec![report("a", ZERODHA, &lines)];
        let gains = Story {
            reports,
            ..story(&trades, &[])
        }
        .gains("2024-25", "self");
        let charges: Vec<String> = gains
            .sales
            .iter()
            .map(|sale| known(sale.charges.as_ref()))
            .collect();
        assert_eq!(charges, ["6.67", "13.33"]);
        assert_eq!(rupees(&gains.totals.gains.long), "3000.00");
    }
}
