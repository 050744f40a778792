//! All variants of a document: three content codings, each with its ETag, its response 200 and
//! its response 304.
//!
//! Made on OS threads, because making them compresses. The edge selects one and copies it out,
//! without allocating, formatting, locking or compressing.

use std::any::Any;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use brotli::enc::{Allocator, BrotliAlloc, SliceWrapper, SliceWrapperMut};
use flate2::{Compress, Compression, Crc, FlushCompress};
use sha2::{Digest, Sha256};
use ureq::http::StatusCode;
use zeroize::Zeroize;

use crate::http::message::head::trimmed;
use crate::http::message::request::{PreconditionFailed, Preconditions, Verdict};

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
        Self { full, not_modified, etag }
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
        let (mut new, quality) = (KeptCompressors::default(), policy.brotli_quality);
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
            [br, variant("-gz", Some("gzip"), compress(Coding::Gzip).as_deref())]
        });
        Self { identity: variant("", None, Some(body)), compressed }
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

// ---- Prepared
//
// A complete response, made ahead of time.
//
// OS threads make them; the edge copies them into its output. Sending one does not allocate,
// format or compress.

/// Keeps browsers from guessing another content type. Sent with every body.
pub(crate) const NO_SNIFFING: &[u8] = b"X-Content-Type-Options: nosniff\r\n";

/// A `Date` line including CR LF.
pub(crate) type DateLine = [u8; 37];

/// Status line, headers and body as the client gets them, with room for the `Date` of sending.
#[derive(Debug, Clone)]
pub struct Prepared {
    status: u16,
    bytes: Box<[u8]>,
    /// Length of the status line, after which the line `Date` is to be written.
    status_line_bytes: usize,
    /// Length of the head including its empty line, after which the body begins.
    head_bytes: usize,
}

impl Prepared {
    /// Makes the response. `headers` are written in order, then `Content-Length`. A 304 gets
    /// neither a body nor `Content-Length`, which RFC 9110 8.6 leaves optional.
    pub fn new(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256 + body.len());
        bytes.extend_from_slice(b"HTTP/1.1 ");
        bytes.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(reason(status).as_bytes());
        bytes.extend_from_slice(b"\r\n");
        let status_line_bytes = bytes.len();
        bytes.extend_from_slice(&[0; size_of::<DateLine>()]);
        for (name, value) in headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        if status != 304 {
            bytes.extend_from_slice(NO_SNIFFING);
            bytes.extend_from_slice(b"Content-Length: ");
            bytes.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        let head_bytes = bytes.len();
        if status != 304 {
            bytes.extend_from_slice(body);
        }
        Self { status, bytes: bytes.into_boxed_slice(), status_line_bytes, head_bytes }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// `HTTP/1.1 200 OK\r\n`.
    pub(crate) fn status_line(&self) -> &[u8] {
        &self.bytes[..self.status_line_bytes]
    }

    /// The headers but `Date`, including the empty line at their end.
    pub fn headers(&self) -> &[u8] {
        &self.bytes[self.date_range().end..self.head_bytes]
    }

    /// The part of [`bytes`](Self::bytes) that the line `Date` is to be written to.
    pub(crate) fn date_range(&self) -> Range<usize> {
        self.status_line_bytes..self.status_line_bytes + size_of::<DateLine>()
    }

    /// Everything, with zeros in the place of the line `Date`.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.head_bytes..]
    }
}

/// The reason phrase of a status.
pub(crate) fn reason(status: u16) -> &'static str {
    match StatusCode::from_u16(status) {
        // The library has the phrase of before RFC 9110.
        Ok(StatusCode::PAYLOAD_TOO_LARGE) => "Content Too Large",
        Ok(known) => known.canonical_reason().unwrap_or("Unknown"),
        Err(_) => "Unknown",
    }
}

// ---- Owned
//
// A response body that is passed to the connection as it is, instead of being copied into the
// output buffer.
//
// Pure. Made by handlers, on the edge or on a lane; written and freed by the connection.

/// A longer body is large: it is not copied, and it is written in pieces, between which the worker
/// serves its other connections. A shorter body is copied behind its head, so that both go out in
/// one write, which is cheaper.
pub(crate) const LARGE_BYTES: usize = 256 * 1024;

/// The bytes of a body, owned or shared with other connections that send the same.
#[derive(Debug)]
pub struct OwnedBody {
    memory: Memory,
    is_secret: bool,
    /// Dropped with the body.
    _held: Option<Box<dyn Any + Send + Sync>>,
}

#[derive(Debug)]
enum Memory {
    Own(Vec<u8>),
    Shared(Arc<[u8]>, Range<usize>),
}

impl OwnedBody {
    /// A body together with a value that is dropped when the body is freed, written or not: a
    /// permit that limits how many such bodies are in memory.
    pub(crate) fn holding(bytes: Vec<u8>, held: impl Any + Send + Sync) -> Self {
        let memory = Memory::Own(bytes);
        Self { memory, is_secret: false, _held: Some(Box::new(held)) }
    }

    /// A part of shared bytes.
    pub(crate) fn part(bytes: Arc<[u8]>, part: Range<usize>) -> Self {
        Self { memory: Memory::Shared(bytes, part), is_secret: false, _held: None }
    }

    /// All bytes of the body.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Own(bytes) => bytes,
            Memory::Shared(bytes, part) => &bytes[part.clone()],
        }
    }

    /// Marks the body as secret, because it may repeat a request's body. Its memory is then wiped
    /// before it is freed, unless it is shared.
    pub(crate) fn keep_secret(&mut self) {
        self.is_secret = true;
    }
}

impl From<Vec<u8>> for OwnedBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self { memory: Memory::Own(bytes), is_secret: false, _held: None }
    }
}

impl From<Arc<[u8]>> for OwnedBody {
    fn from(bytes: Arc<[u8]>) -> Self {
        let all = 0..bytes.len();
        Self::part(bytes, all)
    }
}

impl Drop for OwnedBody {
    fn drop(&mut self) {
        if let (true, Memory::Own(bytes)) = (self.is_secret, &mut self.memory) {
            bytes.as_mut_slice().zeroize();
        }
    }
}

// ---- Negotiate
//
// Content negotiation: chooses the content coding by `Accept-Encoding`.
//
// Pure functions on header bytes, which the edge calls for every prepared response. They must
// never allocate or panic, whatever the bytes are. They take time linear in the header's length,
// which is bounded.

/// A content coding that is made ahead of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Br,
    Gzip,
    /// Uncompressed.
    Identity,
}

/// A quality value (RFC 9110 12.4.2), in thousandths.
type Weight = u16;

/// The coding with the highest weight; among equals br, then gzip, then identity.
///
/// Without the header, or if no coding in it is known, the result is identity: RFC 9110 12.5.3
/// allows that, and every client can read it. Malformed elements are ignored. If a coding is named
/// twice, the first element counts.
pub(crate) fn preferred_coding(accept_encoding: Option<&[u8]>) -> Coding {
    match accept_encoding {
        None => Coding::Identity,
        // Fast path: exactly what browsers and curl send.
        Some(
            b"gzip, deflate, br, zstd" | b"gzip, deflate, br" | b"deflate, gzip, br, zstd" | b"br",
        ) => Coding::Br,
        Some(b"gzip, deflate" | b"deflate, gzip" | b"gzip") => Coding::Gzip,
        Some(b"identity" | b"") => Coding::Identity,
        Some(value) => weighed_coding(value),
    }
}

/// The coding of a stream, which is made in gzip and identity alone: gzip, unless the header
/// refuses it or prefers identity.
pub(crate) fn stream_coding(accept_encoding: Option<&[u8]>) -> Coding {
    let Weights { gzip, identity, .. } = Weights::of(accept_encoding.unwrap_or_default());
    if gzip > 0 && gzip >= identity { Coding::Gzip } else { Coding::Identity }
}

fn weighed_coding(value: &[u8]) -> Coding {
    let Weights { br, gzip, identity } = Weights::of(value);
    if br > 0 && br >= gzip && br >= identity {
        Coding::Br
    } else if gzip > 0 && gzip >= identity {
        Coding::Gzip
    } else {
        Coding::Identity
    }
}

/// The weight of each coding in a header; 0 excludes the coding.
struct Weights {
    br: Weight,
    gzip: Weight,
    identity: Weight,
}

impl Weights {
    fn of(value: &[u8]) -> Self {
        let (mut br, mut gzip, mut identity, mut rest) = (None, None, None, None);
        for element in value.split(|byte| *byte == b',') {
            let Some((name, weight)) = weighed(element) else { continue };
            let slot: &mut Option<Weight> = if name.eq_ignore_ascii_case(b"br") {
                &mut br
            } else if name.eq_ignore_ascii_case(b"gzip") || name.eq_ignore_ascii_case(b"x-gzip") {
                &mut gzip
            } else if name.eq_ignore_ascii_case(b"identity") {
                &mut identity
            } else if name == b"*" {
                &mut rest
            } else {
                continue;
            };
            slot.get_or_insert(weight);
        }
        let weight = |named: Option<Weight>| named.or(rest).unwrap_or(0);
        Self { br: weight(br), gzip: weight(gzip), identity: weight(identity) }
    }
}

/// Parses `name` or `name;q=0.5`, with optional blanks around the parts.
fn weighed(element: &[u8]) -> Option<(&[u8], Weight)> {
    let mut parts = element.splitn(2, |byte| *byte == b';');
    let name = trimmed(parts.next()?);
    if name.is_empty() {
        return None;
    }
    let weight = match parts.next() {
        None => 1_000,
        Some(parameter) => match trimmed(parameter) {
            [b'q' | b'Q', b'=', digits @ ..] => qvalue(digits)?,
            _ => return None,
        },
    };
    Some((name, weight))
}

/// Parses `0`, `0.5` or `1.000`: at most three digits after the point.
fn qvalue(digits: &[u8]) -> Option<Weight> {
    let (whole, fraction) = match digits {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let mut value = match whole {
        b'0' => 0,
        b'1' => 1_000,
        _ => return None,
    };
    for (digit, unit) in fraction.iter().zip([100, 10, 1]) {
        if !digit.is_ascii_digit() {
            return None;
        }
        value += Weight::from(digit - b'0') * unit;
    }
    (value <= 1_000).then_some(value)
}

// ---- Coding
//
// Content codings (gzip, brotli) and entity tags of documents made ahead of time. Pure.
// Compressing takes about a millisecond, so it runs on OS threads and never on the edge.

/// On documents of a few KiB, nearly the best ratio of brotli without the slow search of its
/// highest settings. Documents change every few seconds or minutes.
pub(crate) const BROTLI_QUALITY: i32 = 5;

/// Base 2 logarithm of brotli's window: 128 KiB, larger than most documents. With 16 or less this
/// encoder allocates a table of 32 MiB for each document, with 17 or more one of 1 MiB.
const BROTLI_WINDOW_BITS: i32 = 17;

/// Higher levels make documents hardly smaller.
pub(crate) const GZIP_LEVEL: u32 = 6;

/// Number of bytes of the content's SHA-256 in an ETag.
pub(crate) const ETAG_HASH_BYTES: usize = 12;

/// The content hash in an ETag: the beginning of the SHA-256 of `body`, in hexadecimal.
pub(crate) fn content_tag(body: &[u8]) -> String {
    let hash = Sha256::digest(body);
    hash[..ETAG_HASH_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The strong ETag of `body`, including the quotes.
pub(crate) fn etag(body: &[u8]) -> String {
    format!("\"{}\"", content_tag(body))
}

/// Compresses to brotli, with a quality up to 11.
fn brotli_in(memory: &KeptMemory, body: &[u8], quality: i32) -> Vec<u8> {
    let params = brotli::enc::BrotliEncoderParams {
        quality,
        lgwin: BROTLI_WINDOW_BITS,
        mode: brotli::enc::backward_references::BrotliEncoderMode::BROTLI_MODE_TEXT,
        size_hint: body.len(),
        ..Default::default()
    };
    let mut compressed = Vec::new();
    let mut pieces = [[0u8; BROTLI_PIECE_BYTES]; 2];
    let [input, output] = &mut pieces;
    brotli::BrotliCompressCustomAlloc(
        &mut &body[..],
        &mut compressed,
        input,
        output,
        &params,
        memory.clone(),
    )
    .expect("writing to memory does not fail");
    compressed
}

/// Compressors that can be kept for the next document. Making one, which zeroes its tables, and
/// freeing it, which wipes them, took more than half of the instructions of publishing a snapshot
/// each second. They are kept for public documents alone, since they keep what they compressed. The
/// bytes do not depend on what was compressed before.
#[derive(Default)]
pub(crate) struct KeptCompressors {
    deflate: Option<Compress>,
    memory: KeptMemory,
}

impl KeptCompressors {
    /// The body in this coding; `None` for identity. `quality` is that of brotli. For OS threads,
    /// not the edge.
    pub(crate) fn compress(
        &mut self,
        coding: Coding,
        body: &[u8],
        quality: i32,
    ) -> Option<Vec<u8>> {
        match coding {
            Coding::Br => Some(brotli_in(&self.memory, body, quality)),
            Coding::Gzip => Some(self.gzip(body)),
            Coding::Identity => None,
        }
    }

    fn gzip(&mut self, body: &[u8]) -> Vec<u8> {
        let new = || Compress::new(Compression::new(GZIP_LEVEL), false);
        let deflate = self.deflate.get_or_insert_with(new);
        deflate.reset();
        let mut packed = Vec::with_capacity(body.len() / 2 + 64);
        packed.extend_from_slice(&GZIP_HEADER);
        loop {
            let taken = deflate.total_in() as usize;
            let status = deflate.compress_vec(&body[taken..], &mut packed, FlushCompress::Finish);
            match status.expect("compressing does not fail") {
                flate2::Status::StreamEnd => break,
                _ => packed.reserve(64.max(body.len())),
            }
        }
        let mut crc = Crc::new();
        crc.update(body);
        packed.extend_from_slice(&crc.sum().to_le_bytes());
        packed.extend_from_slice(&crc.amount().to_le_bytes());
        packed
    }
}

/// The header of a gzip stream without a name or a time (RFC 1952 2.3).
pub(crate) const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Bytes that brotli's encoder is given, or gives, at once.
const BROTLI_PIECE_BYTES: usize = 4096;

/// Memory of brotli's encoder, of which tables of this size or more are kept.
const KEPT_FROM_BYTES: usize = 256 * 1024;

/// Most tables kept.
const KEPT_MAX: usize = 4;

/// Memory for brotli's encoder. Its large tables are kept and used again as they are: what is in
/// them counts only where a smaller table, which is zeroed, says so.
#[derive(Clone, Default)]
struct KeptMemory(Rc<RefCell<Vec<Box<dyn Any>>>>);

#[derive(Default)]
struct Table<T>(Box<[T]>);

impl<T> SliceWrapper<T> for Table<T> {
    fn slice(&self) -> &[T] {
        &self.0
    }
}

impl<T> SliceWrapperMut<T> for Table<T> {
    fn slice_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Clone + Default + 'static> Allocator<T> for KeptMemory {
    type AllocatedMemory = Table<T>;

    fn alloc_cell(&mut self, length: usize) -> Table<T> {
        let mut kept = self.0.borrow_mut();
        let fits = |table: &Box<dyn Any>| {
            table.downcast_ref::<Table<T>>().is_some_and(|table| table.0.len() == length)
        };
        let found = kept.iter().position(fits).map(|at| kept.swap_remove(at));
        match found.and_then(|table| table.downcast::<Table<T>>().ok()) {
            Some(table) => *table,
            None => Table(vec![T::default(); length].into()),
        }
    }

    fn free_cell(&mut self, table: Table<T>) {
        let mut kept = self.0.borrow_mut();
        if size_of_val(&*table.0) >= KEPT_FROM_BYTES && kept.len() < KEPT_MAX {
            kept.push(Box::new(table));
        }
    }
}

impl BrotliAlloc for KeptMemory {}

#[cfg(test)]
#[path = "variants_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "negotiate_tests.rs"]
mod negotiate_tests;
