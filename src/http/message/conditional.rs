//! Conditional requests (RFC 9110 13): `If-Match` and `If-None-Match`.
//!
//! Pure functions on header bytes. [`Preconditions::judge`] runs on the edge for every prepared
//! response and must never allocate or panic, whatever the bytes are. Preconditions by date are
//! ignored, because no response has a `Last-Modified`.

use crate::http::message::head::named;
use crate::http::message::head::{Head, Lines, Span, trimmed};

/// `If-Match` and `If-None-Match` of a request.
#[derive(Clone, Copy)]
pub struct Preconditions<'a> {
    bytes: &'a [u8],
    headers: &'a [(Span, Span)],
    if_match: Lines,
    if_none_match: Lines,
}

/// A precondition is false; the response is 412.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreconditionFailed;

/// The response to a read whose preconditions are true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// 200 with the body.
    Full,
    /// 304: the client has the current state.
    NotModified,
}

impl Verdict {
    /// 200 or 304.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Full => 200,
            Self::NotModified => 304,
        }
    }
}

/// The value of `If-Match` or `If-None-Match`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    /// `*`: any current state.
    Anything,
    Tags(Vec<EntityTag<'a>>),
}

impl<'a> Preconditions<'a> {
    /// No preconditions.
    pub const NONE: Self = Self {
        bytes: &[],
        headers: &[],
        if_match: Lines::Absent,
        if_none_match: Lines::Absent,
    };

    #[inline]
    pub(crate) fn of(head: &'a Head, bytes: &'a [u8]) -> Self {
        let Head {
            headers,
            if_match,
            if_none_match,
            ..
        } = head;
        Self {
            bytes,
            headers,
            if_match: *if_match,
            if_none_match: *if_none_match,
        }
    }

    /// One `If-None-Match` line with this value; for benches and tests.
    pub fn if_none_match(value: &'a [u8]) -> Self {
        Self {
            bytes: value,
            if_none_match: Lines::One(Span::whole(value)),
            ..Self::NONE
        }
    }

    /// Whether there are no preconditions.
    pub(crate) fn is_empty(&self) -> bool {
        self.if_match == Lines::Absent && self.if_none_match == Lines::Absent
    }

    /// Whether the request has `If-Match`, and so applies only to something that exists.
    pub(crate) fn wants_a_match(&self) -> bool {
        self.if_match != Lines::Absent
    }

    /// Evaluates the preconditions of a read. The resource exists, and `etag` is its tag, with
    /// quotes, if it has one. `If-Match` comes first, by strong comparison, then `If-None-Match`,
    /// by weak comparison (RFC 9110 13.2.2).
    ///
    /// # Errors
    /// [`PreconditionFailed`] if `If-Match` does not match.
    #[inline]
    pub(crate) fn judge(&self, etag: Option<&[u8]>) -> Result<Verdict, PreconditionFailed> {
        if self.is_empty() {
            return Ok(Verdict::Full);
        }
        self.judge_lines(etag)
    }

    fn judge_lines(&self, etag: Option<&[u8]>) -> Result<Verdict, PreconditionFailed> {
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
        Ok(if known {
            Verdict::NotModified
        } else {
            Verdict::Full
        })
    }

    /// Whether `If-Match` is absent, is `*`, or is a well-formed list of tags that contains `etag`.
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

    /// The tags in `If-Match`; `None` if it is absent. A malformed list counts as empty.
    pub(crate) fn named_if_match(&self) -> Option<Named<'a>> {
        let tags: Result<_, _> = match self.if_match {
            Lines::Absent => return None,
            Lines::One(line) if is_anything(line.of(self.bytes)) => return Some(Named::Anything),
            Lines::One(line) => EntityTags(line.of(self.bytes)).collect(),
            Lines::Several => self.lines(IF_MATCH).flat_map(EntityTags).collect(),
        };
        Some(Named::Tags(tags.unwrap_or_default()))
    }

    /// The tags in `If-None-Match`; `None` if it is absent. In a malformed line the tags before the
    /// fault count.
    pub(crate) fn named_if_none_match(&self) -> Option<Named<'a>> {
        Some(match self.if_none_match {
            Lines::Absent => return None,
            Lines::One(line) if is_anything(line.of(self.bytes)) => Named::Anything,
            Lines::One(line) => Named::Tags(EntityTags(line.of(self.bytes)).flatten().collect()),
            Lines::Several => Named::Tags(
                self.lines(IF_NONE_MATCH)
                    .flat_map(EntityTags)
                    .flatten()
                    .collect(),
            ),
        })
    }

    fn lines(&self, name: &'static str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        named(self.headers, self.bytes, name)
    }
}

const IF_MATCH: &str = "if-match";
const IF_NONE_MATCH: &str = "if-none-match";

/// Whether a single line of `If-None-Match` matches the current state.
fn is_named(line: &[u8], etag: Option<&[u8]>) -> bool {
    // Most clients send exactly the tag, so compare that first.
    Some(line) == etag || etag.is_some_and(|etag| lists(line, etag)) || is_anything(line)
}

fn is_anything(line: &[u8]) -> bool {
    trimmed(line) == b"*"
}

/// Whether the lines together are a well-formed list of tags that contains `etag`, by strong
/// comparison.
fn matches<'a>(lines: impl Iterator<Item = &'a [u8]>, etag: Option<&[u8]>) -> bool {
    let mut found = false;
    for tag in lines.flat_map(EntityTags) {
        let Ok(EntityTag { weak, opaque }) = tag else {
            return false;
        };
        found |= !weak && Some(opaque) == etag;
    }
    found
}

/// Whether the line contains `etag`, by weak comparison.
fn lists(line: &[u8], etag: &[u8]) -> bool {
    EntityTags(line).any(|tag| tag.is_ok_and(|tag| tag.opaque == etag))
}

/// One entity tag of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntityTag<'a> {
    pub weak: bool,
    /// The tag including its quotes, without `W/`.
    pub opaque: &'a [u8],
}

/// An element of a list that is not an entity tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoTag;

/// Iterates over the tags of one line. Empty elements are skipped (RFC 9110 5.6.1.2). The iteration
/// ends with the first malformed element.
struct EntityTags<'a>(&'a [u8]);

impl<'a> Iterator for EntityTags<'a> {
    type Item = Result<EntityTag<'a>, NoTag>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.0);
        let start = rest
            .iter()
            .position(|byte| !matches!(byte, b',' | b' ' | b'\t'))?;
        let rest = &rest[start..];
        let tag = rest.strip_prefix(b"W/").unwrap_or(rest);
        let weak = tag.len() < rest.len();
        let end = match tag {
            [b'"', inner @ ..] => memchr::memchr(b'"', inner),
            _ => None,
        };
        let Some(end) = end else {
            return Some(Err(NoTag));
        };
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
