//! Reads the operator's data files (calendar, indices, universe), most of them TOML. Every fault is
//! reported with its line; one fault does not stop the reading.
//!
//! Runs on the main thread. Reads no other file.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Years that entries may have. Bounds the size of the timeline that is built from them.
pub(crate) const YEARS: RangeInclusive<i16> = 2000..=2100;

/// Largest operator file read. The embedded calendar of four years is under 20 KiB.
pub(crate) const DATA_FILE_BYTES_MAX: u64 = 256 * 1024;

/// Most entries of one kind in a file; a hundred years of holidays are under 2,000.
pub(crate) const ENTRIES_MAX: usize = 4_000;

/// Longest name or note.
pub(crate) const TEXT_BYTES_MAX: usize = 200;

/// One fault of a data file: its line, and what to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Counted from 1.
    pub line: usize,
    pub message: String,
}

/// Why a data file was not used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("cannot read {path}: {cause}", path = path.display())]
    Unreadable {
        path: PathBuf,
        cause: std::io::Error,
    },
    #[error("{path} is over {DATA_FILE_BYTES_MAX} bytes, too many", path = path.display())]
    TooLarge { path: PathBuf },
    #[error("{}", Listing { origin, faults })]
    Faulty { origin: String, faults: Vec<Fault> },
}

/// Most faults printed. A file with more of them is probably not a data file at all; the rest is
/// counted.
const FAULTS_SHOWN: usize = 12;

struct Listing<'a> {
    origin: &'a str,
    faults: &'a [Fault],
}

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, fault) in self.faults.iter().take(FAULTS_SHOWN).enumerate() {
            let break_before = if position == 0 { "" } else { "\n" };
            write!(f, "{break_before}{}:{}: {}", self.origin, fault.line, fault.message)?;
        }
        match self.faults.len().saturating_sub(FAULTS_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n{}: and {more} more", self.origin),
        }
    }
}

/// Parses the operator's file with `parse`, or calls `embedded` if there is none. `parse` takes the
/// text and the name by which faults refer to it.
pub(crate) fn operators<T>(
    file: Option<&Path>,
    embedded: fn() -> T,
    parse: fn(&str, &str) -> Result<T, DataError>,
) -> Result<T, DataError> {
    match file {
        None => Ok(embedded()),
        Some(path) => parse(&read_file(path)?, &path.display().to_string()),
    }
}

/// Reads an operator's file, up to [`DATA_FILE_BYTES_MAX`].
fn read_file(path: &Path) -> Result<String, DataError> {
    let unreadable = |cause| DataError::Unreadable {
        path: path.into(),
        cause,
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(DATA_FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > DATA_FILE_BYTES_MAX {
        return Err(DataError::TooLarge { path: path.into() });
    }
    Ok(text)
}

/// The faults found so far in one text.
pub(crate) struct Faults<'t> {
    text: &'t str,
    found: Vec<Fault>,
}

impl<'t> Faults<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self {
            text,
            found: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, offset: usize, message: impl Into<String>) {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        self.found.push(Fault {
            line,
            message: message.into(),
        });
    }

    /// `value` if there are no faults, otherwise all of them as an error.
    pub(crate) fn into_result<T>(mut self, origin: &str, value: T) -> Result<T, DataError> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found.sort_by_key(|fault| fault.line);
        Err(DataError::Faulty {
            origin: origin.into(),
            faults: self.found,
        })
    }
}

/// An interval within a day in IST, in seconds since midnight. `start_s` belongs to it, `end_s`
/// does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DaySpan {
    pub start_s: u32,
    pub end_s: u32,
}

impl DaySpan {
    /// Parses `09:15-15:30`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (start, end) = text.split_once('-')?;
        let span = Self {
            start_s: second_of_day(start)?,
            end_s: second_of_day(end)?,
        };
        (span.start_s < span.end_s).then_some(span)
    }

    pub(crate) fn contains(self, second: u32) -> bool {
        (self.start_s..self.end_s).contains(&second)
    }
}

fn year_of(value: &DeValue<'_>) -> Option<i16> {
    match value {
        DeValue::Integer(integer) => integer.as_str().parse().ok(),
        _ => None,
    }
    .filter(|year| YEARS.contains(year))
}

fn second_of_day(text: &str) -> Option<u32> {
    let bytes = text.trim().as_bytes();
    let [h1, h2, b':', m1, m2] = bytes else {
        return None;
    };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    let hour = digit(h1)? * 10 + digit(h2)?;
    let minute = digit(m1)? * 10 + digit(m2)?;
    (hour < 24 && minute < 60).then_some((hour * 60 + minute) * 60)
}

type Key<'t> = Spanned<Cow<'t, str>>;

/// Parses the text as TOML. Syntax errors become faults.
pub(crate) fn document<'t>(text: &'t str, faults: &mut Faults<'t>) -> DeTable<'t> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let offset = error.span().map_or(0, |span| span.start);
        faults.add(offset, format!("not valid TOML: {}", error.message()));
    }
    table.into_inner()
}

/// One table of the document, read key by key.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a, 't> {
    table: &'a DeTable<'t>,
    /// Byte offset of the table, for faults that concern all of it.
    pub(crate) offset: usize,
}

impl<'a, 't> Row<'a, 't> {
    pub(crate) fn whole(table: &'a DeTable<'t>) -> Self {
        Self { table, offset: 0 }
    }

    /// Reports keys that are not in `known`. Otherwise a misspelled key would have no effect and
    /// nobody would notice.
    pub(crate) fn expect_only(&self, known: &[&str], faults: &mut Faults<'_>) {
        for key in self.table.keys() {
            let key: &Key<'_> = key;
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let list = known.join(", ");
                faults.add(key.span().start, format!("unknown key `{name}`; known here: {list}"));
            }
        }
    }

    fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'t>>> {
        self.table.get(key)
    }

    /// Byte offset of `key`, or of the table if the key is missing.
    pub(crate) fn offset_of(&self, key: &str) -> usize {
        self.value(key)
            .map_or(self.offset, |value| value.span().start)
    }

    /// The string at `key`. `None` if it is absent; also `None`, with a fault, if it has another
    /// type or is too long.
    pub(crate) fn text(&self, key: &str, faults: &mut Faults<'_>) -> Option<&'a str> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() && text.len() <= TEXT_BYTES_MAX => {
                if text
                    .chars()
                    .all(|c| !c.is_control() && c != '"' && c != '\\')
                {
                    return Some(text);
                }
                faults.add(
                    value.span().start,
                    format!("`{key}` holds a quote, backslash or control character: remove it"),
                );
            }
            _ => faults.add(
                value.span().start,
                format!("`{key}` must be a string of 1 to {TEXT_BYTES_MAX} bytes in quotes"),
            ),
        }
        None
    }

    /// The string at `key`; reports a fault if it is missing.
    pub(crate) fn required(&self, key: &str, faults: &mut Faults<'_>) -> Option<&'a str> {
        if self.value(key).is_none() {
            faults.add(self.offset, format!("`{key}` is missing: add it to this entry"));
        }
        self.text(key, faults)
    }

    /// The date at `key`; reports a fault if it is missing or not a date.
    pub(crate) fn date(&self, key: &str, faults: &mut Faults<'_>) -> Option<Date> {
        let text = self.required(key, faults)?;
        let date: Option<Date> = text.parse().ok();
        let date = date.filter(|date| text.len() == 10 && YEARS.contains(&date.year()));
        if date.is_none() {
            let first = YEARS.start();
            let last = YEARS.end();
            faults.add(
                self.offset_of(key),
                format!("`{key}` is not a date: write \"YYYY-MM-DD\", years {first} to {last}"),
            );
        }
        date
    }

    /// Whether the key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// The time of day at `key`, in seconds. `None` if it is absent; also `None`, with a fault, if
    /// it is malformed.
    pub(crate) fn second(&self, key: &str, faults: &mut Faults<'_>) -> Option<u32> {
        let text = self.text(key, faults)?;
        let second = second_of_day(text);
        if second.is_none() {
            let cure = format!("`{key}` is not a time of day: write \"HH:MM\", IST");
            faults.add(self.offset_of(key), cure);
        }
        second
    }

    /// The year at `key`; reports a fault if it is missing or not one.
    pub(crate) fn year(&self, key: &str, faults: &mut Faults<'_>) -> Option<i16> {
        let found = self.value(key).and_then(|value| year_of(value.get_ref()));
        if found.is_none() {
            let first = YEARS.start();
            let last = YEARS.end();
            faults.add(
                self.offset_of(key),
                format!("`{key}` takes a whole number from {first} to {last}"),
            );
        }
        found
    }

    /// The interval at `key`. `None` if it is absent; also `None`, with a fault, if it is
    /// malformed.
    pub(crate) fn span(&self, key: &str, faults: &mut Faults<'_>) -> Option<DaySpan> {
        let text = self.text(key, faults)?;
        let span = DaySpan::parse(text);
        if span.is_none() {
            faults.add(
                self.offset_of(key),
                format!("`{key}` is not an interval: write \"HH:MM-HH:MM\", IST, start before end"),
            );
        }
        span
    }

    /// The boolean at `key`, or `absent` if the key is missing.
    pub(crate) fn boolean(&self, key: &str, absent: bool, faults: &mut Faults<'_>) -> bool {
        match self.value(key).map(|value| (value.get_ref(), value.span())) {
            None => absent,
            Some((DeValue::Boolean(value), _)) => *value,
            Some((_, span)) => {
                faults.add(span.start, format!("`{key}` must be true or false"));
                absent
            }
        }
    }

    /// The years listed at `key`; empty if the key is missing.
    pub(crate) fn years(&self, key: &str, faults: &mut Faults<'_>) -> Vec<i16> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let mut years = Vec::new();
        let DeValue::Array(items) = value.get_ref() else {
            faults.add(value.span().start, format!("`{key}` must be a list, like [2027]"));
            return years;
        };
        for item in items.iter() {
            match year_of(item.get_ref()) {
                Some(year) => years.push(year),
                None => {
                    let first = YEARS.start();
                    let last = YEARS.end();
                    faults.add(
                        item.span().start,
                        format!("`{key}` takes whole numbers from {first} to {last}"),
                    );
                }
            }
        }
        years
    }

    /// The tables of `[[key]]`; empty if the key is missing.
    pub(crate) fn rows(&self, key: &str, faults: &mut Faults<'_>) -> Vec<Row<'a, 't>> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        let DeValue::Array(items) = value.get_ref() else {
            faults.add(value.span().start, format!("`{key}` must be a list: write [[{key}]]"));
            return rows;
        };
        if items.len() > ENTRIES_MAX {
            faults.add(value.span().start, format!("more than {ENTRIES_MAX} entries of `{key}`"));
            return rows;
        }
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Table(table) => rows.push(Row {
                    table,
                    offset: item.span().start,
                }),
                _ => faults
                    .add(item.span().start, format!("`{key}` must hold tables: write [[{key}]]")),
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_spans_are_read_strictly() {
        let span = DaySpan::parse("09:15-15:30").unwrap();
        assert_eq!((span.start_s, span.end_s), (33_300, 55_800));
        assert!(span.contains(33_300) && !span.contains(33_299));
        assert!(span.contains(55_799) && !span.contains(55_800));
        for bad in [
            "",
            "09:15",
            "9:15-15:30",
            "15:30-09:15",
            "09:15-09:15",
            "24:00-24:30",
            "09:60-10:00",
        ] {
            assert_eq!(DaySpan::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_file_over_the_limit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large.toml");
        std::fs::write(&path, "#".repeat(DATA_FILE_BYTES_MAX as usize + 1)).unwrap();
        assert!(matches!(read_file(&path), Err(DataError::TooLarge { .. })));
        assert!(matches!(
            read_file(&dir.path().join("missing")),
            Err(DataError::Unreadable { .. })
        ));
    }
}
