//! Reads a folder of candles, one symbol a file. Rows that cannot be true are left out and told.
//!
//! The exchange's own form is accepted: `03-Jan-2022`, `"1,889.00"`, the newest row first. Files
//! are split line by line, so that a stray quote spoils one row and not the rest of the file.

use std::fs;
use std::path::{Path, PathBuf};

use bhav::base::candle::price_e4;
use bhav::base::json::parse_decimal;
use bhav::base::{Candle, Symbol};
use bhav::signals::backtest::History;
use bhav::signals::history::{Window, check};
use jiff::civil::Date;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

const COLUMNS: [&str; 6] = ["date", "open", "high", "low", "close", "volume"];

/// The usable candles of a folder, and what was left out.
#[derive(Default)]
pub struct Folder {
    pub histories: Vec<History>,
    pub files: usize,
    pub files_left_out: usize,
    pub rows_left_out: usize,
    /// What was left out and why, in the order of files.
    pub told: Vec<String>,
}

impl Folder {
    /// Reads the CSV files of a folder.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub fn read(path: &Path) -> Result<Self, String> {
        let mut folder = Self::default();
        for path in csv_files(path)? {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            folder.files += 1;
            match folder.history(&path, &name) {
                Ok(history) => folder.histories.push(history),
                Err(why) => {
                    folder.told.push(format!("{name}: left out: {why}"));
                    folder.files_left_out += 1;
                }
            }
        }
        match (folder.files, folder.histories.len()) {
            (0, _) => Err("no CSV file; one a symbol is expected".to_owned()),
            (_, 0) => Err("no usable candle in any of its CSV files".to_owned()),
            _ => Ok(folder),
        }
    }

    fn history(&mut self, path: &Path, name: &str) -> Result<History, String> {
        let ticker = path.file_stem().and_then(|stem| stem.to_str());
        let ticker = ticker.filter(|ticker| Symbol::parse(&format!("NSE:{ticker}")).is_some());
        let ticker = ticker.ok_or("its name is no ticker")?;
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut lines = (1..)
            .zip(text.lines())
            .filter(|(_, line)| !line.trim().is_empty());
        let places = places(lines.next().map_or("", |(_, line)| line))?;
        let mut candles = Vec::new();
        for (number, line) in lines {
            match candle(&fields(line), places) {
                Ok(candle) => candles.push(candle),
                Err(why) => self.leave_out(&format!("{name}:{number}"), &why),
            }
        }
        let dates = || candles.iter().map(|candle| candle.date);
        let from = dates().min().unwrap_or_default();
        let to = dates().max().unwrap_or_default();
        if dates().next_back() < dates().next() {
            candles.reverse();
        }
        let checked = check(
            &candles,
            Window {
                from,
                to,
                untraded: false,
            },
            &|_| true,
        );
        for fault in checked.faults {
            self.leave_out(name, &fault.to_string());
        }
        if checked.candles.is_empty() {
            return Err("no usable row".to_owned());
        }
        Ok(History {
            symbol: ticker.to_owned(),
            candles: checked.candles,
        })
    }

    fn leave_out(&mut self, place: &str, why: &str) {
        self.rows_left_out += 1;
        self.told.push(format!("{place}: left out: {why}"));
    }
}

fn csv_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "csv"))
        .collect();
    files.sort();
    Ok(files)
}

/// The fields of a line, separated by commas outside quotes; without quotes and blanks.
fn fields(line: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let parts = line.split(|letter| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    });
    parts
        .map(|part| part.trim().trim_matches('"').trim())
        .collect()
}

/// Positions of the columns in the first line.
fn places(line: &str) -> Result<[usize; 6], String> {
    let names = fields(line);
    let mut places = [0; 6];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        let mut found = (0..)
            .zip(&names)
            .filter(|(_, name)| name.eq_ignore_ascii_case(column));
        match (found.next(), found.next()) {
            (Some((at, _)), None) => *place = at,
            _ => return Err(format!("line 1 must name the column `{column}` once")),
        }
    }
    Ok(places)
}

fn candle(fields: &[&str], places: [usize; 6]) -> Result<Candle, String> {
    let field = |at: usize| fields.get(places[at]).copied().unwrap_or_default();
    let fault = |at: usize, why: &str| {
        let shown: String = field(at)
            .chars()
            .take(24)
            .flat_map(char::escape_debug)
            .collect();
        format!("{} `{shown}` {why}", COLUMNS[at])
    };
    let number = |at: usize| number(field(at)).ok_or_else(|| fault(at, "is not a number"));
    let price = |at: usize| price_e4(number(at)?).ok_or_else(|| fault(at, "is out of range"));
    let shares = || Some(number(5).ok()?).filter(Decimal::is_integer)?.to_i64();
    Ok(Candle {
        date: date(field(0)).ok_or_else(|| fault(0, "is not a date such as 2026-11-20"))?,
        open_e4: price(1)?,
        high_e4: price(2)?,
        low_e4: price(3)?,
        close_e4: price(4)?,
        volume: shares().ok_or_else(|| fault(5, "is not a number of shares"))?,
    })
}

/// `2026-11-20`, or the exchange's form `20-Nov-2026`. The parsers also take other forms.
fn date(text: &str) -> Option<Date> {
    let is_long = text.len() == 11;
    let date = if is_long {
        Date::strptime("%d-%b-%Y", text)
    } else {
        text.parse()
    };
    date.ok().filter(|_| is_long || text.len() == 10)
}

/// A number, which may have commas between its thousands, as in `1,05,000.50`.
fn number(text: &str) -> Option<Decimal> {
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let groups: Vec<&str> = whole.split(',').collect();
    let is_grouped = match groups.as_slice() {
        [_] => true,
        [first, inner @ .., last] => {
            let are_inner = inner.iter().all(|group| matches!(group.len(), 2 | 3));
            (1..=3).contains(&first.len()) && are_inner && last.len() == 3
        }
        [] => false,
    };
    let is_number = is_grouped && !fraction.contains(',');
    is_number
        .then(|| parse_decimal(&text.replace(',', "")))
        .flatten()
}
