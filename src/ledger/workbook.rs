//! The sheets of a workbook (XLSX) to rows, as a stream: nothing is kept of a sheet but its present
//! row. The texts that cells share are kept, up to a limit.
//!
//! A part is found by its name within the archive, which is never used as a path. Macros, formats
//! and links are skipped; the values of formulas are not taken.

use std::collections::HashMap;
use std::fmt::Write;
use std::io::{BufReader, Read, Seek};

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::ledger::archive::Archive;
use crate::ledger::limits::Allowance;
use crate::ledger::refusals::{Cause, Expansion, FileError};
use crate::ledger::table::{CellKind, LINE_BYTES_MAX, TableRow};

/// The part that makes an archive a workbook.
const WORKBOOK: &str = "xl/workbook.xml";
const RELATIONS: &str = "xl/_rels/workbook.xml.rels";
const SHARED_STRINGS: &str = "xl/sharedStrings.xml";
/// Bytes of texts that cells share, each with what it takes beside its letters.
const SHARED_BYTES_MAX: usize = 16 << 20;
const SHARED_OVERHEAD: usize = 8;
/// Bytes of one tag or text. A cell has 32,767 letters at most.
const PIECE_BYTES_MAX: usize = 1 << 20;
const BUFFER_BYTES: usize = 64 << 10;
/// Elements within each other. A sheet has six.
const DEPTH_MAX: usize = 64;
/// Digits of a decimal that a double keeps.
const EXACT_DIGITS: usize = 15;
const COLUMNS: u32 = 16_384;
const ROWS: u32 = 1_048_576;

/// What is done with the sheets.
pub(crate) trait Sheets {
    /// Whether the rows of this sheet are wanted.
    fn begin(&mut self, name: &str) -> Result<bool, FileError>;
    /// A row that holds something. `false` ends the sheet.
    fn row(&mut self, row: &TableRow) -> Result<bool, FileError>;
    fn end(&mut self) -> Result<(), FileError>;
}

/// Whether it is a workbook.
pub(crate) fn is_workbook<R: Read + Seek>(archive: &Archive<'_, R>) -> bool {
    archive.place(WORKBOOK).is_some()
}

/// Reads the sheets in their order.
pub(crate) fn read_workbook<R: Read + Seek>(
    archive: &mut Archive<'_, R>,
    sheets: &mut dyn Sheets,
) -> Result<(), FileError> {
    let workbook = Workbook::of(archive)?;
    let shared = shared_strings(archive)?;
    for sheet in &workbook.sheets {
        let Some(at) = workbook
            .parts
            .get(&sheet.relation)
            .and_then(|part| archive.place(part))
        else {
            continue;
        };
        if sheets.begin(&sheet.name)? {
            let mut reader = Xml::new(archive.open(at)?);
            SheetReader::new(&shared, workbook.from_1904).read(&mut reader, sheets)?;
        }
        sheets.end()?;
    }
    Ok(())
}

/// A stream of XML with limits.
struct Xml<R: Read> {
    reader: Reader<Allowance<BufReader<R>>>,
    buffer: Vec<u8>,
    depth: usize,
}

fn broken() -> FileError {
    FileError::not_understood(Cause::BrokenXml)
}

impl<R: Read> Xml<R> {
    fn new(from: R) -> Self {
        let mut reader =
            Reader::from_reader(Allowance::new(BufReader::with_capacity(BUFFER_BYTES, from)));
        reader.config_mut().expand_empty_elements = true;
        Self {
            reader,
            buffer: Vec::new(),
            depth: 0,
        }
    }

    /// The next event; `None` at the end.
    fn next(&mut self) -> Result<Option<Event<'_>>, FileError> {
        self.buffer.clear();
        self.reader.get_mut().allow(PIECE_BYTES_MAX);
        let event = self.reader.read_event_into(&mut self.buffer);
        let event = event.map_err(|error| match error {
            quick_xml::Error::Io(error) => FileError::below(&error, Cause::BrokenXml),
            _ => broken(),
        })?;
        match &event {
            Event::DocType(_) => return Err(FileError::not_understood(Cause::DocumentType)),
            Event::Start(_) => self.depth += 1,
            Event::End(_) => self.depth = self.depth.saturating_sub(1),
            Event::Eof if self.depth > 0 => return Err(broken()),
            Event::Eof => return Ok(None),
            _ => {}
        }
        if self.depth > DEPTH_MAX {
            Err(broken())
        } else {
            Ok(Some(event))
        }
    }
}

/// An attribute by its name without a prefix.
fn attribute(of: &BytesStart<'_>, wanted: &str) -> Result<Option<String>, FileError> {
    for attribute in of.attributes().with_checks(false) {
        let attribute = attribute.map_err(|_| broken())?;
        if attribute.key.local_name().as_ref() == wanted {
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            return value
                .map(|value| Some(value.into_owned()))
                .map_err(|_| broken());
        }
    }
    Ok(None)
}

/// Adds the text of an event, if it has one.
fn add_text(event: &Event<'_>, to: &mut String) -> Result<(), FileError> {
    match event {
        Event::Text(text) => to.push_str(text),
        Event::CData(text) => to.push_str(text),
        Event::GeneralRef(reference) => {
            if let Some(letter) = reference.resolve_char_ref().map_err(|_| broken())? {
                to.push(letter);
            } else {
                let name: &str = reference;
                to.push_str(quick_xml::escape::resolve_xml_entity(name).ok_or_else(broken)?);
            }
        }
        _ => {}
    }
    Ok(())
}

/// What the workbook says of its sheets.
#[derive(Default)]
struct Workbook {
    sheets: Vec<SheetName>,
    /// The part of each relation.
    parts: HashMap<String, String>,
    from_1904: bool,
}

struct SheetName {
    name: String,
    relation: String,
}

impl Workbook {
    fn of<R: Read + Seek>(archive: &mut Archive<'_, R>) -> Result<Self, FileError> {
        let mut workbook = Self::default();
        let at = archive.place(WORKBOOK).ok_or_else(broken)?;
        let mut xml = Xml::new(archive.open(at)?);
        while let Some(event) = xml.next()? {
            let Event::Start(start) = event else { continue };
            match start.local_name().as_ref() {
                "sheet" => {
                    let name = attribute(&start, "name")?.unwrap_or_default();
                    let relation = attribute(&start, "id")?.unwrap_or_default();
                    workbook.sheets.push(SheetName { name, relation });
                }
                "workbookPr" => {
                    let from_1904 = attribute(&start, "date1904")?;
                    workbook.from_1904 =
                        from_1904.is_some_and(|text| text == "1" || text == "true");
                }
                _ => {}
            }
        }
        drop(xml);
        let at = archive.place(RELATIONS).ok_or_else(broken)?;
        let mut xml = Xml::new(archive.open(at)?);
        while let Some(event) = xml.next()? {
            let Event::Start(start) = event else { continue };
            if start.local_name().as_ref() == "Relationship" {
                let id = attribute(&start, "Id")?.unwrap_or_default();
                let target = attribute(&start, "Target")?.unwrap_or_default();
                let part = match target.strip_prefix('/') {
                    Some(whole) => whole.to_owned(),
                    None => format!("xl/{target}"),
                };
                workbook.parts.insert(id, part);
            }
        }
        Ok(workbook)
    }
}

/// The texts that cells share, one after the other.
#[derive(Default)]
struct SharedStrings {
    text: String,
    ends: Vec<usize>,
}

impl SharedStrings {
    fn at(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(start..end)
    }

    fn end_one(&mut self) {
        self.ends.push(self.text.len());
    }

    fn within(&self) -> Result<(), FileError> {
        if self.text.len() + self.ends.len() * SHARED_OVERHEAD > SHARED_BYTES_MAX {
            return Err(FileError::Expands(Expansion::SharedStrings));
        }
        Ok(())
    }
}

fn shared_strings<R: Read + Seek>(
    archive: &mut Archive<'_, R>,
) -> Result<SharedStrings, FileError> {
    let mut shared = SharedStrings::default();
    let Some(at) = archive.place(SHARED_STRINGS) else {
        return Ok(shared);
    };
    let mut xml = Xml::new(archive.open(at)?);
    let mut is_text = false;
    // How a name is read aloud stands beside it, and is no part of it.
    let mut reading_aids = 0_usize;
    while let Some(event) = xml.next()? {
        match &event {
            Event::Start(start) => match start.local_name().as_ref() {
                "t" => is_text = reading_aids == 0,
                "rPh" => reading_aids += 1,
                _ => {}
            },
            Event::End(end) => match end.local_name().as_ref() {
                "t" => is_text = false,
                "rPh" => reading_aids = reading_aids.saturating_sub(1),
                "si" => shared.end_one(),
                _ => {}
            },
            event if is_text => add_text(event, &mut shared.text)?,
            _ => {}
        }
        shared.within()?;
    }
    Ok(shared)
}

/// How a cell's value is meant.
#[derive(Clone, Copy)]
enum Meaning {
    Number,
    Text,
    Shared,
    Bool,
    Error,
}

/// Reads one sheet.
struct SheetReader<'a> {
    shared: &'a SharedStrings,
    row: TableRow,
    /// Of the row and the cell before.
    line: u32,
    column: Option<u32>,
    meaning: Meaning,
    is_formula: bool,
    is_value: bool,
    value: String,
}

impl<'a> SheetReader<'a> {
    fn new(shared: &'a SharedStrings, from_1904: bool) -> Self {
        Self {
            shared,
            row: TableRow::new(from_1904),
            line: 0,
            column: None,
            meaning: Meaning::Number,
            is_formula: false,
            is_value: false,
            value: String::new(),
        }
    }

    fn read<R: Read>(mut self, xml: &mut Xml<R>, sheets: &mut dyn Sheets) -> Result<(), FileError> {
        while let Some(event) = xml.next()? {
            match &event {
                Event::Start(start) => self.start(start)?,
                Event::End(end) => match end.local_name().as_ref() {
                    "v" | "t" => self.is_value = false,
                    "c" => self.end_cell()?,
                    "row" if !self.row.is_empty() => {
                        if !sheets.row(&self.row)? {
                            return Ok(());
                        }
                        self.row.begin(self.line);
                    }
                    "sheetData" => return Ok(()),
                    _ => {}
                },
                event if self.is_value => {
                    add_text(event, &mut self.value)?;
                    if self.value.len() > LINE_BYTES_MAX {
                        return Err(FileError::not_understood(Cause::LongLine));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), FileError> {
        match start.local_name().as_ref() {
            "row" => {
                self.line = match attribute(start, "r")? {
                    Some(number) => number.parse().map_err(|_| broken())?,
                    None => self.line + 1,
                };
                if !(1..=ROWS).contains(&self.line) {
                    return Err(broken());
                }
                self.column = None;
                self.row.begin(self.line);
            }
            "c" => self.start_cell(start)?,
            "f" => self.is_formula = true,
            "v" | "t" => self.is_value = true,
            _ => {}
        }
        Ok(())
    }

    fn start_cell(&mut self, start: &BytesStart<'_>) -> Result<(), FileError> {
        let next = self.column.map_or(0, |before| before + 1);
        let mut column = next;
        self.meaning = Meaning::Number;
        for attribute in start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|_| broken())?;
            match attribute.key.as_ref() {
                "r" => column = column_of(&attribute.value).ok_or_else(broken)?,
                "t" => {
                    self.meaning = match attribute.value.as_ref() {
                        "s" => Meaning::Shared,
                        "b" => Meaning::Bool,
                        "e" => Meaning::Error,
                        "str" | "inlineStr" | "d" => Meaning::Text,
                        _ => Meaning::Number,
                    }
                }
                _ => {}
            }
        }
        if column < next || column >= COLUMNS {
            return Err(broken());
        }
        self.column = Some(column);
        self.is_formula = false;
        self.value.clear();
        Ok(())
    }

    fn end_cell(&mut self) -> Result<(), FileError> {
        let column = self.column.unwrap_or_default();
        let value = self.value.trim();
        if self.is_formula {
            return self.row.push(column, CellKind::Formula, value);
        }
        match self.meaning {
            Meaning::Text => self.row.push(column, CellKind::Text, value),
            Meaning::Error => self.row.push(column, CellKind::Error, value),
            _ if value.is_empty() => Ok(()),
            Meaning::Bool if value == "1" => self.row.push(column, CellKind::Bool, "true"),
            Meaning::Bool => self.row.push(column, CellKind::Bool, "false"),
            Meaning::Shared => match value.parse().ok().and_then(|index| self.shared.at(index)) {
                Some(text) => self.row.push(column, CellKind::Text, text),
                None => self.row.push(column, CellKind::Error, value),
            },
            Meaning::Number if is_shortest(value) => self.row.push(column, CellKind::Number, value),
            Meaning::Number => match value.parse::<f64>() {
                Ok(number) if number.is_finite() => {
                    let mut shortest = String::new();
                    write!(shortest, "{number}").map_err(|_| broken())?;
                    self.row.push(column, CellKind::Number, &shortest)
                }
                _ => self.row.push(column, CellKind::Error, value),
            },
        }
    }
}

/// Whether a number is written as the shortest decimal of its double: so are those of few digits
/// without noughts to spare.
fn is_shortest(number: &str) -> bool {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "1"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    number.len() <= EXACT_DIGITS
        && all_digits(whole)
        && all_digits(fraction)
        && (whole == "0" || !whole.starts_with('0'))
        && !fraction.ends_with('0')
}

/// `AB12` is column 27, counted from 0.
fn column_of(cell: &str) -> Option<u32> {
    let letters = cell.bytes().take_while(u8::is_ascii_alphabetic);
    let mut number: u32 = 0;
    for letter in letters {
        let value = u32::from(letter.to_ascii_uppercase() - b'A') + 1;
        number = number.checked_mul(26)?.checked_add(value)?;
    }
    number.checked_sub(1)
}
