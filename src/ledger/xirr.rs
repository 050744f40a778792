//! The internal rate of return of dated flows, on a year of 365 days.

use std::collections::BTreeMap;

use jiff::civil::Date;

use crate::base::words::words;

/// The rates among which a second root makes the first one meaningless.
const RATE_MIN: f64 = -0.99;
const RATE_MAX: f64 = 100.0;
/// A single root may lie outside of them: a gain of a day makes a large rate of a year.
const RATE_LEAST: f64 = -0.999_999;
const RATE_MOST: f64 = 1e12;
/// Rates that are tried, evenly by the logarithm of what a rupee becomes.
const TRIED: u32 = 1_000;
const BISECTIONS: u32 = 200;
const PLACES: f64 = 1e10;

words! {
    /// Why there is no rate.
    pub(crate) enum NoRate {
        NoFlows = "no_flows",
        /// All flows are of one date.
        OneDate = "one_date",
        /// Money only went in, or only came out.
        OneSign = "one_sign",
        SeveralRoots = "several_roots",
        NoRoot = "no_root",
        /// What is held came from a merger or demerger, or went into one.
        CostCarried = "cost_carried",
    }
}

/// A rate, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rate {
    /// To ten places: 0.1 is ten percent a year.
    pub rate: Option<f64>,
    pub reason: Option<NoRate>,
    /// The rates of which none is the return.
    pub roots: Option<Vec<f64>>,
}

impl Rate {
    pub(crate) fn none(reason: NoRate) -> Self {
        Self {
            rate: None,
            reason: Some(reason),
            roots: None,
        }
    }

    fn of(rate: f64) -> Self {
        Self {
            rate: Some(rate),
            reason: None,
            roots: None,
        }
    }
}

/// Flows by date: what was paid is negative, what was received and what is held positive.
pub(crate) type Flows = BTreeMap<Date, f64>;

/// The rate at which the flows are worth nothing together.
pub(crate) fn xirr(flows: &Flows) -> Rate {
    let Some((first, _)) = flows.first_key_value() else {
        return Rate::none(NoRate::NoFlows);
    };
    if flows.len() == 1 {
        return Rate::none(NoRate::OneDate);
    }
    let dated = dated(flows, *first);
    let paid = dated.iter().any(|(_, flow)| *flow < 0.0);
    let received = dated.iter().any(|(_, flow)| *flow > 0.0);
    if !(paid && received) {
        return Rate::none(NoRate::OneSign);
    }
    let usual = if has_one_root(&dated) {
        between(&dated, RATE_MIN, RATE_MAX).into_iter().collect()
    } else {
        roots(&dated)
    };
    match usual.as_slice() {
        [root] => Rate::of(*root),
        [] => {
            let outside = between(&dated, RATE_LEAST, RATE_MIN)
                .or_else(|| between(&dated, RATE_MAX, RATE_MOST));
            outside.map_or(Rate::none(NoRate::NoRoot), Rate::of)
        }
        several => Rate {
            roots: Some(several.to_vec()),
            ..Rate::none(NoRate::SeveralRoots)
        },
    }
}

/// Flows other than 0 with the days since the one before.
type Dated = Vec<(i32, f64)>;

fn dated(flows: &Flows, first: Date) -> Dated {
    let mut before = first;
    let mut dated = Dated::with_capacity(flows.len());
    for (date, flow) in flows.iter().filter(|(_, flow)| **flow != 0.0) {
        dated.push(((*date - before).get_days(), *flow));
        before = *date;
    }
    dated
}

/// Whether no second root can be, by the rule of signs of Descartes: of the sums from the first
/// flow on for rates above 0, of those from the last one backwards for rates below it.
fn has_one_root(flows: &[(i32, f64)]) -> bool {
    let forwards = sign_changes(flows.iter().map(|(_, flow)| *flow));
    let backwards = sign_changes(flows.iter().rev().map(|(_, flow)| *flow));
    let total: f64 = flows.iter().map(|(_, flow)| flow).sum();
    total != 0.0 && forwards + backwards == 1
}

/// How often the sums of flows change their sign.
fn sign_changes(flows: impl Iterator<Item = f64>) -> usize {
    let mut sum = 0.0;
    let mut was_negative: Option<bool> = None;
    let mut changes = 0;
    for flow in flows {
        sum += flow;
        if sum == 0.0 {
            continue;
        }
        let is_negative = sum < 0.0;
        changes += usize::from(was_negative.is_some_and(|was| was != is_negative));
        was_negative = Some(is_negative);
    }
    changes
}

/// What the flows are worth together on the first date. From the last one backwards, each step
/// takes the days between two flows off.
fn worth(flows: &[(i32, f64)], rate: f64) -> f64 {
    let of_a_day = (-rate.ln_1p() / 365.0).exp();
    flows
        .iter()
        .rev()
        .fold(0.0, |later, (days, flow)| (later + flow) * of_a_day.powi(*days))
}

fn roots(flows: &[(i32, f64)]) -> Vec<f64> {
    let from = RATE_MIN.ln_1p();
    let step = (RATE_MAX.ln_1p() - from) / f64::from(TRIED);
    let rate = |at: u32| (from + step * f64::from(at)).exp_m1();
    let mut roots = Vec::new();
    for at in 0..TRIED {
        roots.extend(between(flows, rate(at), rate(at + 1)));
    }
    roots.dedup();
    roots
}

/// The root between two rates, if the flows are worth something at one and cost something at the
/// other.
fn between(flows: &[(i32, f64)], low: f64, high: f64) -> Option<f64> {
    let at_low = worth(flows, low);
    let at_high = worth(flows, high);
    if at_low == 0.0 {
        return Some(rounded(low));
    }
    if !at_low.is_finite() || !at_high.is_finite() || (at_low < 0.0) == (at_high < 0.0) {
        return None;
    }
    let mut low = low.ln_1p();
    let mut high = high.ln_1p();
    for _ in 0..BISECTIONS {
        let middle = low + (high - low) / 2.0;
        if middle == low || middle == high {
            break;
        }
        if (worth(flows, middle.exp_m1()) < 0.0) == (at_low < 0.0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(rounded((low + (high - low) / 2.0).exp_m1()))
}

fn rounded(rate: f64) -> f64 {
    let rounded = (rate * PLACES).round() / PLACES;
    // Without the sign of a zero.
    rounded + 0.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ledger::testing::date;

    fn of(flows: &[(&str, f64)]) -> Rate {
        let mut summed = Flows::new();
        for (day, flow) in flows {
            *summed.entry(date(day)).or_default() += flow;
        }
        xirr(&summed)
    }

    #[test]
    fn known_flows_have_their_known_rates() {
        let ten = of(&[("2023-01-01", -10_000.0), ("2024-01-01", 11_000.0)]);
        assert_eq!(ten.rate, Some(0.1));
        let spreadsheet = of(&[
            ("2008-01-01", -10_000.0),
            ("2008-03-01", 2_750.0),
            ("2008-10-30", 4_250.0),
            ("2009-02-15", 3_250.0),
            ("2009-04-01", 2_750.0),
        ]);
        assert_eq!(spreadsheet.rate, Some(0.373_362_533_5));
        let sold = of(&[
            ("2024-01-15", -5_000.0),
            ("2024-04-10", -3_000.0),
            ("2024-08-20", 1_500.0),
            ("2025-01-15", 7_200.0),
        ]);
        assert_eq!(sold.rate, Some(0.104_499_636_5));
        let lost = of(&[("2023-01-01", -100.0), ("2024-01-01", 50.0)]);
        assert_eq!(lost.rate, Some(-0.5));
        let even = of(&[("2023-01-01", -100.0), ("2024-01-01", 100.0)]);
        assert_eq!(even.rate, Some(0.0));
        // Of one day they are one flow.
        let summed = of(&[
            ("2023-01-01", -60.0),
            ("2023-01-01", -40.0),
            ("2024-01-01", 110.0),
        ]);
        assert_eq!(summed.rate, Some(0.1));
    }

    #[test]
    fn flows_that_turn_often_have_a_rate_if_it_is_the_only_one() {
        let rate = of(&[
            ("2023-01-01", -100.0),
            ("2023-07-01", 60.0),
            ("2023-10-01", -50.0),
            ("2024-01-01", 100.0),
        ]);
        assert!(rate.rate.is_some() && rate.roots.is_none(), "{rate:?}");
        let several = of(&[
            ("2023-01-01", -100.0),
            ("2024-01-01", 230.0),
            ("2024-12-31", -132.0),
        ]);
        assert_eq!(several.roots, Some(vec![0.1, 0.2]));
        assert_eq!((several.rate, several.reason), (None, Some(NoRate::SeveralRoots)));
    }

    #[test]
    fn without_a_rate_its_reason_stands() {
        for (flows, reason) in [
            (&[][..], NoRate::NoFlows),
            (&[("2023-01-01", -100.0), ("2023-01-01", 110.0)], NoRate::OneDate),
            (&[("2023-01-01", -100.0), ("2024-01-01", -1.0)], NoRate::OneSign),
            (&[("2023-01-01", 100.0), ("2024-01-01", 0.0)], NoRate::OneSign),
            (
                &[
                    ("2023-01-01", 100.0),
                    ("2024-01-01", -100.0),
                    ("2025-01-01", 100.0),
                ],
                NoRate::NoRoot,
            ),
        ] {
            assert_eq!(of(flows), Rate::none(reason));
        }
        // A single root is given, however large.
        let fast = of(&[("2023-01-01", -100.0), ("2023-01-02", 102.0)]);
        assert!(fast.rate.is_some_and(|rate| (rate - 1376.408).abs() < 0.01), "{fast:?}");
    }

    proptest! {
        #[test]
        fn where_the_signs_allow_one_root_trying_finds_no_other(
            all in prop::collection::vec((1..900_i32, -1000..1000_i32), 2..12),
        ) {
            let flows: Vec<(i32, f64)> =
                all.iter().map(|(days, flow)| (*days, f64::from(*flow))).collect();
            let found = roots(&flows);
            if has_one_root(&flows) {
                prop_assert!(found.len() <= 1, "{:?}", found);
                prop_assert_eq!(between(&flows, RATE_MIN, RATE_MAX), found.first().copied());
            }
        }

        #[test]
        fn at_the_rate_the_flows_are_worth_nothing(
            paid in prop::collection::vec((0..3_000_u32, 1..1_000_000_u32), 1..30),
            received in prop::collection::vec((0..3_000_u32, 1..1_000_000_u32), 1..30),
        ) {
            let mut flows = Flows::new();
            let day = |days: u32| {
                date("2015-01-01").saturating_add(jiff::Span::new().days(days))
            };
            for (days, rupees) in &paid {
                *flows.entry(day(*days)).or_default() -= f64::from(*rupees) / 100.0;
            }
            for (days, rupees) in &received {
                *flows.entry(day(*days)).or_default() += f64::from(*rupees) / 100.0;
            }
            let found = xirr(&flows);
            let first = *flows.first_key_value().unwrap().0;
            // Each flow by its own power, and not from one to the next.
            let worth = |rate: f64| {
                flows.iter().fold(0.0, |sum, (day, flow)| {
                    let years = f64::from((*day - first).get_days()) / 365.0;
                    sum + flow / (1.0 + rate).powf(years)
                })
            };
            // At a rate near -1 the last of ten places is worth rupees.
            let usual = |rate: &f64| (-0.5..10.0).contains(rate);
            let rates = found.rate.iter().chain(found.roots.iter().flatten());
            for rate in rates.filter(|rate| usual(rate)) {
                let residual = worth(*rate).abs();
                prop_assert!(residual <= 0.01, "{residual} at {rate}");
            }
        }
    }
}
