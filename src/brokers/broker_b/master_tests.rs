//! Tests of the security master.

use std::io::Write;

use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

/// A list of `columns` whose header has a space before each quote, like the real one.
fn list(names: &[(usize, &str)], rows: &[&[(usize, &str)]]) -> String {
    let line = |cells: &[(usize, &str)], between: &str| {
        let cell = |at| {
            cells
                .iter()
                .find(|(place, _)| *place == at)
                .map_or("", |(_, text)| text)
        };
        let cells: Vec<String> = (0..61).map(|at| format!("\"{}\"", cell(at))).collect();
        cells.join(between) + "\r\n"
    };
    rows.iter()
        .fold(line(names, ", "), |text, row| text + &line(row, ","))
}

const NSE: &[(usize, &str)] = &[
    (0, "Token"),
    (1, "ShortName"),
    (2, "Series"),
    (10, "ISINCode"),
    (30, "Symbol"),
    (60, "ExchangeCode"),
];

fn nse() -> String {
    list(
        NSE,
        &[
            &[
                (0, "2885"),
                (1, "RELIND"),
                (2, "EQ"),
                (10, "INE002A01018"),
                (60, "RELIANCE"),
            ],
            &[
                (0, "9"),
                (1, "RELIND"),
                (2, "N1"),
                (10, "INE002A07ZZ9"),
                (60, "RELIANCE"),
            ],
            &[(0, "NIFTY 50"), (1, "NIFTY"), (2, "0"), (60, "NIFTY 50")],
            &[
                (1, "AXIOFS"),
                (2, "EQ"),
                (10, "INE238A01034"),
                (60, "AXISBANK"),
            ],
            &[(1, "SIMPLE"), (2, "BE"), (60, "SIMPLE")],
            &[(1, "BADISI"), (2, "EQ"), (10, "INE0"), (60, "BADISIN")],
            &[(1, "NOTICK"), (2, "EQ"), (10, "INE002A01018")],
            &[(2, "EQ"), (60, "NOCODE")],
        ],
    )
}

fn bse() -> String {
    let names: &[(usize, &str)] = &[
        (0, "ScripCode"),
        (1, "ShortName"),
        (2, "Series"),
        (10, "ISINCode"),
        (5, "ScripID"),
    ];
    list(
        names,
        &[&[
            (1, "STABAN"),
            (2, "A"),
            (10, "INE062A01020"),
            (5, "SBIN"),
            (60, "500112"),
        ]],
    )
}

fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, bytes) in members {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn row(code: &str, exchange: &'static str, ticker: &str, isin: &str, series: &str) -> MasterRow {
    MasterRow {
        short_code: code.into(),
        exchange,
        ticker: ticker.into(),
        isin: (!isin.is_empty()).then(|| isin.into()),
        series: series.into(),
    }
}

#[test]
fn the_published_zip_and_its_lists_are_read() {
    let other = b"nothing of ours".as_slice();
    let packed = zipped(&[
        ("FONSEScripMaster.txt", other),
        ("NSEScripMaster.txt", nse().as_bytes()),
        ("BSEScripMaster.txt", bse().as_bytes()),
    ]);
    let of_nse = [
        row("RELIND", "NSE", "RELIANCE", "INE002A01018", "EQ"),
        row("SIMPLE", "NSE", "SIMPLE", "", "BE"),
    ];
    let of_bse = [row("STABAN", "BSE", "SBIN", "INE062A01020", "A")];
    let master = parse(&packed).unwrap();
    assert_eq!(master.rows, [of_nse.as_slice(), &of_bse].concat());
    assert_eq!((master.skipped, master.left_out), (3, 3));
    assert_eq!(parse(nse().as_bytes()).unwrap().rows, of_nse);
    assert_eq!(parse(bse().as_bytes()).unwrap().rows, of_bse);
}

#[test]
fn columns_are_found_by_place_where_the_header_names_them_differently() {
    let text = list(&[(0, "a")], &[&[(1, "RELIND"), (2, "EQ"), (60, "RELIANCE")]]);
    assert_eq!(parse(text.as_bytes()).unwrap().rows[0].ticker, "RELIANCE");
}

#[test]
fn what_is_no_master_is_refused() {
    let bomb = vec![b' '; LIST_BYTES_MAX as usize + 1];
    let too_large = zipped(&[("NSEScripMaster.txt", bomb.as_slice())]);
    assert!(too_large.len() < 1024 * 1024, "packed well");
    assert!(matches!(parse(&too_large), Err(MasterError::TooLarge)));
    let many: Vec<String> = (0..=MEMBERS_MAX).map(|n| format!("{n}.txt")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b""[..])).collect();
    assert!(matches!(parse(&zipped(&many)), Err(MasterError::BadZip(_))));
    assert!(matches!(parse(&zipped(&[("x.txt", b"")])), Err(MasterError::NoList)));
    assert!(matches!(parse(&too_large[..100]), Err(MasterError::BadZip(_))));
    assert!(matches!(parse(b""), Err(MasterError::NoHeader)));
    assert!(matches!(parse(b"<html></html>"), Err(MasterError::NoHeader)));
    assert!(matches!(parse(list(NSE, &[]).as_bytes()), Err(MasterError::Empty)));
    let long = list(NSE, &[]) + &"\"x\"\n".repeat(ROWS_MAX + 1);
    assert!(matches!(parse(long.as_bytes()), Err(MasterError::TooLarge)));
}

proptest::proptest! {
    #[test]
    fn a_damaged_zip_is_refused_or_has_the_rows_of_the_sound_one(
        mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
        cut in 0_usize..600,
    ) {
        let mut packed = zipped(&[("NSEScripMaster.txt", nse().as_bytes())]);
        packed.truncate(cut.max(4));
        packed.append(&mut bytes);
        if let Ok(master) = parse(&packed) {
            proptest::prop_assert_eq!(master.rows, parse(nse().as_bytes()).unwrap().rows);
        }
    }
}
