//! What tests make files of: rows, ZIPs and workbooks.

use std::io::{Cursor, Write};

use jiff::civil::Date;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::file::{FileError, ReadFile, read_file};
use super::row::AccountName;

pub(super) const HEADER: &str = "symbol,isin,trade_date,exchange,segment,series,trade_type,\
                                 auction,quantity,price,trade_id,order_id,order_execution_time";
pub(super) const LINE: &str = "ALPHA,INE0EXA01011,2023-05-11,NSE,EQ,EQ,buy,false,12.000000,\
                               2311.400000,40417733,1300000005190417,2023-05-11T10:41:09";

/// The day on which files are read.
pub(super) const TODAY: Date = Date::constant(2026, 8, 20);

/// The account that files are sent for.
pub(super) fn account() -> AccountName {
    AccountName::parse("b").unwrap()
}

pub(super) fn read(bytes: impl AsRef<[u8]>) -> Result<ReadFile, FileError> {
    read_file(Cursor::new(bytes.as_ref()), &account(), TODAY, &|| false)
}

/// A tradebook of these lines.
pub(super) fn tradebook(lines: &[&str]) -> String {
    let mut text = format!("{HEADER}\n");
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

pub(super) fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    zip_by(members, CompressionMethod::Deflated)
}

fn zip_by(members: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in members {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A workbook of sheets, each with its name and the XML of its rows, and of other parts. It is not
/// packed, so that the limit of unpacking is not what stops it.
pub(super) fn workbook(sheets: &[(&str, &str)], parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut names = String::from("<workbook><sheets>");
    let mut relations = String::from("<Relationships>");
    let mut members: Vec<(String, Vec<u8>)> = Vec::new();
    for (at, (name, rows)) in sheets.iter().enumerate() {
        names.push_str(&format!(r#"<sheet name="{name}" sheetId="{at}" r:id="r{at}"/>"#));
        let part = format!("worksheets/sheet{at}.xml");
        relations.push_str(&format!(r#"<Relationship Id="r{at}" Target="{part}"/>"#));
        let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
        members.push((format!("xl/{part}"), sheet.into_bytes()));
    }
    names.push_str("</sheets></workbook>");
    relations.push_str("</Relationships>");
    members.push(("xl/workbook.xml".into(), names.into_bytes()));
    members.push(("xl/_rels/workbook.xml.rels".into(), relations.into_bytes()));
    for (name, bytes) in parts {
        members.retain(|(other, _)| other != name);
        members.push(((*name).into(), bytes.to_vec()));
    }
    let members: Vec<(&str, &[u8])> = members
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
        .collect();
    zip_by(&members, CompressionMethod::Stored)
}

/// The XML of a row whose cells are text, from a column on.
pub(super) fn text_row(line: u32, first: u8, cells: &[&str]) -> String {
    let mut row = format!(r#"<row r="{line}">"#);
    for (letter, text) in (first..).zip(cells) {
        let letter = char::from(letter);
        row.push_str(&format!(r#"<c r="{letter}{line}" t="str"><v>{text}</v></c>"#));
    }
    row.push_str("</row>");
    row
}
