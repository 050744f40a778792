//! Schedule 112A byte for byte: three years, both sides of each date, and what is left out.

use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;
use crate::ledger::story::{Story, story};
use crate::ledger::testing::{date, decimal};

const FMV: &str = r#"{"kind":"fmv","isin":"INE0EXA01011","price":90}"#;

fn sample_header() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ledger/files");
    let text = std::fs::read_to_string(format!("{folder}/schedule-112a-2024-25.csv")).unwrap();
    text.lines().next().unwrap().to_owned()
}

fn sheet(trades: &[&str], said: &[&str], fy: &str) -> Worksheet {
    worksheet(&story(trades, said).gains(fy, "self")).unwrap()
}

/// The lines below the header.
fn rows(sheet: &Worksheet) -> Vec<&str> {
    assert!(sheet.csv.ends_with('\n') && !sheet.csv.contains('\r'));
    sheet.csv.lines().skip(1).collect()
}

const TRADES: &[&str] = &[
    "a 2017-03-01 buy 40 X 50 INE0EXA01011 #1",
    "a 2018-02-01 buy 40 X 60 INE0EXA01011 #2",
    "a 2020-06-01 buy 3 M&M 33.335 INE0EXB01019 #3",
    "a 2021-06-01 sell 10 X 150 INE0EXA01011 #11 brokerage=1.25",
    "a 2024-07-22 sell 10 X 150 INE0EXA01011 #12",
    "a 2024-07-23 sell 10 X 80 INE0EXA01011 #13 brokerage=20 stamp=0.5",
    "a 2024-07-24 sell 2 M&M 50 INE0EXB01019 #14",
    "a 2025-04-01 sell 15 X 40 INE0EXA01011 #15",
    "a 2025-06-02 sell 5 X 100.5 INE0EXA01011 #16 brokerage=10.5",
    "a 2026-03-31 sell 1 M&M 20 INE0EXB01019 #17",
];

#[test]
fn three_years_are_right_byte_for_byte() {
    let header = sample_header();
    let without = header.replace("Share/Unit Transferred(1b),", "");
    assert_ne!(header, without);
    let of = |fy: &str| sheet(TRADES, &[FMV], fy).csv;
    assert_eq!(
        of("2021-22"),
        format!(
            "{without}\n\
             BE,INE0EXA01011,X,10,150.00,1500.00,900.00,500.00,900.00,90.00,900.00,1.25,901.25,\
             598.75\n"
        )
    );
    assert_eq!(
        of("2024-25"),
        format!(
            "{header}\n\
             BE,BE,INE0EXA01011,X,10,150.00,1500.00,900.00,500.00,900.00,90.00,900.00,0.00,900.00,\
             600.00\n\
             BE,AE,INE0EXA01011,X,10,80.00,800.00,800.00,500.00,800.00,90.00,900.00,20.50,820.50,\
             -20.50\n\
             AE,AE,INE0EXB01019,M&M,2,50.00,100.00,66.67,66.67,0.00,0.00,0.00,0.00,66.67,33.33\n"
        )
    );
    assert_eq!(
        of("2025-26"),
        format!(
            "{without}\n\
             BE,INE0EXA01011,X,10,40.00,400.00,500.00,500.00,400.00,90.00,900.00,0.00,500.00,\
             -100.00\n\
             AE,INNOTREQUIRD,CONSOLIDATED,,,722.50,633.34,633.34,0.00,,0.00,10.50,643.84,78.67\n"
        )
    );
}

#[test]
fn the_samples_row_is_that_of_the_vector() {
    let trades = [
        "a 2017-03-01 buy 10 X 50 INE0EXA01011 #1",
        "a 2024-12-17 sell 10 X 150 INE0EXA01011 #2",
    ];
    let found = sheet(&trades, &[FMV], "2024-25");
    let row = "BE,AE,INE0EXA01011,X,10,150.00,1500.00,900.00,500.00,900.00,90.00,900.00,0.00,\
               900.00,600.00";
    assert_eq!(rows(&found), [row]);
    assert_eq!((found.left_out, found.csv.lines().next().unwrap()), (0, &*sample_header()));
}

#[test]
fn columns_1a_and_1b_change_on_their_days() {
    for (bought, sold, expected) in [
        ("2018-01-31", "2024-07-22", "BE,BE"),
        ("2018-01-31", "2024-07-23", "BE,AE"),
        ("2018-02-01", "2024-07-22", "AE,BE"),
        ("2018-02-01", "2024-07-23", "AE,AE"),
    ] {
        let trades = [
            format!("a {bought} buy 10 X 50 INE0EXA01011 #1"),
            format!("a {sold} sell 10 X 150 INE0EXA01011 #2"),
        ];
        let trades: Vec<&str> = trades.iter().map(String::as_str).collect();
        let found = sheet(&trades, &[FMV], "2024-25");
        assert_eq!(&rows(&found)[0][..5], expected, "{bought} {sold}");
    }
}

#[test]
fn forms_are_known_of_six_years() {
    for (fy, is_known) in [
        ("2018-19", false),
        ("2019-20", false),
        ("2020-21", true),
        ("2023-24", true),
        ("2024-25", true),
        ("2025-26", true),
        ("2026-27", false),
        ("2027-28", false),
    ] {
        let found = worksheet(&story(TRADES, &[FMV]).gains(fy, "self"));
        assert_eq!(found.is_ok(), is_known, "{fy}");
        if let Ok(sheet) = found {
            assert_eq!(sheet.csv.contains(",Share/Unit Transferred(1b),"), fy == "2024-25");
        }
    }
    let early = worksheet(&story(TRADES, &[FMV]).gains("2019-20", "self"));
    assert_eq!(early, Err(NotNotified));
}

#[test]
fn a_year_without_long_parts_has_its_header_alone() {
    for fy in ["2023-24", "2025-26"] {
        let found = sheet(&[], &[], fy);
        assert_eq!((rows(&found).len(), found.left_out), (0, 0));
    }
}

#[test]
fn what_is_not_proved_is_counted_by_security_and_in_no_row() {
    let trades = [
        "a 2020-06-01 buy 10 X 50 INE0EXA01011 #1",
        "a 2024-12-17 sell 10 X 150 INE0EXA01011 #2",
        "a 2024-12-17 sell 10 NONE 150 INE0EXB01019 #3",
        "a 2024-12-18 sell 10 NONE 150 INE0EXB01019 #4",
        "c 2024-12-18 sell 10 NONE 150 INE0EXB01019 #4",
        "a 2017-06-01 buy 10 OLD 50 INE0EXO01018 #5",
        "a 2024-12-17 sell 10 OLD 150 INE0EXO01018 #6",
        "a 2024-11-01 buy 10 NEW 50 INE0EXC01017 #7",
        "a 2024-12-17 sell 10 NEW 40 INE0EXC01017 #8",
        "a 2024-09-11 sell 25 NIFTY24SEP24700PE 88.15 FO #9 exp=2024-09-26",
    ];
    let found = sheet(&trades, &[], "2024-25");
    assert_eq!(rows(&found).len(), 1);
    assert!(rows(&found)[0].starts_with("AE,AE,INE0EXA01011,X,10,"));
    assert_eq!(found.left_out, 2);
}

#[test]
fn one_person_has_the_rows_of_the_own_accounts() {
    let trades = [
        "a 2020-06-01 buy 10 X 50 INE0EXA01011 #1",
        "a 2024-12-17 sell 10 X 150 INE0EXA01011 #2",
        "b 2020-06-01 buy 5 X 50 INE0EXA01011 #3",
        "b 2024-12-17 sell 5 X 150 INE0EXA01011 #4",
    ];
    let mut story = story(&trades, &[]);
    let both = worksheet(&story.gains("2024-25", "self")).unwrap();
    assert_eq!(rows(&both).len(), 2);
    story
        .persons
        .insert(crate::ledger::testing::account("b"), "other".into());
    let own = worksheet(&story.gains("2024-25", "self")).unwrap();
    assert_eq!(rows(&own).len(), 1);
}

#[test]
fn a_name_is_a_cell_that_no_spreadsheet_runs() {
    for (name, cell) in [
        ("M&M", "M&M"),
        ("=1+1", "'=1+1"),
        ("@x", "'@x"),
        ("A,B", "\"A,B\""),
        ("-A\"", "\"'-A\"\"\""),
        ("-5", "-5"),
        ("", ""),
    ] {
        assert_eq!(csv_cell(name), cell);
    }
    let trades = [
        "a 2020-06-01 buy 0.5 =X 50 INE0EXA01011 #1",
        "a 2024-12-17 sell 0.5 =X 150 INE0EXA01011 #2",
    ];
    let found = sheet(&trades, &[], "2024-25");
    assert!(rows(&found)[0].starts_with("AE,AE,INE0EXA01011,'=X,0.5,150.00,75.00,"));
}

proptest! {
    /// What is in the worksheet sums to the year's long gains, but for the rounding of rows.
    #[test]
    fn balances_sum_to_the_long_gains_of_the_year(
        days in prop::collection::vec((0_i32..3200, 1_u32..40, 1_u32..50000, 0_u32..3), 1..40),
        price in 1_u32..500,
    ) {
        let start = date("2017-06-01");
        let lines: Vec<String> = days
            .iter()
            .enumerate()
            .map(|(at, (after, quantity, cents, kind))| {
                let day = start.saturating_add(jiff::Span::new().days(*after));
                let side = if *kind == 0 { "sell" } else { "buy" };
                let rate = Decimal::new((*cents).into(), 2);
                let charges = if *kind == 2 { "" } else { " brokerage=3.33" };
                format!("a {day} {side} {quantity} X {rate} INE0EXA01011 #{at}{charges}")
            })
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let fmv = |_| Some(decimal(&price.to_string()));
        let story = Story { fmv: &fmv, ..story(&lines, &[]) };
        for fy in YEARS_KNOWN {
            let gains = story.gains(fy, "self");
            let sheet = worksheet(&gains).unwrap();
            let rows = rows(&sheet);
            let cell = |row: &str, from_end: usize| {
                decimal(row.rsplit(',').nth(from_end).unwrap())
            };
            let sum: Decimal = rows.iter().map(|row| cell(row, 0)).sum();
            let long = gains.totals.gains.long.rounded().unwrap();
            let off = (sum - long).abs();
            prop_assert!(off <= Decimal::new(5, 3) * Decimal::from(rows.len() + 1), "{off}");
            for row in rows {
                // 13 = 7 + 12, each of them rounded once.
                let off = cell(row, 1) - cell(row, 2) - cell(row, 7);
                prop_assert!(off.abs() <= Decimal::new(1, 2), "{row}");
            }
        }
    }
}
