//! `bhav signals evaluate` through the real program: its numbers against an independent
//! computation, the rows that it leaves out, its limits and its exit codes.

use std::fs;
use std::path::Path;

use sonic_rs::{JsonContainerTrait, JsonType, JsonValueTrait, Value};

use crate::support::source::root;
use crate::support::{Ran, bhav, run};

/// The order of sums may differ, and nothing else.
const TOLERANCE: f64 = 1e-12;

fn evaluate(folder: &Path, flags: &[&str]) -> Ran {
    run(bhav(&["signals", "evaluate"]).arg(folder).args(flags))
}

fn fixture() -> std::path::PathBuf {
    root().join("examples/candles")
}

fn expected(name: &str) -> Value {
    let expected = fs::read_to_string(root().join("tests/fixtures/signals").join(name)).unwrap();
    sonic_rs::from_str(&expected).unwrap()
}

/// Expected results with the constant in use, and with the former one.
const CONSTANTS: [(&str, &[&str]); 2] =
    [("expected.json", &["--json"]), ("expected_300.json", &["--json", "--prior-dates", "300"])];

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
    for (name, flags) in CONSTANTS {
        let ran = evaluate(&fixture(), flags);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        let actual: Value = sonic_rs::from_str(&ran.out).unwrap();
        let mut compared = 0;
        compare("", &expected(name), &actual, &mut compared);
        assert!(compared > 250, "only {compared} values were compared");
        assert_eq!(ran.out.lines().count(), 1, "one document on one line");
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
    let ran = evaluate(folder.path(), &["--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let actual: Value = sonic_rs::from_str(&ran.out).unwrap();
    let mut compared = 0;
    compare("", &expected("expected.json"), &actual, &mut compared);
    assert!(compared > 250, "only {compared} values were compared");
}

#[test]
fn the_help_names_a_sample_that_is_in_the_package_too() {
    let help = run(&mut bhav(&["signals", "evaluate", "--help"])).out;
    for place in ["examples/candles", "/usr/share/doc/bhav/examples/candles"] {
        assert!(help.contains(place), "{help}");
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    for entry in fs::read_dir(fixture()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let asset =
            format!("[\"examples/candles/{name}\", \"usr/share/doc/bhav/examples/candles/\"");
        assert!(manifest.contains(&asset), "{name} is not in the package");
    }
}

#[test]
fn people_read_the_same_numbers_and_what_they_are_worth() {
    let ran = evaluate(&fixture(), &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "nothing was left out");
    for part in [
        "Read     2275 candles of 4 symbols, 620 dates from 2022-09-01 to 2025-02-27\n",
        "Judged   769 signals on 110 dates from 2024-09-12 to 2025-02-20",
        "hit rate 0.49935\n",
        "confidence                0.247638  0.688422       0.0876      0.0564  0.50207  0.4814",
        "coin                      0.250000  0.693147 ",
        "0.48-0.49       233    96     86  0.486     0.412    0.000  -0.0737 ± 0.0636 [",
        "Most of it is the market",
        "coin       -0.002362 ± 0.001142 [-0.004738, +0.000013]  not distinguishable from",
        "bullish      411   246     94  0.51423   0.59854   0.59469  +0.0039 ± 0.0288",
        "Information, not investment advice. No costs are counted",
    ] {
        assert!(ran.out.contains(part), "`{part}` is missing from:\n{}", ran.out);
    }
}

#[test]
fn rows_that_cannot_be_true_are_told_and_left_out() {
    let folder = copy();
    let spoil = "date,open,high,low,close,volume\n\
        2024-01-01,10,11,9,10,5\n\
        2024-01-02,NaN,11,9,10,5\n\
        \n\
        2024-01-03,10,inf,9,10,5\n\
        2024-01-03,10,11,12,10,5\n";
    fs::write(folder.path().join("SPOILT.csv"), spoil).unwrap();
    fs::write(folder.path().join("EMPTY.csv"), "date,open,high,low,close\n").unwrap();
    fs::write(folder.path().join("notes.txt"), "no candles").unwrap();
    let ran = evaluate(folder.path(), &["--json"]).with_code(0);
    assert_eq!(
        ran.err,
        "EMPTY.csv: left out: line 1 must name the column `volume` once\n\
         SPOILT.csv:3: left out: open `NaN` is not a finite number\n\
         SPOILT.csv:5: left out: high `inf` is not a finite number\n\
         SPOILT.csv:6: left out: the high is below another price, or the low above one\n"
    );
    let report: Value = sonic_rs::from_str(&ran.out).unwrap();
    let read = |name: &str| report["read"][name].as_u64().unwrap();
    assert_eq!((read("files"), read("files_left_out"), read("rows_left_out")), (6, 1, 3));
    assert_eq!((read("symbols"), read("candles")), (5, 2276));
}

#[test]
fn a_folder_without_usable_data_exits_65() {
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
        let ran = evaluate(folder, &["--json"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(65), ""), "{}", ran.err);
        assert!(ran.err.contains(why), "`{why}` is missing from: {}", ran.err);
    }
}

/// A split to which older candles are not adjusted, and a share that misses ten sessions.
#[test]
fn suspected_splits_and_gaps_are_told_and_silence_their_symbol() {
    let folder = copy();
    let path = |name: &str| folder.path().join(name);
    let rows = |name: &str| -> Vec<String> {
        fs::read_to_string(fixture().join(name)).unwrap().lines().map(str::to_owned).collect()
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
    let ran = evaluate(folder.path(), &["--json"]).with_code(0);
    let report: Value = sonic_rs::from_str(&ran.out).unwrap();
    let [alpha, beta, gamma] = [0, 1, 2].map(|at| &report["suspect"][at]);
    assert_eq!((&alpha["symbol"], alpha["missing"].as_u64()), (&"ALPHA".into(), Some(0)));
    let split = &alpha["suspected_splits"][0];
    assert_eq!((split["new"].as_u64(), split["old"].as_u64()), (Some(2), Some(1)));
    assert_eq!(alpha["silent"].as_u64(), Some(61), "from its day to the end");
    assert_eq!((beta["missing"].as_u64(), beta["silent"].as_u64()), (Some(4), Some(0)));
    assert_eq!((gamma["missing"].as_u64(), gamma["silent"].as_u64()), (Some(11), Some(30)));
    let text = report["last_date"]["signals"].to_string();
    assert!(!text.contains("ALPHA") && !text.contains("GAMMA"), "{text}");
    let text = evaluate(folder.path(), &[]).out;
    for told in ["ALPHA         0      61  ", " 2:1\n", "GAMMA        11      30\n"] {
        assert!(text.contains(told), "`{told}` is missing from:\n{text}");
    }
}

#[test]
fn the_prior_has_bounds() {
    for bad in ["0", "10001", "-1", "1.5"] {
        let ran = evaluate(&fixture(), &[&format!("--prior-dates={bad}")]);
        assert_eq!(ran.code, Some(64), "{bad}: {}", ran.err);
    }
}

#[test]
fn a_folder_must_be_named() {
    assert_eq!(run(&mut bhav(&["signals", "evaluate"])).code, Some(64));
}
