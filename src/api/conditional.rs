//! Preconditions of a request as the store compares them: a tag of ours is a revision in quotes.
//! Pure.

use crate::http::{EntityTag, Named, Request};
use crate::store::{Expected, Revision, States};

/// The ETag of what is in this state.
pub fn etag(revision: &Revision) -> String {
    format!("\"{}\"", revision.as_str())
}

/// In which state the request wants what it changes. A weak tag matches nothing by strong
/// comparison, which is that of `If-Match` (RFC 9110 13.1.1).
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
