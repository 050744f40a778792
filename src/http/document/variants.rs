//! All variants of a document: three content codings, each with its ETag, its response 200 and
//! its response 304.
//!
//! Made on OS threads, because making them compresses. The edge selects one and copies it out,
//! without allocating, formatting, locking or compressing.

use crate::http::document::coding::{BROTLI_QUALITY, KeptCompressors, content_tag};
use crate::http::document::negotiate::{Coding, preferred_coding};
use crate::http::document::prepared::Prepared;
use crate::http::message::conditional::{PreconditionFailed, Preconditions, Verdict};

/// `Content-Type` of JSON.
pub(crate) const JSON: &str = "application/json";

/// `Cache-Control` of documents that are the same for everyone: any cache may store them but must
/// revalidate them on each use.
pub(crate) const PUBLIC: &str = "public, no-cache";

/// Headers of a kind of document, and how it is compressed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CachePolicy {
    /// Status of the full response.
    pub status: u16,
    pub content_type: &'static str,
    pub cache_control: &'static str,
    pub vary: &'static str,
    /// Further headers of the full response.
    pub headers: &'static [(&'static str, &'static str)],
    /// Smaller bodies are not compressed.
    pub compressed_from_bytes: usize,
    pub brotli_quality: i32,
}

impl CachePolicy {
    /// The policy of JSON that changes every few seconds or minutes.
    pub(crate) const JSON: Self = Self {
        status: 200,
        content_type: JSON,
        cache_control: PUBLIC,
        vary: "Accept-Encoding",
        headers: &[],
        compressed_from_bytes: 0,
        brotli_quality: BROTLI_QUALITY,
    };
}

/// One coding of the document, with its two responses.
#[derive(Debug)]
struct Variant {
    /// Including the quotes.
    etag: String,
    /// `None` if the document was not compressed in this coding.
    full: Option<Prepared>,
    not_modified: Prepared,
}

impl Variant {
    fn new(
        policy: &CachePolicy,
        etag: String,
        encoding: Option<&str>,
        body: Option<&[u8]>,
    ) -> Self {
        let mut headers = Vec::with_capacity(5 + policy.headers.len());
        headers.extend([
            ("ETag", etag.as_str()),
            ("Cache-Control", policy.cache_control),
            ("Vary", policy.vary),
        ]);
        let not_modified = Prepared::new(304, &headers, b"");
        headers.push(("Content-Type", policy.content_type));
        headers.extend(policy.headers);
        headers.extend(encoding.map(|encoding| ("Content-Encoding", encoding)));
        let full = body.map(|body| Prepared::new(policy.status, &headers, body));
        Self {
            full,
            not_modified,
            etag,
        }
    }

    fn bytes(&self) -> usize {
        let full = self.full.as_ref().map_or(0, |full| full.bytes().len());
        self.etag.len() + full + self.not_modified.bytes().len()
    }
}

/// One state of a document as complete responses, sent with
/// [`Response::send_document`](crate::http::Response::send_document).
#[derive(Debug)]
pub struct Variants {
    identity: Variant,
    /// br and gzip; `None` if the document is below `compressed_from_bytes`.
    compressed: Option<[Variant; 2]>,
}

impl Variants {
    /// Makes the responses of a body. Takes about a millisecond for 30 KiB, so it is for OS
    /// threads, not the edge.
    pub(crate) fn new(body: &[u8], policy: &CachePolicy) -> Self {
        Self::tagged(body, &content_tag(body), policy)
    }

    /// The same as [`Self::new`], with a known content hash or another name of the content.
    pub(crate) fn tagged(body: &[u8], tag: &str, policy: &CachePolicy) -> Self {
        let mut new = KeptCompressors::default();
        let quality = policy.brotli_quality;
        Self::coded(body, tag, policy, |coding| new.compress(coding, body, quality))
    }

    /// The same with the body as `compress` codes it, which leaves out a coding by `None`.
    pub(crate) fn coded(
        body: &[u8],
        tag: &str,
        policy: &CachePolicy,
        mut compress: impl FnMut(Coding) -> Option<Vec<u8>>,
    ) -> Self {
        let variant = |suffix: &str, encoding, coded: Option<&[u8]>| {
            Variant::new(policy, format!("\"{tag}{suffix}\""), encoding, coded)
        };
        let compressed = (body.len() >= policy.compressed_from_bytes).then(|| {
            let br = variant("-br", Some("br"), compress(Coding::Br).as_deref());
            [
                br,
                variant("-gz", Some("gzip"), compress(Coding::Gzip).as_deref()),
            ]
        });
        Self {
            identity: variant("", None, Some(body)),
            compressed,
        }
    }

    /// The response to a GET (or, without its body, HEAD): 200 in the coding that the client
    /// prefers, or 304 if the client has that variant. A coding that was left out is answered
    /// uncompressed. Never blocks or allocates.
    ///
    /// # Errors
    /// [`PreconditionFailed`] if `If-Match` does not match that variant.
    pub fn select(
        &self,
        accept_encoding: Option<&[u8]>,
        preconditions: Preconditions<'_>,
    ) -> Result<&Prepared, PreconditionFailed> {
        self.select_coded(preferred_coding(accept_encoding), preconditions)
    }

    /// The same for a coding that was found before.
    #[inline]
    pub(crate) fn select_coded(
        &self,
        coding: Coding,
        preconditions: Preconditions<'_>,
    ) -> Result<&Prepared, PreconditionFailed> {
        let variant = self.variant(coding);
        let verdict = preconditions.judge(Some(variant.etag.as_bytes()));
        let Some(full) = &variant.full else {
            // A client may have it from another node, or from before.
            return match verdict {
                Ok(Verdict::NotModified) => Ok(&variant.not_modified),
                _ => self.select_coded(Coding::Identity, preconditions),
            };
        };
        Ok(match verdict? {
            Verdict::Full => full,
            Verdict::NotModified => &variant.not_modified,
        })
    }

    /// Whether the body can be sent in this coding.
    pub(crate) fn has(&self, coding: Coding) -> bool {
        self.compressed.is_none() || self.variant(coding).full.is_some()
    }

    /// The ETag, including the quotes, of the variant for clients that prefer `coding`.
    pub fn etag(&self, coding: Coding) -> &str {
        &self.variant(coding).etag
    }

    /// The content hash in the ETags.
    pub(crate) fn tag(&self) -> &str {
        &self.identity.etag[1..self.identity.etag.len() - 1]
    }

    /// The uncompressed body.
    pub fn json(&self) -> &[u8] {
        self.identity.full.as_ref().map_or(&[][..], Prepared::body)
    }

    /// Memory of all variants.
    pub(crate) fn bytes(&self) -> usize {
        let compressed = self.compressed.iter().flatten();
        self.identity.bytes() + compressed.map(Variant::bytes).sum::<usize>()
    }

    fn variant(&self, coding: Coding) -> &Variant {
        match (coding, &self.compressed) {
            (Coding::Br, Some([br, _])) => br,
            (Coding::Gzip, Some([_, gzip])) => gzip,
            _ => &self.identity,
        }
    }
}

#[cfg(test)]
#[path = "variants_tests.rs"]
mod tests;
