//! The example that evaluates signals on a folder of candles: its numbers against an independent
//! computation, and the rows that it leaves out.

use std::fs;
use std::path::Path;

use bhav::signals::confidence::PRIOR_DATES;
use sonic_rs::{JsonContainerTrait, JsonType, JsonValueTrait, Value};

use super::evaluation::{Folder, report, summary};
use crate::support::source::root;

/// The order of sums may differ, and nothing else.
const TOLERANCE: f64 = 1e-12;

/// What was told of the rows, and the report as the example writes it.
fn evaluate(path: &Path) -> Result<(Vec<String>, Value), String> {
    evaluate_with(path, PRIOR_DATES)
}

fn evaluate_with(path: &Path, prior_dates: u32) -> Result<(Vec<String>, Value), String> {
    let folder = Folder::read(path)?;
    let written = report(&folder, prior_dates)?.to_string();
    Ok((folder.told, sonic_rs::from_str(&written).unwrap()))
}

fn fixture() -> std::path::PathBuf {
    root().join("examples/candles")
}

fn expected(name: &str) -> Value {
    let expected = fs::read_to_string(root().join("tests/fixtures/signals").join(name)).unwrap();
    sonic_rs::from_str(&expected).unwrap()
}

/// Expected results with the constant in use, and with the former one.
const CONSTANTS: [(&str, u32); 2] = [("expected.json", PRIOR_DATES), ("expected_300.json", 300)];

/// `1234567.5` as `1,234,567.50`.
fn grouped(number: &str) -> String {
    let (whole, parts) = number.split_once('.').unwrap_or((number, ""));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped}.{parts:0<2}")
}

/// A row in the form of the exchange's download of a share's history.
fn of_the_exchange(row: &str) -> String {
    let fields: Vec<&str> = row.split(',').collect();
    let date: jiff::civil::Date = fields[0].parse().unwrap();
    let [open, high, low, close] = [1, 2, 3, 4].map(|at| grouped(fields[at]));
    let volume = fields[5];
    format!(
        "\"{}\",\"EQ\",\"{open}\",\"{high}\",\"{low}\",\"1.00\",\"{close}\",\"{close}\",\
         \"{volume}\",\"1,234,567.80\"",
        date.strftime("%d-%b-%Y")
    )
}

/// A copy of the fixture, to be spoilt.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

/// Everything in `expected` must be in `actual`, at the same place.
fn compare(at: &str, expected: &Value, actual: &Value, compared: &mut usize) {
    match expected.get_type() {
        JsonType::Object => {
            for (name, value) in expected.as_object().unwrap() {
                let found = actual.get(name);
                let found = found.unwrap_or_else(|| panic!("{at}.{name} is missing"));
                compare(&format!("{at}.{name}"), value, found, compared);
            }
        }
        JsonType::Array => {
            let (expected, actual) = (expected.as_array().unwrap(), actual.as_array().unwrap());
            assert_eq!(expected.len(), actual.len(), "{at}");
            for (number, (one, other)) in expected.iter().zip(actual.iter()).enumerate() {
                compare(&format!("{at}[{number}]"), one, other, compared);
            }
        }
        JsonType::Number => {
            let (one, other) = (expected.as_f64().unwrap(), actual.as_f64().unwrap());
            assert!((one - other).abs() < TOLERANCE, "{at}: expected {one}, found {other}");
            *compared += 1;
        }
        _ => {
            assert_eq!(expected, actual, "{at}");
            *compared += 1;
        }
    }
}

#[test]
fn the_numbers_are_those_of_an_independent_computation() {
    for (name, prior_dates) in CONSTANTS {
        let (told, actual) = evaluate_with(&fixture(), prior_dates).unwrap();
        assert!(told.is_empty(), "{told:?}");
        let mut compared = 0;
        compare("", &expected(name), &actual, &mut compared);
        assert!(compared > 250, "only {compared} values were compared");
    }
}

/// The exchange's form: its dates, everything in quotes, thousands separated, other columns, the
/// newest row first.
#[test]
fn files_of_the_exchange_give_the_same_numbers() {
    let folder = copy();
    for entry in fs::read_dir(fixture()).unwrap() {
        let entry = entry.unwrap();
        let text = fs::read_to_string(entry.path()).unwrap();
        let mut written = String::from(
            "\u{feff}\"Date \",\"series \",\"OPEN \",\"HIGH \",\"LOW \",\"PREV. CLOSE \",\"ltp \",\
             \"close \",\"VOLUME \",\"VALUE \"\n",
        );
        for row in text.lines().skip(1).collect::<Vec<_>>().into_iter().rev() {
            written.push_str(&of_the_exchange(row));
            written.push('\n');
        }
        assert!(written.contains("-Jan-2024\"") || written.contains("-Jan-2025\""));
        fs::write(folder.path().join(entry.file_name()), written).unwrap();
    }
    let (told, actual) = evaluate(folder.path()).unwrap();
    assert!(told.is_empty(), "{told:?}");
    let mut compared = 0;
    compare("", &expected("expected.json"), &actual, &mut compared);
    assert!(compared > 250, "only {compared} values were compared");
}

#[test]
fn rows_that_cannot_be_true_are_told_and_left_out() {
    let folder = copy();
    let spoil = "date,open,high,low,close,volume\n\
        2024-01-01,10,11,9,10,5\n\
        2024-01-02,NaN,11,9,10,5\n\
        \n\
        2024-01-03,10,inf,9,10,5\n\
        2024-01-03,10,11,12,10,5\n\
        2024-01-04,10,11,9,\"1.234,50\",5\n\
        20240105,10,11,9,10,5\n\
        2024-01-08,10,11,9,10,5.5\n";
    fs::write(folder.path().join("SPOILT.csv"), spoil).unwrap();
    fs::write(folder.path().join("EMPTY.csv"), "date,open,high,low,close\n").unwrap();
    fs::write(folder.path().join("notes.txt"), "no candles").unwrap();
    let (told, report) = evaluate(folder.path()).unwrap();
    assert_eq!(
        told,
        [
            "EMPTY.csv: left out: line 1 must name the column `volume` once",
            "SPOILT.csv:3: left out: open `NaN` is not a number",
            "SPOILT.csv:5: left out: high `inf` is not a number",
            "SPOILT.csv:7: left out: close `1.234,50` is not a number",
            "SPOILT.csv:8: left out: date `20240105` is not a date such as 2026-11-20",
            "SPOILT.csv:9: left out: volume `5.5` is not a number of shares",
            "SPOILT.csv: left out: 2024-01-03: the high is below another price, or the low above \
             one",
        ]
    );
    let read = |name: &str| report["read"][name].as_u64().unwrap();
    assert_eq!((read("files"), read("files_left_out"), read("rows_left_out")), (6, 1, 6));
    assert_eq!((read("symbols"), read("candles")), (5, 2276));
}

#[test]
fn a_folder_without_usable_data_is_refused() {
    let empty = tempfile::tempdir().unwrap();
    let spoilt = tempfile::tempdir().unwrap();
    fs::write(spoilt.path().join("A.csv"), "date,open,high,low,close,volume\n1,2,3\n").unwrap();
    let short = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(fixture().join("ALPHA.csv")).unwrap();
    let rows: Vec<&str> = text.lines().take(505).collect();
    fs::write(short.path().join("ALPHA.csv"), rows.join("\n")).unwrap();
    let missing = empty.path().join("nowhere");
    for (folder, why) in [
        (missing.as_path(), "No such file or directory"),
        (empty.path(), "no CSV file"),
        (spoilt.path(), "no usable candle"),
        (short.path(), "the candles span 504 dates"),
    ] {
        let refused = evaluate(folder).unwrap_err();
        assert!(refused.contains(why), "`{why}` is missing from: {refused}");
    }
}

/// A split to which older candles are not adjusted, and a share that misses ten sessions.
#[test]
fn suspected_splits_and_gaps_are_told_and_silence_their_symbol() {
    let folder = copy();
    let path = |name: &str| folder.path().join(name);
    let rows = |name: &str| -> Vec<String> {
        fs::read_to_string(fixture().join(name))
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    };
    let alpha = rows("ALPHA.csv");
    let halved = |(at, row): (usize, &String)| -> String {
        let fields: Vec<&str> = row.split(',').collect();
        if at < 560 {
            return row.clone();
        }
        let half = |at: usize| fields[at].parse::<f64>().unwrap() / 2.0;
        let [open, high, low, close] = [1, 2, 3, 4].map(half);
        let volume = fields[5].parse::<u64>().unwrap() * 2;
        format!("{},{open},{high},{low},{close},{volume}", fields[0])
    };
    let split: Vec<String> = alpha.iter().enumerate().map(halved).collect();
    fs::write(path("ALPHA.csv"), split.join("\n")).unwrap();
    let mut holed = rows("GAMMA.csv");
    let last = holed.len();
    holed.drain(last - 40..last - 30);
    fs::write(path("GAMMA.csv"), holed.join("\n")).unwrap();
    let (_, report) = evaluate(folder.path()).unwrap();
    let [alpha, beta, gamma] = [0, 1, 2].map(|at| &report["suspect"][at]);
    assert_eq!((&alpha["symbol"], alpha["missing"].as_u64()), (&"ALPHA".into(), Some(0)));
    let split = &alpha["suspected_splits"][0];
    assert_eq!((split["new"].as_u64(), split["old"].as_u64()), (Some(2), Some(1)));
    assert_eq!(alpha["silent"].as_u64(), Some(61), "from its day to the end");
    assert_eq!((beta["missing"].as_u64(), beta["silent"].as_u64()), (Some(4), Some(0)));
    assert_eq!((gamma["missing"].as_u64(), gamma["silent"].as_u64()), (Some(11), Some(30)));
    let text = report["last_date"]["signals"].to_string();
    assert!(!text.contains("ALPHA") && !text.contains("GAMMA"), "{text}");
}

#[test]
fn the_summary_says_how_the_signals_did_and_what_they_are_worth() {
    let report = report(&Folder::read(&fixture()).unwrap(), PRIOR_DATES).unwrap();
    let text = summary(&report);
    for part in [
        "\"candles\":2275",
        "\"signals\":769",
        "not distinguishable from a coin",
        "Most of it is the market",
        "Information, not investment advice. No costs are counted",
    ] {
        assert!(text.contains(part), "`{part}` is missing from:\n{text}");
    }
}
