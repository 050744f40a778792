//! Schedule 112A of the income tax return as a worksheet: a row for each proved long part of a
//! year, in the columns of the form.
//!
//! A worksheet, and no upload: no template of the department was checked.

use std::collections::BTreeSet;

use jiff::civil::Date;

use crate::ledger::amount::{Amount, Sum};
use crate::ledger::csv_cell::csv_cell;
use crate::ledger::financial_year::FinancialYear;
use crate::ledger::gains::{GainClass, Gains, PartGain, SaleGain};
use crate::ledger::rules::GRANDFATHERED_UNTIL;
use crate::ledger::securities::Security;

/// Years of which the form is known. That of 2026-27 is one under the Act of 2025.
const YEARS_KNOWN: [&str; 6] = [
    "2020-21", "2021-22", "2022-23", "2023-24", "2024-25", "2025-26",
];
/// The year in which the rates changed, whose form has a column for the date of sale.
const YEAR_OF_TWO_RATES: &str = "2024-25";
/// From then on purchases after January 2018 are one row.
const CONSOLIDATED_FROM: Date = Date::constant(2025, 4, 1);
/// The last day of the rates of before.
const OLD_RATES_UNTIL: Date = Date::constant(2024, 7, 22);

const ACQUIRED: &str = "Share/Unit acquired(1a)";
const TRANSFERRED: &str = "Share/Unit Transferred(1b)";
const OTHER_COLUMNS: [&str; 13] = [
    "ISIN Code(2)",
    "Name of the Share/Unit(3)",
    "No. of Shares/Units(4)",
    "Sale-price per Share/Unit(5)",
    "Full Value of Consideration(Total Sale Value)(6) = 4 * 5",
    "Cost of acquisition without indexation(7)",
    "Cost of acquisition(8)",
    "If the long term capital asset was acquired before 01.02.2018(9)",
    "Fair Market Value per share/unit as on 31st January 2018(10)",
    "Total Fair Market Value of capital asset as per section 55(2)(ac)(11) = 4 * 10",
    "Expenditure wholly and exclusively in connection with transfer(12)",
    "Total deductions(13) = 7 + 12",
    "Balance(14) = 6 - 13",
];

/// No form of the year is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotNotified;

/// The worksheet of a year.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Worksheet {
    pub csv: String,
    /// Securities of which something is not in it. `Gains::left_out` names them.
    pub left_out: usize,
}

/// The worksheet of a person's year. What reports alone say is to be among what is left out.
pub(crate) fn worksheet(gains: &Gains) -> Result<Worksheet, NotNotified> {
    let year = gains.fy.to_string();
    if !YEARS_KNOWN.contains(&year.as_str()) {
        return Err(NotNotified);
    }
    let has_transferred = year == YEAR_OF_TWO_RATES;
    let is_consolidated = gains.fy >= FinancialYear::of(CONSOLIDATED_FROM);
    let mut columns = vec![ACQUIRED];
    columns.extend(has_transferred.then_some(TRANSFERRED));
    columns.extend(OTHER_COLUMNS);
    let mut csv = columns.join(",") + "\n";
    let mut later = Values::default();
    for (sale, part) in long_parts(gains) {
        if is_consolidated && part.acquired_on > GRANDFATHERED_UNTIL {
            later.add(part);
            continue;
        }
        write(&mut csv, &cells(sale, part, has_transferred));
    }
    if let Some(cells) = later.cells() {
        write(&mut csv, &cells);
    }
    Ok(Worksheet {
        csv,
        left_out: left_out(gains),
    })
}

/// Proved parts, in the order of time.
fn long_parts(gains: &Gains) -> impl Iterator<Item = (&SaleGain, &PartGain)> {
    let parts = gains
        .sales
        .iter()
        .flat_map(|sale| sale.parts.iter().map(move |part| (sale, part)));
    parts.filter(|(_, part)| part.class == GainClass::Long && part.reasons.is_empty())
}

/// How many securities have something that is left out. A contract is none.
fn left_out(gains: &Gains) -> usize {
    let of = gains.left_out.iter().map(|row| &row.security);
    of.filter(|of| !matches!(of, Security::Contract(_)))
        .collect::<BTreeSet<_>>()
        .len()
}

/// The amounts of a part that rows are made of.
#[derive(Default)]
struct Values {
    is_any: bool,
    proceeds: Sum,
    considered: Sum,
    cost: Sum,
    charges: Sum,
    gain: Sum,
}

impl Values {
    fn of(part: &PartGain) -> Self {
        let mut values = Self::default();
        values.add(part);
        values
    }

    fn add(&mut self, part: &PartGain) {
        self.is_any = true;
        for (sum, amount) in [
            (&mut self.proceeds, &part.proceeds),
            (&mut self.considered, &part.cost_considered),
            (&mut self.cost, &part.cost),
            (&mut self.charges, &part.charges),
            (&mut self.gain, &part.gain),
        ] {
            if let Some(amount) = amount {
                sum.add(amount);
            }
        }
    }

    /// Charges, deductions and balance.
    fn last_cells(&self) -> [String; 3] {
        let charges = self.charges.total();
        let deductions = self.considered.total().plus(&charges);
        [
            money(&charges),
            money(&deductions),
            money(&self.gain.total()),
        ]
    }

    /// The one row of all purchases after January 2018.
    fn cells(&self) -> Option<Vec<String>> {
        if !self.is_any {
            return None;
        }
        let mut cells: Vec<String> = ["AE", "INNOTREQUIRD", "CONSOLIDATED", "", ""]
            .map(str::to_owned)
            .into();
        let sums = [&self.proceeds, &self.considered, &self.cost];
        cells.extend(sums.map(|sum| money(&sum.total())));
        cells.extend(["0.00", "", "0.00"].map(str::to_owned));
        cells.extend(self.last_cells());
        Some(cells)
    }
}

/// The row of a part.
fn cells(sale: &SaleGain, part: &PartGain, has_transferred: bool) -> Vec<String> {
    let values = Values::of(part);
    let proceeds = values.proceeds.total();
    let is_old = part.acquired_on <= GRANDFATHERED_UNTIL;
    let value = part.fmv.clone().filter(|_| is_old).unwrap_or_default();
    let of_one = |all: &Amount| money(&all.over(&part.quantity.into()));
    let mut cells = vec![before(is_old)];
    cells.extend(has_transferred.then(|| before(sale.sold <= OLD_RATES_UNTIL)));
    cells.push(
        sale.isin
            .map(|isin| isin.as_str().to_owned())
            .unwrap_or_default(),
    );
    cells.push(csv_cell(sale.symbol.as_deref().unwrap_or_default()).into_owned());
    cells.push(part.quantity.normalize().to_string());
    cells.push(of_one(&proceeds));
    cells.push(money(&proceeds));
    cells.push(money(&values.considered.total()));
    cells.push(money(&values.cost.total()));
    cells.push(money(&proceeds.min(value.clone())));
    cells.push(of_one(&value));
    cells.push(money(&value));
    cells.extend(values.last_cells());
    cells
}

/// Before or after the date that a column is of.
fn before(is_before: bool) -> String {
    if is_before { "BE" } else { "AE" }.to_owned()
}

/// Two places, and none for what is beyond any amount of money.
fn money(amount: &Amount) -> String {
    amount
        .rounded()
        .map(|rupees| rupees.to_string())
        .unwrap_or_default()
}

fn write(csv: &mut String, cells: &[String]) {
    csv.push_str(&cells.join(","));
    csv.push('\n');
}

#[cfg(test)]
#[path = "worksheet_tests.rs"]
mod tests;
