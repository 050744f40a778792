//! What the lines of reports offer: purchases, prices of 31 January 2018, and after splits.

use super::*;
use crate::ledger::file_format::FileFormat;
use crate::ledger::story::{Story, report, story};
use crate::ledger::testing::account;

const ZERODHA: FileFormat = FileFormat::ZerodhaTaxReport;
const ICICI: FileFormat = FileFormat::IciciCapitalGains;

fn offered(trades: &[&str], said: &[&str], format: FileFormat, lines: &[&str]) -> Vec<String> {
    let reports = vec![report("a", format, lines)];
    let story = Story {
        reports,
        ..story(trades, said)
    };
    let offers = story.with_sources(|sources| offers(sources, &story.reports));
    offers.into_iter().map(|offer| offer.correction).collect()
}

fn lot(date: &str, quantity: &str, cost: &str) -> String {
    format!(r#"{{"kind":"opening_lot","account":"a","isin":"INE0EXA01011","date":"{date}","#)
        + &format!(r#""quantity":{quantity},"cost":{cost}}}"#)
}

fn fmv(price: &str) -> String {
    format!(r#"{{"kind":"fmv","isin":"INE0EXA01011","price":{price}}}"#)
}

const SOLD: &str = "a 2024-12-17 sell 10 X 150 INE0EXA01011 #9";
const OF_2020: &str = "long X INE0EXA01011 2020-03-01 2024-12-17 6 300.6 900";
const OF_2021: &str = "long X INE0EXA01011 2021-03-01 2024-12-17 4 400 600";

#[test]
fn an_uncovered_sale_that_a_line_explains_offers_the_purchase() {
    let none: Vec<String> = Vec::new();
    let bought = "a 2021-03-01 buy 4 X 100 INE0EXA01011 #1";
    let all = "a 2021-03-01 buy 10 X 100 INE0EXA01011 #1";
    let charged = "a 2021-03-01 buy 3 X 100 INE0EXA01011 #1 brokerage=20";
    let of_intraday = "intraday X INE0EXA01011 2024-12-17 2024-12-17 10 500 1500";
    let of_other_day = "long X INE0EXA01011 2020-03-01 2024-12-16 6 300.6 900";
    let two = vec![
        lot("2020-03-01", "6", "300.6"),
        lot("2021-03-01", "4", "400"),
    ];
    for (trades, lines, expected) in [
        (&[SOLD][..], &[OF_2020, OF_2021][..], two),
        (&[bought, SOLD], &[OF_2020, OF_2021], vec![lot("2020-03-01", "6", "300.6")]),
        // The ledger takes other lots than the report, and still one purchase is missing.
        (&[charged, SOLD], &[OF_2020, OF_2021], {
            vec![
                lot("2020-03-01", "6", "300.6"),
                lot("2021-03-01", "1", "100"),
            ]
        }),
        (&[all, SOLD], &[OF_2020, OF_2021], none.clone()),
        (&[SOLD], &[of_intraday], none.clone()),
        (&[SOLD], &[of_other_day], none.clone()),
        (&[SOLD], &[], none.clone()),
        (&[], &[OF_2020], none.clone()),
        (&["b 2024-12-17 sell 10 X 150 INE0EXA01011 #9"], &[OF_2020], none.clone()),
        (&["a 2024-12-17 sell 10 X 150 #9"], &[OF_2020], none),
    ] {
        assert_eq!(offered(trades, &[], ZERODHA, lines), expected, "{trades:?} {lines:?}");
    }
}

/// Accepting the offer covers the sale, and the report agrees.
#[test]
fn an_offer_that_is_put_covers_the_sale() {
    let offers = offered(&[SOLD], &[], ZERODHA, &[OF_2020, OF_2021]);
    let said: Vec<&str> = offers.iter().map(String::as_str).collect();
    assert!(offered(&[SOLD], &said, ZERODHA, &[OF_2020, OF_2021]).is_empty());
    let gains = story(&[SOLD], &said).gains("2024-25", "self");
    let parts = gains.sales[0].parts.iter();
    let costs: Vec<String> = parts
        .map(|part| part.cost.as_ref().unwrap().rounded().unwrap().to_string())
        .collect();
    assert_eq!((costs, gains.left_out), (vec!["300.60".into(), "400.00".into()], Vec::new()));
}

#[test]
fn a_split_since_the_purchase_is_taken_back_in_an_offer() {
    let split = r#"{"kind":"split","isin":"INE0EXA01011","ex_date":"2022-01-10","numerator":5,
        "denominator":1}"#;
    let thirds = r#"{"kind":"split","isin":"INE0EXA01011","ex_date":"2022-01-10","numerator":3,
        "denominator":1}"#;
    let line = "long X INE0EXA01011 2020-03-01 2024-12-17 10 500 1500";
    let offers = |said: &str, line: &str| offered(&[SOLD], &[said], ZERODHA, &[line]);
    assert_eq!(offers(split, line), [lot("2020-03-01", "2", "500")]);
    // On the day of the split and after it shares are as they are now.
    let later = "long X INE0EXA01011 2022-01-10 2024-12-17 10 500 1500";
    assert_eq!(offers(split, later), [lot("2022-01-10", "10", "500")]);
    // What is no number of shares is not offered.
    assert!(offers(thirds, line).is_empty());
}

#[test]
fn broker_b_s_considered_value_is_no_price_of_purchase() {
    let of = |line: &str| offered(&[SOLD], &[], ICICI, &[line]);
    let line = "long X INE0EXA01011 2020-03-01 2024-12-17 10";
    let bought = of(&format!("{line} 500 1500 considered=500 expenses=20"));
    assert_eq!(bought, [lot("2020-03-01", "10", "500")]);
    assert_eq!(of(&format!("{line} - 1500 considered=510")), [lot("2020-03-01", "10", "510")]);
    assert!(of(&format!("{line} - 1500 considered=510 fmv=510")).is_empty());
}

#[test]
fn the_value_of_a_line_offers_the_price_that_gains_lack() {
    let bought = "a 2017-03-01 buy 10 X 50 INE0EXA01011 #1";
    let later = "a 2018-02-01 buy 10 X 50 INE0EXA01011 #1";
    let line = "long X INE0EXA01011 2017-03-01 2024-12-17 10 500 1500";
    let of_later = "long X INE0EXA01011 2018-02-01 2024-12-17 10 500 1500 fmv=900";
    let with = |fmv: &str| format!("{line} fmv={fmv}");
    let known = fmv("91");
    let split = r#"{"kind":"split","isin":"INE0EXA01011","ex_date":"2022-01-10","numerator":5,
        "denominator":1}"#;
    let fifty = "a 2024-12-17 sell 50 X 30 INE0EXA01011 #9";
    let of_fifty = "long X INE0EXA01011 2017-03-01 2024-12-17 50 500 1500 fmv=900".to_owned();
    for (trades, said, line, expected) in [
        ([bought, SOLD], &[][..], with("900"), vec![fmv("90")]),
        ([bought, SOLD], &[], with("295.5"), vec![fmv("29.55")]),
        ([bought, SOLD], &[], with("1000.123"), vec![fmv("100.0123")]),
        ([bought, SOLD], &[], line.to_owned(), vec![]),
        ([bought, SOLD], &[known.as_str()], with("900"), vec![]),
        ([later, SOLD], &[], of_later.to_owned(), vec![]),
        ([bought, fifty], &[split], of_fifty, vec![fmv("90")]),
    ] {
        assert_eq!(offered(&trades, said, ZERODHA, &[&line]), expected, "{line}");
    }
}

#[test]
fn offers_stand_first_among_what_mends_a_security() {
    let reports = vec![report("a", ZERODHA, &[OF_2020, OF_2021])];
    let story = Story {
        reports,
        ..story(&[SOLD], &[])
    };
    story.with_sources(|sources| {
        let mut reconciliation = sources.proof.clone();
        let before = reconciliation.rows[0].mends.clone();
        reconciliation.add_offers(offers(sources, &story.reports));
        let row = &reconciliation.rows[0];
        assert_eq!(row.account, account("a"));
        let offered = [
            lot("2020-03-01", "6", "300.6"),
            lot("2021-03-01", "4", "400"),
        ];
        assert_eq!(row.mends[..2], offered.map(Mend::Correction));
        assert_eq!(row.mends[2..], before);
    });
}
