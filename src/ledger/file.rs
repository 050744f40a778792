//! A person's file to rows: what it is, and what each of its lines says.
//!
//! Pure: it reads from what it is given and asks the time of a closure. Every line of a file is a
//! row, a refused line, a proposal, a line of a report, or named in the notes: none is lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Cursor, Read, Seek, SeekFrom};

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::ledger::archive::Archive;
use crate::ledger::corrections::{ClassWord, Correction};
pub(crate) use crate::ledger::file_format::{ClientId, ClientIdKind, FileFormat, FileKind};
use crate::ledger::limits::Limits;
use crate::ledger::proposals::FreeLine;
pub(crate) use crate::ledger::proposals::Proposal;
use crate::ledger::refusals::Expansion;
pub(crate) use crate::ledger::refusals::{Cause, FileError, Refused, RefusedReason};
pub(crate) use crate::ledger::report_line::ReportSection;
pub(crate) use crate::ledger::report_line::{Income, ReportLine};
use crate::ledger::reports::{self, ReportEntry, ReportTable, Section};
use crate::ledger::row::{AccountName, Row, Side};
use crate::ledger::table::{CellKind, Header, TableRow, plain};
use crate::ledger::text::read_text;
use crate::ledger::tradebooks::{TradeLine, TradeTable};
use crate::ledger::workbook::{Sheets, is_workbook, read_workbook};

/// The header stands in one of so many rows.
const HEADER_LINES: u32 = 30;
/// A workbook within a ZIP is unpacked whole, since it is read from its end.
const NESTED_BYTES_MAX: u64 = 32 << 20;
/// Rows that are shown of a file that is not understood, and letters of each.
const SEEN_ROWS: usize = 5;
const SEEN_LETTERS: usize = 120;
/// Notes of one file.
const NOTES_MAX: usize = 200;
const ZIP_START: &[u8] = b"PK\x03\x04";
const EMPTY_ZIP_START: &[u8] = b"PK\x05\x06";
/// A compound file: an old workbook, or a new one with a password.
const COMPOUND_START: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
/// The part of a compound file that holds an encrypted workbook, in its UTF-16.
const ENCRYPTED_PART: &[u8] = b"E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0";

/// What a file says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReadFile {
    pub kind: FileKind,
    pub format: FileFormat,
    pub client_id: Option<ClientId>,
    pub rows: Vec<Row>,
    pub refused: Vec<Refused>,
    pub proposals: Vec<Proposal>,
    pub report: Vec<ReportLine>,
    pub income: Vec<Income>,
    pub notes: Vec<String>,
    /// What the lists above hold together.
    pub row_count: usize,
}

/// Reads a file. `today` is the day in India, after which no trade can be.
/// `account` is the one that it is sent for, which what it proposes names.
pub(crate) fn read_file<R: Read + Seek>(
    from: R,
    account: &AccountName,
    today: Date,
    out_of_time: &dyn Fn() -> bool,
) -> Result<ReadFile, FileError> {
    let limits = Limits::new(out_of_time);
    let mut reading = Reading::new(&limits, account, today);
    match reading.read(from) {
        Err(FileError::NotUnderstood { cause, .. }) => Err(FileError::NotUnderstood {
            cause,
            seen: reading.seen,
        }),
        Err(error) => Err(error),
        Ok(()) => reading.finish(),
    }
}

/// How many lines the lists of a file hold, for programs that try the reader with what nobody would
/// send.
///
/// # Errors
/// Why the file is not taken, in words.
pub fn count_lines(bytes: &[u8]) -> Result<usize, String> {
    let account = AccountName::parse("a").ok_or("no account")?;
    let read = read_file(Cursor::new(bytes), &account, LAST_DAY, &|| false);
    read.map(|file| file.row_count)
        .map_err(|error| error.to_string())
}

/// A day after every trade.
const LAST_DAY: Date = Date::constant(2100, 1, 1);

/// The table that is read at present.
enum Table {
    /// Its header is not found yet.
    Looking,
    Trades(TradeTable),
    Report(ReportTable),
    /// Nothing more of it is wanted.
    Over,
}

/// One file while it is read.
struct Reading<'a> {
    limits: &'a Limits<'a>,
    account: &'a AccountName,
    today: Date,
    format: Option<FileFormat>,
    client_id: Option<ClientId>,
    table: Table,
    /// Of the member or sheet; empty where there is but one.
    name: String,
    /// Lines of the tables before it.
    lines_before: u32,
    line: u32,
    /// The last line above the header.
    above: u32,
    /// A title above the header.
    title: Option<Section>,
    is_nested: bool,
    rows: Vec<Row>,
    refused: Vec<Refused>,
    proposals: Vec<Proposal>,
    free: Vec<FreeLine>,
    other_funds: BTreeSet<Isin>,
    report: Vec<ReportLine>,
    income: Vec<Income>,
    notes: Vec<String>,
    seen: Vec<String>,
    sums: Sums,
}

/// Sums of a report, to compare with those that it states.
#[derive(Default)]
struct Sums {
    /// Of each section that was read.
    read: BTreeMap<ReportSection, Decimal>,
    /// Of each section, as a summary states it.
    stated: BTreeMap<ReportSection, Decimal>,
    /// Since the last title, and of the whole table.
    part: Decimal,
    whole: Decimal,
    /// Lines of totals that agree with the lines above them.
    agreeing: Vec<u32>,
    /// Sections that a workbook within the ZIP has once more, and its lines of these.
    known_before: BTreeSet<ReportSection>,
    repeated: usize,
}

impl<'a> Reading<'a> {
    fn new(limits: &'a Limits<'a>, account: &'a AccountName, today: Date) -> Self {
        Self {
            limits,
            account,
            today,
            format: None,
            client_id: None,
            table: Table::Looking,
            name: String::new(),
            lines_before: 0,
            line: 0,
            above: 0,
            title: None,
            is_nested: false,
            rows: Vec::new(),
            refused: Vec::new(),
            proposals: Vec::new(),
            free: Vec::new(),
            other_funds: BTreeSet::new(),
            report: Vec::new(),
            income: Vec::new(),
            notes: Vec::new(),
            seen: Vec::new(),
            sums: Sums::default(),
        }
    }

    fn read<R: Read + Seek>(&mut self, mut from: R) -> Result<(), FileError> {
        let start = start_of(&mut from)?;
        from.seek(SeekFrom::Start(0))
            .map_err(|error| FileError::Io(error.to_string()))?;
        if start.starts_with(ZIP_START) || start.starts_with(EMPTY_ZIP_START) {
            let limits = self.limits;
            let mut archive = Archive::new(from, limits)?;
            if is_workbook(&archive) {
                return read_workbook(&mut archive, self);
            }
            return self.read_members(&mut archive);
        }
        if start.starts_with(COMPOUND_START) {
            return Err(self.compound(from));
        }
        self.begin_table("");
        let limits = self.limits;
        read_text(from, limits, &mut |row| self.take(row))?;
        self.end_table();
        Ok(())
    }

    /// Why a compound file is not read.
    fn compound<R: Read>(&self, mut from: R) -> FileError {
        let mut kept = Vec::new();
        let mut part = vec![0; 64 << 10];
        loop {
            if let Err(error) = self.limits.in_time() {
                return error;
            }
            match from.read(&mut part) {
                Ok(0) => return FileError::not_understood(Cause::OldWorkbook),
                Ok(count) => kept.extend_from_slice(&part[..count]),
                Err(error) => return FileError::Io(error.to_string()),
            }
            if memchr::memmem::find(&kept, ENCRYPTED_PART).is_some() {
                return FileError::Encrypted;
            }
            kept.drain(..kept.len().saturating_sub(ENCRYPTED_PART.len()));
        }
    }

    fn read_members<R: Read + Seek>(
        &mut self,
        archive: &mut Archive<'a, R>,
    ) -> Result<(), FileError> {
        let mut workbook = None;
        for at in 0..archive.len() {
            let Some(name) = archive.shown_name(at) else {
                continue;
            };
            let mut member = archive.open(at)?;
            let start = start_of(&mut member)?;
            if start.starts_with(ZIP_START) || start.starts_with(EMPTY_ZIP_START) {
                if workbook.is_some() {
                    return Err(FileError::not_understood(Cause::NestedZip));
                }
                workbook = Some(unpacked(start, member)?);
                continue;
            }
            self.begin_table(&name);
            let limits = self.limits;
            let whole = Cursor::new(start).chain(member);
            match read_text(whole, limits, &mut |row| self.take(row)) {
                // It is no table of text, such as a picture.
                Err(FileError::NotUnderstood { .. }) if matches!(self.table, Table::Looking) => {}
                read => read?,
            }
            self.end_table();
        }
        let Some(workbook) = workbook else {
            return Ok(());
        };
        self.is_nested = true;
        self.sums.known_before = self.sums.read.keys().copied().collect();
        let limits = self.limits;
        let mut inner = Archive::new(Cursor::new(workbook), limits)?;
        if !is_workbook(&inner) {
            return Err(FileError::not_understood(Cause::NestedZip));
        }
        read_workbook(&mut inner, self)
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }

    fn begin_table(&mut self, name: &str) {
        self.table = Table::Looking;
        self.name = name.to_owned();
        self.line = 0;
        self.above = 0;
        self.title = None;
        self.sums.part = Decimal::ZERO;
        self.sums.whole = Decimal::ZERO;
        self.sums.repeated = 0;
    }

    fn end_table(&mut self) {
        let is_read = matches!(self.table, Table::Trades(_) | Table::Report(_));
        if self.sums.repeated > 0 {
            self.note(format!(
                "{}: {} lines repeat sections that other files of the ZIP have, and are not taken",
                self.name, self.sums.repeated
            ));
        }
        if is_read && self.lines_before > 0 {
            self.note(format!("{}: its line 1 is line {}", self.name, self.lines_before + 1));
        }
        if !is_read && !self.name.is_empty() && matches!(self.table, Table::Looking) {
            self.note(format!("{} was not read: it has no header that is known", self.name));
        }
        if is_read {
            self.lines_before = self.lines_before.saturating_add(self.line);
        }
        self.table = Table::Over;
    }

    /// Takes one row of the present table. `false`: nothing more of it is wanted.
    fn take(&mut self, row: &TableRow) -> Result<bool, FileError> {
        self.line = row.line;
        let mut table = std::mem::replace(&mut self.table, Table::Over);
        let taken = match &mut table {
            Table::Looking => {
                table = self.look(row);
                Ok(())
            }
            Table::Trades(trades) => self.limits.add_row().map(|()| self.trade(trades, row)),
            Table::Report(report) => self.limits.add_row().map(|()| self.report(report, row)),
            Table::Over => Ok(()),
        };
        let goes_on = !matches!(table, Table::Over);
        self.table = table;
        taken.map(|()| goes_on)
    }

    /// Looks whether a row is the header.
    fn look(&mut self, row: &TableRow) -> Table {
        if self.seen.len() < SEEN_ROWS {
            self.seen.push(shown(row));
        }
        if row.line > HEADER_LINES {
            if !self.name.is_empty() {
                self.note(format!("{} was not read: it has no header that is known", self.name));
            }
            return Table::Over;
        }
        let header = Header::of(row);
        let trades = TradeTable::find(&header, self.today);
        let report = || ReportTable::find(&header, &self.name, self.today);
        let found = match trades {
            Some(trades) => (trades.format(), Table::Trades(trades)),
            None => match report() {
                Some(mut report) => {
                    report.begin_section(self.title);
                    (report.format(), Table::Report(report))
                }
                None => {
                    self.above_header(row);
                    return Table::Looking;
                }
            },
        };
        let (format, table) = found;
        if let Some(known) = self.format.filter(|known| *known != format) {
            self.note(format!("{} was not read: it is {format}, the rest is {known}", self.name));
            return Table::Over;
        }
        self.format = Some(format);
        if let Table::Report(report) = &table
            && let Some(section) = report.section()
        {
            self.sums.read.entry(section).or_default();
        }
        if self.above > 0 {
            let place = if self.name.is_empty() { "" } else { ": " };
            self.note(format!(
                "{}{place}lines up to {} stand above the header and are no rows",
                self.name, self.above
            ));
        }
        table
    }

    /// What stands above a header: the client's id, a title, or a summary.
    fn above_header(&mut self, row: &TableRow) {
        self.above = row.line;
        if self.client_id.is_none() {
            self.client_id = client_above(row);
        }
        let mut cells = row.cells();
        if let Some(first) = cells.next()
            && cells.next().is_none()
        {
            self.title = reports::section_of(first.text).or(self.title);
        }
        if let Some((section, sum)) = reports::summary_line(row) {
            self.sums.stated.entry(section).or_insert(sum);
        }
    }

    fn refuse(&mut self, row: &TableRow, reason: RefusedReason) {
        let line = self.lines_before.saturating_add(row.line);
        self.refused.push(Refused { line, reason });
    }

    fn trade(&mut self, table: &TradeTable, row: &TableRow) {
        if let Some(fault) = row.fault {
            return self.refuse(row, fault);
        }
        let line = self.lines_before.saturating_add(row.line);
        let read = match table.read(row) {
            Ok(read) => read,
            Err(_) if TradeTable::find(&Header::of(row), self.today).is_some() => {
                return self.note(format!("line {line} is the header once more"));
            }
            Err(reason) => return self.refuse(row, reason),
        };
        if let Some(client) = table.client(row) {
            let first = self.client_id.get_or_insert_with(|| client.clone());
            if first.kind == client.kind && *first != client {
                return self.refuse(row, RefusedReason::OtherClient);
            }
        }
        match read {
            TradeLine::Trade(trade) => self.rows.push(Row { line, ..trade }),
            TradeLine::OtherFund(trade, isin) => {
                self.rows.push(Row { line, ..trade });
                if self.other_funds.insert(isin) {
                    let correction = Correction::Class {
                        isin,
                        class: ClassWord::Other,
                    };
                    self.proposals.push(Proposal { line, correction });
                }
            }
            TradeLine::Free(free) => self.free.push(FreeLine { line, ..free }),
        }
    }

    fn report(&mut self, table: &mut ReportTable, row: &TableRow) {
        if let Some(fault) = row.fault {
            return self.refuse(row, fault);
        }
        let line = self.lines_before.saturating_add(row.line);
        if table.has_header(row) {
            return;
        }
        match table.read(row) {
            Ok(ReportEntry::Exit(exit)) => {
                let is_known = self.sums.known_before.contains(&exit.section);
                if self.is_nested && is_known {
                    self.sums.repeated += 1;
                    return;
                }
                self.sums.part += exit.gain;
                self.sums.whole += exit.gain;
                *self.sums.read.entry(exit.section).or_default() += exit.gain;
                self.report.push(ReportLine { line, ..exit });
            }
            Ok(ReportEntry::Dividend(income)) => self.income.push(Income { line, ..income }),
            Ok(ReportEntry::Title(Some(section))) => {
                self.sums.part = Decimal::ZERO;
                self.sums.read.entry(section).or_default();
            }
            Ok(ReportEntry::Title(None)) => {
                self.note(format!("line {line} is no title that is known: {}", shown(row)));
            }
            Ok(ReportEntry::Total(stated)) => self.total(line, row, stated),
            Err(reason) => self.refuse(row, reason),
        }
    }

    /// Compares a total with the lines above it.
    fn total(&mut self, line: u32, row: &TableRow, stated: Option<Decimal>) {
        let label = row.cells().next().map(|cell| cell.text).unwrap_or_default();
        let is_grand = plain(label) == "grandtotal";
        let sum = if is_grand {
            self.sums.whole
        } else {
            self.sums.part
        };
        match stated {
            Some(stated) if agrees(stated, sum) => self.sums.agreeing.push(line),
            Some(stated) => self.note(format!(
                "line {line}: {} is {stated}, and the lines above it add up to {}",
                clean(label),
                sum.normalize()
            )),
            None => self.note(format!("line {line}: {} has no figure", clean(label))),
        }
        if !is_grand {
            self.sums.part = Decimal::ZERO;
        }
    }

    /// Says how the sums of the report's sections compare with its own.
    fn note_sums(&mut self) {
        if !self.sums.agreeing.is_empty() {
            let lines: Vec<String> = self
                .sums
                .agreeing
                .iter()
                .take(SEEN_ROWS)
                .map(u32::to_string)
                .collect();
            let more = if self.sums.agreeing.len() > SEEN_ROWS {
                " and others"
            } else {
                ""
            };
            self.note(format!(
                "totals that agree with the lines above them, and are no rows: lines {}{more}",
                lines.join(", ")
            ));
        }
        let mut agreeing = Vec::new();
        let stated = std::mem::take(&mut self.sums.stated);
        for (section, sum) in stated {
            let read = self.sums.read.get(&section).copied().unwrap_or_default();
            if agrees(sum, read) {
                agreeing.push(section.as_str());
            } else {
                self.note(format!(
                    "the summary says {sum} for {section}, and its lines add up to {}",
                    read.normalize()
                ));
            }
        }
        if !agreeing.is_empty() {
            self.note(format!("sums that agree with the summary: {}", agreeing.join(", ")));
        }
    }

    fn finish(mut self) -> Result<ReadFile, FileError> {
        let Some(format) = self.format else {
            let cause = if self.seen.is_empty() {
                Cause::Empty
            } else {
                Cause::NoHeader
            };
            return Err(FileError::NotUnderstood {
                cause,
                seen: self.seen,
            });
        };
        if format.kind() == FileKind::TaxReport {
            self.note_sums();
        }
        self.propose_free();
        self.proposals.sort_by_key(|proposal| proposal.line);
        let trades = self.rows.len() + self.proposals.len();
        let stated = self.report.len() + self.income.len();
        Ok(ReadFile {
            kind: format.kind(),
            format,
            client_id: self.client_id,
            row_count: trades + stated + self.refused.len(),
            rows: self.rows,
            refused: self.refused,
            proposals: self.proposals,
            report: self.report,
            income: self.income,
            notes: self.notes,
        })
    }

    /// Makes proposals of the lines without a price, by what the file's other lines say was held.
    fn propose_free(&mut self) {
        let mut moves: HashMap<Isin, Vec<(Date, Decimal)>> = HashMap::new();
        let signed = |side: Side, quantity: Decimal| match side {
            Side::Buy => quantity,
            Side::Sell => -quantity,
        };
        for free in &self.free {
            moves
                .entry(free.isin)
                .or_default()
                .push((free.date, signed(free.side, free.quantity)));
        }
        for row in &self.rows {
            if let Some(of_isin) = row.isin.and_then(|isin| moves.get_mut(&isin)) {
                of_isin.push((row.date, signed(row.side, row.quantity)));
            }
        }
        for of_isin in moves.values_mut() {
            of_isin.sort_by_key(|(date, _)| *date);
            let mut held = Decimal::ZERO;
            for (_, quantity) in of_isin {
                held += *quantity;
                *quantity = held;
            }
        }
        for free in std::mem::take(&mut self.free) {
            let of_isin = moves.get(&free.isin).map(Vec::as_slice).unwrap_or_default();
            let before = of_isin.partition_point(|(date, _)| *date < free.date);
            let held = before
                .checked_sub(1)
                .map_or(Decimal::ZERO, |at| of_isin[at].1);
            let correction = free.proposes(held, self.account);
            self.proposals.push(Proposal {
                line: free.line,
                correction,
            });
        }
    }
}

impl Sheets for Reading<'_> {
    fn begin(&mut self, name: &str) -> Result<bool, FileError> {
        self.begin_table(&clean(name));
        Ok(true)
    }

    fn row(&mut self, row: &TableRow) -> Result<bool, FileError> {
        self.take(row)
    }

    fn end(&mut self) -> Result<(), FileError> {
        self.end_table();
        Ok(())
    }
}

/// Equal to a paisa.
fn agrees(stated: Decimal, sum: Decimal) -> bool {
    (stated - sum).abs() <= Decimal::new(1, 2)
}

/// The first bytes.
fn start_of<R: Read>(from: &mut R) -> Result<Vec<u8>, FileError> {
    let mut start = Vec::new();
    let wanted = COMPOUND_START.len() as u64;
    let read = from.take(wanted).read_to_end(&mut start);
    read.map(|_| start)
        .map_err(|error| FileError::below(&error, Cause::BrokenZip))
}

/// A whole member that begins with `start`.
fn unpacked<R: Read>(start: Vec<u8>, rest: R) -> Result<Vec<u8>, FileError> {
    let mut whole = start;
    let read = rest.take(NESTED_BYTES_MAX).read_to_end(&mut whole);
    read.map_err(|error| FileError::below(&error, Cause::BrokenZip))?;
    if whole.len() as u64 >= NESTED_BYTES_MAX {
        return Err(FileError::Expands(Expansion::Nested));
    }
    Ok(whole)
}

/// The client whom a line above the header names.
fn client_above(row: &TableRow) -> Option<ClientId> {
    let mut cells = row.cells();
    let label = cells.find(|cell| cell.kind == CellKind::Text)?;
    let (label, own) = label.text.split_once(':').unwrap_or((label.text, ""));
    let kind = match plain(label).as_str() {
        "clientid" => ClientIdKind::UserA,
        "account" | "accountno" | "accountnumber" => ClientIdKind::AccountB,
        _ => return None,
    };
    let id = if own.trim().is_empty() {
        cells.next()?.text
    } else {
        own.trim()
    };
    ClientId::of(kind, id)
}

/// A row to show: cut, and without what could be taken for anything but text.
fn shown(row: &TableRow) -> String {
    let cells: Vec<&str> = row.cells().take(20).map(|cell| cell.text).collect();
    clean(&cells.join(" | "))
}

fn clean(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control())
        .take(SEEN_LETTERS)
        .collect()
}
