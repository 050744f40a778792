//! A JSON document as complete responses, ready to be copied out: the snapshot, signals, their
//! record.
//!
//! Warmers publish on their own threads; the edge loads and picks without allocating,
//! locking, formatting or compressing. Must never compress JSON that has not changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;

use crate::http::message::date::imf_fixdate;
use crate::http::{CachePolicy, Variants};

/// Whoever may see it may keep it, and asks each time whether it still stands.
const MANNER: CachePolicy = CachePolicy {
    cache_control: "public, no-cache",
    vary: "Accept-Encoding",
    // Asked for again and again: each byte counts.
    compressed_from_bytes: 0,
};

/// Responses that nobody is shown yet.
#[derive(Debug)]
pub struct Made {
    variants: Variants,
    dated: [u8; 29],
}

impl Made {
    /// Serialised and compressed: what takes time of a publication.
    pub fn of(json: &[u8], now_ms: i64) -> Self {
        let dated = imf_fixdate(now_ms);
        Self { variants: Variants::new(json, &MANNER, Some(date_text(&dated))), dated }
    }
}

/// The slot that publishers write and the edge reads.
#[derive(Debug, Default)]
pub struct PublishedJson {
    current: ArcSwapOption<Variants>,
    /// The `Date` of what is current. Orders publishers among themselves; readers never take it.
    publishing: Mutex<[u8; 29]>,
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
        let mut dated = self.publishing.lock();
        if self.current.load().as_ref().is_some_and(|current| current.json() == json) {
            return self.redate(&mut dated, now_ms);
        }
        self.put(&mut dated, Made::of(&json, now_ms));
    }

    /// Publishes what was made before. Takes no longer than to store a pointer.
    pub fn show(&self, made: Made) {
        self.put(&mut self.publishing.lock(), made);
    }

    fn put(&self, dated: &mut [u8; 29], made: Made) {
        *dated = made.dated;
        self.current.store(Some(Arc::new(made.variants)));
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts the current second into the `Date` of every response; called each second. Cheap within
    /// the same second and before the first publication.
    pub fn refresh_date(&self, now_ms: i64) {
        self.redate(&mut self.publishing.lock(), now_ms);
    }

    fn redate(&self, dated: &mut [u8; 29], now_ms: i64) {
        let date = imf_fixdate(now_ms);
        let current = self.current.load();
        if let Some(current) = current.as_ref()
            && *dated != date
        {
            *dated = date;
            self.current.store(Some(Arc::new(current.redated(&MANNER, date_text(&date)))));
        }
    }

    /// What is published now; `None` before the first time. The guard must not be held over a point
    /// where a coroutine yields: copy the bytes out, drop it, then write.
    pub fn load(&self) -> Guard<Option<Arc<Variants>>> {
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
    use super::*;
    use crate::http::document::coding::ETAG_HASH_BYTES;
    use crate::http::document::negotiate::Coding;
    use crate::http::{Preconditions, Prepared};

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
        let prepared = current.as_ref().unwrap().select(None, Preconditions::NONE).unwrap();
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
    fn the_date_moves_and_nothing_else() {
        let slot = published(BODY);
        let before = slot.load_full();
        slot.refresh_date(NOW_MS + 999);
        assert!(Arc::ptr_eq(&before, &slot.load_full()), "the same second was rebuilt");
        slot.refresh_date(NOW_MS + 1_000);
        let after = slot.load_full();
        for accept in [&b"br"[..], b"gzip", b"identity"] {
            for tags in [Preconditions::NONE, Preconditions::if_none_match(b"*")] {
                let of = |published: &Arc<Variants>| {
                    let answer = published.select(Some(accept), tags).unwrap();
                    (headers(answer), answer.body().to_vec())
                };
                let ((old, old_body), (new, new_body)) = (of(&before), of(&after));
                assert_eq!((old.replace("08:49:37", "08:49:38"), old_body), (new, new_body));
            }
        }
    }

    #[test]
    fn tags_change_with_the_content_only() {
        let slot = published(BODY);
        let first = slot.load_full();
        slot.publish(BODY.to_vec(), NOW_MS + 5_000);
        let same = slot.load_full();
        assert!(headers(same.select(None, Preconditions::NONE).unwrap()).contains("08:49:42"));
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
        fn load_full(&self) -> Arc<Variants> {
            self.current.load_full().unwrap()
        }
    }
}
