//! Content codings (gzip, brotli) and entity tags of documents made ahead of time. Pure.
//! Compressing takes about a millisecond, so it runs on OS threads and never on the edge.

use std::io::Write;

use sha2::{Digest, Sha256};

/// On documents of a few KiB, nearly the best ratio of brotli without the slow search of its
/// highest settings. Documents change every few seconds or minutes.
pub const BROTLI_QUALITY: i32 = 5;

/// Base 2 logarithm of brotli's window: 128 KiB, larger than most documents. With 16 or less this
/// encoder allocates a table of 32 MiB for each document, with 17 or more one of 1 MiB.
const BROTLI_WINDOW_BITS: i32 = 17;

/// Beyond it documents hardly get smaller.
pub const GZIP_LEVEL: u32 = 6;

/// Number of bytes of the content's SHA-256 in an ETag.
pub const ETAG_HASH_BYTES: usize = 12;

/// The content hash in an ETag: the beginning of the SHA-256 of `body`, in hexadecimal.
pub fn content_tag(body: &[u8]) -> String {
    hex(&Sha256::digest(body)[..ETAG_HASH_BYTES])
}

/// The strong ETag of `body`, including the quotes.
pub fn etag(body: &[u8]) -> String {
    format!("\"{}\"", content_tag(body))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Compresses to gzip. For OS threads, not the edge.
pub fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder =
        flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
    encoder
        .write_all(body)
        .and_then(|()| encoder.finish())
        .expect("writing to memory does not fail")
}

/// Compresses to brotli, with a quality up to 11. For OS threads, not the edge.
pub fn brotli(body: &[u8], quality: i32) -> Vec<u8> {
    let params = brotli::enc::BrotliEncoderParams {
        quality,
        lgwin: BROTLI_WINDOW_BITS,
        mode: brotli::enc::backward_references::BrotliEncoderMode::BROTLI_MODE_TEXT,
        size_hint: body.len(),
        ..Default::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut &body[..], &mut compressed, &params)
        .expect("writing to memory does not fail");
    compressed
}
