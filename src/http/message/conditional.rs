//! Preconditions (RFC 9110 13): whether a request is still meant, given what there is now.
//!
//! Pure functions on header bytes. [`Preconditions::judge`] runs on the edge for every prepared
//! answer and must never allocate or panic, whatever the bytes are. Dates are no precondition here:
//! nothing that is served has a `Last-Modified`.

use super::head::{Head, Lines, Span};
use crate::http::document::negotiate::trimmed;

/// `If-Match` and `If-None-Match` of a request.
#[derive(Clone, Copy)]
pub struct Preconditions<'a> {
    bytes: &'a [u8],
    headers: &'a [(Span, Span)],
    if_match: Lines,
    if_none_match: Lines,
}

/// A precondition does not hold: 412.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreconditionFailed;

/// What a read gets whose preconditions were met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Full,
    /// The client has it.
    NotModified,
}

impl Verdict {
    /// 200 or 304.
    pub fn status(self) -> u16 {
        match self {
            Self::Full => 200,
            Self::NotModified => 304,
        }
    }
}

/// What a field names.
#[derive(Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// `*`: whatever there is.
    Anything,
    Tags(Vec<EntityTag<'a>>),
}

impl<'a> Preconditions<'a> {
    /// Of a request without any.
    pub const NONE: Self =
        Self { bytes: &[], headers: &[], if_match: Lines::Absent, if_none_match: Lines::Absent };

    pub(crate) fn of(head: &'a Head, bytes: &'a [u8]) -> Self {
        let Head { headers, if_match, if_none_match, .. } = head;
        Self { bytes, headers, if_match: *if_match, if_none_match: *if_none_match }
    }

    /// Of a request with this one line, as benches and tests need it.
    pub fn if_none_match(value: &'a [u8]) -> Self {
        Self { bytes: value, if_none_match: Lines::One(Span::whole(value)), ..Self::NONE }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.if_match == Lines::Absent && self.if_none_match == Lines::Absent
    }

    /// Whether the request is meant only for something that is there.
    pub fn wants_a_match(&self) -> bool {
        self.if_match != Lines::Absent
    }

    /// Judges a read of something that is there, whose tag is `etag` (with its quotes) if it has
    /// one: `If-Match` first, by strong comparison, then `If-None-Match`, by weak comparison (RFC
    /// 9110 13.2.2).
    ///
    /// # Errors
    /// [`PreconditionFailed`].
    pub fn judge(&self, etag: Option<&[u8]>) -> Result<Verdict, PreconditionFailed> {
        if self.wants_a_match() && !self.is_matched(etag) {
            return Err(PreconditionFailed);
        }
        let known = match self.if_none_match {
            Lines::Absent => false,
            Lines::One(line) => is_named(line.of(self.bytes), etag),
            Lines::Several => {
                etag.is_some_and(|etag| self.lines(IF_NONE_MATCH).any(|line| lists(line, etag)))
            }
        };
        Ok(if known { Verdict::NotModified } else { Verdict::Full })
    }

    /// Whether `If-Match` has `*`, or is one list of well-formed tags with `etag` among them.
    fn is_matched(&self, etag: Option<&[u8]>) -> bool {
        match self.if_match {
            Lines::Absent => true,
            Lines::One(line) => {
                let line = line.of(self.bytes);
                is_anything(line) || matches(std::iter::once(line), etag)
            }
            Lines::Several => matches(self.lines(IF_MATCH), etag),
        }
    }

    /// What `If-Match` names. A list that is not well-formed names nothing.
    pub fn named_if_match(&self) -> Option<Named<'a>> {
        let tags: Result<_, _> = match self.if_match {
            Lines::Absent => return None,
            Lines::One(line) if is_anything(line.of(self.bytes)) => return Some(Named::Anything),
            Lines::One(line) => EntityTags(line.of(self.bytes)).collect(),
            Lines::Several => self.lines(IF_MATCH).flat_map(EntityTags).collect(),
        };
        Some(Named::Tags(tags.unwrap_or_default()))
    }

    /// What `If-None-Match` names. A line that stops being well-formed counts up to there.
    pub fn named_if_none_match(&self) -> Option<Named<'a>> {
        Some(match self.if_none_match {
            Lines::Absent => return None,
            Lines::One(line) if is_anything(line.of(self.bytes)) => Named::Anything,
            Lines::One(line) => Named::Tags(EntityTags(line.of(self.bytes)).flatten().collect()),
            Lines::Several => {
                Named::Tags(self.lines(IF_NONE_MATCH).flat_map(EntityTags).flatten().collect())
            }
        })
    }

    fn lines(&self, name: &'static [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        let named = move |(key, value): &(Span, Span)| {
            key.of(bytes).eq_ignore_ascii_case(name).then(|| value.of(bytes))
        };
        self.headers.iter().filter_map(named)
    }
}

const IF_MATCH: &[u8] = b"if-match";
const IF_NONE_MATCH: &[u8] = b"if-none-match";

/// Whether the one line of `If-None-Match` names what is there.
fn is_named(line: &[u8], etag: Option<&[u8]>) -> bool {
    // As most clients send it.
    Some(line) == etag || etag.is_some_and(|etag| lists(line, etag)) || is_anything(line)
}

fn is_anything(line: &[u8]) -> bool {
    trimmed(line) == b"*"
}

/// Whether the lines are one list of well-formed tags that has `etag`, by strong comparison.
fn matches<'a>(lines: impl Iterator<Item = &'a [u8]>, etag: Option<&[u8]>) -> bool {
    let mut found = false;
    for tag in lines.flat_map(EntityTags) {
        let Ok(EntityTag { weak, opaque }) = tag else { return false };
        found |= !weak && Some(opaque) == etag;
    }
    found
}

/// Whether the line lists `etag`, by weak comparison.
fn lists(line: &[u8], etag: &[u8]) -> bool {
    EntityTags(line).any(|tag| tag.is_ok_and(|tag| tag.opaque == etag))
}

/// One tag of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag<'a> {
    pub weak: bool,
    /// With its quotes.
    pub opaque: &'a [u8],
}

/// What stands in a list and is no tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTag;

/// The tags of one line. Empty elements are passed over (RFC 9110 5.6.1.2); the first that is no
/// tag is the last element.
struct EntityTags<'a>(&'a [u8]);

impl<'a> Iterator for EntityTags<'a> {
    type Item = Result<EntityTag<'a>, NoTag>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.0);
        let start = rest.iter().position(|byte| !matches!(byte, b',' | b' ' | b'\t'))?;
        let rest = &rest[start..];
        let tag = rest.strip_prefix(b"W/").unwrap_or(rest);
        let weak = tag.len() < rest.len();
        let end = match tag {
            [b'"', inner @ ..] => memchr::memchr(b'"', inner),
            _ => None,
        };
        let Some(end) = end else { return Some(Err(NoTag)) };
        let (opaque, after) = tag.split_at(end + 2);
        let after = trimmed(after);
        if !matches!(after.first(), None | Some(b',')) {
            return Some(Err(NoTag));
        }
        self.0 = after;
        Some(Ok(EntityTag { weak, opaque }))
    }
}

#[cfg(test)]
#[path = "conditional_tests.rs"]
mod tests;
