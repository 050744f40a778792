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
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwapOption, Guard};
use flate2::{Compress, Compression, FlushCompress, Status};
use parking_lot::Mutex;

use crate::http::document::variants::{
    Coding, GZIP_HEADER, GZIP_LEVEL, KeptCompressors, OwnedBody, content_tag, preferred_coding,
};
use crate::http::message::request::{PreconditionFailed, Preconditions};
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
        self.of(coding).is_some_and(|asked| asked.is_recent(now_mono_ms))
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
        Self { event: Some(name), ..Self::default() }
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
        let event = self.event.map(|name| event(name, Some(variants.tag()), json));
        let event = event.map(|text| Arc::new(CodedFrame::new(&text)));
        Made(Published { variants, event, number: 0, asked: Arc::clone(&self.asked) })
    }

    fn asked_variants(&self, json: &[u8], tag: &str) -> Variants {
        let compress = |coding| self.asked.is_wanted(coding).then(|| kept(coding, json)).flatten();
        Variants::coded(json, tag, &POLICY, compress)
    }

    /// Makes the codings of the published document that clients have asked for since the last call
    /// and that are not there. The scheduler calls it in each turn.
    pub(crate) fn make_asked(&self, now_mono_ms: u64) {
        if !self.asked.look(now_mono_ms) {
            return;
        }
        let _guard = self.publishing.lock();
        let Some(current) = self.current.load_full() else { return };
        let is_missing = |coding| self.asked.is_wanted(coding) && !current.has(coding);
        if is_missing(Coding::Br) || is_missing(Coding::Gzip) {
            let variants = self.asked_variants(current.json(), current.tag());
            let (event, asked) = (current.event.clone(), Arc::clone(&self.asked));
            let number = current.number;
            self.current.store(Some(Arc::new(Published { variants, event, number, asked })));
        }
    }

    /// Publishes `json` in all codings. If it has not changed, the published responses stay. Blocks
    /// for up to a few milliseconds, so it is for OS threads, not the edge.
    #[expect(clippy::needless_pass_by_value, reason = "publishers hand the body over")]
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
        self.current.load().as_ref().is_none_or(|current| current.json() != json)
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

// ---- Events
//
// Server-sent events (WHATWG HTML 9.2) in both codings of streams: identity and gzip.
//
// A gzip stream here is a header and deflate blocks. No block refers to bytes before it and each
// ends at a whole byte, so the same block can follow any other: it is compressed once for all
// clients. Brotli cannot be shared like this, because its references into the dictionary depend on
// how much was written before.
//
// A text is compressed when the first client takes it compressed. That takes about 0.2 ms, so it
// happens on the OS threads that write streams and never on the edge. Texts of a line or two are
// not compressed but stored, which any thread may do.

/// `Content-Type` of a stream of events.
pub const EVENT_STREAM: &str = "text/event-stream";

/// The end that [`FlushCompress::Full`] gives every block: an empty stored block (RFC 1951 3.2.4).
const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];

/// A frame in both codings.
#[derive(Debug)]
pub(crate) struct CodedFrame {
    identity: Frame,
    gzip: OnceLock<Frame>,
}

impl CodedFrame {
    /// A frame that is compressed when it is first taken so.
    pub(crate) fn new(text: &[u8]) -> Self {
        Self { identity: Frame::of(text), gzip: OnceLock::new() }
    }

    /// Keeps `text`, of at most 64 KiB, as it is in both codings.
    pub(crate) fn stored(text: &[u8]) -> Self {
        Self { identity: Frame::of(text), gzip: Frame::of(&stored(text)).into() }
    }

    /// The same as [`Self::stored`], for the beginning of a stream.
    pub(crate) fn opening(text: &[u8]) -> Self {
        let gzip = [&GZIP_HEADER[..], &stored(text)].concat();
        Self { identity: Frame::of(text), gzip: Frame::of(&gzip).into() }
    }

    /// The frame in `coding`, which is identity or gzip. Of one made with [`Self::new`] gzip is for
    /// OS threads, not the edge.
    pub(crate) fn of(&self, coding: Coding) -> &Frame {
        match coding {
            Coding::Gzip => self.gzip.get_or_init(|| {
                let text = self.identity.bytes(Framing::UntilClose);
                Frame::of(&DEFLATER.with_borrow_mut(|deflater| deflated(deflater, text)))
            }),
            Coding::Identity | Coding::Br => &self.identity,
        }
    }
}

/// An event's text. `data` is JSON, which has no raw line end.
pub(crate) fn event(name: &str, id: Option<&str>, data: &[u8]) -> Vec<u8> {
    let mut text = format!("event: {name}\n").into_bytes();
    if let Some(id) = id {
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    text.extend_from_slice(b"data: ");
    text.extend_from_slice(data);
    text.extend_from_slice(b"\n\n");
    text
}

thread_local! {
    /// Kept, because making one and freeing it takes longer than to compress a snapshot. It is
    /// never reset: a full flush forgets all that was before.
    static DEFLATER: RefCell<Compress> =
        RefCell::new(Compress::new(Compression::new(GZIP_LEVEL), false));
}

fn deflated(encoder: &mut Compress, text: &[u8]) -> Vec<u8> {
    let mut block = Vec::with_capacity(text.len() / 2 + 64);
    let before = encoder.total_in();
    loop {
        let taken = (encoder.total_in() - before) as usize;
        let status = encoder.compress_vec(&text[taken..], &mut block, FlushCompress::Full);
        assert!(!matches!(status, Err(_) | Ok(Status::StreamEnd)), "compressing does not fail");
        let taken = (encoder.total_in() - before) as usize;
        let is_whole = taken == text.len() && block.len() < block.capacity();
        if is_whole && block.ends_with(&FLUSHED) {
            return block;
        }
        block.reserve(64.max(text.len()));
    }
}

/// A stored block that is not the last one (RFC 1951 3.2.4).
fn stored(text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("a stored block has at most 64 KiB");
    let mut block = vec![0];
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(&(!length).to_le_bytes());
    block.extend_from_slice(text);
    block
}

// ---- Frames
//
// Frames: the pieces of which a stream consists, made once and sent to any number of clients.
//
// OS threads make them when their content changes, and clone an `Arc` for each client.

/// Bytes before the payload: its length in at most eight hexadecimal digits, and a line end.
const CHUNK_HEAD_BYTES_MAX: usize = 10;

/// How the wire separates the frames of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Each frame is one chunk (RFC 9112 7.1).
    Chunked,
    /// The bare payload, for HTTP/1.0: the stream ends with the connection.
    UntilClose,
}

/// One piece of a stream. It is kept as a chunk, whose inside is the bare payload.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    chunk: Arc<[u8]>,
    payload: Range<usize>,
}

impl Frame {
    /// A frame of these bytes, at least one: an empty chunk would end the stream.
    pub(crate) fn of(payload: &[u8]) -> Self {
        assert!(!payload.is_empty(), "an empty frame would end the stream");
        let mut chunk = Vec::with_capacity(CHUNK_HEAD_BYTES_MAX + payload.len() + 2);
        chunk.extend_from_slice(format!("{:x}\r\n", payload.len()).as_bytes());
        let start = chunk.len();
        chunk.extend_from_slice(payload);
        let payload = start..chunk.len();
        chunk.extend_from_slice(b"\r\n");
        Self { chunk: chunk.into(), payload }
    }

    /// The bytes to send.
    pub(crate) fn bytes(&self, framing: Framing) -> &[u8] {
        &self.chunk[self.range(framing)]
    }

    /// The bytes left to send after the first `sent`.
    pub(crate) fn rest(&self, framing: Framing, sent: usize) -> OwnedBody {
        let Range { start, end } = self.range(framing);
        OwnedBody::part(Arc::clone(&self.chunk), start + sent..end)
    }

    /// Number of bytes to send.
    pub(crate) fn length(&self, framing: Framing) -> usize {
        self.range(framing).len()
    }

    fn range(&self, framing: Framing) -> Range<usize> {
        match framing {
            Framing::Chunked => 0..self.chunk.len(),
            Framing::UntilClose => self.payload.clone(),
        }
    }
}

/// The result of `Frames::newest`: one frame, or two that are due together.
#[derive(Debug)]
pub struct Taken {
    pub(crate) frame: Frame,
    /// Sent behind `frame` in the same write.
    pub(crate) second: Option<Frame>,
    /// Frames published since the last one taken, which this client never gets.
    pub skipped: u64,
}

/// Streams that are woken together: those that send only what every stream sends, or a part of
/// those that send more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group(u8);

impl Group {
    /// Number of groups. A set of them is a word, with a bit each.
    pub(crate) const COUNT: usize = 64;

    /// The streams that send only what every stream sends.
    pub(crate) const COMMON: Self = Self(0);

    /// The group of the streams with this content of their own. Contents are spread evenly.
    pub(crate) fn of_content(number: usize) -> Self {
        Self(1 + (number % (Self::COUNT - 1)) as u8)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) fn bit(self) -> u64 {
        1 << self.0
    }
}

/// The source of one stream's frames. Called on the thread that writes the stream and many others,
/// so it must not wait.
pub(crate) trait Frames: Send {
    /// The streams with which this one is woken.
    fn group(&self) -> Group {
        Group::COMMON
    }

    /// Whether the client may not see more. `None` for a stream whose client may see all of it.
    fn has_ended(&self) -> Option<bool> {
        None
    }

    /// The newest frames, as far as this client does not have them yet.
    fn newest(&mut self) -> Option<Taken>;

    /// The frame sent when nothing else was sent for a while, so that clients can tell a quiet
    /// connection from a dead one.
    fn heartbeat(&self) -> Frame;

    /// The last frame when the server stops. Clients reconnect after `retry_ms`.
    fn farewell(&self, retry_ms: u64) -> Frame;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::document::variants::Coding;
    use crate::http::document::variants::ETAG_HASH_BYTES;
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

#[cfg(test)]
mod events_tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use proptest::prelude::*;

    use super::*;
    use crate::http::document::published::Framing;

    /// The output of a decoder before it needs more input.
    fn unzipped(bytes: &[u8]) -> Vec<u8> {
        let mut decoder = GzDecoder::new(bytes);
        let (mut all, mut room) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = decoder.read(&mut room) {
            all.extend_from_slice(&room[..count]);
        }
        all
    }

    fn payload(frame: &CodedFrame, coding: Coding) -> &[u8] {
        frame.of(coding).bytes(Framing::UntilClose)
    }

    #[test]
    fn an_event_has_its_fields_in_order_and_ends_with_an_empty_line() {
        let text = event("snapshot", Some("9f2c"), b"{\"a\":1}");
        assert_eq!(text, b"event: snapshot\nid: 9f2c\ndata: {\"a\":1}\n\n");
        assert_eq!(event("beat", None, b"{}"), b"event: beat\ndata: {}\n\n");
    }

    #[test]
    fn a_compressed_event_is_smaller() {
        let data = br#"{"symbol":"NSE:INFY","last_price":1764.9}"#.repeat(40);
        let frame = CodedFrame::new(&data);
        assert!(payload(&frame, Coding::Gzip).len() * 4 < data.len());
        assert_eq!(payload(&frame, Coding::Identity), data);
    }

    proptest! {
        #[test]
        fn blocks_in_any_order_and_choice_decode_to_their_texts(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..5_000), 1..5),
            order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..12),
        ) {
            let frames: Vec<_> = texts
                .iter()
                .map(|text| (CodedFrame::new(text), CodedFrame::stored(text)))
                .collect();
            let opening = CodedFrame::opening(b": hello\n\n");
            let mut stream = payload(&opening, Coding::Gzip).to_vec();
            let mut expected = b": hello\n\n".to_vec();
            for (index, is_stored) in order {
                let at = index.index(texts.len());
                let (compressed, stored) = &frames[at];
                let frame = if is_stored { stored } else { compressed };
                stream.extend_from_slice(payload(frame, Coding::Gzip));
                expected.extend_from_slice(&texts[at]);
                // Each block can be read as soon as it has arrived.
                prop_assert_eq!(&unzipped(&stream), &expected);
            }
        }
    }
}

#[cfg(test)]
mod frames_tests {
    use super::*;

    #[test]
    fn a_frame_is_a_whole_chunk_or_its_payload() {
        for payload in [&b"a"[..], &[b'x'; 15], &[b'x'; 16], &[b'\n'; 70_000]] {
            let frame = Frame::of(payload);
            let chunk = frame.bytes(Framing::Chunked);
            let line = chunk.iter().position(|byte| *byte == b'\r').unwrap();
            let length = std::str::from_utf8(&chunk[..line]).unwrap();
            assert_eq!(usize::from_str_radix(length, 16), Ok(payload.len()));
            assert_eq!(&chunk[line..line + 2], b"\r\n");
            assert_eq!(&chunk[line + 2..chunk.len() - 2], payload);
            assert!(chunk.ends_with(b"\r\n"));
            assert_eq!(frame.bytes(Framing::UntilClose), payload);
        }
    }

    #[test]
    fn the_rest_of_a_frame_continues_what_was_sent() {
        let frame = Frame::of(b"event: beat\n\n");
        for framing in [Framing::Chunked, Framing::UntilClose] {
            let whole = frame.bytes(framing);
            for sent in 0..whole.len() {
                assert_eq!(frame.rest(framing, sent).bytes(), &whole[sent..]);
            }
        }
    }

    #[test]
    #[should_panic(expected = "an empty frame would end the stream")]
    fn a_frame_of_nothing_cannot_be_made() {
        Frame::of(b"");
    }
}
