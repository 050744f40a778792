//! Tests of what files may cost, and of those that are no files of trades at all.

use std::cell::Cell;
use std::io::{Cursor, Write};

use proptest::prelude::*;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::file::{Cause, FileError, read_file};
use super::file_samples::{HEADER, LINE, TODAY, account, read, text_row, tradebook, workbook, zip};
use super::refusals::Expansion;

/// Why a file is not understood.
fn cause(bytes: impl AsRef<[u8]>) -> Cause {
    match read(bytes) {
        Err(FileError::NotUnderstood { cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

fn header_row() -> String {
    text_row(1, b'A', &HEADER.split(',').collect::<Vec<_>>())
}

#[test]
fn what_is_no_file_of_trades_is_shown_with_its_first_rows() {
    let text = "name,price\n\u{7}ALPHA,\"1,2\"\n";
    let seen = vec!["name | price".to_owned(), "ALPHA | 1,2".to_owned()];
    let expected = Err(FileError::NotUnderstood {
        cause: Cause::NoHeader,
        seen,
    });
    assert_eq!(read(text), expected);
    assert_eq!(cause(""), Cause::Empty);
    assert_eq!(cause("\n\r\n"), Cause::Empty);
    let far = format!("{}{}", "a note\n".repeat(30), tradebook(&[LINE]));
    assert_eq!(cause(far), Cause::NoHeader);
    let near = format!("{}{}", "a note\n".repeat(29), tradebook(&[LINE]));
    assert_eq!(read(near).unwrap().rows.len(), 1);
    let twice = tradebook(&[LINE]).replace("series", "price");
    assert_eq!(cause(twice), Cause::NoHeader, "which price is meant is not known");
}

#[test]
fn text_that_is_no_utf_8_text_is_not_understood() {
    let utf_16: Vec<u8> = tradebook(&[LINE])
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(cause([b"\xff\xfe".as_slice(), &utf_16].concat()), Cause::Utf16);
    assert_eq!(cause(&utf_16), Cause::ZeroBytes);
    assert_eq!(cause(tradebook(&[LINE, "a\0b"])), Cause::ZeroBytes);
}

#[test]
fn lines_and_cells_have_their_limits() {
    let line = |bytes: usize| format!("{}\n", "a".repeat(bytes));
    assert_eq!(
        read(tradebook(&[LINE, &line(64 << 10)]))
            .unwrap()
            .refused
            .len(),
        1
    );
    assert_eq!(cause(tradebook(&[LINE, &line((64 << 10) + 1)])), Cause::LongLine);
    assert_eq!(cause(tradebook(&[LINE, &"a".repeat(1 << 20)])), Cause::LongLine);
    assert_eq!(read(tradebook(&[&",".repeat(999)])).unwrap().row_count, 0);
    assert_eq!(cause(tradebook(&[&",".repeat(1_000)])), Cause::ManyCells);
    let cells: String = (0..1_001).map(|_| "<c><v>1</v></c>").collect();
    let rows = format!("{}<row>{cells}</row>", header_row());
    assert_eq!(cause(workbook(&[("S", &rows)], &[])), Cause::ManyCells);
}

#[test]
fn rows_and_time_have_their_limits() {
    let mut text = tradebook(&[]);
    for _ in 0..200_000 {
        text.push_str("ALPHA\n");
    }
    assert_eq!(read(&text).unwrap().row_count, 200_000);
    text.push_str("ALPHA\n");
    assert_eq!(read(&text), Err(FileError::TooManyRows));
    let looks = Cell::new(0);
    let out_of_time = || {
        looks.set(looks.get() + 1);
        looks.get() > 3
    };
    let slow = read_file(Cursor::new(text.as_bytes()), &account(), TODAY, &out_of_time);
    assert_eq!((slow, looks.get()), (Err(FileError::TooSlow), 4));
}

/// Bytes that are zeros but for the beginning pack at 1,000 to 1.
fn zeros(beginning: &str, bytes: usize) -> Vec<u8> {
    let mut whole = beginning.as_bytes().to_vec();
    whole.resize(bytes, b' ');
    whole
}

#[test]
fn a_zip_that_grows_too_much_is_stopped_by_what_comes_out_of_it() {
    let lines = |bytes: usize| {
        let mut whole = tradebook(&[]).into_bytes();
        while whole.len() < bytes {
            whole.extend_from_slice(&zeros("\n", 1 << 10));
        }
        whole
    };
    let bomb = zip(&[("a.csv", &lines(9 << 20))]);
    assert!(bomb.len() < 100_000, "{}", bomb.len());
    assert_eq!(read(&bomb), Err(FileError::Expands(Expansion::Ratio)));
    let small = zip(&[("a.csv", &lines(7 << 20))]);
    assert_eq!(read(small).unwrap().row_count, 0);
    // The directory says that it is small; what comes out is not.
    let mut lying = bomb;
    let at = memchr::memmem::rfind(&lying, b"PK\x01\x02").unwrap();
    lying[at + 24..at + 28].copy_from_slice(&100_u32.to_le_bytes());
    let answer = read(lying);
    assert!(answer.is_err(), "{answer:?}");
}

#[test]
fn shared_texts_have_their_limit_even_if_they_are_empty() {
    let shared = |one: &str, count: usize| format!("<sst>{}</sst>", one.repeat(count));
    let sheet = header_row();
    let read_with = |strings: String| {
        read(workbook(&[("S", &sheet)], &[("xl/sharedStrings.xml", strings.as_bytes())]))
    };
    let too_many = Err(FileError::Expands(Expansion::SharedStrings));
    assert_eq!(read_with(shared("<si/>", (2 << 20) + 1)), too_many);
    assert!(read_with(shared("<si/>", 1 << 18)).is_ok());
}

#[test]
fn one_text_is_not_repeated_into_a_row_without_end() {
    let text = "x".repeat(32 << 10);
    let strings = format!("<sst><si><t>{text}</t></si></sst>");
    let cells = r#"<c t="s"><v>0</v></c>"#.repeat(3);
    let rows = format!("{}<row>{cells}</row>", header_row());
    let file = workbook(&[("S", &rows)], &[("xl/sharedStrings.xml", strings.as_bytes())]);
    assert_eq!(cause(file), Cause::LongLine);
}

#[test]
fn xml_that_no_workbook_has_is_not_understood() {
    let whole =
        |sheet: &str| workbook(&[("S", "")], &[("xl/worksheets/sheet0.xml", sheet.as_bytes())]);
    let entity = "<!DOCTYPE x [<!ENTITY a \"b\">]><worksheet><sheetData/></worksheet>";
    assert_eq!(cause(whole(entity)), Cause::DocumentType);
    assert_eq!(cause(whole("<worksheet><sheetData></worksheet>")), Cause::BrokenXml);
    assert_eq!(cause(whole("<worksheet><sheetData><row r=\"1\">")), Cause::BrokenXml);
    let unknown = "<row r=\"1\"><c t=\"str\"><v>&a;</v></c></row>";
    assert_eq!(cause(workbook(&[("S", unknown)], &[])), Cause::BrokenXml);
    let far = "<row r=\"1048577\"><c><v>1</v></c></row>";
    assert_eq!(cause(workbook(&[("S", far)], &[])), Cause::BrokenXml);
    let wide = "<row r=\"1\"><c r=\"XFE1\"><v>1</v></c></row>";
    assert_eq!(cause(workbook(&[("S", wide)], &[])), Cause::BrokenXml);
    let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    let shallow = header_row() + &nested(60);
    assert!(read(workbook(&[("S", &shallow)], &[])).is_ok());
    let deep = nested(63);
    assert_eq!(cause(workbook(&[("S", &deep)], &[])), Cause::BrokenXml);
    let long = format!("<!-- {} -->", "<".repeat(2 << 20));
    assert_eq!(cause(workbook(&[("S", &long)], &[])), Cause::BrokenXml);
}

#[test]
fn a_zip_within_a_zip_is_not_understood_unless_it_is_a_workbook() {
    let text = tradebook(&[LINE]);
    let inner = zip(&[("a.csv", text.as_bytes())]);
    assert_eq!(cause(zip(&[("a.zip", inner.as_slice())])), Cause::NestedZip);
    let sheet = header_row();
    let book = workbook(&[("S", &sheet)], &[]);
    assert_eq!(read(zip(&[("a.xlsx", book.as_slice())])).unwrap().row_count, 0);
    let two: [(&str, &[u8]); 2] = [("a.xlsx", &book), ("b.xlsx", &book)];
    assert_eq!(cause(zip(&two)), Cause::NestedZip);
}

#[test]
fn a_zip_has_two_hundred_members_at_most() {
    let names: Vec<String> = (0..201).map(|at| format!("{at}.csv")).collect();
    let text = tradebook(&[LINE]);
    let members: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), text.as_bytes()))
        .collect();
    assert_eq!(cause(zip(&members)), Cause::TooManyEntries);
    assert_eq!(read(zip(&members[..200])).unwrap().rows.len(), 200);
    // Said of more than there are, so that no record of each is kept to find that out.
    let mut claiming = zip(&members[..1]);
    let end = memchr::memmem::rfind(&claiming, b"PK\x05\x06").unwrap();
    claiming[end + 8..end + 12].copy_from_slice(&[0x60, 0xea, 0x60, 0xea]);
    assert_eq!(cause(claiming), Cause::TooManyEntries);
}

#[test]
fn damaged_and_encrypted_files_are_told_apart() {
    let text = tradebook(&[LINE]);
    let good = zip(&[("a.csv", text.as_bytes())]);
    assert_eq!(cause(&good[..good.len() - 30]), Cause::BrokenZip);
    let mut wrong = good.clone();
    wrong[40] ^= 0x55;
    assert!(read(wrong).is_err());
    // The flag of encryption, in the member's own head and in the directory.
    let mut locked = good;
    let directory = memchr::memmem::rfind(&locked, b"PK\x01\x02").unwrap();
    locked[6] |= 1;
    locked[directory + 8] |= 1;
    assert_eq!(read(locked), Err(FileError::Encrypted));
    let compound = |part: &str| {
        let name: Vec<u8> = part.encode_utf16().flat_map(u16::to_le_bytes).collect();
        [
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(),
            &[0; 70_000],
            &name,
            &[0; 9],
        ]
        .concat()
    };
    assert_eq!(read(compound("EncryptedPackage")), Err(FileError::Encrypted));
    assert_eq!(cause(compound("Workbook")), Cause::OldWorkbook);
}

/// A member's name never leads anywhere.
#[test]
fn names_that_look_like_paths_are_names() {
    let text = tradebook(&[LINE]);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for name in ["../../etc/passwd", "/abs.csv", "C:\\x.csv"] {
        writer
            .start_file(name, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    let file = read(writer.finish().unwrap().into_inner()).unwrap();
    assert_eq!(file.rows.len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = read(&bytes);
        let _ = read([b"PK\x03\x04".as_slice(), &bytes].concat());
        let _ = read([HEADER.as_bytes(), b"\n", &bytes].concat());
        if let Ok(xml) = String::from_utf8(bytes) {
            let _ = read(workbook(&[("S", &xml)], &[]));
        }
    }

    /// Each line of any text below a header is somewhere.
    #[test]
    fn no_line_is_lost(lines in proptest::collection::vec("[ -~]{1,40}", 0..40)) {
        let held = |line: &&String| !line.trim().replace([',', ' ', '"'], "").is_empty();
        let wanted = lines.iter().filter(held).count();
        let text = tradebook(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let file = read(text).unwrap();
        prop_assert!(file.row_count >= wanted, "{} of {wanted}", file.row_count);
    }

    /// A damaged file is read or refused.
    #[test]
    fn a_flipped_byte_harms_nobody(at in 0_usize..2_000, flip in 1_u8..) {
        let rows = header_row();
        let mut bytes = workbook(&[("S", &rows)], &[]);
        let at = at % bytes.len();
        bytes[at] ^= flip;
        let _ = read(bytes);
    }
}
