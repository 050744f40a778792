//! Converts the preconditions of a request to those of the store. An `ETag` of ours is a revision
//! in quotes. Pure.

use crate::http::{EntityTag, Named, Request};
use crate::store::{Expected, Revision, States};

/// The `ETag` of a record with this revision.
pub fn etag(revision: &Revision) -> String {
    format!("\"{}\"", revision.as_str())
}

/// The states in which the request allows its change. A weak tag matches nothing, because
/// `If-Match` uses strong comparison (RFC 9110 13.1.1).
pub fn expected(request: &Request<'_>) -> Expected {
    let given = request.preconditions();
    Expected {
        one_of: given.named_if_match().map(|named| states(named, |tag| !tag.weak)),
        none_of: given.named_if_none_match().map(|named| states(named, |_| true)),
    }
}

fn states(named: Named<'_>, counts: impl Fn(&EntityTag<'_>) -> bool) -> States {
    match named {
        Named::Anything => States::All,
        Named::Tags(tags) => {
            let tags = tags.into_iter().filter(counts);
            let inner = tags.map(|tag| tag.opaque[1..tag.opaque.len() - 1].to_owned());
            States::These(
                inner
                    .filter_map(|tag| String::from_utf8(tag).ok())
                    .map(Revision::from_text)
                    .collect(),
            )
        }
    }
}
