//! Content codings (gzip, brotli) and entity tags of documents made ahead of time. Pure.
//! Compressing takes about a millisecond, so it runs on OS threads and never on the edge.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use brotli::enc::{Allocator, BrotliAlloc, SliceWrapper, SliceWrapperMut};
use flate2::{Compress, Compression, Crc, FlushCompress};
use sha2::{Digest, Sha256};

use crate::base::hex::hex;
use crate::http::document::negotiate::Coding;

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
    hex(&Sha256::digest(body)[..ETAG_HASH_BYTES])
}

/// The strong ETag of `body`, including the quotes.
pub(crate) fn etag(body: &[u8]) -> String {
    format!("\"{}\"", content_tag(body))
}

/// Compresses to brotli, with a quality up to 11.
pub(super) fn brotli_in(memory: &KeptMemory, body: &[u8], quality: i32) -> Vec<u8> {
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
pub(super) struct KeptMemory(Rc<RefCell<Vec<Box<dyn Any>>>>);

#[derive(Default)]
pub(super) struct Table<T>(Box<[T]>);

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
            table
                .downcast_ref::<Table<T>>()
                .is_some_and(|table| table.0.len() == length)
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
