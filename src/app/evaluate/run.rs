//! The command `signals evaluate`: reads candles, walks forward over them, prints the report.
//!
//! Main thread of a process of its own.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use indicatif::{ProgressBar, ProgressStyle};
use jiff::civil::Date;

use crate::app::evaluate::outcomes::{COLUMNS, RowFault, bare, fields, row};
use crate::app::evaluate::report;
use crate::app::evaluate::report::Report;
use crate::base::{Candle, symbol};
use crate::ops::Exit;
use crate::signals::backtest;
use crate::signals::backtest::{History, Silence, Universe, sessions};
use crate::signals::confidence::WINDOW_DATES;
use crate::signals::history::HOLES_MAX;

/// Evaluates a folder of candles; writes text or JSON, and a plot on request.
pub fn evaluate(folder: &Path, prior_dates: u32, json: bool, plot: Option<&Path>) -> ExitCode {
    let report = match report_of(folder, prior_dates) {
        Ok(report) => report,
        Err(error) => return fail(&error, Exit::Data),
    };
    let written = if json { report.to_json() } else { Ok(report::write(&report)) };
    let written = match written {
        Ok(written) => written,
        Err(error) => return fail(&error, Exit::Internal),
    };
    let mut out = io::stdout().lock();
    match out.write_all(written.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return fail(&format!("standard output: {error}"), Exit::StateDir);
        }
        _ => {}
    }
    let Some(file) = plot else { return Exit::Ok.into() };
    match report::svg(&report) {
        Ok(svg) => match fs::write(file, svg) {
            Ok(()) => Exit::Ok.into(),
            Err(error) => fail(&format!("{}: {error}", file.display()), Exit::StateDir),
        },
        Err(error) => fail(&error, Exit::Internal),
    }
}

/// Why there is nothing to report.
#[derive(Debug, thiserror::Error)]
enum EvaluateError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(
        "no signal can be judged: the candles span {dates} dates, and signals count from the \
         {}th on, once their outcome is known; {silent} candles are of symbols that are silent \
         then, for more than {HOLES_MAX} missing sessions or a suspected split", WINDOW_DATES + 1
    )]
    NothingToJudge { dates: usize, silent: usize },
}

fn report_of(folder: &Path, prior_dates: u32) -> Result<Report, EvaluateError> {
    let files = list(folder)?;
    let bar = progress(files.len(), "reading");
    let read = read(&files, || bar.inc(1));
    bar.finish_and_clear();
    for told in read.told() {
        say(told);
    }
    if read.histories.is_empty() {
        return Err(FolderError::NothingUsable { folder: folder.into() }.into());
    }
    let bar = progress(read.histories.len(), "finding signals");
    let sessions = sessions(&read.histories);
    let silences: Vec<Silence> =
        read.histories.iter().map(|history| backtest::judge(history, &sessions)).collect();
    let universe = Universe::examine_with(&read.histories, &silences, prior_dates, |_| bar.inc(1));
    bar.finish_and_clear();
    let judged = universe.judged();
    if judged.is_empty() {
        let silent = silences.iter().map(Silence::dates).sum();
        return Err(EvaluateError::NothingToJudge { dates: universe.dates().len(), silent });
    }
    Ok(Report::of(&read, &silences, &universe, &judged))
}

/// A bar on a terminal; nothing anywhere else.
fn progress(steps: usize, what: &'static str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:16} {bar:40} {pos}/{len}");
    let bar = ProgressBar::new(steps as u64).with_message(what);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// To standard error. Nobody is left to tell when that fails.
pub(super) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

pub(super) fn fail(error: &dyn std::fmt::Display, exit: Exit) -> ExitCode {
    say(&format!("bhav: {error}"));
    exit.into()
}

// ---- Candles
//
// Reads a folder of candles, and believes nothing: what cannot be true is left out and told.
//
// One symbol a file. Whole files are read into memory, within limits, and split line by line, so
// that a stray quote spoils one row and not the rest of the file. Understands what the exchange
// itself writes: `03-Jan-2022`, `"1,889.00"`, the newest row first.

/// Most files of a folder: several times any index of the exchange.
pub(crate) const FILES_MAX: usize = 1_000;
/// Most rows of a file: forty years of sessions.
pub(crate) const ROWS_MAX: usize = 10_000;
/// Most bytes of a file: four hundred for each row, several times what vendors write.
pub(crate) const BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Most rows of one file told one by one; the others are counted.
pub(crate) const TOLD_MAX: usize = 20;
/// What a text in UTF-16 begins with.
const UTF_16_MARKS: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];
/// What some programs put in the place of commas.
const SEPARATORS: [(u8, &str); 2] = [(b';', "semicolons"), (b'\t', "tabs")];

/// Why a folder cannot be evaluated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("{}: {cause}", folder.display())]
    Unreadable { folder: PathBuf, cause: io::Error },
    #[error("{}: more than {FILES_MAX} CSV files", folder.display())]
    TooManyFiles { folder: PathBuf },
    #[error("{}: no CSV file; one a symbol is expected, such as INFY.csv", folder.display())]
    NoFiles { folder: PathBuf },
    #[error("{}: no usable candle in any of its CSV files", folder.display())]
    NothingUsable { folder: PathBuf },
}

/// Why a whole file is left out.
#[derive(Debug, thiserror::Error)]
enum FileFault {
    #[error("its name is no ticker")]
    Name,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("not a file")]
    NotAFile,
    #[error("more than {BYTES_MAX} bytes")]
    TooLarge,
    #[error("more than {ROWS_MAX} rows")]
    TooManyRows,
    #[error("UTF-16 text; UTF-8 is expected")]
    Utf16,
    #[error("columns are parted by {0}; commas are expected, and points in numbers")]
    Separator(&'static str),
    #[error("line 1 must name the column `{0}` once")]
    Column(&'static str),
    #[error("no usable row")]
    NoCandles,
}

/// What a folder held.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    pub histories: Vec<History>,
    pub files: usize,
    pub files_left_out: usize,
    pub rows_left_out: usize,
    told: Vec<String>,
}

impl Folder {
    /// What was left out and why, in the order of files and lines.
    pub(super) fn told(&self) -> impl Iterator<Item = &str> {
        self.told.iter().map(String::as_str)
    }
}

/// The CSV files of `folder`, by name.
///
/// # Errors
/// [`FolderError`] where there are none or too many.
pub(super) fn list(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let unreadable = |cause| FolderError::Unreadable { folder: folder.into(), cause };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "csv") {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            return Err(FolderError::TooManyFiles { folder: folder.into() });
        }
    }
    if files.is_empty() {
        return Err(FolderError::NoFiles { folder: folder.into() });
    }
    files.sort();
    Ok(files)
}

/// Reads `files`; `done` hears of each.
pub(super) fn read(files: &[PathBuf], mut done: impl FnMut()) -> Folder {
    let mut folder = Folder { files: files.len(), ..Folder::default() };
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.escape_debug().collect();
        let mut rows = Rows { file: &name, left_out: 0, told: &mut folder.told };
        match history(path, &mut rows) {
            Ok(history) => folder.histories.push(history),
            Err(fault) => {
                rows.told.push(format!("{name}: left out: {fault}"));
                folder.files_left_out += 1;
            }
        }
        let untold = rows.left_out.saturating_sub(TOLD_MAX);
        if untold > 0 {
            rows.told.push(format!("{name}: {untold} more rows left out"));
        }
        folder.rows_left_out += rows.left_out;
        done();
    }
    folder
}

/// Hears of the rows of one file that are left out.
struct Rows<'a> {
    file: &'a str,
    left_out: usize,
    told: &'a mut Vec<String>,
}

impl Rows<'_> {
    fn leave_out(&mut self, fault: &RowFault, line: usize) {
        self.left_out += 1;
        if self.left_out <= TOLD_MAX {
            self.told.push(format!("{}:{line}: left out: {fault}", self.file));
        }
    }
}

fn history(path: &Path, rows: &mut Rows<'_>) -> Result<History, FileFault> {
    let ticker = path.file_stem().and_then(|stem| stem.to_str()).ok_or(FileFault::Name)?;
    if !symbol::well_formed(format!("NSE:{ticker}").as_bytes()) {
        return Err(FileFault::Name);
    }
    let candles = parse(&contents(path)?, rows)?;
    if candles.is_empty() {
        return Err(FileFault::NoCandles);
    }
    Ok(History { symbol: ticker.to_owned(), candles })
}

fn contents(path: &Path) -> Result<Vec<u8>, FileFault> {
    // Before it is opened: opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(FileFault::NotAFile);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX { Err(FileFault::TooLarge) } else { Ok(bytes) }
}

fn parse(bytes: &[u8], rows: &mut Rows<'_>) -> Result<Vec<Candle>, FileFault> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    if UTF_16_MARKS.iter().any(|mark| bytes.starts_with(mark)) || bytes.get(1) == Some(&0) {
        return Err(FileFault::Utf16);
    }
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    let mut lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let headers = lines.next().map_or(b"".as_slice(), |(_, line)| line);
    let places = places(headers)?;
    let columns = fields(headers).len();
    let mut read = Vec::new();
    for (number, line) in lines {
        if read.len() == ROWS_MAX {
            return Err(FileFault::TooManyRows);
        }
        read.push((number, row(&fields(line), columns, &places)));
    }
    Ok(ordered(read, rows))
}

/// A row of a file by its line, counted from 1.
type NumberedRow = (usize, Result<Candle, RowFault>);

/// The candles, oldest first. A file whose last row is older than its first has the newest first;
/// rows that stand out of the file's order are left out, and so are all rows of a date that
/// contradict each other, for nobody knows which one is right.
fn ordered(read: Vec<NumberedRow>, rows: &mut Rows<'_>) -> Vec<Candle> {
    let mut dates = read.iter().filter_map(|(_, row)| Some(row.as_ref().ok()?.date));
    let (first, last) = (dates.next(), dates.next_back());
    let expected = match (first, last) {
        (Some(first), Some(last)) if last < first => Ordering::Less,
        _ => Ordering::Greater,
    };
    let mut kept: Vec<(usize, Candle)> = Vec::with_capacity(read.len());
    let mut contradicted = None;
    for (line, row) in read {
        let before = kept.last().map(|(_, candle)| candle);
        match row.and_then(|candle| follows(candle, before, contradicted, expected)) {
            Ok(candle) => kept.push((line, candle)),
            Err(fault) => {
                let first = kept.last().filter(|(_, before)| fault.contradicts(before));
                if let Some((line, before)) = first {
                    contradicted = Some(before.date);
                    rows.leave_out(&fault, *line);
                    kept.pop();
                }
                rows.leave_out(&fault, line);
            }
        }
    }
    let mut candles: Vec<Candle> = kept.into_iter().map(|(_, candle)| candle).collect();
    if expected == Ordering::Less {
        candles.reverse();
    }
    candles
}

/// `candle` where its date is `expected` to be of that of the row before. `contradicted`: a date
/// whose rows were left out.
fn follows(
    candle: Candle,
    before: Option<&Candle>,
    contradicted: Option<Date>,
    expected: Ordering,
) -> Result<Candle, RowFault> {
    let same_date = before.filter(|before| before.date == candle.date);
    if contradicted == Some(candle.date) || same_date.is_some_and(|before| *before != candle) {
        return Err(RowFault::Contradicts(candle.date));
    }
    match before.map(|before| candle.date.cmp(&before.date)) {
        Some(Ordering::Equal) => Err(RowFault::Again),
        Some(order) if order != expected => Err(RowFault::OutOfOrder),
        _ => Ok(candle),
    }
}

/// Where each of [`COLUMNS`] stands.
fn places(line: &[u8]) -> Result<[usize; 6], FileFault> {
    let names_all = |separator: u8| {
        let parts: Vec<&[u8]> = line.split(|byte| *byte == separator).collect();
        COLUMNS.iter().all(|column| parts.iter().any(|part| is_named(part, column)))
    };
    if let Some((_, name)) = SEPARATORS.iter().find(|(separator, _)| names_all(*separator)) {
        return Err(FileFault::Separator(name));
    }
    let headers = fields(line);
    let mut places = [0; 6];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        let mut found = headers.iter().enumerate().filter(|(_, field)| is_named(field, column));
        match (found.next(), found.next()) {
            (Some((at, _)), None) => *place = at,
            _ => return Err(FileFault::Column(column)),
        }
    }
    Ok(places)
}

fn is_named(field: &[u8], column: &str) -> bool {
    bare(field).eq_ignore_ascii_case(column.as_bytes())
}

#[cfg(test)]
#[path = "candles_tests.rs"]
mod candles_tests;
