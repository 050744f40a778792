//! Tests of valid, expired, forged and malformed tokens.

use super::*;
use zeroize::Zeroizing;

const NOW_MS: i64 = 1_795_000_000_123;

fn key(text: &str) -> Key {
    Zeroizing::new(text.as_bytes().to_vec())
}

fn tokens(keys: &[&str]) -> Tokens {
    tokens_of(keys, "this")
}

fn tokens_of(keys: &[&str], database_id: &str) -> Tokens {
    Tokens::new(&keys.iter().map(|text| key(text)).collect::<Vec<_>>(), database_id)
}

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// Any header and claims under key `A`.
fn forged(header: &str, claims: &str, key: &str) -> String {
    let part = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
    let message = format!("{}.{}", part(header), part(claims));
    let key = EncodingKey::from_secret(key.as_bytes());
    let tag = jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::HS256).unwrap();
    format!("{message}.{tag}")
}

fn parts(token: &str) -> (String, String) {
    let decode =
        |part: &str| String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    let mut parts = token.split('.');
    (decode(parts.next().unwrap()), decode(parts.next().unwrap()))
}

#[test]
fn a_token_contains_its_user_epoch_and_expiry() {
    let tokens = tokens(&[A]);
    let signed = tokens.sign(AccountId(42), 3, NOW_MS).unwrap();
    let verified = tokens.verify(signed.as_bytes(), NOW_MS).unwrap();
    let expires_s = NOW_MS / 1_000 + 604_800;
    let token_id = verified.token_id;
    assert_eq!(
        verified,
        Verified {
            id: AccountId(42),
            token_id,
            expires_s,
            epoch: 3
        }
    );
    let (header, claims) = parts(&signed);
    assert!(header.contains(r#""alg":"HS256""#) && header.contains(r#""kid":""#), "{header}");
    for part in [
        r#""iss":"bhav""#,
        r#""sub":"42""#,
        r#""iat":1795000000"#,
        r#""exp":1795604800"#,
    ] {
        assert!(claims.contains(part), "{claims}");
    }
    assert!(signed.len() < TOKEN_BYTES_MAX / 2, "{}", signed.len());
    let again = tokens.sign(AccountId(42), 3, NOW_MS).unwrap();
    assert_ne!(tokens.verify(again.as_bytes(), NOW_MS).unwrap().token_id, token_id);
}

#[test]
fn a_token_expires_to_the_second() {
    let tokens = tokens(&[A]);
    let signed = tokens.sign(AccountId(1), 0, NOW_MS).unwrap();
    let end_ms = (NOW_MS / 1_000 + TOKEN_LIFE_S) * 1_000;
    assert!(tokens.verify(signed.as_bytes(), end_ms - 1).is_some());
    assert!(tokens.verify(signed.as_bytes(), end_ms).is_none());
    assert!(tokens.verify(signed.as_bytes(), i64::MAX).is_none());
}

#[test]
fn previous_keys_verify_and_forgotten_ones_do_not() {
    let old = tokens(&[B]).sign(AccountId(1), 0, NOW_MS).unwrap();
    assert!(tokens(&[A, B]).verify(old.as_bytes(), NOW_MS).is_some());
    assert!(tokens(&[A]).verify(old.as_bytes(), NOW_MS).is_none());
    let new = tokens(&[A, B]).sign(AccountId(1), 0, NOW_MS).unwrap();
    assert!(tokens(&[B]).verify(new.as_bytes(), NOW_MS).is_none());
}

#[test]
fn a_token_of_another_database_is_refused_though_the_key_is_the_same() {
    let here = tokens_of(&[A], "this");
    let signed = here.sign(AccountId(1), 0, NOW_MS).unwrap();
    assert!(
        tokens_of(&[B, A], "this")
            .verify(signed.as_bytes(), NOW_MS)
            .is_some()
    );
    for other in ["", "thi", "that", "this "] {
        assert!(
            tokens_of(&[A], other)
                .verify(signed.as_bytes(), NOW_MS)
                .is_none()
        );
    }
    assert!(signed_by_any(&[key(B), key(A)], signed.as_bytes()));
    assert!(!signed_by_any(&[key(B)], signed.as_bytes()));
    for bad in [
        "",
        ".",
        "bad",
        "a.b.c",
        &format!("{signed}x"),
        &"a".repeat(2_000),
    ] {
        assert!(!signed_by_any(&[key(A)], bad.as_bytes()), "{bad}");
    }
    // Tokens had this form before they contained the database.
    let mut hash = Sha256::new();
    hash.update(b"bhav token key id\0");
    hash.update(A);
    let kid = BASE64_URL_SAFE_NO_PAD.encode(&hash.finalize()[..8]);
    let old = format!(r#"{{"typ":"JWT","alg":"HS256","kid":"{kid}"}}"#);
    let (header, claims) = parts(&signed);
    assert!(header.starts_with(r#"{"typ":"JWT","alg":"HS256","kid":""#), "{header}");
    assert!(
        here.verify(forged(&header, &claims, A).as_bytes(), NOW_MS)
            .is_some()
    );
    assert!(
        here.verify(forged(&old, &claims, A).as_bytes(), NOW_MS)
            .is_none()
    );
}

#[test]
fn other_headers_claims_and_signatures_are_refused() {
    let tokens = tokens(&[A]);
    let good = tokens.sign(AccountId(7), 0, NOW_MS).unwrap();
    let (header, claims) = parts(&good);
    let accepted = |token: &str| tokens.verify(token.as_bytes(), NOW_MS).is_some();
    assert!(accepted(&good) && accepted(&forged(&header, &claims, A)));
    for other in [
        header.replace("HS256", "none"),
        header.replace("HS256", "HS512"),
        header.replace("HS256", "RS256"),
        header.replace(r#""kid":""#, r#""kid":"x"#),
        r#"{"alg":"HS256","typ":"JWT"}"#.to_owned(),
        r#"{"alg":"none"}"#.to_owned(),
        format!(r#"{{"x":{}{}}}"#, "[".repeat(300), "]".repeat(300)),
    ] {
        assert!(!accepted(&forged(&other, &claims, A)), "{other}");
    }
    for other in [
        claims.replace(r#""bhav""#, r#""other""#),
        claims.replace(r#""iss":"bhav","#, ""),
        claims.replace(r#""sub":"7""#, r#""sub":7"#),
        claims.replace(r#""sub":"7""#, r#""sub":"0""#),
        claims.replace(r#""sub":"7""#, r#""sub":"-7""#),
        claims.replace(r#""jti":""#, r#""jti":"0"#),
        claims.replace(r#""epoch":0"#, r#""epochs":0"#),
        claims.replace(r#""exp":"#, r#""exp":-"#),
        claims.replace(r#""exp":"#, r#""x":"#),
        "null".to_owned(),
    ] {
        assert_ne!(other, claims);
        assert!(!accepted(&forged(&header, &other, A)), "{other}");
    }
    assert!(!accepted(&forged(&header, &claims, B)), "a foreign key");
    let (message, tag) = good.rsplit_once('.').unwrap();
    let eight = forged(&header, &claims.replace(r#""7""#, r#""8""#), A);
    let other_message = eight.rsplit_once('.').unwrap().0;
    let padded = format!("{good}=");
    let long = format!("{good}{}", "A".repeat(TOKEN_BYTES_MAX));
    let swapped = format!("{other_message}.{tag}");
    let untagged = format!("{message}.");
    let more = format!("{good}.x");
    for bad in [
        "", ".", "..", "...", message, &untagged, &swapped, &more, &padded, &long,
    ] {
        assert!(!accepted(bad), "{bad}");
    }
    assert!(tokens.verify(b"\xff\xfe.\x00.\xff", NOW_MS).is_none());
}

#[test]
fn a_token_with_any_byte_changed_is_refused() {
    let tokens = tokens(&[A]);
    let good = tokens.sign(AccountId(7), 0, NOW_MS).unwrap().into_bytes();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let verified = tokens.verify(&bad, NOW_MS);
        assert!(verified.is_none(), "byte {at} of {}", String::from_utf8_lossy(&good));
    }
}

#[test]
fn ids_are_spelled_in_32_digits() {
    for id in [0, 1, u128::MAX] {
        assert_eq!(token_id(&spelled(id)), Some(id));
    }
    assert_eq!(token_id("1"), None);
    assert_eq!(token_id(&"g".repeat(32)), None);
}

#[test]
fn what_proves_an_earlier_login_is_no_token_and_a_token_that_ended_proves_one() {
    const DAY_MS: i64 = 24 * 3_600_000;
    let tokens = tokens(&[A]);
    let proof = tokens.sign_proof(AccountId(7), NOW_MS).unwrap();
    assert_eq!(tokens.verify(proof.as_bytes(), NOW_MS), None);
    let signed = tokens.sign(AccountId(7), 3, NOW_MS).unwrap();
    let ended_ms = NOW_MS + 300 * DAY_MS;
    assert_eq!(tokens.verify(signed.as_bytes(), ended_ms), None);
    for text in [&proof, &signed] {
        let earlier = tokens.earlier(text.as_bytes(), ended_ms).unwrap();
        assert_eq!(earlier.id, AccountId(7));
        assert_eq!(tokens.earlier(text.as_bytes(), NOW_MS + 400 * DAY_MS), None);
        assert_eq!(tokens_of(&[A], "another").earlier(text.as_bytes(), NOW_MS), None);
        assert_eq!(tokens_of(&[B], "this").earlier(text.as_bytes(), NOW_MS), None);
    }
    let of = |text: &str| tokens.earlier(text.as_bytes(), NOW_MS).unwrap().token_id;
    let token_id = tokens.verify(signed.as_bytes(), NOW_MS).unwrap().token_id;
    assert_eq!(of(&signed), token_id);
    assert_ne!(of(&proof), token_id);
}
