//! A JSON document as complete responses, ready to be copied out: the snapshot, signals, their
//! record.
//!
//! Warmers publish on their own threads; the edge loads and picks without allocating,
//! locking, formatting or compressing. Must never compress JSON that has not changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;

use crate::http::Prepared;
use crate::http::coding::{brotli, content_tag, gzip};
use crate::http::date::imf_fixdate;
use crate::http::negotiate::{Coding, none_match_hits, preferred_coding};

/// One coding of the body, with its two answers.
#[derive(Debug)]
struct Variant {
    /// With its quotes.
    etag: String,
    full: Prepared,
    not_modified: Prepared,
}

impl Variant {
    fn new(coding: Coding, etag: String, body: &[u8], date: &str) -> Self {
        let encoding = match coding {
            Coding::Br => Some(("Content-Encoding", "br")),
            Coding::Gzip => Some(("Content-Encoding", "gzip")),
            Coding::Identity => None,
        };
        let common = [
            ("Date", date),
            ("ETag", &etag),
            ("Cache-Control", "public, no-cache"),
            ("Vary", "Accept-Encoding"),
        ];
        let mut headers = common.to_vec();
        headers.push(("Content-Type", "application/json"));
        headers.extend(encoding);
        let full = Prepared::new(200, &headers, body);
        let not_modified = Prepared::new(304, &common, b"");
        Self { full, not_modified, etag }
    }

    fn redated(&self, coding: Coding, date: &str) -> Self {
        Self::new(coding, self.etag.clone(), self.full.body(), date)
    }
}

/// One state of a document in every form in which it can be asked for.
#[derive(Debug)]
pub struct Published {
    br: Variant,
    gzip: Variant,
    identity: Variant,
    date: [u8; 29],
}

impl Published {
    fn new(json: &[u8], date: [u8; 29]) -> Self {
        let hash = content_tag(json);
        let shown = date_text(&date);
        let variant = |coding, suffix: &str, body: &[u8]| {
            Variant::new(coding, format!("\"{hash}{suffix}\""), body, shown)
        };
        Self {
            br: variant(Coding::Br, "-br", &brotli(json)),
            gzip: variant(Coding::Gzip, "-gz", &gzip(json)),
            identity: variant(Coding::Identity, "", json),
            date,
        }
    }

    fn redated(&self, date: [u8; 29]) -> Self {
        let shown = date_text(&date);
        Self {
            br: self.br.redated(Coding::Br, shown),
            gzip: self.gzip.redated(Coding::Gzip, shown),
            identity: self.identity.redated(Coding::Identity, shown),
            date,
        }
    }

    /// The answer to a GET or (without its body) HEAD with these header values: the variant that
    /// the client prefers, or 304 if it names that variant's tag. Never blocks or allocates.
    ///
    /// A header that came on several lines is passed joined with commas.
    pub fn select(
        &self,
        accept_encoding: Option<&[u8]>,
        if_none_match: Option<&[u8]>,
    ) -> &Prepared {
        let variant = self.variant(preferred_coding(accept_encoding));
        match if_none_match {
            Some(list) if none_match_hits(list, variant.etag.as_bytes()) => &variant.not_modified,
            _ => &variant.full,
        }
    }

    /// The tag of a variant, with its quotes.
    pub fn etag(&self, coding: Coding) -> &str {
        &self.variant(coding).etag
    }

    /// The JSON as it was published.
    pub fn json(&self) -> &[u8] {
        self.identity.full.body()
    }

    fn variant(&self, coding: Coding) -> &Variant {
        match coding {
            Coding::Br => &self.br,
            Coding::Gzip => &self.gzip,
            Coding::Identity => &self.identity,
        }
    }
}

/// The slot that publishers write and the edge reads.
#[derive(Debug, Default)]
pub struct PublishedJson {
    current: ArcSwapOption<Published>,
    /// Orders publishers among themselves; readers never take it.
    publishing: Mutex<()>,
    changes: AtomicU64,
}

impl PublishedJson {
    /// An empty slot: until the first [`publish`](Self::publish) there is nothing to serve.
    pub fn new() -> Self {
        Self::default()
    }

    /// Publishes `json`. What has not changed keeps its tags and is not compressed again. Blocks
    /// for a few milliseconds at most: an OS thread's work, not the edge's.
    #[expect(clippy::needless_pass_by_value, reason = "publishers hand the body over")]
    pub fn publish(&self, json: Vec<u8>, now_ms: i64) {
        let _turn = self.publishing.lock();
        if self.current.load().as_ref().is_some_and(|current| current.json() == json) {
            return self.redate(now_ms);
        }
        self.current.store(Some(Arc::new(Published::new(&json, imf_fixdate(now_ms)))));
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts the current second into the `Date` of every response; called each second. Cheap within
    /// the same second and before the first publication.
    pub fn refresh_date(&self, now_ms: i64) {
        let _turn = self.publishing.lock();
        self.redate(now_ms);
    }

    fn redate(&self, now_ms: i64) {
        let date = imf_fixdate(now_ms);
        let current = self.current.load();
        if let Some(current) = current.as_ref()
            && current.date != date
        {
            self.current.store(Some(Arc::new(current.redated(date))));
        }
    }

    /// What is published now; `None` before the first time. The guard must not be held over a point
    /// where a coroutine yields: copy the bytes out, drop it, then write.
    pub fn load(&self) -> Guard<Option<Arc<Published>>> {
        self.current.load()
    }

    /// How often the content changed since the start.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

fn date_text(date: &[u8; 29]) -> &str {
    std::str::from_utf8(date).expect("an HTTP date is ASCII")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::http::coding::ETAG_HASH_BYTES;

    const NOW_MS: i64 = 784_111_777_000;
    const BODY: &[u8] = br#"{"index1_price":24321.88,"signals":[],"sectors":[]}"#;

    fn published(json: &[u8]) -> PublishedJson {
        let slot = PublishedJson::new();
        slot.publish(json.to_vec(), NOW_MS);
        slot
    }

    fn headers(prepared: &Prepared) -> String {
        String::from_utf8(prepared.headers().to_vec()).unwrap()
    }

    fn decoded(coding: Coding, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match coding {
            Coding::Br => {
                brotli::BrotliDecompress(&mut &body[..], &mut out).unwrap();
            }
            Coding::Gzip => {
                flate2::read::GzDecoder::new(body).read_to_end(&mut out).unwrap();
            }
            Coding::Identity => out.extend_from_slice(body),
        }
        out
    }

    #[test]
    fn nothing_is_published_before_the_first_data() {
        let slot = PublishedJson::new();
        slot.refresh_date(NOW_MS);
        assert!(slot.load().is_none());
    }

    #[test]
    fn a_response_is_complete() {
        let slot = published(BODY);
        let current = slot.load();
        let prepared = current.as_ref().unwrap().select(None, None);
        assert_eq!(prepared.status_line(), b"HTTP/1.1 200 OK\r\n");
        let etag = current.as_ref().unwrap().etag(Coding::Identity);
        assert_eq!(etag.len(), 2 + 2 * ETAG_HASH_BYTES);
        assert_eq!(
            headers(prepared),
            format!(
                "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nETag: {etag}\r\n\
                 Cache-Control: public, no-cache\r\nVary: Accept-Encoding\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                BODY.len()
            )
        );
        assert_eq!(prepared.body(), BODY);
    }

    #[test]
    fn every_variant_decodes_and_has_its_304() {
        let json: Vec<u8> = BODY.repeat(30);
        let slot = published(&json);
        let guard = slot.load();
        let current = guard.as_ref().unwrap();
        let variants = [(Coding::Br, "br"), (Coding::Gzip, "gzip"), (Coding::Identity, "identity")];
        for (coding, accept) in variants {
            let full = current.select(Some(accept.as_bytes()), Some(b"\"other\""));
            assert_eq!(decoded(coding, full.body()), json, "{accept}");
            let encoding = format!("Content-Encoding: {accept}\r\n");
            assert_eq!(headers(full).contains(&encoding), coding != Coding::Identity);
            assert_eq!(full.body().len() < json.len(), coding != Coding::Identity);

            let etag = current.etag(coding).to_owned();
            assert!(headers(full).contains(&format!("ETag: {etag}\r\n")));
            let unchanged = current.select(Some(accept.as_bytes()), Some(etag.as_bytes()));
            assert_eq!(unchanged.status_line(), b"HTTP/1.1 304 Not Modified\r\n");
            assert_eq!(
                headers(unchanged),
                format!(
                    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nETag: {etag}\r\n\
                     Cache-Control: public, no-cache\r\nVary: Accept-Encoding\r\n\r\n"
                )
            );
            assert!(unchanged.body().is_empty());
            // Another variant's tag does not count.
            for (other, other_accept) in variants {
                let hit = current.select(Some(other_accept.as_bytes()), Some(etag.as_bytes()));
                assert_eq!(hit.body().is_empty(), other == coding, "{accept} {other_accept}");
            }
        }
    }

    #[test]
    fn the_date_moves_and_nothing_else() {
        let slot = published(BODY);
        let before = slot.load_full();
        slot.refresh_date(NOW_MS + 999);
        assert!(Arc::ptr_eq(&before, &slot.load_full()), "the same second was rebuilt");
        slot.refresh_date(NOW_MS + 1_000);
        let after = slot.load_full();
        for accept in [&b"br"[..], b"gzip", b"identity"] {
            let (old, new) = (before.select(Some(accept), None), after.select(Some(accept), None));
            assert_eq!(old.body(), new.body());
            assert_eq!(headers(old).replace("08:49:37", "08:49:38"), headers(new));
            let (old, new) =
                (before.select(Some(accept), Some(b"*")), after.select(Some(accept), Some(b"*")));
            assert_eq!(headers(old).replace("08:49:37", "08:49:38"), headers(new));
        }
    }

    #[test]
    fn tags_change_with_the_content_only() {
        let slot = published(BODY);
        let first = slot.load_full();
        slot.publish(BODY.to_vec(), NOW_MS + 5_000);
        let same = slot.load_full();
        assert!(headers(same.select(None, None)).contains("08:49:42"));
        slot.publish(b"{}".to_vec(), NOW_MS + 6_000);
        let changed = slot.load_full();
        for coding in [Coding::Br, Coding::Gzip, Coding::Identity] {
            assert_eq!(first.etag(coding), same.etag(coding));
            assert_ne!(first.etag(coding), changed.etag(coding));
        }
        assert_eq!(slot.changes(), 2);
        assert_eq!(changed.json(), b"{}");
    }

    impl PublishedJson {
        fn load_full(&self) -> Arc<Published> {
            self.current.load_full().unwrap()
        }
    }
}
