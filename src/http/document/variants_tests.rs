//! Tests of the variants: each decodes to the same JSON, and each has its own ETag and 304.

use std::io::{Read, Write};

use super::*;
use crate::http::document::coding::{GZIP_LEVEL, KeptMemory, brotli_in};
use flate2::Compression;

const POLICY: CachePolicy = CachePolicy {
    cache_control: "no-cache",
    compressed_from_bytes: 1_000,
    ..CachePolicy::JSON
};
const CODINGS: [(Coding, &str); 3] = [
    (Coding::Br, "br"),
    (Coding::Gzip, "gzip"),
    (Coding::Identity, "identity"),
];

fn body() -> Vec<u8> {
    br#"{"index1_price":24321.88,"signals":[],"sectors":[]}"#.repeat(30)
}

fn headers(prepared: &Prepared) -> &str {
    std::str::from_utf8(prepared.headers()).unwrap()
}

fn select<'v>(variants: &'v Variants, accept: &str, given: Preconditions<'_>) -> &'v Prepared {
    variants.select(Some(accept.as_bytes()), given).unwrap()
}

fn decoded(coding: Coding, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        Coding::Br => {
            ::brotli::BrotliDecompress(&mut &body[..], &mut out).unwrap();
        }
        Coding::Gzip => {
            flate2::read::GzDecoder::new(body)
                .read_to_end(&mut out)
                .unwrap();
        }
        Coding::Identity => out.extend_from_slice(body),
    }
    out
}

#[test]
fn every_variant_decodes_to_the_json_and_has_its_own_304() {
    let json = body();
    let current = Variants::new(&json, &POLICY);
    for (coding, accept) in CODINGS {
        let full = select(&current, accept, Preconditions::if_none_match(b"\"other\""));
        assert_eq!(decoded(coding, full.body()), json, "{accept}");
        let encoding = format!("Content-Encoding: {accept}\r\n");
        assert_eq!(headers(full).contains(&encoding), coding != Coding::Identity);
        assert_eq!(full.body().len() < json.len(), coding != Coding::Identity);

        let etag = current.etag(coding).to_owned();
        assert!(headers(full).contains(&format!("ETag: {etag}\r\n")));
        let unchanged = select(&current, accept, Preconditions::if_none_match(etag.as_bytes()));
        assert_eq!(unchanged.status_line(), b"HTTP/1.1 304 Not Modified\r\n");
        assert_eq!(
            headers(unchanged),
            format!(
                "ETag: {etag}\r\n\
                 Cache-Control: no-cache\r\nVary: Accept-Encoding\r\n\r\n"
            )
        );
        assert!(unchanged.body().is_empty());
        // The ETag of another variant is no match.
        for (other, other_accept) in CODINGS {
            let hit = select(&current, other_accept, Preconditions::if_none_match(etag.as_bytes()));
            assert_eq!(hit.body().is_empty(), other == coding, "{accept} {other_accept}");
        }
    }
}

/// The bytes as the library for gzip writes them by itself.
fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_coding_that_was_left_out_is_answered_uncompressed_and_is_known_all_the_same() {
    let json = body();
    let whole = Variants::new(&json, &POLICY);
    let compress = |coding| (coding == Coding::Gzip).then(|| gzip(&json));
    let part = Variants::coded(&json, whole.tag(), &POLICY, compress);
    assert!(part.has(Coding::Gzip) && part.has(Coding::Identity) && !part.has(Coding::Br));
    let answer = select(&part, "br", Preconditions::NONE);
    assert_eq!((answer.status(), answer.body()), (200, &json[..]));
    assert!(headers(answer).contains(&format!("ETag: {}\r\n", part.etag(Coding::Identity))));
    assert_eq!(part.etag(Coding::Br), whole.etag(Coding::Br));
    // Who has it in one of the two has it.
    for (coding, has_it) in [
        (Coding::Br, true),
        (Coding::Identity, true),
        (Coding::Gzip, false),
    ] {
        let etag = whole.etag(coding).as_bytes();
        let answer = select(&part, "br", Preconditions::if_none_match(etag));
        assert_eq!(answer.status(), if has_it { 304 } else { 200 }, "{coding:?}");
        assert_eq!(has_it, headers(answer).contains(whole.etag(coding)));
    }
}

#[test]
fn kept_compressors_give_the_bytes_of_new_ones_whatever_they_compressed_before() {
    let mut kept = KeptCompressors::default();
    let mut random = crate::base::rng::seeded(7);
    for length in [
        0, 1, 50, 2_000, 200_000, 3, 30_000, 2_000, 70_000, 1_999, 600_000, 2_000,
    ] {
        // Now text that repeats itself, now bytes that do not.
        let text: Vec<u8> = match length % 7 {
            0..4 => body().into_iter().cycle().take(length).collect(),
            _ => (0..length).map(|_| random.u8(..)).collect(),
        };
        let [br, gz] =
            [Coding::Br, Coding::Gzip].map(|coding| kept.compress(coding, &text, BROTLI_QUALITY));
        assert!(
            br == Some(brotli_in(&KeptMemory::default(), &text, BROTLI_QUALITY)),
            "br of {length} bytes"
        );
        assert!(gz == Some(gzip(&text)), "gzip of {length} bytes");
    }
}

#[test]
fn a_small_body_is_not_compressed() {
    let small = Variants::new(b"{}", &POLICY);
    for (coding, accept) in CODINGS {
        let answer = select(&small, accept, Preconditions::NONE);
        assert_eq!(answer.body(), b"{}");
        assert!(!headers(answer).contains("Content-Encoding"));
        assert_eq!(small.etag(coding), small.etag(Coding::Identity));
    }
    assert!(small.bytes() < Variants::new(&body(), &POLICY).bytes());
}
