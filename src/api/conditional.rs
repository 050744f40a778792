//! Converts the preconditions of a request to those of the store. An `ETag` of ours is a revision
//! in quotes. Pure.

use crate::api::body::Fields;
use crate::http::{EntityTag, Named, Request};
use crate::store::{Expected, Revision, States};

/// Longest revision that is taken; ours have 24 characters.
pub(super) const REVISION_CHARS_MAX: usize = 64;

/// The `ETag` of a record with this revision.
pub(super) fn etag_of(revision: &Revision) -> String {
    format!("\"{}\"", revision.0)
}

/// The states in which the request allows its change. A weak tag matches nothing, because
/// `If-Match` uses strong comparison (RFC 9110 13.1.1).
pub(super) fn expected(request: &Request<'_>) -> Expected {
    let given = request.preconditions();
    Expected {
        one_of: given
            .named_if_match()
            .map(|named| states(named, |tag| !tag.weak)),
        none_of: given
            .named_if_none_match()
            .map(|named| states(named, |_| true)),
    }
}

/// The same, and where the body has a `revision`, no other state than that. It is the tag without
/// quotes, for clients whose tags a proxy changes.
pub(super) fn expected_with(request: &Request<'_>, fields: &mut Fields<'_>) -> Expected {
    let expected = expected(request);
    match revision(fields) {
        Some(revision) => expected.and_only(revision),
        None => expected,
    }
}

/// The `revision` in the body.
pub(super) fn revision(fields: &mut Fields<'_>) -> Option<Revision> {
    fields
        .optional_text("revision", REVISION_CHARS_MAX)
        .map(Revision)
}

pub(super) fn states(named: Named<'_>, counts: impl Fn(&EntityTag<'_>) -> bool) -> States {
    match named {
        Named::Anything => States::All,
        Named::Tags(tags) => {
            let tags = tags.into_iter().filter(counts);
            let inner = tags.map(|tag| tag.opaque[1..tag.opaque.len() - 1].to_owned());
            States::These(
                inner
                    .filter_map(|tag| String::from_utf8(tag).ok().map(Revision))
                    .collect(),
            )
        }
    }
}
