//! Tests of the variants: each decodes to the same JSON, and each has its own ETag and 304.

use std::io::Read;

use super::*;

const POLICY: CachePolicy =
    CachePolicy { cache_control: "no-cache", compressed_from_bytes: 1_000, ..CachePolicy::JSON };
const CODINGS: [(Coding, &str); 3] =
    [(Coding::Br, "br"), (Coding::Gzip, "gzip"), (Coding::Identity, "identity")];

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
            flate2::read::GzDecoder::new(body).read_to_end(&mut out).unwrap();
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
