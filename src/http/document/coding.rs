//! Content codings and tags of bodies that are made ahead of time. Pure; what costs a millisecond
//! here is for OS threads, never for the edge.

use std::io::Write;

use sha2::{Digest, Sha256};

/// Bodies change within seconds to minutes: near the best ratio of brotli on some KiB, without the
/// search of the two highest settings.
const BROTLI_QUALITY: i32 = 5;

/// Base 2 logarithm of brotli's window; covers 128 KiB, and most bodies are smaller. With 16 or
/// less this encoder takes a table of 32 MiB for each body, with more one of 1 MiB.
const BROTLI_WINDOW_BITS: i32 = 17;

const GZIP_LEVEL: u32 = 6;

/// Bytes of the content's SHA-256 that stand in an ETag.
pub const ETAG_HASH_BYTES: usize = 12;

/// What an ETag says about `body`, in hexadecimal: the beginning of its SHA-256.
pub fn content_tag(body: &[u8]) -> String {
    hex(&Sha256::digest(body)[..ETAG_HASH_BYTES])
}

/// The strong ETag of `body`, with its quotes.
pub fn etag(body: &[u8]) -> String {
    format!("\"{}\"", content_tag(body))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// One gzip member. An OS thread's work.
pub fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder =
        flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
    encoder
        .write_all(body)
        .and_then(|()| encoder.finish())
        .expect("writing to memory does not fail")
}

/// One brotli stream. An OS thread's work.
pub fn brotli(body: &[u8]) -> Vec<u8> {
    let params = brotli::enc::BrotliEncoderParams {
        quality: BROTLI_QUALITY,
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
