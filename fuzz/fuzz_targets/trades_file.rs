//! Trades files on arbitrary bytes: what is read keeps within its limits, and nothing panics.
//!
//! `cargo fuzz run trades_file fuzz/corpus/trades_file tests/ledger/files`.
//!
//! The first byte says what the others are: a whole file, the rows of a workbook, or the texts that
//! its cells share. A ZIP by chance is none.

#![no_main]

use std::io::{Cursor, Write};

use libfuzzer_sys::fuzz_target;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Rows of a file at most, each of which may be in two lists.
const LINES_MAX: usize = 2 * 200_000;
const HEADER: &str = "<row><c t=\"str\"><v>symbol</v></c><c t=\"str\"><v>trade_date</v></c>\
                      <c t=\"str\"><v>exchange</v></c><c t=\"str\"><v>trade_type</v></c>\
                      <c t=\"str\"><v>quantity</v></c><c t=\"str\"><v>price</v></c></row>";

fuzz_target!(|data: &[u8]| {
    let file = match data.split_first() {
        Some((1, rows)) => workbook(rows, b"<sst/>"),
        Some((2, shared)) => workbook(b"<row><c t=\"s\"><v>0</v></c></row>", shared),
        _ => data.to_vec(),
    };
    if let Ok(lines) = bhav::ledger::file::count_lines(&file) {
        assert!(lines <= LINES_MAX);
    }
});

/// A workbook whose parts are stored as they are.
fn workbook(rows: &[u8], shared: &[u8]) -> Vec<u8> {
    let sheet = [
        b"<worksheet><sheetData>".as_slice(),
        HEADER.as_bytes(),
        rows,
        b"</sheetData></worksheet>",
    ]
    .concat();
    let names = b"<workbook><sheets><sheet name=\"S\" r:id=\"r1\"/></sheets></workbook>";
    let parts = b"<Relationships><Relationship Id=\"r1\" Target=\"sheet.xml\"/></Relationships>";
    let members: [(&str, &[u8]); 4] = [
        ("xl/workbook.xml", names),
        ("xl/_rels/workbook.xml.rels", parts),
        ("xl/sharedStrings.xml", shared),
        ("xl/sheet.xml", &sheet),
    ];
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        archive.start_file(name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
