//! The current state of a JSON document (the snapshot, movers, signals, their record) as complete
//! responses, ready to be sent.
//!
//! A document may also be an event that streams send: its frames are made with its responses.
//!
//! Warmers publish on their own threads. The edge loads the document and selects a variant without
//! allocating, locking, formatting or compressing. Unchanged JSON is never compressed again. A
//! document that changes each second is not compressed in a coding that nobody asked for in the
//! last minute: the first client that asks gets it uncompressed, and the scheduler makes the coding
//! in its next turn.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;

use crate::http::document::coding::{KeptCompressors, content_tag};
use crate::http::document::events::{CodedFrame, event};
use crate::http::document::negotiate::{Coding, preferred_coding};
use crate::http::message::conditional::{PreconditionFailed, Preconditions};
use crate::http::{CachePolicy, Prepared, Variants};
use crate::rt::News;

/// Polled by many clients, so even small bodies are compressed.
const POLICY: CachePolicy = CachePolicy::JSON;

/// Responses that are made but not published yet.
#[derive(Debug)]
pub(crate) struct Made(Published);

/// How long a coding, or a whole document, is made after a client has asked for it.
const ASKED_MS: u64 = 60_000;

/// How late a document may be made anew before its ages count as wrong: some turns of its maker.
const LATE_MS: u64 = 1_000;

/// When clients last asked for something. What was never asked for counts as asked for at 0.
#[derive(Debug, Default)]
pub(crate) struct LastAsked {
    /// Since the last look.
    is_asked: AtomicBool,
    at_mono_ms: AtomicU64,
}

impl LastAsked {
    /// Notes that a client asks. Called on the edge.
    pub(crate) fn note(&self) {
        if !self.is_asked.load(Ordering::Relaxed) {
            self.is_asked.store(true, Ordering::Relaxed);
        }
    }

    /// Takes in whether a client has asked since the last look, and returns it. Called by the
    /// scheduler.
    pub(crate) fn look(&self, now_mono_ms: u64) -> bool {
        let is_asked = self.is_asked.swap(false, Ordering::Relaxed);
        if is_asked {
            self.at_mono_ms.store(now_mono_ms, Ordering::Relaxed);
        }
        is_asked
    }

    /// Time of the look that took in the last request.
    pub(crate) fn at_mono_ms(&self) -> u64 {
        self.at_mono_ms.load(Ordering::Relaxed)
    }

    /// Whether a client has asked in the last minute.
    pub(crate) fn is_recent(&self, now_mono_ms: u64) -> bool {
        self.is_asked.load(Ordering::Relaxed) || now_mono_ms < self.at_mono_ms() + ASKED_MS
    }
}

/// When clients last asked for the codings of a document.
#[derive(Debug, Default)]
struct Asked {
    /// When the scheduler last looked. Everything counts as asked for at the start.
    now_mono_ms: AtomicU64,
    br: LastAsked,
    gzip: LastAsked,
}

impl Asked {
    fn of(&self, coding: Coding) -> Option<&LastAsked> {
        match coding {
            Coding::Br => Some(&self.br),
            Coding::Gzip => Some(&self.gzip),
            Coding::Identity => None,
        }
    }

    /// Notes that a client asks. Called on the edge.
    fn note(&self, coding: Coding) {
        if let Some(asked) = self.of(coding) {
            asked.note();
        }
    }

    /// Whether the coding is to be made.
    fn is_wanted(&self, coding: Coding) -> bool {
        let now_mono_ms = self.now_mono_ms.load(Ordering::Relaxed);
        self.of(coding)
            .is_some_and(|asked| asked.is_recent(now_mono_ms))
    }

    /// Takes in what was asked for since the last look; returns whether that was anything.
    fn look(&self, now_mono_ms: u64) -> bool {
        self.now_mono_ms.store(now_mono_ms, Ordering::Relaxed);
        let is_asked = [&self.br, &self.gzip].map(|asked| asked.look(now_mono_ms));
        is_asked.contains(&true)
    }
}

/// Compresses with what the thread has kept of the last time.
fn kept(coding: Coding, body: &[u8]) -> Option<Vec<u8>> {
    thread_local! {
        static KEPT: RefCell<KeptCompressors> = RefCell::default();
    }
    KEPT.with_borrow_mut(|kept| kept.compress(coding, body, POLICY.brotli_quality))
}

/// One state of a document.
#[derive(Debug)]
pub struct Published {
    variants: Variants,
    /// `None` if streams do not send the document.
    event: Option<Arc<CodedFrame>>,
    /// States published before this one.
    number: u64,
    asked: Arc<Asked>,
}

impl Published {
    /// The event of this state, if streams send the document.
    pub(crate) fn event(&self) -> Option<&CodedFrame> {
        self.event.as_deref()
    }

    /// The response to a GET, as [`Variants::select`] chooses it. The coding that the client
    /// prefers counts as asked for.
    ///
    /// # Errors
    /// [`PreconditionFailed`] if `If-Match` does not match.
    pub fn select(
        &self,
        accept_encoding: Option<&[u8]>,
        preconditions: Preconditions<'_>,
    ) -> Result<&Prepared, PreconditionFailed> {
        let coding = preferred_coding(accept_encoding);
        self.asked.note(coding);
        self.variants.select_coded(coding, preconditions)
    }

    /// Number of the state: 0 is the first.
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
    /// Name of its event, if streams send it.
    event: Option<&'static str>,
    news: News,
    asked: Arc<Asked>,
    /// Monotonic time until which what it says of ages is right; 0 if nobody has said.
    stands_until_mono_ms: AtomicU64,
}

impl PublishedJson {
    /// Holds no document until the first [`publish`](Self::publish).
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for a document that streams send as an event called `name`.
    pub(crate) fn as_event(name: &'static str) -> Self {
        Self {
            event: Some(name),
            ..Self::default()
        }
    }

    /// Signals each change.
    pub(crate) fn news(&self) -> &News {
        &self.news
    }

    /// Makes responses in the codings that are asked for: the slow part of publishing. For the
    /// thread that publishes a document often, which keeps its compressors.
    pub(crate) fn make(&self, json: &[u8]) -> Made {
        self.made(self.asked_variants(json, &content_tag(json)), json)
    }

    fn made(&self, variants: Variants, json: &[u8]) -> Made {
        let event = self
            .event
            .map(|name| event(name, Some(variants.tag()), json));
        let event = event.map(|text| Arc::new(CodedFrame::new(&text)));
        Made(Published {
            variants,
            event,
            number: 0,
            asked: Arc::clone(&self.asked),
        })
    }

    fn asked_variants(&self, json: &[u8], tag: &str) -> Variants {
        let compress = |coding| {
            self.asked
                .is_wanted(coding)
                .then(|| kept(coding, json))
                .flatten()
        };
        Variants::coded(json, tag, &POLICY, compress)
    }

    /// Makes the codings of the published document that clients have asked for since the last call
    /// and that are not there. The scheduler calls it in each turn.
    pub(crate) fn make_asked(&self, now_mono_ms: u64) {
        if !self.asked.look(now_mono_ms) {
            return;
        }
        let _guard = self.publishing.lock();
        let Some(current) = self.current.load_full() else {
            return;
        };
        let is_missing = |coding| self.asked.is_wanted(coding) && !current.has(coding);
        if is_missing(Coding::Br) || is_missing(Coding::Gzip) {
            let variants = self.asked_variants(current.json(), current.tag());
            let event = current.event.clone();
            let asked = Arc::clone(&self.asked);
            let number = current.number;
            self.current.store(Some(Arc::new(Published {
                variants,
                event,
                number,
                asked,
            })));
        }
    }

    /// Publishes `json` in all codings. If it has not changed, the published responses stay. Blocks
    /// for up to a few milliseconds, so it is for OS threads, not the edge.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "publishers hand the body over"
    )]
    pub fn publish(&self, json: Vec<u8>) {
        let _guard = self.publishing.lock();
        if self.is_news(&json) {
            self.store(self.made(Variants::new(&json, &POLICY), &json));
        }
    }

    /// The same in the codings that are asked for. For the thread that publishes a document often,
    /// which keeps its compressors.
    pub(crate) fn publish_asked(&self, json: &[u8]) {
        let _guard = self.publishing.lock();
        if self.is_news(json) {
            self.store(self.make(json));
        }
    }

    /// Notes until when the document is right about ages without being made anew.
    pub(crate) fn set_stands_until(&self, mono_ms: u64) {
        self.stands_until_mono_ms.store(mono_ms, Ordering::Relaxed);
    }

    /// Whether it should have been made anew some time ago: the machine was suspended, or its
    /// maker is held up.
    pub(crate) fn is_outlived(&self, now_mono_ms: u64) -> bool {
        let until_mono_ms = self.stands_until_mono_ms.load(Ordering::Relaxed);
        until_mono_ms != 0 && now_mono_ms > until_mono_ms.saturating_add(LATE_MS)
    }

    fn is_news(&self, json: &[u8]) -> bool {
        self.current
            .load()
            .as_ref()
            .is_none_or(|current| current.json() != json)
    }

    /// Takes the document back, so that none is published.
    pub(crate) fn withdraw(&self) {
        if self.current.load().is_some() {
            self.current.store(None);
        }
    }

    /// Publishes responses made before. Takes no longer than storing a pointer.
    pub(crate) fn show(&self, made: Made) {
        let _guard = self.publishing.lock();
        self.store(made);
    }

    fn store(&self, Made(mut published): Made) {
        published.number = self.changes.fetch_add(1, Ordering::Relaxed);
        self.current.store(Some(Arc::new(published)));
        self.news.tell();
    }

    /// The published document; `None` before the first and once it is withdrawn. The guard must not
    /// be held across a suspension point: copy the bytes, drop the guard, then write.
    pub fn load(&self) -> Guard<Option<Arc<Published>>> {
        self.current.load()
    }

    /// Number of changes of the content.
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
        let prepared = current
            .as_ref()
            .unwrap()
            .select(None, Preconditions::NONE)
            .unwrap();
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

    #[test]
    fn what_nobody_asked_for_in_the_last_minute_is_not_compressed_until_somebody_asks() {
        let slot = PublishedJson::as_event("snapshot");
        let selected = |accept: &[u8]| {
            let current = slot.load_full();
            let answer = current.select(Some(accept), Preconditions::NONE).unwrap();
            headers(answer).contains("Content-Encoding")
        };
        let publish = |json: &[u8]| slot.show(slot.make(json));
        publish(BODY);
        assert!(slot.load_full().has(Coding::Br), "at the start everything is made");
        assert!(selected(b"gzip"));
        slot.make_asked(50_000);
        slot.make_asked(ASKED_MS);
        publish(b"{}");
        let of_second = [Coding::Br, Coding::Gzip].map(|coding| slot.load_full().has(coding));
        assert_eq!(of_second, [false, true], "gzip was asked for");
        let before = slot.load_full();
        assert!(!selected(b"br"), "uncompressed at first");
        slot.make_asked(ASKED_MS + 50);
        assert!(selected(b"br"));
        let after = slot.load_full();
        assert_eq!((after.number(), slot.changes()), (before.number(), 2), "the same state");
        assert_eq!((after.json(), after.tag()), (before.json(), before.tag()));
        assert!(std::ptr::eq(after.event().unwrap(), before.event().unwrap()));
        slot.make_asked(ASKED_MS + 100);
        slot.make_asked(2 * ASKED_MS + 100);
        publish(BODY);
        assert!(!slot.load_full().has(Coding::Br) && !slot.load_full().has(Coding::Gzip));
        // What is published rarely is compressed always.
        slot.publish(b"[]".to_vec());
        assert!(slot.load_full().has(Coding::Br) && slot.load_full().has(Coding::Gzip));
    }

    impl PublishedJson {
        fn load_full(&self) -> Arc<Published> {
            self.current.load_full().unwrap()
        }
    }
}
