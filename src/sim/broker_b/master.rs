//! Broker B's security master: a zip of CSV files with the header cells as odd as the real ones.
//! Connection threads run this.

use std::fmt::Write;

use flate2::Crc;

use crate::sim::server::answer::{Answer, Content};
use crate::sim::world::World;

/// Columns of a row; the ticker is the last.
const COLUMNS: usize = 61;

/// Answers `/b-master/{file}`.
pub(crate) fn answer(world: &World, file: &str) -> Answer {
    if file != "SecurityMaster.zip" {
        return Answer::text(404, "text/html", "<html><body>404</body></html>");
    }
    let members =
        [("NSEScripMaster.txt", list(world, "NSE")), ("BSEScripMaster.txt", list(world, "BSE"))];
    let content = Content::Text("application/x-zip-compressed", zipped(&members));
    Answer { status: 200, content, rejected: false }
}

/// The list of one exchange. Header cells have a space before the quote, data cells have none.
fn list(world: &World, exchange: &str) -> Vec<u8> {
    let last = if exchange == "NSE" { "ExchangeCode" } else { "ScripID" };
    let mut text = String::new();
    for column in 0..COLUMNS {
        let name = match column {
            0 if exchange == "NSE" => "Token".to_owned(),
            0 => "ScripCode".to_owned(),
            1 => "ShortName".to_owned(),
            2 => "Series".to_owned(),
            3 => "CompanyName".to_owned(),
            10 => "ISINCode".to_owned(),
            30 => "Symbol".to_owned(),
            60 => last.to_owned(),
            other => format!("Reserved{other}"),
        };
        let _ = write!(text, "{}\"{name}\"", if column == 0 { "" } else { ", " });
    }
    text.push_str("\r\n");
    let listed = world.universe.all().iter();
    for row in listed.filter(|row| row.exchange == exchange && !row.short_code.is_empty()) {
        for column in 0..COLUMNS {
            let cell = match column {
                0 if row.is_index => row.symbol.clone(),
                0 => row.exchange_token().to_string(),
                1 => row.short_code.clone(),
                2 => if row.is_index { "0" } else { "EQ" }.to_owned(),
                3 => row.name.clone(),
                10 => row.isin.clone(),
                60 => row.symbol.clone(),
                _ => String::new(),
            };
            let _ = write!(text, "{}\"{cell}\"", if column == 0 { "" } else { "," });
        }
        text.push_str("\r\n");
    }
    text.into_bytes()
}

/// A zip archive of stored (not compressed) members.
fn zipped(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    for (name, bytes) in members {
        let offset = archive.len() as u32;
        let mut crc = Crc::new();
        crc.update(bytes);
        // Version 2.0, no flags, stored, no time; then the three sizes.
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0x58];
        for number in [crc.sum(), bytes.len() as u32, bytes.len() as u32] {
            common.extend_from_slice(&number.to_le_bytes());
        }
        common.extend_from_slice(&(name.len() as u16).to_le_bytes());
        common.extend_from_slice(&[0, 0]);
        archive.extend_from_slice(b"PK\x03\x04");
        archive.extend_from_slice(&common);
        archive.extend_from_slice(name.as_bytes());
        archive.extend_from_slice(bytes);
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (start, length) = (archive.len() as u32, directory.len() as u32);
    archive.extend_from_slice(&directory);
    archive.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    archive.extend_from_slice(&(members.len() as u16).to_le_bytes());
    archive.extend_from_slice(&(members.len() as u16).to_le_bytes());
    archive.extend_from_slice(&length.to_le_bytes());
    archive.extend_from_slice(&start.to_le_bytes());
    archive.extend_from_slice(&[0, 0]);
    archive
}
