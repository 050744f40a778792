//! A JSON document as complete responses, ready to be copied out: the snapshot, signals, their
//! record.
//!
//! Warmers publish on their own threads; the edge loads and picks without allocating,
//! locking, formatting or compressing. Must never compress JSON that has not changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;

use crate::http::{CachePolicy, Variants};

/// Whoever may see it may keep it, and asks each time whether it still stands.
const POLICY: CachePolicy = CachePolicy {
    cache_control: "public, no-cache",
    vary: "Accept-Encoding",
    // Asked for again and again: each byte counts.
    compressed_from_bytes: 0,
};

/// Responses that nobody is shown yet.
#[derive(Debug)]
pub struct Made(Variants);

impl Made {
    /// Serialised and compressed: what takes time of a publication.
    pub fn of(json: &[u8]) -> Self {
        Self(Variants::new(json, &POLICY))
    }
}

/// The slot that publishers write and the edge reads. It changes only with the content.
#[derive(Debug, Default)]
pub struct PublishedJson {
    current: ArcSwapOption<Variants>,
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
    pub fn publish(&self, json: Vec<u8>) {
        let _turn = self.publishing.lock();
        if self.current.load().as_ref().is_none_or(|current| current.json() != json) {
            self.put(Made::of(&json));
        }
    }

    /// Publishes what was made before. Takes no longer than to store a pointer.
    pub fn show(&self, made: Made) {
        let _turn = self.publishing.lock();
        self.put(made);
    }

    fn put(&self, Made(variants): Made) {
        self.current.store(Some(Arc::new(variants)));
        self.changes.fetch_add(1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::document::coding::ETAG_HASH_BYTES;
    use crate::http::document::negotiate::Coding;
    use crate::http::{Preconditions, Prepared};

    const BODY: &[u8] = br#"{"index1_price":24321.88,"signals":[],"sectors":[]}"#;

    fn published(json: &[u8]) -> PublishedJson {
        let slot = PublishedJson::new();
        slot.publish(json.to_vec());
        slot
    }

    fn headers(prepared: &Prepared) -> String {
        String::from_utf8(prepared.headers().to_vec()).unwrap()
    }

    #[test]
    fn nothing_is_published_before_the_first_data() {
        let slot = PublishedJson::new();
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
                "ETag: {etag}\r\n\
                 Cache-Control: public, no-cache\r\nVary: Accept-Encoding\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                BODY.len()
            )
        );
        assert_eq!(prepared.body(), BODY);
    }

    #[test]
    fn tags_change_with_the_content_only() {
        let slot = published(BODY);
        let first = slot.load_full();
        slot.publish(BODY.to_vec());
        let same = slot.load_full();
        assert!(Arc::ptr_eq(&first, &same), "what has not changed stays");
        slot.publish(b"{}".to_vec());
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
