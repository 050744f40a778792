//! Broker B's security master: a zip of CSV files with the header cells as odd as the real ones.
//! Connection threads run this.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::sim::server::message::{Answer, Content};
use crate::sim::world::World;

/// Columns of a row; the ticker is the last.
const COLUMNS: usize = 61;

/// Answers `/b-master/{file}`.
pub(crate) fn master_answer(world: &World, file: &str) -> Answer {
    if file != "SecurityMaster.zip" {
        return Answer::text(404, "text/html", "<html><body>404</body></html>");
    }
    let members = [
        ("NSEScripMaster.txt", list(world, "NSE")),
        ("BSEScripMaster.txt", list(world, "BSE")),
    ];
    let Ok(zipped) = zipped(&members) else {
        return Answer::text(500, "text/html", "<html><body>500</body></html>");
    };
    let content = Content::Text("application/x-zip-compressed", zipped);
    Answer {
        status: 200,
        content,
        rejected: false,
    }
}

/// The list of one exchange. Header cells have a space before the quote, data cells have none.
fn list(world: &World, exchange: &str) -> Vec<u8> {
    let last = if exchange == "NSE" {
        "ExchangeCode"
    } else {
        "ScripID"
    };
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

/// A zip whose members are stored as they are.
fn zipped(members: &[(&str, Vec<u8>)]) -> zip::result::ZipResult<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in members {
        archive.start_file(*name, stored)?;
        archive.write_all(bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}
