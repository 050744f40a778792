//! What reports alone say: what stands, what trades explain, sums and dividends.

use super::*;
use crate::ledger::file_format::FileFormat;
use crate::ledger::story::{SAMPLE, Story, known, report, rupees, story};
use crate::ledger::testing::{account, date, decimal, isin};

const ZERODHA: FileFormat = FileFormat::ZerodhaTaxReport;

const REPORT: &[&str] = &[
    "long RELIANCE INE002A01018 2023-05-11 2024-06-13 9 20802.6 25894.35",
    "long RELIANCE INE002A01018 2023-05-11 2024-08-21 3 6934.2 9037.8",
    "long RELIANCE INE002A01018 2023-08-02 2024-08-21 6 14992.5 18075.6",
    "long EXAMPLEOLD INE0EXO01018 2016-11-09 2024-12-17 40 8200 11000 fmv=11800",
    "short EXAMPLENEW INE0EXO01026 2024-11-09 2024-12-17 4 820 700",
    "intraday INFY INE009A01021 2024-09-03 2024-09-03 15 28398 28527.75",
    "fno NIFTY24SEP25100CE - 2024-09-11 2024-09-13 25 2960 4030",
    "currency USDINR24SEPFUT - 2024-09-11 2024-09-13 25 100 90",
    "non_equity GOLDBEES INF204KB17I5 2024-04-16 2025-03-21 90 5476.5 7120.8",
    "long LATER INE0EXB01019 2023-05-11 2025-04-01 9 100 200",
];

impl Story<'_> {
    fn stated(&self, fy: &str, person: &str) -> Stated {
        let fy = FinancialYear::parse(fy).unwrap();
        self.with_sources(|sources| stated(sources, &self.reports, fy, person))
    }
}

fn with_report<'a>(trades: &'a [&'a str], lines: &[&str]) -> Story<'a> {
    Story {
        reports: vec![report("a", ZERODHA, lines)],
        ..story(trades, &[])
    }
}

fn shown(stated: &Stated) -> Vec<String> {
    let of = stated.left_out.iter().map(|row| {
        let quantity = row.quantity.unwrap().normalize();
        let symbol = row.symbol.as_deref().unwrap();
        format!("{symbol} {} {quantity} {}", row.reason, known(row.proceeds.as_ref()))
    });
    of.collect()
}

fn totals(stated: &Stated) -> [String; 4] {
    let ByClass {
        short,
        long,
        intraday,
        fno,
    } = &stated.totals;
    [short, long, intraday, fno].map(rupees)
}

#[test]
fn who_has_the_report_alone_sees_each_of_its_lines_and_their_sums() {
    let found = with_report(&[], REPORT).stated("2024-25", "self");
    assert_eq!(found.left_out.len(), 9);
    assert_eq!(
        shown(&found),
        [
            "RELIANCE stated 9 25894.35",
            "RELIANCE stated 3 9037.80",
            "RELIANCE stated 6 18075.60",
            "INFY stated 15 28527.75",
            "NIFTY24SEP25100CE stated 25 4030.00",
            "USDINR24SEPFUT stated 25 90.00",
            "EXAMPLEOLD stated 40 11000.00",
            "EXAMPLENEW stated 4 700.00",
            "GOLDBEES stated 90 7120.80",
        ]
    );
    assert_eq!(totals(&found), ["-120.00", "13078.45", "129.75", "1060.00"]);
    assert_eq!((found.dividends, found.income.len()), (None, 0));
    let gains = with_report(&[], REPORT).gains("2024-25", "self");
    assert!(gains.sales.is_empty() && gains.left_out.is_empty() && gains.years.is_empty());
    let mut gains = gains;
    gains.add_stated(&with_report(&[], REPORT).stated("2024-25", "self"));
    assert_eq!(gains.left_out.len(), 9);
    assert_eq!(gains.persons, ["self"]);
    let years: Vec<String> = gains.years.iter().map(ToString::to_string).collect();
    assert_eq!(years, ["2024-25", "2025-26"]);
}

#[test]
fn a_line_stands_only_where_the_account_has_no_trade_of_that_day() {
    let found = with_report(SAMPLE, REPORT).stated("2024-25", "self");
    assert_eq!(
        shown(&found),
        [
            "USDINR24SEPFUT stated 25 90.00",
            "EXAMPLEOLD stated 40 11000.00",
            "EXAMPLENEW stated 4 700.00",
            "GOLDBEES stated 90 7120.80",
        ]
    );
    assert_eq!(totals(&found), ["-120.00", "2800.00", "0.00", "-10.00"]);
}

#[test]
fn what_a_trade_is_decides_whether_it_explains_a_line() {
    let line = "long X INE0EXA01011 2023-03-01 2024-12-17 10 500 1500";
    let split = r#"{"kind":"split","isin":"INE0EXA01011","new_isin":"INE0EXA01029",
        "ex_date":"2024-01-10","numerator":5,"denominator":1}"#;
    for (trades, said, line, expected) in [
        (&[][..], &[][..], line, 1),
        (&["a 2024-12-17 sell 10 X 150 INE0EXA01011 #1"], &[], line, 0),
        // Any trade of the day counts, whatever its quantity and side.
        (&["a 2024-12-17 sell 1 X 150 INE0EXA01011 #1"], &[], line, 0),
        (&["a 2024-12-17 buy 1 X 150 INE0EXA01011 #1"], &[], line, 0),
        (&["a 2024-12-17 sell 10 X 150 INE0EXA01029 #1"], &[split], line, 0),
        (&["a 2024-12-17 sell 10 X 150 INE0EXA01029 #1"], &[], line, 1),
        (&["a 2024-12-16 sell 10 X 150 INE0EXA01011 #1"], &[], line, 1),
        (&["b 2024-12-17 sell 10 X 150 INE0EXA01011 #1"], &[], line, 1),
        (&["a 2024-12-17 sell 10 Y 150 INE0EXB01019 #1"], &[], line, 1),
        (&["a 2024-12-17 sell 10 X 150 #1"], &[], line, 0),
        // Two rows with one id that differ: neither counts, and yet there was a trade.
        (
            &[
                "a 2024-12-17 sell 10 X 150 INE0EXA01011 #1",
                "a 2024-12-17 sell 11 X 150 INE0EXA01011 #1",
            ],
            &[],
            line,
            0,
        ),
        (
            &["a 2024-12-17 sell 10 X24DECFUT 150 FO #1"],
            &[],
            "fno X24DECFUT - 2024-12-02 2024-12-17 10 500 1500",
            0,
        ),
        (
            &["a 2024-12-17 sell 10 X24DECFUT 150 FO #1"],
            &[],
            "fno Y24DECFUT - 2024-12-02 2024-12-17 10 500 1500",
            1,
        ),
        // Without a date any trade of the security counts.
        (
            &["a 2022-12-17 sell 10 X 150 INE0EXA01011 #1"],
            &[],
            "long X INE0EXA01011 - - 10 - 1500 considered=500",
            0,
        ),
    ] {
        let reports = vec![report("a", ZERODHA, &[line])];
        let found = Story {
            reports,
            ..story(trades, said)
        }
        .stated("2024-25", "self");
        assert_eq!(found.left_out.len(), expected, "{trades:?}");
    }
}

#[test]
fn a_line_without_a_date_is_named_and_not_summed() {
    let line = "long X INE0EXA01011 - - 10 - 1500 considered=500 gain=1000";
    let found = with_report(&[], &[line]).stated("2019-20", "self");
    assert_eq!(shown(&found), ["X stated 10 1500.00"]);
    assert_eq!(totals(&found), ["0.00"; 4]);
}

#[test]
fn what_reports_say_is_of_one_person() {
    let line = "short X INE0EXA01011 2024-03-01 2024-12-17 10 500 1500";
    let mut story = story(&[], &[]);
    story.persons.insert(account("b"), "other".into());
    story.reports = vec![
        report("a", ZERODHA, &[line]),
        report("b", FileFormat::IciciCapitalGains, &[line]),
    ];
    for person in ["self", "other"] {
        let found = story.stated("2024-25", person);
        assert_eq!((found.left_out.len(), totals(&found)[0].as_str()), (1, "1000.00"));
        let mut gains = story.gains("2024-25", person);
        gains.add_stated(&found);
        assert_eq!(gains.persons, ["other", "self"]);
    }
    assert_eq!(story.stated("2024-25", "nobody").left_out, []);
}

fn income(line: u32, day: &str, amount: &str) -> Income {
    Income {
        line,
        symbol: "X".into(),
        isin: Some(isin("INE0EXA01011")),
        ex_date: date(day),
        quantity: 10.into(),
        per_share: Some(decimal("1.5")),
        amount: decimal(amount),
    }
}

#[test]
fn dividends_are_of_their_year_and_equal_ones_of_two_reports_are_one() {
    let mut story = story(&[], &[]);
    let of = |income: Vec<Income>| AccountReport {
        income,
        ..report("a", ZERODHA, &[])
    };
    let first = income(2, "2024-06-03", "15");
    let later = income(3, "2025-03-31", "13.5");
    let next = income(4, "2025-04-01", "99");
    story.reports = vec![
        of(vec![first.clone(), later.clone(), next.clone()]),
        of(vec![later.clone(), first.clone(), first.clone()]),
    ];
    let found = story.stated("2024-25", "self");
    let days: Vec<String> = found
        .income
        .iter()
        .map(|of| of.ex_date.to_string())
        .collect();
    assert_eq!(days, ["2024-06-03", "2024-06-03", "2025-03-31"]);
    assert_eq!(known(found.dividends.as_ref()), "43.50");
    assert_eq!(found.income[0].per_share, Some(decimal("1.5")));
    let found = story.stated("2025-26", "self");
    assert_eq!(known(found.dividends.as_ref()), "99.00");
    let found = story.stated("2023-24", "self");
    assert_eq!((found.dividends, found.income.len()), (None, 0));
}
