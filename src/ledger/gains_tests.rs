//! A year's gains: the samples' story to the paisa, both sides of each date, what cuts a part.

use proptest::prelude::*;

use super::*;
use crate::ledger::story::{SAMPLE, Story, known, rupees, story};
use crate::ledger::testing::{account, date, decimal};

const X: &str = "INE0EXA01011";

/// `sold class acquired quantity proceeds cost considered gain section rate reasons`.
fn shown(gains: &Gains) -> Vec<String> {
    let of = gains.sales.iter().flat_map(|sale| {
        sale.parts.iter().map(|part| {
            let figures = [
                &part.proceeds,
                &part.cost,
                &part.cost_considered,
                &part.gain,
            ];
            let figures = figures.map(|amount| known(amount.as_ref())).join(" ");
            let rate = part
                .rate_pct
                .map_or("-".into(), |rate| rate.normalize().to_string());
            let section = part.section.unwrap_or("-");
            let reasons: Vec<&str> = part.reasons.iter().map(|reason| reason.as_str()).collect();
            let quantity = part.quantity.normalize();
            let dates = format!("{} {} {}", sale.sold, part.class, part.acquired_on);
            format!("{dates} {quantity} {figures} {section} {rate} {}", reasons.join(","))
        })
    });
    of.collect()
}

fn left_out(gains: &Gains) -> Vec<String> {
    let of = gains.left_out.iter().map(|row| {
        let quantity = row
            .quantity
            .map_or("-".into(), |quantity| quantity.normalize().to_string());
        let symbol = row.symbol.as_deref().unwrap_or("-");
        format!("{symbol} {} {quantity} {}", row.reason, known(row.proceeds.as_ref()))
    });
    of.collect()
}

#[test]
fn the_samples_year_is_what_the_brokers_report_says() {
    let gains = story(SAMPLE, &[]).gains("2024-25", "self");
    assert_eq!(
        shown(&gains),
        [
            "2024-06-13 long 2023-05-11 9 25894.35 20802.60 20802.60 5091.75 112A 10 ",
            "2024-08-21 long 2023-05-11 3 9037.80 6934.20 6934.20 2103.60 112A 12.5 ",
            "2024-08-21 long 2023-08-02 6 18075.60 14992.50 14992.50 3083.10 112A 12.5 ",
            "2024-09-03 intraday 2024-09-03 15 28527.75 28398.00 28398.00 129.75 43(5) - ",
            "2024-09-13 fno 2024-09-11 25 4030.00 2960.00 2960.00 1070.00 - - ",
            "2024-09-26 fno 2024-09-11 25 2203.75 - - - - - fno_expired",
        ]
    );
    let totals = &gains.totals;
    assert_eq!(rupees(&totals.gains.long), "10278.45");
    assert_eq!(rupees(&totals.gains.short), "0.00");
    assert_eq!(rupees(&totals.gains.intraday), "129.75");
    assert_eq!(rupees(&totals.gains.fno), "1070.00");
    assert_eq!(rupees(&totals.fno_turnover), "1070.00");
    let sale = &gains.sales[1];
    let figures = [&sale.proceeds, &sale.cost, &sale.gain].map(|amount| known(amount.as_ref()));
    assert_eq!(figures, ["27113.40", "21926.70", "5186.70"]);
    assert_eq!((sale.charges.as_ref(), gains.charges), (None, ChargesKnown::None));
}

#[test]
fn the_samples_year_is_divided_by_rate_and_period_and_names_what_is_left_out() {
    let gains = story(SAMPLE, &[]).gains("2024-25", "self");
    let totals = &gains.totals;
    let windows: Vec<String> = totals
        .windows
        .iter()
        .map(|window| {
            let pcts = [window.short_pct, window.long_pct].map(|pct| pct.unwrap().normalize());
            let dates = format!("{} {}", window.from, window.to);
            format!(
                "{dates} {} {} {} {}",
                rupees(&window.short),
                rupees(&window.long),
                pcts[0],
                pcts[1]
            )
        })
        .collect();
    assert_eq!(
        windows,
        [
            "2024-04-01 2024-07-22 0.00 5091.75 15 10",
            "2024-07-23 2025-03-31 0.00 5186.70 20 12.5",
        ]
    );
    let periods: Vec<String> = totals
        .periods
        .iter()
        .map(|period| format!("{} {}", period.to, rupees(&period.long)))
        .collect();
    assert_eq!(
        periods,
        [
            "2024-06-15 5091.75",
            "2024-09-15 5186.70",
            "2024-12-15 0.00",
            "2025-03-15 0.00",
            "2025-03-31 0.00",
        ]
    );
    assert_eq!(
        left_out(&gains),
        [
            "EXAMPLERE uncovered 4 28.40",
            "EXAMPLERE class_entitlement 4 28.40",
            "NIFTY24SEP24700PE fno_expired 25 2203.75",
        ]
    );
    let years: Vec<String> = gains.years.iter().map(ToString::to_string).collect();
    assert_eq!(years, ["2018-19", "2023-24", "2024-25", "2025-26"]);
    let rules: Vec<String> = gains
        .rules
        .iter()
        .map(|rule| format!("{} {}", rule.id, rule.section.unwrap_or("-")))
        .collect();
    assert_eq!(
        rules,
        [
            "long_rate 112A",
            "long_rate 112A",
            "exemption 112A",
            "term 2(42A)",
            "fifo 45(2A)",
            "speculation 43(5)",
        ]
    );
}

#[test]
fn a_sale_without_a_purchase_and_a_fund_stand_in_what_is_left_out() {
    let story = story(SAMPLE, &[]);
    let gains = story.gains("2018-19", "self");
    assert_eq!(left_out(&gains), ["SUZLON uncovered 450 2857.50"]);
    let sale = &gains.sales[0];
    assert!(!sale.is_proved() && sale.cost.is_none() && sale.gain.is_none());
    let gains = story.gains("2025-26", "self");
    assert_eq!(left_out(&gains), ["GOLDBEES class_fund 90 7120.80"]);
    assert_eq!(rupees(&gains.totals.gains.long), "0.00");
    // No rate of shares stands beside what is none.
    let rules = |gains: &Gains| gains.rules.iter().map(|rule| rule.id).collect::<Vec<_>>();
    assert_eq!(rules(&gains), [RuleId::Term, RuleId::Fifo]);
    let class = r#"{"kind":"class","isin":"INF204KB17I5","class":"equity_fund"}"#;
    let gains = Story {
        said: &[class],
        ..story
    }
    .gains("2025-26", "self");
    assert_eq!(
        (left_out(&gains), rupees(&gains.totals.gains.long).as_str()),
        (Vec::new(), "1644.30")
    );
    let of_shares = [
        RuleId::LongRate,
        RuleId::Exemption,
        RuleId::Term,
        RuleId::Fifo,
    ];
    assert_eq!(rules(&gains), of_shares);
}

/// Class, section and rate of what was bought on one day and sold on another.
fn term(bought: &str, sold: &str, fy: &str) -> (GainClass, Option<&'static str>, String) {
    let lines = [
        format!("a {bought} buy 10 X 100 {X} #1"),
        format!("a {sold} sell 10 X 90 {X} #2"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let fmv = |_| Some(decimal("95"));
    let part = Story {
        fmv: &fmv,
        ..story(&lines, &[])
    }
    .part(fy);
    let rate = part
        .rate_pct
        .map_or("-".into(), |rate| rate.normalize().to_string());
    (part.class, part.section, rate)
}

#[test]
fn term_rate_and_section_change_on_their_days() {
    let short = |section, rate: &str| (GainClass::Short, Some(section), rate.to_owned());
    let long = |section, rate: &str| (GainClass::Long, Some(section), rate.to_owned());
    assert_eq!(term("2023-07-22", "2024-07-22", "2024-25"), short("111A", "15"));
    assert_eq!(term("2023-07-21", "2024-07-22", "2024-25"), long("112A", "10"));
    assert_eq!(term("2023-07-23", "2024-07-23", "2024-25"), short("111A", "20"));
    assert_eq!(term("2023-07-22", "2024-07-23", "2024-25"), long("112A", "12.5"));
    assert_eq!(term("2025-04-01", "2026-03-31", "2025-26"), short("111A", "20"));
    assert_eq!(term("2025-04-01", "2026-04-01", "2026-27"), short("196", "20"));
    assert_eq!(term("2025-03-31", "2026-04-01", "2026-27"), long("198", "12.5"));
    assert_eq!(term("2024-02-29", "2025-02-28", "2024-25"), short("111A", "20"));
    assert_eq!(term("2024-02-29", "2025-03-01", "2024-25"), long("112A", "12.5"));
    assert_eq!(term("2017-01-02", "2018-04-02", "2018-19"), long("112A", "10"));
    for (bought, sold, fy) in [
        ("2017-06-01", "2018-03-31", "2017-18"),
        ("2017-01-02", "2018-03-31", "2017-18"),
        ("2026-06-01", "2027-04-01", "2027-28"),
        ("2025-06-01", "2027-04-01", "2027-28"),
    ] {
        let lines = [
            format!("a {bought} buy 10 X 100 {X} #1"),
            format!("a {sold} sell 10 X 90 {X} #2"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let gains = story(&lines, &[]).gains(fy, "self");
        assert_eq!(left_out(&gains), ["X rule_unknown 10 900.00"], "{sold}");
        assert!(gains.totals.losses.short.is_zero() && gains.totals.losses.long.is_zero());
    }
}

/// Considered cost, gain and reasons of ten shares bought for 500 and sold at a price.
fn grandfathered(bought: &str, said: &[&str], list: Option<&str>, price: &str) -> [String; 3] {
    let lines = [
        format!("a {bought} buy 10 X 50 {X} #1"),
        format!("a 2024-12-17 sell 10 X {price} {X} #2"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let fmv = |_| list.map(decimal);
    let part = Story {
        fmv: &fmv,
        ..story(&lines, said)
    }
    .part("2024-25");
    let reasons: Vec<&str> = part.reasons.iter().map(|reason| reason.as_str()).collect();
    [
        known(part.cost_considered.as_ref()),
        known(part.gain.as_ref()),
        reasons.join(","),
    ]
}

#[test]
fn what_was_acquired_before_february_2018_costs_the_lower_of_value_and_sale_at_least() {
    let fmv = r#"{"kind":"fmv","isin":"INE0EXA01011","price":90}"#;
    let other = r#"{"kind":"fmv","isin":"INE0EXA01011","price":91}"#;
    let same = r#"{"kind":"fmv","isin":"INE0EXA01011","price":90.00}"#;
    let indexed = r#"{"kind":"fmv_indexed","isin":"INE0EXA01011"}"#;
    let gift = r#"{"kind":"how","account":"a","isin":"INE0EXA01011","date":"2017-03-01",
        "how":"gift"}"#;
    for (bought, said, list, price, expected) in [
        // The vector: 10 units, cost 500, value 90, sale 150.
        ("2017-03-01", &[fmv][..], None, "150", ["900.00", "600.00", ""]),
        ("2018-01-31", &[fmv], None, "150", ["900.00", "600.00", ""]),
        ("2018-02-01", &[fmv], None, "150", ["500.00", "1000.00", ""]),
        // The sale is below the value: no loss is made.
        ("2017-03-01", &[fmv], None, "80", ["800.00", "0.00", ""]),
        // Below the cost: the loss is not deepened.
        ("2017-03-01", &[fmv], None, "40", ["500.00", "-100.00", ""]),
        ("2017-03-01", &[], Some("20"), "40", ["500.00", "-100.00", ""]),
        ("2017-03-01", &[], Some("20"), "90", ["500.00", "400.00", ""]),
        // The person's word counts before the list.
        ("2017-03-01", &[fmv], Some("20"), "150", ["900.00", "600.00", ""]),
        ("2017-03-01", &[fmv, same], None, "150", ["900.00", "600.00", ""]),
        ("2017-03-01", &[fmv, other], None, "150", ["-", "-", "fmv_differs"]),
        ("2017-03-01", &[], None, "150", ["-", "-", "fmv_missing"]),
        // 500 × 272 / 264 of 2016-17.
        ("2017-03-01", &[indexed], None, "150", ["515.15", "984.85", ""]),
        ("1995-03-01", &[indexed], None, "150", ["1360.00", "140.00", ""]),
        ("2018-01-01", &[indexed], None, "150", ["500.00", "1000.00", ""]),
        ("2017-03-01", &[indexed, gift], None, "150", ["-", "-", "fmv_carried"]),
        ("2017-03-01", &[fmv, gift], None, "150", ["900.00", "600.00", ""]),
    ] {
        let found = grandfathered(bought, said, list, price);
        assert_eq!(found, expected.map(str::to_owned), "{bought} {said:?} {list:?} {price}");
    }
}

#[test]
fn later_splits_divide_the_value_and_a_merger_carries_none() {
    let fmv = r#"{"kind":"fmv","isin":"INE0EXA01011","price":90}"#;
    let split = |ex_date: &str, into: u32| {
        format!(
            r#"{{"kind":"split","isin":"{X}","new_isin":"INE0EXA01029","ex_date":"{ex_date}",
            "numerator":{into},"denominator":1}}"#
        )
    };
    let sold = [
        "a 2017-03-01 buy 10 X 50 INE0EXA01011 #1",
        "a 2024-12-17 sell 50 X 30 INE0EXA01029 #2",
    ];
    let part = story(&sold, &[fmv, &split("2020-01-01", 5)]).part("2024-25");
    // 50 shares at 18 are what 10 were at 90.
    assert_eq!(part.fmv.as_ref().map(rupees), Some("900.00".into()));
    assert_eq!(known(part.gain.as_ref()), "600.00");
    // A split before that day is in the price already.
    let part = story(&sold, &[fmv, &split("2017-06-01", 5)]).part("2024-25");
    assert_eq!(known(part.fmv.as_ref()), "4500.00");
    let merger = r#"{"kind":"merger","isin":"INE0EXA01011","new_isin":"INE0EXB01019",
        "ex_date":"2020-01-01","numerator":1,"denominator":1}"#;
    let sold = [
        "a 2017-03-01 buy 10 X 50 INE0EXA01011 #1",
        "a 2024-12-17 sell 10 Y 30 INE0EXB01019 #2",
    ];
    let list = |_| Some(decimal("20"));
    let part = Story {
        fmv: &list,
        ..story(&sold, &[fmv, merger])
    }
    .part("2024-25");
    assert_eq!(part.reasons, [Reason::FmvCarried]);
    // Bonus shares of before that day have the price, later ones cost nothing.
    for (ex_date, expected) in [("2018-01-31", "-"), ("2018-02-01", "0.00")] {
        let bonus = format!(
            r#"{{"kind":"bonus","isin":"{X}","ex_date":"{ex_date}","numerator":1,"denominator":1}}"#
        );
        let sold = [
            "a 2017-03-01 buy 1 X 50 INE0EXA01011 #1",
            "a 2024-12-17 sell 2 X 100 INE0EXA01011 #2",
        ];
        let gains = story(&sold, &[fmv, &bonus]).gains("2024-25", "self");
        let bonus = &gains.sales[0].parts[1];
        assert_eq!(bonus.how, How::Bonus);
        let considered = if expected == "-" { "90.00" } else { expected };
        assert_eq!(known(bonus.cost_considered.as_ref()), considered);
    }
}

/// Reasons of ten shares of Rs 200 bought and sold so.
fn taxed(bought: &str, sold: &str, said: &[&str]) -> Vec<Reason> {
    let lines = [
        format!("a {bought} INE0EXA01011 #1"),
        format!("a 2024-12-17 sell 10 X {sold} INE0EXA01011 #2"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let fmv = |_| Some(decimal("95"));
    Story {
        fmv: &fmv,
        ..story(&lines, said)
    }
    .part("2024-25")
    .reasons
}

#[test]
fn transaction_tax_is_needed_on_sales_and_on_long_purchases() {
    let how = |date: &str, how: &str| {
        format!(r#"{{"kind":"how","account":"a","isin":"{X}","date":"{date}","how":"{how}"}}"#)
    };
    let long = "2020-03-02 buy 10 X 100";
    let short = "2024-08-01 buy 10 X 100";
    let none: [Reason; 0] = [];
    assert_eq!(taxed(long, "200 stt=2", &[]), none);
    assert_eq!(taxed(long, "200 unpaid", &[]), [Reason::SttOnSale]);
    assert_eq!(taxed(long, "200 stt=0", &[]), [Reason::SttOnSale]);
    assert_eq!(taxed(long, "100 stt=0", &[]), [Reason::SttOnSale]);
    assert_eq!(taxed(long, "99.99 stt=0", &[]), none);
    assert_eq!(taxed(short, "200 unpaid", &[]), [Reason::SttOnSale]);
    assert_eq!(taxed("2020-03-02 buy 10 X 100 unpaid", "200", &[]), [Reason::SttOnPurchase]);
    assert_eq!(taxed("2024-08-01 buy 10 X 100 unpaid", "200", &[]), none);
    for (bought, expected) in [
        ("2020-03-02 buy 10 X 100 stt=0", &[Reason::SttOnPurchase][..]),
        ("2020-03-02 buy 10 X 99.99 stt=0", &[]),
        ("2020-03-02 buy 10 X 100 stt=1", &[]),
        ("2020-03-02 buy 10 X 100 brokerage=1", &[]),
        ("2024-08-01 buy 10 X 100 stt=0", &[]),
        ("2004-09-30 buy 10 X 100 stt=0", &[]),
    ] {
        assert_eq!(taxed(bought, "200", &[]), expected, "{bought}");
    }
    for (kind, expected) in [
        ("physical", &[Reason::SttOnPurchase][..]),
        ("off_market", &[Reason::SttOnPurchase]),
        ("ipo", &[]),
        ("gift", &[]),
        ("esop", &[]),
    ] {
        assert_eq!(taxed(long, "200", &[&how("2020-03-02", kind)]), expected, "{kind}");
    }
    for bought in [
        "2020-03-02 buy 10 X 100 unpaid",
        "2020-03-02 buy 10 X 100 stt=0",
    ] {
        assert_eq!(taxed(bought, "200", &[&how("2020-03-02", "ipo")]), none, "{bought}");
    }
    for (date, expected) in [
        ("2004-09-30", &[][..]),
        ("2004-10-01", &[Reason::SttOnPurchase]),
    ] {
        let bought = format!("{date} buy 10 X 100 unpaid");
        assert_eq!(taxed(&bought, "200", &[]), expected, "{date}");
    }
}

#[test]
fn buybacks_stand_apart_under_the_rule_of_their_day() {
    let sums = |bought: &str, day: &str, fy: &str| {
        let lines = [format!("a {bought} buy 10 X 100 {X} #1")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let buyback = format!(
            r#"{{"kind":"buyback","account":"a","isin":"{X}","date":"{day}","quantity":10,
            "price":150}}"#
        );
        let gains = story(&lines, &[&buyback]).gains(fy, "self");
        let totals = &gains.totals;
        assert!(totals.gains.short.is_zero() && totals.gains.long.is_zero());
        let buyback = &totals.buyback;
        let all = [
            &buyback.exempt,
            &buyback.deemed_dividend,
            &buyback.short,
            &buyback.long,
        ];
        let part = &gains.sales[0].parts[0];
        assert_eq!(part.class, GainClass::Buyback);
        (all.map(rupees).join(" "), part.section, part.reasons.clone())
    };
    let old = "2018-06-01";
    for (bought, day, fy, expected, section) in [
        (old, "2019-07-05", "2019-20", "500.00 0.00 0.00 0.00", None),
        (old, "2024-09-30", "2024-25", "500.00 0.00 0.00 0.00", None),
        (old, "2024-10-01", "2024-25", "0.00 1500.00 0.00 -1000.00", Some("46A")),
        ("2025-06-02", "2026-03-31", "2025-26", "0.00 1500.00 -1000.00 0.00", Some("46A")),
        ("2025-06-02", "2026-04-01", "2026-27", "0.00 0.00 500.00 0.00", Some("69")),
        (old, "2026-04-01", "2026-27", "0.00 0.00 0.00 500.00", Some("69")),
    ] {
        assert_eq!(sums(bought, day, fy), (expected.to_owned(), section, Vec::new()), "{day}");
    }
    let (sums, _, reasons) = sums(old, "2019-07-04", "2019-20");
    assert_eq!((sums.as_str(), reasons), ("0.00 0.00 0.00 0.00", vec![Reason::RuleUnknown]));
}

/// The gain of each sale.
fn gained(gains: &Gains) -> Vec<String> {
    let sales = gains.sales.iter();
    sales.map(|sale| known(sale.gain.as_ref())).collect()
}

#[test]
fn charges_of_the_sale_are_deducted_and_the_transaction_tax_is_not() {
    let lines = [
        "a 2024-05-02 buy 10 X 100 INE0EXA01011 #1 brokerage=10 stt=1",
        "a 2024-06-03 sell 4 X 110 INE0EXA01011 #2 brokerage=2 stamp=0.50 stt=1",
        "a 2024-06-04 sell 6 X 90 INE0EXA01011 #3",
        "a 2024-06-05 buy 5 X 100 INE0EXA01011 #4 brokerage=1",
        "a 2024-06-05 sell 5 X 99 INE0EXA01011 #5 brokerage=1",
    ];
    let gains = story(&lines, &[]).gains("2024-25", "self");
    // 440 - 2.50 - 404; 540 - 606; 495 - 1 - 501.
    assert_eq!(gained(&gains), ["33.50", "-66.00", "-7.00"]);
    assert_eq!(gains.charges, ChargesKnown::Some);
    let totals = &gains.totals;
    assert_eq!(rupees(&totals.gains.short), "-32.50");
    assert_eq!(rupees(&totals.losses.short), "-66.00");
    assert_eq!(rupees(&totals.losses.intraday), "-7.00");
}

#[test]
fn totals_are_rounded_once() {
    // Three parts of a third each: 33.333… × 3 is 100, and not 99.99.
    let lines = [
        "a 2024-05-02 buy 3 X 100 INE0EXA01011 #1 brokerage=100",
        "a 2024-05-03 sell 1 X 100 INE0EXA01011 #2",
        "a 2024-05-06 sell 1 X 100 INE0EXA01011 #3",
        "a 2024-05-07 sell 1 X 100 INE0EXA01011 #4",
    ];
    let gains = story(&lines, &[]).gains("2024-25", "self");
    assert_eq!(gained(&gains), ["-33.33", "-33.33", "-33.33"]);
    assert_eq!(rupees(&gains.totals.gains.short), "-100.00");
}

#[test]
fn totals_are_of_one_person() {
    let lines = [
        "a 2024-05-02 buy 10 X 100 INE0EXA01011 #1",
        "a 2024-06-03 sell 10 X 110 INE0EXA01011 #2",
        "b 2024-05-02 buy 10 X 100 INE0EXA01011 #3",
        "b 2024-06-03 sell 10 X 120 INE0EXA01011 #4",
        "c 2024-05-02 buy 10 X 100 INE0EXA01011 #5",
        "c 2024-06-03 sell 10 X 130 INE0EXA01011 #6",
    ];
    let mut story = story(&lines, &[]);
    let both = story.gains("2024-25", "self");
    assert_eq!(rupees(&both.totals.gains.short), "300.00");
    // The third account is never synced.
    assert_eq!(left_out(&both), ["X never_synced 10 1300.00"]);
    story.persons.insert(account("b"), "spouse".into());
    assert_eq!(rupees(&story.gains("2024-25", "self").totals.gains.short), "100.00");
    let spouse = story.gains("2024-25", "spouse");
    assert_eq!(rupees(&spouse.totals.gains.short), "200.00");
    assert_eq!(
        (spouse.persons, spouse.left_out),
        (vec!["self".to_owned(), "spouse".to_owned()], Vec::new())
    );
}

#[test]
fn conflicts_bonus_stripping_and_unproved_actions_are_left_out_with_their_figures() {
    let lines = [
        "a 2024-05-02 buy 10 X 100 INE0EXA01011 #1",
        "a 2024-09-16 sell 10 X 60 INE0EXA01011 #2",
        "a 2024-06-03 sell 10 Y 110 INE0EXB01019 #3",
        "a 2024-06-03 sell 11 Y 110 INE0EXB01019 #3",
        "a 2024-05-02 buy 5 Z 100 INE0EXC01017 #4",
        "a 2024-06-03 sell 5 Z 110 INE0EXC01017 #5",
    ];
    let said = [
        r#"{"kind":"bonus","isin":"INE0EXA01011","ex_date":"2024-07-02","numerator":1,
        "denominator":1}"#,
        r#"{"kind":"unproved","isin":"INE0EXC01017","date":"2024-05-02","what":"partly_paid"}"#,
        r#"{"kind":"fraction_cash","account":"a","isin":"INE0EXA01011","date":"2024-07-02",
        "cash":31.25}"#,
        r#"{"kind":"fraction_cash","account":"a","isin":"INE0EXD01015","date":"2024-07-02",
        "cash":12.25}"#,
        // An account that is never synced, with and without a trade of the security.
        r#"{"kind":"fraction_cash","account":"c","isin":"INE0EXA01011","date":"2024-07-02",
        "cash":7.5}"#,
        r#"{"kind":"fraction_cash","account":"c","isin":"INE0EXD01015","date":"2024-07-02",
        "cash":3.5}"#,
        // No shares of the usual kind.
        r#"{"kind":"fraction_cash","account":"a","isin":"INF204KB17I5","date":"2024-07-02",
        "cash":8.75}"#,
    ];
    let gains = story(&lines, &said).gains("2024-25", "self");
    assert_eq!(
        left_out(&gains),
        [
            "X bonus_stripping 10 600.00",
            "Y conflict - -",
            "Z action_unproved 5 550.00",
        ]
    );
    assert_eq!(gains.left_out[0].ignored_loss.as_ref().map(rupees), Some("400.00".into()));
    // The fraction of what is cut is in no total.
    assert_eq!(rupees(&gains.totals.fractions), "12.25");
    assert!(
        gains
            .rules
            .iter()
            .any(|rule| rule.id == RuleId::BonusStripping)
    );
}

#[test]
fn the_cash_of_an_unproved_fraction_is_in_no_total_though_no_share_was_ever_held() {
    let fraction = |isin: &str| {
        format!(
            r#"{{"kind":"fraction_cash","account":"a","isin":"{isin}","date":"2024-07-02",
            "cash":30}}"#
        )
    };
    let bought = "a 2019-05-28 buy 5 X 1000 INE0EXA01011 #1";
    let merger = r#"{"kind":"merger","isin":"INE0EXA01011","new_isin":"INE0EXB01019",
        "ex_date":"2022-01-03","numerator":1,"denominator":10}"#;
    let with_cash = merger.replace("10}", "10,\"cash\":10}");
    let unproved = r#"{"kind":"unproved","isin":"INE0EXB01019","date":"2022-01-03",
        "what":"other"}"#;
    let of_heir = fraction("INE0EXB01019");
    let cases: [(&[&str], &[&str], &str); 4] = [
        (&[bought], &[merger, &of_heir], "30.00"),
        (&[bought], &[&with_cash, &of_heir], "0.00"),
        (&[], &[&of_heir], "30.00"),
        (&[], &[unproved, &of_heir], "0.00"),
    ];
    for (lines, said, fractions) in cases {
        let gains = story(lines, said).gains("2024-25", "self");
        assert_eq!(rupees(&gains.totals.fractions), fractions, "{said:?}");
    }
}

#[test]
fn a_sale_that_the_sync_may_not_show_waits() {
    let lines = [
        "a 2027-06-01 buy 10 X 100 INE0EXA01011 #1",
        "a 2027-06-30 sell 10 X 60 INE0EXA01011 #2",
    ];
    let part = story(&lines, &[]).part("2027-28");
    assert_eq!(part.reasons, [Reason::NotYetSynced, Reason::RuleUnknown]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Windows and periods divide the totals, and what is proved or left out is all.
    #[test]
    fn windows_and_periods_add_up_to_the_totals(
        lines in prop::collection::vec(
            (0..300_u32, 0..4_u32, 1..9_u32, 1..500_u32, 0..9_u32),
            1..40,
        ),
    ) {
        let written: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(at, (day, side, quantity, price, charge))| {
                let day = date("2023-12-01").saturating_add(jiff::Span::new().days(*day * 2));
                let side = if *side < 2 { "buy" } else { "sell" };
                let figures = format!("{quantity} X {price} INE0EXA01011");
                format!("a {day} {side} {figures} #{at} brokerage={charge}")
            })
            .collect();
        let written: Vec<&str> = written.iter().map(String::as_str).collect();
        let gains = story(&written, &[]).gains("2024-25", "self");
        let totals = &gains.totals;
        for of in [&totals.windows, &totals.periods] {
            let sum = |what: &dyn Fn(&Window) -> Amount| {
                of.iter().fold(Amount::ZERO, |sum, window| sum.plus(&what(window)))
            };
            prop_assert_eq!(sum(&|window| window.short.clone()), totals.gains.short.clone());
            prop_assert_eq!(sum(&|window| window.long.clone()), totals.gains.long.clone());
        }
        let proved = gains.sales.iter().filter(|sale| sale.is_proved());
        let gained = proved.fold(Amount::ZERO, |sum, sale| {
            sum.plus(&sale.gain.clone().unwrap_or_default())
        });
        let summed = totals.gains.short.plus(&totals.gains.long).plus(&totals.gains.intraday);
        prop_assert_eq!(gained, summed);
        let unproved = gains.sales.iter().any(|sale| !sale.is_proved());
        prop_assert_eq!(unproved, !gains.left_out.is_empty());
    }
}
