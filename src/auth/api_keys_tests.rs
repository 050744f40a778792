//! The form of keys, and the keys in memory.

use super::*;
use crate::base::Scope;

fn stored(user: i64, id: &str, hash: &str) -> StoredKey {
    StoredKey {
        id: id.to_owned(),
        user: AccountId(user),
        name: "a widget".into(),
        scopes: [Scope::MarketRead].into_iter().collect(),
        hash: hash.to_owned(),
        created_ms: 1,
        expires_ms: None,
        used_ms: None,
        used_from: None,
    }
}

#[test]
fn a_key_has_its_form_and_checksum() {
    for _ in 0..200 {
        let (id, text, hash) = generated().unwrap();
        assert_eq!((text.len(), text.as_bytes().starts_with(PREFIX)), (66, true));
        assert_eq!(&text[5..16], id);
        assert_eq!(id_text(number(id.as_bytes()).unwrap()), id);
        let secret = secret_of(text.as_bytes()).unwrap();
        assert_eq!(hash_of(&secret), hash);
        // No mistyped character goes unnoticed.
        for at in 0..text.len() {
            let mut wrong = text.as_bytes().to_vec();
            wrong[at] = if wrong[at] == b'7' { b'8' } else { b'7' };
            assert!(secret_of(&wrong).is_none(), "{at}");
        }
    }
}

/// The checksum is that of zlib, so that others can compute it.
#[test]
fn a_known_key_is_read_as_others_would() {
    let mut text = b"bhav_00000000001_".to_vec();
    text.extend([b'0'; 42]);
    text.push(b'z');
    // zlib.crc32 of the text before is 0xB0C784FA, in base62.
    let check = checksum(&text);
    text.extend(check.as_bytes());
    let mut secret = [0; 32];
    secret[31] = 61;
    assert_eq!(*secret_of(&text).unwrap(), secret);
    assert_eq!(number(b"00000000001"), Some(1));
    assert_eq!(check, KNOWN_CHECK);
}

const KNOWN_CHECK: &str = "3EiT9u";

#[test]
fn numbers_above_their_range_are_no_key() {
    assert_eq!(number(b"LygHa16AHYF"), Some(u64::MAX));
    assert_eq!(number(b"LygHa16AHYG"), None);
    assert_eq!(number(b"zzzzzzzzzzz"), None);
    let mut text = [b"bhav_00000000001_".as_slice(), &[b'z'; 43]].concat();
    let check = checksum(&text);
    text.extend(check.as_bytes());
    assert!(has_form(&text) && secret_of(&text).is_none());
}

#[test]
fn a_key_is_found_anywhere_in_a_text() {
    let (_, text, _) = generated().unwrap();
    for around in ["KEY", "xKEY", "a=1&key=KEY&b", "bhav_KEY", "KEYz"] {
        assert!(holds_key(around.replace("KEY", &text).as_bytes()), "{around}");
    }
    for not in [&text[1..], &text[..65], "bhav_", "", &text.replace('_', "-")] {
        assert!(!holds_key(not.as_bytes()), "{not}");
    }
}

#[test]
fn only_the_right_text_finds_its_key_and_only_while_it_is_there() {
    let keys = ApiKeys::new(0);
    let (id, text, hash) = generated().unwrap();
    let (_, other, _) = generated().unwrap();
    keys.load(Some(&[AccountId(1)]), 5, &[stored(1, &id, &hash)]);
    for _ in 0..2 {
        assert_eq!(keys.matching(text.as_bytes()).unwrap().user, AccountId(1));
        // The same id with another secret.
        let mut forged = format!("{}{}", &text[..17], &other[17..60]);
        forged.push_str(&checksum(forged.as_bytes()));
        assert!(secret_of(forged.as_bytes()).is_some());
        assert!(keys.matching(forged.as_bytes()).is_none());
    }
    let known = keys.matching(text.as_bytes()).unwrap();
    // A reading that began before the last one.
    keys.load(Some(&[AccountId(1)]), 4, &[]);
    assert!(keys.matching(text.as_bytes()).is_some() && !known.has_ended(0));
    keys.load(Some(&[AccountId(1)]), 6, &[]);
    assert!(keys.matching(text.as_bytes()).is_none() && known.has_ended(0));
    keys.load(Some(&[AccountId(1)]), 5, &[stored(1, &id, &hash)]);
    assert!(keys.matching(text.as_bytes()).is_none(), "it was revoked by change 6");
    keys.clear();
    keys.load(None, 1, &[stored(1, &id, &hash)]);
    assert!(keys.matching(text.as_bytes()).is_some(), "in another past it was not");
    keys.load(None, 2, &[]);
    assert!(keys.matching(text.as_bytes()).is_none());
    assert_eq!(keys.kept(), 0);
}

#[test]
fn a_bucket_is_the_minute_s_requests() {
    let keys = ApiKeys::new(3);
    let key = in_memory(&stored(1, "00000000001", ""));
    for _ in 0..3 {
        assert_eq!(keys.admit(&key, 1_000), Ok(()));
    }
    assert_eq!(keys.admit(&key, 1_000), Err(TooEarly { retry_after_ms: 20_000 }));
    assert_eq!(keys.admit(&key, 21_000), Ok(()));
    keys.set_rate(0);
    assert_eq!(keys.admit(&key, 21_000), Ok(()));
}
