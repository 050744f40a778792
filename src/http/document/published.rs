//! The current state of a JSON document (the snapshot, signals, their record) as complete
//! responses, ready to be sent.
//!
//! A document may also be an event that streams send: its frames are made with its responses.
//!
//! Warmers publish on their own threads. The edge loads the document and selects a variant without
//! allocating, locking, formatting or compressing. Unchanged JSON is never compressed again.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;

use super::events::{CodedFrame, event};
use crate::http::{CachePolicy, Variants};
use crate::rt::News;

/// Polled by many clients, so even small bodies are compressed.
const POLICY: CachePolicy = CachePolicy::JSON;

/// Responses that are made but not published yet.
#[derive(Debug)]
pub struct Made(Published);

/// One state of a document.
#[derive(Debug)]
pub struct Published {
    variants: Variants,
    /// `None` if the document is no event.
    event: Option<CodedFrame>,
    /// States published before this one.
    number: u64,
}

impl Published {
    /// The event of this state, of a document that is one.
    pub fn event(&self) -> Option<&CodedFrame> {
        self.event.as_ref()
    }

    /// Which state it is: 0 is the first.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Deref for Published {
    type Target = Variants;

    fn deref(&self) -> &Variants {
        &self.variants
    }
}

/// The published document, which warmers replace and the edge reads. It is replaced only when its
/// content changes.
#[derive(Debug, Default)]
pub struct PublishedJson {
    current: ArcSwapOption<Published>,
    /// Held while publishing; readers never take it.
    publishing: Mutex<()>,
    changes: AtomicU64,
    /// Its name as an event, if it is one.
    event: Option<&'static str>,
    news: News,
}

impl PublishedJson {
    /// Without a document until the first [`publish`](Self::publish).
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for a document that streams send as the event `name`.
    pub fn as_event(name: &'static str) -> Self {
        Self { event: Some(name), ..Self::default() }
    }

    /// Tells of each change.
    pub fn news(&self) -> &News {
        &self.news
    }

    /// Makes and compresses responses: the slow part of publishing.
    pub fn make(&self, json: &[u8]) -> Made {
        let variants = Variants::new(json, &POLICY);
        let event =
            self.event.map(|name| CodedFrame::compressed(&event(name, Some(variants.tag()), json)));
        Made(Published { variants, event, number: 0 })
    }

    /// Publishes `json`. If it has not changed, the published responses stay as they are. Blocks
    /// for up to a few milliseconds, so it is for OS threads, not the edge.
    #[expect(clippy::needless_pass_by_value, reason = "publishers hand the body over")]
    pub fn publish(&self, json: Vec<u8>) {
        let _guard = self.publishing.lock();
        if self.current.load().as_ref().is_none_or(|current| current.json() != json) {
            self.store(self.make(&json));
        }
    }

    /// Publishes responses made before. Takes no longer than storing a pointer.
    pub fn show(&self, made: Made) {
        let _guard = self.publishing.lock();
        self.store(made);
    }

    fn store(&self, Made(mut published): Made) {
        published.number = self.changes.fetch_add(1, Ordering::Relaxed);
        self.current.store(Some(Arc::new(published)));
        self.news.tell();
    }

    /// The published document; `None` before the first. The guard must not be held across a
    /// suspension point: copy the bytes, drop the guard, then write.
    pub fn load(&self) -> Guard<Option<Arc<Published>>> {
        self.current.load()
    }

    /// How often the content has changed.
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
    fn before_the_first_publication_there_is_no_document() {
        let slot = PublishedJson::new();
        assert!(slot.load().is_none());
    }

    #[test]
    fn a_published_response_has_all_headers_and_the_body() {
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
                 Content-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n\
                 Content-Length: {}\r\n\r\n",
                BODY.len()
            )
        );
        assert_eq!(prepared.body(), BODY);
    }

    #[test]
    fn etags_change_with_the_content_only() {
        let slot = published(BODY);
        let first = slot.load_full();
        slot.publish(BODY.to_vec());
        let same = slot.load_full();
        assert!(Arc::ptr_eq(&first, &same), "an unchanged document is not replaced");
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
        fn load_full(&self) -> Arc<Published> {
            self.current.load_full().unwrap()
        }
    }
}
