//! Rows that are read from a folder of candles, rows that are left out, and the limits.

use super::*;

const HEADERS: &str = "date,open,high,low,close,volume\n";

/// The candles of a text, and the reports on it.
fn parsed(text: &[u8]) -> (Result<Vec<Candle>, String>, usize, Vec<String>) {
    let mut told = Vec::new();
    let mut rows = Rows { file: "A.csv", left_out: 0, told: &mut told };
    let candles = parse(text, &mut rows).map_err(|fault| fault.to_string());
    let left_out = rows.left_out;
    (candles, left_out, told)
}

/// The report on one row below a good one.
fn told(row: &str) -> String {
    let text = format!("{HEADERS}2024-01-02,10,11,9,10,5\n{row}\n");
    let (candles, left_out, told) = parsed(text.as_bytes());
    assert_eq!((candles.unwrap().len(), left_out), (1, 1), "{row}");
    told.concat().strip_prefix("A.csv:3: left out: ").unwrap().to_owned()
}

#[test]
fn columns_are_found_by_name() {
    let text = "\u{feff}Symbol,Close, LOW ,high,open,Date,\"volume\"\r\n\
        X,10.5,9.25,11,10,\"2024-01-02\",1200.0\r\n";
    let (candles, _, _) = parsed(text.as_bytes());
    let candle = Candle {
        date: Date::constant(2024, 1, 2),
        open_e4: 100_000,
        high_e4: 110_000,
        low_e4: 92_500,
        close_e4: 105_000,
        volume: 1_200,
    };
    assert_eq!(candles.unwrap(), [candle]);
    for (headers, column) in
        [("", "date"), ("date,open,high,low,close", "volume"), ("date,date,open,high,low", "date")]
    {
        let (candles, _, _) = parsed(headers.as_bytes());
        let fault = format!("line 1 must name the column `{column}` once");
        assert_eq!(candles, Err(fault), "{headers}");
    }
}

#[test]
fn each_fault_is_named() {
    for (row, why) in [
        ("2024-01-03,NaN,11,9,10,5", "open `NaN` is not a finite number"),
        ("2024-01-03,10,-inf,9,10,5", "high `-inf` is not a finite number"),
        ("2024-01-03,10,1e400,9,10,5", "high `1e400` is not a finite number"),
        ("2024-01-03,10,1e20,9,10,5", "high `1e20` is out of range"),
        ("2024-01-03,10,11,0,10,5", "a price is not positive"),
        ("2024-01-03,10,11,-9,10,5", "a price is not positive"),
        ("2024-01-03,10,9,11,10,5", "the high is below another price, or the low above one"),
        ("2024-01-03,10,11,9,10,0", "nothing was traded"),
        ("2024-01-03,10,11,9,10,5.5", "volume `5.5` is not a number of shares"),
        ("2024-01-03,10,11,9,10", "volume is missing"),
        ("2024-01-03,10,,9,10,5", "high is missing"),
        ("2024-13-03,10,11,9,10,5", "date `2024-13-03` is not a date such as 2026-11-20"),
        ("20240103,10,11,9,10,5", "date `20240103` is not a date such as 2026-11-20"),
        ("33-Jan-2024,10,11,9,10,5", "date `33-Jan-2024` is not a date such as 2026-11-20"),
        ("3-Jan-2024,10,11,9,10,5", "date `3-Jan-2024` is not a date such as 2026-11-20"),
        ("03-Jan-24,10,11,9,10,5", "date `03-Jan-24` is not a date such as 2026-11-20"),
        ("2024-01-02,10,11,9,10,5", "another row has this date"),
        ("2024-01-03,\u{1b}[31m,11,9,10,5", "open `\\u{1b}[31m` is not a finite number"),
        ("2024-01-03,\"1,0\",11,9,10,5", "open `1,0` has a decimal comma; a point is expected"),
        (
            "2024-01-03,\"1.234,50\",11,9,10,5",
            "open `1.234,50` has a decimal comma; a point is expected",
        ),
        ("2024-01-03,\"1,05,0000\",11,9,10,5", "open `1,05,0000` is not a finite number"),
        (
            "2024-01-03,10,5,11,0,9,5,10,0,5",
            "more fields than line 1 has; are there decimal commas?",
        ),
        ("2024-01-03,\"10.5,000\",11,9,10,5", "open `10.5,000` is not a finite number"),
        // An unclosed quote takes the rest of its line, and nothing of the next.
        ("2024-01-03,10,11,9,10,\"5", "volume `\\\"5` is not a finite number"),
        ("2024-01-03,10,\"11,9,10,5", "high `\\\"11,9,10,5` is not a finite number"),
    ] {
        assert_eq!(told(row), why, "{row}");
    }
    let (_, left_out, told) = parsed(b"date,open,high,low,close,volume\n\xff,1,1,1,1,1\n");
    assert_eq!(left_out, 1);
    assert_eq!(told, ["A.csv:2: left out: date `...` is not UTF-8 text"]);
}

#[test]
fn dates_and_numbers_come_as_the_exchange_writes_them() {
    let text = format!(
        "{HEADERS}\"03-Jan-2022\",\"1,05,000.50\",\"1,05,001\",99,100,\"1,547,819\"\n\
         04-JAN-2022,10,11,9,10,\"12,34,567\"\n"
    );
    let (candles, left_out, told) = parsed(text.as_bytes());
    let candles = candles.unwrap();
    assert_eq!((left_out, told), (0, Vec::new()));
    assert_eq!(candles[0].date, Date::constant(2022, 1, 3));
    assert_eq!((candles[0].open_e4, candles[0].volume), (1_050_005_000, 1_547_819));
    assert_eq!((candles[1].date, candles[1].volume), (Date::constant(2022, 1, 4), 1_234_567));
}

#[test]
fn a_file_whose_newest_row_is_first_is_turned_round() {
    let row = |day: u8| format!("2024-01-{day:02},10,11,9,10,5\n");
    let days = |candles: &[Candle]| candles.iter().map(|c| c.date.day()).collect::<Vec<_>>();
    // Rows out of the file's own order are left out, each with its line.
    for (order, kept, lines) in [
        ([8, 5, 9, 4, 3], vec![3, 4, 5, 8], vec!["A.csv:4:"]),
        ([3, 4, 2, 5, 8], vec![3, 4, 5, 8], vec!["A.csv:4:"]),
        ([8, 5, 5, 4, 3], vec![3, 4, 5, 8], vec!["A.csv:4:"]),
    ] {
        let text: String = std::iter::once(HEADERS.to_owned()).chain(order.map(row)).collect();
        let (candles, left_out, told) = parsed(text.as_bytes());
        assert_eq!(days(&candles.unwrap()), kept, "{order:?}");
        let places: Vec<_> = told.iter().map(|told| told.split(' ').next().unwrap()).collect();
        assert_eq!((left_out, places), (lines.len(), lines), "{order:?}");
    }
    let (_, _, told) = parsed(format!("{HEADERS}{}{}{}", row(4), row(3), row(9)).as_bytes());
    assert_eq!(told, ["A.csv:3: left out: the date is out of order"]);
}

/// Nobody knows which of them is right, whatever their order.
#[test]
fn rows_that_contradict_each_other_are_all_left_out() {
    let row = |day: u8, close: u8| format!("2024-01-{day:02},10,12,9,{close},5\n");
    for rows in [
        [row(2, 10), row(3, 10), row(3, 11), row(3, 10), row(4, 10)],
        [row(4, 10), row(3, 10), row(3, 11), row(3, 10), row(2, 10)],
    ] {
        let (candles, left_out, told) = parsed((HEADERS.to_owned() + &rows.concat()).as_bytes());
        let days: Vec<i8> = candles.unwrap().iter().map(|candle| candle.date.day()).collect();
        assert_eq!((days, left_out), (vec![2, 4], 3));
        let why =
            |line: u8| format!("A.csv:{line}: left out: rows of 2024-01-03 contradict each other");
        assert_eq!(told, [why(3), why(4), why(5)]);
    }
}

#[test]
fn files_in_other_forms_are_named_as_such() {
    let row = "2024-01-02,10,11,9,10,5\n";
    let text = HEADERS.to_owned() + row;
    let wide = |to_bytes: fn(u16) -> [u8; 2], mark: bool| -> Vec<u8> {
        let text = if mark { format!("\u{feff}{text}") } else { text.clone() };
        text.encode_utf16().flat_map(to_bytes).collect()
    };
    for bytes in
        [wide(u16::to_le_bytes, true), wide(u16::to_be_bytes, true), wide(u16::to_le_bytes, false)]
    {
        assert_eq!(parsed(&bytes).0, Err("UTF-16 text; UTF-8 is expected".to_owned()));
    }
    for (separator, name) in [(";", "semicolons"), ("\t", "tabs")] {
        let other = text.replace(',', separator);
        let why =
            format!("columns are parted by {name}; commas are expected, and points in numbers");
        assert_eq!(parsed(other.as_bytes()).0, Err(why));
    }
    // A comma at the end of every line is no further column.
    let (candles, left_out, _) = parsed(text.replace('\n', ",\n").as_bytes());
    assert_eq!((candles.unwrap().len(), left_out), (1, 0));
}

#[test]
fn lines_are_counted_through_empty_ones() {
    let text =
        format!("{HEADERS}\r\n\n2024-01-02,10,11,9,10,5\n\n\nbad\n2024-01-03,1,2,1,1,5\nbad");
    let (candles, _, told) = parsed(text.as_bytes());
    assert_eq!(candles.unwrap().len(), 2);
    let lines: Vec<_> = told.iter().map(|told| told.split(' ').next().unwrap()).collect();
    assert_eq!(lines, ["A.csv:7:", "A.csv:9:"]);
}

#[test]
fn a_file_has_limits() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let row = "2024-01-02,10,11,9,10,5\n";
    fs::write(path("A.csv"), format!("{HEADERS}{row}")).unwrap();
    fs::write(path("B.csv"), format!("{HEADERS}{}", row.repeat(ROWS_MAX + 1))).unwrap();
    fs::write(path("C.csv"), format!("{HEADERS}{}", row.repeat(ROWS_MAX))).unwrap();
    File::create(path("D.csv")).unwrap().set_len(BYTES_MAX + 1).unwrap();
    fs::create_dir(path("E.csv")).unwrap();
    fs::write(path("f.csv"), format!("{HEADERS}{row}")).unwrap();
    fs::write(path("G.csv"), HEADERS).unwrap();
    let files = list(folder.path()).unwrap();
    let read = read(&files);
    assert_eq!((read.files, read.files_left_out), (7, 5));
    let symbols: Vec<_> = read.histories.iter().map(|history| history.symbol.as_str()).collect();
    assert_eq!(symbols, ["A", "C"]);
    assert_eq!(read.histories[1].candles.len(), 1);
    let whole: Vec<_> = read.told.iter().filter(|told| !told.contains("another row")).collect();
    assert_eq!(
        whole,
        [
            "B.csv: left out: more than 10000 rows",
            "C.csv: 9979 more rows left out",
            "D.csv: left out: more than 4194304 bytes",
            "E.csv: left out: not a file",
            "G.csv: left out: no usable row",
            "f.csv: left out: its name is no ticker",
        ]
    );
    assert_eq!(read.rows_left_out, ROWS_MAX - 1);
    assert_eq!(read.told.len(), TOLD_MAX + whole.len());
}

#[test]
fn a_folder_has_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..FILES_MAX {
        File::create(folder.path().join(format!("S{number}.csv"))).unwrap();
    }
    assert_eq!(list(folder.path()).unwrap().len(), FILES_MAX);
    File::create(folder.path().join("S.csv")).unwrap();
    let error = list(folder.path()).unwrap_err();
    assert!(error.to_string().ends_with("more than 1000 CSV files"), "{error}");
}
