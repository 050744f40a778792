//! Pages of the tools that return lists: what of a list fits into one answer, and the cursor that
//! asks for the rest.
//!
//! Runs on the edge. Never blocks.

use std::ops::Range;

use serde_json::value::RawValue;

use crate::api::portfolio_errors;
use crate::base::json::{Member, members};
use crate::http::Problem;

/// The bytes that a piece of JSON takes in an answer.
pub(super) fn cost(json: &str, is_text: bool) -> usize {
    let escaped = memchr::memchr2_iter(b'"', b'\\', json.as_bytes());
    json.len() + if is_text { escaped.count() } else { 0 }
}

/// The elements of a list within `document`, and the list's place in it.
pub(super) fn list<'a>(document: &'a str, path: &str) -> Option<(Vec<&'a RawValue>, Range<usize>)> {
    let mut raw = document;
    for name in path.split('.') {
        raw = member(&members(raw.as_bytes())?, name)?;
    }
    let start = raw.as_ptr() as usize - document.as_ptr() as usize;
    Some((serde_json::from_str(raw).ok()?, start..start + raw.len()))
}

/// How many of these elements, with a comma each, fit into the bytes.
fn count_within(elements: &[&RawValue], bytes: usize, is_text: bool) -> usize {
    let ends = elements.iter().scan(0, |end, element| {
        *end += cost(element.get(), is_text) + 1;
        Some(*end)
    });
    ends.take_while(|end| *end <= bytes).count()
}

/// How many elements of the list fit into one answer with the rest of the document.
pub(super) fn fitting(document: &str, path: &str, is_text: bool) -> Result<usize, Problem> {
    let (elements, place) = list(document, path).ok_or_else(Problem::internal)?;
    let rest = cost(document, is_text) - cost(&document[place], is_text) + CURSOR_BYTES;
    Ok(count_within(&elements, DOCUMENT_BYTES_MAX.saturating_sub(rest), is_text))
}

/// A part of a document.
pub(super) struct Part {
    pub document: String,
    /// Which part it is.
    pub shown: String,
    /// The cursor of the next one.
    pub next: Option<String>,
}

/// The document with the part of its lists to which the cursor leads, and a line about that. The
/// lists count as one.
pub(super) fn page(
    document: &str,
    paths: &[&str],
    cursor: Option<&str>,
    is_text: bool,
) -> Result<(String, String), Problem> {
    let Part {
        mut document,
        mut shown,
        next,
    } = part(document, paths, cursor, is_text)?;
    if let Some(cursor) = next {
        document.pop();
        document.push_str(&format!(r#","{NEXT_CURSOR}":"{cursor}"}}"#));
        shown.push_str(&format!(", more with cursor {cursor}"));
    }
    Ok((document, shown))
}

/// As [`page`], with the cursor apart.
pub(super) fn part(
    document: &str,
    paths: &[&str],
    cursor: Option<&str>,
    is_text: bool,
) -> Result<Part, Problem> {
    let lists: Option<Vec<_>> = paths.iter().map(|path| list(document, path)).collect();
    let lists = lists.ok_or_else(Problem::internal)?;
    let all: Vec<&RawValue> = lists
        .iter()
        .flat_map(|(elements, _)| elements)
        .copied()
        .collect();
    let from = match cursor {
        None => 0,
        Some(text) => begin(text, all.len())?,
    };
    let cut: usize = lists
        .iter()
        .map(|(_, place)| cost(&document[place.clone()], is_text))
        .sum();
    let rest = cost(document, is_text) - cut + CURSOR_BYTES;
    let to = from + count_within(&all[from..], DOCUMENT_BYTES_MAX.saturating_sub(rest), is_text);
    if to == from && from < all.len() {
        return Err(portfolio_errors::export_too_long());
    }
    let mut out = String::with_capacity(document.len());
    let mut copied = 0;
    let mut before = 0;
    for (elements, place) in &lists {
        let within = |at: usize| at.clamp(before, before + elements.len()) - before;
        let shown = elements[within(from)..within(to)]
            .iter()
            .map(|element| element.get());
        out.push_str(&document[copied..place.start]);
        out.push_str(&format!("[{}]", shown.collect::<Vec<_>>().join(",")));
        (copied, before) = (place.end, before + elements.len());
    }
    out.push_str(&document[copied..]);
    let shown = format!(", rows {} to {to} of {}", from + 1, all.len());
    let next = (to < all.len()).then(|| format!("{to}-{}", all.len()));
    Ok(Part {
        document: out,
        shown,
        next,
    })
}

/// Where the page of a cursor begins. Its second number is the length of all, so that a list that
/// has changed is noticed.
fn begin(cursor: &str, count: usize) -> Result<usize, Problem> {
    let parsed = cursor.split_once('-').and_then(|(from, of)| {
        let (from, of): (usize, usize) = (from.parse().ok()?, of.parse().ok()?);
        (of == count && from < count).then_some(from)
    });
    parsed.ok_or_else(cursor_invalid)
}

pub(super) fn cursor_invalid() -> Problem {
    let detail = "The cursor is not one of this list, or the list has changed. Begin without one.";
    Problem::new(400, "cursor_invalid", detail)
}

/// Longest document of an answer. The answer has at most 32 KiB: this, the id, the server's name
/// and the summary.
pub(super) const DOCUMENT_BYTES_MAX: usize = 30_000;

/// Room for the cursor, which the whole document has not, and for the brackets of lists.
const CURSOR_BYTES: usize = 64;

pub(super) const NEXT_CURSOR: &str = "next_cursor";

pub(super) fn member<'a>(members: &[Member<'a>], name: &str) -> Option<&'a str> {
    members
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, raw)| *raw)
}
