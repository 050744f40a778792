//! Tests of the files that are read, each with all that it says.

use jiff::civil::{Date, Time};
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::corrections::{Action, Change, ClassWord, Correction, How, OpeningLot, Ratio};
use super::file::{
    ClientId, ClientIdKind, FileFormat, FileKind, Proposal, ReadFile, RefusedReason,
};
use super::file_samples::{HEADER, LINE, TODAY, account, read, text_row, tradebook, workbook, zip};
use super::report_line::ReportSection;
use super::row::{Charges, Mark, Row, RowCharges, Segment, Side};
use crate::base::Isin;
use crate::base::symbol::Exchange;

fn number(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn isin(text: &str) -> Option<Isin> {
    Some(Isin::parse(text).unwrap())
}

fn at(hour: i8, minute: i8, second: i8) -> Option<Time> {
    Some(Time::constant(hour, minute, second, 0))
}

/// What `LINE` says on the line after the header.
fn first() -> Row {
    Row {
        line: 2,
        symbol: "ALPHA".into(),
        isin: isin("INE0EXA01011"),
        exchange: Exchange::Nse,
        segment: Segment::Equity,
        series: Some("EQ".into()),
        date: Date::constant(2023, 5, 11),
        time: at(10, 41, 9),
        side: Side::Buy,
        quantity: 12.into(),
        price: number("2311.4"),
        trade_id: Some("40417733".into()),
        order_id: Some("1300000005190417".into()),
        product: None,
        auction: false,
        expiry: None,
        charges: RowCharges::default(),
        stt_paid: None,
        mark: None,
    }
}

fn sample(name: &str) -> ReadFile {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ledger/files");
    read(std::fs::read(format!("{folder}/{name}")).unwrap()).unwrap()
}

/// A row in short: what it was and of what.
fn short(row: &Row) -> String {
    let side = row.side.as_str();
    let exchange = row.exchange.as_str();
    format!("{} {side} {} {} {exchange} {}", row.line, row.symbol, row.quantity, row.price)
}

/// The reasons of refused lines.
fn reasons(file: &ReadFile) -> Vec<(u32, &'static str)> {
    file.refused
        .iter()
        .map(|refused| (refused.line, refused.reason.as_str()))
        .collect()
}

/// The first line with other cells in place of some.
fn with(changes: &[(usize, &str)]) -> String {
    let mut cells: Vec<&str> = LINE.split(',').collect();
    for (at, text) in changes {
        cells[*at] = text;
    }
    cells.join(",")
}

#[test]
fn a_line_of_a_tradebook_is_a_row_with_all_that_it_says() {
    let file = read(tradebook(&[LINE])).unwrap();
    assert_eq!(file.rows, [first()]);
    assert_eq!((file.kind, file.format), (FileKind::Trades, FileFormat::ZerodhaTradebook));
    assert_eq!((file.row_count, file.notes.len(), file.refused.len()), (1, 0, 0));
}

#[test]
fn the_shared_tradebook_has_nineteen_rows() {
    let file = sample("zerodha-tradebook-eq.csv");
    let rows: Vec<String> = file.rows.iter().map(short).collect();
    assert_eq!(
        rows,
        [
            "2 buy RELIANCE 12 NSE 2311.4",
            "3 buy RELIANCE 6 BSE 2498.75",
            "4 sell RELIANCE 9 NSE 2877.15",
            "5 sell RELIANCE 9 NSE 3012.6",
            "6 buy INFY 15 NSE 1893.2",
            "7 sell INFY 15 NSE 1901.85",
            "8 sell SUZLON 450 NSE 6.35",
            "9 buy GOLDBEES 90 NSE 60.85",
            "10 sell GOLDBEES 90 NSE 79.12",
            "11 buy EXAMPLESME 1200 NSE 101.35",
            "12 buy EXAMPLET2T 10 NSE 55.5",
            "13 buy EXAMPLEBSE 10 BSE 12.07",
            "14 buy EXAMPLEREIT 3 NSE 371.4",
            "15 sell EXAMPLERE 4 NSE 7.1",
            "16 buy EXAMPLEFILL 7 NSE 452.35",
            "17 buy EXAMPLEFILL 31 NSE 452.35",
            "18 buy EXAMPLEFILL 4 NSE 452.35",
            "19 buy EXAMPLEFILL 9 NSE 452.35",
            "20 buy EXAMPLEFILL 9 NSE 452.35",
        ]
    );
    assert_eq!(file.rows[1].order_id.as_deref(), Some("1690947000098765432"));
    assert_eq!(file.rows[1].trade_id.as_deref(), Some("2093"));
    let text = format!("{:?}{:?}{:?}", file.refused, file.proposals, file.notes);
    assert_eq!((file.row_count, text.as_str()), (19, "[][][]"));
}

/// The workbook has the trades of the text, one by one, nine lines further down.
#[test]
fn the_shared_workbook_has_the_rows_of_the_shared_text() {
    let workbook = sample("zerodha-tradebook-console-a9.xlsx");
    let text = sample("zerodha-tradebook-eq.csv");
    let moved: Vec<Row> = text
        .rows
        .into_iter()
        .map(|row| Row {
            line: row.line + 8,
            ..row
        })
        .collect();
    assert_eq!(workbook.rows, moved);
    assert_eq!(workbook.client_id, ClientId::of(ClientIdKind::UserA, "ZZ0000"));
    assert_eq!(workbook.notes, ["Sheet1: lines up to 5 stand above the header and are no rows"]);
}

#[test]
fn the_old_template_has_no_isin_and_its_client_in_each_line() {
    let file = sample("zerodha-tradebook-old-template.csv");
    let known = sample("zerodha-tradebook-eq.csv").rows.into_iter().take(4);
    let known: Vec<Row> = known.map(|row| Row { isin: None, ..row }).collect();
    assert_eq!(file.rows, known);
    assert_eq!(file.client_id, ClientId::of(ClientIdKind::UserA, "ZZ0000"));
}

#[test]
fn contracts_have_their_segment_and_their_expiry() {
    let file = sample("zerodha-tradebook-fo.csv");
    let rows: Vec<String> = file.rows.iter().map(short).collect();
    assert_eq!(
        rows,
        [
            "2 buy NIFTY24SEP25100CE 25 NSE 118.4",
            "3 sell NIFTY24SEP25100CE 25 NSE 161.2",
            "4 sell NIFTY24SEP24700PE 25 NSE 88.15",
        ]
    );
    for row in &file.rows {
        assert_eq!(
            (row.segment, row.isin, row.series.as_deref()),
            (Segment::Derivatives, None, None)
        );
        assert_eq!(row.expiry, Some(Date::constant(2024, 9, 26)));
    }
    let lines = [
        with(&[(1, ""), (3, "NFO")]),
        with(&[(1, ""), (3, "BFO"), (4, "")]),
        with(&[(3, "CDS"), (4, "CDS")]),
        with(&[(3, "MCX"), (4, "COM")]),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let file = read(tradebook(&lines)).unwrap();
    let markets: Vec<_> = file
        .rows
        .iter()
        .map(|row| (row.exchange, row.segment))
        .collect();
    assert_eq!(
        markets,
        [
            (Exchange::Nse, Segment::Derivatives),
            (Exchange::Bse, Segment::Derivatives),
            (Exchange::Nse, Segment::Currency),
        ]
    );
    assert_eq!(reasons(&file), [(5, "exchange_not_nse_or_bse")]);
}

#[test]
fn a_byte_order_mark_quotes_and_line_ends_change_nothing() {
    let quoted = |line: &str| {
        let cells: Vec<String> = line.split(',').map(|cell| format!("\"{cell}\"")).collect();
        cells.join(",")
    };
    let plain = tradebook(&[LINE]);
    for text in [
        format!("\u{feff}{plain}"),
        plain.replace('\n', "\r\n"),
        format!("\u{feff}{}\r\n{}", quoted(HEADER), quoted(LINE)),
        plain.replace(',', ", "),
        plain.replace(',', "\t"),
        format!("{}\n\n,,,,\n", plain.trim_end()),
    ] {
        assert_eq!(read(&text).unwrap().rows, [first()], "{text:?}");
    }
    let crlf = read(plain.replace('\n', "\n\r\n")).unwrap();
    assert_eq!(crlf.rows[0].line, 3, "an empty line is counted and is no row");
}

#[test]
fn two_lines_may_stand_above_the_header() {
    let text = "Tradebook for ZZ0000\nClient ID,ZZ0000\n\
                Symbol/Scrip,ISIN,Trade Date,Exchange,Segment,Series,Trade Type,Quantity,Price,\
                Trade ID,Order ID,Order Execution Time\n\
                ALPHA,INE0EXA01011,2023-05-11,NSE,EQ,EQ,buy,12,2311.4,40417733,1300000005190417,\
                2023-05-11 10:41:09\n";
    let file = read(text).unwrap();
    assert_eq!(file.rows, [Row { line: 4, ..first() }]);
    assert_eq!(file.client_id, ClientId::of(ClientIdKind::UserA, "ZZ0000"));
    assert_eq!(file.notes, ["lines up to 2 stand above the header and are no rows"]);
}

/// A row of a workbook as Console writes it, of the cells of `LINE`.
fn console_row(line: u32, first: u8, trade_id: &str) -> String {
    let cell = |at: u8, kind: &str, value: &str| {
        let column = char::from(first + at);
        format!(r#"<c r="{column}{line}"{kind}><v>{value}</v></c>"#)
    };
    let text = r#" t="str""#;
    [
        format!(r#"<row r="{line}">"#),
        cell(0, text, "ALPHA"),
        cell(1, text, "INE0EXA01011"),
        cell(2, r#" s="1""#, "45057"),
        cell(3, text, "NSE"),
        cell(4, text, "EQ"),
        cell(5, text, "EQ"),
        cell(6, text, "buy"),
        cell(7, r#" t="b""#, "0"),
        cell(8, "", "12.0"),
        cell(9, "", "2311.4"),
        cell(10, "", trade_id),
        cell(11, text, "1300000005190417"),
        cell(12, r#" s="2""#, "45057.445243055554"),
        "</row>".into(),
    ]
    .concat()
}

fn title_case() -> Vec<String> {
    HEADER
        .split(',')
        .map(|name| name.replace('_', " "))
        .collect()
}

#[test]
fn a_table_may_begin_in_column_a_or_b_and_its_header_in_any_early_row() {
    let names = title_case();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (column, line) in [(b'A', 1), (b'B', 9), (b'A', 14), (b'B', 15), (b'B', 30)] {
        let rows = text_row(line, column, &names) + &console_row(line + 1, column, "40417733");
        let file = read(workbook(&[("Equity", &rows)], &[])).unwrap();
        assert_eq!(
            file.rows,
            [Row {
                line: line + 1,
                ..first()
            }]
        );
    }
    let rows = text_row(31, b'A', &names) + &console_row(32, b'A', "40417733");
    assert!(read(workbook(&[("Equity", &rows)], &[])).is_err(), "the header is too far down");
}

#[test]
fn formatted_empty_rows_are_no_rows() {
    let names = title_case();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut rows = text_row(1, b'A', &names) + &console_row(2, b'A', "40417733");
    for line in 3..5_000 {
        rows.push_str(&format!(r#"<row r="{line}"><c r="A{line}" s="4"/><c r="B{line}"/></row>"#));
    }
    rows.push_str(&console_row(5_000, b'A', "40417734"));
    let file = read(workbook(&[("Equity", &rows)], &[])).unwrap();
    assert_eq!(file.rows.iter().map(|row| row.line).collect::<Vec<_>>(), [2, 5_000]);
    assert_eq!((file.row_count, file.refused.len()), (2, 0));
}

#[test]
fn a_number_of_more_than_fifteen_digits_is_no_id() {
    let names = title_case();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let id = |trade_id: &str| {
        let rows = text_row(1, b'A', &names) + &console_row(2, b'A', trade_id);
        let file = read(workbook(&[("Equity", &rows)], &[])).unwrap();
        file.rows[0].trade_id.clone()
    };
    assert_eq!(id("123456789012345").as_deref(), Some("123456789012345"));
    assert_eq!(id("4.0417733E7").as_deref(), Some("40417733"));
    assert_eq!(id("1234567890123456"), None);
    assert_eq!(id("1.69094700009877E+18"), None);
    let text = read(tradebook(&[&with(&[(10, "1.3E+15"), (11, "1690947000098765432")])])).unwrap();
    let ids = (text.rows[0].trade_id.as_deref(), text.rows[0].order_id.as_deref());
    assert_eq!(ids, (None, Some("1690947000098765432")));
}

#[test]
fn cells_may_be_shared_within_a_workbook() {
    let names = title_case();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let row = console_row(2, b'A', "40417733")
        .replace(r#"<c r="A2" t="str"><v>ALPHA</v></c>"#, r#"<c r="A2" t="s"><v>1</v></c>"#);
    let rows = text_row(1, b'A', &names) + &row.replace("str\"><v>buy</v>", "s\"><v>2</v>");
    let shared = b"<sst><si><t>unused</t></si>\
                   <si><r><t>M&amp;</t></r><r><t>M</t></r><rPh><t>em</t></rPh></si>\
                   <si><t>BUY</t></si></sst>";
    let file = read(workbook(&[("S", &rows)], &[("xl/sharedStrings.xml", shared)])).unwrap();
    assert_eq!(
        file.rows,
        [Row {
            symbol: "M&M".into(),
            ..first()
        }]
    );
    let beyond = rows.replace("<v>1</v>", "<v>9</v>");
    let file = read(workbook(&[("S", &beyond)], &[("xl/sharedStrings.xml", shared)])).unwrap();
    assert_eq!(reasons(&file), [(2, "cell_holds_an_error")]);
}

#[test]
fn a_formula_a_wrong_cell_and_a_far_cell_each_cost_their_row_alone() {
    let names = title_case();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let formula = console_row(2, b'A', "1").replace("<v>12.0</v>", "<f>SUM(A1:A9)</f><v>12</v>");
    let error = console_row(3, b'A', "2")
        .replace(r#"<c r="J3"><v>2311.4</v>"#, r#"<c r="J3" t="e"><v>#N/A</v>"#);
    let far = text_row(4, b'A', &["ALPHA"]).replace("</row>", "<c r=\"XFD4\"><v>1</v></c></row>");
    let last = r#"<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>"#;
    let rows = text_row(1, b'A', &names) + &formula + &error + &far + last;
    let file = read(workbook(&[("S", &rows)], &[])).unwrap();
    let expected = [
        (2, "formula"),
        (3, "cell_holds_an_error"),
        (4, "exchange_not_nse_or_bse"),
        (1_048_576, "exchange_not_nse_or_bse"),
    ];
    assert_eq!(reasons(&file), expected);
    let text = read(tradebook(&[&with(&[(9, "=1+1")])])).unwrap();
    assert_eq!(reasons(&text), [(2, "formula")]);
}

/// Each line that is not taken has its own reason, and those around it are taken.
#[test]
fn refused_lines_name_what_is_wrong_with_them() {
    let cases: &[(usize, &str, RefusedReason)] = &[
        (0, "", RefusedReason::SymbolMissing),
        (
            0,
            "A123456789B123456789C123456789D123456789E123456789F123456789G1234",
            RefusedReason::SymbolTooLong,
        ),
        (1, "INE0EXA0101", RefusedReason::IsinMalformed),
        (2, "", RefusedReason::DateMissing),
        (2, "2023-02-30", RefusedReason::DateImpossible),
        (2, "05-11-2023", RefusedReason::DateUnreadable),
        (2, "soon", RefusedReason::DateUnreadable),
        (2, "2026-08-21", RefusedReason::DateInFuture),
        (2, "1989-12-31", RefusedReason::DateTooEarly),
        (3, "MCX", RefusedReason::OtherExchange),
        (4, "MF", RefusedReason::SegmentUnknown),
        (6, "bought", RefusedReason::SideUnknown),
        (6, "", RefusedReason::SideUnknown),
        (7, "perhaps", RefusedReason::AuctionUnknown),
        (8, "-12", RefusedReason::QuantityNotPositive),
        (8, "0.000", RefusedReason::QuantityNotPositive),
        (8, "1000000000001", RefusedReason::QuantityTooLarge),
        (8, "99999999999999999999999999999999999999999", RefusedReason::QuantityTooLarge),
        (8, "0.0000000001", RefusedReason::QuantityTooPrecise),
        (8, "twelve", RefusedReason::QuantityUnreadable),
        (8, "", RefusedReason::QuantityUnreadable),
        (8, "1e3", RefusedReason::QuantityUnreadable),
        (9, "0", RefusedReason::PriceNotPositive),
        (9, "-1", RefusedReason::PriceNotPositive),
        (9, "1000000000000.01", RefusedReason::PriceTooLarge),
        (9, "1.1234567891", RefusedReason::PriceTooPrecise),
        (9, "NaN", RefusedReason::PriceUnreadable),
        (12, "2023-05-11T24:41:09", RefusedReason::TimeUnreadable),
        (12, "2023-05-11T10:41:09Z", RefusedReason::TimeUnreadable),
    ];
    for (at, text, reason) in cases {
        let file = read(tradebook(&[LINE, &with(&[(*at, text)]), LINE])).unwrap();
        assert_eq!(reasons(&file), [(3, reason.as_str())], "{text}");
        assert_eq!((file.rows.len(), file.row_count), (2, 3), "{text}");
    }
}

#[test]
fn what_is_odd_and_still_possible_is_taken() {
    let taken = |changes: &[(usize, &str)]| {
        let file = read(tradebook(&[&with(changes)])).unwrap();
        assert_eq!(file.refused, [], "{changes:?}");
        file.rows.into_iter().next().unwrap()
    };
    let fraction = Row {
        quantity: number("0.123456789"),
        ..first()
    };
    assert_eq!(taken(&[(8, "0.123456789")]), fraction);
    assert_eq!(taken(&[(8, "12.0000000000")]), first());
    let most = Row {
        quantity: 1_000_000_000_000_i64.into(),
        ..first()
    };
    assert_eq!(taken(&[(8, "1000000000000")]), most);
    assert_eq!(taken(&[(2, "1990-01-01")]).date, Date::constant(1990, 1, 1));
    assert_eq!(taken(&[(2, "2026-08-20")]).date, TODAY);
    assert_eq!(taken(&[(12, "")]).time, None);
    assert_eq!(taken(&[(12, "10:41")]).time, at(10, 41, 0));
    assert_eq!(taken(&[(12, "2023-05-11 10:41:09.250")]).time, at(10, 41, 9));
    assert!(taken(&[(7, "TRUE"), (6, "Buy")]).auction);
    assert_eq!(taken(&[(10, ""), (11, "-")]).trade_id, None);
}

#[test]
fn a_stray_quote_and_bytes_that_are_no_text_cost_their_line_alone() {
    let stray = with(&[(0, "\"ALPHA")]);
    let file = read(tradebook(&[&stray, LINE])).unwrap();
    assert_eq!(reasons(&file), [(2, "quote_not_closed")]);
    assert_eq!(file.rows, [Row { line: 3, ..first() }]);
    let mut bytes = tradebook(&[]).into_bytes();
    bytes.extend_from_slice(b"AL\x92PHA,x\n");
    bytes.extend_from_slice(LINE.as_bytes());
    let file = read(bytes).unwrap();
    assert_eq!(reasons(&file), [(2, "not_utf8")]);
    assert_eq!(file.rows, [Row { line: 3, ..first() }]);
}

#[test]
fn a_header_within_the_rows_is_named_and_lines_of_another_client_are_refused() {
    let file = read(tradebook(&[LINE, HEADER, LINE])).unwrap();
    assert_eq!(
        (file.rows.len(), file.notes.as_slice()),
        (2, &["line 3 is the header once more".to_owned()][..])
    );
    let header = format!("client_id,{HEADER}");
    let text = format!("{header}\nZZ0000,{LINE}\nYY1111,{LINE}\nzz0000,{LINE}\n");
    let file = read(text).unwrap();
    assert_eq!(reasons(&file), [(3, "other_client_id")]);
    assert_eq!((file.rows.len(), file.client_id.unwrap().id.as_str()), (2, "ZZ0000"));
}

#[test]
fn a_zip_of_tradebooks_is_read_as_one() {
    let one = tradebook(&[LINE]);
    let other = tradebook(&[LINE, LINE]);
    let members: [(&str, &[u8]); 4] = [
        ("2023/a.csv", one.as_bytes()),
        ("__MACOSX/2023/._a.csv", b" \x00"),
        ("2023/photo.png", b"\x89PNG\x00"),
        ("2024/b.csv", other.as_bytes()),
    ];
    let file = read(zip(&members)).unwrap();
    let lines: Vec<u32> = file.rows.iter().map(|row| row.line).collect();
    assert_eq!(lines, [2, 4, 5]);
    let notes = [
        "photo.png was not read: it has no header that is known",
        "b.csv: its line 1 is line 3",
    ];
    assert_eq!(file.notes, notes);
}

// ---- Broker B's trades

const TRANSACTIONS: &str = "Stock Symbol,Company Name,ISIN Code,Action,Quantity,Transaction Price,\
                            Brokerage,Transaction Charges,StampDuty,Segment,\
                            STT Paid/Not Paid,Remarks,Transaction Date,Exchange,";

fn first_transaction() -> Row {
    let charges = Charges {
        brokerage: Some(number("4.2")),
        stt: None,
        stamp_duty: Some(number("0.1")),
        other: Some(number("0.03")),
    };
    Row {
        symbol: "EXAIND".into(),
        series: None,
        date: Date::constant(2017, 7, 11),
        time: None,
        quantity: 10.into(),
        price: number("84.4"),
        trade_id: None,
        order_id: None,
        charges: charges.into(),
        stt_paid: Some(true),
        ..first()
    }
}

fn proposals_of_transactions() -> [Proposal; 3] {
    let isin = Isin::parse("INE0EXA01011").unwrap();
    let action = |ex_date: Date, change: Change| {
        Correction::Action(Action {
            account: None,
            isin,
            ex_date,
            change,
        })
    };
    let ratio = Ratio {
        numerator: 1,
        denominator: 1,
    };
    let bonus = Change::Bonus {
        ratio,
        allotment_date: None,
        record_date: None,
    };
    // Twenty were held, of which a hundred became.
    let ratio = Ratio {
        numerator: 5,
        denominator: 1,
    };
    let split = Change::Split {
        ratio,
        new_isin: None,
    };
    let lot = Correction::OpeningLot(OpeningLot {
        account: account(),
        isin: Isin::parse("INE0EXN01010").unwrap(),
        date: Date::constant(2022, 2, 1),
        entered: None,
        quantity: 7.into(),
        cost: Decimal::ZERO,
        how: Some(How::OffMarket),
    });
    [
        Proposal {
            line: 3,
            correction: action(Date::constant(2019, 9, 2), bonus),
        },
        Proposal {
            line: 4,
            correction: action(Date::constant(2020, 10, 5), split),
        },
        Proposal {
            line: 6,
            correction: lot,
        },
    ]
}

#[test]
fn all_transactions_are_rows_and_those_without_a_price_are_proposals() {
    let text = format!(
        "{}\n\
         EXAIND,EXAMPLE LTD,INE0EXA01011,Buy,10,84.4,4.2,0.03,0.1,Rolling,STT Paid,,\
         11-Jul-2017,NSE,\n\
         EXAIND,EXAMPLE LTD,INE0EXA01011,Buy,10,0,0,0,0,Rolling,STT Not Paid,BONUS 1:1,\
         02-Sep-2019,NSE,\n\
         EXAIND,EXAMPLE LTD,INE0EXA01011,Buy,80,0,0,0,0,Rolling,STT Not Paid,Split of shares,\
         05-Oct-2020,NSE,\n\
         EXAIND,EXAMPLE LTD,INE0EXA01011,Sell,3,141,2.5,0.01,0,Rolling,STT Not Paid,,\
         03-Sep-2024,BSE,\n\
         EXANEW,OTHER LTD,INE0EXN01010,Buy,7,0,0,0,0,Rolling,STT Not Paid,,01-Feb-2022,NSE,\n\
         EXANEW,OTHER LTD,,Buy,7,0,0,0,0,Rolling,STT Not Paid,,01-Feb-2022,NSE,\n",
        TRANSACTIONS.replace(',', ", ")
    );
    let file = read(text).unwrap();
    assert_eq!(file.format, FileFormat::IciciTransactions);
    assert_eq!(file.rows[0], first_transaction());
    assert_eq!(short(&file.rows[1]), "5 sell EXAIND 3 BSE 141");
    assert_eq!((file.rows.len(), file.rows[1].stt_paid), (2, Some(false)));
    assert_eq!(file.proposals, proposals_of_transactions());
    assert_eq!(reasons(&file), [(7, "isin_missing")]);
    assert_eq!(file.row_count, 6);
}

fn charges(brokerage: &str, stt: u32, stamp_duty: u32, other: &str) -> Charges {
    Charges {
        brokerage: Some(number(brokerage)),
        stt: Some(stt.into()),
        stamp_duty: Some(stamp_duty.into()),
        other: Some(number(other)),
    }
}

/// A row of the tradebook: its line, symbol, order, day, quantity and price.
fn with_charges(
    (line, symbol, order): (u32, &str, &str),
    date: Date,
    (quantity, price): (u32, &str),
    charges: Charges,
) -> Row {
    Row {
        line,
        symbol: symbol.into(),
        isin: None,
        series: None,
        date,
        time: None,
        quantity: quantity.into(),
        price: number(price),
        trade_id: None,
        order_id: Some(order.into()),
        charges: RowCharges::from(charges),
        ..first()
    }
}

#[test]
fn a_tradebook_with_charges_is_checked_against_their_sum() {
    let file = sample("icici-tradebook.csv");
    let day = |month, day| Date::constant(2026, month, day);
    let gold = with_charges(
        (2, "EXAGOL", "20260728T700000001"),
        day(7, 28),
        (2, "670.7"),
        charges("4.6", 1, 0, "0.04"),
    );
    let fund = with_charges(
        (3, "EXAETF", "20260806T700000002"),
        day(8, 6),
        (50, "14.34"),
        charges("2.46", 0, 0, "0.02"),
    );
    let mtf = with_charges(
        (4, "EXAMTF", "20260807T700000003"),
        day(8, 7),
        (10, "1234.5"),
        charges("42.26", 12, 2, "0.37"),
    );
    assert_eq!(
        file.rows,
        [
            gold,
            fund,
            Row {
                mark: Some(Mark::MarginFunded),
                ..mtf
            }
        ]
    );
    assert_eq!(file.client_id, ClientId::of(ClientIdKind::Demat, "IN300000-00000001"));
    assert_eq!((file.row_count, file.proposals.len(), file.refused.len()), (3, 0, 0));

    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ledger/files");
    let text = std::fs::read_to_string(format!("{folder}/icici-tradebook.csv")).unwrap();
    let wrong = read(
        text.replace("\"5.64\"", "\"5.65\"")
            .replace("28-Jul-26", "03-Sep-2021"),
    )
    .unwrap();
    let row = &wrong.rows[0];
    assert_eq!((row.mark, *row.charges), (Some(Mark::ChargesUnclear), Charges::default()));
    assert_eq!(row.date, Date::constant(2021, 9, 3));
}

/// Broker B takes no tax on units of a fund that is none of shares.
#[test]
fn a_fund_without_tax_is_a_row_and_proposes_its_class_once() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ledger/files");
    let text = std::fs::read_to_string(format!("{folder}/icici-tradebook.csv")).unwrap();
    let mut with_isin = String::new();
    for (line, isin) in text
        .lines()
        .zip(["ISIN", "INF0EXA01G18", "INF0EXB01G19", "INE0EXM01012"])
    {
        with_isin.push_str(&format!("{line},{isin}\n"));
    }
    let again = with_isin.lines().nth(2).unwrap().to_owned();
    let file = read(format!("{with_isin}{again}\n")).unwrap();
    assert_eq!(file.rows.len(), 4);
    let isin = Isin::parse("INF0EXB01G19").unwrap();
    let correction = Correction::Class {
        isin,
        class: ClassWord::Other,
    };
    assert_eq!(
        file.proposals,
        [Proposal {
            line: 3,
            correction
        }]
    );
    assert_eq!(file.row_count, 5, "the lists together");
}

// ---- Reports

/// A line of a report in short.
fn exits(file: &ReadFile) -> Vec<String> {
    let day = |day: Option<Date>| day.map_or("-".into(), |day| day.to_string());
    let amount = |amount: Option<Decimal>| amount.map_or("-".into(), |amount| amount.to_string());
    let line = |line: &super::report_line::ReportLine| {
        let section = line.section.as_str();
        let days = format!("{} {}", day(line.acquired_on), day(line.sold));
        let values = format!("{} {} {}", amount(line.cost), line.proceeds, line.gain);
        let fmv = amount(line.fmv);
        format!(
            "{} {section} {} {days} {} {values} {fmv}",
            line.line, line.symbol, line.quantity
        )
    };
    file.report.iter().map(line).collect()
}

#[test]
fn the_shared_report_has_the_lines_of_all_its_sections() {
    let file = sample("zerodha-taxpnl-2024_2025.zip");
    assert_eq!((file.kind, file.format), (FileKind::TaxReport, FileFormat::ZerodhaTaxReport));
    assert_eq!(
        exits(&file),
        [
            "2 long RELIANCE 2023-05-11 2024-06-13 9 20802.6 25894.35 5091.75 -",
            "3 long RELIANCE 2023-05-11 2024-08-21 3 6934.2 9037.8 2103.6 -",
            "4 long RELIANCE 2023-08-02 2024-08-21 6 14992.5 18075.6 3083.1 -",
            "5 long EXAMPLEOLD 2016-11-09 2024-12-17 40 8200 11000 2800 11800",
            "8 intraday INFY 2024-09-03 2024-09-03 15 28398 28527.75 129.75 -",
            "10 fno NIFTY24SEP25100CE 2024-09-11 2024-09-13 25 2960 4030 1070 -",
        ]
    );
    assert_eq!(file.report[3].isin, isin("INE0EXO01018"));
    assert_eq!(file.report[3].taxable, Some(Decimal::ZERO));
    let nothing = Some(Decimal::ZERO);
    let charges = Charges {
        brokerage: nothing,
        stt: nothing,
        stamp_duty: nothing,
        other: nothing,
    };
    assert_eq!(file.report[0].charges, charges);
    assert_eq!((file.row_count, file.rows.len(), file.refused.len()), (6, 0, 0));
}

const EXITS: &str = "Symbol,ISIN,Entry Date,Exit Date,Quantity,Buy Value,Sell Value,Profit";
const EXIT: &str = "ALPHA,INE0EXA01011,2023-05-11,2024-06-13,9,20802.6,25894.35,5091.75";

fn cells(line: &str) -> Vec<&str> {
    line.split(',').collect()
}

#[test]
fn the_sections_of_a_sheet_stand_below_their_titles() {
    let rows = [
        text_row(1, b'B', &["Client ID", "ZZ0000"]),
        text_row(4, b'B', &["Equity - Intraday"]),
        text_row(5, b'B', &cells(EXITS)),
        text_row(7, b'B', &["Equity - Long Term"]),
        text_row(8, b'B', &cells(EXITS)),
        text_row(9, b'B', &cells(EXIT)),
        text_row(40, b'B', &["Something new"]),
        text_row(41, b'B', &cells(EXIT)),
    ]
    .concat();
    let summary = [
        text_row(3, b'B', &["Short Term profit", "0"]),
        text_row(4, b'B', &["Long Term profit", "5091.75"]),
        text_row(5, b'B', &["Non Equity profit", "12.5"]),
        text_row(6, b'B', &["Charges", "1"]),
    ]
    .concat();
    let sheets = [
        ("Equity", summary.as_str()),
        ("Tradewise Exits from 2024-04-01", &rows),
    ];
    let file = read(workbook(&sheets, &[])).unwrap();
    assert_eq!(
        exits(&file),
        ["9 long ALPHA 2023-05-11 2024-06-13 9 20802.6 25894.35 5091.75 -"]
    );
    assert_eq!(reasons(&file), [(41, "section_unknown")]);
    assert_eq!(
        file.notes,
        [
            "Equity was not read: it has no header that is known",
            "Tradewise Exits from 2024-04-01: lines up to 4 stand above the header and are no rows",
            "line 40 is no title that is known: Something new",
            "the summary says 12.5 for non_equity, and its lines add up to 0",
            "sums that agree with the summary: long, short",
        ]
    );
}

/// A ZIP has its sections as texts, and may have a workbook with all of them once more.
#[test]
fn a_workbook_beside_the_sections_adds_none_twice() {
    let member = format!("{EXITS}\n{EXIT}\n");
    let rows = [
        text_row(1, b'A', &["Equity - Long Term"]),
        text_row(2, b'A', &cells(EXITS)),
        text_row(3, b'A', &cells(EXIT)),
        text_row(5, b'A', &["Equity - Short Term"]),
        text_row(6, b'A', &cells(&EXIT.replace("2023-05-11", "2024-05-11"))),
    ]
    .concat();
    let inner = workbook(&[("Tradewise Exits", &rows)], &[]);
    let file = read(zip(&[
        ("x/summary.xlsx", inner.as_slice()),
        ("x/Exits-Equity - Long Term.csv", member.as_bytes()),
    ]))
    .unwrap();
    let sections: Vec<_> = file
        .report
        .iter()
        .map(|line| (line.line, line.section))
        .collect();
    assert_eq!(sections, [(2, ReportSection::Long), (8, ReportSection::Short)]);
    assert_eq!(
        file.notes,
        [
            "Tradewise Exits: lines up to 1 stand above the header and are no rows",
            "Tradewise Exits: 1 lines repeat sections that other files of the ZIP have, and are \
             not taken",
            "Tradewise Exits: its line 1 is line 3",
        ]
    );
}

#[test]
fn dividends_are_income_and_nothing_else() {
    let text = "Symbol,ISIN,Ex-Date,Quantity,Dividend Per Share,Net Dividend Amount\n\
                ALPHA,INE0EXA01011,2024-06-13,9,2.5,22.5\nBETA,,2024-06-14,9,,x\n";
    let file = read(text).unwrap();
    let [income] = file.income.as_slice() else {
        panic!("{:?}", file.income)
    };
    assert_eq!(
        (income.line, income.symbol.as_str(), income.isin),
        (2, "ALPHA", isin("INE0EXA01011"))
    );
    assert_eq!((income.ex_date, income.quantity), (Date::constant(2024, 6, 13), 9.into()));
    assert_eq!((income.per_share, income.amount), (Some(number("2.5")), number("22.5")));
    assert_eq!(reasons(&file), [(3, "amount_not_a_number")]);
    assert_eq!((file.kind, file.row_count), (FileKind::TaxReport, 2));
}

#[test]
fn capital_gains_of_broker_b_have_sections_and_totals() {
    let file = sample("icici-capital-gains.xls");
    assert_eq!(file.format, FileFormat::IciciCapitalGains);
    assert_eq!(file.client_id, ClientId::of(ClientIdKind::AccountB, "8500000000"));
    assert_eq!(
        exits(&file),
        [
            "6 long EXAIND 2017-07-11 2024-09-03 40 3376 5640 1729.42 3880",
            "9 short EXANEW 2024-04-16 2024-05-22 12 972 1140 162.3 -",
        ]
    );
    let line = &file.report[0];
    assert_eq!((line.cost_considered, line.stt_paid), (Some(3_880.into()), Some(true)));
    assert_eq!(
        (line.charges.other, line.purchase_expenses),
        (Some(number("13.27")), Some(number("17.31")))
    );
    assert_eq!(
        file.notes,
        [
            "lines up to 3 stand above the header and are no rows",
            "totals that agree with the lines above them, and are no rows: lines 7, 10, 11",
        ]
    );
    assert_eq!((file.row_count, file.refused.len()), (2, 0));
}

#[test]
fn a_total_that_differs_is_named_and_an_earlier_report_has_no_dates() {
    let text = "Account\t8500000000\n\
                Stock Symbol\tQty\tSale Rate\tSale Value\tPurchase Rate\tPurchase Value\t\
                Profit/Loss(-)\n\
                Short Term Capital Gain (STT not paid)\n\
                EXAIND\t40\t141\t5640\t97\t3880\t-1,760.50\n\
                Sub Total\t\t\t\t\t\t1760.5\n";
    let file = read(text).unwrap();
    assert_eq!(exits(&file), ["4 short EXAIND - - 40 3880 5640 -1760.5 -"]);
    assert_eq!(file.report[0].stt_paid, Some(false));
    assert_eq!(
        file.notes[1],
        "line 5: Sub Total is 1760.5, and the lines above it add up to -1760.5"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_columns_changes_nothing(
        order in Just((0..13).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let lines = [HEADER.to_owned(), LINE.to_owned(), with(&[(9, "-1")]), with(&[(6, "sell")])];
        let moved = |line: &String| {
            let cells: Vec<&str> = line.split(',').collect();
            order.iter().map(|at| cells[*at]).collect::<Vec<_>>().join(",")
        };
        let plain = read(lines.join("\n")).unwrap();
        let shuffled = read(lines.iter().map(moved).collect::<Vec<_>>().join("\n")).unwrap();
        prop_assert_eq!(plain, shuffled);
    }
}
