//! Reports against the ledger: the shared report line by line, a difference of each kind, and what
//! is different and yet none.

use std::fs::File;

use proptest::prelude::*;

use super::*;
use crate::ledger::file::read_file;
use crate::ledger::file_format::FileFormat;
use crate::ledger::row::Row;
use crate::ledger::story::{Story, known, report, rupees, story};
use crate::ledger::testing::{Told, account, date};
use crate::ledger::trades::{Choices, ImportedRows, Known, Trades, trades};

const X: &str = "INE0EXA01011";
const ZERODHA: FileFormat = FileFormat::ZerodhaTaxReport;
const ICICI: FileFormat = FileFormat::IciciCapitalGains;

fn fy(text: &str) -> FinancialYear {
    FinancialYear::parse(text).unwrap()
}

/// `symbol acquired sold status what notes | report | ledger`, with quantity, cost, proceeds, gain
/// and section of each.
fn shown(agreement: &Agreement) -> Vec<String> {
    let side = |figures: &Option<Figures>| {
        figures.as_ref().map_or("-".into(), |of| {
            let amounts = [&of.cost, &of.proceeds, &of.gain];
            let amounts = amounts.map(|amount| known(amount.as_ref())).join(" ");
            format!("{} {amounts} {}", of.quantity.normalize(), of.section)
        })
    };
    let day = |day: Option<Date>| day.map_or("-".into(), |day| day.to_string());
    let line = |line: &AgreementLine| {
        let symbol = line.symbol.as_deref().unwrap_or("-");
        let dates = format!("{} {}", day(line.group.acquired_on), day(line.group.sold));
        let words = words(line);
        let sides = format!("{} | {}", side(&line.report), side(&line.ledger));
        format!("{symbol} {dates} {words} | {sides}")
    };
    agreement.lines.iter().map(line).collect()
}

/// `status what notes`.
fn words(line: &AgreementLine) -> String {
    let what = line.what.iter().map(|what| what.as_str());
    let notes = line.notes.iter().map(|note| note.as_str());
    [line.status.as_str()]
        .into_iter()
        .chain(what)
        .chain(notes)
        .collect::<Vec<_>>()
        .join(" ")
}

fn head(agreement: &Agreement) -> [String; 6] {
    let counts = Status::ALL.map(|status| agreement.count(status).to_string());
    let [agreed, differs, only_report, only_ledger] = counts;
    let amounts = [&agreement.amount_agreed, &agreement.amount_open].map(rupees);
    let [amount_agreed, amount_open] = amounts;
    [
        agreed,
        differs,
        only_report,
        only_ledger,
        amount_agreed,
        amount_open,
    ]
}

impl Story<'_> {
    fn agreement(&self, year: &str) -> Agreement {
        self.with_sources(|sources| agreement(sources, &self.reports, fy(year), None))
    }

    /// The words of the only line of a year.
    fn words(&self, year: &str) -> String {
        let found = self.agreement(year);
        assert_eq!(found.lines.len(), 1, "{:?}", shown(&found));
        words(&found.lines[0])
    }
}

/// Ten shares bought and sold, beside one line of a report.
fn ten(bought: &str, sold: &str, said: &[&str], format: FileFormat, line: &str) -> Agreement {
    let lines = [
        format!("a {bought} buy 10 X 50 {X} #1"),
        format!("a {sold} sell 10 X 150 {X} #2"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let reports = vec![report("a", format, &[line])];
    let year = FinancialYear::of(date(sold)).to_string();
    Story {
        reports,
        ..story(&lines, said)
    }
    .agreement(&year)
}

fn sample(name: &str) -> File {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ledger/files");
    File::open(format!("{folder}/{name}")).unwrap()
}

/// The trades of the shared tradebooks, and the shared report.
fn samples(books: &[&str]) -> (Trades, Vec<AccountReport>) {
    let name = account("a");
    let read = |file: &str| read_file(sample(file), &name, date("2026-08-20"), &|| false).unwrap();
    let rows: Vec<Vec<Row>> = books.iter().map(|book| read(book).rows).collect();
    let imports: Vec<ImportedRows<'_>> = rows
        .iter()
        .zip(books)
        .map(|(rows, import)| ImportedRows {
            import,
            account: &name,
            format: "zerodha_tradebook",
            rows,
        })
        .collect();
    let told = Told::default();
    let securities = Default::default();
    let known = Known {
        securities: &securities,
        choices: &Choices::new(),
        isins: &told,
    };
    let zip = read("zerodha-taxpnl-2024_2025.zip");
    let report = AccountReport {
        account: name.clone(),
        format: zip.format,
        lines: zip.report,
        income: zip.income,
    };
    (trades(&imports, known), vec![report])
}

#[test]
fn the_shared_report_agrees_with_the_shared_tradebooks_but_for_what_each_has_alone() {
    let (traded, reports) = samples(&["zerodha-tradebook-eq.csv", "zerodha-tradebook-fo.csv"]);
    let found = story(&[], &[]).with_trades(&traded, &[], |sources| {
        let found = agreement(sources, &reports, fy("2024-25"), None);
        let sales = sales(sources, fy("2024-25"), &|_| true);
        let flags: Vec<String> = sales
            .iter()
            .map(|sale| format!("{} {:?}", sale.symbol.as_deref().unwrap(), found.of_sale(sale)))
            .collect();
        assert_eq!(
            flags,
            [
                "RELIANCE Some(true)",
                "RELIANCE Some(true)",
                "INFY Some(true)",
                "NIFTY24SEP25100CE Some(true)",
                "NIFTY24SEP24700PE None",
                "EXAMPLERE None",
            ]
        );
        found
    });
    assert_eq!(
        shown(&found),
        [
            "RELIANCE 2023-05-11 2024-06-13 agreed | 9 20802.60 25894.35 5091.75 long \
             | 9 20802.60 25894.35 5091.75 long",
            "RELIANCE 2023-05-11 2024-08-21 agreed | 3 6934.20 9037.80 2103.60 long \
             | 3 6934.20 9037.80 2103.60 long",
            "RELIANCE 2023-08-02 2024-08-21 agreed | 6 14992.50 18075.60 3083.10 long \
             | 6 14992.50 18075.60 3083.10 long",
            "INFY 2024-09-03 2024-09-03 agreed | 15 28398.00 28527.75 129.75 intraday \
             | 15 28398.00 28527.75 129.75 intraday",
            "NIFTY24SEP25100CE - 2024-09-13 agreed | 25 2960.00 4030.00 1070.00 fno \
             | 25 2960.00 4030.00 1070.00 fno",
            "NIFTY24SEP24700PE - 2024-09-26 only_ledger | - | 25 - 2203.75 - fno",
            "EXAMPLEOLD 2016-11-09 2024-12-17 only_report \
             | 40 8200.00 11000.00 2800.00 long | -",
        ]
    );
    assert_eq!(head(&found), ["5", "0", "1", "1", "11478.20", "2800.00"]);
}

#[test]
fn another_year_and_another_account_have_nothing_of_it() {
    let (traded, reports) = samples(&["zerodha-tradebook-eq.csv"]);
    story(&[], &[]).with_trades(&traded, &[], |sources| {
        let of =
            |year: &str, name: &str| agreement(sources, &reports, fy(year), Some(&account(name)));
        assert_eq!(head(&of("2024-25", "a")), ["4", "0", "2", "0", "10408.20", "3870.00"]);
        assert_eq!(of("2024-25", "b").lines, []);
        assert_eq!(of("2023-24", "a").lines, []);
        assert_eq!(
            shown(&of("2025-26", "a")),
            ["GOLDBEES 2024-04-16 2025-05-21 only_ledger | - | 90 5476.50 7120.80 1644.30 long"]
        );
    });
}

#[test]
fn a_difference_of_each_kind_is_found_and_named() {
    let fmv = r#"{"kind":"fmv","isin":"INE0EXA01011","price":90}"#;
    let fund = r#"{"kind":"class","isin":"INE0EXA01011","class":"other"}"#;
    let old = ("2017-03-01", "2024-12-17");
    let new = ("2023-03-01", "2024-12-17");
    for ((bought, sold), said, line, expected) in [
        (new, &[][..], "long X # {B} {S} 10 500 1500", "agreed"),
        (new, &[], "long X # {B} {S} 9 500 1500", "differs quantity"),
        (new, &[], "long X # {B} {S} 10 500.01 1499.99", "agreed"),
        (new, &[], "long X # {B} {S} 10 500.02 1500", "differs cost"),
        (new, &[], "long X # {B} {S} 10 500 1499.98", "differs proceeds"),
        (new, &[], "short X # {B} {S} 10 500 1500", "differs term"),
        (new, &[], "long X # {B} {S} 10 500 1500 fmv=900", "differs fmv"),
        (new, &[], "non_equity X # {B} {S} 10 500 1500", "differs class"),
        (new, &[], "buyback X # {B} {S} 10 500 1500", "differs class"),
        (new, &[], "fund X # {B} {S} 10 500 1500", "agreed"),
        (new, &[fund], "non_equity X # {B} {S} 10 500 1500", "agreed"),
        (new, &[fund], "fund X # {B} {S} 10 500 1500", "agreed"),
        (new, &[fund], "long X # {B} {S} 10 500 1500", "differs class"),
        (old, &[fmv], "long X # {B} {S} 10 500 1500 fmv=900", "agreed"),
        (old, &[fmv], "long X # {B} {S} 10 500 1500 fmv=900.01", "agreed"),
        (old, &[fmv], "long X # {B} {S} 10 500 1500 fmv=900.02", "differs fmv"),
        (old, &[fmv], "long X # {B} {S} 10 500 1500", "differs fmv"),
        (old, &[], "long X # {B} {S} 10 500 1500 fmv=900", "differs fmv"),
        (
            new,
            &[],
            "short X # {B} {S} 9 450 1350 fmv=9",
            "differs quantity cost proceeds term fmv",
        ),
        (new, &[], "intraday X # {B} {S} 10 500 1500", "only_report, only_ledger"),
        (new, &[], "long X # 2023-03-02 {S} 10 500 1500", "only_report, only_ledger"),
        (new, &[], "long X # {B} 2024-12-18 10 500 1500", "only_ledger, only_report"),
        (new, &[], "long Y INE0EXB01019 {B} {S} 10 500 1500", "only_report, only_ledger"),
    ] {
        let line = line
            .replace("{B}", bought)
            .replace("{S}", sold)
            .replace('#', X);
        let found = ten(bought, sold, said, ZERODHA, &line);
        let mut words: Vec<String> = found.lines.iter().map(words).collect();
        if words.len() == 2 && !line.contains("2024-12-18") {
            words.sort_by_key(|word| word.contains("ledger"));
        }
        assert_eq!(words.join(", "), expected, "{line}");
    }
}

#[test]
fn the_tolerance_grows_with_the_lines_of_the_report() {
    let trades = [
        "a 2023-03-01 buy 30 X 50 INE0EXA01011 #1",
        "a 2024-12-17 sell 10 X 150 INE0EXA01011 #2",
        "a 2024-12-17 sell 20 X 151 INE0EXA01011 #3",
    ];
    let line = "long X INE0EXA01011 2023-03-01 2024-12-17";
    let words = |costs: [&str; 2]| {
        let lines = [
            format!("{line} 10 {} 1500", costs[0]),
            format!("{line} 20 {} 3020", costs[1]),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        Story {
            reports: vec![report("a", ZERODHA, &lines)],
            ..story(&trades, &[])
        }
        .words("2024-25")
    };
    assert_eq!(words(["500.01", "1000.01"]), "agreed");
    assert_eq!(words(["500.01", "1000.02"]), "differs cost");
    // Of one line for both sales it is a paisa.
    let one = format!("{line} 30 1500.02 4520");
    let found = Story {
        reports: vec![report("a", ZERODHA, &[&one])],
        ..story(&trades, &[])
    };
    assert_eq!(found.words("2024-25"), "differs cost");
}

#[test]
fn a_report_that_calls_the_anniversary_long_agrees_with_a_note() {
    let noted = "agreed term_at_anniversary";
    for (bought, sold, section, expected) in [
        ("2023-05-11", "2024-05-11", "long", noted),
        ("2023-05-11", "2024-05-11", "short", "agreed"),
        ("2023-05-11", "2024-05-10", "long", "differs term"),
        ("2023-05-11", "2024-05-12", "long", "agreed"),
        ("2023-05-11", "2024-05-12", "short", "differs term"),
        ("2024-02-29", "2025-02-28", "long", noted),
        ("2024-02-29", "2025-03-01", "long", "agreed"),
        ("2024-02-29", "2025-02-27", "long", "differs term"),
        ("2023-02-28", "2024-02-28", "long", noted),
        ("2023-02-28", "2024-02-29", "long", "agreed"),
        ("2023-02-28", "2024-02-29", "short", "differs term"),
    ] {
        let line = format!("{section} X {X} {bought} {sold} 10 500 1500");
        let found = ten(bought, sold, &[], ZERODHA, &line);
        assert_eq!(words(&found.lines[0]), expected, "{line}");
    }
}

#[test]
fn broker_b_is_compared_by_the_considered_cost_without_charges() {
    let exaind = "b 2017-07-11 buy 40 EXAIND 84.4 INE0EXA01011 #1 brokerage=17.31";
    let trades = [
        exaind,
        "b 2024-09-03 sell 40 EXAIND 141 INE0EXA01011 #2 brokerage=13.27",
        "b 2024-04-16 buy 12 EXANEW 81 INE0EXN01010 #3 brokerage=2.6",
        "b 2024-05-22 sell 12 EXANEW 95 INE0EXN01010 #4 brokerage=3.1",
    ];
    let file =
        read_file(sample("icici-capital-gains.xls"), &account("b"), date("2026-08-20"), &|| false);
    let file = file.unwrap();
    let reports = vec![AccountReport {
        account: account("b"),
        format: file.format,
        lines: file.report,
        income: Vec::new(),
    }];
    let fmv = r#"{"kind":"fmv","isin":"INE0EXA01011","price":97}"#;
    let found = Story {
        reports,
        ..story(&trades, &[fmv])
    }
    .agreement("2024-25");
    assert_eq!(
        shown(&found),
        [
            "EXANEW 2024-04-16 2024-05-22 agreed | 12 972.00 1140.00 162.30 short \
             | 12 972.00 1140.00 162.30 short",
            "EXAIND 2017-07-11 2024-09-03 agreed purchase_expenses \
             | 40 3880.00 5640.00 1729.42 long | 40 3880.00 5640.00 1746.73 long",
        ]
    );
    assert_eq!(head(&found), ["2", "0", "0", "0", "1909.03", "0.00"]);
}

/// What broker B's report has of ten shares bought in 2017 for 500 and charges of 20.
fn expenses(price: &str, line: &str) -> String {
    let trades = [
        "b 2017-03-01 buy 10 X 50 INE0EXA01011 #1 brokerage=20".to_owned(),
        format!("b 2024-12-17 sell 10 X {price} INE0EXA01011 #2"),
    ];
    let trades: Vec<&str> = trades.iter().map(String::as_str).collect();
    let fmv = r#"{"kind":"fmv","isin":"INE0EXA01011","price":51}"#;
    let line = format!("long X {X} 2017-03-01 2024-12-17 10 500 {line}");
    Story {
        reports: vec![report("b", ICICI, &[&line])],
        ..story(&trades, &[fmv])
    }
    .words("2024-25")
}

#[test]
fn expenses_of_a_purchase_are_noted_where_they_are_deducted_beside_a_value() {
    let noted = "agreed purchase_expenses";
    assert_eq!(expenses("150", "1500 considered=510 fmv=510 expenses=20"), noted);
    assert_eq!(expenses("150", "1500 considered=510 fmv=510 expenses=0"), "agreed");
    assert_eq!(expenses("150", "1500 considered=520 fmv=510 expenses=20"), {
        "differs cost purchase_expenses"
    });
    // Sold below what was paid, which then is the cost.
    assert_eq!(expenses("40", "400 considered=500 fmv=510 expenses=20"), "agreed");
    // Without the considered cost what was paid is compared.
    assert_eq!(expenses("150", "1500 fmv=510 expenses=20"), "agreed");
}

#[test]
fn lines_without_dates_agree_by_the_sums_of_their_security() {
    let trades = [
        "b 2023-03-01 buy 10 X 50 INE0EXA01011 #1",
        "b 2024-01-01 buy 10 X 60 INE0EXA01011 #2",
        "b 2024-06-03 sell 12 X 100 INE0EXA01011 #3",
        "b 2025-06-03 sell 8 X 100 INE0EXA01011 #4",
    ];
    let of = |lines: &[&str], year: &str| {
        let reports = vec![report("b", ICICI, lines)];
        let found = Story {
            reports,
            ..story(&trades, &[])
        }
        .agreement(year);
        found.lines.iter().map(words).collect::<Vec<_>>().join(", ")
    };
    let long = "long X INE0EXA01011 - - 10 - 1000 considered=500";
    let short = "short X INE0EXA01011 - - 2 - 200 considered=120";
    assert_eq!(of(&[long, short], "2024-25"), "agreed");
    let wrong = "short X INE0EXA01011 - - 2 - 200 considered=121";
    assert_eq!(of(&[long, wrong], "2024-25"), "differs cost");
    assert_eq!(of(&[long], "2024-25"), "differs quantity cost proceeds");
    // What was sold in one year is of that year.
    assert_eq!(of(&[long, short], "2025-26"), "only_ledger");
    assert_eq!(of(&[long, short], "2023-24"), "");
    // Another report has the dates.
    let dated = "long X INE0EXA01011 2023-03-01 2024-06-03 10 500 1000";
    assert_eq!(of(&[long, short, dated], "2024-25"), "agreed, only_ledger");
    let other = "long Y INE0EXB01019 - - 10 - 1000 considered=500";
    assert_eq!(of(&[other, long, short], "2024-25"), "agreed, only_report");
}

#[test]
fn an_old_and_a_new_isin_and_a_symbol_alone_are_one_security() {
    let split = r#"{"kind":"split","isin":"INE0EXA01011","new_isin":"INE0EXA01029",
        "ex_date":"2024-01-10","numerator":5,"denominator":1}"#;
    let trades = [
        "a 2023-03-01 buy 10 X 50 INE0EXA01011 #1",
        "a 2024-12-17 sell 50 X 30 INE0EXA01029 #2",
    ];
    for isin in ["INE0EXA01011", "INE0EXA01029", "-"] {
        let line = format!("long X {isin} 2023-03-01 2024-12-17 50 500 1500");
        let reports = vec![report("a", ZERODHA, &[&line])];
        assert_eq!(
            Story {
                reports,
                ..story(&trades, &[split])
            }
            .words("2024-25"),
            "agreed"
        );
    }
    let unknown = [
        "a 2023-03-01 buy 10 X 50 #1",
        "a 2024-12-17 sell 10 X 150 #2",
    ];
    let line = format!("long X {X} 2023-03-01 2024-12-17 10 500 1500");
    let reports = vec![report("a", ZERODHA, &[&line])];
    assert_eq!(
        Story {
            reports,
            ..story(&unknown, &[])
        }
        .words("2024-25"),
        "agreed"
    );
}

#[test]
fn reports_of_one_time_meet_and_do_not_add_up() {
    let trades = [
        "a 2023-03-01 buy 20 X 50 INE0EXA01011 #1",
        "a 2024-12-17 sell 20 X 150 INE0EXA01011 #2",
    ];
    let line = format!("long X {X} 2023-03-01 2024-12-17 10 500 1500");
    let twice = report("a", ZERODHA, &[&line, &line]);
    let once = report("a", ZERODHA, &[&line]);
    for reports in [
        vec![twice.clone()],
        vec![once.clone(), twice.clone()],
        vec![twice, once],
    ] {
        assert_eq!(
            Story {
                reports,
                ..story(&trades, &[])
            }
            .words("2024-25"),
            "agreed"
        );
    }
}

#[test]
fn a_sale_is_agreed_if_all_of_it_is() {
    let trades = [
        "a 2023-03-01 buy 10 X 50 INE0EXA01011 #1",
        "a 2023-04-03 buy 10 X 60 INE0EXA01011 #2",
        "a 2024-12-17 sell 20 X 150 INE0EXA01011 #3",
        "a 2024-12-18 sell 5 X 150 INE0EXA01011 #4",
    ];
    let first = "long X INE0EXA01011 2023-03-01 2024-12-17 10 500 1500";
    let second = "long X INE0EXA01011 2023-04-03 2024-12-17 10 600 1500";
    let wrong = "long X INE0EXA01011 2023-04-03 2024-12-17 10 700 1500";
    let elsewhere = "long X INE0EXA01011 2022-04-03 2024-12-17 20 700 3000";
    let uncovered = "long X INE0EXA01011 2022-04-03 2024-12-18 5 100 750";
    for (lines, expected) in [
        (&[][..], [None, None]),
        (&[first, second], [Some(true), None]),
        (&[first], [Some(false), None]),
        (&[first, wrong], [Some(false), None]),
        (&[elsewhere], [Some(false), None]),
        (&[first, second, uncovered], [Some(true), Some(false)]),
    ] {
        let reports = vec![report("a", ZERODHA, lines)];
        let story = Story {
            reports,
            ..story(&trades, &[])
        };
        let found = story.with_sources(|sources| {
            let found = agreement(sources, &story.reports, fy("2024-25"), None);
            let sales = sales(sources, fy("2024-25"), &|_| true);
            sales
                .iter()
                .map(|sale| found.of_sale(sale))
                .collect::<Vec<_>>()
        });
        assert_eq!(found, expected, "{lines:?}");
    }
}

proptest! {
    /// A report that says what the ledger says agrees, in any order and however often it is read.
    #[test]
    fn a_report_of_the_ledger_itself_agrees(
        days in prop::collection::vec((0_i32..900, 1_u32..40, 1_u32..5000, any::<bool>()), 1..30),
        keep in any::<u64>(),
    ) {
        let start = date("2022-05-02");
        let mut lines = Vec::new();
        for (at, (after, quantity, price, is_sale)) in days.iter().enumerate() {
            let day = start.saturating_add(jiff::Span::new().days(*after));
            let side = if *is_sale { "sell" } else { "buy" };
            let price = Decimal::new((*price).into(), 2);
            lines.push(format!("a {day} {side} {quantity} X {price} {X} #{at}"));
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let of_ledger = story(&lines, &[]);
        let mut written = Vec::new();
        for year in ["2022-23", "2023-24", "2024-25"] {
            for line in of_ledger.agreement(year).lines {
                let figures = line.ledger.unwrap();
                let amounts = [figures.cost, figures.proceeds].map(|of| known(of.as_ref()));
                let amounts = amounts.join(" ");
                let [acquired, sold] =
                    [line.group.acquired_on, line.group.sold].map(|day| day.unwrap());
                let quantity = figures.quantity;
                let section = figures.section;
                let what = format!("{section} X {X} {acquired} {sold} {quantity}");
                written.push(format!("{what} {amounts}"));
            }
        }
        let all: Vec<&str> = written.iter().map(String::as_str).collect();
        let some: Vec<&str> = all
            .iter()
            .enumerate()
            .filter(|(at, _)| keep >> (at % 64) & 1 == 1)
            .map(|(_, line)| *line)
            .collect();
        let reports = [&some, &all, &all].map(|lines| report("a", ZERODHA, lines)).into();
        let reported = Story { reports, ..story(&lines, &[]) };
        for year in ["2022-23", "2023-24", "2024-25"] {
            let found = reported.agreement(year);
            prop_assert!(found.lines.iter().all(|line| line.status == Status::Agreed));
            prop_assert!(found.amount_open.is_zero());
        }
    }
}
