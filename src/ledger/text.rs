//! Tables of text to rows: separated by commas or tabs, quoted or not, line by line.
//!
//! No cell holds a line break: a quote that is open at the end of its line makes that line doubtful
//! and none after it, so that one stray quote does not swallow the lines that follow.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

use crate::ledger::limits::Limits;
use crate::ledger::refusals::{Cause, FileError, RefusedReason};
use crate::ledger::table::{CELLS_MAX, CellKind, LINE_BYTES_MAX, TableRow};

/// Bytes of the beginning that decide what separates cells.
const HEAD_BYTES: u64 = 64 << 10;
/// Lines of the beginning that do.
const HEAD_LINES: usize = 30;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Gives each row that holds something to `each`, until it answers `false`.
pub(crate) fn read_text<R: Read>(
    mut from: R,
    limits: &Limits<'_>,
    each: &mut dyn FnMut(&TableRow) -> Result<bool, FileError>,
) -> Result<(), FileError> {
    let mut head = Vec::new();
    let failed = |error: &std::io::Error| FileError::below(error, Cause::BrokenZip);
    from.by_ref()
        .take(HEAD_BYTES)
        .read_to_end(&mut head)
        .map_err(|error| failed(&error))?;
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Err(FileError::not_understood(Cause::Utf16));
    }
    let start = if head.starts_with(BOM) { BOM.len() } else { 0 };
    let separator = separator(&head[start..]);
    let mut lines = BufReader::with_capacity(HEAD_BYTES as usize, head[start..].chain(from));
    let mut line = Vec::new();
    let mut row = TableRow::default();
    let mut count: u32 = 0;
    loop {
        line.clear();
        let mut limited = lines.by_ref().take(LINE_BYTES_MAX as u64 + 2);
        let read = limited
            .read_until(b'\n', &mut line)
            .map_err(|error| failed(&error))?;
        if read == 0 {
            return Ok(());
        }
        count = count.saturating_add(1);
        if count.is_multiple_of(4096) {
            limits.in_time()?;
        }
        let text = without_end(&line);
        if text.len() > LINE_BYTES_MAX {
            return Err(FileError::not_understood(Cause::LongLine));
        }
        if memchr::memchr(0, text).is_some() {
            return Err(FileError::not_understood(Cause::ZeroBytes));
        }
        row.begin(count);
        match str::from_utf8(text) {
            Ok(text) => split(text, separator, &mut row)?,
            Err(_) => row.fault = Some(RefusedReason::NotUtf8),
        }
        if !row.is_empty() && !each(&row)? {
            return Ok(());
        }
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A tab if the line with most separators, which is a table's, has more tabs than commas.
fn separator(head: &[u8]) -> u8 {
    let count = |line: &[u8], wanted: u8| memchr::memchr_iter(wanted, line).count();
    let lines = head.split(|byte| *byte == b'\n').take(HEAD_LINES);
    let counted = lines.map(|line| (count(line, b'\t'), count(line, b',')));
    let (tabs, commas) = counted
        .max_by_key(|(tabs, commas)| tabs + commas)
        .unwrap_or_default();
    if tabs > commas { b'\t' } else { b',' }
}

/// The cells of one line.
fn split(line: &str, separator: u8, row: &mut TableRow) -> Result<(), FileError> {
    let bytes = line.as_bytes();
    let end_after =
        |at: usize| memchr::memchr(separator, &bytes[at..]).map_or(bytes.len(), |found| at + found);
    let mut at = 0;
    let mut column: u32 = 0;
    loop {
        if column as usize == CELLS_MAX {
            return Err(FileError::not_understood(Cause::ManyCells));
        }
        let blanks = bytes[at..].iter().take_while(|byte| **byte == b' ').count();
        let open = at + blanks;
        if bytes.get(open) == Some(&b'"') {
            let Some((text, after)) = quoted(line, open + 1) else {
                row.fault = Some(RefusedReason::QuoteNotClosed);
                return row.push(column, CellKind::Text, &line[at..]);
            };
            row.push(column, CellKind::Text, &text)?;
            at = end_after(after);
            if !line[after..at].trim().is_empty() {
                row.fault = Some(RefusedReason::QuoteNotClosed);
            }
        } else {
            let start = at;
            at = end_after(start);
            row.push(column, CellKind::Text, &line[start..at])?;
        }
        if at == bytes.len() {
            return Ok(());
        }
        at += 1;
        column += 1;
    }
}

/// The text from `start` to the quote that closes it, and where it goes on. A quote that is doubled
/// is one of the text.
fn quoted(line: &str, start: usize) -> Option<(Cow<'_, str>, usize)> {
    let mut text = Cow::Borrowed("");
    let mut from = start;
    loop {
        let close = from + memchr::memchr(b'"', &line.as_bytes()[from..])?;
        let is_doubled = line.as_bytes().get(close + 1) == Some(&b'"');
        let part = &line[from..close + usize::from(is_doubled)];
        if text.is_empty() {
            text = Cow::Borrowed(part);
        } else {
            text.to_mut().push_str(part);
        }
        if !is_doubled {
            return Some((text, close + 1));
        }
        from = close + 2;
    }
}
